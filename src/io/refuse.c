/* The rules about system calls, as tables: what a command must not do to others. A call that names
 * another process, or changes something without a descriptor opened for writing (which Landlock
 * controls), is refused unless its arguments show that it concerns the caller only. Calls in no
 * table are allowed. docs/reference/builtin.md has the same rules in words.
 *
 * Not covered, as argument values do not show it: modes, times and owners of files by path (chmod,
 * utimes), which Landlock does not cover either; and calls that only read (except perf and what
 * Landlock's scopes refuse). Landlock itself refuses mounts, ptrace and related calls
 * (process_vm_readv, pidfd_getfd, kcmp) on outside processes; most of them are refused here too. */
#define _GNU_SOURCE /* prctl, syscall */
#include "io/refuse.h"

#include <errno.h>

#if AH_HAS_REFUSE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_RISCV64
#endif

/* The test of a rule on an argument. The kernel uses 32 bits of each of these arguments, except of
 * pointers. */
typedef enum test {
    ALWAYS,
    EQUAL,   /* equal to a */
    OTHER,   /* not equal to a */
    BITS,    /* any of a */
    MASKED,  /* argument & a == b */
    BETWEEN, /* from a to b, both included */
    NO_POINTER
} test;

/* In place of an errno: the call is allowed, and later rules are not applied. */
enum { ALLOWED = 0 };

typedef struct rule {
    long call;
    unsigned short error;
    unsigned char test, arg;
    uint32_t a, b;
} rule;

/* Numbers that older headers may lack; they are the same on all machines. */
enum {
    PIDFD_SEND_SIGNAL = 424,
    IO_URING_SETUP = 425,
    IO_URING_ENTER = 426,
    IO_URING_REGISTER = 427,
    OPEN_TREE = 428,
    MOVE_MOUNT = 429,
    FSOPEN = 430,
    FSCONFIG = 431,
    FSMOUNT = 432,
    FSPICK = 433,
    PIDFD_OPEN = 434,
    CLONE3 = 435,
    OPENAT2 = 437,
    PIDFD_GETFD = 438,
    PROCESS_MADVISE = 440,
    MOUNT_SETATTR = 442,
    QUOTACTL_FD = 443,
    PROCESS_MRELEASE = 448,
    SETXATTRAT = 463,
    REMOVEXATTRAT = 466,
    OPEN_TREE_ATTR = 467,
    FILE_SETATTR = 469
};

/* Argument values, from the kernel's headers. */
enum {
    NAMESPACES = 0x7e020000, /* CLONE_NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET */
    NEWTIME = 0x80,          /* unshare only; for clone it is part of a signal */
    FAMILY_UNIX = 1,
    FAMILY_INET = 2,
    FAMILY_INET6 = 10,
    FAMILY_NETLINK = 16,
    KIND_STREAM = 1,
    KIND_SEQPACKET = 5,
    KIND = 15, /* of a socket, without its flags */
    USER_PRIORITY = 2,
    USER_IO_PRIORITY = 3,
    SCHED_CORE = 62,
    TRUNC = 01000,         /* O_TRUNC with O_RDONLY */
    TRUNC_NEITHER = 01003, /* with neither access mode, which checks both rights and grants none */
    SET_OWNER = 8,
    SET_SIGNAL = 10,
    SET_OWNER_EX = 15,
    TERMINAL = 0x5400,
    CLONE_FILE = 0x40049409,
    CLONE_RANGE = 0x4020940d,
    BTRFS = 0x9400
};
#define SAME_RANGE 0xc0189436u /* not an enumerator, which would be an int */

/* Other processes: limits, priorities, memory, placement. Pid 0 is the caller. Reading limits is
 * allowed. */
