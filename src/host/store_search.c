/* See store_search.h. */
#include "host/store_search.h"

#include "base/json.h"
#include "host/open_store.h"
#include "host/store_look.h"

typedef struct search {
    const ah_mem *mem;
    ah_store *engine;
    const ah_search_query *q;
    ah_buf *out;
    size_t n;
    ah_buf title, title_of; /* of the conversation of the last hit */
    ah_buf plain;           /* the snippet without marks */
} search;

static bool wants(void *ud, ah_slice stream, ah_slice label)
{
    const search *s = ud;

    (void)stream;
    return ah_label_is_of(s->mem, label, s->q->folder);
}

/* Removes the marks, and appends where they were. */
static ah_status put_marks(search *s, ah_slice snippet, ah_err *err)
{
    size_t n = 0;

    ah_buf_reset(&s->plain, 0);
    for (size_t i = 0; i < snippet.n; i++) {
        if (snippet.p[i] == AH_STORE_FROM)
            ah_buf_fmt(s->out, "%s[%zu", n++ ? "," : "", s->plain.len + 1);
        else if (snippet.p[i] == AH_STORE_TO)
            ah_buf_fmt(s->out, ",%zu]", s->plain.len);
        else
            ah_buf_char(&s->plain, snippet.p[i]);
    }
    return ah_buf_ok(&s->plain) ? AH_OK : ah_err_nomem(err);
}

/* Reads the title of a conversation, unless it is that of the hit before. */
static ah_status find_title(search *s, ah_slice stream, ah_err *err)
{
    if (s->n > 0 && ah_slice_eq(ah_buf_slice(&s->title_of), stream))
        return AH_OK;
    ah_buf_reset(&s->title_of, 0);
    ah_buf_put(&s->title_of, stream);
    ah_buf_reset(&s->title, 0);
    if (!ah_buf_ok(&s->title_of))
        return ah_err_nomem(err);
    return ah_store_put_beginning(s->mem, s->engine, stream, false, &s->title, err);
}

static ah_status put_hit(void *ud, const ah_store_hit *hit, ah_err *err)
{
    search *s = ud;
    ah_buf *out = s->out;
    ah_status st = find_title(s, hit->stream, err);

    if (st != AH_OK)
        return st;
    if (!ah_buf_ok(&s->title))
        return ah_err_nomem(err);
    ah_buf_str(out, s->n++ ? ",{\"id\":" : "{\"id\":");
    ah_json_put_string(out, hit->stream);
    ah_buf_put(out, ah_buf_slice(&s->title));
    ah_buf_fmt(out, ",\"number\":%lld,\"time\":%lld,\"role\":\"%.*s\",\"marks\":[",
               (long long)hit->number, (long long)hit->time, AH_FMT(hit->role));
    if ((st = put_marks(s, hit->snippet, err)) != AH_OK)
        return st;
    ah_buf_str(out, "],\"snippet\":");
    ah_json_put_string(out, ah_buf_slice(&s->plain));
    ah_buf_char(out, '}');
    if (!ah_buf_ok(out))
        return ah_buf_error(out, "the list of hits", err);
    return s->n < s->q->limit ? AH_OK : AH_CANCELLED;
}

ah_status ah_open_store_search(ah_host *h, ah_open_store *store, const ah_search_query *q,
                               ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(store);
    search s = {.mem = h->mem, .engine = e, .q = q, .out = out};
    ah_store_search how = {.words = q->words, .best = q->best, .found = put_hit, .ud = &s};
    ah_status st;

    if (!e->vt->search)
        return ah_err_set(err, AH_USAGE,
                          "this store cannot be searched: only stores in files of SQLite can");
    if (q->folder.p)
        how.wants = wants;
    ah_buf_init(&s.title, h->mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&s.title_of, h->mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&s.plain, h->mem, AH_STORE_MAX_RECORD);
    ah_buf_char(out, '[');
    st = e->vt->search(e, &how, err);
    ah_buf_char(out, ']');
    if (st == AH_CANCELLED)
        st = AH_OK;
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the list of hits", err);
    ah_buf_clear(&s.title);
    ah_buf_clear(&s.title_of);
    ah_buf_clear(&s.plain);
    return st;
}

/* -- the wait ---------------------------------------------------------------------------------- */

static void on_prepared(ah_store_append *a, const ah_err *err)
{
    ah_search_wait *w = (ah_search_wait *)(void *)((char *)a - offsetof(ah_search_wait, append));

    w->waits = false;
    w->store->host->appends--;
    w->err = *err;
    w->done(w);
}

bool ah_search_wait_begin(ah_search_wait *w, ah_open_store *s, void (*done)(ah_search_wait *w))
{
    if (!s->engine->vt->prepare)
        return false;
    *w = (ah_search_wait){
        .append.done = on_prepared, .store = ah_open_store_ref(s), .waits = true, .done = done};
    s->host->appends++;
    s->engine->vt->prepare(s->engine, &w->append);
    return true;
}

void ah_search_wait_end(ah_search_wait *w)
{
    if (w->waits) {
        w->store->engine->vt->leave(w->store->engine, &w->append);
        w->store->host->appends--;
    }
    w->waits = false;
    ah_open_store_unref(w->store);
    w->store = NULL;
}
