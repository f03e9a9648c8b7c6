/* A settings entry of the transcript, parsed once: how the model is called from there on. It
 * borrows from the entry. Callers: its floor. */
#ifndef AH_MODEL_MODEL_SETTINGS_H
#define AH_MODEL_MODEL_SETTINGS_H

#include "base/slice.h"

/* The members of `options` as JSON; p NULL: missing. */
typedef struct ah_model_options {
    ah_slice text; /* the whole object */
    ah_slice temperature, max_tokens, top_p, stop, seed, tool_choice, every_turn, reasoning, cache,
        cache_key, strict;
} ah_model_options;

/* Borrows from the entry. */
typedef struct ah_model_settings {
    ah_slice text; /* the whole entry */
    ah_slice model, output, learned;
    ah_slice given; /* the options before a run changed them for itself */
    ah_model_options options;
} ah_model_settings;

/* An entry with p NULL sets nothing. */
void ah_model_settings_read(ah_slice entry, ah_model_settings *out);

#endif
