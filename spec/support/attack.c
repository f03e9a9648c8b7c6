/* Attacks of a command on other processes, one a word, for spec/lua/attacks_process_spec.lua.
 *
 *   attack try PID FILE    each attempt against the process, the file outside, and the machine;
 *                          prints lines of a name and an errno, 0 for an attempt that succeeded
 *   attack allowed FOLDER  the same for operations that must continue to work
 *   attack internet        sockets, which work if the internet is allowed
 *   attack wait            a process to be attacked: prints its id, and waits
 *   attack trace PID       stops the process as its tracer, and stays
 *   attack storm PID PID   stops both repeatedly, from more threads than there are processors
 *   attack "nobody" WORD...  runs the words as user 65534
 *   attack inherit WORD... runs the words with capabilities that are inheritable and ambient */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(const char *name, long result)
{
    printf("%s %d\n", name, result < 0 ? errno : 0);
    fflush(stdout);
}

/* -- another process --------------------------------------------------------------------------- */

static long own_signal(pid_t pid, int how)
{
    int fd[2], e = 0;
    struct {
        int type;
        pid_t pid;
    } owner = {1, pid};

    if (pipe(fd) != 0)
        return -1;
    if (how == 0 ? fcntl(fd[0], F_SETOWN, pid) : fcntl(fd[0], 15, &owner))
        e = errno;
    if (!e && fcntl(fd[0], 10, SIGSTOP) != 0)
        e = errno;
    if (!e) { /* the signal is set up; the kernel may still block it */
        fcntl(fd[0], F_SETFL, O_ASYNC | O_NONBLOCK);
        if (write(fd[1], "x", 1) != 1)
            e = errno;
    }
    close(fd[0]);
    close(fd[1]);
    errno = e;
    return e ? -1 : 0;
}

static void limit(pid_t pid)
{
    const struct rlimit none = {0, 0}, second = {1, 1};
    const uint64_t high = (uint64_t)1 << 32 | (uint32_t)pid; /* the kernel uses the low half */

    told("prlimit-nofile", prlimit(pid, RLIMIT_NOFILE, &none, NULL));
    told("prlimit-cpu", prlimit(pid, RLIMIT_CPU, &second, NULL));
    told("prlimit-fsize", prlimit(pid, RLIMIT_FSIZE, &none, NULL));
    told("prlimit-stack", syscall(SYS_prlimit64, high, RLIMIT_STACK, &none, NULL));
}

