/* Checks paths, as text only: their form, their depth, and the names that may not be written.
 * disk_root.c checks the disk itself. */
#include "base/backing.h"
#include "base/json.h"

/* Names of files that programs run or obey without a request, or because they start in that
 * folder. A folder's name covers its content. A `*` at the end matches any rest, to cover
 * variants of a name. Names are compared as disks may compare them: see fold_name. Not listed:
 * files that a project itself runs or configures (a Makefile, a linter's settings). */
static const char *const refused[] = {
    /* version control: hooks, filters, credentials */
    ".git",
    ".gitmodules",
    ".gitconfig*",
    ".githooks",
    ".gitreview",
    ".lfsconfig",
    ".husky",
    ".lefthook*",
    ".overcommit.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    ".hg",
    ".hgrc",
    ".hgsub",
    ".svn",
    ".bzr",
    ".jj",
    ".fslckout",
    ".fossil-settings",
    ".cvsrc",
    ".p4config",
    ".arcconfig",
    ".arclint",
    ".tigrc",
    "_darcs",
    /* build, check, deployment or merge on a server */
    ".github",
    ".gitlab-ci.yml",
    ".gitlab",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".travis.yml",
    ".drone.yml",
    ".drone.star",
    ".woodpecker*",
    ".buildkite",
    ".azure-pipelines*",
    ".appveyor.yml",
    ".cirrus.yml",
    ".cirrus.star",
    ".semaphore",
    ".teamcity",
    ".tekton",
    ".build.yml",
    ".builds",
    ".taskcluster.yml",
    ".zuul*",
    ".scrutinizer.yml",
    ".harness",
    ".bazelci",
    ".copr",
    ".packit.yaml",
    ".mergify.yml",
    ".kodiak.toml",
    ".renovaterc*",
    ".dependabot",
    ".readthedocs.y*",
    ".netlify",
    ".vercel",
    ".platform",
    ".platform.app.yaml",
    ".ebextensions",
    ".elasticbeanstalk",
    ".openshift",
    ".s2i",
    ".gitpod*",
    ".lando*",
    ".ddev",
    ".replit",
    ".idx",
    ".devfile.yaml",
    /* editors and language servers */
    ".vscode",
    ".vscode-*",
    ".idea",
    ".fleet",
    ".zed",
    ".nova",
    ".helix",
    ".atom",
    ".settings",
    ".kakrc",
    ".nanorc",
    ".vim",
    ".vimrc",
    ".gvimrc",
    ".ideavimrc",
    ".lvimrc",
    ".local.vimrc",
    ".vimspector.json",
    ".exrc",
    ".nvim",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".emacs.d",
    ".dir-locals*",
    ".spacemacs*",
    ".doom.d",
    ".projectile",
    ".luarc.json*",
    ".neoconf.json",
    ".clangd",
    ".ycm_extra_conf.py",
    ".bsp",
    ".bloop",
    ".metals",
    /* agents: instructions, hooks, servers that they start */
    ".agenthost",
    ".mcp*",
    ".claude*",
    ".cursor*",
    ".codex*",
    ".gemini*",
    ".aider*",
    ".continue*",
    ".windsurf*",
    ".codeium",
    ".copilot*",
    ".cline*",
    ".roo",
    ".roo-*",
    ".roomodes",
    ".roorules*",
    ".kilocode*",
    ".kiro",
    ".amazonq",
    ".qwen",
    ".qodo",
    ".trae",
    ".augment*",
    ".junie",
    ".goose*",
    ".opencode*",
    ".crush*",
    ".factory",
    ".amp",
    ".warp",
    ".zencoder",
    ".openhands*",
    ".agent",
    ".agents",
    ".rules",
    ".rovodev",
    ".plandex*",
    ".sweep.yaml",
    ".coderabbit*",
    ".sourcery.yaml",
    ".devin",
    ".tabnine",
    ".iflow",
    ".llm",
    /* environments of a folder, and tools that load them */
    ".env*",
    ".direnv",
    ".devcontainer*",
    ".devenv*",
    ".mise*",
    ".rtx*",
    ".tool-versions",
    ".asdfrc",
    ".autoenv*",
    ".rvmrc",
    ".flox",
    ".hermit",
    ".proto",
    ".prototools",
    ".pkgx.y*",
    ".vagrant*",
    ".docker",
    ".dockercfg",
    ".kube",
    ".helm",
    ".terraform*",
    ".pulumi",
    ".aws",
    ".azure",
    ".gcloud",
    ".boto",
    ".ansible*",
    /* shells and sessions */
    ".profile*",
    ".bashrc*",
    ".bash_*",
    ".bash.bashrc",
    ".zsh*",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".zprezto*",
    ".oh-my-zsh",
    ".p10k.zsh",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login*",
    ".logout",
    ".shrc",
    ".shinit",
    ".yashrc",
    ".yash_profile",
    ".xonshrc",
    ".inputrc",
    ".editrc",
    ".xinitrc",
    ".xserverrc",
    ".xsession*",
    ".xprofile",
    ".xresources",
    ".xdefaults",
    ".pam_environment",
    ".screenrc",
    ".tmux*",
    ".lesskey",
    ".lessfilter",
    ".config",
    ".local",
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".netrc",
    ".curlrc",
    ".wgetrc",
    ".rhosts",
    ".shosts",
    ".k5login",
    ".forward",
    ".procmailrc",
    ".mailcap",
    ".mailrc",
    ".muttrc",
    ".htaccess",
    ".htpasswd",
    ".user.ini",
    /* package managers and build tools: commands that they run, sources that they trust */
    ".npmrc",
    ".npm",
    ".yarn",
    ".yarnrc*",
    ".pnp.*",
    ".pnpmfile*",
    ".pnpmrc",
    ".bunfig.toml",
    ".volta",
    ".bundle",
    ".gem",
    ".gemrc",
    ".pip",
    ".pypirc",
    ".condarc",
    ".venv",
    ".eggs",
    ".pdm.toml",
    ".pdm-python",
    ".pdm-build",
    ".cargo",
    ".rustup",
    ".mvn",
    ".m2",
    ".gradle",
    ".sbt*",
    ".jvmopts",
    ".mill-*",
    ".ant",
    ".antrc",
    ".bazelrc",
    ".bazeliskrc",
    ".buckconfig*",
    ".pants.rc",
    ".composer",
    ".cpan*",
    ".luarocks",
    ".opam",
    ".stack",
    ".cabal",
    ".lein",
    ".clojure",
    ".mix",
    ".hex",
    ".pants.d",
    ".xmake",
    ".conan*",
    ".vcpkg*",
    /* interpreters and debuggers, which read these files in their start folder */
    ".gdbinit",
    ".gdbearlyinit",
    ".lldbinit*",
    ".radare2rc",
    ".rizinrc",
    ".valgrindrc",
    ".perldb",
    ".proverc",
    ".pdbrc*",
    ".pythonrc*",
    ".ipython",
    ".jupyter",
    ".irbrc",
    ".pryrc",
    ".byebugrc",
    ".rdebugrc",
    ".ghci",
    ".ghc",
    ".iex.exs",
    ".erlang",
    ".rprofile",
    ".renviron",
    ".rdata",
    ".octaverc",
    ".julia*",
    ".gnuplot",
    ".sqliterc",
    ".psqlrc",
    ".my.cnf",
    ".mongorc.js",
    ".mongoshrc.js",
    ".sbclrc",
    ".guile",
    ".racketrc",
    ".maxima",
    ".maxima-init*",
    ".storybook",
};

