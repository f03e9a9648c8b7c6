/* The handler of search_tools answers while it is being started: it waits for nothing. */
#include "run/search.h"

#include "run/call.h"
#include "run/tell.h"
#include "wire/offers.h"

/* The weight of a word by its place in the tool. */
enum { OF_NAME = 12, OF_DESCRIPTION = 4, OF_ARGUMENT = 4, OF_ITS_DESCRIPTION = 1 };

enum {
    MAX_ANSWER = 64 << 10,
    MAX_BY = 16 << 10,
    MAX_ENTRY = 256 << 20,
    SCHEMA_DEPTH = 64 /* the depth limit of schemas (schema/schema.h) */
};

struct ah_search {
    const ah_mem *mem;
    size_t refs;
    ah_search_rules rules;
    ah_tool **tool;
    size_t n;
    ah_index by_name;
    ah_search_index words;
};

/* -- a set ------------------------------------------------------------------------------------- */

static ah_slice name_at(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_search *)owner)->tool[at]->name);
}

ah_search *ah_search_ref(ah_search *s)
{
    if (s)
        s->refs++;
    return s;
}

void ah_search_unref(ah_search *s)
{
    if (!s || --s->refs)
        return;
    for (size_t i = 0; i < s->n; i++)
        ah_tool_unref(s->tool[i]);
    ah_index_clear(&s->by_name);
    ah_search_index_clear(&s->words);
    ah_free(s->mem, s->tool);
    ah_free(s->mem, s);
}

size_t ah_search_count(const ah_search *s)
{
    return s->n;
}

ah_tool *ah_search_find(const ah_search *s, ah_slice name)
{
    uint32_t at = ah_index_find(&s->by_name, name);

    return at == AH_INDEX_NONE ? NULL : s->tool[at];
}

/* Adds the words of a JSON string, unescaped. */
static ah_status add_string(ah_search_index *x, ah_slice value, uint32_t weight, ah_err *err)
{
    ah_status st;
    ah_buf text;

    if (ah_json_kind_of(value) != AH_JSON_STRING)
        return AH_OK;
    ah_buf_init(&text, x->mem, MAX_ENTRY);
    ah_json_string(value, &text);
    st = ah_buf_ok(&text) ? ah_search_index_add(x, ah_buf_slice(&text), weight, err)
                          : ah_buf_error(&text, "a description", err);
    ah_buf_clear(&text);
    return st;
}

static ah_status add_schema(ah_search_index *x, ah_slice schema, int depth, ah_err *err);

/* Adds the names and descriptions of arguments. */
static ah_status add_properties(ah_search_index *x, ah_slice list, int depth, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token key = ah_json_next(&r);
    ah_status st = AH_OK;

    if (key.kind != AH_JSON_OBJECT)
        return AH_OK;
    for (key = ah_json_next(&r); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice schema = ah_json_skip(&r, ah_json_next(&r));

        st = ah_search_index_add(x, key.raw, OF_ARGUMENT, err);
        if (st == AH_OK)
            st = add_string(x, ah_json_member(schema, "description"), OF_ITS_DESCRIPTION, err);
        if (st == AH_OK)
            st = add_schema(x, schema, depth, err);
    }
    return st;
}

/* Goes into objects and lists, but not into alternatives. */
static ah_status add_schema(ah_search_index *x, ah_slice schema, int depth, ah_err *err)
{
    ah_slice properties, items;
    const ah_json_slot want[] = {{"properties", &properties}, {"items", &items}};
    ah_status st;

    if (depth == SCHEMA_DEPTH || !ah_json_members(schema, want, 2))
        return AH_OK;
    st = add_properties(x, properties, depth + 1, err);
    return st == AH_OK ? add_schema(x, items, depth + 1, err) : st;
}

