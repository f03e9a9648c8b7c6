--- agenthost fork: begins a second conversation in a store with the turns 1 to N of another one.
-- With a script it goes on at once, as resume does.
local ah, use = ...
local pairs_of, resume, stored, text = use "pairs", use "resume", use "stored", use "text"

local fault = pairs_of.fault

-- Returns the path of the script, and the folder that it belongs to; nil without a script.
local function script_of(path)
  local real = path and ah._real_path(path)
  if path and not real then
    fault("cannot open the script '%s'", pairs_of.shown(path))
  end
  return real, real and ah._real_path "."
end

local function run(flags, words, out, line)
  if not flags.at then
    fault "the turn is missing: --at N"
  end
  local store <close>, path, where = stored.open(flags, line)
  local script, folder = script_of(words[2])
  local base = stored.find(store, words[1], path).conversation
  local id, err = ah._fork(store, base, flags.at, script, folder)
  if not id then
    fault("%s", err.message)
  end
  local opened, unfinished = assert(ah._opened(store, id)), ah._unfinished(store, id)
  if script and unfinished then
    return resume.found(store, flags, id, opened, path)
  end
  if flags.json then
    out:write(text.json { conversation = id, base = base, at = flags.at,
      unfinished = unfinished }, "\n")
    return
  end
  out:write(("%s has %s of %s.\n"):format(id, flags.at == 1 and "turn 1"
    or "turns 1 to " .. flags.at, text.clean(base)))
  if unfinished and opened.script then
    out:write(("To go on with it: agenthost resume %s%s%s\n"):format(id, where,
      flags.model and " --model " .. stored.quoted(flags.model) or ""))
  else
    out:write(unfinished and "" or "It ends with an answer, and waits for the next question.\n",
      ("To go on with it in a program: agent:open { store = %q, id = %q }\n"):format(path, id))
  end
end

return {
  name = "fork",
  doc = "begin a second conversation from a turn of another one",
  usage = "ID --at N [script.lua]",
  help = [[
Begins a new conversation in the store, with the turns 1 to N of the
conversation ID; a unique beginning of ID is enough. The other conversation
stays as it is, and a process may be at work on it. With a script the fork goes
on at once with the agent that this script returns; else the script is that of
the conversation, and agenthost resume goes on.
]],
  exits = "those of a script, see agenthost --help; 5: it waits for a response.",
  operand = { name = "id", least = 1, most = 2 },
  flags = { "json", "jsonl", "model", stored.flag,
    { name = "at", value = "N", kind = "integer", least = 1, once = true,
      doc = "the last turn that the fork has" } },
  mixed = true,
  run = stored.carefully(run),
}
