/* raw: the benchmark's tasks without agenthost (see raw.h). Prints its figures as one line of
 * JSON.
 *
 *   raw loop URL CONVERSATIONS TURNS TOOLS [--keep]   one after the other
 *   raw stream URL TIMES                              one streamed answer, TIMES times
 *   raw many BASE CONVERSATIONS TURNS                 all at once, the n-th with a model at BASE/n
 *   raw run N COMMAND [ARG...]                        a command N times: the means
 *
 * URL is the whole address of the endpoint; at BASE/n it is BASE/n/chat/completions. "late"
 * figures are those of each conversation after its first TURNS / 2 calls: the cost of a turn in
 * a long conversation. Without --keep every request prints the whole message tree; with it, the
 * printed text of old messages is kept and only new ones are printed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

static void converse(const talk *t, CURL *curl, figures *late)
{
    figures half = now(RUSAGE_SELF), f;
    conversation c;
    bool more;

    converse_open(&c, t);
    do {
        converse_ask(&c, curl);
        more = converse_answer(&c, curl, curl_easy_perform(curl));
        if (more && c.calls == t->turns / 2)
            half = now(RUSAGE_SELF);
    } while (more);
    f = since(half, RUSAGE_SELF);
    late->wall += f.wall;
    late->cpu += f.cpu;
    converse_close(&c);
}

static int run_loop(const char *url, long conversations, long turns, long tools, bool keep)
{
    figures start, all, late = {0};
    CURL *curl;
    talk t;

    talk_open(&t, url, turns, tools, keep);
    curl = talk_curl(&t);
    start = now(RUSAGE_SELF);
    for (long i = 0; i < conversations; i++)
        converse(&t, curl, &late);
    all = since(start, RUSAGE_SELF);
    printf("{\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"late_wall_ms\":%.3f,\"late_cpu_ms\":%.3f}\n",
           all.wall, all.cpu, late.wall, late.cpu);
    curl_easy_cleanup(curl);
    talk_close(&t);
    return 0;
}

/* Runs a command once and discards its output. */
static void run_once(char **command)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, 1);
        execv(command[0], command);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die("command failed", command[0]);
}

static int run_command(long n, char **command)
{
    figures start = now(RUSAGE_CHILDREN), all;

    for (long i = 0; i < n; i++)
        run_once(command);
    all = since(start, RUSAGE_CHILDREN);
    printf("{\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"peak_kb\":%ld}\n", all.wall / (double)n,
           all.cpu / (double)n, peak_kb(RUSAGE_CHILDREN));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool keep = argc == 7 && strcmp(argv[6], "--keep") == 0;

    if (strcmp(what, "loop") == 0 && (argc == 6 || keep))
        return run_loop(argv[2], atol(argv[3]), atol(argv[4]), atol(argv[5]), keep);
    if (strcmp(what, "stream") == 0 && argc == 4)
        return run_stream(argv[2], atol(argv[3]));
    if (strcmp(what, "many") == 0 && argc == 5)
        return run_many(argv[2], atol(argv[3]), atol(argv[4]));
    if (strcmp(what, "run") == 0 && argc >= 4 && atol(argv[2]) > 0)
        return run_command(atol(argv[2]), argv + 3);
    fputs("usage: raw loop URL CONVERSATIONS TURNS TOOLS [--keep] | stream URL TIMES |\n"
          "           many BASE CONVERSATIONS TURNS | run N COMMAND [ARG...]\n",
          stderr);
    return 2;
}