static const rule processes[] = {
    {SYS_prlimit64, ALLOWED, EQUAL, 0, 0, 0},
    {SYS_prlimit64, ALLOWED, NO_POINTER, 2, 0, 0},
    {SYS_prlimit64, EPERM, ALWAYS, 0, 0, 0},
    {SYS_sched_setaffinity, EPERM, OTHER, 0, 0, 0},
    {SYS_sched_setattr, EPERM, OTHER, 0, 0, 0},
    {SYS_sched_setparam, EPERM, OTHER, 0, 0, 0},
    {SYS_sched_setscheduler, EPERM, OTHER, 0, 0, 0},
    {SYS_setpriority, EPERM, EQUAL, 0, USER_PRIORITY, 0},
    {SYS_setpriority, EPERM, OTHER, 1, 0, 0},
    {SYS_ioprio_set, EPERM, EQUAL, 0, USER_IO_PRIORITY, 0},
    {SYS_ioprio_set, EPERM, OTHER, 1, 0, 0},
    {SYS_migrate_pages, EPERM, OTHER, 0, 0, 0},
    {SYS_move_pages, EPERM, OTHER, 0, 0, 0},
    {SYS_prctl, EPERM, EQUAL, 0, SCHED_CORE, 0},
    {SYS_process_vm_readv, EPERM, ALWAYS, 0, 0, 0},
    {SYS_process_vm_writev, EPERM, ALWAYS, 0, 0, 0},
    {SYS_kcmp, EPERM, ALWAYS, 0, 0, 0},
    {PROCESS_MADVISE, EPERM, ALWAYS, 0, 0, 0},
    {PROCESS_MRELEASE, EPERM, ALWAYS, 0, 0, 0},
    {PIDFD_GETFD, EPERM, ALWAYS, 0, 0, 0},
};

/* New namespaces, in which the command would be root. The flags of clone3 are behind a pointer:
 * without clone3, programs use clone. */
static const rule namespaces[] = {
    {SYS_unshare, EPERM, BITS, 0, NAMESPACES | NEWTIME, 0},
    {SYS_clone, EPERM, BITS, 0, NAMESPACES, 0},
    {CLONE3, ENOSYS, ALWAYS, 0, 0, 0},
    {SYS_setns, EPERM, ALWAYS, 0, 0, 0},
    {SYS_mount, EPERM, ALWAYS, 0, 0, 0},
    {SYS_umount2, EPERM, ALWAYS, 0, 0, 0},
    {SYS_pivot_root, EPERM, ALWAYS, 0, 0, 0},
    {SYS_chroot, EPERM, ALWAYS, 0, 0, 0},
    {OPEN_TREE, EPERM, ALWAYS, 0, 0, 0},
    {OPEN_TREE_ATTR, EPERM, ALWAYS, 0, 0, 0},
    {MOVE_MOUNT, EPERM, ALWAYS, 0, 0, 0},
    {FSOPEN, EPERM, ALWAYS, 0, 0, 0},
    {FSCONFIG, EPERM, ALWAYS, 0, 0, 0},
    {FSMOUNT, EPERM, ALWAYS, 0, 0, 0},
    {FSPICK, EPERM, ALWAYS, 0, 0, 0},
    {MOUNT_SETATTR, EPERM, ALWAYS, 0, 0, 0},
};

/* Objects shared by all programs of the user: System V and POSIX queues, memory and semaphores,
 * keyrings. */
static const rule shared[] = {
    {SYS_shmget, EACCES, ALWAYS, 0, 0, 0},    {SYS_shmat, EACCES, ALWAYS, 0, 0, 0},
    {SYS_shmctl, EACCES, ALWAYS, 0, 0, 0},    {SYS_semget, EACCES, ALWAYS, 0, 0, 0},
    {SYS_semop, EACCES, ALWAYS, 0, 0, 0},     {SYS_semtimedop, EACCES, ALWAYS, 0, 0, 0},
    {SYS_semctl, EACCES, ALWAYS, 0, 0, 0},    {SYS_msgget, EACCES, ALWAYS, 0, 0, 0},
    {SYS_msgsnd, EACCES, ALWAYS, 0, 0, 0},    {SYS_msgrcv, EACCES, ALWAYS, 0, 0, 0},
    {SYS_msgctl, EACCES, ALWAYS, 0, 0, 0},    {SYS_mq_open, EACCES, ALWAYS, 0, 0, 0},
    {SYS_mq_unlink, EACCES, ALWAYS, 0, 0, 0}, {SYS_keyctl, EACCES, ALWAYS, 0, 0, 0},
    {SYS_add_key, EACCES, ALWAYS, 0, 0, 0},   {SYS_request_key, EACCES, ALWAYS, 0, 0, 0},
};

