/* One call from its slot to its answer. Every error becomes an answer that a model can act on.
 * run_turn.c decides the order of calls and what is committed with them. */
#include "run/call.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/near.h"
#include "base/sha256.h"
#include "run/drift.h"
#include "run/gate.h"
#include "run/said.h"
#include "run/step.h"
#include "run/tell.h"
#include "wire/dispatcher.h"

enum {
    MAX_ARGS = 32 << 20,
    MAX_VALUE = 256 << 20,  /* also the limit of a result as JSON or text, before it is cut */
    MAX_COERCED = 64 << 10, /* bytes of text about coerced arguments */
    MAX_SHOWN = 100,        /* bytes of a name in that text */
    MAX_MARK = 384 /* bytes of the mark that replaces the cut part of a result, including a path */
};

void ah_call_init(ah_call *c, struct ah_run *run, const ah_mem *mem, const ah_slot *slot, size_t at,
                  ah_anchor *below)
{
    *c = (ah_call){.run = run, .slot = slot, .at = at};
    ah_overlay_init(&c->overlay, mem, below);
    c->overlay.owner = c;
    if (below && below->overlay && below->overlay->owner)
        c->parent_call = ah_text_ref(((const ah_call *)below->overlay->owner)->slot->id);
    ah_changes_init(&c->changes, mem);
}

void ah_call_clear(ah_call *c)
{
    ah_steps_free(c->steps);
    ah_overlay_drop(&c->overlay);
    ah_changes_clear(&c->changes);
    ah_value_release(&c->live);
    ah_text_unref(c->args);
    ah_text_unref(c->coerced);
    ah_text_unref(c->approved);
    ah_text_unref(c->parent_call);
    ah_text_unref(c->value);
    ah_text_unref(c->error);
    ah_text_unref(c->whole);
    ah_text_unref(c->images);
    ah_text_unref(c->content);
    ah_text_unref(c->warning);
    ah_text_unref(c->leave_why);
    ah_text_unref(c->leave_details);
    ah_text_unref(c->expansion);
    ah_text_unref(c->reason);
    ah_text_unref(c->shown);
    ah_text_unref(c->about);
    ah_text_unref(c->key);
    ah_text_unref(c->entry);
    ah_tool_unref(c->tool);
    *c = (ah_call){.overlay.mem = c->overlay.mem};
}

/* -- answers --------------------------------------------------------------------- */

/* Cuts text over the limit to head and tail, with a mark that gives the number of missing bytes.
 * The part left out is longer than the mark, so the mark overwrites nothing that is kept. Returns
 * the offset in the text at which a path may be named; 0: not cut. */
static size_t cut(ah_buf *b, size_t most)
{
    static const char end[] = " ...]\n";
    size_t half = (most - MAX_MARK) / 2, head, tail, n;
    char mark[MAX_MARK];

    if (!ah_buf_ok(b) || b->len <= most)
        return 0;
    head = ah_utf8_cut(b->data, half);
    tail = b->len - half;
    while (tail < b->len && ((unsigned char)b->data[tail] & 0xc0) == 0x80)
        tail++;
    n = ah_print(mark, sizeof mark,
                 "\n[... %zu of %zu bytes left out; the limit is %zu (max_result of the tool)%s",
                 tail - head, b->len, most, end);
    memcpy(b->data + head, mark, n);
    memmove(b->data + head + n, b->data + tail, b->len - tail);
    b->len = head + n + b->len - tail;
    return head + n - (sizeof end - 1);
}

/* Without memory there is no content. Content that is too large for its buffer becomes an error
 * text, not an empty answer. */
static void answer(ah_call *c, bool success, const ah_buf *content)
{
    ah_text *text = NULL;
    ah_err err = {.status = AH_OK};

    if (ah_text_from_buf(content, "the answer of the call", &text, &err) == AH_BUDGET) {
        text = ah_text_new(content->mem, ah_slice_of(err.message));
        success = false;
    }
    ah_text_set(&c->content, text);
    c->success = success;
    c->state = AH_CALL_ANSWERED;
}

