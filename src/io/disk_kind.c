/* Asks the system for the kind of a filesystem. */
#include "io/disk_kind.h"

#ifdef __linux__

#include <sys/vfs.h>

uint32_t ah_disk_kind(const char *path)
{
    struct statfs s;

    return statfs(path, &s) == 0 ? (uint32_t)s.f_type : 0;
}

#else

uint32_t ah_disk_kind(const char *path)
{
    (void)path;
    return 0;
}

#endif
