/* Looks in the script's folder for a name near the one that was given. It reads names only, and
 * sees no more than a bounded number of them. */
#include "cli/missing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/near.h"
#include "cli/options.h"

enum { MAX_ENTRIES = 10000, MAX_PATH = 512 }; /* of a folder that are compared; bytes of a path */

int ah_unreadable(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return 0;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? EISDIR : 0;
}

/* The file in the path's folder whose name is nearest; "" where none is near. */
static void near_file(const char *path, char out[MAX_PATH])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    ah_near near = {.to = ah_slice_of(name)};
    char folder[MAX_PATH];
    struct dirent *entry;
    DIR *dir;

    *out = '\0';
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
    if (strlen(path) >= MAX_PATH || !(dir = opendir(folder)))
        return;
    for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)); i++) {
        size_t cost = near.cost;
        bool was = near.best.p != NULL;

        ah_near_offer(&near, ah_slice_of(entry->d_name));
        if (near.best.p && (!was || near.cost < cost)) /* an entry lives until the next one */
            snprintf(out, MAX_PATH, "%.*s%s", (int)(name - path), path, entry->d_name);
    }
    closedir(dir);
}

void ah_advise(const char *path, char *out, size_t size)
{
    char lua[MAX_PATH], file[MAX_PATH];

    if (ah_options_near(path, lua, sizeof lua)) {
        snprintf(out, size, "Did you mean %s?", lua);
        return;
    }
    snprintf(lua, sizeof lua, "%.500s.lua", path);
    near_file(path, file);
    if (ah_unreadable(lua) == 0)
        snprintf(out, size, "Did you mean '%s'?", lua);
    else if (*file && ah_unreadable(file) == 0)
        snprintf(out, size, "Did you mean '%s'?", file);
    else
        snprintf(out, size,
                 "Give the path of a Lua script, or - to read one from standard input; see "
                 "agenthost --help.");
}
