-- Random conversations with unlock, phases and unfold together, on wires of every kind. The
-- available tools equal those of a replay of the transcript; no name occurs twice; each call has
-- the outcome that a plain model of the rules predicts; and a saved, loaded or forked conversation
-- continues exactly like its original. Then the same together with entities that are found,
-- replaced and retracted, and with briefs that are picked. RANDOM_SEEDS=n sets the number of seeds.
local ah = require "agenthost"
local sound = require "support.sound"

local MODES = { "append", "inline", "reference", "additional_tools", "search_pair",
  "list_changed", "dispatcher", "restart" }
local SEEDS = tonumber(os.getenv "RANDOM_SEEDS") or 4

local function quiet() end

-- Returns a function(n): numbers from 1 to n that depend only on `seed`.
local function dice(seed)
  local x = (seed * 2654435761 + 97) & 0xffffffff
  return function(n)
    for _ = 1, 3 do
      x = (x * 1664525 + 1013904223) & 0xffffffff
    end
    return (x >> 12) % n + 1
  end
end

local function tool(name)
  return ah.tool { name = name, description = "The tool " .. name .. ".", handler = function()
    return "from " .. name
  end }
end

-- -- one world: the strategies of a seed, and the same rules as a plain model ---------------------

local CALLABLE = { "a", "b", "c", "p1", "go", "q1", "back", "f", "f", "f", "inner", "r1", "i1",
  "w1", "both" }

local function world(seed)
  local roll = dice(seed)
  local w = { hide = roll(2) == 1, exclusive = roll(2) == 1, any = roll(2) == 1 }
  w.locked = ({ { "b" }, { "r1", "b" }, { "i1", "q1" }, { "both" } })[roll(4)]
  w.after = ({ { "a", "c" }, { "p1" }, { "w1", "a" }, { "go", "c" } })[roll(4)]
  return w
end

local function strategies(w)
  local both = tool "both"
  return {
    ah.unlock { tools = w.locked, after = w.after, any = w.any },
    ah.phases { hide = w.hide, phases = {
      { name = "one", tools = { tool "p1", tool "go", both }, next = { go = "two" } },
      { name = "two", tools = { both, tool "q1", tool "back" }, next = function(m)
        return m.name == "back" and "one" or nil
      end },
    } },
    ah.unfold { name = "f", description = "A facade.", exclusive = w.exclusive, categories = {
      r = { tool "r1", ah.unfold { name = "inner", description = "Another.",
        tools = { tool "i1" } } },
      w = { tool "w1" },
    } },
  }
end

local PHASES = { one = { p1 = true, go = true, both = true },
  two = { both = true, q1 = true, back = true } }

-- A second implementation of the rules: Model:call returns true if the call succeeds, and records
-- its effects.
local Model = {}
Model.__index = Model

local function new_model(w)
  return setmetatable({ w = w, done = {}, phase = "one", r = false, w1 = false, inner = false },
    Model)
end

function Model:is_locked(name)
  local n = 0
  for _, needed in ipairs(self.w.after) do
    n = n + (self.done[needed] and 1 or 0)
  end
  local open = n == #self.w.after or (self.w.any and n > 0)
  for _, locked in ipairs(self.w.locked) do
    if locked == name then
      return not open
    end
  end
  return false
end

function Model:is_there(name, category)
  if name == "f" then
    return (category == "r" and not self.r) or (category == "w" and not self.w1)
  end
  local there = { a = true, b = true, c = true, r1 = self.r, inner = self.r and not self.inner,
    i1 = self.r and self.inner, w1 = self.w1 }
  if there[name] ~= nil then
    return there[name]
  end
  return PHASES[self.phase][name] or false
end

function Model:open(category)
  if self.w.exclusive then
    self.r, self.w1, self.inner = false, false, false
  end
  self[category == "r" and "r" or "w1"] = true
end

function Model:call(name, category)
  if self:is_locked(name) or not self:is_there(name, category) then
    return false
  end
  self.done[name] = true
  if name == "f" then
    self:open(category)
  elseif name == "inner" then
    self.inner = true
  elseif name == "go" or name == "back" then
    self.phase = name == "go" and "two" or "one"
  end
  return true
end

-- -- the conversation ----------------------------------------------------------------------------

local function names_of(tools)
  local names = {}
  for i, t in ipairs(tools) do
    names[i] = t.name
  end
  return names
