/* Discovery and the transcript: writes the `by` of an entry that added an entity's tools, and
 * restores entities from it, without instances, in a conversation that was loaded or forked. */
#include "run/found.h"

enum { MAX_WORDS = 8 << 10 };

/* {"strategy":..,"class":..,"id":..,"stem":..,"tool":..,"depth":..} */
ah_status ah_entity_slot_provenance(const ah_entity_slot *f, ah_text **out, ah_err *err)
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

/* The contents of `by` of an entry. */
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
    const ah_json_slot want[] = {
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

static ah_status known_again(ah_discovery *d, const told *t, ah_entity_class *of,
                             ah_entity_slot **f, ah_err *err)
{
    ah_status st = ah_entity_slot_look_up(d, of, ah_buf_slice(&t->id), f, err);
    ah_slice from = {t->from.len ? t->from.data : NULL, t->from.len};

    if (st != AH_OK || *f || !t->id.len || !t->stem.len ||
        ah_entity_slot_by_stem(d, ah_buf_slice(&t->stem)))
        return st;
    return ah_entity_slot_add(d, of, ah_buf_slice(&t->id), ah_buf_slice(&t->stem), from, t->depth,
                              f, err);
}

static bool is_ours(ah_slice by)
{
    return by.p && ah_json_string_is(ah_json_member(by, "strategy"), "discover");
}

/* Removes tools that are bound by another conversation: those of a turn that was not over. */
static void drop_foreign(const ah_discovery *d, ah_registry *r)
{
    const ah_tool *t;

    for (size_t at = 0; (t = ah_registry_next(r, &at)) != NULL;)
        if (ah_entity_slot_of_tool(t) && ah_entity_slot_of_tool(t)->in != d)
            ah_registry_remove(r, ah_text_slice(t->name));
}

/* Sets the error text for this entry's tools whose method no longer exists. */
static void give_words(const ah_entity_slot *f, const ah_registry *r, ah_slice entry)
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

/* Sets *out to the script's class, or to a stand-in with its name. A new reference. */
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
    return st == AH_PROMPT_VALIDATION ? AH_OK : st; /* the saved name is no valid name */
}

/* Restores the entity of one entry. */
static ah_status replay_entry(ah_discovery *d, const told *t, ah_entity_class *of, ah_slice entry,
                              ah_registry *r, ah_err *err)
{
    ah_entity_slot *f = NULL;
    ah_status st = known_again(d, t, of, &f, err);

    if (st != AH_OK || !f)
        return st;
    st = ah_entity_slot_take_places(f, r, err);
    give_words(f, r, entry);
    return st;
}

static ah_status redeclare(ah_entity_slot *f, const ah_registry *r, ah_changes *out, ah_err *err)
{
    char buf[AH_ENTITY_TOOL_NAME];
    ah_text *by = NULL;
    ah_status st = ah_entity_slot_provenance(f, &by, err);

    for (size_t i = 0; i < f->of->n && st == AH_OK; i++) {
        ah_slice name = ah_entity_tool_name(f->of, i, ah_text_slice(f->stem), buf);
        const ah_tool *there = ah_registry_find(r, name);
        ah_tool *tool = NULL;

        if (!there || !there->stale)
            continue;
        st = ah_entity_slot_make_tool(f, i, name, &tool, err);
        if (st == AH_OK)
            st = ah_changes_add(out, tool, by, err);
        ah_tool_unref(tool);
    }
    ah_text_unref(by);
    return st;
}

ah_status ah_discovery_redeclare(const ah_discovery *d, const ah_registry *r, ah_changes *out,
                                 ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < d->n && st == AH_OK; i++)
        if (d->found[i]->of->vt) /* else only the name of its class is known */
            st = redeclare(d->found[i], r, out, err);
    return st;
}

ah_status ah_discovery_replay(ah_discovery *d, const ah_transcript *t, ah_registry *r,
                              ah_entity_class *(*find)(void *ud, ah_slice name), void *ud,
                              ah_err *err)
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
