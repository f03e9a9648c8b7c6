/* Records are put together, cleaned of control characters and written in one piece.
 * Colour is three escape sequences and no library; there is no cursor movement, so
 * that a log in a file reads like one on a screen. */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A record is put together here, so that stderr, which has no buffer, gets it in one
 * piece (longer ones in several). */
typedef struct record {
    char data[1024];
    size_t n;
} record;

static void flush(record *r)
{
    fwrite(r->data, 1, r->n, stderr);
    r->n = 0;
}

static void add_bytes(record *r, const char *p, size_t n)
{
    if (n > sizeof r->data - r->n)
        flush(r);
    memcpy(r->data + r->n, p, n); /* n is at most a word of ours */
    r->n += n;
}

static void add(record *r, const char *s)
{
    add_bytes(r, s, strlen(s));
}

/* Control characters, C1 as UTF-8 included, would be commands to a terminal, and texts of
 * models and servers come this way. */
static bool is_control(const unsigned char *p)
{
    if (*p == '\n' || *p == '\t')
        return false;
    return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
}

static void add_shown(record *r, const char *s)
{
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        char code[8];

        if (!is_control(p)) {
            add_bytes(r, (const char *)p, 1);
            continue;
        }
        if (*p == 0xc2)
            p++;
        snprintf(code, sizeof code, "\\x%02x", *p);
        add(r, code);
    }
}

static const char *colour_of(ah_log_level level)
{
    switch (level) {
    case AH_LOG_DEBUG:
    case AH_LOG_INFO:
        return "\033[2m"; /* faint */
    case AH_LOG_WARNING:
        return "\033[33m"; /* yellow */
    case AH_LOG_ERROR:
    case AH_LOG_OFF:
        break;
    }
    return "\033[31m"; /* red */
}

static const char *label_of(ah_log_level level)
{
    switch (level) {
    case AH_LOG_DEBUG:
        return "debug: ";
    case AH_LOG_INFO:
        return "info: ";
    case AH_LOG_WARNING:
        return "warning: ";
    case AH_LOG_ERROR:
    case AH_LOG_OFF:
        break;
    }
    return "error: ";
}

static void say(const ah_terminal *t, ah_log_level level, const char *label, const char *text)
{
    record r = {.n = 0};

    if (t->colour)
        add(&r, colour_of(level));
    add(&r, "agenthost: ");
    add(&r, label);
    if (t->colour)
        add(&r, "\033[0m");
    add_shown(&r, text);
    add(&r, "\n");
    flush(&r);
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* no-color.org: set and not empty means none. */
static bool wants_colour(void)
{
    return isatty(STDERR_FILENO) && is_set("TERM") && strcmp(getenv("TERM"), "dumb") != 0 &&
           !is_set("NO_COLOR");
}

/* Opened the wrong way round, so that using a closed stream stays an error. */
static void fill(int fd)
{
    if (fcntl(fd, F_GETFD) == -1)
        (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void ah_terminal_init(ah_terminal *t)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        fill(fd);
    t->colour = wants_colour();
}

void ah_terminal_error(const ah_terminal *t, const char *text)
{
    fflush(stdout); /* what was printed before comes before */
    say(t, AH_LOG_ERROR, "", text);
}

void ah_terminal_log(void *terminal, ah_log_level level, const char *line)
{
    say(terminal, level, label_of(level), line);
}

int ah_terminal_finish(void)
{
    int failed = ferror(stdout) ? -1 : 0;

    if (fclose(stdout) != 0)
        failed = errno;
    return failed;
}
