/* The text comes from our own Lua, yet is checked as any other: a script has its share in it. */
#include "cli/mock_plan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BYTES = 256 << 20, /* of one answer, or of what goes out next of a stream */
    MAX_HEADERS = 32 << 10,
    MAX_KEY = 8
};

/* The rest of the input: lines, and the bytes of steps. */
typedef struct reader {
    const char *line, *behind;
    size_t left; /* of the bytes */
} reader;

/* "KEY VALUE" of a line. */
typedef struct field {
    char key[MAX_KEY + 1];
    const char *value;
    size_t n;
} field;

/* False at the empty line behind the last one, and where there is no such line. */
static bool next_field(reader *r, field *out)
{
    size_t n = strcspn(r->line, "\n"), key = strcspn(r->line, " \n");

    if (!n || key == n || key > MAX_KEY)
        return false;
    snprintf(out->key, sizeof out->key, "%.*s", (int)key, r->line);
    out->value = r->line + key + 1;
    out->n = n - key - 1;
    r->line += n + 1;
    return true;
}

static bool is(const field *f, const char *key)
{
    return strcmp(f->key, key) == 0;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static bool are_hex(const char *p)
{
    return isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1]);
}

/* Of two digits. */
static char byte_of(const char *p)
{
    return (char)(digit(p[0]) << 4 | digit(p[1]));
}

static void put_hex(const char *p, ah_bytes *out)
{
    for (; are_hex(p); p += 2)
        ah_bytes_char(out, byte_of(p));
}

/* A text and a NUL, which it does not hold itself. */
static bool put_text(const field *f, ah_bytes *out)
{
    size_t at = out->len;

    for (size_t i = 0; i < f->n; i++) {
        bool code = f->value[i] == '%' && are_hex(f->value + i + 1);

        ah_bytes_char(out, code ? byte_of(f->value + i + 1) : f->value[i]);
        i += code ? 2 : 0;
    }
    if (ah_bytes_ok(out) && out->len > at && memchr(out->data + at, '\0', out->len - at))
        return false;
    ah_bytes_char(out, '\0');
    return ah_bytes_ok(out);
}

/* Cut where it is longer than the room, between two characters. */
static void take_text(const field *f, char *out, size_t size)
{
    ah_bytes b;
    size_t n;

    ah_bytes_init(&b, MAX_BYTES);
    if (put_text(f, &b)) {
        n = b.len - 1 < size ? b.len - 1 : size - 1;
        while (n && n < b.len - 1 && ((unsigned char)b.data[n] & 0xc0) == 0x80)
            n--;
        snprintf(out, size, "%.*s", (int)n, b.data);
    }
    ah_bytes_clear(&b);
}

/* -- steps ------------------------------------------------------------------------------------ */

/* "WAIT CLOSE BYTES [HEX]". Takes the step's bytes from those behind the lines. False: there are not so many. */
static bool read_step(ah_plan *p, const field *f, reader *r)
{
    ah_plan_step *s = &p->step[p->n_steps];
    char *end;
    long long n;

    *s = (ah_plan_step){.at = p->bytes.len, .wait_ms = strtoll(f->value, &end, 10)};
    s->close = strtol(end, &end, 10) == 1;
    n = strtoll(end, &end, 10);
    if (n < 0 || (unsigned long long)n > r->left || *end != ' ')
        return false;
    ah_bytes_add(&p->bytes, r->behind, (size_t)n);
    r->behind += n;
    r->left -= (size_t)n;
    put_hex(end + 1, &p->bytes);
    s->n = p->bytes.len - s->at;
    p->n_steps++;
    return true;
}

static size_t count_steps(const char *lines, const char *end)
{
    size_t n = 0;

    for (; lines < end; lines += strcspn(lines, "\n") + 1)
        n += strncmp(lines, "step ", 5) == 0;
    return n;
}

/* -- the whole ---------------------------------------------------------------------------------- */

static bool take_number(ah_plan *p, const field *f)
{
    long long n = strtoll(f->value, NULL, 10);

    if (is(f, "n"))
        p->number = n;
    else if (is(f, "status"))
        p->status = (int)n;
    else if (is(f, "length"))
        p->length = n;
    else if (is(f, "wait"))
        p->wait_ms = n;
    else
        return false;
    return true;
}

static bool take_flag(ah_plan *p, const field *f)
{
    if (is(f, "drop"))
        p->drop = true;
    else if (is(f, "streamed"))
        p->streamed = true;
    else if (is(f, "more"))
        p->more = true;
    else if (is(f, "warn"))
        p->warn = true;
    else
        return false;
    return true;
}

/* `first`: the head too, which the further steps do not change. */
static bool take_field(ah_plan *p, const field *f, bool first, reader *r)
{
    if (is(f, "step"))
        return read_step(p, f, r);
    if (is(f, "say"))
        take_text(f, p->say, sizeof p->say);
    else if (is(f, "type") && first)
        take_text(f, p->type, sizeof p->type);
    else if ((is(f, "name") || is(f, "value")) && first)
        return put_text(f, &p->headers);
    else if (first || is(f, "more") || is(f, "warn"))
        return take_flag(p, f) || take_number(p, f);
    return true;
}

static bool read_plan(ah_plan *p, const char *text, bool first)
{
    const char *end = strstr(text, "\n\n");
    reader r = {.line = text};
    bool ok = true;
    field f;

    if (!end || !(p->step = calloc(count_steps(text, end) + 1, sizeof *p->step)))
        return false;
    r.behind = end + 2;
    r.left = strlen(r.behind);
    p->more = p->warn = false;
    *p->say = '\0';
    while (ok && r.line < end && next_field(&r, &f))
        ok = take_field(p, &f, first, &r);
    if (!p->streamed && !p->length)
        p->length = (int64_t)p->bytes.len;
    return ok && ah_bytes_ok(&p->bytes);
}

ah_plan *ah_plan_read(const char *text)
{
    ah_plan *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    ah_bytes_init(&p->headers, MAX_HEADERS);
    ah_bytes_init(&p->bytes, MAX_BYTES);
    if (read_plan(p, text, true) && p->status >= 100 && p->status < 1000)
        return p;
    ah_plan_free(p);
    return NULL;
}

static void drop_steps(ah_plan *p)
{
    ah_bytes_clear(&p->bytes);
    free(p->step);
    p->step = NULL;
    p->n_steps = 0;
}

bool ah_plan_go_on(ah_plan *p, const char *text)
{
    drop_steps(p);
    if (read_plan(p, text, false))
        return true;
    drop_steps(p);
    return false;
}

void ah_plan_free(ah_plan *p)
{
    if (!p)
        return;
    drop_steps(p);
    ah_bytes_clear(&p->headers);
    free(p);
}
