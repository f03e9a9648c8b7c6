/* Each shell gets one function: options of the command that stands on the line, the words
 * of an option's value, commands and *.lua files elsewhere, and behind the script the
 * shell's own files. Help texts hold no single quotes (bash and fish quote with them) and
 * no brackets or colons in zsh's sense, which are escaped. */
#include "cli/completion.h"

#include <string.h>

#include "cli/options.h"

static bool is_end(int id)
{
    return id == AH_OPTION_END;
}

/* "-v --verbose" of each option of a command. */
static void flags(FILE *out, ah_command command)
{
    const char *between = "";

    for (int i = 0; i < AH_OPTIONS; i++) {
        const ah_option_row *opt = &ah_option_table[i];

        if (is_end(i) || !ah_command_takes(command, (ah_option_id)i))
            continue;
        if (opt->letter) {
            fprintf(out, "%s-%c", between, opt->letter);
            between = " ";
        }
        fprintf(out, "%s--%s", between, opt->name);
        between = " ";
    }
}

static void command_names(FILE *out)
{
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        fprintf(out, "%s%s", i > AH_COMMAND_RUN + 1 ? " " : "", ah_command_table[i].name);
}

/* -- bash --------------------------------------------------------------------------------- */

/* A provider alone is not the end of a name. */
static void bash_models(FILE *out, const char *names)
{
    fprintf(out,
            "COMPREPLY=($(compgen -W '%s' -- \"$cur\"));"
            " [[ $COMPREPLY == */ ]] && compopt -o nospace 2>/dev/null;",
            names);
}

/* What stands behind an option that wants a value. */
static void bash_values(FILE *out)
{
    for (int i = 0; i < AH_OPTIONS; i++) {
        const ah_option_row *opt = &ah_option_table[i];
        bool file = opt->value && strcmp(opt->value, "FILE") == 0;

        if (!opt->value)
            continue;
        fputs("    ", out);
        if (opt->letter)
            fprintf(out, "-%c|", opt->letter);
        fprintf(out, "--%s) ", opt->name);
        if (opt->words)
            fprintf(out, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"));", opt->words);
        else if (ah_option_some(opt))
            bash_models(out, ah_option_some(opt));
        else if (file)
            fputs("compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"));", out);
        fputs(" return ;;\n", out);
    }
}

/* The words that have a value, for passing over them. */
static void bash_with_value(FILE *out)
{
    const char *between = "";

    for (int i = 0; i < AH_OPTIONS; i++) {
        const ah_option_row *opt = &ah_option_table[i];

        if (!opt->value)
            continue;
        if (opt->letter)
            fprintf(out, "%s-%c", between, opt->letter);
        fprintf(out, "%s--%s", opt->letter ? "|" : between, opt->name);
        between = "|";
    }
}

static void bash(FILE *out)
{
    fputs("# bash completion of agenthost\n"
          "_agenthost() {\n"
          "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= script= i\n"
          "  COMPREPLY=()\n"
          "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "    case ${COMP_WORDS[i]} in\n"
          "    ",
          out);
    bash_with_value(out);
    fputs(") ((i++)) ;;\n    -?*) ;;\n    ", out);
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        fprintf(out, "%s%s", i > AH_COMMAND_RUN + 1 ? "|" : "", ah_command_table[i].name);
    fputs(") [ -z \"$command\" ] && command=${COMP_WORDS[i]} || script=1 ;;\n"
          "    *) script=1 ;;\n"
          "    esac\n"
          "    [ -n \"$script\" ] && break\n"
          "  done\n"
          "  if [ -n \"$script\" ]; then\n"
          "    compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return\n"
          "  fi\n"
          "  case $prev in\n",
          out);
    bash_values(out);
    fputs("  esac\n  case $command:$cur in\n", out);
    for (int i = AH_COMMAND_RUN; i < AH_COMMANDS; i++) {
        fprintf(out, "    %s:-*) COMPREPLY=($(compgen -W '", ah_command_table[i].name);
        flags(out, (ah_command)i);
        fputs("' -- \"$cur\")) ;;\n", out);
    }
    fputs("    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")) ;;\n"
          "    config:*) ;;\n"
          "    models:*) ",
          out);
    bash_models(out, AH_SOME_MODELS);
    fputs(" ;;\n"
          "    mock:*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
          "    *) compopt -o filenames 2>/dev/null\n"
          "      COMPREPLY=($(compgen -f -X '!*.lua' -- \"$cur\") $(compgen -d -- \"$cur\"))\n"
          "      [ -z \"$command\" ] && COMPREPLY+=($(compgen -W '",
          out);
    command_names(out);
    fputs("' -- \"$cur\")) ;;\n"
          "  esac\n"
          "}\n"
          "complete -F _agenthost agenthost\n",
          out);
}

/* -- zsh ---------------------------------------------------------------------------------- */

/* A help text within '...[ ]' of _arguments. */
static void zsh_text(FILE *out, const char *s)
{
    for (; *s; s++) {
        if (strchr("[]:\\", *s))
            fputc('\\', out);
        fputc(*s, out);
    }
}

