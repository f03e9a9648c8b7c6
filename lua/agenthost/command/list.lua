--- agenthost list: the conversations in a store.
local ah, use = ...
local stored, text, told = use "stored", use "text", use "told"

local MOST = 1000000

local function block(one, width)
  local state = #one.waiting > 0 and "waits for " .. table.concat(one.waiting, ", ")
    or one.state or "?"
  local left = ("%s  %s  %s  "):format(told.minute(one.changed), text.clean(one.id),
    told.line(state, 40))
  return left .. told.line(one.title or "", math.max(width - utf8.len(left), 20)) .. "\n"
end

local function run(flags, _, out, line)
  local store <close> = stored.open(flags, line)
  local found = assert(store:conversations { folder = flags.here and ah._real_path "." or nil,
    waiting = flags.waiting, limit = MOST })
  if flags.json then
    out:write(text.json { conversations = found }, "\n")
    return
  end
  local width = told.width()
  for _, one in ipairs(found) do
    out:write(block(one, width))
  end
  if not found[1] then
    out:write((flags.here or flags.waiting) and "There is no such conversation.\n"
      or "The store has no conversations.\n")
  end
end

return {
  name = "list",
  doc = "list the conversations in a store",
  help = [[
Lists the conversations in a store, the one that was changed last first: when,
its id, its state, and the first words of its first question.
]],
  operand = { name = "id", most = 0 },
  flags = { "json", stored.flag,
    { name = "here", doc = "only those that began in this folder" },
    { name = "waiting", doc = "only those that wait for a response" } },
  run = stored.carefully(run),
}
