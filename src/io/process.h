/* Child processes. Two small supervisor processes of our own run each command. They end all of its
 * descendants, first with TERM, later with KILL, when the command has ended, on request, at the
 * time limit, or when this process dies. Processes that daemonize, leave their session or ignore
 * TERM are found too. If the command stops or kills one supervisor, the other one and this process
 * end everything. On systems other than Linux only the command's process group is ended. Input and
 * output use the host's loop; only ah_process_free blocks. A process owns its pipes and buffers.
 * Not covered: work that the command has another service do (at, systemd-run, docker), and, without
 * a sandbox, processes outside the group of a command that kills both supervisors at once.
 * Callers: its floor, lua. */
#ifndef AH_IO_PROCESS_H
#define AH_IO_PROCESS_H

#include <sys/types.h>

#include "base/buf.h"
#include "io/loop.h"

typedef struct ah_process ah_process;

/* Limits of each process below; 0: those of the host. Exceeding one fails in that process. */
typedef struct ah_process_limits {
    uint64_t memory_bytes; /* of address space */
    uint64_t file_bytes;   /* of a file that it writes */
    uint64_t cpu_s;
    uint64_t processes; /* of the user, other programs' processes included; not for root */
} ah_process_limits;

/* Called from ah_loop_wait on news: bytes have come, a stream has ended, all input was passed on,
 * the process takes no more input, or has ended. May take output, but must neither free the process
 * nor run a script. */
typedef void (*ah_process_news_fn)(void *ud, ah_process *p);

enum { AH_PROCESS_FENCE = 5 };

/* The pointers are borrowed during ah_process_start only. Fields that are zero have the default. */
typedef struct ah_process_config {
    const char *const *argv; /* ends with NULL; without `/`, argv[0] is searched in env's PATH */
    const char *const *env;  /* "NAME=value", ends with NULL: the command's whole environment */
    int cwd_fd;              /* descriptor of the working directory; 0: the host's */
    /* Path of the working directory, relative to cwd_fd if not absolute; NULL: none. */
    const char *cwd;
    bool input;         /* stdin is what is written to the process; else it is empty */
    bool merge;         /* stderr goes into stdout, in the order of writing */
    int64_t timeout_ms; /* 0: none */
    int64_t grace_ms;   /* between TERM and KILL; 0: half a second */
    /* Limit of untaken bytes per stream, and so of a line; beyond it the stream is not read. 0: 1
     * MiB. */
    size_t max_pending;
    ah_process_limits limits;
    /* Called in the command's process before exec, where only async-signal-safe calls are allowed.
     * Returns 0 or errno. NULL: none. `above`: the processes that it must not reach: its
     * supervisors and, last, the host. fence_fd then has the number AH_PROCESS_FENCE; 0: none. */
    int (*confine)(const void *ud, const pid_t *above, size_t n_above);
    /* Called in a supervisor when all processes are gone, under the same rule, for at most for_ms
     * (-1: until done). Returns true if nothing is left to do; if it needs more time, a process of
     * its own continues. Not called if both supervisors were killed. NULL: none. */
    bool (*clean)(const void *ud, long for_ms);
    const void *confine_ud; /* passed to both */
    int fence_fd;
    ah_process_news_fn news;
    void *ud;
} ah_process_config;

enum { AH_PROCESS_PATH = 4096 };
/* Finds the program of a config as it would be started; out has AH_PROCESS_PATH bytes. Returns
 * AH_USAGE if PATH has no such program; a path is returned as it is. */
ah_status ah_process_find(const ah_process_config *cfg, char *out, ah_err *err);

/* Returns AH_USAGE if there is no such command. Later errors (a missing folder, a file that is no
 * program) are in the result. Processes below gain no new privileges: setuid programs have no
 * effect. */
ah_status ah_process_start(const ah_mem *mem, ah_loop *loop, const ah_process_config *cfg,
                           ah_process **out, ah_err *err);
/* Frees the process, at any time; NULL is allowed. A running process is killed and waited for, at
 * most two seconds. Leaves no zombie. */
void ah_process_free(ah_process *p);

/* Ends it and all its descendants: TERM, then KILL after grace_ms. News follow. */
void ah_process_stop(ah_process *p);
/* The same with KILL at once. */
void ah_process_kill(ah_process *p);
/* Sends a signal (1 to 64) to the command's process group. No effect once the command has ended. */
void ah_process_signal(ah_process *p, int sig);

/* -- input: config.input ------------------------------------------------------------------- */

/* Writes a copy of the bytes to the command's input as the command reads. Returns AH_BUDGET if more
 * than 64 MiB are waiting, AH_INTERNAL if the command has closed its input or ended. */
ah_status ah_process_write(ah_process *p, ah_slice bytes, ah_err *err);
size_t ah_process_unwritten(const ah_process *p);
/* Returns the number of written bytes that the command's pipe has taken. */
int64_t ah_process_written(const ah_process *p);
/* True while the pipe to the command is open. Bytes not taken when it closes are lost. */
bool ah_process_has_input(const ah_process *p);
void ah_process_close_input(ah_process *p); /* after the waiting bytes; may be repeated */

/* -- output --------------------------------------------------------------------------------- */

typedef enum ah_process_stream { AH_STDOUT, AH_STDERR } ah_process_stream;

/* Returns the untaken output; valid until the next take or line, or ah_loop_wait. */
ah_slice ah_process_output(const ah_process *p, ah_process_stream s);
/* Drops the first n bytes of the output, which the owner has taken. */
void ah_process_take(ah_process *p, ah_process_stream s, size_t n);
bool ah_process_at_end(const ah_process *p, ah_process_stream s); /* no more output will come */

/* -- the end --------------------------------------------------------------------------------- */

typedef enum ah_process_end {
    AH_PROCESS_EXITED,    /* by itself */
    AH_PROCESS_STOPPED,   /* by ah_process_stop */
    AH_PROCESS_TIMED_OUT, /* by the time limit */
    AH_PROCESS_FAILED     /* it never ran, or a supervisor was killed: see err */
} ah_process_end;

typedef struct ah_process_result {
    ah_process_end how;
    int code;        /* exit code; -1: ended by a signal, never ran, or unknown */
    int signal;      /* 0: none */
    int left;        /* descendants that could not be ended within ten seconds; -1: unknown */
    int64_t wall_ms; /* from the start until the last process was gone */
    int64_t cpu_ms;  /* of the command and all descendants */
    /* Peak memory of the largest process; 0: unknown, no more than the host's. */
    int64_t peak_bytes;
    ah_err err; /* AH_OK, or why it FAILED */
} ah_process_result;

/* True if the command and its descendants are gone and the streams have ended (untaken output can
 * still be taken). out may be NULL. */
bool ah_process_ended(const ah_process *p, ah_process_result *out);

#endif
