#include "wire/lower.h"

enum { MAX_BODY = 256 << 20 };

const char *ah_break_name(ah_break b)
{
    static const char *const names[] = {NULL, "tools_changed", "prompt_changed", "model_changed",
                                        "settings_changed"};

    return names[b];
}

void ah_lowered_init(ah_lowered *w, const ah_mem *mem, const ah_adapter *adapter, const ah_transcript *t)
{
    *w = (ah_lowered){.mem = mem, .adapter = adapter, .transcript = t};
    ah_buf_init(&w->head, mem, MAX_BODY);
    ah_buf_init(&w->body, mem, MAX_BODY);
}

void ah_lowered_clear(ah_lowered *w)
{
    if (!w->mem)
        return;
    ah_buf_clear(&w->head);
    ah_buf_clear(&w->body);
    ah_free(w->mem, w->segment);
    ah_free(w->mem, w->tool);
    *w = (ah_lowered){0};
}

/* -- segments ---------------------------------------------------------------- */

size_t ah_segment_begin(const ah_buf *b)
{
    return b->len;
}

void ah_segment_end(ah_lowered *w, ah_segment_kind kind, size_t entry, const ah_buf *b, size_t at)
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

/* -- replaying what concerns the head ------------------------------------------ */

static void offer(ah_lowered *w, ah_slice spec, size_t entry)
{
    ah_offered *t = ah_grow(w->mem, w->tool, &w->cap_tools, w->n_tools + 1, sizeof *t);

    if (!t) {
        w->status = AH_NOMEM;
        return;
    }
    w->tool = t;
    t[w->n_tools++] = (ah_offered){ah_json_member(spec, "name"), spec, entry};
}

static void add_tools(ah_lowered *w, ah_slice json, size_t entry)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        offer(w, ah_json_skip(&r, t), entry);
}

static void withdraw(ah_lowered *w, ah_slice name)
{
    for (size_t i = 0; i < w->n_tools; i++)
        if (ah_slice_eq(w->tool[i].name, name)) {
            memmove(w->tool + i, w->tool + i + 1, (--w->n_tools - i) * sizeof *w->tool);
            return;
        }
}

static void remove_tools(ah_lowered *w, ah_slice json)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "names"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r))
        withdraw(w, ah_json_skip(&r, t));
}

static ah_break settings_change(const ah_lowered *w, ah_slice now)
{
    return ah_slice_eq(ah_json_member(w->settings, "model"), ah_json_member(now, "model"))
               ? AH_BREAK_SETTINGS
               : AH_BREAK_MODEL;
}

/* Takes one entry in; says whether and why the head changes by it. */
static ah_break take(ah_lowered *w, size_t i)
{
    const ah_entry *e = &w->transcript->entry[i];
    ah_slice json = ah_text_slice(e->json);
    ah_break brk = AH_BREAK_NONE;

    switch (e->kind) {
    case AH_ENTRY_SETTINGS:
        brk = settings_change(w, json);
        w->settings = json;
        return brk;
    case AH_ENTRY_TOOLS_ADDED:
        add_tools(w, json, i);
        return AH_BREAK_TOOLS;
    case AH_ENTRY_TOOLS_REMOVED:
        remove_tools(w, json);
        return AH_BREAK_TOOLS;
    case AH_ENTRY_PROMPT:
        w->system = ah_json_member(json, "text");
        w->system_entry = i;
        return AH_BREAK_PROMPT;
    case AH_ENTRY_ASSISTANT:
    case AH_ENTRY_TOOL_RESULT:
    case AH_ENTRY_NOTE:
    case AH_ENTRY_USER:
    case AH_ENTRY_COMPACTED:
        w->adapter->vt->entry(w->adapter, w, e);
        return AH_BREAK_NONE;
    case AH_ENTRY_KINDS:
        break;
    }
    return AH_BREAK_NONE;
}

static void make_head(ah_lowered *w)
{
    if (w->n_head)
        memmove(w->segment, w->segment + w->n_head, w->n_body * sizeof *w->segment);
    w->n_head = 0;
    ah_buf_reset(&w->head, 0);
    w->adapter->vt->head(w->adapter, w);
}

ah_status ah_lowered_update(ah_lowered *w, ah_break *brk, size_t *entry, ah_err *err)
{
    bool changed = w->requests == 0;

    *brk = AH_BREAK_NONE;
    for (; w->done < w->transcript->n; w->done++) {
        ah_break b = take(w, w->done);

        changed = changed || b != AH_BREAK_NONE;
        if (b != AH_BREAK_NONE && *brk == AH_BREAK_NONE && w->requests > 0) {
            *brk = b;
            *entry = w->done;
        }
    }
    if (changed)
        make_head(w);
    w->requests++;
    if (w->status != AH_OK)
        return ah_err_nomem(err);
    if (!ah_buf_ok(&w->head))
        return ah_buf_error(&w->head, "the request's head", err);
    return ah_buf_ok(&w->body) ? AH_OK : ah_buf_error(&w->body, "the request", err);
}

size_t ah_lowered_body(const ah_lowered *w, ah_slice out[3])
{
    ah_slice body = ah_buf_slice(&w->body);

    /* every entry begins with a comma; after a bare bracket the first has none */
    if (body.n && w->head.len && w->head.data[w->head.len - 1] == '[')
        body = (ah_slice){body.p + 1, body.n - 1};
    out[0] = ah_buf_slice(&w->head);
    out[1] = body;
    out[2] = ah_slice_of(w->adapter->vt->tail);
    return 3;
}
