-- A wall clock that jumps back and forth (support/jumping_clock.c): times in a stream never go
-- back, and times that are waited for are right.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local ASAN = os.getenv "AGENTHOST_ASAN" -- must be loaded first
local JUMPS = ("LD_PRELOAD='%s%s/jumping_clock.so'"):format(ASAN and ASAN .. ":" or "",
  (command.BINARY:gsub("/[^/]*$", "")))

describe("with a clock that jumps", function()
  local at

  before_each(function()
    at = crashes.folder()
  end)

  after_each(function()
    crashes.remove(at)
    command.tidy()
  end)

  local function times()
    local s <close> = assert(ahtest.store("sqlite", { path = at .. "/store.db", sync = "process" }))
    local list = {}
    for i, record in ipairs(assert(s:read("flow", 1, math.maxinteger))) do
      list[i] = record.time
    end
    return list
  end

  for _, flow in ipairs { "calls", "approval" } do
    it("the times of a stream never go back, also in later processes: " .. flow, function()
      local starts = 0
      local r = crashes.go_on(at, flow, flow, function(i)
        starts = i
        return JUMPS .. (i <= 3 and " AGENTHOST_CRASH_AT=2" or "")
      end)
      assert.equal(0, r.code, r.err)
      assert.is_true(starts > 3)
      local list = times()
      assert.is_true(#list > 10)
      for i = 2, #list do
        assert.is_true(list[i] >= list[i - 1], ("record %d is older than the one before"):format(i))
      end
      assert.is_true(list[#list] > list[1] + 3600e3, "the clock did not jump")
    end)
  end

  it("what is waited for takes its time", function()
    local script = command.temp([[
      local ah = require "agenthost"
      local tools = {}
      for i, name in ipairs { "late", "soon" } do
        tools[i] = ah.tool { name = name, description = "Waits.", timeout = i == 1 and 0.3 or nil,
          handler = function() ah.sleep(i == 1 and 60 or 0.2); return name end }
      end
      local folder = ...
      local function run(id, timeout)
        local reply, err = ah.run { store = folder .. "/store.db", id = id, tools = tools,
          timeout = timeout, "Go.", model = ah.scripted {
            { calls = { { name = "late" }, { name = "soon" } } }, "Done." } }
        for _, m in ipairs((reply or err.reply).messages) do
          if m.role == "tool" then print(m.content) end
        end
        print(reply, err and err.code)
      end
      run("one")
      run("two", 0.4)]])
    local begun = ah.now()
    local r = command.shell(("%s \"$A\" %s '%s' </dev/null"):format(JUMPS, script, at))
    local took = ah.now() - begun
    assert.equal(0, r.code, r.err)
    assert.matches("late.*timed out.*\nsoon\nDone%.\tnil\n", r.out:gsub("0%.3 s", "timed out"))
    assert.matches("nil\tdeadline_exceeded\n$", r.out)
    assert.is_true(took >= 0.85 and took < 10, took)
  end)
end)
