/* The entities that one conversation has found, each with its key, stem and instance, and the tools
 * bound to it. A call of such a tool is started through the class (model/entity.h). */
#include "run/found.h"

enum { MAX_WORDS = 8 << 10 };

/* The handler of an entity's tool. */
typedef struct bound {
    ah_entity_slot *found;
    size_t method;
} bound;

/* -- entities ------------------------------------------------------------------------ */

void ah_entity_slot_hold(ah_entity_slot *f, ah_value instance)
{
    ah_value before = f->instance;

    if (f->in && !before.vt && instance.vt)
        f->in->at_hand++;
    if (f->in && before.vt && !instance.vt)
        f->in->at_hand--;
    f->instance = instance;
    ah_value_release(&before); /* last: it may run code that looks at f */
}

void ah_entity_slot_bind(ah_entity_slot *f, ah_value instance)
{
    if (f->tools)
        ah_entity_slot_hold(f, instance);
    else
        ah_value_release(&instance);
}

static void unref_found(ah_entity_slot *f)
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
        ah_entity_slot_hold(d->found[i], (ah_value){0});
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
        ah_entity_slot_hold(d->found[i], (ah_value){0});
}

/* True if only the name of the class is known, from an earlier conversation. */
static bool is_stand_in(const ah_entity_class *of)
{
    return of->vt == NULL;
}

/* The key uses the address of the class, since two classes may have the same name. */
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

static ah_entity_slot *at_index(const ah_discovery *d, const ah_index *x, ah_slice name)
{
    uint32_t at = ah_index_find(x, name);

    return at == AH_INDEX_NONE ? NULL : d->found[at];
}

ah_entity_slot *ah_entity_slot_by_stem(const ah_discovery *d, ah_slice stem)
{
    return at_index(d, &d->by_stem, stem);
}

ah_status ah_entity_slot_look_up(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                                 ah_entity_slot **found, ah_err *err)
{
    ah_text *key = NULL;
    ah_status st = make_key(d->mem, of, id, &key, err);

    *found = st == AH_OK ? at_index(d, &d->by_key, ah_text_slice(key)) : NULL;
    ah_text_unref(key);
    return st;
}

/* The index may keep the old key: it leads to the same slot. */
ah_status ah_entity_slot_adopt(ah_discovery *d, ah_entity_class *of, ah_slice id,
                               ah_entity_slot **found, ah_err *err)
{
    const ah_entity_class name_only = {.name = of->name};
    ah_text *key = NULL;
    ah_status st = ah_entity_slot_look_up(d, &name_only, id, found, err);
    ah_entity_slot *f = *found;

    if (st != AH_OK || !f)
        return st;
    *found = NULL;
    if ((st = make_key(d->mem, of, id, &key, err)) != AH_OK)
        return st;
    if (!ah_index_reserve(&d->by_key, 1, d->n)) {
        ah_text_unref(key);
        return ah_err_nomem(err);
    }
    ah_text_set(&f->key, key);
    ah_index_put(&d->by_key, ah_text_slice(key),
                 ah_index_find(&d->by_stem, ah_text_slice(f->stem)));
    ah_entity_class_unref(f->of);
    f->of = ah_entity_class_ref(of);
    *found = f;
    return AH_OK;
}

/* Chooses the first stem for the id that no other entity has. The entity with the plain stem counts
 * the others. */
static ah_status choose_stem(ah_discovery *d, ah_entity_slot *f, ah_err *err)
{
    ah_entity_slot *first, *there;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, d->mem, MAX_WORDS);
    ah_entity_stem(f->of, ah_text_slice(f->id), 1, &b);
    there = first = ah_buf_ok(&b) ? ah_entity_slot_by_stem(d, ah_buf_slice(&b)) : NULL;
    while (there && ah_buf_ok(&b)) {
        ah_buf_reset(&b, 0);
        ah_entity_stem(f->of, ah_text_slice(f->id), ++first->alike + 1, &b);
        there = ah_entity_slot_by_stem(d, ah_buf_slice(&b));
    }
    st = ah_text_from_buf(&b, "the name", &f->stem, err);
    ah_buf_clear(&b);
    return st;
}

static ah_status write_parting(ah_entity_slot *f, ah_err *err)
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

