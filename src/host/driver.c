/* Serves the exchanges and calls of each driven run, by the ids of its needs. Decides nothing:
 * run.c decides what a run needs next, host.c when to wait. */
#include "host/driver.h"

#include "run/recorder.h"

struct ah_driver_run {
    ah_host *host;
    ah_run *run;
    ah_driver_run *parent, *next, **link; /* next, link: in host->runs */
    ah_driver_run_fn done;
    void *ud;
    int depth;         /* 1: in no other run */
    int deepest;       /* depth that no run within it may exceed */
    int64_t cancelled; /* when its cancellation was first seen; 0: not cancelled */
    bool told;         /* its end was reported */
    bool at_work;      /* an outer C call is serving its needs */
    ah_job job;
    ah_timer timer;
    ah_exchange *x; /* a run has one exchange at a time */
    ah_place place; /* from the wait for it to the end of the exchange */
};

enum { MAX_SCRATCH = 1 << 20 };

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* -- exchanges -------------------------------------------------------------------- */

static void free_exchange(ah_exchange *x)
{
    ah_host *h = x->of->host;

    if (x->of->x == x) {
        x->of->x = NULL;
        ah_place_leave(&x->of->place);
    }
    ah_job_cancel(&x->job);
    ah_timer_unset(&x->linger);
    ah_http_free_transfer(x->transfer);
    ah_adapter_unref(x->adapter);
    ah_buf_clear(&x->scratch);
    ah_free(h->mem, x);
}

void ah_exchange_feed(ah_exchange *x, ah_slice bytes)
{
    ah_run_feed(x->of->run, x->id, bytes);
    ah_driver_run_wake(x->of);
}

void ah_exchange_end(ah_exchange *x, const ah_err *err)
{
    ah_driver_run *d = x->of;

    ah_run_end(d->run, x->id, err);
    if (!err)
        ah_place_answered(&d->place);
    free_exchange(x);
    ah_driver_run_wake(d);
}

static ah_slice header(const void *ud, const char *name)
{
    return ah_transfer_header(ud, name);
}

static void tell_head(ah_exchange *x)
{
    ah_response_head head = {.status = ah_transfer_status(x->transfer),
                             .header = header,
                             .ud = x->transfer,
                             .wall_ms = ah_host_wall(x->of->host)};

    x->head_told = true;
    ah_place_heard(&x->of->place, &head);
    ah_run_head(x->of->run, x->id, &head);
}

static void lingered(ah_timer *t)
{
    ah_exchange *x = FROM(t, ah_exchange, linger);

    x->over = true;
    ah_job_post(x->of->host, &x->job);
}

/* The message is complete, but the response has not ended: waits a little for its end, so that the
 * connection can be reused. */
static void linger(ah_exchange *x)
{
    int64_t ms = ah_run_linger(x->of->run, x->id);

    if (ms >= 0)
        ah_timer_set(x->of->host->loop, &x->linger, ah_host_now(x->of->host) + ms);
}

/* Takes the bytes out of the transfer, since feeding calls observers, and more bytes may come
 * meanwhile. */
static void feed_body(ah_exchange *x)
{
    ah_buf body = ah_transfer_take(x->transfer);

    if (body.len)
        ah_run_feed(x->of->run, x->id, ah_buf_slice(&body));
    ah_transfer_give_back(x->transfer, &body);
}

/* Passes on what the transfer has. */
static void on_news(ah_job *job)
{
    ah_exchange *x = FROM(job, ah_exchange, job);
    ah_err err;

    ah_run_tick(x->of->run, ah_host_now(x->of->host));
    if (!x->head_told && ah_transfer_status(x->transfer))
        tell_head(x);
    feed_body(x);
    ah_driver_run_wake(x->of);
    if (ah_transfer_ended(x->transfer, &err)) {
        if (err.status != AH_OK)
            err.phase = x->head_told ? AH_PHASE_RESPONSE : AH_PHASE_REQUEST;
        ah_exchange_end(x, &err);
    } else if (x->over) {
        ah_exchange_end(x, NULL);
    } else {
        linger(x);
    }
}

static void note_news(void *ud, ah_transfer *t)
{
    ah_exchange *x = ud;

    (void)t;
    ah_job_post(x->of->host, &x->job);
}

