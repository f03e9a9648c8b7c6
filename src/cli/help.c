/* lua/agenthost/command/usage.lua has the full text. */
#include "cli/help.h"

#include "cli/options.h"

static void help_option(FILE *out, const ah_option_row *opt)
{
    char left[40], letter[] = {'-', opt->letter, ',', ' ', 0};

    snprintf(left, sizeof left, "%s--%s%s%s", opt->letter ? letter : "    ", opt->name,
             opt->value ? " " : "", opt->value ? opt->value : "");
    fprintf(out, "  %-20s%s\n", left, opt->doc);
}

void ah_help(FILE *out)
{
    fputs("Usage: agenthost [options] script.lua [args...]     (- reads standard input)\n"
          "       agenthost [options] -e CODE [args...]\n"
          "       agenthost COMMAND [options] ...\n\n"
          "Options:\n",
          out);
    for (int i = 0; i < AH_OPTIONS; i++)
        help_option(out, &ah_option_table[i]);
}
