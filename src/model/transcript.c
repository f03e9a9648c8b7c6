/* Entries, ids of calls, the pending turn and its end, and writing the JSON form.
 * transcript_read.c reads it back, with checks for foreign files. */
#include "model/transcript.h"

enum { MAX_ENTRY = 256 << 20 }; /* bytes of one entry; its contents have lower limits */

static const char *const names[AH_ENTRY_KINDS] = {
    [AH_ENTRY_SETTINGS] = "settings",
    [AH_ENTRY_ASSISTANT] = "assistant",
    [AH_ENTRY_TOOL_RESULT] = "tool_result",
    [AH_ENTRY_TOOLS_ADDED] = "tools_added",
    [AH_ENTRY_TOOLS_REMOVED] = "tools_removed",
    [AH_ENTRY_TOOLS_DEFERRED] = "tools_deferred",
    [AH_ENTRY_PROMPT] = "prompt",
    [AH_ENTRY_STRATEGY] = "strategy",
    [AH_ENTRY_NOTE] = "note",
    [AH_ENTRY_USER] = "user",
    [AH_ENTRY_COMPACTED] = "compacted",
};

const char *ah_entry_name(ah_entry_kind kind)
{
    return names[kind];
}

ah_transcript *ah_transcript_new(const ah_mem *mem)
{
    ah_transcript *t = ah_alloc(mem, sizeof *t);

    if (t) {
        t->mem = mem;
        t->refs = 1;
    }
    return t;
}

ah_transcript *ah_transcript_ref(ah_transcript *t)
{
    if (t)
        t->refs++;
    return t;
}

static void clear_slot(ah_slot *s)
{
    ah_text_unref(s->id);
    ah_text_unref(s->name);
    ah_text_unref(s->arguments);
    ah_text_unref(s->original);
    ah_text_unref(s->result);
    ah_text_unref(s->reserve);
}

static void clear_turn(ah_transcript *t)
{
    for (size_t i = 0; i < t->n_slots; i++)
        clear_slot(&t->slot[i]);
    ah_free(t->mem, t->slot);
    t->slot = NULL;
    t->n_slots = 0;
    ah_text_set(&t->assistant, NULL);
}

void ah_transcript_unref(ah_transcript *t)
{
    if (!t || --t->refs > 0)
        return;
    clear_turn(t);
    for (size_t i = 0; i < t->n; i++)
        ah_text_unref(t->entry[i].json);
    for (size_t i = 0; i < t->n_staged; i++)
        ah_text_unref(t->staged[i].json);
    ah_free(t->mem, t->entry);
    ah_free(t->mem, t->staged);
    ah_free(t->mem, t->seen);
    ah_free(t->mem, t);
}

/* Makes room for everything that the next commit may move, and one more entry. */
static bool reserve(ah_transcript *t, size_t n_slots, size_t n_staged)
{
    ah_entry *e = ah_grow(t->mem, t->entry, &t->cap, t->n + n_slots + n_staged + 2, sizeof *e);

    if (e)
        t->entry = e;
    return e != NULL;
}

ah_status ah_transcript_stage(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err)
{
    ah_entry *s = ah_grow(t->mem, t->staged, &t->cap_staged, t->n_staged + 1, sizeof *s);

    if (s)
        t->staged = s;
    if (!json || !s || !reserve(t, t->n_slots, t->n_staged + 1)) {
        ah_text_unref(json);
        return ah_err_nomem(err);
    }
    t->staged[t->n_staged++] = (ah_entry){.kind = kind, .json = json};
    return AH_OK;
}

/* -- call ids ------------------------------------------------------------- */

static uint64_t hash_id(ah_slice id)
{
    uint64_t h = ah_slice_hash(id);

    return h ? h : 1;
}

static uint64_t *seen_cell(uint64_t *seen, size_t cap, uint64_t h)
{
    size_t i = (size_t)h & (cap - 1);

    while (seen[i] && seen[i] != h)
        i = (i + 1) & (cap - 1);
    return &seen[i];
}

bool ah_transcript_knows(const ah_transcript *t, ah_slice id)
{
    return t->cap_seen && *seen_cell(t->seen, t->cap_seen, hash_id(id)) != 0;
}

static bool grow_seen(ah_transcript *t)
{
    size_t cap = t->cap_seen ? t->cap_seen * 2 : 32;
    uint64_t *seen = ah_alloc(t->mem, cap * sizeof *seen);

    if (!seen)
        return false;
    for (size_t i = 0; i < t->cap_seen; i++)
        if (t->seen[i])
            *seen_cell(seen, cap, t->seen[i]) = t->seen[i];
    ah_free(t->mem, t->seen);
    t->seen = seen;
    t->cap_seen = cap;
    return true;
}

