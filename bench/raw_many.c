/* Many conversations at once, in one thread: each has an easy handle on one multi handle, with
 * curl_multi_poll to wait and curl_multi_perform to work. That is the loop of libcurl's own
 * examples; it checks every handle at every wake-up. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "raw.h"

typedef struct party {
    conversation talk;
    CURL *curl;
    char url[256];
} party;

static void many_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void ask(party *p, CURLM *multi)
{
    converse_ask(&p->talk, p->curl);
    if (curl_multi_add_handle(multi, p->curl) != CURLM_OK)
        die("failed", "curl_multi_add_handle");
}

static void begin(party *p, const talk *t, const char *base, long number, CURLM *multi)
{
    snprintf(p->url, sizeof p->url, "%s/%ld/chat/completions", base, number);
    converse_open(&p->talk, t);
    p->curl = talk_curl(t);
    curl_easy_setopt(p->curl, CURLOPT_URL, p->url);
    curl_easy_setopt(p->curl, CURLOPT_PRIVATE, p);
    ask(p, multi);
}

/* Handles the end of a transfer; returns true if its conversation has ended, too. */
static bool go_on(CURLM *multi, const CURLMsg *m)
{
    CURLcode code = m->data.result;
    CURL *curl = m->easy_handle;
    void *p = NULL;

    curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&p);
    curl_multi_remove_handle(multi, curl);
    if (!converse_answer(&((party *)p)->talk, curl, code))
        return true;
    ask(p, multi);
    return false;
}

static void serve(CURLM *multi, long left)
{
    while (left > 0) {
        int running, n;
        const CURLMsg *m;

        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("failed", "curl_multi_perform");
        while ((m = curl_multi_info_read(multi, &n)))
            if (m->msg == CURLMSG_DONE)
                left -= go_on(multi, m);
        if (left > 0)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
}

static void talk_all(const talk *t, const char *base, long from, long n)
{
    party *all = must(calloc((size_t)n, sizeof *all));
    CURLM *multi = must(curl_multi_init());

    for (long i = 0; i < n; i++)
        begin(&all[i], t, base, from + i, multi);
    serve(multi, n);
    for (long i = 0; i < n; i++) {
        curl_easy_cleanup(all[i].curl);
        converse_close(&all[i].talk);
    }
    curl_multi_cleanup(multi);
    free(all);
}

int run_many(const char *base, long conversations, long turns)
{
    figures start, all;
    long before;
    talk t;

    many_files();
    talk_open(&t, base, turns, 2, false);
    talk_all(&t, base, 0, 1);
    before = peak_kb(RUSAGE_SELF);
    start = now(RUSAGE_SELF);
    talk_all(&t, base, 1, conversations);
    all = since(start, RUSAGE_SELF);
    printf("{\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"kb_each\":%.3f}\n", all.wall, all.cpu,
           (double)(peak_kb(RUSAGE_SELF) - before) / (double)conversations);
    talk_close(&t);
    return 0;
}
