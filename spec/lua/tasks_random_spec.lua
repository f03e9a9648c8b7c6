-- Random programs of tasks on a simulated clock (spec/simulated): they start, await and cancel each
-- other, in scopes, lists, races and times, in handlers of runs within runs, of entities and of
-- background calls; they use channels, permits and queues of events, and are cancelled and closed
-- from outside. For each program: every task ends once, every variable marked <close> is closed
-- once, no value of a channel is lost or received twice, permits and budgets come back, every run
-- ends, nothing is left at work or in memory, and what can never go on is an error.
--
--   AGENTHOST_TASKS=100000    number of programs (default 1000), in two processes from 10000 on
--   AGENTHOST_TASKS_SEED=7    the first seed (default 1)
local BUILD = os.getenv "AGENTHOST_BUILD" or "build"
local COUNT = math.tointeger(tonumber(os.getenv "AGENTHOST_TASKS" or "1000"))
local SEED = math.tointeger(tonumber(os.getenv "AGENTHOST_TASKS_SEED" or "1"))
-- The program has the sanitizers that it needs, and looks for leaks itself.
local BINARY = "LD_PRELOAD= ASAN_OPTIONS= " .. BUILD .. "/simulated"
local PLANTED = "{ planted = '%s', main = 'await', close = 1, body = {} }"

local shrinker = dofile "spec/simulated/shrink.lua"

local function simulated(words)
  local pipe <close> = assert(io.popen(("%s %s 2>&1"):format(BINARY, words)))
  local text = pipe:read "a"
  return pipe:close() or false, text
end

-- Returns the text with a short program that fails as the first seed in it, if it fails alone.
local function explain(text)
  local seed = math.tointeger(tonumber(text:match "seed (%d+)"))
  if not seed then
    return text
  end
  local path = os.tmpname()
  local program, faults = shrinker.shrink(BINARY, seed, path)
  os.remove(path)
  return program and ("%s\nseed %d in short:\n%s%s"):format(text, seed, program, faults) or text
end

describe("random programs of tasks", function()
  it("end, close what they have opened, and leave nothing behind", function()
    local ok, text = simulated(("--jobs %d %d %d"):format(COUNT < 10000 and 1 or 2, SEED, COUNT))
    assert.is_true(ok, ok or explain(text))
  end)

  for fault, words in pairs {
    open = "1 of 2 variables were not closed", twice = "a variable was closed twice",
    lost = "value 1 of a channel was received 0 times", error = "odd error: on no purpose",
    work = "tasks are at work in the core", memory = "the program is still held by something",
    long = "does not come to an end",
  } do
    it("are found out if they do not: " .. words, function()
      local ok, text = simulated(('"%s"'):format(PLANTED:format(fault)))
      assert.is_false(ok)
      assert.is_truthy(text:find(words, 1, true), text)
    end)
  end
end)
