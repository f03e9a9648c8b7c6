/* Brief declarations and `pick_tools` (seed 004). A conversation with `brief` in its rules declares
 * its tools by their brief descriptions, without parameters; the model picks those that it wants in
 * full. The transcript records the picks: tools_added entries with `picked` in their `by`
 * (docs/reference/transcript.md). run/inject.c decides which tools are declared in brief. Keeps no
 * state of its own. Callers: lua. */
#ifndef AH_RUN_PICK_H
#define AH_RUN_PICK_H

#include "run/inject.h"

#define AH_PICK_TOOLS "pick_tools"

/* The tool pick_tools { tools }; works in any run that calls it. */
ah_status ah_pick_tool(const ah_mem *mem, ah_tool **out, ah_err *err);
/* The strategy of a conversation with `brief`. A successful call of a tool declared in brief picks
 * that tool. At the end of a run the picked tools are declared in brief again, unless the rules
 * keep the picks. */
ah_strategy ah_pick_strategy(void);
/* Picks in the registry the tools that the transcript, which names them, records as picked. */
void ah_picks_replay(ah_registry *registry, const ah_transcript *t);

#endif
