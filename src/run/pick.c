/* pick_tools answers while its handler is being started: it waits for nothing. Its picks are
 * changes like those of any call, made when the call has succeeded. */
#include "run/pick.h"

#include "base/near.h"
#include "model/tool_spec.h"
#include "run/call.h"
#include "run/tell.h"
#include "wire/offers.h"

enum { MAX_ANSWER = 64 << 20, MAX_NAMES = 16 << 20, MAX_SHOWN = 100 };

/* -- pick_tools ------------------------------------------------------------------------- */

/* The answer that is being built. */
typedef struct answer {
    ah_call *call;
    const ah_registry *registry;
    bool in_text; /* the declarations stay the same, so the answer holds the specifications */
    bool right;   /* at least one name was a tool's */
    ah_buf name;  /* scratch */
    ah_buf selected, already, unknown; /* names, with commas between them */
    ah_buf specs;                      /* JSON objects, with commas between them */
    ah_status st;
    ah_err err;
} answer;

static void put_name(ah_buf *list, ah_slice name)
{
    if (list->len)
        ah_buf_str(list, ", ");
    ah_buf_fmt(list, "%.*s", (int)(name.n > MAX_SHOWN ? ah_utf8_cut(name.p, MAX_SHOWN) : name.n),
               name.p);
}

static void put_unknown(answer *a, ah_slice name)
{
    ah_near near = {.to = name};
    const ah_tool *t;

    for (size_t at = 0; (t = ah_registry_next(a->registry, &at)) != NULL;)
        ah_near_offer(&near, ah_text_slice(t->name));
    put_name(&a->unknown, name);
    if (near.best.p)
        ah_buf_fmt(&a->unknown, " (did you mean '%.*s'?)", AH_FMT(near.best));
}

/* True if an earlier name in this call picked it. */
static bool picked_now(const ah_changes *c, ah_slice name)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->item[i].kind == AH_CHANGE_PICK && ah_slice_eq(ah_text_slice(c->item[i].text), name))
            return true;
    return false;
}

static void put_spec(answer *a, const ah_tool *t)
{
    ah_buf_str(&a->specs, a->specs.len ? "," : "");
    ah_spec_put_told(ah_text_slice(t->full ? t->full->spec : t->spec), &a->specs);
}

static void take_name(answer *a, ah_slice name)
{
    const ah_tool *t = ah_registry_find(a->registry, name);

    if (!t || t->stale) {
        put_unknown(a, name);
        return;
    }
    a->right = true;
    if (picked_now(&a->call->changes, name))
        return;
    put_name(t->full ? &a->selected : &a->already, name);
    if (a->in_text)
        put_spec(a, t);
    if (t->full)
        a->st = ah_changes_pick(&a->call->changes, true, name, &a->err);
}

static void take_names(answer *a)
{
    ah_json_reader r = ah_json_read(ah_json_member(ah_text_slice(a->call->args), "tools"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING && a->st == AH_OK; t = ah_json_next(&r)) {
        ah_buf_reset(&a->name, 0);
        ah_json_string(ah_json_skip(&r, t), &a->name);
        if (ah_buf_ok(&a->name))
            take_name(a, ah_buf_slice(&a->name));
        else
            a->st = ah_buf_error(&a->name, "a name", &a->err);
    }
}

static void put_sentence(ah_buf *out, const char *before, const ah_buf *names, const char *after)
{
    if (!names->len)
        return;
    ah_buf_str(out, out->len ? " " : "");
    ah_buf_fmt(out, "%s %.*s.%s", before, AH_FMT(ah_buf_slice(names)), after);
}

/* The texts of seed 004. */
static void put_message(const answer *a, ah_buf *out)
{
    put_sentence(out, "Selected", &a->selected, " Full specs available next turn.");
    put_sentence(out, "Already selected:", &a->already, "");
    put_sentence(out, "Unknown tools:", &a->unknown, "");
    if (!out->len)
        ah_buf_str(out,
                   "No tools named: give the names of the tools to select, as {\"tools\":[...]}.");
}

static bool all_ok(const answer *a, const ah_buf *message, const ah_buf *value)
{
    return a->st == AH_OK && ah_buf_ok(&a->name) && ah_buf_ok(&a->selected) &&
           ah_buf_ok(&a->already) && ah_buf_ok(&a->unknown) && ah_buf_ok(&a->specs) &&
           ah_buf_ok(message) && ah_buf_ok(value);
}

static void say(answer *a)
{
    ah_outcome o = {.failure = AH_FAILED_SAID, .success = a->right, .whole = true};
    ah_buf message, value;

    ah_buf_init(&message, a->name.mem, MAX_ANSWER);
    ah_buf_init(&value, a->name.mem, MAX_ANSWER);
    put_message(a, &message);
    ah_buf_fmt(&value, "[%.*s]", AH_FMT(ah_buf_slice(&a->specs)));
    o.message = ah_buf_slice(&message);
    if (a->specs.len)
        o.value = ah_buf_slice(&value);
    if (!all_ok(a, &message, &value))
        o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of("out of memory")};
    ah_call_done(a->call, &o, a->call->started);
    ah_buf_clear(&message);
    ah_buf_clear(&value);
}

