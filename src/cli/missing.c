/* Searches the script's folder for a name similar to the given one. It reads names only, and a
 * limited number of them. */
#include "cli/missing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bytes.h"

enum {
    MAX_ENTRIES = 10000, /* entries of a folder that are compared */
    MAX_NAMES = 4 << 20, /* bytes of their names */
    MAX_PATH = 512
};

int ah_unreadable(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return 0;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? EISDIR : 0;
}

/* Lists the names of a folder, one per line. */
static void list_names(DIR *dir, ah_bytes *out)
{
    struct dirent *entry;

    for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)); i++) {
        if (strchr(entry->d_name, '\n'))
            continue;
        ah_bytes_str(out, entry->d_name);
        ah_bytes_char(out, '\n');
    }
    ah_bytes_char(out, '\0');
}

/* The file in the path's folder with the most similar name; "" if none is similar. */
static void near_file(const char *path, const ah_program_door *programs, char out[MAX_PATH])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *near = NULL;
    char folder[MAX_PATH];
    ah_bytes names;
    DIR *dir;

    *out = '\0';
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 2,
             slash ? path : "./");
    if (strlen(path) >= MAX_PATH || !(dir = opendir(folder)))
        return;
    ah_bytes_init(&names, MAX_NAMES);
    list_names(dir, &names);
    if (ah_bytes_ok(&names))
        near = ah_program_near(programs, name, names.data);
    if (near)
        snprintf(out, MAX_PATH, "%.*s%s", (int)(name - path), path, near);
    ah_bytes_clear(&names);
    closedir(dir);
}

void ah_advise(const char *path, const char *near, const ah_program_door *programs, char *out,
               size_t size)
{
    char lua[MAX_PATH], file[MAX_PATH];

    if (near) {
        snprintf(out, size, "Did you mean %s?", near);
        return;
    }
    snprintf(lua, sizeof lua, "%.500s.lua", path);
    near_file(path, programs, file);
    if (ah_unreadable(lua) == 0)
        snprintf(out, size, "Did you mean '%s'?", lua);
    else if (*file && ah_unreadable(file) == 0)
        snprintf(out, size, "Did you mean '%s'?", file);
    else
        snprintf(out, size,
                 "Give the path of a Lua script, or - to read one from standard input; see "
                 "agenthost --help.");
}
