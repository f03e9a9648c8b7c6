/* Finds the new entries, builds the head, decides the mode in which tools change, and notes the
 * entries that may break the cache (breaks.c decides). The adapter writes the bytes of an entry
 * through its vtable. */
#include "wire/lower.h"

#include "model/image.h"
#include "wire/breaks.h"
#include "wire/dispatcher.h"
#include "wire/provider.h"
#include "wire/strict.h"

enum { MAX_BODY = 256 << 20 };

const char *ah_break_name(ah_break b)
{
    static const char *const names[] = {
        NULL,      "tools_changed", "prompt_changed", "model_changed", "settings_changed",
        "restart", "fallback"};

    return names[b];
}

void ah_wire_init(ah_wire *w, const ah_mem *mem, const ah_adapter *adapter, const ah_transcript *t)
{
    *w = (ah_wire){
        .mem = mem, .adapter = adapter, .transcript = t, .mode = adapter->tool_change_mode};
    ah_offers_init(&w->offers, mem);
    ah_buf_init(&w->head, mem, MAX_BODY);
    ah_buf_init(&w->body, mem, MAX_BODY);
    ah_buf_init(&w->held, mem, MAX_BODY);
}

void ah_wire_clear(ah_wire *w)
{
    if (!w->mem)
        return;
    ah_buf_clear(&w->head);
    ah_buf_clear(&w->body);
    ah_buf_clear(&w->held);
    ah_free(w->mem, w->segment);
    ah_offers_clear(&w->offers);
    *w = (ah_wire){0};
}

/* -- segments ---------------------------------------------------------------- */

size_t ah_segment_begin(const ah_buf *b)
{
    return b->len;
}

void ah_segment_end(ah_wire *w, ah_segment_kind kind, size_t entry, const ah_buf *b, size_t at)
{
    size_t n = w->n_head + w->n_body;
    ah_segment *s = ah_grow(w->mem, w->segment, &w->cap_segments, n + 1, sizeof *s);

    if (!s) {
        w->status = AH_NOMEM;
        return;
    }
    w->segment = s;
    if (kind == AH_SEGMENT_ENTRY) {
        s[n] = (ah_segment){kind, entry, at, b->len - at};
        w->n_body++;
        return;
    }
    memmove(s + w->n_head + 1, s + w->n_head, w->n_body * sizeof *s);
    s[w->n_head++] = (ah_segment){kind, entry, at, b->len - at};
}

/* -- replaying entries --------------------------------------------------------- */

static void lower_entry(ah_wire *w, const ah_entry *e)
{
    w->adapter->vt->entry(w->adapter, w, e);
}

/* Lowers an entry made here in place of another one. */
static void lower_made(ah_wire *w, ah_entry_kind kind, const ah_buf *json)
{
    ah_entry e = {.kind = kind};

    if (ah_text_from_buf(json, "entry", &e.json, NULL) != AH_OK)
        w->status = AH_NOMEM;
    else
        lower_entry(w, &e);
    ah_text_unref(e.json);
}

static bool dispatches(const ah_wire *w)
{
    return w->mode == AH_TOOLS_DISPATCHER;
}

static bool is_empty_list(ah_slice list)
{
    ah_json_reader r = ah_json_read(list);

    return ah_json_next(&r).kind != AH_JSON_ARRAY || ah_json_next(&r).kind == AH_JSON_ARRAY_END;
}

/* True if the message has nothing that the wire can send: thoughts alone are not sent. */
static bool says_nothing(const ah_wire *w, ah_slice message)
{
    ah_slice calls, content, data;
    const ah_json_slot want[] = {{"tool_calls", &calls}, {"content", &content}};
    ah_json_reader r;
    ah_json_token t;
    bool none;
    size_t before;

    ah_json_members(message, want, 2);
    none = is_empty_list(calls) && !ah_wire_has_text(content);
    r = ah_json_read(content);
    t = ah_json_next(&r);
    for (t = ah_json_next(&r); none && t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice part = ah_json_skip(&r, t);

        if (ah_wire_part_of_ours(w->adapter, part, &data, &before))
            none = !w->adapter->vt->stands(w, data);
        else
            none = !ah_wire_has_text(ah_json_member(part, "text"));
    }
    return none;
}

