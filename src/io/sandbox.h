/* A sandbox around a child process: limits what it may read and write, and which processes it may
 * reach. A second line of defence for commands that a model has chosen. The command may read what
 * the user may read, unless folders are listed: then it reads only these, those it may write, and
 * the system's (ah_sandbox_system). io/process.h limits memory and time. A sandbox owns its
 * temporary folder and its fence; folder descriptors are borrowed until the process is gone.
 * Callers: lua. */
#ifndef AH_IO_SANDBOX_H
#define AH_IO_SANDBOX_H

#include <sys/types.h>

#include "base/err.h"
#include "io/hidden.h"

/* The kinds of sandbox; only Linux has them.
 *
 *    landlock     the file system is read-only except some folders; memory and environment of
 *                 other processes are out of reach, and so are signals to them (from Linux
 *                 6.12); seccomp refuses the calls of io/refuse.c. Needs no privilege.
 *    bubblewrap   the program bwrap: the same by mounts, in its own namespaces, with the same
 *                 calls refused */
typedef enum ah_sandbox_kind {
    AH_SANDBOX_NONE,
    AH_SANDBOX_AUTO,    /* the best one available, or none */
    AH_SANDBOX_REQUIRE, /* the best one available, or an error */
    AH_SANDBOX_LANDLOCK,
    AH_SANDBOX_BUBBLEWRAP
} ah_sandbox_kind;

const char *ah_sandbox_name(ah_sandbox_kind kind); /* for example "landlock"; NULL after the last */

/* Folders and files that any program needs; ends with NULL. */
extern const char *const ah_sandbox_system[];

enum { AH_SANDBOX_WORDS = 200, AH_SANDBOX_FOLDERS = 16 };

/* A folder is identified by an open descriptor, so that it cannot be replaced by another one. */
typedef struct ah_sandbox_folder {
    int fd;
    const char *path; /* its current path, without links */
} ah_sandbox_folder;

typedef struct ah_sandbox_config {
    ah_sandbox_kind kind;
    /* Writable; borrowed as long as the sandbox. */
    ah_sandbox_folder folder[AH_SANDBOX_FOLDERS];
    size_t n_folders;
    bool reads; /* only these, the system's and the writable ones can be read */
    ah_sandbox_folder readable[AH_SANDBOX_FOLDERS]; /* borrowed as long as the sandbox */
    size_t n_readable;
    int program; /* a file that can be read and run too; borrowed like the folders; 0: none */
    const char *program_path;
    const ah_hidden *hidden; /* neither readable nor writable; borrowed; NULL: nothing */
    bool network;
    /* Root keeps its rights over owners of files and over others' files. */
    bool owners;
} ah_sandbox_config;

typedef struct ah_sandbox {
    ah_sandbox_config cfg; /* kind: the chosen one, never AUTO or REQUIRE */
    int abi;               /* version of Landlock */
    int fence;             /* for ah_process_config.fence_fd; 0: none */
    /* Its own writable folder; "" if it has none. */
    char temporary[256];
    char text[96]; /* for example "landlock (ABI 7), no network", or "none" */
} ah_sandbox;

/* Resolves a kind for this machine (out->cfg.kind, out->text) without making anything. Returns
 * AH_USAGE, with advice, if it is not available. May run bwrap once to test it. */
ah_status ah_sandbox_choose(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err);
/* The same, and makes what a command needs. Also AH_USAGE if the temporary folder or the rules
 * cannot be made. */
ah_status ah_sandbox_open(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err);
/* An all-zero *s is allowed. Removes the temporary folder if ah_sandbox_clean was not called: for a
 * short time only, so part of a large folder may stay. */
void ah_sandbox_close(ah_sandbox *s);

/* Sets `out` to the arguments that go before the command (bubblewrap) and returns their number.
 * Valid as long as s. */
size_t ah_sandbox_words(const ah_sandbox *s, const char *out[AH_SANDBOX_WORDS]);
/* For ah_process_config.confine and .clean, with the ah_sandbox as ud. It must stay valid until the
 * process is gone. */
int ah_sandbox_enter(const void *sandbox, const pid_t *above, size_t n_above);
bool ah_sandbox_clean(const void *sandbox, long for_ms);

int ah_sandbox_landlock(void);           /* the kernel's Landlock version; 0: none */
const char *ah_sandbox_bubblewrap(void); /* path of the program, or NULL */

#endif
