/* Keeps a model's reasoning, as servers in OpenAI's form send it beside the answer, so that it can
 * be sent back where a server wants it: its members of the message, unchanged, with the pieces of a
 * stream joined. None of it is shown. Owns its buffers, within the limits of a message. Used by
 * openai_read.c only. Callers: its floor. */
#ifndef AH_WIRE_THOUGHTS_H
#define AH_WIRE_THOUGHTS_H

#include "base/json.h"
#include "wire/assemble.h"

/* A list of blocks (OpenRouter's reasoning_details, LiteLLM's thinking_blocks). Pieces of one
 * block's text are joined; its other members, such as a signature, are kept. */
typedef struct ah_thought_blocks {
    ah_buf done; /* complete blocks, with commas between them */
    /* The current block: its text, other members, type and index. */
    ah_buf text, rest, label;
    bool open;
} ah_thought_blocks;

typedef struct ah_thoughts {
    unsigned quirks; /* quirks of the server (wire/servers.h): the members that it wants back */
    ah_buf content;  /* reasoning_content, without the quotes */
    ah_thought_blocks details, blocks;
} ah_thoughts;

void ah_thoughts_init(ah_thoughts *t, const ah_mem *mem, unsigned quirks);
void ah_thoughts_clear(ah_thoughts *t);
/* Takes a member of a message or delta; ignores members that are not wanted. */
ah_status ah_thoughts_take(ah_thoughts *t, ah_json_token key, ah_slice value, ah_err *err);
/* At the end: adds them to the message, if the server wants them with it. */
ah_status ah_thoughts_give(ah_thoughts *t, ah_assembly *msg, ah_err *err);

#endif
