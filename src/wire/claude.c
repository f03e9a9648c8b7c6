/* Writes to the `claude` command; see claude.h. Its lines are read in claude_read.c. Not
 * here: the process, waiting, and anything of the run. */
#include <strings.h>

#include "wire/anthropic.h"
#include "wire/claude_talk.h"
#include "wire/reading.h"
#include "wire/scripted.h"

enum { MAX_TOOLS = 64 << 20 };

typedef struct request {
    ah_slice system, tools, entries;
} request;

static request parts_of(ah_slice text)
{
    request r;
    const ah_json_wanted want[] = {{"system", &r.system}, {"tools", &r.tools}, {"entries", &r.entries}};

    ah_json_members(text, want, 3);
    if (ah_json_string_is(ah_json_member(ah_json_member(text, "options"), "tool_choice"), "none"))
        r.tools = ah_slice_of("[]");
    return r;
}

void ah_claude_init(ah_claude *c, const ah_mem *mem, bool relists)
{
    *c = (ah_claude){.mem = mem, .relists = relists};
    ah_buf_init(&c->out, mem, AH_CLAUDE_MAX_OUT);
    ah_buf_init(&c->tools, mem, MAX_TOOLS);
}

void ah_claude_clear(ah_claude *c)
{
    ah_claude_forget(c);
    ah_free(c->mem, c->call);
    ah_buf_clear(&c->out);
    ah_buf_clear(&c->tools);
    c->call = NULL;
    c->cap = 0;
}

/* -- entries --------------------------------------------------------------------------------- */

typedef struct entry {
    ah_slice json, type;
} entry;

static bool next_entry(ah_json_reader *r, entry *e)
{
    ah_json_token t = ah_json_next(r);

    if (t.kind != AH_JSON_OBJECT)
        return false;
    e->json = ah_json_skip(r, t);
    e->type = ah_json_member(e->json, "type");
    return true;
}

static bool is(const entry *e, const char *type)
{
    return ah_json_string_is(e->type, type);
}

static ah_json_reader read_entries(const request *q)
{
    ah_json_reader r = ah_json_read(q->entries);

    ah_json_next(&r);
    return r;
}

/* Hash of the first n; *r is behind them then. *n is how many there were. */
static uint64_t hash_entries(const request *q, ah_json_reader *r, size_t *n)
{
    size_t most = *n;
    entry e = {.json = {q->entries.p, 0}};

    *r = read_entries(q);
    for (*n = 0; *n < most && next_entry(r, &e);)
        ++*n;
    return ah_slice_hash((ah_slice){q->entries.p, (size_t)(e.json.p + e.json.n - q->entries.p)});
}

static bool may_relist(const ah_claude *c)
{
    return c->relists && c->capable;
}

bool ah_claude_fits(const ah_claude *c, ah_slice text)
{
    request q = parts_of(text);
    size_t n = c->known;
    ah_claude_options o;
    ah_json_reader r;
    entry e;
    bool results = false;
    ah_err err;

    if (ah_claude_options_of(text, &o, &err) != AH_OK || !ah_claude_options_same(&o, &c->options))
        return false;
    if (!c->sound || c->listening || ah_slice_hash(q.system) != c->head ||
        hash_entries(&q, &r, &n) != c->said || n != c->known)
        return false;
    if (!may_relist(c) && !ah_slice_eq(q.tools, ah_buf_slice(&c->tools)))
        return false;
    if (!next_entry(&r, &e) || !is(&e, "assistant"))
        return false;
    while (next_entry(&r, &e)) {
        if (is(&e, "assistant")) /* somebody else's */
            return false;
        results = results || is(&e, "tool_result");
    }
    return results == c->turn;
}

/* -- lines ------------------------------------------------------------------------------------- */

static void put_request(ah_claude *c, const char *subtype)
{
    ah_buf_fmt(
        &c->out,
        "{\"type\":\"control_request\",\"request_id\":\"host_%d\",\"request\":{\"subtype\":\"%s\"",
        ++c->requests, subtype);
}

