--- agenthost diff: where two conversations in a store part, and what each has from there on.
local ah, use = ...
local pairs_of, stored, text, told = use "pairs", use "stored", use "text", use "told"

local get = told.get

-- True if two values of JSON are equal, but for the members in `besides`.
local function equal(a, b, besides)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b
  end
  for name, value in pairs(a) do
    if not equal(value, b[name]) and not (besides and besides[name]) then
      return false
    end
  end
  for name in pairs(b) do
    if a[name] == nil and not (besides and besides[name]) then
      return false
    end
  end
  return true
end

local function same_calls(a, b)
  local calls, others = get(a, "tool_calls", "table") or {}, get(b, "tool_calls", "table") or {}
  for i = 1, math.max(#calls, #others) do
    if get(calls[i], "name", "string") ~= get(others[i], "name", "string")
      or get(calls[i], "arguments", "string") ~= get(others[i], "arguments", "string") then
      return false
    end
  end
  return true
end

-- Times, tokens and the ids of calls do not count.
local BESIDES = { time = true, id = true }
local function same_entry(a, b)
  if get(a, "type", "string") == "assistant" and get(b, "type", "string") == "assistant" then
    return equal(a.content, b.content) and equal(a.stop, b.stop) and same_calls(a, b)
  end
  return equal(a, b, BESIDES)
end

-- Returns a function for each kind of record, and one that returns the last entry of the
-- conversation as it was committed. Each entry names the one before it.
-- first: called for the entries of a checkpoint with which the conversation begins
local function adder(first)
  local waiting, results, changes = {}, {}, {}
  local add, ends = {}, {} -- ends: the last entry as of a record `turn`
  local last, begun, start -- start: the last one before the first run
  -- more: the record with what came with it; false: that is not known
  local function put(entry, turn, more)
    last = { before = last, entry = entry, turn = turn, more = more }
  end
  local function put_all(list, turn, more)
    for _, entry in ipairs(list or {}) do
      put(entry, turn, more)
    end
  end
  function add.checkpoint(_, turn, number)
    if not last then
      put_all(first(number), turn, false)
    end
  end
  function add.run_started()
    if not begun then
      begun, start = true, last
    end
  end
  function add.rewound(said)
    last, waiting = ends[get(said, "to", "number") or 0] or start, {}
  end
  function add.entries(said, turn) put_all(get(said, "entries", "table"), turn) end
  function add.queued(said) waiting[#waiting + 1] = said.entry end
  function add.answer(said, turn)
    results, changes = {}, {}
    put(said.entry, turn)
  end
  function add.settled(said)
    local call = get(said, "call", "number")
    if call then
      results[call], changes[call] = said.result, said
    end
    for _, entry in ipairs(get(said, "staged", "table") or {}) do
      waiting[#waiting + 1] = entry
    end
  end
  function add.apply_failed(said)
    local call = get(said, "call", "number")
    if call and said.result ~= nil then
      results[call], changes[call] = said.result, nil
    end
  end
  function add.turn(said, turn, number)
    local order = {}
    for call in pairs(results) do
      order[#order + 1] = call
    end
    table.sort(order)
    for _, call in ipairs(order) do
      put(results[call], turn, changes[call])
    end
    put_all(waiting, turn)
    put_all(get(said, "staged", "table"), turn)
    waiting, results, changes = {}, {}, {}
    ends[number] = last
  end
  return add, function() return last end
end

local KINDS = { "entries", "run_started", "answer", "settled", "apply_failed", "queued", "turn",
  "checkpoint", "rewound" }
local MEMBERS = { "call", "entities", "entries", "entry", "files", "result", "slices", "staged",
  "to" }

-- Returns the entries of a chain, the first one first.
local function listed(last)
  local found = {}
  while last do
    found[#found + 1] = last
    last = last.before
  end
  for i = 1, #found // 2 do
    found[i], found[#found + 1 - i] = found[#found + 1 - i], found[i]
  end
  return found
end

local function records_of(store, id, which)
  local records, err = store:records(id, which)
  return records or pairs_of.fault("%s", err.message)
end

local function entries_of(store, id)
  local records = records_of(store, id, { kinds = KINDS, members = MEMBERS })
  local add, last = adder(function(number)
    local record = records_of(store, id, { from = number, to = number })()
    return get(get(get(record, "said", "table"), "transcript", "table"), "entries", "table")
  end)
  local turn = 1
  for record in records do
    add[record.kind](type(record.said) == "table" and record.said or {}, turn, record.number)
    turn = turn + (record.kind == "turn" and 1 or 0)
  end
  return listed(last())
end

-- Returns what the call of an entry changed; "" if nothing.
local function changed(one)
  return one.more and told.changes(one.more) or ""
end

local function write_rest(out, id, found, from)
  local room = told.width() - 22
  out:write(("%s: %d more %s\n"):format(text.clean(id), #found - from + 1,
    #found == from and "entry" or "entries"))
  for i = from, #found do
    local one = found[i]
    local kind, said = told.entry(one.entry, room)
    local changes = changed(one)
    out:write(("%6d  turn %-4d %-9s %s\n"):format(i, one.turn, kind,
      told.line(said .. (changes ~= "" and " {" .. changes .. "}" or ""), room)))
  end
end

local function first_difference(a, b)
  local at = 1
  local function same(x, y)
    return same_entry(x.entry, y.entry)
      and (x.more == false or y.more == false or changed(x) == changed(y))
  end
  while a[at] and b[at] and same(a[at], b[at]) do
    at = at + 1
  end
  return (a[at] or b[at]) and at
end

local function shown(found, id, from)
  local list = ah.array {}
  for i = from or #found + 1, #found do
    list[#list + 1] = { number = i, turn = found[i].turn, entry = found[i].entry }
  end
  return { id = id, entries = list }
end

local function compare(store, ids, flags, out)
  local a, b = entries_of(store, ids[1]), entries_of(store, ids[2])
  local at = first_difference(a, b)
  if flags.json then
    out:write(text.json { equal = not at, same = (at or #a + 1) - 1,
      conversations = { shown(a, ids[1], at), shown(b, ids[2], at) } }, "\n")
  elseif not at then
    out:write(("They are equal: %d entries.\n"):format(#a))
  else
    out:write(at > 2 and ("The first %d entries are equal.\n"):format(at - 1)
      or at == 2 and "The first entry is equal.\n" or "They part at their first entry.\n")
    write_rest(out, ids[1], a, at)
    write_rest(out, ids[2], b, at)
  end
  return at and 1 or 0
end

local function run(flags, words, out, line)
  local store <close>, path = stored.open(flags, line)
  local ids = {}
  for i = 1, 2 do
    ids[i] = stored.find(store, words[i], path).conversation
  end
  local done, result = pcall(compare, store, ids, flags, out)
  if done then
    return result
  elseif type(result) == "table" and result.words then
    error(result, 0)
  end
  return 2, type(result) == "table" and result.message or tostring(result)
end

return {
  name = "diff",
  doc = "show where two conversations part",
  usage = "ID ID",
  help = [[
Compares the entries of two conversations, or of two forks of one: prints how
many are equal from the beginning, and what each has from there on. Times,
tokens and the ids of calls do not count.
]],
  exits = "0: they are equal; 1: they differ; 2: one of them cannot be read.",
  operand = { name = "id", least = 2, most = 2 },
  flags = { "json", stored.flag },
  mixed = true,
  run = stored.carefully(run),
}
