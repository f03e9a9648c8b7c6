/* Text that refusals and faults share: values and names cut to a line, lists of types, JSON
 * pointers, and the faults themselves. Every part of a message has a limit; longer text is cut
 * between characters and marked. */
#include "schema/program.h"

enum { MAX_FOUND = 60 }; /* bytes of a value or name in a message */

static const struct {
    const char *name, *words;
    unsigned types;
} type_names[] = {
    {"string", "a string", T_STRING},
    {"number", "a number", T_NUMBER | T_INTEGER},
    {"integer", "an integer", T_INTEGER},
    {"boolean", "a boolean", T_BOOLEAN},
    {"array", "an array", T_ARRAY},
    {"object", "an object", T_OBJECT},
    {"null", "null", T_NULL},
};
enum { TYPE_NAMES = sizeof type_names / sizeof *type_names };

size_t schema_begin_part(ah_buf *b, size_t max)
{
    b->max = b->len + max;
    return b->len;
}

ah_slice schema_end_part(ah_buf *b, size_t start)
{
    if (!ah_buf_ok(b) && b->status == AH_BUDGET) {
        ah_buf_reset(b, start + ah_utf8_cut(b->data + start, b->len - start));
        b->max = b->len + 3;
        ah_buf_str(b, "...");
    }
    return (ah_slice){(b->data ? b->data : "") + start, b->len - start};
}

void schema_put_key(ah_buf *b, ah_slice key)
{
    ah_buf_char(b, '/');
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~')
            ah_buf_str(b, "~0");
        else if (key.p[i] == '/')
            ah_buf_str(b, "~1");
        else
            ah_buf_char(b, key.p[i]);
    }
}

/* Returns the length of a character that would break the line or change its direction; otherwise
 * 0. Beyond one byte these are U+0080 to U+009F, U+200E, U+200F, U+2028 to U+202E and U+2066 to
 * U+2069. */
static size_t odd_length(const char *p, size_t n)
{
    const unsigned char *c = (const unsigned char *)p;

    if (c[0] < ' ' || c[0] == 0x7f)
        return 1;
    if (n >= 2 && c[0] == 0xc2 && c[1] < 0xa0)
        return 2;
    if (n < 3 || c[0] != 0xe2)
        return 0;
    return (c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
                   (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)
               ? 3
               : 0;
}

/* Writes one line: such characters appear as JSON escapes. */
static void put_line(ah_buf *b, ah_slice text)
{
    size_t odd;

    for (size_t i = 0; i < text.n; i += odd ? odd : 1) {
        const unsigned char *c = (const unsigned char *)text.p + i;

        odd = odd_length(text.p + i, text.n - i);
        if (!odd)
            ah_buf_char(b, text.p[i]);
        else
            ah_buf_fmt(b, "\\u%04x",
                       odd == 1   ? c[0]
                       : odd == 2 ? (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu)
                                  : 0x2000u | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu));
    }
}

/* White space becomes blanks, for values written on several lines. */
void schema_put_found(ah_buf *b, ah_slice text)
{
    size_t n = text.n > MAX_FOUND ? ah_utf8_cut(text.p, MAX_FOUND) : text.n, start = 0;

    for (size_t i = 0; i <= n; i++) {
        if (i < n && !ah_is_blank(text.p[i]))
            continue;
        put_line(b, (ah_slice){text.p + start, i - start});
        if (i < n)
            ah_buf_char(b, ' ');
        start = i + 1;
    }
    if (n < text.n)
        ah_buf_str(b, text.p[0] == '"' ? "...\"" : "...");
}

void schema_put_near(ah_buf *b, const ah_near *near)
{
    if (!near->best.p)
        return;
    ah_buf_str(b, "; did you mean '");
    schema_put_found(b, near->best);
    ah_buf_str(b, "'?");
}

void schema_put_types(ah_buf *b, unsigned types)
{
    unsigned left = types & T_NUMBER ? types & ~(unsigned)T_INTEGER : types;
    bool any = false;

    for (size_t i = 0; i < TYPE_NAMES; i++) {
        unsigned bit = type_names[i].types & T_NUMBER ? T_NUMBER : type_names[i].types;

        if (!(left & bit))
            continue;
        left &= ~bit;
        if (any)
            ah_buf_str(b, left & ~(unsigned)T_HUGE ? ", " : " or ");
        ah_buf_str(b, type_names[i].words);
        any = true;
    }
}

unsigned schema_type_named(ah_json_token t)
{
    for (size_t i = 0; i < TYPE_NAMES; i++)
        if (ah_json_token_is(t, type_names[i].name))
            return type_names[i].types;
    return 0;
}

const char *schema_type_name(size_t i)
{
    return i < TYPE_NAMES ? type_names[i].name : NULL;
}

void ah_faults_init(ah_faults *f, const ah_mem *mem)
{
    *f = (ah_faults){.n = 0};
    ah_buf_init(&f->texts, mem, SCHEMA_FAULT_ROOM);
}

void ah_faults_clear(ah_faults *f)
{
    ah_buf_clear(&f->texts);
    f->n = f->total = 0;
}

void ah_faults_print(const ah_faults *f, ah_buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        if (i)
            ah_buf_str(out, "; ");
        put_line(out, f->item[i].pointer);
        if (f->item[i].pointer.n)
            ah_buf_str(out, ": ");
        ah_buf_put(out, f->item[i].message);
    }
    if (f->total > f->n)
        ah_buf_fmt(out, "; ... and %zu more", f->total - f->n);
    ah_buf_cut_short(out);
}