/* Adds the slot to the discovery, which must not have it. stem .p NULL: chooses one. */
static ah_status fill_found(ah_discovery *d, ah_entity_slot *f, ah_slice stem, ah_err *err)
{
    ah_entity_slot **grown;
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
    if (!grown || !ah_index_reserve(&d->by_key, 1, d->n) || !ah_index_reserve(&d->by_stem, 1, d->n))
        return ah_err_nomem(err);
    d->found[d->n++] = f;
    ah_index_put(&d->by_key, ah_text_slice(f->key), d->n - 1);
    ah_index_put(&d->by_stem, ah_text_slice(f->stem), d->n - 1);
    return AH_OK;
}

ah_status ah_entity_slot_add(ah_discovery *d, ah_entity_class *of, ah_slice id, ah_slice stem,
                             ah_slice from, int depth, ah_entity_slot **out, ah_err *err)
{
    ah_entity_slot *f = ah_alloc(d->mem, sizeof *f);
    ah_status st = AH_NOMEM;

    if (!f)
        return ah_err_nomem(err);
    *f = (ah_entity_slot){.mem = d->mem, .refs = 1, .in = d, .depth = depth};
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

/* -- tools of an entity ------------------------------------------------------------------- */

static void release_bound(void *p)
{
    bound *b = p;
    ah_entity_slot *f = b->found;

    ah_free(f->mem, b);
    if (--f->tools == 0)
        ah_entity_slot_hold(f, (ah_value){0});
    unref_found(f);
}

/* Answers the call: the entity is stale, and how to find it again. */
static void answer_stale(const ah_entity_slot *f, ah_call *call)
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

static const void *alone(const ah_tool *tool)
{
    const bound *b = tool->handler.p;

    return b->found->of->method[b->method]->stateless ? NULL : b->found;
}

static const ah_tool_vt tool_vt = {.start = start, .stop = stop, .alone = alone};
static const struct ah_value_vt bound_vt = {.release = release_bound};

static const bound *bound_of(const ah_tool *t)
{
    return t && t->vt == &tool_vt ? t->handler.p : NULL;
}

ah_entity_slot *ah_entity_slot_of_tool(const ah_tool *t)
{
    const bound *b = bound_of(t);

    return b ? b->found : NULL;
}

ah_entity_slot *ah_entity_slot_of(const ah_call *call, size_t *method)
{
    const bound *b = bound_of(call->tool);

    if (b && method)
        *method = b->method;
    return b ? b->found : NULL;
}

static ah_status derive(ah_entity_slot *f, bound *b, ah_slice name, ah_tool **out, ah_err *err)
{
    ah_tool_as as = {.name = name, .gone = f->gone, .vt = &tool_vt, .handler = {&bound_vt, b}};
    ah_status st;
    ah_buf aside;

    ah_buf_init(&aside, f->mem, MAX_WORDS); /* tool names contain the id without its signs */
    ah_buf_fmt(&aside, " (%s %s)", f->of->name->data, f->id->data);
    as.aside = ah_buf_slice(&aside);
    st = ah_buf_ok(&aside) ? ah_tool_derive(f->of->method[b->method], &as, out, err)
                           : ah_err_nomem(err);
    ah_buf_clear(&aside);
    return st;
}

ah_status ah_entity_slot_make_tool(ah_entity_slot *f, size_t method, ah_slice name, ah_tool **out,
                                   ah_err *err)
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

bool ah_entity_slot_has_tool(const ah_entity_slot *f, size_t method, ah_slice name,
                             const ah_registry *r)
{
    const bound *b = bound_of(ah_registry_find(r, name));

    return b && b->found == f && b->method == method;
}

ah_status ah_entity_slot_take_places(ah_entity_slot *f, ah_registry *r, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_status st = AH_OK;

    for (size_t i = 0; i < f->of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);
        const ah_tool *there = ah_registry_find(r, name);
        ah_tool *tool = NULL;
        bool taken;

        if (!there || (!there->stale && !bound_of(there)) || ah_entity_slot_has_tool(f, i, name, r))
            continue;
        st = ah_entity_slot_make_tool(f, i, name, &tool, err);
        if (st == AH_OK)
            st = ah_registry_rebind(r, tool, f->in->brief, &taken, err);
        ah_tool_unref(tool);
    }
    return st;
}