/* The result of a background call is said by the user on every wire: it may be the last message,
 * and what tools return has no authority of the system. */
static void put_ticket_note(ah_slice json, ah_buf *out)
{
    ah_slice images = ah_json_member(json, "images");

    ah_buf_fmt(out, "{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":%.*s}",
               AH_FMT(ah_json_member(json, "text")));
    if (images.p && !is_empty_list(images))
        ah_buf_fmt(out, ",%.*s", AH_FMT(ah_json_inside(images)));
    ah_buf_str(out, "]}");
}

/* Lowers a message, through the dispatcher if it concerns tools that the head lacks. */
static void lower_message(ah_wire *w, const ah_entry *e)
{
    ah_buf b;

    ah_buf_init(&b, w->mem, MAX_BODY);
    if (e->kind == AH_ENTRY_NOTE && ah_entry_ticket_of(e)) {
        put_ticket_note(ah_text_slice(e->json), &b);
        lower_made(w, AH_ENTRY_USER, &b);
    } else if (dispatches(w) && ah_dispatcher_wrap(&w->offers, e, &b))
        lower_made(w, e->kind, &b);
    else
        lower_entry(w, e);
    ah_buf_clear(&b);
    w->offers.conversing = w->offers.conversing || e->kind == AH_ENTRY_ASSISTANT;
}

/* Lowers a change of tools in its place. */
static void lower_change(ah_wire *w, const ah_entry *e)
{
    ah_buf b;

    if (!dispatches(w)) {
        lower_entry(w, e);
        return;
    }
    ah_buf_init(&b, w->mem, MAX_BODY);
    ah_dispatcher_note(ah_text_slice(e->json), &b);
    lower_made(w, AH_ENTRY_NOTE, &b);
    ah_buf_clear(&b);
}

/* -- deferred tools ------------------------------------------------------------------ */

/* The last entry of the kind among the new ones; if there is none, `taken`. */
static ah_slice latest(const ah_wire *w, ah_entry_kind kind, ah_slice taken)
{
    const ah_transcript *t = w->transcript;

    for (size_t i = t->n; i > w->done; i--)
        if (t->entry[i - 1].kind == kind)
            return ah_text_slice(t->entry[i - 1].json);
    return taken;
}

static ah_search_mode searching_of(const ah_wire *w)
{
    ah_slice deferral = latest(w, AH_ENTRY_TOOLS_DEFERRED, w->deferral);
    ah_slice who = ah_json_member(deferral, "search");
    unsigned can = w->adapter->search;

    if (!deferral.p || !can || w->searching_here || w->mode == AH_TOOLS_SEARCH_PAIR ||
        w->mode == AH_TOOLS_DISPATCHER)
        return AH_SEARCH_MODE_HERE;
    if (ah_json_string_is(ah_json_member(w->transcript->settings.learned, "tool_search"), "here"))
        return AH_SEARCH_MODE_HERE;
    if (!ah_json_string_is(who, "here") &&
        can & (ah_json_string_is(who, "provider") ? AH_SEARCH_WIRE : AH_SEARCH_OWN))
        return AH_SEARCH_MODE_OWN;
    return can & AH_SEARCH_SHOWS ? AH_SEARCH_MODE_SHOWN : AH_SEARCH_MODE_HERE;
}

bool ah_wire_defers(const ah_wire *w)
{
    return w->deferral.p && w->searching != AH_SEARCH_MODE_HERE;
}

/* True if a result of search_tools shows the model the found tools in full. */
static bool shows_results(const ah_wire *w)
{
    if (w->searching == AH_SEARCH_MODE_HERE)
        return w->deferral.p && w->mode == AH_TOOLS_SEARCH_PAIR;
    return w->adapter->search & AH_SEARCH_SHOWS;
}

