/* The open stores of a host: one for each file, which all agents of the host share, and one for
 * each store in memory. An engine may finish appends on a thread of its own: it sets flags and
 * wakes the loop, and the next step of the host polls the engine. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "host/open_store.h"

#include <limits.h>
#include <stdlib.h>

#include "io/stores.h"

enum { NEWS_MS = 250 };

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* -- appends --------------------------------------------------------------------------------- */

/* Called on any thread. The order matters: the host's thread clears `appending` before it looks at
 * `woken`. */
static void on_wake(void *ud)
{
    ah_open_store *s = ud;

    atomic_store(&s->woken, true);
    if (atomic_load(&s->appending))
        return;
    atomic_store(&s->host->stored, true);
    ah_loop_wake(s->host->loop);
}

static void poll_store(ah_open_store *s)
{
    if (atomic_exchange(&s->woken, false))
        s->engine->vt->poll(s->engine);
}

void ah_open_store_append(ah_open_store *s, ah_store_append *a)
{
    s->host->appends++;
    atomic_store(&s->appending, true);
    s->engine->vt->append(s->engine, a);
    atomic_store(&s->appending, false);
    poll_store(s);
}

void ah_open_store_appended(ah_open_store *s)
{
    s->host->appends--;
    s->changed = true;
}

void ah_open_store_wait(ah_open_store *s)
{
    s->engine->vt->wait(s->engine);
    atomic_store(&s->woken, false);
    s->engine->vt->poll(s->engine);
}

/* `done` only posts jobs, so no store is closed meanwhile. */
void ah_open_stores_poll(ah_host *h)
{
    for (ah_open_store *s = h->stores; s; s = s->next)
        poll_store(s);
}

/* -- news ------------------------------------------------------------------------------------ */

/* all: also those that do not watch the records of this process. */
static void tell_watchers(ah_open_store *s, bool all)
{
    ah_open_store_ref(s);
    s->at = s->watchers;
    while (s->at) {
        ah_store_watcher *w = s->at;

        s->at = w->next;
        if (all || w->records)
            w->fn(w);
    }
    ah_open_store_unref(s);
}

static void look(ah_open_store *s)
{
    bool changed = s->changed, news = s->watchers && s->engine->vt->news(s->engine);

    s->changed = false;
    if (changed || news)
        tell_watchers(s, news);
}

static void on_news(ah_job *job)
{
    look(FROM(job, ah_open_store, news));
}

/* The timer only posts a job, since watchers may do anything. */
static void on_timer(ah_timer *t)
{
    ah_open_store *s = FROM(t, ah_open_store, timer);

    ah_timer_set(s->host->loop, t, ah_host_now(s->host) + NEWS_MS);
    ah_job_post(s->host, &s->news);
}

void ah_open_store_watch(ah_open_store *s, ah_store_watcher *w)
{
    w->next = s->watchers;
    w->link = &s->watchers;
    if (w->next)
        w->next->link = &w->next;
    else
        ah_timer_set(s->host->loop, &s->timer, ah_host_now(s->host) + NEWS_MS);
    s->watchers = w;
    w->store = s;
}

void ah_open_store_unwatch(ah_store_watcher *w)
{
    ah_open_store *s = w->store;

    if (!s)
        return;
    if (s->at == w)
        s->at = w->next;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->store = NULL;
    if (!s->watchers)
        ah_timer_unset(&s->timer);
}

ah_status ah_open_store_post(ah_open_store *s, ah_slice stream, const ah_store_message *m,
                             ah_err *err)
{
    ah_status st = s->engine->vt->post(s->engine, stream, m, err);

    if (st == AH_OK && s->watchers)
        ah_job_post(s->host, &s->news);
    return st;
}

/* -- opening and closing --------------------------------------------------------------------- */

