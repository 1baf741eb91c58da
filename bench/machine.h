/* machine.h - the facts a figure needs: what it ran on and how busy that was. Thread safety: the main thread. */
#ifndef LADE_BENCH_MACHINE_H
#define LADE_BENCH_MACHINE_H

#include <jansson.h>
#include <sched.h>

/* A new object: cpu, cores, kernel, governor, memory, compiler, flags, commit, date, lade. NULL when out of memory. */
json_t *bn_machine_facts(const char *root);
double bn_machine_load(void); /* 1-minute load average; -1 when unknown */
/* CPUs this process may use. */
int bn_machine_n_cpus(void);
/* The first n of them, distinct physical cores first. */
void bn_machine_cpus(int n, cpu_set_t *out);

#endif