static ah_status start_http(ah_exchange *x, ah_err *err)
{
    ah_run *run = x->of->run;
    const ah_adapter *a = ah_run_cfg(run)->adapter;
    ah_http_request req = {0};
    ah_http *http = NULL;
    ah_status st = ah_host_http(x->of->host, &http, err);

    if (st == AH_OK)
        st = a->vt->request(a, ah_run_cfg(run)->wire, &x->scratch, &req, err);
    if (st != AH_OK)
        return st;
    req.n_body = ah_wire_body(ah_run_cfg(run)->wire, req.body);
    return ah_http_start(http, &req, note_news, x, &x->transfer, err);
}

/* True if runs that wait for `d` hold places, or cannot be driven to their ends now. */
static bool is_waited_for(const ah_driver_run *d, const ah_adapter *a)
{
    if (d->host->scope)
        return true;
    for (d = d->parent; d; d = d->parent)
        if (ah_place_in_lane(&d->place, a))
            return true;
    return false;
}

/* A replay has no provider, and waits for none. */
static void ask_for_place(ah_driver_run *d, const ah_need *need)
{
    const ah_run_config *cfg = ah_run_cfg(d->run);
    const ah_place_def def = {.adapter = cfg->adapter,
                              .tokens = need->tokens,
                              .tries = need->tries,
                              .most = cfg->limits.max_in_flight,
                              .exempt = is_waited_for(d, cfg->adapter)};
    ah_wait_reason why = AH_WAIT_NONE;
    int64_t until = 0;

    ah_place_leave(&d->place);
    if (d->host->replay)
        ah_run_placed(d->run);
    else if (!ah_place_ask(d->host, d, &d->place, &def, &why, &until))
        ah_run_cancel(d->run, AH_NOMEM, "out of memory");
    else if (why != AH_WAIT_NONE && !(why == AH_WAIT_BACKOFF && need->tries)) /* see `retry` */
        ah_run_waits(d->run, ah_wait_reason_name(why),
                     until ? (double)(until - ah_host_now(d->host)) / 1000 : -1,
                     why == AH_WAIT_LIMIT && until);
}

int64_t ah_driver_back_off(void *host, ah_run *run, int64_t advised, int tries)
{
    ah_driver_run *d = ah_run_owner(run);

    (void)host;
    return ah_place_back_off(&d->place, advised, tries);
}

static void start_exchange(ah_driver_run *d, uint32_t id)
{
    ah_adapter *a = ah_run_cfg(d->run)->adapter;
    ah_exchange *x = ah_alloc(d->host->mem, sizeof *x);
    ah_err err;

    if (!x) {
        ah_err_nomem(&err);
        ah_place_leave(&d->place);
        ah_run_end(d->run, id, &err);
        return;
    }
    *x = (ah_exchange){.of = d,
                       .adapter = ah_adapter_ref(a),
                       .id = id,
                       .job = {.fn = on_news, .of = d},
                       .linger.fn = lingered};
    ah_buf_init(&x->scratch, d->host->mem, MAX_SCRATCH);
    d->x = x;
    if (a->vt->exchange)
        a->vt->exchange(a, x);
    else if (start_http(x, &err) != AH_OK)
        ah_exchange_end(x, &err);
}

static void stop_exchange(ah_driver_run *d)
{
    if (!d->x)
        return;
    if (d->x->adapter->vt->stop)
        d->x->adapter->vt->stop(d->x->adapter, d->x);
    free_exchange(d->x);
}

/* Stops a call and takes back what its handler changed, once neither the handler nor a run that it
 * waits for is running: overlays of those runs are based on the call's. A call that has succeeded
 * by then keeps its changes. */
static void stop_call(ah_call *c)
{
    const ah_hooks *hooks = ah_run_cfg(c->run)->hooks;

    if (c->asking) {
        c->approver->stop_asking(c->approver->ud, c);
        return;
    }
    if (c->state == AH_CALL_SEEKING) {
        hooks->stop_lost(hooks->ud, c);
        return;
    }
    if (c->state == AH_CALL_ANSWERED && c->success)
        return;
    if (c->tool->vt->stop)
        c->tool->vt->stop(c->tool, c);
    ah_overlay_drop(&c->overlay);
}

/* -- needs -------------------------------------------------------------------------- */

/* NULL: the run is not recorded. */
static const ah_record_sink *sink_of(const ah_driver_run *d)
{
    const ah_recorder *r = ah_run_cfg(d->run)->recorder;

    return r && r->sink.put ? &r->sink : NULL;
}

