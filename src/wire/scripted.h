/* The wire of scripted models and of adapters written in Lua, in our own form. The request is the
 * transcript's entries as one JSON object, the response one line of JSON per piece (see
 * scripted.c). Code above src/wire makes the adapter, owns its struct, and produces the answers.
 * Callers: its floor, lua. */
#ifndef AH_WIRE_SCRIPTED_H
#define AH_WIRE_SCRIPTED_H

#include "wire/provider.h"

/* The owner allocates the struct and sets `native.base`, with vt = &ah_scripted_vt, and these
 * fields. */
typedef struct ah_scripted {
    ah_wire_native native;
    ah_service service; /* used as native.service, if it reads lines of another wire */
    void (*start)(struct ah_scripted *s, struct ah_exchange *x);
    void (*stop)(struct ah_scripted *s, struct ah_exchange *x);
    void (*release)(struct ah_scripted *s); /* frees the struct */
    /* As in the vtable; NULL: nothing is done. */
    void (*rest)(struct ah_scripted *s, const ah_wire *w);
    void (*leave)(struct ah_scripted *s, const ah_wire *w);
    bool annotated; /* requests contain the annotations of tools */
    /* As in the vtable; NULL: no doubles. */
    ah_status (*stand_in)(struct ah_scripted *s, const struct ah_call *call, ah_tool **out,
                          ah_err *err);
} ah_scripted;

extern const ah_adapter_vt ah_scripted_vt;

/* The wires whose streams may be the answer, one line of JSON per event; ends with NULL. */
extern const char *const ah_scripted_wires[];
/* Reads the n-th of these wires from now on, instead of our own form. Its provider's name is set
 * already. */
void ah_scripted_read(ah_scripted *s, size_t n);

/* Reads a failure in our own form (the value of `error`, checked JSON). Returns its status.
 * *retry_after_ms is -1 if it has none. */
ah_status ah_scripted_failure(const ah_mem *mem, ah_slice error, int64_t *retry_after_ms,
                              ah_err *err);

#endif
