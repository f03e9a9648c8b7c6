/* The steps of a call: asked for, begun, recorded, and compared with those of an earlier entry. */
#include "run/step.h"

#include "base/sha256.h"
#include "run/call.h"
#include "run/tell.h"

enum {
    MAX_KEY = AH_MAX_STEP_PATH + AH_MAX_STEP_NAME + 64,
    STEP_IDS = 1 << 30 /* ids of steps are above it, those of needs below */
};

/* -- life ---------------------------------------------------------------------------------------
 */

static void free_step(ah_steps *s, ah_call_step *step)
{
    if (step->open)
        ah_overlay_drop(&step->aside);
    ah_text_unref(step->key);
    ah_text_unref(step->kept);
    ah_free(s->mem, step);
}

static void clear_gone(ah_steps *s)
{
    while (s->n_gone)
        ah_text_unref(s->gone[--s->n_gone]);
}

void ah_steps_free(ah_steps *s)
{
    bool waits = false;

    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        waits = waits || s->item[i]->id;
        free_step(s, s->item[i]);
    }
    clear_gone(s);
    if (waits && s->recorder->sink.forget)
        s->recorder->sink.forget(s->recorder->sink.ud, s->call->run, s->call);
    ah_free(s->mem, s->item);
    ah_free(s->mem, s->gone);
    ah_free(s->mem, s);
}

/* Returns the length of "PATH KIND " of a key; 0: it is none. */
static size_t head_of(ah_slice key)
{
    const char *path = key.n ? memchr(key.p, ' ', key.n) : NULL;
    const char *kind = path ? memchr(path + 1, ' ', key.n - (size_t)(path + 1 - key.p)) : NULL;

    return kind ? (size_t)(kind + 1 - key.p) : 0;
}

/* Takes the key. NULL: out of memory. */
static ah_call_step *add(ah_steps *s, ah_text *key, size_t head)
{
    ah_call_step **grown = ah_grow(s->mem, s->item, &s->cap, s->n + 1, sizeof *s->item);
    ah_call_step *step = NULL;

    if (grown)
        s->item = grown;
    if (grown && key && (step = ah_alloc(s->mem, sizeof *step))) {
        *step = (ah_call_step){
            .key = key, .head = head, .hash = ah_slice_hash((ah_slice){key->data, head})};
        s->item[s->n++] = step;
    } else {
        ah_text_unref(key);
    }
    return step;
}

static bool is_true(ah_slice json, const char *member)
{
    return ah_json_kind_of(ah_json_member(json, member)) == AH_JSON_TRUE;
}

static bool is_secret(const ah_step_history *h)
{
    return h->start && is_true(ah_text_slice(h->start), "secret");
}

static ah_status load_step(ah_steps *s, const ah_step_history *h, ah_err *err)
{
    size_t head = head_of(ah_text_slice(h->key));
    ah_call_step *step;

    if (is_secret(h))
        return AH_OK;
    if (!head)
        return ah_err_set(err, AH_STORE, "the journal names a step '%.*s', which is no key of one",
                          AH_FMT(ah_text_slice(h->key)));
    if (!(step = add(s, ah_text_ref(h->key), head)))
        return ah_err_nomem(err);
    step->state = h->said ? AH_STEP_RECORDED : AH_STEP_LOST;
    step->success = is_true(ah_text_slice(h->said), "success");
    step->kept = ah_text_ref(h->kept);
    return AH_OK;
}

bool ah_steps_can_reenter(const ah_call_history *h)
{
    for (size_t i = 0; i < h->n_steps; i++)
        if (is_secret(&h->step[i]))
            return false;
    return true;
}

static void put_hex(ah_sha256 *sha, char out[AH_STEP_KEY])
{
    ah_sha256_end_hex(sha, out);
    out[AH_STEP_KEY - 1] = '\0';
}

/* Without a journal a key must be another one in each process. */
static void make_key(ah_steps *s)
{
    const ah_run_config *cfg = ah_run_cfg(s->call->run);
    char text[256];
    ah_sha256 sha;

    ah_print(text, sizeof text, "%lld %lld %zu %.17g %.17g %.17g", (long long)cfg->id,
             (long long)ah_run_wall(s->call->run), s->call->at, cfg->random(cfg->ud),
             cfg->random(cfg->ud), cfg->random(cfg->ud));
    ah_sha256_begin(&sha);
    ah_sha256_add(&sha, ah_slice_of(text));
    put_hex(&sha, s->key);
}

