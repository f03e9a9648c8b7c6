/* See store_asks.h. The label of a stream says whether it has open asks, so only the streams that
 * wait are read. */
#include "host/store_asks.h"

#include <stdio.h>

#include "base/near.h"
#include "host/ask.h"
#include "io/random.h"
#include "journal/fold.h"

enum {
    MAX_BODY = AH_MAX_RESPONSE + 4096, /* bytes of a message */
    MAX_LABEL = 1 << 20,               /* bytes of a label that is read */
    MAX_ID = 200                       /* bytes of the key of a message */
};

/* -- names of streams ----------------------------------------------------------------------------
 */

/* The streams of a list; they are read after it, as an engine may allow one reading at a time. */
typedef struct names {
    const ah_mem *mem;
    bool waiting; /* only those with an open ask */
    ah_text **item;
    size_t n, cap;
} names;

static void clear_names(names *a)
{
    for (size_t i = 0; i < a->n; i++)
        ah_text_unref(a->item[i]);
    ah_free(a->mem, a->item);
}

/* True if the label is sound. A store's file may hold anything. */
static bool is_label(const ah_mem *mem, ah_slice label)
{
    return label.p && label.n <= MAX_LABEL &&
           ah_json_check(mem, label, AH_JSON_MAX_DEPTH, NULL) == AH_OK &&
           ah_json_kind_of(label) == AH_JSON_OBJECT;
}

/* True if the stream may have open asks: its label lists some, or lists nothing and the run has
 * not ended. */
static bool may_ask(const ah_mem *mem, ah_slice label)
{
    ah_slice waiting;
    ah_json_reader r;

    if (!is_label(mem, label))
        return false;
    if (!(waiting = ah_json_member(label, "waiting")).p)
        return !ah_json_string_is(ah_json_member(label, "state"), "idle");
    r = ah_json_read(waiting);
    return ah_json_next(&r).kind == AH_JSON_ARRAY && ah_json_next(&r).kind == AH_JSON_STRING;
}

static ah_status add_name(void *ud, const ah_store_stream *s, ah_err *err)
{
    names *a = ud;
    ah_text **item;

    if (a->waiting && !may_ask(a->mem, s->label))
        return AH_OK;
    if (!(item = ah_grow(a->mem, a->item, &a->cap, a->n + 1, sizeof *item)))
        return ah_err_nomem(err);
    a->item = item;
    if (!(item[a->n] = ah_text_new(a->mem, s->name)))
        return ah_err_nomem(err);
    a->n++;
    return AH_OK;
}

/* -- conversations -------------------------------------------------------------------------------
 */

typedef struct listing {
    const ah_mem *mem;
    ah_buf *out;
} listing;

static ah_status put_stream(void *ud, const ah_store_stream *s, ah_err *err)
{
    const listing *l = ud;
    ah_buf *out = l->out;

    if (ah_buf_slice(out).p[out->len - 1] != '[')
        ah_buf_char(out, ',');
    ah_buf_char(out, '{');
    ah_json_add_string(out, "conversation", s->name);
    ah_json_add_name(out, "changed");
    ah_json_put_double(out, (double)s->time / 1000);
    ah_buf_fmt(out, ",\"messages\":%zu", s->messages);
    if (is_label(l->mem, s->label))
        ah_json_add(out, "label", s->label);
    ah_buf_char(out, '}');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the list of conversations", err);
}

ah_status ah_open_store_conversations(ah_host *h, ah_open_store *s, ah_slice prefix, ah_buf *out,
                                      ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    listing l = {h->mem, out};
    ah_status st = AH_OK;

    ah_buf_char(out, '[');
    if (ah_buf_ok(out))
        st = e->vt->list(e, prefix, true, put_stream, &l, err);
    ah_buf_char(out, ']');
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the list of conversations", err);
    return st;
}

/* The name is borrowed from the list, so it is copied at once. */
typedef struct nearest {
    ah_near near;
    char name[AH_STORE_MAX_STREAM + 1];
} nearest;

