/* Posts: a call that fails has sent no message and added no tools. Posts are kept in the call's
 * overlay in the order of the requests, and made when the outermost call is committed: first in a
 * way that can be undone, since a later part may fail, then announced. Only an agent that the call
 * itself runs gets its posts earlier, because a conversation only grows. */
#include "lua/lua_post.h"

#include "lua/lua_now.h"

static const char posts_key; /* key of the participant: one for all agents */

enum { MAX_POSTS = 4096 /* in one call */ };

struct ah_post {
    ah_post *next;
    ah_lua *lua;
    int ref; /* reference to the agent; LUA_NOREF: not completed */
    ah_lua_agent *agent;
    ah_text *entry; /* a message; NULL: changes */
    ah_changes changes;
    bool made;
    ah_run *run; /* in which it is made; NULL: between runs */
    size_t mark; /* of the transcript, before a message */
    ah_injection in;
};

typedef struct posts {
    ah_participant part;
    ah_lua *lua;
    ah_post *first;
    size_t n;
} posts;

/* -- one post ----------------------------------------------------------------------------- */

static void free_post(ah_post *p)
{
    ah_lua *h = p->lua;

    ah_buf_clear(&p->in.added);
    ah_buf_clear(&p->in.removed);
    ah_changes_clear(&p->changes);
    ah_text_unref(p->entry);
    ah_lua_unref(h, &p->ref);
    ah_free(&h->mem, p);
}

static ah_status try_message(ah_post *p, ah_err *err)
{
    ah_text *entry = ah_text_ref(p->entry);

    p->mark = ah_transcript_mark(p->agent->transcript, p->run != NULL);
    return p->run ? ah_run_send(p->run, entry, err)
                  : ah_transcript_add(p->agent->transcript, AH_ENTRY_USER, entry, err);
}

static ah_status is_looking(ah_err *err)
{
    return ah_err_set(err, AH_USAGE,
                      "the tools of an agent cannot change while it renders its prompt");
}

static ah_status try_changes(ah_post *p, ah_err *err)
{
    if (p->agent->looking)
        return is_looking(err);
    if (p->run)
        ah_inject_in_run(p->run, &p->in);
    else
        p->in = ah_lua_injection_idle(p->agent, &p->agent->rules);
    return ah_inject_try(&p->in, &p->changes, err);
}

/* False for an agent that is closed or whose only run is over. */
static bool takes_posts(const ah_lua_agent *a)
{
    return a->transcript && !a->closed && (a->current || !a->once);
}

/* Returns the run in which the agent's tools change; NULL: between runs, or in one that is still
 * being prepared. */
static ah_run *run_of(const ah_lua_agent *a)
{
    ah_run *run = a->current ? ah_driver_run_run(ah_lua_run_driven(a->current)) : NULL;

    return run && !ah_run_preparing(run) ? run : NULL;
}

static ah_status try_one(ah_post *p, ah_err *err)
{
    ah_lua_agent *a = p->agent;
    ah_status st;

    if (p->ref == LUA_NOREF || !takes_posts(a))
        return AH_OK;
    if (p->entry)
        p->run = a->current ? ah_driver_run_run(ah_lua_run_driven(a->current)) : NULL;
    else
        p->run = run_of(a);
    st = p->entry ? try_message(p, err) : try_changes(p, err);
    p->made = st == AH_OK;
    return st;
}

static void undo_one(ah_post *p)
{
    if (p->made && p->entry)
        ah_transcript_take_back(p->agent->transcript, p->run != NULL, p->mark);
    else if (p->made)
        ah_inject_undo(&p->in, &p->changes);
    p->made = false;
}

static void tell_changes(ah_post *p)
{
    p->agent->busy++;
    ah_inject_stand(&p->in, &p->changes);
    if (p->run)
        ah_inject_told(p->run, &p->in, &p->changes);
    p->agent->busy--;
}

/* Changes of an idle agent are recorded at once, in the stream of that agent. */
static void tell_one(ah_post *p)
{
    if (!p->made)
        return;
    if (!p->entry)
        tell_changes(p);
    else if (p->run)
        ah_driver_run_wake(ah_run_owner(p->run));
    ah_lua_stream_note(p->agent);
}

/* -- lists --------------------------------------------------------------------------------- */

