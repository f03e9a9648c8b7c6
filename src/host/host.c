/* Creating and closing a host, its clocks, its queue of jobs and the step that runs them. The
 * driver keeps the list of runs. */
#include "host/host.h"

#include <time.h>
#include <unistd.h>

#include "base/lent.h"
#include "io/clock.h"
#include "host/driver.h"
#include "host/open_store.h"
#include "host/recording.h"

/* -- functions of the program ----------------------------------------------------------- */

static void leave(ah_host *h, int n, bool looks)
{
    h->callbacks += n;
    h->looking += looks ? n : 0;
}

void ah_host_call_out(ah_host *h, bool looks)
{
    leave(h, 1, looks);
}

void ah_host_came_back(ah_host *h, bool looks)
{
    leave(h, -1, looks);
    ah_calling_out();
}

/* The program's clocks and random function are called anywhere. Lent bytes (base/lent.h) stay valid
 * across these calls, so there is no ah_calling_out. */
static int64_t program_clock(void *host)
{
    ah_host *h = host;
    int64_t now;

    leave(h, 1, true);
    now = h->cfg.clock(h->cfg.clock_ud);
    leave(h, -1, true);
    return now;
}

static int64_t program_wall(ah_host *h)
{
    int64_t now;

    leave(h, 1, true);
    now = h->cfg.wall(h->cfg.clock_ud);
    leave(h, -1, true);
    return now;
}

static uint64_t program_random(ah_host *h)
{
    uint64_t bits;

    leave(h, 1, true);
    bits = h->cfg.random(h->cfg.random_ud);
    leave(h, -1, true);
    return bits;
}

/* -- opening and closing ----------------------------------------------------------------- */

static int64_t monotonic_ms(void *ud)
{
    (void)ud;
    return ah_clock_ms();
}

static bool copy_text(const ah_mem *mem, const char *text, ah_text **out)
{
    return !text || (*out = ah_text_new(mem, ah_slice_of(text)));
}

static void close_http(ah_host *h)
{
    ah_http_free(h->http);
    ah_recording_free(h->recording);
    ah_replay_free(h->player);
    h->http = NULL;
    h->recording = NULL;
    h->player = NULL;
}

static void free_texts(ah_host *h)
{
    ah_text_unref(h->record);
    ah_text_unref(h->replay);
    ah_text_unref(h->store);
    ah_text_unref(h->conversation);
    ah_text_unref(h->conversation_base);
    ah_text_unref(h->give_up);
    ah_text_unref(h->mcp_pins);
    ah_text_unref(h->mcp_logins);
}

static void free_given(ah_host *h)
{
    pthread_cond_destroy(&h->given.news);
    pthread_mutex_destroy(&h->given.lock);
}

static bool copy_texts(ah_host *h)
{
    return copy_text(h->mem, h->cfg.record, &h->record) &&
           copy_text(h->mem, h->cfg.replay, &h->replay) &&
           copy_text(h->mem, h->cfg.store, &h->store) &&
           copy_text(h->mem, h->cfg.conversation, &h->conversation) &&
           copy_text(h->mem, h->cfg.conversation_base, &h->conversation_base) &&
           copy_text(h->mem, h->cfg.give_up, &h->give_up) &&
           copy_text(h->mem, h->cfg.mcp_pins, &h->mcp_pins) &&
           copy_text(h->mem, h->cfg.mcp_logins, &h->mcp_logins);
}

/* Warns if a replay has unused exchanges: fewer requests were made than recorded. */
static void tell_unused(ah_host *h)
{
    const char *path = "";
    size_t line = 0, n = h->player ? ah_replay_unused(h->player, &path, &line) : 0;

    if (n)
        ah_log_put(
            &h->log, AH_LOG_WARNING,
            "replay: %zu recorded exchanges of '%.300s' were not used, the first in line %zu", n,
            path, line);
}

