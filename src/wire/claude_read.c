/* The lines of the `claude` command: its requests are answered, the model's message is given on,
 * errors are told as such. A failed turn is known by is_error: its subtype may be "success". Only
 * our own tools run: any other one is refused. */
#include "base/excerpt.h"
#include "model/tool_spec.h"
#include "wire/claude_talk.h"
#include "wire/full.h"

#include "wire/shape.h"

#include <stdio.h>

enum { MAX_SAID = 400, MAX_FAULT = 4 << 10 };

/* -- shapes ------------------------------------------------------------------------------------
 * Of the lines that bring the answer. Requests that make no sense are refused where they are answered;
 * not looked at are `assistant` and `user` (the message comes as events), what `system` tells, lines of
 * other types or of none, and what is added. The shapes of the events are those of the Messages API
 * (anthropic_read.c), whose reader gets them. */

static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};
static const ah_shape boolean = {.kinds = AH_IS_BOOLEAN};
static const ah_shape typed = {.kinds = AH_IS_OBJECT, .member = AH_MEMBERS(AH_NEEDS("type", &string))};
static const ah_shape event_line = {
    .member = AH_MEMBERS(AH_NEEDS("event", &typed), AH_MAY_HAVE("parent_tool_use_id", &maybe_string))};
static const ah_shape result_line = {
    .member = AH_MEMBERS(AH_NEEDS("is_error", &boolean), AH_MAY_HAVE("result", &maybe_string))};

/* -- calls ------------------------------------------------------------------------------------- */

static void clear_call(ah_claude_call *k)
{
    ah_text_unref(k->id);
    ah_text_unref(k->ask);
    ah_text_unref(k->rpc);
    ah_text_unref(k->result);
}

static void drop_call(ah_claude *c, size_t i)
{
    clear_call(&c->call[i]);
    memmove(c->call + i, c->call + i + 1, (--c->n - i) * sizeof *c->call);
}

void ah_claude_forget(ah_claude *c)
{
    while (c->n)
        clear_call(&c->call[--c->n]);
}

static ah_status find_call(ah_claude *c, ah_slice id, ah_claude_call **out, ah_err *err)
{
    ah_claude_call *k;

    for (size_t i = 0; i < c->n; i++)
        if (ah_slice_eq(ah_text_slice(c->call[i].id), id)) {
            *out = &c->call[i];
            return AH_OK;
        }
    if (c->n == AH_CLAUDE_MAX_CALLS)
        return ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": more than %d calls wait", AH_CLAUDE_MAX_CALLS);
    if (!(k = ah_grow(c->mem, c->call, &c->cap, c->n + 1, sizeof *k)))
        return ah_err_nomem(err);
    c->call = k;
    c->call[c->n] = (ah_claude_call){.id = ah_text_new(c->mem, id)};
    if (!c->call[c->n].id)
        return ah_err_nomem(err);
    *out = &c->call[c->n++];
    return AH_OK;
}

ah_status ah_claude_asked(ah_claude *c, ah_slice id, ah_slice ask, ah_slice rpc, ah_err *err)
{
    ah_claude_call *k = NULL;
    ah_status st = find_call(c, id, &k, err);

    if (st != AH_OK)
        return st;
    ah_text_set(&k->ask, ah_text_new(c->mem, ask));
    ah_text_set(&k->rpc, ah_text_new(c->mem, rpc));
    if (!k->ask || !k->rpc)
        return ah_err_nomem(err);
    ah_claude_flush(c);
    return AH_OK;
}

void ah_claude_withdrawn(ah_claude *c, ah_slice ask)
{
    for (size_t i = 0; i < c->n; i++)
        if (ah_slice_eq(ah_text_slice(c->call[i].ask), ask)) {
            drop_call(c, i);
            return;
        }
}

ah_status ah_claude_give(ah_claude *c, ah_slice id, ah_slice result, ah_err *err)
{
    ah_claude_call *k = NULL;
    ah_status st = find_call(c, id, &k, err);

    if (st != AH_OK)
        return st;
    ah_text_set(&k->result, ah_text_new(c->mem, result));
    if (!k->result)
        return ah_err_nomem(err);
    ah_claude_flush(c);
    return AH_OK;
}

