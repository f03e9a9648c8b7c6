/* Each call is kept as a hash of its name and canonical arguments, in a ring; the call itself is
 * not kept. */
#include "run/loop_detector.h"

enum { MAX_SHOWN = 100 }; /* bytes of a name in a message */

const ah_loop_detector_rules ah_loop_rules_default = {
    .warn = AH_LOOP_WARN, .stop = AH_LOOP_STOP, .window = 10, .pattern_window = 20};

int ah_loop_detector_least_window(int stop)
{
    return stop - 1;
}

int ah_loop_detector_least_pattern_window(int stop)
{
    return AH_LOOP_PATTERN * (stop - 1) + 1;
}

/* -- the hash of a call --------------------------------------------------------- */

static uint64_t hash(ah_slice name, ah_slice arguments, bool json)
{
    return ah_slice_hash(name) * 31 + (json ? ah_json_hash(arguments) : ah_slice_hash(arguments));
}

static bool is_exempt(const ah_loop_detector *g, ah_slice name)
{
    ah_json_reader r = ah_json_read(g->rules.exempt);
    ah_json_token t = {0};

    if (!g->rules.exempt.n)
        return false;
    for (t = ah_json_next(&r); t.kind != AH_JSON_END; t = ah_json_next(&r))
        if (t.kind == AH_JSON_STRING && ah_slice_eq(t.raw, name))
            return true;
    return false;
}

/* -- counting ----------------------------------------------------------------------- */

static void remember(ah_loop_detector *g, uint64_t h)
{
    if (g->n == AH_LOOP_MOST) {
        memmove(g->seen, g->seen + 1, (AH_LOOP_MOST - 1) * sizeof *g->seen);
        g->n--;
    }
    g->seen[g->n++] = h;
}

/* Counts how often the last call occurs in its window. */
static int count_same(const ah_loop_detector *g)
{
    size_t last = g->n - 1, window = (size_t)g->rules.window;
    size_t from = last > window ? last - window : 0;
    int times = 0;

    for (size_t i = from; i <= last; i++)
        times += g->seen[i] == g->seen[last];
    return times;
}

/* Counts how often the last `length` calls occur in turn, including a repetition that is not
 * complete. */
static int count_pattern(const ah_loop_detector *g, size_t length)
{
    size_t window = (size_t)g->rules.pattern_window, most = g->n < window ? g->n : window;
    size_t run = length; /* number of calls at the end that follow the pattern */

    if (most <= length)
        return 1;
    while (run < most && g->seen[g->n - 1 - run + length] == g->seen[g->n - 1 - run])
        run++;
    return (int)((run + length - 1) / length);
}

ah_repeat ah_loop_detector_note(ah_loop_detector *g, ah_slice name, ah_slice arguments, bool json)
{
    ah_repeat r = {.length = 1};

    if (!g->rules.stop || is_exempt(g, name))
        return (ah_repeat){0};
    remember(g, hash(name, arguments, json));
    r.times = count_same(g);
    for (int length = 2; length <= AH_LOOP_PATTERN; length++) {
        int times = count_pattern(g, (size_t)length);

        if (times > r.times) {
            r.times = times;
            r.length = length;
        }
    }
    r.stop = r.times >= g->rules.stop;
    r.warn = !r.stop && r.times >= g->rules.warn;
    return r;
}

/* -- messages ------------------------------------------------------------------------- */

static const char *suffix(int n)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};

    return n / 10 % 10 == 1 || n % 10 > 3 ? "th" : endings[n % 10];
}

void ah_loop_detector_say(const ah_loop_detector *g, const ah_repeat *r, ah_slice name, ah_buf *out)
{
    int shown = (int)(name.n > MAX_SHOWN ? ah_utf8_cut(name.p, MAX_SHOWN) : name.n);

    if (r->length == 1)
        ah_buf_fmt(
            out, "tool '%.*s' was called with the same arguments for the %d%s time within %d calls",
            shown, name.p, r->times, suffix(r->times), g->rules.window + 1);
    else
        ah_buf_fmt(
            out,
            "the same %d calls, that of tool '%.*s' among them, were made in turn for the %d%s "
            "time within %d calls",
            r->length, shown, name.p, r->times, suffix(r->times), g->rules.pattern_window);
}
