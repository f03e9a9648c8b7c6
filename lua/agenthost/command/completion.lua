--- agenthost completion: makes one completion function for each shell. It completes the options of
-- the command on the line, the words of an option's value, commands and *.lua files, and after the
-- script the shell's own files. Help texts have no single quotes (bash and fish quote with them);
-- brackets and colons are escaped for zsh. Names that depend on the folder and the settings are
-- asked for when they are completed: agenthost completion aliases, saved or servers.
local _, use = ...
local commands, flags_of = use "commands", use "flags"
local file, judge = use "settings.file", use "settings.judge"

-- Models that agenthost models does not show.
local OTHERS = "demo/echo demo/tools demo/quickstart openai/gpt-4o claude_agent_sdk/ "

local function models()
  return OTHERS .. table.concat(commands.find "models".names(), " ")
end

--- Returns the flags that have a name: all but the row that ends the flags.
local function named(rows)
  local some = {}
  for _, row in ipairs(rows) do
    some[#some + 1] = row.name ~= "" and row or nil
  end
  return some
end

--- Returns the list of commands to complete: { name, doc, operand, rows = flags }. The first, with
-- the name "", stands for running a script, or for a prompt.
local function all_of(line)
  local list = { { name = "", rows = named(flags_of.unnamed(line.running)),
    operand = { name = "script or command", complete = "lua" } } }
  for i, name in ipairs(commands.names) do
    local command = commands.find(name)
    list[i + 1] = { name = name, doc = command.doc, operand = command.operand,
      rows = named(flags_of.of(command, line.running, line.named)) }
  end
  return list
end

--- Returns the allowed words of an operand, separated by spaces; nil for a file, a folder or no
-- operand.
local function choices(operand)
  if not operand then
    return nil
  elseif operand.complete == "models" then
    return models()
  elseif type(operand.complete) == "function" then
    return table.concat(operand.complete(), " ")
  end
  return operand.words
end

--- Returns the shell's words for the further names of an operand; "" if there are none.
local function more_of(operand)
  return operand.asks and " $(agenthost completion " .. operand.asks .. " 2>/dev/null)" or ""
end

--- Returns the list of names to ask for when a value is completed; nil if there is none.
local function asked_for(option)
  return option.complete or option.name == "model" and "aliases" or nil
end

--- Returns the shell's words for the names of such a list.
local function names_of(list)
  return ("$(agenthost completion %s 2>/dev/null)"):format(list)
end

--- Returns "-v --verbose" for each option.
local function flags(options, between, of)
  local words = {}
  for _, option in ipairs(options) do
    if not of or option[of] and option.optional ~= "=" then
      words[#words + 1] = option.letter and "-" .. option.letter or nil
      words[#words + 1] = "--" .. option.name
    end
  end
  return table.concat(words, between)
end

--- Returns the values to complete for an option, nil if there are none; others may be valid.
local function values_of(option)
  return option.words or option.offer or option.name == "model" and models() or nil
end

-- Replaces each $(name) of a template by the text of that name.
local function filled(template, texts)
  return (template:gsub("%$%(([%u_]+)%)", texts))
end

-- -- bash -------------------------------------------------------------------------------------

-- Adds no space after "provider/", because the name of the model follows.
local BASH_MODELS = [[COMPREPLY=($(compgen -W "$(NAMES)" -- "$cur"));]]
  .. " [[ $COMPREPLY == */ ]] && compopt -o nospace 2>/dev/null;"

--- Returns the case of the bash function that completes the value of an option.
local function bash_value(option)
  local reply = ""
  if option.words then
    reply = filled([[COMPREPLY=($(compgen -W '$(NAMES)' -- "$cur"));]], { NAMES = option.words })
  elseif values_of(option) or asked_for(option) then
    reply = filled(BASH_MODELS, { NAMES = (values_of(option) or "") .. " "
      .. (asked_for(option) and names_of(asked_for(option)) or "") })
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
$(ACTIONS)    case ${COMP_WORDS[i]} in
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
$(FLAGS)$(OPERANDS)    *) compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -X '!*.lua' -- "$cur") $(compgen -d -- "$cur"))
      [ -z "$command" ] && COMPREPLY+=($(compgen -W '$(COMMANDS)' -- "$cur")) ;;
  esac
}
complete -F _agenthost agenthost
]=]

