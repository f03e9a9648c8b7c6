/* Names of event types, and the JSON form. lua/lua_observe.c makes the form for Lua. */
#include "model/event.h"

#include <stdlib.h>

#include "base/lent.h"

#define NAME_OF(type, name) name,
static const char *const names[AH_EVENT_TYPES] = {AH_EVENT_LIST(NAME_OF)};

const char *ah_event_name(ah_event_type type)
{
    return names[type];
}

ah_event_type ah_event_type_of(ah_slice name)
{
    int t = 0;

    while (t < AH_EVENT_TYPES && !ah_slice_is(name, names[t]))
        t++;
    return (ah_event_type)t;
}

static void put_field(const ah_field *f, ah_buf *out)
{
    ah_json_put_string(out, ah_slice_of(f->name));
    ah_buf_char(out, ':');
    switch (f->kind) {
    case AH_FIELD_STR:
        ah_json_put_string(out, f->s);
        break;
    case AH_FIELD_INT:
        ah_buf_int(out, f->i);
        break;
    case AH_FIELD_NUM:
        ah_json_put_double(out, f->d);
        break;
    case AH_FIELD_BOOL:
        ah_buf_str(out, f->i ? "true" : "false");
        break;
    case AH_FIELD_JSON:
        ah_buf_put(out, f->s);
        break;
    }
}

void ah_event_json(const ah_notice *e, ah_buf *out)
{
    ah_buf_str(out, "{\"type\":\"");
    ah_buf_str(out, names[e->type]);
    ah_buf_char(out, '"');
    if (e->run) {
        ah_buf_str(out, ",\"run\":");
        ah_buf_int(out, e->run);
    }
    if (e->parent) {
        ah_buf_str(out, ",\"parent\":");
        ah_buf_int(out, e->parent);
    }
    ah_buf_str(out, ",\"time\":");
    ah_json_put_double(out, (double)e->time / 1000);
    for (size_t i = 0; i < e->n; i++) {
        ah_buf_char(out, ',');
        put_field(&e->field[i], out);
    }
    ah_buf_char(out, '}');
}

#ifdef AH_LENT

void ah_event_tell(ah_event_fn fn, void *ud, const ah_notice *e)
{
    ah_field *pinned = calloc(e->n + 1, sizeof *pinned);
    ah_notice told = *e;

    for (size_t i = 0; pinned && i < e->n; i++) {
        pinned[i] = e->field[i];
        pinned[i].s = ah_pin(pinned[i].s);
    }
    if (pinned)
        told.field = pinned;
    fn(ud, &told);
    for (size_t i = 0; pinned && i < e->n; i++)
        ah_unpin(pinned[i].s, e->field[i].s);
    free(pinned);
}

#endif