/* True if the wire has revealed the tools of this tools_added entry by its record of the search. */
static bool is_shown(const ah_wire *w, ah_slice json)
{
    ah_slice by = ah_json_member(json, "by"), call, found, origin;
    const ah_json_slot want[] = {{"call", &call}, {"found", &found}, {"origin", &origin}};

    if (!w->deferral.p || !ah_json_members(by, want, 3) || !found.p)
        return false;
    if (call.p)
        return shows_results(w);
    return w->searching == AH_SEARCH_MODE_OWN && origin.p && ah_wire_is_origin(w->adapter, origin);
}

/* Deferred tools are never cached, except on a wire that shows the model their names. */
static ah_break take_deferred(ah_wire *w, ah_slice json, size_t i)
{
    w->deferral = json;
    if (w->searching == AH_SEARCH_MODE_HERE)
        return AH_BREAK_NONE;
    if (!ah_offers_defer(&w->offers, json, i))
        w->status = AH_NOMEM;
    w->redo_head = true;
    return w->offers.conversing && w->adapter->search & AH_SEARCH_SHOWS ? AH_BREAK_NONE
                                                                        : AH_BREAK_TOOLS;
}

ah_slice ah_wire_found(const ah_wire *w, ah_slice id)
{
    const ah_transcript *t = w->transcript;

    if (!shows_results(w))
        return (ah_slice){NULL, 0};
    for (size_t i = w->done + 1; i < t->n; i++) {
        ah_slice json = ah_text_slice(t->entry[i].json), by;

        if (t->entry[i].kind == AH_ENTRY_ASSISTANT || t->entry[i].kind == AH_ENTRY_USER)
            break;
        by = t->entry[i].kind == AH_ENTRY_TOOLS_ADDED ? ah_json_member(json, "by")
                                                      : (ah_slice){NULL, 0};
        if (by.p && ah_slice_eq(ah_json_member(by, "call"), id) && ah_json_member(by, "found").p)
            return json;
    }
    return (ah_slice){NULL, 0};
}

bool ah_wire_left_out(const ah_wire *w, ah_slice data, const char *const *types)
{
    ah_slice type = ah_json_member(data, "type");

    if (!w->deferral.p || w->searching == AH_SEARCH_MODE_OWN)
        return false;
    while (*types && !ah_json_string_is(type, *types))
        types++;
    return *types != NULL;
}

static ah_break take_tools(ah_wire *w, const ah_entry *e, size_t i)
{
    ah_tool_change_mode mode = w->mode;
    ah_slice json = ah_text_slice(e->json);
    bool added = e->kind == AH_ENTRY_TOOLS_ADDED, hid = ah_wire_hides(w);
    unsigned effect;

    if (!added)
        effect = ah_offers_remove(&w->offers, mode, json, i);
    else if (!ah_offers_add(&w->offers, mode, json, i, is_shown(w, json), &effect))
        w->status = AH_NOMEM;
    w->redo_head = w->redo_head || effect & AH_OFFER_LIST || hid || ah_wire_hides(w);
    if (effect & AH_OFFER_ENTRY)
        lower_change(w, e);
    if (!(effect & AH_OFFER_HEAD))
        return AH_BREAK_NONE;
    return w->offers.conversing && mode == AH_TOOLS_RESTART ? AH_BREAK_RESTART : AH_BREAK_TOOLS;
}

static bool is_same(ah_slice was, ah_slice is)
{
    return was.p ? ah_slice_eq(was, is) : !is.p;
}

/* The facts learned of a model are not part of the request's head. */
static ah_break take_settings(ah_wire *w, ah_slice entry)
{
    ah_model_settings was = w->settings, *now = &w->settings;

    ah_model_settings_read(entry, now);
    if (!is_same(was.model, now->model))
        return AH_BREAK_MODEL;
    return is_same(was.options.text, now->options.text) && is_same(was.output, now->output)
               ? AH_BREAK_NONE
               : AH_BREAK_SETTINGS;
}

