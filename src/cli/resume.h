/* The findings of a program: the script of a conversation, and how to go on with it
 * (lua/agenthost/command/resume.lua), or its own member `answer`, to run as a script (prompt.lua).
 * The program returns it as lines NAME or NAME VALUE; the value of `words` may have several lines,
 * and is the last one. Owns its text. Callers: its floor. */
#ifndef AH_CLI_RESUME_H
#define AH_CLI_RESUME_H

#include <stdbool.h>

typedef struct ah_resume {
    char *text; /* NULL: nothing was found; the strings below are parts of it, or NULL */
    const char *script, *folder, *conversation, *base, *store, *give_up, *model;
    char *words; /* the next question */
    const char *env_file, *record, *replay;
    const char *answer; /* in place of a script: what the member `answer` is called with */
    bool take, json, jsonl;
} ah_resume;

/* Reads what the program returned. Returns false if it is something else; *lost is true if there
 * was no memory. */
bool ah_resume_take(ah_resume *r, const char *said, bool *lost);
void ah_resume_clear(ah_resume *r);

#endif
