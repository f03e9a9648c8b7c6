/* Which schemas OpenAI's strict structured outputs take. */
#ifndef AH_WIRE_OPENAI_STRICT_H
#define AH_WIRE_OPENAI_STRICT_H

#include "base/json.h"

/* The subset that its guide "Structured model outputs" calls supported: objects that allow
 * no other members and require all they name, at most 10 levels, and these keywords alone.
 * `schema` is checked JSON. A schema that does not fit is sent without strict. */
bool ah_openai_fits_strict(ah_slice schema);

#endif
