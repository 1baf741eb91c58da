#include "cli/result.h"

#include "cli/out.h"

/* In the queue that is named; prints it when it shall. */
static int find_result(struct cli *c, const char *queue, const char *id, bool prints, bool *found,
                       lade_err *err)
{
    lade_result_view *r = NULL;
    int rc = lade_result_get_many(c->q, queue, &id, 1, &r, err);
    *found = rc == 0 && r->outcome == 0;
    if (*found && prints)
        rc = cli_out_raw(r->result, err);
    lade_free(r);
    return rc;
}

static int find_anywhere(struct cli *c, const char *id, bool prints, bool *found, lade_err *err)
{
    lade_queue_info *queues = NULL;
    size_t n = 0;
    *found = false;
    if (c->queue)
        return find_result(c, c->queue, id, prints, found, err);
    int rc = lade_queue_list(c->q, &queues, &n, err);
    for (size_t i = 0; rc == 0 && i < n && !*found; i++)
        rc = find_result(c, queues[i].name, id, prints, found, err);
    lade_free(queues);
    return rc;
}

int cli_result_of_gone(struct cli *c, const char *id, bool *found, lade_err *err)
{
    return find_anywhere(c, id, true, found, err);
}

int cli_result_look(struct cli *c, const char *id, bool *found, lade_err *err)
{
    return find_anywhere(c, id, false, found, err);
}