-- Returns the case that completes the operands of a command; "" for a Lua script, which the cases
-- for any word complete.
local function bash_operand(command)
  local operand, reply = command.operand or {}, ""
  local names = choices(operand)
  if operand.complete == "lua" then
    return ""
  elseif operand.complete == "models" then
    reply = filled(BASH_MODELS, { NAMES = names .. " " .. names_of "aliases" })
  elseif names then
    reply = filled([[COMPREPLY=($(compgen -W "$(NAMES)" -- "$cur"))]],
      { NAMES = names .. more_of(operand) })
  elseif operand.complete == "folder" then
    reply = [[compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur"))]]
  elseif command.operand then
    reply = [[compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"))]]
  end
  return ("    %s:*) %s ;;\n"):format(command.name, reply)
end

-- Returns a line for each command with actions, by which their words are no script.
local function bash_actions()
  local lines = {}
  for _, name in ipairs(commands.names) do
    local actions = commands.find(name).actions
    lines[#lines + 1] = actions and ('    [ "$command" = %s ] && case ${COMP_WORDS[i]} in %s) '
      .. "continue ;; esac\n"):format(name, table.concat(actions, "|")) or nil
  end
  return table.concat(lines)
end

local function bash(list, all)
  local values, of_commands, operands = {}, {}, {}
  for _, option in ipairs(all) do
    values[#values + 1] = option.value and option.optional ~= "=" and bash_value(option) or nil
  end
  for i, command in ipairs(list) do
    of_commands[i] = ("    %s:-*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n"):format(
      command.name, flags(command.rows, " "))
    operands[i] = bash_operand(command)
  end
  return filled(BASH, { ACTIONS = bash_actions(), WITH_VALUE = flags(all, "|", "value"),
    COMMANDS = table.concat(commands.names, " "), COMMANDS_OR = table.concat(commands.names, "|"),
    VALUES = table.concat(values), FLAGS = table.concat(of_commands),
    OPERANDS = table.concat(operands) })
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
  if asked_for(option) then
    value = (":%s:{ _agenthost_names %s %s }"):format(option.value, asked_for(option),
      values_of(option) or "")
  elseif values_of(option) then
    value = (":%s:(%s)"):format(option.value, values_of(option))
  elseif option.value then
    value = (option.optional and "::%s:%s" or ":%s:%s"):format(option.value,
      option.value == "FILE" and "_files" or " ")
  end
  return (" \\\n      %s%s]%s'"):format(left, option.doc:gsub("[%[%]:\\]", "\\%0"), value)
end

local function zsh_files(endings)
  if endings == "file" then
    return "_files"
  elseif endings == "folder" then
    return "_files -/"
  end
  return ('_files -g "*.%s"'):format(endings:gsub(".+|.+", "(%0)"))
end

-- Returns the zsh arguments that follow the options of a command.
local function zsh_operand(command)
  local operand = command.operand
  local names = choices(operand)
  if not operand then
    return ""
  elseif command.name == "" then
    return [[ '1:script or command:{ _files -g "*.lua"; _describe command commands }']]
      .. [[ '*:argument:_files']]
  end
  local first = ("%s:%s"):format(operand.name,
    names and "(" .. names .. ")" or zsh_files(operand.complete or "file"))
  if operand.asks then
    return (" '1:%s' '2:%s:{ _agenthost_names %s }' '*:argument:_files'"):format(first,
      operand.asks, operand.asks)
  elseif operand.most == 1 then
    return (" '1:%s'"):format(first)
  elseif operand.least == 1 then -- the words after it belong to it
    return (" '1:%s' '*:argument:_files'"):format(first)
  end
  return (" '*:%s'"):format(first)
end

local ZSH = [=[
#compdef agenthost
_agenthost_names() { compadd -- ${(f)"$(agenthost completion $1 2>/dev/null)"} "${@[2,-1]}" }
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

local function zsh(list)
  local listed, cases = {}, {}
  for i, command in ipairs(list) do
    local own = {}
    for k, option in ipairs(command.rows) do
      own[k] = zsh_option(option)
    end
    listed[i] = command.doc and ("    '%s:%s'\n"):format(command.name, command.doc) or ""
    cases[i] = ("    %s) _arguments%s%s ;;\n"):format(command.name ~= "" and command.name or "*",
      table.concat(own), zsh_operand(command))
  end
  table.insert(cases, table.remove(cases, 1)) -- the case for running a script comes last
  return filled(ZSH, { COMMANDS = table.concat(listed), CASES = table.concat(cases) })
end

-- -- fish -------------------------------------------------------------------------------------

local function fish_option(option, command)
  local seen = command.name ~= "" and "__fish_seen_subcommand_from " .. command.name
    or "not __fish_seen_subcommand_from " .. table.concat(commands.names, " ")
  local value = option.value and not option.optional
    and (option.value == "FILE" and " -r -F" or " -x") or ""
  if values_of(option) or asked_for(option) then
    value = (" -x -a '%s%s'"):format(values_of(option) or "", asked_for(option)
      and (" (agenthost completion %s 2>/dev/null)"):format(asked_for(option)) or "")
  end
  return ("complete -c agenthost -n '%s'%s -l %s%s -d '%s'\n"):format(seen,
    option.letter and " -s " .. option.letter or "", option.name, value, option.doc)
end

local function fish(list)
  local lines = { "# fish completion of agenthost\n" }
  for i = 2, #list do
    lines[i] = ("complete -c agenthost -n __fish_is_first_token -a %s -d '%s'\n"):format(
      list[i].name, list[i].doc)
  end
  for i = 2, #list do
    local names = choices(list[i].operand)
    lines[#lines + 1] = names and ("complete -c agenthost -n '__fish_seen_subcommand_from %s' "
      .. "-x -a '%s%s'\n"):format(list[i].name, names, list[i].operand.asks
      and (" (agenthost completion %s 2>/dev/null)"):format(list[i].operand.asks) or "")
  end
  for _, command in ipairs(list) do
    for _, option in ipairs(command.rows) do
      lines[#lines + 1] = fish_option(option, command)
    end
  end
  return table.concat(lines)
end

-- -- names that depend on the folder -----------------------------------------------------------

-- Returns the settings models.NAME that take effect here, a line each.
local function aliases()
  local own = file.user(file.user_path()).settings
  local project = judge.project(file.by_name(own))
  local names = {}
  for _, list in ipairs { own, project and project.holds or {} } do
    for _, entry in ipairs(list) do
      names[#names + 1] = entry.row.model and entry.row.model .. "\n" or nil
    end
  end
  return table.concat(names)
end

local function saved()
  local names = {}
  for i, one in ipairs(use "saved_prompts".list()) do
    names[i] = one.name .. "\n"
  end
  return table.concat(names)
end

-- Returns the names of MCP servers, a line each; a shell would take others apart.
local function servers()
  local names = {}
  for _, name in ipairs(use "mcp.servers".names()) do
    names[#names + 1] = name:find "^[%w_][%w_.-]*$" and name .. "\n" or nil
  end
  return table.concat(names)
end

local MAKE = { bash = bash, zsh = zsh, fish = fish, aliases = aliases, saved = saved,
  servers = servers }

return {
  name = "completion",
  models = models,
  doc = "print a completion script for a shell",
  usage = "bash|zsh|fish",
  help = [[
bash:  source <(agenthost completion bash)
zsh:   agenthost completion zsh >~/.zfunc/_agenthost  (a folder of $fpath)
fish:  agenthost completion fish | source
The scripts ask for names by agenthost completion aliases, saved or servers: the
models of the settings, the saved prompts, and the MCP servers.
]],
  operand = { name = "shell", least = 1, most = 1, words = "bash zsh fish aliases saved servers" },
  run = function(_, words, out, line)
    out:write(MAKE[words[1]](all_of(line), named(flags_of.all(line.running))))
  end,
}
