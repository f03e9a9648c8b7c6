-- Random programs of background calls: agents that run, wait, cancel, fork, save, load and close,
-- in tasks of the script, with handlers that return, fail, wait, use files and run agents. In all
-- of them each call has exactly one `tool_invoked`, each ticket at most one note, what failed has
-- changed nothing, the conversations are sound, and nothing waits for ever.
--
--   AGENTHOST_BACKGROUND=10000         number of programs (default 120)
--   AGENTHOST_BACKGROUND_SEED=7        the first seed (default 1)
local ah = require "agenthost"
local generator = require "support.random"
local sound = require "support.sound"

local COUNT = math.tointeger(tonumber(os.getenv "AGENTHOST_BACKGROUND" or "120"))
local SEED = math.tointeger(tonumber(os.getenv "AGENTHOST_BACKGROUND_SEED" or "1"))

local function quiet() end

-- -- a world ---------------------------------------------------------------------------------

local handlers = {}

function handlers.quick(_, args)
  return args.key
end

function handlers.slow(world, args)
  ah.sleep(world.random(3) / 1000)
  return args.key
end

function handlers.write(world, args, ctx)
  world.fs:write(args.key, "written")
  ah.sleep(world.random(2) / 1000)
  ctx:note("wrote " .. args.key)
  return args.key
end

function handlers.fail(world, args)
  world.fs:write(args.key, "must not be there")
  ah.sleep(world.random(2) / 1000)
  error "failed"
end

function handlers.refuse(world, args)
  world.fs:write(args.key, "must not be there")
  return nil, "refused"
end

function handlers.late(world, args)
  world.fs:write(args.key, "must not be there")
  ah.sleep(60)
end

function handlers.run(world, args)
  local reply = ah.run { model = world.model(), tools = world.tools, log = quiet, on = world.on,
    timeout = 0.02, max_iterations = 6, world.random(2) == 1 and "go" or "stop" }
  return args.key .. tostring(reply and reply.text)
end

function handlers.task(world, args)
  ah.spawn(function() ah.sleep(world.random(2) / 1000) end)
  return args.key
end

