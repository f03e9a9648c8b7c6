/* Changes are made in the registry first, and undone there if the transcript cannot be written.
 * Strategies and handlers decide which changes to make. */
#include "run/inject.h"

#include "run/expand.h"
#include "run/hooks.h"
#include "run/tell.h"
#include "state/visibility.h"

enum { MAX_ENTRY = 256 << 20, MAX_NAMES = 16 << 20, MAX_ANSWER = 64 << 10 };

/* -- changes of the registry, which can be undone --------------------------------- */

/* Stores the warning. Warnings are emitted at the end, since observers may make changes of their
 * own. */
static void warn_once(ah_change *c, bool *warned, const char *message)
{
    if (!*warned)
        c->warning = message;
    *warned = true;
}

static void tell_drift(const ah_injection *in, const ah_change *c)
{
    ah_buf words, list;

    ah_buf_init(&words, in->mem, MAX_ANSWER);
    ah_buf_init(&list, in->mem, MAX_ANSWER);
    ah_drift_put_warning(c->tool, c->drift, !c->made, &words);
    ah_drift_put_list(c->drift, &list);
    if (ah_buf_ok(&words) && ah_buf_ok(&list))
        in->warn(in->ud, ah_buf_slice(&words), ah_text_slice(c->tool->name), ah_buf_slice(&list));
    ah_buf_clear(&words);
    ah_buf_clear(&list);
}

static void tell_warnings(const ah_injection *in, const ah_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const ah_change *it = &c->item[i];

        if (it->drift)
            tell_drift(in, it);
        if (it->warning)
            in->warn(in->ud, ah_slice_of(it->warning),
                     ah_text_slice(it->tool ? it->tool->name : it->text), (ah_slice){NULL, 0});
    }
}

static bool has_room(ah_injection *in, ah_change *c)
{
    if (in->registry->live >= (size_t)in->rules->max_tools) {
        warn_once(c, &in->rules->warned_full,
                  "No more tools are injected: max_tools are declared (raise it, or remove some)");
        return false;
    }
    if (in->registry->live + 1 >= AH_MANY_TOOLS)
        warn_once(c, &in->rules->warned_many,
                  "64 tools are declared; models choose worse and cost more with so many");
    return true;
}

/* True if `there` is the given tool itself, with a longer description, or declared in brief. */
static bool is_tool(const ah_tool *there, const ah_tool *given)
{
    const ah_tool *whole = there && there->full ? there->full : there;

    return there && (there == given || whole == given || whole->of == given);
}

/* Replaces the tool by its brief form if this conversation declares tools in brief. */
static ah_status declare(const ah_injection *in, ah_change *c, ah_err *err)
{
    ah_tool *brief = NULL;

    if (!in->rules->brief || c->full)
        return AH_OK;
    if (ah_tool_brief(c->tool, &brief, err) != AH_OK)
        return err->status;
    ah_tool_unref(c->tool);
    c->tool = brief;
    return AH_OK;
}

/* Keeps the tool of a name so that it can be put back. Undoes its pick, since it is about to go. */
static void keep_before(ah_injection *in, ah_change *c, ah_slice name)
{
    c->was_picked = ah_registry_unpick(in->registry, name);
    c->before = ah_tool_ref(ah_registry_find(in->registry, name));
}

/* The place of a stale tool is free for the same tool, and for another one unless its drift is
 * refused. An explicit replacement by the script is not drift. Neither is another version of
 * agenthost. */
static bool may_take_stale(const ah_injection *in, ah_change *c, ah_tool *stale)
{
    if (c->kind == AH_CHANGE_REPLACE || ah_tool_name_is_ours(ah_text_slice(stale->name)) ||
        !(c->drift = ah_drift_of(stale, c->tool)))
        return true;
    if (!ah_drift_is_refused(in->rules->on_drift, stale, c->tool))
        return true;
    stale->drift = c->drift;
    return false;
}

