/* The strategy, and its way back: what came is named, made into tools and told of; what a
 * transcript tells was found is known again. How an instance is looked at and called is the
 * world's, through the class (model/entity.h). */
#include "run/discover.h"

#include <stdio.h>

#include "run/run_state.h"

enum { MAX_WORDS = 8 << 10, MAX_LIST = 1 << 20 };

/* What a tool of an entity has for a handler. */
typedef struct bound {
    ah_found *found;
    size_t method;
} bound;

/* -- what was found ------------------------------------------------------------------ */

static void set_instance(ah_found *f, ah_value instance)
{
    ah_value before = f->instance;

    if (f->in && !before.vt && instance.vt)
        f->in->at_hand++;
    if (f->in && before.vt && !instance.vt)
        f->in->at_hand--;
    f->instance = instance;
    ah_value_release(&before); /* last: it may run what looks at f */
}

void ah_found_bind(ah_found *f, ah_value instance)
{
    if (f->tools)
        set_instance(f, instance);
    else
        ah_value_release(&instance);
}

static void unref_found(ah_found *f)
{
    if (!f || --f->refs > 0)
        return;
    ah_value_release(&f->instance);
    ah_entity_class_unref(f->of);
    ah_text_unref(f->id);
    ah_text_unref(f->key);
    ah_text_unref(f->stem);
    ah_text_unref(f->from);
    ah_text_unref(f->gone);
    ah_free(f->mem, f);
}

static ah_slice key_of(const void *d, size_t at)
{
    return ah_text_slice(((const ah_discovery *)d)->found[at]->key);
}

static ah_slice stem_of(const void *d, size_t at)
{
    return ah_text_slice(((const ah_discovery *)d)->found[at]->stem);
}

void ah_discovery_init(ah_discovery *d, const ah_mem *mem, int max_depth, bool brief)
{
    *d = (ah_discovery){.mem = mem,
                        .max_depth = max_depth,
                        .brief = brief,
                        .by_key = {.mem = mem, .name = key_of, .owner = d},
                        .by_stem = {.mem = mem, .name = stem_of, .owner = d}};
}

void ah_discovery_clear(ah_discovery *d)
{
    if (!d->mem)
        return;
    for (size_t i = 0; i < d->n; i++) {
        set_instance(d->found[i], (ah_value){0});
        d->found[i]->in = NULL;
        unref_found(d->found[i]);
    }
    ah_free(d->mem, d->found);
    ah_index_clear(&d->by_key);
    ah_index_clear(&d->by_stem);
    *d = (ah_discovery){0};
}

void ah_discovery_release(ah_discovery *d)
{
    for (size_t i = 0; i < d->n; i++)
        set_instance(d->found[i], (ah_value){0});
}

/* Of a class that is known by its name only, from a conversation of earlier. */
static bool is_stand_in(const ah_entity_class *of)
{
    return of->vt == NULL;
}

/* Classes are told apart by where they are, since two may have one name. */
static ah_status make_key(const ah_mem *mem, const ah_entity_class *of, ah_slice id, ah_text **out,
                          ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_WORDS);
    if (is_stand_in(of))
        ah_buf_fmt(&b, "%s ", of->name->data);
    else
        ah_buf_add(&b, &of, sizeof of);
    ah_buf_put(&b, id);
    st = ah_text_from_buf(&b, "the id", out, err);
    ah_buf_clear(&b);
    return st;
}

static ah_found *at_index(const ah_discovery *d, const ah_index *x, ah_slice name)
{
    uint32_t at = ah_index_find(x, name);

    return at == AH_INDEX_NONE ? NULL : d->found[at];
}

/* Finds it, or *found is NULL. */
static ah_status look_up(const ah_discovery *d, const ah_entity_class *of, ah_slice id, ah_found **found,
                         ah_err *err)
{
    ah_text *key = NULL;
    ah_status st = make_key(d->mem, of, id, &key, err);

    *found = st == AH_OK ? at_index(d, &d->by_key, ah_text_slice(key)) : NULL;
    ah_text_unref(key);
    return st;
}

