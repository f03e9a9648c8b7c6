/* Entries that files .gitignore leave out, as gitignore(5) says. The rules of a folder are loaded
 * when its first entry is asked about, and dropped when the walk has left it. Names are compared as
 * bytes and without recursion, going back to the last star only, so no rule costs more than the
 * product of its length and the path's. */
#include "state/fs_store.h"

enum {
    MOST = 64 << 10,      /* bytes of a file */
    MOST_ALL = 256 << 10, /* bytes of all files that are loaded at once */
    MAX_RULE = 1024,      /* bytes of a rule; a longer one is not obeyed */
    STEP = 16,            /* comparisons of a character in a step */
    LOOK = 1 << 12        /* comparisons between two looks at the work */
};

#define RULES   ".gitignore"
#define EXCLUDE ".git/info/exclude"

/* A rule's pattern has NUL for each separator. */
typedef struct rule {
    uint32_t at, n; /* its place in the text */
    bool negated;   /* ! */
    bool folders;   /* only these */
    bool anchored;  /* a path from the folder of the file; otherwise a name */
} rule;

/* A file that is loaded. */
struct ah_fs_rules {
    size_t folder; /* bytes of its folder's path */
    const char *name;
    ah_buf text;
    rule *rule;
    size_t n, cap;
    size_t item; /* its place in the list of files that have left something out, from 1; 0: none */
};

/* -- sets of characters ------------------------------------------------------------------------ */

static bool in_class(ah_slice name, unsigned char c, bool *known)
{
    static const struct {
        const char *name, *ranges;
    } class[] = {
        {"alnum", "09AZaz"},   {"alpha", "AZaz"},   {"blank", "  \t\t"}, {"cntrl", "\1\37\177\177"},
        {"digit", "09"},       {"graph", "!~"},     {"lower", "az"},     {"print", " ~"},
        {"punct", "!/:@[`{~"}, {"space", "  \t\r"}, {"upper", "AZ"},     {"xdigit", "09AFaf"}};

    for (size_t i = 0; i < sizeof class / sizeof *class; i++) {
        if (!ah_slice_is(name, class[i].name))
            continue;
        for (const char *r = class[i].ranges; *r; r += 2)
            if (c >= (unsigned char)r[0] && c <= (unsigned char)r[1])
                return true;
        return false;
    }
    *known = false;
    return false;
}

/* Returns the character at *p, which may be escaped, and moves past it. *p is NULL if there is
 * none. */
static unsigned char take_char(const char **p, const char *end)
{
    const char *at = *p;

    at += *at == '\\';
    *p = at < end ? at + 1 : NULL;
    return at < end ? (unsigned char)*at : 0;
}

/* Returns the place behind the character, range or class at p; NULL: it is malformed. */
static const char *take_member(const char *p, const char *end, unsigned char c, bool *found)
{
    const char *close;
    unsigned char low, high;
    bool known = true;

    if (end - p > 2 && p[0] == '[' && p[1] == ':') {
        if (!(close = memchr(p + 2, ']', (size_t)(end - p - 2))))
            return NULL;
        if (close > p + 2 && close[-1] == ':') {
            *found |= in_class((ah_slice){p + 2, (size_t)(close - p - 3)}, c, &known);
            return known ? close + 1 : NULL;
        }
    }
    low = high = take_char(&p, end);
    if (p && end - p > 1 && p[0] == '-' && p[1] != ']') {
        p++;
        high = take_char(&p, end);
    }
    *found |= c == low || (low <= c && c <= high);
    return p;
}

/* Moves *p past the set that begins there; NULL: it has no end, or is malformed. */
static bool in_set(const char **p, const char *end, unsigned char c)
{
    const char *at = *p + 1, *first;
    bool inverse = at < end && (*at == '!' || *at == '^'), found = false;

    at += inverse;
    for (first = at; at && at < end && (at == first || *at != ']');)
        at = take_member(at, end, c, &found);
    *p = at && at < end ? at + 1 : NULL;
    return found != inverse;
}