end

-- Returns the names of the tools at the end of a transcript, sorted; staged changes included.
local function replay(text)
  local doc = ah.json.decode(text)
  local live, names = {}, {}
  for _, list in ipairs { doc.entries, doc.pending and doc.pending.staged or {} } do
    for _, e in ipairs(list) do
      for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
        live[t.name] = true
      end
      for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
        live[name] = nil
      end
    end
  end
  for name in pairs(live) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function check_unique(tools)
  local seen = {}
  for _, t in ipairs(tools) do
    local name = type(t) == "table" and t.name or t
    assert(not seen[name], name .. " is there twice")
    seen[name] = true
  end
  return seen
end

-- Makes a model whose next answer depends only on the seed and the length of the conversation.
local function talking(mode, seed)
  return ah.scripted { tool_change_mode = mode, answer = function(request)
    local declared = check_unique(request.tools)
    local roll = dice(seed * 1000 + #request.entries)
    if roll(6) == 1 then
      return "enough"
    end
    local calls = {}
    for i = 1, roll(3) do
      local name = CALLABLE[roll(#CALLABLE)]
      local arguments = name == "f" and { category = roll(2) == 1 and "r" or "w" } or nil
      if mode == "dispatcher" and not declared[name] then
        name, arguments = "call_tool", { name = name, arguments = arguments or ah.object {} }
      end
      calls[i] = { name = name, arguments = arguments }
    end
    return { calls = calls }
  end }
end

local function fields(mode, seed, watch)
  local list = strategies(world(seed))
  list[#list + 1] = watch
  return { model = talking(mode, seed), tools = { tool "a", tool "b", tool "c" }, log = quiet,
    strategies = list, loop_detector = false, max_restarts = 1000 }
end

-- Returns the calls of a conversation, in order: { name, category, success, content }.
local function calls_of(agent)
  local list, waiting = {}, {}
  for _, e in ipairs(sound.check(agent:transcript())) do
    for _, call in ipairs(e.tool_calls or {}) do
      local ok, arguments = pcall(ah.json.decode, call.arguments)
      waiting[#waiting + 1] = { name = call.name,
        category = ok and type(arguments) == "table" and arguments.category or nil }
    end
    if e.type == "tool_result" then
      local call = table.remove(waiting, 1)
      call.success, call.content = e.success, e.content
      list[#list + 1] = call
    end
  end
  return list
end

-- Checks each call against the model of the rules, and the handler that it reached.
local function check_calls(seed, calls)
  local model = new_model(world(seed))
  for i, call in ipairs(calls) do
    local begun = not call.content:find("Not run: the run ended", 1, true)
    local expected = begun and model:call(call.name, call.category)
    local what = ("seed %d, call %d of %s: %s"):format(seed, i, call.name, call.content)
    assert(expected == call.success, what)
    if expected and call.name ~= "f" and call.name ~= "inner" then
      assert(call.content:find("from " .. call.name, 1, true) == 1, what)
    end
  end
end

local function converse(agent, runs)
  for _ = 1, runs do
    agent:run "go on" -- may fail: four unknown tools in a row end a run
  end
end

-- Checks that original, fork and loaded conversation continue alike; returns the number of calls.
local function try(mode, seed, path)
  local agent
  local function watch(m)
    local there = names_of(m.tools)
    check_unique(there)
    if agent and m.run == agent.watched then
      table.sort(there)
      assert.same(replay(agent.text()), there)
    end
  end
  local warned
  local given = fields(mode, seed, watch)
  given.on = { warning = function(e)
    warned = e.message
  end, start = function(e)
    if agent then
      agent.watched = e.run
    end
  end }
  local original = ah.agent(given)
  agent = { text = function()
    return original:transcript()
  end }
  converse(original, 3)
  agent = nil
  assert(original:save(path))
  local fork = original:fork()
  local loaded = assert(ah.load(path, fields(mode, seed, watch)))
  local all = { original, fork, loaded }
  for i, each in ipairs(all) do
    converse(each, 2)
    all[i] = calls_of(each)
    assert.same(replay(original:transcript()), replay(each:transcript()))
  end
  assert.same(all[1], all[2])
  assert.same(all[1], all[3])
  check_calls(seed, all[1])
  assert.is_nil(warned)
  return #all[1]
end

describe("random strategies", function()
  local path = os.tmpname()
  teardown(function()
    os.remove(path)
  end)

  for at, mode in ipairs(MODES) do
    it("hold on a wire of mode " .. mode, function()
      local calls = 0
      for seed = 1, SEEDS do
        calls = calls + try(mode, at * 100000 + seed, path)
      end
      assert.is_true(calls > SEEDS * 3, "too few calls to mean anything: " .. calls)
    end)
  end
end)

-- -- together with entities and picks -----------------------------------------------------------

local IDS = { "x1", "x2", "x3" }

-- Makes entities of one class; records the newest of each id, and calls that reached another one.
local function shop(roll)
  local s = { newest = {}, made = 0, reached = 0, wrong = 0 }
  local Item = ah.entity { name = "Item" }
  Item:tool { name = "who", description = "Says which it is.", handler = function(self)
    s.reached = s.reached + 1
    s.wrong = s.wrong + (s.newest[self.id] == self and 0 or 1)
    return self.made
  end }
  Item:tool { name = "spoil", description = "Fails.", handler = function(self)
    self.made = -1
    error("spoilt", 0)
  end }

  local function make()
    s.made = s.made + 1
    local item = Item { id = IDS[roll(#IDS)], made = s.made }
    s.newest[item.id] = item
    return item
  end
  local function giving(name, give)
    return ah.tool { name = name, description = "The tool " .. name .. ".", handler = give }
  end
  s.tools = { giving("find", make), giving("list", function() return { make(), make() } end),
    giving("drop", function() return ah.retract(s.newest[IDS[roll(#IDS)]] or make()) end) }
  return s
end

local ANY = { "find", "list", "drop", "find", "pick_tools", "item_x1_who", "item_x2_who",
  "item_x3_who", "item_x1_spoil", "a", "b", "p1", "go", "back", "f", "w1", "r1" }

local function random_call(roll, text)
  local there = replay(text)
  local name = roll(2) == 1 and ANY[roll(#ANY)] or there[roll(#there)]
  local arguments = name == "f" and { category = "w" }
    or name == "pick_tools" and { tools = { there[roll(#there)], ANY[roll(#ANY)] } } or nil
  return { name = name, arguments = arguments }
end

-- Returns the number of calls that reached an entity, and the number of picks.
local function try_all(mode, seed)
  local roll, agent, picks = dice(seed), nil, 0
  local items = shop(roll)
  local given = fields(mode, seed, function(m)
    local there = names_of(m.tools)
    check_unique(there)
    table.sort(there)
    assert.same(replay(agent:transcript()), there)
    picks = picks + (m.name == "pick_tools" and m.success and 1 or 0)
  end)
  given.max_iterations = 1000
  given.brief, given.discover, given.keep_picked = true, { keep = roll(2) == 1 }, roll(2) == 1
  table.move(items.tools, 1, 3, #given.tools + 1, given.tools)
  given.model = ah.scripted { tool_change_mode = mode, answer = function(request)
    local declared = check_unique(request.tools)
    if roll(8) == 1 then
      return "enough"
    end
    local call = random_call(roll, agent:transcript())
    if mode == "dispatcher" and not declared[call.name] then
      call = { name = "call_tool",
        arguments = { name = call.name, arguments = call.arguments or ah.object {} } }
    end
    return { calls = { call } }
  end }
  local warned
  given.on = { warning = function(e)
    warned = warned or e.message:find("strategy '", 1, true) and e.message
  end }
  agent = ah.agent(given)
  for _ = 1, 6 do
    local _, err = agent:run "go on"
    assert(not err or err.code == "tool_not_found", tostring(err))
  end
  assert.is_nil(warned)
  sound.check(agent:transcript())
  assert.same(replay(agent:transcript()), replay(agent:fork():transcript()))
  assert.equal(0, items.wrong)
  return items.reached, picks
end

describe("random strategies, entities and picks", function()
  for at, mode in ipairs(MODES) do
    it("stay in step on a wire of mode " .. mode, function()
      local reached, picks = 0, 0
      for seed = 1, SEEDS * 3 do
        local r, p = try_all(mode, at * 1000 + seed)
        reached, picks = reached + r, picks + p
      end
      assert.is_true(reached > SEEDS and picks > SEEDS, reached .. " calls, " .. picks .. " picks")
    end)
  end
end)