/* {"type":"control_response",...,"response": -- to be followed by a value and "}}\n". */
static void put_answer(ah_claude *c, ah_slice ask)
{
    ah_buf_fmt(
        &c->out,
        "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":%.*s,"
        "\"response\":",
        AH_FMT(ask));
}

static void put_rpc(ah_claude *c, ah_slice ask, ah_slice rpc, const char *member, ah_slice value)
{
    put_answer(c, ask);
    ah_buf_fmt(&c->out, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":",
               AH_FMT(rpc.p ? rpc : ah_slice_of("0")), member);
    ah_buf_put(&c->out, value);
    ah_buf_str(&c->out, "}}}}\n");
}

void ah_claude_flush(ah_claude *c)
{
    for (size_t i = 0; !c->listing && i < c->n;) {
        ah_claude_call *k = &c->call[i];

        if (!k->ask || !k->rpc || !k->result) {
            i++;
            continue;
        }
        put_rpc(c, ah_text_slice(k->ask), ah_text_slice(k->rpc), "result", ah_text_slice(k->result));
        drop_call(c, i);
    }
}

/* -- requests ------------------------------------------------------------------------------------- */

/* In the words of the protocol; that a tool comes from outside has none there. */
static void put_annotations(ah_buf *b, ah_slice said)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {{"destructive", "destructiveHint"},
                 {"idempotent", "idempotentHint"},
                 {"open_world", "openWorldHint"},
                 {"read_only", "readOnlyHint"}};
    size_t n = 0;

    for (size_t i = 0; said.p && i < sizeof hints / sizeof *hints; i++) {
        ah_slice value = ah_json_member(said, hints[i].name);
        ah_json_kind kind = ah_json_kind_of(value);

        if (kind == AH_JSON_TRUE || kind == AH_JSON_FALSE)
            ah_buf_fmt(b, "%s\"%s\":%.*s", n++ ? "," : ",\"annotations\":{", hints[i].hint,
                       AH_FMT(value));
    }
    ah_buf_str(b, n ? "}" : "");
}

static void put_tool(ah_buf *b, ah_slice spec)
{
    ah_slice name, annotations, parameters;
    const ah_json_wanted want[] = {
        {"name", &name}, {"annotations", &annotations}, {"parameters", &parameters}};

    ah_json_members(spec, want, 3);
    ah_buf_fmt(b, "{\"name\":%.*s", AH_FMT(name));
    ah_spec_put_description(",\"description\":", spec, b);
    ah_buf_str(b, ",\"inputSchema\":");
    if (ah_json_member(parameters, "type").p)
        ah_buf_put(b, parameters);
    else
        ah_buf_str(b, "{\"properties\":{},\"type\":\"object\"}");
    put_annotations(b, annotations);
    ah_buf_char(b, '}');
}

static ah_status list_tools(ah_claude *c, ah_slice ask, ah_slice rpc, ah_err *err)
{
    ah_json_reader r = ah_json_read(ah_buf_slice(&c->tools));
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;
    ah_buf b;

    ah_buf_init(&b, c->mem, AH_CLAUDE_MAX_OUT);
    ah_buf_str(&b, "{\"tools\":[");
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(&b, b.len && b.data[b.len - 1] == '[' ? "" : ",");
        put_tool(&b, ah_json_skip(&r, t));
    }
    ah_buf_str(&b, "]}");
    if (ah_buf_ok(&b))
        put_rpc(c, ask, rpc, "result", ah_buf_slice(&b));
    else
        st = ah_buf_error(&b, "the list of tools", err);
    ah_buf_clear(&b);
    c->listing = false;
    ah_claude_flush(c);
    return st;
}

/* The call's own id is what the transcript knows it by; a command that gives none is too old. */
static ah_status ask_call(ah_claude *c, ah_slice ask, ah_slice rpc, ah_slice params, ah_err *err)
{
    ah_slice id = ah_json_member(ah_json_member(params, "_meta"), "claudecode/toolUseId");

    if (ah_json_kind_of(id) != AH_JSON_STRING)
        return ah_err_set(err, AH_PROVIDER,
                          AH_CLAUDE
                          ": the command does not say which call it means; a newer one is needed");
    if (ah_json_kind_of(rpc) != AH_JSON_NUMBER && ah_json_kind_of(rpc) != AH_JSON_STRING)
        return ah_err_set(err, AH_PROVIDER,
                          AH_CLAUDE ": the command sent a call of a tool whose \"id\" is missing");
    return ah_claude_asked(c, id, ask, rpc, err);
}

