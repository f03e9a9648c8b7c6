/* Shared code of the raw loops: plain libcurl and cJSON in a program with this one task. They
 * have no retries, no schema checks, no limits, no transcript: they are the lower limit that
 * agenthost is compared with, not alternatives.
 *
 *   raw_talk.c    a conversation: its messages, its requests, the answers
 *   raw.c         the command line, and conversations one after the other
 *   raw_stream.c  one answer read from an event stream
 *   raw_many.c    many conversations at once
 *
 * Every failure ends the program with a line on standard error. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct bytes {
    char *p; /* NUL-terminated, but NULL until the first add */
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
    char *tools;      /* as text, for keep */
    cJSON *tool_tree; /* for printing whole requests */
} talk;

typedef struct conversation {
    const talk *talk;
    cJSON *messages;
    bytes printed; /* for keep: the messages' text, separated by commas */
    bytes answer;
    char *request; /* until its transfer has ended */
    long calls;
} conversation;

void die(const char *what, const char *detail) __attribute__((noreturn));
void *must(void *p); /* ends the program if p is NULL */
void add(bytes *b, const char *p, size_t n);
size_t on_body(char *p, size_t size, size_t n, void *answer); /* CURLOPT_WRITEFUNCTION */

figures now(int who); /* RUSAGE_SELF or RUSAGE_CHILDREN */
figures since(figures start, int who);
long peak_kb(int who);

/* tools: number of declared tools, at least two. */
void talk_open(talk *t, const char *url, long turns, long tools, bool keep);
void talk_close(talk *t);
CURL *talk_curl(const talk *t); /* a handle without its request; the caller frees it */

void converse_open(conversation *c, const talk *t);
void converse_close(conversation *c);
/* Prints the request for the messages so far and sets it on the handle. */
void converse_ask(conversation *c, CURL *curl);
/* Reads the answer and runs its calls; returns false if it had none, at the end. */
bool converse_answer(conversation *c, CURL *curl, CURLcode code);

int run_stream(const char *url, long times);
int run_many(const char *base, long conversations, long turns);

#endif