/* What was known by the class's name has a class again. The index may keep the old key: it leads
 * to the same place. */
static ah_status adopt(ah_discovery *d, ah_entity_class *of, ah_slice id, ah_found **found, ah_err *err)
{
    const ah_entity_class name_only = {.name = of->name};
    ah_text *key = NULL;
    ah_status st = look_up(d, &name_only, id, found, err);
    ah_found *f = *found;

    if (st != AH_OK || !f)
        return st;
    *found = NULL;
    if ((st = make_key(d->mem, of, id, &key, err)) != AH_OK)
        return st;
    if (!ah_index_reserve(&d->by_key, d->n + 1, d->n)) {
        ah_text_unref(key);
        return ah_err_nomem(err);
    }
    ah_text_set(&f->key, key);
    ah_index_put(&d->by_key, ah_text_slice(key), ah_index_find(&d->by_stem, ah_text_slice(f->stem)));
    ah_entity_class_unref(f->of);
    f->of = ah_entity_class_ref(of);
    *found = f;
    return AH_OK;
}

/* The first stem for the id that no other entity has. Who has the plain one counts. */
static ah_status choose_stem(ah_discovery *d, ah_found *f, ah_err *err)
{
    ah_found *first, *there;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, d->mem, MAX_WORDS);
    ah_entity_stem(f->of, ah_text_slice(f->id), 1, &b);
    there = first = ah_buf_ok(&b) ? at_index(d, &d->by_stem, ah_buf_slice(&b)) : NULL;
    while (there && ah_buf_ok(&b)) {
        ah_buf_reset(&b, 0);
        ah_entity_stem(f->of, ah_text_slice(f->id), ++first->alike + 1, &b);
        there = at_index(d, &d->by_stem, ah_buf_slice(&b));
    }
    st = ah_text_from_buf(&b, "the name", &f->stem, err);
    ah_buf_clear(&b);
    return st;
}

static ah_status write_parting(ah_found *f, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, f->mem, MAX_WORDS);
    ah_buf_fmt(&b, "stale entity: %s %s is no longer at hand.", f->of->name->data, f->id->data);
    if (f->from)
        ah_buf_fmt(&b, " Call %s to find it again.", f->from->data);
    else
        ah_buf_str(&b, " Call the tool that gave it to find it again.");
    st = ah_text_from_buf(&b, "words", &f->gone, err);
    ah_buf_clear(&b);
    return st;
}

/* Takes its place in the discovery, which must not have it. stem .p NULL: chosen here. */
static ah_status fill_found(ah_discovery *d, ah_found *f, ah_slice stem, ah_err *err)
{
    ah_found **grown;
    ah_status st = make_key(d->mem, f->of, ah_text_slice(f->id), &f->key, err);

    if (st == AH_OK && stem.p)
        st = (f->stem = ah_text_new(d->mem, stem)) ? AH_OK : ah_err_nomem(err);
    else if (st == AH_OK)
        st = choose_stem(d, f, err);
    if (st == AH_OK)
        st = write_parting(f, err);
    if (st != AH_OK)
        return st;
    grown = ah_grow(d->mem, d->found, &d->cap, d->n + 1, sizeof *grown);
    d->found = grown ? grown : d->found;
    if (!grown || !ah_index_reserve(&d->by_key, d->n + 1, d->n) ||
        !ah_index_reserve(&d->by_stem, d->n + 1, d->n))
        return ah_err_nomem(err);
    d->found[d->n++] = f;
    ah_index_put(&d->by_key, ah_text_slice(f->key), d->n - 1);
    ah_index_put(&d->by_stem, ah_text_slice(f->stem), d->n - 1);
    return AH_OK;
}

