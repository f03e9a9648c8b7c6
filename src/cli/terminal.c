/* Records are assembled, cleaned of control characters and written in one piece. Escape sequences
 * occur only here: three colours, and those that show a line below the cursor, which are sent to a
 * terminal only. */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/signals.h"
#include "cli/tty.h"

enum { UNTOUCHED = 0xff };        /* occurs in no text */
enum { NARROW = 20, WIDE = 200 }; /* columns: minimum width for a line of progress; its maximum */

/* A record is assembled here, so that stderr, which is unbuffered, gets it in one piece (longer
 * ones in several). */
typedef struct record {
    FILE *out;
    char data[1024];
    size_t n;
} record;

static void flush(record *r)
{
    fwrite(r->data, 1, r->n, r->out);
    r->n = 0;
}

/* Removes the lines below before a record; a script's lines are drawn again after it. */
static void begin(ah_terminal *t)
{
    ah_terminal_erase(t);
    if (t->people)
        ah_tty_hide();
}

static void end(const ah_terminal *t, record *r)
{
    flush(r);
    if (t->people)
        ah_tty_show();
}

static void add_bytes(record *r, const char *p, size_t n)
{
    if (n > sizeof r->data - r->n)
        flush(r);
    memcpy(r->data + r->n, p, n); /* n is at most the length of one of our own texts */
    r->n += n;
}

static void add(record *r, const char *s)
{
    add_bytes(r, s, strlen(s));
}

unsigned ah_terminal_number(const char *p, size_t n)
{
    unsigned c = (unsigned char)*p;

    if (n == 1)
        return c;
    c &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned)p[i] & 0x3f);
    return c;
}

/* Adds a character that a terminal would interpret, as its code. */
static void add_code(record *r, const char *p, size_t n)
{
    unsigned number = ah_terminal_number(p, n);
    char code[16];

    snprintf(code, sizeof code,
             number < 0x100     ? "\\x%02x"
             : number < 0x10000 ? "\\u%04x"
                                : "\\u{%x}",
             number);
    add(r, code);
}

/* Returns the length of the character of UTF-8, 0: it is none. */
static size_t char_len(const char *p, size_t left)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    unsigned number;

    for (size_t i = 1; i < n; i++)
        if (i >= left || ((unsigned)p[i] & 0xc0) != 0x80)
            return 0;
    number = n > 2 ? ah_terminal_number(p, n) : 0;
    if ((n == 3 && (number < 0x800 || number >> 11 == 0x1b)) ||
        (n == 4 && (number < 0x10000 || number > 0x10ffff)))
        return 0;
    return n;
}

/* Adds the first character, as its code if a terminal would interpret it or if it is not UTF-8.
 * Line ends and tabs stay. Returns its length. */
static size_t add_char(record *r, const char *p, size_t left)
{
    size_t n = *p == '\n' || *p == '\t' ? 0 : ah_control_char(p, left);

    if (n) {
        add_code(r, p, n);
    } else if ((n = char_len(p, left)) != 0) {
        add_bytes(r, p, n);
    } else {
        add_code(r, p, n = 1);
    }
    return n;
}

/* Texts of models and servers are printed by this: control characters appear as codes, and only the
 * first line can look like one of ours. */
static void add_shown(record *r, const char *s)
{
    static const char ours[] = "agenthost: ";
    size_t left = strlen(s), n;

    for (const char *p = s; left; p += n, left -= n) {
        if (p > s && p[-1] == '\n' && strncmp(p, ours, sizeof ours - 1) == 0)
            add(r, "  ");
        n = add_char(r, p, left);
    }
}

