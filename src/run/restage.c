/* Each part of a call knows how to write down its changes; here they become one object, and each
 * list of it is given back to the part that knows it. The config of the run names the objects. */
#include "run/restage.h"

#include "run/config.h"
#include "run/history.h"
#include "run/tell.h"
#include "state/fs_staged.h"

enum { MAX_ENTRY = 256 << 20 };

static ah_staged_names names_of(const ah_run_config *cfg)
{
    ah_staged_names names = cfg->names ? *cfg->names : (ah_staged_names){0};

    names.session = cfg->session;
    return names;
}

void ah_call_print_staged(const ah_call *call, ah_buf *out)
{
    ah_staged_names names = names_of(ah_run_cfg(call->run));

    ah_buf_char(out, '{');
    if (!ah_overlay_print(&call->overlay, &names, out)) {
        ah_buf_str(out, "\"lost\":true}");
        return;
    }
    if (call->changes.n) {
        ah_json_add_name(out, "changes");
        ah_changes_print(&call->changes, out);
    }
    ah_buf_char(out, '}');
}

bool ah_call_print_in(const ah_call *call, const ah_overlay *o, ah_buf *out)
{
    ah_staged_names names = names_of(ah_run_cfg(call->run));

    ah_buf_char(out, '{');
    if (!ah_overlay_print(o, &names, out))
        return false;
    ah_buf_char(out, '}');
    return true;
}

/* -- and back --------------------------------------------------------------------------------- */

static ah_status damaged(ah_err *err, const char *what)
{
    return ah_err_set(err, AH_STORE,
                      "the record of what a call staged is damaged: %s is wrong or missing; open "
                      "another conversation, or rewind to before this call",
                      what);
}

/* Finds the object of a name. */
static ah_status find_object(const ah_run_config *cfg, const char *list, ah_slice name,
                             const ah_mem *mem, void **out, ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf text;

    *out = NULL;
    ah_buf_init(&text, mem, name.n);
    if (!ah_json_string(name, &text))
        st = damaged(err, "a name");
    else if (!ah_buf_ok(&text))
        st = ah_buf_error(&text, "a name", err);
    for (size_t i = 0; st == AH_OK && cfg->names && i < cfg->names->n; i++)
        if (strcmp(cfg->names->item[i].list, list) == 0 &&
            ah_slice_eq(cfg->names->item[i].name, ah_buf_slice(&text)))
            *out = cfg->names->item[i].object;
    if (st == AH_OK && !*out)
        st = ah_err_set(err, AH_CONFLICT,
                        "the call changed '%.*s', which this agent does not have: give the agent "
                        "what it had when the call was made",
                        AH_FMT(ah_buf_slice(&text)));
    ah_buf_clear(&text);
    return st;
}

typedef ah_status (*item_fn)(ah_call *c, ah_slice item, ah_err *err);

