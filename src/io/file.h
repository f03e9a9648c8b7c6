/* Whole files: read with a limit, replaced as a whole or not at all. */
#ifndef AH_IO_FILE_H
#define AH_IO_FILE_H

#include "base/buf.h"

/* Appends the regular file's bytes to out (whose max is the limit). AH_USAGE where it cannot
 * be read, with the path and why. */
ah_status ah_file_read(const char *path, ah_buf *out, ah_err *err);

/* As it was found. */
typedef struct ah_file_found {
    int why;   /* errno, where it could not be opened */
    bool mine; /* it belongs to the user of this process */
} ah_file_found;

/* The same, and tells how it was found. `follow` false: a link at the end of the path is
 * refused. */
ah_status ah_file_look(const char *path, bool follow, ah_buf *out, ah_file_found *found,
                       ah_err *err);

/* Private files: conversations, recordings, logs. Whatever this program writes for later is for its
 * owner alone, and goes through one of these two. They follow no link at the end of a path, wait
 * for no pipe, and refuse what is there and no regular file. AH_USAGE with the path and why. */

/* The file holds the bytes, synced to the disk, or is as it was: they are written beside it
 * and renamed. It is a new file, whatever was there: mode 0600, ours, without other names. */
ah_status ah_file_replace(const ah_mem *mem, const char *path, ah_slice bytes, ah_err *err);

/* Gives a descriptor that appends. ANEW: a new, empty file takes the name, as above, so that
 * whoever has the old one open sees nothing. APPEND: the file that is there, which must be ours and
 * have no other name; it is made 0600. `what` is for the words: "cannot <what> 'x'". */
typedef enum ah_file_begin { AH_FILE_ANEW, AH_FILE_APPEND } ah_file_begin;
ah_status ah_file_private(const ah_mem *mem, const char *what, const char *path,
                          ah_file_begin begin, int *fd, ah_err *err);

#endif
