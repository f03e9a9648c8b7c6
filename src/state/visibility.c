/* Paths are compared as JSON text: section paths need no escapes. */
#include "state/visibility.h"

enum { MAX_EVENT = 16 << 10 /* bytes; a path has at most AH_MAX_SECTION_DEPTH keys */ };

/* -- slice and event --------------------------------------------------------------------- */

ah_status ah_visibility_register(ah_session *s, ah_err *err)
{
    static const char text[] =
        "{\"additionalProperties\":false,\"properties\":{\"path\":{\"maxLength\":4096,\"type\":"
        "\"string\"},"
        "\"visibility\":{\"enum\":[\"full\",\"summary\"]}},\"required\":[\"path\",\"visibility\"],"
        "\"type\":\"object\"}";
    static const ah_slice_options by_path = {.keep = AH_KEEP_BY_KEY, .key = AH_LIT("path")};
    ah_schema *schema = NULL;
    int slice, event;
    ah_status st = AH_OK;

    if ((slice = ah_session_find(s, ah_slice_of(AH_VISIBILITY_SLICE))) >= 0 &&
        ah_session_has_slice(s, slice))
        return AH_OK;
    if ((st = ah_schema_compile(ah_session_mem(s), ah_slice_of(text), &schema, err)) != AH_OK)
        return st;
    st = ah_session_type(s, ah_slice_of(AH_VISIBILITY_SLICE), schema, &slice, err);
    if (st == AH_OK)
        st = ah_session_type(s, ah_slice_of(AH_VISIBILITY_EVENT), schema, &event, err);
    if (st == AH_OK)
        st = ah_session_reduce_by_key(s, slice, event, by_path.key, err);
    if (st == AH_OK) /* last: the slice marks a complete registration */
        st = ah_session_keep(s, slice, &by_path, err);
    ah_schema_unref(schema);
    return st;
}

ah_status ah_visibility_set(ah_session *s, ah_overlay *o, ah_slice path, ah_visibility v,
                            ah_err *err)
{
    int event = ah_session_find(s, ah_slice_of(AH_VISIBILITY_EVENT));
    ah_text *value = NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, ah_session_mem(s), MAX_EVENT);
    ah_buf_str(&b, "{\"path\":");
    ah_json_put_string(&b, path);
    ah_buf_fmt(&b, ",\"visibility\":\"%s\"}", v == AH_FULL ? "full" : "summary");
    st = ah_text_from_buf(&b, AH_VISIBILITY_EVENT, &value, err);
    if (st == AH_OK)
        st = ah_session_dispatch(s, o, event, value, err);
    ah_text_unref(value);
    ah_buf_clear(&b);
    return st;
}

/* -- the overrides of one moment --------------------------------------------------------- */

static ah_slice path_at(const void *owner, size_t at)
{
    return ((const ah_overrides *)owner)->item[at].path;
}

void ah_overrides_init(ah_overrides *v, const ah_mem *mem)
{
    *v = (ah_overrides){.mem = mem, .index = {.mem = mem, .name = path_at, .owner = v}};
}

static void empty(ah_overrides *v)
{
    ah_cell_unref(v->mem, v->head);
    v->head = NULL;
    v->n = 0;
    ah_index_clear(&v->index);
}

void ah_overrides_clear(ah_overrides *v)
{
    if (!v->mem)
        return;
    empty(v);
    ah_free(v->mem, v->item);
    *v = (ah_overrides){0};
}

ah_status ah_overrides_put(ah_overrides *v, ah_slice path, ah_visibility visibility, ah_err *err)
{
    ah_override *item = ah_grow(v->mem, v->item, &v->cap, v->n + 1, sizeof *item);

    if (item)
        v->item = item;
    if (!item || !ah_index_reserve(&v->index, 1, v->n))
        return ah_err_nomem(err);
    item[v->n] = (ah_override){path, visibility};
    ah_index_put(&v->index, path, v->n++);
    return AH_OK;
}

/* A restored or hand-written slice may have several values of a path: the newest counts. */
static ah_status put_value(ah_overrides *v, ah_slice value, ah_err *err)
{
    ah_slice path = ah_json_inside(ah_json_member(value, "path"));
    bool summary = ah_slice_is(ah_json_member(value, "visibility"), "\"summary\"");

    if (ah_index_find(&v->index, path) != AH_INDEX_NONE)
        return AH_OK;
    return ah_overrides_put(v, path, summary ? AH_SUMMARY : AH_FULL, err);
}

ah_status ah_overrides_read(ah_overrides *v, const ah_session *s, const ah_overlay *o, ah_err *err)
{
    ah_cell *head = ah_session_head(s, o, ah_session_find(s, ah_slice_of(AH_VISIBILITY_SLICE)));
    ah_status st = AH_OK;

    if (head == v->head)
        return AH_OK;
    empty(v);
    for (const ah_cell *c = head; c && st == AH_OK; c = c->below)
        st = put_value(v, ah_text_slice(c->value), err);
    if (st == AH_OK)
        v->head = ah_cell_ref(head);
    else
        empty(v);
    return st;
}

bool ah_overrides_find(void *ud, ah_slice path, ah_visibility *out)
{
    const ah_overrides *v = ud;
    uint32_t at = ah_index_find(&v->index, path);

    if (at != AH_INDEX_NONE)
        *out = v->item[at].visibility;
    return at != AH_INDEX_NONE;
}
