/* System calls that a command in a sandbox may not make (seccomp), as a program for the kernel. It
 * sees argument values only, not a path or structure behind a pointer. The caller owns the program;
 * nothing is allocated. Callers: its floor. */
#ifndef AH_IO_REFUSE_H
#define AH_IO_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Supported: x86_64, aarch64, riscv64. Elsewhere there is no filter. */
#if defined(__linux__) &&                                                                          \
    (defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64))
#define AH_HAS_REFUSE 1
#else
#define AH_HAS_REFUSE 0
#endif

typedef struct ah_refusal {
    bool network;       /* internet sockets are allowed; other sockets never are */
    bool no_truncation; /* Landlock cannot refuse truncation (before Linux 6.2) */
    bool no_scopes;     /* Landlock cannot refuse signals (before Linux 6.12) */
    const pid_t *above; /* processes that must not be reached; used with no_scopes */
    size_t n_above;
    pid_t self; /* with no_scopes: signals to processes with lower ids are refused. 0: not */
} ah_refusal;

enum { AH_REFUSE_MAX = 1024 };

/* The kernel's struct sock_filter, which not every system has. */
typedef struct ah_refuse_step {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
} ah_refuse_step;

typedef struct ah_refuse_program {
    ah_refuse_step step[AH_REFUSE_MAX];
    size_t n;
} ah_refuse_program;

/* Makes the filter for a sandbox. Async-signal-safe. False: this machine has none. */
bool ah_refuse_in_sandbox(const ah_refusal *r, ah_refuse_program *out);
/* Makes the filter without a sandbox: refuses only calls that reach the processes in r->above by
 * their id. */
bool ah_refuse_above(const ah_refusal *r, ah_refuse_program *out);

/* Installs the filter for this process and all below. Async-signal-safe. Returns 0 or errno. */
int ah_refuse_enter(const ah_refuse_program *p);

#endif