static void serve(ah_driver_run *d, const ah_need *need)
{
    const ah_hooks *hooks = ah_run_cfg(d->run)->hooks;
    const ah_record_sink *sink = sink_of(d);

    switch (need->kind) {
    case AH_NEED_SETUP:
        ah_run_begin_setup(d->run);
        break;
    case AH_NEED_STOP_SETUP:
        ah_run_stop_setup(d->run);
        break;
    case AH_NEED_PLACE:
        ask_for_place(d, need);
        break;
    case AH_NEED_STOP_PLACE:
        ah_place_leave(&d->place);
        break;
    case AH_NEED_EXCHANGE:
        start_exchange(d, need->id);
        break;
    case AH_NEED_STOP_EXCHANGE:
        stop_exchange(d);
        break;
    case AH_NEED_TOOL:
        need->call->tool->vt->start(need->call->tool, need->call);
        break;
    case AH_NEED_ASK:
        need->call->approver->ask(need->call->approver->ud, need->call,
                                  ah_text_slice(need->call->reason));
        break;
    case AH_NEED_CHECK:
        hooks->check(hooks->ud, d->run);
        break;
    case AH_NEED_STOP_CHECK:
        hooks->stop_checking(hooks->ud, d->run);
        break;
    case AH_NEED_STOP_CALL:
        stop_call(need->call);
        break;
    case AH_NEED_LOST:
        hooks->lost(hooks->ud, need->call, ah_text_slice(need->call->key),
                    ah_text_slice(need->call->args));
        break;
    case AH_NEED_RECORD:
        sink->flush(sink->ud, d->run, need->call, need->id, need->effect);
        break;
    case AH_NEED_STOP_RECORD:
        sink->forget(sink->ud, d->run, need->call);
        break;
    case AH_NEED_TIMER:
        ah_timer_set(d->host->loop, &d->timer, need->at);
        break;
    case AH_NEED_WAIT:
    case AH_NEED_DONE:
    case AH_NEEDS:
        break;
    }
}

static void rest(const ah_driver_run *d)
{
    ah_adapter *a = ah_run_cfg(d->run)->adapter;

    if (a->vt->rest && !ah_run_cfg(d->run)->ticket) /* the wire is that of the agent's runs */
        a->vt->rest(a, ah_run_cfg(d->run)->wire);
}

/* Serves the run's needs, up to its end if it ends. */
static void work(ah_driver_run *d)
{
    ah_need need;

    d->at_work = true;
    ah_run_tick(d->run, ah_host_now(d->host));
    while (ah_run_next(d->run, &need)) {
        serve(d, &need);
        ah_run_tick(d->run, ah_host_now(d->host)); /* a handler may have taken time */
    }
    d->at_work = false;
    if (need.kind != AH_NEED_DONE || d->told)
        return;
    d->told = true;
    ah_timer_unset(&d->timer);
    ah_place_leave(&d->place); /* of a request that was not sent */
    rest(d);
    d->done(d->ud, d);
}

/* A handler that it has begun may wait below, in a drive of everything: its needs are served when
 * that has returned. */
static void pump(ah_job *job)
{
    ah_driver_run *d = FROM(job, ah_driver_run, job);

    if (!d->at_work)
        work(d);
}

bool ah_driver_run_at_work(const ah_driver_run *d)
{
    return d->at_work;
}

void ah_driver_run_settle(ah_driver_run *d, ah_status status, const char *why)
{
    ah_driver_run_cancel(d, status, why);
    if (!d->at_work)
        work(d);
}

static void on_timer(ah_timer *t)
{
    ah_driver_run_wake(FROM(t, ah_driver_run, timer));
}

void ah_driver_run_wake(ah_driver_run *d)
{
    ah_job_post(d->host, &d->job);
}

static void wake(void *owner)
{
    ah_driver_run_wake(owner);
}

/* -- public functions ----------------------------------------------------------------- */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The smallest of the limits that hold for it: its own and those of the runs around it. */
static int deepest_of(const ah_driver_run *d)
{
    int own = ah_run_cfg(d->run)->limits.max_nested;
    int around = d->parent ? d->parent->deepest : AH_MAX_DEPTH;

    return own > 0 ? smaller(around, d->depth + own - 1) : around;
}

