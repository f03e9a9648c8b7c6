/* Overrides: other words for a prompt's sections and tools, kept apart from the script.
 *
 *   { "ns/key": { "sections": { "path": { "hash", "template", "summary", "visibility" } },
 *                 "tools":    { "name": { "hash", "description" } } } }
 *
 * Each names the hash of the original it was written for. Where that has changed, where
 * there is no such section or tool, or where it does not accept overrides, the override is
 * not applied and the log gets a warning. Other mistakes are AH_PROMPT_VALIDATION. */
#ifndef AH_PROMPT_OVERRIDES_H
#define AH_PROMPT_OVERRIDES_H

#include "prompt/prompt.h"

/* Applies those of this prompt, whose nodes are complete but unchecked (ah_prompt_new). */
ah_status ah_overrides_apply(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_err *err);

/* { "sections": { path: hash }, "tools": { name: hash } } of the originals; a hash is 16
 * digits of the 64-bit FNV-1a of the definition's canonical text. */
void ah_prompt_hashes(const ah_prompt *p, ah_buf *out);

#endif