void ah_terminal_answer(FILE *out, const char *text, size_t n)
{
    record r = {.out = out};

    if (!isatty(fileno(out)))
        fwrite(text, 1, n, out);
    else
        for (size_t i = 0; i < n;)
            i += add_char(&r, text + i, n - i);
    add(&r, "\n");
    flush(&r);
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

static void say(ah_terminal *t, ah_log_level level, const char *label, const char *text)
{
    record r = {.out = stderr};

    begin(t);
    if (t->colour)
        add(&r, colour_of(level));
    add(&r, "agenthost: ");
    add(&r, label);
    if (t->colour)
        add(&r, "\033[0m");
    add_shown(&r, text);
    add(&r, "\n");
    end(t, &r);
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

static bool is_dumb(void)
{
    return !is_set("TERM") || strcmp(getenv("TERM"), "dumb") == 0;
}

/* Opened in the wrong direction, so that using a closed stream stays an error. */
static void fill(int fd)
{
    if (fcntl(fd, F_GETFD) == -1)
        (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void ah_terminal_init(ah_terminal *t)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        fill(fd);
    *t = (ah_terminal){.people = isatty(STDERR_FILENO), .out = stdout};
    t->cursor = t->people && !is_dumb() && !is_set("CI");
    ah_terminal_colour(t, NULL);
    memset(t->buffer, UNTOUCHED, sizeof t->buffer);
    setvbuf(stdout, t->buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof t->buffer);
}

bool ah_terminal_wrote(const ah_terminal *t)
{
    size_t i = 0;

    while (i < sizeof t->buffer && (unsigned char)t->buffer[i] == UNTOUCHED)
        i++;
    return i < sizeof t->buffer;
}

/* no-color.org: a non-empty NO_COLOR means no colour, but a flag or the settings override it. */
void ah_terminal_colour(ah_terminal *t, const char *when)
{
    if (when && strcmp(when, "auto") != 0)
        t->colour = strcmp(when, "always") == 0;
    else
        t->colour = t->people && !is_dumb() && !is_set("NO_COLOR");
}

bool ah_terminal_take_stdout(ah_terminal *t)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (fd == -1)
        return false;
    if (dup2(STDERR_FILENO, STDOUT_FILENO) == -1 || !(t->out = fdopen(fd, "w"))) {
        t->out = stdout;
        close(fd);
        return false;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that its lines appear among the messages in order */
    ah_signals_output(fd);
    return true;
}

void ah_terminal_error(ah_terminal *t, const char *text)
{
    fflush(stdout); /* keeps the order of earlier output */
    say(t, AH_LOG_ERROR, "", text);
}

/* Runs that are cancelled because the reader of the output is gone end without a message. */
void ah_terminal_log(void *terminal, ah_log_level level, const char *line)
{
    if (ah_signals_reader_gone())
        return;
    say(terminal, level, label_of(level), line);
}

void ah_terminal_say(ah_terminal *t, const char *text)
{
    record r = {.out = stderr};

    begin(t);
    add(&r, t->colour ? "\033[2m" : "");
    add_shown(&r, text);
    add(&r, t->colour ? "\033[0m\n" : "\n");
    end(t, &r);
}

/* -- the line of progress ----------------------------------------------------------------- */

/* Read each time, so that no signal about a resize is needed. */
static int columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < WIDE ? size.ws_col : WIDE;
}

/* Index and reverse index ensure that there is a line below. Then the cursor is saved with its
 * column, so that unfinished text of the script stays. */
void ah_terminal_draw(ah_terminal *t, const char *line)
{
    int width = columns();
    char out[WIDE + 64];
    size_t n;

    if (!t->cursor || width < NARROW || ah_tty_is_open()) {
        ah_terminal_erase(t);
        return;
    }
    fflush(stdout); /* keeps the order of earlier output */
    n = (size_t)snprintf(out, sizeof out, "\033D\033M\0337\033D\r\033[J%s%.*s%s\0338",
                         t->colour ? "\033[2m" : "", width - 1, line, t->colour ? "\033[0m" : "");
    ah_signals_drawn(); /* first: a signal may come in between */
    fwrite(out, 1, n, stderr);
    t->drawn = true;
}

void ah_terminal_erase(ah_terminal *t)
{
    if (!t->drawn)
        return;
    fputs(AH_ERASE_LINE, stderr);
    t->drawn = false;
}

/* -- for scripts --------------------------------------------------------------------------- */

/* Flushes earlier output first. */
static void writing(void *terminal)
{
    ah_terminal_erase(terminal);
    fflush(stdout);
}

ah_tty ah_terminal_tty(ah_terminal *t)
{
    ah_tty tty = ah_tty_of(!is_dumb());

    tty.writing = writing;
    tty.color = t->colour && !is_dumb();
    tty.ud = t;
    return tty;
}

static int finish(FILE *f)
{
    int failed = ferror(f) ? -1 : 0;

    if (fclose(f) != 0)
        failed = errno;
    return failed;
}

int ah_terminal_finish(ah_terminal *t)
{
    int own = t->out == stdout ? 0 : finish(t->out), failed = finish(stdout);

    ah_terminal_erase(t);
    t->out = stdout;
    return own ? own : failed;
}
