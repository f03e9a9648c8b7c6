/* The table of the kinds of records. */
#include "model/record.h"

#include <stdbool.h>

enum { N = true, I = false };

static const struct {
    const char *name;
    size_t length;
    bool needed;
} kinds[] = {
#define ROW(id, name, need) [AH_RECORD_##id] = {name, sizeof(name) - 1, need},
    AH_RECORD_LIST(ROW)
#undef ROW
};

const char *ah_record_name(ah_record_kind kind)
{
    return kinds[kind].name;
}

ah_record_kind ah_record_kind_of(ah_slice name)
{
    int k = 0;

    while (k < AH_RECORD_KINDS &&
           (name.n != kinds[k].length || memcmp(name.p, kinds[k].name, name.n) != 0))
        k++;
    return (ah_record_kind)k;
}

bool ah_record_needed(ah_record_kind kind)
{
    return kinds[kind].needed;
}

const char *ah_stream_kind_name(ah_stream_kind kind)
{
    static const char *const names[] = {[AH_STREAM_CONVERSATION] = "conversation",
                                        [AH_STREAM_SESSION] = "session",
                                        [AH_STREAM_BUDGET] = "budget",
                                        [AH_STREAM_FILES] = "files"};

    return names[kind];
}

bool ah_stream_has(ah_stream_kind stream, ah_record_kind kind)
{
    static const ah_record_kind own[] = {[AH_STREAM_SESSION] = AH_RECORD_SESSION,
                                         [AH_STREAM_BUDGET] = AH_RECORD_SPENT,
                                         [AH_STREAM_FILES] = AH_RECORD_WRITTEN};

    if (kind == AH_RECORD_OPENED || kind == AH_RECORD_CHECKPOINT || kind == AH_RECORD_LEASE)
        return true;
    if (stream == AH_STREAM_CONVERSATION)
        return kind != AH_RECORD_SPENT && kind != AH_RECORD_WRITTEN;
    return kind == own[stream];
}
