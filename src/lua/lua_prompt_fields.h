/* Fields of ah.run and ah.agent for the prompt: prompt, params, overrides and output, and the
 * sections at the front of the array part. */
#ifndef AH_LUA_PROMPT_FIELDS_H
#define AH_LUA_PROMPT_FIELDS_H

#include "lua/lua_state.h"
#include "prompt/prompt.h"
#include "run/disclose.h"
#include "state/changes.h"

typedef struct ah_prompt_fields {
    size_t n_sections;            /* in the array part; the text is behind them */
    ah_binding *binding;          /* NULL: there is no prompt */
    ah_disclosure disclosure;     /* of binding */
    ah_rendered_prompt *told;     /* the prompt as the system text has it; NULL: not known */
    ah_rendered_prompt *rendered; /* the prompt as it was when it was last looked at */
    size_t since;      /* of the transcript: what was read from there on is not in `told` */
    ah_schema *output; /* NULL: answers may be anything */
} ah_prompt_fields;

/* Reads the table at 1 into *p, which is zero and in a userdata. What the conversation has
 * opened is open in the session. Raises at the script's line. */
void ah_prompt_fields_read(lua_State *L, const ah_log *log, const ah_transcript *t,
                           ah_session *session, ah_prompt_fields *p);
/* Makes p, which is zero and in a userdata, what `from` is, in a session of its own; `tools` is
 * its own copy of the tools, in which read_section becomes its own. Raises when out of memory. */
void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_session *session, ah_registry *tools);
void ah_prompt_fields_clear(ah_prompt_fields *p);

/* Adds the prompt's tools (those of sections that the session opens yield), and read_section where
 * something is summarised or `offered` says that it was offered before. Raises AH_PROMPT_VALIDATION
 * where a tool of one of their names is there. */
void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, bool offered, ah_changes *tools);
/* The system text: the field `system` (may be empty), the prompt, and the words for the output
 * unless `native`: the wire carries its schema. Where the text in force is what it was
 * before sections were read, it is kept. */
void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           const ah_transcript *t, ah_buf *out);

/* A new reference: the prompt with the parameters of the table at idx. Raises AH_PROMPT_RENDER. */
ah_binding *ah_prompt_fields_params(lua_State *L, const ah_prompt_fields *p, int idx);
/* That is the binding from the next look on; taken. */
void ah_prompt_fields_bind(ah_prompt_fields *p, ah_binding *binding);
/* Looks at the prompt again, as its functions, its parameters and the session have it now, as
 * seen from the overlay. *out gets what is to be changed for that (nothing, where nothing has
 * changed); once that is done, ah_prompt_fields_settle. Fails as ah_binding_render does. */
typedef struct ah_prompt_look {
    ah_rendered_prompt *told, *rendered;
    bool rewritten; /* the system text is set anew */
} ah_prompt_look;
ah_status ah_prompt_fields_look(ah_prompt_fields *p, const ah_transcript *t,
                                const ah_registry *tools, const ah_overlay *o, ah_prompt_look *look,
                                ah_changes *out, ah_err *err);
/* The look counts from now on, or (done false) is forgotten. */
void ah_prompt_fields_settle(ah_prompt_fields *p, ah_prompt_look *look, const ah_transcript *t,
                             bool done);

#endif
