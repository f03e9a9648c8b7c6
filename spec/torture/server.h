/* A model behind HTTP for the torture program: a thread that answers requests on a
 * loopback port with canned event streams. It allocates nothing, so that it takes
 * no part in the count. Not a server for anything else: requests must fit REQUEST
 * bytes and carry a Content-Length, and no more than CONNECTIONS are open at once. */
#ifndef AH_TORTURE_SERVER_H
#define AH_TORTURE_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 32, REQUEST = 16 << 10 };

#define EVENT(json) "data: " json "\n\n"
#define CHOICE(delta, reason)                                                                      \
    EVENT("{\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" reason "}]}")
#define CALL(json) CHOICE("{\"tool_calls\":[{\"index\":0," json "}]}", "null")
#define USAGE      EVENT("{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5}}")
#define TEXT(a, b)                                                                                 \
    CHOICE("{\"role\":\"assistant\",\"content\":\"" a "\"}", "null")                               \
    CHOICE("{\"content\":\"" b "\"}", "null") CHOICE("{}", "\"stop\"") USAGE EVENT("[DONE]")

static const char stream_fine[] = TEXT("fi", "ne");
static const char stream_text[] = TEXT("it is ", "warm \\u263a");
static const char stream_call[] =
    CALL("\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"weather\",\"arguments\":"
         "\"\"}") CALL("\"function\":{\"arguments\":\"{\\\"city\\\":\"}")
        CALL("\"function\":{\"arguments\":\"\\\"Rome\\\"}\"}") CHOICE("{}", "\"tool_calls\"")
            USAGE EVENT("[DONE]");

/* The same from a server that wants thoughts back. */
#define THOUGHTS(text, more)                                                                       \
    CHOICE("{\"reasoning_content\":\"" text "\",\"thinking_blocks\":[{\"type\":\"thinking\","      \
           "\"thinking\":\"" text "\"" more "}]}",                                                 \
           "null")
static const char stream_thoughts[] =
    THOUGHTS("where", "") THOUGHTS(" is it", ",\"signature\":\"s\"")
        CALL("\"id\":\"call_1\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":"
             "\\\"Rome\\\"}\"}") CHOICE("{}", "\"tool_calls\"") USAGE EVENT("[DONE]");

#define GEMINI(part, more)                                                                         \
    EVENT("{\"candidates\":[{\"content\":{\"parts\":[" part "]}" more "}],"                        \
          "\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":5}}")
#define STOP ",\"finishReason\":\"STOP\""
static const char gemini_fine[] = GEMINI("{\"text\":\"fi\"}", "") GEMINI("{\"text\":\"ne\"}", STOP);
static const char gemini_text[] = GEMINI("{\"text\":\"it is \"}", "")
    GEMINI("{\"text\":\"warm \\u263a\"},{\"text\":\"\",\"thoughtSignature\":\"c2ln\"}", STOP);
static const char gemini_call[] = GEMINI("{\"functionCall\":{\"name\":\"weather\",\"args\":"
                                         "{\"city\":\"Rome\"}},\"thoughtSignature\":\"c2ln\"}",
                                         STOP);

#define LINE(message) "{\"message\":{" message "},\"done\":false}\n"
#define LAST          "{\"done\":true,\"done_reason\":\"stop\"," COUNTS "}\n"
#define COUNTS        "\"prompt_eval_count\":9,\"eval_count\":5"
static const char ollama_fine[] = LINE("\"content\":\"fi\"") LINE("\"content\":\"ne\"") LAST;
static const char ollama_text[] =
    LINE("\"content\":\"it is \"") LINE("\"content\":\"warm \\u263a\"") LAST;
static const char ollama_call[] = LINE("\"thinking\":\"where\"")
    LINE("\"tool_calls\":[{\"function\":{\"name\":\"weather\",\"arguments\":{\"city\":\"Rome\"}}}]")
        LAST;

#define BLOCK(begins, deltas)                                                                      \
    EVENT("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":" begins "}")           \
    deltas EVENT("{\"type\":\"content_block_stop\",\"index\":0}")
