/* Uses Landlock by its system calls, without a library. Its rules are made before the fork, so that
 * errors can be reported; ah_sandbox_enter runs after the fork, with async-signal-safe calls only.
 * Constants missing in older headers are defined here, with the ABI that introduced them; features
 * that the kernel lacks are not requested. */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "io/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/process.h"
#include "io/refuse.h"
#include "io/sweep.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>) && __has_include(<linux/capability.h>)
#define HAS_LANDLOCK 1
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#endif
#ifndef HAS_LANDLOCK
#define HAS_LANDLOCK 0
#endif

enum { CLEAN_MS = 500, PROBE_MS = 5000 };

const char *ah_sandbox_name(ah_sandbox_kind kind)
{
    static const char *const names[] = {"none", "auto", "require", "landlock", "bubblewrap"};

    return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

/* Programs and libraries, settings, host names, and kernel information. Of /dev, no disks. */
const char *const ah_sandbox_system[] = {
    "/usr",      "/bin",        "/sbin",        "/lib",
    "/lib32",    "/lib64",      "/etc",         "/nix/store",
    "/proc",     "/sys",        "/dev/null",    "/dev/zero",
    "/dev/full", "/dev/random", "/dev/urandom", "/run/systemd/resolve",
    NULL};

enum { ABI_REFER = 2, ABI_TRUNCATE = 3, ABI_NETWORK = 4, ABI_DEVICES = 5, ABI_SCOPES = 6 };

/* Moves the descriptor away from 0, which means "none" in configs. */
static int not_standard(int fd)
{
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int e = errno;

    if (fd >= 0)
        close(fd);
    errno = e;
    return moved;
}

/* -- paths ------------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static const ah_hidden_folder *first_hidden(const ah_sandbox_config *cfg)
{
    return cfg->hidden ? cfg->hidden->first : NULL;
}

static bool is_writable(const ah_sandbox_config *cfg, const ah_hidden_folder *f)
{
    for (size_t i = 0; i < cfg->n_folders; i++)
        if (is_below(f->path->data, cfg->folder[i].path))
            return true;
    return false;
}

/* True if only mounts can hide the folder: Landlock cannot take back a right to a folder above. */
static bool needs_mounts(const ah_sandbox_config *cfg)
{
    for (const ah_hidden_folder *f = first_hidden(cfg); f; f = f->next) {
        if (is_writable(cfg, f))
            return true;
        for (size_t i = 0; cfg->reads && i < cfg->n_readable; i++)
            if (is_below(f->path->data, cfg->readable[i].path))
                return true;
    }
    return false;
}

/* Returns the folder of a store that is a writable folder itself; NULL: none. */
static const ah_hidden_folder *not_apart(const ah_sandbox_config *cfg)
{
    for (const ah_hidden_folder *f = first_hidden(cfg); f; f = f->next)
        for (size_t i = 0; i < cfg->n_folders; i++)
            if (strcmp(f->path->data, cfg->folder[i].path) == 0)
                return f;
    return NULL;
}

/* -- Landlock --------------------------------------------------------------------------------- */

#if HAS_LANDLOCK

static const uint64_t TRUNCATE = 1ULL << 14;  /* ABI 3 */
static const uint64_t TCP = 3;                /* ABI 4: bind, connect */
static const uint64_t IOCTL_DEV = 1ULL << 15; /* ABI 5 */
static const uint64_t SCOPES = 3;             /* ABI 6: abstract sockets, signals */

/* Landlock's ruleset attributes; the kernel gets the first 8, 16 or 24 bytes. */
struct rules {
    uint64_t files, network, scopes;
};

int ah_sandbox_landlock(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

/* Rights that create or change something. */
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

static const uint64_t READING_FILES = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
static const uint64_t READING = READING_FILES | LANDLOCK_ACCESS_FS_READ_DIR;

/* True if reading is allowed by rules: to listed folders, or to all but the hidden ones. */
static bool rules_reading(const ah_sandbox *s)
{
    return s->cfg.reads || first_hidden(&s->cfg);
}

/* Rights to writable folders. */
static uint64_t all_rights(const ah_sandbox *s)
{
    return writing(s->abi) | (s->cfg.reads       ? READING
                              : rules_reading(s) ? LANDLOCK_ACCESS_FS_READ_FILE
                                                 : 0);
}

static int allow_folder(int rules, int folder, uint64_t rights)
{
    struct landlock_path_beneath_attr a = {.allowed_access = rights, .parent_fd = folder};

    return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0) == 0 ? 0
                                                                                         : errno;
}

static int allow(int rules, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), e;

    if (fd < 0)
        return errno;
    e = allow_folder(rules, fd, rights);
    close(fd);
    return e;
}