/* Takes in one entry; returns why the head may change. */
static ah_break take(ah_wire *w, size_t i)
{
    const ah_entry *e = &w->transcript->entry[i];
    ah_slice json = ah_text_slice(e->json);

    switch (e->kind) {
    case AH_ENTRY_SETTINGS:
        return take_settings(w, json);
    case AH_ENTRY_TOOLS_ADDED:
    case AH_ENTRY_TOOLS_REMOVED:
        return take_tools(w, e, i);
    case AH_ENTRY_TOOLS_DEFERRED:
        return take_deferred(w, json, i);
    case AH_ENTRY_PROMPT:
        w->system = ah_json_member(json, "text");
        w->system_entry = i;
        return AH_BREAK_PROMPT;
    case AH_ENTRY_ASSISTANT:
        if (w->adapter->vt->stands && says_nothing(w, json))
            w->offers.conversing = true;
        else
            lower_message(w, e);
        return AH_BREAK_NONE;
    case AH_ENTRY_TOOL_RESULT:
    case AH_ENTRY_NOTE:
    case AH_ENTRY_USER:
    case AH_ENTRY_COMPACTED:
        lower_message(w, e);
        return AH_BREAK_NONE;
    case AH_ENTRY_STRATEGY:
    case AH_ENTRY_KINDS:
        break;
    }
    return AH_BREAK_NONE;
}

static void make_head(ah_wire *w)
{
    if (w->n_head)
        memmove(w->segment, w->segment + w->n_head, w->n_body * sizeof *w->segment);
    w->n_head = 0;
    ah_buf_reset(&w->head, 0);
    w->heads++;
    w->adapter->vt->head(w->adapter, w);
}

/* Discards what was lowered, but not what was sent. */
static void begin_anew(ah_wire *w)
{
    if (w->requests > 0)
        ah_break_forget_body(w);
    w->done = w->n_head = w->n_body = 0;
    w->settings = (ah_model_settings){.text = {NULL, 0}};
    w->system = w->deferral = (ah_slice){NULL, 0};
    w->redo_head = true;
    w->sweeping = false;
    ah_offers_clear(&w->offers);
    ah_buf_reset(&w->head, 0);
    ah_buf_reset(&w->body, 0);
    ah_buf_reset(&w->held, 0);
    w->group = 0;
    w->images = 0;
    w->pictured = false;
    w->extras = 0;
    w->lowerings++;
}

void ah_wire_use(ah_wire *w, const ah_adapter *adapter, ah_break why)
{
    w->adapter = adapter;
    w->mode = adapter->tool_change_mode;
    w->trying = w->searching_here = w->searched = false;
    w->trying_without = 0;
    w->noted = (ah_noted_request){0};
    begin_anew(w);
    if (w->requests > 0)
        w->anew = why;
}

/* -- features left out -------------------------------------------------------------- */

const ah_lack ah_lacks[AH_LACKS] = {{AH_MODEL_ENCRYPTED, "encrypted_reasoning"},
                                    {AH_MODEL_OUTPUT, "native_output"},
                                    {AH_MODEL_THINKS, "reasoning"},
                                    {AH_MODEL_STRICT, "strict_tools"}};

unsigned ah_wire_learned_lacking(ah_slice learned)
{
    unsigned all = 0;

    for (int i = 0; learned.p && i < AH_LACKS; i++)
        if (ah_json_kind_of(ah_json_member(learned, ah_lacks[i].name)) == AH_JSON_FALSE)
            all |= ah_lacks[i].what;
    return all;
}

bool ah_wire_lacks(const ah_wire *w, unsigned what)
{
    return (w->lacking & what) != 0;
}

ah_strict_rules ah_wire_strict(const ah_wire *w)
{
    return ah_wire_lacks(w, AH_MODEL_STRICT) ? AH_STRICT_NONE : w->adapter->strict_tools;
}

