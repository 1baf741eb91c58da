/* flow_draw.h - a workflow as a picture in words: Graphviz and Mermaid. Thread safety: functions of their arguments. */
#ifndef LADE_CLI_FLOW_DRAW_H
#define LADE_CLI_FLOW_DRAW_H

#include <lade/lade.h>

#include "base/buf.h"

/* A digraph for `dot -Tsvg`, steps coloured by state. */
void cli_flow_dot(struct lb_buf *out, const lade_flow_view *v);
/* A flowchart for Mermaid, which many web pages draw. */
void cli_flow_mermaid(struct lb_buf *out, const lade_flow_view *v);

#endif
