/* Collects the parts, with limits on each, and makes the finished entry with its calls in order.
 * The readers (*_read.c) interpret a wire's bytes. */
#include "wire/assemble.h"

#include "wire/dialect.h"
#include "wire/dispatcher.h"

enum {
    MAX_ID = 64,
    MAX_RECEIVED_ID = 64 << 10,
    MAX_CALL_NAME = 256,
    MAX_MESSAGE = 256 << 20,
    MAX_STOP_WORD = 64,
    MAX_FOUND = 1 << 20, /* bytes of the names of found tools */
    ENTRY_DEPTH = 16     /* containers around a part, in an entry and on a wire, with a margin */
};

const char *ah_stop_name(ah_stop stop)
{
    static const char *const names[] = {
        "end",     "end",          "tool_calls", "length",   "stop_sequence", "content_filter",
        "refusal", "context_full", "tool",       "cancelled"};

    return names[stop];
}

bool ah_usage_price(ah_usage *u, double dollars)
{
    if (!(dollars >= 0) || dollars > 9e6)
        return false;
    u->cost = (int64_t)(dollars * AH_COST_UNIT + 0.5);
    return u->priced = true;
}

void ah_usage_date(ah_usage *u, ah_slice date)
{
    static const char form[AH_DATE] = "0000-00-00";

    for (size_t i = 0; i < AH_DATE - 1; i++)
        if (date.n != AH_DATE - 1 ||
            (form[i] == '0' ? date.p[i] < '0' || date.p[i] > '9' : date.p[i] != form[i]))
            return;
    memcpy(u->prices_of, date.p, AH_DATE - 1);
    u->prices_of[AH_DATE - 1] = '\0';
}

/* Saturates: many records may have absurd counts. */
static void add(int64_t *sum, int64_t n)
{
    *sum = n > INT64_MAX - *sum ? INT64_MAX : *sum + n;
}

void ah_usage_add(ah_usage *sum, const ah_usage *u)
{
    add(&sum->input, u->input);
    add(&sum->cached_read, u->cached_read);
    add(&sum->cached_write, u->cached_write);
    add(&sum->output, u->output);
    add(&sum->reasoning, u->reasoning);
    add(&sum->cost, u->cost);
    add(&sum->unpriced, u->unpriced);
    sum->unpriced -= u->covers < sum->unpriced ? u->covers : sum->unpriced;
    sum->known = sum->known || u->known;
    sum->priced = sum->priced || u->priced;
    if (u->prices_of[0] && (!sum->prices_of[0] || strcmp(u->prices_of, sum->prices_of) < 0))
        memcpy(sum->prices_of, u->prices_of, AH_DATE);
}

void ah_usage_print(const ah_usage *u, ah_buf *out)
{
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {{"{\"input\":", u->input},
                  {",\"cached_read\":", u->cached_read},
                  {",\"cached_write\":", u->cached_write},
                  {",\"output\":", u->output},
                  {",\"reasoning\":", u->reasoning}};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ah_buf_str(out, counts[i].name);
        ah_buf_int(out, counts[i].n);
    }
    ah_buf_str(out, u->known ? ",\"known\":true" : ",\"known\":false");
    if (u->priced) {
        ah_buf_str(out, ",\"cost\":");
        ah_json_put_double(out, (double)u->cost / AH_COST_UNIT);
    }
    if (u->unpriced)
        ah_json_add_int(out, "unpriced", u->unpriced);
    if (u->covers)
        ah_json_add_int(out, "covers", u->covers);
    if (u->prices_of[0])
        ah_json_add_string(out, "prices_of", ah_slice_of(u->prices_of));
    ah_buf_char(out, '}');
}

#define MAX_COUNT (INT64_C(1) << 53) /* of tokens: sums of such counts fit */

static int64_t count_of(ah_slice value)
{
    bool is = ah_json_kind_of(value) == AH_JSON_NUMBER;
    ah_json_num n;

    return is && ah_json_number(value, &n) && n.is_int && n.i > 0 && n.i <= MAX_COUNT ? n.i : 0;
}