static void set_key(ah_steps *s, ah_slice key, const ah_call_history *h)
{
    if (!key.p && h && h->started)
        key = ah_json_inside(ah_json_member(ah_text_slice(h->started), "key"));
    if (key.p && key.n < AH_STEP_KEY)
        memcpy(s->key, key.p, key.n);
    else
        make_key(s);
}

ah_status ah_steps_new(ah_call *call, ah_recorder *recorder, ah_slice key, const ah_call_history *h,
                       ah_err *err)
{
    const ah_mem *mem = call->overlay.mem;
    ah_steps *s = ah_alloc(mem, sizeof *s);
    ah_status st = AH_OK;

    if (!s)
        return ah_err_nomem(err);
    *s = (ah_steps){
        .mem = mem, .call = call, .recorder = ah_recorder_on(recorder) ? recorder : NULL};
    set_key(s, key, h);
    for (size_t i = 0; h && i < h->n_steps && st == AH_OK; i++)
        st = load_step(s, &h->step[i], err);
    if (st == AH_OK)
        call->steps = s;
    else
        ah_steps_free(s);
    return st;
}

void ah_steps_again(ah_steps *s)
{
    clear_gone(s);
    s->conflict = false;
    for (size_t i = 0; i < s->n; i++) {
        ah_call_step *step = s->item[i];

        ah_step_leave(step);
        step->asked = false;
        if (step->open)
            ah_overlay_drop(&step->aside);
        step->open = false;
        if (step->state == AH_STEP_BEGUN)
            step->state = AH_STEP_LOST;
    }
}

bool ah_steps_at_work(const ah_steps *s)
{
    size_t i = 0;

    while (i < s->n && s->item[i]->state != AH_STEP_BEGUN)
        i++;
    return i < s->n;
}

void ah_call_enter_again(ah_call *call)
{
    const ah_mem *mem = call->overlay.mem;

    ah_steps_again(call->steps);
    ah_overlay_drop(&call->overlay);
    ah_overlay_init(&call->overlay, mem, ah_run_cfg(call->run)->caller);
    call->overlay.owner = call;
    ah_changes_clear(&call->changes);
    ah_changes_init(&call->changes, mem);
}

/* -- asking ------------------------------------------------------------------------------------ */

static ah_slice head_slice(const ah_call_step *step)
{
    return (ah_slice){step->key->data, step->head};
}

/* Returns what follows "PATH KIND NUMBER ". */
static ah_slice name_of(const ah_call_step *step)
{
    ah_slice rest = {step->key->data + step->head, step->key->len - step->head};
    const char *blank = rest.n ? memchr(rest.p, ' ', rest.n) : NULL;
    size_t skip = blank ? (size_t)(blank + 1 - rest.p) : rest.n;

    return (ah_slice){rest.p + skip, rest.n - skip};
}

/* Returns "http https://..." for messages. */
static ah_slice kind_of(const ah_call_step *step)
{
    ah_slice head = head_slice(step);
    const char *blank = memchr(head.p, ' ', head.n);

    return (ah_slice){blank + 1, head.n - (size_t)(blank + 1 - head.p) - 1};
}

/* Finds the next recorded step that begins with the head, and counts those of this name that were
 * asked for. */
static ah_call_step *find_next(const ah_steps *s, ah_slice head, ah_slice name, size_t *number)
{
    uint64_t hash = ah_slice_hash(head);
    ah_call_step *next = NULL;

    *number = 0;
    for (size_t i = 0; i < s->n; i++) {
        ah_call_step *step = s->item[i];

        if (step->hash != hash || !ah_slice_eq(head_slice(step), head))
            continue;
        if (!step->asked && !next)
            next = step;
        *number += step->asked && ah_slice_eq(name_of(step), name);
    }
    return next;
}

/* Finds the step of this key; NULL: it is new, or was asked for. */
static ah_call_step *find_key(const ah_steps *s, ah_slice key)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->item[i]->asked && ah_slice_eq(ah_text_slice(s->item[i]->key), key))
            return s->item[i];
    return NULL;
}

void ah_steps_conflict(ah_steps *s)
{
    s->conflict = true;
}

