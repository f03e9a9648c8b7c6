-- Random calls that fail at random moments in random ways (they raise, return an error or a value
-- of the wrong type, exceed their time, are cancelled, or a run in them fails), nested and
-- parallel, and change all kinds of state. The whole state is the same before and after each failed
-- call. The effects of the other calls equal those in a second world in which the same steps are
-- done outside of calls, in the order of the request.
--
--   AGENTHOST_FAILING=100000   calls in all (fewer by default)
--   AGENTHOST_SEED=7           the first program; a failure names its own
local ah = require "agenthost"
local generator = require "support.random"

local CALLS = tonumber(os.getenv("AGENTHOST_FAILING") or 1200)
local SEED = tonumber(os.getenv("AGENTHOST_SEED") or 1)
local LATE = 0.002 -- seconds: the timeout of some calls
local LONG = 30    -- seconds: a wait that must not end by itself

local FOLDER = os.tmpname()
os.remove(FOLDER)
assert(os.execute("mkdir " .. FOLDER))

-- -- worlds -----------------------------------------------------------------------------------

local Item = ah.type { name = "Item", fields = { n = "integer" } }
local Add = ah.type { name = "Add", fields = { n = "integer" } }
local Probe = ah.type { name = "Probe", fields = { n = "integer" } }
local Account = ah.entity { name = "Account", fields = { "id", "n" } }
Account:tool { name = "add", description = "Adds.", handler = function() end }

local TOOLS = {}
for i = 1, 5 do
  TOOLS[i] = ah.tool { name = "x" .. i, description = "Does it.", handler = function() end }
end

local function new_session()
  local s = ah.session { types = { Item } }
  s:register(Add)
  s:reduce(Item, Add, function(view, event)
    return view:append { n = event.value.n + view:len() }
  end)
  return s
end

local function new_object()
  local object = { list = {} }
  function object:snapshot() return #self.list end
  function object:restore(n) self.list = table.move(self.list, 1, n, 1, {}) end
  return object
end

local function new_disk(name)
  local path = FOLDER .. "/" .. name
  assert(os.execute("mkdir -p " .. path))
  local fs = assert(ah.filesystem { root = path, sync = false })
  for _, item in ipairs(fs:list()) do
    assert(fs:delete(item.name, { recursive = true }))
  end
  return fs
end

local function new_places(name)
  local memory, disk = ah.filesystem { memory = true }, new_disk(name)
  local over = memory:overlay()
  return { memory, disk, over, over:overlay(), disk:overlay() }
end

local function new_agent(fields)
  fields.model, fields.log = ah.scripted { "." }, function() end
  return assert(ah.agent(fields))
end