/* Puts the tool under its name if the rules allow it. */
static ah_status put_tool(ah_injection *in, ah_change *c, ah_err *err)
{
    ah_slice name = ah_text_slice(c->tool->name);
    ah_tool *there = ah_registry_find(in->registry, name);
    bool replace = c->kind == AH_CHANGE_REPLACE || in->rules->on_conflict == AH_CONFLICT_REPLACE;

    if (there && there->stale) {
        if (!may_take_stale(in, c, there))
            return AH_OK;
        replace = true;
    }
    if (there && !replace && in->rules->on_conflict == AH_CONFLICT_ERROR)
        return ah_tool_twice(there, c->tool, err);
    if (is_tool(there, c->tool))
        return AH_OK;
    if (there && !replace) {
        c->warning = "Skipping duplicate tool during injection";
        return AH_OK;
    }
    if (!there && !has_room(in, c))
        return AH_OK;
    if (declare(in, c, err) != AH_OK)
        return err->status;
    keep_before(in, c, name);
    c->made = ah_registry_put(in->registry, c->tool, err) == AH_OK;
    return c->made ? AH_OK : err->status;
}

/* agenthost's own tools are removed when the prompt no longer has them, never by a script. */
static void remove_tool(ah_injection *in, ah_change *c)
{
    ah_slice name = ah_text_slice(c->text);

    if (!c->ours && ah_tool_name_is_ours(name) && ah_registry_find(in->registry, name)) {
        c->warning = "Skipping the removal of a tool that is agenthost's own";
        return;
    }
    keep_before(in, c, name);
    c->made = c->before && ah_registry_remove(in->registry, name);
}

static void pick_tool(ah_injection *in, ah_change *c)
{
    ah_slice name = ah_text_slice(c->text);

    c->made = c->kind == AH_CHANGE_PICK ? ah_registry_pick(in->registry, name)
                                        : ah_registry_unpick(in->registry, name);
    if (c->made)
        c->tool = ah_tool_ref(ah_registry_find(in->registry, name));
}

static ah_status make(ah_injection *in, ah_change *c, ah_err *err)
{
    switch (c->kind) {
    case AH_CHANGE_ADD:
    case AH_CHANGE_REPLACE:
        return put_tool(in, c, err);
    case AH_CHANGE_REMOVE:
        remove_tool(in, c);
        return AH_OK;
    case AH_CHANGE_NOTE:
    case AH_CHANGE_PROMPT:
    case AH_CHANGE_STATE:
    case AH_CHANGE_SETTINGS:
    case AH_CHANGE_SHOW:
    case AH_CHANGE_HIDE:
        c->made = true;
        return AH_OK;
    case AH_CHANGE_PICK:
    case AH_CHANGE_UNPICK:
        pick_tool(in, c);
        return AH_OK;
    }
    return AH_OK;
}

/* Puts back the earlier tools. Their slots still exist, so nothing can fail. */
static void undo(ah_injection *in, ah_changes *c)
{
    for (size_t i = c->n; i > 0; i--) {
        ah_change *it = &c->item[i - 1];

        if (it->made && it->kind == AH_CHANGE_PICK)
            ah_registry_unpick(in->registry, ah_text_slice(it->text));
        else if (it->made && it->kind == AH_CHANGE_UNPICK)
            ah_registry_pick(in->registry, ah_text_slice(it->text));
        else if (it->made && it->before)
            ah_registry_put(in->registry, it->before, NULL);
        else if (it->made && it->tool)
            ah_registry_remove(in->registry, ah_text_slice(it->tool->name));
        if (it->made && it->was_picked)
            ah_registry_pick(in->registry, ah_text_slice(it->before->name));
        it->made = false;
    }
}

/* -- changes of the transcript -------------------------------------------------------- */

static void put_name(ah_buf *b, ah_slice name)
{
    if (b->len)
        ah_buf_char(b, ',');
    ah_json_put_string(b, name);
}

static ah_status file(ah_injection *in, ah_entry_kind kind, ah_text *json, ah_err *err)
{
    return in->at_work ? ah_transcript_stage(in->transcript, kind, json, err)
                       : ah_transcript_add(in->transcript, kind, json, err);
}

static bool goes_with(const ah_change *a, const ah_change *b)
{
    bool tools = a->tool && b->tool && ah_slice_eq(ah_text_slice(a->by), ah_text_slice(b->by));

    return b->made && (tools || (a->kind == AH_CHANGE_REMOVE && b->kind == AH_CHANGE_REMOVE));
}

