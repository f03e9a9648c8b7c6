/* Lists of what turns of a conversation in a store changed. The stream is read and folded without
 * being held. Owns nothing. Callers: lua. */
#ifndef AH_HOST_STORE_CHANGES_H
#define AH_HOST_STORE_CHANGES_H

#include "host/keeper.h"

/* Appends the list of changes (state/change_list.h) of the turns `first` to `last`, counted from 1
 * by their records `turn`; first 0: the last turn. AH_USAGE: there is no such conversation, or it
 * has fewer turns. */
ah_status ah_open_store_changes(ah_host *h, ah_open_store *s, ah_slice conversation, int64_t first,
                                int64_t last, ah_buf *out, ah_err *err);

#endif
