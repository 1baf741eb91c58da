/* Two tasks hand a number back and forth over two channels. */
#include <lade/rt.h>

#include <stdio.h>

struct table {
    lade_chan *there, *back;
};

static int pong(void *arg)
{
    struct table *t = arg;
    int ball;
    while (lade_chan_recv(t->there, &ball) == 0) {
        ball++;
        if (lade_chan_send(t->back, &ball) < 0)
            return -LADE_ECLOSED;
    }
    return 0;
}

static int play(void *arg)
{
    (void)arg;
    struct table t = {lade_chan_new(LADE_CHAN_SPSC, sizeof(int), 1),
                      lade_chan_new(LADE_CHAN_SPSC, sizeof(int), 1)};
    lade_taskgroup players = {0};
    if (!t.there || !t.back || lade_taskgroup_start(&players, NULL, pong, &t) < 0)
        return 1;
    int ball = 0;
    for (int i = 0; i < 10000; i++) {
        if (lade_chan_send(t.there, &ball) < 0 || lade_chan_recv(t.back, &ball) < 0)
            return 1;
    }
    (void)lade_chan_close(t.there);
    (void)lade_taskgroup_wait_until(&players, LADE_FOREVER);
    printf("the ball went over the table %d times\n", ball);
    return lade_chan_unref(t.there) < 0 || lade_chan_unref(t.back) < 0 || ball != 10000;
}

int main(void)
{
    return lade_rt_run(NULL, play, NULL);
}