static ah_post **end_of(ah_post **list)
{
    while (*list)
        list = &(*list)->next;
    return list;
}

ah_status ah_post_try(ah_post *list, ah_err *err)
{
    ah_status st = AH_OK;

    for (ah_post *p = list; p && st == AH_OK; p = p->next)
        st = try_one(p, err);
    return st;
}

static ah_post *reversed(ah_post *p)
{
    ah_post *out = NULL;

    for (ah_post *next; p; p = next) {
        next = p->next;
        p->next = out;
        out = p;
    }
    return out;
}

static void each(ah_post **list, void (*f)(ah_post *p))
{
    for (ah_post *p; (p = *list) != NULL;) {
        *list = p->next;
        f(p);
        free_post(p);
    }
}

void ah_post_undo(ah_post **list)
{
    *list = reversed(*list);
    each(list, undo_one);
}

void ah_post_tell(ah_post **list)
{
    each(list, tell_one);
}

/* Appends an empty post to the list; NULL: *err is filled. The caller sets its content, then its
 * agent. */
static ah_post *append(ah_lua *h, ah_post **list, ah_err *err)
{
    ah_post *p = ah_alloc(&h->mem, sizeof *p);

    if (!p) {
        ah_err_nomem(err);
        return NULL;
    }
    *p = (ah_post){.lua = h, .ref = LUA_NOREF};
    ah_changes_init(&p->changes, &h->mem);
    *end_of(list) = p;
    return p;
}

static void address(lua_State *L, ah_post *p, int idx)
{
    p->agent = ah_lua_to_agent(L, idx);
    lua_pushvalue(L, idx);
    p->ref = ah_lua_ref(L);
}

void ah_post_change(lua_State *L, int idx, ah_changes *c, ah_post **list)
{
    ah_err err;
    ah_post *p = append(ah_lua_of(L), list, &err);

    if (!p)
        ah_lua_raise_err(L, &err);
    p->changes = *c;
    ah_changes_init(c, p->changes.mem);
    address(L, p, idx);
}

/* -- in a call ------------------------------------------------------------------------------- */

static const ah_participant_vt posts_vt;

static posts *join(ah_lua *h, ah_overlay *o, ah_err *err)
{
    posts *b = (posts *)(void *)ah_overlay_part(o, &posts_vt, &posts_key, sizeof *b, err);

    if (b)
        b->lua = h;
    return b;
}

static ah_status prepare(ah_participant *part, ah_overlay *below, ah_err *err)
{
    posts *b = (posts *)(void *)part;

    if (below)
        return join(b->lua, below, err) ? AH_OK : err->status;
    return ah_post_try(b->first, err);
}

static void commit(ah_participant *part, ah_overlay *below)
{
    posts *b = (posts *)(void *)part, *to = (posts *)(void *)ah_overlay_find(below, &posts_key);

    if (!to)
        return;
    *end_of(&to->first) = b->first;
    to->n += b->n;
    b->first = NULL;
}

static void committed(ah_participant *part, ah_overlay *below)
{
    posts *b = (posts *)(void *)part;
    ah_lua *h = b->lua;

    (void)below;
    ah_post_tell(&b->first);
    ah_free(&h->mem, b);
}

static void drop(ah_participant *part)
{
    posts *b = (posts *)(void *)part;
    ah_lua *h = b->lua;

    ah_post_undo(&b->first);
    ah_free(&h->mem, b);
}

static const ah_participant_vt posts_vt = {
    .prepare = prepare, .commit = commit, .committed = committed, .drop = drop};

static ah_post *stage(ah_lua *h, ah_overlay *o, ah_err *err)
{
    posts *b = join(h, o, err);
    ah_post *p;

    if (!b)
        return NULL;
    if (b->n >= MAX_POSTS) {
        ah_err_set(err, AH_USAGE, "more than %d messages and changes for agents in one call",
                   MAX_POSTS);
        return NULL;
    }
    if ((p = append(h, &b->first, err)) != NULL)
        b->n++;
    return p;
}

/* -- for scripts ------------------------------------------------------------------------------- */

static ah_status send_now(ah_lua_agent *a, ah_text *entry, ah_err *err)
{
    ah_status st;

    if (a->current) {
        ah_driver_run_wake(ah_lua_run_driven(a->current)); /* it may await background calls */
        return ah_run_send(ah_driver_run_run(ah_lua_run_driven(a->current)), entry, err);
    }
    st = ah_transcript_add(a->transcript, AH_ENTRY_USER, entry, err);
    ah_lua_stream_note(a);
    return st;
}

