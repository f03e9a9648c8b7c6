/* What ah.run and ah.agent are told of their prompt: the fields prompt, params, overrides
 * and output, and the sections at the front of the array part. */
#ifndef AH_LUA_PROMPT_FIELDS_H
#define AH_LUA_PROMPT_FIELDS_H

#include "lua/lua_host.h"
#include "prompt/changes.h"
#include "prompt/prompt.h"
#include "run/disclose.h"

typedef struct ah_prompt_fields {
    size_t n_sections;        /* in the array part; the text is behind them */
    ah_binding *binding;      /* NULL: there is no prompt */
    ah_disclosure disclosure; /* of binding */
    ah_rendered *base;        /* of binding, with nothing opened */
    ah_rendered *rendered;    /* the same as it was open when the fields were read */
    ah_schema *output;        /* NULL: answers may be anything */
} ah_prompt_fields;

/* Reads the table at 1 into *p, which is zero and in a userdata. What the conversation has
 * opened is open. Raises at the script's line. */
void ah_prompt_fields_read(lua_State *L, const ah_log *log, const ah_transcript *t, ah_prompt_fields *p);
/* Makes p, which is zero and in a userdata, what `from` is; `tools` is its own copy of the
 * tools, in which read_section becomes its own. Raises when out of memory. */
void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_registry *tools);
void ah_prompt_fields_clear(ah_prompt_fields *p);

/* Adds the prompt's tools, and read_section where something is summarised. Raises
 * AH_PROMPT_VALIDATION where a tool of one of their names is there. */
void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, ah_changes *tools);
/* The system text: the field `system` (may be empty), the prompt, and the words for the output
 * unless `native`: the wire carries its schema. `before` is the text in force (a JSON
 * string, .p NULL: none): where it is this text before anything was opened, it is kept. */
void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           ah_slice before, ah_buf *out);

#endif