void ah_usage_read(ah_slice json, ah_usage *out)
{
    ah_slice input, read, write, output, reasoning, known, cost, unpriced, covers, date;
    const ah_json_slot want[] = {{"input", &input},         {"cached_read", &read},
                                 {"cached_write", &write},  {"output", &output},
                                 {"reasoning", &reasoning}, {"known", &known},
                                 {"cost", &cost},           {"unpriced", &unpriced},
                                 {"covers", &covers},       {"prices_of", &date}};
    ah_json_num dollars;

    *out = (ah_usage){0};
    if (!ah_json_members(json, want, sizeof want / sizeof *want))
        return;
    *out = (ah_usage){.input = count_of(input),
                      .cached_read = count_of(read),
                      .cached_write = count_of(write),
                      .output = count_of(output),
                      .reasoning = count_of(reasoning),
                      .known = ah_slice_is(known, "true"),
                      .unpriced = count_of(unpriced),
                      .covers = count_of(covers)};
    if (ah_json_kind_of(date) == AH_JSON_STRING)
        ah_usage_date(out, ah_json_inside(date));
    if (ah_json_kind_of(cost) == AH_JSON_NUMBER && ah_json_number(cost, &dollars))
        ah_usage_price(out, dollars.d);
}

void ah_assembly_init(ah_assembly *a, const ah_mem *mem, const ah_secrets *secrets,
                      void (*delta)(void *ud, ah_slice text), void *ud)
{
    *a = (ah_assembly){.mem = mem, .secrets = secrets, .delta = delta, .ud = ud};
    ah_buf_init(&a->text, mem, AH_MAX_TEXT);
    ah_buf_init(&a->refusal, mem, AH_MAX_TEXT);
    ah_buf_init(&a->stop_word, mem, MAX_STOP_WORD);
    ah_buf_init(&a->found, mem, MAX_FOUND);
}

void ah_assembly_usage(ah_assembly *a, ah_usage usage)
{
    usage.cost = a->usage.cost;
    usage.priced = a->usage.priced;
    a->usage = usage;
}

void ah_assembly_cost(ah_assembly *a, ah_slice value)
{
    ah_json_num n;

    if (ah_json_kind_of(value) == AH_JSON_NUMBER && ah_json_number(value, &n))
        ah_usage_price(&a->usage, n.d);
}

void ah_assembly_service(ah_assembly *a, ah_slice value)
{
    static const char *const usual[] = {"default", "standard", "auto",         "on_demand",
                                        "global",  "",         "not_available"};

    if (ah_json_kind_of(value) != AH_JSON_STRING)
        return;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (ah_json_string_is(value, usual[i]))
            return;
    a->unlisted = true;
}

void ah_assembly_drop_calls(ah_assembly *a)
{
    for (size_t i = 0; i < a->n; i++) {
        ah_buf_clear(&a->call[i].id);
        ah_buf_clear(&a->call[i].name);
        ah_buf_clear(&a->call[i].arguments);
        ah_text_unref(a->call[i].original);
    }
    for (size_t i = 0; i < a->n_opaque; i++)
        ah_text_unref(a->opaque[i].json);
    a->n = a->n_opaque = 0;
    ah_buf_reset(&a->found, 0);
}

void ah_assembly_clear(ah_assembly *a)
{
    ah_assembly_drop_calls(a);
    if (a->mem) {
        ah_free(a->mem, a->call);
        ah_free(a->mem, a->opaque);
    }
    ah_buf_clear(&a->text);
    ah_buf_clear(&a->refusal);
    ah_buf_clear(&a->stop_word);
    ah_buf_clear(&a->found);
    *a = (ah_assembly){.mem = a->mem};
}

static ah_status check(const ah_buf *b, const char *what, ah_err *err)
{
    if (ah_buf_ok(b))
        return AH_OK;
    if (b->status == AH_NOMEM)
        return ah_err_nomem(err);
    return ah_err_set(err, AH_PROVIDER, "the model's %s is larger than %zu bytes", what, b->max);
}

