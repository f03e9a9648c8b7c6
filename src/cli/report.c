/* Written from what the script left: its reply, its error, the counts. The answer itself, and
 * words about what went wrong, are printed elsewhere. */
#include "cli/report.h"

#include <string.h>
#include <time.h>

enum { MAX_REPORT = 1 << 30, PATIENCE_MS = 500, TICK_MS = 250 };
enum { SHORT = 80, SHORT_NAME = 64 }; /* bytes of a text in the line of a call */

/* -- for programs ------------------------------------------------------------------------ */

static void put_usage(ah_buf *b, const ah_usage_sum *u)
{
    ah_buf_fmt(b, "{\"cached_read\":%lld,", (long long)u->cached);
    if (u->cost >= 0) {
        ah_buf_str(b, "\"cost\":");
        ah_json_put_double(b, u->cost);
        ah_buf_char(b, ',');
    }
    ah_buf_fmt(b, "\"input\":%lld,\"known\":%s,\"output\":%lld}", (long long)u->input,
               u->known ? "true" : "false", (long long)u->output);
}

static void put_reply(ah_buf *b, const ah_tally *t)
{
    static const char *const members[] = {"iterations", "stop", "text", "tool_calls"};

    if (!ah_tally_ended_well(t)) {
        ah_buf_str(b, "{\"reply\":null}");
        return;
    }
    ah_buf_str(b, "{\"reply\":{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        ah_buf_fmt(b, "\"%s\":", members[i]);
        ah_buf_put(b, ah_tally_done(t, members[i]));
        ah_buf_char(b, ',');
    }
    ah_buf_str(b, "\"usage\":");
    put_usage(b, &t->root_usage);
    if (ah_tally_done(t, "value").p) {
        ah_buf_str(b, ",\"value\":");
        ah_buf_put(b, ah_tally_done(t, "value"));
    }
    ah_buf_str(b, "}}");
}

static void put_words(ah_buf *b, const ah_ending *e)
{
    size_t n = strlen(e->code);
    const char *message = e->message;
    ah_buf clean;

    if (strncmp(message, e->code, n) == 0 && strncmp(message + n, ": ", 2) == 0)
        message += n + 2;
    ah_buf_init(&clean, &ah_mem_libc, MAX_REPORT);
    ah_utf8_repair(ah_slice_of(message), &clean);
    ah_buf_fmt(b, "\"code\":\"%s\",\"message\":", e->code);
    ah_json_put_string(b, ah_buf_slice(&clean));
    ah_buf_clear(&clean);
}

static bool is_well(const ah_ending *e)
{
    return strcmp(e->code, "ok") == 0;
}

/* The number of the character of n bytes. */
static unsigned number_of(const char *p, size_t n)
{
    unsigned c = (unsigned char)*p;

    if (n == 1)
        return c;
    c &= n == 2 ? 0x1f : 0x0f;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned)p[i] & 0x3f);
    return c;
}

void ah_report_json(FILE *out, ah_slice json)
{
    size_t from = 0, n;

    for (size_t i = 0; i < json.n; i += n) {
        size_t control = ah_control_len((ah_slice){json.p + i, json.n - i});

        n = control ? control : 1;
        if (!control)
            continue;
        fwrite(json.p + from, 1, i - from, out);
        fprintf(out, "\\u%04x", number_of(json.p + i, n));
        from = i + n;
    }
    fwrite(json.p + from, 1, json.n - from, out);
    fputc('\n', out);
    fflush(out);
}

static void write_line(FILE *out, ah_buf *b)
{
    ah_report_json(out, ah_buf_slice(b));
    ah_buf_clear(b);
}

void ah_report_object(FILE *out, const ah_tally *t, const ah_ending *e)
{
    ah_buf b;

    ah_buf_init(&b, &ah_mem_libc, MAX_REPORT);
    if (is_well(e)) {
        put_reply(&b, t);
    } else {
        ah_buf_str(&b, "{\"error\":{");
        put_words(&b, e);
        ah_buf_str(&b, "}}");
    }
    write_line(out, &b);
}

void ah_report_last_line(FILE *out, const ah_tally *t, const ah_ending *e)
{
    struct timespec now;
    ah_buf b;

    clock_gettime(CLOCK_REALTIME, &now);
    ah_buf_init(&b, &ah_mem_libc, MAX_REPORT);
    ah_buf_fmt(&b, "{\"type\":\"done\",\"time\":%lld.%03ld,\"success\":%s,", (long long)now.tv_sec,
               now.tv_nsec / 1000000, is_well(e) ? "true" : "false");
    put_words(&b, e);
    ah_buf_fmt(&b,
               ",\"runs\":%lld,\"iterations\":%lld,\"tool_calls\":%lld,\"usage\":", (long long)t->runs,
               (long long)t->turns, (long long)t->calls);
    put_usage(&b, &t->usage);
    ah_buf_char(&b, '}');
    write_line(out, &b);
}

/* -- for people --------------------------------------------------------------------------- */