/* Files that are copied to become one of the above; no program obeys them themselves. */
static const char *const harmless[] = {".env.example", ".env.sample", ".env.template"};

enum {
    N_REFUSED = sizeof refused / sizeof *refused,
    N_HARMLESS = sizeof harmless / sizeof *harmless
};

const char *ah_fs_refused_name(size_t i)
{
    return i < N_REFUSED ? refused[i] : NULL;
}

/* True for characters that some disks ignore when they compare names: HFS+, and ext4 and f2fs
 * without letter case. */
static bool is_ignored(uint32_t c)
{
    return c == 0xad || c == 0x34f || c == 0x61c || (c >= 0x115f && c <= 0x1160) ||
           (c >= 0x17b4 && c <= 0x17b5) || (c >= 0x180b && c <= 0x180f) ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x3164 || (c >= 0xfe00 && c <= 0xfe0f) ||
           c == 0xfeff || c == 0xffa0 || (c >= 0x1bca0 && c <= 0x1bca3) ||
           (c >= 0x1d173 && c <= 0x1d17a) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* Returns the character at *p, well-formed UTF-8, and moves past it. */
static uint32_t take_char(const char **p)
{
    unsigned char first = (unsigned char)*(*p)++;
    uint32_t c = first < 0x80   ? first
                 : first < 0xe0 ? first & 0x1f
                 : first < 0xf0 ? first & 0xf
                                : first & 7;

    while (((unsigned char)**p & 0xc0) == 0x80)
        c = c << 6 | ((unsigned char)*(*p)++ & 0x3f);
    return c;
}

/* Returns the name as a disk may see it: ASCII letters in lower case (also the two signs that
 * fold to one), without ignored characters, and without the dots and blanks at the end and the
 * stream after a `:`, which Windows drops. At most as long as the name; NUL-terminated. */
static void fold_name(ah_slice name, char out[AH_FS_MAX_NAME + 1])
{
    char in[AH_FS_MAX_NAME + 1];
    const char *p = in;
    size_t n = 0;

    memcpy(in, name.p, name.n); /* NUL-terminated; the name of a checked path */
    in[name.n] = '\0';
    while (*p && *p != ':') {
        uint32_t c = take_char(&p);

        if (c >= 'A' && c <= 'Z')
            c += 32;
        c = c == 0x17f ? 's' : c == 0x212a ? 'k' : c;
        if (c < 0x80)
            out[n++] = (char)c;
        else if (!is_ignored(c))
            out[n++] = '?'; /* no listed name has this character */
    }
    while (n && (out[n - 1] == '.' || out[n - 1] == ' '))
        n--;
    out[n] = '\0';
}

/* True if the folded name is of this kind. */
static bool is_of(const char *name, const char *kind)
{
    while (*kind && *kind == *name) {
        kind++;
        name++;
    }
    return *kind == '*' || (*kind == '\0' && *name == '\0');
}

static const char *kind_of(const char *name)
{
    for (size_t i = 0; i < N_HARMLESS; i++)
        if (strcmp(name, harmless[i]) == 0)
            return NULL;
    for (size_t i = 0; i < N_REFUSED; i++)
        if (is_of(name, refused[i]))
            return refused[i];
    return NULL;
}

bool ah_fs_is_refused(ah_slice name)
{
    char folded[AH_FS_MAX_NAME + 1];

    for (size_t i = 0; i < N_REFUSED; i++)
        if (ah_slice_is(name, refused[i]))
            return true;
    if (!ah_fs_name_ok(name))
        return false;
    fold_name(name, folded);
    return kind_of(folded) != NULL;
}

/* True if options.allow has the name or its whole kind. */
static bool is_allowed(const ah_fs *fs, const char *folded, const char *kind)
{
    ah_slice rest = ah_text_slice(fs->o.allow);
    char name[AH_FS_MAX_NAME + 1];

    while (rest.n) {
        const char *end = memchr(rest.p, '/', rest.n);
        ah_slice one = {rest.p, (size_t)(end - rest.p)};

        if (ah_slice_is(one, kind))
            return true;
        fold_name(one, name);
        if (strcmp(name, folded) == 0)
            return true;
        rest = (ah_slice){end + 1, rest.n - one.n - 1};
    }
    return false;
}

bool ah_fs_may_write(const ah_fs *fs, const char *kind)
{
    return is_allowed(fs, kind, kind);
}

/* Returns the first name of *rest, and moves *rest past it and its '/'. */
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
    char name[AH_FS_MAX_NAME + 1];
    const char *kind;

    while (path.n) {
        fold_name(take_name(&path), name);
        if ((kind = kind_of(name)) && !is_allowed(fs, name, kind))
            return kind;
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
    return AH_OK;
}

/* Returns the part of an absolute path after `root`; .p NULL if the path is not below it. */
static ah_slice below(ah_slice root, ah_slice given)
{
    while (root.n && root.p[root.n - 1] == '/')
        root.n--;
    if (!root.n || root.p[0] != '/' || given.n < root.n || memcmp(given.p, root.p, root.n) != 0 ||
        (given.n > root.n && given.p[root.n] != '/'))
        return (ah_slice){NULL, 0};
    return (ah_slice){given.p + root.n, given.n - root.n};
}

static ah_status refuse_absolute(const ah_fs *fs, ah_slice given, ah_err *err)
{
    ah_slice meant = {NULL, 0};

    while (fs->below)
        fs = fs->below;
    for (size_t i = 0; i < 2 && !meant.p; i++)
        meant = below(ah_text_slice(fs->folder[i]), given);
    if (!meant.p)
        meant = given;
    while (meant.n && meant.p[0] == '/')
        meant = (ah_slice){meant.p + 1, meant.n - 1};
    if (!meant.n)
        meant = ah_slice_of(".");
    return ah_fs_err(err, AH_FS_BAD_PATH,
                     "'%.*s' is an absolute path; paths are relative to the root: write '%.*s'",
                     AH_FMT(given), AH_FMT(meant));
}

/* Goes one level up; false if that leaves the root. */
static bool go_up(ah_fs_path *p)
{
    if (p->n == 0)
        return false;
    p->n = ah_fs_parent(ah_fs_path_slice(p)).n;
    p->s[p->n] = '\0';
    return true;
}

static ah_status add_name(const ah_fs *fs, ah_slice given, ah_slice name, int *depth,
                          ah_fs_path *out, ah_err *err)
{
    if (ah_slice_is(name, "..")) {
        --*depth;
        return go_up(out)
                   ? AH_OK
                   : ah_fs_err(err, AH_FS_BAD_PATH,
                               "'%.*s' leads out of the root; paths stay under it", AH_FMT(given));
    }
    if (name.n > AH_FS_MAX_NAME)
        return ah_fs_err(err, AH_FS_BAD_PATH,
                         "a name in a path has at most %d bytes, not %zu: '%.*s'", AH_FS_MAX_NAME,
                         name.n, AH_FMT(given));
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

    if (st == AH_OK && rest.n && rest.p[0] == '/')
        st = refuse_absolute(fs, given, err);
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
        return ah_fs_err(err, AH_FS_READ_ONLY, "cannot change '%s': the filesystem is read-only",
                         out->s);
    if (out->n == 0)
        return ah_fs_err(err, AH_FS_BAD_PATH,
                         "the path is empty: name a file or folder under the root");
    if (fs->guarded && (name = find_refused(fs, ah_fs_path_slice(out))))
        return ah_fs_err(
            err, AH_FS_REFUSED,
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

/* `dir` may be in `out`. */
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
