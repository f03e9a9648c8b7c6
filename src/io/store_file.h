/* The file of a store before SQLite sees it: its folder, its rights, its filesystem and its first
 * bytes. Nothing is written to a file that is refused. Callers: its floor. */
#ifndef AH_IO_STORE_FILE_H
#define AH_IO_STORE_FILE_H

#include <sys/types.h>

#include "base/err.h"

enum {
    AH_STORE_FILE_ID = 0x61686a31, /* application_id of a store: "ahj1" */
    AH_STORE_FILE_FORMAT = 1,      /* user_version: the least format that a reader must know */
    AH_STORE_FILE_PATH = 4096      /* bytes of a path */
};

typedef struct ah_store_file {
    char path[AH_STORE_FILE_PATH];
    dev_t device;
    ino_t inode;
    bool made; /* it was missing; it is empty now */
} ah_store_file;

/* Finds or makes the file. It is not opened if it is there, as closing a descriptor of it would
 * end the locks of SQLite in this process. */
ah_status ah_store_file_find(ah_slice path, bool create, bool force, ah_store_file *out,
                             ah_err *err);
/* Makes an empty file with the rights of a store. True: it is there; *made: it was missing. False:
 * errno has the reason. */
bool ah_store_file_make(const char *path, bool *made);
/* Reads the first bytes of a file that this process has not opened. AH_STORE: not a store. */
ah_status ah_store_file_check(const ah_store_file *f, bool create, ah_err *err);
/* True if the path leads to the file that was found. */
bool ah_store_file_is_there(const ah_store_file *f);
/* Opens "<path>-locks" (0600), and returns the descriptor; -1 with *err set. */
int ah_store_file_locks(const char *path, ah_err *err);

#endif
