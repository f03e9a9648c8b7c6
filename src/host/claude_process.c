/* The owner of `claude` processes; see claude_process.h. An exchange is: say what is new, then read until
 * the message is complete. Between exchanges the process waits for the results of its calls. What
 * cannot go on with a process (another head, another past) gets a fresh one. */
#include "host/claude_process.h"

#include <stdio.h>

#include "base/excerpt.h"
#include "host/driver.h"
#include "io/process.h"

extern char **environ;

static const char ADVICE[] = "install it (npm install -g @anthropic-ai/claude-code), or say in "
                             "AGENTHOST_CLAUDE where it is";

enum {
    MAX_LINE = 64 << 20,
    KEPT_LINE = 64 << 10, /* of memory, for the next one */
    MAX_REQUEST = 256 << 20,
    MAX_STDERR = 4 << 10, /* of its end, as it came */
    MOST_TOLD = 400,      /* of that, in messages */
    MAX_SESSIONS = 8,     /* conversations on one adapter that keep a process */
    PARTING_MS = 1000     /* between the interruption and TERM */
};

typedef struct claude claude;

/* A conversation's process. */
typedef struct session {
    claude *of;
    struct session *next;
    const ah_lowered *wire; /* which conversation; only compared */
    int64_t run;            /* number of the run that asked last */
    ah_claude talk;
    ah_process *p;
    ah_exchange *x; /* NULL: nobody waits */
    bool parting;   /* to be freed once the process is gone */
    bool kept;      /* it is of an earlier exchange than x */
    bool silent;    /* it has said nothing for as long as it may */
    ah_job job;
    ah_timer timer;
    ah_buf line; /* the one that is being read */
    ah_buf held; /* lines of the next message */
    ah_buf said; /* the end of what stderr said */
} session;

struct claude {
    ah_claude_owner owner;
    ah_host *host;
    session *first; /* the latest first */
};

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* -- sessions ---------------------------------------------------------------------------------- */

static void free_session(session *s)
{
    session **link = &s->of->first;

    while (*link && *link != s)
        link = &(*link)->next;
    if (*link)
        *link = s->next;
    ah_process_free(s->p);
    ah_job_cancel(&s->job);
    ah_timer_unset(&s->timer);
    ah_claude_clear(&s->talk);
    ah_buf_clear(&s->line);
    ah_buf_clear(&s->held);
    ah_buf_clear(&s->said);
    ah_free(s->of->owner.native.base.mem, s);
}

static void post(session *s)
{
    ah_job_post(s->of->host, &s->job);
}

/* Whose job it is from now on. */
static void attach(session *s, ah_exchange *x)
{
    ah_job_cancel(&s->job);
    s->x = x;
    s->silent = false;
    s->job.of = x ? x->of : NULL;
    ah_timer_unset(&s->timer);
}

/* Nobody waits for its end. In the midst of a turn it would tell the model that its calls were
 * interrupted, and pay for the answer: then it is ended at once. */
static void part(session *s)
{
    attach(s, NULL);
    s->parting = true;
    s->wire = NULL;
    if (s->talk.turn)
        ah_process_stop(s->p);
    else
        ah_process_close_input(s->p);
    ah_timer_set(s->of->host->loop, &s->timer, ah_host_now(s->of->host) + PARTING_MS);
    post(s);
}

static void expect_news(session *s)
{
    ah_timer_set(s->of->host->loop, &s->timer,
                 ah_host_now(s->of->host) + s->of->owner.native.limits.idle_ms);
}

static void end_exchange(session *s, const ah_err *err)
{
    ah_exchange *x = s->x;
    ah_err e = {0};

    attach(s, NULL);
    if (err) {
        e = *err;
        e.phase = AH_PHASE_RESPONSE;
        part(s);
    } else {
        post(s); /* more may have come */
        if (!s->talk.turn)
            expect_news(s); /* another question */
    }
    if (x)
        ah_exchange_end(x, err ? &e : NULL);
}

static void timed_out(ah_timer *t)
{
    session *s = FROM(t, session, timer);

    s->silent = !s->parting;
    if (s->parting)
        ah_process_stop(s->p);
    else
        post(s); /* the end of an exchange calls observers: not within the loop's wait */
}

/* Its time is over, and nothing came since. */
static void end_silence(session *s)
{
    ah_err err;

    if (!s->x) { /* what it knows can be told to another one */
        part(s);
        return;
    }
    ah_err_set(&err, AH_HTTP, AH_CLAUDE ": the command said nothing for %lld ms",
               (long long)s->of->owner.native.limits.idle_ms);
    end_exchange(s, &err);
}

