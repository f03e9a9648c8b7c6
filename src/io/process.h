/* Child processes. Each runs below supervisors, two small processes of our own that adopt what
 * the command leaves behind and, when the command has ended, when they are told to, when time is
 * over or when this process dies, end every descendant: TERM, after a while KILL, until none
 * is left. What daemonizes, leaves its session or ignores TERM is found all the same. The command
 * may stop or kill one of them: the other one, and this process, which knows the time, too, end all
 * the same. On systems other than Linux it is the command's process group that is ended, and no
 * more.
 *
 * Bytes come and go through the host's loop; nothing waits but ah_process_free. Not here: shells,
 * sandboxes (io/sandbox.h), what to do with the output. What escapes: work that a command has
 * another service do for it (at, systemd-run, docker), and, where nothing forbids it, what has left
 * the process group of a command that then kills both supervisors at once. */
#ifndef AH_IO_PROCESS_H
#define AH_IO_PROCESS_H

#include <sys/types.h>

#include "base/buf.h"
#include "io/loop.h"

typedef struct ah_process ah_process;

/* Limits of each process below; 0: as the host has them. What goes past one fails in the
 * process. */
typedef struct ah_process_limits {
    uint64_t memory_bytes; /* of address space */
    uint64_t file_bytes;   /* of a file that is written */
    uint64_t cpu_s;
    uint64_t processes; /* of the user, all that are not ours included; not for root */
} ah_process_limits;

/* Called from ah_loop_wait when something is new: bytes came, a stream ended, all that was written
 * has been passed on, the process takes no more input, or has ended. May take what came, and must
 * neither free the process nor run a script. */
typedef void (*ah_process_news_fn)(void *ud, ah_process *p);

enum { AH_PROCESS_FENCE = 5 };

/* All pointers are borrowed during ah_process_start. Zero is a good default for the rest. */
typedef struct ah_process_config {
    const char *const *argv; /* ends with NULL; without `/`, argv[0] is looked for in env's PATH */
    const char *const *env;  /* "NAME=value", ends with NULL: all that the command has */
    int cwd_fd;              /* the folder that it begins in; 0: that of the host */
    const char *cwd;         /* the same, or below cwd_fd where it is relative; NULL: none */
    bool input;              /* stdin is what is written; else it is empty */
    bool merge;              /* stderr goes where stdout goes, in the order of writing */
    int64_t timeout_ms;      /* 0: none */
    int64_t grace_ms;        /* between TERM and KILL; 0: half a second */
    size_t max_pending; /* bytes of a stream that wait to be taken, and the longest line; then it
                                is not read on; 0: 1 MiB */
    ah_process_limits limits;
    /* Called in the command's process before it is the command, where only async-signal-safe
     * calls are allowed: 0, or errno. NULL: none. above: the processes over it, which it must not
     * reach: its supervisors and, last, the host. fence_fd is under the number AH_PROCESS_FENCE
     * then; 0: none. */
    int (*confine)(const void *ud, const pid_t *above, size_t n_above);
    /* Called in a supervisor when all are gone, under the same rule, for at most for_ms (-1: to the
     * end): true if there is nothing more to do. Where it needs more time, a process of its own
     * goes on with it. Not called where both supervisors were killed. NULL: none. */
    bool (*clean)(const void *ud, long for_ms);
    const void *confine_ud; /* of both */
    int fence_fd;
    ah_process_news_fn news;
    void *ud;
} ah_process_config;

enum { AH_PROCESS_PATH = 4096 };
/* The program of a config, as it would be started: out holds AH_PROCESS_PATH bytes. AH_USAGE: there
 * is none in PATH; a path is taken as it is. */
ah_status ah_process_find(const ah_process_config *cfg, char *out, ah_err *err);

/* AH_USAGE: no such command. What only shows later (a folder that is not there, a file that is
 * no program) is in the result. No new privileges are gained below: setuid programs have none. */
ah_status ah_process_start(const ah_mem *mem, ah_loop *loop, const ah_process_config *cfg,
                           ah_process **out, ah_err *err);
/* Frees the process, at any time; NULL is fine. One that runs is killed, and waited for at most two
 * seconds. No zombie stays. */
void ah_process_free(ah_process *p);

/* Ends it, with all its descendants: TERM, KILL after grace_ms. News follow. */
void ah_process_stop(ah_process *p);
/* The same with KILL, at once. */
void ah_process_kill(ah_process *p);
/* Sends a signal (1 to 64) to the command's process group; what it does with it is its own. Nothing
 * where it has ended. */
void ah_process_signal(ah_process *p, int sig);

/* -- input: config.input ------------------------------------------------------------------- */

/* Writes a copy of the bytes to the command's input, as the command reads. AH_BUDGET: more than 64
 * MiB wait; AH_INTERNAL: the command has closed its input, or ended. */
ah_status ah_process_write(ah_process *p, ah_slice bytes, ah_err *err);
size_t ah_process_unwritten(const ah_process *p);
/* Returns the number of bytes, of all that were written, in order, that the command's pipe has
 * taken. */
int64_t ah_process_written(const ah_process *p);
/* True while the pipe to the command is open. Bytes that it has not taken when it closes are
 * lost. */
bool ah_process_has_input(const ah_process *p);
void ah_process_close_input(ah_process *p); /* behind what waits; harmless when repeated */

/* -- output --------------------------------------------------------------------------------- */

typedef enum ah_process_stream { AH_STDOUT, AH_STDERR } ah_process_stream;

/* Returns the output that was not taken yet; valid until the next take or line, or ah_loop_wait. */
ah_slice ah_process_output(const ah_process *p, ah_process_stream s);
void ah_process_take(ah_process *p, ah_process_stream s, size_t n);
bool ah_process_at_end(const ah_process *p, ah_process_stream s); /* nothing more will come */

/* -- the end --------------------------------------------------------------------------------- */

typedef enum ah_process_end {
    AH_PROCESS_EXITED,    /* by itself */
    AH_PROCESS_STOPPED,   /* by ah_process_stop */
    AH_PROCESS_TIMED_OUT, /* by timeout_ms */
    AH_PROCESS_FAILED     /* it never ran, or a supervisor was killed: see err */
} ah_process_end;

typedef struct ah_process_result {
    ah_process_end how;
    int code;        /* exit code; -1: ended by a signal, never ran, or not known */
    int signal;      /* 0: none */
    int left;        /* descendants that could not be ended within ten seconds; -1: not known */
    int64_t wall_ms; /* from the start until the last was gone */
    int64_t cpu_ms;  /* of the command and all descendants */
    /* of memory, of the largest of them; 0: not known, no more than the host has */
    int64_t peak_bytes;
    ah_err err; /* AH_OK, or why it FAILED */
} ah_process_result;

/* True when the command and its descendants are gone and the streams are at their end (what of
 * them was not taken can still be). out may be NULL. */
bool ah_process_ended(const ah_process *p, ah_process_result *out);

#endif