static ah_status remember(ah_transcript *t, ah_slice id, ah_err *err)
{
    uint64_t h = hash_id(id), *cell;

    if ((t->n_seen + 1) * 2 > t->cap_seen && !grow_seen(t))
        return ah_err_nomem(err);
    cell = seen_cell(t->seen, t->cap_seen, h);
    t->n_seen += *cell == 0;
    *cell = h;
    return AH_OK;
}

/* -- the pending turn ---------------------------------------------------- */

/* Returns a string value's text; "" for other values. */
static ah_text *string_text(const ah_mem *mem, ah_slice value)
{
    ah_buf b;
    ah_text *t = NULL;

    ah_buf_init(&b, mem, MAX_ENTRY);
    ah_json_string(value, &b);
    ah_text_from_buf(&b, "string", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

static void put_result_head(ah_buf *b, ah_slice id, ah_slice name, ah_slice content)
{
    ah_buf_str(b, "{\"type\":\"tool_result\",\"id\":");
    ah_json_put_string(b, id);
    ah_buf_str(b, ",\"name\":");
    ah_json_put_string(b, name);
    ah_buf_str(b, ",\"content\":");
    ah_json_put_string(b, content);
}

static void put_result_tail(ah_buf *b, bool success, int64_t time)
{
    ah_buf_str(b, success ? ",\"success\":true,\"time\":" : ",\"success\":false,\"time\":");
    ah_buf_int(b, time);
    ah_buf_char(b, '}');
}

static ah_status judge_arguments(ah_transcript *t, ah_slot *s, ah_err *err)
{
    ah_slice text = ah_text_slice(s->arguments);
    ah_status st = ah_json_check(t->mem, text, AH_ARGUMENTS_DEPTH, NULL);

    s->written = AH_ARGUMENTS_JSON;
    if (st == AH_TOOL_VALIDATION) {
        st = ah_json_check(t->mem, text, AH_JSON_MAX_DEPTH, NULL);
        s->written = st == AH_OK ? AH_ARGUMENTS_DEEP : AH_ARGUMENTS_WRONG;
    }
    return st == AH_NOMEM ? ah_err_nomem(err) : AH_OK;
}

static ah_status read_slot(ah_transcript *t, ah_slot *s, ah_slice call, ah_err *err)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};
    ah_buf b;
    ah_status st;

    ah_json_members(call, want, 3);
    s->id = string_text(t->mem, id);
    s->name = string_text(t->mem, name);
    s->arguments = string_text(t->mem, arguments);
    if (!s->id || !s->name || !s->arguments)
        return ah_err_nomem(err);
    if ((st = judge_arguments(t, s, err)) != AH_OK)
        return st;
    ah_buf_init(&b, t->mem, MAX_ENTRY);
    put_result_head(&b, ah_text_slice(s->id), ah_text_slice(s->name), (ah_slice){"", 0});
    ah_buf_room(&b, AH_SETTLE_MAX + 64);
    if (ah_buf_ok(&b))
        b.len += AH_SETTLE_MAX + 64; /* reserves room; overwritten when used */
    st = ah_text_from_buf(&b, "tool call", &s->reserve, err);
    ah_buf_clear(&b);
    return st;
}

static ah_slice next_value(ah_json_reader *r)
{
    ah_json_token t = ah_json_next(r);

    return ah_json_skip(r, t);
}

static size_t count_calls(ah_slice calls)
{
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    if (t.kind != AH_JSON_ARRAY)
        return 0;
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r), n++)
        ah_json_skip(&r, t);
    return n;
}

/* Keeps the ids of an assistant entry that no run here has made. */
static ah_status remember_calls(ah_transcript *t, ah_slice entry, ah_err *err)
{
    ah_slice calls = ah_json_member(entry, "tool_calls");
    ah_json_reader r = ah_json_read(calls);
    ah_status st = AH_OK;
    ah_text *id;

    ah_json_next(&r);
    for (size_t n = count_calls(calls); n > 0 && st == AH_OK; n--) {
        id = string_text(t->mem, ah_json_member(next_value(&r), "id"));
        st = id ? remember(t, ah_text_slice(id), err) : ah_err_nomem(err);
        ah_text_unref(id);
    }
    return st;
}

