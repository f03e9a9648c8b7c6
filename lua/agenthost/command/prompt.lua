--- agenthost prompt, agenthost -p, and a text with white space: asks a model once. `run` reads the
-- flags and finds the conversation; `answer` runs in the state and with the flags of a script
-- (src/cli/main.c), so that records, events, reports and limits are the same.
local ah, use = ...
local pairs_of, stored, styled, text = use "pairs", use "stored", use "styled", use "text"
local parts, consent = use "prompt.parts", use "prompt.consent"

local fault, shown = pairs_of.fault, pairs_of.shown

local NO_PROMPT = "no prompt is given\nTry:  agenthost -m demo/echo \"Hello, world\""

-- The tools of -t, with their options. What they change or send is asked about first.
local TOOLS = { "read_file", "write_file", "edit_file", "list_files", "grep", "bash", "http_fetch" }
local OPTIONS = { write_file = { overwrite = true }, http_fetch = { allow = "public" } }

-- -- flags -------------------------------------------------------------------------------------

-- Returns the options of "temperature=0" and so on by their names; nil if there are none.
local function options_of(list)
  if not list then
    return nil
  end
  local options, known = {}, use "settings.rows".options()
  for _, pair in ipairs(list) do
    local name, value = pair:match "^([^=]*)=(.*)$"
    if not name then
      fault("option --option needs NAME=VALUE, such as temperature=0, found '%s'", shown(pair))
    elseif not known[name] then
      local names = {}
      for one in pairs(known) do
        names[#names + 1] = one
      end
      table.sort(names)
      local near = ah.nearest(name, names)
      fault("a model has no option '%s' (%s)", shown(name), near
        and "did you mean " .. near .. "?" or "there are " .. table.concat(names, ", "))
    end
    local found, must = known[name].read(value)
    if found == nil then
      fault("the option %s must be %s, found '%s'", name, must, shown(value))
    end
    options[name] = found
  end
  return options
end

-- Returns the names of the tools, in a list without repetitions.
local function tools_of(list)
  local names, seen = {}, {}
  for _, words in ipairs(list or {}) do
    for name in words:gmatch "[^,%s]+" do
      local known = false
      for _, one in ipairs(TOOLS) do
        known = known or one == name
      end
      if not known then
        local near = ah.nearest(name, TOOLS)
        fault("there is no tool '%s' (%s)", shown(name), near and "did you mean " .. near .. "?"
          or "there are " .. table.concat(TOOLS, ", "))
      end
      names[#names + 1] = not seen[name] and name or nil
      seen[name] = true
    end
  end
  return names
end

local function schema_of(path)
  if not path then
    return nil
  end
  local content, why = pairs_of.read(path, "any")
  if not content then
    pairs_of.unreadable("schema", path, why)
  end
  local ok, schema = pcall(ah.schema.compile, content)
  if not ok then
    fault("the schema '%s' is not valid: %s", shown(path),
      shown((tostring(schema):gsub("^[^\n]-:%d+: ", ""))))
  end
  return schema
end

-- -- conversations -----------------------------------------------------------------------------

-- Returns the id of a conversation of the command's own, not of a script.
local function own(store, path, flags)
  if not flags.resume then
    local found, err = store:conversations { folder = ah._real_path "." }
    for _, one in ipairs(found or fault("%s", err.message)) do
      if one.agent == stored.OWN and not one.script and one.title then
        return one.id
      end
    end
    fault("no prompt of this folder is in '%s'\nagenthost list shows all conversations; "
      .. "--resume ID goes on with one of another folder.", shown(path))
  end
  local id = stored.find(store, flags.resume, path).conversation
  local opened = assert(ah._opened(store, id))
  if opened.agent ~= stored.OWN or opened.script then
    fault("conversation %s was not begun by a prompt, so its tools are elsewhere\n"
      .. "agenthost resume %s goes on with its script.", text.clean(id), text.clean(id))
  end
  return id
end

local function check_flags(flags)
  for _, pair in ipairs { { "continue", "resume" }, { "continue", "no_store" },
    { "resume", "no_store" }, { "store", "no_store" }, { "record", "replay" },
    { "json", "jsonl" } } do
    if flags[pair[1]] and flags[pair[2]] then
      fault("--%s and --%s: give one of them", pair[1], (pair[2]:gsub("_", "-")))
    end
  end
  options_of(flags.option)
  tools_of(flags.tool)
end

-- Returns the text for `answer` ("alone", "begin STORE", "try STORE" or "open ID") and the path of
-- the store. A default store that cannot be opened does not end a prompt that is just to be kept.
local function place_of(flags, line)
  if flags.no_store then
    return "alone"
  end
  local path, default = stored.path(flags, line)
  if flags["continue"] or flags.resume then
    if path and not ah._real_path(path) then
      fault("no conversation is kept yet: there is no store '%s'", shown(path))
    end
    local store <close>, real = stored.open(flags, line)
    return "open " .. own(store, real, flags), real
  end
  return path and (default and "try " or "begin ") .. path or "alone", path
end

local function run(flags, _, _, line)
  check_flags(flags)
  local place, path = place_of(flags, line)
  local found = { { "answer", place }, { "store", path }, { "model", flags.model },
    { "env-file", flags.env_file }, { "record", flags.record }, { "replay", flags.replay },
    { "json", flags.json and "" }, { "jsonl", flags.jsonl and "" } }
  for _, pair in ipairs(found) do
    if pair[2] and pair[2]:find "%c" then
      fault("the value of --%s has a control character: '%s'", pair[1], shown(pair[2]))
    end
  end
  return found
end

-- -- the agent ---------------------------------------------------------------------------------

local function warn(flags, words)
  if not flags.quiet then
    io.stderr:write("agenthost: warning: ", styled.harmless(words), "\n")
  end
end

-- Raises that there is no model, with ways to choose one.
local function no_model()
  local lines = { "no model is chosen",
    "For this prompt:      -m PROVIDER/MODEL, or AGENTHOST_MODEL=PROVIDER/MODEL",
    "For all:              model = PROVIDER/MODEL in the settings: agenthost config" }
  local keys = {}
  for _, provider in ipairs(ah.providers()) do
    for _, name in ipairs(provider.key_env) do
      keys[#keys + 1] = (os.getenv(name) or "") ~= "" and provider.name .. "/ (" .. name .. ")"
        or nil
    end
  end
  lines[#lines + 1] = "With a key here:      " .. (keys[1] and table.concat(keys, ", ")
    or "none; agenthost models lists the providers and their variables")
  lines[#lines + 1] = "Without key or cost:  agenthost -m demo/echo \"Hello, world\""
  fault("%s", table.concat(lines, "\n"))
end

local function builtin(names)
  if not names[1] then
    return nil
  end
  local which = {}
  for _, name in ipairs(names) do
    which[name] = OPTIONS[name] or true
  end
  local tools, err = ah.builtin(which)
  return tools or error(err, 0)
end

-- Returns the tools of this module that a conversation has at its end.
local function recorded_tools(agent)
  local has, names = {}, {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    for _, tool in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      has[tool.name] = true
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      has[name] = nil
    end
  end
  for _, name in ipairs(TOOLS) do
    names[#names + 1] = has[name] and name or nil
  end
  return names
end

-- Returns the names of the tools: those of -t, or those that the conversation has already.
local function names_of(flags, place, id)
  if place ~= "open" or flags.tool then
    return tools_of(flags.tool)
  end
  local agent <close> = assert(ah.agent { id = id, name = stored.OWN })
  return recorded_tools(agent)
end

-- Returns an agent. What is wrong with the fields is wrong with the flags.
local function agent_of(fields)
  local ok, agent, err = pcall(ah.agent, fields)
  if ok then
    return agent, err
  end
  local message = type(agent) == "table" and agent.code == "usage" and agent.message
  return message and fault("%s", message) or error(agent, 0)
end

local function opened(fields, place, flags)
  local agent, err = agent_of(fields)
  if not agent and err.code == "store" and place == "try" then
    warn(flags, "this conversation is not kept: " .. err.message)
    fields.store = nil
    agent, err = agent_of(fields)
  end
  return agent or error(err, 0)
end

-- -- printing ----------------------------------------------------------------------------------

local function is_styled(flags, line)
  if flags.plain or line.color == "never" then
    return false
  elseif line.color == "always" then
    return true
  end
  local term = os.getenv "TERM" or ""
  return ah._is_terminal(1) and term ~= "" and term ~= "dumb" and (os.getenv "NO_COLOR" or "") == ""
end

-- Returns a function that makes pieces of an answer ready to be written, and one for the rest of
-- it.
local function converter(flags, line)
  if is_styled(flags, line) then
    local printer = styled.printer()
    return function(piece) return styled.ansi(printer:feed(piece)) end,
      function() return styled.ansi(printer:finish()) end
  end
  local convert = ah._is_terminal(1) and styled.harmless or function(piece) return piece end
  return convert, function() return "" end
end

-- Prints answers on standard output: `piece` as it comes, `finish` at the end of each.
local function printer_of(flags, line)
  local convert, rest = converter(flags, line)
  local column = 0 -- bytes since the last line end
  local function write(s)
    io.stdout:write(s)
    io.stdout:flush()
    column = s:find "\n$" and 0 or column + #s
  end
  return { piece = function(s) write(convert(s)) end,
    finish = function()
      write(rest())
      if column > 0 then
        write "\n"
      end
    end }
end

-- Sets the observers that print the answer, and returns the function that ends it with the reply
-- or, after a failure, without one. In a pipe, an answer with tools is printed when it is complete,
-- without the texts before calls.
local function printing(fields, flags, line)
  if flags.json or flags.jsonl then
    return function() end
  end
  local printer = printer_of(flags, line)
  if fields.output then
    return function(reply)
      io.stdout:write(reply and text.json(reply.value) .. "\n" or "")
    end
  elseif fields.tools and not ah._is_terminal(1) then
    return function(reply)
      if reply then
        printer.piece(reply.text)
        printer.finish()
      end
    end
  end
  fields.on = { content = function(e) printer.piece(e.text) end,
    usage = function() printer.finish() end }
  return printer.finish
end

-- -- the run -----------------------------------------------------------------------------------

-- Lets the agent answer, or go on with an unfinished run. An unfinished run ends before another
-- question.
local function asked(agent, content, flags)
  if content and agent.unfinished then
    warn(flags, "the last run of this conversation did not end; its question was: "
      .. text.cut(agent.unfinished.question or "", 200))
    assert(agent:cancel())
  elseif not content and not agent.unfinished then
    fault("%s", NO_PROMPT)
  end
  return agent:run(content)
end

-- named: an id or a store, see place_of.
local function fields_of(flags, place, named)
  local id = place == "open" and named or nil
  return { name = stored.OWN, id = id, store = not id and named ~= "" and named or nil,
    system = flags.system, options = options_of(flags.option), output = schema_of(flags.schema),
    tools = builtin(names_of(flags, place, id)),
    budget = flags.max_cost and { cost = flags.max_cost },
    resources = { filesystem = ah.filesystem { root = "." } }, asks = consent.ask,
    policies = { ah.policies.ask { destructive = true, open_world = true } } }
end

local function answer(flags, words, line, found)
  _G.arg = nil -- the records of a conversation name the script that began it
  local place, named = found:match "^(%S+) ?(.*)$"
  if place ~= "open" and not flags.model and (os.getenv "AGENTHOST_MODEL" or "") == "" then
    no_model()
  end
  local content = parts.content(words, line.literal, flags.image)
  if not content and place ~= "open" then
    fault("%s", NO_PROMPT)
  end
  local fields = fields_of(flags, place, named)
  local finish = printing(fields, flags, line)
  local agent <close> = opened(fields, place, flags)
  local reply, err = asked(agent, content, flags)
  finish(reply)
  if not reply and err.code == "usage" then
    return 2, err.message
  end
  return reply and 0 or error(err, 0)
end

return {
  name = "prompt",
  doc = "ask a model; in short: agenthost \"A question\", or -p TEXT",
  usage = "TEXT [@FILE|@URL]...",
  help = [[
A text with white space, or any text after -p. Standard input, and each file or
page of a word @FILE or @URL, are added to it. The conversation is kept in the
store, and -c goes on with it. What a tool would change or send is asked first.
]],
  exits = "those of a script, see agenthost --help.",
  operand = { name = "text", complete = "file" },
  flags = {
    { name = "prompt", letter = "p", doc = "what follows is a prompt, even one word" },
    "model",
    { name = "system", letter = "s", value = "TEXT", any = true, doc = "what the model is to be" },
    { name = "tool", letter = "t", value = "NAMES", many = true, offer = table.concat(TOOLS, " "),
      doc = "tools for this folder: read_file,grep,bash ..." },
    { name = "option", letter = "o", value = "PAIR", many = true,
      doc = "option of the model: temperature=0" },
    { name = "schema", value = "FILE", once = true, doc = "print JSON that fits this JSON Schema" },
    { name = "image", value = "FILE", many = true, doc = "an image, or its address" },
    { name = "continue", letter = "c", doc = "go on with the last prompt of this folder" },
    { name = "resume", value = "ID", once = true, doc = "go on with this conversation" },
    { name = "max-cost", value = "USD", kind = "decimal", once = true,
      doc = "end when it has cost so much" },
    { name = "no-store", doc = "keep nothing" },
    { name = "plain", doc = "print no styles" },
    "env-file", "store", "json", "jsonl", "record", "replay" },
  shared = true,
  mixed = true,
  run = stored.carefully(run),
  answer = stored.carefully(answer),
}
