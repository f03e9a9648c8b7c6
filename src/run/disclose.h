/* Progressive disclosure (seed 000): the tool `read_section`, with which the model reads
 * what a prompt shows as a summary. What reading a section brings beside its content, the
 * tools and the sections to open, is ah_binding_read's to say and a strategy's to do. */
#ifndef AH_RUN_DISCLOSE_H
#define AH_RUN_DISCLOSE_H

#include "prompt/prompt.h"
#include "run/dispatch.h"

#define AH_READ_SECTION "read_section"

/* read_section { section_key } of this binding, which it references. `shown` is copied; what
 * it points to must outlive the tool; NULL: sections decide for themselves. */
ah_status ah_read_section_tool(ah_binding *b, const ah_shown *shown, ah_tool **out, ah_err *err);

#endif
