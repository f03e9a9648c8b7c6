/* A fence around a child process: what it may write to, whom it may reach. A second line of
 * defence for commands that a model has chosen, with what the machine offers:
 *
 *   landlock     the file system is read-only but for some folders; other processes' memory and
 *                environment are out of reach, and so are signals to them (Linux 6.12 on); seccomp
 *                refuses sockets, io_uring, bpf and keyrings. Needs no privilege.
 *   bubblewrap   the program bwrap: the same by mounts, in namespaces of its own
 *
 * Reading is not restricted: what the user may read the command may read. Not here: limits of
 * memory and time (base/process.h). Elsewhere than on Linux there is neither. */
#ifndef AH_BASE_SANDBOX_H
#define AH_BASE_SANDBOX_H

#include "base/err.h"

typedef enum ah_sandbox_kind {
    AH_SANDBOX_NONE,
    AH_SANDBOX_AUTO, /* the best there is, or none */
    AH_SANDBOX_LANDLOCK,
    AH_SANDBOX_BUBBLEWRAP
} ah_sandbox_kind;

const char *ah_sandbox_name(ah_sandbox_kind kind); /* "landlock"; NULL behind the last */

enum { AH_SANDBOX_WORDS = 64, AH_SANDBOX_FOLDERS = 16 };

typedef struct ah_sandbox_config {
    ah_sandbox_kind kind;
    const char *folder[AH_SANDBOX_FOLDERS]; /* may be written to, absolute; the first is the one that
                                               the command begins in. Borrowed as long as the sandbox */
    size_t n_folders;
    bool network;
} ah_sandbox_config;

typedef struct ah_sandbox {
    ah_sandbox_config cfg; /* kind: what it has come to, never AUTO */
    int abi;               /* of Landlock */
    char temporary[256];   /* a folder that is its own and may be written to; "" where there is none */
    char text[96];         /* "landlock (ABI 7), no network", or "none" */
} ah_sandbox;

/* AH_USAGE: the kind is not to be had here, or the temporary folder cannot be made. */
ah_status ah_sandbox_open(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err);
void ah_sandbox_close(ah_sandbox *s); /* removes the temporary folder; zero is fine */

/* What stands before the command's words (bubblewrap); how many. They live as long as s. */
size_t ah_sandbox_words(const ah_sandbox *s, const char *out[AH_SANDBOX_WORDS]);
/* ah_process_config.confine; its ud is the ah_sandbox, which must stay until the process is gone. */
int ah_sandbox_enter(const void *sandbox);

int ah_sandbox_landlock(void);           /* the ABI that the kernel has; 0: none */
const char *ah_sandbox_bubblewrap(void); /* the program, or NULL */

#endif