static ah_status offer_copy(void *ud, const ah_store_stream *s, ah_err *err)
{
    nearest *a = ud;
    ah_near before = a->near;

    (void)err;
    ah_near_offer(&a->near, s->name);
    if (a->near.best.p != before.best.p)
        snprintf(a->name, sizeof a->name, "%.*s", AH_FMT(a->near.best));
    if (a->near.best.p)
        a->near.best = ah_slice_of(a->name);
    return AH_OK;
}

ah_status ah_open_store_unknown(ah_open_store *s, ah_slice name, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    nearest a = {.near = {.to = name}};
    ah_status st = e->vt->list(e, ah_slice_of(""), true, offer_copy, &a, err);

    if (st != AH_OK)
        return st;
    if (name.n > AH_STORE_MAX_STREAM)
        name.n = ah_utf8_cut(name.p, AH_STORE_MAX_STREAM);
    if (a.name[0])
        return ah_err_set(err, AH_USAGE,
                          "there is no conversation '%.*s' in this store; did you mean '%s'?",
                          AH_FMT(name), a.name);
    return ah_err_set(err, AH_USAGE, "there is no conversation '%.*s' in this store", AH_FMT(name));
}

typedef struct passed {
    ah_store_record_fn fn;
    void *ud;
    bool any;
} passed;

static ah_status pass(void *ud, const ah_store_record *r, ah_err *err)
{
    passed *p = ud;

    p->any = true;
    return p->fn(p->ud, r, err);
}

ah_status ah_open_store_read(ah_open_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn,
                             void *ud, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    passed p = {.fn = fn, .ud = ud};
    ah_status st = e->vt->read(e, stream, from, pass, &p, err);

    return st == AH_OK && !p.any ? ah_open_store_unknown(s, stream, err) : st;
}

/* Ends the reading with the first record. */
static ah_status take_opened(void *ud, const ah_store_record *r, ah_err *err)
{
    if (!ah_slice_is(r->kind, ah_record_name(AH_RECORD_OPENED)))
        return ah_err_set(err, AH_STORE, "record 1 has kind '%.*s' in place of 'opened'",
                          AH_FMT(r->kind));
    ah_buf_put(ud, r->said);
    return AH_CANCELLED;
}

ah_status ah_open_store_opened(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err)
{
    size_t at = out->len;
    ah_status st = ah_open_store_read(s, conversation, 1, take_opened, out, err);

    if (st != AH_CANCELLED)
        return st;
    if (!ah_buf_ok(out))
        return ah_buf_error(out, "the record `opened`", err);
    return ah_json_check_err(h->mem, (ah_slice){out->data + at, out->len - at},
                             "the record `opened`", err);
}

/* -- reading a stream ----------------------------------------------------------------------------
 */

/* When an ask was recorded, and whether the inbox has a response to it. */
typedef struct moment {
    ah_text *id;
    int64_t time;
    bool responded;
} moment;

/* A folded stream. */
typedef struct reading {
    ah_host *host;
    ah_fold fold;
    moment *item;
    size_t n, cap;
    bool ran; /* a run has begun since its last checkpoint */
} reading;

static void clear_reading(reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        ah_text_unref(r->item[i].id);
    ah_free(r->host->mem, r->item);
    ah_fold_clear(&r->fold);
}

/* Returns the member's text without quotes, with its escapes; .p NULL: it is no string. */
static ah_slice string_of(ah_slice object, const char *name)
{
    ah_slice s = ah_json_member(object, name);

    return ah_json_kind_of(s) == AH_JSON_STRING ? ah_json_inside(s) : (ah_slice){NULL, 0};
}

static ah_status note_time(reading *r, const ah_store_record *record, ah_err *err)
{
    moment *item = ah_grow(r->host->mem, r->item, &r->cap, r->n + 1, sizeof *item);

    if (!item)
        return ah_err_nomem(err);
    r->item = item;
    if (!(item[r->n].id = ah_text_new(r->host->mem, string_of(record->said, "ask"))))
        return ah_err_nomem(err);
    item[r->n].responded = false;
    item[r->n++].time = record->time;
    return AH_OK;
}

