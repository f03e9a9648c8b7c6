#include "wire/assemble.h"

#include "wire/dialect.h"
#include "wire/dispatcher.h"

enum {
    MAX_ID = 64,
    MAX_RECEIVED_ID = 64 << 10,
    MAX_CALL_NAME = 256,
    MAX_WORD = 256,
    MAX_MESSAGE = 256 << 20
};

const char *ah_stop_name(ah_stop stop)
{
    static const char *const names[] = {
        "end", "end", "tool_calls", "length", "stop_sequence", "content_filter", "refusal"};

    return names[stop];
}

void ah_usage_add(ah_usage *sum, const ah_usage *u)
{
    sum->input += u->input;
    sum->cached_read += u->cached_read;
    sum->cached_write += u->cached_write;
    sum->output += u->output;
    sum->reasoning += u->reasoning;
    sum->known = sum->known || u->known;
}

void ah_usage_print(const ah_usage *u, ah_buf *out)
{
    ah_buf_fmt(out, "{\"input\":%lld,\"cached_read\":%lld,\"cached_write\":%lld,", (long long)u->input,
               (long long)u->cached_read, (long long)u->cached_write);
    ah_buf_fmt(out, "\"output\":%lld,\"reasoning\":%lld,\"known\":%s}", (long long)u->output,
               (long long)u->reasoning, u->known ? "true" : "false");
}

void ah_assembly_init(ah_assembly *a, const ah_mem *mem, const ah_secrets *secrets,
                      void (*delta)(void *ud, ah_slice text), void *ud)
{
    *a = (ah_assembly){.mem = mem, .secrets = secrets, .delta = delta, .ud = ud};
    ah_buf_init(&a->text, mem, AH_MAX_TEXT);
    ah_buf_init(&a->refusal, mem, AH_MAX_TEXT);
    ah_buf_init(&a->opaque, mem, AH_MAX_TEXT);
    ah_buf_init(&a->said, mem, MAX_WORD);
}

