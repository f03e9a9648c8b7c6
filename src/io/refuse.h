/* The calls of the system that a command in a sandbox is refused (seccomp), as a program for the
 * kernel. It sees numbers alone: a path or a structure behind a pointer it cannot judge. */
#ifndef AH_IO_REFUSE_H
#define AH_IO_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Known: x86_64, aarch64, riscv64. Elsewhere there is no filter. */
#if defined(__linux__) &&                                                                          \
    (defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64))
#define AH_HAS_REFUSE 1
#else
#define AH_HAS_REFUSE 0
#endif

typedef struct ah_refusal {
    bool network;       /* the internet is allowed; never other sockets */
    bool no_truncation; /* Landlock does not know of emptying (before Linux 6.2) */
    bool no_scopes;     /* nor of signals (before Linux 6.12) */
    const pid_t *above; /* processes that must not be reached; with no_scopes */
    size_t n_above;
    pid_t self; /* with no_scopes: signals to processes with lower numbers are refused. 0: not */
} ah_refusal;

enum { AH_REFUSE_MAX = 1024 };

/* Of the kernel's struct sock_filter, which not every system has. */
typedef struct ah_refuse_step {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
} ah_refuse_step;

typedef struct ah_refuse_program {
    ah_refuse_step step[AH_REFUSE_MAX];
    size_t n;
} ah_refuse_program;

/* For a sandbox. Async-signal-safe. False where there is none for this machine. */
bool ah_refuse_in_sandbox(const ah_refusal *r, ah_refuse_program *out);
/* Without a sandbox: what reaches the processes in r->above by their number, and nothing else. */
bool ah_refuse_above(const ah_refusal *r, ah_refuse_program *out);

/* From now on, for this process and all below. Async-signal-safe; 0, or errno. */
int ah_refuse_enter(const ah_refuse_program *p);

#endif
