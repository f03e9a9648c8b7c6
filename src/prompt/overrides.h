/* Overrides: replacement texts for a prompt's sections and tools, stored outside the script.
 *
 *   { "ns/key": { "sections": { "path": { "hash", "template", "summary", "visibility" } },
 *                 "tools":    { "name": { "hash", "description" } } } }
 *
 * Each has the hash of its original. An override is skipped, with a warning in the log, if its
 * original has changed, does not exist, or does not accept overrides. Other mistakes fail with
 * AH_PROMPT_VALIDATION. Callers: its floor, lua. */
#ifndef AH_PROMPT_OVERRIDES_H
#define AH_PROMPT_OVERRIDES_H

#include "prompt/prompt.h"

/* Applies the overrides of this prompt, whose nodes are complete but unchecked (ah_prompt_new). */
ah_status ah_overrides_apply(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_err *err);

/* Appends { "sections": { path: hash }, "tools": { name: hash } } of the originals; a hash is 16
 * digits of the 64-bit FNV-1a of the definition's canonical text. */
void ah_prompt_hashes(const ah_prompt *p, ah_buf *out);

#endif
