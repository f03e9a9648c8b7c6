/* A piece of the body is what lies between the beginnings of two segments, so that the pieces of
 * all requests since the body was begun are the whole body. */
#include "wire/prints.h"

#include "base/sha256.h"
#include "wire/providers.h"
#include "wire/scripted.h"

enum { DIGITS = 16 /* of SHA-256 */ };

static void put_hash(ah_buf *out, ah_slice bytes)
{
    char hash[AH_SHA256_HEX];
    ah_sha256 s;

    ah_sha256_begin(&s);
    ah_sha256_add(&s, bytes);
    ah_sha256_end_hex(&s, hash);
    ah_buf_char(out, '"');
    ah_buf_add(out, hash, DIGITS);
    ah_buf_char(out, '"');
}

static void put_item(ah_buf *out, size_t n, size_t entry, ah_slice bytes)
{
    ah_buf_fmt(out, "%s[%zu,", n ? "," : "", entry);
    put_hash(out, bytes);
    ah_buf_char(out, ']');
}

/* -- the adapter ------------------------------------------------------------------------------- */

/* The fields of an adapter that lowering reads, beside its texts: each with its type and its
 * highest value, in the order of the list. */
#define FACTS(X)                                                                                   \
    X(tool_change_mode, ah_tool_change_mode, AH_TOOLS_DISPATCHER)                                  \
    X(native_output, bool, 1)                                                                      \
    X(output_rules, ah_strict_rules, AH_STRICT_ANTHROPIC)                                          \
    X(output_unseen, bool, 1)                                                                      \
    X(strict_tools, ah_strict_rules, AH_STRICT_ANTHROPIC)                                          \
    X(search, unsigned, AH_SEARCH_ALL)                                                             \
    X(asks, unsigned, (1 << 11) - 1)                                                               \
    X(images, unsigned, AH_IMAGES_ALL)                                                             \
    X(lists_allowed, bool, 1)                                                                      \
    X(reasoning_back, bool, 1)                                                                     \
    X(stream, bool, 1)                                                                             \
    X(known.can, unsigned, (1 << 11) - 1)                                                          \
    X(known.efforts, unsigned, (1 << AH_EFFORTS) - 1)                                              \
    X(known.thinking, ah_thinking_mode, AH_THINKING_BY_EFFORT)                                     \
    X(known.output, int64_t, INT64_C(1) << 53)

static bool is_known(const ah_model *m)
{
    return ah_model_can(&(ah_model){.row = m->row, .from = m->from, .can = 1}, 1, false);
}

static ah_slice bool_slice(bool value)
{
    return ah_slice_of(value ? "true" : "false");
}

static void put_adapter(const ah_adapter *a, ah_buf *out)
{
    ah_json_add_name(out, "wire");
    ah_buf_char(out, '{');
    ah_json_add_string(out, "provider", ah_text_slice(a->provider));
    ah_json_add_string(out, "model", ah_text_slice(a->model));
    ah_json_add_string(out, "base_url", ah_text_slice(a->endpoint));
    if (a->vt->exchange) {
        ah_json_add(out, "own", bool_slice(true));
        ah_json_add(out, "annotated", bool_slice(((const ah_scripted *)a)->annotated));
    }
    ah_json_add(out, "known", bool_slice(is_known(&a->known)));
    ah_json_add_name(out, "facts");
    ah_buf_char(out, '[');
#define PUT(field, type, most) ah_buf_fmt(out, "%lld,", (long long)a->field);
    FACTS(PUT)
#undef PUT
    ah_buf_str(out, "0]}");
}

static void release(ah_scripted *s)
{
    ah_adapter *base = &s->native.base;

    ah_free(base->mem, s);
}

static ah_adapter *new_own(const ah_mem *mem, ah_slice provider, ah_slice model, bool annotated)
{
    ah_scripted *s = ah_alloc(mem, sizeof *s);
    ah_adapter *a;

    if (!s)
        return NULL;
    *s = (ah_scripted){.release = release, .annotated = annotated};
    a = &s->native.base;
    *a = (ah_adapter){.vt = &ah_scripted_vt, .mem = mem, .refs = 1};
    a->provider = ah_text_new(mem, provider);
    a->model = ah_text_new(mem, model);
    a->endpoint = ah_text_new(mem, (ah_slice){"", 0});
    if (a->provider && a->model && a->endpoint)
        return a;
    ah_adapter_unref(a);
    return NULL;
}

