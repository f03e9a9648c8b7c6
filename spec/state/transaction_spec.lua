-- Tool calls are transactions: random programs of handlers, nested and parallel, waiting and not,
-- change all kinds of state and fail at random points in random ways. The final state must be that
-- of the successful calls only, applied in order, as a plain model in this file does it.
--
--   AGENTHOST_HANDLERS=10000   handlers in all (fewer by default)
--   AGENTHOST_SEED=7           the first program; a failure names its own
local ah = require "agenthost"
local generator = require "support.random"
local ahtest = require "ahtest"

local HANDLERS = tonumber(os.getenv("AGENTHOST_HANDLERS") or 1500)
local SEED = tonumber(os.getenv("AGENTHOST_SEED") or 1)

-- -- types: the slices and their events ------------------------------------------------------

local Item = ah.type { name = "Item", fields = { n = "integer" } }
local Count = ah.type { name = "Count", fields = { n = "integer" } }
local Entry = ah.type { name = "Entry", fields = { id = "integer", n = "integer" } }
local Add = ah.type { name = "Add", fields = { n = "integer" } }
local Odd = ah.type { name = "Odd", fields = { n = "integer" } }
local Trace = ah.type { name = "Trace", fields = { n = "integer" } }
local STATE = { "Count", "Entry", "Item" }

local function new_session()
  local s = ah.session { types = { Item, Count } }
  s:register(Entry, { key = "id" })
  s:register(Trace, { policy = "log" })
  s:reduce(Count, Add, function(view, event)
    local count = view:latest() or { n = 0 }
    return view:replace { { n = count.n + (event.value and event.value.n or 1000) } }
  end)
  s:reduce(Item, Add, function(view, event)
    if event.value and event.value.n % 3 == 0 then
      view:extend { { n = event.value.n }, { n = -event.value.n } }
    end
  end)
  s:reduce(Item, Odd, function(view, event)
    assert(event.value.n % 2 == 1, "even")
    view:append { n = event.value.n }
  end)
  return s
end

-- -- the model: the same in plain tables -------------------------------------------------------

local Model = {}
Model.__index = Model

local function new_model(parent)
  return setmetatable({ parent = parent, slices = {} }, Model)
end

function Model:read(name)
  local list = self.slices[name]
  if list or not self.parent then
    return list or {}
  end
  return self.parent:read(name)
end

