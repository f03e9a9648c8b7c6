/* A conversation of tool calls with the model that httpd plays: the messages as a cJSON
 * tree (or as kept text), the request printed from them, the answer parsed, `add` run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "raw.h"

static const char first_tools[] =
    "{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":\"Adds two integers.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"note\",\"description\":\"Keeps a note.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
    "\"required\":[\"text\"],\"additionalProperties\":false}}}";

/* The same as in turns.lua. */
static const char more_tools[] =
    ",{\"type\":\"function\",\"function\":{\"name\":\"look_up_%ld\",\"description\":"
    "\"Looks up the records of kind %ld.\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"city\":{\"type\":\"string\",\"description\":\"the city, as people call it\"},"
    "\"since\":{\"type\":\"string\",\"description\":\"the first day, as 2024-02-29\"},"
    "\"limit\":{\"type\":\"integer\"},\"open\":{\"type\":\"boolean\"}},"
    "\"required\":[\"city\"],\"additionalProperties\":false}}}";

void die(const char *what, const char *detail)
{
    fprintf(stderr, "raw: %s: %s\n", what, detail);
    exit(1);
}

void *must(void *p)
{
    if (!p)
        die("failed", "out of memory");
    return p;
}

void add(bytes *b, const char *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = must(realloc(b->p, b->cap));
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

size_t on_body(char *p, size_t size, size_t n, void *answer)
{
    add(answer, p, size * n);
    return size * n;
}

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

figures now(int who)
{
    struct timespec t;
    struct rusage r;

    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(who, &r);
    return (figures){.wall = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6,
                     .cpu = ms_of(r.ru_utime) + ms_of(r.ru_stime)};
}

figures since(figures start, int who)
{
    figures end = now(who);

    return (figures){.wall = end.wall - start.wall, .cpu = end.cpu - start.cpu};
}

long peak_kb(int who)
{
    struct rusage r;

    getrusage(who, &r);
    return r.ru_maxrss;
}

static cJSON *make_tools(long n)
{
    char one[sizeof more_tools + 64];
    bytes text = {0};
    cJSON *tree;

    add(&text, "[", 1);
    add(&text, first_tools, sizeof first_tools - 1);
    for (long i = 3; i <= n; i++) {
        snprintf(one, sizeof one, more_tools, i, i);
        add(&text, one, strlen(one));
    }
    add(&text, "]", 1);
    tree = must(cJSON_Parse(text.p));
    free(text.p);
    return tree;
}

void talk_open(talk *t, const char *url, long turns, long tools, bool keep)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    *t = (talk){.url = url, .turns = turns, .keep = keep};
    t->headers = curl_slist_append(NULL, "Content-Type: application/json");
    t->headers = must(curl_slist_append(t->headers, "Authorization: Bearer bench"));
    t->tool_tree = make_tools(tools);
    t->tools = must(cJSON_PrintUnformatted(t->tool_tree));
}

void talk_close(talk *t)
{
    cJSON_Delete(t->tool_tree);
    cJSON_free(t->tools);
    curl_slist_free_all(t->headers);
    curl_global_cleanup();
}

CURL *talk_curl(const talk *t)
{
    CURL *curl = must(curl_easy_init());

    curl_easy_setopt(curl, CURLOPT_URL, t->url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    return curl;
}

static void append(conversation *c, cJSON *message)
{
    char *text;

    if (!c->talk->keep) {
        cJSON_AddItemToArray(c->messages, message);
        return;
    }
    text = must(cJSON_PrintUnformatted(message));
    if (c->printed.n)
        add(&c->printed, ",", 1);
    add(&c->printed, text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(message);
}

static cJSON *text_message(const char *role, const char *text)
{
    cJSON *m = must(cJSON_CreateObject());

    cJSON_AddStringToObject(m, "role", role);
    cJSON_AddStringToObject(m, "content", text);
    return m;
}

void converse_open(conversation *c, const talk *t)
{
    *c = (conversation){.talk = t, .messages = must(cJSON_CreateArray())};
    append(c, text_message("user", "go"));
}

void converse_close(conversation *c)
{
    cJSON_Delete(c->messages);
    free(c->printed.p);
    free(c->answer.p);
}

static char *print_whole(const conversation *c)
{
    cJSON *root = must(cJSON_CreateObject());
    char *text;

    cJSON_AddStringToObject(root, "model", "bench");
    cJSON_AddItemReferenceToObject(root, "messages", c->messages);
    cJSON_AddItemReferenceToObject(root, "tools", c->talk->tool_tree);
    text = must(cJSON_PrintUnformatted(root));
    cJSON_Delete(root);
    return text;
}

static char *print_kept(const conversation *c)
{
    bytes out = {0};

    add(&out, "{\"model\":\"bench\",\"messages\":[", 29);
    add(&out, c->printed.p, c->printed.n);
    add(&out, "],\"tools\":", 10);
    add(&out, c->talk->tools, strlen(c->talk->tools));
    add(&out, "}", 1);
    return out.p;
}

void converse_ask(conversation *c, CURL *curl)
{
    c->request = c->talk->keep ? print_kept(c) : print_whole(c);
    c->answer.n = 0;
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &c->answer);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(c->request));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, c->request);
}

static void run_add(const char *arguments, char *out, size_t size)
{
    cJSON *args = cJSON_Parse(arguments);
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(args, "a");
    const cJSON *y = cJSON_GetObjectItemCaseSensitive(args, "b");

    if (!cJSON_IsNumber(x) || !cJSON_IsNumber(y))
        die("bad arguments", arguments);
    snprintf(out, size, "%.0f", x->valuedouble + y->valuedouble);
    cJSON_Delete(args);
}

static cJSON *run_call(const cJSON *call)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(call, "function");
    const char *arguments = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(f, "arguments"));
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(call, "id"));
    char sum[64];
    cJSON *m;

    if (!arguments || !id)
        die("bad call", "no arguments or no id");
    run_add(arguments, sum, sizeof sum);
    m = text_message("tool", sum);
    cJSON_AddStringToObject(m, "tool_call_id", id);
    return m;
}

/* Returns the answer's message, detached from the rest. */
static cJSON *read_answer(conversation *c, CURL *curl, CURLcode code)
{
    cJSON *root, *choice, *message;
    long status = 0;

    if (code != CURLE_OK)
        die("request failed", curl_easy_strerror(code));
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    root = status == 200 ? cJSON_ParseWithLength(c->answer.p, c->answer.n) : NULL;
    choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), 0);
    message = cJSON_DetachItemFromObjectCaseSensitive(choice, "message");
    if (!message)
        die("no usable answer", c->answer.n ? c->answer.p : "(empty)");
    cJSON_Delete(root);
    free(c->request);
    return message;
}

bool converse_answer(conversation *c, CURL *curl, CURLcode code)
{
    cJSON *answer = read_answer(c, curl, code), *results = must(cJSON_CreateArray()), *m;
    const cJSON *calls = cJSON_GetObjectItemCaseSensitive(answer, "tool_calls"), *call;
    bool any = false;

    cJSON_ArrayForEach(call, calls)
    {
        cJSON_AddItemToArray(results, run_call(call));
        c->calls++;
        any = true;
    }
    append(c, answer);
    while ((m = cJSON_DetachItemFromArray(results, 0)))
        append(c, m);
    cJSON_Delete(results);
    if (!any && c->calls != c->talk->turns)
        die("the server's --turns is another", "calls made and TURNS differ");
    return any;
}