/* -- what the command says ------------------------------------------------------------------------- */

static ah_slice header(const void *ud, const char *name)
{
    (void)ud;
    return ah_slice_of(strcmp(name, "content-type") == 0 ? "application/x-ndjson" : NULL);
}

static void tell_head(session *s)
{
    ah_response_head head = {.status = 200, .header = header, .wall_ms = ah_host_wall(s->of->host)};

    s->x->head_told = true;
    ah_run_head(ah_driven_run(s->x->of), s->x->id, &head);
}

static void feed(session *s, const ah_claude_news *news)
{
    if (!s->x->head_told)
        tell_head(s);
    ah_exchange_feed(s->x, news->event[0]);
    if (news->event[1].p)
        ah_exchange_feed(s->x, news->event[1]);
    ah_exchange_feed(s->x, (ah_slice){"\n", 1});
}

static ah_status write_out(session *s, ah_err *err)
{
    ah_status st = AH_OK;

    if (s->talk.out.len)
        st = ah_process_write(s->p, ah_buf_slice(&s->talk.out), err);
    ah_buf_reset(&s->talk.out, 0);
    return st == AH_INTERNAL ? AH_OK : st; /* it is ending: its end says why */
}

static ah_status hold(session *s, ah_slice line, ah_err *err)
{
    ah_buf_put(&s->held, line);
    return ah_buf_ok(&s->held) ? AH_OK : ah_buf_error(&s->held, AH_CLAUDE ": a line", err);
}

static ah_status take(session *s, ah_slice line, ah_err *err)
{
    ah_claude_news news;
    ah_status st = ah_claude_line(&s->talk, line, &news, err);

    if (st == AH_OK && news.hold)
        return hold(s, line, err);
    if (st != AH_OK)
        return st;
    if (s->x && news.event[0].p)
        feed(s, &news);
    if (s->x && news.warning[0])
        ah_run_warn(ah_driven_run(s->x->of), ah_slice_of(news.warning));
    if (news.ended)
        end_exchange(s, NULL);
    return write_out(s, err);
}

/* The line that was kept back, once the message is asked for. */
static ah_status take_held(session *s, ah_err *err)
{
    ah_buf line = s->held;
    ah_status st;

    ah_buf_init(&s->held, line.mem, line.max);
    st = take(s, ah_buf_slice(&line), err);
    ah_buf_clear(&line);
    return st;
}

/* The process has its buffer for what comes meanwhile: what the line tells calls out into
 * observers. */
static ah_status take_own(session *s, ah_slice line, ah_err *err)
{
    ah_status st;

    ah_buf_reset(&s->line, 0);
    ah_buf_put(&s->line, line);
    if (!ah_buf_ok(&s->line))
        return ah_buf_error(&s->line, AH_CLAUDE ": a line", err);
    st = take(s, ah_buf_slice(&s->line), err);
    if (s->line.cap > KEPT_LINE)
        ah_buf_clear(&s->line);
    return st;
}

static ah_status take_lines(session *s, ah_err *err)
{
    ah_slice line;
    ah_line got = AH_LINE_NONE;
    ah_status st = AH_OK;

    if (s->held.len && s->talk.listening)
        st = take_held(s, err);
    while (st == AH_OK && !s->held.len &&
           (got = ah_process_line(s->p, AH_STDOUT, &line)) == AH_LINE_WHOLE) {
        if (s->x)
            expect_news(s);
        st = take_own(s, line, err);
    }
    if (got == AH_LINE_TOO_LONG)
        st = ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": a line of the command has more than %d bytes",
                        MAX_LINE);
    return st;
}

/* Only the end of it is worth keeping. */
static void take_stderr(session *s)
{
    ah_slice more = ah_process_output(s->p, AH_STDERR);
    size_t n = more.n < MAX_STDERR ? more.n : MAX_STDERR;

    if (s->said.len + n > MAX_STDERR)
        ah_buf_drop(&s->said, s->said.len + n - MAX_STDERR);
    ah_utf8_repair((ah_slice){more.p + more.n - n, n}, &s->said);
    ah_process_take(s->p, AH_STDERR, more.n);
}

/* Its end, on one line. The keys are taken out while the beginning of one cannot have been cut off:
 * much more is kept than is told. */