/* Devices that scripts write to; missing ones are ignored. */
static void allow_devices(int rules, int abi)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full"};
    uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | (abi >= ABI_TRUNCATE ? TRUNCATE : 0);

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        allow(rules, devices[i], rights);
}

/* Follows links in the system's own names (/bin); missing ones are ignored. */
static void allow_system(int rules)
{
    struct stat info;

    for (const char *const *path = ah_sandbox_system; *path; path++) {
        int fd = open(*path, O_PATH | O_CLOEXEC);

        if (fd >= 0 && fstat(fd, &info) == 0)
            allow_folder(rules, fd, S_ISDIR(info.st_mode) ? READING : READING_FILES);
        if (fd >= 0)
            close(fd);
    }
}

static int allow_reading(const ah_sandbox *s, int rules)
{
    int e = s->cfg.program ? allow_folder(rules, s->cfg.program, READING_FILES) : 0;

    allow_system(rules);
    for (size_t i = 0; i < s->cfg.n_readable && e == 0; i++)
        e = allow_folder(rules, s->cfg.readable[i].fd, READING);
    return e;
}

/* True if a hidden folder is `path` or below it. */
static bool leads_to_hidden(const ah_sandbox *s, const char *path)
{
    for (const ah_hidden_folder *f = first_hidden(&s->cfg); f; f = f->next)
        if (is_below(f->path->data, path))
            return true;
    return false;
}

static bool is_hidden(const ah_sandbox *s, const char *folder, const char *name)
{
    for (const ah_hidden_folder *f = first_hidden(&s->cfg); f; f = f->next)
        if (strcmp(folder, f->path->data) == 0 && ah_slice_begins(ah_slice_of(name), f->name->data))
            return true;
    return false;
}

/* Allows to read all files below a folder but those of stores. Only folders on the way to these
 * are listed, so the depth is that of a path. */
static void allow_around(const ah_sandbox *s, int rules, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    char path[PATH_MAX];

    while (dir && (e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            is_hidden(s, folder, e->d_name) ||
            snprintf(path, sizeof path, "%s/%s", folder[1] ? folder : "", e->d_name) >=
                (int)sizeof path)
            continue;
        if (leads_to_hidden(s, path))
            allow_around(s, rules, path);
        else
            allow(rules, path, LANDLOCK_ACCESS_FS_READ_FILE);
    }
    if (dir)
        closedir(dir);
}

static int allow_folders(const ah_sandbox *s, int rules)
{
    int e = allow(rules, s->temporary, all_rights(s));

    for (size_t i = 0; i < s->cfg.n_folders && e == 0; i++)
        e = allow_folder(rules, s->cfg.folder[i].fd, all_rights(s));
    if (e == 0 && s->cfg.reads)
        e = allow_reading(s, rules);
    else if (rules_reading(s))
        allow_around(s, rules, "/");
    return e;
}

static int make_rules(const ah_sandbox *s)
{
    struct rules r = {.files = all_rights(s) | (s->abi >= ABI_DEVICES ? IOCTL_DEV : 0)};
    size_t size = s->abi >= ABI_SCOPES ? 24 : s->abi >= ABI_NETWORK ? 16 : 8;

    if (s->abi >= ABI_NETWORK && !s->cfg.network)
        r.network = TCP;
    if (s->abi >= ABI_SCOPES)
        r.scopes = SCOPES;
    return not_standard((int)syscall(SYS_landlock_create_ruleset, &r, size, 0));
}

static ah_status lock_files(ah_sandbox *s, ah_err *err)
{
    int rules = make_rules(s), e = rules < 0 ? errno : 0;

    if (e == 0) {
        s->fence = rules;
        allow_devices(rules, s->abi);
        e = allow_folders(s, rules);
    }
    return e == 0 ? AH_OK
                  : ah_err_set(err, AH_USAGE, "sandbox: cannot make the rules of Landlock: %s",
                               strerror(e));
}

/* Root keeps the right to open files whatever their modes, and on request rights over owners. It
 * loses rights that reach other processes (the host's environment, which Landlock does not protect
 * from CAP_PERFMON) and devices. */
static uint64_t kept_capabilities(const ah_sandbox *s)
{
    const uint64_t files = 1 << CAP_DAC_OVERRIDE | 1 << CAP_FSETID;
    const uint64_t owners =
        1 << CAP_CHOWN | 1 << CAP_FOWNER | 1 << CAP_KILL | 1 << CAP_SETGID | 1 << CAP_SETUID;

    return s->cfg.kind == AH_SANDBOX_BUBBLEWRAP ? ~0ULL : files | (s->cfg.owners ? owners : 0);
}

