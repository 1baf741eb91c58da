/* expr.c - a recursive descent: sum of products of factors. Depth is bounded, since tables are files that people edit. */
#include "bench/expr.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 32

struct parser {
    const char *at;
    bn_lookup_fn lookup;
    void *ctx;
    int depth;
    const char *problem; /* NULL = none yet */
};

static uint64_t read_sum(struct parser *p);

static char peek(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static bool accept(struct parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static uint64_t fail_at(struct parser *p, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
    return 0;
}

/* The splitmix64 finaliser, `rounds` times for each item. A table asks for the same sum after each run: the last is kept. */
static uint64_t mix_sum(uint64_t n, uint64_t rounds)
{
    static struct {
        uint64_t n, rounds, sum;
    } last;

    uint64_t sum = 0;
    if (n == last.n && rounds == last.rounds)
        return last.sum;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t z = i;
        for (uint64_t r = 0; r < rounds; r++) {
            z += UINT64_C(0x9E3779B97F4A7C15);
            z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
            z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
            z ^= z >> 31;
        }
        sum += z;
    }
    last.n = n;
    last.rounds = rounds;
    last.sum = sum;
    return sum;
}

static uint64_t read_name(struct parser *p)
{
    const char *name = p->at;
    uint64_t v = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    size_t n = (size_t)(p->at - name);
    if (n == 3 && memcmp(name, "mix", 3) == 0 && accept(p, '(')) {
        uint64_t items = read_sum(p);
        bool comma = accept(p, ',');
        uint64_t rounds = read_sum(p);
        if (!comma || !accept(p, ')'))
            return fail_at(p, "mix wants (n, rounds)");
        return p->problem ? 0 : mix_sum(items, rounds);
    }
    return p->lookup(p->ctx, name, n, &v) ? v : fail_at(p, "unknown name");
}

static uint64_t read_factor(struct parser *p)
{
    char c = peek(p);
    uint64_t v = 0;
    if (p->problem)
        return 0;
    if (accept(p, '(')) {
        if (++p->depth > DEPTH_MAX)
            return fail_at(p, "too many parentheses");
        v = read_sum(p);
        p->depth--;
        return accept(p, ')') ? v : fail_at(p, "missing )");
    }
    if (isalpha((unsigned char)c))
        return read_name(p);
    if (!isdigit((unsigned char)c))
        return fail_at(p, "a number or name is missing");
    for (; isdigit((unsigned char)*p->at); p->at++)
        v = v * 10 + (uint64_t)(*p->at - '0');
    return v;
}

static uint64_t read_product(struct parser *p)
{
    uint64_t v = read_factor(p);
    for (;;) {
        char op = peek(p);
        if (op != '*' && op != '/' && op != '%')
            return v;
        p->at++;
        uint64_t right = read_factor(p);
        if (op == '*')
            v *= right;
        else if (right == 0)
            return fail_at(p, "division by 0");
        else
            v = op == '/' ? v / right : v % right;
    }
}

static uint64_t read_sum(struct parser *p)
{
    uint64_t v = read_product(p);
    for (;;) {
        if (accept(p, '+'))
            v += read_product(p);
        else if (peek(p) == '-') {
            p->at++;
            v -= read_product(p);
        } else
            return v;
    }
}

bool bn_expr(const char *text, bn_lookup_fn lookup, void *ctx, uint64_t *out, char *why,
             size_t why_size)
{
    struct parser p = {.at = text, .lookup = lookup, .ctx = ctx};
    uint64_t v = read_sum(&p);
    if (!p.problem && peek(&p) != '\0')
        p.problem = "text after the formula";
    if (p.problem) {
        (void)snprintf(why, why_size, "formula '%s' at '%.20s': %s", text, p.at, p.problem);
        return false;
    }
    *out = v;
    return true;
}