static void put_said(const session *s, ah_buf *out)
{
    ah_buf b;
    size_t at;

    ah_buf_init(&b, out->mem, 8 * (size_t)MAX_STDERR);
    ah_excerpt(ah_buf_slice(&s->said), s->talk.secrets, 4 * (size_t)MAX_STDERR, &b);
    at = b.len > MOST_TOLD ? b.len - MOST_TOLD : 0;
    while (at && at < b.len && ((unsigned char)b.data[at] & 0xc0) == 0x80)
        at++;
    if (b.len)
        ah_buf_str(out, ": ");
    ah_buf_put(out, (ah_slice){b.data ? b.data + at : "", b.len - at});
    ah_buf_clear(&b);
}

static void tell_end(const session *s, const ah_process_result *r, ah_err *err)
{
    ah_buf said;

    ah_buf_init(&said, s->of->owner.native.base.mem, 2 * (size_t)MAX_STDERR);
    put_said(s, &said);
    if (r->how == AH_PROCESS_FAILED)
        ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": %s; %s", r->err.message, ADVICE);
    else if (r->signal)
        ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": the command was ended by signal %d%.*s", r->signal,
                   AH_FMT(ah_buf_slice(&said)));
    else
        ah_err_set(err, AH_PROVIDER,
                   AH_CLAUDE ": the command ended (exit code %d) before its answer was complete%.*s",
                   r->code, AH_FMT(ah_buf_slice(&said)));
    ah_buf_clear(&said);
}

static void drain(session *s)
{
    ah_process_take(s->p, AH_STDOUT, ah_process_output(s->p, AH_STDOUT).n);
    ah_process_take(s->p, AH_STDERR, ah_process_output(s->p, AH_STDERR).n);
}

static void exchange(ah_claude_owner *a, ah_exchange *x);

/* A process that was kept may have ended since: its end came too late to be seen when the
 * exchange began, and a fresh one is asked. */
static void on_end(session *s, const ah_process_result *r)
{
    ah_exchange *x = s->x;
    ah_err err;

    if (x && s->kept && !x->head_told) {
        attach(s, NULL);
        exchange(&s->of->owner, x);
    } else if (x) {
        tell_end(s, r, &err);
        end_exchange(s, &err);
    }
    free_session(s);
}

static void on_job(ah_job *job)
{
    session *s = FROM(job, session, job);
    ah_process_result r;
    ah_err err = {0};
    ah_status st = AH_OK;
    bool silent = s->silent;

    s->silent = false;
    if (s->parting) {
        drain(s);
    } else {
        take_stderr(s);
        st = take_lines(s, &err);
    }
    if (st != AH_OK) {
        end_exchange(s, &err);
        return;
    }
    if (ah_process_ended(s->p, &r) && (!s->held.len || s->parting))
        on_end(s, &r);
    else if (silent && !s->timer.loop && !s->parting)
        end_silence(s);
}

static void on_news(void *ud, ah_process *p)
{
    (void)p;
    post(ud);
}

/* -- starting ------------------------------------------------------------------------------------ */

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Variables of the host that the command is given. The two that the adapter sets are not. */
static bool passes(const char *var)
{
    static const char *const whole[] = {"HOME=",
                                        "PATH=",
                                        "TMPDIR=",
                                        "LANG=",
                                        "http_proxy=",
                                        "https_proxy=",
                                        "no_proxy=",
                                        "HTTP_PROXY=",
                                        "HTTPS_PROXY=",
                                        "NO_PROXY=",
                                        "SSL_CERT_FILE=",
                                        "SSL_CERT_DIR=",
                                        "NODE_EXTRA_CA_CERTS="};

    if (begins(var, "ANTHROPIC_API_KEY=") || begins(var, "ANTHROPIC_BASE_URL="))
        return false;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (begins(var, whole[i]))
            return true;
    return begins(var, "ANTHROPIC_") || begins(var, "CLAUDE_");
}

static const char MOST_TOKENS[] = "CLAUDE_CODE_MAX_OUTPUT_TOKENS=";

/* A list as execve wants it, NULL at its end; it grows as words come. */
typedef struct words {
    const ah_mem *mem;
    const char **at;
    size_t n, cap;
    bool failed;
} words;

static void add(words *w, const char *word)
{
    const char **grown = w->failed ? NULL : ah_grow(w->mem, w->at, &w->cap, w->n + 2, sizeof *grown);

    if (!grown) {
        w->failed = true;
        return;
    }
    w->at = grown;
    grown[w->n++] = word;
    grown[w->n] = NULL;
}

static void add_all(words *w, const char *const *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(w, word[i]);
}

static void put_variable(ah_buf *b, const char *name, ah_slice value)
{
    ah_buf_str(b, name);
    ah_buf_put(b, value);
    ah_buf_char(b, '\0');
}

