/* The wire of scripted models and of adapters written in Lua: our own form. The request is the
 * transcript's entries as one JSON object, the response a line of JSON a piece (see scripted.c). Its
 * answers come from an owner of the floors above, which makes the adapter; claude.c lowers by it. */
#ifndef AH_WIRE_SCRIPTED_H
#define AH_WIRE_SCRIPTED_H

#include "wire/adapter.h"

/* The owner gives the struct: `base` with vt = &ah_scripted_vt, and these. */
typedef struct ah_scripted {
    ah_adapter base;
    void (*start)(struct ah_scripted *s, struct ah_exchange *x);
    void (*stop)(struct ah_scripted *s, struct ah_exchange *x);
    void (*release)(struct ah_scripted *s); /* frees the struct */
    /* As in the vtable; NULL: nothing to do. */
    void (*rest)(struct ah_scripted *s, const ah_lowered *w);
    void (*leave)(struct ah_scripted *s, const ah_lowered *w);
    /* As in the vtable; NULL: never. */
    ah_status (*stand_in)(struct ah_scripted *s, const struct ah_call *call, ah_tool **out, ah_err *err);
} ah_scripted;

extern const ah_adapter_vt ah_scripted_vt;

#endif
