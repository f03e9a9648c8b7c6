/* The book is a list, since few asks are open at a time. Events of an ask never contain a key of
 * the host, nor the response to a secret one. */
#include "host/ask.h"

#include <stdio.h>

#include "run/said.h"
#include "run/tell.h"

enum {
    MAX_TOLD = 64 << 20, /* bytes of a call or a response in an event */
    MAX_FAULTS = 900     /* bytes of the errors in a response */
};

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static const char approval_schema[] =
    "{\"properties\":{\"approved\":{\"type\":\"boolean\"},\"arguments\":{\"type\":\"object\"},"
    "\"why\":{\"type\":\"string\"}},\"required\":[\"approved\"],\"type\":\"object\"}";

/* Of an approval of changes: the call was made, with its arguments. */
static const char changes_schema[] =
    "{\"properties\":{\"approved\":{\"type\":\"boolean\"},\"why\":{\"type\":\"string\"}},"
    "\"required\":[\"approved\"],\"type\":\"object\"}";

/* -- names ------------------------------------------------------------------------------- */

const char *ah_ask_kind_name(ah_ask_kind kind)
{
    return kind == AH_ASK_APPROVAL ? "approval" : "question";
}

static const char *how_name(ah_ask_how how)
{
    static const char *const names[] = {
        [AH_ASK_OPEN] = "open",           [AH_ASK_ANSWERED] = "answered",
        [AH_ASK_DEFAULTED] = "default",   [AH_ASK_TIMEOUT] = "timeout",
        [AH_ASK_CANCELLED] = "cancelled", [AH_ASK_DENIED] = "denied",
        [AH_ASK_PARKED] = "parked"};

    return names[how];
}

/* -- opening and freeing ------------------------------------------------------------------- */

static void free_item(ah_ask_item *a)
{
    a->over = true;
    if (a->pins)
        return;
    ah_schema_unref(a->def.schema);
    ah_text_unref(a->question);
    ah_text_unref(a->otherwise);
    ah_text_unref(a->args);
    ah_text_unref(a->schema);
    ah_text_unref(a->result);
    ah_text_unref(a->changes);
    ah_free(a->host->mem, a);
}

void ah_ask_pin(ah_ask_item *a)
{
    a->pins++;
}

bool ah_ask_unpin(ah_ask_item *a)
{
    bool over = a->over;

    a->pins--;
    if (over)
        free_item(a);
    return !over;
}

/* Removes the ask from the book: it can no longer be found, and its timer and job are cancelled. */
static void leave_book(ah_ask_item *a)
{
    ah_ask_book *book = &a->host->asks;

    ah_timer_unset(&a->timer);
    ah_job_cancel(&a->job);
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    else
        book->last = a->link;
}

static void enter_book(ah_ask_item *a)
{
    ah_ask_book *book = &a->host->asks;

    if (!book->last)
        book->last = &book->first;
    a->number = ++book->opened;
    snprintf(a->id, sizeof a->id, "ask_%lld", (long long)a->number);
    book->how[a->number % AH_ASKS_KNOWN] = AH_ASK_OPEN;
    a->link = book->last;
    *a->link = a;
    book->last = &a->next;
}

static void let_go(ah_ask_item *a)
{
    void *offer = a->offer;

    a->offer = NULL;
    if (offer)
        a->left(offer);
}

/* Closes it with its default, or as DENIED. */
static void close_unanswered(ah_ask_item *a);

static void expire(ah_job *job)
{
    ah_ask_item *a = FROM(job, ah_ask_item, job);
    ah_ask_end end = {.how = AH_ASK_TIMEOUT};

    if (a->otherwise)
        close_unanswered(a);
    else
        ah_ask_close_as(a, &end);
}

static void on_timer(ah_timer *t)
{
    ah_ask_item *a = FROM(t, ah_ask_item, timer);

    ah_job_post(a->host, &a->job);
}

/* Copies a text without keys. */
static ah_text *keep(const ah_ask_item *a, ah_slice s)
{
    ah_text *t = ah_text_new(a->host->mem, s);

    if (t) {
        t->len = ah_secrets_redact(&a->host->secrets, t->data, t->len);
        t->data[t->len] = '\0';
    }
    return t;
}