/* -- matching ---------------------------------------------------------------------------------- */

/* True if the next character, `?` or set of the pattern matches c. Moves past it. */
static bool match_char(const char **p, const char *end, unsigned char c)
{
    switch (**p) {
    case '?':
        ++*p;
        return true;
    case '[':
        return in_set(p, end, c);
    default:
        return take_char(p, end) == c;
    }
}

static bool match_name(ah_slice pattern, ah_slice name, size_t *steps)
{
    const char *p = pattern.p, *p_end = p + pattern.n, *s = name.p, *s_end = s + name.n;
    const char *star = NULL, *from = NULL, *at;
    bool same;

    while (s < s_end) {
        if (p < p_end && *p == '*') {
            star = ++p;
            from = s;
            continue;
        }
        at = p;
        same = p < p_end && match_char(&p, p_end, (unsigned char)*s);
        *steps += 1 + (size_t)(p - at);
        if (!same && !star)
            return false;
        s = same ? s + 1 : ++from;
        p = same ? p : star;
    }
    while (p < p_end && *p == '*')
        p++;
    return p == p_end;
}

/* Takes the first name, and its separator. */
static ah_slice take_name(ah_slice *path, char separator)
{
    const char *end = memchr(path->p, separator, path->n);
    ah_slice name = {path->p, end ? (size_t)(end - path->p) : path->n};
    size_t used = name.n + (end != NULL);

    path->p += used;
    path->n -= used;
    return name;
}

/* True for `**`, which stands for any folders; at the end, for everything in the folder. */
static bool is_any(ah_slice name)
{
    size_t n = 0;

    while (n < name.n && name.p[n] == '*')
        n++;
    return n >= 2 && n == name.n;
}

static bool match_path(ah_slice pattern, ah_slice path, size_t *steps)
{
    ah_slice star = {NULL, 0}, from = {NULL, 0}, want;

    while (path.n) {
        want = pattern.n ? take_name(&pattern, '\0') : (ah_slice){NULL, 0};
        if (is_any(want)) {
            star = pattern;
            from = path;
            if (!pattern.n)
                return true;
        } else if (!want.n || !match_name(want, take_name(&path, '/'), steps)) {
            if (!star.n)
                return false;
            take_name(&from, '/');
            pattern = star;
            path = from;
        }
        ++*steps;
    }
    return pattern.n == 0;
}

/* -- rules ------------------------------------------------------------------------------------- */

/* Returns the length without the spaces at the end, unless they are escaped. */
static size_t trimmed(const char *s, size_t n)
{
    size_t end = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n)
            i++;
        else if (s[i] == ' ')
            continue;
        end = i + 1;
    }
    return end;
}

/* Returns the length of the character, escaped character or set at p; 0: it is malformed. */
static size_t part_length(const char *p, const char *end)
{
    const char *behind = p;

    if (*p == '[')
        in_set(&behind, end, 0);
    else
        take_char(&behind, end);
    return behind ? (size_t)(behind - p) : 0;
}

/* Replaces the separators by NUL. Returns the new length; 0: the pattern matches nothing. */
static size_t separate(char *s, size_t n)
{
    size_t to = 0, used;

    for (size_t i = 0; i < n; i += used) {
        if ((used = part_length(s + i, s + n)) == 0)
            return 0;
        if (s[i + used - 1] == '/') {
            if (to == 0 || s[to - 1] == '\0')
                return 0;
            s[to++] = '\0';
        } else {
            memmove(s + to, s + i, used);
            to += used;
        }
    }
    return to && s[to - 1] != '\0' ? to : 0;
}

