/* The whole stream is read, from its first record on. */
#include "host/store_replay.h"

#include "host/store_asks.h"
#include "journal/rebuild.h"

ah_status ah_open_store_replay(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    ah_rebuild r;
    ah_status st = ah_rebuild_init(&r, h->mem, err);

    if (st == AH_OK)
        st = e->vt->read(e, conversation, 1, ah_rebuild_add, &r, err);
    if (st == AH_OK && r.fold.last == 0)
        st = ah_open_store_unknown(s, conversation, err);
    if (st == AH_CANCELLED && r.difference.record)
        st = AH_OK;
    if (st == AH_OK)
        ah_rebuild_print(&r, out);
    ah_rebuild_clear(&r);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the outcome of the replay", err);
    return st;
}
