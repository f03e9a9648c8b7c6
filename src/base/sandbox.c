/* Landlock and seccomp are asked for by their system calls, without a library. What runs in
 * ah_sandbox_enter is behind a fork: only async-signal-safe calls. Constants that headers of the
 * time did not have are spelled out, with the ABI that brought them; what the kernel does not know
 * is not asked for. */
#define _GNU_SOURCE /* O_PATH, syscall, nftw */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>) && __has_include(<linux/seccomp.h>)
#define HAS_LANDLOCK 1
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#endif
#ifndef HAS_LANDLOCK
#define HAS_LANDLOCK 0
#endif

const char *ah_sandbox_name(ah_sandbox_kind kind)
{
    static const char *const names[] = {"none", "auto", "landlock", "bubblewrap"};

    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

/* -- Landlock and seccomp ----------------------------------------------------------------------- */

#if HAS_LANDLOCK

enum { ABI_REFER = 2, ABI_TRUNCATE = 3, ABI_NETWORK = 4, ABI_SCOPES = 6 };

static const uint64_t TRUNCATE = 1ULL << 14; /* ABI 3 */
static const uint64_t TCP = 3;               /* ABI 4: bind, connect */
static const uint64_t SCOPES = 3;            /* ABI 6: abstract sockets, signals */

/* What the kernel takes for its first 8, 16 or 24 bytes. */
struct rules {
    uint64_t files, network, scopes;
};

int ah_sandbox_landlock(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

/* Rights that make or change something. */
static uint64_t writing(int abi)
{
    uint64_t all = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                   LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

    return all | (abi >= ABI_REFER ? LANDLOCK_ACCESS_FS_REFER : 0) |
           (abi >= ABI_TRUNCATE ? TRUNCATE : 0);
}

static int allow(int rules, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr a = {.allowed_access = rights};
    int e = 0;

    a.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (a.parent_fd < 0)
        return errno;
    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0) != 0)
        e = errno;
    close(a.parent_fd);
    return e;
}

/* Devices that scripts write to; one that is missing is not missed. */
static void allow_devices(int rules, int abi)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
    uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | (abi >= ABI_TRUNCATE ? TRUNCATE : 0);

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        allow(rules, devices[i], rights);
}

static int allow_folders(const ah_sandbox *s, int rules)
{
    int e = 0;

    for (size_t i = 0; i < s->cfg.n_folders && e == 0; i++)
        e = allow(rules, s->cfg.folder[i], writing(s->abi));
    if (e == 0 && s->temporary[0])
        e = allow(rules, s->temporary, writing(s->abi));
    return e;
}

static int lock_files(const ah_sandbox *s)
{
    struct rules r = {.files = writing(s->abi)};
    size_t size = s->abi >= ABI_SCOPES ? 24 : s->abi >= ABI_NETWORK ? 16 : 8;
    int rules, e;

    if (s->abi >= ABI_NETWORK && !s->cfg.network)
        r.network = TCP;
    if (s->abi >= ABI_SCOPES)
        r.scopes = SCOPES;
    rules = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
    if (rules < 0)
        return errno;
    allow_devices(rules, s->abi);
    e = allow_folders(s, rules);
    if (e == 0 && syscall(SYS_landlock_restrict_self, rules, 0) != 0)
        e = errno;
    close(rules);
    return e;
}

#if defined(__x86_64__)
#define ARCH    AUDIT_ARCH_X86_64
#define FOREIGN 0x40000000 /* x32 */
#elif defined(__aarch64__)
#define ARCH    AUDIT_ARCH_AARCH64
#define FOREIGN 0x7fffffff
#endif

#ifdef ARCH
#define REFUSE(e)    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define NOT(number)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE(EACCES)

/* Sockets: the network, and the services of this machine (a container engine's among them), which
 * would do what the command may not. io_uring makes sockets, too; keyrings hold secrets. A 32-bit
 * program counts its calls differently and gets none. The first NOT is left out with a network. */
static int refuse_calls(bool network)
{
    struct sock_filter code[] = {LOAD(arch),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
                                 REFUSE(ENOSYS),
                                 LOAD(nr),
                                 BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, 0, 1),
                                 REFUSE(ENOSYS),
                                 NOT(network ? SYS_bpf : SYS_socket),
                                 NOT(SYS_io_uring_setup),
                                 NOT(SYS_bpf),
                                 NOT(SYS_perf_event_open),
                                 NOT(SYS_keyctl),
                                 NOT(SYS_add_key),
                                 NOT(SYS_request_key),
                                 ALLOW};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
                   prctl(PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) == 0
               ? 0
               : errno;
}

static const char *no_network(const ah_sandbox *s)
{
    (void)s;
    return ", no network";
}
#else
static int refuse_calls(bool network)
{
    (void)network;
    return 0;
}

static const char *no_network(const ah_sandbox *s)
{
    return s->abi >= ABI_NETWORK ? ", no TCP" : "";
}
#endif

/* Root keeps what concerns the owners of files, and loses what reaches into other processes (the
 * environment of the host, which Landlock does not guard against CAP_PERFMON) and devices. Others
 * have nothing to lose: EPERM. */