/* Drops them from all sets: inheritable ones would return with the next program, the bounding set
 * with a program of root's. If the bounding set cannot be changed (EPERM), nothing returns, as no
 * new privileges are gained. */
static int drop_capabilities(uint64_t kept)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};

    for (long cap = 0; cap < 64; cap++)
        if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0L, 0L, 0L) != 0 && errno == EINVAL)
            break;
    prctl(PR_CAP_AMBIENT, (long)PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L);
    if (syscall(SYS_capget, &head, sets) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        sets[i].permitted &= (uint32_t)(kept >> (32 * i));
        sets[i].effective &= sets[i].permitted;
        sets[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, sets) == 0 ? 0 : errno;
}

static int enter_landlock(const ah_refusal *r)
{
    ah_refuse_program program;

    if (syscall(SYS_landlock_restrict_self, AH_PROCESS_FENCE, 0) != 0)
        return errno;
    return ah_refuse_in_sandbox(r, &program) ? ah_refuse_enter(&program)
           : AH_HAS_REFUSE                   ? E2BIG
                                             : 0;
}

/* Without a sandbox a command may do what the user may, except to its supervisors, if the machine
 * can forbid that. */
static int keep_above(const ah_refusal *r)
{
    ah_refuse_program program;

    if (ah_refuse_above(r, &program))
        ah_refuse_enter(&program);
    return 0;
}

int ah_sandbox_enter(const void *sandbox, const pid_t *above, size_t n_above)
{
    const ah_sandbox *s = sandbox;
    ah_refusal r = {.network = s->cfg.network,
                    .no_truncation = s->abi < ABI_TRUNCATE,
                    .no_scopes = s->abi < ABI_SCOPES,
                    .above = above,
                    .n_above = n_above,
                    .self = getpid()};
    int e;

    if (s->cfg.kind == AH_SANDBOX_NONE) {
        r.n_above = n_above > 1 ? n_above - 1 : 0; /* signals to the host stay allowed */
        return keep_above(&r);
    }
    if ((e = drop_capabilities(kept_capabilities(s))) != 0)
        return e;
    if (s->cfg.kind == AH_SANDBOX_LANDLOCK)
        return enter_landlock(&r);
    return !s->fence || fcntl(AH_PROCESS_FENCE, F_SETFD, 0) == 0 ? 0 : errno; /* bwrap reads it */
}

#else

int ah_sandbox_landlock(void)
{
    return 0;
}

static ah_status lock_files(ah_sandbox *s, ah_err *err)
{
    (void)s;
    (void)err;
    return AH_OK;
}

int ah_sandbox_enter(const void *sandbox, const pid_t *above, size_t n_above)
{
    (void)sandbox;
    (void)above;
    (void)n_above;
    return 0;
}
#endif

/* -- bubblewrap -------------------------------------------------------------------------------- */

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

static bool is_system(const char *path)
{
    const char *const *folder = ah_sandbox_system;

    while (*folder && !is_below(path, *folder))
        folder++;
    return *folder != NULL;
}

/* True if another folder's bind includes this one. bwrap takes paths, not descriptors: a path below
 * a writable folder may be replaced before bwrap looks, and needs no bind of its own. The parents
 * of the other folders are not writable. */
static bool is_covered(const ah_sandbox_config *cfg, size_t i)
{
    for (size_t j = 0; j < cfg->n_folders; j++)
        if (j != i && is_below(cfg->folder[i].path, cfg->folder[j].path) &&
            (j < i || strcmp(cfg->folder[i].path, cfg->folder[j].path) != 0))
            return true;
    return false;
}

/* Adds everything, or only what may be read. Files of the program are bound by their paths. */
static size_t add_view(const ah_sandbox *s, const char **out, size_t n)
{
    static const char *const all[] = {"--ro-bind", "/", "/", NULL};

    if (!s->cfg.reads)
        return add_words(out, n, all);
    for (const char *const *path = ah_sandbox_system; *path; path++)
        if (strncmp(*path, "/dev/", 5) != 0 && strcmp(*path, "/proc") != 0)
            n = add_words(out, n, (const char *const[]){"--ro-bind-try", *path, *path, NULL});
    return n;
}

