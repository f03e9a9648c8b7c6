/* See store_changes.h. journal/turn_changes.h finds the changes. */
#include "host/store_changes.h"

#include "host/store_asks.h"
#include "journal/turn_changes.h"

enum { MAX_OPENED = 64 << 20 /* bytes of the record `opened` */ };

static ah_status count_turn(void *ud, const ah_store_record *r, ah_err *err)
{
    (void)err;
    *(int64_t *)ud += ah_slice_is(r->kind, ah_record_name(AH_RECORD_TURN));
    return AH_OK;
}

/* Fails with AH_USAGE if there is no such conversation. */
static ah_status check_name(ah_host *h, ah_open_store *s, ah_slice conversation, ah_err *err)
{
    ah_status st;
    ah_buf opened;

    ah_buf_init(&opened, h->mem, MAX_OPENED);
    st = ah_open_store_opened(h, s, conversation, &opened, err);
    ah_buf_clear(&opened);
    return st;
}

static ah_status find_last(ah_store *e, ah_slice conversation, int64_t *turn, ah_err *err)
{
    ah_status st = e->vt->read(e, conversation, 1, count_turn, turn, err);

    if (st == AH_OK && *turn == 0)
        st = ah_err_set(err, AH_USAGE, "the conversation '%.*s' has no turns so far",
                        AH_FMT(conversation));
    return st;
}

ah_status ah_open_store_changes(ah_host *h, ah_open_store *s, ah_slice conversation, int64_t first,
                                int64_t last, ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);
    ah_status st = check_name(h, s, conversation, err);
    ah_turn_changes c;

    if (st == AH_OK && first == 0 && (st = find_last(e, conversation, &last, err)) == AH_OK)
        first = last;
    if (st != AH_OK)
        return st;
    st = ah_turn_changes_init(&c, h->mem, first, last, err);
    if (st == AH_OK)
        st = e->vt->read(e, conversation, 1, ah_turn_changes_add, &c, err);
    if (st == AH_CANCELLED || st == AH_OK)
        st = ah_turn_changes_print(&c, out, err);
    ah_turn_changes_clear(&c);
    return st;
}