static ah_status append(ah_buf *b, ah_slice raw, const char *what, ah_err *err)
{
    ah_json_unescape(raw, b);
    return check(b, what, err);
}

/* -- pieces ----------------------------------------------------------------------------------
 * A text in pieces may end with half of a surrogate pair, stored as the three bytes that UTF-8
 * would use for it, which no valid text contains. The next piece must begin with the other half. */

enum { HALF = 3, HIGH_HALF = 0xa0, LOW_HALF = 0xb0 };

static bool is_half(const char *p, size_t n, int which)
{
    return n >= HALF && (unsigned char)p[0] == 0xed && ((unsigned char)p[1] & 0xf0) == which;
}

static bool ends_in_half(const ah_buf *b)
{
    return b->len >= HALF && is_half(b->data + b->len - HALF, HALF, HIGH_HALF);
}

static unsigned value_of(const char *half)
{
    return ((unsigned)half[1] & 0x0f) << 6 | ((unsigned)half[2] & 0x3f);
}

/* Replaces the two halves at p by one character of four bytes. */
static void join_halves(char *p)
{
    unsigned c = 0x10000 + (value_of(p) << 10) + (value_of(p + HALF) & 0x3ff);

    p[0] = (char)(0xf0 | c >> 18);
    p[1] = (char)(0x80 | (c >> 12 & 0x3f));
    p[2] = (char)(0x80 | (c >> 6 & 0x3f));
    p[3] = (char)(0x80 | (c & 0x3f));
}

static ah_status say_half(const char *what, ah_err *err)
{
    return ah_err_set(err, AH_PROVIDER, "the model's %s holds half a character (a lone surrogate)",
                      what);
}

static ah_status append_piece(ah_buf *b, ah_slice raw, const char *what, ah_err *err)
{
    size_t seam = b->len;
    bool high = ends_in_half(b), low;
    ah_status st = append(b, raw, what, err);

    if (st != AH_OK || b->len == seam)
        return st;
    low = is_half(b->data + seam, b->len - seam, LOW_HALF);
    if (high != low)
        return say_half(what, err);
    if (high) {
        join_halves(b->data + seam - HALF);
        memmove(b->data + seam + 1, b->data + seam + HALF, b->len - seam - HALF);
        b->len -= HALF - 1;
    }
    return AH_OK;
}

ah_status ah_assembly_check(const ah_assembly *a, ah_err *err)
{
    if (ends_in_half(&a->text))
        return say_half("answer", err);
    if (ends_in_half(&a->refusal))
        return say_half("refusal", err);
    for (size_t i = 0; i < a->n; i++) {
        if (ends_in_half(&a->call[i].arguments))
            return say_half("tool arguments", err);
        if (!a->call[i].named)
            return ah_err_set(err, AH_PROVIDER, "the answer's call %zu names no tool", i + 1);
    }
    if (!a->n && a->stop == AH_STOP_TOOL_CALLS)
        return ah_err_set(err, AH_PROVIDER,
                          "the answer's stop is 'tool_calls', and it holds no call");
    return AH_OK;
}

/* Shows text from `shown` on; `last`: also text that might have begun a secret. */
static void show(ah_assembly *a, bool last)
{
    size_t fresh = a->text.len - a->shown, held;

    if (!fresh)
        return;
    fresh = ah_secrets_redact(a->secrets, a->text.data + a->shown, fresh);
    a->text.len = a->shown + fresh;
    held = last ? 0 : ah_secrets_held(a->secrets, (ah_slice){a->text.data + a->shown, fresh});
    if (held < HALF && ends_in_half(&a->text))
        held = HALF;
    if (a->delta && fresh > held)
        a->delta(a->ud, (ah_slice){a->text.data + a->shown, fresh - held});
    a->shown += fresh - held;
}

ah_status ah_assembly_text(ah_assembly *a, ah_slice raw, ah_err *err)
{
    ah_status st = append_piece(&a->text, raw, "answer", err);

    a->pieces += raw.n > 0;
    if (st == AH_OK)
        show(a, false);
    return st;
}

