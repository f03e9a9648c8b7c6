/* One streamed answer: events are cut at empty lines, each `data:` line is parsed with cJSON,
 * and the content of its delta is appended to the text. It reads only the format of httpd, with
 * lines that end with \n, and no other features of event streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "raw.h"

typedef struct stream {
    bytes pending, text;
    long deltas;
} stream;

static void on_data(stream *s, const char *json, size_t n)
{
    cJSON *root;
    const cJSON *choice, *content;

    if (strncmp(json, "[DONE]", 6) == 0)
        return;
    root = cJSON_ParseWithLength(json, n);
    if (!root)
        die("no JSON in an event", json);
    choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), 0);
    content = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(choice, "delta"),
                                               "content");
    if (cJSON_IsString(content)) {
        add(&s->text, content->valuestring, strlen(content->valuestring));
        s->deltas++;
    }
    cJSON_Delete(root);
}

static size_t on_stream(char *p, size_t size, size_t n, void *ud)
{
    stream *s = ud;
    char *from, *end;

    add(&s->pending, p, size * n);
    from = s->pending.p;
    while ((end = strstr(from, "\n\n"))) {
        if (strncmp(from, "data: ", 6) == 0)
            on_data(s, from + 6, (size_t)(end - from) - 6);
        from = end + 2;
    }
    s->pending.n -= (size_t)(from - s->pending.p);
    memmove(s->pending.p, from, s->pending.n + 1);
    return size * n;
}

/* Sends one request; returns the number of deltas. */
static long ask(const talk *t, CURL *curl)
{
    conversation c;
    stream s = {0};
    CURLcode code;

    converse_open(&c, t);
    converse_ask(&c, curl);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &s);
    if ((code = curl_easy_perform(curl)) != CURLE_OK)
        die("request failed", curl_easy_strerror(code));
    free(c.request);
    converse_close(&c);
    free(s.pending.p);
    free(s.text.p);
    return s.deltas;
}

int run_stream(const char *url, long times)
{
    figures start, all;
    long deltas = 0;
    CURL *curl;
    talk t;

    talk_open(&t, url, 0, 2, false);
    curl = talk_curl(&t);
    ask(&t, curl);
    start = now(RUSAGE_SELF);
    for (long i = 0; i < times; i++)
        deltas += ask(&t, curl);
    all = since(start, RUSAGE_SELF);
    printf("{\"deltas\":%ld,\"wall_ms\":%.3f,\"cpu_ms\":%.3f}\n", deltas / times, all.wall,
           all.cpu);
    curl_easy_cleanup(curl);
    talk_close(&t);
    return 0;
}
