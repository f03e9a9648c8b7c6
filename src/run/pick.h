/* Brief declarations and `pick_tools` (seed 004): a conversation with `brief` in its rules
 * declares its tools by their brief descriptions, without parameters; the model picks those it
 * wants to know in full. What is picked stands in the transcript (docs/reference/transcript.md):
 * the tools_added entries with `picked` in their `by`. Which tools are declared in brief is not
 * decided here but where they are declared (run/inject.c). The Lua floor gives tool and strategy to
 * conversations that are brief; nobody else calls it. */
#ifndef AH_RUN_PICK_H
#define AH_RUN_PICK_H

#include "run/inject.h"

#define AH_PICK_TOOLS "pick_tools"

/* pick_tools { tools }: works in whatever run calls it. */
ah_status ah_pick_tool(const ah_mem *mem, ah_tool **out, ah_err *err);
/* The strategy of a conversation with `brief`: a call that succeeds, of a tool that is declared in
 * brief, picks it, and at the end of a run what was picked is declared in brief again, unless the
 * rules keep it. */
ah_strategy ah_pick_strategy(void);
/* Picks in the registry what the transcript, which names its tools, says is picked. */
void ah_picks_replay(ah_registry *registry, const ah_transcript *t);

#endif
