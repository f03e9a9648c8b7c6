-- Agents made at random (support/random_agent.lua), each from a seed, in programs of their own, so
-- that a crash or a hang also has a seed. That file checks each: it ends, with a reply or an error
-- that has a code; each call has one result, in order, and is reported once; loading restores what
-- was saved; no handler is left; and the next run succeeds.
--
--   AGENTHOST_RANDOM_AGENTS=10000   number of agents (default 24; many take a while)
--   AGENTHOST_RANDOM_SEED=17        the first seed (default 1)
local COUNT = tonumber(os.getenv "AGENTHOST_RANDOM_AGENTS") or 24
local FIRST = tonumber(os.getenv "AGENTHOST_RANDOM_SEED") or 1
local AT_ONCE = COUNT > 100 and 3 or 1
local A_PROGRAM = 250     -- seeds of one program
local SECONDS_A_SEED = 4  -- on a busy machine

local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"

--- Starts a program for `count` seeds from `from` on.
local function start(from, count)
  local limit = 60 + SECONDS_A_SEED * count
  return assert(io.popen(("AGENTHOST_BUILD='%s' timeout -k 5 %d lua5.4 %s %d %d 2>&1"):format(BUILD,
    limit, "spec/support/random_agent.lua", from, count)))
end

--- Returns nil if the output ends with "ok", else a text: the last seed, and the output.
local function fault_of(program)
  local last, lines = "none", {}
  for line in program:lines() do
    local seed = line:match "^seed (%d+)$"
    last = seed or last
    if not seed then
      lines[#lines + 1] = line
    end
  end
  local _, how, code = program:close()
  if lines[#lines] ~= "ok" then
    return ("seed %s, %s %d (AGENTHOST_RANDOM_SEED=%s AGENTHOST_RANDOM_AGENTS=1)\n%s"):format(last,
      how, code, last, table.concat(lines, "\n", 1, math.min(#lines, 60)))
  end
end

describe("agents made at random", function()
  it("keep every promise, whatever their functions do", function()
    local at, left, faults = FIRST, COUNT, {}
    while left > 0 do
      local programs = {}
      while left > 0 and #programs < AT_ONCE do
        local n = math.min(left, A_PROGRAM)
        programs[#programs + 1] = start(at, n)
        at, left = at + n, left - n
      end
      for _, program in ipairs(programs) do
        faults[#faults + 1] = fault_of(program)
      end
    end
    assert.equal("", table.concat(faults, "\n"))
  end)
end)