static ah_status add_found(ah_discovery *d, ah_entity_class *of, ah_slice id, ah_slice stem,
                           ah_slice from, int depth, ah_found **out, ah_err *err)
{
    ah_found *f = ah_alloc(d->mem, sizeof *f);
    ah_status st = AH_NOMEM;

    if (!f)
        return ah_err_nomem(err);
    *f = (ah_found){.mem = d->mem, .refs = 1, .in = d, .depth = depth};
    f->of = ah_entity_class_ref(of);
    f->id = ah_text_new(d->mem, id);
    f->from = from.p ? ah_text_new(d->mem, from) : NULL;
    if (!f->id || (from.p && !f->from))
        ah_err_nomem(err);
    else
        st = fill_found(d, f, stem, err);
    if (st == AH_OK)
        *out = f;
    else
        unref_found(f);
    return st;
}

/* -- its tools ---------------------------------------------------------------------------- */

static void release_bound(void *p)
{
    bound *b = p;
    ah_found *f = b->found;

    ah_free(f->mem, b);
    if (--f->tools == 0)
        set_instance(f, (ah_value){0});
    unref_found(f);
}

/* Answers the call: the entity is stale, and how to find it again. */
static void answer_stale(const ah_found *f, ah_call *call)
{
    ah_outcome o = {.failure = AH_FAILED_SAID};
    ah_buf b;

    ah_buf_init(&b, f->mem, MAX_WORDS);
    ah_buf_fmt(&b, "Tool '%s' was not run: %s", call->tool->name->data, f->gone->data);
    o.message = ah_buf_ok(&b) ? ah_buf_slice(&b) : ah_slice_of("stale entity");
    ah_call_done(call, &o, call->started);
    ah_buf_clear(&b);
}

static void start(const ah_tool *tool, ah_call *call)
{
    const bound *b = tool->handler.p;

    if (b->found->instance.vt || b->found->of->finds)
        b->found->of->vt->start(b->found, b->method, call);
    else
        answer_stale(b->found, call);
}

static void stop(const ah_tool *tool, ah_call *call)
{
    ((const bound *)tool->handler.p)->found->of->vt->stop(call);
}

static const ah_tool_vt tool_vt = {.start = start, .stop = stop};
static const struct ah_value_vt bound_vt = {.release = release_bound};

static const bound *bound_of(const ah_tool *t)
{
    return t && t->vt == &tool_vt ? t->handler.p : NULL;
}

ah_found *ah_found_of(const ah_call *call, size_t *method)
{
    const bound *b = bound_of(call->tool);

    if (b && method)
        *method = b->method;
    return b ? b->found : NULL;
}

static ah_status derive(ah_found *f, bound *b, ah_slice name, ah_tool **out, ah_err *err)
{
    ah_tool_as as = {.name = name, .gone = f->gone, .vt = &tool_vt, .handler = {&bound_vt, b}};
    ah_status st;
    ah_buf aside;

    ah_buf_init(&aside, f->mem, MAX_WORDS); /* names say the id without its signs */
    ah_buf_fmt(&aside, " (%s %s)", f->of->name->data, f->id->data);
    as.aside = ah_buf_slice(&aside);
    st = ah_buf_ok(&aside) ? ah_tool_derive(f->of->method[b->method], &as, out, err) : ah_err_nomem(err);
    ah_buf_clear(&aside);
    return st;
}

static ah_status make_tool(ah_found *f, size_t method, ah_slice name, ah_tool **out, ah_err *err)
{
    bound *b = ah_alloc(f->mem, sizeof *b);
    ah_status st;

    if (!b)
        return ah_err_nomem(err);
    *b = (bound){f, method};
    if ((st = derive(f, b, name, out, err)) != AH_OK) {
        ah_free(f->mem, b);
        return st;
    }
    f->refs++;
    f->tools++;
    return AH_OK;
}

/* {"strategy":..,"class":..,"id":..,"stem":..,"tool":..,"depth":..}: what replaying needs. */
static ah_status provenance(const ah_found *f, ah_text **out, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, f->mem, MAX_WORDS);
    ah_buf_str(&b, "{\"strategy\":\"discover\",\"class\":");
    ah_json_put_string(&b, ah_text_slice(f->of->name));
    ah_buf_str(&b, ",\"id\":");
    ah_json_put_string(&b, ah_text_slice(f->id));
    ah_buf_str(&b, ",\"stem\":");
    ah_json_put_string(&b, ah_text_slice(f->stem));
    if (f->from) {
        ah_buf_str(&b, ",\"tool\":");
        ah_json_put_string(&b, ah_text_slice(f->from));
    }
    ah_buf_fmt(&b, ",\"depth\":%d}", f->depth);
    st = ah_text_from_buf(&b, "provenance", out, err);
    ah_buf_clear(&b);
    return st;
}

