/* Changes of a session in a call's overlay as JSON, for the records of calls, and back. They are
 * the events and values themselves, not the slices after them: when the call is committed, the
 * reducers run on the slices of that moment. */
#include "state/session_state.h"

enum { MAX_VALUE = 64 << 20 }; /* bytes of one value */

/* -- to text ---------------------------------------------------------------------------------- */

static const ah_staged_name *name_of(const ah_staged_names *names, const ah_session *s)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->item[i].object == s && strcmp(names->item[i].list, AH_STAGED_SESSION) == 0)
            return &names->item[i];
    return NULL;
}

static void put_change(const change *c, ah_buf *out)
{
    static const char *const what[] = {
        [CHANGE_EVENT] = "event", [CHANGE_APPEND] = "append", [CHANGE_SET] = "set"};

    ah_json_add_string(out, what[c->what], ah_session_name(c->session, c->id));
    if (c->what == CHANGE_SET) {
        ah_json_add_name(out, "values");
        ah_session_put_values(c->session, c->head, out);
    } else {
        ah_json_add(out, "value", ah_text_slice(c->value));
    }
}

bool ah_session_print_layer(ah_participant *p, const ah_staged_names *names, ah_buf *out)
{
    const layer *l = (const layer *)(const void *)p;

    for (const change *c = l->first; c; c = c->next) {
        const ah_staged_name *n = NULL;

        if (c->session != names->session && !(n = name_of(names, c->session)))
            return false;
        ah_buf_str(out, c == l->first ? "{" : ",{");
        if (n)
            ah_json_add_string(out, "of", n->name);
        put_change(c, out);
        ah_buf_char(out, '}');
    }
    return true;
}

/* -- and back --------------------------------------------------------------------------------- */

static ah_status damaged(ah_err *err, const char *what)
{
    return ah_err_set(err, AH_STORE,
                      "the record of the session's changes in a call is damaged: %s is wrong or "
                      "missing; open another conversation, or rewind to before this call",
                      what);
}

/* Finds the type that a string names. */
static ah_status find_type(const ah_session *s, ah_slice name, bool slice, int *id, ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf text;

    ah_buf_init(&text, s->mem, name.n);
    if (!ah_json_string(name, &text))
        st = damaged(err, "the name of a type");
    else if (!ah_buf_ok(&text))
        st = ah_buf_error(&text, "the name of a type", err);
    else if ((*id = ah_session_find(s, ah_buf_slice(&text))) < 0 ||
             (slice && (!ah_session_has_slice(s, *id) || ah_session_is_log(s, *id))))
        st = ah_err_set(err, AH_CONFLICT,
                        "the call changed '%.*s' of the session, which this session does not have",
                        AH_FMT(ah_buf_slice(&text)));
    ah_buf_clear(&text);
    return st;
}

static ah_status read_value(const ah_session *s, int id, ah_slice json, ah_text **out, ah_err *err)
{
    ah_status st;
    ah_buf canon;

    if (!json.p)
        return AH_OK;
    ah_buf_init(&canon, s->mem, MAX_VALUE);
    st = ah_json_canon(s->mem, json, &canon);
    if (st == AH_OK)
        st = ah_session_check(s, id, ah_buf_slice(&canon), out, err);
    else
        st = st == AH_NOMEM ? ah_err_nomem(err) : ah_buf_error(&canon, "a value", err);
    ah_buf_clear(&canon);
    return st;
}

static ah_status send_again(ah_session *s, ah_overlay *o, ah_slice type, ah_slice json, ah_err *err)
{
    ah_text *value = NULL;
    int id;
    ah_status st = find_type(s, type, false, &id, err);

    if (st == AH_OK)
        st = read_value(s, id, json, &value, err);
    if (st == AH_OK)
        st = ah_session_dispatch_again(s, o, id, value, err);
    ah_text_unref(value);
    return st;
}

static ah_status append_again(ah_session *s, ah_overlay *o, ah_slice name, ah_slice json,
                              ah_err *err)
{
    ah_text *value = NULL;
    int id;
    ah_status st = json.p ? find_type(s, name, true, &id, err) : damaged(err, "`value`");

    if (st == AH_OK)
        st = read_value(s, id, json, &value, err);
    if (st == AH_OK)
        st = ah_session_append(s, o, id, value, err);
    ah_text_unref(value);
    return st;
}

static ah_status set_again(ah_session *s, ah_overlay *o, ah_slice name, ah_slice json, ah_err *err)
{
    ah_list list = {.mem = s->mem};
    int id;
    ah_status st = find_type(s, name, true, &id, err);

    if (st == AH_OK)
        st = ah_session_read_values(s, id, json, &list, err);
    if (st == AH_OK)
        return ah_session_set(s, o, id, list.head, err);
    ah_list_set(&list, NULL);
    return st;
}

ah_status ah_session_restage(ah_session *s, ah_overlay *o, ah_slice item, ah_err *err)
{
    ah_slice event, append, set, value, values;
    const ah_json_slot want[] = {{"event", &event},
                                 {"append", &append},
                                 {"set", &set},
                                 {"value", &value},
                                 {"values", &values}};
    ah_status st;

    if (!ah_json_members(item, want, sizeof want / sizeof *want))
        return damaged(err, "a change");
    if (event.p)
        st = send_again(s, o, event, value, err);
    else if (append.p)
        st = append_again(s, o, append, value, err);
    else if (set.p)
        st = set_again(s, o, set, values, err);
    else
        st = damaged(err, "the kind of a change");
    if (st != AH_OK && st != AH_NOMEM && st != AH_STORE) /* a value or a reducer refuses */
        err->status = st = AH_CONFLICT;
    return st;
}
