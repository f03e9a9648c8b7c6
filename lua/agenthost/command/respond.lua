--- agenthost respond: responds to an ask of a conversation in a store, for the process that goes on
-- with it.
local ah, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"

local WORDS = { yes = true, no = false }
local INVALID = { usage = true, tool_validation = true }

-- Returns the response of a word; raises if it is not JSON.
local function value_of(word)
  if WORDS[word] ~= nil then
    return WORDS[word]
  end
  local value, err = ah.json.decode(word)
  if value == nil then
    pairs_of.fault("the response is neither yes, no nor JSON: %s\nA text has quotes of its own: "
      .. "'\"Monday\"'", (err:gsub("^the text is not JSON: ", "")))
  end
  return value
end

local function run(flags, words, out, line)
  local value = value_of(words[3])
  local store <close>, path, where = stored.open(flags, line)
  local id = stored.find(store, words[1], path).conversation
  local done, err = store:respond(id, words[2], value, { by = flags.by })
  if not done then
    return INVALID[err.code] and 2 or 1, err.message
  elseif flags.json then
    out:write(text.json { conversation = id, ask = words[2], value = value }, "\n")
    return
  end
  out:write(("%s has the response to %s. If no process is at work on it: agenthost resume %s%s\n")
    :format(text.clean(id), text.clean(words[2]), stored.quoted(id), where))
end

return {
  name = "respond",
  doc = "respond to what a conversation waits for",
  usage = "ID ASK JSON",
  help = [[
Responds to the ask ASK of the conversation ID, as `agenthost asks` shows them.
A unique beginning of ID is enough. JSON must match the schema of the ask; for
an approval it is yes or no, or an object:
  {"approved": false, "why": "not on a Friday"}
  {"approved": true, "arguments": {...}}
If changes are shown, the call was made: a yes commits exactly these, and takes
no arguments. The first response counts. The process that is at work on the
conversation takes it; if there is none, agenthost resume ID goes on.
]],
  operand = { name = "operand", least = 3, most = 3 },
  flags = { "json", stored.flag,
    { name = "by", value = "NAME", once = true, doc = "record who responds" } },
  mixed = true,
  run = stored.carefully(run),
}
