-- Makes random valid streams of a conversation from a seed, with what their fold must give.
local ah = require "agenthost"
local random = require "support.random"
local records = require "support.records"

local row = records.row
local array = ah.array

-- A stream that is being made: { rows, steps of ahtest.build, ends[i]: a checkpoint may stand
-- behind row i, slice: name -> list of values, state: "class/id" -> value or false }.
local Maker = {}
Maker.__index = Maker

function Maker:chance(n)
  return self.random(n) == 1
end

function Maker:put(record)
  self.rows[#self.rows + 1] = record
end

function Maker:step(what, entry, slot)
  self.steps[#self.steps + 1] = { what = what, json = entry and ah.json.encode(entry), slot = slot }
end

function Maker:word()
  self.words = self.words + 1
  return ("%s %d"):format(self:chance(4) and 'q"ü\n' or "w", self.words)
end

-- Returns a change of one or two slices, and makes it in the model unless it is undone later.
function Maker:slices(make)
  local all = {}
  for _ = 1, self.random(2) do
    local name = ({ "Plan", "Log", 'Na"me' })[self.random(3)]
    local list = self.slice[name] or {}
    local keep, add = self.random(#list + 1) - 1, array {}
    for i = 1, self.random(3) - 1 do
      add[i] = { n = self:word() }
    end
    all[name] = all[name] or { keep = keep, add = add }
  end
  for name, change in pairs(make and all or {}) do
    local list = table.move(self.slice[name] or {}, 1, change.keep, 1, {})
    self.slice[name] = table.move(change.add, 1, #change.add, #list + 1, list)
  end
  return ah.object(all)
end

function Maker:entities(make)
  local class, id = "C" .. self.random(2), tostring(self.random(3))
  local state = not self:chance(3) and { v = self:word() } or nil
  if make then
    self.state[class .. "/" .. id] = state and ah.json.encode(state) or false
  end
  return array { { class = class, id = id, state = state } }
end

function Maker:entry()
  return self:chance(2) and records.note(self:word()) or records.user(self:word())
end

function Maker:session()
  self:put(row("session", { slices = self:slices(true),
    entities = self:chance(2) and self:entities(true) or nil }))
end

function Maker:entries()
  local list = array {}
  for i = 1, self.random(3) do
    list[i] = self:entry()
    self:step("add", list[i])
  end
  self:put(row("entries", { entries = list }))
end

function Maker:ask(call)
  self.asks = self.asks + 1
  local id = tostring(self.asks)
  self:put(row("ask", { ask = id, call = call, question = "Well?",
    kind = ({ "approval", "question", "lost" })[self.random(3)] }))
  if self:chance(2) then
    self:put(row("parked", { asks = array { id } }))
  end
  if not self:chance(4) then
    self:put(row("ask_closed", { ask = id, how = "response", response = self:word() }))
  end
end

function Maker:run_steps(call)
  for i = 1, self.random(3) - 1 do
    local key = "step " .. i
    if self:chance(2) then
      self:put(row("step_started", { call = call, step = key, on_lost = "tell" }))
    end
    self:put(row("step", { call = call, step = key, success = true }, { value = self:word() }))
  end
end

-- The handler of a call, or what remains of it.
function Maker:work(call, id)
  if self:chance(4) then
    self:ask(call)
  end
  if self:chance(5) then
    return
  end
  self:put(records.call_started(call, id, self:chance(3) and { path = "x" } or nil))
  self:run_steps(call)
  if not self:chance(6) then
    self:put(row("call_finished", { call = call, success = true },
      self:chance(2) and { session = self:word() } or nil))
  end
end

function Maker:settle(call, id)
  local files = self:chance(4)
  local failed = files and self:chance(2)
  local result, staged = records.result(id, self:word()), array {}
  for i = 1, self.random(3) - 1 do
    staged[i] = records.note(self:word())
  end
  self:put(row("settled", { call = call, result = result, staged = staged,
    slices = self:chance(2) and self:slices(not failed) or nil,
    entities = self:chance(3) and self:entities(not failed) or nil,
    files = files and array { { root = "/r", path = "a", after = ("0"):rep(64) } } or nil }))
  if failed then
    result = records.result(id, "could not be written")
    self:put(row("apply_failed", { call = call, result = result }))
  elseif files then
    self:put(row("applied", { call = call }))
  end
  self:step("fill", result, call)
  for _, note in ipairs(failed and {} or staged) do
    self:step("stage", note)
  end
end

function Maker:requests()
  for i = 1, self.random(2) do
    self:put(row("request", { model = "a/b", adapter = "a", attempt = i, entries = 1 }))
  end
end

function Maker:turn()
  local ids = {}
  for i = 1, self.random(4) - 1 do
    self.calls = self.calls + 1
    ids[i] = "call_" .. self.calls
  end
  local answer = records.assistant(self:word(), ids)
  self:requests()
  self.iteration = self.iteration + 1
  self:put(records.answer(answer, self.iteration))
  self:step("begin", answer)
  for i, id in ipairs(ids) do
    self:work(i - 1, id)
  end
  if self:chance(3) then
    local entry = self:entry()
    self:put(row("queued", { entry = entry }))
    self:step("stage", entry)
  end
  if self:chance(3) then
    self:session()
  end
  for i, id in ipairs(ids) do
    self:settle(i - 1, id)
  end
  self:commit()
end

function Maker:commit()
  local staged = array {}
  for i = 1, self.random(2) - 1 do
    staged[i] = self:entry()
    self:step("stage", staged[i])
  end
  self:put(row("turn", { staged = staged, progress = { iterations = self.iteration },
    slices = self:chance(4) and self:slices(true) or nil }))
  self:step("commit")
  self.ends[#self.rows] = true
end

function Maker:run()
  self.runs, self.iteration = self.runs + 1, 0
  self:put(row("run_started", { run = self.runs, first = 0 }))
  self:entries()
  for _ = 1, self.random(4) do
    self:turn()
    if self:chance(4) then
      self:entries()
    end
  end
  if self:chance(4) then
    self:put(row("cancelled"))
  end
  if not self:chance(6) then
    self:put(records.run_ended(self.runs, 0))
    return true
  end
end

return function(seed)
  local made = setmetatable({ random = random(seed), rows = {}, steps = {}, ends = {}, slice = {},
    state = {}, words = 0, calls = 0, asks = 0, runs = 0, iteration = 0 }, Maker)
  made:put(records.opened())
  made:entries()
  made.ends[#made.rows] = true
  for _ = 1, made.random(3) do
    if made:chance(3) then
      made:session()
    end
    if made:chance(3) then
      made:put(row("lease", { holder = "1 here", written_by = "0.2.0", readable_from = 1 }))
    end
    if not made:run() then
      break
    end
  end
  return made
end
