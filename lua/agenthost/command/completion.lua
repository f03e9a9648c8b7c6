--- agenthost completion. Each shell gets one function: options of the command that stands on the
-- line, the words of an option's value, commands and *.lua files elsewhere, and behind the script
-- the shell's own files. Help texts hold no single quotes (bash and fish quote with them) and no
-- brackets or colons in zsh's sense, which are escaped.
local ah, use = ...
local tables = use "tables"

-- Models to complete by name: one or more of each provider that is asked by itself, and the demos.
local NAMED = "demo/echo demo/tools demo/quickstart openai/gpt-6.1-sol openai/gpt-4o "
  .. "openai/responses/gpt-6.1-sol anthropic/claude-opus-5-5 anthropic/claude-sonnet-5-5 "
  .. "anthropic/claude-haiku-5-5 gemini/gemini-3.8-flash gemini/gemini-2.5-flash "
  .. "claude_agent_sdk/"

--- With the providers whose models only their server knows.
local function models_to_complete()
  local names = { NAMED }
  for _, provider in ipairs(ah.providers()) do
    local start = provider.name .. "/"
    names[#names + 1] = not (" " .. NAMED):find(" " .. start, 1, true) and start or nil
  end
  return table.concat(names, " ")
end

local MODELS = models_to_complete()

--- Those of a command, in the order of the table, without the one that ends the options.
local function options_of(options, name)
  local own = {}
  for _, option in ipairs(options) do
    own[#own + 1] = option.name and tables.takes(name, option) and option or nil
  end
  return own
end

--- "a b" of the names of commands.
local function names_of(commands, between)
  local names = {}
  for i = 2, #commands do
    names[i - 1] = commands[i].name
  end
  return table.concat(names, between)
end

--- "-v --verbose" of each option.
local function flags(options, between, of)
  local words = {}
  for _, option in ipairs(options) do
    if not of or option[of] then
      words[#words + 1] = option.letter and "-" .. option.letter or nil
      words[#words + 1] = "--" .. option.name
    end
  end
  return table.concat(words, between)
end

--- The values to complete, though there may be others.
local function values_of(option)
  return option.words or option.name == "model" and MODELS or nil
end

-- A template's $(name) is replaced by the text of that name.
local function filled(template, texts)
  return (template:gsub("%$%(([%u_]+)%)", texts))
end

-- -- bash -------------------------------------------------------------------------------------

-- A provider alone is not the end of a name.
local BASH_MODELS = [[COMPREPLY=($(compgen -W '$(NAMES)' -- "$cur"));]]
  .. " [[ $COMPREPLY == */ ]] && compopt -o nospace 2>/dev/null;"

--- What stands behind an option that wants a value.
local function bash_value(option)
  local reply = ""
  if option.words then
    reply = filled([[COMPREPLY=($(compgen -W '$(NAMES)' -- "$cur"));]], { NAMES = option.words })
  elseif values_of(option) then
    reply = filled(BASH_MODELS, { NAMES = values_of(option) })
  elseif option.value == "FILE" then
    reply = [[compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"));]]
  end
  return ("    %s--%s) %s return ;;\n"):format(option.letter and "-" .. option.letter .. "|" or "",
    option.name, reply)
end

local BASH = [=[
# bash completion of agenthost
_agenthost() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= script= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    $(WITH_VALUE)) ((i++)) ;;
    -?*) ;;
    $(COMMANDS_OR)) [ -z "$command" ] && command=${COMP_WORDS[i]} || script=1 ;;
    *) script=1 ;;
    esac
    [ -n "$script" ] && break
  done
  if [ -n "$script" ]; then
    compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); return
  fi
  case $prev in
$(VALUES)  esac
  case $command:$cur in
$(FLAGS)    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
    config:*) ;;
    trust:*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
    models:*) $(MODELS) ;;
    mock:*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    *) compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -X '!*.lua' -- "$cur") $(compgen -d -- "$cur"))
      [ -z "$command" ] && COMPREPLY+=($(compgen -W '$(COMMANDS)' -- "$cur")) ;;
  esac
}
complete -F _agenthost agenthost
]=]