ah_status ah_assembly_refusal(ah_assembly *a, ah_slice raw, ah_err *err)
{
    a->pieces += raw.n > 0;
    return append_piece(&a->refusal, raw, "refusal", err);
}

ah_status ah_assembly_add_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err)
{
    ah_draft_call *grown, *c;

    if (a->n == AH_MAX_CALLS)
        return ah_err_set(err, AH_PROVIDER, "the model made more than %d calls in one message",
                          AH_MAX_CALLS);
    if (!(grown = ah_grow(a->mem, a->call, &a->cap, a->n + 1, sizeof *grown)))
        return ah_err_nomem(err);
    a->call = grown;
    a->pieces++;
    c = &a->call[a->n++];
    *c = (ah_draft_call){.index = index};
    ah_buf_init(&c->id, a->mem, MAX_RECEIVED_ID);
    ah_buf_init(&c->name, a->mem, MAX_CALL_NAME);
    ah_buf_init(&c->arguments, a->mem, AH_MAX_ARGUMENTS);
    *out = c;
    return AH_OK;
}

ah_status ah_assembly_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err)
{
    for (size_t i = a->n; i > 0; i--)
        if (a->call[i - 1].index == index) {
            *out = &a->call[i - 1];
            return AH_OK;
        }
    return ah_assembly_add_call(a, index, out, err);
}

ah_status ah_assembly_call_id(ah_draft_call *c, ah_slice raw, ah_err *err)
{
    return c->id.len ? AH_OK : append(&c->id, raw, "call id", err);
}

ah_status ah_assembly_call_name(ah_draft_call *c, ah_slice raw, ah_err *err)
{
    c->named = true;
    return c->name.len ? AH_OK : append(&c->name, raw, "tool name", err);
}

ah_status ah_assembly_call_arguments(ah_draft_call *c, ah_slice raw, ah_err *err)
{
    return append_piece(&c->arguments, raw, "tool arguments", err);
}

ah_status ah_assembly_call_value(ah_draft_call *c, ah_slice json, ah_err *err)
{
    ah_buf_put(&c->arguments, json);
    return check(&c->arguments, "tool arguments", err);
}

/* Copies the part without keys. If redaction makes it invalid, or it is nested too deeply for the
 * entry around it to be read again, the part is dropped. If it was invalid before, because its
 * pieces were cut within a character, that is an error. */
static ah_status sound_opaque(const ah_assembly *a, ah_slice json, ah_text **out, ah_err *err)
{
    ah_json_fault fault;
    ah_status st = ah_json_check(a->mem, json, AH_JSON_MAX_DEPTH, &fault);

    if (st != AH_OK)
        return st == AH_NOMEM
                   ? ah_err_nomem(err)
                   : ah_err_set(err, AH_PROVIDER, "a part of the model's message is not JSON: %s",
                                fault.what);
    if (!(*out = ah_text_new(a->mem, json)))
        return ah_err_nomem(err);
    (*out)->len = ah_secrets_redact(a->secrets, (*out)->data, (*out)->len);
    st = ah_json_check(a->mem, ah_text_slice(*out), AH_JSON_MAX_DEPTH - ENTRY_DEPTH, NULL);
    if (st != AH_OK)
        ah_text_set(out, NULL);
    return st == AH_NOMEM ? ah_err_nomem(err) : AH_OK;
}

ah_status ah_assembly_opaque(ah_assembly *a, ah_slice json, ah_err *err)
{
    ah_draft_opaque *grown;
    ah_text *text;
    ah_status st;

    if (a->n_opaque == AH_MAX_OPAQUE)
        return ah_err_set(err, AH_PROVIDER, "the model's message has more than %d parts",
                          AH_MAX_OPAQUE);
    if (!(grown = ah_grow(a->mem, a->opaque, &a->cap_opaque, a->n_opaque + 1, sizeof *grown)))
        return ah_err_nomem(err);
    a->opaque = grown;
    if ((st = sound_opaque(a, json, &text, err)) != AH_OK || !text)
        return st;
    a->opaque[a->n_opaque++] = (ah_draft_opaque){text, a->text.len, a->n};
    a->pieces++;
    return AH_OK;
}

