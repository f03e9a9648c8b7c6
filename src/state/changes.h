/* Changes of the tools and texts for the model, collected before they are made: by a tool call
 * (kept with it until it succeeds), by a strategy, or by the script. run/inject.h makes them.
 * The list holds references to its tools and texts. Callers: its floor, run, lua. */
#ifndef AH_STATE_CHANGES_H
#define AH_STATE_CHANGES_H

#include "model/registry.h"
#include "model/transcript.h"

typedef enum ah_change_kind {
    AH_CHANGE_ADD,      /* a tool; a taken name is a conflict */
    AH_CHANGE_REPLACE,  /* a tool, in place of one with its name, if any */
    AH_CHANGE_REMOVE,   /* a tool, by name */
    AH_CHANGE_NOTE,     /* text at the end of the conversation */
    AH_CHANGE_PROMPT,   /* another system text from here on */
    AH_CHANGE_STATE,    /* state that a strategy keeps from here on */
    AH_CHANGE_SETTINGS, /* other settings from here on, for another agent that takes over */
    AH_CHANGE_SHOW,     /* the session shows a section in full from here on ... */
    AH_CHANGE_HIDE,     /* ... or as its summary */
    AH_CHANGE_PICK,     /* a tool by name: declared in full from here on (seed 004) */
    AH_CHANGE_UNPICK    /* a tool by name: in brief again */
} ah_change_kind;

typedef struct ah_change {
    ah_change_kind kind;
    ah_tool *tool; /* ADD, REPLACE; PICK, UNPICK once made: the tool as then declared */
    ah_text *text; /* REMOVE, PICK, UNPICK: the name; NOTE, PROMPT: the text (UTF-8); STATE: the
                        entry; SHOW, HIDE: the path */
    ah_text *by; /* ADD, REPLACE, PROMPT: origin, a JSON object as in docs/reference/transcript.md;
                    NULL: none */
    bool full;   /* ADD: declared in full while others are in brief */
    bool yields; /* ADD: left out if there is no room, unlike others */
    bool made;   /* it had an effect (run/inject.c) */
    ah_tool *before;     /* earlier tool of its name, as declared unless picked */
    bool was_picked;     /* the earlier tool was picked */
    const char *warning; /* a warning to emit, static; NULL: none */
    unsigned drift;      /* differences from the stale tool of its name; 0: none */
    bool ours;           /* REMOVE: requested by agenthost itself */
} ah_change;

typedef struct ah_changes {
    const ah_mem *mem;
    ah_change *item;
    size_t n, cap;
} ah_changes;

void ah_changes_init(ah_changes *c, const ah_mem *mem);
void ah_changes_clear(ah_changes *c);

/* Each adds its own references. Fails only with AH_NOMEM. */
ah_status ah_changes_add(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err);
ah_status ah_changes_replace(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err);
/* Adds or replaces: a stale tool of the name may have waited for this one. */
ah_status ah_changes_bring(ah_changes *c, const ah_registry *r, ah_tool *tool, ah_text *by,
                           ah_err *err);
ah_status ah_changes_remove(ah_changes *c, ah_slice name, ah_err *err);
ah_status ah_changes_note(ah_changes *c, ah_slice text, ah_err *err);
ah_status ah_changes_prompt(ah_changes *c, ah_slice text, ah_text *by, ah_err *err);
/* strategy: its name, of letters, digits and "_-."; state: checked JSON. */
ah_status ah_changes_state(ah_changes *c, const char *strategy, ah_slice state, ah_err *err);
ah_status ah_changes_show(ah_changes *c, ah_slice path, ah_err *err);
ah_status ah_changes_hide(ah_changes *c, ah_slice path, ah_err *err);
/* entry: a settings entry, checked JSON. */
ah_status ah_changes_settings(ah_changes *c, ah_slice entry, ah_err *err);
ah_status ah_changes_pick(ah_changes *c, bool picked, ah_slice name, ah_err *err);

/* Appends the changes as a JSON list (docs/reference/journal.md). */
void ah_changes_print(const ah_changes *c, ah_buf *out);
/* Finds the tool of a name. NULL: there is none. */
typedef ah_tool *(*ah_changes_find)(void *ud, ah_slice name); /* borrowed */
/* Adds the changes of such a list (checked JSON) to an empty one. A tool that `find` does not
 * know, or that has another specification, becomes a stale one. AH_STORE: the list is damaged;
 * c is then empty. */
ah_status ah_changes_restage(ah_changes *c, ah_slice list, ah_changes_find find, void *ud,
                             ah_err *err);

/* Removes the additions whose tool is in the registry with an equal specification, and puts
 * their tools there: a continued conversation gets its handlers back. `brief`: a brief
 * specification also counts as equal. */
ah_status ah_changes_rebind(ah_changes *c, ah_registry *r, bool brief, ah_err *err);
/* Leaves out the additions that yield, are not in the registry, and do not fit beside the others
 * among at most `most` tools. Returns true if there were any. */
bool ah_changes_fit(ah_changes *c, const ah_registry *r, size_t most);

#endif