/* Writes one entry for the changes [i, end) that belong together; returns end. */
static size_t put_group(ah_injection *in, const ah_changes *c, size_t i, ah_buf *b)
{
    const ah_change *first = &c->item[i];
    bool adds = first->tool != NULL;

    ah_buf_str(b, adds ? "{\"type\":\"tools_added\",\"tools\":["
                       : "{\"type\":\"tools_removed\",\"names\":[");
    for (size_t n = 0; i < c->n && goes_with(first, &c->item[i]); i++, n++) {
        if (n)
            ah_buf_char(b, ',');
        if (adds)
            ah_buf_put(b, ah_text_slice(c->item[i].tool->spec));
        else
            ah_json_put_string(b, ah_text_slice(c->item[i].text));
        if (first->kind == AH_CHANGE_PICK || first->kind == AH_CHANGE_UNPICK)
            continue; /* nothing was added or removed */
        put_name(adds ? &in->added : &in->removed,
                 ah_text_slice(adds ? c->item[i].tool->name : c->item[i].text));
        *(adds ? &in->n_added : &in->n_removed) += 1;
    }
    ah_buf_char(b, ']');
    if (adds && first->by)
        ah_buf_fmt(b, ",\"by\":%.*s", AH_FMT(ah_text_slice(first->by)));
    ah_buf_char(b, '}');
    return i;
}

static ah_status file_group(ah_injection *in, const ah_changes *c, size_t *i, ah_err *err)
{
    ah_entry_kind kind = c->item[*i].tool ? AH_ENTRY_TOOLS_ADDED : AH_ENTRY_TOOLS_REMOVED;
    ah_text *json = NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, in->mem, MAX_ENTRY);
    *i = put_group(in, c, *i, &b);
    st = ah_text_from_buf(&b, "tools", &json, err);
    ah_buf_clear(&b);
    return st == AH_OK ? file(in, kind, json, err) : st;
}

static ah_status file_text(ah_injection *in, const ah_change *c, ah_err *err)
{
    ah_slice text = ah_text_slice(c->text);

    if (c->kind == AH_CHANGE_SETTINGS)
        return file(in, AH_ENTRY_SETTINGS, ah_text_ref(c->text), err);
    if (c->kind == AH_CHANGE_STATE)
        return file(in, AH_ENTRY_STRATEGY, ah_text_ref(c->text), err);
    if (c->kind == AH_CHANGE_NOTE)
        return file(in, AH_ENTRY_NOTE, ah_entry_text(in->mem, AH_ENTRY_NOTE, text, in->time), err);
    return file(in, AH_ENTRY_PROMPT, ah_entry_prompt(in->mem, text, ah_text_slice(c->by), in->time),
                err);
}

/* True if the change is made in the session. */
static bool is_shown(const ah_change *c)
{
    return c->kind == AH_CHANGE_SHOW || c->kind == AH_CHANGE_HIDE;
}

static ah_status file_all(ah_injection *in, const ah_changes *c, ah_err *err)
{
    ah_status st = AH_OK;
    size_t i = 0;

    while (i < c->n && st == AH_OK) {
        const ah_change *it = &c->item[i];

        if (it->made && (it->tool || it->kind == AH_CHANGE_REMOVE))
            st = file_group(in, c, &i, err);
        else if (it->made && !is_shown(it))
            st = file_text(in, &c->item[i++], err);
        else
            i++;
    }
    if (st == AH_OK && (!ah_buf_ok(&in->added) || !ah_buf_ok(&in->removed)))
        st = ah_err_nomem(err);
    return st;
}

/* Makes the session's changes: all overrides, or none. */
static ah_status show_all(ah_injection *in, const ah_changes *c, ah_err *err)
{
    ah_status st = AH_OK;
    ah_overlay o;

    ah_overlay_init(&o, in->mem, in->caller);
    for (size_t i = 0; i < c->n && st == AH_OK; i++)
        if (is_shown(&c->item[i]))
            st = ah_visibility_set(in->session, &o, ah_text_slice(c->item[i].text),
                                   c->item[i].kind == AH_CHANGE_SHOW ? AH_FULL : AH_SUMMARY, err);
    if (st == AH_OK)
        return ah_overlay_commit(&o, in->transcript, err);
    ah_overlay_drop(&o);
    return st;
}

static void settle(ah_injection *in)
{
    if (!in->at_work)
        ah_registry_settle(in->registry);
}

