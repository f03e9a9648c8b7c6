/* The thoughts of a model, as servers of OpenAI's form send them beside the answer, kept so that
 * they can be sent back where a server wants it: its members of the message, as they came, the
 * pieces of a stream put together. Nothing of it is shown. For openai_read.c alone. */
#ifndef AH_WIRE_THOUGHTS_H
#define AH_WIRE_THOUGHTS_H

#include "base/json.h"
#include "wire/assemble.h"

/* A list of blocks (OpenRouter's reasoning_details, LiteLLM's thinking_blocks). Blocks whose text
 * comes in pieces are one; signed or not, what stands beside the text is kept. */
typedef struct ah_thought_blocks {
    ah_buf done; /* whole blocks with commas between */
    ah_buf text, rest,
        label; /* the block that is coming: its text, other members, kind and index */
    bool open;
} ah_thought_blocks;

typedef struct ah_thoughts {
    unsigned quirks; /* of the server (wire/servers.h): which members it wants back */
    ah_buf content;  /* reasoning_content, as it stood between the quotes */
    ah_thought_blocks details, blocks;
} ah_thoughts;

void ah_thoughts_init(ah_thoughts *t, const ah_mem *mem, unsigned quirks);
void ah_thoughts_clear(ah_thoughts *t);
/* A member of a message or of a delta; those that are not wanted are passed over. */
ah_status ah_thoughts_take(ah_thoughts *t, ah_json_token key, ah_slice value, ah_err *err);
/* At the end: gives them to the message, where the server wants them with it. */
ah_status ah_thoughts_give(ah_thoughts *t, ah_assembly *msg, ah_err *err);

#endif
