/* <lade/rt.h> alone, as strict C11, against liblade-rt alone: tasks that talk, and a name for what went wrong. */
#include <lade/rt.h>

#include <string.h>

static void send_numbers(void *arg)
{
    lade_chan *c = arg;
    for (uint64_t v = 1; v <= 100; v++)
        (void)lade_chan_send(c, &v);
    (void)lade_chan_close(c);
}

static int add_up(void *arg)
{
    uint64_t *sum = arg;
    uint64_t v;
    lade_chan *c = lade_chan_new(LADE_CHAN_SPSC, sizeof(v), 4);
    if (!c || lade_task_start(NULL, send_numbers, c) < 0)
        return -LADE_ENOMEM;
    int rc;
    while ((rc = lade_chan_recv(c, &v)) == 0)
        *sum += v;
    (void)lade_chan_unref(c);
    return rc;
}

int main(void)
{
    uint64_t sum = 0;
    int rc = lade_rt_run(NULL, add_up, &sum);
    return sum == 5050 && strcmp(lade_result_name(rc), "LADE_ECLOSED") == 0 &&
                   strcmp(lade_result_name(-LADE_ETIMEDOUT), "LADE_ETIMEDOUT") == 0
               ? 0
               : 1;
}