static ah_status each(ah_call *c, ah_slice list, const char *what, item_fn fn, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (!list.p)
        return AH_OK;
    if (t.kind != AH_JSON_ARRAY)
        return damaged(err, what);
    t = ah_json_next(&it);
    for (; st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = fn(c, ah_json_skip(&it, t), err);
    return st;
}

static ah_status put_session(ah_call *c, ah_slice item, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(c->run);
    ah_slice of = ah_json_member(item, "of");
    void *session = cfg->session;
    ah_status st = AH_OK;

    if (of.p)
        st = find_object(cfg, AH_STAGED_SESSION, of, cfg->mem, &session, err);
    else if (!session)
        st = ah_err_set(err, AH_CONFLICT, "the call changed the session, and this agent has none");
    return st == AH_OK ? ah_session_restage(session, &c->overlay, item, err) : st;
}

/* Sets *done to true if an earlier process has made the call's changes of this folder. */
static ah_status look_at_folder(const ah_call *c, ah_fs *fs, bool *done, ah_err *err)
{
    ah_slice before = c->past ? ah_text_slice(c->past->again) : (ah_slice){NULL, 0};
    ah_fs_outcome o = {.fate = AH_FS_NOT_APPLIED};
    ah_status st = AH_OK;

    if (before.p && fs->machine)
        st = ah_fs_settled(fs, ah_json_member(before, "files"), &o, err);
    *done = o.n > 0 && o.fate == AH_FS_APPLIED;
    return st;
}

static ah_status put_files(ah_call *c, ah_slice item, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(c->run);
    ah_slice name, changes;
    const ah_json_slot want[] = {{"name", &name}, {"changes", &changes}};
    void *fs = NULL;
    bool done = false;
    ah_status st = ah_json_members(item, want, 2) && name.p && changes.p
                       ? find_object(cfg, AH_STAGED_FILES, name, cfg->mem, &fs, err)
                       : damaged(err, "an item of `files`");

    if (st == AH_OK)
        st = look_at_folder(c, fs, &done, err);
    if (done)
        return st;
    if (st == AH_OK && !(fs = ah_fs_staged_in(cfg->mem, &c->overlay, fs, err)))
        st = err->status;
    return st == AH_OK ? ah_fs_restage(fs, changes, err) : st;
}

static ah_status put_entity(ah_call *c, ah_slice item, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(c->run);

    if (!cfg->restage_entity)
        return ah_err_set(err, AH_CONFLICT,
                          "the call changed an entity, and this agent has no entities");
    return cfg->restage_entity(cfg->on_ud, c, item, err);
}

/* Reads the entries as those of a transcript, which checks them. */
static ah_status put_entries(ah_call *c, ah_slice list, ah_err *err)
{
    const ah_mem *mem = ah_run_cfg(c->run)->mem;
    ah_transcript *t = NULL;
    ah_status st = AH_OK;
    ah_buf b;

    if (!list.p)
        return AH_OK;
    ah_buf_init(&b, mem, MAX_ENTRY);
    ah_buf_str(&b, "{\"agenthost_transcript\":1,\"entries\":");
    ah_buf_put(&b, list);
    ah_buf_char(&b, '}');
    st = ah_buf_ok(&b) ? ah_transcript_read(mem, ah_buf_slice(&b), &t, err)
                       : ah_buf_error(&b, "the staged entries", err);
    if (st == AH_USAGE)
        st = damaged(err, "`entries`");
    for (size_t i = 0; st == AH_OK && i < t->n; i++)
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT || t->entry[i].kind == AH_ENTRY_TOOL_RESULT)
            st = damaged(err, "`entries`");
        else
            st =
                ah_overlay_stage(&c->overlay, t->entry[i].kind, ah_text_ref(t->entry[i].json), err);
    ah_transcript_unref(t);
    ah_buf_clear(&b);
    return st;
}

/* The registries of the run, then what only the agent knows: tools of sections. */
static ah_tool *find_tool(void *ud, ah_slice name)
{
    const ah_call *c = ud;
    const ah_run_config *cfg = ah_run_cfg(c->run);
    ah_tool *t = cfg->registry ? ah_registry_find(cfg->registry, name) : NULL;

    if ((!t || t->stale) && cfg->executors)
        t = ah_registry_find(cfg->executors, name);
    if ((!t || t->stale) && cfg->find_tool)
        t = cfg->find_tool(cfg->on_ud, name);
    return t;
}

static ah_status put_all(ah_call *c, ah_slice staged, ah_err *err)
{
    ah_slice entries, session, files, entities, changes, lost;
    const ah_json_slot want[] = {{"entries", &entries},     {AH_STAGED_SESSION, &session},
                                 {AH_STAGED_FILES, &files}, {AH_STAGED_ENTITIES, &entities},
                                 {"changes", &changes},     {"lost", &lost}};
    ah_status st;

    if (!ah_json_members(staged, want, sizeof want / sizeof *want))
        return damaged(err, "the object");
    if (lost.p)
        return ah_err_set(err, AH_CONFLICT,
                          "the program ended before the call's changes were made, and some of them "
                          "could not be written down: they are lost");
    st = put_entries(c, entries, err);
    if (st == AH_OK)
        st = each(c, session, "`session`", put_session, err);
    if (st == AH_OK)
        st = each(c, files, "`files`", put_files, err);
    if (st == AH_OK)
        st = each(c, entities, "`entities`", put_entity, err);
    if (st == AH_OK && changes.p)
        st = ah_changes_restage(&c->changes, changes, find_tool, c, err);
    return st;
}