static ah_status add_words(ah_search_index *x, const ah_tool *t, ah_err *err)
{
    ah_slice spec = ah_text_slice(t->spec);
    ah_status st;

    ah_search_index_begin(x);
    st = ah_search_index_add(x, ah_text_slice(t->name), OF_NAME, err);
    if (st == AH_OK)
        st = ah_search_index_add(x, ah_text_slice(t->brief), OF_DESCRIPTION, err);
    if (st == AH_OK)
        st = add_string(x, ah_json_member(spec, "description"), OF_ITS_DESCRIPTION, err);
    return st == AH_OK ? add_schema(x, ah_json_member(spec, "parameters"), 0, err) : st;
}

static ah_status add_tool(ah_search *s, ah_tool *t, ah_err *err)
{
    ah_slice name = ah_text_slice(t->name);

    const ah_tool *there = ah_search_find(s, name);

    if (there)
        return ah_tool_twice(there, t, err);
    s->tool[s->n] = ah_tool_ref(t);
    ah_index_put(&s->by_name, name, s->n++);
    return add_words(&s->words, t, err);
}

ah_status ah_search_new(const ah_mem *mem, const ah_search_rules *rules, ah_tool *const *tool,
                        size_t n, ah_search **out, ah_err *err)
{
    ah_search *s = ah_alloc(mem, sizeof *s);
    ah_status st = AH_OK;

    if (!s)
        return ah_err_nomem(err);
    *s = (ah_search){.mem = mem, .refs = 1, .rules = *rules};
    s->by_name = (ah_index){.mem = mem, .name = name_at, .owner = s};
    ah_search_index_init(&s->words, mem);
    if (!(s->tool = ah_alloc(mem, (n + 1) * sizeof *s->tool)) ||
        !ah_index_reserve(&s->by_name, n, 0))
        st = ah_err_nomem(err);
    for (size_t i = 0; i < n && st == AH_OK; i++)
        st = add_tool(s, tool[i], err);
    if (st == AH_OK)
        st = ah_search_index_make(&s->words, err);
    if (st == AH_OK)
        *out = s;
    else
        ah_search_unref(s);
    return st;
}

/* -- search_tools ------------------------------------------------------------------------------ */

static const struct ah_strategy_vt strategy_vt;

/* The name of the set's strategy in this run. */
static const char *name_in(const ah_run *run, const ah_search *s)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    for (size_t i = 0; i < cfg->n_strategies; i++)
        if (cfg->strategy[i].vt == &strategy_vt && cfg->strategy[i].ud == s)
            return cfg->strategy[i].name;
    return "search";
}

static bool was_removed(const ah_registry *r, ah_slice name)
{
    ah_slice gone;

    return !ah_registry_find(r, name) && ah_registry_had(r, name, &gone);
}

/* The answer that is being built. */
typedef struct answer {
    ah_call *call;
    const ah_search *s;
    const ah_registry *registry;
    ah_buf query;
    ah_tool *found[AH_SEARCH_MOST + 1];
    size_t n, room; /* tools found; tools that can still be added */
    ah_buf by, lines;
    ah_status st;
    ah_err err;
} answer;

static void take(answer *a, ah_tool *t, size_t max)
{
    if (a->n == max || was_removed(a->registry, ah_text_slice(t->name)))
        return;
    for (size_t i = 0; i < a->n; i++)
        if (a->found[i] == t)
            return;
    a->found[a->n++] = t;
}

/* Collects the results; a tool whose name is the query comes first. */
static void look(answer *a)
{
    size_t max = a->s->rules.max ? (size_t)a->s->rules.max : AH_SEARCH_MAX;
    ah_slice query = ah_slice_trim(ah_buf_slice(&a->query));
    ah_tool *named = ah_search_find(a->s, query);
    uint32_t doc[2 * AH_SEARCH_MOST];
    size_t n = 2 * max;

    if (named)
        take(a, named, max);
    a->st = ah_search_index_find(&a->s->words, query, doc, &n, &a->err);
    for (size_t i = 0; i < n; i++)
        take(a, a->s->tool[doc[i]], max);
}

