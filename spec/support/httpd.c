/* httpd: the loopback HTTP/1.1 server of the specs and benchmarks.
 *
 * One thread, one poll(2), any number of keep-alive connections. It serves the responses of a
 * scenario file, the misbehaviour of networks included (pieces, delays, cuts, resets, stalls),
 * or plays a model that calls a tool N times (--turns). It ends after --seconds, when its
 * standard input ends, or when its port file is gone, so it does not outlive its parent. It
 * knows neither TLS nor HTTP/2, trusts its caller, and exits when memory runs out.
 *
 *   httpd --scenario F | --turns N [--stream] [--delay MS]
 *         and [--seconds N] [--log F] [--port-file F]
 *   httpd --await F      waits up to 10 s for the port file F and prints it: "port N pid N"
 *
 * A scenario is lines; empty ones and those beginning with # are ignored:
 *   on PATH        the following lines are for PATH ("*": any other path); the query is ignored
 *   response       begins a response; the k-th request gets the k-th one, the last one repeats
 *   status N       default 200
 *   header LINE    any number of times
 *   bytes N        the body: the N bytes after this line (a newline follows them)
 *   body-file F    the body is this file
 *   framing X      length (default), chunked, or close
 *   raw            the body is the whole response, head included; closed after it
 *   piece N        body bytes per write
 *   delay MS       wait before the head; `gap MS` waits between pieces
 *   cut N          closes after N body bytes; `stall N` sends no more but stays open
 *   reset [N]      RST after N body bytes, or instead of the response
 *   drop           closes instead of the response; `hangup` closes after it, unannounced
 *   endless        repeats the body without end (never with framing length)
 *   big-header N   a header "X-Big" of N bytes */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_HEAD = 1 << 20,
    MAX_PENDING = 64 << 20, /* request bytes read but not yet consumed */
    READ_SIZE = 64 << 10,
    WHOLE_PIECE = 32 << 10, /* bytes of one write if no piece size is set */
    PIECES_A_ROUND = 16,    /* so that an endless response does not starve the others */
    PATH_BUCKETS = 1024,
    AWAIT_MS = 10000,
    LOOK_MS = 200 /* between checks of the port file */
};

typedef struct bytes {
    char *p; /* NUL-terminated, but NULL until the first add */
    size_t n, cap;
} bytes;

typedef enum framing { FRAME_LENGTH, FRAME_CHUNKED, FRAME_CLOSE, FRAME_RAW } framing;

/* The action at the end of a response. */
typedef enum ending { END_KEEP, END_CLOSE, END_RESET, END_STALL } ending;

typedef struct reply {
    int status;
    bytes headers; /* lines with their \r\n */
    bytes body;
    framing framing;
    size_t piece;       /* 0: as much as fits */
    int64_t delay, gap; /* ms */
    ending ending;
    size_t stop;  /* limit of the body bytes */
    bool silent;  /* no head and no body: only the ending */
    bool endless; /* the body repeats */
} reply;

typedef struct route {
    char *path; /* NULL: any */
    reply *replies;
    size_t n, next;
} route;

/* The number of requests to a path, for --turns. */
typedef struct visits {
    struct visits *next;
    char *path;
    long n;
} visits;

typedef enum phase {
    READ_HEAD,
    READ_BODY,
    READ_CHUNK_SIZE,
    READ_CHUNK,
    READ_TRAILER,
    REPLYING,
    STALLED,
    DEAD
} phase;

typedef struct conn {
    int fd;
    int id;
    phase phase;
    bytes in;    /* read, not yet consumed */
    bytes head;  /* of the request that is being read */
    bytes body;  /* of the same request; kept only for the log */
    size_t left; /* bytes left of the body or chunk */
    const reply *reply;
    bytes made; /* body made for this one response (--turns) */
    size_t off; /* body bytes handed to out */
    bool head_out, last_out;
    int64_t wake; /* ms; nothing is sent before */
    bytes out;
    size_t sent;
} conn;