static void zsh_option(FILE *out, const ah_option_row *opt)
{
    const char *form = opt->value ? "=" : "";

    if (opt->letter)
        fprintf(out, " \\\n      '(-%c --%s)'{-%c%s,--%s%s}'[", opt->letter, opt->name, opt->letter,
                opt->value ? "+" : "", opt->name, form);
    else
        fprintf(out, " \\\n      '--%s%s[", opt->name, form);
    zsh_text(out, opt->help);
    fputc(']', out);
    if (opt->words || ah_option_some(opt))
        fprintf(out, ":%s:(%s)", opt->value, opt->words ? opt->words : ah_option_some(opt));
    else if (opt->value)
        fprintf(out, ":%s:%s", opt->value, strcmp(opt->value, "FILE") == 0 ? "_files" : " ");
    fputc('\'', out);
}

static void zsh_command(FILE *out, ah_command command, const char *operands)
{
    const char *name = ah_command_table[command].name;

    fprintf(out, "    %s) _arguments", *name ? name : "*");
    for (int i = 0; i < AH_OPTIONS; i++)
        if (!is_end(i) && ah_command_takes(command, (ah_option_id)i))
            zsh_option(out, &ah_option_table[i]);
    fprintf(out, "%s ;;\n", operands);
}

#define ZSH_SCRIPT " \\\n      '1:script:_files -g \"*.lua\"' '*:argument:_files'"
#define ZSH_MOCK   " \\\n      '1:script:_files -g \"*.(lua|json)\"'"

static void zsh(FILE *out)
{
    fputs("#compdef agenthost\n"
          "_agenthost() {\n"
          "  local -a commands=(\n",
          out);
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        fprintf(out, "    '%s:%s'\n", ah_command_table[i].name, ah_command_table[i].help);
    fputs("  )\n"
          "  local command=${words[2]}\n"
          "  if (( CURRENT > 2 )) && [[ -n ${commands[(r)$command:*]} ]]; then\n"
          "    words=(\"${(@)words[2,-1]}\")\n"
          "    (( CURRENT-- ))\n"
          "  else\n"
          "    command=\n"
          "  fi\n"
          "  case $command in\n",
          out);
    zsh_command(out, AH_COMMAND_TOOLS, ZSH_SCRIPT);
    zsh_command(out, AH_COMMAND_CHECK, ZSH_SCRIPT);
    zsh_command(out, AH_COMMAND_MOCK, ZSH_MOCK);
    zsh_command(out, AH_COMMAND_MODELS, " \\\n      '1:provider/model:(" AH_SOME_MODELS ")'");
    zsh_command(out, AH_COMMAND_CONFIG, "");
    zsh_command(out, AH_COMMAND_COMPLETION, " \\\n      '1:shell:(bash zsh fish)'");
    zsh_command(out, AH_COMMAND_RUN,
                " \\\n      '1:script or command:{ _files -g \"*.lua\"; _describe command commands }'"
                " '*:argument:_files'");
    fputs(
        "  esac\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _agenthost ]; then _agenthost \"$@\"; else compdef _agenthost agenthost; fi\n",
        out);
}

/* -- fish ---------------------------------------------------------------------------------- */

static void fish_option(FILE *out, const ah_option_row *opt, ah_command command)
{
    const char *name = ah_command_table[command].name;

    fputs("complete -c agenthost -n '", out);
    if (*name) {
        fprintf(out, "__fish_seen_subcommand_from %s", name);
    } else {
        fputs("not __fish_seen_subcommand_from ", out);
        command_names(out);
    }
    fputc('\'', out);
    if (opt->letter)
        fprintf(out, " -s %c", opt->letter);
    fprintf(out, " -l %s", opt->name);
    if (opt->words || ah_option_some(opt))
        fprintf(out, " -x -a '%s'", opt->words ? opt->words : ah_option_some(opt));
    else if (opt->value)
        fputs(strcmp(opt->value, "FILE") == 0 ? " -r -F" : " -x", out);
    fprintf(out, " -d '%s'\n", opt->help);
}

static void fish(FILE *out)
{
    fputs("# fish completion of agenthost\n", out);
    for (int i = AH_COMMAND_RUN + 1; i < AH_COMMANDS; i++)
        fprintf(out, "complete -c agenthost -n __fish_is_first_token -a %s -d '%s'\n",
                ah_command_table[i].name, ah_command_table[i].help);
    fputs("complete -c agenthost -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'\n"
          "complete -c agenthost -n '__fish_seen_subcommand_from models' -x -a '" AH_SOME_MODELS "'\n",
          out);
    for (int c = 0; c < AH_COMMANDS; c++)
        for (int i = 0; i < AH_OPTIONS; i++)
            if (!is_end(i) && ah_command_takes((ah_command)c, (ah_option_id)i))
                fish_option(out, &ah_option_table[i], (ah_command)c);
}

void ah_completion(FILE *out, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        bash(out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out);
    else
        fish(out);
}