/* The origin of the additions: docs/reference/transcript.md. */
static ah_text *provenance(answer *a)
{
    ah_text *by = NULL;

    ah_buf_str(&a->by, "{\"call\":");
    ah_json_put_string(&a->by, ah_text_slice(a->call->slot->id));
    ah_buf_str(&a->by, ",\"found\":[");
    for (size_t i = 0; i < a->n; i++) {
        ah_buf_str(&a->by, i ? "," : "");
        ah_json_put_string(&a->by, ah_text_slice(a->found[i]->name));
    }
    ah_buf_fmt(&a->by, "],\"strategy\":\"%s\"}", name_in(a->call->run, a->s));
    a->st = ah_text_from_buf(&a->by, "provenance", &by, &a->err);
    return by;
}

static ah_status add_found(ah_changes *c, ah_tool *t, ah_text *by, ah_err *err)
{
    ah_status st = ah_changes_add(c, t, by, err);

    if (st == AH_OK)
        c->item[c->n - 1].full = true;
    return st;
}

/* Appends a line for the tool, and adds the tool. */
static void put_line(answer *a, ah_tool *t, ah_text *by)
{
    const ah_tool *there = ah_registry_find(a->registry, ah_text_slice(t->name));
    const char *mark = "";

    if (there)
        mark = " (there already)";
    else if (a->room == 0)
        mark = " (cannot be added: this conversation has reached its limit of tools)";
    else
        a->st = add_found(&a->call->changes, t, by, &a->err);
    a->room -= !there && a->room;
    ah_buf_fmt(&a->lines, "\n- %.*s%s: %.*s", AH_FMT(ah_text_slice(t->name)), mark,
               AH_FMT(ah_text_slice(t->brief)));
}

static void put_found(answer *a)
{
    ah_text *by = provenance(a);

    ah_buf_fmt(&a->lines, "The best %zu of %zu tools:", a->n, a->s->n);
    for (size_t i = 0; i < a->n && a->st == AH_OK; i++)
        put_line(a, a->found[i], by);
    ah_text_unref(by);
}

static void put_nothing(answer *a)
{
    ah_slice query = ah_buf_slice(&a->query);
    ah_buf near;

    ah_buf_init(&near, a->query.mem, MAX_BY);
    ah_search_index_near(&a->s->words, query, &near);
    ah_buf_fmt(
        &a->lines,
        "None of %zu tools has a word of '%.*s' in its name, its description or its arguments. ",
        a->s->n, (int)(query.n > 100 ? ah_utf8_cut(query.p, 100) : query.n), query.p);
    if (near.len)
        ah_buf_fmt(&a->lines, "Words that are there: %.*s.", AH_FMT(ah_buf_slice(&near)));
    else
        ah_buf_str(&a->lines, "Try other words for what the tool should do.");
    if (!ah_buf_ok(&near))
        a->lines.status = near.status;
    ah_buf_clear(&near);
}

static void say(answer *a)
{
    ah_outcome o = {.failure = AH_FAILED_SAID, .success = true, .whole = true};

    if (a->st == AH_OK && a->n)
        put_found(a);
    else if (a->st == AH_OK)
        put_nothing(a);
    o.message = ah_buf_slice(&a->lines);
    if (a->st != AH_OK || !ah_buf_ok(&a->lines) || !ah_buf_ok(&a->query))
        o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of("out of memory")};
    ah_call_done(a->call, &o, a->call->started);
}

static void start(const ah_tool *tool, ah_call *call)
{
    const ah_registry *r = ah_run_cfg(call->run)->registry;
    size_t most = (size_t)ah_run_cfg(call->run)->rules->max_tools;
    answer a = {.call = call, .s = tool->handler.p, .registry = r};
    ah_buf *const bufs[] = {&a.query, &a.by, &a.lines};

    a.room = r->live < most ? most - r->live : 0;
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        ah_buf_init(bufs[i], tool->mem, MAX_ANSWER);
    ah_json_string(ah_json_member(ah_text_slice(call->args), "query"), &a.query);
    look(&a);
    say(&a);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        ah_buf_clear(bufs[i]);
}