void ah_assembly_clear(ah_assembly *a)
{
    for (size_t i = 0; i < a->n; i++) {
        ah_buf_clear(&a->call[i].id);
        ah_buf_clear(&a->call[i].name);
        ah_buf_clear(&a->call[i].arguments);
    }
    if (a->mem)
        ah_free(a->mem, a->call);
    ah_buf_clear(&a->text);
    ah_buf_clear(&a->refusal);
    ah_buf_clear(&a->opaque);
    ah_buf_clear(&a->said);
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

/* Shows text from `shown` on; `last` shows also what might have begun a secret. */
static void show(ah_assembly *a, bool last)
{
    size_t fresh = a->text.len - a->shown, held;

    if (!fresh)
        return;
    fresh = ah_secrets_redact(a->secrets, a->text.data + a->shown, fresh);
    a->text.len = a->shown + fresh;
    held = last ? 0 : ah_secrets_held(a->secrets, (ah_slice){a->text.data + a->shown, fresh});
    if (a->delta && fresh > held)
        a->delta(a->ud, (ah_slice){a->text.data + a->shown, fresh - held});
    a->shown += fresh - held;
}

ah_status ah_assembly_text(ah_assembly *a, ah_slice raw, ah_err *err)
{
    ah_status st = append(&a->text, raw, "answer", err);

    a->pieces += raw.n > 0;
    if (st == AH_OK)
        show(a, false);
    return st;
}

ah_status ah_assembly_refusal(ah_assembly *a, ah_slice raw, ah_err *err)
{
    a->pieces += raw.n > 0;
    return append(&a->refusal, raw, "refusal", err);
}

ah_status ah_assembly_opaque(ah_assembly *a, ah_slice json, ah_err *err)
{
    ah_buf_reset(&a->opaque, 0);
    ah_buf_put(&a->opaque, json);
    return check(&a->opaque, "reasoning", err);
}

ah_status ah_assembly_stop(ah_assembly *a, ah_stop stop, ah_slice raw, ah_err *err)
{
    a->stop = stop;
    ah_buf_reset(&a->said, 0);
    if (raw.n > MAX_WORD)
        return AH_OK; /* no word */
    return append(&a->said, raw, "reason to stop", err);
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
    return c->name.len ? AH_OK : append(&c->name, raw, "tool name", err);
}

ah_status ah_assembly_call_arguments(ah_draft_call *c, ah_slice raw, ah_err *err)
{
    return append(&c->arguments, raw, "tool arguments", err);
}

ah_status ah_assembly_call_value(ah_draft_call *c, ah_slice json, ah_err *err)
{
    ah_buf_put(&c->arguments, json);
    return check(&c->arguments, "tool arguments", err);
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

        if (a->dispatched)
            ah_dispatcher_unwrap(a->mem, &c->name, &c->arguments);
        ah_dialect_unwrap(a->mem, &c->arguments);
        clean(a->secrets, &c->id);
        sound_id(a, i, t);
        clean(a->secrets, &c->arguments);
        clean(a->secrets, &c->name);
        ah_buf_str(b, i ? ",{\"id\":" : ",\"tool_calls\":[{\"id\":");
        ah_json_put_string(b, ah_buf_slice(&c->id));
        ah_buf_str(b, ",\"name\":");
        ah_json_put_string(b, ah_buf_slice(&c->name));
        ah_buf_str(b, ",\"arguments\":");
        ah_json_put_string(b, ah_buf_slice(&c->arguments));
        ah_buf_char(b, '}');
        if (!ah_buf_ok(&c->id))
            b->status = AH_NOMEM;
    }
    if (a->n)
        ah_buf_char(b, ']');
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

static void put_opaque(const ah_assembly *a, const ah_origin *origin, ah_buf *b)
{
    ah_buf_str(b, "{\"type\":\"opaque\",");
    put_origin(origin, b);
    ah_buf_str(b, ",\"data\":");
    ah_buf_put(b, ah_buf_slice(&a->opaque));
    ah_buf_char(b, '}');
}

/* What the provider said, unless the content says more (NOTES: decide by content). */
static ah_stop final_stop(const ah_assembly *a)
{
    if (a->n && a->stop != AH_STOP_LENGTH && a->stop != AH_STOP_FILTER)
        return AH_STOP_TOOL_CALLS;
    if (a->refusal.len && a->stop != AH_STOP_LENGTH)
        return AH_STOP_REFUSAL;
    return !a->n && a->stop == AH_STOP_TOOL_CALLS ? AH_STOP_END : a->stop;
}

ah_status ah_assembly_entry(ah_assembly *a, const ah_transcript *t, const ah_origin *origin,
                            int64_t time, ah_text **out, ah_err *err)
{
    ah_buf b;
    ah_status st;

    show(a, true);
    clean(a->secrets, &a->refusal);
    clean(a->secrets, &a->opaque);
    clean(a->secrets, &a->said);
    a->stop = final_stop(a);
    ah_buf_init(&b, a->mem, MAX_MESSAGE);
    ah_buf_room(&b, 256);
    ah_buf_str(&b, "{\"type\":\"assistant\",\"content\":[");
    if (a->opaque.len)
        put_opaque(a, origin, &b);
    if (ah_buf_ok(&b) && a->text.len)
        put_part(&b, "text", ah_buf_slice(&a->text));
    if (ah_buf_ok(&b) && a->refusal.len)
        put_part(&b, "refusal", ah_buf_slice(&a->refusal));
    ah_buf_char(&b, ']');
    put_calls(a, t, &b);
    ah_buf_fmt(&b, ",\"stop\":\"%s\"", ah_stop_name(a->stop));
    if (a->said.len) {
        ah_buf_str(&b, ",\"provider_stop\":");
        ah_json_put_string(&b, ah_buf_slice(&a->said));
    }
    ah_buf_char(&b, ',');
    put_origin(origin, &b);
    ah_buf_str(&b, ",\"usage\":");
    ah_usage_print(&a->usage, &b);
    ah_buf_str(&b, ",\"time\":");
    ah_buf_int(&b, time);
    ah_buf_char(&b, '}');
    st = ah_text_from_buf(&b, "message", out, err);
    ah_buf_clear(&b);
    return st;
}