void ah_lua_send(lua_State *L, int idx, const ah_lua_content *said)
{
    ah_lua_agent *a = ah_lua_to_agent(L, idx);
    ah_overlay *o = ah_lua_overlay(L);
    ah_text *entry = ah_lua_content_entry(&a->lua->mem, said, ah_host_wall(a->lua->host));
    ah_status st = AH_OK;
    ah_post *p;
    ah_err err;

    if (!entry)
        ah_lua_raise_nomem(L);
    if (o) /* keys in the arguments of the model are for the handler alone */
        entry->len = ah_secrets_redact_json(&a->lua->host->secrets, entry->data, entry->len);
    if (!o) {
        st = send_now(a, entry, &err);
    } else if ((p = stage(a->lua, o, &err)) != NULL) {
        p->entry = entry;
        address(L, p, idx);
    } else {
        ah_text_unref(entry);
        st = err.status;
    }
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

static ah_status change_now(ah_lua_agent *a, ah_changes *c, ah_err *err)
{
    ah_status st;

    if (a->looking)
        return is_looking(err);
    if (!takes_posts(a))
        return AH_OK;
    if (run_of(a))
        return ah_inject_from_outside(run_of(a), c, err);
    a->busy++;
    st = ah_lua_change_idle(a, &a->rules, c, err);
    a->busy--;
    ah_lua_stream_note(a);
    return st;
}

/* Raises at the script's line for names that are already taken. Names that are taken by the commit
 * fail the call. */
static void check_names(lua_State *L, const ah_lua_agent *a, const ah_changes *c)
{
    ah_err err;

    for (size_t i = 0; a->rules.on_conflict == AH_CONFLICT_ERROR && i < c->n; i++) {
        const ah_tool *tool = c->item[i].kind == AH_CHANGE_ADD ? c->item[i].tool : NULL, *there;

        there = tool ? ah_registry_find(&a->registry, ah_text_slice(tool->name)) : NULL;
        if (there && !there->stale && there != tool && there->full != tool)
            if (ah_tool_twice(there, tool, &err) != AH_OK)
                ah_lua_raise_err(L, &err);
    }
}

void ah_lua_change(lua_State *L, int idx, ah_changes *c)
{
    ah_lua_agent *a = ah_lua_to_agent(L, idx);
    ah_overlay *o = ah_lua_overlay(L);
    ah_status st = AH_OK;
    ah_post *p;
    ah_err err;

    if (!o) {
        st = change_now(a, c, &err);
    } else {
        if (a->looking) {
            is_looking(&err);
            ah_lua_raise_err(L, &err);
        }
        check_names(L, a, c);
        if (!(p = stage(a->lua, o, &err)))
            ah_lua_raise_err(L, &err);
        p->changes = *c;
        ah_changes_init(c, p->changes.mem);
        address(L, p, idx);
    }
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
}

/* -- before a run ------------------------------------------------------------------------------ */

static void deliver(lua_State *L, ah_overlay *o, const ah_lua_agent *a)
{
    posts *b = (posts *)(void *)ah_overlay_find(o, &posts_key);
    ah_post **at = b ? &b->first : NULL;
    ah_err err;

    while (at && *at) {
        ah_post *p = *at, *rest = p->next;

        if (p->agent != a) {
            at = &p->next;
            continue;
        }
        if (try_one(p, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
        p->next = NULL;
        *at = rest;
        b->n--;
        ah_post_tell(&p);
    }
}

/* Delivers the outermost call's first. The recursion is as deep as the nesting of runs. */
static void deliver_all(lua_State *L, ah_overlay *o, const ah_lua_agent *a)
{
    if (!o)
        return;
    deliver_all(L, ah_overlay_below(o), a);
    deliver(L, o, a);
}

void ah_lua_deliver(lua_State *L, int idx)
{
    deliver_all(L, ah_lua_overlay(L), ah_lua_to_agent(L, idx));
}

void ah_lua_deliver_in(lua_State *L, ah_overlay *o, const ah_lua_agent *a)
{
    deliver_all(L, o, a);
}