static ah_status on_mcp(ah_claude *c, ah_slice ask, ah_slice message, ah_err *err)
{
    static const char hello[] =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":"
        "{\"listChanged\":true}},\"serverInfo\":{\"name\":\"" AH_CLAUDE_SERVER "\",\"version\":\"1\"}}";
    static const char unknown[] = "{\"code\":-32601,\"message\":\"Method not found\"}";
    ah_slice method, rpc, params;
    const ah_json_wanted want[] = {{"method", &method}, {"id", &rpc}, {"params", &params}};

    ah_json_members(message, want, 3);
    if (ah_json_string_is(method, "tools/call"))
        return ask_call(c, ask, rpc, params, err);
    if (ah_json_string_is(method, "tools/list"))
        return list_tools(c, ask, rpc, err);
    if (ah_json_string_is(method, "initialize"))
        put_rpc(c, ask, rpc, "result", ah_slice_of(hello));
    else if (!rpc.p || ah_json_string_is(method, "ping"))
        put_rpc(c, ask, rpc, "result", ah_slice_of("{}"));
    else
        put_rpc(c, ask, rpc, "error", ah_slice_of(unknown));
    return AH_OK;
}

static bool is_ours(ah_slice name)
{
    size_t n = sizeof AH_CLAUDE_PREFIX - 1;

    return ah_json_kind_of(name) == AH_JSON_STRING && name.n >= n + 2 &&
           memcmp(name.p + 1, AH_CLAUDE_PREFIX, n) == 0;
}

/* The run decides about our tools when they are called; others must not run. */
static void on_permission(ah_claude *c, ah_slice ask, ah_slice asked)
{
    ah_slice input = ah_json_member(asked, "input");

    put_answer(c, ask);
    if (is_ours(ah_json_member(asked, "tool_name")))
        ah_buf_fmt(&c->out, "{\"behavior\":\"allow\",\"updatedInput\":%.*s}}}\n",
                   AH_FMT(input.p ? input : ah_slice_of("{}")));
    else
        ah_buf_str(&c->out, "{\"behavior\":\"deny\",\"message\":\"This tool is not available.\"}}}\n");
}

static ah_status on_request(ah_claude *c, ah_slice line, ah_err *err)
{
    ah_slice ask = ah_json_member(line, "request_id"), asked = ah_json_member(line, "request");
    ah_slice subtype = ah_json_member(asked, "subtype");
    ah_status st = AH_OK;

    if (ah_json_kind_of(ask) != AH_JSON_STRING)
        return ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": the command sent a request without an id");
    if (ah_json_string_is(subtype, "mcp_message"))
        st = on_mcp(c, ask, ah_json_member(asked, "message"), err);
    else if (ah_json_string_is(subtype, "can_use_tool"))
        on_permission(c, ask, asked);
    else if (ah_json_string_is(subtype, "hook_callback")) {
        put_answer(c, ask);
        ah_buf_str(&c->out, "{}}}\n");
    } else
        ah_buf_fmt(
            &c->out,
            "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":%.*s,"
            "\"error\":\"not supported by this host\"}}\n",
            AH_FMT(ask));
    return st;
}

/* -- the model's message ---------------------------------------------------------------------------- */

/* Gives on an event; the names of our tools without what the command puts before them. */
static void give_on(ah_claude_news *news, ah_slice event)
{
    ah_slice name = ah_json_member(ah_json_member(event, "content_block"), "name");
    size_t n = sizeof AH_CLAUDE_PREFIX - 1;

    news->event[0] = event;
    if (!is_ours(name))
        return;
    news->event[0].n = (size_t)(name.p + 1 - event.p);
    news->event[1] = (ah_slice){name.p + 1 + n, (size_t)(event.p + event.n - (name.p + 1 + n))};
}

static void end_message(ah_claude *c, ah_claude_news *news)
{
    c->listening = false;
    c->sound = news->ended = true;
}