unsigned ah_wire_asks(const ah_wire *w)
{
    unsigned can = w->adapter->asks, all = 0;
    bool thinks = can & AH_MODEL_THINKS && w->settings.options.reasoning.p;

    if (can & AH_MODEL_ENCRYPTED &&
        (thinks || ah_model_can(&w->adapter->known, AH_MODEL_ENCRYPTED, false)))
        all |= AH_MODEL_ENCRYPTED;
    if (ah_wire_output(w).p)
        all |= AH_MODEL_OUTPUT;
    if (thinks)
        all |= AH_MODEL_THINKS;
    if (ah_strict_asked(w))
        all |= AH_MODEL_STRICT;
    return all & ~w->lacking;
}

/* -- the mode in which tools change ------------------------------------------------ */

static ah_tool_change_mode mode_named(ah_slice word, ah_tool_change_mode otherwise)
{
    for (int m = 0; ah_tool_change_mode_names[m]; m++)
        if (ah_json_string_is(word, ah_tool_change_mode_names[m]))
            return (ah_tool_change_mode)m;
    return otherwise;
}

static ah_tool_change_mode mode_of(const ah_wire *w, ah_slice learned)
{
    ah_tool_change_mode mode = w->adapter->tool_change_mode;

    if (w->trying)
        return w->mode;
    if (mode == AH_TOOLS_RESTART)
        return mode;
    return mode_named(ah_json_member(learned, "tool_change_mode"), mode);
}

/* Leaving something out changes the head, and tools that are defined in the body. */
static void settle_mode(ah_wire *w)
{
    ah_slice learned = w->transcript->settings.learned;
    ah_tool_change_mode mode = mode_of(w, learned), before = w->mode;
    unsigned lacking = w->trying_without | ah_wire_learned_lacking(learned);
    ah_search_mode searching;
    bool same;

    w->mode = mode;
    searching = searching_of(w);
    same = mode == before && searching == w->searching;
    if (same && lacking == w->lacking)
        return;
    w->searching = searching;
    w->lacking = lacking;
    begin_anew(w);
    if (w->requests > 0 && w->anew == AH_BREAK_NONE)
        w->anew = same ? AH_BREAK_SETTINGS : AH_BREAK_TOOLS;
}

void ah_wire_try_without(ah_wire *w, unsigned what)
{
    w->trying_without |= what;
}

void ah_wire_try(ah_wire *w, bool trying, ah_tool_change_mode mode)
{
    w->trying = trying;
    if (!trying || mode == w->mode)
        return;
    w->mode = mode;
    begin_anew(w);
    w->anew = AH_BREAK_TOOLS;
}

void ah_wire_search_here(ah_wire *w)
{
    w->searching_here = true;
}

bool ah_wire_is_native(const ah_wire *w)
{
    bool always = w->mode == AH_TOOLS_REFERENCE || w->mode == AH_TOOLS_SEARCH_PAIR;

    if (w->mode == AH_TOOLS_RESTART || w->mode == AH_TOOLS_APPEND ||
        w->mode == AH_TOOLS_DISPATCHER || w->mode == AH_TOOLS_LIST_CHANGED)
        return false;
    for (size_t i = 0; i < w->offers.n; i++)
        if (w->offers.tool[i].late)
            return true;
    return w->extras || (always && ah_wire_has_tools(w));
}

/* -- size ---------------------------------------------------------------------- */

int64_t ah_wire_most_input(const ah_wire *w)
{
    int64_t window = w->adapter->known.window, most = 0;
    ah_slice body[3];

    if (w->pictured) /* how many tokens an image is depends on the model */
        return window ? window : -1;
    for (size_t i = 0, n = ah_wire_body(w, body); i < n; i++)
        most += (int64_t)body[i].n;
    return most + (ah_wire_has_tools(w) || ah_wire_output(w).p ? AH_WIRE_UNSEEN : 0);
}

int64_t ah_wire_most_output(const ah_wire *w)
{
    const ah_adapter *a = w->adapter;
    ah_json_num said = {0};

    if (a->vt->length)
        return a->vt->length(w);
    if (ah_json_number(w->settings.options.max_tokens, &said) && said.is_int && said.i > 0)
        return said.i;
    return a->known.output ? a->known.output : -1;
}

