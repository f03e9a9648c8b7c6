/* Finds the facts about a model by its name; see models.h. The rows are few, and searched one by
 * one, once per adapter. */
#include "wire/models.h"

#include "base/json.h"
#include "base/near.h"

#include <stdio.h>

enum { MAX_PART = 3, MAX_PART_BEHIND = 2, MAX_SAID = 4096 };

const char *const ah_effort_names[AH_EFFORTS] = {"none", "minimal", "low", "medium",
                                                 "high", "xhigh",   "max"};

const char *const ah_model_from_names[] = {[AH_MODEL_DEFAULT] = "default",
                                           [AH_MODEL_TABLE] = "table",
                                           [AH_MODEL_NEWEST] = "newest",
                                           [AH_MODEL_SCRIPT] = "alias",
                                           [AH_MODEL_SETTINGS] = "settings",
                                           [AH_MODEL_LEARNED] = "learned",
                                           NULL};

/* -- versions ---------------------------------------------------------------------------------- */

static char at(ah_slice s, size_t i)
{
    return i < s.n ? s.p[i] : '\0';
}

/* The number of digits of the version part at i; 0 if they belong to a date, a size (70b) or
 * another word (4o). */
static size_t part_length(ah_slice s, size_t i, char before)
{
    size_t n = 0;

    while (ah_is_digit(at(s, i + n)))
        n++;
    if (before == '-' && (n > MAX_PART_BEHIND || (n > 1 && s.p[i] == '0')))
        return 0;
    if (n > MAX_PART || (before != '.' && ah_is_letter(at(s, i + n)) &&
                         !(ah_lower(at(s, i + n)) == 'p' && ah_is_digit(at(s, i + n + 1)))))
        return 0;
    return n;
}

static int value_of(ah_slice digits)
{
    int v = 0;

    for (size_t i = 0; i < digits.n; i++)
        v = v * 10 + (digits.p[i] - '0');
    return v;
}

bool ah_model_version_read(ah_slice text, ah_model_version *out, size_t *used)
{
    enum { PARTS = sizeof out->part / sizeof *out->part };
    size_t i = 0, n = part_length(text, 0, '\0');

    *out = (ah_model_version){0};
    *used = 0;
    while (n && out->n < PARTS) {
        out->part[out->n++] = value_of((ah_slice){text.p + i, n});
        *used = i += n;
        n = at(text, i) && strchr(".-pP", at(text, i)) ? part_length(text, i + 1, at(text, i)) : 0;
        i++;
    }
    return out->n > 0;
}

int ah_model_version_cmp(const ah_model_version *a, const ah_model_version *b)
{
    for (size_t i = 0; i < sizeof a->part / sizeof *a->part; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    return 0;
}

static ah_model_version version_of(const char *text)
{
    ah_model_version v = {0};
    size_t used;

    if (text)
        ah_model_version_read(ah_slice_of(text), &v, &used);
    return v;
}

/* -- names ------------------------------------------------------------------------------------- */

/* True if the name begins with the pattern, up to the end of a word. *version is 0 if the pattern
 * has none. */
static bool matches(const char *pattern, ah_slice name, ah_model_version *version)
{
    size_t i = 0, used;
    char last = '\0';

    *version = (ah_model_version){0};
    for (; *pattern; last = *pattern++) {
        if (*pattern != '#' && ah_lower(at(name, i)) != *pattern)
            return false;
        used = 1;
        if (*pattern == '#' &&
            !ah_model_version_read((ah_slice){name.p + i, name.n - i}, version, &used))
            return false;
        i += used;
    }
    return last == '#' || !(ah_is_letter(at(name, i)) || ah_is_digit(at(name, i)));
}

/* The number of bytes that a pattern fixes. */
static size_t weight_of(const char *pattern)
{
    return strlen(pattern);
}

static bool is_known(ah_slice name)
{
    ah_model_version version;

    for (size_t i = 0; i < ah_model_rows_n; i++)
        if (matches(ah_model_rows[i].pattern, name, &version))
            return true;
    return false;
}

/* The length of a prefix that names the server: "us.anthropic.", "ft:", "openai/". */
static size_t lead_of(ah_slice name)
{
    size_t i = 0;

    while (ah_is_letter(at(name, i)) || at(name, i) == '-' || at(name, i) == '_')
        i++;
    return at(name, i) == '.' || at(name, i) == ':' ? i + 1 : 0;
}

/* The name without such prefixes. A name of an unknown family is unchanged. */
static ah_slice bare(ah_slice name)
{
    ah_slice s = name;
    size_t n;

    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '/')
            s = (ah_slice){name.p + i + 1, name.n - i - 1};
    while (!is_known(s) && (n = lead_of(s)) > 0)
        s = (ah_slice){s.p + n, s.n - n};
    return is_known(s) ? s : name;
}

