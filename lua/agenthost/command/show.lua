--- agenthost show: the records of a conversation in a store, a line each, as a tree, as JSON, or
-- what its requests have read from the provider's cache.
local _, use = ...
local changed, pairs_of, stored, text, told = use "changed", use "pairs", use "stored", use "text",
  use "told"

local get, line = told.get, told.line

local INDENT = (" "):rep(16)

-- Writes what a record keeps: a list of changes as a person was shown it, anything else in a line.
local function write_kept(record, width, out)
  local changes = record.kind == "ask" and get(record.kept, "changes", "table")
  if not changes then
    out:write(INDENT, "kept: ", line(record.kept, width - 22), "\n")
    return
  end
  for _, one in ipairs(changed.lines(changes, INDENT)) do
    out:write(one, "\n")
  end
end

-- Writes a line for each record, below a line for each turn.
local function as_lines(records, out, kept)
  local width, reader = told.width(), told.reader()
  local room = width - 29
  local day, turn
  for record in records do
    local clock, date = told.moment(record.time)
    local word, words, of = told.take(reader, record, room)
    if date ~= day then
      day = date
      out:write(date, "\n")
    end
    if of and of ~= turn then
      turn = of
      out:write("turn ", of, "\n")
    end
    out:write(("%6d  %s  %-11s %s\n"):format(record.number, clock, word, words))
    if record.erased then
      out:write(INDENT, "kept: erased\n")
    elseif kept and record.kept ~= nil then
      write_kept(record, width, out)
    end
  end
end

-- Each kind of record that opens a level, and those that are inside of it.
local DEPTH = { opened = 0, checkpoint = 0, lease = 0, run_started = 0, run_ended = 0, entries = 1,
  session = 1, request = 1, cancelled = 1, lost = 1, queued = 1, parked = 2, answer = 2,
  call_started = 3, settled = 3, call_finished = 4, step_started = 4, step = 4, ask = 4,
  ask_closed = 4, applied = 4, apply_failed = 4 }

-- Writes runs, and in them turns, calls and steps.
local function as_tree(records, out)
  local width, reader = told.width(), told.reader()
  local turn
  for record in records do
    local depth = DEPTH[record.kind] or 1
    local word, words, of = told.take(reader, record, width - 12 - 2 * depth)
    if record.kind == "answer" and of ~= turn then
      turn = of
      out:write("  turn ", of, "\n")
    end
    if record.kind ~= "turn" and record.kind ~= "request" then
      out:write(("  "):rep(depth), word, words ~= "" and " " .. words or "", "\n")
    end
  end
end

-- Writes each record as a JSON object, a line each.
local function as_json(records, out)
  for record in records do
    out:write(text.json(record), "\n")
  end
end

-- Writes the tokens of each answered request, and how many came from the cache.
local function as_cache(records, out)
  local reader = told.reader()
  local sum = { input = 0, cached_read = 0, cached_write = 0 }
  local function row(turn, model, u)
    out:write(("%6s %10.0f %10.0f %5.0f%% %10.0f  %s\n"):format(turn, u.input, u.cached_read,
      u.input > 0 and 100 * u.cached_read / u.input or 0, u.cached_write, model))
  end
  out:write("  turn      input       read   read    written  model\n")
  for record in records do
    local _, _, turn = told.take(reader, record, 40)
    local usage = record.kind == "answer" and get(record.said, "usage", "table")
    if usage then
      local u = {}
      for name, before in pairs(sum) do
        u[name] = get(usage, name, "number") or 0
        sum[name] = before + u[name]
      end
      local origin = get(get(record.said, "entry", "table"), "origin", "table")
      row(turn, line(get(origin, "adapter", "string") or "?", 30) .. "/"
        .. line(get(origin, "model", "string") or "?", 60), u)
    end
  end
  row("all", "", sum)
end

local FORMS = { tree = as_tree, json = as_json, cache = as_cache }

local function form_of(flags)
  local chosen
  for name in pairs(FORMS) do
    if flags[name] and chosen then
      pairs_of.fault("give one of --tree, --json and --cache")
    end
    chosen = flags[name] and name or chosen
  end
  return FORMS[chosen] or as_lines
end

local function run(flags, words, out, line_read)
  local form = form_of(flags)
  local store <close>, path = stored.open(flags, line_read)
  local id = stored.find_or_last(store, words[1], path).conversation
  local records, err = store:records(id, { kept = flags.kept,
    kinds = form == as_cache and { "answer", "turn" } or nil,
    members = form ~= as_json and told.MEMBERS or nil })
  if not records then
    pairs_of.fault("%s", err.message)
  elseif form == as_lines or form == as_tree then
    out:write("conversation ", text.clean(id), "\n")
  end
  local done, why = pcall(form, records, out, flags.kept)
  if not done then
    return 1, type(why) == "table" and why.message or tostring(why)
  end
end

return {
  name = "show",
  doc = "show what happened in a conversation",
  usage = "[ID]",
  help = [[
Shows the records of a conversation in a store, a line each; a unique beginning
of ID is enough, and without ID it is the last conversation of this folder.
Turns have the numbers that other commands take. Nothing is changed, and a
process may be at work on the conversation meanwhile.
]],
  operand = { name = "id", most = 1 },
  flags = { stored.flag,
    { name = "tree", doc = "show runs, turns, calls and steps as a tree" },
    { name = "json", doc = "print each record as JSON, a line each" },
    { name = "cache", doc = "show what requests read from the provider's cache" },
    { name = "kept", doc = "also show what is kept only to go on" } },
  mixed = true,
  run = stored.carefully(run),
}
