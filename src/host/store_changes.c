/* See store_changes.h. journal/turn_changes.h finds the changes. */
#include "host/store_changes.h"

#include "host/store_asks.h"
#include "host/store_fork.h"
#include "journal/turn_changes.h"

static ah_status find_last(ah_open_store *s, ah_slice conversation, int64_t *turn, ah_err *err)
{
    ah_status st = ah_open_store_turns(s, conversation, turn, err);

    if (st == AH_OK && *turn == 0)
        st = ah_err_set(err, AH_USAGE, "the conversation '%.*s' has no turns so far",
                        AH_FMT(conversation));
    return st;
}

ah_status ah_open_store_changes(ah_host *h, ah_open_store *s, ah_slice conversation, int64_t first,
                                int64_t last, ah_buf *out, ah_err *err)
{
    ah_turn_changes c;
    ah_status st;

    if (first == 0) {
        if ((st = find_last(s, conversation, &last, err)) != AH_OK)
            return st;
        first = last;
    }
    st = ah_turn_changes_init(&c, h->mem, first, last, err);
    if (st == AH_OK)
        st = ah_open_store_read(s, conversation, 1, ah_turn_changes_add, &c, err);
    if (st == AH_CANCELLED || st == AH_OK)
        st = ah_turn_changes_print(&c, out, err);
    ah_turn_changes_clear(&c);
    return st;
}
