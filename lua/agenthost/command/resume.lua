--- agenthost resume: finds a conversation in a store and the script that began it. The C side then
-- runs the script (src/cli/main.c); its agent opens the conversation and goes on with it.
local ah, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"

local fault, get = pairs_of.fault, use "told".get

-- Returns the conversation of this folder that was changed last and is not at its end.
local function last(store, path)
  return stored.last(store, function(label) return label.state and label.state ~= "idle" end)
    or fault("no conversation of this folder in '%s' has an unfinished run\n"
      .. "agenthost resume ID goes on with one of another folder.", pairs_of.shown(path))
end

local function line_free(path)
  return type(path) == "string" and path:sub(1, 1) == "/" and not path:find "[%c]" and path or nil
end

-- Returns the conversation from which a fork, or a fork of a fork, was begun; nil for others. It is
-- the one that a script names.
local function base_of(store, opened)
  local base
  for _ = 1, 100 do
    local name = get(get(opened, "base", "table"), "stream", "string")
    if not name or name:find "%c" then
      break
    end
    base = name
    opened = ah._opened(store, base)
  end
  return base
end

-- Returns the names and values for the C side, a line each; `fork` goes on in the same way. words:
-- the next question; "": there is none.
local function found(store, flags, id, opened, path, words)
  local script, folder = line_free(opened.script), line_free(opened.folder)
  if not script and opened.agent == stored.OWN then
    fault("conversation %s is one of prompts: agenthost --resume %s goes on with it",
      text.clean(id), text.clean(id))
  elseif get(opened, "script", "string") and get(opened, "folder", "string")
      and not (script and folder) then
    fault("the path of the script of conversation %s has a control character", text.clean(id))
  elseif not script or not folder then
    fault("conversation %s was not begun by a script in a file: a program of yours opens it with "
      .. "agent:open { store = ..., id = ... }", text.clean(id))
  elseif not line_free(path) then
    fault("the path of the store has a control character: '%s'", pairs_of.shown(path))
  end
  return { { "script", script }, { "folder", folder }, { "conversation", id },
    { "base", base_of(store, opened) }, { "store", path }, { "take", flags.take and "" },
    { "give-up", flags.give_up }, { "model", flags.model },
    { "json", flags.json and "" }, { "jsonl", flags.jsonl and "" },
    { "words", words ~= "" and words or nil } } -- the last one: it may have several lines
end

local function run(flags, words, _, line)
  local store <close>, path, where = stored.open(flags, line)
  local question = table.concat(words, " ", math.min(2, #words + 1))
  local id = (words[1] and stored.find(store, words[1], path) or last(store, path)).conversation
  local opened, err = ah._opened(store, id)
  if not opened then
    fault("%s", err.message)
  end
  local unfinished, why = ah._unfinished(store, id)
  if unfinished == nil then
    fault("%s", why.message)
  elseif not unfinished and question == "" then
    fault("conversation %s has no unfinished run to go on with%s", text.clean(id), opened.script
      and ("\nTo ask it: agenthost resume %s \"WORDS\"%s"):format(stored.quoted(id), where) or "")
  end
  return found(store, flags, id, opened, path, question)
end

return {
  name = "resume",
  doc = "go on with a conversation where it stopped",
  usage = "[ID [words...]]",
  help = [[
Goes on with a conversation whose run did not end: its process died, or it waits
for a response. Without ID it is the last one of this folder; a unique beginning
of ID is enough. The script that began it is run in its folder, and the agent
that it returns goes on, or is asked the words if no run is unfinished. Without
an agent the script is only run again.
]],
  exits = "those of a script, see agenthost --help; 5: it still waits.",
  operand = { name = "id" },
  flags = { "json", "jsonl", "model", stored.flag,
    { name = "take", doc = "take it from the process that is at work on it" },
    { name = "give-up", value = "CALL", once = true,
      doc = "settle this call as failed, since it cannot go on" } },
  mixed = true,
  run = stored.carefully(run),
  found = found,
}