--- Returns the model's own copy of a list, to change.
function Model:write(name)
  self.slices[name] = table.move(self:read(name), 1, #self:read(name), 1, {})
  return self.slices[name]
end

function Model:dispatch(name, value)
  if name == "Add" then
    local count = self:read("Count")
    self.slices.Count = { { n = (count[#count] or { n = 0 }).n + (value and value.n or 1000) } }
    local items = self:write("Item")
    if value and value.n % 3 == 0 then
      items[#items + 1] = { n = value.n }
      items[#items + 1] = { n = -value.n }
    end
  elseif name == "Odd" then
    table.insert(self:write("Item"), { n = value.n })
  elseif name == "Entry" then
    local entries = self:write("Entry")
    for i, e in ipairs(entries) do
      if e.id == value.id then
        entries[i] = value
        return
      end
    end
    entries[#entries + 1] = value
  end
end

-- -- programs -------------------------------------------------------------------------------------

-- Steps to draw from, frequent ones repeated. A handler does a list of them, of which the last may
-- be a failure.
local STEPS = {
  "add", "add", "odd", "entry", "append", "append", "clear", "replace", "trace", "note", "publish",
  "sleep", "ledger", "object", "line", "line", "file", "nest", "nest",
}
local FAILURES = {
  "raise", "object raise", "nil", "fail", "not JSON", "wrong value", "refuse", "odd even",
}

local function new_program(seed)
  return { random = generator(seed), calls = {} }
end

local function new_run(p, depth)
  local turns = {}
  for i = 1, p.random(depth == 0 and 4 or 2) do
    turns[i] = {}
    for k = 1, p.random(3) do
      turns[i][k] = p:new_call(depth)
    end
  end
  return turns
end

local function new_step(p, depth)
  local step = { what = STEPS[p.random(#STEPS)], n = p.random(99), of = p.random(3) }
  if step.what == "nest" then
    step.run = depth < 2 and p.random(3) == 1 and new_run(p, depth + 1) or nil
  end
  return step
end

local Program = { __index = {} }

function Program.__index:new_call(depth)
  local call = { parallel = self.random(2) == 1, steps = {}, id = #self.calls + 1 }
  self.calls[call.id] = call
  for i = 1, self.random(6) do
    call.steps[i] = new_step(self, depth)
  end
  if self.random(3) == 1 then
    call.failure = FAILURES[self.random(#FAILURES)]
  else
    call.returns = self.random(4)
  end
  return call
end

-- -- in the library ------------------------------------------------------------------------------

local function new_object()
  local object = { list = {} }
  function object:snapshot() return table.move(self.list, 1, #self.list, 1, {}) end
  function object:restore(list) self.list = list end
  return object
end

local FOLDER = os.tmpname()
os.remove(FOLDER)
assert(os.execute("mkdir " .. FOLDER))

local function new_places()
  local folder = assert(ah.filesystem { root = FOLDER, sync = false })
  for _, item in ipairs(folder:list()) do
    assert(folder:delete(item.name, { recursive = true }))
  end
  return { ah.filesystem { memory = true }, folder }
end

local function new_world()
  local s = new_session()
  local w = { places = new_places(),
     sessions = { s, new_session(), s:child() }, ledger = ahtest.ledger(),
    object = new_object(), published = {}, traces = { 0, 0, 0 }, ok = {} }
  s.dispatcher:subscribe("Item", function(value) table.insert(w.published, value.n) end)
  return w
end

local do_run

local steps = {}
function steps.add(w, step) w.sessions[step.of]:dispatch(Add { n = step.n }) end
function steps.odd(w, step) w.sessions[step.of]:dispatch(Odd { n = step.n | 1 }) end
function steps.entry(w, step)
  w.sessions[step.of]:dispatch(Entry { id = step.n % 4, n = step.n })
end
function steps.append(w, step) w.sessions[step.of][Item]:append { n = step.n } end
function steps.clear(w, step)
  if step.n % 4 == 0 then
    w.sessions[step.of].Item:clear()
  end
end
function steps.replace(w, step)
  if step.n % 4 == 0 then
    w.sessions[step.of].Entry:replace { { id = 9, n = step.n } }
  end
end
function steps.trace(w, step)
  w.sessions[step.of]:dispatch(Trace { n = step.n })
  w.traces[step.of] = w.traces[step.of] + 1
end
function steps.note(_, step, ctx) ctx:note("note " .. step.n) end
function steps.publish(w, step, ctx)
  w.sessions[1].dispatcher:publish(Item { n = step.n })
  assert(ctx.session)
end
function steps.sleep() ah.sleep(0) end
function steps.ledger(w, step) w.ledger:add(step.n) end
function steps.object(w, step, ctx)
  ctx:enlist(w.object)
  w.object.list[#w.object.list + 1] = step.n
end
function steps.line(w, step)
  local place = w.places[step.of % 2 + 1]
  assert(place:append("log", step.n .. "\n"))
end
function steps.file(w, step)
  local place = w.places[step.of % 2 + 1]
  local path = "d" .. step.n % 2 .. "/" .. step.n % 3
  assert(place:write(path, tostring(step.n)))
  assert(place:read(path) == tostring(step.n))
end
function steps.nest(w, step)
  if step.run then
    do_run(w, step.run)
  end
end

local failures = {}
failures["raise"] = function() error("at random") end
failures["object raise"] = function()
  error(ah.error { code = "tool_validation", message = "no" })
end
failures["nil"] = function() return nil, "at random" end
failures["fail"] = function() return ah.fail("at random") end
failures["not JSON"] = function() return print end
failures["wrong value"] = function() return { n = "no number" } end
failures["refuse"] = function(w) w.ledger:add(1, true) end
failures["odd even"] = function(w) w.sessions[1]:dispatch(Odd { n = 2 }) end

local returns = {
  function(call) return Add { n = call.id } end,
  function(call) return { n = call.id } end, -- the tool declares the type
  function() return ah.ok() end,
  function() end,
}

-- In a nested run the tools' values go to the session of that run.
local function new_tools(w)
  local function handler(args, ctx)
    local call = w.program.calls[args.id]
    for _, step in ipairs(call.steps) do
      steps[step.what](w, step, ctx)
    end
    if call.failure then
      return failures[call.failure](w)
    end
    return returns[call.returns](call)
  end
  local tools = {}
  for i, name in ipairs { "seq", "par" } do
    tools[i] = ah.tool { name = name, description = "Does what it is told.", result = Add,
      params = { id = "integer" }, parallel = name == "par", handler = handler }
  end
  return tools
end

function do_run(w, turns)
  local script = {}
  for i, turn in ipairs(turns) do
    script[i] = { calls = {} }
    for k, call in ipairs(turn) do
      script[i].calls[k] = { name = call.parallel and "par" or "seq", arguments = { id = call.id } }
    end
  end
  script[#script + 1] = "done"
  return assert(ah.run {
    model = ah.scripted(script), tools = w.tools, session = w.sessions[1], log = function() end,
    on = { tool_invoked = function(e)
      w.ok[ah.json.decode(e.arguments).id] = e.success
    end },
    "go",
  })
end

-- -- in the model ---------------------------------------------------------------------------

local function new_expected()
  local m = new_model()
  return { sessions = { m, new_model(), new_model(m) }, ledger = 0, object = {}, published = {},
    places = { {}, {} } }
end

local expect_run

local expected = {}
function expected.add(w, step) w.sessions[step.of]:dispatch("Add", { n = step.n }) end
function expected.odd(w, step) w.sessions[step.of]:dispatch("Odd", { n = step.n | 1 }) end
function expected.entry(w, step)
  w.sessions[step.of]:dispatch("Entry", { id = step.n % 4, n = step.n })
end
function expected.append(w, step)
  table.insert(w.sessions[step.of]:write("Item"), { n = step.n })
end
function expected.clear(w, step)
  if step.n % 4 == 0 then
    w.sessions[step.of].slices.Item = {}
  end
end
function expected.replace(w, step)
  if step.n % 4 == 0 then
    w.sessions[step.of].slices.Entry = { { id = 9, n = step.n } }
  end
end
function expected.publish(w, step) table.insert(w.published, step.n) end
function expected.ledger(w, step) w.ledger = w.ledger + step.n end
function expected.object(w, step) table.insert(w.object, step.n) end
function expected.line(w, step)
  local place = w.places[step.of % 2 + 1]
  place.log = (place.log or "") .. step.n .. "\n"
end
function expected.file(w, step)
  w.places[step.of % 2 + 1]["d" .. step.n % 2 .. "/" .. step.n % 3] = tostring(step.n)
end
function expected.nest(w, step, ok)
  if step.run then
    expect_run(w, step.run, ok)
  end
end

function expect_run(w, turns, ok, notes)
  for _, turn in ipairs(turns) do
    for _, call in ipairs(turn) do
      for _, step in ipairs(ok[call.id] and call.steps or {}) do
        if expected[step.what] then
          expected[step.what](w, step, ok)
        elseif step.what == "note" and notes then
          notes[#notes + 1] = "note " .. step.n
        end
      end
      if ok[call.id] then
        w.sessions[1]:dispatch("Add", call.returns <= 2 and { n = call.id } or nil)
      end
    end
  end
end

-- -- comparing -----------------------------------------------------------------------------

--- Returns all files of all places, by their paths.
local function files_of(w)
  local all = {}
  for i, place in ipairs(w.places) do
    for _, path in ipairs(assert(place:glob "**")) do
      all[i .. path] = place:read(path)
    end
  end
  return ah.object(all)
end

local function expected_files(m)
  local all = {}
  for i, place in ipairs(m.places) do
    for path, text in pairs(place) do
      all[i .. path] = text
    end
  end
  return ah.object(all)
end

local function state_of(w, reply)
  local slices, notes = {}, {}
  for i, s in ipairs(w.sessions) do
    for _, name in ipairs(STATE) do
      slices[i .. name] = ah.array(s[name]:all())
    end
  end
  for _, entry in ipairs(ah.json.decode(reply:transcript()).entries) do
    if entry.type == "note" then
      notes[#notes + 1] = entry.text
    end
  end
  return ah.json.encode { slices = slices, notes = ah.array(notes), ledger = w.ledger:state(),
    object = ah.array(w.object.list), published = ah.array(w.published), files = files_of(w) }
end

local function expected_state(w, turns)
  local m, notes, slices = new_expected(), {}, {}
  expect_run(m, turns, w.ok, notes)
  for i, s in ipairs(m.sessions) do
    for _, name in ipairs(STATE) do
      slices[i .. name] = ah.array(table.move(s:read(name), 1, #s:read(name), 1, {}))
    end
  end
  return ah.json.encode { slices = slices, notes = ah.array(notes), ledger = m.ledger,
    object = ah.array(m.object), published = ah.array(m.published), files = expected_files(m) }
end

local function count(w)
  local n = { done = 0, failed = 0 }
  for _, ok in pairs(w.ok) do
    n.done = n.done + 1
    n.failed = n.failed + (ok and 0 or 1)
  end
  return n
end

local function try_program(seed)
  local program = setmetatable(new_program(seed), Program)
  local turns = new_run(program, 0)
  local w = new_world()
  w.program, w.tools = program, new_tools(w)
  local reply = do_run(w, turns)
  assert.equal(expected_state(w, turns), state_of(w, reply), "program " .. seed)
  for i = 1, 2 do -- logs keep everything; the child's log begins with its parent's
    assert.equal(w.traces[i], #w.sessions[i].Trace, "program " .. seed)
  end
  local _, _, _, live = w.ledger:state()
  assert.equal(0, live, "participants that were not given back, program " .. seed)
  return count(w)
end

describe("tool calls", function()
  teardown(function()
    os.execute("rm -rf " .. FOLDER)
  end)

  it("leave what the successful ones alone, in order, would have left", function()
    local done, failed, seed = 0, 0, SEED
    while done < HANDLERS do
      local n = try_program(seed)
      done, failed, seed = done + n.done, failed + n.failed, seed + 1
    end
    assert.is_true(failed > done / 10 and failed < done * 9 / 10, failed .. " of " .. done)
  end)
end)

describe("files that a handler changes", function()
  local function call(...)
    local calls, tools = {}, {}
    for i, handler in ipairs { ... } do
      tools[i] = ah.tool { name = "t" .. i, description = "Does it.", handler = handler }
      calls[i] = { name = "t" .. i }
    end
    local contents = {}
    local reply = assert(ah.run { model = ah.scripted { { calls = calls }, "done" }, tools = tools,
      log = function() end, "go" })
    for _, m in ipairs(reply.messages) do
      contents[#contents + 1] = m.role == "tool" and m.content or nil
    end
    return contents
  end

  it("are there when the call has succeeded, and as they were when it failed", function()
    local fs = ah.filesystem { files = { a = "old", b = "old" } }
    local contents = call(function()
      fs:write("a", "new")
      fs:delete "b"
      fs:rename("a", "c")
      error(fs:read "c" .. tostring(fs:exists "b"))
    end, function()
      fs:append("a", "er")
      return fs:read "a"
    end)
    assert.same({ "Tool 't1' execution failed: newfalse", "older" }, contents)
    assert.same({ "older", "old", false }, { fs:read "a", (fs:read "b"), fs:exists "c" })
  end)

  it("fail the call where another one changed them meanwhile", function()
    local fs = ah.filesystem { files = { a = "1" } }
    local function increment()
      local n = tonumber((fs:read "a"))
      ah.sleep(0)
      fs:write("a", tostring(n + 1))
    end
    local tool = ah.tool { name = "count", description = "Counts.", parallel = true,
      handler = increment }
    local reply = assert(ah.run { tools = { tool }, "go", model = ah.scripted {
      { calls = { { name = "count" }, { name = "count" } } }, "done" } })
    assert.equal("2", (fs:read "a"))
    assert.truthy(reply.messages[4].content:find("changed meanwhile by another call", 1, true))
  end)

  it("are not for reducers", function()
    local fs, s = ah.filesystem { memory = true }, ah.session { types = { Item } }
    s:reduce(Item, Add, function() fs:write("a", "x") end)
    local ok, err = pcall(s.dispatch, s, Add { n = 1 })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("a reducer must change nothing but its slice", 1, true))
    assert.is_false(fs:exists "a")
  end)

  -- Files are prepared before the session, whose reducers run again if another call has committed
  -- meanwhile. At that moment the reducer changes the machine's folder.
  it("fail the call and take back all else where the machine refuses them at the end", function()
    local path = os.tmpname()
    assert(os.remove(path) and os.execute("mkdir " .. path))
    local disk, memory = ah.filesystem { root = path }, ah.filesystem { memory = true }
    local session, armed = ah.session { types = { Item } }, false
    session:reduce(Item, Add, function(view, event)
      if armed then
        os.execute(("mkdir -p %s/b"):format(path))
      end
      return view:append(Item { n = event.value.n })
    end)
    local put = ah.tool { name = "put", description = "Puts.", parallel = true,
      params = { name = "string", n = "integer" },
      handler = function(args)
        disk:write(args.name, "new")
        disk:write(args.name .. "2", "new")
        memory:write(args.name, "new")
        session:dispatch(Add { n = args.n })
        ah.sleep(0)
        armed = args.name == "b"
      end }
    local reply = assert(ah.run { tools = { put }, session = session, "go", log = function() end,
      model = ah.scripted { { calls = { { name = "put", arguments = { name = "a", n = 1 } },
        { name = "put", arguments = { name = "b", n = 2 } } } }, "done" } })
    assert.equal("OK", reply.messages[3].content)
    local said = reply.messages[4].content
    assert.truthy(said:find("^Tool 'put' execution failed: cannot write 'b': "), said)
    assert.truthy(said:find("another program has put something else there", 1, true))
    assert.same({ 1, 1 }, { #session[Item], session[Item]:latest().n })
    assert.same({ true, false }, { memory:exists "a", memory:exists "b" })
    assert.same({ "new", nil }, { (disk:read "a"), (disk:read "b2") })
    assert.equal("a a2 b", (io.popen("ls -A " .. path):read("a"):gsub("%s+", " "):sub(1, -2)))
    os.execute("rm -r " .. path)
  end)
end)
