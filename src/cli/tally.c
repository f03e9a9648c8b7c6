/* Events come from the library, so their text is checked JSON; members that are not there
 * count as 0 and "". A nested run's turns, calls and tokens count in the sums. */
#include "cli/tally.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_KEPT = 1 << 30 }; /* bytes of one event */

int64_t ah_tally_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void ah_tally_init(ah_tally *t)
{
    *t = (ah_tally){.doing = AH_DOING_NOTHING, .usage.cost = -1, .root_usage.cost = -1};
    ah_buf_init(&t->root_done, &ah_mem_libc, MAX_KEPT);
    ah_buf_init(&t->scratch, &ah_mem_libc, MAX_KEPT);
}

void ah_tally_clear(ah_tally *t)
{
    ah_buf_clear(&t->root_done);
    ah_buf_clear(&t->scratch);
}

static int64_t integer(ah_slice event, const char *name)
{
    ah_slice v = ah_json_member(event, name);
    ah_json_num n;

    return v.p && ah_json_number(v, &n) && n.is_int ? n.i : 0;
}

static bool truth(ah_slice event, const char *name)
{
    return ah_slice_is(ah_json_member(event, name), "true");
}

/* A string as printable ASCII, cut to fit. */
static void ascii(ah_tally *t, ah_slice event, const char *name, char *out, size_t size)
{
    size_t n;

    ah_buf_reset(&t->scratch, 0);
    ah_json_string(ah_json_member(event, name), &t->scratch);
    n = t->scratch.len < size ? t->scratch.len : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] =
            (char)(t->scratch.data[i] >= 0x20 && t->scratch.data[i] < 0x7f ? t->scratch.data[i] : '?');
    out[n] = '\0';
}

static void do_now(ah_tally *t, ah_doing doing)
{
    t->doing = doing;
    t->since = ah_tally_now();
}

static void start(ah_tally *t, ah_slice event)
{
    char provider[48], model[72];

    t->runs++;
    t->at_work++;
    if (!t->begun)
        t->begun = ah_tally_now();
    ascii(t, event, "provider", provider, sizeof provider);
    ascii(t, event, "model", model, sizeof model);
    snprintf(t->model, sizeof t->model, "%s/%s", provider, model);
    if (integer(event, "parent"))
        return;
    t->root = integer(event, "run");
    t->root_usage = (ah_usage_sum){.cost = -1};
    ah_buf_reset(&t->root_done, 0);
}

static void add_usage(ah_usage_sum *sum, ah_slice event)
{
    ah_json_num cost;

    sum->input += integer(event, "input");
    sum->cached += integer(event, "cached_read");
    sum->output += integer(event, "output");
    sum->known = sum->known || truth(event, "known");
    if (ah_json_number(ah_json_member(event, "cost"), &cost))
        sum->cost = cost.d + (sum->cost < 0 ? 0 : sum->cost);
}

static void usage(ah_tally *t, ah_slice event)
{
    t->turns++;
    add_usage(&t->usage, event);
    if (integer(event, "run") == t->root)
        add_usage(&t->root_usage, event);
    do_now(t, t->tools ? AH_DOING_TOOLS : AH_DOING_NOTHING);
}

static void tool_started(ah_tally *t, ah_slice event)
{
    t->tools++;
    *t->progress = '\0';
    ascii(t, event, "name", t->tool, sizeof t->tool);
    do_now(t, AH_DOING_TOOLS);
}

/* Of the handler that told last: "indexing, 40 %". */
static void tool_progress(ah_tally *t, ah_slice event)
{
    ah_json_num fraction;
    size_t n;

    ascii(t, event, "name", t->tool, sizeof t->tool);
    ascii(t, event, "message", t->progress, sizeof t->progress);
    n = strlen(t->progress);
    if (ah_json_number(ah_json_member(event, "fraction"), &fraction))
        snprintf(t->progress + n, sizeof t->progress - n, "%s%.0f %%", n ? ", " : "", 100 * fraction.d);
}

/* A refused call was never started: beside handlers at work it makes their number one too low. */
static void tool_invoked(ah_tally *t, ah_slice event)
{
    t->calls++;
    t->failed += !truth(event, "success");
    *t->progress = '\0';
    if (t->tools > 0 && --t->tools == 0)
        do_now(t, AH_DOING_NOTHING);
}

static void done(ah_tally *t, ah_slice event)
{
    if (t->at_work > 0 && --t->at_work == 0)
        t->tools = 0;
    do_now(t, t->tools ? AH_DOING_TOOLS : AH_DOING_NOTHING);
    if (integer(event, "run") != t->root)
        return;
    ah_buf_reset(&t->root_done, 0);
    ah_buf_put(&t->root_done, event);
}

static void request(ah_tally *t, ah_slice event)
{
    (void)event;
    do_now(t, AH_DOING_REQUEST);
}

static void retry(ah_tally *t, ah_slice event)
{
    t->retry = integer(event, "attempt");
    do_now(t, AH_DOING_RETRY);
}

void ah_tally_event(ah_tally *t, ah_slice event)
{
    static const struct {
        const char *type;
        void (*fn)(ah_tally *t, ah_slice event);
    } counted[] = {{"start", start},
                   {"request", request},
                   {"retry", retry},
                   {"usage", usage},
                   {"tool_started", tool_started},
                   {"tool_progress", tool_progress},
                   {"tool_invoked", tool_invoked},
                   {"done", done}};
    ah_slice type = ah_json_member(event, "type");

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (ah_json_string_is(type, counted[i].type))
            counted[i].fn(t, event);
}

ah_slice ah_tally_done(const ah_tally *t, const char *member)
{
    if (!t->root_done.len || !ah_buf_ok(&t->root_done))
        return (ah_slice){NULL, 0};
    return ah_json_member(ah_buf_slice(&t->root_done), member);
}

bool ah_tally_ended_well(const ah_tally *t)
{
    return ah_slice_is(ah_tally_done(t, "success"), "true");
}
