--- agenthost store: what is kept in a store, and for how long.
local ah, use = ...
local pairs_of, stored, text, told = use "pairs", use "stored", use "text", use "told"

local fault, shown = pairs_of.fault, pairs_of.shown

local BIGGEST = 10 -- streams that stat lists
local ROUNDS = 8 -- times that gc deletes for --max-size, and measures again
local DAY_MS = 24 * 3600 * 1000

local UNITS = { h = DAY_MS // 24, d = DAY_MS, w = 7 * DAY_MS }
local SIZES = { K = 1 << 10, M = 1 << 20, G = 1 << 30, T = 1 << 40 }

-- -- words and numbers -------------------------------------------------------------------------

local function size_of(n)
  for _, unit in ipairs { "T", "G", "M", "K" } do
    if n >= SIZES[unit] then
      return ("%.1f %siB"):format(n / SIZES[unit], unit)
    end
  end
  return ("%d bytes"):format(n)
end

local function day_of(ms)
  local _, day = told.moment(ms)
  return day
end

local function counted(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

-- Returns the number of a flag in its unit; nil if the flag is not given.
local function read_number(flags, name, units, example)
  local value = flags[name:gsub("-", "_")]
  if not value then
    return nil
  end
  local digits, unit = value:match "^(%d+)(%a)$"
  local factor = units[unit]
  if not factor or #digits > 6 then
    fault("option --%s needs %s, found '%s'", name, example, shown(value))
  end
  return tonumber(digits) * factor
end

local function age(flags, name)
  return read_number(flags, name, UNITS, "an age as 12h, 30d or 8w")
end

-- -- streams -----------------------------------------------------------------------------------

-- Returns the name of a stream: the whole name of one that is no conversation, else an id or its
-- unique beginning.
local function found(store, word, path)
  return word:find("/", 1, true) and word or stored.find(store, word, path).conversation
end

-- Returns the names of the streams that the words name; of all without words.
local function named(store, words, path)
  local names = {}
  for i = 2, #words do
    names[#names + 1] = found(store, words[i], path)
  end
  if not words[2] then
    for i, one in ipairs(assert(store:stat()).streams) do
      names[i] = one.id
    end
  end
  return names
end

-- Returns the value of a call, or raises its error as a fault if the caller can mend it.
local function usable(value, err)
  if value == nil and err.code == "usage" then
    fault("%s", err.message)
  end
  return (assert(value, err))
end

-- -- export and import -------------------------------------------------------------------------

local function export(store, path, flags, words, out)
  for _, name in ipairs(named(store, words, path)) do
    out:write(usable(store:export(name, { kept = flags.kept })))
  end
end

local function import(store, _, flags, words, out)
  if not words[2] or words[3] then
    fault "agenthost store import needs one FILE (- is standard input)"
  end
  local parts, done = stored.read_exports(words[2]), {}
  if flags.as and parts[2] then
    fault("--as is for one conversation, and the file has %d", #parts)
  end
  for i, part in ipairs(parts) do
    done[i] = usable(store:import(part, { id = flags.as }))
    if not flags.json then
      out:write(("imported %s: %s\nhead %s\n"):format(text.clean(done[i].id),
        counted(done[i].records, "record"), done[i].head))
    end
  end
  if flags.json then
    out:write(text.json { imported = done }, "\n")
  end
end

-- -- deleting ----------------------------------------------------------------------------------

-- Removes streams. Returns those that were removed, and { id, message } for the others.
local function remove_all(store, names)
  local removed, refused = {}, {}
  for _, name in ipairs(names) do
    local ok, err = ah._store_remove(store, name)
    if ok then
      removed[#removed + 1] = name
    elseif err.code == "conflict" or err.code == "usage" then
      refused[#refused + 1] = { id = name, message = err.message }
    else
      error(err, 0)
    end
  end
  return removed, refused
end

local function print_removed(out, removed, refused)
  for _, name in ipairs(removed) do
    out:write(("deleted %s\n"):format(text.clean(name)))
  end
  for _, one in ipairs(refused) do
    out:write(("not deleted: %s: %s\n"):format(text.clean(one.id), text.clean(one.message)))
  end
end

-- A beginning of an id may be that of another conversation tomorrow.
local function check_whole(store, word, path)
  local name = found(store, word, path)
  if name ~= word then
    fault("there is no conversation '%s' (did you mean %s?)\n"
      .. "agenthost store delete needs the whole id.", shown(word), text.clean(name))
  end
end

local function delete(store, path, flags, words, out)
  if not words[2] then
    fault "agenthost store delete needs the ID of a conversation"
  end
  for i = 2, #words do
    check_whole(store, words[i], path)
  end
  local removed, refused = remove_all(store, { table.unpack(words, 2) })
  if removed[1] then
    assert(ah._store_purge(store))
  end
  if flags.json then
    out:write(text.json { deleted = ah.array(removed), kept = ah.array(refused) }, "\n")
  else
    print_removed(out, removed, refused)
  end
  return refused[1] and 1 or 0
end

-- -- retention ---------------------------------------------------------------------------------

-- Returns the ids of conversations to delete for their age, and the other streams, both with the
-- one that was changed first first.
local function by_age(streams, before)
  local old, rest = {}, {}
  for i = #streams, 1, -1 do
    local one = streams[i]
    if one.conversation and before and one.changed < before then
      old[#old + 1] = one.id
    else
      rest[#rest + 1] = one
    end
  end
  return old, rest
end

-- Returns the ids of the first conversations without which a store of `size` bytes has about
-- `most`, and the streams that are left.
local function by_size(streams, size, most)
  local total, ids, rest = 0, {}, {}
  for _, one in ipairs(streams) do
    total = total + one.bytes
  end
  local spare = total * (1 - most / size) -- so many bytes of records are too many
  for _, one in ipairs(streams) do
    if spare > 0 and one.conversation then
      ids[#ids + 1] = one.id
      spare = spare - one.bytes
    else
      rest[#rest + 1] = one
    end
  end
  return ids, rest
end

local function add_all(list, more)
  table.move(more, 1, #more, #list + 1, list)
end

-- Deletes until the files have at most `most` bytes, or no conversation is left that can be.
local function shrink(store, most, removed, refused)
  local tried = {}
  for _, one in ipairs(refused) do
    tried[one.id] = true
  end
  for _ = 1, ROUNDS do
    local stat, open = assert(store:stat()), {}
    for i = #stat.streams, 1, -1 do
      local one = stat.streams[i]
      one.conversation = one.conversation and not tried[one.id]
      open[#open + 1] = one
    end
    local ids = stat.size > most and by_size(open, stat.size, most) or {}
    if not ids[1] then
      return
    end
    local gone, held = remove_all(store, ids)
    add_all(removed, gone)
    add_all(refused, held)
    for _, one in ipairs(held) do
      tried[one.id] = true
    end
    assert(ah._store_purge(store))
  end
end

-- Erases what old records keep. Returns their number.
local function erase_all(store, before)
  local n = 0
  for _, one in ipairs(assert(store:stat()).streams) do
    n = n + assert(ah._store_erase(store, one.id, before))
  end
  return n
end

local function print_gc(out, done, dry)
  for _, name in ipairs(done.deleted) do
    out:write(("%s %s\n"):format(dry and "would delete" or "deleted", text.clean(name)))
  end
  print_removed(out, {}, done.kept)
  if done.erased and done.erased > 0 then
    out:write(("erased what %s kept\n"):format(counted(done.erased, "record")))
  end
  out:write(dry and ("The store has %s.\n"):format(size_of(done.before))
    or ("The store has %s, before %s.\n"):format(size_of(done.size), size_of(done.before)))
end

-- Finds what would be deleted.
local function preview(stat, before, most)
  local ids, rest = by_age(stat.streams, before)
  if most and stat.size > most then
    add_all(ids, (by_size(rest, stat.size, most)))
  end
  return { deleted = ah.array(ids), kept = ah.array {}, before = stat.size }
end

local function collect(store, stat, before, contents, most)
  local removed, refused = remove_all(store, (by_age(stat.streams, before)))
  local erased = contents and erase_all(store, contents) or 0
  assert(ah._store_purge(store))
  if most then
    shrink(store, most, removed, refused)
  end
  return { deleted = ah.array(removed), kept = ah.array(refused), erased = erased,
    before = stat.size, size = assert(store:stat()).size }
end

local function gc(store, _, flags, words, out)
  if words[2] then
    fault("agenthost store gc takes no words, found '%s'", shown(words[2]))
  end
  local now = math.floor(ah.now() * 1000)
  local older, contents = age(flags, "older"), age(flags, "contents")
  local most = read_number(flags, "max-size", SIZES, "a size as 500M or 1G")
  local stat = assert(store:stat())
  local before = older and now - older
  local done = flags.dry and preview(stat, before, most)
    or collect(store, stat, before, contents and now - contents, most)
  if flags.json then
    out:write(text.json(done), "\n")
  else
    print_gc(out, done, flags.dry)
  end
end

-- -- looking after it --------------------------------------------------------------------------

local function verdict_of(one)
  if not one.success then
    return one.code .. ": " .. one.message
  end
  return one.erased > 0 and ("sound, %s erased in part"):format(counted(one.erased, "record"))
    or "sound"
end

local function verify(store, path, flags, words, out)
  if flags.head and (not words[2] or words[3]) then
    fault "--head is for one conversation: agenthost store verify ID --head HASH"
  end
  local streams, sound = {}, true
  for i, name in ipairs(named(store, words, path)) do
    local one = usable(store:verify(name, { head = flags.head }))
    streams[i], sound = one, sound and one.success
    if not flags.json then
      out:write(("%s  %s\n  head %s\n"):format(text.clean(one.id), verdict_of(one), one.head))
    end
  end
  if flags.json then
    out:write(text.json { success = sound, streams = ah.array(streams) }, "\n")
  end
  return sound and 0 or 1
end

local function sums(streams)
  local sum = { conversations = 0, others = 0, records = 0, erased = 0 }
  for _, one in ipairs(streams) do
    local kind = one.conversation and "conversations" or "others"
    sum[kind] = sum[kind] + 1
    sum.records = sum.records + one.records
    sum.erased = sum.erased + one.erased
    sum.oldest = math.min(sum.oldest or one.oldest, one.oldest)
  end
  return sum
end

local function stat(store, path, flags, _, out)
  local found_here = assert(store:stat())
  if flags.json then
    out:write(text.json(found_here), "\n")
    return
  end
  local streams = found_here.streams
  local sum = sums(streams)
  out:write(("%s: %s\n"):format(text.clean(path), size_of(found_here.size)))
  out:write(("%s, %s, %s%s\n"):format(counted(sum.conversations, "conversation"),
    counted(sum.others, "other stream"), counted(sum.records, "record"),
    sum.oldest and ", the first of " .. day_of(sum.oldest) or ""))
  out:write(("%s: %s; %s erased in part\n"):format(counted(found_here.blobs, "long text"),
    size_of(found_here.blob_bytes), counted(sum.erased, "record")))
  table.sort(streams, function(a, b)
    return a.bytes > b.bytes or a.bytes == b.bytes and a.id < b.id
  end)
  for i = 1, math.min(#streams, BIGGEST) do
    local one = streams[i]
    out:write(("  %10s  %s  %s\n"):format(size_of(one.bytes), day_of(one.changed),
      text.clean(one.id)))
  end
end

local ACTIONS = { export = export, import = import, delete = delete, gc = gc, verify = verify,
  stat = stat }

local function run(flags, words, out, line)
  local action = ACTIONS[words[1]]
  if not action then
    fault("agenthost store needs export, import, delete, gc, verify or stat, found '%s'",
      shown(words[1]))
  end
  local store <close>, path = stored.open(flags, line, action == import)
  return action(store, path, flags, words, out)
end

return {
  name = "store",
  doc = "export, delete, verify ... what is in a store",
  usage = "ACTION [ID...]",
  help = [[
export [ID...], import FILE: as JSON lines. delete ID...: out of all files. gc:
by age and size. verify [ID...]: finds changed records. stat: what takes room.
]],
  exits = "0 ok, 1 a failure, a held or damaged conversation, 2 wrong usage.",
  operand = { name = "action", least = 1,
    complete = function() return { "export", "import", "delete", "gc", "verify", "stat" } end },
  flags = { "json", stored.flag,
    { name = "kept", doc = "export: with what is kept to go on" },
    { name = "as", value = "ID", once = true, doc = "import: under this id" },
    { name = "older", value = "AGE", once = true, doc = "gc: conversations not changed for 30d" },
    { name = "contents", value = "AGE", once = true, doc = "gc: erase what older records keep" },
    { name = "max-size", value = "SIZE", once = true, doc = "gc: the oldest ones above 1G" },
    { name = "dry", doc = "gc: only say what would be deleted" },
    { name = "head", value = "HEAD", once = true, doc = "verify: that it leads to this head" } },
  mixed = true,
  run = stored.carefully(run),
}