typedef struct server {
    int listener;
    int log;               /* -1: none */
    const char *port_file; /* NULL: none */
    int64_t started, ends, looks;
    route *routes;
    size_t n_routes;
    long turns; /* -1: a scenario is served */
    bool stream;
    reply turn, not_found;
    visits *paths[PATH_BUCKETS];
    conn **conns;
    size_t n_conns, cap_conns;
    struct pollfd *fds;
    size_t cap_fds;
    int next_id;
    char scratch[READ_SIZE];
} server;

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("httpd: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

static void *must(void *p)
{
    if (!p)
        die("out of memory");
    return p;
}

static char *copy_of(const char *p, size_t n)
{
    char *s = must(malloc(n + 1));

    memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

static void add(bytes *b, const void *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = must(realloc(b->p, b->cap));
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

static void add_fmt(bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends a short text; it must fit into 512 bytes. */
static void add_fmt(bytes *b, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        die("text too long: %s", text);
    add(b, text, (size_t)n);
}

static void drop(bytes *b, size_t n)
{
    if (n < b->n)
        memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    if (b->p)
        b->p[b->n] = '\0';
}

static void clear(bytes *b)
{
    free(b->p);
    *b = (bytes){0};
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void read_file(const char *name, bytes *to)
{
    char part[READ_SIZE];
    FILE *f = fopen(name, "rb");
    size_t n;

    if (!f)
        die("cannot read %s: %s", name, strerror(errno));
    add(to, "", 0);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        add(to, part, n);
    fclose(f);
}

typedef struct parser {
    server *s;
    const char *file;
    bytes text;
    size_t at;
    int line;
} parser;

static void bad(const parser *p, const char *what, const char *word) __attribute__((noreturn));

static void bad(const parser *p, const char *what, const char *word)
{
    die("%s:%d: %s: '%s'", p->file, p->line, what, word);
}

static void add_route(server *s, const char *path)
{
    s->routes = must(realloc(s->routes, (s->n_routes + 1) * sizeof *s->routes));
    s->routes[s->n_routes++] = (route){.path = path ? copy_of(path, strlen(path)) : NULL};
}

static reply *last_reply(parser *p)
{
    route *r = p->s->n_routes ? &p->s->routes[p->s->n_routes - 1] : NULL;

    if (!r || r->n == 0)
        bad(p, "comes before the first `response`", "this line");
    return &r->replies[r->n - 1];
}

static size_t number(const parser *p, const char *arg)
{
    char *end;
    unsigned long long n = strtoull(arg, &end, 10);

    if (*arg < '0' || *arg > '9' || *end)
        bad(p, "wants a number", arg);
    return (size_t)n;
}

static void on_on(parser *p, const char *arg)
{
    add_route(p->s, strcmp(arg, "*") == 0 ? NULL : arg);
}

static void on_response(parser *p, const char *arg)
{
    route *r;

    (void)arg;
    if (p->s->n_routes == 0)
        add_route(p->s, NULL);
    r = &p->s->routes[p->s->n_routes - 1];
    r->replies = must(realloc(r->replies, (r->n + 1) * sizeof *r->replies));
    r->replies[r->n++] = (reply){.status = 200, .stop = SIZE_MAX};
}

static void on_status(parser *p, const char *arg)
{
    last_reply(p)->status = (int)number(p, arg);
}

static void on_header(parser *p, const char *arg)
{
    reply *r = last_reply(p);

    add(&r->headers, arg, strlen(arg));
    add(&r->headers, "\r\n", 2);
}

static void on_big_header(parser *p, const char *arg)
{
    size_t n = number(p, arg);
    char *fill = memset(must(malloc(n + 1)), 'x', n);
    reply *r = last_reply(p);

    add(&r->headers, "X-Big: ", 7);
    add(&r->headers, fill, n);
    add(&r->headers, "\r\n", 2);
    free(fill);
}

static void on_bytes(parser *p, const char *arg)
{
    size_t n = number(p, arg);

    if (n > p->text.n - p->at)
        bad(p, "the file ends before its bytes", arg);
    add(&last_reply(p)->body, p->text.p + p->at, n);
    for (size_t i = 0; i < n; i++)
        p->line += p->text.p[p->at + i] == '\n';
    p->at += n;
    if (p->at < p->text.n && p->text.p[p->at] == '\n')
        p->at++, p->line++;
}

static void on_body_file(parser *p, const char *arg)
{
    read_file(arg, &last_reply(p)->body);
}

static void on_framing(parser *p, const char *arg)
{
    static const char *const names[] = {"length", "chunked", "close"};

    for (size_t i = 0; i < 3; i++)
        if (strcmp(arg, names[i]) == 0) {
            last_reply(p)->framing = (framing)i;
            return;
        }
    bad(p, "no such framing", arg);
}

static void on_raw(parser *p, const char *arg)
{
    (void)arg;
    last_reply(p)->framing = FRAME_RAW;
}

static void on_piece(parser *p, const char *arg)
{
    last_reply(p)->piece = number(p, arg);
}

static void on_delay(parser *p, const char *arg)
{
    last_reply(p)->delay = (int64_t)number(p, arg);
}

static void on_gap(parser *p, const char *arg)
{
    last_reply(p)->gap = (int64_t)number(p, arg);
}

/* Without a number the ending replaces the response. */
static void set_ending(parser *p, const char *arg, ending e)
{
    reply *r = last_reply(p);

    r->ending = e;
    r->silent = !*arg;
    r->stop = *arg ? number(p, arg) : 0;
}

static void on_cut(parser *p, const char *arg)
{
    set_ending(p, arg, END_CLOSE);
}

static void on_stall(parser *p, const char *arg)
{
    set_ending(p, arg, END_STALL);
}

static void on_reset(parser *p, const char *arg)
{
    set_ending(p, arg, END_RESET);
}

static void on_hangup(parser *p, const char *arg)
{
    (void)arg;
    last_reply(p)->ending = END_CLOSE;
}

static void on_endless(parser *p, const char *arg)
{
    (void)arg;
    last_reply(p)->endless = true;
}

static const struct {
    const char *word;
    void (*fn)(parser *p, const char *arg);
} directives[] = {
    {"on", on_on},         {"response", on_response}, {"status", on_status},
    {"header", on_header}, {"bytes", on_bytes},       {"body-file", on_body_file},
    {"raw", on_raw},       {"framing", on_framing},   {"piece", on_piece},
    {"delay", on_delay},   {"gap", on_gap},           {"cut", on_cut},
    {"stall", on_stall},   {"reset", on_reset},       {"drop", on_cut},
    {"hangup", on_hangup}, {"endless", on_endless},   {"big-header", on_big_header},
};

static void obey(parser *p, char *line)
{
    char *arg = strchr(line, ' ');

    if (arg)
        *arg++ = '\0';
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (strcmp(line, directives[i].word) == 0) {
            directives[i].fn(p, arg ? arg : "");
            return;
        }
    bad(p, "no such directive", line);
}

static void load_scenario(server *s, const char *file)
{
    parser p = {.s = s, .file = file};

    read_file(file, &p.text);
    while (p.at < p.text.n) {
        char *line = p.text.p + p.at, *end = strchr(line, '\n');

        p.line++;
        p.at = end ? (size_t)(end - p.text.p) + 1 : p.text.n;
        if (end)
            *end = '\0';
        if (*line && *line != '#')
            obey(&p, line);
    }
    clear(&p.text);
}

static long visit(server *s, const char *path, size_t n)
{
    visits **at, *v;
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)path[i]) * 16777619u;
    at = &s->paths[h % PATH_BUCKETS];
    for (v = *at; v; v = v->next)
        if (strncmp(v->path, path, n) == 0 && v->path[n] == '\0')
            return ++v->n;
    v = must(malloc(sizeof *v));
    *v = (visits){.next = *at, .path = copy_of(path, n), .n = 1};
    *at = v;
    return 1;
}

#define USAGE "\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"total_tokens\":120}"

static void say_whole(bytes *b, long k, bool call)
{
    add_fmt(
        b,
        "{\"id\":\"chatcmpl-%ld\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"bench\","
        "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",",
        k);
    if (call)
        add_fmt(b,
                "\"content\":null,\"tool_calls\":[{\"id\":\"call_%ld\",\"type\":\"function\","
                "\"function\":"
                "{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":%ld,\\\"b\\\":1}\"}}]},",
                k, k);
    else
        add_fmt(b, "\"content\":\"Done after %ld calls.\"},", k - 1);
    add_fmt(b, "\"finish_reason\":\"%s\"}]," USAGE "}", call ? "tool_calls" : "stop");
}

/* `inner` is the choice's content; the tail of a chunk comes after it. */
static void say_chunk(bytes *b, long k, const char *inner)
{
    add_fmt(b,
            "data: {\"id\":\"chatcmpl-%ld\",\"object\":\"chat.completion.chunk\",\"created\":1,"
            "\"model\":\"bench\",\"choices\":[{\"index\":0,%s}]}\n\n",
            k, inner);
}

static void say_call(bytes *b, long k)
{
    char inner[256];

    snprintf(inner, sizeof inner,
             "\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"index\":0,"
             "\"id\":\"call_%ld\","
             "\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"\"}}]},\"finish_"
             "reason\":null",
             k);
    say_chunk(b, k, inner);
    snprintf(inner, sizeof inner,
             "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":%"
             "ld\"}}]},"
             "\"finish_reason\":null",
             k);
    say_chunk(b, k, inner);
    say_chunk(
        b, k,
        "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\",\\\"b\\\":1}\"}}]},"
        "\"finish_reason\":null");
    say_chunk(b, k, "\"delta\":{},\"finish_reason\":\"tool_calls\"");
}

static void say_text(bytes *b, long k)
{
    say_chunk(b, k, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null");
    say_chunk(b, k, "\"delta\":{\"content\":\"Done \"},\"finish_reason\":null");
    say_chunk(b, k, "\"delta\":{\"content\":\"now.\"},\"finish_reason\":null");
    say_chunk(b, k, "\"delta\":{},\"finish_reason\":\"stop\"");
}

static const reply *take_turn(server *s, conn *c, const char *path, size_t n)
{
    long k = (visit(s, path, n) - 1) % (s->turns + 1) + 1;
    bool call = k <= s->turns;

    c->made.n = 0;
    if (!s->stream) {
        say_whole(&c->made, k, call);
        return &s->turn;
    }
    (call ? say_call : say_text)(&c->made, k);
    add_fmt(&c->made,
            "data: {\"id\":\"chatcmpl-%ld\",\"object\":\"chat.completion.chunk\",\"created\":1,"
            "\"model\":\"bench\",\"choices\":[]," USAGE "}\n\ndata: [DONE]\n\n",
            k);
    return &s->turn;
}

static size_t path_length(const char *path)
{
    return strcspn(path, "? \r\n");
}

/* Returns the target of the request line. */
static const char *target(const conn *c)
{
    const char *sp = strchr(c->head.p, ' ');

    return sp ? sp + 1 : "";
}

/* Returns the value of a header, up to the end of its line, or NULL. */
static const char *header(const conn *c, const char *name)
{
    size_t n = strlen(name);
    const char *line = c->head.p;

    while ((line = strstr(line, "\r\n"))) {
        line += 2;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, " \t");
    }
    return NULL;
}

static void json_string(bytes *b, const char *p, size_t n)
{
    add(b, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)p[i];

        if (ch == '"' || ch == '\\')
            add(b, "\\", 1);
        if (ch < 0x20)
            add_fmt(b, "\\u%04x", ch);
        else
            add(b, p + i, 1);
    }
    add(b, "\"", 1);
}

static void json_headers(bytes *b, const conn *c)
{
    char *line = strstr(c->head.p, "\r\n");
    const char *sep = "";

    for (line += 2; *line && *line != '\r'; line = strstr(line, "\r\n") + 2) {
        size_t n = strcspn(line, ":\r"), end = strcspn(line, "\r"), from = n < end ? n + 1 : n;

        for (size_t i = 0; i < n; i++)
            line[i] = (char)tolower((unsigned char)line[i]);
        from += strspn(line + from, " \t");
        add(b, sep, strlen(sep));
        json_string(b, line, n);
        add(b, ":", 1);
        json_string(b, line + from, end - from);
        sep = ",";
    }
}

static void write_log(const server *s, bytes *line)
{
    add(line, "\n", 1);
    for (size_t at = 0; at < line->n;) {
        ssize_t n = write(s->log, line->p + at, line->n - at);

        if (n < 0)
            die("cannot write the log: %s", strerror(errno));
        at += (size_t)n;
    }
    clear(line);
}

/* Writes the log before the response begins, so that a client that has a response can read it. */
static void log_request(const server *s, const conn *c)
{
    bytes b = {0};

    if (s->log < 0)
        return;
    add_fmt(&b, "{\"at\":%lld,\"conn\":%d,\"method\":", (long long)(now_ms() - s->started), c->id);
    json_string(&b, c->head.p, strcspn(c->head.p, " "));
    add(&b, ",\"path\":", 8);
    json_string(&b, target(c), strcspn(target(c), " \r"));
    add(&b, ",\"headers\":{", 12);
    json_headers(&b, c);
    add(&b, "},\"body\":", 9);
    json_string(&b, c->body.p, c->body.n);
    add(&b, "}", 1);
    write_log(s, &b);
}

/* Logs that the client closed before its response was complete. */
static void log_gone(const server *s, const conn *c)
{
    bytes b = {0};

    if (s->log < 0 || (c->phase != REPLYING && c->phase != STALLED))
        return;
    add_fmt(&b, "{\"at\":%lld,\"conn\":%d,\"gone\":%zu}", (long long)(now_ms() - s->started), c->id,
            c->off);
    write_log(s, &b);
}

static const reply *choose(server *s, conn *c)
{
    const char *path = target(c);
    size_t n = path_length(path);
    route *any = NULL, *r = NULL;

    if (s->turns >= 0)
        return take_turn(s, c, path, n);
    for (size_t i = 0; i < s->n_routes && !r; i++)
        if (!s->routes[i].path)
            any = &s->routes[i];
        else if (strncmp(s->routes[i].path, path, n) == 0 && s->routes[i].path[n] == '\0')
            r = &s->routes[i];
    r = r ? r : any;
    if (!r || r->n == 0)
        return &s->not_found;
    return &r->replies[r->next + 1 < r->n ? r->next++ : r->next];
}

static void request_done(server *s, conn *c)
{
    log_request(s, c);
    c->reply = choose(s, c);
    c->phase = REPLYING;
    c->off = 0;
    c->head_out = c->last_out = false;
    c->wake = c->reply->delay ? now_ms() + c->reply->delay : 0;
    c->body.n = 0;
}

/* Each step of reading returns false if it needs more bytes. */
static bool step_head(server *s, conn *c)
{
    const char *end = c->in.n ? strstr(c->in.p, "\r\n\r\n") : NULL, *v;
    size_t n;

    if (!end) {
        if (c->in.n > MAX_HEAD)
            c->phase = DEAD;
        return false;
    }
    n = (size_t)(end - c->in.p) + 4;
    c->head.n = 0;
    add(&c->head, c->in.p, n);
    drop(&c->in, n);
    c->body.n = 0;
    v = header(c, "expect");
    if (v && strncasecmp(v, "100-continue", 12) == 0)
        send(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    if ((v = header(c, "transfer-encoding")) && strncasecmp(v, "chunked", 7) == 0)
        c->phase = READ_CHUNK_SIZE;
    else if ((v = header(c, "content-length")) && (c->left = strtoul(v, NULL, 10)) > 0)
        c->phase = READ_BODY;
    else
        request_done(s, c);
    return true;
}

/* Moves up to c->left received bytes into the body. */
static bool take_body(const server *s, conn *c)
{
    size_t n = c->in.n < c->left ? c->in.n : c->left;

    if (s->log >= 0)
        add(&c->body, c->in.p, n);
    drop(&c->in, n);
    c->left -= n;
    return c->left == 0;
}

static bool step_body(server *s, conn *c)
{
    if (!take_body(s, c))
        return false;
    request_done(s, c);
    return true;
}

static bool step_chunk_size(server *s, conn *c)
{
    char *end = c->in.n ? strstr(c->in.p, "\r\n") : NULL;

    (void)s;
    if (!end)
        return false;
    c->left = strtoul(c->in.p, NULL, 16);
    c->phase = c->left ? READ_CHUNK : READ_TRAILER;
    drop(&c->in, (size_t)(end - c->in.p) + 2);
    return true;
}

static bool step_chunk(server *s, conn *c)
{
    if (c->left && !take_body(s, c))
        return false;
    if (c->in.n < 2)
        return false;
    drop(&c->in, 2);
    c->phase = READ_CHUNK_SIZE;
    return true;
}

static bool step_trailer(server *s, conn *c)
{
    char *end = c->in.n ? strstr(c->in.p, "\r\n") : NULL;
    size_t n;

    if (!end)
        return false;
    n = (size_t)(end - c->in.p);
    drop(&c->in, n + 2);
    if (n == 0)
        request_done(s, c);
    return true;
}

static void read_on(server *s, conn *c)
{
    static bool (*const steps[])(server *, conn *) = {
        [READ_HEAD] = step_head,
        [READ_BODY] = step_body,
        [READ_CHUNK_SIZE] = step_chunk_size,
        [READ_CHUNK] = step_chunk,
        [READ_TRAILER] = step_trailer,
    };

    while (c->phase < REPLYING && steps[c->phase](s, c))
        ;
}

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *words;
    } known[] = {{200, "OK"},
                 {204, "No Content"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {404, "Not Found"},
                 {408, "Request Timeout"},
                 {429, "Too Many Requests"},
                 {500, "Internal Server Error"},
                 {503, "Service Unavailable"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].words;
    return "Status";
}

static const bytes *reply_body(const server *s, const conn *c)
{
    return c->reply == &s->turn ? &c->made : &c->reply->body;
}

static framing reply_framing(const reply *r)
{
    return r->endless && r->framing == FRAME_LENGTH ? FRAME_CHUNKED : r->framing;
}

static void put_head(const server *s, conn *c)
{
    const reply *r = c->reply;
    bool bodyless = r->status == 204 || r->status == 304;

    c->head_out = true;
    if (r->framing == FRAME_RAW)
        return;
    add_fmt(&c->out, "HTTP/1.1 %d %s\r\n", r->status, reason(r->status));
    add(&c->out, r->headers.p, r->headers.n);
    switch (reply_framing(r)) {
    case FRAME_LENGTH:
        if (!bodyless)
            add_fmt(&c->out, "Content-Length: %zu\r\n", reply_body(s, c)->n);
        break;
    case FRAME_CHUNKED:
        add_fmt(&c->out, "Transfer-Encoding: chunked\r\n");
        break;
    case FRAME_CLOSE:
        add_fmt(&c->out, "Connection: close\r\n");
        break;
    case FRAME_RAW:
        break;
    }
    add(&c->out, "\r\n", 2);
}

/* Writes the next n bytes of the body, from its beginning again after its end. */
static void put_body(conn *c, const bytes *body, size_t n)
{
    while (n > 0) {
        size_t at = c->off % body->n, part = body->n - at < n ? body->n - at : n;

        add(&c->out, body->p + at, part);
        c->off += part;
        n -= part;
    }
}

/* Returns the number of body bytes that this response sends. */
static size_t body_end(const server *s, const conn *c)
{
    size_t n = reply_body(s, c)->n, all = c->reply->endless && n ? SIZE_MAX : n;

    return c->reply->stop < all ? c->reply->stop : all;
}

static void put_piece(const server *s, conn *c)
{
    const reply *r = c->reply;
    size_t left = body_end(s, c) - c->off, n = r->piece ? r->piece : WHOLE_PIECE;

    n = n < left ? n : left;
    if (n == 0)
        return;
    if (reply_framing(r) == FRAME_CHUNKED)
        add_fmt(&c->out, "%zx\r\n", n);
    put_body(c, reply_body(s, c), n);
    if (reply_framing(r) == FRAME_CHUNKED)
        add(&c->out, "\r\n", 2);
}

/* Writes the zero chunk, unless the response is cut before its end. */
static void put_last(conn *c)
{
    if (!c->last_out && reply_framing(c->reply) == FRAME_CHUNKED && c->reply->stop == SIZE_MAX)
        add(&c->out, "0\r\n\r\n", 5);
    c->last_out = true;
}

/* Fills out with the next bytes; returns false at the end of the response. Head and body go
 * together only if the scenario sets no pieces. */
static bool refill(const server *s, conn *c)
{
    bool stepwise = c->reply->piece > 0 || c->reply->gap > 0;

    c->out.n = c->sent = 0;
    if (c->reply->silent)
        return false;
    if (!c->head_out) {
        put_head(s, c);
        if (stepwise && c->out.n)
            return true;
    }
    put_piece(s, c);
    if (c->off == body_end(s, c))
        put_last(c);
    return c->out.n > 0;
}

static void reset_on_close(const conn *c)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void reply_done(server *s, conn *c)
{
    ending e = c->reply->ending;
    bool ends = c->reply->framing == FRAME_CLOSE || c->reply->framing == FRAME_RAW;

    if (e == END_RESET)
        reset_on_close(c);
    if (e == END_STALL)
        c->phase = STALLED;
    else if (e != END_KEEP || ends)
        c->phase = DEAD;
    else
        c->phase = READ_HEAD;
    read_on(s, c);
}

/* Sends the bytes in out; returns false if it would block or the client has closed. */
static bool flush(const server *s, conn *c)
{
    while (c->sent < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return false;
        if (n < 0) {
            log_gone(s, c);
            c->phase = DEAD;
            return false;
        }
        c->sent += (size_t)n;
    }
    if (c->reply->gap)
        c->wake = now_ms() + c->reply->gap;
    return true;
}

static void pump(server *s, conn *c)
{
    for (int i = 0; i < PIECES_A_ROUND && c->phase == REPLYING; i++) {
        if (c->wake && now_ms() < c->wake)
            return;
        if (c->sent == c->out.n && !refill(s, c))
            reply_done(s, c);
        else if (!flush(s, c))
            return;
    }
}

static void receive(server *s, conn *c)
{
    ssize_t n = recv(c->fd, s->scratch, sizeof s->scratch, 0);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0 || c->in.n > MAX_PENDING) {
        log_gone(s, c);
        c->phase = DEAD;
        return;
    }
    if (c->phase == READ_BODY && s->log < 0 && c->in.n == 0 && (size_t)n < c->left) {
        c->left -= (size_t)n; /* this part of the body is not needed */
        return;
    }
    add(&c->in, s->scratch, (size_t)n);
    read_on(s, c);
}

static void accept_all(server *s)
{
    int fd, on = 1;

    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        conn *c = must(calloc(1, sizeof *c));

        fcntl(fd, F_SETFL, O_NONBLOCK);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        c->id = ++s->next_id;
        if (s->n_conns == s->cap_conns) {
            s->cap_conns = s->cap_conns ? s->cap_conns * 2 : 64;
            s->conns = must(realloc(s->conns, s->cap_conns * sizeof(conn *)));
        }
        s->conns[s->n_conns++] = c;
    }
}

static void free_conn(conn *c)
{
    close(c->fd);
    clear(&c->in);
    clear(&c->head);
    clear(&c->body);
    clear(&c->made);
    clear(&c->out);
    free(c);
}

static void sweep(server *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->n_conns; i++)
        if (s->conns[i]->phase == DEAD)
            free_conn(s->conns[i]);
        else
            s->conns[kept++] = s->conns[i];
    s->n_conns = kept;
}