/* Returns the next number of the list, which is at most `most`. */
static int64_t next_fact(ah_json_reader *r, int64_t most, bool *wrong)
{
    ah_json_num n = {0};
    ah_json_token t = *wrong ? (ah_json_token){0} : ah_json_next(r);

    *wrong = *wrong || t.kind != AH_JSON_NUMBER || !ah_json_number(t.raw, &n) || !n.is_int ||
             n.i < 0 || n.i > most;
    return *wrong ? 0 : n.i;
}

static ah_status take_facts(ah_adapter *a, ah_slice facts, bool known, ah_err *err)
{
    ah_json_reader r = ah_json_read(facts);
    bool wrong = ah_json_next(&r).kind != AH_JSON_ARRAY;

    a->known = (ah_model){.from = known ? AH_MODEL_SCRIPT : AH_MODEL_DEFAULT};
#define TAKE(field, type, most) a->field = (type)next_fact(&r, most, &wrong);
    FACTS(TAKE)
#undef TAKE
    return wrong ? ah_err_set(err, AH_STORE, "`facts` of `wire` are not those of this version")
                 : AH_OK;
}

typedef struct texts {
    ah_buf provider, model, url;
} texts;

static ah_status open_adapter(const ah_mem *mem, ah_secrets *secrets, const texts *t, bool own,
                              bool annotated, ah_adapter **out, ah_err *err)
{
    ah_slice url = ah_buf_slice(&t->url);
    ah_provider_options o = {.mem = mem,
                             .secrets = secrets,
                             .base_url = url.n ? url : (ah_slice){NULL, 0},
                             .api_key = ah_slice_of("replay")};

    if (!own)
        return ah_provider_open(ah_buf_slice(&t->provider), ah_buf_slice(&t->model), &o, out, err);
    *out = new_own(mem, ah_buf_slice(&t->provider), ah_buf_slice(&t->model), annotated);
    return *out ? AH_OK : ah_err_nomem(err);
}

ah_status ah_prints_adapter(const ah_mem *mem, ah_secrets *secrets, ah_slice wire, ah_adapter **out,
                            ah_err *err)
{
    ah_slice provider, model, url, own, annotated, known, facts;
    const ah_json_slot want[] = {{"provider", &provider},   {"model", &model}, {"base_url", &url},
                                 {"annotated", &annotated}, {"own", &own},     {"known", &known},
                                 {"facts", &facts}};
    ah_status st = AH_OK;
    texts t;

    *out = NULL;
    ah_json_members(wire, want, sizeof want / sizeof *want);
    ah_buf_init(&t.provider, mem, provider.n);
    ah_buf_init(&t.model, mem, model.n);
    ah_buf_init(&t.url, mem, url.n);
    if (!ah_json_string(provider, &t.provider) || !ah_json_string(model, &t.model) ||
        !ah_json_string(url, &t.url))
        st = ah_err_set(err, AH_STORE, "`wire` lacks provider, model or base_url");
    else if (!ah_buf_ok(&t.provider) || !ah_buf_ok(&t.model) || !ah_buf_ok(&t.url))
        st = ah_err_nomem(err);
    if (st == AH_OK)
        st = open_adapter(mem, secrets, &t, ah_slice_is(own, "true"),
                          ah_slice_is(annotated, "true"), out, err);
    if (st == AH_OK && (st = take_facts(*out, facts, ah_slice_is(known, "true"), err)) != AH_OK) {
        ah_adapter_unref(*out);
        *out = NULL;
    }
    ah_buf_clear(&t.provider);
    ah_buf_clear(&t.model);
    ah_buf_clear(&t.url);
    return st;
}

/* -- what is tried ----------------------------------------------------------------------------- */

