--- agenthost replay --tools: runs a script for its tools, in a state in which the clock, random
-- numbers and the environment have stand-ins, and then the handlers of a conversation again
-- (lua/agenthost/testing/handlers.lua). The script ends at its first run; no model is asked. What
-- reaches outside raises not_recorded in handlers, and works as ever in the code around them.
local ah, use = ...
local foreign = use "foreign"
local fault = use "pairs".fault

local STOP = setmetatable({}, { __tostring = function() return "stopped by agenthost replay" end })
local OUTSIDE = { io = { "open", "lines", "popen", "input", "output", "tmpfile", "read" },
  os = { "execute", "remove", "rename", "tmpname" } }

-- -- stand-ins ---------------------------------------------------------------------------------

-- The time of the call that is replayed, or of the beginning; ms since 1970.
local function clock(began)
  local times = {}
  local function now()
    local id = ah._replayed()
    return (id and times[id] or began) // 1000
  end
  local function before(turn)
    times = {}
    for _, call in ipairs(turn.calls) do
      times[call.id] = call.time
    end
  end
  return now, before
end

-- Puts stand-ins into the globals of the script, before it loads. Returns what is called before a
-- turn.
local function stand_in(id, began)
  local now, before = clock(began)
  local theirs, seed = _G.os, math.tointeger(tonumber(ah.sha256(id):sub(1, 15), 16))
  local random = math.randomseed
  rawset(theirs, "time", function(t) return t == nil and now() or os.time(t) end)
  rawset(theirs, "date", function(how, t) return os.date(how, t or now()) end)
  rawset(theirs, "clock", function() return 0.0 end)
  rawset(theirs, "getenv", function(name)
    ah._not_recorded(("os.getenv '%s'"):format(name), true)
  end)
  rawset(_G.math, "randomseed", function(...)
    return random(select("#", ...) == 0 and seed or ...)
  end)
  random(seed)
  for library, names in pairs(OUTSIDE) do
    for _, name in ipairs(names) do
      local real = _G[library][name]
      rawset(_G[library], name, function(...)
        ah._not_recorded(library .. "." .. name)
        return real(...)
      end)
    end
  end
  return function(turn)
    before(turn)
    random(seed)
  end
end

-- -- the agents of the script ------------------------------------------------------------------

-- The fields without a model, a store and the texts of a run.
local function plain(fields)
  local copy = {}
  for key, value in pairs(fields) do
    if not (math.type(key) and type(value) == "string") then
      copy[key] = value
    end
  end
  copy.model, copy.fallback, copy.store, copy.id = ah.scripted {}, nil, false, nil
  return copy
end

local function raised(agent, err)
  if not agent then
    error(err, 0)
  end
  return agent
end

-- Replaces what would begin a run or open a store. Returns a list that agents are added to, and a
-- function that puts the methods back.
local function replace()
  local real_agent, real_store, made = ah.agent, ah.store, {}
  local methods = getmetatable(real_agent { model = "demo/echo" }).methods
  local run = methods.run
  local function make(fields)
    local agent = raised(real_agent(plain(fields)))
    made[#made + 1] = { agent = agent, name = fields.name, session = fields.session }
    return agent
  end
  local function stop()
    coroutine.yield(STOP)
    error(STOP, 0)
  end
  ah._unnamed()
  ah.agent = ah._fenced(foreign.door(make))
  ah.store = foreign.door(function() return real_store { engine = "memory" } end)
  ah.run = foreign.door(function(fields)
    make(fields)
    stop()
  end)
  methods.run = stop
  rawset(_G.os, "exit", stop)
  return made, function()
    methods.run, ah.agent, ah.store = run, real_agent, real_store
  end
end

-- Returns the agent that the script returned, the one of this name, or the last one that it made,
-- with its session.
local function choose(made, returned, name)
  if type(returned) == "table" and not getmetatable(returned) then
    returned = returned.agent
  end
  local found = made[#made]
  for _, one in ipairs(made) do
    if one.agent == returned then
      return one
    elseif name and one.name == name then
      found = one
    end
  end
  return found
end

local function load_agent(path, name)
  local chunk, why = loadfile(path, "t")
  if not chunk then
    fault("%s", why)
  end
  local made, restore = replace()
  rawset(_G, "arg", { [0] = path })
  package.loaded["agenthost.command"] = nil -- the script must find the same as when it is run
  local ok, returned = foreign.resume(coroutine.create(chunk))
  restore()
  if not ok and returned ~= STOP then
    fault("%s", type(returned) == "table" and returned.message or tostring(returned))
  end
  return choose(made, returned, name)
    or fault("%s made no agent and began no run: it has no tools", path)
end

--- Runs the handlers of a conversation again. Returns the outcome; raises a fault.
---@param store any
---@param id string the conversation
---@param opened table its first record
---@param path string of the script
---@return table outcome
return function(store, id, opened, path)
  local first = store:records(id, { to = 1 })
  local record = first and first()
  local before = stand_in(id, record and record.time or 0)
  local one = load_agent(path, opened.agent)
  local got, err = ah._handlers(store, id, one.agent, one.session, before)
  if not got then
    fault("%s", err.message)
  end
  return got
end
