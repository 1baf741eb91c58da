#include "cli/flow_draw.h"

#include <string.h>

#include "cli/text.h"

/* By enum lade_flow_step_state: fill for both kinds of picture. */
static const char *const fills[LADE_N_STEP_STATES] = {"#eeeeee", "#cfe3ff", "#c9efc9",
                                                      "#ffc9c9", "#e0d4c4", "#fff0b8"};

static bool is_handler(const lade_flow_view *v, size_t i)
{
    return i >= v->n_steps;
}

/* Names and kinds have no quotes; what people write as a flow's name may, and bytes that are no text. */
static void add_quoted(struct lb_buf *out, const char *text)
{
    struct lb_buf line;
    lb_buf_init(&line);
    cli_add_printable(&line, text, strlen(text), SIZE_MAX);
    out->failed = out->failed || line.failed;
    lb_buf_add_byte(out, '"');
    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '"' || line.p[i] == '\\')
            lb_buf_add_byte(out, '\\');
        lb_buf_add_byte(out, line.p[i]);
    }
    lb_buf_add_byte(out, '"');
    lb_buf_fini(&line);
}

void cli_flow_dot(struct lb_buf *out, const lade_flow_view *v)
{
    lb_buf_add_fmt(out, "digraph \"%s\" {\n  rankdir=LR;\n  label=", v->id);
    add_quoted(out, v->name[0] ? v->name : v->id);
    lb_buf_add_str(out, ";\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans\"];\n");
    for (size_t i = 0; i < v->n_nodes; i++) {
        const lade_flow_node *n = &v->nodes[i];
        lb_buf_add_fmt(out, "  n%zu [label=\"%s%s\\n%s\\n%s\", fillcolor=\"%s\"%s];\n", i,
                       is_handler(v, i) ? "on failure: " : "", n->kind, n->queue,
                       lade_flow_step_state_name(n->state), fills[n->state],
                       is_handler(v, i) ? ", style=\"rounded,filled,dashed\"" : "");
    }
    for (size_t i = 0; i < v->n_nodes; i++) {
        for (size_t k = 0; k < v->nodes[i].n_after; k++)
            lb_buf_add_fmt(out, "  n%u -> n%zu;\n", v->nodes[i].after[k], i);
    }
    lb_buf_add_str(out, "}\n");
}

void cli_flow_mermaid(struct lb_buf *out, const lade_flow_view *v)
{
    lb_buf_add_str(out, "flowchart LR\n");
    for (size_t i = 0; i < v->n_nodes; i++) {
        const lade_flow_node *n = &v->nodes[i];
        lb_buf_add_fmt(out, "  n%zu[\"%s%s<br/>%s<br/>%s\"]:::%s\n", i,
                       is_handler(v, i) ? "on failure: " : "", n->kind, n->queue,
                       lade_flow_step_state_name(n->state), lade_flow_step_state_name(n->state));
    }
    for (size_t i = 0; i < v->n_nodes; i++) {
        for (size_t k = 0; k < v->nodes[i].n_after; k++)
            lb_buf_add_fmt(out, "  n%u --> n%zu\n", v->nodes[i].after[k], i);
    }
    for (int s = 0; s < LADE_N_STEP_STATES; s++)
        lb_buf_add_fmt(out, "  classDef %s fill:%s,stroke:#666\n",
                       lade_flow_step_state_name((enum lade_flow_step_state)s), fills[s]);
}
