/* The functions of SQLite that we use: linked in static programs, else opened at the first use and
 * never closed. sqlite3_config is not among them: a program that embeds us may use the same
 * library. Callers: its floor. */
#ifndef AH_IO_STORE_SQLITE_LIB_H
#define AH_IO_STORE_SQLITE_LIB_H

#include "base/err.h"

#ifdef AH_WITH_SQLITE

#include <sqlite3.h>

#define AH_SQLITE_FUNCTIONS(X)                                                                     \
    X(bind_blob)                                                                                   \
    X(bind_int64)                                                                                  \
    X(bind_null)                                                                                   \
    X(bind_pointer)                                                                                \
    X(bind_text)                                                                                   \
    X(busy_timeout)                                                                                \
    X(changes)                                                                                     \
    X(clear_bindings)                                                                              \
    X(close)                                                                                       \
    X(column_blob)                                                                                 \
    X(column_bytes)                                                                                \
    X(column_double)                                                                               \
    X(column_int64)                                                                                \
    X(column_type)                                                                                 \
    X(compileoption_used)                                                                          \
    X(db_config)                                                                                   \
    X(db_readonly)                                                                                 \
    X(errmsg)                                                                                      \
    X(exec)                                                                                        \
    X(extended_errcode)                                                                            \
    X(finalize)                                                                                    \
    X(get_autocommit)                                                                              \
    X(libversion)                                                                                  \
    X(libversion_number)                                                                           \
    X(open_v2)                                                                                     \
    X(prepare_v2)                                                                                  \
    X(reset)                                                                                       \
    X(result_double)                                                                               \
    X(step)                                                                                        \
    X(system_errno)                                                                                \
    X(threadsafe)                                                                                  \
    X(value_double)                                                                                \
    X(wal_checkpoint_v2)                                                                           \
    X(wal_hook)

#define AH_SQLITE_MEMBER(name) __typeof__(sqlite3_##name) *name;
typedef struct ah_sqlite {
    AH_SQLITE_FUNCTIONS(AH_SQLITE_MEMBER)
} ah_sqlite;
#undef AH_SQLITE_MEMBER

/* Fails with AH_STORE if the library is missing, or is too old or made for one thread. */
ah_status ah_sqlite_load(ah_sqlite *lib, ah_err *err);

#endif

#endif
