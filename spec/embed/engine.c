/* See engine.h. */
#include "engine.h"

static char *copy(ah_span s)
{
    char *p = malloc(s.n + 1);

    CHECK(p && (s.p || !s.n));
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

static bool is(ah_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static ah_span span(const char *text)
{
    return (ah_span){text, text ? strlen(text) : 0};
}

static stream *find(engine *e, ah_span name)
{
    for (size_t i = 0; i < e->n; i++)
        if (is(name, e->stream[i].name))
            return &e->stream[i];
    return NULL;
}

/* -- appends --------------------------------------------------------------------------------- */

static ah_status check(engine *e, const ah_engine_batch *b)
{
    stream *s = find(e, b->stream);

    if (!s || !s->held || s->fence != b->fence)
        return AH_STORE;
    CHECK(b->after + (int64_t)b->n_records <= MOST_ROWS);
    return (int64_t)s->n == b->after ? AH_OK : AH_CONFLICT;
}

static void carry_out(engine *e, const ah_engine_batch *b)
{
    stream *s = find(e, b->stream);

    for (size_t i = 0; i < b->n_records; i++) {
        const ah_engine_record *r = &b->records[i];

        CHECK(r->number == (int64_t)s->n + 1);
        s->row[s->n++] = (row){.time = r->time,
                               .kind = copy(r->kind),
                               .kind_n = r->kind.n,
                               .said = copy(r->said),
                               .said_n = r->said.n,
                               .kept = r->kept.p ? copy(r->kept) : NULL,
                               .kept_n = r->kept.n};
    }
    for (size_t i = 0; i < b->n_taken; i++)
        for (size_t k = 0; k < s->n_messages; k++)
            s->message[k].taken |= is(b->taken[i], s->message[k].key);
}

static ah_status decide(engine *e, const ah_engine_append *a)
{
    ah_status st = AH_OK;

    if (e->fail != AH_OK && e->fail_after-- <= 0)
        return e->fail;
    for (size_t i = 0; st == AH_OK && i < a->n_batches; i++)
        st = check(e, &a->batches[i]);
    for (size_t i = 0; st == AH_OK && i < a->n_batches; i++)
        carry_out(e, &a->batches[i]);
    return st;
}

static void *end_one(void *ud)
{
    engine *e = ud;

    STATUS(NULL, ah_store_appended(e->host, e->id, e->result, e->why), AH_OK);
    return NULL;
}

static void join(engine *e)
{
    if (e->running)
        pthread_join(e->thread, NULL);
    e->running = false;
}

static void append(void *ud, ah_host *host, const ah_engine_append *a)
{
    engine *e = ud;

    CHECK(a->id != 0 && a->n_batches > 0);
    join(e);
    e->appends++;
    e->host = host;
    e->id = a->id;
    e->result = decide(e, a);
    if (e->at_append)
        e->at_append(e->ud);
    if (e->ending == AT_ONCE || e->ending == TWICE)
        end_one(e);
    if (e->ending == TWICE)
        STATUS(NULL, ah_store_appended(host, e->id, AH_STORE, NULL), AH_USAGE);
    if (e->ending == BY_A_THREAD)
        e->running = pthread_create(&e->thread, NULL, end_one, e) == 0;
}

static void wait_for(void *ud, ah_host *host)
{
    engine *e = ud;

    CHECK(host == e->host);
    if (e->ending == BY_WAIT)
        end_one(e);
}

/* -- holding --------------------------------------------------------------------------------- */

static ah_status hold(void *ud, ah_span name, bool take, int64_t *fence, const char **why)
{
    engine *e = ud;
    stream *s = find(e, name);

    *why = "another host holds it";
    if (s && s->held && !take)
        return AH_CONFLICT;
    if (!s) {
        CHECK(e->n < MOST_STREAMS);
        s = &e->stream[e->n++];
        *s = (stream){.name = copy(name)};
    }
    s->held = true;
    *fence = e->low_fence ? 0 : ++s->fence;
    return AH_OK;
}

static void release(void *ud, ah_span name)
{
    stream *s = find(ud, name);

    if (s)
        s->held = false;
}

static ah_status label(void *ud, ah_span name, ah_span text, const char **why)
{
    stream *s = find(ud, name);

    (void)why;
    if (!s || !s->held)
        return AH_STORE;
    free(s->label);
    s->label = text.p ? copy(text) : NULL;
    return AH_OK;
}

/* -- reading --------------------------------------------------------------------------------- */

static ah_status read_rows(void *ud, ah_span name, int64_t from, ah_engine_record_fn each, void *to,
                           const char **why)
{
    engine *e = ud;
    const stream *s = find(e, name);
    ah_status st = e->fail_reads;

    *why = e->why;
    for (size_t i = (size_t)from - 1; s && st == AH_OK && i < s->n; i++) {
        const row *r = &s->row[i];
        ah_engine_record shown = {.number = (int64_t)i + (e->out_of_order ? 2 : 1),
                                  .time = r->time,
                                  .kind = {e->no_kind ? NULL : r->kind, r->kind_n},
                                  .said = {r->said, e->huge ? SIZE_MAX / 2 : r->said_n},
                                  .kept = {r->kept, r->kept_n}};

        st = each(to, &shown);
        if (e->out_of_order) /* what the host returned is ignored */
            st = AH_OK;
    }
    return st;
}

static ah_status list(void *ud, ah_span prefix, ah_engine_stream_fn each, void *to,
                      const char **why)
{
    engine *e = ud;
    ah_status st = e->fail_reads;

    *why = e->why;
    for (size_t i = e->n; st == AH_OK && i-- > 0;) {
        const stream *s = &e->stream[i];
        ah_engine_stream shown = {.name = {e->no_name ? NULL : s->name, strlen(s->name)},
                                  .label = span(s->label),
                                  .last = (int64_t)s->n,
                                  .time = s->n ? s->row[s->n - 1].time : 0};

        for (size_t k = 0; k < s->n_messages; k++)
            shown.messages += !s->message[k].taken;
        if (s->n && strncmp(s->name, prefix.p, prefix.n) == 0)
            st = each(to, &shown);
    }
    return st;
}

/* -- the inbox ------------------------------------------------------------------------------- */

static ah_status post(void *ud, ah_span name, const ah_engine_message *m, const char **why)
{
    stream *s = find(ud, name);

    *why = "no";
    if (!s)
        return AH_USAGE;
    for (size_t i = 0; i < s->n_messages; i++)
        if (is(m->key, s->message[i].key))
            return AH_CONFLICT;
    CHECK(s->n_messages < MOST_MESSAGES);
    s->message[s->n_messages++] = (message){
        .key = copy(m->key), .kind = copy(m->kind), .body = copy(m->body), .time = m->time};
    return AH_OK;
}

static ah_status inbox(void *ud, ah_span name, ah_engine_message_fn each, void *to,
                       const char **why)
{
    const stream *s = find(ud, name);
    ah_status st = AH_OK;

    (void)why;
    for (size_t i = 0; s && st == AH_OK && i < s->n_messages; i++) {
        const message *m = &s->message[i];
        ah_engine_message shown = {
            .key = span(m->key), .kind = span(m->kind), .body = span(m->body), .time = m->time};

        if (!m->taken)
            st = each(to, &shown);
    }
    return st;
}

/* -- opening and closing --------------------------------------------------------------------- */

static void closed(void *ud)
{
    engine *e = ud;

    join(e);
    e->closes++;
    for (size_t i = 0; i < e->n; i++)
        e->stream[i].held = false;
}

ah_store_engine engine_config(engine *e, const char *name)
{
    return (ah_store_engine){.size = sizeof(ah_store_engine),
                             .name = name,
                             .append = append,
                             .wait = e->ending == BY_A_THREAD ? NULL : wait_for,
                             .hold = hold,
                             .release = release,
                             .read = read_rows,
                             .list = list,
                             .label = label,
                             .post = post,
                             .inbox = inbox,
                             .close = closed,
                             .ud = e};
}

ah_store *open_engine(ah_host *host, engine *e, const char *name)
{
    ah_store_engine config = engine_config(e, name);
    ah_store *store = NULL;

    STATUS(host, ah_store_open_with(host, &config, &store), AH_OK);
    CHECK(store);
    return store;
}

void free_engine(engine *e)
{
    for (size_t i = 0; i < e->n; i++) {
        stream *s = &e->stream[i];

        for (size_t k = 0; k < s->n; k++) {
            free(s->row[k].kind);
            free(s->row[k].said);
            free(s->row[k].kept);
        }
        for (size_t k = 0; k < s->n_messages; k++) {
            free(s->message[k].key);
            free(s->message[k].kind);
            free(s->message[k].body);
        }
        free(s->name);
        free(s->label);
    }
    free(e);
}

size_t count_records(const engine *e, const char *stream_name, const char *kind)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++)
        for (size_t k = 0; strcmp(e->stream[i].name, stream_name) == 0 && k < e->stream[i].n; k++)
            n += strcmp(e->stream[i].row[k].kind, kind) == 0;
    return n;
}