#define DELTA(json) EVENT("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":" json "}")
#define MESSAGE(blocks, reason)                                                                    \
    EVENT(                                                                                         \
        "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9}}}")  \
    blocks EVENT("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason                \
                 "\"},\"usage\":{\"output_tokens\":5}}") EVENT("{\"type\":\"message_stop\"}")
#define ITEM(json) EVENT("{\"type\":\"response.output_item.done\",\"item\":" json "}")
#define COMPLETED                                                                                  \
    EVENT("{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]," \
          "\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}}")

#define SAID(text)                                                                                 \
    MESSAGE(BLOCK("{\"type\":\"text\",\"text\":\"\"}",                                             \
                  DELTA("{\"type\":\"text_delta\",\"text\":\"" text "\"}")),                       \
            "end_turn")
#define ANSWERED(text)                                                                             \
    ITEM("{\"type\":\"message\",\"phase\":\"final_answer\","                                       \
         "\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\"}]}")                        \
    COMPLETED

static const char message_fine[] = SAID("fine"), message_text[] = SAID("it is warm \\u263a");
static const char response_fine[] = ANSWERED("fine"),
                  response_text[] = ANSWERED("it is warm \\u263a");
static const char message_call[] = MESSAGE(
    BLOCK("{\"type\":\"thinking\",\"thinking\":\"\"}",
          DELTA("{\"type\":\"thinking_delta\",\"thinking\":\"warm?\"}")
              DELTA("{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}"))
        BLOCK("{\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"tool_search_tool_bm25\","
              "\"input\":{}}",
              DELTA("{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}"))
            BLOCK("{\"type\":\"tool_search_tool_result\",\"tool_use_id\":\"s1\",\"content\":{"
                  "\"type\":"
                  "\"tool_search_tool_search_result\",\"tool_references\":[{\"type\":\"tool_"
                  "reference\","
                  "\"tool_name\":\"found\"}]}}", )
                BLOCK("{\"type\":\"tool_use\",\"id\":\"call.1\",\"name\":\"weather\",\"input\":{}}",
                      DELTA("{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\":"
                            "\\\"Rome\\\"}\"}")),
    "tool_use");
static const char response_call[] =
    ITEM("{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[],\"encrypted_content\":\"enc\"}")
        ITEM("{\"type\":\"tool_search_output\",\"execution\":\"server\",\"call_id\":null,"
             "\"tools\":[{\"type\":\"function\",\"name\":\"found\"}]}")
            ITEM("{\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"weather\","
                 "\"arguments\":\"{\\\"city\\\":\\\"Rome\\\"}\"}") COMPLETED;

/* A request in the making. */
typedef struct connection {
    size_t len;
    bool limited; /* it was asked to wait */
    char data[REQUEST + 1];
} connection;

typedef struct server {
    int listener;
    int port;
    pthread_t thread;
} server;

/* A wire: which requests are of it, and what they are answered with. */
typedef struct wire {
    const char *path, *type;    /* in the request; of the answer */
    const char *again, *result; /* in the request: asked again; a call was answered */
    const char *fine, *text, *call;
} wire;

static const wire wires[] = {
    {" /v1/messages ", "text/event-stream", "\"text\":\"again\"", "\"type\":\"tool_result\"",
     message_fine, message_text, message_call},
    {"/responses ", "text/event-stream", "\"content\":\"again\"",
     "\"type\":\"function_call_output\"", response_fine, response_text, response_call},
    {":streamGenerateContent", "text/event-stream", "\"text\":\"again\"", "functionResponse",
     gemini_fine, gemini_text, gemini_call},
    {" /api/chat", "application/x-ndjson", "\"content\":\"again\"", "\"role\":\"tool\"",
     ollama_fine, ollama_text, ollama_call},
    {" /thoughts/", "text/event-stream", "\"content\":\"again\"", "\"role\":\"tool\"", stream_fine,
     stream_text, stream_thoughts},
    {" /", "text/event-stream", "\"content\":\"again\"", "\"role\":\"tool\"", stream_fine,
     stream_text, stream_call},
};