/* Calls that circumvent other rules, and calls that change the machine itself. io_uring can also
 * create sockets. */
static const rule machine[] = {
    {IO_URING_SETUP, EACCES, ALWAYS, 0, 0, 0},
    {IO_URING_ENTER, EACCES, ALWAYS, 0, 0, 0},
    {IO_URING_REGISTER, EACCES, ALWAYS, 0, 0, 0},
    {SYS_bpf, EACCES, ALWAYS, 0, 0, 0},
    {SYS_perf_event_open, EACCES, ALWAYS, 0, 0, 0},
    {SYS_userfaultfd, EPERM, ALWAYS, 0, 0, 0},
    {SYS_fanotify_init, EPERM, ALWAYS, 0, 0, 0},
    {SYS_open_by_handle_at, EPERM, ALWAYS, 0, 0, 0},
    {SYS_quotactl, EPERM, ALWAYS, 0, 0, 0},
    {QUOTACTL_FD, EPERM, ALWAYS, 0, 0, 0},
    {SYS_swapon, EPERM, ALWAYS, 0, 0, 0},
    {SYS_swapoff, EPERM, ALWAYS, 0, 0, 0},
    {SYS_reboot, EPERM, ALWAYS, 0, 0, 0},
    {SYS_kexec_load, EPERM, ALWAYS, 0, 0, 0},
#ifdef SYS_kexec_file_load
    {SYS_kexec_file_load, EPERM, ALWAYS, 0, 0, 0},
#endif
    {SYS_init_module, EPERM, ALWAYS, 0, 0, 0},
    {SYS_finit_module, EPERM, ALWAYS, 0, 0, 0},
    {SYS_delete_module, EPERM, ALWAYS, 0, 0, 0},
    {SYS_syslog, EPERM, ALWAYS, 0, 0, 0},
    {SYS_acct, EPERM, ALWAYS, 0, 0, 0},
    {SYS_vhangup, EPERM, ALWAYS, 0, 0, 0},
    {SYS_sethostname, EPERM, ALWAYS, 0, 0, 0},
    {SYS_setdomainname, EPERM, ALWAYS, 0, 0, 0},
};

/* File attributes, for which a descriptor opened for reading is enough: they fail as if the file
 * system had none. Of Btrfs's own calls, copying between files is allowed; the others create and
 * delete volumes. */
static const rule attributes[] = {
    {SYS_setxattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_lsetxattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_fsetxattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_removexattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_lremovexattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_fremovexattr, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SETXATTRAT, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {REMOVEXATTRAT, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {FILE_SETATTR, EOPNOTSUPP, ALWAYS, 0, 0, 0},
    {SYS_ioctl, EOPNOTSUPP, MASKED, 1, 0xffff, 0x6602}, /* flags, in both sizes */
    {SYS_ioctl, EOPNOTSUPP, MASKED, 1, 0xffff, 0x7602}, /* version */
    {SYS_ioctl, EOPNOTSUPP, MASKED, 1, 0xffff, 0x5820}, /* flags of XFS and others */
    {SYS_ioctl, ALLOWED, EQUAL, 1, CLONE_FILE, 0},
    {SYS_ioctl, ALLOWED, EQUAL, 1, CLONE_RANGE, 0},
    {SYS_ioctl, ALLOWED, EQUAL, 1, SAME_RANGE, 0},
    {SYS_ioctl, EOPNOTSUPP, MASKED, 1, 0xff00, BTRFS},
};

/* A terminal of the user can be opened for reading, which is enough to change its settings and, on
 * older kernels, to insert input. Calls that change a terminal are refused, queries are allowed. */
static const rule terminals[] = {
    {SYS_ioctl, EPERM, BETWEEN, 1, TERMINAL + 0x02, TERMINAL + 0x04}, /* TCSETS TCSETSW TCSETSF */
    {SYS_ioctl, EPERM, BETWEEN, 1, TERMINAL + 0x06, TERMINAL + 0x0e}, /* TCSETA ... TIOCSCTTY */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x10, 0},                 /* TIOCSPGRP */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x12, 0},                 /* TIOCSTI */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x14, 0},                 /* TIOCSWINSZ */
    {SYS_ioctl, EPERM, BETWEEN, 1, TERMINAL + 0x16, TERMINAL + 0x18}, /* TIOCMBIS ... TIOCMSET */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x1a, 0},                 /* TIOCSSOFTCAR */
    {SYS_ioctl, EPERM, BETWEEN, 1, TERMINAL + 0x1c, TERMINAL + 0x1d}, /* TIOCLINUX TIOCCONS */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x1f, 0},                 /* TIOCSSERIAL */
    {SYS_ioctl, EPERM, BETWEEN, 1, TERMINAL + 0x22, TERMINAL + 0x23}, /* TIOCNOTTY TIOCSETD */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x25, 0},                 /* TCSBRKP */
    {SYS_ioctl, EPERM, EQUAL, 1, TERMINAL + 0x37, 0},                 /* TIOCVHANGUP */
    {SYS_ioctl, EPERM, MASKED, 1, 0xffff, TERMINAL + 0x2b},           /* TCSETS2, any size */
    {SYS_ioctl, EPERM, MASKED, 1, 0xffff, TERMINAL + 0x2c},           /* TCSETSW2 */
    {SYS_ioctl, EPERM, MASKED, 1, 0xffff, TERMINAL + 0x2d},           /* TCSETSF2 */
    {SYS_ioctl, EPERM, MASKED, 1, 0xffff, TERMINAL + 0x31},           /* TIOCSPTLCK */
    {SYS_ioctl, EPERM, MASKED, 1, 0xffff, TERMINAL + 0x36},           /* TIOCSIG */
};