/* The room was reserved. */
static void append(ah_transcript *t, ah_entry e)
{
    t->entry[t->n++] = e;
    if (e.kind == AH_ENTRY_SETTINGS)
        ah_model_settings_read(ah_text_slice(e.json), &t->settings);
}

ah_status ah_transcript_add(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err)
{
    ah_status st = json && reserve(t, t->n_slots, t->n_staged) ? AH_OK : ah_err_nomem(err);

    if (st == AH_OK && kind == AH_ENTRY_ASSISTANT)
        st = remember_calls(t, ah_text_slice(json), err);
    if (st == AH_OK)
        append(t, (ah_entry){.kind = kind, .json = json});
    else
        ah_text_unref(json);
    return st;
}

static ah_status read_slots(ah_transcript *t, ah_slice calls, size_t n, ah_err *err)
{
    ah_json_reader r = ah_json_read(calls);
    ah_status st = AH_OK;

    ah_json_next(&r);
    if (!(t->slot = ah_alloc(t->mem, n * sizeof *t->slot)))
        return ah_err_nomem(err);
    t->n_slots = n;
    for (size_t i = 0; i < n && st == AH_OK; i++)
        st = read_slot(t, &t->slot[i], next_value(&r), err);
    for (size_t i = 0; i < n && st == AH_OK; i++)
        st = remember(t, ah_text_slice(t->slot[i].id), err);
    return st;
}

ah_status ah_transcript_begin(ah_transcript *t, ah_text *assistant, ah_err *err)
{
    ah_slice calls = ah_json_member(ah_text_slice(assistant), "tool_calls");
    size_t n = count_calls(calls);
    ah_status st = AH_OK;

    ah_text_set(&t->assistant, assistant);
    if (n)
        st = read_slots(t, calls, n, err);
    if (st == AH_OK && !reserve(t, n, t->n_staged))
        st = ah_err_nomem(err);
    if (st != AH_OK)
        clear_turn(t);
    return st;
}

void ah_transcript_fill(ah_transcript *t, size_t slot, ah_text *result)
{
    ah_slot *s = &t->slot[slot];

    if (s->result)
        ah_text_unref(result);
    else
        s->result = result;
}

/* Writes the result into the slot's reserved text, without allocation. */
void ah_transcript_settle(ah_transcript *t, size_t slot, const char *content, int64_t time)
{
    ah_slot *s = &t->slot[slot];
    ah_text *r = s->reserve;
    ah_buf b;

    if (s->result)
        return;
    b = (ah_buf){.mem = t->mem, .data = r->data, .cap = r->len, .max = r->len};
    put_result_head(&b, ah_text_slice(s->id), ah_text_slice(s->name), ah_slice_of(content));
    put_result_tail(&b, false, time);
    r->len = b.len;
    r->data[r->len] = '\0';
    s->result = r;
    s->reserve = NULL;
}

bool ah_transcript_wants_answer(const ah_transcript *t)
{
    size_t i = t->n;

    while (i > 0 && t->entry[i - 1].kind != AH_ENTRY_USER &&
           t->entry[i - 1].kind != AH_ENTRY_TOOL_RESULT &&
           t->entry[i - 1].kind != AH_ENTRY_ASSISTANT)
        i--;
    return i > 0 && t->entry[i - 1].kind != AH_ENTRY_ASSISTANT;
}

size_t ah_transcript_mark(const ah_transcript *t, bool staged)
{
    return staged ? t->n_staged : t->n;
}

void ah_transcript_take_back(ah_transcript *t, bool staged, size_t mark)
{
    ah_entry *list = staged ? t->staged : t->entry;
    size_t *n = staged ? &t->n_staged : &t->n;

    while (*n > mark)
        ah_text_unref(list[--*n].json);
    if (!staged)
        ah_model_settings_read(ah_transcript_last(t, AH_ENTRY_SETTINGS), &t->settings);
}

/* The position of entries of this kind within a commit. Changes of tools and prompt share one,
 * to keep their order. */
static int rank(ah_entry_kind kind)
{
    switch (kind) {
    case AH_ENTRY_SETTINGS:
        return 0;
    case AH_ENTRY_TOOLS_ADDED:
    case AH_ENTRY_TOOLS_REMOVED:
    case AH_ENTRY_TOOLS_DEFERRED:
    case AH_ENTRY_PROMPT:
    case AH_ENTRY_STRATEGY:
        return 1;
    case AH_ENTRY_NOTE:
        return 2;
    default:
        return 3;
    }
}

