/* The fields of ah.run and ah.agent, and of the tables in them that configure requests, as rows. */
#include "base/request.h"
#include "lua/lua_options.h"

/* -- http -------------------------------------------------------------------------------- */

static const ah_option http_rows[] = {
    {.name = "connect_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "10",
     .to = AH_TO_MS(ah_http_limits, connect_ms),
     .doc = "until the connection stands, TLS included"},
    {.name = "idle_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "300",
     .to = AH_TO_MS(ah_http_limits, idle_ms),
     .doc = "without a byte sent or received"},
    {.name = "total_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "600",
     .to = AH_TO_MS(ah_http_limits, total_ms),
     .doc = "for the whole request"},
    {.name = "max_header",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "65536",
     .to = AH_TO_SIZE(ah_http_limits, header_bytes),
     .doc = "of the response's headers"},
    {.name = "max_body",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "67108864",
     .to = AH_TO_SIZE(ah_http_limits, body_bytes),
     .doc = "of the response's body"},
    {0},
};
const ah_subject ah_subject_http_limits = {
    .what = "ah.run: http", .type = "ah.HttpLimits", .doc = "limits of a request", .row = http_rows};

/* -- options: whether a model takes them, and in which range, only its provider knows ------------- */

static const ah_option options_rows[] = {
    {.name = "temperature", .kinds = AH_OPT_NUMBER},
    {.name = "max_tokens", .kinds = AH_OPT_INTEGER, .doc = "of the answer"},
    {.name = "top_p", .kinds = AH_OPT_NUMBER},
    {.name = "stop",
     .kinds = AH_OPT_STRING | AH_OPT_LIST,
     .type = "string|string[]",
     .doc = "texts that end the answer"},
    {.name = "seed", .kinds = AH_OPT_INTEGER},
    {.name = "tool_choice",
     .kinds = AH_OPT_ANY,
     .is = "`\"auto\"`, `\"none\"`, `\"required\"` or `{ name = \"a_tool\" }`",
     .type = "\"auto\"|\"none\"|\"required\"|{ name: string }",
     .doc = "left out where there are no tools"},
    {.name = "tool_choice_every_turn",
     .kinds = AH_OPT_BOOLEAN,
     .doc =
         "a choice that is forced holds for every request of a run (default false), which then ends by a limit or by a tool"},
    {.name = "reasoning",
     .kinds = AH_OPT_STRING,
     .doc =
         "effort, such as `\"low\"`; to Gemini before 3 as a number of tokens, to Ollama as `think` (`\"true\"` and `\"none\"` are yes and no)"},
    {.name = "cache",
     .kinds = AH_OPT_STRING,
     .words = "5m 1h off",
     .doc =
         "how long `anthropic` keeps what it has read (default `\"5m\"`); other providers cache by themselves"},
    {.name = "cache_key",
     .kinds = AH_OPT_STRING,
     .doc = "`prompt_cache_key` of `openai`: the same for requests that begin alike"},
    {.name = "strict",
     .kinds = AH_OPT_BOOLEAN,
     .doc =
         "the provider is to be [strict](models.md#strict-tools) with the tools, where it can (default false)"},
    {0},
};
const ah_subject ah_subject_options = {.what = "ah.run: options",
                                       .type = "ah.Options",
                                       .doc = "for the model; passed on as they are",
                                       .row = options_rows};
