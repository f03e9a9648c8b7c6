/* A lane has a queue for each of its models, since providers limit each model by itself. A
 * conversation has one request at a time, so in the order of asking each has its turn once in a
 * round. A request that is sent again keeps its number, and with it its turn. The first of a queue
 * is let out when the model's limits and back-off allow, and the lane has room; among several
 * queues, the one that asked first.
 *
 * After a back-off, and after a limit that was used up, requests go out gradually: as many as
 * `window` may be sent without being accepted. The window is 1 for the first two, then as many as
 * were accepted, up to half of what was at work when the provider refused, and from there it grows
 * by 1 with each windowful. So a provider that refuses every second request gets one at a time, and
 * one that takes so many in a minute does not refuse the same run again and again. */
#include "host/lane.h"

#include "host/driver.h"

enum {
    FORGET_MS = 60000, /* after a back-off: then another one is none that repeats it */
    MAX_STREAK = 16
};

typedef struct queue {
    ah_place *first, *last;
    size_t n;
} queue;

/* Requests to one model of a lane. */
typedef struct ah_lane_model {
    struct ah_lane *lane;
    struct ah_lane_model *next, **link; /* in the lane */
    ah_text *name;
    uint64_t alone; /* of the adapter */
    queue waiting;  /* by `number`, exempt ones first */
    size_t held;    /* places */
    /* Requests without a response head so far. The numbers that heads report may not include
     * them. */
    int64_t unheard, unheard_tokens;
    ah_advice_left left[AH_ADVICE_LIMITS];
    int64_t until;             /* end of the back-off, loop clock, ms; 0: none */
    uint64_t round;            /* back-offs so far */
    int streak;                /* of them, those since a request was accepted */
    int64_t window;            /* see above; 0: no limit */
    int64_t unproven;          /* of this round: sent, and neither accepted nor over */
    int64_t accepted, refused; /* requests in this round */
    bool dry;                  /* a limit was used up when the queue was last looked at */
    bool sounding;             /* the window is for such a limit, until a head reports it anew */
    ah_timer timer;
    int64_t half;  /* up to which it grows fast */
    int64_t since; /* requests accepted since it grew */
} ah_lane_model;

typedef struct ah_lane {
    struct ah_host *host;
    struct ah_lane *next; /* in the bucket */
    uint64_t id;
    ah_lane_model *model;
    queue held;
    size_t models, crowd; /* that many models are looked through for blank ones */
    size_t waiting;       /* in all queues */
    size_t queues;        /* that are not empty */
    int least;            /* the smallest limit of its places and of what waits; 0: none */
    size_t n_least;       /* how many say it */
} ah_lane;

typedef struct ah_lane_rule {
    struct ah_lane_rule *next;
    ah_text *provider;
    int most;
} ah_lane_rule;

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

const char *ah_wait_reason_name(ah_wait_reason reason)
{
    static const char *const names[] = {[AH_WAIT_NONE] = NULL,
                                        [AH_WAIT_IN_FLIGHT] = "in_flight",
                                        [AH_WAIT_LIMIT] = "limit",
                                        [AH_WAIT_BACKOFF] = "backoff"};

    return names[reason];
}

/* -- queues ------------------------------------------------------------------------------------ */

/* Puts p behind `before`; NULL: first. */
static void put_behind(queue *q, ah_place *before, ah_place *p)
{
    p->prev = before;
    p->next = before ? before->next : q->first;
    if (p->next)
        p->next->prev = p;
    else
        q->last = p;
    if (before)
        before->next = p;
    else
        q->first = p;
    q->n++;
}

/* A request that is new has the largest number, so the walk is for those that are sent again. */
static void put_in_turn(queue *q, ah_place *p)
{
    ah_place *before = p->exempt ? NULL : q->last;

    while (before && !before->exempt && before->number > p->number)
        before = before->prev;
    put_behind(q, before, p);
}

