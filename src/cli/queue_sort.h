/* queue_sort.h - lade queue ls --sort: queues in the order of some of their numbers. Thread safety: none. */
#ifndef LADE_CLI_QUEUE_SORT_H
#define LADE_CLI_QUEUE_SORT_H

#include <lade/lade.h>

#define CLI_SORT_KEYS_MAX 8

struct cli_queue_sort {
    const struct cli_sort_key *by[CLI_SORT_KEYS_MAX];
    size_t n;
    bool reverse;
};

/* "failed,latency": the first decides, the next where it is equal, at last the name. 0 or -LADE_EINVAL that names what is wrong. */
LADE_CHECKED int cli_queue_sort_read(struct cli_queue_sort *out, const char *what, const char *text,
                                     lade_err *err);
/* The largest number first, names from A on; `reverse` turns both. */
void cli_queue_sort(const struct cli_queue_sort *sort, lade_queue_info *queues, size_t n);

/* The words that --sort takes, separated by blanks: for completion. Valid until the next call. */
const char *cli_queue_sort_words(void);

#endif