/* 1234567 as "1,234,567". */
static const char *grouped(int64_t n, char out[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    char *to = out;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void ah_report_closing(ah_terminal *terminal, const ah_tally *t)
{
    char line[160], in[32], cached[32], out[32], cost[32] = "";

    if (t->usage.cost >= 0) /* more digits where little was spent */
        snprintf(cost, sizeof cost, ", $%.*f", t->usage.cost < 0.01 ? 6 : 4, t->usage.cost);
    if (!t->runs)
        return;
    snprintf(line, sizeof line, "turns   %lld in %lld run%s, %.1f s", (long long)t->turns,
             (long long)t->runs, plural(t->runs), (double)(ah_tally_now() - t->begun) / 1000);
    ah_terminal_say(terminal, line);
    snprintf(line, sizeof line, "tools   %lld call%s, %lld failed", (long long)t->calls,
             plural(t->calls), (long long)t->failed);
    ah_terminal_say(terminal, line);
    if (t->usage.known)
        snprintf(line, sizeof line, "tokens  %s in (%s cached), %s out%s", grouped(t->usage.input, in),
                 grouped(t->usage.cached, cached), grouped(t->usage.output, out), cost);
    else
        snprintf(line, sizeof line, "tokens  unknown: the provider did not say%s", cost);
    ah_terminal_say(terminal, line);
}

static void describe_tools(const ah_tally *t, char *out, size_t size)
{
    char more[40] = "";

    if (t->tools > 1)
        snprintf(more, sizeof more, " and %lld more", (long long)t->tools - 1);
    if (*t->progress)
        snprintf(out, size, "%s: %s%s", t->tool, t->progress, more);
    else
        snprintf(out, size, "%s%s at work", t->tool, more);
}

static void describe(const ah_tally *t, char *out, size_t size)
{
    switch (t->doing) {
    case AH_DOING_REQUEST:
        snprintf(out, size, "waiting for %s", t->model);
        break;
    case AH_DOING_TOOLS:
        describe_tools(t, out, size);
        break;
    case AH_DOING_RETRY:
        snprintf(out, size, "%s failed, retry %lld follows", t->model, (long long)t->retry);
        break;
    case AH_DOING_NOTHING:
        *out = '\0';
        break;
    }
}

/* Text of a model or a tool on one line, cut to `most` characters' worth of bytes. */
static void put_short(ah_buf *line, ah_slice text, size_t most)
{
    bool cut = text.n > most;
    size_t n = cut ? ah_utf8_cut(text.p, most) : text.n;

    for (size_t i = 0; i < n; i++)
        ah_buf_char(line, strchr("\n\r\t", text.p[i]) && text.p[i] ? ' ' : text.p[i]);
    ah_buf_str(line, cut ? "..." : "");
}

static void put_member(ah_buf *line, ah_slice event, const char *name, size_t most)
{
    ah_buf text;

    ah_buf_init(&text, &ah_mem_libc, MAX_REPORT);
    ah_json_string(ah_json_member(event, name), &text);
    if (ah_buf_ok(&text))
        put_short(line, ah_buf_slice(&text), most);
    ah_buf_clear(&text);
}

void ah_report_call(ah_terminal *terminal, ah_slice event)
{
    bool well = ah_slice_is(ah_json_member(event, "success"), "true");
    ah_json_num duration = {.d = 0};
    ah_buf line;

    if (!ah_json_string_is(ah_json_member(event, "type"), "tool_invoked"))
        return;
    ah_json_number(ah_json_member(event, "duration"), &duration);
    ah_buf_init(&line, &ah_mem_libc, MAX_REPORT);
    ah_buf_str(&line, ah_json_member(event, "parent").p ? "  " : ""); /* of a run within a call */
    put_member(&line, event, "name", SHORT_NAME);
    ah_buf_char(&line, ' ');
    put_member(&line, event, "arguments", SHORT);
    ah_buf_fmt(&line, " %s in %.*f s: ", well ? "ok" : "failed", duration.d < 1 ? 3 : 1, duration.d);
    put_member(&line, event, "content", SHORT);
    ah_buf_char(&line, '\0');
    if (ah_buf_ok(&line))
        ah_terminal_log(terminal, AH_LOG_INFO, line.data);
    ah_buf_clear(&line);
}

/* How long until it is worth looking again. */
static int sooner(int timeout_ms, int64_t ms)
{
    return timeout_ms < 0 || ms < timeout_ms ? (int)ms : timeout_ms;
}

int ah_report_progress(ah_terminal *terminal, const ah_tally *t, int timeout_ms)
{
    int64_t waited = ah_tally_now() - t->since;
    int64_t spent = t->usage.input + t->usage.output;
    char what[220], line[320], tokens[32];

    if (timeout_ms == 0 || !t->at_work || t->doing == AH_DOING_NOTHING) {
        ah_terminal_erase(terminal);
        return timeout_ms;
    }
    if (waited < PATIENCE_MS)
        return sooner(timeout_ms, PATIENCE_MS - waited);
    describe(t, what, sizeof what);
    snprintf(line, sizeof line, "%s, %lld s%s%s%s", what, (long long)waited / 1000, spent ? ", " : "",
             spent ? grouped(spent, tokens) : "", spent ? " tokens so far" : "");
    ah_terminal_draw(terminal, line);
    return sooner(timeout_ms, TICK_MS);
}
