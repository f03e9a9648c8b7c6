/* Whole files: read with a limit, replaced as a whole or not at all. */
#ifndef AH_BASE_FILE_H
#define AH_BASE_FILE_H

#include "base/buf.h"

/* Appends the regular file's bytes to out (whose max is the limit). AH_USAGE where it cannot
 * be read, with the path and why. */
ah_status ah_file_read(const char *path, ah_buf *out, ah_err *err);

/* The file holds the bytes, synced to the disk, or is as it was: they are written beside it
 * and renamed. A new file is readable by its owner only. AH_USAGE where that fails. */
ah_status ah_file_replace(const ah_mem *mem, const char *path, ah_slice bytes, ah_err *err);

#endif
