/* See store_export.h. */
#include "host/store_export.h"

#include "base/json.h"
#include "host/open_store.h"
#include "host/store_keep.h"
#include "io/store_hash.h"
#include "journal/fold_members.h"

enum { MAX_LABEL = 1 << 20 };

/* Makes the row of a record whose texts are given by their hashes. */
static ah_status chain_on(const ah_mem *mem, unsigned char chain[AH_STORE_HASH],
                          const ah_store_record *r, unsigned char kept[AH_STORE_HASH], ah_err *err)
{
    unsigned char said[AH_STORE_HASH];
    ah_store_row row = {.number = r->number, .time = r->time, .kind = r->kind};
    ah_status st = ah_store_hash_whole(mem, r->said, said, err);

    if (st == AH_OK && r->kept.p)
        st = ah_store_hash_whole(mem, r->kept, kept, err);
    else if (r->kept_hash.p)
        memcpy(kept, r->kept_hash.p, AH_STORE_HASH);
    if (st != AH_OK)
        return st;
    row.said = (ah_store_text){ah_slice_of(""), {(char *)said, sizeof said}};
    if (r->kept.p || r->kept_hash.p)
        row.kept = (ah_store_text){ah_slice_of(""), {(char *)kept, AH_STORE_HASH}};
    ah_store_hash_on(chain, &row);
    return AH_OK;
}

/* -- export --------------------------------------------------------------------------------------
 */

typedef struct writer {
    const ah_mem *mem;
    ah_buf *out;
    bool kept;
    unsigned char chain[AH_STORE_HASH];
} writer;

/* A record is one line, so its texts must have no line ends between their tokens. */
static ah_status check_text(const writer *w, ah_slice text, ah_err *err)
{
    ah_status st = ah_json_check_err(w->mem, text, "its text", err);

    if (st == AH_OK && memchr(text.p, '\n', text.n))
        st = ah_err_set(err, AH_STORE, "its text has line ends");
    return st;
}

static ah_status check_record(const writer *w, const ah_store_record *r, ah_err *err)
{
    ah_status st = check_text(w, r->said, err);

    if (st == AH_OK && r->kept.p)
        st = check_text(w, r->kept, err);
    if (st == AH_OK && !ah_utf8_valid(r->kind))
        st = ah_err_set(err, AH_STORE, "its kind is not UTF-8");
    return st;
}

static ah_status put_record(void *ud, const ah_store_record *r, ah_err *err)
{
    writer *w = ud;
    unsigned char kept[AH_STORE_HASH];
    ah_err why;
    ah_status st = check_record(w, r, &why);

    if (st != AH_OK)
        return ah_err_set(err, st == AH_NOMEM ? st : AH_STORE, "record %lld is damaged: %s",
                          (long long)r->number, why.message);
    if ((st = chain_on(w->mem, w->chain, r, kept, err)) != AH_OK)
        return st;
    ah_buf_fmt(w->out, "{\"number\":%lld,\"time\":%lld,\"kind\":", (long long)r->number,
               (long long)r->time);
    ah_json_put_string(w->out, r->kind);
    ah_buf_fmt(w->out, ",\"said\":");
    ah_buf_put(w->out, r->said);
    if (r->kept.p && w->kept) {
        ah_buf_fmt(w->out, ",\"kept\":");
        ah_buf_put(w->out, r->kept);
    } else if (r->kept.p || r->kept_hash.p) {
        ah_buf_fmt(w->out, ",\"kept_hash\":\"");
        ah_put_hash(w->out, kept);
        ah_buf_char(w->out, '"');
    }
    ah_buf_fmt(w->out, ",\"hash\":\"");
    ah_put_hash(w->out, w->chain);
    ah_buf_fmt(w->out, "\"}\n");
    return ah_buf_ok(w->out) ? AH_OK : ah_buf_error(w->out, "the export", err);
}

/* The stream that is looked for in a list; its label is appended to the buffer. */
typedef struct seeker {
    ah_slice name;
    ah_buf *label;
    int64_t records;
} seeker;

static ah_status seek(void *ud, const ah_store_stream *s, ah_err *err)
{
    seeker *k = ud;

    (void)err;
    if (!ah_slice_eq(s->name, k->name))
        return AH_OK;
    k->records = s->last;
    if (s->label.p)
        ah_buf_put(k->label, s->label);
    return AH_CANCELLED;
}

