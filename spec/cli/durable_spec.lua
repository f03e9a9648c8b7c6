-- A durable handler whose process is killed in the middle of a step, with a store in a file.
local command = require "support.command"

local SCRIPT = [[
local ah = require "agenthost"
local dir = arg[1]
local function note(line)
  local f <close> = assert(io.open(dir .. "/log", "a"))
  f:write(line, "\n")
end
local function has_died()
  local f <close> = io.open(dir .. "/died")
  return f ~= nil
end
local pay = ah.tool { name = "pay", description = "Pays.", durable = true,
  handler = function(_, ctx)
    local at = ah.now()
    local one = ctx:step("one", function() note "one" return 1 end)
    local two = ctx:step("two", function(key)
      note("two " .. key)
      if not has_died() then
        assert(io.open(dir .. "/died", "w")):close()
        os.execute("kill -9 " .. io.open("/proc/self/stat"):read "n")
      end
      return 2
    end, { on_lost = "retry" })
    return ("%d at %s"):format(one + two, at == ah.now() and "once" or "a later time")
  end }
local agent = ah.agent { tools = { pay }, store = dir .. "/store.db", id = "c",
  model = ah.scripted { resumes = true, { calls = { { name = "pay", arguments = {} } } },
    "paid" } }
local reply = assert(agent:run(not has_died() and "go" or nil))
print(reply.text)
]]

describe("a durable handler", function()
  after_each(command.tidy)

  it("goes on in another process after kill -9", function()
    local dir = os.tmpname()
    os.remove(dir)
    assert(os.execute(("mkdir -m 700 '%s'"):format(dir)))
    local file = assert(io.open(dir .. "/script.lua", "w"))
    file:write(SCRIPT):close()
    local line = ("$A %s/script.lua %s"):format(dir, dir)
    command.shell(line)
    local second = command.shell(line)
    assert.same({ 0, "paid\n" }, { second.code, second.out }, second.err)
    local log <close> = assert(io.open(dir .. "/log"))
    local one, key, again = log:read("l", "l", "l")
    assert.equal("one", one)
    assert.truthy(key:match "^two %x+$")
    assert.equal(key, again)
    assert.is_nil(log:read "l")
    os.execute(("rm -rf '%s'"):format(dir))
  end)
end)
