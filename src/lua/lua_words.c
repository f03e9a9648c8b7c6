/* Foreign names of fields, members and functions. They are used only for hints; none is accepted.
 * Each is listed once, in the form a_b; aB, AB and a-b are the same word. */
#include "lua/lua_words.h"

typedef struct word {
    const char *found, *meant, *as; /* as: the name of the field in the table `meant` */
} word;

/* Fields that belong in a table inside the one in which they were found. */
static const word inside[] = {{"temperature", "options", NULL},
                              {"max_tokens", "options", NULL},
                              {"top_p", "options", NULL},
                              {"stop", "options", NULL},
                              {"seed", "options", NULL},
                              {"tool_choice", "options", NULL},
                              {"tool_choice_every_turn", "options", NULL},
                              {"reasoning", "options", NULL},
                              {"cache", "options", NULL},
                              {"cache_key", "options", NULL},
                              {"connect_timeout", "http", NULL},
                              {"idle_timeout", "http", NULL},
                              {"total_timeout", "http", NULL},
                              {"tool_calls", "budget", NULL},
                              {"input_tokens", "budget", NULL},
                              {"output_tokens", "budget", NULL},
                              {"requests", "budget", NULL},
                              {"total_tokens", "budget", NULL},
                              {"cost", "budget", NULL},
                              {"on_content", "on", "content"},
                              {"on_tool_calls", "on", "tool_calls"},
                              {"on_tool_invoked", "on", "tool_invoked"},
                              {"on_tools_injected", "on", "tools_injected"},
                              {"keep_entities", "discover", "keep"},
                              {"filesystem", "resources", "filesystem"}};

/* Foreign names of fields and members. If a name has different meanings in two tables, each of
 * these tables has only one of the fields meant. */
