/* Progressive disclosure (seed 000): the tool `read_section`, with which the model reads a section
 * that a prompt shows as a summary, and the strategy that then opens the section. Opening injects
 * the section's tools; an adapter that cannot take them gets a new system text. One ah_disclosure
 * per conversation records what that conversation has of its prompt. It references binding and
 * session, and owns the rest. expand.c uses it to open the sections that a handler asks for.
 * Callers: its module, lua. */
#ifndef AH_RUN_DISCLOSE_H
#define AH_RUN_DISCLOSE_H

#include "prompt/prompt.h"
#include "run/call.h"
#include "run/inject.h"

#define AH_READ_SECTION "read_section"

/* A prompt in one conversation. The session holds which sections are open (state/visibility.h), but
 * several conversations may share a session. What this conversation has is the prompt as it was
 * when its run began (`here`) and what was opened or closed since. */
typedef struct ah_disclosure {
    const ah_mem *mem;
    ah_binding *binding;
    ah_session *session;
    ah_overrides now; /* the session's overrides when last read */
    /* The prompt as the conversation had it when its run began; NULL before the first run. */
    ah_rendered_prompt *here;
    ah_overrides since; /* opened and closed since */
    ah_override *asked; /* opened and closed by changes that are not made yet */
    size_t n_asked, cap_asked;
    bool closed;             /* a section was closed since, with its tools */
    ah_text *before, *after; /* text before and after the prompt's text in the system text */
    bool rewrote; /* a new system text has named tools; reset by the code that compares texts */
} ah_disclosure;

/* References binding and session (registered). The disclosure must not move afterwards. */
void ah_disclosure_init(ah_disclosure *d, ah_binding *binding, ah_session *session);
void ah_disclosure_clear(ah_disclosure *d);
/* Uses another binding of the same prompt from now on. */
void ah_disclosure_bind(ah_disclosure *d, ah_binding *binding);
/* For a forked conversation: copies what the original has. */
ah_status ah_disclosure_copy(ah_disclosure *d, const ah_disclosure *from, ah_err *err);
/* A run begins: `now` is what the conversation has of the prompt. */
void ah_disclosure_begin(ah_disclosure *d, ah_rendered_prompt *now);
/* Sets *out to the prompt with the tools that the conversation was given: `begun`, the prompt when
 * the run began, unless a section was closed since. A new reference. */
ah_status ah_disclosure_given(ah_disclosure *d, ah_rendered_prompt *begun, ah_rendered_prompt **out,
                              ah_err *err);
/* Reads the open sections as seen from the overlay (NULL: none). *out is valid until the next
 * look. */
ah_status ah_disclosure_look(ah_disclosure *d, const ah_overlay *o, ah_override_source *out,
                             ah_err *err);
/* Index + 1 of the latest entry with the prompt's own system text, ignoring texts that a strategy
 * has set; 0: none. */
size_t ah_disclosure_text_at(const ah_transcript *t);
/* Adds to *v the paths that read_section opened in the entries from `since` on (`by` of
 * tools_added). *v is initialised by the caller, and borrows them from the transcript. */
ah_status ah_disclosure_opened(ah_overrides *v, const ah_transcript *t, size_t since, ah_err *err);
/* Opens in the session each section that the transcript records as opened, unless the session has
 * an override for it. */
ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_overlay *o,
                               ah_err *err);

/* Sets *out to the prompt as the system text shows it. Sections that were read since entry `since`,
 * where that text was set, stay summaries in it, as the tool's result has shown them. `now`: the
 * prompt with every open section; `was`: as for ah_binding_render_again. Call ah_disclosure_look
 * first. */
ah_status ah_disclosure_told(ah_disclosure *d, const ah_transcript *t, size_t since,
                             ah_rendered_prompt *now, ah_rendered_prompt *was,
                             ah_rendered_prompt **out, ah_err *err);
/* Appends the system text: `before`, the rendered prompt, `after`. */
void ah_disclosure_text(const ah_disclosure *d, const ah_rendered_prompt *r, ah_buf *out);
/* Adds the same text to *out as a change. */
ah_status ah_disclosure_set_prompt(const ah_disclosure *d, const ah_rendered_prompt *r,
                                   ah_changes *out, ah_err *err);

/* The tool read_section { section_key } of this conversation. The disclosure must outlive its
 * calls. */
ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err);
/* The strategy that gives the model the tools of the sections that it reads. */
ah_strategy ah_disclosure_strategy(ah_disclosure *d);

/* A tool asks the session to show a section with visibility v. Puts what follows in this
 * conversation (d NULL: it has no prompt) into *out, as if the model had read the section, and the
 * text for the model into *words. Call ah_disclosure_made after the changes are made. */
ah_status ah_disclosure_request(ah_disclosure *d, struct ah_run *run, ah_slice path,
                                ah_visibility v, ah_changes *out, ah_buf *words, ah_err *err);
void ah_disclosure_made(ah_disclosure *d);
/* Adds the current system text to *out, for an adapter that restarts. Adds nothing if a strategy
 * has replaced the system text. */
ah_status ah_disclosure_retell(ah_disclosure *d, struct ah_run *run, ah_changes *out, ah_err *err);

#endif