static ah_status add_record(void *ud, const ah_store_record *record, ah_err *err)
{
    reading *r = ud;
    ah_status st = ah_fold_add(&r->fold, record, err);

    r->ran |= ah_slice_is(record->kind, ah_record_name(AH_RECORD_RUN_STARTED));
    if (st == AH_OK && ah_slice_is(record->kind, ah_record_name(AH_RECORD_ASK)))
        st = note_time(r, record, err);
    return st;
}

/* Folds a stream from its last checkpoint on, into *r, which is cleared on failure. */
static ah_status read_stream(ah_host *h, ah_open_store *s, ah_slice stream, reading *r, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    int64_t from = 0;
    ah_status st;

    *r = (reading){.host = h};
    if ((st = ah_fold_init(&r->fold, h->mem, err)) != AH_OK)
        return st;
    st = e->vt->find_last(e, stream, ah_slice_of(ah_record_name(AH_RECORD_CHECKPOINT)), &from, err);
    if (st == AH_OK)
        st = ah_open_store_read(s, stream, from > 0 ? from : 1, add_record, r, err);
    if (st != AH_OK)
        clear_reading(r);
    return st;
}

static int64_t number_of(ah_slice object, const char *name)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(object, name), &n) && n.is_int ? n.i : 0;
}

/* The time at which nothing more is waited for, in ms since the epoch; 0: none. */
static int64_t until_of(const ah_fold_ask *a)
{
    return number_of(ah_text_slice(a->ask), "until");
}

/* Sets *goes_on if a fork or a rewind has left the conversation within a run, and it has had no
 * run since. */
static ah_status find_cut(ah_store *e, ah_slice stream, const reading *r, bool *goes_on,
                          ah_err *err)
{
    const ah_fold *f = &r->fold;
    int64_t rewound = 0;
    ah_status st;

    if (r->ran || f->checkpoint == 0 || !ah_transcript_wants_answer(f->transcript))
        return AH_OK;
    *goes_on = f->checkpoint == 2 && ah_json_member(ah_text_slice(f->opened), "base").p;
    st = e->vt->find_last(e, stream, ah_slice_of(ah_record_name(AH_RECORD_REWOUND)), &rewound, err);
    *goes_on |= rewound > 0 && rewound == f->checkpoint - 1;
    return st;
}

ah_status ah_open_store_unfinished(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                                   ah_err *err)
{
    reading r;
    ah_status st = read_stream(h, s, conversation, &r, err);
    bool goes_on = r.fold.history.run > 0;

    if (st != AH_OK)
        return st;
    if (!goes_on)
        st = find_cut(ah_open_store_engine(s), conversation, &r, &goes_on, err);
    ah_buf_str(out, goes_on ? "true" : "false");
    clear_reading(&r);
    return st != AH_OK || ah_buf_ok(out) ? st : ah_err_nomem(err);
}

/* -- open asks -----------------------------------------------------------------------------------
 */

/* Returns NULL for an ask of a checkpoint. */
static moment *moment_of(const reading *r, ah_slice id)
{
    for (size_t i = r->n; i-- > 0;)
        if (ah_slice_eq(ah_text_slice(r->item[i].id), id))
            return &r->item[i];
    return NULL;
}

/* The name of the tool whose call asks; .p NULL: the record names no call of the turn. */
static ah_slice tool_of(const reading *r, ah_slice ask)
{
    const ah_transcript *t = r->fold.transcript;
    int64_t call = number_of(ask, "call");

    if (!t || call < 0 || (uint64_t)call >= t->n_slots || !ah_json_member(ask, "call").p)
        return (ah_slice){NULL, 0};
    return ah_text_slice(t->slot[call].name);
}

