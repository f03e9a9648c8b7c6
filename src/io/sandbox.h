/* A fence around a child process: what it may read and write, whom it may reach. A second line of
 * defence for commands that a model has chosen, with what the machine offers:
 *
 *   landlock     the file system is read-only but for some folders; other processes' memory and
 *                environment are out of reach, and so are signals to them (Linux 6.12 on); seccomp
 *                refuses the calls of io/refuse.c. Needs no privilege.
 *   bubblewrap   the program bwrap: the same by mounts, in namespaces of its own, and the same
 *                calls are refused
 *
 * The command may read what the user may read, unless the folders are listed; then it may read
 * these, what it may write to, and the system's own (ah_sandbox_system). Limits of memory and time
 * are in io/process.h. Systems other than Linux have neither kind. */
#ifndef AH_IO_SANDBOX_H
#define AH_IO_SANDBOX_H

#include <sys/types.h>

#include "base/err.h"

typedef enum ah_sandbox_kind {
    AH_SANDBOX_NONE,
    AH_SANDBOX_AUTO,    /* the best there is, or none */
    AH_SANDBOX_REQUIRE, /* the best there is, or an error */
    AH_SANDBOX_LANDLOCK,
    AH_SANDBOX_BUBBLEWRAP
} ah_sandbox_kind;

const char *ah_sandbox_name(ah_sandbox_kind kind); /* "landlock"; NULL behind the last */

/* Folders and files that programs need to run at all; ends with NULL. */
extern const char *const ah_sandbox_system[];

enum { AH_SANDBOX_WORDS = 200, AH_SANDBOX_FOLDERS = 16 };

/* A folder is a descriptor that was opened once, so that nobody can put another one in its
 * place. */
typedef struct ah_sandbox_folder {
    int fd;
    const char *path; /* where it is now, without links */
} ah_sandbox_folder;

typedef struct ah_sandbox_config {
    ah_sandbox_kind kind;
    /* may be written to. Borrowed as long as the sandbox */
    ah_sandbox_folder folder[AH_SANDBOX_FOLDERS];
    size_t n_folders;
    bool reads; /* these alone can be read, beside the system's and those that can be written to */
    ah_sandbox_folder readable[AH_SANDBOX_FOLDERS]; /* likewise borrowed */
    size_t n_readable;
    int program; /* likewise: a file that can be read and run, too; 0: none */
    const char *program_path;
    bool network;
    /* root keeps its rights over the owners of files and over what belongs to others */
    bool owners;
} ah_sandbox_config;

typedef struct ah_sandbox {
    ah_sandbox_config cfg; /* kind: what it has come to, never AUTO or REQUIRE */
    int abi;               /* of Landlock */
    int fence;             /* for ah_process_config.fence_fd; 0: none */
    /* a folder that is its own and may be written to; "" where there is none */
    char temporary[256];
    char text[96]; /* "landlock (ABI 7), no network", or "none" */
} ah_sandbox;

/* Says what a kind comes to here (out->cfg.kind, out->text), and makes nothing. AH_USAGE: it is not
 * to be had; the message says what to do. May run bwrap once, to see that it works. */
ah_status ah_sandbox_choose(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err);
/* The same, and makes what a command needs. AH_USAGE, too: the temporary folder or the rules cannot
 * be made. */
ah_status ah_sandbox_open(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err);
/* A zero *s is fine. Removes the temporary folder if ah_sandbox_clean was not called: for a moment
 * only, and what takes longer stays. */
void ah_sandbox_close(ah_sandbox *s);

/* Sets `out` to the words that go before the command's (bubblewrap) and returns their number. They
 * live as long as s. */
size_t ah_sandbox_words(const ah_sandbox *s, const char *out[AH_SANDBOX_WORDS]);
/* ah_process_config.confine and .clean; their ud is the ah_sandbox, which must stay until the
 * process is gone. */
int ah_sandbox_enter(const void *sandbox, const pid_t *above, size_t n_above);
bool ah_sandbox_clean(const void *sandbox, long for_ms);

int ah_sandbox_landlock(void);           /* the ABI that the kernel has; 0: none */
const char *ah_sandbox_bubblewrap(void); /* the program, or NULL */

#endif
