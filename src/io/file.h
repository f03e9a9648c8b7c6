/* Whole files: read within a limit, and replaced as a whole or not at all. The functions return
 * AH_USAGE, with path and reason, if the file cannot be used. Descriptors that they return belong
 * to the caller. Callers: host, lua. */
#ifndef AH_IO_FILE_H
#define AH_IO_FILE_H

#include "base/buf.h"

/* Appends the bytes of a regular file to out, whose max is the limit. */
ah_status ah_file_read(const char *path, ah_buf *out, ah_err *err);

/* The state of the file. */
typedef struct ah_file_found {
    int why;   /* errno if it could not be opened */
    bool mine; /* it belongs to the user of this process */
} ah_file_found;

/* The same, and sets *found. `follow` false: a link at the end of the path is refused. */
ah_status ah_file_look(const char *path, bool follow, ah_buf *out, ah_file_found *found,
                       ah_err *err);

/* Private files: conversations, recordings, logs. Everything that this program writes for later is
 * readable by its owner only and goes through the next two functions. They follow no link at the
 * end of a path, never block on a pipe, and refuse an existing path that is no regular file. */

/* Replaces the file's contents, synced to the disk; on failure the file is unchanged. The bytes are
 * written beside it and renamed, so it is always a new file: mode 0600, ours, with one name. */
ah_status ah_file_replace(const ah_mem *mem, const char *path, ah_slice bytes, ah_err *err);

/* Opens a descriptor that appends. ANEW: a new, empty file takes the name, so that a process with
 * the old one open sees none of it. APPEND: the existing file, which must be ours and have no other
 * name, and gets mode 0600. `what` completes the error "cannot <what> 'x'". */
typedef enum ah_file_begin { AH_FILE_ANEW, AH_FILE_APPEND } ah_file_begin;
ah_status ah_file_private(const ah_mem *mem, const char *what, const char *path,
                          ah_file_begin begin, int *fd, ah_err *err);

#endif