/* Copies JSON without keys; if a key is not inside a string, copies `instead`. */
static ah_text *keep_json(const ah_ask_item *a, ah_slice json, const char *instead)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, a->host->mem, MAX_TOLD);
    if (!ah_said_json(a->def.call, json, &b))
        ah_buf_str(&b, instead);
    (void)ah_text_from_buf(&b, "an ask", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

ah_status ah_ask_schema(ah_host *h, ah_slice text, ah_schema **out, ah_err *err)
{
    ah_schema_options options = {.cache = &h->schemas};

    return ah_schema_compile_with(h->mem, text.p ? text : ah_slice_of(approval_schema), &options,
                                  out, err);
}

static ah_text *keep_args(const ah_ask_item *a)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, a->host->mem, MAX_TOLD);
    ah_said_args(a->def.call, &b);
    (void)ah_text_from_buf(&b, "the arguments", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

static ah_status fill(ah_ask_item *a, ah_err *err)
{
    const ah_call *c = a->def.call;
    bool shown = a->def.kind == AH_ASK_APPROVAL && c->state == AH_CALL_SHOWN;
    ah_slice schema = shown ? ah_slice_of(changes_schema) : (ah_slice){NULL, 0};
    ah_status st = AH_OK;

    if (!a->def.schema)
        st = ah_ask_schema(a->host, schema, &a->def.schema, err);
    if (st != AH_OK)
        return st;
    if (shown && !(a->result = keep(a, ah_text_slice(c->content))))
        return ah_err_nomem(err);
    a->changes = shown ? ah_text_ref(c->shown) : NULL;
    if (!(a->question = keep(a, a->def.question)) || !(a->args = keep_args(a)) ||
        !(a->schema = keep_json(a, ah_text_slice(ah_schema_text(a->def.schema)), "true")) ||
        (a->def.otherwise.p && !(a->otherwise = ah_text_new(a->host->mem, a->def.otherwise))))
        return ah_err_nomem(err);
    return AH_OK;
}

ah_status ah_ask_open(ah_host *h, const ah_ask_def *def, ah_ask_item **out, ah_err *err)
{
    ah_ask_item *a = ah_alloc(h->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    *a = (ah_ask_item){.host = h, .def = *def, .timer.fn = on_timer};
    a->job = (ah_job){.fn = expire, .of = def->of};
    a->def.schema = ah_schema_ref(def->schema);
    if ((st = fill(a, err)) != AH_OK) {
        free_item(a);
        return st;
    }
    enter_book(a);
    if (def->timeout_ms) {
        a->until = ah_host_now(h) + def->timeout_ms;
        ah_timer_set(h->loop, &a->timer, a->until);
    }
    *out = a;
    return AH_OK;
}

/* -- events ---------------------------------------------------------------------------------- */

void ah_ask_put_call(const ah_ask_item *a, bool as_text, ah_buf *out)
{
    const ah_slot *slot = a->def.call->slot;
    ah_slice parent = ah_text_slice(a->def.call->parent_call);

    ah_buf_str(out, "{\"id\":");
    ah_json_put_string(out, ah_text_slice(slot->id));
    ah_buf_str(out, ",\"name\":");
    ah_json_put_string(out, ah_text_slice(slot->name));
    ah_buf_str(out, ",\"arguments\":");
    if (as_text)
        ah_json_put_string(out, ah_text_slice(a->args));
    else
        ah_buf_put(out, ah_text_slice(a->args));
    if (parent.p) {
        ah_buf_str(out, ",\"parent_call\":");
        ah_json_put_string(out, parent);
    }
    ah_buf_char(out, '}');
}

/* An observer may close the ask, so the texts are kept until the end. The default of a secret ask
 * is left out, as the response may be the same. */
void ah_ask_tell(const ah_ask_item *a)
{
    ah_text *otherwise = a->otherwise && !a->def.secret
                             ? keep_json(a, ah_text_slice(a->otherwise), "\"[secret]\"")
                             : NULL;
    ah_text *question = ah_text_ref(a->question), *schema = ah_text_ref(a->schema);
    ah_text *result = ah_text_ref(a->result), *changes = ah_text_ref(a->changes);
    char id[AH_ASK_ID];
    ah_buf call;

    memcpy(id, a->id, sizeof id);
    ah_buf_init(&call, a->host->mem, MAX_TOLD);
    ah_ask_put_call(a, true, &call);
    if (ah_buf_ok(&call)) {
        ah_field field[9] = {AH_F_STR("id", ah_slice_of(id)),
                             AH_F_STR("kind", ah_slice_of(ah_ask_kind_name(a->def.kind))),
                             AH_F_STR("question", ah_text_slice(question)),
                             AH_F_JSON("schema", ah_text_slice(schema)),
                             AH_F_JSON("call", ah_buf_slice(&call))};
        size_t n = 5;

        if (changes) {
            field[n++] = (ah_field)AH_F_STR("result", ah_text_slice(result));
            field[n++] = (ah_field)AH_F_JSON("changes", ah_text_slice(changes));
        }
        if (otherwise)
            field[n++] = (ah_field)AH_F_JSON("default", ah_text_slice(otherwise));
        if (a->def.timeout_ms)
            field[n++] = (ah_field)AH_F_NUM("timeout", (double)a->def.timeout_ms / 1000);
        ah_run_emit(a->def.call->run, AH_EVENT_ASK, field, n);
    }
    ah_buf_clear(&call);
    ah_text_unref(question);
    ah_text_unref(schema);
    ah_text_unref(result);
    ah_text_unref(changes);
    ah_text_unref(otherwise);
}

static void tell_end(const ah_ask_item *a, const ah_ask_end *end)
{
    ah_text *value =
        end->value.p && !a->def.secret ? keep_json(a, end->value, "\"[secret]\"") : NULL;
    ah_field field[4] = {AH_F_STR("id", ah_slice_of(a->id)),
                         AH_F_STR("how", ah_slice_of(how_name(end->how)))};
    size_t n = 2;

    if (end->by.p)
        field[n++] = (ah_field)AH_F_STR("by", end->by);
    if (value)
        field[n++] = (ah_field)AH_F_JSON("value", ah_text_slice(value));
    ah_run_emit(a->def.call->run, AH_EVENT_ASK_CLOSED, field, n);
    ah_text_unref(value);
}

/* -- closing ----------------------------------------------------------------------------------- */

/* Removes the ask from the book first, because the next steps call code of the script: front ends
 * that are stopped, and observers. */
void ah_ask_close_as(ah_ask_item *a, const ah_ask_end *end)
{
    a->host->asks.how[a->number % AH_ASKS_KNOWN] = (unsigned char)end->how;
    leave_book(a);
    a->def.closed(a->def.ud, end);
    let_go(a);
    tell_end(a, end);
    free_item(a);
}

static void close_unanswered(ah_ask_item *a)
{
    ah_text *otherwise = ah_text_ref(a->otherwise);
    ah_ask_end end = {.how = otherwise ? AH_ASK_DEFAULTED : AH_ASK_DENIED,
                      .value = ah_text_slice(otherwise)};

    ah_ask_close_as(a, &end);
    ah_text_unref(otherwise);
}

void ah_ask_give_up(ah_ask_item *a)
{
    bool waits = !a->otherwise || a->until; /* a default without a time is the response now */

    if (!waits || !a->def.park || !a->def.park(a->def.ud))
        close_unanswered(a);
}

void ah_ask_drop(ah_ask_item *a)
{
    leave_book(a);
    let_go(a);
    free_item(a);
}

static void say_faults(const ah_mem *mem, ah_slice id, const ah_faults *faults, ah_err *err)
{
    ah_buf b;

    ah_buf_init(&b, mem, MAX_FAULTS);
    ah_faults_print(faults, &b);
    if (ah_buf_cut_short(&b))
        ah_err_set(err, AH_TOOL_VALIDATION, "the response to %.*s does not match its schema: %.*s",
                   AH_FMT(id), AH_FMT(ah_buf_slice(&b)));
    else
        ah_err_nomem(err);
    ah_buf_clear(&b);
}

/* {} from Lua counts as an empty list if the schema wants a list; coercions are allowed only if the
 * response is otherwise invalid. */
static ah_status check(const ah_schema *schema, ah_slice id, ah_slice response, ah_buf *full,
                       ah_err *err)
{
    ah_check_options options = {.extra = AH_EXTRA_FORBID, .empty_lists = true};
    ah_faults faults;
    ah_status st;

    ah_faults_init(&faults, full->mem);
    st = ah_schema_check_with(schema, response, &options, &faults, full);
    if (st == AH_OK && faults.n) {
        options.coerce = true;
        ah_buf_reset(full, 0);
        st = ah_schema_check_with(schema, response, &options, &faults, full);
    }
    if (st == AH_OK && faults.n) {
        say_faults(full->mem, id, &faults, err);
        st = err->status;
    } else if (st == AH_BUDGET) {
        st = ah_err_set(err, AH_TOOL_VALIDATION, "the response is larger than %d bytes",
                        AH_MAX_RESPONSE);
    } else if (st != AH_OK) {
        st = ah_err_nomem(err);
    }
    ah_faults_clear(&faults);
    return st;
}

static ah_slice as_approval(ah_slice response)
{
    switch (ah_json_kind_of(response)) {
    case AH_JSON_TRUE:
        return ah_slice_of("{\"approved\":true}");
    case AH_JSON_FALSE:
        return ah_slice_of("{\"approved\":false}");
    default:
        return response;
    }
}

ah_status ah_ask_check(ah_ask_kind kind, const ah_schema *schema, ah_slice id, ah_slice response,
                       ah_buf *full, ah_err *err)
{
    ah_status st;

    if (kind == AH_ASK_APPROVAL)
        response = as_approval(response);
    st = check(schema, id, response, full, err);
    if (st == AH_OK && full->len == 0)
        ah_buf_put(full, response);
    if (st == AH_OK && !ah_buf_ok(full))
        st = ah_buf_error(full, "the response", err);
    return st;
}

ah_status ah_ask_respond(ah_ask_item *a, ah_slice response, ah_slice by, ah_err *err)
{
    ah_ask_end end = {.how = AH_ASK_ANSWERED, .by = by};
    ah_status st;
    ah_buf full;

    ah_buf_init(&full, a->host->mem, AH_MAX_RESPONSE);
    st = ah_ask_check(a->def.kind, a->def.schema, ah_slice_of(a->id), response, &full, err);
    if (st == AH_OK) {
        end.value = ah_buf_slice(&full);
        ah_ask_close_as(a, &end);
    }
    ah_buf_clear(&full);
    return st;
}

/* -- finding ----------------------------------------------------------------------------------- */

/* The number in "ask_7"; 0: invalid. */
static int64_t number_of(ah_slice id)
{
    int64_t number = 0;

    if (id.n < 5 || id.n > 20 || memcmp(id.p, "ask_", 4) != 0 || id.p[4] == '0')
        return 0;
    for (size_t i = 4; i < id.n; i++) {
        if (id.p[i] < '0' || id.p[i] > '9')
            return 0;
        number = number * 10 + (id.p[i] - '0');
    }
    return number;
}

static void say_closed(const ah_ask_book *book, int64_t number, ah_err *err)
{
    static const char *const words[] = {
        [AH_ASK_OPEN] = "is closed",
        [AH_ASK_ANSWERED] = "is already answered: the first response counts",
        [AH_ASK_DEFAULTED] = "is closed: its default was taken",
        [AH_ASK_TIMEOUT] = "is closed: its time is over",
        [AH_ASK_CANCELLED] = "is closed: the call that asked is over",
        [AH_ASK_DENIED] = "is closed: no front end could respond, or the decision failed",
        [AH_ASK_PARKED] = "waits in its store: `agenthost respond` answers it"};
    bool known = book->opened - number < AH_ASKS_KNOWN;

    ah_err_set(err, AH_USAGE, "ask_%lld %s", (long long)number,
               words[known ? book->how[number % AH_ASKS_KNOWN] : AH_ASK_OPEN]);
}

ah_ask_item *ah_ask_find(ah_host *h, ah_slice id, ah_err *err)
{
    int64_t number = number_of(id);
    ah_ask_item *a = h->asks.first;

    while (a && a->number != number)
        a = a->next;
    if (a)
        return a;
    if (number > 0 && number <= h->asks.opened)
        say_closed(&h->asks, number, err);
    else
        ah_err_set(err, AH_USAGE, "there is no ask '%.*s'; events `ask` have the ids",
                   (int)(id.n > 40 ? ah_utf8_cut(id.p, 40) : id.n), id.p ? id.p : "");
    return NULL;
}