/* An error text in place of a result has the same limit. */
static void answer_in_words(ah_call *c, ah_buf *words)
{
    ah_text_set(&c->value, NULL);
    cut(words, c->tool && c->tool->max_result ? c->tool->max_result : AH_TOOL_RESULT);
    answer(c, false, words);
}

void ah_call_refuse(ah_call *c, const char *fmt, ...)
{
    ah_buf b;
    va_list ap;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    va_start(ap, fmt);
    ah_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

/* An approval is never asked for without its reason: if that cannot be stored, the call is
 * refused. */
void ah_call_ask(ah_call *c, const ah_buf *why)
{
    ah_err err;

    ah_text_set(&c->reason, NULL);
    if (ah_text_from_buf(why, "reason", &c->reason, &err) == AH_OK)
        c->state = AH_CALL_ASKING;
    else
        ah_call_refuse(c, "Tool '%s' was not run: %s", c->tool->name->data, err.message);
}

void ah_call_name_file(ah_call *c, ah_slice path)
{
    ah_slice content = ah_text_slice(c->content);
    ah_text *text = NULL;
    ah_buf b;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_add(&b, content.p, c->gap);
    ah_buf_fmt(&b, "; all of it is in the file '%.*s'", AH_FMT(path));
    ah_buf_add(&b, content.p + c->gap, content.n - c->gap);
    if (ah_text_from_buf(&b, "tool result", &text, NULL) == AH_OK)
        ah_text_set(&c->content, text);
    ah_buf_clear(&b);
}

void ah_call_give_ticket(ah_call *c, int64_t ticket)
{
    ah_buf b;

    c->ticket = ticket;
    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_fmt(&b, "Started; ticket %lld. The result will follow as a note.", (long long)ticket);
    answer(c, true, &b);
    ah_buf_clear(&b);
}

void ah_call_stand_in(ah_call *c, const ah_buf *content)
{
    c->refused = true;
    answer(c, false, content);
}

/* -- 1: look up ------------------------------------------------------------------- */

static void refuse_unknown(ah_call *c, const ah_registry *r)
{
    ah_slice name = ah_text_slice(c->slot->name), gone;
    ah_near near = {.to = name, .words = true};
    const ah_tool *t;
    ah_buf b;

    c->unknown = !ah_registry_had(r, name, &gone);
    if (!c->unknown && gone.p) {
        ah_call_refuse(c, "Tool '%.*s' is no longer available: %.*s", AH_FMT(name), AH_FMT(gone));
        return;
    }
    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_fmt(&b, "Tool '%.*s' %s. Available tools: [",
               (int)(name.n > MAX_SHOWN ? ah_utf8_cut(name.p, MAX_SHOWN) : name.n), name.p,
               c->unknown ? "not found" : "is no longer available");
    for (size_t at = 0, n = 0; (t = ah_registry_next(r, &at)) != NULL; n++) {
        ah_near_offer(&near, ah_text_slice(t->name));
        ah_buf_str(&b, n ? ", " : "");
        ah_buf_put(&b, ah_text_slice(t->name));
    }
    ah_buf_char(&b, ']');
    if (c->unknown && near.best.p)
        ah_buf_fmt(&b, ". Did you mean '%.*s'?", AH_FMT(near.best));
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

/* Sets *out to what runs the call in place of the tool's own handler, or leaves NULL: a double of
 * the model, or, if the tool has no handler, the executor of its name (seed 004: the registry takes
 * priority). An executor does not bring back a removed tool. */
static ah_status find_other(ah_call *c, const ah_callees *who, const ah_tool *there, ah_tool **out,
                            ah_err *err)
{
    ah_slice name = ah_text_slice(c->slot->name);
    ah_status st = AH_OK;

    if (there && who->model && who->model->vt->stand_in)
        st = who->model->vt->stand_in(who->model, c, out, err);
    if (st != AH_OK || *out || !who->executors)
        return st;
    if (there ? there->no_handler && !there->stale : !ah_registry_had(who->registry, name, NULL))
        *out = ah_registry_find(who->executors, name);
    return AH_OK;
}

static ah_status find_tool(ah_call *c, const ah_callees *who, ah_err *err)
{
    ah_tool *there = ah_tool_ref(ah_registry_find(who->registry, ah_text_slice(c->slot->name)));
    ah_tool *other = NULL;
    ah_status st = find_other(c, who, there, &other, err); /* may call code that removes it */

    if (st == AH_OK && there && other)
        st = ah_tool_run_by(there, other, &c->tool, err);
    else
        c->tool = ah_tool_ref(there ? there : other);
    ah_tool_unref(there);
    return st;
}

static void refuse_drifted(ah_call *c)
{
    ah_buf b;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_drift_put_answer(c->tool, &b);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

static bool look_up(ah_call *c, const ah_callees *who)
{
    ah_err err;

    if (find_tool(c, who, &err) != AH_OK)
        ah_call_refuse(c, "Tool '%s' was not run: %s", c->slot->name->data, err.message);
    else if (!c->tool && ah_slice_is(ah_text_slice(c->slot->name), AH_DISPATCHER))
        ah_call_refuse(c, "Tool validation failed: " AH_DISPATCHER
                          " takes the tool's name and its arguments: "
                          "{\"name\": \"...\", \"arguments\": {...}}");
    else if (!c->tool)
        refuse_unknown(c, who->registry);
    else if (c->tool->drift)
        refuse_drifted(c);
    else if (c->tool->stale && c->tool->gone)
        ah_call_refuse(c, "Tool '%s' was not run: %s", c->tool->name->data, c->tool->gone->data);
    else if (c->tool->stale)
        ah_call_refuse(
            c,
            "Tool '%s' is stale: it is of an earlier session of this conversation and was not "
            "found again. Nothing was run.",
            c->tool->name->data);
    else if (c->tool->no_handler)
        ah_call_refuse(c, "Tool '%s' cannot be called: it has no handler.", c->tool->name->data);
    return c->state == AH_CALL_WAITING;
}

/* -- 2: parse ----------------------------------------------------------------------- */

static ah_slice arguments(const ah_call *c)
{
    ah_slice s = ah_text_slice(c->slot->original ? c->slot->original : c->slot->arguments);

    while (s.n && strchr(" \t\r\n", s.p[0])) {
        s.p++;
        s.n--;
    }
    return s.n ? s : ah_slice_of("{}"); /* "", absent and null all mean: no arguments */
}

static void refuse_faults(ah_call *c, const ah_faults *faults)
{
    ah_buf b;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_str(&b, "Tool validation failed: ");
    ah_faults_print(faults, &b);
    if (c->tool->full) /* its parameters were not declared */
        ah_buf_fmt(&b, ". Call pick_tools with {\"tools\":[\"%s\"]} for its full specification.",
                   c->tool->name->data);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

/* The check was interrupted. The run, or the call's time limit, reports its own end; this adds only
 * the faults. */
static void refuse_slow(ah_call *c, const char *what, const ah_faults *faults)
{
    ah_buf b;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_fmt(&b, "Tool '%s' %s", c->tool->name->data, what);
    ah_faults_print(faults, &b);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

static void keep_args(ah_call *c, const ah_buf *full, ah_buf *words)
{
    ah_err err;

    if (ah_text_from_buf(full, "the arguments", &c->args, &err) != AH_OK)
        ah_call_refuse(c, "Tool validation failed: %s", err.message);
    else if (!ah_buf_cut_short(words) ||
             (words->len && !(c->coerced = ah_text_new(words->mem, ah_buf_slice(words)))))
        ah_call_refuse(c, "Tool validation failed: out of memory");
}

/* full: the arguments with their defaults. words: which of them were coerced. */
static ah_status look_at_args(const ah_call *c, ah_slice args, ah_faults *faults, ah_buf *full,
                              ah_buf *words)
{
    const ah_check_options options = {
        .extra = AH_EXTRA_FORBID,
        .coerce = c->tool->coerce,
        .null_absent = c->strict,
        .interrupt = c->interrupt.wanted ? &c->interrupt : NULL,
        .coerced = words,
    };

    ah_faults_init(faults, c->overlay.mem);
    ah_buf_init(full, c->overlay.mem, MAX_ARGS);
    ah_buf_init(words, c->overlay.mem, MAX_COERCED);
    return ah_schema_check_with(c->tool->params, args, &options, faults, full);
}

/* Refuses arguments with a key in them. A fault quotes a part of a value, so the faults are those
 * of what is said, if it has some. */
static void refuse_said(ah_call *c, ah_slice args)
{
    ah_faults faults = {0};
    ah_buf said, full, words;
    bool found;

    ah_buf_init(&said, c->overlay.mem, MAX_ARGS);
    if ((found = ah_said_json(c, args, &said))) {
        found = look_at_args(c, ah_buf_slice(&said), &faults, &full, &words) == AH_OK && faults.n;
        ah_buf_clear(&full);
        ah_buf_clear(&words);
    }
    if (found)
        refuse_faults(c, &faults);
    else
        ah_call_refuse(c, "Tool validation failed: the arguments do not match their schema where "
                          "`[secret]` stands for a key");
    ah_faults_clear(&faults);
    ah_buf_clear(&said);
}

/* The words about coerced arguments quote a part of them. */
static void hide_coerced(ah_call *c, ah_slice args)
{
    if (c->coerced && ah_said_has_key(c, args))
        ah_text_set(&c->coerced, NULL);
}

static void check_args(ah_call *c, ah_slice args)
{
    ah_faults faults;
    ah_buf full, words;
    ah_status st = look_at_args(c, args, &faults, &full, &words);

    if (st == AH_BUDGET)
        ah_call_refuse(c,
                       "Tool validation failed: the arguments with their defaults are larger than "
                       "32 MiB or deeper than 512 levels");
    else if (st == AH_CANCELLED)
        refuse_slow(c, "was not run, its arguments took too long to check: ", &faults);
    else if (st != AH_OK)
        ah_call_refuse(c, "Tool validation failed: out of memory");
    else if (faults.n && ah_said_has_key(c, args))
        refuse_said(c, args);
    else if (faults.n)
        refuse_faults(c, &faults);
    else
        keep_args(c, &full, &words);
    hide_coerced(c, args);
    ah_buf_clear(&words);
    ah_buf_clear(&full);
    ah_faults_clear(&faults);
}

/* False: the arguments are not JSON, and the call is answered. */
static bool is_json(ah_call *c, ah_slice args)
{
    ah_err err;

    if (!c->slot->original && c->slot->written != AH_ARGUMENTS_WRONG)
        return true;
    if (ah_json_check_err(c->overlay.mem, args, "what was sent", &err) == AH_OK)
        return true;
    ah_call_refuse(c, "Tool validation failed: %s. Send one JSON object; nothing was run.",
                   c->slot->original ? "what was sent is not JSON (not quoted: a key is in it)"
                                     : err.message);
    return false;
}

static bool parse(ah_call *c)
{
    ah_slice args = arguments(c);

    if (ah_slice_is(args, "null"))
        args = ah_slice_of("{}");
    if (is_json(c, args))
        check_args(c, args);
    return c->state == AH_CALL_WAITING;
}

static void begin_time(ah_call *c, int64_t now)
{
    c->started = now;
    c->deadline = c->tool->timeout_ms ? now + c->tool->timeout_ms : 0;
}

bool ah_call_change_args(ah_call *c, ah_slice args, int64_t now)
{
    begin_time(c, now);
    c->changed_args = true;
    ah_text_set(&c->args, NULL);
    ah_text_set(&c->coerced, NULL);
    c->state = AH_CALL_WAITING;
    check_args(c, args);
    if (c->state == AH_CALL_ANSWERED)
        return false;
    c->state = AH_CALL_RUNNING;
    return true;
}

/* -- 3 to 6 --------------------------------------------------------------------------- */

static bool in_time(ah_call *c, int64_t now, int64_t run_deadline)
{
    if (run_deadline && now >= run_deadline) {
        ah_call_refuse(c, "Tool '%s' was not run: the deadline has passed.", c->tool->name->data);
        return false;
    }
    return true;
}

static bool is_strict(const ah_call *c, const ah_callees *who)
{
    return c->tool->strict == AH_YES || (c->tool->strict == AH_UNSAID && who->strict);
}

bool ah_call_prepare(ah_call *c, const ah_callees *who, int64_t now, int64_t run_deadline)
{
    c->started = now;
    if (!look_up(c, who))
        return false;
    begin_time(c, now);
    c->strict = is_strict(c, who);
    if (!parse(c) || !in_time(c, now, run_deadline))
        return false;
    c->state = AH_CALL_RUNNING;
    return true;
}

/* -- calls that the journal knows ----------------------------------------------------------- */

bool ah_call_prepare_again(ah_call *c, const ah_callees *who, ah_slice args, int64_t now)
{
    c->started = now;
    if (!look_up(c, who))
        return false;
    begin_time(c, now);
    c->strict = is_strict(c, who);
    if (args.p) {
        c->changed_args = true;
        check_args(c, args);
    } else {
        parse(c);
    }
    return c->state == AH_CALL_WAITING;
}

void ah_call_know_tool(ah_call *c, const ah_callees *who)
{
    ah_err ignored;

    if (find_tool(c, who, &ignored) != AH_OK)
        c->tool = NULL;
}

void ah_call_print_outcome(const ah_call *c, ah_buf *out)
{
    ah_buf_str(out, c->refused ? "{\"refused\":true" : "{\"refused\":false");
    ah_json_add_string(out, "content", ah_text_slice(c->content));
    ah_json_add(out, "value", ah_text_slice(c->value));
    ah_json_add(out, "images", ah_text_slice(c->images));
    ah_json_add_string(out, "error", ah_text_slice(c->error));
    ah_buf_str(out, c->mistake ? ",\"mistake\":true" : "");
    if (c->whole && c->part == c->content) {
        ah_json_add_string(out, "whole", ah_text_slice(c->whole));
        ah_buf_fmt(out, ",\"gap\":%zu", c->gap);
    }
    if (c->leave != AH_OK) {
        ah_json_add_string(out, "leave", ah_slice_of(ah_status_name(c->leave)));
        ah_json_add_string(out, "leave_why", ah_text_slice(c->leave_why));
        ah_json_add(out, "leave_details", ah_text_slice(c->leave_details));
        ah_json_add(out, "expansion", ah_text_slice(c->expansion));
    }
    if (c->state == AH_CALL_SHOWN)
        ah_json_add_string(out, "asks", ah_text_slice(c->reason));
    ah_buf_char(out, '}');
}

/* Reads a member: a string, or any JSON as its text. False: out of memory. */
static bool read_text(const ah_call *c, ah_slice outcome, const char *name, bool string,
                      ah_text **out)
{
    ah_slice json = ah_json_member(outcome, name);
    ah_err ignored;
    ah_buf b;

    if (!json.p)
        return true;
    if (!string) {
        ah_text_set(out, ah_text_new(c->overlay.mem, json));
        return *out != NULL;
    }
    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_json_string(json, &b);
    ah_text_set(out, NULL);
    (void)ah_text_from_buf(&b, "the outcome", out, &ignored);
    ah_buf_clear(&b);
    return *out != NULL;
}

/* The full result is left out if the text that refers to it does not fit it. */
static void read_gap(ah_call *c, ah_slice outcome)
{
    ah_json_num gap = {0};

    ah_json_number(ah_json_member(outcome, "gap"), &gap);
    if (gap.is_int && gap.i >= 0 && c->content && (size_t)gap.i <= c->content->len)
        c->gap = (size_t)gap.i;
    else
        ah_text_set(&c->whole, NULL);
    c->part = c->content;
}

ah_status ah_call_read_outcome(ah_call *c, bool success, ah_slice outcome, ah_err *err)
{
    ah_slice leave = ah_json_member(outcome, "leave");

    if (ah_json_kind_of(ah_json_member(outcome, "content")) != AH_JSON_STRING)
        return ah_err_set(err, AH_STORE, "the recorded outcome of the call has no content");
    if (!read_text(c, outcome, "content", true, &c->content) ||
        !read_text(c, outcome, "value", false, &c->value) ||
        !read_text(c, outcome, "images", false, &c->images) ||
        !read_text(c, outcome, "error", true, &c->error) ||
        !read_text(c, outcome, "whole", true, &c->whole) ||
        !read_text(c, outcome, "leave_why", true, &c->leave_why) ||
        !read_text(c, outcome, "leave_details", false, &c->leave_details) ||
        !read_text(c, outcome, "expansion", false, &c->expansion) ||
        !read_text(c, outcome, "asks", true, &c->reason))
        return ah_err_nomem(err);
    c->refused = ah_slice_is(ah_json_member(outcome, "refused"), "true");
    c->mistake = ah_slice_is(ah_json_member(outcome, "mistake"), "true");
    if (ah_json_kind_of(leave) == AH_JSON_STRING)
        c->leave = ah_status_from_code(ah_json_inside(leave));
    read_gap(c, outcome);
    c->success = success;
    c->state = success && c->reason ? AH_CALL_SHOWN : AH_CALL_ANSWERED;
    return AH_OK;
}

/* -- 8: the outcome as an answer ---------------------------------------------------------- */

static void refuse_result(ah_call *c, const ah_faults *faults)
{
    ah_buf b;

    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_fmt(&b, "Tool '%s' execution failed: its result does not match its schema: ",
               c->tool->name->data);
    ah_faults_print(faults, &b);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

/* Checks the value against the tool's result schema. False: the call is answered as failed. `full`
 * gets the value with the schema's defaults. */
static bool check_result(ah_call *c, ah_slice value, ah_buf *full)
{
    const ah_check_options options = {.extra = AH_EXTRA_SCHEMA,
                                      .empty_lists = true,
                                      .interrupt = c->interrupt.wanted ? &c->interrupt : NULL};
    ah_faults faults;
    ah_status st;

    if (!c->tool->result || (!value.p && c->tool->result_type)) /* a type may have no value */
        return true;
    ah_faults_init(&faults, c->overlay.mem);
    st = ah_schema_check_with(c->tool->result, value.p ? value : ah_slice_of("null"), &options,
                              &faults, full);
    if (st == AH_BUDGET)
        ah_call_refuse(c,
                       "Tool '%s' execution failed: its result with its defaults is larger than "
                       "256 MiB or deeper than 512 levels",
                       c->tool->name->data);
    else if (st == AH_CANCELLED)
        refuse_slow(c, "execution failed: its result took too long to check: ", &faults);
    else if (st != AH_OK)
        ah_call_refuse(c, "Tool '%s' execution failed: out of memory", c->tool->name->data);
    else if (faults.n)
        refuse_result(c, &faults);
    ah_faults_clear(&faults);
    return c->state != AH_CALL_ANSWERED;
}

/* With `lines`, adds a newline behind each member or element. */
static void put_json(ah_buf *b, ah_slice json, bool lines)
{
    bool text = false, escaped = false;
    size_t from = 0;

    for (size_t i = 0; lines && i < json.n; i++) {
        char ch = json.p[i];

        text ^= ch == '"' && !escaped;
        escaped = text && ch == '\\' && !escaped;
        if (text || ch != ',')
            continue;
        ah_buf_add(b, json.p + from, i + 1 - from);
        ah_buf_char(b, '\n');
        from = i + 1;
    }
    ah_buf_add(b, json.p + from, json.n - from);
}

/* Appends a string as it is, any other value as JSON, after the author's message if there is one. A
 * success without a value gives "OK"; nil gives null, for example when nothing was found. `lines`:
 * the text is read by line. */
static void render(const ah_call *c, const ah_outcome *o, bool lines, ah_buf *b)
{
    ah_slice value = o->exclude_value ? (ah_slice){NULL, 0} : o->value;
    size_t before = b->len;

    if (!o->success && o->failure == AH_FAILED_RAISED)
        ah_buf_fmt(b, "Tool '%s' execution failed: ", c->tool->name->data);
    if (!o->success && o->failure == AH_FAILED_VALIDATION)
        ah_buf_str(b, "Tool validation failed: ");
    if (o->message.p)
        ah_buf_put(b, o->message);
    if (o->message.p && value.p)
        ah_buf_str(b, "\n\n");
    if (value.p && o->render.p)
        ah_buf_put(b, o->render);
    else if (value.p && !ah_json_string(value, b))
        put_json(b, value, lines);
    if (o->success && !o->message.p && !value.p)
        ah_buf_str(b, o->nil ? "null" : "OK");
    if (!o->success && b->len == before)
        ah_buf_fmt(b, "Tool '%s' failed and did not say why.", c->tool->name->data);
}

/* Dispatches the value to the slices of its type (seed 002, Session and Telemetry). False: that
 * failed, and so has the call. */
static bool give_to_session(ah_call *c, const ah_outcome *o, ah_session *session)
{
    ah_slice type = o->type.p ? o->type : ah_text_slice(c->tool->result_type);
    ah_err err;

    if (!session || o->untyped ||
        ah_session_take(session, &c->overlay, type, o->value, &err) == AH_OK)
        return true;
    ah_call_refuse(c, "Tool '%s' execution failed: %s", c->tool->name->data, err.message);
    return false;
}

/* Copies a text of the outcome. False: out of memory. */
static bool keep(ah_call *c, ah_text **text, ah_slice s)
{
    ah_text_set(text, s.p ? ah_text_new(c->overlay.mem, s) : NULL);
    return !s.p || *text;
}

/* Keeps the value, error and images that the call's event reports. */
static bool keep_told(ah_call *c, const ah_outcome *o)
{
    bool shown = o->success && !o->exclude_value;
    bool kept = keep(c, &c->value, o->value) && keep(c, &c->error, o->error) &&
                keep(c, &c->images, shown ? o->images : (ah_slice){NULL, 0});

    c->mistake = o->mistake;
    if (!kept)
        ah_call_refuse(c, "Tool '%s' execution failed: out of memory", c->tool->name->data);
    return kept;
}

/* Makes the refusal text of the call its message, so that policies see it as a failure. */
static ah_outcome refused(ah_call *c, ah_buf *words)
{
    ah_buf_put(words, ah_text_slice(c->content));
    c->state = AH_CALL_RUNNING;
    return (ah_outcome){.failure = AH_FAILED_SAID, .whole = true};
}

/* Keeps the full text of a cut result until it is known where it is written. Without memory it
 * is not kept. */
static void shorten(ah_call *c, const ah_outcome *o, ah_buf *b)
{
    ah_buf whole;

    if (o->whole || !ah_buf_ok(b) || b->len <= c->tool->max_result)
        return;
    ah_buf_init(&whole, c->overlay.mem, MAX_VALUE);
    if (c->keeps && o->success) {
        render(c, o, true, &whole);
        ah_text_from_buf(&whole, "the whole result", &c->whole, NULL);
    }
    ah_buf_clear(&whole);
    c->gap = cut(b, c->tool->max_result);
}

/* Applies the outcome as the policies left it. */
static void take_outcome(ah_call *c, const ah_outcome *o, ah_buf *words, ah_session *session)
{
    if (o->success && !give_to_session(c, o, session))
        return;
    shorten(c, o, words);
    if (keep_told(c, o))
        answer(c, o->success, words);
    c->part = c->content;
}

void ah_call_render(const ah_call *c, const ah_outcome *o, ah_buf *b)
{
    render(c, o, false, b);
}

/* Keeps the sections that the handler asks for. Without memory they are lost, and the call
 * fails as any other. */
static void keep_expansion(ah_call *c, const ah_outcome *o)
{
    if (o->leave != AH_VISIBILITY_EXPANSION || !o->expansion.p ||
        (c->expansion = ah_text_new(c->overlay.mem, o->expansion)) != NULL)
        return;
    c->leave = AH_OK;
    ah_call_refuse(c, "Tool '%s' execution failed: out of memory", c->tool->name->data);
}

/* -- approval of the changes ---------------------------------------------------------------- */

static ah_status print_changes(const ah_call *c, ah_buf *out, ah_err *err)
{
    ah_change_list l;

    ah_change_list_begin(&l, c->overlay.mem, out);
    ah_overlay_show(&c->overlay, &l);
    ah_change_list_end(&l);
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the list of its changes", err);
}

/* The hash is the same in a later process: the recorded result has no keys either. */
static ah_text *hash_of(const ah_call *c, ah_slice list)
{
    char hex[AH_SHA256_HEX];
    ah_sha256 s;
    ah_buf said;

    ah_sha256_begin(&s);
    ah_sha256_add(&s, ah_run_said(c->run, ah_text_slice(c->content), &said));
    ah_sha256_add(&s, (ah_slice){"", 1});
    ah_sha256_add(&s, list);
    ah_sha256_end_hex(&s, hex);
    ah_buf_clear(&said);
    return ah_text_new(c->overlay.mem, (ah_slice){hex, sizeof hex});
}

static ah_status list_changes(ah_call *c, ah_err *err)
{
    ah_status st;
    ah_buf list, said;

    ah_buf_init(&list, c->overlay.mem, MAX_VALUE);
    ah_buf_init(&said, c->overlay.mem, MAX_VALUE);
    st = print_changes(c, &list, err);
    if (st == AH_OK && !ah_said_json(c, ah_buf_slice(&list), &said))
        st = ah_buf_ok(&said) ? ah_err_set(err, AH_USAGE, "a key of the program is in its changes")
                              : ah_buf_error(&said, "the list of its changes", err);
    if (st == AH_OK)
        ah_text_set(&c->about, hash_of(c, ah_buf_slice(&list)));
    if (st == AH_OK && !c->about)
        st = ah_err_nomem(err);
    if (st == AH_OK)
        st = ah_text_from_buf(&said, "the list of its changes", &c->shown, err);
    ah_buf_clear(&said);
    ah_buf_clear(&list);
    return st;
}

void ah_call_take_back(ah_call *c, const char *fmt, ...)
{
    ah_buf b;
    va_list ap;

    ah_value_release(&c->live);
    c->live = (ah_value){0};
    ah_buf_init(&b, c->overlay.mem, MAX_VALUE);
    ah_buf_fmt(&b, "Tool '%s' was run, and ", c->slot->name->data);
    va_start(ap, fmt);
    ah_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    answer_in_words(c, &b);
    ah_buf_clear(&b);
}

void ah_call_show(ah_call *c)
{
    ah_err err;

    ah_overlay_pin(&c->overlay);
    if (list_changes(c, &err) == AH_OK)
        c->state = AH_CALL_SHOWN;
    else
        ah_call_take_back(c, "its changes could not be shown for approval: %s", err.message);
}

void ah_call_settle(ah_call *c, const ah_outcome *o, ah_session *session)
{
    ah_outcome now = *o;
    ah_gate_texts held = {0};
    ah_buf full, words;

    c->live = o->live;
    c->leave = o->leave;
    ah_buf_init(&full, c->overlay.mem, MAX_VALUE);
    ah_buf_init(&words, c->overlay.mem, MAX_VALUE);
    if (o->success && !check_result(c, o->value, &full)) {
        now = refused(c, &words);
    } else {
        if (o->value.p && full.len) /* with defaults, and {} as the list that it stands for */
            now.value = ah_buf_slice(&full);
        ah_call_render(c, &now, &words);
    }
    if (ah_gate_after(c, &now, &words, &held))
        take_outcome(c, &now, &words, session);
    keep_expansion(c, o);
    if (c->leave != AH_OK)
        c->leave_why = ah_text_ref(c->content); /* NULL if memory ran out */
    if (c->success && c->reason)
        ah_call_show(c);
    ah_gate_texts_clear(&held);
    ah_buf_clear(&full);
    ah_buf_clear(&words);
}

void ah_call_refuse_late(ah_call *c)
{
    ah_call_refuse(
        c,
        "Tool '%s' execution failed: it did not finish within %g seconds, the timeout of the "
        "tool, and was stopped.",
        c->tool->name->data, (double)c->tool->timeout_ms / 1000);
}

/* An outcome that comes after the deadline is a failure, whatever it holds: an interrupted call has
 * its own error text, and a long call into C may even have succeeded. */
void ah_call_done(ah_call *c, const ah_outcome *o, int64_t now)
{
    const ah_run_config *cfg = ah_run_cfg(c->run);

    if (c->state != AH_CALL_RUNNING) {
        ah_value live = o->live;

        ah_value_release(&live);
        return;
    }
    --*c->at_work;
    c->ended = now;
    if (c->deadline && now >= c->deadline) {
        ah_value live = o->live;

        ah_value_release(&live);
        ah_call_refuse_late(c);
    } else {
        ah_call_settle(c, o, cfg->session);
    }
    if (cfg->answered && c->state == AH_CALL_ANSWERED)
        cfg->answered(cfg->on_ud, c);
}