/* Appends the first line. */
static ah_status put_head(const writer *w, ah_store *e, ah_slice stream, ah_err *err)
{
    ah_buf label;
    seeker k = {stream, &label, 0};
    ah_status st;

    ah_buf_init(&label, w->mem, MAX_LABEL);
    st = e->vt->list(e, stream, false, seek, &k, err);
    if (st == AH_CANCELLED)
        st = label.status == AH_NOMEM ? ah_err_nomem(err) : AH_OK;
    else if (st == AH_OK)
        st = ah_err_set(err, AH_USAGE, "there is no stream \"%.*s\" in the store", AH_FMT(stream));
    ah_buf_fmt(w->out, "{\"format\":\"" AH_EXPORT_FORMAT "\",\"version\":%d,\"written_by\":\"%s\"",
               AH_EXPORT_VERSION, AH_VERSION);
    ah_buf_fmt(w->out, ",\"stream\":");
    ah_json_put_string(w->out, stream);
    ah_buf_fmt(w->out, ",\"records\":%lld,\"kept\":%s", (long long)k.records,
               w->kept ? "true" : "false");
    if (label.len && ah_buf_ok(&label) && !memchr(label.data, '\n', label.len) &&
        ah_json_check(w->mem, ah_buf_slice(&label), AH_JSON_MAX_DEPTH - 1, NULL) == AH_OK) {
        ah_buf_fmt(w->out, ",\"label\":");
        ah_buf_put(w->out, ah_buf_slice(&label));
    }
    ah_buf_fmt(w->out, "}\n");
    ah_buf_clear(&label);
    return st;
}

ah_status ah_open_store_export(ah_host *h, ah_open_store *s, ah_slice stream, bool kept,
                               ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    writer w = {.mem = h->mem, .out = out, .kept = kept};
    ah_status st = put_head(&w, e, stream, err);

    return st == AH_OK ? e->vt->read(e, stream, 1, put_record, &w, err) : st;
}

/* -- import --------------------------------------------------------------------------------------
 */

/* The contents of an export. Slices are those of its text, or of `hashes`. */
typedef struct incoming {
    ah_host *host;
    ah_text *name;
    ah_slice label; /* .p NULL: none */
    ah_stream_kind kind;
    ah_store_record *record;
    size_t n, cap;
    ah_buf hashes; /* AH_STORE_HASH of each record: of what it kept, if that is left out */
    unsigned char chain[AH_STORE_HASH];
    int64_t erased, lines;
} incoming;

static ah_status wrong(const incoming *m, ah_err *err, const char *why)
{
    return ah_err_set(err, AH_USAGE, "line %lld of the export: %s", (long long)m->lines, why);
}

/* Takes the next line and reads its members. */
static ah_status read_line(incoming *m, ah_slice *text, const ah_member *members, ah_slice *value,
                           ah_err *err)
{
    const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;
    ah_slice line = {text->p, end ? (size_t)(end - text->p) : text->n};
    ah_err why;
    ah_status st;

    m->lines++;
    *text = end ? (ah_slice){end + 1, text->n - line.n - 1} : (ah_slice){text->p + text->n, 0};
    st = ah_json_check_err(m->host->mem, line, "it", &why);
    if (st == AH_OK && ah_json_kind_of(line) != AH_JSON_OBJECT)
        st = ah_err_set(&why, AH_USAGE, "it is not an object");
    if (st == AH_OK)
        st = ah_members_read(line, members, value, &why);
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    return st == AH_OK ? AH_OK : wrong(m, err, why.message);
}

/* Finds the kind of a stream by its name, and checks the name. */
static ah_status read_name(incoming *m, ah_slice name, ah_err *err)
{
    const char *slash = memchr(name.p, '/', name.n);
    bool ok = name.n > 0 && name.n <= AH_STORE_MAX_STREAM && ah_utf8_valid(name);

    for (size_t i = 0; i < name.n; i++)
        ok = ok && (unsigned char)name.p[i] >= ' ' && name.p[i] != 0x7f;
    m->kind = AH_STREAM_CONVERSATION;
    if (slash) {
        ah_slice begin = {name.p, (size_t)(slash - name.p)};

        for (m->kind = AH_STREAM_SESSION; m->kind < AH_STREAM_FILES; m->kind++)
            if (ah_slice_is(begin, ah_stream_kind_name(m->kind)))
                break;
        ok = ok && ah_slice_is(begin, ah_stream_kind_name(m->kind)) &&
             slash + 1 < name.p + name.n && !memchr(slash + 1, '/', name.n - begin.n - 1);
    }
    if (!ok)
        return ah_err_set(err, AH_USAGE,
                          "the name of the stream must be printable text of 1 to %d bytes, without "
                          "'/' but in session/NAME, budget/NAME or files/NAME",
                          AH_STORE_MAX_STREAM);
    m->name = ah_text_new(m->host->mem, name);
    return m->name ? AH_OK : ah_err_nomem(err);
}

