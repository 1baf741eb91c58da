#include "bench/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Three significant digits, zeros kept: 1.00, 12.3, 123. */
static void write_digits(double v, char *out, size_t size)
{
    double a = fabs(v);
    int decimals = a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
    if (a > 0 && a < 0.995)
        decimals = (int)(2 - floor(log10(a)));
    if (decimals > 6)
        decimals = 6;
    (void)snprintf(out, size, "%.*f", decimals, v);
}

struct step {
    double size;
    const char *name;
};

static char *write_steps(double v, const struct step *step, size_t n, char *out, size_t size)
{
    char digits[32];
    size_t i = 0;
    while (i + 1 < n && fabs(v) / step[i].size >= 999.5) /* would round to 1000 */
        i++;
    write_digits(v / step[i].size, digits, sizeof(digits));
    (void)snprintf(out, size, "%s%s", digits, step[i].name);
    return out;
}

char *bn_units(double v, const char *unit, char *out, size_t size)
{
    static const struct step plain[] = {{1, ""}, {1e3, "K"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
    static const struct step time[] = {{1e-3, " ns"}, {1, " us"}, {1e3, " ms"}, {1e6, " s"}};
    static const struct step bytes[] = {
        {1, " B"}, {1024, " KiB"}, {1048576, " MiB"}, {1073741824, " GiB"}};
    if (strcmp(unit, "us") == 0)
        return write_steps(v, time, 4, out, size);
    if (strcmp(unit, "B") == 0)
        return write_steps(v, bytes, 4, out, size);
    return write_steps(v, plain, 5, out, size);
}
