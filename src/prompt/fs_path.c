/* The one place where paths are checked: their form, their depth, and the names that are
 * refused for writing. By the letters only; what is on the disk is fs_beneath.c's matter. */
#include "base/json.h"
#include "prompt/fs_store.h"

/* What programs run or obey without being asked to: version control (hooks, filters),
 * shells, editors, package managers, our own configuration. A folder's name covers all
 * that is in it. Compared without regard to the case of ASCII, as some disks do. */
static const char *const refused[] = {
    ".git",
    ".gitmodules",
    ".gitconfig",
    ".githooks",
    ".husky",
    ".hg",
    ".hgrc",
    ".svn",
    ".github",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".vscode",
    ".idea",
    ".claude",
    ".cursor",
    ".mcp.json",
    ".agenthost",
    ".env",
    ".env.local",
    ".envrc",
    ".direnv",
    ".config",
    ".local",
    ".ssh",
    ".gnupg",
    ".netrc",
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".xinitrc",
    ".xsession",
    ".xprofile",
    ".pam_environment",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
};

enum { N_REFUSED = sizeof refused / sizeof *refused };
_Static_assert(N_REFUSED <= 64, "ah_fs_options.allow has a bit for each");

static bool same_name(ah_slice name, const char *lit)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] + 32) : name.p[i];

        if (c != lit[i]) /* at its end, too: names hold no NUL */
            return false;
    }
    return lit[name.n] == '\0';
}

bool ah_fs_allow(ah_slice name, uint64_t *allow)
{
    for (size_t i = 0; i < N_REFUSED; i++)
        if (ah_slice_is(name, refused[i])) {
            *allow |= (uint64_t)1 << i;
            return true;
        }
    return false;
}

const char *ah_fs_refused_name(size_t i)
{
    return i < N_REFUSED ? refused[i] : NULL;
}

/* The first name at the front of *rest, which moves behind it and its '/'. */
static ah_slice take_name(ah_slice *rest)
{
    const char *slash = memchr(rest->p, '/', rest->n);
    ah_slice name = {rest->p, slash ? (size_t)(slash - rest->p) : rest->n};
    size_t used = name.n + (slash != NULL);

    rest->p += used;
    rest->n -= used;
    return name;
}

static const char *find_refused(const ah_fs *fs, ah_slice path)
{
    while (path.n) {
        ah_slice name = take_name(&path);

        for (size_t i = 0; name.p[0] == '.' && i < N_REFUSED; i++)
            if (!(fs->o.allow >> i & 1) && same_name(name, refused[i]))
                return refused[i];
    }
    return NULL;
}

bool ah_fs_is_temporary(ah_slice name)
{
    static const ah_slice head = AH_LIT(".agenthost-"), tail = AH_LIT(".tmp");

    return name.n > head.n + tail.n && memcmp(name.p, head.p, head.n) == 0 &&
           memcmp(name.p + name.n - tail.n, tail.p, tail.n) == 0;
}