static void put_ask(const reading *r, ah_slice stream, const ah_fold_ask *a, ah_buf *out)
{
    static const char *const members[] = {"kind",    "question",  "schema",
                                          "default", "arguments", "result"};
    ah_slice ask = ah_text_slice(a->ask), tool = tool_of(r, ask);
    const moment *m = moment_of(r, ah_text_slice(a->id));
    int64_t asked = m ? m->time : r->fold.time, until = until_of(a);

    ah_buf_char(out, '{');
    ah_json_add_string(out, "conversation", stream);
    ah_json_add_string(out, "ask", ah_text_slice(a->id));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        ah_json_add(out, members[i], ah_json_member(ask, members[i]));
    ah_json_add(out, "changes", ah_json_member(ah_text_slice(a->kept), "changes"));
    ah_json_add_string(out, "tool", tool);
    ah_json_add_name(out, "asked");
    ah_json_put_double(out, (double)asked / 1000);
    if (until > 0) {
        ah_json_add_name(out, "timeout");
        ah_json_put_double(out, until > asked ? (double)(until - asked) / 1000 : 0);
    }
    ah_buf_char(out, '}');
}

static bool is_open(const reading *r, const ah_fold_ask *a)
{
    int64_t until = until_of(a);

    return ah_fold_is_open(&r->fold, a) && r->fold.history.run > 0 &&
           (until <= 0 || until > ah_host_wall(r->host));
}

/* Marks the ask to which the message responds. Has the type of ah_store_message_fn. */
static ah_status note_response(void *ud, const ah_store_message *m, ah_err *err)
{
    enum { SKIP = sizeof AH_KEY_ASK - 1 };
    bool is = ah_slice_is(m->kind, "response") && m->key.n > SKIP;
    moment *of = is ? moment_of(ud, (ah_slice){m->key.p + SKIP, m->key.n - SKIP}) : NULL;

    (void)err;
    if (of)
        of->responded = true;
    return AH_OK;
}

/* True if the ask is to be listed: it is open, and no response waits for the holder. */
static bool is_to_list(const reading *r, const ah_fold_ask *a)
{
    const moment *m = moment_of(r, ah_text_slice(a->id));

    return is_open(r, a) && !(m && m->responded);
}

static ah_status put_asks_of(ah_host *h, ah_open_store *s, ah_slice stream, ah_buf *out,
                             ah_err *err)
{
    reading r;
    ah_store *e = ah_open_store_engine(s);
    ah_status st = read_stream(h, s, stream, &r, err);

    if (st != AH_OK)
        return st;
    if (r.fold.n_asks)
        st = e->vt->inbox(e, stream, note_response, &r, err);
    for (size_t i = 0; st == AH_OK && i < r.fold.n_asks; i++) {
        if (!is_to_list(&r, &r.fold.ask[i]))
            continue;
        if (ah_buf_ok(out) && out->data[out->len - 1] != '[')
            ah_buf_char(out, ',');
        put_ask(&r, stream, &r.fold.ask[i], out);
    }
    clear_reading(&r);
    return st;
}

/* A damaged conversation does not hide the others. */
static ah_status leave_out(ah_host *h, const ah_text *stream, const ah_err *err)
{
    ah_log_put(&h->log, AH_LOG_WARNING, "conversation '%s' is left out: %s", stream->data,
               err->message);
    return AH_OK;
}

ah_status ah_open_store_asks(ah_host *h, ah_open_store *s, ah_slice prefix, ah_buf *out,
                             ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    names a = {.mem = h->mem, .waiting = true};
    ah_status st = e->vt->list(e, prefix, true, add_name, &a, err);

    ah_buf_char(out, '[');
    for (size_t i = 0; st == AH_OK && i < a.n; i++) {
        st = put_asks_of(h, s, ah_text_slice(a.item[i]), out, err);
        if (st == AH_STORE && !ah_slice_eq(ah_text_slice(a.item[i]), prefix))
            st = leave_out(h, a.item[i], err);
    }
    ah_buf_char(out, ']');
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the list of asks", err);
    clear_names(&a);
    return st;
}

/* -- responses -----------------------------------------------------------------------------------
 */

/* Searches a whole stream for an ask that the fold does not know any more. */
typedef struct search {
    const ah_mem *mem;
    ah_slice id;
    bool asked;
    char how[32]; /* of its ask_closed; "": none */
} search;