static size_t add_readable(const ah_sandbox *s, const char **out, size_t n)
{
    for (size_t i = 0; i < s->cfg.n_readable; i++) {
        const char *path = s->cfg.readable[i].path;

        n = add_words(out, n, (const char *const[]){"--ro-bind", path, path, NULL});
    }
    if (s->cfg.program_path && *s->cfg.program_path == '/' && !is_system(s->cfg.program_path))
        n = add_words(
            out, n,
            (const char *const[]){"--ro-bind", s->cfg.program_path, s->cfg.program_path, NULL});
    return n;
}

/* Puts an empty folder over each hidden one: over those in a writable folder after its bind, over
 * the others before, as writable folders may be below them. */
static size_t add_hidden(const ah_sandbox *s, const char **out, size_t n, bool writable)
{
    for (const ah_hidden_folder *f = first_hidden(&s->cfg); f; f = f->next)
        if (is_writable(&s->cfg, f) == writable)
            n = add_words(out, n, (const char *const[]){"--tmpfs", f->path->data, NULL});
    return n;
}

/* /run has the sockets of the machine's services, which are hidden if there is no network. */
size_t ah_sandbox_words(const ah_sandbox *s, const char *out[AH_SANDBOX_WORDS])
{
    static const char *const rest[] = {
        "--dev", "/dev",          "--proc",     "/proc", "--tmpfs",
        "/tmp",  "--unshare-all", "--cap-drop", "ALL",   "--die-with-parent",
        NULL};
    static const char *const shared[] = {"--share-net", NULL}, *const closed[] = {"--tmpfs", "/run",
                                                                                  NULL};
    static const char *const filter[] = {"--seccomp", "5", NULL}; /* AH_PROCESS_FENCE */
    const char *const program[] = {ah_sandbox_bubblewrap(), NULL};
    size_t n = 0;

    if (s->cfg.kind != AH_SANDBOX_BUBBLEWRAP)
        return 0;
    n = add_words(out, n, program);
    n = add_view(s, out, n);
    n = add_words(out, n, rest);
    n = add_words(out, n, s->cfg.network ? shared : closed);
    if (s->fence)
        n = add_words(out, n, filter);
    n = add_readable(s, out, n);
    n = add_hidden(s, out, n, false);
    for (size_t i = 0; i < s->cfg.n_folders; i++) {
        const char *path = s->cfg.folder[i].path;

        if (!is_covered(&s->cfg, i))
            n = add_words(out, n, (const char *const[]){"--bind", path, path, NULL});
    }
    n = add_hidden(s, out, n, true);
    return add_words(out, n, (const char *const[]){"--", NULL});
}

/* bwrap reads the filter program from the pipe, which holds all of it. */
static ah_status make_filter(ah_sandbox *s, ah_err *err)
{
    ah_refuse_program program;
    const ah_refusal r = {.network = s->cfg.network};
    size_t bytes;
    int fd[2];

    if (!ah_refuse_in_sandbox(&r, &program))
        return AH_OK;
    bytes = program.n * sizeof *program.step;
    if (pipe(fd) != 0)
        return ah_err_set(err, AH_USAGE, "sandbox: cannot make a pipe: %s", strerror(errno));
    s->fence = not_standard(fd[0]);
    if (s->fence < 0 || write(fd[1], program.step, bytes) != (ssize_t)bytes)
        ah_err_set(err, AH_USAGE, "sandbox: cannot give bwrap its filter: %s", strerror(errno));
    else
        bytes = 0;
    close(fd[1]);
    if (s->fence < 0)
        s->fence = 0;
    return bytes == 0 ? AH_OK : AH_USAGE;
}