void ah_inject_undo(ah_injection *in, ah_changes *c)
{
    ah_transcript_take_back(in->transcript, in->at_work, in->mark);
    undo(in, c);
    in->n_added = in->n_removed = 0;
    in->rules->warned_many = in->warned_many;
    in->rules->warned_full = in->warned_full;
    settle(in);
}

void ah_inject_stand(ah_injection *in, const ah_changes *c)
{
    settle(in);
    tell_warnings(in, c);
}

ah_status ah_inject_try(ah_injection *in, ah_changes *c, ah_err *err)
{
    ah_status st = AH_OK;

    in->mark = ah_transcript_mark(in->transcript, in->at_work);
    in->warned_many = in->rules->warned_many;
    in->warned_full = in->rules->warned_full;
    in->n_added = in->n_removed = 0;
    ah_buf_init(&in->added, in->mem, MAX_NAMES);
    ah_buf_init(&in->removed, in->mem, MAX_NAMES);
    for (size_t i = 0; i < c->n && st == AH_OK; i++)
        st = make(in, &c->item[i], err);
    if (st == AH_OK)
        st = file_all(in, c, err);
    if (st == AH_OK)
        st = show_all(in, c, err);
    if (st != AH_OK)
        ah_inject_undo(in, c);
    return st;
}

ah_status ah_inject(ah_injection *in, ah_changes *c, ah_err *err)
{
    ah_status st = ah_inject_try(in, c, err);

    if (st == AH_OK)
        ah_inject_stand(in, c);
    return st;
}

/* -- for a run ------------------------------------------------------------------------------ */

static void warn(void *ud, ah_slice message, ah_slice tool_name, ah_slice changed)
{
    ah_run *run = ud;

    ah_log_put(ah_run_cfg(run)->log, AH_LOG_WARNING, "%.*s: tool_name=%.*s", AH_FMT(message),
               AH_FMT(tool_name));
    ah_run_warn_of_tool(run, message, tool_name, changed);
}

static bool restarts(const ah_run *run)
{
    return ah_run_cfg(run)->adapter->tool_change_mode == AH_TOOLS_RESTART;
}

/* Makes "a","b" a JSON list, in the event's scratch buffer. */
static ah_slice list_of(ah_buf *scratch, const ah_buf *names)
{
    ah_buf_reset(scratch, 0);
    ah_buf_char(scratch, '[');
    ah_buf_put(scratch, ah_buf_slice(names));
    ah_buf_char(scratch, ']');
    return ah_buf_ok(scratch) ? ah_buf_slice(scratch) : ah_slice_of("[]");
}

/* Member `kind` of the origin of the first change; .p NULL: none. */
static ah_slice origin_of(const ah_changes *c, const char *kind)
{
    ah_slice name = ah_json_member(ah_text_slice(c->n ? c->item[0].by : NULL), kind);

    return name.p ? ah_json_inside(name) : name;
}

/* Reports tools of an opened section (seed 000, Observability). */
static void tell_section(ah_run *run, const ah_injection *in, ah_slice key, ah_slice list)
{
    if (!restarts(run))
        ah_metric_add(ah_run_cfg(run)->metrics, AH_METRIC_DISCLOSURE_DYNAMIC, 1);
    ah_log_put(
        ah_run_cfg(run)->log, AH_LOG_INFO,
        "Injected tools from section expansion: section_key=%.*s tool_count=%zu tool_names=%.*s",
        AH_FMT(key), in->n_added, AH_FMT(list));
    EMIT(run, AH_EVENT_TOOLS_INJECTED, AH_F_JSON("tool_names", list),
         AH_F_STR("strategy", ah_slice_of("read_section")), AH_F_STR("section_key", key),
         AH_F_NUM("timestamp", (double)in->time / 1000));
}

/* Appends the names without quotes. Names contain no quotes and no commas. */
static void put_plain(ah_buf *b, const ah_buf *names)
{
    for (size_t i = 0; i < names->len; i++) {
        if (names->data[i] == ',')
            ah_buf_str(b, ", ");
        else if (names->data[i] != '"')
            ah_buf_char(b, names->data[i]);
    }
}