/* Fills s->fds (input, listener, connections) and returns the ms to wait. */
static int prepare(server *s)
{
    int64_t now = now_ms(), until = s->looks < s->ends ? s->looks : s->ends;

    if (s->cap_fds < s->n_conns + 2) {
        s->cap_fds = (s->n_conns + 2) * 2;
        s->fds = must(realloc(s->fds, s->cap_fds * sizeof *s->fds));
    }
    s->fds[0] = (struct pollfd){.fd = 0, .events = POLLIN};
    s->fds[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
    for (size_t i = 0; i < s->n_conns; i++) {
        const conn *c = s->conns[i];
        bool waits = c->phase == REPLYING && c->wake > now;

        if (waits && c->wake < until)
            until = c->wake;
        s->fds[i + 2] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        if (c->phase == REPLYING && !waits)
            s->fds[i + 2].events |= POLLOUT;
    }
    return until > now ? (int)(until - now) : 0;
}

/* Returns true if the parent still needs the server. Its end of the pipe may be open in other
 * processes that it started, so it may remove the port file instead. */
static bool wanted(server *s)
{
    char text[64];

    if ((s->fds[0].revents & (POLLIN | POLLHUP | POLLERR)) && read(0, text, sizeof text) <= 0)
        return false;
    if (now_ms() < s->looks)
        return true;
    s->looks = now_ms() + LOOK_MS;
    return !s->port_file || access(s->port_file, F_OK) == 0;
}

static void serve(server *s)
{
    while (now_ms() < s->ends) {
        int timeout = prepare(s);
        size_t n = s->n_conns;

        if (poll(s->fds, n + 2, timeout) < 0 && errno != EINTR)
            die("poll: %s", strerror(errno));
        if (!wanted(s))
            return;
        for (size_t i = 0; i < n; i++) {
            if (s->fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR))
                receive(s, s->conns[i]);
            pump(s, s->conns[i]);
        }
        sweep(s);
        if (s->fds[1].revents)
            accept_all(s);
    }
}

