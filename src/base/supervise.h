/* The supervisor of a child process: what happens between fork and exec, and in the process that
 * stays between the host and its command. For process.c alone. */
#ifndef AH_BASE_SUPERVISE_H
#define AH_BASE_SUPERVISE_H

#include "base/process.h"

/* All of it made before the fork. */
typedef struct ah_supervised {
    const ah_process_config *cfg;
    const char *path; /* of the program */
    int in, out, err; /* the command's */
    int control;      /* bytes of ah_control come in; its end is the death of the host */
    int report;       /* ah_reports go out: STARTED, perhaps FAILED, ENDED */
} ah_supervised;

typedef enum ah_control { AH_CONTROL_STOP = 'T', AH_CONTROL_KILL = 'K' } ah_control;

typedef enum ah_launch_step {
    AH_STEP_NONE,
    AH_STEP_FORK,
    AH_STEP_LIMITS,
    AH_STEP_CWD,
    AH_STEP_CONFINE,
    AH_STEP_EXEC
} ah_launch_step;

typedef enum ah_report_kind { AH_REPORT_STARTED, AH_REPORT_FAILED, AH_REPORT_ENDED } ah_report_kind;

/* Smaller than PIPE_BUF, so that each is written and read as a whole. */
typedef struct ah_report {
    ah_report_kind kind;
    int group;             /* STARTED: the command's process group */
    ah_launch_step failed; /* FAILED */
    int error;             /* FAILED: errno */
    ah_process_end how;    /* ENDED, as all that follows */
    int status;            /* of waitpid */
    int left;
    int64_t cpu_us, peak_bytes;
} ah_report;

/* In the child of a fork, with all signals blocked. */
_Noreturn void ah_supervise(const ah_supervised *s);

#endif