static const word called[] = {{"parameters", "params", NULL},
                              {"args", "params", NULL},
                              {"arguments", "params", NULL},
                              {"params_type", "params", NULL},
                              {"params_schema", "params", NULL},
                              {"param_lookup", "params", NULL},
                              {"input_schema", "schema", NULL},
                              {"execute", "handler", NULL},
                              {"func", "handler", NULL},
                              {"fn", "handler", NULL},
                              {"callback", "handler", NULL},
                              {"call", "handler", NULL},
                              {"method_name", "method", NULL},
                              {"instructions", "system", NULL},
                              {"system_prompt", "system", NULL},
                              {"instruction", "system", NULL},
                              {"max_steps", "max_iterations", NULL},
                              {"max_turns", "max_iterations", NULL},
                              {"max_rounds", "max_iterations", NULL},
                              {"max_tool_iterations", "max_iterations", NULL},
                              {"with_max_tool_iterations", "max_iterations", NULL},
                              {"history", "messages", NULL},
                              {"initial_messages", "messages", NULL},
                              {"conversation_history", "messages", NULL},
                              {"conversation_history", "history", NULL},
                              {"messages", "history", NULL},
                              {"result_object", "value", NULL},
                              {"last_tool_call", "name", NULL},
                              {"output_schema", "output", NULL},
                              {"output_type", "output", NULL},
                              {"output_class", "output", NULL},
                              {"response_format", "output", NULL},
                              {"create_object", "output", NULL},
                              {"text", "template", NULL},
                              {"content", "template", NULL},
                              {"markdown", "template", NULL},
                              {"markdown", "text", NULL},
                              {"variables", "params", NULL},
                              {"returns", "result", NULL},
                              {"result_type", "result", NULL},
                              {"expected_return_type", "result", NULL},
                              {"on_ask", "asks", NULL},
                              {"prompt", "question", NULL},
                              {"message", "question", NULL},
                              {"desc", "description", NULL},
                              {"brief", "description", NULL},
                              {"full", "full_description", NULL},
                              {"example", "examples", NULL},
                              {"to_render", "render", NULL},
                              {"key", "api_key", NULL},
                              {"url", "base_url", NULL},
                              {"path", "root", NULL},
                              {"is_enabled", "enabled", NULL},
                              {"namespace", "ns", NULL},
                              {"prompt_template", "prompt", NULL},
                              {"children", "sections", NULL},
                              {"id", "key", NULL},
                              {"tool_prefix", "prefix", NULL},
                              {"properties", "fields", NULL},
                              {"identifier", "id", NULL},
                              {"name", "id", NULL},
                              {"key", "id", NULL},
                              {"ns", "id", NULL},
                              {"tool_name", "name", NULL},
                              {"args", "arguments", NULL},
                              {"cmd", "command", NULL},
                              {"program", "command", NULL},
                              {"argv", "args", NULL},
                              {"arguments", "args", NULL},
                              {"environment", "env", NULL},
                              {"working_directory", "cwd", NULL},
                              {"input", "stdin", NULL},
                              {"tool_calls", "calls", NULL},
                              {"parts", "content", NULL},
                              {"planning_strategy", "strategy", NULL},
                              {"entity_discovery", "discover", NULL},
                              {"window_size", "window", NULL},
                              {"with_tool_provider_discovery", "discover", NULL},
                              {"tool_provider_discovery", "discover", NULL},
                              {"enable_tool_provider_discovery", "discover", NULL},
                              {"tool_provider_discovery_enabled", "discover", NULL},
                              {"tool_provider_extractor", "discover", NULL},
                              {"injection_strategy", "strategies", NULL},
                              {"tool_injection_strategy", "strategies", NULL},
                              {"strategy", "strategies", NULL},
                              {"evaluate_tool_result", "after", NULL},
                              {"with_tool_group", "tools", NULL},
                              {"tool_group", "tools", NULL},
                              {"tool_groups", "tools", NULL},
                              {"tool_callbacks", "tools", NULL},
                              {"initial_tool_callbacks", "tools", NULL},
                              {"current_tools", "tools", NULL},
                              {"available_tools", "tools", NULL},
                              {"tool_specs", "tools", NULL},
                              {"chat_options", "options", NULL},
                              {"chat_model", "model", NULL},
                              {"adapter", "model", NULL},
                              {"provider", "model", NULL},
                              {"event_publisher", "on", NULL},
                              {"observers", "on", NULL},
                              {"logger", "log", NULL},
                              {"instance_id_property", "id", NULL},
                              {"instance_id", "id", NULL},
                              {"provider_class", "name", NULL},
                              {"class_name", "name", NULL},
                              {"supports_dynamic_tools", "tool_change_mode", NULL},
                              {"visibility_overrides", "session", NULL},
                              {"deadline_seconds", "timeout", NULL},
                              {"budget_tracker", "budget", NULL},
                              {"with_registry", "registry", NULL},
                              {"tool_registry", "registry", NULL},
                              {"tool_executors", "executors", NULL},
                              {"with_executors", "executors", NULL},
                              {"brief_descriptions", "brief", NULL},
                              {"pick_tools", "brief", NULL},
                              {"picked_tools", "keep_picked", NULL},
                              {"clear_picked", "keep_picked", NULL},
                              {"open_sections", "visibility", NULL},
                              {"text", "message", NULL},
                              {"content", "message", NULL},
                              {"data", "value", NULL},
                              {"is_error", "success", NULL},
                              {"ok", "success", NULL},
                              {"error", "success", NULL},
                              {"exclude_from_context", "exclude_value_from_context", NULL},
                              /* of replies */
                              {"output", "text", NULL},
                              {"output", "value", NULL},
                              {"content", "text", NULL},
                              {"message", "text", NULL},
                              {"answer", "text", NULL},
                              {"output_text", "text", NULL},
                              {"object", "value", NULL},
                              {"parsed", "value", NULL},
                              {"result", "value", NULL},
                              {"finish_reason", "stop", NULL},
                              {"stop_reason", "stop", NULL},
                              {"steps", "iterations", NULL},
                              {"turns", "iterations", NULL},
                              {"total_iterations", "iterations", NULL},
                              {"total_rounds", "rounds", NULL},
                              {"total_usage", "usage", NULL},
                              {"all_messages", "messages", NULL},
                              /* of agents */
                              {"messages", "transcript", NULL},
                              {"history", "transcript", NULL},
                              {"model", "use", NULL},
                              {"chat", "run", NULL},
                              {"ask", "run", NULL},
                              {"prompt", "run", NULL},
                              {"generate", "run", NULL},
                              /* of a handler's `ctx`, and of the values that strategies get */
                              {"iteration_count", "iteration", NULL},
                              {"tool_input", "raw_arguments", NULL},
                              {"tool_call_id", "call_id", NULL},
                              {"dispatcher", "session", NULL},
                              /* of runs */
                              {"on_event", "on", NULL},
                              {"callbacks", "on", NULL},
                              {"functions", "tools", NULL},
                              {"max_retries", "retries", NULL},
                              {"model_name", "model", NULL},
                              {"llm", "model", NULL},
                              /* of registries */
                              {"call", "execute", NULL},
                              {"invoke", "execute", NULL},
                              {"unregister", "remove", NULL},
                              {"add", "register", NULL},
                              {"get_tools_for_llm", "tools_for_llm", NULL},
                              {"register_builtin", "register_all_builtin", NULL},
                              {"tools", "names", NULL}};