/* A pair belongs to the command, but one end of a datagram pair can send to any other socket. */
static const rule pairs[] = {
    {SYS_socketpair, EACCES, OTHER, 0, FAMILY_UNIX, 0},
    {SYS_socketpair, ALLOWED, MASKED, 1, KIND, KIND_STREAM},
    {SYS_socketpair, ALLOWED, MASKED, 1, KIND, KIND_SEQPACKET},
    {SYS_socketpair, EACCES, ALWAYS, 0, 0, 0},
};

/* The network, and services of this machine (such as a container engine), which could do what the
 * command must not. */
static const rule no_sockets[] = {{SYS_socket, EACCES, ALWAYS, 0, 0, 0}};

/* The internet. Of netlink only the protocol that reports this machine's addresses, which resolvers
 * use. */
static const rule internet[] = {
    {SYS_socket, ALLOWED, EQUAL, 0, FAMILY_INET, 0},
    {SYS_socket, ALLOWED, EQUAL, 0, FAMILY_INET6, 0},
    {SYS_socket, EACCES, OTHER, 0, FAMILY_NETLINK, 0},
    {SYS_socket, EACCES, OTHER, 2, 0, 0},
};

/* Truncation through a descriptor opened for reading. The flags of openat2 are behind a pointer. */
static const rule truncation[] = {
    {SYS_truncate, EACCES, ALWAYS, 0, 0, 0},
    {SYS_openat, EACCES, MASKED, 2, TRUNC_NEITHER, TRUNC},
    {SYS_openat, EACCES, MASKED, 2, TRUNC_NEITHER, TRUNC_NEITHER},
#ifdef SYS_open
    {SYS_open, EACCES, MASKED, 1, TRUNC_NEITHER, TRUNC},
    {SYS_open, EACCES, MASKED, 1, TRUNC_NEITHER, TRUNC_NEITHER},
#endif
    {OPENAT2, ENOSYS, ALWAYS, 0, 0, 0},
};

/* Ways to send signals other than kill: process descriptors, owners of descriptors, single
 * threads. */
static const rule signals[] = {
    {PIDFD_OPEN, ENOSYS, ALWAYS, 0, 0, 0},
    {PIDFD_SEND_SIGNAL, ENOSYS, ALWAYS, 0, 0, 0},
    {SYS_fcntl, EPERM, EQUAL, 1, SET_OWNER, 0},
    {SYS_fcntl, EPERM, EQUAL, 1, SET_SIGNAL, 0},
    {SYS_fcntl, EPERM, EQUAL, 1, SET_OWNER_EX, 0},
    {SYS_ioctl, EPERM, EQUAL, 1, 0x8901, 0}, /* FIOSETOWN */
    {SYS_ioctl, EPERM, EQUAL, 1, 0x8902, 0}, /* SIOCSPGRP */
};

