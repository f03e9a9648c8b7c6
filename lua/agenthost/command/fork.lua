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

-- Returns the lines that say how to go on.
local function advice(id, unfinished, opened, flags, path, where)
  local first = unfinished and "" or flags.at == 0 and "It has no question yet.\n"
    or "It ends with an answer, and waits for the next question.\n"
  return first .. (opened.script and ("To go on with it: agenthost resume %s%s%s%s\n"):format(
    stored.quoted(id), unfinished and "" or ' "WORDS"', where,
    flags.model and " --model " .. stored.quoted(flags.model) or "")
    or text.clean(("To go on with it in a program: agent:open { store = %q, id = %q }"):format(path,
      id)) .. "\n")
end

local function run(flags, words, out, line)
  if not flags.at then
    fault "the turn is missing: --at N"
  end
  local store <close>, path, where = stored.open(flags, line)
  local script, folder = script_of(words[2])
  local base = stored.find(store, words[1], path).conversation
  local done, id, err = pcall(ah._fork, store, base, flags.at, script, folder, flags.id)
  if not done or not id then
    fault("%s", text.clean((err or id).message))
  end
  local opened, unfinished = assert(ah._opened(store, id)), ah._unfinished(store, id)
  local question = table.concat(words, " ", math.min(3, #words + 1))
  if script and (unfinished or question ~= "") then
    return resume.found(store, flags, id, opened, path, question)
  end
  if flags.json then
    out:write(text.json { conversation = id, base = base, at = flags.at,
      unfinished = unfinished }, "\n")
    return
  end
  out:write(("%s has %s of %s.\n"):format(text.clean(id), flags.at == 0 and "no turn"
    or flags.at == 1 and "turn 1" or "turns 1 to " .. flags.at, text.clean(base)),
    advice(id, unfinished, opened, flags, path, where))
end

return {
  name = "fork",
  doc = "begin a second conversation from a turn of another one",
  usage = "ID --at N [script.lua [words...]]",
  help = [[
Begins a new conversation in the store, with the turns 1 to N of the
conversation ID (0: none); a unique beginning of ID is enough. The other one
stays as it is, and a process may be at work on it. With a script the fork goes
on at once with the agent that this script returns, which is asked the words;
else the script is that of the conversation, and agenthost resume goes on.
]],
  exits = "those of a script, see agenthost --help; 5: it waits for a response.",
  operand = { name = "id", least = 1 },
  flags = { "json", "jsonl", "model", stored.flag,
    { name = "at", value = "N", kind = "integer", once = true,
      doc = "the last turn that the fork has; 0: none" },
    { name = "id", value = "NEW", once = true, doc = "the id of the fork, else a new one" } },
  mixed = true,
  run = stored.carefully(run),
}
