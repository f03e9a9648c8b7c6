/* The words of schemas that refusals and faults share: values and names cut to a line,
 * lists of types, JSON pointers, and the faults themselves. Every part of a message has
 * a maximum; what does not fit is cut at a character and marked. */
#include "model/schema_program.h"

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

void schema_put_found(ah_buf *b, ah_slice text)
{
    char line[MAX_FOUND + 4];
    size_t n = text.n > MAX_FOUND ? ah_utf8_cut(text.p, MAX_FOUND) : text.n;

    for (size_t i = 0; i < n; i++)
        line[i] = (unsigned char)text.p[i] < ' ' ? ' ' : text.p[i];
    if (n < text.n) {
        memcpy(line + n, "...\"", 4);
        n += text.p[0] == '"' ? 4 : 3;
    }
    ah_buf_add(b, line, n);
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

/* Names in it may hold anything: what would break the line is written as JSON writes it. */
static void put_pointer(ah_buf *out, ah_slice pointer)
{
    for (size_t i = 0; i < pointer.n; i++) {
        if ((unsigned char)pointer.p[i] < ' ' || pointer.p[i] == 0x7f)
            ah_buf_fmt(out, "\\u%04x", pointer.p[i]);
        else
            ah_buf_char(out, pointer.p[i]);
    }
}

void ah_faults_print(const ah_faults *f, ah_buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        if (i)
            ah_buf_str(out, "; ");
        put_pointer(out, f->item[i].pointer);
        if (f->item[i].pointer.n)
            ah_buf_str(out, ": ");
        ah_buf_put(out, f->item[i].message);
    }
    if (f->total > f->n)
        ah_buf_fmt(out, "; ... and %zu more", f->total - f->n);
    ah_buf_cut_short(out);
}
