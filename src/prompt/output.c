/* Fences are those of CommonMark, section 4.5, as far as models write them: a line of at least
 * three equal marks after at most three blanks, and the line that closes it. */
#include "prompt/output.h"

enum { LONGEST_SCHEMA = 16 << 10 }; /* bytes of a schema that is repeated in a further request */

/* -- fences ------------------------------------------------------------------------ */

typedef struct fence {
    char mark;
    size_t n;
    ah_slice info;
} fence;

static bool is_fence(ah_slice line, fence *out)
{
    size_t i = 0, from;

    while (i < line.n && i < 3 && line.p[i] == ' ')
        i++;
    if (i == line.n || (line.p[i] != '`' && line.p[i] != '~'))
        return false;
    *out = (fence){.mark = line.p[i]};
    for (from = i; i < line.n && line.p[i] == out->mark; i++)
        out->n++;
    out->info = ah_slice_trim((ah_slice){line.p + i, line.n - i});
    return i - from >= 3 && !memchr(out->info.p, '`', out->info.n);
}

static bool may_be_json(ah_slice info)
{
    return info.n == 0 || (info.n == 4 && (info.p[0] | 32) == 'j' && (info.p[1] | 32) == 's' &&
                           (info.p[2] | 32) == 'o' && (info.p[3] | 32) == 'n');
}

/* Returns the content of the fence just opened; *rest continues after it. */
static ah_slice fenced(const fence *open, ah_slice *rest)
{
    const char *from = rest->p;
    fence close;

    while (rest->n) {
        ah_slice line = ah_slice_line(rest);

        if (is_fence(line, &close) && close.mark == open->mark && close.n >= open->n &&
            !close.info.n)
            return (ah_slice){from, (size_t)(line.p - from)};
    }
    return (ah_slice){from, (size_t)(rest->p - from)};
}

/* Returns the only fence that may contain JSON; .p NULL: none, or several. */
static ah_slice only_fence(ah_slice text)
{
    ah_slice found = {NULL, 0};
    fence open;

    while (text.n) {
        ah_slice line = ah_slice_line(&text), inside;

        if (!is_fence(line, &open))
            continue;
        inside = fenced(&open, &text);
        if (!may_be_json(open.info))
            continue;
        if (found.p)
            return (ah_slice){NULL, 0};
        found = inside;
    }
    return found;
}

ah_slice ah_output_find(const ah_mem *mem, ah_slice answer)
{
    ah_slice whole = ah_slice_trim(answer), inside;
    ah_json_fault fault;

    if (ah_json_check(mem, whole, AH_JSON_MAX_DEPTH, &fault) == AH_OK)
        return whole;
    inside = only_fence(answer);
    return inside.p ? ah_slice_trim(inside) : whole;
}

/* -- checking ------------------------------------------------------------------------ */

static void say_faults(const ah_faults *faults, ah_buf *words)
{
    ah_faults_print(faults, words);
    if (words->status == AH_BUDGET) /* the beginning of the list is useful, too */
        words->status = AH_OK;
    if (!words->len)
        ah_buf_str(words, "it does not conform");
}

ah_status ah_output_check(const ah_schema *schema, ah_slice answer, const ah_interrupt *interrupt,
                          ah_buf *value, ah_buf *words, ah_err *err)
{
    const ah_check_options options = {.extra = AH_EXTRA_SCHEMA, .interrupt = interrupt};
    ah_slice json = ah_output_find(value->mem, answer);
    ah_faults faults;
    ah_status st;
    ah_err why;

    st = ah_json_check_err(value->mem, json, "it", &why);
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    if (st != AH_OK) {
        ah_buf_str(words, why.message);
        return ah_buf_ok(words) ? AH_OK : ah_err_nomem(err);
    }
    ah_faults_init(&faults, value->mem);
    st = ah_schema_check_with(schema, json, &options, &faults, value);
    if (st == AH_BUDGET)
        ah_buf_str(words, "it is too large");
    else if (st != AH_NOMEM && faults.n)
        say_faults(&faults, words);
    ah_faults_clear(&faults);
    if (st == AH_NOMEM || words->status == AH_NOMEM)
        return ah_err_nomem(err);
    return st == AH_CANCELLED ? st : AH_OK;
}

/* -- words for the model ---------------------------------------------------------------- */

void ah_output_ask(const ah_schema *schema, ah_buf *out)
{
    ah_buf_str(out,
               "## Response format\n\nAnswer with one JSON value and nothing else. It must conform "
               "to this JSON Schema:\n\n");
    ah_buf_put(out, ah_text_slice(ah_schema_text(schema)));
}

void ah_output_ask_again(const ah_schema *schema, ah_slice words, ah_buf *out)
{
    ah_slice text = ah_text_slice(ah_schema_text(schema));

    ah_buf_str(out, "Your answer is not what was asked for: ");
    ah_buf_put(out, words);
    ah_buf_str(out, "\n\nAnswer again, with one JSON value and nothing else");
    if (text.n > LONGEST_SCHEMA) {
        ah_buf_char(out, '.');
        return;
    }
    ah_buf_str(out, ". It must conform to this JSON Schema:\n\n");
    ah_buf_put(out, text);
}
