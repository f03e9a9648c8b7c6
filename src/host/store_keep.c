/* See store_keep.h. */
#include "host/store_keep.h"

#include <stdio.h>

#include "base/json.h"
#include "base/sha256.h"
#include "model/record.h"

static ah_status cannot(const char *what, ah_err *err)
{
    return ah_err_set(err, AH_USAGE, "the engine of this store cannot %s", what);
}

/* -- hexadecimal digits --------------------------------------------------------------------------
 */

void ah_put_hash(ah_buf *out, const unsigned char hash[AH_STORE_HASH])
{
    char hex[AH_SHA256_HEX];

    ah_sha256_hex(hash, hex);
    ah_buf_add(out, hex, sizeof hex);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | ('a' - 'A'));
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ah_read_hex(ah_slice text, unsigned char *out, size_t n)
{
    if (text.n != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = digit(text.p[2 * i]), low = digit(text.p[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* -- removing and erasing ------------------------------------------------------------------------
 */

ah_status ah_open_store_remove(ah_open_store *s, ah_slice stream, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);

    return e->vt->remove ? e->vt->remove(e, stream, err) : cannot("delete", err);
}

ah_status ah_open_store_purge(ah_open_store *s, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);

    return e->vt->purge ? e->vt->purge(e, err) : cannot("be written anew", err);
}

/* Sets *below to the number of the last record that makes what was kept before it useless. */
static ah_status find_last(ah_store *e, ah_slice stream, int64_t *below, ah_err *err)
{
    bool conversation = memchr(stream.p, '/', stream.n) == NULL;
    int64_t turn = 0;
    ah_status st =
        e->vt->find_last(e, stream, ah_slice_of(ah_record_name(AH_RECORD_CHECKPOINT)), below, err);

    if (st == AH_OK && conversation)
        st = e->vt->find_last(e, stream, ah_slice_of(ah_record_name(AH_RECORD_TURN)), &turn, err);
    if (turn > *below)
        *below = turn;
    return st;
}

ah_status ah_open_store_erase(ah_open_store *s, ah_slice stream, int64_t older, int64_t *n,
                              ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    int64_t below = 0, some = 0;
    ah_status st;

    if (!e->vt->erase)
        return cannot("erase", err);
    if ((st = find_last(e, stream, &below, err)) == AH_OK && below > 0)
        st = e->vt->erase(e, stream, below, older, &some, err);
    *n += some;
    return st;
}

/* -- verifying -----------------------------------------------------------------------------------
 */

/* A head as it is given: "<number>:<hash>" or "<hash>". */
typedef struct head {
    int64_t number; /* 0: not given */
    unsigned char hash[AH_STORE_HASH];
} head;

static ah_status read_head(ah_slice text, head *out, ah_err *err)
{
    const char *colon = memchr(text.p, ':', text.n);
    ah_slice number = {text.p, colon ? (size_t)(colon - text.p) : 0}, hash = text;
    ah_json_num n = {.i = 0};

    if (colon)
        hash = (ah_slice){colon + 1, text.n - number.n - 1};
    if (ah_read_hex(hash, out->hash, sizeof out->hash) &&
        (!colon || (ah_json_number(number, &n) && n.is_int && n.i > 0))) {
        out->number = n.i;
        return AH_OK;
    }
    return ah_err_set(err, AH_USAGE,
                      "a head is NUMBER:HASH or HASH, where HASH has 64 hexadecimal digits, found "
                      "'%.*s'",
                      text.n > 80 ? 80 : (int)text.n, text.p);
}

typedef struct verdict {
    const char *code; /* NULL: sound */
    int64_t at;
    char message[200];
} verdict;

/* Compares a chain that is sound with the head. */
static void judge_head(const ah_store_audit *a, const head *h, verdict *v)
{
    if (a->found && (!h->number || a->found == h->number))
        return;
    if (h->number > a->last) {
        v->code = "cut";
        v->at = a->last;
        snprintf(v->message, sizeof v->message,
                 "it ends with record %lld, and the head is that of record %lld: records were cut "
                 "off",
                 (long long)a->last, (long long)h->number);
    } else if (h->number) {
        v->code = "forged";
        v->at = h->number;
        snprintf(v->message, sizeof v->message,
                 "record %lld has another hash than the head, and the chain fits: records up to it "
                 "were written anew",
                 (long long)h->number);
    } else {
        v->code = "forged";
        snprintf(v->message, sizeof v->message,
                 "no record has the hash of the head, and the chain fits: records were cut off or "
                 "written anew");
    }
}

static void judge(const ah_store_audit *a, const head *h, verdict *v)
{
    if (a->fault == AH_STORE_SOUND) {
        if (h)
            judge_head(a, h, v);
        return;
    }
    v->code = a->fault == AH_STORE_MISSING ? "missing" : "changed";
    v->at = a->at;
    snprintf(v->message, sizeof v->message, "record %lld: %s", (long long)a->at, a->what);
}

static void put_head(int64_t number, const unsigned char hash[AH_STORE_HASH], ah_buf *out)
{
    ah_buf_fmt(out, "%lld:", (long long)number);
    ah_put_hash(out, hash);
}

ah_status ah_open_store_head(ah_open_store *s, ah_slice stream, ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    unsigned char hash[AH_STORE_HASH];
    int64_t number = 0;
    ah_status st;

    if (!e->vt->head)
        return cannot("give a head: it has no hashes", err);
    if ((st = e->vt->head(e, stream, &number, hash, err)) != AH_OK)
        return st;
    put_head(number, hash, out);
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the head", err);
}

static void put_verdict(ah_slice stream, const ah_store_audit *a, const verdict *v, ah_buf *out)
{
    ah_buf_fmt(out, "{\"id\":");
    ah_json_put_string(out, stream);
    ah_buf_fmt(out, ",\"records\":%lld,\"erased\":%lld,\"head\":\"", (long long)a->last,
               (long long)a->erased);
    put_head(a->last, a->head, out);
    ah_buf_fmt(out, "\",\"success\":%s", v->code ? "false" : "true");
    if (v->code) {
        ah_buf_fmt(out, ",\"code\":\"%s\",\"message\":\"%s\"", v->code, v->message);
        if (v->at)
            ah_buf_fmt(out, ",\"at\":%lld", (long long)v->at);
    }
    ah_buf_char(out, '}');
}

ah_status ah_open_store_verify(ah_open_store *s, ah_slice stream, ah_slice text, ah_buf *out,
                               ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    ah_store_audit a = {.last = 0};
    verdict v = {NULL, 0, ""};
    head noted;
    ah_status st = AH_OK;

    if (!e->vt->verify)
        return cannot("verify: it has no hashes", err);
    if (text.p) {
        if ((st = read_head(text, &noted, err)) != AH_OK)
            return st;
        a.expected = (ah_slice){(const char *)noted.hash, sizeof noted.hash};
    }
    if ((st = e->vt->verify(e, stream, &a, err)) != AH_OK)
        return st;
    judge(&a, text.p ? &noted : NULL, &v);
    put_verdict(stream, &a, &v, out);
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the result", err);
}

/* -- sizes ---------------------------------------------------------------------------------------
 */

/* A stream of the list. Its name follows it in a buffer, from which the streams are measured after
 * the list, as an engine may allow one reading at a time. */
typedef struct listed {
    size_t name_n;
    int64_t changed;
    size_t messages;
    bool conversation;
} listed;

static ah_status note_stream(void *ud, const ah_store_stream *s, ah_err *err)
{
    ah_buf *names = ud;
    bool conversation = memchr(s->name.p, '/', s->name.n) == NULL;
    listed l = {s->name.n, s->time, s->messages, conversation};

    if (!ah_utf8_valid(s->name))
        return AH_OK;
    ah_buf_add(names, &l, sizeof l);
    ah_buf_put(names, s->name);
    return ah_buf_ok(names) ? AH_OK : ah_err_nomem(err);
}

static ah_status put_stream(ah_store *e, ah_slice name, const listed *l, ah_buf *out, ah_err *err)
{
    ah_store_size z;
    ah_status st = e->vt->measure(e, name, &z, err);

    if (st != AH_OK)
        return st;
    ah_buf_fmt(out, "{\"id\":");
    ah_json_put_string(out, name);
    ah_buf_fmt(out, ",\"conversation\":%s,\"records\":%lld,\"bytes\":%lld,\"erased\":%lld",
               l->conversation ? "true" : "false", (long long)z.records, (long long)z.bytes,
               (long long)z.erased);
    ah_buf_fmt(out, ",\"oldest\":%lld,\"changed\":%lld,\"messages\":%zu}", (long long)z.oldest,
               (long long)l->changed, l->messages);
    return AH_OK;
}

static ah_status put_streams(ah_store *e, ah_slice names, ah_buf *out, ah_err *err)
{
    ah_status st = AH_OK;
    listed l;

    for (bool first = true; st == AH_OK && names.n > 0; first = false) {
        memcpy(&l, names.p, sizeof l);
        names = (ah_slice){names.p + sizeof l, names.n - sizeof l};
        if (!first)
            ah_buf_char(out, ',');
        st = put_stream(e, (ah_slice){names.p, l.name_n}, &l, out, err);
        names = (ah_slice){names.p + l.name_n, names.n - l.name_n};
    }
    return st;
}

ah_status ah_open_store_stat(ah_host *h, ah_open_store *s, ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    ah_buf names;
    ah_store_size z;
    ah_status st;

    if (!e->vt->measure)
        return cannot("be measured", err);
    ah_buf_init(&names, h->mem, SIZE_MAX);
    st = e->vt->list(e, ah_slice_of(""), false, note_stream, &names, err);
    if (st == AH_OK)
        st = e->vt->measure(e, (ah_slice){NULL, 0}, &z, err);
    if (st == AH_OK) {
        ah_buf_fmt(out, "{\"size\":%lld,\"blobs\":%lld,\"blob_bytes\":%lld,\"streams\":[",
                   (long long)z.file, (long long)z.blobs, (long long)z.blob_bytes);
        st = put_streams(e, ah_buf_slice(&names), out, err);
        ah_buf_fmt(out, "]}");
    }
    ah_buf_clear(&names);
    return st == AH_OK && !ah_buf_ok(out) ? ah_buf_error(out, "the result", err) : st;
}