ah_status ah_call_restage(ah_call *call, ah_slice staged, ah_err *err)
{
    ah_status st = ah_json_check_err(ah_run_cfg(call->run)->mem, staged,
                                     "the record of what a call staged", err);

    if (st == AH_TOOL_VALIDATION)
        err->status = st = AH_STORE;
    return st == AH_OK ? put_all(call, staged, err) : st;
}

/* -- files that were being applied ----------------------------------------------------------- */

/* Returns a text member; NULL: it is missing, or memory is out. */
static ah_text *text_member(const ah_mem *mem, ah_slice object, const char *name)
{
    ah_slice json = ah_json_member(object, name);
    ah_text *t = NULL;
    ah_err ignored;
    ah_buf b;

    ah_buf_init(&b, mem, json.n);
    if (ah_json_string(json, &b))
        (void)ah_text_from_buf(&b, name, &t, &ignored);
    ah_buf_clear(&b);
    return t;
}

/* Appends the corrected result of the call, an entry. */
static ah_status put_corrected(const ah_mem *mem, ah_slice result, const ah_fs_outcome *o,
                               int64_t time, ah_buf *said, ah_err *err)
{
    ah_slot slot = {.id = text_member(mem, result, "id"), .name = text_member(mem, result, "name")};
    ah_text *entry = NULL;
    ah_buf words;

    ah_buf_init(&words, mem, MAX_ENTRY);
    ah_fs_say_fate(o, &words);
    if (ah_buf_ok(&words) && slot.id && slot.name)
        entry = ah_entry_tool_result(mem, &slot, false, false, ah_buf_slice(&words),
                                     (ah_slice){NULL, 0}, time);
    ah_json_add(said, "result", ah_text_slice(entry));
    ah_buf_clear(&words);
    ah_text_unref(slot.id);
    ah_text_unref(slot.name);
    ah_text_unref(entry);
    return entry ? AH_OK : ah_err_nomem(err);
}

/* True if the call is to be settled once more. Changes of tools and of named sessions are in no
 * record `settled`. */
static bool is_again(const ah_mem *mem, ah_slice settled, ah_slice staged, const ah_fs_outcome *o)
{
    ah_err ignored;

    if (!staged.p || !o->by_folder)
        return false;
    return o->fate != AH_FS_APPLIED || ah_slice_is(ah_json_member(settled, "shared"), "true") ||
           (ah_json_check_err(mem, staged, "what a call staged", &ignored) == AH_OK &&
            ah_json_member(staged, "changes").p);
}

ah_status ah_call_end_applying(const ah_mem *mem, const ah_staged_names *names, ah_slice settled,
                               ah_slice staged, int64_t time, ah_record_kind *kind, ah_buf *said,
                               ah_err *err)
{
    bool again;
    ah_slice call, result, files;
    const ah_json_slot want[] = {{"call", &call}, {"result", &result}, {"files", &files}};
    ah_fs_outcome o;
    ah_status st;

    if (!ah_json_members(settled, want, 3) || ah_json_kind_of(call) != AH_JSON_NUMBER ||
        ah_json_kind_of(ah_json_member(result, "id")) != AH_JSON_STRING ||
        ah_json_kind_of(ah_json_member(result, "name")) != AH_JSON_STRING)
        return damaged(err, "`settled`");
    if ((st = ah_fs_settled_all(names, files, &o, err)) != AH_OK)
        return st;
    again = is_again(mem, settled, staged, &o);
    *kind = o.fate == AH_FS_APPLIED && !again ? AH_RECORD_APPLIED : AH_RECORD_APPLY_FAILED;
    ah_buf_fmt(said, "{\"call\":%.*s", AH_FMT(call));
    if (*kind == AH_RECORD_APPLY_FAILED && !again)
        st = put_corrected(mem, result, &o, time, said, err);
    ah_buf_char(said, '}');
    return st;
}