/* Those that are made for this process, each with a NUL behind it. */
static void put_own(const session *s, ah_buf *b)
{
    const ah_native *native = &s->of->owner.native;
    ah_slice url = ah_text_slice(native->base.endpoint);

    if (s->talk.options.max_tokens) {
        ah_buf_str(b, MOST_TOKENS);
        ah_buf_int(b, s->talk.options.max_tokens);
        ah_buf_char(b, '\0');
    }
    if (!ah_slice_is(url, AH_CLAUDE_URL))
        put_variable(b, "ANTHROPIC_BASE_URL=", url);
    if (native->key)
        put_variable(b, "ANTHROPIC_API_KEY=", ah_secret_reveal(native->key));
}

/* `own` is what put_own made, and must stay as it is. */
static void fill_env(const session *s, words *env, const ah_buf *own)
{
    static const char *const fixed[] = {"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
                                        "DISABLE_ERROR_REPORTING=1",
                                        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"};

    for (size_t i = 0; environ[i]; i++)
        if (passes(environ[i]) && !(s->talk.options.max_tokens && begins(environ[i], MOST_TOKENS)))
            add(env, environ[i]);
    add_all(env, fixed, sizeof fixed / sizeof *fixed);
    for (size_t at = 0; at < own->len; at += strlen(own->data + at) + 1)
        add(env, own->data + at);
}

/* The command's words. */
static void put_words(const session *s, const char *command, words *argv)
{
    static const char *const always[] = {"-p",
                                         "--output-format",
                                         "stream-json",
                                         "--verbose",
                                         "--input-format",
                                         "stream-json",
                                         "--include-partial-messages",
                                         "--tools",
                                         "",
                                         "--strict-mcp-config",
                                         "--setting-sources",
                                         "",
                                         "--no-session-persistence",
                                         "--allowedTools",
                                         "mcp__host"};
    const ah_claude_options *o = &s->talk.options;
    ah_slice model = ah_text_slice(s->of->owner.native.base.model);
    bool thinks = o->effort && strcmp(o->effort, "none") != 0;

    add(argv, command);
    add_all(argv, always, sizeof always / sizeof *always);
    if (!ah_slice_is(model, "default")) {
        add(argv, "--model");
        add(argv, model.p);
    }
    if (o->effort) {
        add(argv, thinks ? "--effort" : "--thinking");
        add(argv, thinks ? o->effort : "disabled");
    }
}

static const char *find_variable(const char *const *env, const char *name)
{
    for (; *env; env++)
        if (begins(*env, name))
            return *env + strlen(name);
    return NULL;
}

static ah_status start_process(session *s, const words *env, ah_err *err)
{
    const char *asked = find_variable((const char *const *)environ, "AGENTHOST_CLAUDE=");
    const char *command = asked && *asked ? asked : "claude";
    words argv = {.mem = s->of->owner.native.base.mem};
    ah_process_config cfg = {
        .env = env->at, .input = true, .max_pending = MAX_LINE, .news = on_news, .ud = s};
    ah_status st;

    put_words(s, command, &argv);
    cfg.argv = argv.at;
    st = argv.failed ? ah_err_nomem(err)
                     : ah_process_start(argv.mem, s->of->host->loop, &cfg, &s->p, err);
    ah_free(argv.mem, argv.at);
    if (st != AH_USAGE)
        return st;
    return ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": there is no command `%.200s`; %s", command, ADVICE);
}

static ah_status start_session(session *s, ah_err *err)
{
    const ah_mem *mem = s->of->owner.native.base.mem;
    words env = {.mem = mem};
    ah_status st;
    ah_buf own;

    ah_buf_init(&own, mem, 64 << 10);
    put_own(s, &own);
    fill_env(s, &env, &own);
    if (!ah_buf_ok(&own))
        st = ah_buf_error(&own, "the environment", err);
    else
        st = env.failed ? ah_err_nomem(err) : start_process(s, &env, err);
    ah_buf_clear(&own);
    ah_free(mem, env.at);
    return st;
}

static ah_status new_session(claude *a, const ah_lowered *w, const ah_claude_options *o, session **out,
                             ah_err *err)
{
    const ah_mem *mem = a->owner.native.base.mem;
    session *s = ah_alloc(mem, sizeof *s);
    ah_status st;

    if (!s)
        return ah_err_nomem(err);
    *s = (session){.of = a, .wire = w, .job.fn = on_job, .timer.fn = timed_out, .next = a->first};
    ah_claude_init(&s->talk, mem, a->owner.native.base.tool_change_mode == AH_TOOLS_LIST_CHANGED);
    s->talk.options = *o;
    s->talk.secrets = &a->host->secrets;
    ah_buf_init(&s->line, mem, MAX_LINE);
    ah_buf_init(&s->held, mem, MAX_LINE);
    ah_buf_init(&s->said, mem, MAX_STDERR * 4);
    a->first = s;
    if ((st = start_session(s, err)) == AH_OK)
        *out = s;
    else
        free_session(s);
    return st;
}

