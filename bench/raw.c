/* raw: what the loop costs without agenthost. Plain libcurl (one handle, kept
 * alive) and cJSON hold a conversation of tool calls with the model that httpd
 * plays: print the request, post it, parse the answer, run `add`, append the
 * assistant's and the tool's message, until an answer has no calls. No retries,
 * no schema checks, no streams, no limits: it is the floor, not a rival.
 *
 *   raw URL CONVERSATIONS TURNS [--keep]   prints its figures as JSON
 *   raw --run N COMMAND [ARG...]           runs a command N times, prints the means
 *
 * URL is the whole address of the endpoint. "late" figures are those of each
 * conversation after its first TURNS / 2 calls: what a turn costs when the history
 * is long. Without --keep every request prints the whole message tree; with it,
 * the printed text of old messages is kept and only new ones are printed. */
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct bytes {
    char *p; /* NUL-terminated */
    size_t n, cap;
} bytes;

typedef struct figures {
    double wall, cpu; /* ms */
} figures;

typedef struct bench {
    CURL *curl;
    struct curl_slist *headers;
    bool keep;
    long turns, requests;
    bytes answer;
    char *tools;      /* printed, for --keep */
    cJSON *tool_tree; /* for printing whole requests */
    figures late;
} bench;

typedef struct conversation {
    cJSON *messages;
    bytes printed; /* the messages' text, separated by commas: --keep */
    long calls;
    figures half; /* when TURNS / 2 calls had been made */
} conversation;

static const char tools_json[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":\"Adds two integers.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"note\",\"description\":\"Keeps a note.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
    "\"required\":[\"text\"],\"additionalProperties\":false}}}]";

static void die(const char *what, const char *detail) __attribute__((noreturn));

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "raw: %s: %s\n", what, detail);
    exit(1);
}

static void *must(void *p)
{
    if (!p)
        die("failed", "out of memory");
    return p;
}

