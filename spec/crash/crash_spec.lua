-- Processes that die at every point of a conversation with a store. Each flow of flow.lua is killed
-- at the n-th crash point, for every n, and at every write to the world outside; it is then started
-- again until it ends (support/crashes.lua says what must hold). `make crash` does that with all
-- flows, twice in one flow, and by kills at random times; `make test` with some.
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local ALL = os.getenv "CRASH_ALL" ~= nil
local SEED = tonumber(os.getenv "CRASH_SEED") or 18
-- timeout waits for the process that it has killed, and does not kill itself.
local KILL = "timeout --foreground --preserve-status -s KILL %.6f"
local KILLS = tonumber(os.getenv "CRASH_KILLS") or (ALL and 1000 or 30)

local FLOWS = { "plain", "calls", "turns", "parallel", "files", "nested", "as_tool", "approval",
  "approvals", "changes", "front", "handoff", "nobody", "retries", "fallback", "fallbacks",
  "streams", "send", "tools", "background",
  "entities", "failing", "entity", "sets", "grown", "notes", "found", "lost_ask", "denied", "most",
  "output", "checks", "once", "durable", "durable_tell", "durable_files", "durable_ask",
  "checkpoints", "shared", "spending", "memory",
  "rewound", "rewound_files" }
-- In `make test` each n-th point of these, and each 11th of the others.
local QUICK = { calls = 1, parallel = 1, approval = 3, changes = 5, found = 1, background = 3,
  durable_ask = 7, checkpoints = 97, files = 3, sets = 5, grown = 5, entity = 7, failing = 7,
  notes = 7, shared = 3, spending = 5, memory = 2, handoff = 2, fallbacks = 3,
  rewound = 2, rewound_files = 2 }
-- The flows with effects outside, killed around each of them.
local OUTSIDE = { "calls", "parallel", "as_tool", "approval", "approvals", "fallback", "found",
  "lost_ask", "once", "durable", "durable_tell", "durable_files",
  "durable_ask", "spending" }

local only = os.getenv "CRASH_FLOW"
local wholes = {}

local function whole(flow)
  wholes[flow] = wholes[flow] or crashes.whole(flow)
  return wholes[flow]
end

local function show(words, ...)
  if ALL then
    print("  " .. words:format(...))
  end
end

local function each(list, f)
  for _, flow in ipairs(list) do
    if not only or only == flow then
      f(flow, ALL and 1 or QUICK[flow] or 11)
    end
  end
end

describe("a conversation whose process dies", function()
  after_each(command.tidy)

  each(FLOWS, function(flow, every)
    it("at every append goes on to the same end: " .. flow, function()
      local points, lost = crashes.exhaust(whole(flow), "AGENTHOST_CRASH_AT", crashes.CRASHED,
        every)
      assert.is_true(points >= 1, "no point")
      show("%s: %d crash points in %d starts, %d calls lost", flow, points, whole(flow).starts,
        lost)
    end)
  end)

  each(OUTSIDE, function(flow)
    it("around every outside effect goes on to the same end: " .. flow, function()
      local points, lost = crashes.exhaust(whole(flow), "KILL_AT", crashes.KILLED)
      assert.is_true(points >= 2, "no effect")
      show("%s: %d kills around effects, %d calls lost", flow, points, lost)
    end)
  end)

  if ALL then
    each(FLOWS, function(flow)
      it("and dies again when it has gone on: " .. flow, function()
        math.randomseed(SEED)
        local again = function(_, i)
          return i <= 2 and ("AGENTHOST_CRASH_AT=%d"):format(math.random(1, 12)) or nil
        end
        local points, lost = crashes.exhaust(whole(flow), "AGENTHOST_CRASH_AT", crashes.CRASHED,
          flow == "checkpoints" and 7 or 1, again)
        show("%s: %d double crashes, %d calls lost", flow, points, lost)
      end)
    end)
  end

  it("at a random time goes on to the same end", function()
    math.randomseed(SEED)
    local flows, killed, lost = {}, 0, 0
    each(FLOWS, function(flow)
      if ALL or QUICK[flow] and flow ~= "checkpoints" then
        flows[#flows + 1] = flow
      end
    end)
    for i = 1, KILLS do
      local of = whole(flows[math.random(#flows)])
      local after = math.random() * of.seconds * 1.2
      local words <const> = ("%s, kill %d of seed %d after %.6f s"):format(of.flow, i, SEED, after)
      local here = crashes.disturb(of, math.random(of.starts),
        KILL:format(after), crashes.KILLED, words)
      killed, lost = killed + (here and 1 or 0), lost + (here or 0)
    end
    assert.is_true(killed > 0 or KILLS < 20, "no process was killed")
    show("%d kills at random times, %d of them before the end, %d calls lost", KILLS, killed, lost)
  end)
end)
