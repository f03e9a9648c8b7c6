/* What ah.run and ah.agent are told of their prompt: the fields prompt, params, overrides
 * and output, and the sections at the front of the array part. */
#ifndef AH_LUA_PROMPT_FIELDS_H
#define AH_LUA_PROMPT_FIELDS_H

#include "lua/lua_host.h"
#include "prompt/changes.h"
#include "prompt/prompt.h"
#include "wire/adapter.h"

typedef struct ah_prompt_fields {
    size_t n_sections;     /* in the array part; the text is behind them */
    ah_binding *binding;   /* NULL: there is no prompt */
    ah_rendered *rendered; /* of binding, as it was when the fields were read */
    ah_schema *output;     /* NULL: answers may be anything */
} ah_prompt_fields;

/* Reads the table at 1 into *p, which is zero and in a userdata. Raises at the script's line. */
void ah_prompt_fields_read(lua_State *L, const ah_log *log, ah_prompt_fields *p);
void ah_prompt_fields_clear(ah_prompt_fields *p);

/* Adds the prompt's tools, and read_section where something is summarised. Raises
 * AH_PROMPT_VALIDATION where a tool of one of their names is there. */
void ah_prompt_fields_tools(lua_State *L, const ah_prompt_fields *p, ah_changes *tools);
/* Appends the prompt's text behind what is there, and the words for the output where the
 * adapter's wire does not carry its schema. */
void ah_prompt_fields_text(const ah_prompt_fields *p, const ah_adapter *adapter, ah_buf *out);

#endif