static ah_status diverge(ah_steps *s, const ah_call_step *recorded, ah_slice kind, ah_slice name,
                         const char *place, ah_err *err)
{
    s->diverged = true;
    return ah_err_set(
        err, AH_DIVERGED,
        "tool '%s', call %s: %s%sthe handler asks for the step %.*s '%.*s', and recorded is the "
        "step %.*s '%.*s': correct the script and resume the run, or give the call up",
        s->call->tool->name->data, s->call->slot->id->data, place, *place ? ": " : "", AH_FMT(kind),
        AH_FMT(name), AH_FMT(kind_of(recorded)), AH_FMT(name_of(recorded)));
}

static ah_status diverged_before(const ah_steps *s, ah_err *err)
{
    return ah_err_set(err, AH_DIVERGED, "tool '%s', call %s: the handler has diverged",
                      s->call->tool->name->data, s->call->slot->id->data);
}

static ah_status check_asked(const ah_steps *s, ah_slice path, ah_slice name, ah_err *err)
{
    if (s->diverged)
        return diverged_before(s, err);
    if (path.n > AH_MAX_STEP_PATH)
        return ah_err_set(err, AH_USAGE, "steps of a call: tasks inside tasks are too deep");
    if (name.n > AH_MAX_STEP_NAME)
        return ah_err_set(err, AH_USAGE, "steps of a call: a name has at most %d bytes",
                          AH_MAX_STEP_NAME);
    if (s->n >= AH_MAX_STEPS)
        return ah_err_set(err, AH_USAGE, "a call makes at most %d steps: keep them in one step",
                          AH_MAX_STEPS);
    return AH_OK;
}

static ah_status put(const ah_steps *s, ah_record_kind kind, ah_buf *b, ah_slice kept, ah_err *err)
{
    ah_buf_char(b, '}');
    ah_recorder_put(s->recorder, kind, b, kept);
    return ah_recorder_state(s->recorder, err);
}

bool ah_call_replays(const ah_call *call)
{
    const ah_steps *s = call->steps;

    return s && s->recorder && s->recorder->replays;
}

ah_status ah_step_not_recorded(ah_call *call, const char *what, ah_err *err)
{
    const ah_steps *s = call->steps;
    ah_buf b;

    ah_steps_conflict(call->steps);
    ah_buf_init(&b, s->mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&b, "{\"call\":%zu", call->at);
    ah_json_add_string(&b, "what", ah_slice_of(what));
    (void)put(s, AH_RECORD_LOST, &b, (ah_slice){NULL, 0}, err);
    ah_buf_clear(&b);
    return ah_err_set(err, AH_NOT_RECORDED,
                      "not_recorded: tool '%s', call %s: no record says what %s gave",
                      call->tool->name->data, call->slot->id->data, what);
}

/* Returns the step of this name that the entry has asked for first; NULL: none. */
static ah_call_step *find_asked(const ah_steps *s, ah_slice head, ah_slice name)
{
    for (size_t i = 0; i < s->n; i++) {
        ah_call_step *step = s->item[i];

        if (step->asked && ah_slice_eq(head_slice(step), head) && ah_slice_eq(name_of(step), name))
            return step;
    }
    return NULL;
}

/* A replay takes no step that is not recorded. */
static ah_status check_recorded(ah_call *call, const ah_call_step *step, ah_err *err)
{
    char what[AH_MAX_STEP_NAME + 64];

    if (!step || step->state == AH_STEP_RECORDED || !ah_call_replays(call))
        return AH_OK;
    if (ah_slice_is(kind_of(step), "step"))
        ah_print(what, sizeof what, "the step '%.*s'", AH_FMT(name_of(step)));
    else /* the name may be a hash */
        ah_print(what, sizeof what, "the step %.*s", AH_FMT(kind_of(step)));
    return ah_step_not_recorded(call, what, err);
}

/* Finds the recorded step of this key, or makes a new one. */
static ah_status take_step(ah_steps *s, ah_buf *b, ah_slice kind, ah_slice name, bool once,
                           const char *place, ah_call_step **out, ah_err *err)
{
    size_t head = b->len, number;
    ah_call_step *next;
    ah_text *key;

    if (!ah_buf_ok(b))
        return ah_err_nomem(err);
    next = find_next(s, ah_buf_slice(b), name, &number);
    if (once && number) {
        *out = ah_call_replays(s->call) ? find_asked(s, ah_buf_slice(b), name) : NULL;
        return AH_OK;
    }
    ah_buf_fmt(b, "%zu ", number);
    ah_buf_put(b, name);
    if (!ah_buf_ok(b))
        return ah_err_nomem(err);
    if (s->conflict)
        next = find_key(s, ah_buf_slice(b));
    if (next && !ah_slice_eq(ah_text_slice(next->key), ah_buf_slice(b)))
        return diverge(s, next, kind, name, place, err);
    if (!next && (!(key = ah_text_new(s->mem, ah_buf_slice(b))) || !(next = add(s, key, head))))
        return ah_err_nomem(err);
    next->asked = true;
    *out = next;
    return AH_OK;
}