ah_status ah_host_new(const ah_mem *mem, const ah_config *cfg, ah_host **out, ah_err *err)
{
    ah_host *h = ah_alloc(mem, sizeof *h);
    ah_status st;

    if (!h)
        return ah_err_nomem(err);
    h->mem = mem;
    h->work_ms = AH_WORK_MS;
    if (cfg)
        h->cfg = *cfg;
    h->take = h->cfg.take;
    if (!copy_texts(h)) {
        free_texts(h);
        ah_free(mem, h);
        return ah_err_nomem(err);
    }
    pthread_mutex_init(&h->given.lock, NULL);
    pthread_cond_init(&h->given.news, NULL);
    h->secrets.mem = mem;
    ah_schema_cache_init(&h->schemas, mem);
    h->log = (ah_log){.level = AH_LOG_OFF, .secrets = &h->secrets};
    h->random = (uint64_t)ah_host_wall(h) * 6364136223846793005u + (uint64_t)getpid();
    st = ah_open_stores_hide(h, h->mcp_logins, err);
    if (st == AH_OK)
        st = ah_loop_new(mem, h->cfg.clock ? program_clock : monotonic_ms, h, &h->loop, err);
    if (st != AH_OK) {
        ah_hidden_remove(h->hidden_file);
        free_texts(h);
        free_given(h);
        ah_free(mem, h);
        return st;
    }
    *out = h;
    return AH_OK;
}

void ah_host_free(ah_host *h)
{
    if (!h)
        return;
    tell_unused(h);
    ah_calling_out();
    close_http(h);
    free_texts(h);
    ah_lanes_free(h);
    ah_open_stores_free(h);
    ah_hidden_remove(h->hidden_file);
    free_given(h);
    ah_loop_free(h->loop);
    ah_secrets_clear(&h->secrets);
    ah_schema_cache_clear(&h->schemas);
    ah_free(h->mem, h);
}

int64_t ah_host_now(ah_host *h)
{
    return ah_loop_now(h->loop);
}

int64_t ah_host_wall(void *host)
{
    ah_host *h = host;
    struct timespec t;
    int64_t now;

    if (h->cfg.wall) {
        now = program_wall(h);
    } else {
        clock_gettime(CLOCK_REALTIME, &t);
        now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    }
    if (now > h->wall)
        h->wall = now;
    return h->wall;
}

bool ah_host_over(void *host, int64_t deadline)
{
    ah_host *h = host;

    return atomic_load(&h->cancel) || atomic_load(&h->stop) ||
           (deadline && ah_host_now(h) >= deadline);
}

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* For the jitter of retries only. */
double ah_host_random(void *host)
{
    ah_host *h = host;
    uint64_t bits = h->cfg.random ? program_random(h) : splitmix64(&h->random);

    return (double)(bits >> 11) / 9007199254740992.0;
}

/* Wraps the program's transport. */
static ah_status start_foreign(void *ud, ah_http *http, const ah_transport_request *request,
                               ah_err *err)
{
    ah_host *h = ud;
    ah_status st;

    (void)http;
    (void)err;
    ah_host_call_out(h, false);
    st = h->cfg.transport.start(h->cfg.transport.ud, h, request);
    ah_host_came_back(h, false);
    return st;
}

static void cancel_foreign(void *ud, uint64_t id)
{
    ah_host *h = ud;

    if (!h->cfg.transport.cancel)
        return;
    ah_host_call_out(h, false);
    h->cfg.transport.cancel(h->cfg.transport.ud, h, id);
    ah_host_came_back(h, false);
}

static ah_status open_http(ah_host *h, ah_err *err)
{
    ah_http_carrier carrier = {0};
    ah_http_tap tap = {0};
    ah_status st = AH_OK;

    if (h->replay) {
        st = ah_replay_open(h->mem, h->replay->data, &h->player, err);
        carrier = ah_replay_carrier(h->player);
    } else if (h->cfg.transport.start) {
        carrier = (ah_http_carrier){start_foreign, cancel_foreign, h, .connects = true};
    }
    if (st == AH_OK && h->record) {
        st = ah_recording_open(h->mem, h->record->data, &h->secrets, &h->recording, err);
        tap = ah_recording_tap(h->recording);
    }
    if (st == AH_OK)
        st = ah_http_new(h->mem, h->loop, &carrier, &tap, &h->http, err);
    if (st != AH_OK)
        close_http(h);
    return st;
}

ah_status ah_host_http(ah_host *h, ah_http **out, ah_err *err)
{
    ah_status st = h->http ? AH_OK : open_http(h, err);

    if (st == AH_OK)
        *out = h->http;
    return st;
}

/* -- jobs ---------------------------------------------------------------------- */