static const char *answer_to(const char *request, const char **type)
{
    const wire *w = wires;

    while (!strstr(request, w->path))
        w++;
    *type = w->type;
    if (strstr(request, w->again))
        return w->fine;
    return strstr(request, w->result) ? w->text : w->call;
}

static bool send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool send_answer(int fd, const char *status, const char *type, const char *body)
{
    char head[256];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, type,
                     strlen(body));

    return send_all(fd, head, (size_t)n) && send_all(fd, body, strlen(body));
}

#define REFUSED(words) "{\"error\":{\"message\":\"" words "\"}}"

/* True if a path of ours refuses the request. /appends/ does not know the item that new tools come
 * in, /limited/ lets each connection wait once. Sets *sent if it refuses. */
static bool refuse(int fd, connection *c, bool *sent)
{
    bool unknown = strstr(c->data, " /appends/") && strstr(c->data, "\"additional_tools\"");
    bool limited = strstr(c->data, " /limited/") && !c->limited;

    c->limited = c->limited || limited;
    if (unknown)
        *sent =
            send_answer(fd, "400 Bad Request", "application/json", REFUSED("no additional_tools"));
    else if (limited)
        *sent = send_answer(fd,
                            "429 Too Many Requests\r\nRetry-After: 0.001\r\n"
                            "x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 1ms",
                            "application/json", REFUSED("slow down"));
    return unknown || limited;
}

static bool reply(int fd, connection *c)
{
    const char *type = "text/plain", *body = "plain";
    bool sent;

    if (refuse(fd, c, &sent))
        return sent;
    if (strncmp(c->data, "GET ", 4) != 0)
        body = answer_to(c->data, &type);
    return send_answer(fd, "200 OK", type, body);
}

/* Bytes of the request at the beginning of what came, or 0 while it is not whole. */
static size_t whole_request(const connection *c)
{
    const char *end = strstr(c->data, "\r\n\r\n"), *length;
    size_t n;

    if (!end)
        return 0;
    length = strstr(c->data, "Content-Length: ");
    n = (size_t)(end - c->data) + 4 + (length && length < end ? (size_t)atol(length + 16) : 0);
    return n <= c->len ? n : 0;
}

/* False: the connection is over. */
static bool serve(int fd, connection *c)
{
    ssize_t n = recv(fd, c->data + c->len, REQUEST - c->len, 0);
    size_t done;

    if (n <= 0)
        return false;
    c->len += (size_t)n;
    c->data[c->len] = '\0';
    while ((done = whole_request(c)) > 0) {
        if (!strstr(c->data, " /silent ") && !reply(fd, c))
            return false;
        memmove(c->data, c->data + done, c->len - done + 1);
        c->len -= done;
    }
    return true;
}

static void welcome(int listener, struct pollfd *fds, connection *all)
{
    int fd = accept(listener, NULL, NULL), on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* head and body are sent apart */
    for (int i = 1; fd >= 0 && i <= CONNECTIONS; i++)
        if (fds[i].fd < 0) {
            fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
            all[i].len = 0;
            all[i].limited = false;
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void *serve_all(void *ud)
{
    static connection all[CONNECTIONS + 1];
    struct pollfd fds[CONNECTIONS + 1];
    server *s = ud;

    for (int i = 0; i <= CONNECTIONS; i++)
        fds[i] = (struct pollfd){.fd = i ? -1 : s->listener, .events = POLLIN};
    while (poll(fds, CONNECTIONS + 1, -1) > 0) {
        for (int i = 1; i <= CONNECTIONS; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !serve(fds[i].fd, &all[i])) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        if (fds[0].revents)
            welcome(s->listener, fds, all);
    }
    return NULL;
}

/* *s must live until it is stopped. */
static bool start_server(server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;

    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(s->listener, 64) != 0 || getsockname(s->listener, (struct sockaddr *)&a, &size) != 0)
        return false;
    s->port = ntohs(a.sin_port);
    return pthread_create(&s->thread, NULL, serve_all, s) == 0;
}

static void stop_server(server *s)
{
    pthread_cancel(s->thread); /* it waits in poll */
    pthread_join(s->thread, NULL);
}

#endif
