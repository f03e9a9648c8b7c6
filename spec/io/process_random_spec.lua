-- ah.process with random operations of several handlers at once: random children, random methods,
-- deadlines meanwhile. AGENTHOST_PROCESS_ROUNDS is the number of rounds; the message of a failed
-- round has its seed.
local ah = require "agenthost"
local descriptors = require "support.descriptors"

local ROUNDS = tonumber(os.getenv "AGENTHOST_PROCESS_ROUNDS") or 6

local SCRIPTS = {
  "cat", "exit 3", "read x; echo $x; exit 1", "trap '' TERM; cat; sleep 100", "yes", "yes >&2",
  "head -c 2000000 /dev/zero; cat", "exec 0<&-; sleep 0.05", "exec 1>&-; cat", "kill -9 $$",
  "(sleep 100 &) ; echo x", [[printf '{"a":1}\n{\n'; cat]], "sleep 0.02; echo hi; sleep 0.02",
}
local SIGNALS = { "TERM", "INT", "KILL", "USR1", "CONT", "STOP" }

local function little()
  return { timeout = math.random() / 20 }
end

local METHODS = {
  function(p) return p:write(("x"):rep(math.random(0, 200000)) .. "\n", little()) end,
  function(p) return p:write('{"a":1}\n', little()) end,
  function(p)
    return p:line { timeout = 0.02, json = math.random() < 0.5, max = math.random(1, 100000) }
  end,
  function(p)
    local n = 0
    for _ in p:lines { timeout = 0.01 } do
      n = n + 1
      if n > 20 then break end
    end
  end,
  function(p) return p:read(math.random(1, 3000000), little()) end,
  function(p) return p:read(nil, little()) end,
  function(p) return p:close_input() end,
  function(p) return p:kill(SIGNALS[math.random(#SIGNALS)]) end,
  function(p) return p:wait { timeout = 0.02, discard = math.random() < 0.3 } end,
  function(p) return p:errors() end,
  function(p) return math.random() < 0.3 and p:close() end,
  function() collectgarbage() end,
  function() ah.sleep(math.random() / 50) end,
}

local function start()
  return assert(ah.process {
    command = "sh", args = { "-c", SCRIPTS[math.random(#SCRIPTS)] }, grace = 0.03, stall = 0.05,
    timeout = math.random() < 0.2 and 0.001 + math.random() / 10 or nil,
    merge = math.random() < 0.2,
  })
end

-- Makes a handler that calls random methods. Errors about a second reader are expected.
local function work(processes, raised)
  local own <close> = math.random() < 0.3 and start() or nil
  for _ = 1, 12 do
    local method = METHODS[math.random(#METHODS)]
    local ok, err = pcall(method, own or processes[math.random(#processes)])
    if not ok and not tostring(err):find("read by another task", 1, true) then
      raised[#raised + 1] = tostring(err)
    elseif math.random() < 0.05 then
      processes[math.random(#processes)] = start()
    end
  end
end

local function round(seed)
  math.randomseed(seed)
  local processes, raised, tools, calls = { start(), start(), start() }, {}, {}, {}
  for i = 1, 4 do
    tools[i] = ah.tool { name = "t" .. i, description = "T.", parallel = true,
      handler = function() work(processes, raised) end }
    calls[i] = { name = "t" .. i }
  end
  local reply, err = ah.run { model = ah.scripted { { calls = calls }, "done" }, tools = tools,
    timeout = math.random() < 0.3 and 0.01 + math.random() / 3 or 60, log = function() end, "go" }
  assert(reply or err.code == "deadline_exceeded", ("seed %d: %s"):format(seed, err))
  assert(#raised == 0, ("seed %d: %s"):format(seed, raised[1]))
  for _, p in ipairs(processes) do
    if math.random() < 0.5 then
      p:close()
    end
  end
end

local function children()
  local f <close> = assert(io.open "/proc/thread-self/children")
  return f:read "a"
end

describe("processes that several tasks use at once", function()
  it("raise nothing, and leave nothing", function()
    round(0)
    collectgarbage()
    collectgarbage()
    local before, kids = descriptors(), children()
    for seed = 1, ROUNDS do
      round(seed)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, descriptors())
    assert.equal(kids, children())
  end)
end)