/* Reports injected tools in the form of seed 001. */
static void tell_injected(ah_run *run, const ah_injection *in, ah_slice strategy, ah_slice after,
                          ah_slice list)
{
    ah_buf plain;

    ah_buf_init(&plain, ah_run_cfg(run)->mem, MAX_NAMES);
    put_plain(&plain, &in->added);
    ah_log_put(ah_run_cfg(run)->log, AH_LOG_INFO, "Strategy injected %zu tools after %.*s: [%.*s]",
               in->n_added, AH_FMT(after), AH_FMT(ah_buf_slice(&plain)));
    ah_buf_clear(&plain);
    EMIT(run, AH_EVENT_TOOLS_INJECTED, AH_F_JSON("tool_names", list),
         AH_F_STR("strategy", strategy), AH_F_NUM("timestamp", (double)in->time / 1000));
}

/* Uses the strategy in the origin if there is one, as a search is made by its tool. */
static void tell(ah_run *run, const ah_injection *in, const ah_changes *c, const char *who,
                 ah_slice after)
{
    ah_slice strategy = origin_of(c, "strategy"), key = origin_of(c, "section");
    ah_buf names;

    if (!strategy.p)
        strategy = ah_slice_of(who);
    ah_buf_init(&names, ah_run_cfg(run)->mem, MAX_NAMES);
    if (in->n_added) {
        ah_slice list = list_of(&names, &in->added);

        ah_metric_add(ah_run_cfg(run)->metrics, AH_METRIC_TOOLS_INJECTED, (int64_t)in->n_added);
        if (key.p)
            tell_section(run, in, key, list);
        else
            tell_injected(run, in, strategy, after, list);
    }
    if (in->n_removed)
        EMIT(run, AH_EVENT_TOOLS_REMOVED, AH_F_JSON("tool_names", list_of(&names, &in->removed)),
             AH_F_STR("strategy", strategy));
    ah_buf_clear(&names);
}

/* Appends the names for the line that lists new tools behind the result. */
static void put_hint(ah_run *run, ah_buf *hint, const ah_injection *in)
{
    if (!ah_run_cfg(run)->rules->hint || !in->n_added)
        return;
    if (hint->len)
        ah_buf_str(hint, ", ");
    put_plain(hint, &in->added);
}

/* Notes the sections that cause a restart, for the error when there are too many restarts. */
static void note_restart(ah_run *run, const ah_changes *c, size_t n_added)
{
    ah_restarts *r = ah_run_cfg(run)->restarts;
    ah_slice key = origin_of(c, "section");

    if (!n_added || !restarts(run))
        return;
    r->due = true;
    if (key.p)
        put_name(&r->keys, key);
}

static ah_injection injection(ah_run *run, bool at_work)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    return (ah_injection){
        .mem = cfg->mem,
        .registry = cfg->registry,
        .transcript = cfg->transcript,
        .rules = cfg->rules,
        .session = cfg->session,
        .caller = cfg->caller,
        .at_work = at_work,
        .time = ah_run_wall(run),
        .warn = warn,
        .ud = run,
    };
}

static ah_status apply(ah_run *run, ah_changes *c, const char *who, ah_slice after, ah_buf *hint,
                       ah_err *err)
{
    ah_injection in = injection(run, true);
    ah_status st = ah_inject(&in, c, err);

    if (st == AH_OK) {
        tell(run, &in, c, who, after);
        note_restart(run, c, in.n_added);
        if (hint)
            put_hint(run, hint, &in);
    }
    ah_buf_clear(&in.added);
    ah_buf_clear(&in.removed);
    return st;
}

ah_status ah_inject_from_outside(ah_run *run, ah_changes *c, ah_err *err)
{
    return apply(run, c, "script", ah_slice_of("agent"), NULL, err);
}

void ah_inject_in_run(ah_run *run, ah_injection *in)
{
    *in = injection(run, true);
}

void ah_inject_told(ah_run *run, const ah_injection *in, const ah_changes *c)
{
    tell(run, in, c, "script", ah_slice_of("agent"));
    note_restart(run, c, in->n_added);
}

ah_status ah_inject_for(ah_run *run, ah_changes *c, const char *who, ah_slice after, ah_buf *hint,
                        ah_err *err)
{
    return apply(run, c, who, after, hint, err);
}

/* Makes changes after the last turn. */
static ah_status apply_between(ah_run *run, ah_changes *c, ah_err *err)
{
    ah_injection in = injection(run, false);
    ah_status st = ah_inject(&in, c, err);

    ah_buf_clear(&in.added);
    ah_buf_clear(&in.removed);
    return st;
}