local NAMES = {}
for name in pairs(handlers) do
  NAMES[#NAMES + 1] = name
end
table.sort(NAMES)

-- Returns a model that calls up to four tools, sometimes again after results, then answers.
local function model_of(world)
  return function()
    local turns = 0
    return ah.scripted(function()
      turns = turns + 1
      if world.random(3) == 1 or turns > 6 then
        return "text " .. turns
      end
      local calls = {}
      for i = 1, world.random(4) do
        world.keys = world.keys + 1
        local name = NAMES[world.random(#NAMES)]
        calls[i] = { name = (world.random(4) == 1 and "fore_" or "back_") .. name,
          arguments = { key = name .. world.keys } }
      end
      return { calls = calls }
    end)
  end
end

local function tools_of(world)
  local list = {}
  for _, name in ipairs(NAMES) do
    for _, ground in ipairs { "back", "fore" } do
      list[#list + 1] = ah.tool { name = ground .. "_" .. name, description = "D.",
        params = { key = "string" }, background = ground == "back", parallel = ground == "fore",
        timeout = name == "late" and 0.01 or nil, handler = function(args, ctx)
          return handlers[name](world, args, ctx)
        end }
    end
  end
  return list
end

local function new_world(seed)
  local world = { random = generator(seed), keys = 0, fs = ah.filesystem { files = {} },
    invoked = {}, calls = {}, tickets = {}, ended = {}, paths = {} }
  function world.on(e)
    if e.type == "tool_calls" then
      for _, call in ipairs(e.calls) do
        world.calls[e.run .. " " .. call.id] = true
      end
    elseif e.type == "tool_invoked" then
      local key = (e.ticket and e.parent or e.run) .. " " .. e.id
      world.invoked[key] = (world.invoked[key] or 0) + 1
    elseif e.type == "background_started" then
      world.tickets[e.run .. " " .. e.id] = e.ticket
    elseif e.type == "background_done" then
      local key = e.parent .. " " .. e.id
      assert(not world.ended[key], "ended twice")
      world.ended[key] = true
    end
  end
  world.model = model_of(world)
  world.tools = tools_of(world)
  return world
end

-- -- programs ----------------------------------------------------------------------------------

local function check_notes(agent)
  local entries, open, closed = sound.check(agent:transcript()), {}, {}
  for _, e in ipairs(entries) do
    if e.ticket and e.type == "tool_result" then
      assert(not open[e.ticket], "a ticket was given twice")
      open[e.ticket] = true
    elseif e.ticket then
      assert(open[e.ticket] and not closed[e.ticket], "a note without its ticket, or a second one")
      closed[e.ticket] = true
    end
  end
  for _, call in ipairs(agent:background()) do
    assert(open[call.ticket] and not closed[call.ticket], "an outstanding call has a note")
    open[call.ticket] = nil
  end
  for ticket in pairs(open) do
    assert(closed[ticket], "a ticket has no note, and no call")
  end
end

local steps = {}

function steps.run(_, agent)
  pcall(agent.run, agent, "go")
end

function steps.wait(world, agent)
  pcall(agent.wait, agent, world.random(8) / 1000)
end

function steps.pause(world)
  ah.sleep(world.random(4) / 1000)
end

function steps.cancel(world, agent)
  pcall(agent.cancel_background, agent, world.random(8))
end

function steps.stop(_, agent)
  pcall(agent.cancel, agent)
end

function steps.fork(world, agent)
  local ok, fork = pcall(agent.fork, agent)
  if ok then
    world.agents[#world.agents + 1] = fork
  end
end

function steps.load(world, agent)
  local path = os.tmpname()
  local ok, saved = pcall(agent.save, agent, path)
  if ok and saved then
    local loaded = ah.load(path, { model = world.model(), tools = world.tools, on = world.on,
      log = quiet, max_iterations = 6 })
    world.agents[#world.agents + 1] = loaded
  end
  os.remove(path)
end

function steps.use(world, agent)
  pcall(agent.use, agent, world.model())
end

function steps.close(world, agent)
  if world.random(4) == 1 then
    pcall(agent.close, agent)
  end
end

function steps.collect()
  collectgarbage "step"
end

local STEPS = { "run", "run", "run", "wait", "wait", "wait", "pause", "cancel", "stop", "fork",
  "load", "use", "close", "collect" }

local function new_agent(world)
  return ah.agent { model = world.model(), tools = world.tools, on = world.on, log = quiet,
    max_iterations = 6, timeout = 0.2 }
end

local function act(world)
  for _ = 1, 3 + world.random(5) do
    local agent = world.agents[world.random(#world.agents)]
    steps[STEPS[world.random(#STEPS)]](world, agent)
  end
end

local function play(world)
  world.agents = { new_agent(world), new_agent(world) }
  ah.scope(function(scope)
    for _ = 1, world.random(3) do
      local task = scope:spawn(act, world)
      if world.random(6) == 1 then
        ah.sleep(0.002)
        task:cancel()
      end
    end
  end)
  for _, agent in ipairs(world.agents) do
    if not tostring(agent):find "closed" then
      if world.random(2) == 1 then
        agent:wait(0.005)
      end
      check_notes(agent)
      agent:close()
    end
  end
end

local function judge(world)
  for key in pairs(world.calls) do
    assert.equal(1, world.invoked[key], key)
  end
  for key in pairs(world.tickets) do
    assert.is_true(world.ended[key], key)
  end
  for _, path in ipairs(world.fs:glob "**") do
    assert.is_truthy(path:find "^write", path)
  end
end

describe("random programs of background calls", function()
  it("settle each call once, and change what they say", function()
    local calls = 0
    for seed = SEED, SEED + COUNT - 1 do
      local world = new_world(seed)
      local ok, err = pcall(play, world)
      assert(ok, ("seed %d: %s"):format(seed, tostring(err)))
      ok, err = pcall(judge, world)
      assert(ok, ("seed %d: %s"):format(seed, tostring(err)))
      for _ in pairs(world.tickets) do
        calls = calls + 1
      end
    end
    assert.is_true(calls > COUNT, "too few calls")
  end)
end)
