/* The engines of stores (base/store.h): memory, and SQLite, which is opened when the first store
 * is. A store of SQLite owns nothing but its handle: the handles of a process on one file share a
 * connection and a thread. Callers: its floor, host, lua. */
#ifndef AH_IO_STORES_H
#define AH_IO_STORES_H

#include "base/store.h"

/* A store in memory, which ends with its handle. Appends are carried out by poll. A second hold of
 * a stream needs `take`, and makes the fence of the first one old. In both engines `wake` may be
 * set later, before the first append. */
ah_status ah_store_memory_new(const ah_mem *mem, void (*wake)(void *ud), void *wake_ud,
                              ah_store **out, ah_err *err);

/* Opens the store in the file `path`. create: a missing file is made (0600), and its missing
 * folders (0700). force: on filesystems on which locks or shared memory may fail, too. `wake` may
 * be called on another thread, and calls nothing of the store. Fails with AH_STORE: SQLite is
 * missing, the file is not a store, is of a newer format, damaged, or not safe from others. */
ah_status ah_store_sqlite_open(const ah_mem *mem, ah_slice path, ah_store_sync sync, bool create,
                               bool force, void (*wake)(void *ud), void *wake_ud, ah_store **out,
                               ah_err *err);
/* True if this build has SQLite, and the library can be opened. */
bool ah_store_sqlite_available(void);
const char *ah_store_sqlite_version(void); /* "none" without the library */

#endif