static void take_out(queue *q, ah_place *p)
{
    if (p->prev)
        p->prev->next = p->next;
    else
        q->first = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        q->last = p->prev;
    p->next = p->prev = NULL;
    q->n--;
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void join_queue(ah_lane_model *m, ah_place *p)
{
    m->lane->queues += !m->waiting.first;
    put_in_turn(&m->waiting, p);
    m->lane->waiting++;
    m->lane->host->lanes.waiting++;
}

static void leave_queue(ah_place *p)
{
    ah_lane_model *m = p->at;

    take_out(&m->waiting, p);
    m->lane->queues -= !m->waiting.first;
    m->lane->waiting--;
    m->lane->host->lanes.waiting--;
}

/* -- the smallest limit ------------------------------------------------------------------------ */

static void count_limit(ah_lane *l, int most)
{
    if (!most || (l->least && most > l->least))
        return;
    l->n_least = most == l->least ? l->n_least + 1 : 1;
    l->least = most;
}

static void count_all(ah_lane *l, const queue *q)
{
    for (const ah_place *p = q->first; p; p = p->next)
        count_limit(l, p->most);
}

/* Costs a walk through the lane only when the last one with the smallest limit has left. */
static void drop_limit(ah_lane *l, int most)
{
    if (!most || most != l->least || --l->n_least > 0)
        return;
    l->least = 0;
    count_all(l, &l->held);
    for (const ah_lane_model *m = l->model; m; m = m->next)
        count_all(l, &m->waiting);
}

/* -- lanes and models -------------------------------------------------------------------------- */

static void free_model(ah_lane_model *m)
{
    *m->link = m->next;
    if (m->next)
        m->next->link = m->link;
    m->lane->models--;
    ah_timer_unset(&m->timer);
    ah_text_unref(m->name);
    ah_free(m->lane->host->mem, m);
}

/* True if the next request would find the same without it. */
static bool is_blank(const ah_lane_model *m, int64_t now)
{
    if (m->held || m->waiting.first || now < m->until + (m->streak ? FORGET_MS : 0))
        return false;
    for (int i = 0; i < AH_ADVICE_LIMITS; i++)
        if (m->left[i].at > now)
            return false;
    return true;
}

static void free_blank_models(ah_lane *l, int64_t now)
{
    ah_lane_model *next;

    for (ah_lane_model *m = l->model; m; m = next) {
        next = m->next;
        if (is_blank(m, now))
            free_model(m);
    }
    l->crowd = 2 * l->models + 8;
}

static void sweep(ah_host *h, ah_lane **link)
{
    int64_t now = ah_host_now(h);

    while (*link) {
        ah_lane *l = *link;

        free_blank_models(l, now);
        if (l->model) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        ah_free(h->mem, l);
    }
}

static ah_lane **bucket_of(ah_host *h, uint64_t id)
{
    return &h->lanes.bucket[id % AH_LANE_BUCKETS];
}

static ah_lane *find_lane(ah_host *h, uint64_t id)
{
    ah_lane *l = *bucket_of(h, id);

    while (l && l->id != id)
        l = l->next;
    return l;
}

static ah_lane *lane_of(ah_host *h, uint64_t id)
{
    ah_lane **bucket = bucket_of(h, id), *l = find_lane(h, id);

    if (l)
        return l;
    sweep(h, bucket);
    if (!(l = ah_alloc(h->mem, sizeof *l)))
        return NULL;
    *l = (ah_lane){.host = h, .id = id, .next = *bucket};
    *bucket = l;
    return l;
}

static void on_timer(ah_timer *t);

static bool is_for(const ah_lane_model *m, const ah_adapter *a)
{
    return m->alone == a->alone && ah_slice_eq(ah_text_slice(m->name), ah_text_slice(a->model));
}

static ah_lane_model *model_of(ah_lane *l, const ah_adapter *a)
{
    ah_lane_model *m = l->model;

    while (m && !is_for(m, a))
        m = m->next;
    if (m)
        return m;
    if (l->models >= l->crowd)
        free_blank_models(l, ah_host_now(l->host));
    if (!(m = ah_alloc(l->host->mem, sizeof *m)))
        return NULL;
    *m = (ah_lane_model){.lane = l,
                         .next = l->model,
                         .link = &l->model,
                         .name = ah_text_ref(a->model),
                         .alone = a->alone,
                         .timer.fn = on_timer};
    if (m->next)
        m->next->link = &m->next;
    l->model = m;
    l->models++;
    return m;
}

/* -- what holds a request back ----------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* True if the limit is used up for the request. Tokens are an estimate: a request that nothing else
 * is in flight with is sent as long as any are left. */
static bool is_used_up(const ah_lane_model *m, int i, const ah_place *p)
{
    int64_t left = m->left[i].n;

    if (ah_advice_kinds[i] == AH_ADVICE_REQUESTS)
        return left <= m->unheard;
    if (ah_advice_kinds[i] == AH_ADVICE_TOKENS && m->unheard_tokens)
        return left - m->unheard_tokens < later(p->tokens, 1);
    return left <= 0;
}

/* Returns when the limits have room for the request at the latest, or 0 if they have. *sure: not
 * before, whatever becomes of those in flight. */
static int64_t limit_end(const ah_lane_model *m, const ah_place *p, int64_t now, bool *sure)
{
    int64_t end = 0;

    for (int i = 0; i < AH_ADVICE_LIMITS; i++)
        if (m->left[i].at > now && is_used_up(m, i, p)) {
            end = later(end, m->left[i].at);
            *sure = *sure || m->left[i].n <= 0;
        }
    return end;
}

/* Returns why the first of a queue must wait; *until: the time at which to look again; 0: another
 * request must end first; *sure: it waits until then. */
static ah_wait_reason holds_back(const ah_lane_model *m, int64_t now, int64_t *until, bool *sure)
{
    const ah_place *p = m->waiting.first;
    const ah_lane *l = m->lane;

    *until = m->until > now ? m->until : 0;
    *sure = *until;
    if (*until)
        return AH_WAIT_BACKOFF;
    if (!p->exempt) {
        if (m->window && m->unproven >= m->window)
            return AH_WAIT_BACKOFF;
        if (l->least && l->held.n >= (size_t)l->least)
            return AH_WAIT_IN_FLIGHT;
    }
    *until = limit_end(m, p, now, sure);
    return *until ? AH_WAIT_LIMIT : AH_WAIT_NONE;
}

/* -- giving places ----------------------------------------------------------------------------- */

static void give(ah_place *p)
{
    ah_lane_model *m = p->at;

    leave_queue(p);
    put_behind(&m->lane->held, m->lane->held.last, p);
    m->held++;
    m->unheard++;
    m->unheard_tokens += p->tokens;
    m->unproven++;
    p->round = m->round;
    p->state = AH_PLACE_HELD;
    ah_run_placed(ah_driver_run_run(p->of));
    ah_driver_run_wake(p->of);
}

static void open_window(ah_lane_model *m, bool sounding)
{
    m->round++;
    m->half = later((m->window ? m->window : (int64_t)m->held) / 2, 2);
    m->window = 1;
    m->since = 0;
    m->unproven = m->accepted = m->refused = 0;
    m->sounding = sounding;
    m->dry = false;
}

/* Returns the request of the model to let out next, or NULL. Sets the timer if it waits for a
 * time. */
static ah_place *next_of(ah_lane_model *m, int64_t now)
{
    int64_t until = 0;
    bool sure;
    ah_wait_reason why;

    if (!m->waiting.first)
        return NULL;
    why = holds_back(m, now, &until, &sure);
    if (until)
        ah_timer_set(m->lane->host->loop, &m->timer, until);
    if (why == AH_WAIT_LIMIT && sure)
        m->dry = true;
    if (why != AH_WAIT_NONE)
        return NULL;
    if (m->dry) /* how much the limit has room for now is not known yet */
        open_window(m, true);
    return m->waiting.first;
}

/* New models are first in the list, so the walk is short where only these have queues. */
static ah_place *next_place(ah_lane *l)
{
    int64_t now = ah_host_now(l->host);
    ah_place *next = NULL;
    size_t left = l->queues;

    for (ah_lane_model *m = l->model; m && left; m = m->next) {
        ah_place *p = next_of(m, now);

        left -= m->waiting.first != NULL;
        if (p && (!next || p->exempt || p->number < next->number))
            next = p;
    }
    return next;
}

static void let_out(ah_lane *l)
{
    ah_place *p;

    while (l->waiting && (p = next_place(l)))
        give(p);
}

static void on_timer(ah_timer *t)
{
    let_out(FROM(t, ah_lane_model, timer)->lane);
}

/* 0: no limit */
static int smaller(int a, int b)
{
    return a && (!b || a < b) ? a : b;
}

/* Of several limits the smallest holds. */
static int limit_of(const ah_host *h, const ah_place_def *def)
{
    const ah_lane_rule *r = h->lanes.rule;

    while (r && !ah_slice_eq(ah_text_slice(r->provider), ah_text_slice(def->adapter->provider)))
        r = r->next;
    return smaller(smaller(def->most, h->cfg.max_in_flight), r ? r->most : 0);
}

bool ah_place_ask(ah_host *h, ah_driver_run *of, ah_place *p, const ah_place_def *def,
                  ah_wait_reason *reason, int64_t *until)
{
    ah_lane *l = lane_of(h, def->adapter->lane);
    ah_lane_model *m = l ? model_of(l, def->adapter) : NULL;
    bool sure;

    if (!m)
        return false;
    *p = (ah_place){.state = AH_PLACE_WAITING,
                    .at = m,
                    .of = of,
                    .number = def->tries && p->number ? p->number : ++h->lanes.asked,
                    .tokens = def->tokens,
                    .most = limit_of(h, def),
                    .exempt = def->exempt};
    join_queue(m, p);
    count_limit(l, p->most);
    let_out(l);
    if (p->state == AH_PLACE_WAITING) {
        *reason = holds_back(m, ah_host_now(h), until, &sure);
        *until = sure ? *until : 0;
    }
    return true;
}

/* -- what becomes of requests ------------------------------------------------------------------ */

static void hear(ah_place *p)
{
    if (p->proven)
        return;
    p->proven = true;
    p->at->unheard--;
    p->at->unheard_tokens -= p->tokens;
    if (p->round == p->at->round)
        p->at->unproven--;
}

static void widen(ah_lane_model *m)
{
    if (m->accepted > m->refused && !m->waiting.first) {
        m->window = 0;
    } else if (m->accepted <= m->half) {
        m->window = m->accepted;
    } else if (++m->since >= m->window) {
        m->window++;
        m->since = 0;
    }
}

/* The provider accepts requests again: more may go out. */
static void accept(ah_place *p)
{
    ah_lane_model *m = p->at;

    if (p->proven)
        return;
    hear(p);
    if (p->round != m->round)
        return;
    m->streak = 0;
    m->accepted++;
    if (m->window)
        widen(m);
}

/* A limit that was used up is reported anew: its number is all that requests go by. */
static void read_limits(ah_lane_model *m, const ah_response_head *head)
{
    if (ah_advice_limits(head, ah_host_now(m->lane->host), m->left) && m->sounding)
        m->window = 0;
}

void ah_place_heard(ah_place *p, const ah_response_head *head)
{
    if (p->state != AH_PLACE_HELD || head->status >= 300)
        return;
    accept(p);
    read_limits(p->at, head);
    let_out(p->at->lane);
}

void ah_place_answered(ah_place *p)
{
    if (p->state == AH_PLACE_HELD)
        accept(p);
}

/* A refusal of a request that was sent before the back-off belongs to it. */
int64_t ah_place_back_off(ah_place *p, int64_t advised, int tries)
{
    ah_lane_model *m = p->at;
    int64_t now, ms = advised;
    ah_host *h;

    if (p->state != AH_PLACE_HELD)
        return 0;
    h = m->lane->host;
    now = ah_host_now(h);
    hear(p);
    if (p->round == m->round || !m->window) {
        open_window(m, false);
        m->streak += m->streak < MAX_STREAK;
    }
    m->refused++;
    if (ms <= 0)
        ms = ah_run_delay(tries >= m->streak ? tries : m->streak - 1, ah_host_random(h));
    m->until = later(m->until, now + ms);
    return m->until - now;
}

static void give_back(ah_place *p)
{
    ah_lane_model *m = p->at;

    hear(p);
    take_out(&m->lane->held, p);
    m->held--;
}

void ah_place_leave(ah_place *p)
{
    ah_lane *l = p->at ? p->at->lane : NULL;

    if (p->state == AH_PLACE_NONE)
        return;
    if (p->state == AH_PLACE_WAITING)
        leave_queue(p);
    else
        give_back(p);
    p->state = AH_PLACE_NONE;
    drop_limit(l, p->most);
    let_out(l);
    if (p->at->alone && is_blank(p->at, ah_host_now(l->host)))
        free_model(p->at); /* adapters that live for one run would pile up */
    p->at = NULL;
}

bool ah_place_in_lane(const ah_place *p, const ah_adapter *a)
{
    return p->state == AH_PLACE_HELD && p->at->lane->id == a->lane;
}

/* -- of all lanes ------------------------------------------------------------------------------ */

static void free_scope_of(ah_lane_model *m, ah_driver_run *scope)
{
    ah_place *next;

    for (ah_place *p = m->waiting.first; p; p = next) {
        next = p->next;
        if (p->exempt || !ah_driver_run_within(p->of, scope))
            continue;
        p->exempt = true;
        take_out(&m->waiting, p);
        put_in_turn(&m->waiting, p);
    }
}

void ah_lanes_free_scope(ah_host *h, ah_driver_run *scope)
{
    if (!h->lanes.waiting)
        return;
    for (int i = 0; i < AH_LANE_BUCKETS; i++)
        for (ah_lane *l = h->lanes.bucket[i]; l; l = l->next) {
            for (ah_lane_model *m = l->model; m; m = m->next)
                free_scope_of(m, scope);
            let_out(l);
        }
}

static void free_rules(ah_host *h, ah_lane_rule *r)
{
    while (r) {
        ah_lane_rule *next = r->next;

        ah_text_unref(r->provider);
        ah_free(h->mem, r);
        r = next;
    }
}

bool ah_lanes_limit(ah_host *h, const ah_lane_limit *list, size_t n)
{
    ah_lane_rule *all = NULL;
    bool whole = true;

    for (size_t i = 0; i < n && whole; i++) {
        ah_lane_rule *r = ah_alloc(h->mem, sizeof *r);

        if (r) {
            *r = (ah_lane_rule){all, ah_text_new(h->mem, list[i].provider), list[i].most};
            all = r;
        }
        whole = r && r->provider;
    }
    if (!whole) {
        free_rules(h, all);
        return false;
    }
    free_rules(h, h->lanes.rule);
    h->lanes.rule = all;
    return true;
}

static void free_lane(ah_host *h, ah_lane *l)
{
    while (l->model)
        free_model(l->model);
    ah_free(h->mem, l);
}

void ah_lanes_free(ah_host *h)
{
    for (int i = 0; i < AH_LANE_BUCKETS; i++)
        while (h->lanes.bucket[i]) {
            ah_lane *l = h->lanes.bucket[i];

            h->lanes.bucket[i] = l->next;
            free_lane(h, l);
        }
    free_rules(h, h->lanes.rule);
    h->lanes.rule = NULL;
}