/* Reads a line, which it changes. Returns false if it has no rule that is obeyed. */
static bool read_rule(struct ah_fs_rules *f, char *s, size_t n, rule *r)
{
    char *end;

    n -= n && s[n - 1] == '\r';
    if (n == 0 || *s == '#' || memchr(s, '\0', n))
        return false;
    end = s + trimmed(s, n);
    r->negated = s < end && *s == '!';
    s += r->negated;
    r->folders = s < end && end[-1] == '/';
    end -= r->folders;
    r->anchored = memchr(s, '/', (size_t)(end - s)) != NULL;
    s += s < end && *s == '/';
    if (end - s > MAX_RULE)
        return false;
    r->at = (uint32_t)(s - f->text.data);
    r->n = (uint32_t)separate(s, (size_t)(end - s));
    return r->n > 0;
}

static ah_status read_rules(struct ah_fs_rules *f, ah_err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of some editors */
    char *s = f->text.data, *end = s + f->text.len, *stop;
    rule *all;

    s += f->text.len >= 3 && memcmp(s, mark, 3) == 0 ? 3 : 0;
    for (; s < end; s = stop + 1) {
        rule r;

        if (!(stop = memchr(s, '\n', (size_t)(end - s))))
            stop = end;
        if (!read_rule(f, s, (size_t)(stop - s), &r))
            continue;
        if (!(all = ah_grow(f->text.mem, f->rule, &f->cap, f->n + 1, sizeof r)))
            return ah_err_nomem(err);
        f->rule = all;
        f->rule[f->n++] = r;
    }
    return AH_OK;
}

static void clear_rules(ah_fs_ignore *g, struct ah_fs_rules *f)
{
    g->bytes -= f->text.len;
    ah_free(f->text.mem, f->rule);
    ah_buf_clear(&f->text);
}

/* -- files of rules ---------------------------------------------------------------------------- */

/* Adds the file to the list, with the number of entries that it has left out so far. */
static ah_status report(ah_fs_ignore *g, ah_slice folder, const char *name, size_t n, ah_err *err)
{
    ah_fs_item item = {.kind = AH_FS_FILE, .line = n};
    ah_fs_path p;

    if (ah_fs_join(folder, ah_slice_of(name), &p) &&
        ah_fs_items_add(g->ignored, ah_fs_path_slice(&p), &item) != AH_OK)
        return ah_err_nomem(err);
    return AH_OK;
}

/* Reads the file. *found: false if there is none that can be read; it then has no text. */
static ah_status read_file(ah_fs_ignore *g, const char *name, ah_buf *text, bool *found,
                           ah_err *err)
{
    ah_slice folder = ah_fs_path_slice(&g->at);
    ah_fs_path p;
    ah_fs_info info;
    ah_status st;

    *found = false;
    if (!ah_fs_join(folder, ah_slice_of(name), &p))
        return AH_OK;
    st = g->fs->store->read(g->fs, ah_fs_path_slice(&p), 0, MOST, text, &info, err);
    if (!ah_buf_ok(text))
        return ah_err_nomem(err);
    if (st == AH_TOOL_VALIDATION || st == AH_INTERNAL)
        return AH_OK;
    if (st == AH_OK && (info.size > text->len || text->len > MOST_ALL - g->bytes))
        return report(g, folder, name, 0, err);
    *found = st == AH_OK;
    return st;
}

/* Loads a file of the folder g->at. */
static ah_status load(ah_fs_ignore *g, const char *name, ah_err *err)
{
    struct ah_fs_rules f = {.folder = g->at.n, .name = name}, *all;
    bool found;
    ah_status st;

    ah_buf_init(&f.text, g->fs->mem, MOST);
    st = read_file(g, name, &f.text, &found, err);
    if (!found) {
        ah_buf_clear(&f.text);
        return st;
    }
    if (!(all = ah_grow(g->fs->mem, g->file, &g->cap, g->n + 1, sizeof f))) {
        ah_buf_clear(&f.text);
        return ah_err_nomem(err);
    }
    g->file = all;
    g->file[g->n] = f;
    g->bytes += f.text.len;
    return read_rules(&g->file[g->n++], err);
}

