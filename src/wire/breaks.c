/* Compares the segments of two requests by hashes; see breaks.h. */
#include "wire/breaks.h"

static uint64_t hash_segments(const ah_segment *s, size_t n, const ah_buf *in, uint64_t h)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t len = s[i].n;

        h = ah_slice_hash_on(h, (ah_slice){(const char *)&len, sizeof len});
        h = ah_slice_hash_on(h, (ah_slice){in->data + s[i].at, s[i].n});
    }
    return h;
}

/* Hashes the head's segments of one kind. Deferred tools, which lie between them, are not in the
 * cached prefix. */
static uint64_t hash_head(const ah_wire *w, ah_segment_kind kind)
{
    uint64_t h = AH_HASH_BEGIN;

    for (size_t i = 0; i < w->n_head; i++)
        if (w->segment[i].kind == kind)
            h = hash_segments(&w->segment[i], 1, &w->head, h);
    return h;
}

static uint64_t hash_body(const ah_wire *w, size_t n)
{
    return hash_segments(w->segment + w->n_head, n, &w->body, AH_HASH_BEGIN);
}

static uint64_t hash_value(uint64_t h, ah_slice value)
{
    return ah_slice_hash_on(ah_slice_hash_on(h, ah_slice_of(value.p ? "+" : "-")), value);
}

/* Hashes what a cache belongs to: provider, model and endpoint. Adapters of a program may differ in
 * more than these, so the adapter's address is included. */
static uint64_t hash_model(const ah_wire *w)
{
    const ah_adapter *a = w->adapter;
    const ah_text *of[] = {a->provider, a->model, a->endpoint};
    uint64_t h = AH_HASH_BEGIN;

    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        h = ah_slice_hash_on(ah_slice_hash_on(h, ah_text_slice(of[i])), ah_slice_of("/"));
    if (a->vt->exchange)
        h = ah_slice_hash_on(h, (ah_slice){(const char *)&a, sizeof(const ah_adapter *)});
    return hash_value(h, w->settings.model);
}

static ah_last_request sent_now(const ah_wire *w)
{
    ah_last_request now = w->sent;

    now.entries = w->done;
    now.n_body = w->n_body;
    now.body_gone = false;
    if (w->redo_head) {
        now.tools = hash_head(w, AH_SEGMENT_TOOL);
        now.system = hash_head(w, AH_SEGMENT_SYSTEM);
        now.model = hash_model(w);
        now.settings = hash_value(AH_HASH_BEGIN, w->settings.options.text);
        now.settings = hash_value(now.settings, w->settings.output);
    }
    return now;
}

void ah_break_forget_body(ah_wire *w)
{
    if (w->sent.body_gone)
        return;
    w->sent.body = hash_body(w, w->sent.n_body);
    w->sent.body_gone = true;
}

static bool begins_alike(const ah_wire *w)
{
    const ah_last_request *was = &w->sent;

    return !was->body_gone || (w->n_body >= was->n_body && hash_body(w, was->n_body) == was->body);
}

void ah_break_cause(const ah_wire *w, ah_break_causes *c, ah_break why, size_t entry)
{
    if (why == AH_BREAK_NONE || entry < w->sent.entries ||
        (c->by[why].is && why != AH_BREAK_RESTART))
        return;
    c->by[why].is = true;
    c->by[why].entry = entry;
}

static size_t first_cause(const ah_wire *w, const ah_break_causes *c)
{
    size_t entry = w->done ? w->done - 1 : 0;

    for (ah_break b = AH_BREAK_TOOLS; b <= AH_BREAK_SETTINGS; b++)
        if (c->by[b].is && c->by[b].entry < entry)
            entry = c->by[b].entry;
    return entry;
}

/* The first reason among the differences. There may be no entry for it: undoing a change may have
 * removed tools that were withdrawn earlier. */
static ah_break reason_of(const ah_wire *w, const ah_break_causes *c, const bool differs[],
                          size_t *entry)
{
    ah_break found = AH_BREAK_NONE;

    for (ah_break b = AH_BREAK_TOOLS; b <= AH_BREAK_SETTINGS; b++)
        if (differs[b] && c->by[b].is && (found == AH_BREAK_NONE || c->by[b].entry < *entry)) {
            found = b;
            *entry = c->by[b].entry;
        }
    if (found != AH_BREAK_NONE)
        return found;
    *entry = first_cause(w, c);
    for (found = AH_BREAK_TOOLS; found < AH_BREAK_SETTINGS && !differs[found]; found++)
        continue;
    return found;
}

/* True if lowering anew was requested for one of these reasons, which need no entry. */
static bool is_anew(const ah_wire *w, const bool differs[])
{
    bool bytes = differs[AH_BREAK_TOOLS] || differs[AH_BREAK_PROMPT];

    return w->anew == AH_BREAK_FALLBACK || (w->anew == AH_BREAK_TOOLS && differs[AH_BREAK_TOOLS]) ||
           (w->anew == AH_BREAK_MODEL && (bytes || differs[AH_BREAK_MODEL]));
}

ah_break ah_break_judge(ah_wire *w, const ah_break_causes *c, size_t *entry)
{
    const ah_last_request was = w->sent, now = sent_now(w);
    bool differs[AH_BREAK_SETTINGS + 1] = {
        [AH_BREAK_TOOLS] = was.tools != now.tools || !begins_alike(w),
        [AH_BREAK_PROMPT] = was.system != now.system,
        [AH_BREAK_MODEL] = was.model != now.model,
        [AH_BREAK_SETTINGS] = was.settings != now.settings,
    };
    bool any = false;

    w->sent = now;
    *entry = was.entries;
    for (ah_break b = AH_BREAK_TOOLS; b <= AH_BREAK_SETTINGS; b++)
        any = any || differs[b];
    if (w->requests == 0 || (!any && w->anew != AH_BREAK_FALLBACK))
        return AH_BREAK_NONE;
    if (c->by[AH_BREAK_RESTART].is && (differs[AH_BREAK_TOOLS] || differs[AH_BREAK_PROMPT])) {
        *entry = c->by[AH_BREAK_RESTART].entry;
        return AH_BREAK_RESTART;
    }
    return is_anew(w, differs) ? w->anew : reason_of(w, c, differs, entry);
}