static void add(bytes *b, const char *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = must(realloc(b->p, b->cap));
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static figures now(int who)
{
    struct timespec t;
    struct rusage r;

    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(who, &r);
    return (figures){.wall = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6,
                     .cpu = ms_of(r.ru_utime) + ms_of(r.ru_stime)};
}

static figures since(figures start, int who)
{
    figures end = now(who);

    return (figures){.wall = end.wall - start.wall, .cpu = end.cpu - start.cpu};
}

static size_t on_body(char *p, size_t size, size_t n, void *ud)
{
    add(ud, p, size * n);
    return size * n;
}

static void set_up(bench *b, const char *url)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    b->curl = must(curl_easy_init());
    b->headers = curl_slist_append(NULL, "Content-Type: application/json");
    b->headers = must(curl_slist_append(b->headers, "Authorization: Bearer bench"));
    curl_easy_setopt(b->curl, CURLOPT_URL, url);
    curl_easy_setopt(b->curl, CURLOPT_HTTPHEADER, b->headers);
    curl_easy_setopt(b->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(b->curl, CURLOPT_WRITEDATA, &b->answer);
    b->tool_tree = must(cJSON_Parse(tools_json));
    b->tools = must(cJSON_PrintUnformatted(b->tool_tree));
}

static void tear_down(bench *b)
{
    cJSON_Delete(b->tool_tree);
    cJSON_free(b->tools);
    free(b->answer.p);
    curl_slist_free_all(b->headers);
    curl_easy_cleanup(b->curl);
    curl_global_cleanup();
}

static void append(const bench *b, conversation *c, cJSON *message)
{
    char *text;

    if (!b->keep) {
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

static char *print_whole(const bench *b, const conversation *c)
{
    cJSON *root = must(cJSON_CreateObject());
    char *text;

    cJSON_AddStringToObject(root, "model", "bench");
    cJSON_AddItemReferenceToObject(root, "messages", c->messages);
    cJSON_AddItemReferenceToObject(root, "tools", b->tool_tree);
    text = must(cJSON_PrintUnformatted(root));
    cJSON_Delete(root);
    return text;
}

static char *print_kept(const bench *b, const conversation *c)
{
    bytes out = {0};

    add(&out, "{\"model\":\"bench\",\"messages\":[", 29);
    add(&out, c->printed.p, c->printed.n);
    add(&out, "],\"tools\":", 10);
    add(&out, b->tools, strlen(b->tools));
    add(&out, "}", 1);
    return out.p;
}

/* Posts the conversation so far; the answer's message, detached from the rest. */
static cJSON *ask(bench *b, const conversation *c)
{
    char *request = b->keep ? print_kept(b, c) : print_whole(b, c);
    cJSON *root, *choice, *message;
    CURLcode code;
    long status = 0;

    b->answer.n = 0;
    b->requests++;
    curl_easy_setopt(b->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request));
    curl_easy_setopt(b->curl, CURLOPT_POSTFIELDS, request);
    if ((code = curl_easy_perform(b->curl)) != CURLE_OK)
        die("request failed", curl_easy_strerror(code));
    curl_easy_getinfo(b->curl, CURLINFO_RESPONSE_CODE, &status);
    root = status == 200 ? cJSON_ParseWithLength(b->answer.p, b->answer.n) : NULL;
    choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), 0);
    message = cJSON_DetachItemFromObjectCaseSensitive(choice, "message");
    if (!message)
        die("no usable answer", b->answer.n ? b->answer.p : "(empty)");
    cJSON_Delete(root);
    free(request);
    return message;
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

/* One model call and the tools it asked for; false when it asked for none. */
static bool turn(bench *b, conversation *c)
{
    cJSON *answer = ask(b, c), *results = must(cJSON_CreateArray()), *m;
    const cJSON *calls = cJSON_GetObjectItemCaseSensitive(answer, "tool_calls"), *call;
    bool any = false;

    cJSON_ArrayForEach(call, calls)
    {
        cJSON_AddItemToArray(results, run_call(call));
        c->calls++;
        any = true;
    }
    append(b, c, answer);
    while ((m = cJSON_DetachItemFromArray(results, 0)))
        append(b, c, m);
    cJSON_Delete(results);
    return any;
}

static void converse(bench *b)
{
    conversation c = {.messages = must(cJSON_CreateArray())};
    figures late;

    append(b, &c, text_message("user", "go"));
    c.half = now(RUSAGE_SELF);
    while (turn(b, &c))
        if (c.calls == b->turns / 2)
            c.half = now(RUSAGE_SELF);
    late = since(c.half, RUSAGE_SELF);
    b->late.wall += late.wall;
    b->late.cpu += late.cpu;
    if (c.calls != b->turns)
        die("the server's --turns is another", "calls made and TURNS differ");
    cJSON_Delete(c.messages);
    free(c.printed.p);
}

static long peak_kb(int who)
{
    struct rusage r;

    getrusage(who, &r);
    return r.ru_maxrss;
}

static int run_bench(const char *url, long conversations, long turns, bool keep)
{
    bench b = {.keep = keep, .turns = turns};
    figures start, all;

    set_up(&b, url);
    start = now(RUSAGE_SELF);
    for (long i = 0; i < conversations; i++)
        converse(&b);
    all = since(start, RUSAGE_SELF);
    printf("{\"conversations\":%ld,\"turns\":%ld,\"requests\":%ld,\"wall_ms\":%.3f,\"cpu_ms\":%.3f,"
           "\"late_wall_ms\":%.3f,\"late_cpu_ms\":%.3f,\"peak_kb\":%ld}\n",
           conversations, turns, b.requests, all.wall, all.cpu, b.late.wall, b.late.cpu,
           peak_kb(RUSAGE_SELF));
    tear_down(&b);
    return 0;
}

/* Runs a command once with its output thrown away. */
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
    printf("{\"runs\":%ld,\"wall_ms\":%.3f,\"cpu_ms\":%.3f,\"peak_kb\":%ld}\n", n, all.wall / (double)n,
           all.cpu / (double)n, peak_kb(RUSAGE_CHILDREN));
    return 0;
}

int main(int argc, char **argv)
{
    bool keep = argc == 5 && strcmp(argv[4], "--keep") == 0;

    if (argc >= 4 && strcmp(argv[1], "--run") == 0 && atol(argv[2]) > 0)
        return run_command(atol(argv[2]), argv + 3);
    if (argc == 4 || keep)
        return run_bench(argv[1], atol(argv[2]), atol(argv[3]), keep);
    fputs("usage: raw URL CONVERSATIONS TURNS [--keep]\n"
          "       raw --run N COMMAND [ARG...]\n",
          stderr);
    return 2;
}