/* -- rows -------------------------------------------------------------------------------------- */

typedef bool says(const ah_model_row *r);

static bool says_kind(const ah_model_row *r)
{
    return r->kind != NULL;
}

static bool says_efforts(const ah_model_row *r)
{
    return r->efforts || (r->kind && r->kind->efforts);
}

static bool says_figures(const ah_model_row *r)
{
    return r->window > 0 || r->output > 0;
}

static bool says_source(const ah_model_row *r)
{
    return r->source != NULL;
}

static bool says_home(const ah_model_row *r)
{
    return r->home != NULL;
}

/* The row of the most specific pattern that has the fact, with the latest version that is not later
 * than the name's; NULL: none. */
static const ah_model_row *find(ah_slice name, says *what)
{
    const ah_model_row *best = NULL;
    ah_model_version version, since, newest = {0};

    for (size_t i = 0; i < ah_model_rows_n; i++) {
        const ah_model_row *r = &ah_model_rows[i];

        if (!what(r) || !matches(r->pattern, name, &version))
            continue;
        since = version_of(r->since);
        if (ah_model_version_cmp(&version, &since) < 0 ||
            (best && weight_of(r->pattern) < weight_of(best->pattern)) ||
            (best && weight_of(r->pattern) == weight_of(best->pattern) &&
             ah_model_version_cmp(&since, &newest) < 0))
            continue;
        best = r;
        newest = since;
    }
    return best;
}

/* A name newer than each row of its pattern uses the newest. */
static ah_model_from from_of(const ah_model_row *row, ah_slice name)
{
    ah_model_version version, since;

    if (!row || !row->source)
        return AH_MODEL_DEFAULT;
    if (!row->since || !matches(row->pattern, name, &version))
        return AH_MODEL_TABLE;
    for (size_t i = 0; i < ah_model_rows_n; i++) {
        since = version_of(ah_model_rows[i].since);
        if (strcmp(ah_model_rows[i].pattern, row->pattern) == 0 &&
            ah_model_version_cmp(&version, &since) <= 0)
            return AH_MODEL_TABLE;
    }
    return AH_MODEL_NEWEST;
}

const char *ah_model_home(ah_slice name)
{
    const ah_model_row *r = find(bare(name), says_home);

    return r ? r->home : NULL;
}

static bool is_priced(const ah_model_prices *p)
{
    return p->input > 0 || p->output > 0;
}

static void take_prices(ah_model *m, ah_model_prices p)
{
    m->tier = NULL;
    m->priced_on = NULL;
    m->supposed = false;
    m->priced = is_priced(&p);
    m->prices = p;
    if (!(p.cached_read > 0))
        m->prices.cached_read = p.input;
    if (!(p.cached_write > 0))
        m->prices.cached_write = p.input;
}

/* Reads the table; prices are those of the model's own provider. */
static void from_table(ah_slice provider, ah_slice name, ah_model *m)
{
    ah_slice known = bare(name);
    const ah_model_row *efforts = find(known, says_efforts);

    *m = (ah_model){.row = find(known, says_kind), .figures = find(known, says_figures)};
    m->named = find(known, says_source);
    m->named_from = from_of(m->named, known);
    m->from = from_of(m->row, known);
    m->figures_from = from_of(m->figures, known);
    if (m->row) {
        m->can = m->row->kind->can;
        m->thinking = m->row->kind->thinking;
    }
    if (efforts)
        m->efforts = efforts->efforts ? efforts->efforts : efforts->kind->efforts;
    if (!m->figures)
        return;
    m->window = m->figures->window;
    m->output = m->figures->output;
    if (!ah_slice_is(provider, m->figures->home))
        return;
    take_prices(m, m->figures->prices);
    m->tier = m->figures->tier;
    m->priced_on = m->priced ? m->figures->source->date : NULL;
    m->supposed = m->figures_from == AH_MODEL_NEWEST;
}

/* -- the program's rows ------------------------------------------------------------------------ */

typedef struct said {
    ah_text *name, *row;
    ah_model_from from;
} said;

struct ah_models {
    const ah_mem *mem;
    said *one;
    size_t n, cap;
};