/* A message with calls ends here; one without ends with the turn, whose result may be an error. */
static void on_event(ah_claude *c, ah_slice line, ah_claude_news *news)
{
    ah_slice event = ah_json_member(line, "event"), type = ah_json_member(event, "type");
    ah_slice parent = ah_json_member(line, "parent_tool_use_id");
    ah_slice stop = ah_json_member(ah_json_member(event, "delta"), "stop_reason");

    if (ah_json_kind_of(parent) == AH_JSON_STRING) /* of an agent within */
        return;
    if (ah_json_string_is(type, "message_delta"))
        c->calling = ah_json_string_is(stop, "tool_use");
    if (!ah_json_string_is(type, "message_stop"))
        give_on(news, event);
    else if (c->calling)
        end_message(c, news);
}

/* -- how a turn ends --------------------------------------------------------------------------------- */

static ah_slice first_of(ah_slice list)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    return t.kind == AH_JSON_ARRAY ? ah_json_skip(&r, ah_json_next(&r)) : (ah_slice){NULL, 0};
}

static int status_of(ah_slice line, const char *member)
{
    ah_json_num n = {0};

    return ah_json_number(ah_json_member(line, member), &n) && n.is_int && n.i > 0 && n.i < 1000
               ? (int)n.i
               : 0;
}

/* The command has tried again what is worth it: nothing is by us. */
static ah_status fail(const ah_claude *c, ah_slice line, ah_slice said, ah_err *err)
{
    int status = status_of(line, "api_error_status");
    ah_full full = {.is = false};
    ah_buf b, words;

    ah_buf_init(&b, c->mem, AH_CLAUDE_MAX_OUT);
    ah_buf_init(&words, c->mem, AH_CLAUDE_MAX_OUT);
    if (!ah_json_string(said, &b))
        ah_json_string(ah_json_member(line, "subtype"), &b);
    if (ah_buf_ok(&b)) {
        ah_excerpt(ah_buf_slice(&b), c->secrets, MAX_SAID, &words);
        full = ah_full_judge_text(c->mem, status, ah_buf_slice(&b));
    }
    ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": %.*s%s",
               AH_FMT(ah_buf_ok(&words) ? ah_buf_slice(&words) : ah_slice_of("out of memory")),
               full.is         ? AH_FULL_ADVICE
               : status == 401 ? "; check api_key or ANTHROPIC_API_KEY, or log in with `claude`"
                               : "");
    ah_buf_clear(&b);
    ah_buf_clear(&words);
    err->phase = AH_PHASE_RESPONSE;
    err->http_status = status;
    if (full.is)
        ah_full_tell(&full, err);
    return err->status;
}

/* Notes the cost of the turn: the command counts all of its turns together. */
static void note_cost(ah_claude *c, ah_slice total, ah_claude_news *news)
{
    ah_usage u = {.cost = 0};
    ah_json_num n;
    int64_t turn;

    if (ah_json_kind_of(total) != AH_JSON_NUMBER || !ah_json_number(total, &n) ||
        !ah_usage_price(&u, n.d))
        return;
    turn = u.cost > c->cost ? u.cost - c->cost : 0;
    c->cost = u.cost;
    snprintf(news->cost, sizeof news->cost,
             "{\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"cost\":%lld.%09lld}}",
             (long long)(turn / AH_COST_UNIT), (long long)(turn % AH_COST_UNIT));
    news->event[0] = ah_slice_of(news->cost);
}

static ah_status on_result(ah_claude *c, ah_slice line, ah_claude_news *news, ah_err *err)
{
    ah_slice said = ah_json_member(line, "result");
    ah_slice denied = ah_json_member(first_of(ah_json_member(line, "permission_denials")), "tool_name");

    c->turn = c->listing = false;
    ah_claude_forget(c);
    if (ah_json_kind_of(ah_json_member(line, "is_error")) == AH_JSON_TRUE)
        return fail(c, line, said.p ? said : first_of(ah_json_member(line, "errors")), err);
    if (ah_json_kind_of(denied) == AH_JSON_STRING)
        snprintf(news->warning, sizeof news->warning, AH_CLAUDE ": the command refused to run %.*s",
                 denied.n > 80 ? 80 : AH_FMT(denied));
    note_cost(c, ah_json_member(line, "total_cost_usd"), news);
    end_message(c, news);
    return AH_OK;
}

