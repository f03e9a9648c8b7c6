/* Cases of programs whose scripts have processes: what the program does with SIGCHLD is its own,
 * and a host that is closed leaves none. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static const char talk[] = "local ah = require 'agenthost'\n"
                           "for i = 1, 5 do\n"
                           "  local p <close> = assert(ah.process { command = 'sh',\n"
                           "    args = { '-c', 'read x; echo \"got $x\"; exit 3' } })\n"
                           "  assert(p:write('word\\n'))\n"
                           "  assert(p:line() == 'got word')\n"
                           "  local r = assert(p:wait { timeout = 60 })\n"
                           "  assert(r.exit_code == 3 and r.left == 0)\n"
                           "end\n";

static void set_handler(void (*handler)(int))
{
    struct sigaction act;

    memset(&act, 0, sizeof act);
    act.sa_handler = handler;
    CHECK(sigaction(SIGCHLD, &act, NULL) == 0);
}

static void talk_to_some(void)
{
    ah_host *host = open_plain();

    load(host, talk);
    shut(host);
}

static void with_sigchld_ignored(void)
{
    set_handler(SIG_IGN);
    talk_to_some();
    set_handler(SIG_DFL);
}

static atomic_int reaped;

static void reap_all(int sig)
{
    int before = errno;

    (void)sig;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        reaped++;
    errno = before;
}

static void with_a_handler_that_waits_for_all(void)
{
    set_handler(reap_all);
    talk_to_some();
    set_handler(SIG_DFL);
}

/* Its own child is left to it. */
static void beside_a_child_of_the_program(void)
{
    pid_t own = fork();
    int status = 0;

    if (own == 0) {
        pause();
        _exit(9);
    }
    CHECK(own > 0);
    talk_to_some();
    CHECK(waitpid(own, NULL, WNOHANG) == 0);
    CHECK(kill(own, SIGKILL) == 0 && waitpid(own, &status, 0) == own && WIFSIGNALED(status));
}

/* The processes of a host end with it; those of another host go on. */
static void ends_with_the_host(void)
{
    ah_host *host = open_plain(), *other = open_plain();
    char text[512], c;
    char path[] = "/tmp/agenthost-case-XXXXXX";
    FILE *f;

    CHECK(mkdtemp(path) != NULL);
    snprintf(text, sizeof text,
             "local ah = require 'agenthost'\n"
             "P = assert(ah.process { command = 'sh', cwd = '%s', args = { '-c',\n"
             "  \"trap '' TERM; (setsid sleep 1000 &); echo $$ > pid; echo up; sleep 1000\" } })\n"
             "assert(P:line() == 'up')\n",
             path);
    load(host, text);
    load(other, talk);
    snprintf(text, sizeof text, "%s/pid", path);
    f = fopen(text, "r");
    CHECK(f && fread(&c, 1, 1, f) == 1);
    rewind(f);
    CHECK(fgets(text, sizeof text, f) != NULL);
    fclose(f);
    CHECK(kill((pid_t)atol(text), 0) == 0);
    ah_close(host);
    CHECK(kill((pid_t)atol(text), 0) != 0 && errno == ESRCH);
    load(other, talk);
    shut(other);
    snprintf(text, sizeof text, "%s/pid", path);
    unlink(text);
    rmdir(path);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

const a_case process_cases[] = {
    {"processes of a program that ignores SIGCHLD", with_sigchld_ignored},
    {"processes of a program that waits for all children", with_a_handler_that_waits_for_all},
    {"processes beside a child of the program", beside_a_child_of_the_program},
    {"processes end with their host", ends_with_the_host},
    {NULL, NULL},
};
