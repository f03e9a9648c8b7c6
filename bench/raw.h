/* Shared code of the raw loops: plain libcurl and cJSON, used as a program would that does just
 * this one thing. No retries, no schema checks, no limits, no transcript: they are the floor that
 * agenthost is measured against, not rivals.
 *
 *   raw_talk.c    a conversation: its messages, the request it makes, the answer it takes
 *   raw.c         the command line, and conversations one after the other
 *   raw_stream.c  one answer read from an event stream
 *   raw_many.c    many conversations at once
 *
 * Everything that fails ends the program with a line on standard error. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct bytes {
    char *p; /* NUL-terminated once something was added */
    size_t n, cap;
} bytes;

typedef struct figures {
    double wall, cpu; /* ms */
} figures;

/* The data that all conversations of a program share. */
typedef struct talk {
    const char *url;
    struct curl_slist *headers;
    bool keep;        /* the printed text of old messages is kept, only new ones are printed */
    long turns;       /* calls the model makes in a conversation */
    char *tools;      /* printed, for keep */
    cJSON *tool_tree; /* for printing whole requests */
} talk;

typedef struct conversation {
    const talk *talk;
    cJSON *messages;
    bytes printed; /* the messages' text, separated by commas: keep */
    bytes answer;
    char *request; /* as long as it is under way */
    long calls;
} conversation;

void die(const char *what, const char *detail) __attribute__((noreturn));
void *must(void *p); /* dies for NULL */
void add(bytes *b, const char *p, size_t n);
size_t on_body(char *p, size_t size, size_t n, void *answer); /* CURLOPT_WRITEFUNCTION */

figures now(int who); /* RUSAGE_SELF or RUSAGE_CHILDREN */
figures since(figures start, int who);
long peak_kb(int who);

/* tools: how many are declared, two at least. */
void talk_open(talk *t, const char *url, long turns, long tools, bool keep);
void talk_close(talk *t);
CURL *talk_curl(const talk *t); /* a handle set up but for its request; the caller's */

void converse_open(conversation *c, const talk *t);
void converse_close(conversation *c);
/* Prints the request for what was said so far and sets it on the handle. */
void converse_ask(conversation *c, CURL *curl);
/* Takes the answer that has come and runs its calls; false: it had none, all is said. */
bool converse_answer(conversation *c, CURL *curl, CURLcode code);

int run_stream(const char *url, long times);
int run_many(const char *base, long conversations, long turns);

#endif
