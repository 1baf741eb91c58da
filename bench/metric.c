#include "bench/metric.h"

#include <string.h>

static const json_t *walk(const json_t *at, const char *path)
{
    const char *dot = strchr(path, '.');
    if (!dot)
        return json_object_get(at, path);
    return walk(json_object_getn(at, path, (size_t)(dot - path)), dot + 1);
}

static bool read_number(const json_t *line, const char *path, double *out)
{
    const json_t *v = walk(line, path);
    if (!json_is_number(v))
        return false;
    *out = json_number_value(v);
    return true;
}

static bool divide(const json_t *line, const char *what, double factor, double *out)
{
    double jobs = 0;
    bool whole =
        strncmp(what, "server", 6) == 0 && json_is_true(json_object_get(line, "server_whole_run"));
    if (!read_number(line, what, out) ||
        !read_number(line, whole ? "verified.count" : "n", &jobs) || jobs <= 0)
        return false;
    *out = *out * factor / jobs;
    return true;
}

bool bn_metric(const json_t *line, const char *name, double *out)
{
    if (strcmp(name, "client_cpu_us") == 0)
        return divide(line, "client_cpu_s", 1e6, out);
    if (strcmp(name, "server_cpu_us") == 0)
        return divide(line, "server_cpu_s", 1e6, out);
    if (strcmp(name, "server_commands_per_job") == 0)
        return divide(line, "server_commands", 1, out);
    return read_number(line, name, out);
}