static void start(const ah_tool *tool, ah_call *call)
{
    ah_run *run = call->run;
    answer a = {.call = call,
                .registry = ah_run_cfg(run)->registry,
                .in_text = !ah_mode_redefines(ah_run_cfg(run)->adapter->tool_change_mode)};
    ah_buf *const bufs[] = {&a.name, &a.selected, &a.already, &a.unknown, &a.specs};

    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        ah_buf_init(bufs[i], tool->mem, MAX_NAMES);
    take_names(&a);
    say(&a);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        ah_buf_clear(bufs[i]);
}

ah_status ah_pick_tool(const ah_mem *mem, ah_tool **out, ah_err *err)
{
    static const ah_tool_vt vt = {.start = start};
    static const char schema[] =
        "{\"properties\":{\"tools\":{\"description\":\"Tool names to select\",\"items\":{\"type\":"
        "\"string\"},\"type\":\"array\"}},\"required\":[\"tools\"],\"type\":\"object\"}";
    ah_tool_def def = {.name = AH_LIT(AH_PICK_TOOLS),
                       .ours = true,
                       .description = AH_LIT("Select tools to get their full specifications"),
                       .keeps_full = true,
                       .vt = &vt};
    ah_status st = ah_schema_compile(mem, ah_slice_of(schema), &def.params, err);

    if (st == AH_OK)
        st = ah_tool_new(mem, &def, out, err);
    ah_schema_unref(def.params);
    return st;
}

/* -- picks --------------------------------------------------------------------------------- */

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    (void)ud, (void)run;
    if (!call->success || !call->tool || !call->tool->full)
        return AH_OK;
    return ah_changes_pick(out, true, ah_text_slice(call->tool->name), err);
}

static ah_status ended(void *ud, ah_run *run, ah_changes *out, ah_err *err)
{
    const ah_registry *r = ah_run_cfg(run)->registry;
    ah_status st = AH_OK;

    (void)ud;
    if (ah_run_cfg(run)->rules->keep_picked)
        return AH_OK;
    for (size_t i = 0; i < r->n && st == AH_OK; i++)
        if (r->slot[i].brief)
            st = ah_changes_pick(out, false, ah_text_slice(r->slot[i].name), err);
    return st;
}

ah_strategy ah_pick_strategy(void)
{
    static const struct ah_strategy_vt vt = {.after = after, .ended = ended, .to_the_end = true};

    return (ah_strategy){.name = AH_PICK_TOOLS, .vt = &vt};
}

/* Restores picks from one tools_added entry, which applies to all of its tools. */
static void replay_entry(ah_registry *registry, ah_slice json)
{
    ah_slice by = ah_json_member(json, "by");
    bool picked = by.p && ah_slice_is(ah_json_member(by, "picked"), "true");
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice name = ah_json_inside(ah_json_member(ah_json_skip(&r, t), "name"));

        if (picked)
            ah_registry_pick(registry, name);
        else
            ah_registry_unpick(registry, name);
    }
}

void ah_picks_replay(ah_registry *registry, const ah_transcript *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED)
            replay_entry(registry, ah_text_slice(t->entry[i].json));
}
