--- Records of a conversation in words, for agenthost show and diff: numbers the turns, and says in
-- a line what each record has. A store's file may hold anything, so every member is looked at
-- before it is used.
local ah, use = ...
local money, stored, text = use "money", use "stored", use "text"

local M = {}

local ROOM = 400 -- bytes of a text that are looked at, at least; a line has less

-- -- members of records ------------------------------------------------------------------------

--- Returns the member if the value is a table that has it in this type, else nil.
function M.get(value, name, kind)
  local found
  if type(value) == "table" then
    found = value[name]
  end
  if type(found) == kind then
    return found
  end
end
local get = M.get

local function list(value, name)
  return get(value, name, "table") or {}
end

--- Returns a text from outside in one harmless line of at most `room` characters.
function M.line(value, room)
  if value == nil then
    return ""
  elseif type(value) ~= "string" then
    value = ah.json.encode(value)
  end
  return ah._line(value, room)
end
local line = M.line

local function counted(n, what)
  return ("%d %s%s"):format(n, what, n == 1 and "" or "s")
end

-- Returns a whole number of a record as text.
local function number(value, name)
  return tostring(get(value, name, "number") or "?")
end

-- -- entries -------------------------------------------------------------------------------------

-- Returns the texts of a list of parts.
local function content(parts, room)
  local found = {}
  for i = 1, math.min(#parts, 100) do
    local kind = get(parts[i], "type", "string")
    if kind == "text" or kind == "refusal" then
      found[#found + 1] = text.cut(get(parts[i], "text", "string") or "", room * 4)
    elseif kind ~= "opaque" then
      found[#found + 1] = "[" .. text.cut(kind or "?", ROOM) .. "]"
    end
  end
  return table.concat(found, " ")
end

local function names(entry)
  local found = {}
  for i, tool in ipairs(list(entry, "tools")) do
    found[i] = get(tool, "name", "string") or "?"
    if i == 20 then
      break
    end
  end
  return table.concat(found, ", ")
end

local function calls_of(entry)
  local found = {}
  for _, call in ipairs(list(entry, "tool_calls")) do
    found[#found + 1] = ("%s(%s)"):format(get(call, "name", "string") or "?",
      text.cut(get(call, "arguments", "string") or "", ROOM))
    if #found == 20 then
      break
    end
  end
  return table.concat(found, ", ")
end

local ENTRY = {
  user = function(e, room) return "user", content(list(e, "content"), room) end,
  assistant = function(e, room)
    local said, calls = content(list(e, "content"), room), calls_of(e)
    return "answer", said .. (said ~= "" and calls ~= "" and " " or "")
      .. (calls ~= "" and "calls " .. calls or "")
  end,
  tool_result = function(e)
    return "result", (get(e, "success", "boolean") == false and "failed: " or "")
      .. (get(e, "name", "string") or "?") .. " -> " .. (get(e, "content", "string") or "")
  end,
  prompt = function(e) return "prompt", get(e, "text", "string") or "" end,
  note = function(e) return "note", get(e, "text", "string") or "" end,
  settings = function(e) return "settings", "model " .. (get(e, "model", "string") or "?") end,
  tools_added = function(e) return "tools", "offered: " .. names(e) end,
  tools_deferred = function(e) return "tools", "can be found: " .. names(e) end,
  tools_removed = function(e)
    return "tools", counted(#list(e, "names"), "tool") .. " removed"
  end,
  strategy = function(e) return "strategy", get(e, "name", "string") or "?" end,
}

--- Returns a harmless word for the kind of an entry, and its text (not harmless, in any length).
function M.entry(entry, room)
  local kind = get(entry, "type", "string") or "?"
  local say = ENTRY[kind]
  if say then
    return say(entry, room)
  end
  return line(kind, 9), ""
end

local function entries(found, room)
  local kind, said = M.entry(found[1], room)
  return kind, said .. (#found > 1 and (" (and %s)"):format(#found == 2 and "1 more entry"
    or ("%d more entries"):format(#found - 1)) or "")
end

-- -- changes -------------------------------------------------------------------------------------

--- Returns what a record changes in session, entities and files; "" if nothing.
function M.changes(said)
  local found = {}
  local slices = {}
  for name, slice in pairs(list(said, "slices")) do
    slices[#slices + 1] = ("%s +%d"):format(tostring(name), #list(slice, "add"))
  end
  table.sort(slices)
  for _, words in ipairs(slices) do
    found[#found + 1] = words
  end
  for _, entity in ipairs(list(said, "entities")) do
    found[#found + 1] = ("%s %s"):format(get(entity, "class", "string") or "?",
      get(entity, "id", "string") or "?")
  end
  for _, file in ipairs(list(said, "files")) do
    found[#found + 1] = (get(file, "after", "string") and "writes " or "removes ")
      .. (get(file, "path", "string") or "?")
  end
  return table.concat(found, ", ", 1, math.min(#found, 20)) .. (#found > 20 and ", ..." or "")
end

local function with_changes(words, said)
  local changes = M.changes(said)
  return words .. (changes ~= "" and " {" .. changes .. "}" or "")
end

--- Returns "120 in (100 cached), 9 out, $0.0042" of a usage; "" if there is none, or the provider
-- gave none.
function M.usage(usage)
  local input, output = get(usage, "input", "number"), get(usage, "output", "number")
  if not input or not output or usage.known == false then
    return ""
  end
  local read = get(usage, "cached_read", "number") or 0
  local cost = get(usage, "cost", "number")
  return ("%.0f in%s, %.0f out%s"):format(input,
    read > 0 and (" (%.0f cached)"):format(read) or "", output,
    cost and cost >= 0 and cost < 1e9 and ", " .. money.dollars(cost) or "")
end

-- -- records -------------------------------------------------------------------------------------

-- Returns "name(arguments)" of the call with the index that the record has.
local function call_of(r, said)
  local call = r.calls[get(said, "call", "number") or -1]
  return call and ("%s(%s)"):format(call.name, call.arguments)
    or get(said, "tool", "string") or "call " .. number(said, "call")
end

local function name_of(r, said)
  local call = r.calls[get(said, "call", "number") or -1]
  return call and call.name or get(said, "tool", "string") or "call " .. number(said, "call")
end

-- Returns the key of a step: the path of its task, kind, number and name.
local function step_of(said)
  return text.cut(get(said, "step", "string") or "?", ROOM)
end

local function origin(entry)
  local o = list(entry, "origin")
  return ("%s/%s"):format(get(o, "adapter", "string") or "?", get(o, "model", "string") or "?")
end

local SAY = {
  opened = function(_, s)
    local base = get(get(s, "base", "table"), "stream", "string")
    local other = s.agent == stored.OWN and "a prompt" or "a program"
    return "opened", ("by %s, version %s%s"):format(get(s, "script", "string") or other,
      get(s, "written_by", "string") or "?", base and ", a fork of " .. base or "")
  end,
  entries = function(_, s, room) return entries(list(s, "entries"), room) end,
  session = function(_, s) return "session", M.changes(s) end,
  run_started = function(_, s)
    return "run", ("%s begins"):format(number(s, "run"))
  end,
  request = function(_, s)
    local attempt = get(s, "attempt", "number") or 1
    return "request", ("%s, %s entries%s"):format(get(s, "model", "string") or "?",
      number(s, "entries"), attempt > 1 and ", attempt " .. attempt or "")
  end,
  answer = function(_, s, room)
    local entry, usage = list(s, "entry"), M.usage(s.usage)
    local _, said = M.entry(entry, room)
    local about = (" [%s%s]"):format(text.cut(origin(entry), 80), usage ~= "" and ", " .. usage
      or "")
    return "answer", line(said, math.max(room - #about, 20)) .. about
  end,
  call_started = function(r, s)
    return "call", call_of(r, s)
  end,
  step_started = function(r, s)
    local what = get(s, "what", "string") or step_of(s)
    r.steps[step_of(s)] = what
    return "step", what .. " begins"
  end,
  step = function(r, s)
    local key = step_of(s)
    local what = r.steps[key] or key:gsub("^%S* (%S+) %d+ ", "%1 "):gsub(" $", "")
    local message = get(s, "message", "string")
    r.steps[key] = nil
    return "step", what .. (s.success ~= false and " is done" or " has failed"
      .. (message and ": " .. message or ""))
  end,
  ask = function(r, s)
    return "ask", ("%s: %s %s%s"):format(get(s, "ask", "string") or "?",
      get(s, "question", "string") or get(s, "kind", "string") or "?",
      s.result ~= nil and "(changes) " or "", call_of(r, s))
  end,
  ask_closed = function(_, s)
    return "ask", ("%s: %s%s%s"):format(get(s, "ask", "string") or "?",
      get(s, "how", "string") or "?",
      s.response ~= nil and " " .. ah.json.encode(s.response) or "",
      get(s, "by", "string") and " by " .. s.by or "")
  end,
  call_finished = function(r, s)
    return "call", name_of(r, s) .. (s.success == false and " has failed" or " has ended")
  end,
  settled = function(_, s, room)
    local _, said = M.entry(list(s, "result"), room)
    return "result", with_changes(line(said, room), s)
  end,
  applied = function(r, s) return "files", "of " .. name_of(r, s) .. " are changed" end,
  apply_failed = function(r, s)
    return "files", "of " .. name_of(r, s) .. " could not be changed"
  end,
  turn = function(r, s)
    return "turn", with_changes(("%d ends"):format(r.turn), s)
  end,
  queued = function(_, s, room)
    local kind, said = M.entry(list(s, "entry"), room)
    return kind, "(queued) " .. said
  end,
  parked = function(_, s)
    local asks = {}
    for i, ask in ipairs(list(s, "asks")) do
      asks[i] = type(ask) == "string" and ask or "?"
    end
    return "waits", "for " .. table.concat(asks, ", ", 1, math.min(#asks, 20))
  end,
  lost = function(_, s)
    return "lost", ("a %s: its process ended"):format(get(s, "what", "string") or "?")
  end,
  cancelled = function(_, s)
    return "cancelled", get(s, "by", "string") and "by " .. s.by or ""
  end,
  run_ended = function(_, s)
    if s.success == true then
      return "run", ("%s ends: %s"):format(number(s, "run"), get(s, "stop", "string") or "?")
    end
    return "run", ("%s fails: %s: %s"):format(number(s, "run"), get(s, "code", "string") or "?",
      get(s, "message", "string") or "")
  end,
  checkpoint = function() return "checkpoint", "" end,
  restoring = function(_, s)
    return "files", ("%d are put back"):format(#list(s, "files"))
  end,
  restored = function() return "files", "are put back" end,
  rewound = function(r, s)
    local turn = r.ends[get(s, "to", "number") or 0]
    return "rewound", turn and "to turn " .. turn or "to before the first run"
  end,
  lease = function(_, s)
    return "taken", "by " .. (get(s, "holder", "string") or "?")
  end,
  spent = function(_, s) return "spent", ah.json.encode(list(s, "used")) end,
  written = function(_, s)
    local paths = list(s, "paths")
    return "files", counted(#paths, "change") .. ": " .. tostring(paths[1])
  end,
}

--- The members of records that M.take looks at.
M.MEMBERS = { "agent", "ask", "asks", "attempt", "base", "by", "call", "code", "entities",
  "entries", "entry", "files", "holder", "how", "kind", "message", "model", "paths", "question",
  "response", "result", "run", "script", "slices", "step", "stop", "success", "to", "tool", "usage",
  "used", "what", "written_by" }

-- Records that belong to no turn, or to the one before.
local BETWEEN = { opened = true, run_ended = true, checkpoint = true, lease = true, lost = true }

--- Returns a reader of records, which are given to M.take in their order. `turn`: the number of the
-- turn to which the record belongs: one more than there were records `turn` before it.
function M.reader()
  return { turn = 1, calls = {}, steps = {}, ends = {} }
end

--- Returns what a record is, in words: a word, a text in one harmless line of at most `room`
-- characters, and its turn; the turn is nil for records between turns.
function M.take(r, record, room)
  local said = type(record.said) == "table" and record.said or {}
  if record.kind == "answer" then
    r.calls, r.steps = {}, {}
    for i, call in ipairs(list(said.entry, "tool_calls")) do
      r.calls[i - 1] = { name = get(call, "name", "string") or "?",
        arguments = text.cut(get(call, "arguments", "string") or "", math.max(room * 4, ROOM)) }
    end
  end
  local turn, say = r.turn, SAY[record.kind]
  local word, words = record.kind, ""
  if say then
    word, words = say(r, said, room)
  else
    word = line(word, 11)
  end
  if record.kind == "turn" then
    r.turn, r.ends[record.number] = turn + 1, turn
  end
  return word, line(words, room), not BETWEEN[record.kind] and turn or nil
end

--- Returns the width of a line: that of the terminal, or what is usual elsewhere.
function M.width()
  return math.max(ah._columns(1) or 160, 40)
end

local second, clock, date -- of the last moment, as many records have the same

--- Returns "14:03:59" and "2026-11-23" of a time in ms.
function M.moment(ms)
  if ms < 0 or ms > 1e14 then
    return "?", "?"
  elseif ms // 1000 ~= second then
    second = math.floor(ms // 1000)
    local _, words = pcall(os.date, "%H:%M:%S %Y-%m-%d", second) -- its times may have 32 bits
    clock, date = words:match "^([%d:]+) ([%d-]+)$"
  end
  return clock or "?", date or "?"
end

--- Returns "2026-11-23 14:03" of a time in ms.
function M.minute(ms)
  local at, day = M.moment(ms)
  return day .. " " .. at:sub(1, 5)
end

return M
