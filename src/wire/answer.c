/* What readers share; see answer.h. Everything that is quoted of a response goes through
 * the secrets first, and is cut after that. */
#include "wire/answer.h"

#include <stdio.h>
#include <strings.h>

enum { MAX_WHOLE = 64 << 20, MAX_ERROR_BODY = 64 << 10, MOST_QUOTED = 400 };

void ah_answer_init(ah_answer *r, const ah_service *s, const ah_adapter *a, ah_assembly *msg)
{
    r->service = s;
    r->base =
        (ah_reader){.adapter = a, .msg = msg, .retry_after_ms = -1, .should_retry = -1, .linger_ms = -1};
    ah_buf_init(&r->body, a->mem, MAX_WHOLE);
}

void ah_answer_clear(ah_answer *r)
{
    ah_buf_clear(&r->body);
}

bool ah_answer_head(ah_answer *r, const ah_response_head *h, const char *media)
{
    ah_slice type = h->header(h->ud, "content-type");
    size_t n = strlen(media);

    ah_reader_note_head(&r->base, h);
    if (h->status >= 300)
        r->body.max = MAX_ERROR_BODY;
    return h->status >= 200 && h->status < 300 && type.n >= n && strncasecmp(type.p, media, n) == 0 &&
           (type.n == n || strchr("; \t", type.p[n]));
}

ah_status ah_answer_keep(ah_answer *r, ah_slice bytes, ah_err *err)
{
    if (r->base.status >= 300 && bytes.n > r->body.max - r->body.len)
        bytes.n = r->body.max - r->body.len;
    ah_buf_put(&r->body, bytes);
    if (ah_buf_ok(&r->body))
        return AH_OK;
    if (ah_buf_error(&r->body, "the model's answer", err) == AH_NOMEM)
        return AH_NOMEM;
    return err->status = AH_PROVIDER;
}

static const char *name_of(const ah_answer *r)
{
    return r->base.adapter->provider->data;
}

ah_status ah_answer_check(const ah_answer *r, ah_slice text, const char *what, ah_err *err)
{
    char said[80];
    ah_status st;

    snprintf(said, sizeof said, "%s: %s", name_of(r), what);
    st = ah_json_check_err(r->base.adapter->mem, text, said, err);
    if (st == AH_OK || st == AH_NOMEM)
        return st;
    if (ah_secrets_in(r->base.msg->secrets, text)) /* what is quoted of it might be half a key */
        ah_err_set(err, AH_PROVIDER, "%s is not JSON (not quoted: a key is in it)", said);
    err->status = AH_PROVIDER;
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

ah_status ah_answer_bad(const ah_answer *r, const char *what, ah_err *err)
{
    ah_err_set(err, AH_PROVIDER, "%s: %s", name_of(r), what);
    ah_reader_judge(&r->base, err, false);
    return AH_PROVIDER;
}

ah_status ah_answer_cut(const ah_answer *r, ah_err *err)
{
    ah_err_set(err, AH_HTTP, "%s: the stream ended before the answer was complete", name_of(r));
    ah_reader_judge(&r->base, err, false);
    return AH_HTTP;
}

/* Unescaped, made valid, without keys, then cut. */
static void put_excerpt(const ah_answer *r, ah_slice value, ah_slice fallback, ah_buf *out)
{
    if (!ah_json_string(value, out))
        ah_utf8_repair(fallback, out);
    if (out->len)
        out->len = ah_secrets_redact(r->base.msg->secrets, out->data, out->len);
    if (out->len > MOST_QUOTED)
        out->len = ah_utf8_cut(out->data, MOST_QUOTED);
    if (!out->len)
        ah_buf_str(out, value.p || fallback.p ? "(no message)" : "");
}

ah_status ah_answer_failed(ah_answer *r, const ah_answer_fault *f, ah_err *err)
{
    const char *variable = r->service->key_env[0];
    bool key = f->key || r->base.status == 401;
    bool moved = r->base.status >= 300 && r->base.status < 400;
    ah_buf message, word;

    if (r->base.status < 300 && f->status)
        r->base.status = f->status;
    ah_buf_init(&message, r->base.adapter->mem, MAX_WHOLE);
    ah_buf_init(&word, r->base.adapter->mem, MAX_WHOLE);
    put_excerpt(r, f->message, ah_buf_slice(&r->body), &message);
    put_excerpt(r, f->word, (ah_slice){NULL, 0}, &word);
    ah_err_set(err, AH_PROVIDER, "%s: HTTP %d: %.*s%s%.*s%s%s%s", name_of(r), r->base.status,
               AH_FMT(ah_buf_slice(&message)), word.len ? " (" : "", AH_FMT(ah_buf_slice(&word)),
               word.len ? ")" : "",
               moved ? "; redirects are not followed, check base_url"
               : key ? "; check api_key or "
                     : "",
               key && !moved ? variable : "");
    ah_reader_judge(&r->base, err, f->never || key);
    ah_buf_clear(&message);
    ah_buf_clear(&word);
    return AH_PROVIDER;
}

ah_status ah_answer_whole(ah_answer *r, ah_slice *out, ah_err *err)
{
    ah_answer_fault unsaid = {0};
    ah_slice body = ah_buf_slice(&r->body);
    ah_status st;

    if (r->base.status < 200 || r->base.status >= 300) {
        st = ah_json_check(r->base.adapter->mem, body, AH_JSON_MAX_DEPTH, NULL);
        if (st == AH_NOMEM)
            return ah_err_nomem(err);
        if (st != AH_OK)
            return ah_answer_failed(r, &unsaid, err);
    } else if (!body.n) {
        return ah_answer_bad(r, "the answer is empty", err);
    } else if (body.p[0] == '<') {
        ah_answer_bad(r, "the answer is a web page, no JSON; check base_url", err);
        err->retryable = false;
        return AH_PROVIDER;
    } else if ((st = ah_answer_check(r, body, "the answer", err)) != AH_OK) {
        return st;
    }
    *out = body;
    return AH_OK;
}

int64_t ah_answer_count(ah_slice object, const char *key)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(object, key), &n) && n.is_int && n.i > 0 ? n.i : 0;
}