/* -- exchanges -------------------------------------------------------------------------------------- */

/* Too many conversations: the one that waits longest for its next exchange loses its process. */
static void make_room(claude *a)
{
    session *oldest = NULL;
    size_t n = 0;

    for (session *s = a->first; s; s = s->next) {
        n += !s->parting;
        if (!s->parting && !s->x)
            oldest = s;
    }
    if (n >= MAX_SESSIONS && oldest)
        part(oldest);
}

static session *find_wire(const claude *a, const ah_lowered *w)
{
    session *s = a->first;

    while (s && s->wire != w)
        s = s->next;
    return s;
}

/* A turn goes on in its own run only: what is asked in another one would stand behind the results
 * of calls, as if a tool had said it. */
static bool may_go_on(const session *s, int64_t run)
{
    return (!s->talk.turn || s->run == run) && !ah_process_ended(s->p, NULL);
}

/* The conversation's process where it can go on, else a fresh one. */
static ah_status find_session(claude *a, const ah_lowered *w, int64_t run, ah_slice request,
                              session **out, ah_err *err)
{
    session *s = find_wire(a, w);
    ah_claude_options o;
    ah_status st = ah_claude_options_of(request, &o, err);

    if (st != AH_OK)
        return st;
    if (s && may_go_on(s, run) && ah_claude_fits(&s->talk, request)) {
        s->kept = true;
        *out = s;
        return AH_OK;
    }
    if (s)
        part(s);
    make_room(a);
    return new_session(a, w, &o, out, err);
}

static ah_status ask(claude *a, ah_exchange *x, ah_slice request, ah_err *err)
{
    session *s = NULL;
    const ah_run *run = ah_driven_run(x->of);
    ah_status st = find_session(a, ah_run_cfg(run)->wire, ah_run_cfg(run)->id, request, &s, err);

    if (st == AH_OK && (st = ah_claude_ask(&s->talk, request, err)) == AH_OK)
        st = write_out(s, err);
    if (st != AH_OK) {
        if (s)
            part(s);
        return st;
    }
    x->task = s;
    s->run = ah_run_cfg(run)->id;
    attach(s, x);
    expect_news(s);
    post(s);
    return AH_OK;
}

static void exchange(ah_claude_owner *a, ah_exchange *x)
{
    ah_slice body[3];
    size_t n = ah_lowered_body(ah_run_cfg(ah_driven_run(x->of))->wire, body);
    ah_buf request;
    ah_status st;
    ah_err err;

    ah_buf_init(&request, a->native.base.mem, MAX_REQUEST);
    for (size_t i = 0; i < n; i++)
        ah_buf_put(&request, body[i]);
    st = ah_buf_ok(&request) ? ask((claude *)a, x, ah_buf_slice(&request), &err)
                             : ah_buf_error(&request, "the request", &err);
    ah_buf_clear(&request);
    if (st == AH_OK)
        return;
    err.phase = AH_PHASE_REQUEST;
    ah_exchange_end(x, &err);
}

static void stop(ah_claude_owner *a, ah_exchange *x)
{
    session *s = x->task;
    ah_err err;

    (void)a;
    if (!s || s->x != x)
        return;
    if (ah_claude_interrupt(&s->talk, &err) == AH_OK)
        write_out(s, &err); /* a command that does not listen is ended all the same */
    s->talk.turn = false;   /* it does not go on: it may end by itself */
    part(s);
}

static void leave(ah_claude_owner *owner, const ah_lowered *w)
{
    session *s = find_wire((claude *)owner, w);

    if (s && !s->x)
        part(s);
}

static void release(ah_claude_owner *owner)
{
    claude *a = (claude *)owner;

    while (a->first)
        free_session(a->first);
    ah_free(owner->native.base.mem, a);
}

ah_status ah_claude_new(ah_host *h, ah_slice model, const ah_provider_options *o, ah_adapter **out,
                        ah_err *err)
{
    claude *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->host = h;
    a->owner = (ah_claude_owner){.start = exchange, .stop = stop, .leave = leave, .release = release};
    if ((st = ah_claude_fill(&a->owner, model, o, err)) == AH_OK)
        *out = &a->owner.native.base;
    else
        ah_adapter_unref(&a->owner.native.base);
    return st;
}
