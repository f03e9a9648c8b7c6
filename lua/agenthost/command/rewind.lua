--- agenthost rewind: lets a conversation in a store go on from an earlier turn.
local ah, use = ...
local changed, pairs_of, stored, text = use "changed", use "pairs", use "stored", use "text"

local fault, line = pairs_of.fault, changed.line

-- The words for each kind of item that is dropped.
local DROPPED = {
  turn = function(item)
    return item.question and "the answer to: " .. item.question or "the answer, and its results"
  end,
  call = function(item)
    return ("call %s of %s was begun: what it did outside stays"):format(item.id, item.tool)
  end,
  question = function(item)
    return "the question, which has no answer: " .. (item.question or "(an image)")
  end,
  ask = function(item)
    return ("ask %s is closed: %s"):format(item.id, item.question)
  end,
  step = function(item)
    return ("step %s was begun: what it did outside stays"):format(item.what or item.step)
  end,
  file = function(item, files)
    return not files and ("file %s/%s stays as it is now"):format(item.root, item.path) or nil
  end,
}

-- The words for each kind of item that stays.
local STAYS = {
  file = function(item) return ("%s/%s"):format(item.root or item.filesystem, item.path) end,
  entity = function(item) return ("entity %s %s"):format(item.class, item.id) end,
  session = function(item) return "session " .. item.name end,
  budget = function(item) return "budget " .. item.name end,
  files = function(item) return "files in memory " .. item.name end,
}

local function write_plan(found, flags, out)
  for _, item in ipairs(found.dropped) do
    local words = DROPPED[item.kind](item, flags.files)
    if words then
      out:write(("turn %d: %s\n"):format(item.turn, line(words)))
    end
  end
  for _, one in ipairs(changed.lines(found.changes, "")) do
    out:write(one, "\n")
  end
  for _, item in ipairs(found.stays) do
    out:write(("%s stays as it is: %s\n"):format(line(STAYS[item.kind](item)), line(item.why)))
  end
end

local function run(flags, words, out, line_of)
  if not flags.to then
    fault "the turn is missing: --to N"
  end
  local store <close>, path = stored.open(flags, line_of)
  local id = stored.find(store, words[1], path).conversation
  local found, err = ah._rewind(store, id, flags.to, flags.dry, flags.take, flags.files,
    flags.force)
  if not found and err.code == "conflict" then
    return 1, text.clean(err.message)
  elseif not found then
    fault("%s", err.message)
  end
  if flags.json then
    out:write(text.json { conversation = id, to = found.to, turns = found.turns,
      dropped = ah.array(found.dropped), changes = ah.array(found.changes),
      stays = ah.array(found.stays), dry = flags.dry or false }, "\n")
    return
  end
  write_plan(found, flags, out)
  out:write(("%s %s on after turn %d of %d.\n"):format(text.clean(id),
    flags.dry and "would go" or "goes", found.to, found.turns))
end

return {
  name = "rewind",
  doc = "let a conversation go on from an earlier turn",
  usage = "ID --to N",
  help = [[
Lets the conversation ID go on after turn N (0: before its first run), and
prints what is dropped and changed; effects outside stay. With --files, files of
the machine are put back, too. A unique beginning of ID is enough. Records are
kept: a later turn can be gone to in the same way.
]],
  exits = "0 ok, 1 another process has it, or changed a file, 2 other errors.",
  operand = { name = "id", least = 1, most = 1 },
  flags = { "json", stored.flag,
    { name = "to", value = "N", kind = "integer", once = true,
      doc = "the last turn that stays" },
    { name = "dry", doc = "only print what would be dropped and changed" },
    { name = "files", doc = "put files of the machine back, too" },
    { name = "force", doc = "also files that somebody else has changed since" },
    { name = "take", doc = "take it from the process that has it" } },
  mixed = true,
  run = stored.carefully(run),
}
