/* Prompts: a tree of sections with its tools, checked as a whole (ah_prompt), and a prompt with
 * parameters, as one run uses it (ah_binding). Rendering is a pure function of prompt, parameters
 * and visibilities. Both hold references to what they use.
 *
 * Sections are rendered depth-first, in the order given. A title is a heading, "## " at the
 * first level and one sign more at each further level, "######" at most. Blocks are separated by
 * an empty line; there are no numbers, and tools are not listed. A disabled section renders
 * nothing, and neither do its descendants. A summarized one renders its summary and how to read
 * it; its tools and descendants are held back. Callers: its floor, run, lua. */
#ifndef AH_PROMPT_PROMPT_H
#define AH_PROMPT_PROMPT_H

#include "base/log.h"
#include "prompt/section.h"

typedef struct ah_prompt ah_prompt;   /* immutable, reference-counted */
typedef struct ah_binding ah_binding; /* reference-counted */

typedef struct ah_prompt_def {
    ah_slice ns, key; /* [a-z0-9][a-z0-9._-]*, at most 128 bytes; .p NULL: none */
    ah_section *const *section;
    size_t n;
    ah_schema *output;  /* borrowed schema of the answer; NULL: anything */
    ah_value resources; /* of the owner; taken on success */
    ah_slice overrides; /* checked JSON, see overrides.h; .p NULL: none */
    const ah_log *log;  /* receives warnings about skipped overrides; NULL: none */
} ah_prompt_def;

/* Fails with AH_PROMPT_VALIDATION and the place in the details: section_path, tool, param. */
ah_status ah_prompt_new(const ah_mem *mem, const ah_prompt_def *def, ah_prompt **out, ah_err *err);
ah_prompt *ah_prompt_ref(ah_prompt *p);
void ah_prompt_unref(ah_prompt *p); /* NULL does nothing */

ah_slice ah_prompt_id(const ah_prompt *p); /* "ns/key", "key", or "" */
ah_schema *ah_prompt_output(const ah_prompt *p);
const ah_value *ah_prompt_resources(const ah_prompt *p);
ah_section *ah_prompt_section(const ah_prompt *p, ah_slice path); /* borrowed; NULL: unknown */
/* Returns the prompt's own copy of the path, valid as long as the prompt; .p NULL: unknown. */
ah_slice ah_prompt_path(const ah_prompt *p, ah_slice path);
/* Returns the tool of this name, also of a disabled or summarized section; borrowed, or NULL. */
ah_tool *ah_prompt_tool(const ah_prompt *p, ah_slice name);
/* Makes the same prompt with overrides; resources stay with the first prompt, which it keeps
 * alive. */
ah_status ah_prompt_override(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_prompt **out,
                             ah_err *err);

/* A tool and the path of its section; borrowed from the prompt. */
typedef struct ah_section_tool {
    ah_tool *tool;
    ah_slice section;
} ah_section_tool;

/* A rendered prompt. Immutable, reference-counted; keeps the prompt alive. */
typedef struct ah_rendered_prompt {
    const ah_mem *mem;
    size_t refs;
    ah_prompt *prompt;
    ah_text *given; /* parameters of the rendering */
    uint8_t *state; /* of each section: off, in full or summarized */
    ah_text *text;
    ah_section_tool *tool;
    size_t n_tools;
    ah_slice *summarized; /* paths, in order */
    size_t n_summarized;
} ah_rendered_prompt;
ah_rendered_prompt *ah_rendered_prompt_ref(ah_rendered_prompt *r);
void ah_rendered_prompt_unref(ah_rendered_prompt *r); /* NULL does nothing */
bool ah_rendered_prompt_has(const ah_rendered_prompt *r, const ah_tool *t);

/* Visibilities that take precedence over the sections' own: the session's overrides. */
typedef struct ah_override_source {
    bool (*find)(void *ud, ah_slice path, ah_visibility *out); /* false: none for this path */
    void *ud;
} ah_override_source;

/* Binds parameters (checked object, copied). An object member named as a section's path has the
 * parameters of that section and its descendants; all other members apply to every section that
 * declares them. The nearest value counts: the section's own, that of its ancestors, that for
 * all, the schema's default. A name that no section of its scope declares fails with
 * AH_PROMPT_RENDER, with `param`, and the nearest name in the message. */
ah_status ah_binding_new(ah_prompt *p, ah_slice params, ah_binding **out, ah_err *err);
ah_binding *ah_binding_ref(ah_binding *b);
void ah_binding_unref(ah_binding *b); /* NULL does nothing */
ah_prompt *ah_binding_prompt(const ah_binding *b);
const ah_mem *ah_binding_mem(const ah_binding *b); /* outlives the binding */
ah_slice ah_binding_params(const ah_binding *b);   /* as given */

/* Renders. *out is the caller's reference, to the last rendering if nothing has changed since.
 * Fails with AH_PROMPT_RENDER (section_path, param in the details) if a value of an enabled
 * section is missing or wrong, even if it is summarized. shown may be NULL. */
ah_status ah_binding_render(ah_binding *b, const ah_override_source *shown,
                            ah_rendered_prompt **out, ah_err *err);
/* Renders likewise for a caller that renders repeatedly beside others: *out is `was` itself
 * (NULL: none) if nothing has changed since it was made. */
ah_status ah_binding_render_again(ah_binding *b, const ah_override_source *shown,
                                  ah_rendered_prompt *was, ah_rendered_prompt **out, ah_err *err);
/* Renders likewise without the text: only switches need values. */
ah_status ah_binding_tools(ah_binding *b, const ah_override_source *shown, ah_rendered_prompt **out,
                           ah_err *err);

/* opens: true if the section itself was to be shown in full, regardless of its ancestors. shows:
 * true if this holds for it and all its ancestors. */
bool ah_rendered_prompt_opens(const ah_rendered_prompt *r, ah_slice path);
bool ah_rendered_prompt_shows(const ah_rendered_prompt *r, ah_slice path);

typedef enum ah_read_kind {
    AH_READ_UNKNOWN,  /* the section is unknown or disabled */
    AH_READ_EXPANDED, /* the reader has everything that it shows: only its content */
    AH_READ_CONTENT
} ah_read_kind;

/* State of the conversation that reads. A section that `shown` opens need not be open in it,
 * because another conversation of the session may have opened it. */
typedef struct ah_section_reader {
    /* True: it has the section itself in full, with its tools */
    bool (*open)(void *ud, ah_slice path);
    bool (*offers)(void *ud, const ah_tool *tool); /* True: it offers this very tool */
    void *ud;
} ah_section_reader;

/* The result of reading a section (seed 000, read_section). */
typedef struct ah_section_content {
    const ah_mem *mem;
    ah_read_kind kind;
    ah_buf content; /* in full with its parameters; summarized descendants stay so */
    /* CONTENT: the tools that the reading adds, and the sections that must be shown in full for
     * them, in the prompt's order: itself, summarized ancestors, and descendants with tools.
     * Rendering with these as `shown` offers exactly these tools more. Both are empty if it has
     * no tools: nothing then changes. */
    ah_section_tool *tool;
    size_t n_tools;
    ah_slice *open;
    size_t n_open;
    ah_prompt *prompt; /* keeps the borrowed data alive */
} ah_section_content;

/* Reads a section. had NULL: the reader has exactly what is shown. Fails only if a section's
 * switch fails, or a value is missing. The caller clears *out. */
ah_status ah_binding_read(ah_binding *b, const ah_override_source *shown,
                          const ah_section_reader *had, ah_slice path, ah_section_content *out,
                          ah_err *err);
void ah_section_content_clear(ah_section_content *r);

#endif
