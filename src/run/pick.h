/* Brief declarations and `pick_tools` (seed 004): a conversation with `brief` in its rules
 * declares its tools by their brief descriptions, without parameters; the model picks those it
 * wants to know in full. What is picked stands in the transcript (docs/transcript.md): the
 * tools_added entries with `picked` in their `by`. Which tools are declared in brief is not
 * decided here but where they are declared (run/inject.c). */
#ifndef AH_RUN_PICK_H
#define AH_RUN_PICK_H

#include "run/dispatch.h"

#define AH_PICK_TOOLS "pick_tools"

/* pick_tools { tools }: works in whatever run calls it. */
ah_status ah_pick_tool(const ah_mem *mem, ah_tool **out, ah_err *err);
/* An answered call: one that succeeded, of a tool that is declared in brief, picks it. */
ah_status ah_picks_note(ah_call *call, ah_err *err);
/* Picks in the registry what the transcript, which names its tools, says is picked. */
void ah_picks_replay(ah_registry *registry, const ah_transcript *t);
/* The run is over: what was picked is declared in brief again, unless its rules keep it. */
void ah_picks_end(struct ah_run *run);

#endif