static ah_status read_head(incoming *m, ah_slice *text, ah_slice as, int64_t *records, ah_err *err)
{
    static const ah_member members[] = {
        {"format", AH_MEMBER_STRING, true}, {"version", AH_MEMBER_COUNT, true},
        {"stream", AH_MEMBER_STRING, true}, {"records", AH_MEMBER_COUNT, true},
        {"label", AH_MEMBER_OBJECT, false}, {NULL, AH_MEMBER_ANY, false}};
    enum { FORMAT, VERSION, STREAM, RECORDS, LABEL, N };
    ah_slice v[N];
    ah_buf name;
    ah_status st = read_line(m, text, members, v, err);

    if (st != AH_OK)
        return st;
    if (!ah_json_string_is(v[FORMAT], AH_EXPORT_FORMAT))
        return wrong(m, err, "it is not the beginning of an export of agenthost");
    if (ah_member_count(v[VERSION]) != AH_EXPORT_VERSION)
        return wrong(m, err, "a newer agenthost wrote it, which this one cannot read");
    *records = ah_member_count(v[RECORDS]);
    m->label = v[LABEL].n <= MAX_LABEL ? v[LABEL] : (ah_slice){NULL, 0};
    ah_buf_init(&name, m->host->mem, AH_STORE_MAX_RECORD);
    ah_json_string(v[STREAM], &name);
    st = ah_buf_ok(&name) ? read_name(m, as.p ? as : ah_buf_slice(&name), err)
                          : ah_buf_error(&name, "the name", err);
    ah_buf_clear(&name);
    return st;
}

/* Compares the hash of a record with that of the chain. */
static ah_status check_hash(incoming *m, const ah_store_record *r, ah_slice hash, ah_err *err)
{
    unsigned char kept[AH_STORE_HASH], said[AH_STORE_HASH];
    ah_status st = chain_on(m->host->mem, m->chain, r, kept, err);

    if (st != AH_OK)
        return st;
    if (!ah_read_hex(ah_json_inside(hash), said, sizeof said) ||
        memcmp(said, m->chain, sizeof said) != 0)
        return wrong(m, err, "its hash does not fit: this record, or one before, was changed");
    return AH_OK;
}

static ah_status read_record(incoming *m, ah_slice *text, ah_err *err)
{
    static const ah_member members[] = {
        {"number", AH_MEMBER_COUNT, true}, {"time", AH_MEMBER_COUNT, true},
        {"kind", AH_MEMBER_STRING, true},  {"said", AH_MEMBER_OBJECT, true},
        {"kept", AH_MEMBER_ANY, false},    {"kept_hash", AH_MEMBER_STRING, false},
        {"hash", AH_MEMBER_STRING, true},  {NULL, AH_MEMBER_ANY, false}};
    enum { NUMBER, TIME, KIND, SAID, KEPT, KEPT_HASH, HASH, N };
    ah_store_record *list = ah_grow(m->host->mem, m->record, &m->cap, m->n + 1, sizeof *list), *r;
    unsigned char erased[AH_STORE_HASH] = {0};
    ah_slice v[N];
    ah_status st;

    if (!list)
        return ah_err_nomem(err);
    m->record = list;
    if ((st = read_line(m, text, members, v, err)) != AH_OK)
        return st;
    r = &m->record[m->n];
    *r = (ah_store_record){.number = ah_member_count(v[NUMBER]),
                           .time = ah_member_count(v[TIME]),
                           .kind = ah_json_inside(v[KIND]),
                           .said = v[SAID],
                           .kept = v[KEPT]};
    if (r->number != (int64_t)m->n + 1)
        return wrong(m, err, "its number is not one more than that before");
    if (memchr(r->kind.p, '\\', r->kind.n) || r->kind.n > UINT8_MAX)
        return wrong(m, err, "its kind is no name");
    if (v[KEPT_HASH].p) {
        if (v[KEPT].p || !ah_read_hex(ah_json_inside(v[KEPT_HASH]), erased, sizeof erased))
            return wrong(m, err, "its kept_hash is no hash, or it has `kept`, too");
        r->kept_hash = (ah_slice){(const char *)erased, sizeof erased};
        m->erased++;
    }
    if ((st = check_hash(m, r, v[HASH], err)) != AH_OK)
        return st;
    ah_buf_add(&m->hashes, erased, sizeof erased);
    m->n++;
    return ah_buf_ok(&m->hashes) ? AH_OK : ah_err_nomem(err);
}

/* Sets the hashes of what is erased to their place, which is final now. */
static void place_hashes(incoming *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->record[i].kept_hash.p)
            m->record[i].kept_hash.p = m->hashes.data + i * AH_STORE_HASH;
}

static ah_status read_records(incoming *m, ah_slice text, int64_t expected, ah_err *err)
{
    ah_status st = AH_OK;

    while (st == AH_OK && text.n > 0)
        st = read_record(m, &text, err);
    if (st == AH_OK && (int64_t)m->n != expected)
        return ah_err_set(err, AH_USAGE,
                          "the export is cut: it has %zu records, and says that it has %lld", m->n,
                          (long long)expected);
    if (st == AH_OK && m->n == 0)
        return ah_err_set(err, AH_USAGE, "the export has no records");
    place_hashes(m);
    return st;
}