/* Is the tool of this method in the registry? */
static bool has_tool(const ah_found *f, size_t method, ah_slice name, const ah_registry *r)
{
    const bound *b = bound_of(ah_registry_find(r, name));

    return b && b->found == f && b->method == method;
}

static void note_fresh(ah_discovery *d, ah_found *f)
{
    if (f->is_fresh)
        return;
    f->is_fresh = true;
    f->fresh = NULL;
    *(d->fresh ? &d->last_fresh->fresh : &d->fresh) = f;
    d->last_fresh = f;
}

/* Each tool of it that stands in the registry with the very definition that it would get now. */
static ah_status take_places(ah_found *f, ah_registry *r, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_status st = AH_OK;

    for (size_t i = 0; i < f->of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);
        const ah_tool *there = ah_registry_find(r, name);
        ah_tool *tool = NULL;
        bool taken;

        if (!there || (!there->stale && !bound_of(there)) || has_tool(f, i, name, r))
            continue;
        st = make_tool(f, i, name, &tool, err);
        if (st == AH_OK)
            st = ah_registry_rebind(r, tool, f->in->brief, &taken, err);
        ah_tool_unref(tool);
    }
    return st;
}

/* Those of its tools that the registry has not, or has as stale ones, as additions. */
static ah_status add_tools(ah_found *f, const ah_registry *r, ah_changes *out, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_text *by = NULL;
    ah_status st = AH_OK;

    for (size_t i = 0; i < f->of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);
        const ah_tool *there = ah_registry_find(r, name);
        ah_tool *tool = NULL;

        if (has_tool(f, i, name, r))
            continue;
        if (!by)
            st = provenance(f, &by, err);
        if (st == AH_OK)
            st = make_tool(f, i, name, &tool, err);
        if (st == AH_OK)
            st = there && there->stale ? ah_changes_replace(out, tool, by, err)
                                       : ah_changes_add(out, tool, by, err);
        ah_tool_unref(tool);
    }
    if (by && st == AH_OK)
        note_fresh(f->in, f);
    ah_text_unref(by);
    return st;
}

/* -- the strategy ------------------------------------------------------------------------------ */

static int depth_after(const ah_call *call)
{
    const ah_found *f = ah_found_of(call, NULL);

    return f ? f->depth + 1 : 1;
}

static bool too_deep(ah_discovery *d, const ah_entity *e, int depth)
{
    char words[256];
    int n;

    if (depth <= d->max_depth)
        return false;
    n = snprintf(words, sizeof words, "%s %.64s gives no tools: it is %d deep (max_depth = %d)",
                 e->of->name->data, e->id->data, depth, d->max_depth);
    if (!d->warned_depth)
        ah_run_warn(d->run, (ah_slice){words, ah_utf8_cut(words, n < 255 ? (size_t)n : (size_t)255)});
    d->warned_depth = true;
    return true;
}

/* More additions would only be refused: one too many has been asked for, and is told. */
static bool is_full(const ah_run *run, const ah_changes *out)
{
    return run->cfg.registry->live + out->n > (size_t)run->cfg.rules->max_tools;
}

