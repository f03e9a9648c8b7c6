/* Snapshots: a session as JSON text and back. */
#include "state/session.h"

enum { VERSION = 1, MAX_VALUE = 64 << 20 /* bytes of one value */ };

/* -- to text --------------------------------------------------------------------------- */

void ah_session_put_values(const ah_session *s, const ah_cell *head, ah_buf *out)
{
    ah_list_print(ah_session_mem(s), head, out);
}

/* Returns the next non-empty slice after `after` in byte order (.p NULL: the first); -1: none.
 * Types are few. */
static int next_slice(const ah_session *s, const ah_overlay *o, ah_slice after)
{
    int best = -1;

    for (int id = 0; id < ah_session_types(s); id++) {
        ah_slice name = ah_session_name(s, id);

        if (ah_session_has_slice(s, id) && ah_session_head(s, o, id) &&
            (!after.p || ah_slice_cmp(name, after) > 0) &&
            (best < 0 || ah_slice_cmp(name, ah_session_name(s, best)) < 0))
            best = id;
    }
    return best;
}

/* Puts the slices of another snapshot whose names are unknown here, as checked text. */
static void put_kept(const ah_session *s, ah_slice kept, bool first, ah_buf *out)
{
    ah_json_reader r = ah_json_read(ah_json_member(kept, "slices"));
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_OBJECT)
        return;
    while ((t = ah_json_next(&r)).kind == AH_JSON_KEY) {
        ah_slice name = t.raw; /* names of types need no JSON escapes */
        int id = ah_session_find(s, name);
        ah_slice values = ah_json_skip(&r, ah_json_next(&r));

        if (id >= 0 && ah_session_has_slice(s, id))
            continue;
        ah_buf_str(out, first ? "\"" : ",\"");
        ah_buf_put(out, name);
        ah_buf_str(out, "\":");
        ah_buf_put(out, values);
        first = false;
    }
}

void ah_session_print_slices(const ah_session *s, const ah_overlay *o, ah_slice kept, ah_buf *out)
{
    ah_slice after = {NULL, 0};
    int id;

    ah_buf_char(out, '{');
    for (; (id = next_slice(s, o, after)) >= 0; after = ah_session_name(s, id)) {
        if (after.p)
            ah_buf_char(out, ',');
        ah_json_put_string(out, ah_session_name(s, id));
        ah_buf_char(out, ':');
        ah_session_put_values(s, ah_session_head(s, o, id), out);
    }
    if (kept.p)
        put_kept(s, kept, !after.p, out);
    ah_buf_char(out, '}');
}

void ah_session_print(const ah_session *s, const ah_overlay *o, ah_buf *out)
{
    ah_buf_fmt(out, "{\"agenthost_session\":%d,\"slices\":", VERSION);
    ah_session_print_slices(s, o, (ah_slice){NULL, 0}, out);
    ah_buf_char(out, '}');
}

/* -- and back ---------------------------------------------------------------------------- */

static ah_status wrong(ah_err *err, const char *what, ah_slice name)
{
    return ah_err_set(err, AH_USAGE, "session: the text is no snapshot: %s%.*s", what,
                      AH_FMT(name));
}

/* Adds the value, checked and canonical, at the end of the list. */
static ah_status read_value(const ah_session *s, int id, ah_slice json, ah_list *list, ah_err *err)
{
    ah_text *value = NULL;
    ah_buf canon;
    ah_status st;

    ah_buf_init(&canon, list->mem, MAX_VALUE);
    st = ah_json_canon(list->mem, json, &canon);
    if (st == AH_OK)
        st = ah_session_check(s, id, ah_buf_slice(&canon), &value, err);
    else
        st = st == AH_NOMEM ? ah_err_nomem(err)
                            : ah_buf_error(&canon, "a value of the snapshot", err);
    if (st == AH_OK && !ah_list_append(list, value))
        st = ah_err_nomem(err);
    if (st == AH_TOOL_VALIDATION)
        err->status = st = AH_USAGE;
    ah_text_unref(value);
    ah_buf_clear(&canon);
    return st;
}

static ah_status read_values(const ah_session *s, int id, ah_json_reader *r, ah_list *list,
                             ah_err *err)
{
    ah_json_token t = ah_json_next(r);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return wrong(err, "not a list: ", ah_session_name(s, id));
    while (st == AH_OK && (t = ah_json_next(r)).kind != AH_JSON_ARRAY_END)
        st = read_value(s, id, ah_json_skip(r, t), list, err);
    return st;
}

ah_status ah_session_read_values(const ah_session *s, int id, ah_slice json, ah_list *list,
                                 ah_err *err)
{
    ah_json_reader r = ah_json_read(json);

    return read_values(s, id, &r, list, err);
}