static bool wait_for_success(pid_t pid)
{
    const struct timespec pause = {0, 5000000L};
    int status = 1;
    pid_t got = 0;

    for (int ms = 0; ms < PROBE_MS && (got = waitpid(pid, &status, WNOHANG)) == 0; ms += 5)
        nanosleep(&pause, NULL);
    if (got == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs it, since kernels and containers may forbid the namespaces that it needs. */
static bool bubblewrap_works(void)
{
    const char *program = ah_sandbox_bubblewrap();
    const char *const words[] = {
        program,      "--ro-bind", "/",  "/",       "--proc", "/proc", "--unshare-all",
        "--cap-drop", "ALL",       "--", "/bin/sh", "-c",     ":",     NULL};
    char *const env[] = {NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    bool works;

    if (!program || posix_spawn_file_actions_init(&actions) != 0)
        return false;
    works = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn(&pid, program, &actions, NULL, (char *const *)(uintptr_t)words, env) == 0 &&
            wait_for_success(pid);
    posix_spawn_file_actions_destroy(&actions);
    return works;
}

/* -- opening and closing ----------------------------------------------------------------------- */

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

/* Landlock without the filter is the last choice: it does not cover other processes' limits, UDP
 * and UNIX sockets. */
static ah_sandbox_kind best(const ah_sandbox_config *cfg, int abi)
{
    if (abi > 0 && AH_HAS_REFUSE && !needs_mounts(cfg))
        return AH_SANDBOX_LANDLOCK;
    if (bubblewrap_works())
        return AH_SANDBOX_BUBBLEWRAP;
    return abi > 0 ? AH_SANDBOX_LANDLOCK : AH_SANDBOX_NONE;
}

static const char *no_network(const ah_sandbox *s)
{
    if (s->cfg.network)
        return "";
    return AH_HAS_REFUSE ? ", no network" : s->abi >= ABI_NETWORK ? ", no TCP" : "";
}

static void describe(ah_sandbox *s)
{
    switch (s->cfg.kind) {
    case AH_SANDBOX_NONE:
    case AH_SANDBOX_AUTO:
    case AH_SANDBOX_REQUIRE:
        snprintf(s->text, sizeof s->text, "none");
        break;
    case AH_SANDBOX_LANDLOCK:
        snprintf(s->text, sizeof s->text, "landlock (ABI %d)%s%s", s->abi, no_network(s),
                 AH_HAS_REFUSE ? "" : ", no filter of calls");
        break;
    case AH_SANDBOX_BUBBLEWRAP:
        snprintf(s->text, sizeof s->text, "bubblewrap%s", s->cfg.network ? "" : ", no network");
    }
}

/* Fails if the command could reach the store. */
static ah_status check_hidden(const ah_sandbox *s, ah_err *err)
{
    const ah_hidden_folder *f = not_apart(&s->cfg);

    if (s->cfg.kind == AH_SANDBOX_NONE)
        return AH_OK;
    if (!f && s->cfg.kind == AH_SANDBOX_LANDLOCK && needs_mounts(&s->cfg))
        f = first_hidden(&s->cfg);
    if (!f)
        return AH_OK;
    return ah_err_set(
        err, AH_USAGE,
        "sandbox: a store is in a folder that the command may use; keep it in a folder "
        "of its own elsewhere%s",
        not_apart(&s->cfg) ? "" : ", or install bwrap (the package bubblewrap)");
}

ah_status ah_sandbox_choose(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err)
{
    *out = (ah_sandbox){.cfg = *cfg, .abi = ah_sandbox_landlock()};
    if (cfg->kind == AH_SANDBOX_AUTO || cfg->kind == AH_SANDBOX_REQUIRE)
        out->cfg.kind = best(cfg, out->abi);
    if (cfg->kind == AH_SANDBOX_REQUIRE && out->cfg.kind == AH_SANDBOX_NONE)
        return ah_err_set(
            err, AH_USAGE,
            "sandbox: this machine offers none: it needs Landlock (Linux 5.13 or later, "
            "and `landlock` in /sys/kernel/security/lsm), or the program bwrap (the "
            "package bubblewrap) and leave to make namespaces");
    if (cfg->kind == AH_SANDBOX_LANDLOCK && out->abi == 0)
        return ah_err_set(err, AH_USAGE, "sandbox: this kernel does not offer Landlock");
    if (cfg->kind == AH_SANDBOX_BUBBLEWRAP && !ah_sandbox_bubblewrap())
        return ah_err_set(err, AH_USAGE,
                          "sandbox: the program bwrap is not installed (package bubblewrap)");
    describe(out);
    return check_hidden(out, err);
}

ah_status ah_sandbox_open(const ah_sandbox_config *cfg, ah_sandbox *out, ah_err *err)
{
    ah_status st = ah_sandbox_choose(cfg, out, err);

    if (st == AH_OK && out->cfg.kind == AH_SANDBOX_LANDLOCK &&
        (st = make_temporary(out, err)) == AH_OK)
        st = lock_files(out, err);
    if (st == AH_OK && out->cfg.kind == AH_SANDBOX_BUBBLEWRAP)
        st = make_filter(out, err);
    return st;
}

bool ah_sandbox_clean(const void *sandbox, long for_ms)
{
    const ah_sandbox *s = sandbox;

    return !s->temporary[0] || ah_sweep(s->temporary, for_ms);
}

void ah_sandbox_close(ah_sandbox *s)
{
    ah_sandbox_clean(s, CLEAN_MS);
    if (s->fence)
        close(s->fence);
    s->temporary[0] = '\0';
    s->fence = 0;
}