static void close_store(ah_open_store *s)
{
    ah_timer_unset(&s->timer);
    ah_job_cancel(&s->news);
    s->engine->vt->close(s->engine);
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    ah_hidden_remove(s->hidden);
    ah_text_unref(s->path);
    ah_text_unref(s->name);
    ah_transcript_unref(s->given);
    ah_free(s->host->mem, s);
}

void ah_open_stores_free(ah_host *h)
{
    while (h->stores)
        close_store(h->stores);
}

ah_status ah_open_store_with(ah_host *h, ah_store *engine, ah_store_sync sync, ah_open_store **out,
                             ah_err *err)
{
    ah_open_store *s = ah_alloc(h->mem, sizeof *s);

    if (!s) {
        engine->vt->close(engine);
        return ah_err_nomem(err);
    }
    s->host = h;
    s->refs = 1;
    s->engine = engine;
    s->sync = sync;
    s->timer = (ah_timer){.fn = on_timer, .aside = true};
    s->news.fn = on_news;
    s->next = h->stores;
    s->link = &h->stores;
    if (s->next)
        s->next->link = &s->next;
    h->stores = s;
    engine->wake_ud = s;
    engine->wake = on_wake;
    *out = s;
    return AH_OK;
}

/* Returns the path as the system knows it. *out is NULL if there is no such file. */
static ah_status canonical(const ah_mem *mem, ah_slice path, ah_text **out, ah_err *err)
{
    ah_text *asked = ah_text_new(mem, path);
    char real[PATH_MAX];

    if (!asked)
        return ah_err_nomem(err);
    *out = NULL;
    if (realpath(asked->data, real) && !(*out = ah_text_new(mem, ah_slice_of(real)))) {
        ah_text_unref(asked);
        return ah_err_nomem(err);
    }
    ah_text_unref(asked);
    return AH_OK;
}

static ah_open_store *find_open(const ah_host *h, const ah_text *path)
{
    ah_open_store *s = h->stores;

    while (s && !(s->path && ah_slice_eq(ah_text_slice(s->path), ah_text_slice(path))))
        s = s->next;
    return s;
}

static ah_status hide(ah_open_store *s, ah_err *err)
{
    if (!s->path)
        return ah_err_set(err, AH_STORE, "the file of the store is gone");
    return ah_hidden_add(&s->host->hidden, s->host->mem, ah_text_slice(s->path), &s->hidden, err);
}

ah_status ah_open_stores_hide(ah_host *h, const ah_text *path, ah_err *err)
{
    ah_text *real = NULL;
    ah_status st = path ? canonical(h->mem, ah_text_slice(path), &real, err) : AH_OK;

    if (st == AH_OK && real)
        st = ah_hidden_add(&h->hidden, h->mem, ah_text_slice(real), &h->hidden_file, err);
    ah_text_unref(real);
    return st;
}

static ah_status open_file(ah_host *h, const ah_store_options *o, ah_open_store **out, ah_err *err)
{
    ah_open_store *s = NULL;
    ah_store *engine = NULL;
    ah_status st = ah_store_sqlite_open(h->mem, o->path, o->sync, o->create, o->force, NULL, NULL,
                                        &engine, err);

    if (st == AH_OK)
        st = ah_open_store_with(h, engine, o->sync, &s, err);
    if (st == AH_OK &&
        ((st = canonical(h->mem, o->path, &s->path, err)) != AH_OK || (st = hide(s, err)) != AH_OK))
        ah_open_store_unref(s);
    if (st == AH_OK) {
        s->bytes = o->bytes;
        *out = s;
    }
    return st;
}

static ah_status open_memory(ah_host *h, const ah_store_options *o, ah_open_store **out,
                             ah_err *err)
{
    ah_open_store *s = NULL;
    ah_store *engine = NULL;
    ah_status st = ah_store_memory_new(h->mem, NULL, NULL, &engine, err);

    if (st == AH_OK)
        st = ah_open_store_with(h, engine, o->sync, &s, err);
    if (st == AH_OK && o->name.p && (st = ah_open_store_set_name(s, o->name, err)) != AH_OK)
        ah_open_store_unref(s);
    if (st == AH_OK) {
        s->bytes = o->bytes;
        s->replays = o->replays;
        *out = s;
    }
    return st;
}