static int listen_loopback(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        die("cannot listen on 127.0.0.1: %s", strerror(errno));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    *port = ntohs(a.sin_port);
    return fd;
}

/* The file is renamed into place, so that readers see all of it. */
static void write_port(const char *file, int port)
{
    bytes part = {0};
    FILE *f;

    add(&part, file, strlen(file));
    add(&part, ".part", 5);
    f = fopen(part.p, "w");
    if (!f || fprintf(f, "port %d pid %ld\n", port, (long)getpid()) < 0 || fclose(f) != 0 ||
        rename(part.p, file) < 0)
        die("cannot write %s: %s", file, strerror(errno));
    clear(&part);
}

static int await_port(const char *file)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    char line[64];

    for (int64_t until = now_ms() + AWAIT_MS; now_ms() < until; nanosleep(&ms, NULL)) {
        FILE *f = fopen(file, "r");

        if (!f)
            continue;
        if (fgets(line, sizeof line, f))
            fputs(line, stdout);
        fclose(f);
        return 0;
    }
    return 1;
}

static void set_up_turns(server *s, int64_t delay)
{
    const char *type =
        s->stream ? "Content-Type: text/event-stream\r\n" : "Content-Type: application/json\r\n";

    s->turn = (reply){.status = 200, .stop = SIZE_MAX, .delay = delay};
    s->turn.framing = s->stream ? FRAME_CHUNKED : FRAME_LENGTH;
    add(&s->turn.headers, type, strlen(type));
    s->not_found = (reply){.status = 404, .stop = SIZE_MAX};
    add(&s->not_found.body, "no such path in the scenario\n", 29);
}

