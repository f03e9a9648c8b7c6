/* The fields of ah.run and ah.agent about the prompt: prompt, params, overrides and output, and the
 * sections at the front of the array part. The struct is part of an agent in a userdata; it owns
 * its bindings, renderings and schema, and borrows the session. Rendering calls functions of the
 * script. Callers: its floor. */
#ifndef AH_LUA_PROMPT_FIELDS_H
#define AH_LUA_PROMPT_FIELDS_H

#include "lua/lua_state.h"
#include "prompt/prompt.h"
#include "run/disclose.h"
#include "state/changes.h"

typedef struct ah_prompt_fields {
    size_t n_sections;            /* in the array part, before the text */
    ah_binding *binding;          /* NULL: no prompt */
    ah_disclosure disclosure;     /* of binding */
    ah_rendered_prompt *told;     /* the rendering in the system text; NULL: not known */
    ah_rendered_prompt *rendered; /* the last rendering */
    size_t since;      /* index in the transcript: sections read from there on are not in `told` */
    ah_schema *output; /* NULL: any answer is allowed */
} ah_prompt_fields;

/* Reads the table at 1 into *p, which is zero and in a userdata. Sections that the conversation has
 * opened are opened in the session. Raises at the script's line. */
void ah_prompt_fields_read(lua_State *L, const ah_log *log, const ah_transcript *t,
                           ah_session *session, ah_prompt_fields *p);
/* Copies `from` into p, which is zero and in a userdata, with a session of its own. `tools` is its
 * copy of the tools, in which read_section is replaced by its own. Raises when out of memory. */
void ah_prompt_fields_copy(lua_State *L, ah_prompt_fields *p, const ah_prompt_fields *from,
                           ah_session *session, ah_registry *tools);
void ah_prompt_fields_clear(ah_prompt_fields *p);

/* Adds the prompt's tools, and read_section if a section is summarised or `offered` (it was offered
 * before). Tools of sections that the session opens are marked to be left out if there is no room.
 * Raises AH_PROMPT_VALIDATION if a tool already has one of their names. */
void ah_prompt_fields_tools(lua_State *L, ah_prompt_fields *p, bool offered, ah_changes *tools);
/* Appends the system text to out: the field `system` (may be empty), the prompt and, unless
 * `native` (the wire carries the schema), the instructions for the output. If the text in force was
 * made from the rendering `told`, before sections were read, keeps that text. */
void ah_prompt_fields_text(lua_State *L, ah_prompt_fields *p, bool native, ah_slice system,
                           const ah_transcript *t, ah_buf *out);

/* Returns a new reference to the prompt with the parameters of the table at idx. Raises
 * AH_PROMPT_RENDER. */
ah_binding *ah_prompt_fields_params(lua_State *L, const ah_prompt_fields *p, int idx);
/* Makes `binding` (taken) the binding from the next look on. */
void ah_prompt_fields_bind(ah_prompt_fields *p, ah_binding *binding);
/* Renders the prompt again with the present functions, parameters and session, as seen from the
 * overlay. *out gets the necessary changes (none if nothing has changed); call
 * ah_prompt_fields_settle once they are made. Fails as ah_binding_render does. */
typedef struct ah_prompt_look {
    ah_rendered_prompt *told, *rendered;
    bool rewritten; /* the system text is replaced */
} ah_prompt_look;
ah_status ah_prompt_fields_look(ah_prompt_fields *p, const ah_transcript *t,
                                const ah_registry *tools, const ah_overlay *o, ah_prompt_look *look,
                                ah_changes *out, ah_err *err);
/* Makes the look the current one (`done`), or drops it. */
void ah_prompt_fields_settle(ah_prompt_fields *p, ah_prompt_look *look, const ah_transcript *t,
                             bool done);

#endif
