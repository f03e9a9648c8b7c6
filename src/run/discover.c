/* The strategy of discovery. Looks up each entity of a result, or adds it, then requests its
 * missing tools and reports them. found.c keeps the entities; discover_replay.c restores them from
 * a transcript. */
#include "run/found.h"

#include <stdio.h>

#include "run/tell.h"

enum { MAX_WORDS = 8 << 10, MAX_LIST = 1 << 20 };

static void note_fresh(ah_discovery *d, ah_entity_slot *f)
{
    if (f->is_fresh)
        return;
    f->is_fresh = true;
    f->fresh = NULL;
    *(d->fresh ? &d->last_fresh->fresh : &d->fresh) = f;
    d->last_fresh = f;
}

/* Adds to *out the entity's tools that are missing or stale in the registry. */
static ah_status add_tools(ah_entity_slot *f, const ah_registry *r, ah_changes *out, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_text *by = NULL;
    ah_status st = AH_OK;

    for (size_t i = 0; i < f->of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);
        ah_tool *tool = NULL;

        if (ah_entity_slot_has_tool(f, i, name, r))
            continue;
        if (!by)
            st = ah_entity_slot_provenance(f, &by, err);
        if (st == AH_OK)
            st = ah_entity_slot_make_tool(f, i, name, &tool, err);
        if (st == AH_OK)
            st = ah_changes_bring(out, r, tool, by, err);
        ah_tool_unref(tool);
    }
    if (by && st == AH_OK)
        note_fresh(f->in, f);
    ah_text_unref(by);
    return st;
}

static int depth_after(const ah_call *call)
{
    const ah_entity_slot *f = ah_entity_slot_of(call, NULL);

    return f ? f->depth + 1 : 1;
}

static bool too_deep(ah_discovery *d, const ah_entity *e, int depth)
{
    char words[256];
    size_t n;

    if (depth <= d->max_depth)
        return false;
    n = ah_print(words, sizeof words, "%s %.64s gives no tools: it is %d deep (max_depth = %d)",
                 e->of->name->data, e->id->data, depth, d->max_depth);
    if (!d->warned_depth)
        ah_run_warn(d->run, (ah_slice){words, n});
    d->warned_depth = true;
    return true;
}

/* True if one tool too many has been requested already, which gives one warning: further additions
 * would only be refused. */
static bool is_full(const ah_run *run, const ah_changes *out)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    return cfg->registry->live + out->n > (size_t)cfg->rules->max_tools;
}

/* Handles one entity of the result. Takes its instance if it gets or has tools. */
static ah_status take(ah_discovery *d, const ah_call *call, ah_entity *e, ah_changes *out,
                      ah_err *err)
{
    int depth = depth_after(call);
    ah_entity_slot *f = NULL;
    ah_status st = ah_entity_slot_look_up(d, e->of, ah_text_slice(e->id), &f, err);

    if (st == AH_OK && !f)
        st = ah_entity_slot_adopt(d, e->of, ah_text_slice(e->id), &f, err);
    if (st != AH_OK || !e->of->n || (!f && (is_full(d->run, out) || too_deep(d, e, depth))))
        return st;
    if (!f)
        st = ah_entity_slot_add(d, e->of, ah_text_slice(e->id), (ah_slice){NULL, 0},
                                ah_text_slice(call->slot->name), depth, &f, err);
    if (st != AH_OK)
        return st;
    if (depth < f->depth)
        f->depth = depth;
    ah_entity_slot_hold(f, e->instance);
    e->instance = (ah_value){0};
    st = ah_entity_slot_take_places(f, ah_run_cfg(d->run)->registry, err);
    if (st == AH_OK && !is_full(d->run, out))
        st = add_tools(f, ah_run_cfg(d->run)->registry, out, err);
    if (!f->tools)
        ah_entity_slot_hold(f, (ah_value){0});
    return st;
}

/* Warns with the error of the first value that is no entity, and the number of others. */
static void warn_invalid(ah_discovery *d, const ah_err *first, size_t n)
{
    ah_buf b;

    if (!n)
        return;
    ah_buf_init(&b, d->mem, MAX_WORDS);
    ah_buf_str(&b, first->message);
    if (n > 1)
        ah_buf_fmt(&b, " (and %zu more)", n - 1);
    if (ah_buf_cut_short(&b))
        ah_run_warn(d->run, ah_buf_slice(&b));
    ah_buf_clear(&b);
}

static void forget_fresh(ah_discovery *d)
{
    for (ah_entity_slot *f = d->fresh; f; f = f->fresh)
        f->is_fresh = false;
    d->fresh = NULL;
}

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    ah_discovery *d = ud;
    ah_status st = AH_OK;
    size_t invalid = 0;
    ah_err first;

    forget_fresh(d);
    d->run = run;
    if (!call->success || !call->live.vt || !call->live.vt->entity)
        return AH_OK;
    for (size_t at = 0; st == AH_OK;) {
        ah_entity e = {0};

        st = call->live.vt->entity(call->live.p, &at, &e, err);
        if (st == AH_INVALID_TOOL_PROVIDER) {
            first = invalid++ ? first : *err;
            st = AH_OK;
            continue;
        }
        if (st != AH_OK || !e.of)
            break;
        st = take(d, call, &e, out, err);
        ah_entity_clear(&e);
    }
    warn_invalid(d, &first, invalid);
    return st;
}

static void tell(ah_run *run, const ah_entity_slot *f)
{
    char buf[AH_ENTITY_TOOL_NAME];
    size_t n = 0;
    ah_buf names;

    ah_buf_init(&names, f->mem, MAX_LIST);
    ah_buf_char(&names, '[');
    for (size_t i = 0; i < f->of->n; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);

        if (!ah_entity_slot_has_tool(f, i, name, ah_run_cfg(run)->registry))
            continue;
        ah_buf_str(&names, n++ ? "," : "");
        ah_json_put_string(&names, name);
    }
    ah_buf_char(&names, ']');
    if (n && ah_buf_ok(&names))
        EMIT(run, AH_EVENT_TOOL_PROVIDER_DISCOVERED,
             AH_F_STR("provider_class", ah_text_slice(f->of->name)),
             AH_F_STR("instance_id", ah_text_slice(f->id)),
             AH_F_JSON("exposed_tools", ah_buf_slice(&names)));
    ah_buf_clear(&names);
}

static void made(void *ud)
{
    ah_discovery *d = ud;

    for (const ah_entity_slot *f = d->fresh; f; f = f->fresh)
        tell(d->run, f);
    forget_fresh(d);
}

ah_strategy ah_discovery_strategy(ah_discovery *d)
{
    static const struct ah_strategy_vt strategy_vt = {.after = after, .made = made};

    return (ah_strategy){.name = "discover", .vt = &strategy_vt, .ud = d};
}

ah_status ah_discovery_retract(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                               const ah_registry *r, ah_changes *out, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_entity_slot *f = NULL;
    ah_status st = ah_entity_slot_look_up(d, of, id, &f, err);

    for (size_t i = 0; f && i < of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(of, i, ah_text_slice(f->stem), buf);

        if (ah_entity_slot_has_tool(f, i, name, r))
            st = ah_changes_remove(out, name, err);
    }
    return st;
}