/* The boolean members of a row, and their bits. */
static const struct switch_row {
    const char *name;
    unsigned bits;
} switches[] = {
    {"tool_changes",
     AH_MODEL_TOOL_CHANGES | AH_MODEL_TOOL_ITEMS | AH_MODEL_TOOL_MESSAGES | AH_MODEL_NOTES},
    {"tool_search", AH_MODEL_SEARCH},
    {"strict_tools", AH_MODEL_STRICT},
    {"native_output", AH_MODEL_OUTPUT},
};
enum { SWITCHES = sizeof switches / sizeof *switches };

static const struct reasoning_row {
    const char *name;
    ah_thinking_mode thinking;
} reasonings[] = {{"none", AH_THINKING_NOT},
                  {"budget", AH_THINKING_BY_BUDGET},
                  {"effort", AH_THINKING_BY_EFFORT}};
enum { REASONINGS = sizeof reasonings / sizeof *reasonings };

static const char *const price_names[] = {"input", "cached_read", "cached_write", "output"};
enum { PRICES = sizeof price_names / sizeof *price_names };

ah_models *ah_models_new(const ah_mem *mem)
{
    ah_models *m = ah_alloc(mem, sizeof *m);

    if (m)
        m->mem = mem;
    return m;
}

static void clear_said(said *s)
{
    ah_text_unref(s->name);
    ah_text_unref(s->row);
}

void ah_models_free(ah_models *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        clear_said(&m->one[i]);
    ah_free(m->mem, m->one);
    ah_free(m->mem, m);
}

/* -- fields of a row */

static int switch_of(ah_json_token key)
{
    int i = 0;

    while (i < SWITCHES && !ah_json_token_is(key, switches[i].name))
        i++;
    return i;
}

static bool is_count(ah_slice value)
{
    ah_json_num n = {0};

    return ah_json_number(value, &n) && n.is_int && n.i > 0;
}

static unsigned effort_of(ah_slice word)
{
    for (int i = 0; i < AH_EFFORTS; i++)
        if (ah_json_string_is(word, ah_effort_names[i]))
            return 1u << i;
    return 0;
}

/* The efforts of a list; 0 if it is not a list, empty, or has other values. */
static unsigned efforts_of(ah_slice list)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    unsigned all = 0, one;

    if (t.kind != AH_JSON_ARRAY)
        return 0;
    for (t = ah_json_next(&r); t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&r)) {
        if (!(one = effort_of(ah_json_skip(&r, t))))
            return 0;
        all |= one;
    }
    return all;
}

static const struct reasoning_row *reasoning_of(ah_slice word)
{
    for (int i = 0; i < REASONINGS; i++)
        if (ah_json_string_is(word, reasonings[i].name))
            return &reasonings[i];
    return NULL;
}

static bool read_prices(ah_slice value, ah_model_prices *out)
{
    double *const into[PRICES] = {&out->input, &out->cached_read, &out->cached_write, &out->output};
    ah_json_reader r = ah_json_read(value);
    ah_json_token key = ah_json_next(&r);

    *out = (ah_model_prices){0};
    if (key.kind != AH_JSON_OBJECT)
        return false;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_json_num n = {0};
        int i = 0;

        while (i < PRICES && !ah_json_token_is(key, price_names[i]))
            i++;
        if (i == PRICES || !ah_json_number(ah_json_skip(&r, ah_json_next(&r)), &n) ||
            !((n.is_int ? (double)n.i : n.d) >= 0))
            return false;
        *into[i] = n.is_int ? (double)n.i : n.d;
    }
    return is_priced(out);
}

/* NULL if the field is valid; else the valid values, "" if there is no such field. */
static const char *fault_of(ah_json_token key, ah_slice value)
{
    ah_json_kind kind = ah_json_kind_of(value);
    ah_model_prices prices;

    if (switch_of(key) < SWITCHES)
        return kind == AH_JSON_TRUE || kind == AH_JSON_FALSE ? NULL : "true or false";
    if (ah_json_token_is(key, "model")) /* the key of the row, given in it */
        return kind == AH_JSON_STRING ? NULL : "\"provider/model\"";
    if (ah_json_token_is(key, "like"))
        return kind == AH_JSON_STRING && is_known(bare(ah_json_inside(value)))
                   ? NULL
                   : "the name of a model whose family is known (see `agenthost models`)";
    if (ah_json_token_is(key, "context_window") || ah_json_token_is(key, "max_output"))
        return is_count(value) ? NULL : "a number of tokens above 0";
    if (ah_json_token_is(key, "reasoning"))
        return reasoning_of(value) ? NULL : "\"none\", \"budget\" or \"effort\"";
    if (ah_json_token_is(key, "efforts"))
        return efforts_of(value) ? NULL
                                 : "a list of none, minimal, low, medium, high, xhigh and max, at "
                                   "least one of them";
    if (ah_json_token_is(key, "prices"))
        return read_prices(value, &prices) ? NULL
                                           : "{ input, cached_read, cached_write, output }, in US "
                                             "dollars for a million tokens, one of them above 0";
    return "";
}

