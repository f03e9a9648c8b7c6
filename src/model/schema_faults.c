/* The faults of a value as they are kept, and the words shared by faults and by the
 * refusals of schemas. It decides nothing: which fault there is, schema_check.c says. */
#include "model/schema_faults.h"

#include "model/schema_program.h"

enum {
    MAX_FOUND = 60, /* bytes of a value or name in a message */
    FAULT_ROOM = AH_MAX_FAULTS * (MAX_POINTER + MAX_MESSAGE + 8)
};

size_t ah_part_begin(ah_buf *b, size_t max)
{
    b->max = b->len + max;
    return b->len;
}

ah_slice ah_part_end(ah_buf *b, size_t start)
{
    if (b->status == AH_BUDGET) {
        ah_buf_reset(b, start + ah_utf8_cut(b->data + start, b->len - start));
        b->max = b->len + 3;
        ah_buf_str(b, "...");
    }
    return (ah_slice){(b->data ? b->data : "") + start, b->len - start};
}

static void put_pointer_key(ah_buf *b, ah_slice key)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~')
            ah_buf_str(b, "~0");
        else if (key.p[i] == '/')
            ah_buf_str(b, "~1");
        else
            ah_buf_char(b, key.p[i]);
    }
}

void ah_words_pointer(ah_buf *b, const place *at)
{
    ah_buf plain;

    if (!at)
        return;
    ah_words_pointer(b, at->up);
    ah_buf_char(b, '/');
    if (!at->key.p) {
        ah_buf_int(b, (int64_t)at->index);
        return;
    }
    if (!at->escaped) {
        put_pointer_key(b, at->key);
        return;
    }
    ah_buf_init(&plain, b->mem, at->key.n);
    ah_json_unescape(at->key, &plain);
    put_pointer_key(b, ah_buf_slice(&plain));
    ah_buf_clear(&plain);
}

void ah_words_found(ah_buf *b, ah_slice text)
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

void ah_words_near(ah_buf *b, const ah_near *near)
{
    if (!near->best.p)
        return;
    ah_buf_str(b, "; did you mean '");
    ah_words_found(b, near->best);
    ah_buf_str(b, "'?");
}

void ah_words_types(ah_buf *b, unsigned types)
{
    unsigned left = types & T_NUMBER ? types & ~(unsigned)T_INTEGER : types;
    bool any = false;

    for (size_t i = 0; i < TYPE_NAMES; i++) {
        unsigned bit = ah_schema_types[i].types & T_NUMBER ? T_NUMBER : ah_schema_types[i].types;

        if (!(left & bit))
            continue;
        left &= ~bit;
        if (any)
            ah_buf_str(b, left & ~(unsigned)T_HUGE ? ", " : " or ");
        ah_buf_str(b, ah_schema_types[i].words);
        any = true;
    }
}

ah_buf *ah_fault_begin(ah_faults *f, const place *at, const char *rule)
{
    ah_fault *fault = f->item + f->n;
    size_t start;

    f->total++;
    if (f->n == AH_MAX_FAULTS)
        return NULL;
    f->texts.max = FAULT_ROOM;
    if (f->n == 0 && !ah_buf_room(&f->texts, FAULT_ROOM)) /* all at once: the slices must not move */
        return NULL;
    start = ah_part_begin(&f->texts, MAX_POINTER);
    ah_words_pointer(&f->texts, at);
    fault->pointer = ah_part_end(&f->texts, start);
    fault->rule = ah_slice_of(rule);
    fault->message.n = ah_part_begin(&f->texts, MAX_MESSAGE); /* its start, until ah_fault_end */
    return &f->texts;
}

void ah_fault_end(ah_faults *f)
{
    ah_fault *fault = f->item + f->n++;

    fault->message = ah_part_end(&f->texts, fault->message.n);
}

void ah_faults_init(ah_faults *f, const ah_mem *mem)
{
    *f = (ah_faults){.n = 0};
    ah_buf_init(&f->texts, mem, FAULT_ROOM);
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
        ah_buf_put(out, f->item[i].pointer);
        if (f->item[i].pointer.n)
            ah_buf_str(out, ": ");
        ah_buf_put(out, f->item[i].message);
    }
    if (f->total > f->n)
        ah_buf_fmt(out, "; ... and %zu more", f->total - f->n);
}