/* One entity of the result; its instance is taken where it gets or has tools. */
static ah_status take(ah_discovery *d, const ah_call *call, ah_entity *e, ah_changes *out, ah_err *err)
{
    int depth = depth_after(call);
    ah_found *f = NULL;
    ah_status st = look_up(d, e->of, ah_text_slice(e->id), &f, err);

    if (st == AH_OK && !f)
        st = adopt(d, e->of, ah_text_slice(e->id), &f, err);
    if (st != AH_OK || !e->of->n || (!f && (is_full(d->run, out) || too_deep(d, e, depth))))
        return st;
    if (!f)
        st = add_found(d, e->of, ah_text_slice(e->id), (ah_slice){NULL, 0},
                       ah_text_slice(call->slot->name), depth, &f, err);
    if (st != AH_OK)
        return st;
    if (depth < f->depth)
        f->depth = depth;
    set_instance(f, e->instance);
    e->instance = (ah_value){0};
    st = take_places(f, d->run->cfg.registry, err);
    if (st == AH_OK && !is_full(d->run, out))
        st = add_tools(f, d->run->cfg.registry, out, err);
    if (!f->tools)
        set_instance(f, (ah_value){0});
    return st;
}

/* The first that is no entity, in its own words, and how many more there are. */
static void warn_invalid(ah_discovery *d, const ah_err *first, size_t n)
{
    ah_buf b;

    if (!n)
        return;
    ah_buf_init(&b, d->mem, MAX_WORDS);
    ah_buf_str(&b, first->message);
    if (n > 1)
        ah_buf_fmt(&b, " (and %zu more)", n - 1);
    if (ah_buf_ok(&b))
        ah_run_warn(d->run, ah_buf_slice(&b));
    ah_buf_clear(&b);
}

static void forget_fresh(ah_discovery *d)
{
    for (ah_found *f = d->fresh; f; f = f->fresh)
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

static void tell(ah_run *run, const ah_found *f)
{
    char buf[AH_ENTITY_TOOL_NAME];
    size_t n = 0;
    ah_buf names;

    ah_buf_init(&names, f->mem, MAX_LIST);
    ah_buf_char(&names, '[');
    for (size_t i = 0; i < f->of->n; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);

        if (!has_tool(f, i, name, run->cfg.registry))
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

    for (const ah_found *f = d->fresh; f; f = f->fresh)
        tell(d->run, f);
    forget_fresh(d);
}

ah_strategy ah_discovery_strategy(ah_discovery *d)
{
    static const struct ah_strategy_vt strategy_vt = {.after = after, .made = made};

    return (ah_strategy){.name = "discover", .vt = &strategy_vt, .ud = d};
}

/* -- from outside, and again ---------------------------------------------------------------------- */

ah_status ah_discovery_retract(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                               const ah_registry *r, ah_changes *out, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_found *f = NULL;
    ah_status st = look_up(d, of, id, &f, err);

    for (size_t i = 0; f && i < of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(of, i, ah_text_slice(f->stem), buf);

        if (has_tool(f, i, name, r))
            st = ah_changes_remove(out, name, err);
    }
    return st;
}

/* What `by` of an entry says. */
typedef struct told {
    ah_buf cls, id, stem, from;
    int depth;
} told;

static void told_init(told *t, const ah_mem *mem)
{
    ah_buf_init(&t->cls, mem, MAX_WORDS);
    ah_buf_init(&t->id, mem, MAX_WORDS);
    ah_buf_init(&t->stem, mem, MAX_WORDS);
    ah_buf_init(&t->from, mem, MAX_WORDS);
}

static void told_clear(told *t)
{
    ah_buf_clear(&t->cls);
    ah_buf_clear(&t->id);
    ah_buf_clear(&t->stem);
    ah_buf_clear(&t->from);
}

static void read_told(told *t, ah_slice by)
{
    ah_slice cls, id, stem, from, depth;
    const ah_json_wanted want[] = {
        {"class", &cls}, {"id", &id}, {"stem", &stem}, {"tool", &from}, {"depth", &depth}};
    ah_json_num n = {0};

    ah_json_members(by, want, 5);
    ah_buf_reset(&t->cls, 0);
    ah_buf_reset(&t->id, 0);
    ah_buf_reset(&t->stem, 0);
    ah_buf_reset(&t->from, 0);
    ah_json_string(cls, &t->cls);
    ah_json_string(id, &t->id);
    ah_json_string(stem, &t->stem);
    ah_json_string(from, &t->from);
    if (ah_json_kind_of(depth) == AH_JSON_NUMBER)
        ah_json_number(depth, &n);
    t->depth = n.is_int && n.i > 0 && n.i < 1 << 20 ? (int)n.i : 1;
}

static ah_status known_again(ah_discovery *d, const told *t, ah_entity_class *of, ah_found **f,
                             ah_err *err)
{
    ah_status st = look_up(d, of, ah_buf_slice(&t->id), f, err);
    ah_slice from = {t->from.len ? t->from.data : NULL, t->from.len};

    if (st != AH_OK || *f || !t->id.len || !t->stem.len ||
        at_index(d, &d->by_stem, ah_buf_slice(&t->stem)))
        return st;
    return add_found(d, of, ah_buf_slice(&t->id), ah_buf_slice(&t->stem), from, t->depth, f, err);
}

static bool is_ours(ah_slice by)
{
    return by.p && ah_json_string_is(ah_json_member(by, "strategy"), "discover");
}

/* What another conversation bound and this one does not know: of a turn that is not over. */
static void drop_foreign(const ah_discovery *d, ah_registry *r)
{
    const ah_tool *t;

    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;)
        if (bound_of(t) && bound_of(t)->found->in != d)
            ah_registry_remove(r, ah_text_slice(t->name));
}

