/* The kind of filesystem that a folder is on. Callers: its floor. */
#ifndef AH_IO_DISK_KIND_H
#define AH_IO_DISK_KIND_H

#include <stdint.h>

/* Returns the number by which Linux knows the filesystem (statfs(2), f_type); 0: unknown. */
uint32_t ah_disk_kind(const char *path);

#endif
