#include "bench/machine.h"

#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/child.h"

#ifndef BN_FLAGS
#    define BN_FLAGS ""
#endif

/* The rest of the first line that begins with `key`, after ": ". */
static void read_line(const char *path, const char *key, char *out, size_t size)
{
    char line[512];
    FILE *f = fopen(path, "re");
    (void)snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *colon = *key ? strchr(line, ':') : NULL;
        const char *from = colon ? colon + 1 : line;
        from += strspn(from, " \t");
        (void)snprintf(out, size, "%.*s", (int)strcspn(from, "\n"), from);
        break;
    }
    if (f)
        (void)fclose(f);
}

static void read_command(const char *const *argv, char *out, size_t size)
{
    struct bn_child c = {.argv = argv, .deadline_ns = 10 * LADE_SECOND};
    struct bn_child_end end;
    (void)snprintf(out, size, "unknown");
    if (bn_child_run(&c, &end) && end.code == 0)
        (void)snprintf(out, size, "%.*s", (int)strcspn(end.out, "\n"), end.out);
    bn_child_free(&end);
}

static void read_commit(const char *root, char *out, size_t size)
{
    char changed[8];
    read_command((const char *[]){"git", "-C", root, "rev-parse", "--short=12", "HEAD", NULL}, out,
                 size);
    read_command((const char *[]){"git", "-C", root, "status", "--porcelain", "-uno", NULL},
                 changed, sizeof(changed));
    size_t n = strlen(out);
    if (changed[0] && strcmp(changed, "unknown") != 0)
        (void)snprintf(out + n, size - n, " + changes");
}

double bn_machine_load(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : -1;
}

int bn_machine_n_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The lowest CPU that shares this one's core; itself when unknown. */
static int first_sibling(int cpu)
{
    char path[128];
    char line[64];
    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    read_line(path, "", line, sizeof(line));
    return line[0] >= '0' && line[0] <= '9' ? (int)strtol(line, NULL, 10) : cpu;
}

void bn_machine_cpus(int n, cpu_set_t *out)
{
    cpu_set_t may;
    CPU_ZERO(out);
    if (sched_getaffinity(0, sizeof(may), &may) != 0)
        return;
    for (int pass = 0; pass < 2; pass++) { /* first of each core, then the others */
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(out) < n; cpu++) {
            if (CPU_ISSET(cpu, &may) && !CPU_ISSET(cpu, out) &&
                (pass == 1 || first_sibling(cpu) == cpu))
                CPU_SET(cpu, out);
        }
    }
}

json_t *bn_machine_facts(const char *root)
{
    struct utsname u;
    char cpu[160];
    char governor[64];
    char memory[64];
    char commit[80];
    char date[32];
    time_t now = time(NULL);
    struct tm tm;
    (void)uname(&u);
    read_line("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
    read_line("/proc/meminfo", "MemTotal", memory, sizeof(memory));
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", governor,
              sizeof(governor));
    read_commit(root, commit, sizeof(commit));
    (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &tm));
    return json_pack("{s:s,s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "cpu", cpu, "cpus",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "cpus allowed", bn_machine_n_cpus(),
                     "memory", memory, "kernel", u.release, "governor", governor, "compiler",
                     __VERSION__, "flags", BN_FLAGS, "commit", commit, "lade", lade_version(),
                     "date", date);
}