/* Reads the members of "slices" into the edits, one per type. */
static ah_status read_slices(const ah_session *s, ah_slice slices, bool known, ah_edit *edit,
                             ah_err *err)
{
    ah_json_reader r = ah_json_read(slices);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;
    ah_buf name;

    ah_buf_init(&name, ah_session_mem(s), slices.n);
    while (st == AH_OK && (t = ah_json_next(&r)).kind == AH_JSON_KEY) {
        int id;

        ah_buf_reset(&name, 0);
        ah_json_unescape(t.raw, &name);
        if (!ah_buf_ok(&name)) {
            st = ah_err_nomem(err);
            break;
        }
        id = ah_session_find(s, ah_buf_slice(&name));
        if (id < 0 || !ah_session_has_slice(s, id)) {
            if (known)
                ah_json_skip(&r, ah_json_next(&r));
            else
                st = wrong(err, "this session has no slice ", ah_buf_slice(&name));
        } else {
            ah_list list = {.mem = ah_session_mem(s)};

            st = read_values(s, id, &r, &list, err);
            edit[id].head = list.head;
        }
    }
    ah_buf_clear(&name);
    return st;
}

/* Moves the edits that are to be set to the front, and returns their number. */
static size_t choose(const ah_session *s, const ah_overlay *o, bool logs, ah_edit *edit)
{
    size_t n = 0;

    for (int id = 0; id < ah_session_types(s); id++) {
        ah_edit e = edit[id];
        bool full = !logs && ah_session_is_log(s, id) && ah_session_head(s, o, id);

        if (ah_session_has_slice(s, id) && !full)
            edit[n++] = (ah_edit){id, e.head};
        else
            ah_cell_unref(ah_session_mem(s), e.head);
    }
    return n;
}

static ah_status check_text(const ah_session *s, ah_slice text, ah_slice *slices, ah_err *err)
{
    ah_status st = ah_json_check_err(ah_session_mem(s), text, "the snapshot", err);

    if (st == AH_TOOL_VALIDATION)
        err->status = st = AH_USAGE;
    if (st != AH_OK)
        return st;
    *slices = ah_json_member(text, "slices");
    if (!ah_slice_is(ah_json_member(text, "agenthost_session"), "1") ||
        ah_json_kind_of(*slices) != AH_JSON_OBJECT)
        return wrong(err, "it must be {\"agenthost_session\":1,\"slices\":{...}}",
                     (ah_slice){"", 0});
    return AH_OK;
}

ah_status ah_session_restore(ah_session *s, ah_overlay *o, ah_slice text, unsigned how, ah_err *err)
{
    int types = ah_session_types(s);
    ah_edit *edit;
    ah_slice slices;
    ah_status st = check_text(s, text, &slices, err);

    if (st != AH_OK)
        return st;
    if (!(edit = ah_alloc(ah_session_mem(s), ((size_t)types + 1) * sizeof *edit)))
        return ah_err_nomem(err);
    if ((st = read_slices(s, slices, how & AH_RESTORE_KNOWN, edit, err)) == AH_OK) {
        st = ah_session_set_all(s, o, edit, choose(s, o, how & AH_RESTORE_LOGS, edit), err);
    } else {
        for (int id = 0; id < types; id++)
            ah_cell_unref(ah_session_mem(s), edit[id].head);
    }
    ah_free(ah_session_mem(s), edit);
    return st;
}

/* -- changes as data --------------------------------------------------------------------------- */

void ah_session_show(const ah_session *s, const ah_overlay *o, ah_change_list *l)
{
    const ah_overlay *below = o ? ah_overlay_below(o) : NULL;

    for (int id = 0; id < ah_session_types(s); id++)
        ah_change_list_slice(l, ah_session_name(s, id), ah_session_head(s, below, id),
                             ah_session_head(s, o, id));
}

ah_status ah_session_show_since(const ah_session *s, const ah_overlay *o, ah_slice text,
                                ah_change_list *l, ah_err *err)
{
    int types = ah_session_types(s);
    ah_edit *edit;
    ah_slice slices;
    ah_status st = check_text(s, text, &slices, err);

    if (st != AH_OK)
        return st;
    if (!(edit = ah_alloc(ah_session_mem(s), ((size_t)types + 1) * sizeof *edit)))
        return ah_err_nomem(err);
    st = read_slices(s, slices, false, edit, err);
    for (int id = 0; id < types; id++) {
        if (st == AH_OK)
            ah_change_list_slice(l, ah_session_name(s, id), edit[id].head,
                                 ah_session_head(s, o, id));
        ah_cell_unref(ah_session_mem(s), edit[id].head);
    }
    ah_free(ah_session_mem(s), edit);
    return st;
}