static void release(void *p)
{
    ah_search_unref(p);
}

ah_status ah_search_tool(ah_search *s, ah_tool **out, ah_err *err)
{
    static const ah_tool_vt vt = {.start = start};
    static const struct ah_value_vt held = {.release = release};
    static const char schema[] =
        "{\"additionalProperties\":false,\"properties\":{\"query\":{\"description\":\"Words for "
        "what the "
        "tool should do, or its name\",\"maxLength\":1000,\"minLength\":1,\"type\":\"string\"}},"
        "\"required\":[\"query\"],\"type\":\"object\"}";
    ah_tool_def def = {.name = AH_LIT(AH_SEARCH_TOOLS),
                       .ours = true,
                       .description =
                           AH_LIT("Finds more tools: there are many that are not listed. What "
                                  "it finds can be called from then on."),
                       .keeps_full = true,
                       .vt = &vt,
                       .handler = {&held, s}};
    ah_status st = ah_schema_compile(s->mem, ah_slice_of(schema), &def.params, err);

    if (st == AH_OK && (st = ah_tool_new(s->mem, &def, out, err)) == AH_OK)
        ah_search_ref(s);
    ah_schema_unref(def.params);
    return st;
}

/* -- deferred tools in the transcript ---------------------------------------------------------- */

/* Returns an error if the name is declared for another tool than this one. */
static ah_status check_name(const ah_tool *t, const ah_registry *r, ah_err *err)
{
    ah_slice name = ah_text_slice(t->name);
    const ah_tool *there = ah_registry_find(r, name);

    if (!there || there == t || there->full == t || there->stale)
        return AH_OK;
    return ah_tool_twice(there, t, err);
}

static ah_status known_of(const ah_transcript *t, ah_offers *known, ah_err *err)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_TOOLS_DEFERRED &&
            !ah_offers_defer(known, ah_text_slice(t->entry[i].json), i))
            return ah_err_nomem(err);
    return AH_OK;
}

/* Appends the entry for tools that are not listed yet; returns their number. */
static size_t put_unknown(const ah_search *s, const char *strategy, const ah_offers *known,
                          ah_buf *b)
{
    size_t n = 0;

    ah_buf_str(b, "{\"type\":\"tools_deferred\",\"tools\":[");
    for (size_t i = 0; i < s->n; i++) {
        ah_slice spec = ah_text_slice(s->tool[i]->spec);
        const ah_offer *o = ah_offers_find(known, ah_json_member(spec, "name"));

        if (o && ah_slice_eq(o->spec, spec))
            continue;
        ah_buf_str(b, n++ ? "," : "");
        ah_buf_put(b, spec);
    }
    ah_buf_fmt(b, "],\"by\":{\"strategy\":\"%s\"}", strategy);
    if (s->rules.method)
        ah_buf_fmt(b, ",\"method\":\"%s\"", s->rules.method);
    if (s->rules.who)
        ah_buf_fmt(b, ",\"search\":\"%s\"", s->rules.who);
    ah_buf_char(b, '}');
    return n;
}

static bool is_said(ah_slice last, const char *key, const char *word)
{
    ah_slice said = ah_json_member(last, key);

    return word ? ah_json_string_is(said, word) : !said.p;
}