static void drop_capabilities(void)
{
    const uint64_t kept = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID |
                          1 << CAP_KILL | 1 << CAP_SETGID | 1 << CAP_SETUID;

    for (long cap = 0; cap < 64; cap++)
        if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0L, 0L, 0L) != 0 && errno == EINVAL)
            break;
    prctl(PR_CAP_AMBIENT, (long)PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L);
}

int ah_sandbox_enter(const void *sandbox)
{
    const ah_sandbox *s = sandbox;
    int e = 0;

    if (s->cfg.kind != AH_SANDBOX_LANDLOCK)
        return 0;
    drop_capabilities();
    if ((e = lock_files(s)) == 0)
        e = refuse_calls(s->cfg.network);
    return e;
}

#else

enum { ABI_TRUNCATE = 3 };

int ah_sandbox_landlock(void)
{
    return 0;
}

static const char *no_network(const ah_sandbox *s)
{
    (void)s;
    return "";
}

int ah_sandbox_enter(const void *sandbox)
{
    (void)sandbox;
    return 0;
}
#endif

/* -- bubblewrap ----------------------------------------------------------------------------------- */

const char *ah_sandbox_bubblewrap(void)
{
    static const char *const places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static size_t add_words(const char **out, size_t n, const char *const *words)
{
    for (; *words && n < AH_SANDBOX_WORDS; words++)
        out[n++] = *words;
    return n;
}

/* /run holds the sockets of the machine's services; without the network they are out of reach. */
size_t ah_sandbox_words(const ah_sandbox *s, const char *out[AH_SANDBOX_WORDS])
{
    static const char *const view[] = {"--ro-bind",
                                       "/",
                                       "/",
                                       "--dev",
                                       "/dev",
                                       "--proc",
                                       "/proc",
                                       "--tmpfs",
                                       "/tmp",
                                       "--unshare-all",
                                       "--die-with-parent",
                                       NULL};
    static const char *const shared[] = {"--share-net", NULL}, *const closed[] = {"--tmpfs", "/run",
                                                                                  NULL};
    const char *const program[] = {ah_sandbox_bubblewrap(), NULL};
    size_t n = 0;

    if (s->cfg.kind != AH_SANDBOX_BUBBLEWRAP)
        return 0;
    n = add_words(out, n, program);
    n = add_words(out, n, view);
    n = add_words(out, n, s->cfg.network ? shared : closed);
    for (size_t i = 0; i < s->cfg.n_folders; i++) {
        const char *const bind[] = {"--bind", s->cfg.folder[i], s->cfg.folder[i], NULL};

        n = add_words(out, n, bind);
    }
    return add_words(out, n, (const char *const[]){"--", NULL});
}

/* -- opening and closing ------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    remove(path); /* what cannot go stays */
    return 0;
}

static ah_status make_temporary(ah_sandbox *s, ah_err *err)
{
    const char *in = getenv("TMPDIR");

    if (!in || *in != '/' || strlen(in) > sizeof s->temporary - 32)
        in = "/tmp";
    snprintf(s->temporary, sizeof s->temporary, "%s/agenthost-XXXXXX", in);
    if (mkdtemp(s->temporary))
        return AH_OK;
    s->temporary[0] = '\0';
    return ah_err_set(err, AH_USAGE, "sandbox: cannot make a temporary folder in '%s': %s", in,
                      strerror(errno));
}

/* Before ABI 3 files can be emptied through Landlock. */
static ah_sandbox_kind best(int abi)
{
    if (abi >= ABI_TRUNCATE)
        return AH_SANDBOX_LANDLOCK;
    if (ah_sandbox_bubblewrap())
        return AH_SANDBOX_BUBBLEWRAP;
    return abi > 0 ? AH_SANDBOX_LANDLOCK : AH_SANDBOX_NONE;
}

static void describe(ah_sandbox *s)
{
    switch (s->cfg.kind) {
    case AH_SANDBOX_NONE:
    case AH_SANDBOX_AUTO:
        snprintf(s->text, sizeof s->text, "none");
        break;
    case AH_SANDBOX_LANDLOCK:
        snprintf(s->text, sizeof s->text, "landlock (ABI %d)%s", s->abi,
                 s->cfg.network ? "" : no_network(s));
        break;
    case AH_SANDBOX_BUBBLEWRAP:
        snprintf(s->text, sizeof s->text, "bubblewrap%s", s->cfg.network ? "" : ", no network");
    }
}

ah_status ah_sandbox_open(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err)
{
    ah_status st = AH_OK;

    *out = (ah_sandbox){.cfg = *cfg, .abi = ah_sandbox_landlock()};
    if (cfg->kind == AH_SANDBOX_AUTO)
        out->cfg.kind = best(out->abi);
    if (cfg->kind == AH_SANDBOX_LANDLOCK && out->abi == 0)
        return ah_err_set(err, AH_USAGE, "sandbox: this kernel does not offer Landlock");
    if (cfg->kind == AH_SANDBOX_BUBBLEWRAP && !ah_sandbox_bubblewrap())
        return ah_err_set(err, AH_USAGE, "sandbox: the program bwrap is not installed");
    if (out->cfg.kind == AH_SANDBOX_LANDLOCK)
        st = make_temporary(out, err);
    describe(out);
    return st;
}

void ah_sandbox_close(ah_sandbox *s)
{
    if (s->temporary[0])
        nftw(s->temporary, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    s->temporary[0] = '\0';
}
