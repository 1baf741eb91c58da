/*
 * fault.h - places where a test can kill the process or make an operation fail
 *
 * LB_FAULT("put.before") names a point; LADE_FAULT in the environment arms it:
 *
 *     LADE_FAULT=put.before:3:kill        SIGKILL at the third time the point is reached
 *     LADE_FAULT=*:17:kill                SIGKILL at the 17th point reached, whichever it is
 *     LADE_FAULT=settle.after:1:fail      lb_fault_fails there once; ...:fail+ from then on
 *     LADE_FAULT=*:0:count                prints at exit how many points a run reaches: "lade: fault put.before 3" for
 *                                         each name, and "lade: faults N" for all together
 *
 * Built in with the CMake option LADE_FAULTS (presets dev and tsan), otherwise the macros are nothing.
 * Thread safety: all.
 */
#ifndef LADE_BASE_FAULT_H
#define LADE_BASE_FAULT_H

#include <stdbool.h>

#ifdef LADE_FAULTS
/* `point` is a string literal. Counts it; kills when it is armed so. True when an operation should fail here. */
bool lb_fault_reached(const char *point);
/* Arms from a program instead of the environment; NULL disarms. Same syntax. */
void lb_fault_arm(const char *spec);
#    define LB_FAULT(point)       ((void)lb_fault_reached(point))
#    define LB_FAULT_FAILS(point) (lb_fault_reached(point))
#else
#    define LB_FAULT(point)       ((void)(point))
#    define LB_FAULT_FAILS(point) ((void)(point), false)
#endif

#endif
