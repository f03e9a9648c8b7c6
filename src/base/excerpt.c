/* Single passes: repair, remove secrets, remove tags, remove controls, remove secrets once more
 * (entities may have spelled one), cut. Each pass but the first works in place and never
 * lengthens the text. It is not an HTML parser: styles and scripts are not interpreted. */
#include "base/excerpt.h"

#include <ctype.h>
#include <strings.h>

#include "base/json_chars.h"

enum { MOST_READ = 256 << 10, PAGE_WITHIN = 1024, MOST_ENTITY = 12 };

static bool begins(ah_slice s, const char *word)
{
    size_t n = strlen(word);

    return s.n >= n && strncasecmp(s.p, word, n) == 0;
}

static ah_slice from(ah_slice s, size_t at)
{
    return (ah_slice){s.p + at, s.n - at};
}

/* Skips a byte order mark, which some servers send. */
static ah_slice past_mark(ah_slice s)
{
    return begins(s, "\xef\xbb\xbf") ? from(s, 3) : s;
}

/* -- pages ------------------------------------------------------------------------------------- */

bool ah_begins_page(ah_slice text)
{
    text = ah_slice_trim(past_mark(text));
    return text.n && text.p[0] == '<';
}

/* False for JSON that quotes a page, and for text with a "less than" sign. */
static bool holds_page(ah_slice text)
{
    static const char *const tags[] = {"<!doctype", "<html", "<head", "<body", "<title", "<?xml"};
    size_t most;

    text = ah_slice_trim(past_mark(text));
    if (text.n && strchr("{[", text.p[0]))
        return false;
    if (text.n > 2 && text.p[0] == '<' && (isalpha((unsigned char)text.p[1]) || text.p[1] == '!'))
        return true;
    most = text.n < PAGE_WITHIN ? text.n : PAGE_WITHIN;
    for (size_t i = 0; i < most; i++)
        for (size_t k = 0; text.p[i] == '<' && k < sizeof tags / sizeof *tags; k++)
            if (begins(from(text, i), tags[k]))
                return true;
    return false;
}

/* Returns the length of the tag, comment or declaration at the front; quoted values are skipped. */
static size_t tag_len(ah_slice s)
{
    char quote = 0;

    if (begins(s, "<!--")) {
        const char *end = ah_slice_find(from(s, 4), (ah_slice)AH_LIT("-->"));

        return end ? (size_t)(end - s.p) + 3 : s.n;
    }
    for (size_t i = 1; i < s.n; i++) {
        if (quote)
            quote = s.p[i] == quote ? 0 : quote;
        else if (s.p[i] == '>')
            return i + 1;
        else if (s.p[i] == '"' || s.p[i] == '\'')
            quote = s.p[i];
    }
    return s.n;
}

static bool is_tag(ah_slice s, const char *name)
{
    size_t n = strlen(name);

    return s.n > n + 1 && s.p[0] == '<' && begins(from(s, 1), name) &&
           !isalnum((unsigned char)s.p[n + 1]);
}

/* Returns the length of the element at the front if its content is invisible; otherwise 0. */
static size_t unread_len(ah_slice s)
{
    static const char *const names[] = {"script", "style", "noscript", "template", "svg"};
    const char *name = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !name; i++)
        name = is_tag(s, names[i]) ? names[i] : NULL;
    for (size_t i = 1; name && i + 1 < s.n; i++)
        if (s.p[i] == '<' && s.p[i + 1] == '/' && begins(from(s, i + 2), name))
            return i + tag_len(from(s, i));
    return name ? s.n : 0;
}

/* Decodes an entity at the front that stands for an ASCII character; returns its length, or 0 if
 * there is none. */
