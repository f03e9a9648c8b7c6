--- agenthost asks: the open asks of the conversations in a store, and how to respond to each.
local ah, use = ...
local changed, stored, text, told = use "changed", use "stored", use "text", use "told"

local MOST = 2000 -- bytes of a question or of arguments that are shown

-- Returns at most MOST bytes of a text from outside, with its further lines indented.
local function shown(value)
  local cut = text.cut(value, MOST)
  local left = #value - #cut
  local lines = {}
  for line in (text.repaired(cut) .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = text.clean(line)
  end
  return table.concat(lines, "\n    ") .. (left > 0 and (" [... %d bytes left out]"):format(left)
    or "")
end

-- Returns the example of a response on a command line.
local function example(ask)
  return ask.kind == "approval" and "yes" or "JSON"
end

local function block(ask, where)
  local lines = {}
  local function add(words, ...)
    lines[#lines + 1] = words:format(...)
  end
  add("%s  %s  %s%s", text.clean(ask.conversation), text.clean(ask.ask),
    told.minute(ask.asked * 1000),
    ask.timeout and ", until " .. told.minute((ask.asked + ask.timeout) * 1000) or "")
  if ask.question then
    add("  %s", shown(ask.question))
  end
  if ask.tool then
    add("  tool: %s", text.clean(ask.tool))
  end
  if ask.arguments ~= nil then
    add("  arguments: %s", shown(ah.json.encode(ask.arguments)))
  end
  if ask.result ~= nil then
    add("  result: %s", shown(tostring(ask.result)))
    add("  changes%s", type(ask.changes) == "table" and ":" or " are erased")
    for _, one in ipairs(type(ask.changes) == "table" and changed.lines(ask.changes, "    ") or {})
    do
      lines[#lines + 1] = one
    end
  end
  if ask.schema ~= nil and ask.kind ~= "approval" then
    add("  response: %s", shown(ah.json.encode(ask.schema)))
  end
  if ask.default ~= nil then
    add("  default: %s", shown(ah.json.encode(ask.default)))
  end
  add("  agenthost respond %s %s %s%s\n", stored.quoted(ask.conversation), stored.quoted(ask.ask),
    example(ask), where)
  return table.concat(lines, "\n")
end

local function run(flags, words, out, line)
  local store <close>, path, where = stored.open(flags, line)
  local id = words[1] and stored.find(store, words[1], path).conversation
  local asks = assert(store:asks(id and { id = id }))
  if flags.json then
    out:write(text.json { asks = ah.array(asks) }, "\n")
    return
  end
  for i, ask in ipairs(asks) do
    out:write(i > 1 and "\n" or "", block(ask, where))
  end
  if not asks[1] then
    out:write "Nothing waits for a response.\n"
  end
end

return {
  name = "asks",
  doc = "list what conversations wait for",
  usage = "[ID]",
  help = [[
Lists the open asks of the conversations in a store, with the command that
responds to each; of the conversation ID (a unique beginning is enough), or of
all. The store is that of --store, AGENTHOST_STORE or the setting store, else
$XDG_STATE_HOME/agenthost/store.db (default: ~/.local/state).
]],
  operand = { name = "id", most = 1 },
  flags = { "json", stored.flag },
  mixed = true,
  run = stored.carefully(run),
}