static void slow_down(pid_t pid)
{
    struct sched_param param = {0};
    const uint32_t attr[14] = {48, SCHED_IDLE};
    cpu_set_t first;

    CPU_ZERO(&first);
    CPU_SET(0, &first);
    told("sched_setaffinity", sched_setaffinity(pid, sizeof first, &first));
    told("sched_setscheduler", sched_setscheduler(pid, SCHED_IDLE, &param));
    told("sched_setparam", sched_setparam(pid, &param));
    told("sched_setattr", syscall(SYS_sched_setattr, pid, attr, 0));
    told("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
    told("setpriority-group", setpriority(PRIO_PGRP, (id_t)getpgid(pid), 19));
    told("setpriority-user", setpriority(PRIO_USER, 0, 19));
    told("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
    told("ioprio_set-user", syscall(SYS_ioprio_set, 3, getuid(), 3 << 13));
    told("core-scheduling", prctl(62, 2, pid, 0, 0));
}

static void reach(pid_t pid)
{
    char byte = 0, name[64];
    struct iovec here = {&byte, 1}, there = {(void *)&told, 1};
    int fd = (int)syscall(434, pid, 0);
    void *page = (void *)((uintptr_t)&told & ~4095UL);

    told("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
    told("process_vm_writev", process_vm_writev(pid, &here, 1, &here, 1, 0));
    told("ptrace-attach", ptrace(PTRACE_ATTACH, pid, 0, 0));
    told("ptrace-seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
    told("kcmp", syscall(SYS_kcmp, pid, getpid(), 1, 0, 0));
    told("move_pages", syscall(SYS_move_pages, pid, 1, &page, NULL, &fd, 0));
    told("migrate_pages", syscall(SYS_migrate_pages, pid, 64, &(uint64_t){1}, &(uint64_t){1}));
    told("pidfd_getfd", syscall(438, fd, 0, 0));
    told("process_madvise", syscall(440, fd, &here, 1, 21, 0));
    told("process_mrelease", syscall(448, fd, 0));
    told("setns", setns(fd, CLONE_NEWNS));
    snprintf(name, sizeof name, "/proc/%d/environ", pid);
    errno = 0;
    {
        int f = open(name, O_RDONLY);

        told("environment", f < 0 || read(f, &byte, 1) < 0 ? -1 : 0);
    }
    snprintf(name, sizeof name, "/proc/%d/oom_score_adj", pid);
    told("oom-score", open(name, O_WRONLY));
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    told("memory", open(name, O_RDWR));
}

/* Sends CONT: if it arrives, its only effect is that the process sees it. */
static void signal_it(pid_t pid)
{
    siginfo_t info = {.si_signo = SIGCONT, .si_code = SI_QUEUE};
    int fd = (int)syscall(434, pid, 0);

    told("kill", kill(pid, SIGCONT));
    told("kill-group", getpgid(pid) > 1 ? kill(-getpgid(pid), SIGCONT) : -1);
    told("tkill", syscall(SYS_tkill, pid, SIGCONT));
    told("tgkill", syscall(SYS_tgkill, pid, pid, SIGCONT));
    told("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, SIGCONT, &info));
    told("rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGCONT, &info));
    told("pidfd_send_signal", fd < 0 ? -1 : syscall(424, fd, SIGCONT, NULL, 0));
    own_signal(pid, 0); /* the process sees the effect of these */
    own_signal(pid, 1);
}

/* -- the machine ------------------------------------------------------------------------------- */

static void share(void)
{
    told("shmget", syscall(SYS_shmget, 0, 4096, 0600));
    told("semget", syscall(SYS_semget, 0, 1, 0600));
    told("msgget", syscall(SYS_msgget, 0, 0600));
    told("mq_open", syscall(SYS_mq_open, "agenthost-attack", O_CREAT | O_RDWR, 0600, NULL));
    told("keyctl", syscall(SYS_keyctl, 0, -3, 0));
    told("add_key", syscall(SYS_add_key, "user", "agenthost-attack", "x", 1, -3));
}

/* Runs an attempt in a child, as its success would change the view of the process. Returns 0, or
 * -1 with errno. */
static long in_child(long (*attempt)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(attempt() < 0 ? errno : 0);
    waitpid(pid, &status, 0);
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    return errno ? -1 : 0;
}

static long unshare_user(void)
{
    return unshare(CLONE_NEWUSER);
}

static long unshare_mounts(void)
{
    return unshare(CLONE_NEWNS | CLONE_FILES);
}

static long unshare_time(void)
{
    return unshare(0x80);
}

static long clone_user(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return pid;
}

static long clone3_user(void)
{
    uint64_t args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    long pid = syscall(435, args, sizeof args);

    if (pid == 0)
        _exit(0);
    return pid;
}

static long mount_over(void)
{
    return mount("none", "/mnt", "tmpfs", 0, NULL);
}

static long root_there(void)
{
    return chroot("/tmp");
}

static void other_views(void)
{
    told("unshare-user", in_child(unshare_user));
    told("unshare-mounts", in_child(unshare_mounts));
    told("unshare-time", in_child(unshare_time));
    told("clone-user", in_child(clone_user));
    told("clone3", in_child(clone3_user));
    told("mount", in_child(mount_over));
    told("umount", umount2("/agenthost-attack", MNT_DETACH));
    told("chroot", in_child(root_there));
    told("open_tree", syscall(428, AT_FDCWD, "/", 1));
    told("fsopen", syscall(430, "tmpfs", 0));
}

static void machine(void)
{
    told("io_uring", syscall(425, 1, (char[128]){0}));
    told("bpf", syscall(SYS_bpf, 0, (char[128]){0}, 72));
    told("perf", syscall(SYS_perf_event_open, (uint32_t[32]){1, 128}, 0, -1, -1, 0));
    told("userfaultfd", syscall(SYS_userfaultfd, 1));
    told("fanotify", syscall(SYS_fanotify_init, 0x200, 0));
    told("open_by_handle", syscall(SYS_open_by_handle_at, AT_FDCWD, (char[64]){8}, 0));
    told("quotactl", syscall(SYS_quotactl, 0x800007 << 8, NULL, 0, NULL));
    told("swapoff", syscall(SYS_swapoff, "/agenthost-attack"));
    told("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    told("syslog", syscall(SYS_syslog, 10, NULL, 0));
    told("acct", syscall(SYS_acct, "/agenthost-attack"));
    told("init_module", syscall(SYS_init_module, NULL, 0, ""));
}

static void sockets(void)
{
    int pair[2];

    told("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
    told("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
    told("socket-vsock", socket(40, SOCK_STREAM, 0));
    told("socket-alg", socket(38, SOCK_SEQPACKET, 0));
    told("socket-uevent", socket(AF_NETLINK, SOCK_RAW, 15));
    told("pair-datagram", socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
    told("pair-raw", socketpair(AF_UNIX, SOCK_RAW, 0, pair));
}

static void terminals(void)
{
    int fd = open("/dev/null", O_RDONLY);
    char c = 'x';

    told("TIOCSTI", ioctl(fd, 0x5412, &c));
    told("TIOCLINUX", ioctl(fd, 0x541c, &c));
    told("TCSETS", ioctl(fd, 0x5402, (char[128]){0}));
    told("TCSETS2", ioctl(fd, 0x402c542b, (char[128]){0}));
    told("TIOCSWINSZ", ioctl(fd, 0x5414, (char[8]){0}));
    told("TIOCSCTTY", ioctl(fd, 0x540e, 1));
    told("TIOCSTI-high", syscall(SYS_ioctl, fd, (uint64_t)1 << 32 | 0x5412, &c));
    close(fd);
}

static void outside(const char *file)
{
    int fd = open(file, O_RDONLY), flags = 0x40; /* nodump */
    char beside[4200];

    snprintf(beside, sizeof beside, "%s.new", file);
    told("write", open(file, O_WRONLY));
    told("append", open(file, O_WRONLY | O_APPEND));
    told("create", open(beside, O_WRONLY | O_CREAT, 0600));
    told("truncate", truncate(file, 0));
    told("open-truncate", open(file, O_RDONLY | O_TRUNC));
    told("open-truncate-neither", open(file, O_ACCMODE | O_TRUNC));
    told("openat2-truncate", syscall(437, AT_FDCWD, file, (uint64_t[3]){O_TRUNC, 0, 0}, 24));
    told("ftruncate", ftruncate(fd, 0));
    told("link", link(file, "stolen"));
    told("rename", rename(file, beside));
    told("unlink", unlink(file));
    told("mkfifo", mkfifo(beside, 0600));
    told("symlink", symlink("/", beside));
    told("setxattr", syscall(SYS_setxattr, file, "user.x", "y", 1, 0));
    told("fsetxattr", syscall(SYS_fsetxattr, fd, "user.x", "y", 1, 0));
    told("setxattrat", syscall(463, AT_FDCWD, file, 0, "user.x", (uint64_t[2]){0}, 16));
    told("file-flags", ioctl(fd, 0x40086602, &flags));
    told("chown", chown(file, 12345, 12345));
    told("volume", ioctl(fd, 0x5000940e, beside));
    close(fd);
}

static long foreign_call(void)
{
#ifdef __x86_64__
    long r = 20; /* number of getpid on i386 */

    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return r;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int try_all(pid_t pid, const char *file)
{
    limit(pid);
    slow_down(pid);
    reach(pid);
    signal_it(pid);
    share();
    other_views();
    machine();
    sockets();
    terminals();
    outside(file);
    told("i386", in_child(foreign_call));
#ifdef __x86_64__
    told("x32", syscall(0x40000000 | SYS_getpid));
#endif
    return 0;
}

/* -- operations that must work ----------------------------------------------------------------- */

static void *in_thread(void *ud)
{
    return ud;
}

static long trace_child(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status))
        return -1;
    ptrace(PTRACE_CONT, pid, 0, 0);
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static long signal_child(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    if (kill(pid, SIGTERM) != 0)
        return -1;
    return waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM ? 0 : -1;
}

static long copy_file(void)
{
    int from = open("/proc/self/exe", O_RDONLY),
        to = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0700);
    ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 16, 0);

    return n < 0 && errno != EXDEV && errno != EINVAL ? -1 : ftruncate(to, 10);
}

static int try_allowed(void)
{
    struct rlimit l;
    pthread_t thread;
    cpu_set_t set;
    int pair[2];

    told("read-limits-of-parent", prlimit(getppid(), RLIMIT_NOFILE, NULL, &l));
    told("getrlimit", getrlimit(RLIMIT_NOFILE, &l));
    told("setrlimit", setrlimit(RLIMIT_NOFILE, &l));
    told("getaffinity", sched_getaffinity(0, sizeof set, &set));
    told("setaffinity", sched_setaffinity(0, sizeof set, &set));
    told("nice", setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1));
    told("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
    errno = pthread_create(&thread, NULL, in_thread, NULL);
    told("thread", errno ? -1 : pthread_join(thread, NULL));
    told("trace-child", trace_child());
    told("signal-child", signal_child());
    told("signal-self", raise(SIGCONT));
    told("memfd", memfd_create("x", 0));
    told("personality", personality(0xffffffff));
    told("chmod-inside",
         close(open("inside", O_CREAT | O_WRONLY, 0600)) || chmod("inside", 0755) ? -1 : 0);
    told("copy", copy_file());
    told("is-terminal", isatty(1) == 0 && errno != EPERM ? 0 : -1);
    return 0;
}

static int try_internet(void)
{
    told("inet", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    told("inet6", socket(AF_INET6, SOCK_DGRAM, 0));
    told("addresses", socket(AF_NETLINK, SOCK_RAW, 0));
    sockets();
    return 0;
}

/* -- helpers of the spec ----------------------------------------------------------------------- */

static int wait_here(void)
{
    printf("%d\n", getpid());
    fflush(stdout);
    while (pause() != 0)
        ;
    return 0;
}

static int trace_it(pid_t pid)
{
    told("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
    told("interrupt", ptrace(PTRACE_INTERRUPT, pid, 0, 0));
    while (pause() != 0)
        ;
    return 0;
}

static pid_t stormed[2];

static void *storm_on(void *ud)
{
    for (;;)
        for (int i = 0; i < 2; i++)
            kill(stormed[i], SIGSTOP);
    return ud;
}

static int storm(pid_t one, pid_t other)
{
    long n = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread;

    stormed[0] = one;
    stormed[1] = other;
    signal(SIGTERM, SIG_IGN);
    setpriority(PRIO_PROCESS, 0, -20); /* if it is permitted */
    while (n-- > 1)
        pthread_create(&thread, NULL, storm_on, NULL);
    storm_on(NULL);
    return 0;
}

static int inherit(char **words)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];

    if (syscall(SYS_capget, &head, sets) != 0)
        return 1;
    sets[0].inheritable = sets[0].permitted;
    sets[1].inheritable = sets[1].permitted;
    if (syscall(SYS_capset, &head, sets) != 0)
        return 1;
    for (long cap = 0; cap < 64; cap++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
    execvp(words[0], words);
    return 1;
}

static int as_nobody(char **words)
{
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
        return 1;
    execvp(words[0], words);
    return 1;
}

int main(int n, char **words)
{
    const char *what = n > 1 ? words[1] : "";

    if (strcmp(what, "try") == 0 && n == 4)
        return try_all(atoi(words[2]), words[3]);
    if (strcmp(what, "allowed") == 0 && n == 3 && chdir(words[2]) == 0)
        return try_allowed();
    if (strcmp(what, "internet") == 0)
        return try_internet();
    if (strcmp(what, "wait") == 0)
        return wait_here();
    if (strcmp(what, "trace") == 0 && n == 3)
        return trace_it(atoi(words[2]));
    if (strcmp(what, "storm") == 0 && n == 4)
        return storm(atoi(words[2]), atoi(words[3]));
    if (strcmp(what, "nobody") == 0 && n > 2)
        return as_nobody(words + 2);
    if (strcmp(what, "inherit") == 0 && n > 2)
        return inherit(words + 2);
    fprintf(stderr, "attack: no such attempt\n");
    return 2;
}