static size_t entity_len(ah_slice s, char *out)
{
    static const struct {
        const char *name;
        char is;
    } named[] = {{"&amp;", '&'},  {"&lt;", '<'},    {"&gt;", '>'},
                 {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", ' '}};
    bool hex = begins(s, "&#x");
    unsigned long c = 0;
    size_t i = hex ? 3 : 2;

    for (size_t k = 0; k < sizeof named / sizeof *named; k++)
        if (begins(s, named[k].name)) {
            *out = named[k].is;
            return strlen(named[k].name);
        }
    if (!begins(s, "&#"))
        return 0;
    for (; i < s.n && i < MOST_ENTITY && isxdigit((unsigned char)s.p[i]); i++)
        c = c * (hex ? 16 : 10) + (unsigned long)(isdigit((unsigned char)s.p[i])
                                                      ? s.p[i] - '0'
                                                      : (s.p[i] | 32) - 'a' + 10);
    if (i >= s.n || s.p[i] != ';' || c == 0 || c > 0x7e)
        return 0; /* beyond ASCII it stays as written */
    *out = (char)c;
    return i + 1;
}

static bool is_mark(ah_slice s)
{
    return s.p[0] == '<' && s.n > 1 && (isalpha((unsigned char)s.p[1]) || strchr("/!?", s.p[1]));
}

/* Reduces a page to its text, in place; a tag becomes a blank. *title is the length of the
 * beginning up to the end of the title. */
static size_t strip(char *p, size_t n, size_t *title)
{
    size_t to = 0;
    char c;

    *title = 0;
    for (size_t i = 0, k; i < n; i += k) {
        ah_slice rest = {p + i, n - i};

        if (begins(rest, "</title") && !*title)
            *title = to;
        k = unread_len(rest);
        if (k == 0 && is_mark(rest))
            k = tag_len(rest);
        if (k) {
            p[to++] = ' ';
        } else if ((k = entity_len(rest, &c))) {
            p[to++] = c;
        } else {
            p[to++] = p[i];
            k = 1;
        }
    }
    return to;
}

/* -- lines ------------------------------------------------------------------------------------- */

static bool is_within(const ah_slice *s, size_t i, unsigned char low, unsigned char high)
{
    return i < s->n && (unsigned char)s->p[i] >= low && (unsigned char)s->p[i] <= high;
}

/* Returns the length of a terminal sequence at the front: "ESC [ 31 m", "ESC ] title BEL" (or
 * ending with ESC and a backslash), ESC and a letter; otherwise 0. An unfinished one extends to
 * its limit. */
static size_t sequence_len(ah_slice s)
{
    size_t i = 2;

    if (s.n < 1 || s.p[0] != 0x1b)
        return 0;
    if (is_within(&s, 1, '[', '[')) {
        while (is_within(&s, i, 0x20, 0x3f))
            i++;
        return i + is_within(&s, i, 0x40, 0x7e);
    }
    if (!is_within(&s, 1, ']', ']'))
        return 1 + is_within(&s, 1, 0x20, 0x7e);
    while (i < s.n && s.p[i] != 0x07 && s.p[i] != 0x1b)
        i++;
    if (is_within(&s, i, 0x1b, 0x1b) && is_within(&s, i + 1, '\\', '\\'))
        return i + 2;
    return i + is_within(&s, i, 0x07, 0x07);
}

/* Makes one line, in place: a control becomes a blank, and a sequence is removed. */
static size_t flatten(char *p, size_t n)
{
    size_t to = 0;

    for (size_t i = 0, k; i < n; i += k) {
        k = sequence_len((ah_slice){p + i, n - i});
        if (!k) {
            p[to++] = p[i];
            k = 1;
        }
    }
    return ah_flatten(p, to);
}

/* Puts single blanks between words, as a page's line ends and indents mean nothing. */
static size_t tidy(char *p, size_t n)
{
    size_t to = 0;

    n = flatten(p, n);
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' || (to && p[to - 1] != ' '))
            p[to++] = p[i];
    return to && p[to - 1] == ' ' ? to - 1 : to;
}

static void put_cut(ah_buf *out, ah_slice s, size_t most)
{
    ah_buf_put(out, (ah_slice){s.p, s.n > most ? ah_utf8_cut(s.p, most) : s.n});
}

static void put_page(char *p, size_t n, const ah_secrets *secrets, ah_buf *out)
{
    size_t title, all = strip(p, n, &title);
    ah_slice head = {p, tidy(p, title)}, rest = {p + title, tidy(p + title, all - title)};
    bool again = rest.n >= head.n && memcmp(rest.p, head.p, head.n) == 0;
    ah_buf b;

    ah_buf_init(&b, out->mem, MOST_READ + 16);
    if (!again)
        ah_buf_put(&b, head);
    if (!again && rest.n)
        ah_buf_str(&b, ": ");
    ah_buf_put(&b, rest);
    if (!ah_buf_ok(&b)) {
        out->status = b.status;
    } else {
        b.len = b.len ? ah_secrets_redact(secrets, b.data, b.len) : 0;
        ah_buf_str(out, b.len ? "a web page: " : "a web page without text");
        put_cut(out, ah_buf_slice(&b), AH_EXCERPT_PAGE);
    }
    ah_buf_clear(&b);
}

void ah_excerpt(ah_slice text, const ah_secrets *secrets, size_t most, ah_buf *out)
{
    ah_buf b;

    text = past_mark(text);
    if (text.n > MOST_READ)
        text.n = MOST_READ;
    ah_buf_init(&b, out->mem, 4 * (size_t)MOST_READ); /* U+FFFD has three bytes */
    ah_utf8_repair(text, &b);
    if (!ah_buf_ok(&b)) {
        out->status = b.status;
    } else if (b.len) {
        b.len = ah_secrets_redact(secrets, b.data, b.len);
        if (holds_page(ah_buf_slice(&b)))
            put_page(b.data, b.len, secrets, out);
        else
            put_cut(out, (ah_slice){b.data, flatten(b.data, b.len)}, most);
    }
    ah_buf_clear(&b);
}
