/* The servers that use OpenAI's chat format, as static data: address, key variables, and how each
 * differs. Optional members are sent only if the row has their bit, since several servers refuse
 * members that they do not know. Used by the wires of openai.h, and by providers.c, which lists the
 * names. Callers: its floor. */
#ifndef AH_WIRE_SERVERS_H
#define AH_WIRE_SERVERS_H

#include "base/slice.h"
#include "wire/service.h"

typedef enum ah_server_quirk {
    AH_SERVER_STREAM_USAGE = 1 << 0,      /* takes stream_options */
    AH_SERVER_COMPLETION_TOKENS = 1 << 1, /* max_completion_tokens at its own address */
    AH_SERVER_ANY = 1 << 2,               /* tool_choice "required" is spelled "any" */
    AH_SERVER_SHORT_IDS = 1 << 3,         /* ids of calls are 9 letters and digits */
    AH_SERVER_REASONING_OBJECT = 1 << 4,  /* reasoning: {effort} in place of reasoning_effort */
    AH_SERVER_AZURE = 1 << 5, /* header api-key; with a version, deployments in the path */
    AH_SERVER_SITE = 1 << 6,  /* sends HTTP-Referer and X-Title */
    AH_SERVER_PROXY = 1 << 7, /* LiteLLM's: retries by itself and gives each request an id */
    /* Reasoning is sent back, in these members of the message: */
    AH_SERVER_REASONING_CONTENT = 1 << 8,
    AH_SERVER_REASONING_DETAILS = 1 << 9,
    AH_SERVER_THINKING_BLOCKS = 1 << 10,
    AH_SERVER_CACHE_KEY = 1 << 11, /* takes prompt_cache_key */
    AH_SERVER_OUTPUT = 1 << 12,    /* takes response_format with a JSON Schema */
    AH_SERVER_RESPONSES = 1 << 13, /* models "responses/NAME" use OpenAI's other wire */
    AH_SERVER_STRICT = 1 << 14,    /* tools may be strict */
    AH_SERVER_COST = 1 << 15,      /* reports the cost of each answer */
    AH_SERVER_ALLOWED = 1 << 16,   /* tool_choice allowed_tools at its own address */
    /* As OUTPUT, but the schema binds calls too, or the model does not see it. Sent only without
     * tools, with schemas that any server supports, and also described in words. */
    AH_SERVER_OUTPUT_ALONE = 1 << 17,
    AH_SERVER_TOOL_MESSAGES = 1 << 18 /* takes tools in system messages, if its model does */
} ah_server_quirk;

typedef struct ah_server {
    ah_service at;
    unsigned quirks; /* ah_server_quirk bits */
} ah_server;

extern const ah_server ah_servers[]; /* the last has no name */

/* The server with that provider name, or NULL. */
const ah_server *ah_server_find(ah_slice provider);

#endif