/* -- images -------------------------------------------------------------------- */

/* An image in a user's message for which the wire has no place is an error, never left out
 * silently. */
static ah_status check_image(const ah_wire *w, const ah_image *image, size_t part, ah_err *err)
{
    const ah_adapter *a = w->adapter;
    bool url = image->url.p != NULL;

    if (w->images > AH_IMAGES_MAX)
        return ah_err_set(
            err, AH_USAGE,
            "the conversation holds more than %d MiB of images (base64), of which part %zu "
            "of entry %zu is one too many; begin another conversation, or send smaller ones",
            AH_IMAGES_MAX >> 20, part, w->done);
    if (w->transcript->entry[w->done].kind == AH_ENTRY_TOOL_RESULT ||
        (a->images & (url ? AH_IMAGES_URL : AH_IMAGES_DATA)))
        return AH_OK;
    return ah_err_set(
        err, AH_USAGE, "part %zu of entry %zu is an image%s, and %s/%s takes no images%s%s", part,
        w->done, url ? " by url" : "", a->provider->data, a->model->data, url ? " by url" : "",
        url && a->images & AH_IMAGES_DATA ? "; give its bytes: ah.image(path)" : "");
}

static ah_status check_images(ah_wire *w, ah_err *err)
{
    const ah_entry *e = &w->transcript->entry[w->done];
    bool result = e->kind == AH_ENTRY_TOOL_RESULT;
    ah_json_reader r;
    ah_json_token t;
    ah_status st = AH_OK;
    ah_image image;

    if (!result && e->kind != AH_ENTRY_USER)
        return AH_OK;
    r = ah_json_read(ah_json_member(ah_text_slice(e->json), result ? "images" : "content"));
    t = ah_json_next(&r);
    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    t = ah_json_next(&r);
    for (size_t at = 1; st == AH_OK && t.kind == AH_JSON_OBJECT; at++, t = ah_json_next(&r)) {
        if (!ah_image_of(ah_json_skip(&r, t), &image))
            continue;
        w->images += image.data.n;
        w->pictured = true;
        st = check_image(w, &image, at, err);
    }
    return st;
}

/* Removed tools are no longer declared if the head changes anyway. */
static void sweep(ah_wire *w)
{
    size_t before = w->offers.n;

    if (w->sweeping)
        ah_offers_sweep(&w->offers, w->mode);
    w->redo_head = w->redo_head || w->offers.n < before;
}

static ah_status take_all(ah_wire *w, ah_break_causes *causes, ah_err *err)
{
    w->redo_head = w->redo_head || w->requests == 0;
    for (; w->done < w->transcript->n; w->done++) {
        ah_status st = check_images(w, err);
        ah_break b;

        if (st == AH_OK && w->transcript->entry[w->done].kind == AH_ENTRY_ASSISTANT) {
            sweep(w); /* the entries up to here were sent in one request */
            w->sweeping = false;
        }
        b = st == AH_OK ? take(w, w->done) : AH_BREAK_NONE;
        if (st != AH_OK)
            return st;
        if (b == AH_BREAK_NONE)
            continue;
        w->redo_head = true;
        w->sweeping = w->sweeping || !w->offers.conversing || !ah_mode_names_tools(w->mode);
        sweep(w);
        ah_break_cause(w, causes, b, w->done);
    }
    sweep(w);
    if (w->redo_head)
        make_head(w);
    if (w->status != AH_OK)
        return ah_err_nomem(err);
    if (!ah_buf_ok(&w->head))
        return ah_buf_error(&w->head, "the request's head", err);
    if (!ah_buf_ok(&w->held))
        return ah_buf_error(&w->held, "the request", err);
    return ah_buf_ok(&w->body) ? AH_OK : ah_buf_error(&w->body, "the request", err);
}