static void put_initialize(ah_claude *c, ah_slice system)
{
    put_request(c, "initialize");
    ah_buf_fmt(&c->out, ",\"sdkMcpServers\":[\"" AH_CLAUDE_SERVER "\"],\"systemPrompt\":[");
    ah_buf_put(&c->out, system);
    ah_buf_str(&c->out, "]}}\n");
}

static void put_relist(ah_claude *c)
{
    put_request(c, "mcp_message");
    ah_buf_str(&c->out, ",\"server_name\":\"" AH_CLAUDE_SERVER "\",\"message\":{\"jsonrpc\":\"2.0\","
                        "\"method\":\"notifications/tools/list_changed\"}}}\n");
}

static void put_user(ah_claude *c, const ah_buf *blocks)
{
    ah_buf_str(&c->out, "{\"type\":\"user\",\"session_id\":\"\",\"parent_tool_use_id\":null,"
                        "\"message\":{\"role\":\"user\",\"content\":[");
    ah_buf_put(&c->out, ah_buf_slice(blocks));
    ah_buf_str(&c->out, "]}}\n");
}

/* -- what others say ----------------------------------------------------------------------------
 * The command has no place for notes and for a conversation that is told: they stand in tags of ours,
 * within what else is said. So nobody else's text may hold these tags as they are. */

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* True if one of our tags begins here, or ends. Case does not count for a model. */
static bool is_our_tag(ah_slice text)
{
    static const char *const names[] = {"system", "conversation"};
    size_t at = text.n > 1 && text.p[1] == '/' ? 2 : 1;

    for (size_t i = 0; text.n && *text.p == '<' && i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);

        if (text.n >= at + n && strncasecmp(text.p + at, names[i], n) == 0 &&
            (text.n == at + n || !is_letter(text.p[at + n])))
            return true;
    }
    return false;
}

static void put_harmless(ah_buf *b, ah_slice text, const char *bracket)
{
    for (size_t i = 0, n; i < text.n; i += n) {
        bool ours = is_our_tag((ah_slice){text.p + i, text.n - i});

        for (n = 1; !ours && i + n < text.n && text.p[i + n] != '<';)
            n++;
        if (ours)
            ah_buf_str(b, bracket);
        else
            ah_buf_add(b, text.p + i, n);
    }
}

/* A string value, between these two. */
static void put_said(ah_buf *b, const char *before, ah_slice value, const char *after)
{
    ah_buf text, harmless;

    ah_buf_init(&text, b->mem, b->max);
    ah_buf_init(&harmless, b->mem, b->max);
    ah_json_string(value, &text);
    ah_buf_str(&harmless, before);
    put_harmless(&harmless, ah_buf_slice(&text), "&lt;");
    ah_buf_str(&harmless, after);
    ah_json_put_string(b, ah_buf_slice(&harmless));
    if (!ah_buf_ok(&text) || !ah_buf_ok(&harmless))
        b->status = ah_buf_ok(&text) ? harmless.status : text.status;
    ah_buf_clear(&text);
    ah_buf_clear(&harmless);
}

static void begin_block(ah_buf *b)
{
    ah_buf_str(b, b->len ? "," : "");
    ah_buf_str(b, "{\"type\":\"text\",\"text\":");
}

static void put_image(ah_buf *b, const ah_image *image)
{
    ah_buf_str(b, b->len ? "," : "");
    ah_put_anthropic_image(b, image);
}

/* Puts what the user, or a handler's note, says: blocks of a user message. */
static void put_blocks(ah_buf *b, const entry *e)
{
    ah_json_reader r = ah_json_read(ah_json_member(e->json, "content"));
    ah_json_token t = ah_json_next(&r);

    if (is(e, "note")) {
        begin_block(b);
        put_said(b, "<system>", ah_json_member(e->json, "text"), "</system>");
        ah_buf_char(b, '}');
        return;
    }
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice part = ah_json_skip(&r, t), text = ah_json_member(part, "text");
        ah_image image;

        if (ah_image_of(part, &image)) {
            put_image(b, &image);
        } else if (ah_has_text(text)) {
            begin_block(b);
            put_said(b, "", text, "");
            ah_buf_char(b, '}');
        }
    }
}