ah_status ah_driver_run_new(ah_host *h, ah_run *run, ah_driver_run *parent, ah_driver_run_fn done,
                            void *ud, ah_driver_run **out, ah_err *err)
{
    ah_driver_run *d = ah_alloc(h->mem, sizeof *d);

    if (!d) {
        ah_run_free(run);
        return ah_err_nomem(err);
    }
    *d = (ah_driver_run){
        .host = h, .run = run, .parent = parent, .done = done, .ud = ud, .timer.fn = on_timer};
    d->depth = ah_driver_run_depth(parent) + 1;
    d->deepest = deepest_of(d);
    ah_run_set_owner(run, d, wake);
    ah_run_set_around(run, parent ? parent->run : NULL);
    d->job = (ah_job){.fn = pump, .of = d};
    d->next = h->runs;
    d->link = &h->runs;
    if (d->next)
        d->next->link = &d->next;
    h->runs = d;
    ah_driver_run_wake(d);
    *out = d;
    return AH_OK;
}

/* The run around a background call is not its parent: that is the run that has begun it, or none.
 */
static void orphan_children(ah_driver_run *d)
{
    for (ah_driver_run *c = d->host->runs; c; c = c->next) {
        if (c->parent == d)
            c->parent = d->parent;
        if (ah_run_around(c->run) == d->run)
            ah_run_set_around(c->run, d->parent ? d->parent->run : NULL);
    }
}

void ah_driver_run_free(ah_driver_run *d)
{
    const ah_record_sink *sink;
    ah_need need;
    bool told;

    if (!d)
        return;
    told = d->told;
    d->told = true;
    ah_run_mute(d->run);
    ah_run_cancel(d->run, AH_CANCELLED, "the run was dropped");
    while (ah_run_next(d->run, &need))
        serve(d, &need);
    if ((sink = sink_of(d)) && sink->forget)
        sink->forget(sink->ud, d->run, NULL);
    stop_exchange(d);
    ah_place_leave(&d->place);
    if (!told)
        rest(d);
    orphan_children(d);
    ah_job_cancel(&d->job);
    ah_timer_unset(&d->timer);
    *d->link = d->next;
    if (d->next)
        d->next->link = d->link;
    ah_run_free(d->run);
    ah_free(d->host->mem, d);
}

void *ah_driver_run_ud(const ah_driver_run *d, ah_driver_run_fn done)
{
    return d->done == done ? d->ud : NULL;
}

ah_run *ah_driver_run_run(const ah_driver_run *d)
{
    return d->run;
}

int64_t ah_driver_run_id(const ah_driver_run *d)
{
    return d ? ah_run_cfg(d->run)->id : 0;
}

int ah_driver_run_depth(const ah_driver_run *d)
{
    return d ? d->depth : 0;
}

int ah_driver_run_deepest(const ah_driver_run *d)
{
    return d ? d->deepest : AH_MAX_DEPTH;
}

ah_driver_run *ah_driver_run_next(const ah_driver_run *d)
{
    return d->next;
}

ah_driver_run *ah_driver_run_parent(const ah_driver_run *d)
{
    return d->parent;
}

/* Also cancels the runs inside this one: if the host drives one of them, that run must end first.
 */
void ah_driver_run_cancel(ah_driver_run *d, ah_status status, const char *why)
{
    ah_run_cancel(d->run, status, why);
    ah_driver_run_wake(d);
    for (ah_driver_run *c = d->host->runs; c; c = c->next)
        if (c != d && ah_driver_run_within(c, d)) {
            ah_run_cancel(c->run, status, "the enclosing run was cancelled");
            ah_driver_run_wake(c);
        }
}

static ah_driver_run *find(const ah_host *h, int64_t id)
{
    ah_driver_run *at = id ? h->runs : NULL;

    while (at && ah_run_cfg(at->run)->id != id)
        at = at->next;
    return at;
}

int64_t ah_driver_run_ended(ah_host *h, int64_t id, int64_t now, ah_status *why)
{
    int64_t since = 0, at;

    for (ah_driver_run *of = find(h, id); of; of = of->parent) {
        if (ah_run_cancelling(of->run) && !of->cancelled)
            of->cancelled = now;
        at = of->cancelled;
        if (at && (!since || at < since)) {
            since = at;
            *why = AH_CANCELLED;
        }
        at = ah_run_cfg(of->run)->deadline;
        if (at && now >= at && (!since || at < since)) {
            since = at;
            *why = AH_DEADLINE;
        }
    }
    return since;
}

bool ah_driver_run_within(const ah_driver_run *d, const ah_driver_run *scope)
{
    if (!scope || !d)
        return true;
    while (d && d != scope)
        d = d->parent;
    return d != NULL;
}