ah_status ah_wire_update(ah_wire *w, ah_break *brk, size_t *entry, ah_err *err)
{
    ah_break_causes causes = {.by = {{0}}};
    ah_status st;

    w->status = AH_OK;
    settle_mode(w);
    st = take_all(w, &causes, err);
    if (st != AH_OK) { /* the update may be half done */
        begin_anew(w);
        return st;
    }
    *brk = ah_break_judge(w, &causes, entry);
    w->redo_head = false;
    w->anew = AH_BREAK_NONE;
    w->requests++;
    return AH_OK;
}

/* The search tool is not declared if the provider searches. */
static const ah_offer *next_declared(const ah_wire *w, size_t *at)
{
    bool own = ah_wire_defers(w) && w->searching == AH_SEARCH_MODE_OWN;
    const ah_offer *t;

    do
        t = ah_offers_head(&w->offers, w->mode, at);
    while (t && own && ah_json_string_is(t->name, AH_SEARCH_TOOLS));
    return t;
}

ah_slice ah_wire_tool(const ah_wire *w, size_t *at, ah_segment_kind *kind, size_t *entry)
{
    const ah_offer *t = next_declared(w, at);

    *kind = t && (t->late || t->deferred || w->mode == AH_TOOLS_LIST_CHANGED) ? AH_SEGMENT_DEFERRED
                                                                              : AH_SEGMENT_TOOL;
    *entry = t ? t->entry : 0;
    if (t)
        return t->spec;
    /* The fixed tool comes after the initial ones; *at is past them all once it was returned. */
    if (dispatches(w) && *at == w->offers.n) {
        *at += 1;
        return ah_slice_of(ah_dispatcher_spec);
    }
    return (ah_slice){NULL, 0};
}

bool ah_wire_has_tools(const ah_wire *w)
{
    size_t at = 0, entry;
    ah_segment_kind kind;

    return ah_wire_tool(w, &at, &kind, &entry).p != NULL;
}

/* True if the tool is declared in the request. Late tools of a dispatcher are not. */
static bool is_declared(const ah_wire *w, const ah_offer *t)
{
    return !t->late || !dispatches(w);
}

bool ah_wire_hides(const ah_wire *w)
{
    const ah_offers *o = &w->offers;

    if (!w->adapter->lists_allowed || w->mode == AH_TOOLS_SEARCH_PAIR || ah_wire_defers(w))
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (o->tool[i].gone && is_declared(w, &o->tool[i]) &&
            ah_offers_find(o, o->tool[i].name)->gone)
            return true;
    return false;
}

ah_slice ah_wire_allowed(const ah_wire *w, size_t *at)
{
    while (*at < w->offers.n) {
        const ah_offer *t = &w->offers.tool[(*at)++];

        if (!t->gone && is_declared(w, t))
            return t->name;
    }
    if (dispatches(w) && *at == w->offers.n) {
        *at += 1;
        return ah_slice_of("\"" AH_DISPATCHER "\"");
    }
    return (ah_slice){NULL, 0};
}

ah_slice ah_wire_output(const ah_wire *w)
{
    ah_slice schema = w->settings.output;
    bool carried = schema.p && !ah_wire_lacks(w, AH_MODEL_OUTPUT) &&
                   ah_adapter_carries(w->adapter, schema) &&
                   !(w->adapter->output_unseen && ah_wire_has_tools(w));

    return carried ? schema : (ah_slice){NULL, 0};
}

size_t ah_wire_body(const ah_wire *w, ah_slice out[3])
{
    const ah_adapter_vt *vt = w->adapter->vt;
    ah_slice body = ah_buf_slice(&w->body);

    /* Every entry begins with a comma, which the first after a bracket must not have. */
    if (body.n && w->head.len && w->head.data[w->head.len - 1] == '[')
        body = (ah_slice){body.p + 1, body.n - 1};
    out[0] = ah_buf_slice(&w->head);
    out[1] = body;
    out[2] = ah_slice_of(w->group && vt->tail_open ? vt->tail_open : vt->tail);
    return 3;
}