static int open_log(const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        die("cannot write %s: %s", file, strerror(errno));
    return fd;
}

static void many_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

typedef struct options {
    const char *scenario, *log, *port_file, *await;
    long turns, delay, seconds;
    bool stream;
} options;

static long count_of(const char *name, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);

    if (end == value || *end || n < 0)
        die("%s wants a number, got '%s'", name, value);
    return n;
}

static void read_option(options *o, const char *name, const char *value)
{
    if (strcmp(name, "--scenario") == 0)
        o->scenario = value;
    else if (strcmp(name, "--log") == 0)
        o->log = value;
    else if (strcmp(name, "--port-file") == 0)
        o->port_file = value;
    else if (strcmp(name, "--await") == 0)
        o->await = value;
    else if (strcmp(name, "--turns") == 0)
        o->turns = count_of(name, value);
    else if (strcmp(name, "--delay") == 0)
        o->delay = count_of(name, value);
    else if (strcmp(name, "--seconds") == 0)
        o->seconds = count_of(name, value);
    else
        die("no such option: %s", name);
}

static options read_options(int argc, char **argv)
{
    options o = {.turns = -1, .seconds = 60};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--stream") == 0) {
            o.stream = true;
            continue;
        }
        if (i + 1 == argc)
            die("%s: no such option, or its value is missing", argv[i]);
        read_option(&o, argv[i], argv[i + 1]);
        i++;
    }
    return o;
}