/* Drops the files of folders that do not contain `folder`. */
static void leave(ah_fs_ignore *g, ah_slice folder)
{
    ah_slice at = ah_fs_path_slice(&g->at);

    while (!ah_slice_eq(at, folder) && !ah_fs_within(folder, at))
        at = ah_fs_parent(at);
    g->at.n = at.n;
    g->at.s[at.n] = '\0';
    while (g->n && g->file[g->n - 1].folder > at.n)
        clear_rules(g, &g->file[--g->n]);
}

/* Loads the files of the folder and of those above it, unless they are loaded. */
static ah_status enter(ah_fs_ignore *g, ah_slice folder, ah_err *err)
{
    ah_status st = AH_OK;

    if (!g->begun) {
        g->begun = true;
        st = load(g, EXCLUDE, err);
        st = st == AH_OK ? load(g, RULES, err) : st;
    }
    leave(g, folder);
    while (st == AH_OK && g->at.n < folder.n) {
        size_t from = g->at.n + (g->at.n > 0);
        ah_slice rest = {folder.p + from, folder.n - from};

        if (!ah_fs_join(ah_fs_path_slice(&g->at), take_name(&rest, '/'), &g->at))
            break;
        st = load(g, RULES, err);
    }
    return st;
}

/* -- asking ------------------------------------------------------------------------------------ */

/* Counts the comparisons. Returns false once the work has ended. */
static bool spend(ah_fs_ignore *g, size_t steps, ah_work *work)
{
    g->steps += steps;
    if (g->steps < LOOK)
        return true;
    steps = g->steps / STEP;
    g->steps = 0;
    return ah_work_do(work, steps);
}

/* Returns the last rule that matches the path, which ends with `name`; NULL: none does. */
static const rule *last_match(ah_fs_ignore *g, const struct ah_fs_rules *f, ah_slice path,
                              bool folder, ah_work *work)
{
    size_t skip = f->folder + (f->folder > 0);
    ah_slice below = {path.p + skip, path.n - skip}, name = ah_fs_name(path);

    for (size_t i = f->n; i > 0; i--) {
        const rule *r = &f->rule[i - 1];
        ah_slice pattern = {f->text.data + r->at, r->n};
        size_t steps = 1;
        bool yes = (folder || !r->folders) && (r->anchored ? match_path(pattern, below, &steps)
                                                           : match_name(pattern, name, &steps));

        if (yes)
            return r;
        if (!spend(g, steps, work))
            break;
    }
    return NULL;
}

static ah_status count(ah_fs_ignore *g, struct ah_fs_rules *f, ah_err *err)
{
    ah_status st;

    if (f->item) {
        g->ignored->item[f->item - 1].line++;
        return AH_OK;
    }
    st = report(g, (ah_slice){g->at.s, f->folder}, f->name, 1, err);
    if (st == AH_OK && !g->ignored->truncated)
        f->item = g->ignored->n;
    return st;
}

ah_status ah_fs_ignore_ask(ah_fs_ignore *g, ah_slice path, bool folder, ah_work *work, bool *yes,
                           ah_err *err)
{
    ah_status st = AH_OK;

    *yes = g->ignored && ah_slice_is(ah_fs_name(path), ".git");
    if (!g->ignored || *yes)
        return AH_OK;
    st = enter(g, ah_fs_parent(path), err);
    for (size_t i = g->n; st == AH_OK && i > 0; i--) {
        const rule *r = last_match(g, &g->file[i - 1], path, folder, work);

        if (r) {
            *yes = !r->negated;
            return *yes ? count(g, &g->file[i - 1], err) : AH_OK;
        }
    }
    return st;
}

void ah_fs_ignore_clear(ah_fs_ignore *g)
{
    while (g->n)
        clear_rules(g, &g->file[--g->n]);
    ah_free(g->fs->mem, g->file);
    g->file = NULL;
}
