/* One request and its answer, as their owner reads and writes them, without libmicrohttpd: the
 * answer waits in buffers until the server sends it. */
#include "io/http_server_hit.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_ANSWER_HEADERS = 100 };

static bool is_sent(const ah_hit *x)
{
    return x->sent == x->out.len;
}

bool ah_hit_keep_line(ah_hit *x, const char *name, const char *value)
{
    size_t n = strlen(name), k = value ? strlen(value) : 0;
    ah_place *line = ah_grow(x->mem, x->line, &x->cap_lines, x->n_lines + 2, sizeof *line);

    if (!line)
        return false;
    x->line = line;
    line[x->n_lines] = (ah_place){(uint32_t)x->head.len, (uint32_t)n};
    ah_buf_add(&x->head, name, n);
    line[x->n_lines + 1] = (ah_place){(uint32_t)x->head.len, (uint32_t)k};
    ah_buf_add(&x->head, value ? value : "", k);
    if (!ah_buf_ok(&x->head))
        return false;
    x->n_lines += 2;
    return true;
}

void ah_hit_destroy(ah_hit *x)
{
    ah_buf *const all[] = {&x->target, &x->head, &x->body, &x->lines, &x->out};
    const ah_mem *mem = x->mem;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        (void)ah_buf_ok(all[i]);
        ah_buf_clear(all[i]);
    }
    ah_free(mem, x->line);
    ah_free(mem, x);
}

const char *ah_hit_method(const ah_hit *hit)
{
    return hit->method;
}

ah_slice ah_hit_target(const ah_hit *hit)
{
    return ah_buf_slice(&hit->target);
}

const char *ah_hit_remote(const ah_hit *hit)
{
    return hit->remote;
}

static ah_slice at_place(const ah_hit *hit, ah_place p)
{
    return (ah_slice){hit->head.data + p.at, p.n};
}

bool ah_hit_header_at(const ah_hit *hit, size_t i, ah_slice *name, ah_slice *value)
{
    if (2 * i + 1 >= hit->n_lines)
        return false;
    *name = at_place(hit, hit->line[2 * i]);
    *value = at_place(hit, hit->line[2 * i + 1]);
    return true;
}

ah_slice ah_hit_header(const ah_hit *hit, const char *name, size_t *n)
{
    ah_slice found = {NULL, 0}, key, value;
    size_t len = strlen(name);

    *n = 0;
    for (size_t i = 0; ah_hit_header_at(hit, i, &key, &value); i++)
        if (key.n == len && strncasecmp(key.p, name, len) == 0 && (*n)++ == 0)
            found = value;
    return found;
}

ah_slice ah_hit_body(const ah_hit *hit)
{
    return ah_buf_slice(&hit->body);
}

ah_refusal ah_hit_refusal(const ah_hit *hit)
{
    return (ah_refusal){hit->refused, hit->why, 0};
}

void ah_hit_drop_body(ah_hit *hit)
{
    if (hit->held)
        *hit->bodies -= hit->held;
    hit->held = 0;
    (void)ah_buf_ok(&hit->body);
    ah_buf_clear(&hit->body);
}

void ah_hit_set_owner(ah_hit *hit, void *p)
{
    hit->owner = p;
}

void *ah_hit_owner(const ah_hit *hit)
{
    return hit->owner;
}

static bool is_token(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", s.p[i]))
            return false;
    return s.n > 0;
}

/* These headers follow from the body, or belong to the connection. */
static bool is_ours(ah_slice name)
{
    static const char *const ours[] = {"Content-Length", "Transfer-Encoding", "Connection"};

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (name.n == strlen(ours[i]) && strncasecmp(name.p, ours[i], name.n) == 0)
            return true;
    return false;
}

bool ah_hit_add_header(ah_hit *hit, ah_slice name, ah_slice value)
{
    if (!is_token(name) || is_ours(name) || hit->n_answer_lines == MAX_ANSWER_HEADERS)
        return false;
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] == '\r' || value.p[i] == '\n' || value.p[i] == '\0')
            return false;
    hit->n_answer_lines++;
    ah_buf_put(&hit->lines, name);
    ah_buf_char(&hit->lines, '\0');
    ah_buf_put(&hit->lines, value);
    ah_buf_char(&hit->lines, '\0');
    return ah_buf_ok(&hit->lines);
}

void ah_hit_forget_headers(ah_hit *hit)
{
    (void)ah_buf_ok(&hit->lines);
    ah_buf_reset(&hit->lines, 0);
    hit->n_answer_lines = 0;
}

void ah_hit_begin(ah_hit *hit, int status, int64_t length)
{
    hit->status = status;
    hit->bodyless = strcmp(hit->method, "HEAD") == 0 || status == 204 || status == 304;
    hit->length = hit->bodyless && length < 0 ? 0 : length;
    if (status == 204 || status == 304)
        hit->length = 0;
    if (hit->connection)
        hit->go_on(hit);
}

bool ah_hit_begun(const ah_hit *hit)
{
    return hit->status != 0;
}

bool ah_hit_write(ah_hit *hit, ah_slice bytes)
{
    if (ah_hit_over(hit) || hit->bodyless || hit->ended)
        return true;
    if (hit->sent) {
        ah_buf_drop(&hit->out, hit->sent);
        hit->sent = 0;
    }
    ah_buf_put(&hit->out, bytes);
    if (!ah_buf_ok(&hit->out)) {
        ah_hit_break(hit);
        return false;
    }
    hit->go_on(hit);
    return true;
}

bool ah_hit_taken(const ah_hit *hit)
{
    return ah_hit_over(hit) || is_sent(hit);
}

void ah_hit_end(ah_hit *hit)
{
    hit->ended = true;
    if (hit->connection)
        hit->go_on(hit);
}

bool ah_hit_ended(const ah_hit *hit)
{
    return hit->ended;
}

void ah_hit_break(ah_hit *hit)
{
    hit->broken = true;
    if (hit->connection)
        hit->go_on(hit);
}

bool ah_hit_broken(const ah_hit *hit)
{
    return hit->broken;
}

bool ah_hit_over(const ah_hit *hit)
{
    return !hit->connection;
}

bool ah_hit_out(const ah_hit *hit)
{
    return hit->out_whole;
}

void ah_hit_free(ah_hit *hit)
{
    if (!hit)
        return;
    hit->owned = false;
    if (!hit->connection)
        ah_hit_destroy(hit);
    else if (!hit->ended)
        ah_hit_break(hit);
}
