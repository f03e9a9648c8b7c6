/* Fuzz target: the arguments of a tool call from a model. The first line is the tool's
 * parameters as a JSON Schema; the rest is the model's text. Either the handler would start,
 * with one JSON object that the schema accepts, or the call gets an error text; the handler's
 * value (here: its arguments) becomes a result. */
#include <stdint.h>
#include <stdlib.h>

#include "run/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_ANSWER = (64 << 10) + 100 };

static void require_that(bool holds)
{
    if (!holds)
        abort();
}

static bool is_json(ah_slice text)
{
    return ah_json_check(&ah_mem_libc, text, AH_JSON_MAX_DEPTH, NULL) == AH_OK;
}

static ah_tool *make_tool(ah_slice params)
{
    ah_tool_def def = {.name = ah_slice_of("t"), .description = ah_slice_of("Does it.")};
    ah_tool *tool = NULL;
    ah_err err;

    if (!is_json(params) || ah_schema_compile(&ah_mem_libc, params, &def.params, &err) != AH_OK)
        return NULL;
    if (ah_tool_new(&ah_mem_libc, &def, &tool, &err) != AH_OK)
        require_that(!ah_schema_is_object(def.params));
    ah_schema_unref(def.params);
    return tool;
}

static void check_answer(const ah_call *c, bool success)
{
    ah_slice words = ah_text_slice(c->content);

    require_that(c->state == AH_CALL_ANSWERED && c->success == success && words.n > 0);
    require_that(words.n <= LONGEST_ANSWER && ah_utf8_valid(words));
}

/* With its defaults the object may be invalid: one property too many for maxProperties. */
static void check_started(ah_call *c)
{
    ah_slice args = ah_text_slice(c->args);
    ah_outcome said = {.success = true, .value = args};

    require_that(c->state == AH_CALL_RUNNING && !c->content);
    require_that(is_json(args) && ah_json_kind_of(args) == AH_JSON_OBJECT);
    ah_call_settle(c, &said, NULL);
    check_answer(c, true);
}

static void call(const ah_registry *tools, ah_slice arguments)
{
    ah_slot slot = {.id = ah_text_new(&ah_mem_libc, ah_slice_of("call_1")),
                    .name = ah_text_new(&ah_mem_libc, ah_slice_of("t")),
                    .arguments = ah_text_new(&ah_mem_libc, arguments)};
    ah_call c;

    ah_call_init(&c, NULL, &ah_mem_libc, &slot, 0, NULL);
    if (ah_call_prepare(&c, &(ah_callees){.registry = tools}, 1, 0))
        check_started(&c);
    else
        check_answer(&c, false);
    ah_call_clear(&c);
    ah_text_unref(slot.id);
    ah_text_unref(slot.name);
    ah_text_unref(slot.arguments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *in = (const char *)data, *line = size ? memchr(in, '\n', size) : NULL;
    ah_registry tools;
    ah_tool *tool;
    ah_err err;

    if (!line || !(tool = make_tool((ah_slice){in, (size_t)(line - in)})))
        return 0;
    ah_registry_init(&tools, &ah_mem_libc);
    require_that(ah_registry_add(&tools, tool, &err) == AH_OK);
    call(&tools, (ah_slice){line + 1, (size_t)(in + size - line - 1)});
    ah_registry_clear(&tools);
    ah_tool_unref(tool);
    return 0;
}
