/* The supervisors of a child process: what happens between fork and exec, and in the processes that
 * stay between the host and its command. For process.c alone. */
#ifndef AH_IO_SUPERVISE_H
#define AH_IO_SUPERVISE_H

#include "io/process.h"

/* All of it made before the fork. */
typedef struct ah_supervisor {
    const ah_process_config *cfg;
    const char *path; /* of the program */
    pid_t host;
    int in, out, err; /* the command's */
    int control;      /* bytes of ah_control come in; its end is the death of the host */
    int report;       /* ah_reports go out */
} ah_supervisor;

/* A byte up to AH_MOST_SIGNAL is a signal for the command's process group. */
typedef enum ah_control {
    AH_MOST_SIGNAL = 64,
    AH_CONTROL_STOP = 'T',
    AH_CONTROL_KILL = 'K'
} ah_control;

/* Times of a supervisor, ms. The host, which watches it, gives it these and some more. */
enum {
    AH_GRACE_MS = 500,     /* between TERM and KILL where the config says nothing */
    AH_KILL_MS = 10 * 1000 /* of rounds of KILL; then it is given up */
};

typedef enum ah_launch_step {
    AH_STEP_NONE,
    AH_STEP_FORK,
    AH_STEP_LIMITS,
    AH_STEP_CWD,
    AH_STEP_CONFINE,
    AH_STEP_EXEC
} ah_launch_step;

/* STARTED, perhaps FAILED, ENDING and ENDED come from the inner supervisor; GONE from the outer
 * one, always as the last, and ENDING where it ends all in the inner one's place. What was killed
 * is missing in the row; the end of the pipe stands for GONE. */
typedef enum ah_report_kind {
    AH_REPORT_STARTED,
    AH_REPORT_FAILED,
    AH_REPORT_ENDING, /* it has begun to end all: `how` */
    AH_REPORT_ENDED,
    AH_REPORT_GONE
} ah_report_kind;

/* Smaller than PIPE_BUF, so that each is written and read as a whole. */
typedef struct ah_report {
    ah_report_kind kind;
    int group;             /* STARTED: the command's process group */
    int inner;             /* STARTED: the process of the inner supervisor */
    ah_launch_step failed; /* FAILED */
    int error;             /* FAILED: errno */
    ah_process_end how;    /* ENDING, ENDED; FAILED where the outer one was killed */
    int status;            /* ENDED: of waitpid */
    int left;              /* ENDED, GONE: as ah_process_result.left */
    int64_t cpu_us;        /* ENDED, GONE */
    int64_t peak_bytes;    /* ENDED */
} ah_report;

/* In the child of a fork, with all signals blocked. */
_Noreturn void ah_supervise(const ah_supervisor *s);

#endif
