/* The supervisors of a child process: what runs between fork and exec, and in the processes between
 * host and command. Only async-signal-safe calls, and no memory but the stack. Used by process.c
 * only. Callers: its floor. */
#ifndef AH_IO_SUPERVISE_H
#define AH_IO_SUPERVISE_H

#include "io/process.h"

/* Everything that a supervisor needs, made before the fork. */
typedef struct ah_supervisor {
    const ah_process_config *cfg;
    const char *path; /* path of the program */
    pid_t host;
    int in, out, err; /* descriptors for the command */
    int control;      /* receives ah_control bytes; its end means that the host has died */
    int report;       /* sends ah_report structs */
} ah_supervisor;

/* A byte up to AH_MOST_SIGNAL is a signal for the command's process group. */
typedef enum ah_control {
    AH_MOST_SIGNAL = 64,
    AH_CONTROL_STOP = 'T',
    AH_CONTROL_KILL = 'K'
} ah_control;

/* Times of a supervisor, ms. The host, which watches it, allows these and some more. */
enum {
    AH_GRACE_MS = 500,     /* between TERM and KILL, by default */
    AH_KILL_MS = 10 * 1000 /* of rounds of KILL, until it gives up */
};

typedef enum ah_launch_step {
    AH_STEP_NONE,
    AH_STEP_FORK,
    AH_STEP_LIMITS,
    AH_STEP_CWD,
    AH_STEP_CONFINE,
    AH_STEP_EXEC
} ah_launch_step;

/* STARTED, possibly FAILED, ENDING and ENDED come from the inner supervisor. GONE comes from the
 * outer one, always last, and ENDING too if it ends everything in place of the inner one. Reports
 * of a killed supervisor are missing; the end of the pipe then means GONE. */
typedef enum ah_report_kind {
    AH_REPORT_STARTED,
    AH_REPORT_FAILED,
    AH_REPORT_ENDING, /* it has begun to end everything: `how` */
    AH_REPORT_ENDED,
    AH_REPORT_GONE
} ah_report_kind;

/* Smaller than PIPE_BUF, so that each is written and read as a whole. */
typedef struct ah_report {
    ah_report_kind kind;
    int group;             /* STARTED: the command's process group */
    int inner;             /* STARTED: process id of the inner supervisor */
    ah_launch_step failed; /* FAILED */
    int error;             /* FAILED: errno */
    ah_process_end how;    /* ENDING, ENDED; FAILED if the outer one was killed */
    int status;            /* ENDED: status of waitpid */
    int left;              /* ENDED, GONE: as ah_process_result.left */
    int64_t cpu_us;        /* ENDED, GONE */
    int64_t peak_bytes;    /* ENDED */
} ah_report;

/* Runs in the child of a fork, with all signals blocked. */
_Noreturn void ah_supervise(const ah_supervisor *s);

#endif