/* Folds the records as the one that opens the stream will. Files are read from their last
 * checkpoint on, since what came before may be erased. */
static ah_status check_records(const incoming *m, ah_err *err)
{
    size_t from = 0;
    ah_fold f;
    ah_status st = ah_fold_init(&f, m->host->mem, err);

    if (st != AH_OK)
        return st;
    for (size_t i = 0; m->kind == AH_STREAM_FILES && i < m->n; i++)
        if (ah_slice_is(m->record[i].kind, ah_record_name(AH_RECORD_CHECKPOINT)))
            from = i;
    f.stream = m->kind;
    for (size_t i = from; st == AH_OK && i < m->n; i++)
        st = ah_fold_add(&f, &m->record[i], err);
    ah_fold_clear(&f);
    return st;
}

/* -- writing -------------------------------------------------------------------------------------
 */

typedef struct landing {
    ah_store_append append; /* first */
    ah_open_store *store;
    ah_err err;
    bool done;
} landing;

static void on_done(ah_store_append *a, const ah_err *err)
{
    landing *l = (landing *)(void *)a;

    l->err = *err;
    l->done = true;
    ah_open_store_appended(l->store);
}

static ah_status append(const incoming *m, ah_open_store *s, int64_t fence, ah_err *err)
{
    ah_store_batch batch = {
        .stream = ah_text_slice(m->name), .fence = fence, .record = m->record, .n = m->n};
    landing l = {.append = {.batch = &batch, .n = 1, .done = on_done}, .store = s};

    ah_open_store_append(s, &l.append);
    while (!l.done)
        ah_open_store_wait(s);
    *err = l.err;
    return l.err.status;
}

static ah_status find_any(void *ud, const ah_store_record *r, ah_err *err)
{
    (void)r, (void)err;
    *(bool *)ud = true;
    return AH_CANCELLED;
}

/* Another process may have written to the stream meanwhile: then it stays. */
static void remove_empty(ah_store *e, ah_slice name)
{
    bool exists = false;
    ah_err ignored;

    if (e->vt->remove && e->vt->read(e, name, 1, find_any, &exists, &ignored) == AH_OK && !exists)
        e->vt->remove(e, name, &ignored);
}

/* Writes the records to a stream that is not there yet. */
static ah_status write_stream(const incoming *m, ah_open_store *s, ah_err *err)
{
    ah_store *e = s->engine;
    ah_slice name = ah_text_slice(m->name);
    bool exists = false;
    int64_t fence;
    ah_status st = e->vt->read(e, name, 1, find_any, &exists, err);

    if (exists)
        return ah_err_set(err, AH_CONFLICT,
                          "the store has '%.*s' already: import it under another id", AH_FMT(name));
    if (st != AH_OK || (st = e->vt->hold(e, name, false, &fence, err)) != AH_OK)
        return st;
    if (m->label.p)
        st = e->vt->label(e, name, m->label, err);
    if (st == AH_OK)
        st = append(m, s, fence, err);
    e->vt->release(e, name);
    if (st != AH_OK)
        remove_empty(e, name);
    return st;
}

static ah_status read_all(incoming *m, ah_open_store *s, ah_slice text, ah_slice as, ah_err *err)
{
    int64_t records = 0;
    ah_status st = read_head(m, &text, as, &records, err);

    if (st == AH_OK)
        st = read_records(m, text, records, err);
    if (st == AH_OK && m->erased && !s->engine->vt->remove)
        return ah_err_set(err, AH_USAGE,
                          "the engine of this store cannot have erased records: import an export "
                          "with what was kept (--kept)");
    return st == AH_OK ? check_records(m, err) : st;
}

ah_status ah_open_store_import(ah_host *h, ah_open_store *s, ah_slice text, ah_slice as,
                               ah_buf *out, ah_err *err)
{
    incoming m = {.host = h};
    ah_status st;

    ah_buf_init(&m.hashes, h->mem, SIZE_MAX);
    st = read_all(&m, s, text, as, err);
    if (st == AH_OK)
        st = write_stream(&m, s, err);
    if (st == AH_OK) {
        ah_buf_fmt(out, "{\"id\":");
        ah_json_put_string(out, ah_text_slice(m.name));
        ah_buf_fmt(out, ",\"records\":%zu,\"erased\":%lld,\"head\":\"%zu:", m.n,
                   (long long)m.erased, m.n);
        ah_put_hash(out, m.chain);
        ah_buf_fmt(out, "\"}");
    }
    ah_text_unref(m.name);
    ah_free(h->mem, m.record);
    ah_buf_clear(&m.hashes);
    return st == AH_OK && !ah_buf_ok(out) ? ah_buf_error(out, "the result", err) : st;
}
