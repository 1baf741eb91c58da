/* commands.h - every command, by the file that holds it */
#ifndef LADE_CLI_COMMANDS_H
#define LADE_CLI_COMMANDS_H

#include "cli/cli.h"

/* cmd_enqueue.c */
extern const struct cli_command cli_job_enqueue;
/* cmd_work.c */
extern const struct cli_command cli_worker_run;
/* cmd_job.c */
extern const struct cli_command cli_job_ls, cli_job_show, cli_job_retry, cli_job_kill,
    cli_job_cancel, cli_job_rm;
/* cmd_dead.c */
extern const struct cli_command cli_dead_show, cli_dead_redrive, cli_dead_purge;
/* cmd_classes.c */
extern const struct cli_command cli_dead_classes, cli_dead_ls, cli_job_edit;
/* cmd_queue.c */
extern const struct cli_command cli_queue_ls, cli_queue_show, cli_queue_pause, cli_queue_resume,
    cli_queue_purge, cli_queue_rm;
/* cmd_flow.c */
extern const struct cli_command cli_flow_run, cli_flow_ls, cli_flow_show, cli_flow_cancel,
    cli_flow_retry, cli_flow_rm;
/* cmd_key.c */
extern const struct cli_command cli_queue_limit, cli_key_ls, cli_key_show, cli_key_limit,
    cli_key_pause, cli_key_resume;
/* cmd_schedule.c */
extern const struct cli_command cli_schedule_ls, cli_schedule_show, cli_schedule_pause,
    cli_schedule_resume, cli_schedule_run, cli_schedule_rm;
/* cmd_schedule_set.c, cmd_schedule_time.c */
extern const struct cli_command cli_schedule_set, cli_schedule_preview, cli_schedule_explain,
    cli_schedule_serve;
/* cmd_worker.c */
extern const struct cli_command cli_worker_ls;
/* cmd_control.c */
extern const struct cli_command cli_worker_show, cli_worker_quiet, cli_worker_resume,
    cli_worker_stop, cli_worker_stacks;
/* cmd_stats.c */
extern const struct cli_command cli_stats;
/* cmd_export.c */
extern const struct cli_command cli_export, cli_import;
/* cmd_top.c */
extern const struct cli_command cli_top;
/* cmd_event.c */
extern const struct cli_command cli_events, cli_queue_events;
/* cmd_wait.c */
extern const struct cli_command cli_job_wait, cli_job_logs;
/* cmd_trace.c */
extern const struct cli_command cli_job_trace;
/* cmd_misc.c */
extern const struct cli_command cli_doctor, cli_version, cli_help;
/* cmd_completion.c */
extern const struct cli_command cli_completion;

#endif
