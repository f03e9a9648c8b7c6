-- A process that goes on and on stays as large as it is. Here 3,000 turns; `make soak` sets
-- SOAK_TURNS to 20,000 and shows the figures.
local server = require "support.server"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local TURNS = tonumber(os.getenv("SOAK_TURNS")) or 3000

local function soak(turns, warm)
  local s <close> = server.start { turns = 10, log = false, seconds = 600 }
  local command = ("'%s/agenthost' spec/support/soak.lua %s/v1 %d %d"):format(
    BUILD, s.url, turns, warm)
  local p <close> = assert(io.popen(command))
  return server.decode(p:read("a"))
end

describe("turns with tools in one process", function()
  it("leave neither memory nor descriptors behind", function()
    local proc = io.open("/proc/self/status")
    if not proc then
      pending("there is no /proc here")
      return
    end
    proc:close()
    local f = soak(TURNS, TURNS // 10)
    local grown = f.after.kib - f.before.kib
    if os.getenv("SOAK_TURNS") then
      print(("\nsoak: %d turns, %d KiB after %d turns, %d KiB at the end, %d descriptors"):format(
        f.turns, f.before.kib, TURNS // 10, f.after.kib, f.after.descriptors))
    end
    assert.is_true(f.turns >= TURNS)
    assert.equal(f.before.descriptors, f.after.descriptors)
    if not os.getenv("AGENTHOST_ASAN") then -- which keeps what was freed for a while
      assert.is_true(grown < 1024, grown .. " KiB more than before")
    end
  end)
end)