ah_status ah_search_declare(const ah_search *s, const char *strategy, const ah_registry *r,
                            ah_transcript *t, ah_err *err)
{
    ah_slice last = ah_transcript_last(t, AH_ENTRY_TOOLS_DEFERRED);
    bool same =
        last.p && is_said(last, "search", s->rules.who) && is_said(last, "method", s->rules.method);
    ah_text *json = NULL;
    ah_offers known;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, s->mem, MAX_ENTRY);
    ah_offers_init(&known, s->mem);
    st = known_of(t, &known, err);
    for (size_t i = 0; i < s->n && st == AH_OK; i++)
        st = check_name(s->tool[i], r, err);
    if (st == AH_OK && (put_unknown(s, strategy, &known, &b) > 0 || !same)) {
        st = ah_text_from_buf(&b, "the tools that are to be found", &json, err);
        if (st == AH_OK)
            st = ah_transcript_add(t, AH_ENTRY_TOOLS_DEFERRED, json, err);
    }
    ah_offers_clear(&known);
    ah_buf_clear(&b);
    return st;
}

/* -- tools found in other ways ----------------------------------------------------------------- */

/* The tool of that name in the set, or NULL if it is already declared or was removed. */
static ah_tool *waiting(const ah_run *run, const ah_search *s, ah_slice name)
{
    const ah_registry *r = ah_run_cfg(run)->registry;
    ah_tool *t = ah_search_find(s, name);

    return t && !ah_registry_find(r, name) && !was_removed(r, name) ? t : NULL;
}

/* Adds the tools whose names are in a JSON list; `by` is their origin. */
static ah_status collect(const ah_run *run, const ah_search *s, ah_slice list, const ah_buf *by,
                         ah_changes *out, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    ah_text *from = NULL;
    ah_status st = ah_text_from_buf(by, "provenance", &from, err);

    for (t = ah_json_next(&r); st == AH_OK && t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        ah_tool *tool = waiting(run, s, t.raw);

        if (tool)
            st = add_found(out, tool, from, err);
    }
    ah_text_unref(from);
    return st;
}

/* Adds the tools that the provider reports as found. */
static ah_status answered(void *ud, ah_run *run, ah_changes *out, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    ah_slice found, origin;
    const ah_json_slot want[] = {{"found", &found}, {"origin", &origin}};
    ah_status st;
    ah_buf by;

    if (!ah_json_members(ah_text_slice(cfg->transcript->assistant), want, 2) ||
        ah_json_kind_of(found) != AH_JSON_ARRAY)
        return AH_OK;
    ah_buf_init(&by, cfg->mem, MAX_ENTRY);
    ah_buf_fmt(&by, "{\"found\":%.*s,\"origin\":%.*s,\"strategy\":\"%s\"}", AH_FMT(found),
               AH_FMT(origin), name_in(run, ud));
    st = collect(run, ud, found, &by, out, err);
    ah_buf_clear(&by);
    return st;
}

/* A call of a tool in the set that was not found yet adds the tool. */
static ah_status before(void *ud, ah_run *run, const ah_call *call, ah_buf *said, ah_changes *out,
                        ah_err *err)
{
    ah_slice name = ah_text_slice(call->slot->name);
    ah_tool *tool = waiting(run, ud, name);
    ah_text *from = NULL;
    ah_status st;
    ah_buf by;

    (void)said;
    if (!tool)
        return AH_OK;
    ah_buf_init(&by, ah_run_cfg(run)->mem, MAX_BY);
    ah_buf_str(&by, "{\"called\":");
    ah_json_put_string(&by, ah_text_slice(call->slot->id));
    ah_buf_fmt(&by, ",\"strategy\":\"%s\"}", name_in(run, ud));
    st = ah_text_from_buf(&by, "provenance", &from, err);
    if (st == AH_OK)
        st = add_found(out, tool, from, err);
    ah_text_unref(from);
    ah_buf_clear(&by);
    return st;
}

static const struct ah_strategy_vt strategy_vt = {.before = before, .answered = answered};

ah_strategy ah_search_strategy(ah_search *s, const char *name)
{
    return (ah_strategy){.name = name, .vt = &strategy_vt, .ud = s};
}