/* The words that a call of those of the entry's tools gets which found no method. */
static void give_words(const ah_found *f, const ah_registry *r, ah_slice entry)
{
    ah_json_reader reader = ah_json_read(ah_json_member(entry, "tools"));
    ah_json_token t = ah_json_next(&reader);

    for (t = ah_json_next(&reader); t.kind == AH_JSON_OBJECT; t = ah_json_next(&reader)) {
        ah_slice name = ah_json_member(ah_json_skip(&reader, t), "name");
        ah_tool *there = name.p ? ah_registry_find(r, ah_json_inside(name)) : NULL;

        if (there && there->stale)
            ah_text_set(&there->gone, ah_text_ref(f->gone));
    }
}

/* The class that the script has, or one that stands in for it. A new reference. */
static ah_status class_of(const ah_discovery *d, const told *t,
                          ah_entity_class *(*find)(void *ud, ah_slice name), void *ud,
                          ah_entity_class **out, ah_err *err)
{
    ah_entity_class *there = find(ud, ah_buf_slice(&t->cls));
    ah_status st;

    *out = ah_entity_class_ref(there);
    if (there)
        return AH_OK;
    st = ah_entity_class_new(d->mem, ah_buf_slice(&t->cls), ah_slice_of("stale"), NULL, out, err);
    return st == AH_PROMPT_VALIDATION ? AH_OK : st; /* what was saved is no name */
}

/* One entry of what was discovered. */
static ah_status replay_entry(ah_discovery *d, const told *t, ah_entity_class *of, ah_slice entry,
                              ah_registry *r, ah_err *err)
{
    ah_found *f = NULL;
    ah_status st = known_again(d, t, of, &f, err);

    if (st != AH_OK || !f)
        return st;
    st = take_places(f, r, err);
    give_words(f, r, entry);
    return st;
}

ah_status ah_discovery_replay(ah_discovery *d, const ah_transcript *t, ah_registry *r,
                              ah_entity_class *(*find)(void *ud, ah_slice name), void *ud, ah_err *err)
{
    ah_status st = AH_OK;
    told it;

    told_init(&it, d->mem);
    for (size_t i = 0; i < t->n && st == AH_OK; i++) {
        ah_slice entry = ah_text_slice(t->entry[i].json), by = ah_json_member(entry, "by");
        ah_entity_class *of = NULL;

        if (t->entry[i].kind != AH_ENTRY_TOOLS_ADDED || !is_ours(by))
            continue;
        read_told(&it, by);
        st = class_of(d, &it, find, ud, &of, err);
        if (st == AH_OK && of)
            st = replay_entry(d, &it, of, entry, r, err);
        ah_entity_class_unref(of);
    }
    drop_foreign(d, r);
    told_clear(&it);
    return st;
}
