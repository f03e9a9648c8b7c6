/* Fuzzes src/prompt: any text as a template and as a model's answer, any JSON as the parameters
 * and as the overrides of a prompt. Templates must be their own dedented form; two renderings
 * must be equal; reading a section must add exactly the tools that rendering with it open adds.
 * Expected texts are in spec/prompt/prompt_spec.lua. */
#include <stdint.h>
#include <stdlib.h>

#include "prompt/output.h"
#include "prompt/overrides.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ah_mem *const mem = &ah_mem_libc;

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* -- templates and answers --------------------------------------------------------- */

static void try_template(ah_slice text)
{
    ah_template *t = NULL, *again = NULL;
    const char *missing, *unknown;
    size_t at = 0;
    ah_buf out;
    ah_err err;

    if (ah_template_new(mem, text, &t, &err) != AH_OK)
        return;
    must(ah_template_new(mem, ah_template_text(t), &again, &err) == AH_OK);
    must(ah_slice_eq(ah_template_text(t), ah_template_text(again)));
    ah_buf_init(&out, mem, (size_t)AH_MAX_PROMPT);
    unknown = ah_template_unknown(t, ah_slice_of("{}"), &at);
    missing = ah_template_render(t, ah_slice_of("{}"), &out);
    must(!unknown == !missing && (!unknown || ah_template_text(t).p[at] == '$'));
    must(!unknown || strcmp(unknown, missing) == 0);
    ah_buf_clear(&out);
    ah_template_unref(t);
    ah_template_unref(again);
}

static void try_answer(ah_slice answer)
{
    ah_slice found = ah_output_find(mem, answer);

    must(found.n <= answer.n &&
         (!found.n || (found.p >= answer.p && found.p + found.n <= answer.p + answer.n)));
}

/* -- a prompt ----------------------------------------------------------------------- */

static ah_tool *new_tool(const char *name)
{
    ah_tool_def def = {
        .name = ah_slice_of(name), .description = AH_LIT("Does it."), .no_handler = true};
    ah_tool *t = NULL;

    must(ah_tool_new(mem, &def, &t, NULL) == AH_OK);
    return t;
}

/* Takes ownership of the child. */
static ah_section *new_section(const char *key, bool summary, ah_schema *params, ah_section *child)
{
    ah_tool *tool = new_tool(key);
    ah_section_def def = {.key = ah_slice_of(key),
                          .title = ah_slice_of(key),
                          .body = AH_LIT("text ${a} ${b}"),
                          .summary = AH_LIT("less ${a}"),
                          .params = params,
                          .enabled.on = true,
                          .summarized.on = summary,
                          .tool = &tool,
                          .n_tools = 1,
                          .child = &child,
                          .n_children = child != NULL};
    ah_section *s = NULL;

    must(ah_section_new(mem, &def, &s, NULL) == AH_OK);
    ah_tool_unref(tool);
    ah_section_unref(child);
    return s;
}

static ah_prompt *new_prompt(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":"
        "\"x\"},\"b\":{\"default\":[1]}}}";
    ah_prompt_def def = {.ns = AH_LIT("n"), .key = AH_LIT("k"), .n = 2};
    ah_section *top[2], *inner;
    ah_schema *params = NULL;
    ah_prompt *p = NULL;

    must(ah_schema_compile(mem, ah_slice_of(schema), &params, NULL) == AH_OK);
    inner = new_section("c", true, NULL, new_section("d", false, NULL, NULL));
    top[0] = new_section("a", true, params, new_section("b", false, params, inner));
    top[1] = new_section("e", false, params, NULL);
    ah_schema_unref(params);
    def.section = top;
    must(ah_prompt_new(mem, &def, &p, NULL) == AH_OK);
    ah_section_unref(top[0]);
    ah_section_unref(top[1]);
    return p;
}

static bool is_open(void *ud, ah_slice path, ah_visibility *out)
{
    const ah_section_content *r = ud;

    *out = AH_FULL;
    for (size_t i = 0; i < r->n_open; i++)
        if (ah_slice_eq(r->open[i], path))
            return true;
    return false;
}

static void try_read(ah_binding *b, const char *path, size_t n_tools)
{
    ah_section_content r;
    ah_override_source shown = {is_open, &r};
    ah_rendered_prompt *after = NULL;

    must(ah_binding_read(b, NULL, NULL, ah_slice_of(path), &r, NULL) == AH_OK);
    must(r.kind != AH_READ_UNKNOWN);
    must(ah_binding_render(b, &shown, &after, NULL) == AH_OK);
    must(after->n_tools == n_tools + r.n_tools);
    ah_rendered_prompt_unref(after);
    ah_section_content_clear(&r);
}

static void try_params(ah_prompt *p, ah_slice params)
{
    static const char *const paths[] = {"a", "a.b", "a.b.c", "a.b.c.d", "e"};
    ah_rendered_prompt *one = NULL, *two = NULL;
    ah_binding *b = NULL;

    if (ah_binding_new(p, params, &b, NULL) != AH_OK)
        return;
    if (ah_binding_render(b, NULL, &one, NULL) == AH_OK) {
        must(ah_binding_render(b, NULL, &two, NULL) == AH_OK && one == two);
        must(ah_utf8_valid(ah_text_slice(one->text)));
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
            try_read(b, paths[i], one->n_tools);
    }
    ah_rendered_prompt_unref(one);
    ah_rendered_prompt_unref(two);
    ah_binding_unref(b);
}

/* Tries the text as parameters, then as overrides. */
static void try_json(ah_slice json)
{
    ah_prompt *p = new_prompt(), *other = NULL;

    if (ah_json_kind_of(json) == AH_JSON_OBJECT)
        try_params(p, json);
    if (ah_prompt_override(p, json, NULL, &other, NULL) == AH_OK)
        try_params(other, ah_slice_of("{}"));
    ah_prompt_unref(other);
    ah_prompt_unref(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice text = {(const char *)data, size};

    try_template(text);
    try_answer(text);
    if (ah_json_check(mem, text, AH_JSON_MAX_DEPTH, NULL) == AH_OK)
        try_json(text);
    return 0;
}
