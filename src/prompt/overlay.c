#include "prompt/overlay.h"

void ah_overlay_init(ah_overlay *o, const ah_mem *mem)
{
    *o = (ah_overlay){.mem = mem};
}

ah_status ah_overlay_stage(ah_overlay *o, ah_entry_kind kind, ah_text *json, ah_err *err)
{
    ah_entry *e = json ? ah_grow(o->mem, o->staged, &o->cap, o->n + 1, sizeof *e) : NULL;

    if (!e) {
        ah_text_unref(json);
        return ah_err_nomem(err);
    }
    o->staged = e;
    e[o->n++] = (ah_entry){kind, json};
    return AH_OK;
}

ah_status ah_overlay_commit(ah_overlay *o, ah_transcript *t, ah_err *err)
{
    size_t before = ah_transcript_mark(t, true);
    ah_status st = AH_OK;

    for (size_t i = 0; i < o->n && st == AH_OK; i++)
        st = ah_transcript_stage(t, o->staged[i].kind, ah_text_ref(o->staged[i].json), err);
    if (st != AH_OK)
        ah_transcript_take_back(t, true, before);
    ah_overlay_drop(o);
    return st;
}

void ah_overlay_drop(ah_overlay *o)
{
    for (size_t i = 0; i < o->n; i++)
        ah_text_unref(o->staged[i].json);
    if (o->mem)
        ah_free(o->mem, o->staged);
    *o = (ah_overlay){.mem = o->mem};
}
