/* Cases of a terminal that the program gives its scripts: a pair of sockets in place of one, so
 * that what is typed and what is shown is the case's own. */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct tty {
    int ours, theirs, news[2];
    int refuse; /* what enter returns */
    unsigned mode;
    int entered, left, suspended, writings;
    bool kept;
    char away[AH_TTY_AWAY];
    size_t n_away;
} tty;

static int enter(void *ud, unsigned mode, int *fd, int *news)
{
    tty *t = ud;

    if (t->refuse)
        return t->refuse;
    t->entered++;
    t->mode = mode;
    t->kept = false;
    *fd = t->theirs;
    *news = t->news[0];
    return 0;
}

static void leave(void *ud)
{
    ((tty *)ud)->left++;
}

static void suspend(void *ud)
{
    tty *t = ud;

    t->suspended++;
    t->kept = false;
}

static void writing(void *ud)
{
    ((tty *)ud)->writings++;
}

static void shown(void *ud, const char *away, size_t n)
{
    tty *t = ud;

    CHECK(n <= sizeof t->away);
    memcpy(t->away, away, n);
    t->n_away = n;
    t->kept = true;
}

static bool kept(void *ud)
{
    return ((tty *)ud)->kept;
}

static ah_host *open_with(tty *t)
{
    int pair[2];

    *t = (tty){.kept = true};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(t->news) == 0);
    t->ours = pair[0];
    t->theirs = pair[1];
    CHECK(fcntl(t->theirs, F_SETFL, O_NONBLOCK) == 0 &&
          fcntl(t->news[0], F_SETFL, O_NONBLOCK) == 0);
    return open_host((ah_config){.tty = {.enter = enter,
                                         .leave = leave,
                                         .suspend = suspend,
                                         .writing = writing,
                                         .shown = shown,
                                         .kept = kept,
                                         .sequences = true,
                                         .color = true,
                                         .ud = t}});
}

static void shut_all(ah_host *host, tty *t)
{
    shut(host);
    CHECK(t->entered == t->left);
    close(t->ours);
    close(t->theirs);
    close(t->news[0]);
    close(t->news[1]);
}

static void type(tty *t, const char *keys)
{
    CHECK(write(t->ours, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

static const char *seen(tty *t)
{
    static char text[4096];
    ssize_t n = recv(t->ours, text, sizeof text - 1, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void gives_keys_and_shows_texts(void)
{
    tty t;
    ah_host *host = open_with(&t);

    type(&t, "a\033[A");
    load(host, "local ah = require 'agenthost'\n"
               "terminal = assert(ah.terminal { signals = false })\n"
               "assert(terminal:key().key == 'a' and terminal:key().key == 'up')\n"
               "assert(select(2, terminal:key(0)).code == 'deadline_exceeded')\n"
               "local columns, rows = terminal:size()\n"
               "assert(columns == 80 and rows == 24)\n"
               "assert(terminal:live({ 'one', 'two' }, { line = 2 }))\n"
               "terminal:print_above { 'text', bold = true }\n");
    CHECK(t.mode == 0 && t.entered == 1 && t.left == 0 && t.writings > 0);
    CHECK(t.n_away > 0 && memcmp(t.away, "\r\033[1A\033[J", t.n_away) == 0);
    HAS(seen(&t), "\033[1mtext\033[0m\n");
    load(host, "terminal:close() terminal:close()");
    shut_all(host, &t);
}

/* The program has taken the area away and written itself. */
static void draws_again_what_was_taken_away(void)
{
    tty t;
    ah_host *host = open_with(&t);

    load(host, "local ah = require 'agenthost'\n"
               "terminal = assert(ah.terminal()) terminal:live { 'live' }");
    CHECK(t.mode == AH_TTY_SIGNALS);
    HAS(seen(&t), "live");
    t.kept = false;
    CHECK(write(t.news[1], "", 1) == 1);
    load(host, "require 'agenthost'.sleep(0.05)");
    HAS(seen(&t), "live");
    load(host, "terminal:suspend()");
    CHECK(t.suspended == 1);
    HAS(seen(&t), "live");
    shut_all(host, &t);
}

static void is_left_with_the_host(void)
{
    static const char script[] = "assert(require 'agenthost'.terminal()) error 'oops'";
    tty t;
    ah_host *host = open_with(&t);

    STATUS(host, ah_load(host, "case.lua", script, strlen(script), 0, NULL), AH_INTERNAL);
    HAS(ah_errmsg(host), "oops");
    CHECK(t.entered == 1);
    shut_all(host, &t);
    host = open_with(&t);
    load(host, "assert(require 'agenthost'.terminal()) collectgarbage() collectgarbage()");
    CHECK(t.left == 1);
    shut_all(host, &t);
}

static void ends_where_the_other_end_is_gone(void)
{
    tty t;
    ah_host *host = open_with(&t);

    type(&t, "x\033");
    shutdown(t.ours, SHUT_WR);
    load(host, "local t <close> = assert(require 'agenthost'.terminal())\n"
               "assert(t:key().key == 'x' and t:key().key == 'escape')\n"
               "for _ = 1, 3 do assert(select('#', t:key()) == 1 and t:key() == nil) end\n");
    shut_all(host, &t);
}

static void says_why_there_is_none(void)
{
    tty t;
    ah_host *host = open_with(&t);

    t.refuse = EBUSY;
    load(host, "assert(select(2, require 'agenthost'.terminal()).message:find 'open already')");
    t.refuse = ENOTTY;
    load(host,
         "assert(select(2, require 'agenthost'.terminal()).message:find 'there is no terminal')");
    shut_all(host, &t);
    host = open_plain();
    load(host, "assert(select(2, require 'agenthost'.terminal()).message:find 'ah_config')");
    shut(host);
}

const a_case tty_cases[] = {
    {"a terminal gives keys and shows texts", gives_keys_and_shows_texts},
    {"a terminal draws again what was taken away", draws_again_what_was_taken_away},
    {"a terminal is left with the host", is_left_with_the_host},
    {"a terminal ends where the other end is gone", ends_where_the_other_end_is_gone},
    {"a terminal that is not there is told in words", says_why_there_is_none},
    {NULL, NULL},
};
