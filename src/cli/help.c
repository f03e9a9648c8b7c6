/* What the tables do not hold stands here: environment, exit codes, examples. That of a command is
 * lua/agenthost/command/help.lua; this one needs no Lua. */
#include "cli/help.h"

#include "cli/options.h"

static void help_option(FILE *out, const ah_option_row *opt)
{
    char left[40], letter[] = {'-', opt->letter, ',', ' ', 0};

    snprintf(left, sizeof left, "%s--%s%s%s", opt->letter ? letter : "    ", opt->name,
             opt->value ? " " : "", opt->value ? opt->value : "");
    fprintf(out, "  %-20s%s\n", left, opt->help);
}

static void help_options(FILE *out, ah_command command)
{
    fputs("\nOptions:\n", out);
    for (int i = 0; i < AH_OPTIONS; i++)
        if (ah_command_takes(command, (ah_option_id)i))
            help_option(out, &ah_option_table[i]);
}

void ah_help(FILE *out)
{
    fputs("agenthost runs LLM agents whose tools are written in Lua.\n\n"
          "Usage: agenthost [options] script.lua [args...]     (- reads standard input)\n"
          "       agenthost [options] -e CODE [args...]\n"
          "\nCommands: agenthost COMMAND [options] ...            (agenthost COMMAND --help)\n",
          out);
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        fprintf(out, "  %-20s%s\n", ah_command_table[i].name, ah_command_table[i].help);
    help_options(out, AH_COMMAND_RUN);
    fputs("Words behind a script are its own or its agent's. Messages go to stderr.\n\n"
          "Environment:\n"
          "  AGENTHOST_MODEL   the model where neither --model nor the script names one\n"
          "  OPENAI_API_KEY, ANTHROPIC_API_KEY    the providers' keys\n"
          "  OPENAI_BASE_URL, ANTHROPIC_BASE_URL  servers that speak as theirs do\n"
          "  AGENTHOST_CLAUDE, NO_COLOR       the claude command (else by PATH); no colours\n"
          "  XDG_CONFIG_HOME, XDG_STATE_HOME  hold agenthost/config and agenthost/trusted\n\n"
          "Exit codes:\n"
          "  0         the script ended well\n"
          "  1         the script failed, or standard output could not be written\n"
          "  2         wrong usage, or a file that was named cannot be read\n"
          "  3         the provider or the network failed\n"
          "  4         a limit was reached: iterations, deadline, budget, loop\n"
          "  5         a person was to respond to an ask, and nobody was there\n"
          "  130, 143  ended by SIGINT (Ctrl-C) or SIGTERM; a second one ends at once\n\n"
          "Examples:\n"
          "    agenthost -e 'print(ah.run { model = \"demo/echo\", \"Hello\" })'\n"
          "    OPENAI_API_KEY=... agenthost --model openai/gpt-4o agent.lua \"What is new?\"\n"
          "    agenthost check agent.lua && agenthost --json agent.lua | jq -r .reply.text\n",
          out);
}
