/* Programs are passed to a host as the arguments of the first one, start.lua, and are called by a
 * line of Lua. */
#include "cli/programs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* argv is not const, but is never written to. */
static char *loose(const char *s)
{
    return (char *)(uintptr_t)s;
}

static const ah_program *find(const char *name)
{
    const ah_program *p = ah_programs;

    while (p->name && strcmp(p->name, name) != 0)
        p++;
    return p;
}

/* Runs the code with the name and the text of each of the list. As ah_load. */
static ah_status load_with(ah_host *host, const char *code, size_t len, const ah_program *list)
{
    ah_status st;
    char **argv;
    int n = 0;

    while (list[n].name)
        n++;
    if (!(argv = malloc(2 * (size_t)n * sizeof *argv)))
        return AH_NOMEM;
    for (int i = 0; i < n; i++) {
        argv[2 * i] = loose(list[i].name);
        argv[2 * i + 1] = loose(list[i].text);
    }
    st = ah_load(host, "agenthost", code, len, 2 * n, argv);
    free(argv);
    return st;
}

ah_status ah_program_open(ah_host *host)
{
    const ah_program *start = find("start");

    return load_with(host, start->text, start->len, ah_programs);
}

ah_status ah_program_pages(ah_host *host)
{
    static const char code[] = "require('agenthost.command').add(...)";

    return load_with(host, code, sizeof code - 1, ah_pages);
}

ah_status ah_program_call(ah_host *host, const char *name, const char *member, int argc,
                          const char *const *argv)
{
    static const char code[] = "return require('agenthost.command').call(...)";
    char **all = malloc(((size_t)argc + 2) * sizeof *all);
    ah_status st;

    if (!all)
        return AH_NOMEM;
    all[0] = loose(name);
    all[1] = loose(member);
    for (int i = 0; i < argc; i++)
        all[i + 2] = loose(argv[i]);
    st = ah_load(host, "agenthost", code, sizeof code - 1, argc + 2, all);
    free(all);
    return st;
}

const char *ah_program_near(const ah_program_door *door, const char *word, const char *names)
{
    const char *argv[] = {word, names}, *near = NULL;
    ah_host *host = door->host(door->ud);

    if (host && ah_program_call(host, "near", "", 2, argv) == AH_OK)
        near = ah_returned(host);
    return near && *near ? near : NULL;
}