/* Shows one call to one strategy. Only a conflict under AH_CONFLICT_ERROR ends the run. */
static ah_status consult(ah_run *run, const ah_strategy *s, ah_call *call, ah_buf *hint,
                         ah_err *err)
{
    bool fatal = false;
    ah_changes c;
    ah_status st;

    if (!s->vt->after)
        return AH_OK;
    ah_changes_init(&c, ah_run_cfg(run)->mem);
    st = s->vt->after(s->ud, run, call, &c, err);
    if (st == AH_OK && c.n) {
        st = apply(run, &c, s->name, ah_text_slice(call->slot->name), hint, err);
        fatal = st == AH_PROMPT_VALIDATION;
        if (st == AH_OK && s->vt->made)
            s->vt->made(s->ud);
    }
    ah_changes_clear(&c);
    if (st != AH_OK && !fatal)
        ah_run_warn(run, ah_slice_of(err->message));
    return fatal ? st : AH_OK;
}

/* -- state of strategies -------------------------------------------------------------------- */

static bool is_of(const ah_entry *e, const char *strategy)
{
    return e->kind == AH_ENTRY_STRATEGY &&
           ah_json_string_is(ah_json_member(ah_text_slice(e->json), "name"), strategy);
}

ah_slice ah_strategy_staged(const ah_transcript *t, const char *strategy)
{
    for (size_t i = t->n_staged; i > 0; i--)
        if (is_of(&t->staged[i - 1], strategy))
            return ah_json_member(ah_text_slice(t->staged[i - 1].json), "state");
    return (ah_slice){NULL, 0};
}

ah_slice ah_strategy_committed(ah_strategy_cursor *k, const ah_transcript *t, const char *strategy)
{
    for (; k->seen < t->n; k->seen++)
        if (is_of(&t->entry[k->seen], strategy))
            k->last = k->seen + 1;
    return k->last ? ah_json_member(ah_text_slice(t->entry[k->last - 1].json), "state")
                   : (ah_slice){NULL, 0};
}

ah_slice ah_strategy_state(ah_strategy_cursor *k, const ah_transcript *t, const char *strategy)
{
    ah_slice staged = ah_strategy_staged(t, strategy);

    return staged.p ? staged : ah_strategy_committed(k, t, strategy);
}

/* -- around one call ------------------------------------------------------------------------- */

/* False: the strategy has answered the call. A strategy that fails answers with an error. */
static bool lets_pass(ah_run *run, const ah_strategy *s, ah_call *call, ah_buf *answer,
                      ah_changes *out)
{
    ah_err err;
    ah_status st = s->vt->before ? s->vt->before(s->ud, run, call, answer, out, &err) : AH_OK;

    if (st == AH_OK && !ah_buf_ok(answer))
        st = ah_buf_error(answer, "the answer of a strategy", &err);
    if (st == AH_OK && !answer->len)
        return true;
    if (st != AH_OK) {
        ah_run_warn(run, ah_slice_of(err.message));
        ah_buf_reset(answer, 0);
        ah_buf_fmt(answer, "The call was not run: strategy '%s' failed.", s->name);
    }
    ah_call_stand_in(call, answer);
    return false;
}

/* Makes the changes that the call needs. False: its tool is still missing, and the call is
 * answered. */
static bool bring(ah_run *run, ah_call *call, ah_changes *c)
{
    ah_slice name = ah_text_slice(call->slot->name);
    ah_err err;

    if (!c->n)
        return true;
    if (apply(run, c, "strategy", name, NULL, &err) != AH_OK)
        ah_run_warn(run, ah_slice_of(err.message));
    if (ah_registry_find(ah_run_cfg(run)->registry, name))
        return true;
    ah_call_refuse(call,
                   "Tool '%.*s' was not run: it could not be added to this conversation, which has "
                   "reached its limit of tools.",
                   AH_FMT(name));
    return false;
}

bool ah_inject_before(ah_run *run, ah_call *call)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    bool passes = true;
    ah_changes needed;
    ah_buf answer;

    ah_buf_init(&answer, cfg->mem, MAX_ANSWER);
    ah_changes_init(&needed, cfg->mem);
    for (size_t i = 0; i < cfg->n_strategies && passes; i++)
        passes = lets_pass(run, &cfg->strategy[i], call, &answer, &needed);
    passes = passes && bring(run, call, &needed);
    ah_changes_clear(&needed);
    ah_buf_clear(&answer);
    return passes;
}

