/* Select with a deadline: the first of two channels, or nothing in time. */
#include <lade/rt.h>

#include <stdio.h>

static void answer_late(void *arg)
{
    int answer = 42;
    if (lade_task_sleep_until(lade_clock_now() + 20 * LADE_MILLISECOND) == 0)
        (void)lade_chan_send(arg, &answer);
}

static int run(void *arg)
{
    (void)arg;
    lade_chan *late = lade_chan_new(LADE_CHAN_MPMC, sizeof(int), 1);
    lade_chan *never = lade_chan_new(LADE_CHAN_MPMC, sizeof(int), 1);
    if (!late || !never || lade_task_start(NULL, answer_late, late) < 0)
        return 1;
    int v = 0;
    lade_case cases[] = {LADE_RECV(late, &v), LADE_RECV(never, &v)};
    int timeouts = 0;
    int fired;
    while ((fired = lade_chan_select(cases, 2, lade_clock_now() + 2 * LADE_MILLISECOND)) ==
           -LADE_ETIMEDOUT)
        timeouts++;
    printf("case %d brought %d%s\n", fired, v, timeouts > 0 ? " after some waiting" : "");
    return lade_chan_unref(late) < 0 || lade_chan_unref(never) < 0 || fired != 0 || v != 42;
}

int main(void)
{
    return lade_rt_run(NULL, run, NULL);
}