local function bash(commands, options)
  local values, of_commands = {}, {}
  for _, option in ipairs(options) do
    values[#values + 1] = option.value and bash_value(option) or nil
  end
  for i, command in ipairs(commands) do
    of_commands[i] = ("    %s:-*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n"):format(
      command.name, flags(options_of(options, command.name), " "))
  end
  return filled(BASH, { WITH_VALUE = flags(options, "|", "value"),
    COMMANDS = names_of(commands, " "), COMMANDS_OR = names_of(commands, "|"),
    VALUES = table.concat(values), FLAGS = table.concat(of_commands),
    MODELS = filled(BASH_MODELS, { NAMES = MODELS }) })
end

-- -- zsh --------------------------------------------------------------------------------------

local function zsh_option(option)
  local form = option.value and "=" or ""
  local left = ("'--%s%s["):format(option.name, form)
  if option.letter then
    left = ("'(-%s --%s)'{-%s%s,--%s%s}'["):format(option.letter, option.name, option.letter,
      option.value and "+" or "", option.name, form)
  end
  local value = ""
  if values_of(option) then
    value = (":%s:(%s)"):format(option.value, values_of(option))
  elseif option.value then
    value = (":%s:%s"):format(option.value, option.value == "FILE" and "_files" or " ")
  end
  return (" \\\n      %s%s]%s'"):format(left, option.help:gsub("[%[%]:\\]", "\\%0"), value)
end

-- In the order of the function's cases, and what follows the options.
local ZSH_CASES = {
  { "tools", [['1:script:_files -g "*.lua"' '*:argument:_files']] },
  { "check", [['1:script:_files -g "*.lua"' '*:argument:_files']] },
  { "mock", [['1:script:_files -g "*.(lua|json)"']] },
  { "models", "'1:provider/model:(" .. MODELS .. ")'" },
  { "config" },
  { "trust", "'1:folder:_files -/'" },
  { "completion", "'1:shell:(bash zsh fish)'" },
  { "", [['1:script or command:{ _files -g "*.lua"; _describe command commands }']]
    .. [[ '*:argument:_files']] },
}

local ZSH = [=[
#compdef agenthost
_agenthost() {
  local -a commands=(
$(COMMANDS)  )
  local command=${words[2]}
  if (( CURRENT > 2 )) && [[ -n ${commands[(r)$command:*]} ]]; then
    words=("${(@)words[2,-1]}")
    (( CURRENT-- ))
  else
    command=
  fi
  case $command in
$(CASES)  esac
}
if [ "$funcstack[1]" = _agenthost ]; then _agenthost "$@"; else compdef _agenthost agenthost; fi
]=]

local function zsh(commands, options)
  local listed, cases = {}, {}
  for i = 2, #commands do
    listed[i - 1] = ("    '%s:%s'\n"):format(commands[i].name, commands[i].help)
  end
  for i, case in ipairs(ZSH_CASES) do
    local own = {}
    for k, option in ipairs(options_of(options, case[1])) do
      own[k] = zsh_option(option)
    end
    cases[i] = ("    %s) _arguments%s%s ;;\n"):format(case[1] ~= "" and case[1] or "*",
      table.concat(own), case[2] and " \\\n      " .. case[2] or "")
  end
  return filled(ZSH, { COMMANDS = table.concat(listed), CASES = table.concat(cases) })
end

-- -- fish -------------------------------------------------------------------------------------

local function fish_option(option, command, commands)
  local seen = command.name ~= "" and "__fish_seen_subcommand_from " .. command.name
    or "not __fish_seen_subcommand_from " .. names_of(commands, " ")
  local value = option.value and (option.value == "FILE" and " -r -F" or " -x") or ""
  if values_of(option) then
    value = (" -x -a '%s'"):format(values_of(option))
  end
  return ("complete -c agenthost -n '%s'%s -l %s%s -d '%s'\n"):format(seen,
    option.letter and " -s " .. option.letter or "", option.name, value, option.help)
end

local function fish(commands, options)
  local lines = { "# fish completion of agenthost\n" }
  for i = 2, #commands do
    lines[i] = ("complete -c agenthost -n __fish_is_first_token -a %s -d '%s'\n"):format(
      commands[i].name, commands[i].help)
  end
  for _, of in ipairs { { "completion", "bash zsh fish" }, { "models", MODELS } } do
    lines[#lines + 1] = ("complete -c agenthost -n '__fish_seen_subcommand_from %s' -x -a '%s'\n")
      :format(of[1], of[2])
  end
  for _, command in ipairs(commands) do
    for _, option in ipairs(options_of(options, command.name)) do
      lines[#lines + 1] = fish_option(option, command, commands)
    end
  end
  return table.concat(lines)
end

local SHELLS = { bash = bash, zsh = zsh, fish = fish }

--- The exit code, a line end, and what to print.
---@param shell "bash"|"zsh"|"fish"
---@param ... string the tables
---@return string
return function(shell, ...)
  local commands, options = tables.read(...)
  local named = {}
  for _, option in ipairs(options) do
    named[#named + 1] = option.name and option or nil
  end
  return "0\n" .. SHELLS[shell](commands, named)
end