static bool has_control(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

bool ah_fs_name_ok(ah_slice name)
{
    return name.n > 0 && name.n <= AH_FS_MAX_NAME && !has_control(name) && ah_utf8_valid(name) &&
           !memchr(name.p, '/', name.n) && !ah_fs_is_temporary(name);
}

static ah_status too_long(ah_slice given, ah_err *err)
{
    return ah_fs_err(err, AH_FS_BAD_PATH, "a path has at most %d bytes; this one has %zu",
                     AH_FS_MAX_PATH, given.n);
}

static ah_status check_letters(ah_slice given, ah_err *err)
{
    if (given.n > AH_FS_MAX_PATH)
        return too_long(given, err);
    if (!ah_utf8_valid(given) || has_control(given))
        return ah_fs_err(err, AH_FS_BAD_PATH,
                         "a path is UTF-8 text without control characters; this one is not");
    if (given.n && given.p[0] == '/')
        return ah_fs_err(err, AH_FS_BAD_PATH,
                         "'%.*s' is an absolute path; paths are relative to the root: leave out the "
                         "first '/'",
                         AH_FMT(given));
    return AH_OK;
}

/* One level up; false where that leads out. */
static bool go_up(ah_fs_path *p)
{
    if (p->n == 0)
        return false;
    p->n = ah_fs_parent(ah_fs_path_slice(p)).n;
    p->s[p->n] = '\0';
    return true;
}

static ah_status add_name(const ah_fs *fs, ah_slice given, ah_slice name, int *depth, ah_fs_path *out,
                          ah_err *err)
{
    if (ah_slice_is(name, "..")) {
        --*depth;
        return go_up(out)
                   ? AH_OK
                   : ah_fs_err(err, AH_FS_BAD_PATH, "'%.*s' leads out of the root; paths stay under it",
                               AH_FMT(given));
    }
    if (name.n > AH_FS_MAX_NAME)
        return ah_fs_err(err, AH_FS_BAD_PATH, "a name in a path has at most %d bytes, not %zu: '%.*s'",
                         AH_FS_MAX_NAME, name.n, AH_FMT(given));
    if (ah_fs_is_temporary(name))
        return ah_fs_err(err, AH_FS_REFUSED, "'%.*s' is the name of a temporary file of agenthost",
                         AH_FMT(given));
    if (++*depth > fs->o.max_depth)
        return ah_fs_err(err, AH_FS_BAD_PATH, "a path has at most %d names: '%.*s' has more",
                         fs->o.max_depth, AH_FMT(given));
    if (!ah_fs_join(ah_fs_path_slice(out), name, out))
        return too_long(given, err);
    return AH_OK;
}

ah_status ah_fs_path_check(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err)
{
    ah_slice rest = {given.p ? given.p : "", given.n};
    ah_status st = check_letters(given, err);
    int depth = 0;

    out->n = 0;
    out->s[0] = '\0';
    while (st == AH_OK && rest.n) {
        ah_slice name = take_name(&rest);

        if (name.n && !ah_slice_is(name, "."))
            st = add_name(fs, given, name, &depth, out, err);
    }
    return st;
}

ah_status ah_fs_path_writable(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err)
{
    ah_status st = ah_fs_path_check(fs, given, out, err);
    const char *name;

    if (st != AH_OK)
        return st;
    if (fs->o.read_only)
        return ah_fs_err(err, AH_FS_READ_ONLY, "cannot change '%s': the file system is read-only",
                         out->s);
    if (out->n == 0)
        return ah_fs_err(err, AH_FS_BAD_PATH, "the path is empty: name a file or folder under the root");
    if (fs->guarded && (name = find_refused(fs, ah_fs_path_slice(out))))
        return ah_fs_err(err, AH_FS_REFUSED,
                         "cannot change '%s': '%s' is refused, since what is there may be run or obeyed "
                         "by other programs",
                         out->s, name);
    return AH_OK;
}

ah_slice ah_fs_parent(ah_slice path)
{
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    path.n -= path.n > 0;
    return path;
}

ah_slice ah_fs_name(ah_slice path)
{
    ah_slice parent = ah_fs_parent(path);
    size_t skip = parent.n ? parent.n + 1 : 0;

    return (ah_slice){path.p + skip, path.n - skip};
}

bool ah_fs_within(ah_slice path, ah_slice dir)
{
    if (dir.n == 0)
        return path.n > 0;
    return path.n > dir.n && path.p[dir.n] == '/' && memcmp(path.p, dir.p, dir.n) == 0;
}

/* `dir` may be what is in `out`. */
bool ah_fs_join(ah_slice dir, ah_slice name, ah_fs_path *out)
{
    size_t slash = dir.n > 0;

    if (dir.n + slash + name.n > AH_FS_MAX_PATH)
        return false;
    memmove(out->s, dir.p, dir.n);
    if (slash)
        out->s[dir.n] = '/';
    memcpy(out->s + dir.n + slash, name.p, name.n);
    out->n = dir.n + slash + name.n;
    out->s[out->n] = '\0';
    return true;
}
