--- agenthost mcp call: calls one tool of a server, as a client without a model. The call passes
-- the gate as any call does, in a conversation of its own (protocols/mcp/server/calls.lua). It is
-- not asked about, as a person has typed it; questions of the server are asked on the terminal.
local ah, use, _, later = ...
local pairs_of, servers, stored, text = use "pairs", use "mcp.servers", use "stored", use "text"
local consent, styled = later "prompt.consent", later "styled"

local calls = ah._module "agenthost.protocols.mcp.server.calls"

local fault, shown = pairs_of.fault, pairs_of.shown

-- -- arguments -----------------------------------------------------------------------------------

-- True if the schema of a parameter takes texts alone.
local function is_text(schema, name)
  local property = type(schema.properties) == "table" and schema.properties[name]
  return type(property) == "table" and property.type == "string"
end

-- Returns the value of NAME=VALUE: JSON, unless the parameter is a text or it is none.
local function value_of(schema, name, word)
  local value = not is_text(schema, name) and ah.json.decode(word)
  if value == nil or value == false and word ~= "false" then
    return word
  end
  return value
end

-- Returns the arguments of the words: one JSON object, or NAME=VALUE each.
local function arguments_of(words, schema)
  if words[1] and words[1]:find "^%s*{" then
    local arguments = not words[2] and ah.json.decode(words[1])
    return arguments or fault("the arguments are one JSON object, or NAME=VALUE each, found '%s'",
      shown(words[2] or words[1]))
  end
  local arguments = ah.object {}
  for _, word in ipairs(words) do
    local name, value = word:match "^([^=]+)=(.*)$"
    if not name then
      fault("an argument is NAME=VALUE, or all are one JSON object, found '%s'", shown(word))
    elseif arguments[name] ~= nil then
      fault("the argument '%s' is given twice", shown(name))
    end
    arguments[name] = value_of(schema, name, value)
  end
  return arguments
end

-- -- the call ------------------------------------------------------------------------------------

-- Returns the tool of this name of the server's, and its parameters; or nil and an error.
local function tool_of(server, key)
  local list, err = server:definitions()
  if not list then
    return nil, err
  end
  local keys = {}
  for i, definition in ipairs(list) do
    if definition.key == key then
      return server:tool(definition, "called"), ah.json.decode(definition.schema:text())
    end
    keys[i] = definition.key
  end
  servers.no_tool(key, keys)
end

-- Prints progress on the terminal.
local function tell_progress(event)
  local share = event.fraction and ("%d %%"):format(math.floor(event.fraction * 100)) or ""
  io.stderr:write(styled.harmless(("%s %s"):format(share, event.message or "")), "\n")
end

-- Asks the person at the terminal what the server asks.
local function ask_person(_, ask)
  return consent.front()(ask)
end

-- Makes the call. Returns { success, content, value }, and a list of images; or nil and an error.
local function perform(tool, arguments, flags)
  local agent = assert(ah.agent { model = calls.model(), tools = { tool },
    strategies = { { name = "call", after = function(_, m) calls.looker(m) end } } })
  local conversation = assert(calls.open(agent, ask_person))
  local _ <close> = setmetatable({}, { __close = function() conversation:close() end })
  local call = calls.call { name = "called", arguments = arguments,
    on_progress = not flags.quiet and ah._is_terminal(2) and tell_progress or function() end }
  conversation:make(call)
  if not call.outcome then
    return nil, call.error
  end
  return call.outcome, call.images or {}
end

-- -- its result ----------------------------------------------------------------------------------

-- Writes the first image to the file of -o.
local function keep_image(images, path)
  if not images[1] or not images[1].data then
    return 1, "the result has no image for '" .. shown(path) .. "'"
  end
  local f <close>, why = io.open(path, "wb")
  if not f then
    fault("cannot write '%s': %s", shown(path), why:sub(#path + 3))
  end
  f:write(images[1].data)
end

-- True if a result has images and no text of the server's.
local function is_bare(outcome, images)
  return images[1] ~= nil and outcome.content == "OK"
end

local function put(outcome, images, flags, out)
  if flags.json then
    out:write(text.json { success = outcome.success, content = outcome.content,
      value = outcome.value }, "\n")
  elseif outcome.success and outcome.content ~= "" and not is_bare(outcome, images) then
    out:write(outcome.content, outcome.content:find "\n$" and "" or "\n")
  end
  if not outcome.success then
    return 1, not flags.json and outcome.content or nil
  elseif flags.output then
    return keep_image(images, flags.output)
  elseif images[1] and not flags.json then
    io.stderr:write(("agenthost: the result has %d image%s; -o FILE keeps the first\n"):format(
      #images, #images == 1 and "" or "s"))
  end
end

local function run(flags, words, out, line)
  local server <close>, rest = servers.of_line(words, line, flags.file)
  local key = rest[1] or fault "no TOOL is given: agenthost mcp tools SERVER lists them"
  local tool, schema = tool_of(server, key)
  if not tool then
    return servers.failure(schema)
  end
  local outcome, images = perform(tool, arguments_of(table.move(rest, 2, #rest, 1, {}), schema),
    flags)
  if not outcome then
    return servers.failure(images)
  end
  return put(outcome, images, flags, out)
end

return {
  name = "mcp call",
  doc = "call a tool of a server",
  usage = "SERVER TOOL [JSON | NAME=VALUE...]",
  help = [[
Calls the tool and prints its result. VALUE is JSON, or a text. A command stands
at the end: agenthost mcp call TOOL NAME=VALUE -- COMMAND [ARGS...]. What the
server asks during the call is asked on the terminal. A tool whose definition
has changed is not called: see agenthost mcp pin.
]],
  exits = "0 ok, 1 the tool failed, 2 wrong usage,\n3 the server cannot be reached, 4 a limit.",
  operand = { name = "server", least = 1 },
  flags = { "json", servers.flag,
    { name = "output", letter = "o", value = "FILE", once = true,
      doc = "write the first image of the result to FILE" }, "env-file" },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