static ah_status look(void *ud, const ah_store_record *r, ah_err *err)
{
    search *a = ud;
    bool closed = ah_slice_is(r->kind, ah_record_name(AH_RECORD_ASK_CLOSED));

    (void)err;
    if (!closed && !ah_slice_is(r->kind, ah_record_name(AH_RECORD_ASK)))
        return AH_OK;
    if (ah_json_check(a->mem, r->said, AH_JSON_MAX_DEPTH, NULL) != AH_OK ||
        !ah_slice_eq(string_of(r->said, "ask"), a->id))
        return AH_OK;
    a->asked = true;
    if (closed)
        snprintf(a->how, sizeof a->how, "%.*s", AH_FMT(string_of(r->said, "how")));
    return AH_OK;
}

static ah_status say_closed(ah_slice id, const char *how, ah_err *err)
{
    static const struct {
        const char *how, *words;
    } ends[] = {{"timeout", "is closed: its time is over"},
                {"cancelled", "is closed: the call that asked is over"},
                {"declined", "is closed: the conversation went on without a response"},
                {"renewed", "is closed: what it is about has changed, and it is asked anew"}};
    const char *words = "is closed: the call that asked is over";

    if (strcmp(how, "response") == 0)
        return ah_err_set(err, AH_CONFLICT,
                          "ask '%.*s' is already answered: the first response counts", AH_FMT(id));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(how, ends[i].how) == 0)
            words = ends[i].words;
    return ah_err_set(err, AH_USAGE, "ask '%.*s' %s", AH_FMT(id), words);
}

static ah_status no_ask(const reading *r, ah_open_store *s, ah_slice stream, ah_slice id,
                        ah_err *err)
{
    search past = {.mem = r->host->mem, .id = id};
    ah_near near = {.to = id};
    ah_slice last = {NULL, 0};
    ah_status st = ah_open_store_read(s, stream, 1, look, &past, err);

    if (st != AH_OK)
        return st;
    if (past.asked)
        return say_closed(id, past.how, err);
    for (size_t i = 0; i < r->fold.n_asks; i++)
        if (is_open(r, &r->fold.ask[i])) {
            last = ah_text_slice(r->fold.ask[i].id);
            ah_near_offer(&near, last);
        }
    if (near.best.p)
        return ah_err_set(err, AH_USAGE, "there is no ask '%.*s' in '%.*s'; did you mean '%.*s'?",
                          AH_FMT(id), AH_FMT(stream), AH_FMT(near.best));
    return ah_err_set(err, AH_USAGE, "there is no ask '%.*s' in '%.*s'; %s%.*s%s", AH_FMT(id),
                      AH_FMT(stream), last.p ? "open is '" : "none is open", AH_FMT(last),
                      last.p ? "'" : "");
}

/* Finds an ask that takes a response. */
static ah_status find_ask(const reading *r, ah_open_store *s, ah_slice stream, ah_slice id,
                          const ah_fold_ask **out, ah_err *err)
{
    const ah_fold_ask *a = ah_fold_find_ask(&r->fold, id);
    char how[32];

    if (!a)
        return no_ask(r, s, stream, id, err);
    if (a->closed) {
        snprintf(how, sizeof how, "%.*s", AH_FMT(string_of(ah_text_slice(a->closed), "how")));
        return say_closed(id, how, err);
    }
    if (r->fold.history.run == 0)
        return ah_err_set(err, AH_USAGE, "%.*s is closed: its run is over", AH_FMT(id));
    if (!is_open(r, a))
        return say_closed(id, "timeout", err);
    *out = a;
    return AH_OK;
}

/* Appends the response in the form of the schema that was recorded. */
static ah_status put_value(ah_host *h, ah_slice id, const ah_fold_ask *a, ah_slice response,
                           ah_buf *out, ah_err *err)
{
    ah_slice ask = ah_text_slice(a->ask), schema = ah_json_member(ask, "schema");
    bool approval = ah_json_string_is(ah_json_member(ask, "kind"), "approval");
    ah_schema *s = NULL;
    ah_status st;
    ah_buf full;

    if (!schema.p && !approval)
        schema = ah_slice_of("true");
    ah_buf_init(&full, h->mem, AH_MAX_RESPONSE);
    st = ah_ask_schema(h, schema, &s, err);
    if (st == AH_OK)
        st =
            ah_ask_check(approval ? AH_ASK_APPROVAL : AH_ASK_QUESTION, s, id, response, &full, err);
    if (st == AH_OK)
        ah_buf_put(out, ah_buf_slice(&full));
    ah_buf_clear(&full);
    ah_schema_unref(s);
    return st;
}

