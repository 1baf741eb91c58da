int main(int c, char **v)
{
    memset(body, 'x', sizeof body);
    body[0] = 1;
    body[1] = '4';
    char path[64] = "/tmp/lsb/y.db", url[128];
    snprintf(url, 128, "sqlite:%s", path);
    char rm[256];
    snprintf(rm, 256, "rm -f %s %s-wal %s-shm %s-bell", path, path, path, path);
    (void)!system(rm);
    struct lq_store *s = open_(url);
    size_t b = 100, n = 100000;
    if (c > 1)
        b = atoi(v[1]);
    if (c > 2)
        n = atoi(v[2]);
    double pu = 0, w = 0;
    for (int r = 0; r < 5; r++) {
        double x = put(s, n, b, 0);
        if (x > pu)
            pu = x;
        x = work(s, n, b, 0);
        if (x > w)
            w = x;
    }
    printf("batch %zu best: put %.0f work %.0f e2e %.0f\n", b, pu, w, 1 / (1 / pu + 1 / w));
    lq_store_close(s);
    (void)!system(rm);
}