/* -- names ----------------------------------------------------------------------------------- */

static ah_open_store *find_name(const ah_host *h, ah_slice name)
{
    ah_open_store *s = h->stores;

    while (s && !(s->name && ah_slice_eq(ah_text_slice(s->name), name)))
        s = s->next;
    return s;
}

ah_status ah_open_store_set_name(ah_open_store *s, ah_slice name, ah_err *err)
{
    ah_text *text;

    if (!name.n || name.n > AH_STORE_MAX_STREAM || !ah_utf8_valid(name))
        return ah_err_set(err, AH_USAGE, "the name of a store must be 1 to %d bytes of UTF-8",
                          AH_STORE_MAX_STREAM);
    if (find_name(s->host, name))
        return ah_err_set(err, AH_USAGE, "there is another open store with the name \"%.*s\"",
                          AH_FMT(name));
    if (!(text = ah_text_new(s->host->mem, name)))
        return ah_err_nomem(err);
    ah_text_set(&s->name, text);
    return AH_OK;
}

static ah_status open_named(ah_host *h, const ah_store_options *o, ah_open_store **out, ah_err *err)
{
    ah_open_store *s = find_name(h, o->name);

    if (s)
        *out = ah_open_store_ref(s);
    else if (o->create)
        return open_memory(h, o, out, err);
    else
        return ah_err_set(
            err, AH_USAGE,
            "there is no open store with the name \"%.*s\": ah_store_open_with of the "
            "program opens one, and so does engine = \"memory\"",
            AH_FMT(o->name));
    return AH_OK;
}

/* -- opening by path ------------------------------------------------------------------------- */

ah_status ah_open_store_new(ah_host *h, const ah_store_options *o, ah_open_store **out, ah_err *err)
{
    ah_text *path = NULL;
    ah_status st;

    if (o->name.p)
        return open_named(h, o, out, err);
    if (!o->path.p)
        return open_memory(h, o, out, err);
    if (memchr(o->path.p, '\0', o->path.n))
        return ah_err_set(err, AH_USAGE, "the path of a store has a NUL byte");
    st = canonical(h->mem, o->path, &path, err);
    if (st != AH_OK)
        return st;
    *out = path ? find_open(h, path) : NULL;
    ah_text_unref(path);
    if (*out) {
        ah_open_store_ref(*out);
        return AH_OK;
    }
    return open_file(h, o, out, err);
}

ah_open_store *ah_open_store_ref(ah_open_store *s)
{
    s->refs++;
    return s;
}

void ah_open_store_unref(ah_open_store *s)
{
    if (s && --s->refs == 0)
        close_store(s);
}

void ah_open_store_lend(ah_open_store *s)
{
    s->lent++;
}

bool ah_open_store_end(ah_open_store *s)
{
    if (!s->lent)
        return false;
    s->lent--;
    ah_open_store_unref(s);
    return true;
}

void ah_open_stores_leave(ah_host *h)
{
    ah_open_store *next;

    for (ah_open_store *s = h->stores; s; s = next) {
        size_t lent = s->lent;

        next = s->next;
        while (lent--)
            ah_open_store_end(s);
    }
}

ah_store *ah_open_store_engine(ah_open_store *s)
{
    return s->engine;
}

ah_host *ah_open_store_host(const ah_open_store *s)
{
    return s->host;
}

bool ah_open_store_keeps_bytes(const ah_open_store *s)
{
    return s->bytes;
}

bool ah_open_store_replays(const ah_open_store *s)
{
    return s->replays;
}

ah_slice ah_open_store_name(const ah_open_store *s)
{
    return ah_text_slice(s->name);
}

ah_slice ah_open_store_path(const ah_open_store *s)
{
    return ah_text_slice(s->path);
}
