/* Prompts: a tree of sections with its tools, checked as a whole (ah_prompt), and a
 * prompt with its parameters, which is what one run has of it (ah_binding). Rendering
 * is a pure function of the prompt, the parameters and what is open.
 *
 * Sections come depth-first, in the order they were given. The title of a section is a
 * heading, "## " at the first level and one sign more at each further one, "######" at
 * most. Blocks are parted by an empty line; there is no numbering, and tools are not
 * listed. A disabled section gives nothing, nor does what is below it. A summarised one
 * gives its summary and how to read it; its tools, and all that is below it, are held back. */
#ifndef AH_PROMPT_PROMPT_H
#define AH_PROMPT_PROMPT_H

#include "base/log.h"
#include "prompt/section.h"

typedef struct ah_prompt ah_prompt;   /* immutable, reference-counted */
typedef struct ah_binding ah_binding; /* reference-counted; used by one thread */

typedef struct ah_prompt_def {
    ah_slice ns, key; /* [a-z0-9][a-z0-9._-]*, at most 128 bytes; .p NULL: none */
    ah_section *const *section;
    size_t n;
    ah_schema *output;  /* borrowed; what answers must be; NULL: anything */
    ah_value resources; /* the owner's; taken on success */
    ah_slice overrides; /* checked JSON, see overrides.h; .p NULL: none */
    const ah_log *log;  /* is told which of them are not applied; NULL: nobody */
} ah_prompt_def;

/* AH_PROMPT_VALIDATION names the place in the details: section_path, tool, param. */
ah_status ah_prompt_new(const ah_mem *mem, const ah_prompt_def *def, ah_prompt **out, ah_err *err);
ah_prompt *ah_prompt_ref(ah_prompt *p);
void ah_prompt_unref(ah_prompt *p); /* NULL is fine */

ah_slice ah_prompt_id(const ah_prompt *p); /* "ns/key", "key", or "" */
ah_schema *ah_prompt_output(const ah_prompt *p);
const ah_value *ah_prompt_resources(const ah_prompt *p);
ah_section *ah_prompt_section(const ah_prompt *p, ah_slice path); /* borrowed; NULL: none such */
/* The path as the prompt has it, valid as long as that; .p NULL: there is no such section. */
ah_slice ah_prompt_path(const ah_prompt *p, ah_slice path);
/* The tool of this name, be it of a disabled or summarised section; borrowed, or NULL. */
ah_tool *ah_prompt_tool(const ah_prompt *p, ah_slice name);
/* The same prompt with overrides; resources stay with the first, which it keeps alive. */
ah_status ah_prompt_override(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_prompt **out,
                             ah_err *err);

/* A tool and the path of the section it comes from; borrowed from the prompt. */
typedef struct ah_section_tool {
    ah_tool *tool;
    ah_slice section;
} ah_section_tool;

/* A rendered prompt. Immutable, reference-counted; keeps the prompt alive. */
typedef struct ah_rendered_prompt {
    const ah_mem *mem;
    size_t refs;
    ah_prompt *prompt;
    ah_text *given; /* the parameters it was rendered with */
    uint8_t *state; /* of each section: off, in full or summarised */
    ah_text *text;
    ah_section_tool *tool;
    size_t n_tools;
    ah_slice *summarized; /* paths, in their order */
    size_t n_summarized;
} ah_rendered_prompt;
ah_rendered_prompt *ah_rendered_prompt_ref(ah_rendered_prompt *r);
void ah_rendered_prompt_unref(ah_rendered_prompt *r); /* NULL is fine */
bool ah_rendered_prompt_has(const ah_rendered_prompt *r, const ah_tool *t);

/* Visibilities that take precedence over the sections' own: the session's overrides. */
typedef struct ah_override_source {
    bool (*find)(void *ud, ah_slice path, ah_visibility *out); /* false: none for this path */
    void *ud;
} ah_override_source;

/* Binds parameters (checked object, copied). A member that names a section by its path and
 * is an object holds the parameters of that section and those below it; all others are
 * for every section that declares them. The nearest counts: the section's own, that of
 * the sections around it, that for all, the schema's default. A name that no section of
 * its scope declares is AH_PROMPT_RENDER with `param`, and the nearest one in the message. */
ah_status ah_binding_new(ah_prompt *p, ah_slice params, ah_binding **out, ah_err *err);
ah_binding *ah_binding_ref(ah_binding *b);
void ah_binding_unref(ah_binding *b); /* NULL is fine */
ah_prompt *ah_binding_prompt(const ah_binding *b);
const ah_mem *ah_binding_mem(const ah_binding *b); /* outlives it */
ah_slice ah_binding_params(const ah_binding *b);   /* as given */

/* *out is the caller's reference: the last rendering itself where nothing has changed since.
 * AH_PROMPT_RENDER (section_path, param in the details) where a section that is not
 * disabled lacks a value or has a wrong one, be it summarised or not. shown may be NULL. */
ah_status ah_binding_render(ah_binding *b, const ah_override_source *shown,
                            ah_rendered_prompt **out, ah_err *err);
/* The same for a caller that renders repeatedly while others render in another way: *out is `was`
 * itself (NULL: none) if nothing has changed since that was made. */
ah_status ah_binding_render_again(ah_binding *b, const ah_override_source *shown,
                                  ah_rendered_prompt *was, ah_rendered_prompt **out, ah_err *err);
/* The same without a text: values are only asked for by switches. */
ah_status ah_binding_tools(ah_binding *b, const ah_override_source *shown, ah_rendered_prompt **out,
                           ah_err *err);

/* opens: true if the section itself was to be shown in full, whatever is around it. shows: true if
 * it and all sections around it were. */
bool ah_rendered_prompt_opens(const ah_rendered_prompt *r, ah_slice path);
bool ah_rendered_prompt_shows(const ah_rendered_prompt *r, ah_slice path);

typedef enum ah_read_kind {
    AH_READ_UNKNOWN,  /* there is no such section, or it is disabled */
    AH_READ_EXPANDED, /* the reader has all that it shows already: its content, no more */
    AH_READ_CONTENT
} ah_read_kind;

/* State of the conversation that reads. A section that `shown` opens need not be open in it:
 * another conversation of the session may have opened it. */
typedef struct ah_section_reader {
    bool (*open)(void *ud, ah_slice path); /* it has the section itself in full, with its tools */
    bool (*offers)(void *ud, const ah_tool *tool); /* it offers this very tool */
    void *ud;
} ah_section_reader;

/* The result of reading one section (seed 000, read_section). */
typedef struct ah_section_content {
    const ah_mem *mem;
    ah_read_kind kind;
    ah_buf content; /* in full with its parameters; what is summarised below it stays so */
    /* CONTENT: the tools that reading it brings, and the sections that must be shown in full
     * for that, in the prompt's order: itself, summarised ones around it, those with tools.
     * Rendering with these as `shown` offers just these tools more. Both are empty where it has
     * no tools: nothing is to be changed then. */
    ah_section_tool *tool;
    size_t n_tools;
    ah_slice *open;
    size_t n_open;
    ah_prompt *prompt; /* keeps what is borrowed */
} ah_section_content;

/* Reads one section. had: NULL if the reader has just what is shown. Fails only if a section's
 * switch does, or a value is missing. *out is to be cleared. */
ah_status ah_binding_read(ah_binding *b, const ah_override_source *shown,
                          const ah_section_reader *had, ah_slice path, ah_section_content *out,
                          ah_err *err);
void ah_section_content_clear(ah_section_content *r);

#endif
