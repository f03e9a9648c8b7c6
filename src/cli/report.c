/* The answer itself and error texts are printed elsewhere. Without memory the texts of the program
 * are left out, except those that other programs read. */
#include "cli/report.h"

#include <string.h>
#include <time.h>

enum { PATIENCE_MS = 500, TICK_MS = 250 };

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The program's text, valid until the next call; NULL: none. */
static const char *ask(const ah_report *r, const char *member, int argc, const char *const *argv)
{
    ah_host *programs = r->programs->host(r->programs->ud);

    if (!programs || ah_program_call(programs, "report", member, argc, argv) != AH_OK)
        return NULL;
    return ah_returned(programs);
}

/* -- during the run ------------------------------------------------------------------------ */

static bool is_counted(const char *type)
{
    static const char *const counted[] = {
        "start",        "resumed",       "request",      "retry", "queued",      "usage",
        "tool_started", "tool_progress", "tool_invoked", "done",  "map_progress"};

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (strcmp(type, counted[i]) == 0)
            return true;
    return false;
}

void ah_report_event(ah_report *r, const ah_event *event)
{
    const char *state;

    if (!is_counted(event->type))
        return;
    if (!r->begun)
        r->begun = now_ms();
    state = ask(r, "event", 1, &event->json);
    if (!state || !*state)
        return;
    r->at_once = strcmp(state, "map") == 0;
    r->waiting = r->at_once || strcmp(state, "wait") == 0;
    r->since = now_ms();
}

void ah_report_call(ah_report *r, ah_terminal *terminal, const ah_event *event)
{
    const char *line =
        strcmp(event->type, "tool_invoked") == 0 ? ask(r, "call", 1, &event->json) : NULL;

    if (line)
        ah_terminal_log(terminal, AH_LOG_INFO, line);
}

/* The shorter of the two times, ms; timeout_ms < 0: no limit. */
static int sooner(int timeout_ms, int64_t ms)
{
    return timeout_ms < 0 || ms < timeout_ms ? (int)ms : timeout_ms;
}

int ah_report_progress(ah_report *r, ah_terminal *terminal, int timeout_ms)
{
    int64_t waited = now_ms() - r->since;
    const char *line, *argv[1];
    char seconds[32];

    if (timeout_ms == 0 || !r->waiting) {
        ah_terminal_erase(terminal);
        return timeout_ms;
    }
    if (waited < PATIENCE_MS && !r->at_once)
        return sooner(timeout_ms, PATIENCE_MS - waited);
    snprintf(seconds, sizeof seconds, "%lld", (long long)waited / 1000);
    argv[0] = seconds;
    line = ask(r, "progress", 1, argv);
    if (line)
        ah_terminal_draw(terminal, line);
    return sooner(timeout_ms, TICK_MS);
}

/* -- at the end ---------------------------------------------------------------------------- */

/* Writes a character of n bytes as JSON's escape. */
static void write_escape(FILE *out, const char *p, size_t n)
{
    unsigned number = ah_terminal_number(p, n);

    if (number >= 0x10000) {
        fprintf(out, "\\u%04x", 0xd7c0 + (number >> 10));
        number = 0xdc00 + (number & 0x3ff);
    }
    fprintf(out, "\\u%04x", number);
}

void ah_report_json(FILE *out, const char *json, size_t size)
{
    size_t from = 0, n;

    for (size_t i = 0; i < size; i += n) {
        size_t control = ah_control_char(json + i, size - i);

        n = control ? control : 1;
        if (!control)
            continue;
        fwrite(json + from, 1, i - from, out);
        write_escape(out, json + i, n);
        from = i + n;
    }
    fwrite(json + from, 1, size - from, out);
    fputc('\n', out);
    fflush(out);
}

static void write_line(FILE *out, const char *json)
{
    static const char none[] =
        "{\"error\":{\"code\":\"internal\",\"message\":\"no memory, or no file, for the report\"}}";

    json = json ? json : none;
    ah_report_json(out, json, strlen(json));
}

void ah_report_object(ah_report *r, FILE *out, const ah_ending *e)
{
    const char *argv[] = {e->code, e->message, r->kept.id, r->kept.head};

    write_line(out, ask(r, "object", 4, argv));
}

void ah_report_last_line(ah_report *r, FILE *out, const ah_ending *e)
{
    char seconds[40];
    const char *argv[] = {e->code, e->message, seconds, r->kept.id, r->kept.head};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(seconds, sizeof seconds, "%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
    write_line(out, ask(r, "last_line", 5, argv));
}

void ah_report_closing(ah_report *r, ah_terminal *terminal)
{
    char seconds[40];
    const char *argv[] = {seconds, r->kept.head}, *lines;

    if (!r->begun)
        return;
    snprintf(seconds, sizeof seconds, "%.3f", (double)(now_ms() - r->begun) / 1000);
    lines = ask(r, "closing", 2, argv);
    if (lines && *lines)
        ah_terminal_say(terminal, lines);
}