/* -- a fresh process: the conversation as text --------------------------------------------------- */

/* A conversation that is told: its lines, and the images in it, which stand behind them. */
typedef struct past {
    ah_buf lines, images; /* images: blocks */
    size_t n;             /* images so far */
} past;

static const ah_adapter taking = {.images = AH_CLAUDE_IMAGES};

/* ,"images":[1,2]: their numbers, where there are some. */
static void put_images(past *p, const entry *e)
{
    bool result = is(e, "tool_result");
    ah_json_reader r = ah_json_read(ah_json_member(e->json, result ? "images" : "content"));
    ah_json_token t = ah_json_next(&r);
    bool any = false;
    ah_image image;

    if (t.kind != AH_JSON_ARRAY)
        return;
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        if (!ah_image_of(ah_json_skip(&r, t), &image) || (result && image.url.p))
            continue;
        ah_buf_fmt(&p->lines, "%s%zu", any ? "," : ",\"images\":[", ++p->n);
        put_image(&p->images, &image);
        any = true;
    }
    ah_buf_str(&p->lines, any ? "]" : "");
}

/* One line of the history; line ends within are escaped, so that no text can look like another. */
static void put_history(past *p, const entry *e)
{
    ah_buf *b = &p->lines;
    ah_slice calls = ah_json_member(e->json, "tool_calls"), name = ah_json_member(e->json, "name");

    if (is(e, "tool_result")) {
        ah_buf_fmt(b, "{\"role\":\"tool\",\"id\":%.*s,\"name\":%.*s,\"content\":",
                   AH_FMT(ah_json_member(e->json, "id")), AH_FMT(name));
        ah_put_result_text(&taking, b, "", e->json);
    } else if (is(e, "note")) {
        ah_buf_str(b, "{\"role\":\"system\",\"content\":");
        ah_buf_put(b, ah_json_member(e->json, "text"));
    } else {
        ah_buf_fmt(b, "{\"role\":%.*s,\"content\":", AH_FMT(e->type));
        ah_put_joined_text(b, ah_json_member(e->json, "content"));
    }
    if (calls.p) {
        ah_buf_str(b, ",\"calls\":");
        ah_buf_put(b, calls);
    }
    put_images(p, e);
    ah_buf_str(b, "}\n");
}

/* The number of entries that belong to the past: those up to the last that is not the user's. */
static size_t past_of(const request *q)
{
    ah_json_reader r = read_entries(q);
    size_t most = 0, n = 0;
    entry e;

    while (next_entry(&r, &e)) {
        n++;
        if (is(&e, "assistant") || is(&e, "tool_result"))
            most = n;
    }
    return most;
}

static void put_past(ah_buf *blocks, const past *p)
{
    ah_buf text;

    ah_buf_init(&text, blocks->mem, blocks->max);
    ah_buf_str(&text, "<conversation>\n");
    put_harmless(&text, ah_buf_slice(&p->lines), "\\u003c"); /* they are JSON */
    ah_buf_str(&text,
               "</conversation>\n\nAbove is our conversation so far, one JSON object a line. The calls "
               "in it were made and need not be made again. Go on with it; do not speak of its form.");
    if (p->n)
        ah_buf_str(&text, " The images in it follow, in the order of their numbers.");
    begin_block(blocks);
    ah_json_put_string(blocks, ah_buf_slice(&text));
    ah_buf_char(blocks, '}');
    ah_buf_str(blocks, p->n ? "," : "");
    ah_buf_put(blocks, ah_buf_slice(&p->images));
    if (!ah_buf_ok(&text))
        blocks->status = text.status;
    ah_buf_clear(&text);
}

