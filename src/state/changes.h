/* Changes to what the model may use and is told, collected before they are made: by a
 * tool call (kept with it until it succeeds), by a strategy, by the script. run/inject.h
 * makes them. */
#ifndef AH_STATE_CHANGES_H
#define AH_STATE_CHANGES_H

#include "model/registry.h"
#include "model/transcript.h"

typedef enum ah_change_kind {
    AH_CHANGE_ADD,     /* a tool; a taken name is a conflict */
    AH_CHANGE_REPLACE, /* a tool, in the place of one of its name, if there is one */
    AH_CHANGE_REMOVE,  /* by name */
    AH_CHANGE_NOTE,    /* text at the end of the conversation */
    AH_CHANGE_PROMPT,  /* the system text is another from here on */
    AH_CHANGE_STATE,   /* what a strategy keeps from here on */
    AH_CHANGE_SHOW,    /* the session shows a section in full from here on ... */
    AH_CHANGE_HIDE,    /* ... or as its summary */
    AH_CHANGE_PICK,    /* by name: declared in full from here on (seed 004) */
    AH_CHANGE_UNPICK   /* by name: in brief again */
} ah_change_kind;

typedef struct ah_change {
    ah_change_kind kind;
    ah_tool *tool;   /* ADD, REPLACE; PICK, UNPICK once made: as it is declared then */
    ah_text *text;   /* REMOVE, PICK, UNPICK: the name; NOTE, PROMPT: the text (UTF-8); STATE: the
                          entry; SHOW, HIDE: the path */
    ah_text *by;     /* ADD, REPLACE, PROMPT: provenance, a JSON object, as in
                        docs/reference/transcript.md;     NULL: none */
    bool full;       /* ADD: declared in full where others are in brief */
    bool yields;     /* ADD: left out where there is no room, though others must be there */
    bool made;       /* it had an effect (run/inject.c) */
    ah_tool *before; /* the tool that was under its name, as it is declared unless picked */
    bool was_picked; /* and it was */
    const char *warning; /* what is to be told of it, static; NULL: nothing */
    unsigned drift;      /* in what it differs from the stale tool of its name; 0: in nothing */
    bool ours;           /* REMOVE: agenthost itself asks for it */
} ah_change;

typedef struct ah_changes {
    const ah_mem *mem;
    ah_change *item;
    size_t n, cap;
} ah_changes;

void ah_changes_init(ah_changes *c, const ah_mem *mem);
void ah_changes_clear(ah_changes *c);

/* Each takes references of its own. AH_NOMEM is the only failure. */
ah_status ah_changes_add(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err);
ah_status ah_changes_replace(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err);
/* The one or the other: of the name there may be a stale tool, which has only waited for this
 * one. */
ah_status ah_changes_bring(ah_changes *c, const ah_registry *r, ah_tool *tool, ah_text *by,
                           ah_err *err);
ah_status ah_changes_remove(ah_changes *c, ah_slice name, ah_err *err);
ah_status ah_changes_note(ah_changes *c, ah_slice text, ah_err *err);
ah_status ah_changes_prompt(ah_changes *c, ah_slice text, ah_text *by, ah_err *err);
/* strategy: its name, of letters, digits and "_-."; state: checked JSON. */
ah_status ah_changes_state(ah_changes *c, const char *strategy, ah_slice state, ah_err *err);
ah_status ah_changes_show(ah_changes *c, ah_slice path, ah_err *err);
ah_status ah_changes_hide(ah_changes *c, ah_slice path, ah_err *err);
ah_status ah_changes_pick(ah_changes *c, bool picked, ah_slice name, ah_err *err);

/* Takes out the additions whose tool is in the registry with the very same specification, and
 * puts them there: a conversation that goes on gets its handlers back. `brief`: a tool may be
 * there by its brief specification. */
ah_status ah_changes_rebind(ah_changes *c, ah_registry *r, bool brief, ah_err *err);
/* Leaves out the additions that yield, are not in the registry, and find no room beside all others
 * among the `most` tools that it may have. True: there were such. */
bool ah_changes_fit(ah_changes *c, const ah_registry *r, size_t most);

#endif
