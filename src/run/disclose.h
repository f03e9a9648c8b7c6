/* Progressive disclosure (seed 000): the tool `read_section`, with which the model reads
 * what a prompt shows as a summary, and the strategy that opens the section then: its tools
 * are injected, and where the adapter cannot take them, the prompt is set anew. */
#ifndef AH_RUN_DISCLOSE_H
#define AH_RUN_DISCLOSE_H

#include "prompt/prompt.h"
#include "run/dispatch.h"
#include "run/inject.h"

#define AH_READ_SECTION "read_section"

/* What of a prompt is open in one conversation. */
typedef struct ah_disclosure {
    const ah_mem *mem;
    ah_binding *binding;
    ah_shown shown; /* finds what is open; give it to whoever renders */
    ah_shown also;  /* asked first: overrides from elsewhere; .find NULL: none */
    ah_text **open; /* paths, in the order in which they were opened */
    size_t n, cap;
    ah_text *before, *after; /* what stands around the prompt's text in the system text */
    ah_text **soon;          /* opened once the changes are made */
    size_t n_soon;
} ah_disclosure;

/* It must not move afterwards. The binding is referenced. */
void ah_disclosure_init(ah_disclosure *d, ah_binding *binding);
void ah_disclosure_clear(ah_disclosure *d);
ah_status ah_disclosure_open(ah_disclosure *d, ah_slice path, ah_err *err);
/* Opens what the transcript says was opened (`by` of its tools_added entries). */
ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_err *err);
/* Makes d, which was initialised, as open as `from`. */
ah_status ah_disclosure_copy(ah_disclosure *d, const ah_disclosure *from, ah_err *err);
/* The system text: before, the prompt as it was rendered, after. */
void ah_disclosure_text(const ah_disclosure *d, const ah_rendered *r, ah_buf *out);

/* read_section { section_key } of this conversation; the disclosure must outlive the tool's calls. */
ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err);
/* The strategy that gives the model the tools of the sections it reads. */
ah_strategy ah_disclosure_strategy(ah_disclosure *d);

#endif