static ah_status post(ah_host *h, ah_open_store *s, ah_slice stream, const char *key,
                      const char *kind, ah_buf *body, ah_err *err)
{
    ah_store_message m = {ah_slice_of(key), ah_slice_of(kind), {NULL, 0}, ah_host_wall(h)};

    if (!ah_buf_ok(body))
        return ah_buf_error(body, "the message", err);
    m.body = ah_buf_slice(body);
    return ah_open_store_post(s, stream, &m, err);
}

static ah_status put_response(const reading *r, ah_open_store *s, ah_slice stream, ah_slice id,
                              ah_slice response, ah_buf *body, ah_err *err)
{
    const ah_fold_ask *a = NULL;
    ah_status st = find_ask(r, s, stream, id, &a, err);

    if (st != AH_OK)
        return st;
    ah_buf_char(body, '{');
    ah_json_add_string(body, "ask", id);
    ah_json_add_name(body, "value");
    return put_value(r->host, id, a, response, body, err);
}

ah_status ah_open_store_respond(ah_host *h, ah_open_store *s, ah_slice conversation, ah_slice ask,
                                ah_slice response, ah_slice by, ah_err *err)
{
    char key[MAX_ID];
    reading r;
    ah_status st;
    ah_buf body;

    if (ask.n > MAX_ID - sizeof AH_KEY_ASK)
        return ah_err_set(err, AH_USAGE, "there is no ask with a name of %zu bytes", ask.n);
    if ((st = read_stream(h, s, conversation, &r, err)) != AH_OK)
        return st;
    ah_buf_init(&body, h->mem, MAX_BODY);
    st = put_response(&r, s, conversation, ask, response, &body, err);
    ah_json_add_string(&body, "by", by);
    ah_buf_char(&body, '}');
    snprintf(key, sizeof key, AH_KEY_ASK "%.*s", AH_FMT(ask));
    if (st == AH_OK && (st = post(h, s, conversation, key, "response", &body, err)) == AH_CONFLICT)
        say_closed(ask, "response", err);
    ah_buf_clear(&body);
    clear_reading(&r);
    return st;
}

/* -- other messages ------------------------------------------------------------------------------
 */

ah_status ah_open_store_cancel(ah_host *h, ah_open_store *s, ah_slice conversation, ah_err *err)
{
    char key[MAX_ID];
    reading r;
    ah_status st = read_stream(h, s, conversation, &r, err);
    ah_buf body;

    if (st != AH_OK)
        return st;
    ah_buf_init(&body, h->mem, MAX_BODY);
    ah_buf_str(&body, "{}");
    snprintf(key, sizeof key, "cancel:%lld", (long long)r.fold.last);
    if (r.fold.history.run == 0)
        st = ah_err_set(err, AH_USAGE, "'%.*s' has no unfinished run to cancel",
                        AH_FMT(conversation));
    else if ((st = post(h, s, conversation, key, "cancel", &body, err)) == AH_CONFLICT)
        st = AH_OK;
    ah_buf_clear(&body);
    clear_reading(&r);
    return st;
}

ah_status ah_open_store_send(ah_host *h, ah_open_store *s, ah_slice conversation, ah_slice text,
                             ah_err *err)
{
    uint64_t number[2];
    char key[MAX_ID];
    ah_status st = ah_random_bytes(number, sizeof number, err);
    ah_buf body;

    if (st != AH_OK)
        return st;
    snprintf(key, sizeof key, "send:%016llx%016llx", (unsigned long long)number[0],
             (unsigned long long)number[1]);
    ah_buf_init(&body, h->mem, MAX_BODY);
    ah_buf_char(&body, '{');
    ah_json_add_string(&body, "text", text);
    ah_buf_char(&body, '}');
    st = post(h, s, conversation, key, "send", &body, err);
    ah_buf_clear(&body);
    return st;
}
