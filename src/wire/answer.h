/* What readers of responses share that are not OpenAI's: the body while it comes, checked
 * JSON out of it, and a provider's failure in words. What the words mean is the readers' to know. */
#ifndef AH_WIRE_ANSWER_H
#define AH_WIRE_ANSWER_H

#include "wire/endpoint.h"

/* How long what may follow a complete message is waited for (ah_reader.linger_ms). */
enum { AH_ANSWER_LINGER_MS = 5000 };

/* Such readers begin with this. */
typedef struct ah_answer {
    ah_reader base;
    const ah_service *service;
    ah_buf body; /* what of the response is not read yet: a document, or the line that comes */
} ah_answer;

void ah_answer_init(ah_answer *r, const ah_service *s, const ah_adapter *a, ah_assembly *msg);
void ah_answer_clear(ah_answer *r);
/* Takes the head in. Returns whether the response is an answer of that media type. */
bool ah_answer_head(ah_answer *r, const ah_response_head *h, const char *media);
/* Keeps bytes; of an error's the beginning is enough. */
ah_status ah_answer_keep(ah_answer *r, ah_slice bytes, ah_err *err);

/* Checks JSON that came. */
ah_status ah_answer_check(const ah_answer *r, ah_slice text, const char *what, ah_err *err);
/* "<provider>: <what>", AH_PROVIDER, to be retried where its status allows. */
ah_status ah_answer_bad(const ah_answer *r, const char *what, ah_err *err);
/* The stream ended before its message did: AH_HTTP. */
ah_status ah_answer_cut(const ah_answer *r, ah_err *err);

/* A failure the provider told of. */
typedef struct ah_answer_fault {
    ah_slice message; /* its words (a JSON string); .p NULL: the body is quoted */
    ah_slice word;    /* its short name for it, a JSON string or .p NULL */
    int status;       /* that it names itself, where the response's was a success; or 0 */
    bool never;       /* not to be retried, whatever the status */
    bool key;         /* the key is wrong */
} ah_answer_fault;

ah_status ah_answer_failed(ah_answer *r, const ah_answer_fault *f, ah_err *err);

/* A kept body that is whole: checked JSON in *out, be it an answer or a failure. An error's
 * body that is no JSON, like a web page in place of an answer, is a failure already. */
ah_status ah_answer_whole(ah_answer *r, ah_slice *out, ah_err *err);

/* A member that is a number above zero, else 0. */
int64_t ah_answer_count(ah_slice object, const char *key);

#endif
