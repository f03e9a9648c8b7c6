/* The examples of a tool (seed 002, ToolExample), checked when the tool is made: an example that
 * the tool itself would refuse is worse than none. */
#include "model/tool_examples.h"

enum { MAX_EXAMPLES = 32, MAX_DESCRIPTION = 200, MAX_WORDS = 1 << 10 };

static ah_status refuse(const ah_tool *t, size_t i, ah_err *err, const char *what, ah_slice words)
{
    ah_err_set(err, AH_PROMPT_VALIDATION, "tool '%s': examples[%zu]: %s%.*s", t->name->data, i + 1,
               what, AH_FMT(words));
    if (err)
        ah_json_detail(err, "tool", ah_text_slice(t->name));
    return AH_PROMPT_VALIDATION;
}

static ah_status check_description(const ah_tool *t, size_t i, ah_slice said, ah_err *err)
{
    ah_status st = AH_OK;
    size_t n = 0;
    ah_buf text;

    ah_buf_init(&text, t->mem, said.n);
    if (ah_json_string(said, &text) && !ah_buf_ok(&text))
        st = ah_err_nomem(err);
    for (size_t at = 0; at < text.len; at++)
        n += ((unsigned char)text.data[at] & 0xc0) != 0x80;
    if (st == AH_OK && (ah_json_kind_of(said) != AH_JSON_STRING || n > MAX_DESCRIPTION))
        st = refuse(t, i, err, "description must be a string of at most 200 characters",
                    (ah_slice){NULL, 0});
    ah_buf_clear(&text);
    return st;
}

static ah_status check_fields(const ah_tool *t, size_t i, ah_slice example, ah_err *err)
{
    ah_json_reader r = ah_json_read(example);
    ah_json_token key = ah_json_next(&r);
    ah_slice said = ah_json_member(example, "description");

    if (key.kind != AH_JSON_OBJECT)
        return refuse(t, i, err, "must be a table of description, input and output",
                      (ah_slice){NULL, 0});
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        if (!ah_json_token_is(key, "description") && !ah_json_token_is(key, "input") &&
            !ah_json_token_is(key, "output"))
            return refuse(t, i, err, "unknown field ", key.raw);
        ah_json_skip(&r, ah_json_next(&r));
    }
    return said.p ? check_description(t, i, said, err) : AH_OK;
}

/* Returns the first name of a JSON pointer. */
static ah_slice first_name(ah_slice pointer)
{
    const char *slash;

    if (pointer.n < 2)
        return (ah_slice){NULL, 0};
    slash = memchr(pointer.p + 1, '/', pointer.n - 1);
    return (ah_slice){pointer.p + 1, slash ? (size_t)(slash - pointer.p - 1) : pointer.n - 1};
}

static ah_status check_value(const ah_tool *t, size_t i, const ah_schema *schema, ah_slice value,
                             const char *what, ah_extra extra, ah_err *err)
{
    ah_faults faults;
    ah_status st;
    ah_buf words;

    ah_faults_init(&faults, t->mem);
    st = ah_schema_check(schema, value, extra, &faults, NULL);
    if (st != AH_OK) {
        ah_err_nomem(err);
    } else if (faults.n) {
        ah_slice param = first_name(faults.item[0].pointer);

        ah_buf_init(&words, t->mem, MAX_WORDS);
        ah_faults_print(&faults, &words);
        st = refuse(t, i, err, what, ah_buf_slice(&words));
        if (err && param.p)
            ah_json_detail(err, "param", param);
        ah_buf_clear(&words);
    }
    ah_faults_clear(&faults);
    return st;
}

static ah_status check_example(const ah_tool *t, size_t i, ah_slice example, ah_err *err)
{
    ah_slice input = ah_json_member(example, "input"), output = ah_json_member(example, "output");
    ah_status st = check_fields(t, i, example, err);

    if (st == AH_OK)
        st = check_value(t, i, t->params, input.p ? input : ah_slice_of("{}"),
                         "input: ", AH_EXTRA_FORBID, err);
    if (st == AH_OK && t->result && output.p)
        st = check_value(t, i, t->result, output, "output: ", AH_EXTRA_SCHEMA, err);
    return st;
}

ah_status ah_tool_check_examples(const ah_tool *t, ah_slice examples, ah_err *err)
{
    ah_json_reader r = ah_json_read(examples);
    ah_json_token token = ah_json_next(&r);
    ah_status st = AH_OK;

    if (token.kind != AH_JSON_ARRAY)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "tool '%s': examples must be a list",
                          t->name->data);
    token = ah_json_next(&r);
    for (size_t i = 0; st == AH_OK && token.kind != AH_JSON_ARRAY_END; i++) {
        st = i < MAX_EXAMPLES ? check_example(t, i, ah_json_skip(&r, token), err)
                              : refuse(t, i, err, "there may be 32 at most", (ah_slice){NULL, 0});
        token = ah_json_next(&r);
    }
    return st;
}