void ah_job_post(ah_host *h, ah_job *job)
{
    if (job->host)
        return;
    job->host = h;
    job->number = ++h->posted;
    job->next = NULL;
    job->prev = h->last;
    if (h->last)
        h->last->next = job;
    else
        h->first = job;
    h->last = job;
}

void ah_job_cancel(ah_job *job)
{
    ah_host *h = job->host;

    if (!h)
        return;
    if (job->prev)
        job->prev->next = job->next;
    else
        h->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        h->last = job->prev;
    job->host = NULL;
}

/* A job may post, cancel and run others (in nested drives), so each search starts at the
 * beginning. */
static ah_job *next_job(const ah_host *h, const ah_driver_run *scope)
{
    ah_job *job = h->first;

    while (job && !ah_driver_run_within(job->of, scope))
        job = job->next;
    return job;
}

bool ah_host_has_job(const ah_host *h, const ah_driver_run *scope)
{
    return next_job(h, scope) != NULL;
}

static void do_job(ah_host *h, ah_job *job)
{
    int64_t outer = h->serving;

    h->serving = ah_driver_run_id(job->of);
    job->fn(job);
    h->serving = outer;
}

/* A round runs the jobs posted before it began. Its end is a number, since the last job may be out
 * of scope, cancelled, or posted again, and a job that posts itself again would never end the
 * round. Descriptors and timers get their turn after each round. */
static bool do_jobs(ah_host *h, const ah_driver_run *scope)
{
    const uint64_t last = h->posted;
    ah_job *job;
    bool any = false;

    while ((job = next_job(h, scope)) && job->number <= last) {
        ah_job_cancel(job);
        do_job(h, job);
        any = true;
    }
    return any;
}

/* True for background calls that no run awaits, and for the runs in them. They end with their
 * agent: stopping an answer does not stop the work beside it. */
static bool outlives_cancel(const ah_host *h, const ah_driver_run *d)
{
    while (ah_driver_run_parent(d))
        d = ah_driver_run_parent(d);
    return ah_run_cfg(ah_driver_run_run(d))->ticket && !atomic_load(&h->stop);
}

static void take_cancel(ah_host *h)
{
    if (!atomic_exchange(&h->cancel, false))
        return;
    h->cancels++;
    for (ah_driver_run *d = h->runs; d; d = ah_driver_run_next(d))
        if (!outlives_cancel(h, d))
            ah_driver_run_cancel(d, AH_CANCELLED, "cancelled");
}

static int idle(ah_host *h, int timeout_ms)
{
    const ah_watcher *w = &h->cfg.watcher;

    if (!w->idle)
        return timeout_ms;
    ah_host_call_out(h, true);
    timeout_ms = w->idle(w->ud, timeout_ms);
    ah_host_came_back(h, true);
    return timeout_ms;
}

/* Calls `woken` between jobs, so that the program can take over the work of its other threads. */
static void take_wake(ah_host *h)
{
    if (!atomic_exchange(&h->wake, false) || !h->cfg.woken)
        return;
    ah_host_call_out(h, false);
    h->cfg.woken(h->cfg.woken_ud);
    ah_host_came_back(h, false);
}

/* Carried out appends end here, whatever the scope: what they let go on are jobs. */
static void take_stored(ah_host *h)
{
    if (atomic_load(&h->stored) && atomic_exchange(&h->stored, false))
        ah_open_stores_poll(h);
}

bool ah_host_idle(const ah_host *h)
{
    return !h->appends && ah_loop_idle(h->loop);
}

void ah_host_step(ah_host *h, ah_driver_run *scope, int timeout_ms)
{
    ah_driver_run *outer = h->scope;
    bool any;

    h->scope = scope;
    if (scope)
        ah_lanes_free_scope(h, scope);
    take_cancel(h);
    take_wake(h);
    if (h->first)
        idle(h, 0);
    any = do_jobs(h, scope);
    ah_loop_wait(h->loop, any ? 0 : idle(h, timeout_ms));
    take_stored(h);
    take_cancel(h);
    take_wake(h);
    h->scope = outer;
}

void ah_host_cancel(ah_host *h)
{
    atomic_store(&h->cancel, true);
    ah_loop_wake(h->loop);
}

void ah_host_stop(ah_host *h)
{
    atomic_store(&h->stop, true);
    ah_host_cancel(h);
}

void ah_host_wake(ah_host *h)
{
    atomic_store(&h->wake, true);
    ah_loop_wake(h->loop);
}