static void put_all(ah_buf *blocks, const request *q)
{
    ah_json_reader r = read_entries(q);
    size_t most = past_of(q);
    past p = {.n = 0};
    entry e;

    ah_buf_init(&p.lines, blocks->mem, blocks->max);
    ah_buf_init(&p.images, blocks->mem, blocks->max);
    for (size_t n = 0; n < most && next_entry(&r, &e); n++)
        put_history(&p, &e);
    if (!ah_buf_ok(&p.lines) || !ah_buf_ok(&p.images))
        blocks->status = ah_buf_ok(&p.lines) ? p.images.status : p.lines.status;
    else if (most)
        put_past(blocks, &p);
    ah_buf_clear(&p.lines);
    ah_buf_clear(&p.images);
    while (next_entry(&r, &e))
        put_blocks(blocks, &e);
    if (!blocks->len)
        ah_buf_str(blocks, "{\"type\":\"text\",\"text\":\"(empty message)\"}");
}

static ah_status begin(ah_claude *c, const request *q, ah_err *err)
{
    ah_buf blocks;
    ah_status st = AH_OK;

    ah_buf_init(&blocks, c->mem, AH_CLAUDE_MAX_OUT);
    put_all(&blocks, q);
    if (!ah_buf_ok(&blocks))
        st = ah_buf_error(&blocks, "the conversation", err);
    put_initialize(c, q->system);
    put_user(c, &blocks);
    ah_buf_clear(&blocks);
    return st;
}

/* -- going on ------------------------------------------------------------------------------------- */

/* As MCP has it. */
static void put_shown(ah_buf *b, const ah_image *image)
{
    ah_buf_fmt(b, ",{\"type\":\"image\",\"mimeType\":%.*s,\"data\":", AH_FMT(image->mime));
    ah_buf_put(b, image->data);
    ah_buf_char(b, '}');
}

static void put_result(ah_buf *b, const entry *e)
{
    ah_buf text;

    ah_buf_init(&text, b->mem, b->max);
    ah_put_result_text(&taking, &text, "", e->json);
    if (ah_buf_ok(&text))
        put_said(b, "", ah_buf_slice(&text), "");
    else
        b->status = text.status;
    ah_buf_clear(&text);
}

/* More that was said stands behind the last result: a user message would come after the turn. */
static ah_status give_result(ah_claude *c, const entry *e, const ah_buf *more, ah_err *err)
{
    bool failed = ah_json_kind_of(ah_json_member(e->json, "success")) == AH_JSON_FALSE;
    ah_json_reader r = ah_result_images(e->json);
    ah_image image;
    ah_buf b;
    ah_status st;

    ah_buf_init(&b, c->mem, AH_CLAUDE_MAX_OUT);
    ah_buf_str(&b, "{\"content\":[{\"type\":\"text\",\"text\":");
    put_result(&b, e);
    ah_buf_char(&b, '}');
    while (ah_next_shown(&taking, &r, &image))
        put_shown(&b, &image);
    ah_buf_str(&b, more && more->len ? "," : "");
    if (more)
        ah_buf_put(&b, ah_buf_slice(more));
    ah_buf_str(&b, failed ? "],\"isError\":true}" : "]}");
    st = ah_buf_ok(&b) ? ah_claude_give(c, ah_json_member(e->json, "id"), ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "a result", err);
    ah_buf_clear(&b);
    return st;
}

/* The results from *r on, `more` behind the last of them. */
static ah_status give_results(ah_claude *c, ah_json_reader r, const ah_buf *more, ah_err *err)
{
    entry e, last = {.json = {NULL, 0}};
    ah_status st = AH_OK;

    while (st == AH_OK && next_entry(&r, &e)) {
        if (!is(&e, "tool_result"))
            continue;
        if (last.json.p)
            st = give_result(c, &last, NULL, err);
        last = e;
    }
    return st == AH_OK && last.json.p ? give_result(c, &last, more, err) : st;
}

static ah_status go_on(ah_claude *c, const request *q, ah_err *err)
{
    size_t known = c->known;
    ah_json_reader r, rest;
    ah_status st = AH_OK;
    ah_buf more;
    entry e;

    hash_entries(q, &r, &known);
    next_entry(&r, &e); /* its own message */
    rest = r;
    ah_buf_init(&more, c->mem, AH_CLAUDE_MAX_OUT);
    while (next_entry(&r, &e))
        if (!is(&e, "tool_result"))
            put_blocks(&more, &e);
    if (!ah_slice_eq(q->tools, ah_buf_slice(&c->tools))) {
        put_relist(c);
        c->listing = c->turn;
    }
    if (!ah_buf_ok(&more))
        st = ah_buf_error(&more, "the request", err);
    else if (c->turn)
        st = give_results(c, rest, &more, err);
    else
        put_user(c, &more);
    ah_buf_clear(&more);
    return st;
}