static ah_status unknown_field(ah_slice name, ah_slice field, const char *what, ah_err *err)
{
    static const char *const others[] = {"like",      "context_window", "max_output",
                                         "reasoning", "efforts",        "prices"};
    ah_near near = {.to = field};
    char hint[64] = "";

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ah_near_offer(&near, ah_slice_of(others[i]));
    for (int i = 0; i < SWITCHES; i++)
        ah_near_offer(&near, ah_slice_of(switches[i].name));
    if (near.best.p)
        snprintf(hint, sizeof hint, " (did you mean '%.*s'?)", AH_FMT(near.best));
    return ah_err_set(err, AH_USAGE, "%s: '%.*s' has no field '%.*s'%s", what, AH_FMT(name),
                      AH_FMT(field), hint);
}

static ah_status check_row(ah_slice name, ah_slice row, const char *what, ah_err *err)
{
    ah_json_reader r = ah_json_read(row);
    ah_json_token key = ah_json_next(&r);

    if (key.kind != AH_JSON_OBJECT || row.n > MAX_SAID)
        return ah_err_set(err, AH_USAGE,
                          "%s: the entry of '%.*s' must be an object of at most %d bytes", what,
                          AH_FMT(name), MAX_SAID);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        const char *fault = fault_of(key, ah_json_skip(&r, ah_json_next(&r)));

        if (fault && !*fault)
            return unknown_field(name, key.raw, what, err);
        if (fault)
            return ah_err_set(err, AH_USAGE, "%s: field '%.*s' of '%.*s' must be %s", what,
                              AH_FMT(key.raw), AH_FMT(name), fault);
    }
    return AH_OK;
}

static bool is_learned(const said *s)
{
    return s->from == AH_MODEL_LEARNED;
}

static said *place_of(ah_models *m, ah_slice name, bool learned)
{
    said *s;

    for (size_t i = 0; i < m->n; i++)
        if (is_learned(&m->one[i]) == learned && ah_slice_eq(ah_text_slice(m->one[i].name), name))
            return &m->one[i];
    if (!(s = ah_grow(m->mem, m->one, &m->cap, m->n + 1, sizeof *s)))
        return NULL;
    m->one = s;
    m->one[m->n] = (said){.name = NULL};
    return &m->one[m->n];
}

static bool put_said(ah_models *m, ah_slice name, ah_slice row, ah_model_from from)
{
    said now = {.name = ah_text_new(m->mem, name), .row = ah_text_new(m->mem, row), .from = from};
    said *place = now.name && now.row ? place_of(m, name, is_learned(&now)) : NULL;

    if (!place) {
        clear_said(&now);
        return false;
    }
    m->n += place == &m->one[m->n];
    clear_said(place);
    *place = now;
    return true;
}

ah_status ah_models_add(ah_models *m, ah_slice name, ah_slice row, ah_model_from from,
                        const char *what, ah_err *err)
{
    const char *slash = memchr(name.p, '/', name.n);
    ah_status st;

    if (!slash || slash == name.p || slash + 1 == name.p + name.n)
        return ah_err_set(err, AH_USAGE, "%s: '%.*s' is not of the form provider/model", what,
                          AH_FMT(name));
    if ((st = check_row(name, row, what, err)) != AH_OK)
        return st;
    return put_said(m, name, row, from) ? AH_OK : ah_err_nomem(err);
}

static const said *said_of(const ah_models *m, ah_slice provider, ah_slice name, bool learned)
{
    for (size_t i = 0; m && i < m->n; i++) {
        ah_slice full = ah_text_slice(m->one[i].name);

        if (is_learned(&m->one[i]) == learned && full.n == provider.n + 1 + name.n &&
            full.p[provider.n] == '/' && memcmp(full.p, provider.p, provider.n) == 0 &&
            memcmp(full.p + provider.n + 1, name.p, name.n) == 0)
            return &m->one[i];
    }
    return NULL;
}

void ah_models_learn(ah_models *m, ah_slice provider, ah_slice name, ah_slice learned)
{
    ah_buf b;

    ah_buf_init(&b, m->mem, MAX_SAID);
    ah_buf_put(&b, provider);
    ah_buf_char(&b, '/');
    ah_buf_put(&b, name);
    if (ah_buf_ok(&b))
        put_said(m, ah_buf_slice(&b), learned, AH_MODEL_LEARNED);
    ah_buf_clear(&b);
}