ah_status ah_assembly_found(ah_assembly *a, ah_slice name, ah_err *err)
{
    if (a->found.len)
        ah_buf_char(&a->found, ',');
    ah_buf_put(&a->found, name);
    return check(&a->found, "list of found tools", err);
}

void ah_assembly_stop(ah_assembly *a, ah_stop stop, ah_slice word)
{
    a->stop = stop;
    ah_buf_reset(&a->stop_word, 0);
    ah_json_string(word, &a->stop_word);
    if (a->stop_word.status == AH_BUDGET) /* too long to be a stop word */
        ah_buf_reset(&a->stop_word, 0);
}

/* -- the finished entry ----------------------------------------------------- */

static bool id_taken(const ah_assembly *a, size_t at, const ah_transcript *t)
{
    ah_slice id = ah_buf_slice(&a->call[at].id);

    for (size_t i = 0; i < at; i++)
        if (ah_slice_eq(id, ah_buf_slice(&a->call[i].id)))
            return true;
    return ah_transcript_knows(t, id);
}

static void sound_id(ah_assembly *a, size_t at, const ah_transcript *t)
{
    ah_draft_call *c = &a->call[at];
    size_t n = t->n;

    while (ah_buf_ok(&c->id) && (c->id.len == 0 || c->id.len > MAX_ID || id_taken(a, at, t))) {
        ah_buf_reset(&c->id, 0);
        ah_buf_fmt(&c->id, "call_%zu_%zu", n++, at + 1);
    }
}

static void clean(const ah_secrets *s, ah_buf *b)
{
    if (b->len)
        b->len = ah_secrets_redact(s, b->data, b->len);
}

/* False: out of memory. */
static bool clean_arguments(const ah_assembly *a, ah_draft_call *c)
{
    ah_slice whole = ah_buf_slice(&c->arguments);

    if (!ah_secrets_in(a->secrets, whole))
        return true;
    ah_text_set(&c->original, ah_text_new(a->mem, whole));
    clean(a->secrets, &c->arguments);
    return c->original != NULL;
}

static void put_part(ah_buf *b, const char *type, ah_slice text)
{
    if (b->data[b->len - 1] != '[')
        ah_buf_char(b, ',');
    ah_buf_fmt(b, "{\"type\":\"%s\",\"text\":", type);
    ah_json_put_string(b, text);
    ah_buf_char(b, '}');
}

static void put_calls(ah_assembly *a, const ah_transcript *t, ah_buf *b)
{
    for (size_t i = 0; i < a->n; i++) {
        ah_draft_call *c = &a->call[i];
        bool cleaned;

        if (a->dispatched)
            ah_dispatcher_unwrap(a->mem, &c->name, &c->arguments);
        ah_dialect_unwrap(a->mem, &c->arguments);
        clean(a->secrets, &c->id);
        sound_id(a, i, t);
        cleaned = clean_arguments(a, c);
        clean(a->secrets, &c->name);
        ah_buf_str(b, i ? ",{\"id\":" : ",\"tool_calls\":[{\"id\":");
        ah_json_put_string(b, ah_buf_slice(&c->id));
        ah_buf_str(b, ",\"name\":");
        ah_json_put_string(b, ah_buf_slice(&c->name));
        ah_buf_str(b, ",\"arguments\":");
        ah_json_put_string(b, ah_buf_slice(&c->arguments));
        ah_buf_char(b, '}');
        if (!cleaned || !ah_buf_ok(&c->id))
            b->status = AH_NOMEM;
    }
    if (a->n)
        ah_buf_char(b, ']');
}

/* Appends text up to `end` as its own part. Redaction may have moved the text, so a character is
 * never split here. */