/* Calls whose argument is a process id or, if negative, a process group. */
static const rule kills[] = {
    {SYS_kill, EPERM, EQUAL, 0, 0, 0},
    {SYS_tgkill, EPERM, EQUAL, 0, 0, 0},
    {SYS_tkill, EPERM, EQUAL, 0, 0, 0},
    {SYS_rt_sigqueueinfo, EPERM, EQUAL, 0, 0, 0},
    {SYS_rt_tgsigqueueinfo, EPERM, EQUAL, 0, 0, 0},
};

/* Other calls that reach a process by its id. */
static const rule reaches[] = {
    {SYS_prlimit64, EPERM, EQUAL, 0, 0, 0},
    {SYS_sched_setaffinity, EPERM, EQUAL, 0, 0, 0},
    {SYS_sched_setattr, EPERM, EQUAL, 0, 0, 0},
    {SYS_sched_setparam, EPERM, EQUAL, 0, 0, 0},
    {SYS_sched_setscheduler, EPERM, EQUAL, 0, 0, 0},
    {SYS_setpriority, EPERM, EQUAL, 1, 0, 0},
    {SYS_ioprio_set, EPERM, EQUAL, 1, 0, 0},
    {SYS_ptrace, EPERM, EQUAL, 1, 0, 0},
    {SYS_process_vm_readv, EPERM, EQUAL, 0, 0, 0},
    {SYS_process_vm_writev, EPERM, EQUAL, 0, 0, 0},
    {SYS_migrate_pages, EPERM, EQUAL, 0, 0, 0},
    {SYS_move_pages, EPERM, EQUAL, 0, 0, 0},
    {PIDFD_OPEN, EPERM, EQUAL, 0, 0, 0},
};

/* -- building the filter ----------------------------------------------------------------------- */

static void put(ah_refuse_program *p, unsigned code, uint32_t k, unsigned char jt, unsigned char jf)
{
    if (p->n < AH_REFUSE_MAX)
        p->step[p->n] = (ah_refuse_step){(uint16_t)code, jt, jf, k};
    p->n++;
}

static void load(ah_refuse_program *p, size_t at)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

/* Continues if the test holds; else jumps over the verdict. */
static void put_test(ah_refuse_program *p, const rule *r)
{
    const unsigned equal = BPF_JMP | BPF_JEQ | BPF_K;

    switch ((test)r->test) {
    case ALWAYS:
        break;
    case EQUAL:
        put(p, equal, r->a, 0, 1);
        break;
    case OTHER:
        put(p, equal, r->a, 1, 0);
        break;
    case BITS:
        put(p, BPF_JMP | BPF_JSET | BPF_K, r->a, 0, 1);
        break;
    case MASKED:
        put(p, BPF_ALU | BPF_AND | BPF_K, r->a, 0, 0);
        put(p, equal, r->b, 0, 1);
        break;
    case BETWEEN:
        put(p, BPF_JMP | BPF_JGE | BPF_K, r->a, 0, 2);
        put(p, BPF_JMP | BPF_JGT | BPF_K, r->b, 1, 0);
        break;
    case NO_POINTER:
        put(p, equal, 0, 0, 3);
        load(p, offsetof(struct seccomp_data, args) + 8u * r->arg + 4);
        put(p, equal, 0, 0, 1);
    }
}

/* The number of the call is loaded before and after a rule. The supported machines store the low
 * half of an argument first. */
static void put_rule(ah_refuse_program *p, const rule *r)
{
    size_t jump = p->n;

    put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->call, 0, 0);
    if (r->test != ALWAYS)
        load(p, offsetof(struct seccomp_data, args) + 8u * r->arg);
    put_test(p, r);
    put(p, BPF_RET | BPF_K, r->error ? SECCOMP_RET_ERRNO | r->error : SECCOMP_RET_ALLOW, 0, 0);
    if (r->test != ALWAYS)
        load(p, offsetof(struct seccomp_data, nr));
    if (p->n <= AH_REFUSE_MAX)
        p->step[jump].jf = (unsigned char)(p->n - jump - 1);
}