static void commit_staged(ah_transcript *t)
{
    for (int r = 0; r <= 3; r++)
        for (size_t i = 0; i < t->n_staged; i++)
            if (rank(t->staged[i].kind) == r)
                append(t, t->staged[i]);
    t->n_staged = 0;
}

static bool all_objects(const ah_transcript *t)
{
    bool all = true;

    for (size_t i = 0; i < t->n_slots && all; i++)
        all = t->slot[i].written == AH_ARGUMENTS_JSON &&
              ah_json_kind_of(ah_text_slice(t->slot[i].arguments)) == AH_JSON_OBJECT;
    return all;
}

void ah_transcript_commit(ah_transcript *t)
{
    if (t->assistant)
        append(t, (ah_entry){AH_ENTRY_ASSISTANT, ah_text_ref(t->assistant), all_objects(t)});
    for (size_t i = 0; i < t->n_slots; i++)
        append(t, (ah_entry){.kind = AH_ENTRY_TOOL_RESULT, .json = ah_text_ref(t->slot[i].result)});
    clear_turn(t);
    commit_staged(t);
}

/* Takes over the ids of the calls in the entries. */
static ah_status copy_calls(ah_transcript *copy, const ah_transcript *t, ah_err *err)
{
    ah_status st = AH_OK;

    if (!t->assistant && t->n_seen > 0) {
        copy->seen = ah_alloc(t->mem, t->cap_seen * sizeof *t->seen);
        if (!copy->seen)
            return ah_err_nomem(err);
        memcpy(copy->seen, t->seen, t->cap_seen * sizeof *t->seen);
        copy->n_seen = t->n_seen;
        copy->cap_seen = t->cap_seen;
        return AH_OK;
    }
    for (size_t i = 0; i < t->n && st == AH_OK; i++) /* without those of the pending turn */
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT)
            st = remember_calls(copy, ah_text_slice(t->entry[i].json), err);
    return st;
}

ah_status ah_transcript_copy(const ah_transcript *t, ah_transcript **out, ah_err *err)
{
    ah_transcript *copy = ah_transcript_new(t->mem);
    ah_status st = copy ? copy_calls(copy, t, err) : ah_err_nomem(err);

    if (st == AH_OK && !reserve(copy, t->n, 0))
        st = ah_err_nomem(err);
    for (size_t i = 0; i < t->n && st == AH_OK; i++) {
        append(copy, t->entry[i]);
        ah_text_ref(t->entry[i].json);
    }
    if (st == AH_OK)
        *out = copy;
    else
        ah_transcript_unref(copy);
    return st;
}

ah_slice ah_transcript_last(const ah_transcript *t, ah_entry_kind kind)
{
    for (size_t i = t->n; i > 0; i--)
        if (t->entry[i - 1].kind == kind)
            return ah_text_slice(t->entry[i - 1].json);
    return (ah_slice){NULL, 0};
}

/* -- soundness ------------------------------------------------------------ */

/* Checks the calls of entry `at` against the results that follow it; *follow is their number. */
static ah_status check_turn(const ah_transcript *t, size_t at, size_t *follow, ah_err *err)
{
    ah_slice calls = ah_json_member(ah_text_slice(t->entry[at].json), "tool_calls");
    ah_json_reader r = ah_json_read(calls);
    size_t n = count_calls(calls);

    ah_json_next(&r);
    for (size_t i = 0; i < n; i++) {
        ah_slice call = next_value(&r);
        const ah_entry *e = at + 1 + i < t->n ? &t->entry[at + 1 + i] : NULL;

        if (!e || e->kind != AH_ENTRY_TOOL_RESULT ||
            !ah_slice_eq(ah_json_member(ah_text_slice(e->json), "id"), ah_json_member(call, "id")))
            return ah_err_set(err, AH_INTERNAL, "entry %zu: call %zu has no answer right after it",
                              at, i + 1);
    }
    *follow = n;
    return AH_OK;
}

ah_status ah_transcript_sound_from(const ah_transcript *t, size_t from, ah_err *err)
{
    size_t follow = 0;
    ah_status st = AH_OK;

    for (size_t i = from; i < t->n && st == AH_OK; i++) {
        if (t->entry[i].kind == AH_ENTRY_TOOL_RESULT && follow-- == 0)
            return ah_err_set(err, AH_INTERNAL, "entry %zu: a tool result without its call", i);
        if (t->entry[i].kind == AH_ENTRY_ASSISTANT)
            st = check_turn(t, i, &follow, err);
    }
    return st;
}