static void put_text(const ah_assembly *a, size_t *at, size_t end, ah_buf *b)
{
    end = end < a->text.len ? ah_utf8_cut(a->text.data, end) : a->text.len;
    if (end > *at) {
        put_part(b, "text", (ah_slice){a->text.data + *at, end - *at});
        *at = end;
    }
}

static void put_origin(const ah_origin *o, ah_buf *b)
{
    ah_buf_str(b, "\"origin\":{\"adapter\":");
    ah_json_put_string(b, o->adapter);
    ah_buf_str(b, ",\"model\":");
    ah_json_put_string(b, o->model);
    ah_buf_str(b, ",\"endpoint\":");
    ah_json_put_string(b, o->endpoint);
    ah_buf_char(b, '}');
}

static void put_opaque(const ah_draft_opaque *o, const ah_origin *origin, ah_buf *b)
{
    ah_buf_str(b, b->data[b->len - 1] == '[' ? "{" : ",{");
    ah_buf_str(b, "\"type\":\"opaque\",");
    put_origin(origin, b);
    if (o->call)
        ah_buf_fmt(b, ",\"calls\":%zu", o->call);
    ah_buf_str(b, ",\"data\":");
    ah_buf_put(b, ah_text_slice(o->json));
    ah_buf_char(b, '}');
}

static void put_content(const ah_assembly *a, const ah_origin *origin, ah_buf *b)
{
    size_t at = 0;

    for (size_t i = 0; i < a->n_opaque && ah_buf_ok(b); i++) {
        put_text(a, &at, a->opaque[i].text, b);
        put_opaque(&a->opaque[i], origin, b);
    }
    if (ah_buf_ok(b))
        put_text(a, &at, a->text.len, b);
    if (ah_buf_ok(b) && a->refusal.len)
        put_part(b, "refusal", ah_buf_slice(&a->refusal));
}

static void put_stop(const ah_assembly *a, ah_buf *b)
{
    ah_buf_str(b, ",\"stop\":\"");
    ah_buf_str(b, ah_stop_name(a->stop));
    ah_buf_char(b, '"');
    if (!a->stop_word.len)
        return;
    ah_buf_str(b, ",\"stop_word\":");
    ah_json_put_string(b, ah_buf_slice(&a->stop_word));
}

/* The stop reported by the provider, unless the content contradicts it (NOTES: decide by
 * content). */
static ah_stop final_stop(const ah_assembly *a)
{
    if (a->n && !ah_stop_is_cut(a->stop) && a->stop != AH_STOP_FILTER)
        return AH_STOP_TOOL_CALLS;
    return a->refusal.len && !ah_stop_is_cut(a->stop) ? AH_STOP_REFUSAL : a->stop;
}

ah_status ah_assembly_entry(ah_assembly *a, const ah_transcript *t, const ah_origin *origin,
                            int64_t time, ah_text **out, ah_err *err)
{
    ah_buf b;
    ah_status st;

    show(a, true);
    clean(a->secrets, &a->refusal);
    clean(a->secrets, &a->stop_word);
    clean(a->secrets, &a->found);
    a->stop = final_stop(a);
    ah_buf_init(&b, a->mem, MAX_MESSAGE);
    ah_buf_room(&b, 256);
    ah_buf_str(&b, "{\"type\":\"assistant\",\"content\":[");
    if (ah_buf_ok(&b))
        put_content(a, origin, &b);
    ah_buf_char(&b, ']');
    put_calls(a, t, &b);
    if (a->found.len)
        ah_buf_fmt(&b, ",\"found\":[%.*s]", AH_FMT(ah_buf_slice(&a->found)));
    put_stop(a, &b);
    ah_buf_char(&b, ',');
    put_origin(origin, &b);
    ah_buf_str(&b, ",\"usage\":");
    ah_usage_print(&a->usage, &b);
    ah_buf_str(&b, ",\"time\":");
    ah_buf_int(&b, time);
    ah_buf_char(&b, '}');
    if (a->stop_word.status == AH_NOMEM)
        b.status = AH_NOMEM;
    st = ah_text_from_buf(&b, "message", out, err);
    ah_buf_clear(&b);
    return st;
}