static void put_rules(ah_refuse_program *p, const rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_rule(p, &rules[i]);
}

#define PUT(p, rules) put_rules(p, rules, sizeof(rules) / sizeof *(rules))

/* Adds each rule with pid as its `a`, once as a process and once as a group (-pid). */
static void put_numbers(ah_refuse_program *p, const rule *rules, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++) {
        rule r = rules[i];

        r.a = (uint32_t)pid;
        put_rule(p, &r);
        r.a = -(uint32_t)pid;
        put_rule(p, &r);
    }
}

#define PUT_NUMBERS(p, rules, pid) put_numbers(p, rules, sizeof(rules) / sizeof *(rules), pid)

/* Begins with a check of the architecture, whose call numbers may differ; `foreign` is the result
 * of another one's calls. */
static void begin(ah_refuse_program *p, uint32_t foreign)
{
    p->n = 0;
    load(p, offsetof(struct seccomp_data, arch));
    put(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    put(p, BPF_RET | BPF_K, foreign, 0, 0);
    load(p, offsetof(struct seccomp_data, nr));
}

/* Calls of x32, which has its own numbers, fail with ENOSYS. */
static void refuse_x32(ah_refuse_program *p)
{
#ifdef __x86_64__
    put(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
#else
    (void)p;
#endif
}

static bool finish(ah_refuse_program *p)
{
    put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    return p->n <= AH_REFUSE_MAX;
}

/* Ids below the command's belong to older processes, unless the ids have wrapped; its own processes
 * have higher ids. -1 means all processes. */
static void put_older(ah_refuse_program *p, pid_t self)
{
    for (size_t i = 0; i < sizeof kills / sizeof *kills; i++) {
        rule r = kills[i];

        r.test = BETWEEN;
        r.a = 1;
        r.b = (uint32_t)self - 1;
        put_rule(p, &r);
        r.a = -(uint32_t)(self - 1);
        r.b = -(uint32_t)1;
        put_rule(p, &r);
    }
}

static void put_signals(ah_refuse_program *p, const ah_refusal *r)
{
    PUT(p, signals);
    for (size_t i = 0; i < r->n_above; i++)
        PUT_NUMBERS(p, kills, r->above[i]);
    if (r->self > 1)
        put_older(p, r->self);
}

bool ah_refuse_in_sandbox(const ah_refusal *r, ah_refuse_program *out)
{
    begin(out, SECCOMP_RET_KILL_PROCESS);
    refuse_x32(out);
    PUT(out, processes);
    PUT(out, namespaces);
    PUT(out, shared);
    PUT(out, machine);
    PUT(out, attributes);
    PUT(out, terminals);
    PUT(out, pairs);
    if (r->network)
        PUT(out, internet);
    else
        PUT(out, no_sockets);
    if (r->no_truncation)
        PUT(out, truncation);
    if (r->no_scopes)
        put_signals(out, r);
    return finish(out);
}

bool ah_refuse_above(const ah_refusal *r, ah_refuse_program *out)
{
    const rule all = {SYS_kill, EPERM, EQUAL, 0, (uint32_t)-1, 0};

    begin(out, SECCOMP_RET_ALLOW);
    put_rule(out, &all);
    for (size_t i = 0; i < r->n_above; i++) {
        PUT_NUMBERS(out, kills, r->above[i]);
        PUT_NUMBERS(out, reaches, r->above[i]);
    }
    return finish(out);
}

int ah_refuse_enter(const ah_refuse_program *p)
{
    const struct sock_fprog program = {(unsigned short)p->n,
                                       (struct sock_filter *)(uintptr_t)p->step}; /* only read */

    return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
                   prctl(PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) == 0
               ? 0
               : errno;
}

#else

bool ah_refuse_in_sandbox(const ah_refusal *r, ah_refuse_program *out)
{
    (void)r;
    out->n = 0;
    return false;
}

bool ah_refuse_above(const ah_refusal *r, ah_refuse_program *out)
{
    return ah_refuse_in_sandbox(r, out);
}

int ah_refuse_enter(const ah_refuse_program *p)
{
    (void)p;
    return ENOSYS;
}
#endif