ah_slice ah_models_learned(const ah_models *m, ah_slice provider, ah_slice name)
{
    const said *s = said_of(m, provider, name, true);

    return s ? ah_text_slice(s->row) : (ah_slice){NULL, 0};
}

static void take_reasoning(ah_model *m, ah_slice word)
{
    m->thinking = reasoning_of(word)->thinking;
    if (m->thinking == AH_THINKING_BY_EFFORT)
        m->can |= AH_MODEL_ENCRYPTED;
    else
        m->can &= ~(unsigned)AH_MODEL_ENCRYPTED;
}

static void take_field(ah_model *m, ah_json_token key, ah_slice value)
{
    int i = switch_of(key);
    ah_json_num n = {0};
    ah_model_prices prices;

    ah_json_number(value, &n);
    if (i < SWITCHES && ah_json_kind_of(value) == AH_JSON_TRUE)
        m->can |= switches[i].bits;
    else if (i < SWITCHES)
        m->can &= ~switches[i].bits;
    else if (ah_json_token_is(key, "context_window"))
        m->window = n.i;
    else if (ah_json_token_is(key, "max_output"))
        m->output = n.i;
    else if (ah_json_token_is(key, "reasoning"))
        take_reasoning(m, value);
    else if (ah_json_token_is(key, "efforts"))
        m->efforts = efforts_of(value);
    else if (ah_json_token_is(key, "prices") && read_prices(value, &prices))
        take_prices(m, prices);
}

/* Takes the table's facts for the model, or for the model named by `like` in the program's row, and
 * then the fields of that row. */
static void from_said(const said *s, ah_slice provider, ah_slice name, ah_model *m)
{
    ah_slice row = ah_text_slice(s->row), like = ah_json_member(row, "like");
    ah_json_reader r = ah_json_read(row);
    ah_json_token key = ah_json_next(&r);

    from_table(provider, like.p ? ah_json_inside(like) : name, m);
    m->from = m->figures_from = s->from;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        take_field(m, key, ah_json_skip(&r, ah_json_next(&r)));
}

void ah_model_find(const ah_models *models, ah_slice provider, ah_slice name, ah_model *out)
{
    const said *s = said_of(models, provider, name, false);

    if (s)
        from_said(s, provider, name, out);
    else
        from_table(provider, name, out);
    out->asked = true;
}

/* -- queries ----------------------------------------------------------------------------------- */

bool ah_model_can(const ah_model *m, unsigned what, bool otherwise)
{
    bool known = m->row || m->from >= AH_MODEL_SCRIPT;

    return known ? (m->can & what) != 0 : otherwise;
}

ah_slice ah_model_effort(const ah_model *m, ah_slice asked)
{
    static const char *const words[AH_EFFORTS] = {
        "\"none\"", "\"minimal\"", "\"low\"", "\"medium\"", "\"high\"", "\"xhigh\"", "\"max\""};
    unsigned is = asked.p ? effort_of(asked) : 0, near = is;

    if (!is || !m->efforts || is & m->efforts)
        return asked;
    /* "none" is not the nearest to any effort. */
    while (near > AH_EFFORT_MINIMAL && !(near & m->efforts))
        near >>= 1;
    if (!(near & m->efforts))
        near = is;
    while (near < 1u << AH_EFFORTS && !(near & m->efforts))
        near <<= 1;
    for (int i = 0; i < AH_EFFORTS; i++)
        if (near == 1u << i)
            return ah_slice_of(words[i]);
    return asked;
}

static void put_row(const ah_model_row *row, ah_model_from from, ah_buf *out)
{
    ah_buf_fmt(out, "\"from\":\"%s\"", ah_model_from_names[from]);
    if (!row || !row->source)
        return;
    ah_buf_fmt(out, ",\"family\":\"%s\"", row->pattern);
    if (row->since)
        ah_buf_fmt(out, ",\"since\":\"%s\"", row->since);
    ah_buf_fmt(out, ",\"source\":\"%s\",\"date\":\"%s\"", row->source->name, row->source->date);
}

void ah_model_put_known(const ah_model *m, ah_slice learned, ah_buf *out)
{
    ah_buf_str(out, "{\"abilities\":{");
    put_row(m->row, m->from, out);
    ah_buf_str(out, "},\"figures\":{");
    put_row(m->figures, m->figures_from, out);
    ah_buf_str(out, "},\"name\":{");
    put_row(m->named, m->named_from, out);
    ah_buf_char(out, '}');
    if (learned.p)
        ah_buf_fmt(out, ",\"learned\":%.*s", AH_FMT(learned));
    ah_buf_char(out, '}');
}
