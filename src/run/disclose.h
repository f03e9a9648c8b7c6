/* Progressive disclosure (seed 000): the tool `read_section`, with which the model reads what a
 * prompt shows as a summary, and the strategy that opens the section then: its tools are injected,
 * and where the adapter cannot take them, the prompt is set anew. It owns what a conversation has
 * of its prompt. The Lua floor makes one a conversation and asks it for system texts; expand.c has
 * it open what a handler asks for. */
#ifndef AH_RUN_DISCLOSE_H
#define AH_RUN_DISCLOSE_H

#include "prompt/prompt.h"
#include "run/call.h"
#include "run/inject.h"

#define AH_READ_SECTION "read_section"

/* A prompt in one conversation. What is open in the session is there (state/visibility.h); that is
 * not what this conversation has: others may share the session. What it has is the prompt as it was
 * when its run began, and what was opened in it since. */
typedef struct ah_disclosure {
    const ah_mem *mem;
    ah_binding *binding;
    ah_session *session;
    ah_overrides now; /* the session's overrides as last looked at */
    ah_rendered_prompt
        *here;          /* the prompt as the conversation had it then; NULL: before its first run */
    ah_overrides since; /* what it was given and taken since */
    ah_override *asked; /* the same of the changes at hand, which are not made yet */
    size_t n_asked, cap_asked;
    bool closed;             /* something was taken since, with its tools */
    ah_text *before, *after; /* what stands around the prompt's text in the system text */
    bool rewrote; /* a new system text told of tools; set back by whoever compares texts */
} ah_disclosure;

/* It must not move afterwards. Binding and session (registered) are referenced. */
void ah_disclosure_init(ah_disclosure *d, ah_binding *binding, ah_session *session);
void ah_disclosure_clear(ah_disclosure *d);
/* Another binding of the same prompt from here on. */
void ah_disclosure_bind(ah_disclosure *d, ah_binding *binding);
/* For a conversation that goes on from another one: it has what that has. */
ah_status ah_disclosure_copy(ah_disclosure *d, const ah_disclosure *from, ah_err *err);
/* A run begins, and this is what the conversation has of the prompt. */
void ah_disclosure_begin(ah_disclosure *d, ah_rendered_prompt *now);
/* The prompt as to the tools that it has given by now: `begun`, which was there when the run began,
 * unless something was closed since. A new reference. */
ah_status ah_disclosure_given(ah_disclosure *d, ah_rendered_prompt *begun, ah_rendered_prompt **out,
                              ah_err *err);
/* Looks from the overlay (NULL: none) at what is open, which holds until it is looked at again. */
ah_status ah_disclosure_look(ah_disclosure *d, const ah_overlay *o, ah_override_source *out,
                             ah_err *err);
/* One more than where the prompt's own system text stands, which is not one that a strategy set in
 * its place; 0: there is none. */
size_t ah_disclosure_text_at(const ah_transcript *t);
/* The paths that read_section opened in the entries from `since` on (`by` of tools_added), into
 * *v, which is initialised and borrows them from the transcript. */
ah_status ah_disclosure_opened(ah_overrides *v, const ah_transcript *t, size_t since, ah_err *err);
/* Opens in the session what the transcript says was opened and the session says nothing of. */
ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_overlay *o,
                               ah_err *err);

/* The prompt as the system text has it: what was opened by reading since entry `since`, where
 * that text was set, is not in it, for the model was told by the tool's result. `now`: with all
 * that is open; `was`: as for ah_binding_render_again. After ah_disclosure_look. */
ah_status ah_disclosure_told(ah_disclosure *d, const ah_transcript *t, size_t since,
                             ah_rendered_prompt *now, ah_rendered_prompt *was,
                             ah_rendered_prompt **out, ah_err *err);
/* The system text: before, the prompt as it was rendered, after. */
void ah_disclosure_text(const ah_disclosure *d, const ah_rendered_prompt *r, ah_buf *out);
/* The same as a change. */
ah_status ah_disclosure_set_prompt(const ah_disclosure *d, const ah_rendered_prompt *r,
                                   ah_changes *out, ah_err *err);

/* read_section { section_key } of this conversation; the disclosure must outlive the tool's
 * calls. */
ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err);
/* The strategy that gives the model the tools of the sections it reads. */
ah_strategy ah_disclosure_strategy(ah_disclosure *d);

/* For the run: a tool asks that the session show a section so. What follows from it in this
 * conversation (d NULL: it has no prompt) is put into *out, as if the model had read the section,
 * and what the model is to be told of it into *words. After the changes are made:
 * ah_disclosure_made. */
ah_status ah_disclosure_request(ah_disclosure *d, struct ah_run *run, ah_slice path,
                                ah_visibility v, ah_changes *out, ah_buf *words, ah_err *err);
void ah_disclosure_made(ah_disclosure *d);
/* The system text anew, for an adapter that restarts, where it is the prompt's own. */
ah_status ah_disclosure_retell(ah_disclosure *d, struct ah_run *run, ah_changes *out, ah_err *err);

#endif