ah_status ah_claude_ask(ah_claude *c, ah_slice text, ah_err *err)
{
    request q = parts_of(text);
    ah_json_reader r;
    ah_status st = c->known ? go_on(c, &q, err) : begin(c, &q, err);

    ah_buf_reset(&c->tools, 0);
    ah_buf_put(&c->tools, q.tools);
    c->known = SIZE_MAX;
    c->said = hash_entries(&q, &r, &c->known);
    c->head = ah_slice_hash(q.system);
    c->sound = c->calling = false;
    c->turn = c->listening = true;
    if (st == AH_OK && !ah_buf_ok(&c->tools))
        st = ah_buf_error(&c->tools, "the list of tools", err);
    return st == AH_OK && !ah_buf_ok(&c->out) ? ah_buf_error(&c->out, "the request", err) : st;
}

ah_status ah_claude_interrupt(ah_claude *c, ah_err *err)
{
    put_request(c, "interrupt");
    ah_buf_str(&c->out, "}}\n");
    c->sound = c->listening = false;
    return ah_buf_ok(&c->out) ? AH_OK : ah_buf_error(&c->out, "the request", err);
}

/* -- the adapter ------------------------------------------------------------------------------------ */

static void put_head(const ah_adapter *a, ah_lowered *w)
{
    ah_scripted_vt.head(a, w);
}

static void put_entry(const ah_adapter *a, ah_lowered *w, const ah_entry *e)
{
    ah_scripted_vt.entry(a, w, e);
}

static void start(ah_adapter *a, struct ah_exchange *x)
{
    ((ah_claude_owner *)a)->start((ah_claude_owner *)a, x);
}

static void stop(ah_adapter *a, struct ah_exchange *x)
{
    ((ah_claude_owner *)a)->stop((ah_claude_owner *)a, x);
}

static void leave(ah_adapter *a, const ah_lowered *w)
{
    ((ah_claude_owner *)a)->leave((ah_claude_owner *)a, w);
}

static void release(ah_adapter *a)
{
    ((ah_claude_owner *)a)->release((ah_claude_owner *)a);
}

/* It gives on events of the Messages API, a line each. */
static const ah_adapter_vt vt = {
    .name = AH_CLAUDE,
    .head = put_head,
    .entry = put_entry,
    .tail = "]}",
    .open = ah_anthropic_open,
    .head_came = ah_reading_head_came,
    .feed = ah_reading_feed,
    .end = ah_reading_end,
    .close = ah_reading_close,
    .exchange = start,
    .stop = stop,
    .leave = leave,
    .free = release,
};

static const ah_service service = {
    .name = AH_CLAUDE,
    .url = AH_CLAUDE_URL,
    .url_env = {"ANTHROPIC_BASE_URL"},
    .key_env = {"ANTHROPIC_API_KEY"},
    .keyless = true, /* who is logged in needs none */
    .lines = true,
};

ah_status ah_claude_fill(ah_claude_owner *a, ah_slice model, const ah_provider_options *o, ah_err *err)
{
    ah_status st;

    a->native.base = (ah_adapter){.vt = &vt,
                                  .mem = o->mem,
                                  .refs = 1,
                                  .stream = true,
                                  .images = AH_CLAUDE_IMAGES,
                                  .cost_told = AH_COST_AT_LAST};
    st = ah_provider_mode(o, AH_CLAUDE, 1 << AH_TOOLS_RESTART | 1 << AH_TOOLS_LIST_CHANGED,
                          AH_TOOLS_RESTART, &a->native.base.tool_change_mode, err);
    return st == AH_OK ? ah_native_fill(&a->native, &service, model, o, err) : st;
}
