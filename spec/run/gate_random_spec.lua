-- Random policies, approvals, guards and checks that decide, raise, wait, return nonsense or change
-- arguments, for calls of the model, of handlers and of runs within runs, alone and in parallel. In
-- all cases no denied call has run, and no blocked text is in a request, an event, a line of the
-- log or a saved conversation.
--
--   AGENTHOST_GATE_CALLS=100000    number of calls (default 1500)
--   AGENTHOST_GATE_SEED=7          the first seed (default 1)
local ah = require "agenthost"
local generator = require "support.random"
local sound = require "support.sound"

local CALLS = tonumber(os.getenv "AGENTHOST_GATE_CALLS" or "1500")
local SEED = tonumber(os.getenv "AGENTHOST_GATE_SEED" or "1")
local NAMES = { "alpha", "beta", "gamma" }

-- Returns the decision of policy `number` about such a call, from 0 to 23. It is always the same,
-- since the policy may be asked again.
local function fate(world, number, kind, name, n)
  local x = (world.seed * 31 + number * 1009 + #kind * 97 + #name * 13 + name:byte() + n * 7919)
  return x * 2654435761 % 2 ^ 32 // 65536 % 24
end

local function nonsense(k)
  local all = { 42, true, "maybe", {}, print, "" }
  return all[k % #all + 1]
end

-- -- decisions -------------------------------------------------------------------------------

local function call_of(world, id)
  local c = world.calls[id] or { denied = {}, asked = {}, approved = {} }
  world.calls[id] = c
  return c
end

-- Returns a text that is unique to this part of this call.
local function mark(id, part)
  return ("<%s of %s>"):format(part, id)
end

local function before(world, number, shadow)
  return function(c)
    local n, call, f = c.arguments.n, call_of(world, c.id), fate(world, number, "before",
      c.name, c.arguments.n)
    if shadow then
      return ({ "deny", "ask", "allow" })[f % 3 + 1], "a shadow"
    elseif f < 12 then
      return f < 6 and "allow" or nil
    elseif f < 14 then
      call.asked[n] = true
      return "ask", "policy " .. number
    elseif f < 17 and n < 900 then
      return "rewrite", { n = n + 100 }
    end
    call.denied[n] = true
    if f < 19 then
      return "deny", "policy " .. number
    elseif f == 19 then
      error("policy " .. number)
    elseif f == 20 then
      ah.sleep(0)
    elseif f == 21 then
      return nonsense(n)
    elseif f == 22 then
      return "rewrite", { n = "no number" }
    end
    return c.no_such_field
  end
end

local function after(world, number, shadow)
  return function(c, result)
    local call, f = call_of(world, c.id), fate(world, number, "after", c.name, c.arguments.n)
    if shadow then
      return "block", "a shadow"
    elseif f < 12 then
      return f < 6 and "keep" or nil
    elseif f < 14 then
      call.hidden = call.hidden or type(result.value) == "table"
      return "redact", { "/mark", "/list/0" }
    end
    call.hidden = true
    if f < 16 then
      return "replace", { number = number }
    elseif f < 19 then
      return "block", "policy " .. number
    elseif f == 19 then
      error("policy " .. number)
    elseif f == 20 then
      ah.sleep(0)
    elseif f == 21 then
      return "replace"
    elseif f == 22 then
      return "redact", { "mark" }
    end
    return nonsense(c.arguments.n)
  end
end

local function policies(world, random)
  local list = {}
  for i = 1, random(4) - 1 do
    world.policies = world.policies + 1
    local number, shadow = world.policies, random(5) == 1
    local kind = random(3)
    if kind == 1 and not shadow then
      list[i] = before(world, number, false)
    else
      list[i] = { shadow = shadow, before = kind ~= 2 and before(world, number, shadow) or nil,
        after = kind ~= 1 and after(world, number, shadow) or nil }
    end
    if type(list[i]) == "table" and not (list[i].before or list[i].after) then
      list[i].before = before(world, number, shadow)
    end
  end
  return list
end

local function approve(world, random)
  local kind = random(8)
  if kind == 1 then
    return nil
  end
  return function(c)
    local call, n = call_of(world, c.id), c.arguments.n
    if kind <= 3 then
      call.approved[n] = true
      return true, kind == 3 and "with pleasure" or nil
    elseif kind == 4 then
      ah.sleep(0.0001)
      call.approved[n] = true
      return true
    elseif kind == 5 and n < 900 then
      call.approved[n + 50] = true
      return true, { n = n + 50 }
    elseif kind == 6 then
      error "no approval"
    elseif kind == 7 then
      return "yes"
    end
    return false, "no"
  end
end

-- -- calls -----------------------------------------------------------------------------------

-- The end of a handler: returns or raises a random result, all parts of which are marked.
local function give(world, random, id)
  local kind = random(8)
  world.made[#world.made + 1] = id
  local value = { mark = mark(id, "value"), list = { mark(id, "value") } }
  if kind == 1 then
    return mark(id, "text")
  elseif kind == 2 then
    return nil, mark(id, "failure")
  elseif kind == 3 then
    error(mark(id, "error"))
  elseif kind == 4 then
    return ah.ok(value, mark(id, "message"))
  elseif kind == 5 then
    return ah.result { value = value, message = mark(id, "message"),
      exclude_value_from_context = true }
  elseif kind == 6 then
    return ah.fail(mark(id, "failure"))
  end
  return value
end

local function ran(world, id, n)
  local c = call_of(world, id)
  if c.denied[n] then
    world.faults[#world.faults + 1] = ("%s ran with %d, which was denied"):format(id, n)
  elseif c.asked[n] and not c.approved[n] then
    world.faults[#world.faults + 1] = ("%s ran with %d, which nobody approved"):format(id, n)
  elseif not (c.seen and c.seen[n]) then
    world.faults[#world.faults + 1] = ("%s ran with %d, and went round a policy"):format(id, n)
  elseif c.ran then
    world.faults[#world.faults + 1] = ("%s ran twice"):format(id)
  end
  c.ran = true
end

local run_within

-- Makes a handler that may make calls itself.
local function handler(world, random, depth)
  return function(args, ctx)
    ran(world, ctx.call_id, args.n)
    local kind = depth < 3 and random(4) or 4
    if kind == 1 then
      world.registry:execute(NAMES[random(#NAMES)], { n = random(30) })
    elseif kind == 2 then
      run_within(world, random, depth + 1)
    elseif kind == 3 and random(2) == 1 then
      ah.sleep(0.0001)
    end
    return give(world, random, ctx.call_id)
  end
end

local function tools(world, random, depth)
  local list = {}
  for i, name in ipairs(NAMES) do
    list[i] = ah.tool { name = name, description = "A tool.", params = { n = "integer" },
      parallel = random(2) == 1, handler = handler(world, random, depth),
      render = random(4) == 1 and function(v) return ah.json.encode(v) .. " rendered" end or nil }
  end
  return list
end

local function turns(world, random)
  local list = {}
  for i = 1, random(3) do
    local calls = {}
    for k = 1, random(3) do
      world.ids = world.ids + 1
      calls[k] = { id = "c" .. world.ids, name = NAMES[random(#NAMES)],
        arguments = { n = random(30) } }
    end
    list[i] = { calls = calls }
  end
  world.answers = world.answers + 1
  list[#list + 1] = mark("answer " .. world.answers, "text")
  return list
end

local function fields(world, random, depth)
  local function told(e)
    world.told[#world.told + 1] = ah.json.encode(e)
  end
  return { model = ah.scripted(turns(world, random)), tools = tools(world, random, depth),
    policies = policies(world, random), approve = approve(world, random), on = told,
    log = function(_, line) world.told[#world.told + 1] = tostring(line) end,
    loop_detector = false, max_iterations = 40 }
end

run_within = function(world, random, depth)
  local reply, err = ah.run(setmetatable(fields(world, random, depth), nil))
  world.texts[#world.texts + 1] = (reply or err.reply or { transcript = function() return "" end })
    :transcript()
end

-- Returns the first policy of the outermost run, which only records: every call, of any caller,
-- passes it.
local function witness(world)
  return { before = function(c)
    local call = call_of(world, c.id)
    call.seen = call.seen or {}
    call.seen[c.arguments.n] = true
  end, after = function(c)
    call_of(world, c.id).ended = true
  end }
end

-- -- guards and checks -------------------------------------------------------------------------

local function guarded(world, random, f)
  local input, output, check = random(6), random(6), random(6)
  f.guards = {
    input = input <= 2 and function()
      world.stopped_input = true
      if input == 1 then
        error "a guard"
      end
      return "no"
    end or nil,
    output = output <= 3 and function(text)
      world.stopped_output = text
      if output == 1 then
        error "a guard"
      elseif output == 2 then
        return 7
      end
      return false, "no"
    end or nil,
  }
  f.checks = check == 1 and { function()
    world.failed_check = true
    error "a check"
  end } or nil
end

local function judge(world, path, reply, err)
  local function fault(...)
    world.faults[#world.faults + 1] = string.format(...)
  end
  local file = assert(io.open(path))
  local all = table.concat(world.told, "\n") .. table.concat(world.texts, "\n") .. file:read "a"
  file:close()
  for _, id in ipairs(world.made) do
    local c = call_of(world, id)
    if not (c.ended or c.hidden) then
      fault("the result of %s went round a policy", id)
    end
    for _, part in ipairs(c.hidden and { "value", "text", "failure", "error", "message" } or {}) do
      if all:find(mark(id, part), 1, true) then
        fault("the %s of %s was kept back, and is there", part, id)
      end
    end
  end
  if world.stopped_input and (reply or err.code ~= "guard_tripped" or all:find("<the question>", 1,
    true)) then
    fault("the input was stopped, and is there")
  elseif world.stopped_output and (reply or err.code ~= "guard_tripped") then
    fault("the answer was stopped, and is there")
  elseif world.failed_check and (reply or err.code ~= "internal") then
    fault("a check failed, and the answer stands")
  end
end

local function one(seed)
  local random = generator(seed)
  local world = { seed = seed, calls = {}, made = {}, told = {}, texts = {}, faults = {},
    policies = 0, ids = 0, answers = 0 }
  local registry = ah.registry(tools(world, random, 3))
  world.registry = registry
  local f = fields(world, random, 1)
  guarded(world, random, f)
  table.insert(f.policies, 1, witness(world))
  local agent = assert(ah.agent(f))
  local reply, err = agent:run "<the question>"
  local path = os.tmpname()
  assert(agent:save(path))
  sound.check(agent:transcript())
  world.texts[#world.texts + 1] = agent:transcript()
  judge(world, path, reply, err)
  os.remove(path)
  return world
end

describe("the gate", function()
  it("lets nothing through that was denied or blocked, whatever decides, and whoever calls",
    function()
    local seed, calls, hidden, refused = SEED, 0, 0, 0
    while calls < CALLS do
      local world = one(seed)
      assert(#world.faults == 0, ("seed %d: %s"):format(seed, table.concat(world.faults, "; ")))
      for _, c in pairs(world.calls) do
        calls = calls + 1
        hidden = hidden + (c.hidden and 1 or 0)
        refused = refused + (not c.ran and 1 or 0)
      end
      calls = calls + (next(world.calls) and 0 or 1)
      seed = seed + 1
    end
    assert(hidden > calls / 50 and refused > calls / 50,
      ("of %d calls %d were hidden and %d refused: too few to show anything"):format(calls, hidden,
        refused))
  end)
end)