ah_status ah_transcript_sound(const ah_transcript *t, ah_err *err)
{
    return ah_transcript_sound_from(t, 0, err);
}

/* -- JSON ----------------------------------------------------------------- */

static void print_entries(const ah_entry *entry, size_t n, ah_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            ah_buf_char(out, ',');
        ah_buf_put(out, ah_text_slice(entry[i].json));
    }
}

static void print_pending(const ah_transcript *t, ah_buf *out)
{
    ah_buf_str(out, ",\"pending\":{\"assistant\":");
    ah_buf_put(out, ah_text_slice(t->assistant));
    ah_buf_str(out, ",\"results\":[");
    for (size_t i = 0; i < t->n_slots; i++) {
        if (i)
            ah_buf_char(out, ',');
        if (t->slot[i].result)
            ah_buf_put(out, ah_text_slice(t->slot[i].result));
        else
            ah_buf_str(out, "null");
    }
    ah_buf_str(out, "],\"staged\":[");
    print_entries(t->staged, t->n_staged, out);
    ah_buf_str(out, "]}");
}

void ah_transcript_print(const ah_transcript *t, ah_buf *out)
{
    ah_buf_str(out, "{\"agenthost_transcript\":1,\"entries\":[");
    print_entries(t->entry, t->n, out);
    ah_buf_char(out, ']');
    if (t->assistant)
        print_pending(t, out);
    ah_buf_char(out, '}');
}

static ah_text *text_by(const ah_mem *mem, ah_entry_kind kind, ah_slice text, ah_slice by,
                        int64_t time)
{
    ah_buf b;
    ah_text *t = NULL;
    bool message = kind == AH_ENTRY_USER;

    ah_buf_init(&b, mem, MAX_ENTRY);
    ah_buf_fmt(&b, "{\"type\":\"%s\",%s", names[kind],
               message ? "\"content\":[{\"type\":\"text\",\"text\":" : "\"text\":");
    ah_json_put_string(&b, text);
    ah_buf_str(&b, message ? "}]" : "");
    if (by.p)
        ah_buf_fmt(&b, ",\"by\":%.*s", AH_FMT(by));
    ah_buf_str(&b, ",\"time\":");
    ah_buf_int(&b, time);
    ah_buf_char(&b, '}');
    ah_text_from_buf(&b, "entry", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

ah_text *ah_entry_text(const ah_mem *mem, ah_entry_kind kind, ah_slice text, int64_t time)
{
    return text_by(mem, kind, text, (ah_slice){NULL, 0}, time);
}

ah_text *ah_entry_prompt(const ah_mem *mem, ah_slice text, ah_slice by, int64_t time)
{
    return text_by(mem, AH_ENTRY_PROMPT, text, by, time);
}

ah_text *ah_entry_parts(const ah_mem *mem, ah_slice parts, int64_t time)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_ENTRY);
    ah_buf_str(&b, "{\"type\":\"user\",\"content\":");
    ah_buf_put(&b, parts);
    ah_buf_str(&b, ",\"time\":");
    ah_buf_int(&b, time);
    ah_buf_char(&b, '}');
    ah_text_from_buf(&b, "entry", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

ah_text *ah_entry_ticket(const ah_mem *mem, const ah_slot *slot, int64_t ticket, ah_slice content,
                         int64_t time)
{
    ah_buf b;
    ah_text *t = NULL;

    ah_buf_init(&b, mem, MAX_ENTRY);
    put_result_head(&b, ah_text_slice(slot->id), ah_text_slice(slot->name), content);
    ah_buf_fmt(&b, ",\"ticket\":%lld", (long long)ticket);
    put_result_tail(&b, true, time);
    ah_text_from_buf(&b, "tool result", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

ah_text *ah_entry_tool_result(const ah_mem *mem, const ah_slot *slot, bool success, bool refused,
                              ah_slice content, ah_slice images, int64_t time)
{
    ah_buf b;
    ah_text *t = NULL;

    ah_buf_init(&b, mem, MAX_ENTRY);
    put_result_head(&b, ah_text_slice(slot->id), ah_text_slice(slot->name), content);
    if (images.p) {
        ah_buf_str(&b, ",\"images\":");
        ah_buf_put(&b, images);
    }
    if (refused)
        ah_buf_str(&b, ",\"refused\":true");
    put_result_tail(&b, success, time);
    ah_text_from_buf(&b, "tool result", &t, NULL);
    ah_buf_clear(&b);
    return t;
}