/* Classes and functions, and their names here. */
static const word function[] = {
    {"tools_section", "ah.tools_section", NULL},
    {"text_section", "ah.section", NULL},
    {"markdown_section", "ah.section", NULL},
    {"section", "ah.section", NULL},
    {"prompt", "ah.prompt", NULL},
    {"prompt_template", "ah.prompt", NULL},
    {"tool", "ah.tool", NULL},
    {"function_tool", "ah.tool", NULL},
    {"tool_result", "ah.result", NULL},
    {"tool_example", "the field examples of ah.tool", NULL},
    {"tool_context", "the second argument of a handler", NULL},
    {"tool_provider", "ah.entity", NULL},
    {"entity", "ah.entity", NULL},
    {"llm_tool", "Class:tool, of a class made by ah.entity", NULL},
    {"tool_param", "the field params of ah.tool", NULL},
    {"tool_group", "ah.tool_group", NULL},
    {"tool_registry", "ah.registry", NULL},
    {"registry", "ah.registry", NULL},
    {"loop_detector", "the field loop_detector of ah.run", NULL},
    {"is_tool_provider", "ah.is_provider", NULL},
    {"extract_tool_callbacks", "ah.tools_of", NULL},
    {"tool_injection_strategy", "the field strategies of ah.run", NULL},
    {"planning_tools_section", "ah.planning_section", NULL},
    {"planning_strategy", "the field strategy of ah.planning_section", NULL},
    {"plan", "ah.planning.Plan", NULL},
    {"session", "ah.session", NULL},
    {"budget", "ah.budget", NULL},
    {"deadline", "the field deadline of ah.run", NULL},
    {"filesystem", "ah.filesystem", NULL},
    {"set_visibility_override", "ah.set_visibility_override", NULL},
    {"main_loop", "ah.run", NULL},
    {"evaluate", "ah.run", NULL},
    {"chat_loop", "ah.run", NULL},
    {"chat_loop_with_tools", "ah.run", NULL},
    {"tool_loop", "ah.run", NULL},
    {"agent", "ah.agent", NULL}};

static bool between(char c)
{
    return c == '_' || c == '-';
}

bool ah_word_eq(ah_slice a, ah_slice b)
{
    size_t i = 0, j = 0;

    for (;; i++, j++) {
        while (i < a.n && between(a.p[i]))
            i++;
        while (j < b.n && between(b.p[j]))
            j++;
        if (i == a.n || j == b.n)
            return i == a.n && j == b.n;
        if (ah_lower(a.p[i]) != ah_lower(b.p[j]))
            return false;
    }
}

bool ah_word_means(ah_slice found, ah_slice name)
{
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        if (ah_slice_is(name, called[i].meant) && ah_word_eq(found, ah_slice_of(called[i].found)))
            return true;
    return false;
}

const char *ah_word_next(ah_slice found, const char *const *known, size_t *at)
{
    while (*at < sizeof called / sizeof *called) {
        const word *w = &called[(*at)++];

        if (!ah_word_eq(found, ah_slice_of(w->found)))
            continue;
        for (const char *const *k = known; *k; k++)
            if (strcmp(*k, w->meant) == 0)
                return *k;
    }
    return NULL;
}

const char *ah_word_inside(const char *const *known, ah_slice found, const char **field)
{
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        const word *w = &inside[i];

        if (!ah_word_eq(found, ah_slice_of(w->found)))
            continue;
        for (const char *const *k = known; *k; k++) {
            if (strcmp(*k, w->meant) != 0)
                continue;
            *field = w->as ? w->as : w->found;
            return w->meant;
        }
    }
    return NULL;
}

const char *ah_word_function(ah_slice found)
{
    for (size_t i = 0; i < sizeof function / sizeof *function; i++)
        if (ah_word_eq(found, ah_slice_of(function[i].found)))
            return function[i].meant;
    return NULL;
}