static void put_trying(const ah_wire *w, ah_buf *out)
{
    if (!w->trying && !w->searching_here && !w->trying_without)
        return;
    ah_json_add_name(out, "trying");
    ah_buf_char(out, '{');
    for (int i = 0; i < AH_LACKS; i++)
        if (w->trying_without & ah_lacks[i].what)
            ah_json_add(out, ah_lacks[i].name, ah_slice_of("false"));
    if (w->trying)
        ah_json_add_string(out, "tool_change_mode",
                           ah_slice_of(ah_tool_change_mode_names[w->mode]));
    if (w->searching_here)
        ah_json_add_string(out, "tool_search", ah_slice_of("here"));
    ah_buf_char(out, '}');
}

void ah_prints_try(ah_wire *w, ah_slice trying)
{
    ah_slice mode = ah_json_member(trying, "tool_change_mode");
    int m = 0;

    while (ah_tool_change_mode_names[m] && !ah_json_string_is(mode, ah_tool_change_mode_names[m]))
        m++;
    if (ah_tool_change_mode_names[m])
        ah_wire_try(w, true, (ah_tool_change_mode)m);
    else
        w->trying = false;
    w->searching_here = ah_json_member(trying, "tool_search").p != NULL;
    w->trying_without = ah_wire_learned_lacking(trying);
}

/* -- head and body ------------------------------------------------------------------------------
 */

static void put_head(ah_wire *w, ah_buf *out, ah_buf *bytes)
{
    ah_slice head = ah_buf_slice(&w->head);

    w->noted.heads = w->heads;
    ah_json_add_name(out, "head");
    ah_buf_char(out, '{');
    ah_json_add_name(out, "hash");
    put_hash(out, head);
    ah_json_add_name(out, "segments");
    ah_buf_char(out, '[');
    for (size_t i = 0; i < w->n_head; i++)
        put_item(out, i, w->segment[i].entry,
                 (ah_slice){head.p + w->segment[i].at, w->segment[i].n});
    ah_buf_str(out, "]}");
    if (bytes)
        ah_json_add_string(bytes, "head", head);
}

/* Returns the n-th piece that is not noted; .p NULL: there are no more. */
static ah_slice piece(const ah_wire *w, size_t n, size_t *entry)
{
    const ah_segment *s = w->segment + w->n_head;
    size_t at = w->noted.n_body + n, from = w->noted.bytes, to = w->body.len;

    if (at >= w->n_body && (n > 0 || from == to || !w->n_body))
        return (ah_slice){NULL, 0};
    if (n > 0)
        from = s[at].at;
    if (at + 1 < w->n_body)
        to = s[at + 1].at;
    *entry = s[at < w->n_body ? at : w->n_body - 1].entry;
    return (ah_slice){w->body.data + from, to - from};
}

static void put_body(ah_wire *w, ah_buf *out, ah_buf *bytes)
{
    ah_slice part[3], found;
    size_t entry = 0, n = 0;

    if (w->noted.lowerings != w->lowerings) {
        w->noted.lowerings = w->lowerings;
        w->noted.n_body = w->noted.bytes = 0;
    }
    ah_json_add_int(out, "base", (int64_t)w->noted.bytes);
    ah_json_add_name(out, "segments");
    ah_buf_char(out, '[');
    if (bytes) {
        ah_json_add_name(bytes, "segments");
        ah_buf_char(bytes, '[');
    }
    for (; (found = piece(w, n, &entry)).p; n++) {
        put_item(out, n, entry, found);
        if (!bytes)
            continue;
        ah_buf_str(bytes, n ? "," : "");
        ah_json_put_string(bytes, found);
    }
    ah_buf_char(out, ']');
    w->noted.n_body = w->n_body;
    w->noted.bytes = w->body.len;
    if (!bytes)
        return;
    ah_buf_char(bytes, ']');
    ah_json_add_string(bytes, "tail", part[ah_wire_body(w, part) - 1]);
}

void ah_prints_put(ah_wire *w, ah_buf *out, ah_buf *bytes)
{
    ah_json_add_int(out, "revision", w->adapter->vt->revision);
    if (!w->noted.begun)
        put_adapter(w->adapter, out);
    w->noted.begun = true;
    put_trying(w, out);
    if (bytes)
        ah_buf_char(bytes, '{');
    if (w->noted.heads != w->heads)
        put_head(w, out, bytes);
    put_body(w, out, bytes);
    if (bytes)
        ah_buf_char(bytes, '}');
}
