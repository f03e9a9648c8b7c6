--- agenthost rewind: lets a conversation in a store go on from an earlier turn.
local ah, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"

local fault = pairs_of.fault

-- The words for each kind of item.
local SAY = {
  turn = function() return "the answer, and its results" end,
  call = function(item) return ("call %s of %s was begun"):format(item.id, item.tool) end,
  step = function(item) return ("step %s was begun"):format(item.what or item.step) end,
  file = function(item) return ("file %s/%s stays as it is now"):format(item.root, item.path) end,
}

local function run(flags, words, out, line)
  if not flags.to then
    fault "the turn is missing: --to N"
  end
  local store <close>, path = stored.open(flags, line)
  local id = stored.find(store, words[1], path).conversation
  local found, err = ah._rewind(store, id, flags.to, flags.dry, flags.take)
  if not found and err.code == "conflict" then
    return 1, err.message
  elseif not found then
    fault("%s", err.message)
  end
  if flags.json then
    out:write(text.json { conversation = id, to = found.to, turns = found.turns,
      dropped = ah.array(found.dropped), dry = flags.dry or false }, "\n")
    return
  end
  for _, item in ipairs(found.dropped) do
    out:write(("turn %d: %s\n"):format(item.turn, text.clean(SAY[item.kind](item))))
  end
  out:write(("%s %s on after turn %d of %d.\n"):format(text.clean(id),
    flags.dry and "would go" or "goes", found.to, found.turns))
end

return {
  name = "rewind",
  doc = "let a conversation go on from an earlier turn",
  usage = "ID --to N",
  help = [[
Lets the conversation ID go on after turn N, and prints what is dropped:
answers, calls and steps that were begun, whose effects outside stay, and files,
which stay as they are. A unique beginning of ID is enough; turn 0 is before the
first run. Records are kept: a later turn can be gone to in the same way.
]],
  operand = { name = "id", least = 1, most = 1 },
  flags = { "json", stored.flag,
    { name = "to", value = "N", kind = "integer", once = true,
      doc = "the last turn that stays" },
    { name = "dry", doc = "only print what would be dropped" },
    { name = "take", doc = "take it from the process that has it" } },
  mixed = true,
  run = stored.carefully(run),
}