static void free_routes(server *s)
{
    for (size_t i = 0; i < s->n_routes; i++) {
        for (size_t k = 0; k < s->routes[i].n; k++) {
            clear(&s->routes[i].replies[k].headers);
            clear(&s->routes[i].replies[k].body);
        }
        free(s->routes[i].replies);
        free(s->routes[i].path);
    }
    free(s->routes);
}

static void free_paths(server *s)
{
    for (size_t i = 0; i < PATH_BUCKETS; i++)
        for (visits *v = s->paths[i], *next; v; v = next) {
            next = v->next;
            free(v->path);
            free(v);
        }
}

static void free_server(server *s)
{
    for (size_t i = 0; i < s->n_conns; i++)
        s->conns[i]->phase = DEAD;
    sweep(s);
    free_routes(s);
    free_paths(s);
    clear(&s->turn.headers);
    clear(&s->not_found.body);
    free(s->conns);
    free(s->fds);
    free(s);
}

int main(int argc, char **argv)
{
    options o = read_options(argc, argv);
    server *s;
    int port;

    if (o.await)
        return await_port(o.await);
    many_files();
    s = must(calloc(1, sizeof *s));
    s->turns = o.turns;
    s->stream = o.stream;
    s->log = o.log ? open_log(o.log) : -1;
    set_up_turns(s, o.delay);
    if (o.scenario)
        load_scenario(s, o.scenario);
    s->started = now_ms();
    s->ends = s->started + o.seconds * 1000;
    s->port_file = o.port_file;
    s->listener = listen_loopback(&port);
    printf("port %d\n", port);
    fflush(stdout);
    if (o.port_file)
        write_port(o.port_file, port);
    serve(s);
    free_server(s);
    return 0;
}
