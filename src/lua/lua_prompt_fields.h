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
    ah_rendered_prompt *told;     /* the rendering in the system text; NULL: not known */
    ah_rendered_prompt *rendered; /* the last rendering */
    size_t since;      /* index in the transcript: sections read from there on are not in `told` */
    ah_schema *output; /* NULL: answers may be anything */
} ah_prompt_fields;

/* Reads the table at 1 into *p, which is zero and in a userdata. Sections that the conversation has
 * opened are open in the session. Raises at the script's line. */
void ah_prompt_fields_read(lua_State *L, const ah_log *log, const ah_transcript *t,
                           ah_session *session, ah_prompt_fields *p);
/* Makes p, which is zero and in a userdata, a copy of `from`, in a session of its own; `tools` is
 * its own copy of the tools, in which read_section becomes its own. Raises when out of memory. */
void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_session *session, ah_registry *tools);
void ah_prompt_fields_clear(ah_prompt_fields *p);

/* Adds the prompt's tools (those of sections that the session opens yield), and read_section if a
 * section is summarised or it was `offered` before. Raises AH_PROMPT_VALIDATION if a tool already
 * has one of their names. */
void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, bool offered, ah_changes *tools);
/* Appends the system text to out: the field `system` (may be empty), the prompt, and the
 * instructions for the output unless `native`: the wire carries its schema. A text in force that is
 * the same as before sections were read is kept. */
void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           const ah_transcript *t, ah_buf *out);

/* Returns a new reference to the prompt with the parameters of the table at idx. Raises
 * AH_PROMPT_RENDER. */
ah_binding *ah_prompt_fields_params(lua_State *L, const ah_prompt_fields *p, int idx);
/* Makes it (taken) the binding from the next look on. */
void ah_prompt_fields_bind(ah_prompt_fields *p, ah_binding *binding);
/* Renders the prompt again with its functions, its parameters and the session as they are now, as
 * seen from the overlay. *out gets the changes for that (none if nothing has changed); once they
 * are made, call ah_prompt_fields_settle. Fails as ah_binding_render does. */
typedef struct ah_prompt_look {
    ah_rendered_prompt *told, *rendered;
    bool rewritten; /* the system text is set anew */
} ah_prompt_look;
ah_status ah_prompt_fields_look(ah_prompt_fields *p, const ah_transcript *t,
                                const ah_registry *tools, const ah_overlay *o, ah_prompt_look *look,
                                ah_changes *out, ah_err *err);
/* Makes the look the current one, or (done false) drops it. */
void ah_prompt_fields_settle(ah_prompt_fields *p, ah_prompt_look *look, const ah_transcript *t,
                             bool done);

#endif
