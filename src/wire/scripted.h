/* The wire of scripted models and of adapters written in Lua: our own form. The request is the
 * transcript's entries as one JSON object, the response a line of JSON a piece (see scripted.c).
 * Its answers come from an owner of the floors above, which makes the adapter. */
#ifndef AH_WIRE_SCRIPTED_H
#define AH_WIRE_SCRIPTED_H

#include "wire/provider.h"

/* The owner gives the struct: `native.base` with vt = &ah_scripted_vt, and these. */
typedef struct ah_scripted {
    ah_wire_native native;
    ah_service service; /* as native.service, where it reads lines of another wire */
    void (*start)(struct ah_scripted *s, struct ah_exchange *x);
    void (*stop)(struct ah_scripted *s, struct ah_exchange *x);
    void (*release)(struct ah_scripted *s); /* frees the struct */
    /* As in the vtable; NULL: nothing to do. */
    void (*rest)(struct ah_scripted *s, const ah_wire *w);
    void (*leave)(struct ah_scripted *s, const ah_wire *w);
    bool annotated; /* requests have the annotations of tools */
    /* As in the vtable; NULL: never. */
    ah_status (*stand_in)(struct ah_scripted *s, const struct ah_call *call, ah_tool **out,
                          ah_err *err);
} ah_scripted;

extern const ah_adapter_vt ah_scripted_vt;

/* The wires whose streams may be the answer, a line of JSON an event; ends with NULL. */
extern const char *const ah_scripted_wires[];
/* From now on it reads the n-th of them instead of our own form. Its provider's name is there. */
void ah_scripted_read(ah_scripted *s, size_t n);

/* A failure in our own form (as the value of `error`), checked JSON. Returns its status.
 * *retry_after_ms: -1 where it does not say. */
ah_status ah_scripted_failure(const ah_mem *mem, ah_slice error, int64_t *retry_after_ms,
                              ah_err *err);

#endif