ah_status ah_step_ask(ah_call *call, ah_slice path, ah_slice kind, ah_slice name, bool once,
                      const char *place, ah_call_step **out, ah_err *err)
{
    ah_steps *s = call->steps;
    ah_status st;
    ah_buf b, said;

    *out = NULL;
    if (!s)
        return AH_OK;
    if ((st = check_asked(s, path, name, err)) != AH_OK)
        return st;
    if (s->secret)
        return AH_OK;
    ah_buf_init(&b, s->mem, MAX_KEY);
    ah_buf_put(&b, path);
    ah_buf_char(&b, ' ');
    ah_buf_put(&b, kind);
    ah_buf_char(&b, ' ');
    name = ah_run_said(call->run, name, &said); /* as its record has it */
    st = take_step(s, &b, kind, name, once, place, out, err);
    if (st == AH_OK)
        st = check_recorded(call, *out, err);
    ah_buf_clear(&said);
    ah_buf_clear(&b);
    return st;
}

/* -- recording --------------------------------------------------------------------------------- */

static void begin_record(const ah_steps *s, ah_slice key, ah_buf *b)
{
    ah_buf_fmt(b, "{\"call\":%zu", s->call->at);
    ah_json_add_string(b, "step", key);
}

static ah_status put_started(const ah_steps *s, const ah_call_step *step, const char *on_lost,
                             ah_slice what, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, s->mem, AH_STORE_MAX_RECORD);
    begin_record(s, ah_text_slice(step->key), &b);
    ah_json_add_string(&b, "on_lost", ah_slice_of(on_lost));
    ah_json_add_string(&b, "what", what);
    st = put(s, AH_RECORD_STEP_STARTED, &b, (ah_slice){NULL, 0}, err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_step_begin(ah_call *call, ah_call_step *step, const char *on_lost, ah_slice what,
                        void (*recorded)(void *ud, const ah_err *err), void *ud, ah_err *err)
{
    ah_steps *s = call->steps;
    const ah_err none = {.status = AH_OK};

    if (!s->recorder) {
        step->state = AH_STEP_BEGUN;
        recorded(ud, &none);
        return AH_OK;
    }
    if (step->state == AH_STEP_NEW && put_started(s, step, on_lost, what, err) != AH_OK)
        return err->status;
    step->state = AH_STEP_BEGUN;
    step->recorded = recorded;
    step->ud = ud;
    step->id = STEP_IDS + ++s->last_id;
    s->recorder->sink.flush(s->recorder->sink.ud, call->run, call, step->id, true);
    return AH_OK;
}

void ah_step_leave(ah_call_step *step)
{
    step->recorded = NULL;
}

bool ah_step_recorded(ah_call *call, uint32_t id, const ah_err *err)
{
    ah_steps *s = call->steps;
    void (*recorded)(void *ud, const ah_err *err);

    if (id <= STEP_IDS)
        return false;
    for (size_t i = 0; s && i < s->n; i++) {
        ah_call_step *step = s->item[i];

        if (step->id != id)
            continue;
        recorded = step->recorded;
        step->id = 0;
        step->recorded = NULL;
        if (recorded)
            recorded(step->ud, err);
        break;
    }
    return true;
}

static ah_status put_step(const ah_steps *s, const ah_call_step *step, ah_slice said, ah_err *err)
{
    ah_status st;
    ah_buf b;

    if (!s->recorder)
        return AH_OK;
    ah_buf_init(&b, s->mem, AH_STORE_MAX_RECORD);
    begin_record(s, ah_text_slice(step->key), &b);
    ah_buf_fmt(&b, ",\"success\":%s", step->success ? "true" : "false");
    if (said.p)
        ah_buf_put(&b, said);
    st = put(s, AH_RECORD_STEP, &b, ah_text_slice(step->kept), err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_step_end(ah_call *call, ah_call_step *step, bool success, ah_slice said, ah_slice kept,
                      ah_err *err)
{
    ah_text *value = ah_text_new(call->steps->mem, kept);

    if (!value)
        return ah_err_nomem(err);
    ah_text_set(&step->kept, value);
    step->success = success;
    step->state = AH_STEP_RECORDED;
    return put_step(call->steps, step, said, err);
}

void ah_step_secret(ah_call *call, ah_slice path, ah_slice name)
{
    ah_steps *s = call->steps;
    ah_buf key, b;
    ah_err ignored;

    s->secret = true;
    if (!s->recorder)
        return;
    ah_buf_init(&key, s->mem, MAX_KEY);
    ah_buf_init(&b, s->mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&key, "%.*s step %zu %.*s", AH_FMT(path), s->n, AH_FMT(name));
    if (ah_buf_ok(&key)) {
        begin_record(s, ah_buf_slice(&key), &b);
        ah_buf_str(&b, ",\"on_lost\":\"tell\",\"secret\":true");
        put(s, AH_RECORD_STEP_STARTED, &b, (ah_slice){NULL, 0}, &ignored);
    }
    ah_buf_clear(&b);
    ah_buf_clear(&key);
}

/* -- changes of runs inside of steps ------------------------------------------------------------
 */

ah_overlay *ah_step_aside(ah_call *call, ah_call_step *step, ah_err *err)
{
    ah_anchor *below;

    if (step->open)
        return &step->aside;
    if (ah_overlay_anchor(&call->overlay, &below, err) != AH_OK)
        return NULL;
    ah_overlay_init(&step->aside, call->overlay.mem, below);
    ah_anchor_unref(below);
    step->aside.owner = call;
    step->open = true;
    return &step->aside;
}

bool ah_step_has_changes(const ah_call_step *step)
{
    return step->open && (step->aside.n || step->aside.first);
}

ah_status ah_step_close_aside(ah_call *call, ah_call_step *step, bool commit, ah_err *err)
{
    ah_status st = AH_OK;

    if (!step->open)
        return AH_OK;
    step->open = false;
    if (commit)
        st = ah_overlay_commit(&step->aside, ah_run_cfg(call->run)->transcript, err);
    ah_overlay_drop(&step->aside);
    return st;
}

/* -- keys, and the end --------------------------------------------------------------------------
 */

void ah_step_key(const ah_steps *s, const ah_call_step *step, char out[AH_STEP_KEY])
{
    ah_sha256 sha;

    ah_sha256_begin(&sha);
    ah_sha256_add(&sha, ah_slice_of(s->key));
    ah_sha256_add(&sha, ah_slice_of("\n"));
    ah_sha256_add(&sha, ah_text_slice(step->key));
    put_hex(&sha, out);
}

void ah_steps_give_up(ah_steps *s, ah_slice path)
{
    ah_text **grown = ah_grow(s->mem, s->gone, &s->cap_gone, s->n_gone + 1, sizeof *s->gone);

    if (!grown)
        return;
    s->gone = grown;
    if ((s->gone[s->n_gone] = ah_text_new(s->mem, path)))
        s->n_gone++;
}

/* True if the step is of a task that was cancelled, or of one below it. */
static bool is_gone(const ah_steps *s, const ah_call_step *step)
{
    for (size_t i = 0; i < s->n_gone; i++) {
        const ah_text *path = s->gone[i];

        if (step->key->len > path->len && memcmp(step->key->data, path->data, path->len) == 0 &&
            (step->key->data[path->len] == ' ' || step->key->data[path->len] == '/'))
            return true;
    }
    return false;
}

ah_status ah_steps_over(ah_steps *s, ah_err *err)
{
    if (!s)
        return AH_OK;
    if (s->diverged)
        return diverged_before(s, err);
    for (size_t i = 0; i < s->n && !s->secret && !s->conflict; i++) {
        const ah_call_step *step = s->item[i];

        if (step->asked || is_gone(s, step))
            continue;
        s->diverged = true;
        return ah_err_set(err, AH_DIVERGED,
                          "tool '%s', call %s: the handler has ended, and did not ask for the "
                          "recorded step %.*s '%.*s': correct the script and resume the run, or "
                          "give the call up",
                          s->call->tool->name->data, s->call->slot->id->data, AH_FMT(kind_of(step)),
                          AH_FMT(name_of(step)));
    }
    return AH_OK;
}