local function new_world(name)
  local session = new_session()
  local w = { session = session, sessions = { session, session:child(), new_session() },
    places = new_places(name), objects = { new_object(), new_object() },
    account = Account { id = "a", n = 0, deep = { list = {} } },
    registry = ah.registry { TOOLS[1] },
    published = {}, probes = 0, stops = {} }
  w.agents = { new_agent { registry = w.registry }, new_agent { tools = { TOOLS[2] } } }
  session.dispatcher:subscribe("Item", function(value)
    w.published[#w.published + 1] = value.n
  end)
  function w.probe() w.probes = w.probes + 1 end
  for i = 1, 3 do
    w.stops[i] = session.dispatcher:subscribe("Probe", w.probe)
  end
  return w
end

-- -- the whole visible state of a world -----------------------------------------------------------

--- Reads the files only in ways that an overlay does not record.
local function files_of(fs)
  local all = {}
  for _, match in ipairs(assert(fs:grep("^", { max = 10000 }))) do
    all[#all + 1] = match.path .. ":" .. match.line .. ":" .. match.text
  end
  return table.concat(all, "\n")
end

local function conversation_of(agent)
  local tools, order, seen = {}, {}, {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    for _, t in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      order[#order + 1] = tools[t.name] == nil and t.name or nil
      tools[t.name] = true
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      tools[name] = false
    end
    seen[#seen + 1] = entry.type == "user" and entry.content[1].text or nil
  end
  for _, name in ipairs(order) do
    seen[#seen + 1] = name .. tostring(tools[name])
  end
  return table.concat(seen, " ")
end

local function state_of(w)
  local all = { account = w.account.n, published = ah.array(w.published),
    deep = ah.array(w.account.deep.list), registry = ah.array(w.registry:tools_for_llm()) }
  for i, s in ipairs(w.sessions) do
    all["session" .. i] = s:snapshot()
  end
  for i, fs in ipairs(w.places) do
    all["files" .. i] = files_of(fs)
  end
  for i, object in ipairs(w.objects) do
    all["object" .. i] = ah.array(object.list)
  end
  for i, agent in ipairs(w.agents) do
    all["agent" .. i] = conversation_of(agent)
  end
  w.probes = 0
  w.session.dispatcher:publish(Probe { n = 1 })
  all.subscribers = w.probes
  return ah.json.encode(all)
end

-- -- steps of calls: in a call there is a ctx, in the second world there is none ----------------
-- Each place has paths of its own, so that overlays do not conflict with parallel calls below them.

local steps = {}

function steps.dispatch(w, step) w.sessions[step.of]:dispatch(Add { n = step.n }) end
function steps.append(w, step) w.sessions[step.of][Item]:append { n = step.n } end
function steps.clear(w, step)
  if step.n % 5 == 0 then
    w.sessions[step.of][Item]:clear()
  end
end
function steps.restore(w, step)
  if step.n % 9 == 0 then
    assert(w.sessions[3]:restore '{"agenthost_session":1,"slices":{"Item":[{"n":7}]}}')
  end
end
function steps.show(w, step)
  w.session:dispatch(ah.set_visibility_override { path = "p" .. step.of, visibility = "full" })
end
function steps.publish(w, step) w.session.dispatcher:publish(Item { n = step.n }) end
function steps.note(_, step, ctx)
  if ctx then
    ctx:note("note " .. step.n)
  end
end
function steps.object(w, step, ctx)
  local object = w.objects[step.of % 2 + 1]
  if ctx then
    ctx:enlist(object)
  end
  object.list[#object.list + 1] = step.n
end
function steps.entity(w, step, ctx)
  if ctx then
    ctx:enlist(w.account)
  end
  w.account.n = w.account.n + step.n
  table.insert(w.account.deep.list, step.n)
end
function steps.line(w, step)
  assert(w.places[step.place]:append("log" .. step.place, step.n .. "\n"))
end
local function path_of(step) return ("d%d/%d"):format(step.place, step.n % 3) end
function steps.file(w, step)
  assert(w.places[step.place]:write(path_of(step), step.n .. "\n"))
end
function steps.delete(w, step)
  steps.file(w, step) -- so that the file exists, whatever a parallel call writes
  assert(w.places[step.place]:delete(path_of(step)))
end
function steps.commit(w, step)
  if step.place > 2 and step.n % 3 == 0 then
    assert(w.places[step.place]:commit())
  end
end
function steps.drop(w, step)
  if step.place > 2 and step.n % 3 == 0 then
    w.places[step.place]:drop()
  end
end
function steps.register(w, step) w.registry:replace(TOOLS[step.n % 5 + 1]) end
function steps.unregister(w, step) w.registry:remove("x" .. step.n % 5 + 1) end
function steps.pick(w, step)
  if step.n % 4 == 0 then
    w.registry:clear_picked()
  elseif w.registry:has("x" .. step.n % 5 + 1) then
    w.registry:pick("x" .. step.n % 5 + 1)
  end
end
function steps.add_tools(w, step) w.agents[2]:add_tools(TOOLS[step.n % 5 + 1]) end
function steps.remove_tools(w, step) w.agents[2]:remove_tools("x" .. step.n % 5 + 1) end
function steps.send(w, step) w.agents[step.of % 2 + 1]:send("said " .. step.n) end
function steps.subscribe(w, step)
  if step.n % 2 == 0 then
    w.stops[step.of]()
  else
    w.session.dispatcher:subscribe("Probe", w.probe)
  end
end
function steps.sleep(_, _, ctx)
  if ctx then
    ah.sleep(0)
  end
end

local NAMES = {}
for name in pairs(steps) do
  NAMES[#NAMES + 1] = name
end
table.sort(NAMES)

-- -- programs -----------------------------------------------------------------------------------

local FAILURES = { "raise", "object raise", "nil", "fail", "not JSON", "wrong value", "late",
  "late", "cancel", "leave" }

local Program = {}
Program.__index = Program

function Program:new_run(depth)
  local turns = { timeout = depth > 0 and self.random(12) == 1 and LATE or nil,
    wait = self.random(4) }
  for i = 1, self.random(depth == 0 and 4 or 2) do
    turns[i] = {}
    for k = 1, self.random(3) do
      turns[i][k] = self:new_call(depth)
    end
  end
  return turns
end

function Program:new_step(depth)
  local random = self.random
  if depth < 3 and random(7) == 1 then
    return { what = "nest", run = self:new_run(depth + 1), raises = random(3) == 1 }
  end
  return { what = NAMES[random(#NAMES)], n = random(99), of = random(3), place = random(5) }
end

function Program:new_call(depth)
  local random = self.random
  local call = { parallel = random(3) == 1, steps = {}, id = #self.calls + 1 }
  self.calls[call.id] = call
  for i = 1, random(6) do
    call.steps[i] = self:new_step(depth)
  end
  if random(2) == 1 then
    call.failure, call.at = FAILURES[random(#FAILURES)], random(#call.steps + 1)
    call.parallel = call.parallel and call.failure ~= "cancel"
  end
  return call
end

-- -- in calls ---

local failures = {
  raise = function() error "at random" end,
  ["object raise"] = function() error(ah.error { code = "tool_validation", message = "no" }) end,
  leave = function() error(ah.error { code = "prompt_evaluation", message = "no" }) end,
  late = function() ah.sleep(LONG) end,
  cancel = function(agent)
    agent:cancel()
    ah.sleep(LONG)
  end,
}
local returns = {
  ["nil"] = function() return nil, "at random" end,
  fail = function() return ah.fail "at random" end,
  ["not JSON"] = function() return print end,
  ["wrong value"] = function() return "no integer" end,
}

local waits = {
  function(f) return f() end,
  function(f) return f() end,
  function(f) return coroutine.wrap(f)() end,
  function(f)
    local result, done
    table.sort({ 1, 2 }, function(a, b)
      result = done and result or table.pack(f())
      done = true
      return a < b
    end)
    return table.unpack(result, 1, result.n)
  end,
}

local run_program

local function do_steps(w, call, ctx, agent)
  for i, step in ipairs(call.steps) do
    if i == call.at and failures[call.failure] then
      failures[call.failure](agent)
    end
    if step.what == "nest" then
      local reply, err = waits[step.run.wait](function() return run_program(w, step.run) end)
      if not reply and step.raises then
        error(err, 0)
      end
    else
      steps[step.what](w, step, ctx)
    end
  end
  if call.at == #call.steps + 1 and failures[call.failure] then
    failures[call.failure](agent)
  end
end

local function new_tools(w, of)
  local function handler(args, ctx)
    local call = w.program.calls[args.id]
    do_steps(w, call, ctx, of.agent)
    if returns[call.failure] then
      return returns[call.failure]()
    end
    return call.id
  end
  local tools = {}
  for _, name in ipairs { "seq", "par", "seq_late", "par_late" } do
    tools[#tools + 1] = ah.tool { name = name, description = "Does it.",
      result = { type = "integer" },
      params = { id = "integer" }, parallel = name:find "par" ~= nil, handler = handler,
      timeout = name:find "late" and LATE or nil }
  end
  return tools
end

local function script_of(turns)
  local script = {}
  for i, turn in ipairs(turns) do
    script[i] = { calls = {} }
    for k, call in ipairs(turn) do
      local name = (call.parallel and "par" or "seq") .. (call.failure == "late" and "_late" or "")
      script[i].calls[k] = { name = name, arguments = { id = call.id } }
    end
  end
  script[#script + 1] = "done"
  return ah.scripted(script)
end

function run_program(w, turns, watch)
  local of = {}
  of.agent = assert(ah.agent { model = script_of(turns), tools = new_tools(w, of),
    log = function() end, session = w.session, timeout = turns.timeout,
    loop_detector = false, max_iterations = 100, on = function(e)
      if e.type == "tool_invoked" then
        w.ok[ah.json.decode(e.arguments).id] = e.success
      end
      if watch then
        watch(e)
      end
    end })
  local reply, err = of.agent:run "go"
  return reply, err, of.agent
end

-- -- outside of calls ---

local function do_plain(w, turns, ok, notes)
  for _, turn in ipairs(turns) do
    for _, call in ipairs(turn) do
      for _, step in ipairs(ok[call.id] and call.steps or {}) do
        if step.what == "nest" then
          do_plain(w, step.run, ok)
        else
          steps[step.what](w, step)
        end
        if step.what == "note" and notes then
          notes[#notes + 1] = "note " .. step.n
        end
      end
    end
  end
end

-- -- comparing ---

local function notes_of(agent)
  local notes = {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    notes[#notes + 1] = entry.type == "note" and entry.text or nil
  end
  return notes
end

--- Compares the state before and after each failed call of the outermost run that runs alone.
local function watcher(w, program)
  local before, at_work = nil, 0
  return function(e)
    if e.type == "tool_started" then
      at_work = at_work + 1
      before = at_work == 1 and e.name:find "seq" and state_of(w) or nil
    elseif e.type == "tool_invoked" then
      at_work = 0
      if before and not e.success then
        w.compared = w.compared + 1
        if state_of(w) ~= before then
          w.fault = { before, state_of(w), program }
        end
      end
      before = nil
    end
  end
end

local function try_program(seed, count)
  local program = setmetatable({ random = generator(seed), calls = {} }, Program)
  local turns = program:new_run(0)
  local real, plain, notes = new_world "real", new_world "plain", {}
  real.program, real.ok, real.compared = program, {}, 0
  local _, _, agent = run_program(real, turns, watcher(real, seed))
  if real.fault then
    assert.equal(real.fault[1], real.fault[2], "a failed call of program " .. seed)
  end
  do_plain(plain, turns, real.ok, notes)
  assert.equal(state_of(plain), state_of(real), "program " .. seed)
  assert.same(notes, notes_of(agent), "program " .. seed)
  for _, ok in pairs(real.ok) do
    count.calls = count.calls + 1
    count.failed = count.failed + (ok and 0 or 1)
  end
  count.compared = count.compared + real.compared
end

describe("calls that fail at random moments", function()
  teardown(function()
    os.execute("rm -rf " .. FOLDER)
  end)

  it("leave nothing, and the others what they did, in order", function()
    local count, seed = { calls = 0, failed = 0, compared = 0 }, SEED
    while count.calls < CALLS do
      try_program(seed, count)
      seed = seed + 1
    end
    assert.is_true(count.failed > count.calls / 4 and count.compared > count.calls / 20)
  end)
end)