/* Opens and closes the sections for which the call would leave the run, if a restart is allowed. */
static ah_status expand(ah_run *run, ah_call *call, ah_buf *hint, ah_err *err)
{
    if (!ah_expands(run, call))
        return AH_OK;
    call->leave = AH_OK; /* from here on, the run ends only if opening the sections fails */
    return ah_expand(run, call, hint, err);
}

static void append_hint(ah_run *run, ah_call *call, const ah_buf *hint)
{
    ah_text *content = NULL;
    ah_buf b;

    if (!ah_buf_ok(hint) || !hint->len || !call->content || call->entry)
        return;
    ah_buf_init(&b, ah_run_cfg(run)->mem, MAX_ENTRY);
    ah_buf_fmt(&b, "%.*s\n\nNew tools: %.*s.", AH_FMT(ah_text_slice(call->content)),
               AH_FMT(ah_buf_slice(hint)));
    if (ah_text_from_buf(&b, "tool result", &content, NULL) == AH_OK)
        ah_text_set(&call->content, content);
    ah_buf_clear(&b);
}

ah_status ah_inject_after(ah_run *run, ah_call *call, bool fails, ah_err *err)
{
    const ah_run_config *cfg = ah_run_cfg(run);
    ah_status st = AH_OK;
    ah_buf hint;

    if (!call->changes.n && !cfg->n_strategies && !call->expansion)
        return AH_OK;
    ah_buf_init(&hint, cfg->mem, MAX_NAMES);
    if (call->success && call->changes.n)
        st = apply(run, &call->changes, "tool", ah_text_slice(call->slot->name), &hint, err);
    if (st == AH_OK && !fails && !call->refused)
        st = expand(run, call, &hint, err);
    for (size_t i = 0; i < cfg->n_strategies && st == AH_OK && !call->refused; i++)
        if (!fails || cfg->strategy[i].vt->to_the_end)
            st = consult(run, &cfg->strategy[i], call, &hint, err);
    append_hint(run, call, &hint);
    ah_buf_clear(&hint);
    return st;
}

/* -- around an answer, and at the end --------------------------------------------------------- */

typedef ah_status slot(void *ud, ah_run *run, ah_changes *out, ah_err *err);

/* Makes the changes that one strategy lists in this slot. A failure is a warning. */
static void consult_about(ah_run *run, const ah_strategy *s, slot *says, bool at_work)
{
    static const ah_slice by_provider = AH_LIT("the provider's search");
    ah_changes c;
    ah_status st;
    ah_err err;

    if (!says)
        return;
    ah_changes_init(&c, ah_run_cfg(run)->mem);
    st = says(s->ud, run, &c, &err);
    if (st == AH_OK && c.n)
        st = at_work ? apply(run, &c, s->name, by_provider, NULL, &err)
                     : apply_between(run, &c, &err);
    ah_changes_clear(&c);
    if (st != AH_OK)
        ah_run_warn(run, ah_slice_of(err.message));
}

void ah_inject_answered(ah_run *run)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    for (size_t i = 0; i < cfg->n_strategies; i++)
        consult_about(run, &cfg->strategy[i], cfg->strategy[i].vt->answered, true);
}

void ah_inject_ended(ah_run *run)
{
    const ah_run_config *cfg = ah_run_cfg(run);

    for (size_t i = 0; i < cfg->n_strategies; i++)
        consult_about(run, &cfg->strategy[i], cfg->strategy[i].vt->ended, false);
}

void ah_inject_feedback(ah_run *run, size_t calls)
{
    const ah_hooks *h = ah_run_cfg(run)->hooks;
    ah_changes notes;
    ah_err err;

    if (!h || !h->feedback)
        return;
    ah_changes_init(&notes, ah_run_cfg(run)->mem);
    if (h->feedback(h->ud, run, calls, &notes, &err) != AH_OK ||
        (notes.n && apply(run, &notes, "feedback", (ah_slice){NULL, 0}, NULL, &err) != AH_OK))
        ah_run_warn(run, ah_slice_of(err.message));
    ah_changes_clear(&notes);
}
