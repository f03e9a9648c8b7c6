/* Builds the list of strings for the program. */
#include "cli/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/programs.h"

ah_status ah_line_call(ah_host *host, const char *member, int argc, const char *const *argv,
                       const ah_line *line)
{
    int n = argc + 3 + AH_TOLD + line->argc;
    const char **all = malloc((size_t)n * sizeof *all), **at = all;
    char count[16];
    ah_option_strings told;
    ah_status st;

    if (!all)
        return AH_NOMEM;
    ah_options_tell(&told);
    snprintf(count, sizeof count, "%d", AH_TOLD);
    for (int i = 0; i < argc; i++)
        *at++ = argv[i];
    *at++ = line->settings;
    *at++ = line->configured ? "found" : "";
    *at++ = count;
    memcpy(at, told.word, sizeof told.word);
    at += AH_TOLD;
    for (int i = 0; i < line->argc; i++)
        *at++ = line->argv[i];
    st = ah_program_call(host, "line", member, n, all);
    free(all);
    return st;
}