static void on_init(ah_claude *c, ah_slice line)
{
    ah_json_reader r = ah_json_read(ah_json_member(line, "capabilities"));
    ah_json_token t = ah_json_next(&r);

    if (t.kind != AH_JSON_ARRAY)
        return;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r))
        c->capable = c->capable || ah_json_token_is(t, "sdk_mcp_tools_list_changed");
}

static void on_retry(ah_slice line, ah_claude_news *news)
{
    ah_slice attempt = ah_json_member(line, "attempt"), most = ah_json_member(line, "max_retries");
    ah_slice delay = ah_json_member(line, "retry_delay_ms");

    snprintf(news->warning, sizeof news->warning,
             AH_CLAUDE ": HTTP %d; the command tries again in %.*s ms (%.*s of %.*s)",
             status_of(line, "error_status"), delay.n > 9 ? 9 : AH_FMT(delay),
             attempt.n > 9 ? 9 : AH_FMT(attempt), most.n > 9 ? 9 : AH_FMT(most));
}

static ah_status on_answer(const ah_claude *c, ah_slice line, ah_err *err)
{
    ah_slice response = ah_json_member(line, "response");

    if (!ah_json_string_is(ah_json_member(response, "subtype"), "error"))
        return AH_OK;
    return fail(c, response, ah_json_member(response, "error"), err);
}

static ah_status take_line(ah_claude *c, ah_slice line, ah_claude_news *news, ah_err *err)
{
    ah_slice type = ah_json_member(line, "type"), subtype = ah_json_member(line, "subtype");
    bool event = ah_json_string_is(type, "stream_event"), result = ah_json_string_is(type, "result");

    if ((event || result) && !c->listening) {
        news->hold = true;
        return AH_OK;
    }
    if (ah_json_string_is(type, "control_request"))
        return on_request(c, line, err);
    if (ah_json_string_is(type, "control_response"))
        return on_answer(c, line, err);
    if (ah_json_string_is(type, "control_cancel_request"))
        ah_claude_withdrawn(c, ah_json_member(line, "request_id"));
    else if (event)
        on_event(c, line, news);
    else if (result)
        return on_result(c, line, news, err);
    else if (ah_json_string_is(subtype, "init"))
        on_init(c, line);
    else if (ah_json_string_is(subtype, "api_retry"))
        on_retry(line, news);
    return AH_OK;
}

/* Halves of characters may stand in events, whose reader joins or refuses them. */
static ah_status check_line(const ah_claude *c, ah_slice line, ah_err *err)
{
    static const char what[] = AH_CLAUDE ": a line of the command";
    const ah_shape *shape;
    ah_slice type;
    size_t halves = 0;
    ah_status st = ah_json_check_piece_err(c->mem, line, &halves, what, err);
    ah_buf said;

    if (st != AH_OK)
        return st;
    if (ah_json_kind_of(line) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": a line of the command is no JSON object");
    type = ah_json_member(line, "type");
    shape = ah_json_string_is(type, "stream_event") ? &event_line
            : ah_json_string_is(type, "result")     ? &result_line
                                                    : NULL;
    if (halves && shape != &event_line)
        return ah_json_check_err(c->mem, line, what, err);
    ah_buf_init(&said, c->mem, MAX_FAULT);
    if (shape && !ah_shape_fits(shape, line, 0, NULL, &said))
        st = ah_err_set(err, AH_PROVIDER, AH_CLAUDE ": a line of the command's %.*s",
                        AH_FMT(ah_buf_slice(&said)));
    ah_buf_clear(&said);
    return st;
}

ah_status ah_claude_line(ah_claude *c, ah_slice line, ah_claude_news *news, ah_err *err)
{
    ah_status st;

    *news = (ah_claude_news){.hold = false};
    line = ah_slice_trim(line);
    if (line.n == 0)
        return AH_OK;
    st = check_line(c, line, err);
    if (st == AH_OK)
        st = take_line(c, line, news, err);
    if (st == AH_OK && !ah_buf_ok(&c->out))
        st = ah_buf_error(&c->out, AH_CLAUDE ": what the command is told", err);
    if (st == AH_TOOL_VALIDATION)
        st = err->status = AH_PROVIDER;
    if (st != AH_OK)
        c->sound = c->listening = false;
    return st;
}
