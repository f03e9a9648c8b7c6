/* The text comes from our own Lua, yet is checked as any other: a script has its share in it. */
#include "cli/mock_plan.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_BYTES = 256 << 20, /* of one answer, or of what goes out next of a stream */
    MAX_HEADERS = 32 << 10,
    MAX_STEPS = 1 << 20,
    MAX_DEPTH = 8
};

static int64_t integer(ah_slice object, const char *key)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(object, key), &n) && n.is_int ? n.i : 0;
}

static bool is_true(ah_slice object, const char *key)
{
    return ah_json_kind_of(ah_json_member(object, key)) == AH_JSON_TRUE;
}

/* A string, cut where it is longer than the room. */
static void text(ah_slice value, char *out, size_t size)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, MAX_BYTES);
    if (value.p && ah_json_string(value, &b) && ah_buf_ok(&b) && b.len) {
        size_t n = b.len < size ? b.len : ah_utf8_cut(b.data, size - 1);

        snprintf(out, size, "%.*s", (int)n, b.data);
    }
    ah_buf_clear(&b);
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void put_hex(ah_slice value, ah_buf *out)
{
    ah_slice s = ah_json_inside(value);

    for (size_t i = 0; i + 1 < s.n; i += 2)
        ah_buf_char(out, (char)(digit(s.p[i]) << 4 | digit(s.p[i + 1])));
}

/* Takes the step's bytes from those behind the JSON. False: there are not so many. */
static bool read_step(ah_plan *p, ah_slice step, ah_slice *behind, ah_plan_step *out)
{
    ah_slice hex = ah_json_member(step, "hex");
    int64_t n = integer(step, "n");

    *out = (ah_plan_step){
        .at = p->bytes.len, .wait_ms = integer(step, "wait"), .close = is_true(step, "close")};
    if (n < 0 || (uint64_t)n > behind->n)
        return false;
    ah_buf_add(&p->bytes, behind->p, (size_t)n);
    *behind = (ah_slice){behind->p + n, behind->n - (size_t)n};
    if (hex.p)
        put_hex(hex, &p->bytes);
    out->n = p->bytes.len - out->at;
    return true;
}

/* The text of the next element of an array that `r` is in; .p NULL at its end. */
static ah_slice next_element(ah_json_reader *r)
{
    ah_json_token t = ah_json_next(r);

    if (t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_END)
        return (ah_slice){NULL, 0};
    return ah_json_skip(r, t);
}

static ah_json_reader in_array(ah_slice array)
{
    ah_json_reader r = ah_json_read(array);

    ah_json_next(&r);
    return r;
}

static bool read_steps(ah_plan *p, ah_slice steps, ah_slice behind)
{
    ah_json_reader r = in_array(steps);
    bool ok = true;
    size_t n = 0;

    while (next_element(&r).p && n < MAX_STEPS)
        n++;
    p->step = ah_alloc(&ah_mem_libc, (n + 1) * sizeof *p->step);
    if (!p->step)
        return false;
    r = in_array(steps);
    while (ok && p->n_steps < n)
        ok = read_step(p, next_element(&r), &behind, &p->step[p->n_steps++]);
    if (!p->streamed && !p->length)
        p->length = (int64_t)p->bytes.len;
    return ah_buf_ok(&p->bytes) && ok;
}

/* A string and a NUL, which it does not hold itself. */
static bool put_text(ah_slice value, ah_buf *out)
{
    size_t at = out->len;

    if (!value.p || !ah_json_string(value, out) || !ah_buf_ok(out))
        return false;
    if (out->len > at && memchr(out->data + at, '\0', out->len - at))
        return false;
    ah_buf_char(out, '\0');
    return ah_buf_ok(out);
}

static bool read_headers(ah_plan *p, ah_slice headers)
{
    ah_json_reader r = in_array(headers);
    ah_slice pair;

    while ((pair = next_element(&r)).p) {
        ah_json_reader of = in_array(pair);
        ah_slice name = next_element(&of), value = next_element(&of);

        if (!put_text(name, &p->headers) || !put_text(value, &p->headers))
            return false;
    }
    return true;
}

/* Reads a batch of steps, the first ones or further ones. */
static bool read_batch(ah_plan *p, ah_slice json, ah_slice behind)
{
    p->more = is_true(json, "more");
    p->warn = is_true(json, "warn");
    *p->say = '\0';
    text(ah_json_member(json, "say"), p->say, sizeof p->say);
    return read_steps(p, ah_json_member(json, "steps"), behind);
}

static bool read_plan(ah_plan *p, ah_slice json, ah_slice behind)
{
    p->number = integer(json, "n");
    p->status = (int)integer(json, "status");
    p->drop = is_true(json, "drop");
    p->streamed = is_true(json, "streamed");
    p->length = integer(json, "length");
    p->wait_ms = integer(json, "wait");
    text(ah_json_member(json, "type"), p->type, sizeof p->type);
    return p->status >= 100 && p->status < 1000 && read_headers(p, ah_json_member(json, "headers")) &&
           read_batch(p, json, behind);
}

/* The line of JSON, and what stands behind it. */
static bool split(const char *text, ah_slice *json, ah_slice *behind)
{
    size_t n = strcspn(text, "\n");
    ah_json_fault fault;

    *json = (ah_slice){text, n};
    *behind = ah_slice_of(text[n] ? text + n + 1 : "");
    return ah_json_check(&ah_mem_libc, *json, MAX_DEPTH, &fault) == AH_OK;
}

ah_plan *ah_plan_read(const char *text)
{
    ah_slice json, behind;
    ah_plan *p = split(text, &json, &behind) ? ah_alloc(&ah_mem_libc, sizeof *p) : NULL;

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    ah_buf_init(&p->headers, &ah_mem_libc, MAX_HEADERS);
    ah_buf_init(&p->bytes, &ah_mem_libc, MAX_BYTES);
    if (read_plan(p, json, behind))
        return p;
    ah_plan_free(p);
    return NULL;
}

static void drop_steps(ah_plan *p)
{
    ah_buf_clear(&p->bytes);
    ah_free(&ah_mem_libc, p->step);
    p->step = NULL;
    p->n_steps = 0;
}

bool ah_plan_go_on(ah_plan *p, const char *text)
{
    ah_slice json, behind;

    drop_steps(p);
    if (split(text, &json, &behind) && read_batch(p, json, behind))
        return true;
    drop_steps(p);
    return false;
}

void ah_plan_free(ah_plan *p)
{
    if (!p)
        return;
    drop_steps(p);
    ah_buf_clear(&p->headers);
    ah_free(&ah_mem_libc, p);
}
