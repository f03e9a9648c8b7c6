--- agenthost rewind: lets a conversation in a store go on from an earlier turn.
local ah, use = ...
local dropped, pairs_of, stored, text = use "dropped", use "pairs", use "stored", use "text"

local fault = pairs_of.fault

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
  for _, one in ipairs(dropped.lines(found, flags.files)) do
    out:write(one, "\n")
  end
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
