// <lade/rt.h> alone as C++17.
#include <lade/rt.h>

static int nothing(void *)
{
    lade_mutex m{};
    lade_taskgroup g{};
    lade_taskgroup_init(&g);
    if (lade_mutex_lock(&m) < 0 || lade_mutex_unlock(&m) < 0)
        return 1;
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

int main()
{
    return lade_rt_run(nullptr, nothing, nullptr);
}
