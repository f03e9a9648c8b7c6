-- Names of filesystems, and what a call that finished before its process died does with them in the
-- next one; what a durable handler gets of a file that it had read before its process died.
-- docs/reference/filesystem.md has the rules; spec/crash has the folders of the machine.
local ah = require "agenthost"
local command = require "support.command"

local scratch

setup(function()
  scratch = command.folder()
end)

teardown(command.tidy)

local n = 0

-- Runs a script that is killed in its second handler, then again. `fs` is an expression for the
-- filesystem. The first call writes "a" to `a.txt`, and its commit waits for the second, which is
-- at work beside it. Returns what the second start prints.
local function crashed(fs, body)
  n = n + 1
  local script, store = ("%s/%d.lua"):format(scratch, n), ("%s/%d.db"):format(scratch, n)
  local f <close> = assert(io.open(script, "w"))
  f:write(([[
local ah = require "agenthost"
local FOLDER = os.getenv "FOLDER"
local fs = %s
local function tool(name, handler)
  return ah.tool { name = name, description = "A tool.", parallel = true, on_lost = "retry",
    handler = handler }
end
local slow = tool("slow", function()
  ah.sleep(0.02)
  if os.getenv "DIE" then os.execute "kill -9 $PPID" end
  return "slow"
end)
local change = tool("change", function(_, ctx) %s end)
local call = function(name) return { name = name, arguments = {} } end
local model = ah.scripted { { calls = { call "slow", call "change" } }, "Done.", resumes = true }
local agent = assert(ah.agent { model = model, tools = { slow, change }, store = os.getenv "STORE",
  id = "x", on = { warning = function(e) print("warning", e.message) end } })
local reply = assert(agent:run(not agent.unfinished and "Go." or nil))
for _, m in ipairs(reply.messages) do
  if m.role == "tool" then print(m.name, m.content) end
end
print("file", (fs:read "a.txt"))
]]):format(fs, body))
  f:close()
  local env = ("STORE=%s FOLDER=%s"):format(store, scratch)
  assert.is_nil((os.execute(("DIE=1 %s sh -c '%s %s >/dev/null 2>&1; test $? = 0'"):format(env,
    command.BINARY, script))))
  local p <close> = assert(io.popen(("%s %s %s 2>&1"):format(env, command.BINARY, script)))
  return p:read "a"
end

local WRITE = [[assert(fs:append("a.txt", "a")) return "changed" ]]
local KEPT = "slow\tslow\nchange\tchanged\nfile\ta\n"
local LOST = "the program ended before the call's changes were made, and some of them could not be "
  .. "written down: they are lost"

describe("a filesystem with a name", function()
  it("in memory gets the changes of a finished call in the next process", function()
    assert.equal(KEPT, crashed('ah.filesystem { memory = true, name = "notes" }', WRITE))
  end)

  it("on the machine is known by its folder, however it is written", function()
    assert.equal(KEPT, crashed("ah.filesystem { root = FOLDER .. '/.' }", WRITE))
    assert(os.remove(scratch .. "/a.txt"))
  end)

  it("may be closed before the call is recorded", function()
    assert.equal(KEPT, crashed("ah.filesystem { root = FOLDER }", [[
      local mine <close> = ah.filesystem { root = FOLDER }
      mine:append("a.txt", "a")
      return "changed" ]]))
    assert(os.remove(scratch .. "/a.txt"))
  end)

  it("gives it up when it is closed or collected, and not before", function()
    local function new()
      return ah.filesystem { memory = true, name = "one" }
    end
    local first = new()
    local ok, err = pcall(new)
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.matches("another filesystem named 'one' is open", err.message)
    first:close()
    first = new()
    assert.is_truthy(first)
    first = nil -- luacheck: ignore
    new():close()
  end)

  it("refuses names that are none", function()
    for _, name in ipairs { "", "a/b", "a\nb", ("x"):rep(201), "\255" } do
      local ok, err = pcall(ah.filesystem, { memory = true, name = name })
      assert.is_false(ok)
      assert.matches("name must be a text of 1 to 200 bytes", err.message)
    end
    local ok, err = pcall(ah.filesystem, { root = scratch, name = "x" })
    assert.is_false(ok)
    assert.matches("name is for files in memory", err.message)
  end)
end)

describe("a filesystem in memory without a name", function()
  it("loses the call that changed it, and the model is told", function()
    local said = crashed("ah.filesystem { memory = true }", WRITE)
    assert.truthy(said:find(LOST, 1, true), said)
    assert.truthy(said:find("file\tnil", 1, true), said)
  end)

  it("loses no call that only read it", function()
    local said = crashed("ah.filesystem { files = { ['a.txt'] = 'a' } }",
      [[fs:read "a.txt" return "changed"]])
    assert.equal(KEPT, said)
  end)
end)

describe("an entity that a finished call changed", function()
  it("has its state in the next process when it is next used", function()
    local said = crashed([[ah.filesystem { files = {} }
local Account = ah.entity { name = "Account", id = "name", state = { "balance" } }
account = Account { name = "a", balance = 1 }]], [[
      ctx:enlist(account)
      account.balance = account.balance + 1
      return account.balance ]])
    assert.truthy(said:find("change\t2\n", 1, true), said)
  end)
end)

describe("a durable handler whose process is killed after it has read a file", function()
  local SCRIPT = [[
local ah = require "agenthost"
local fs = ah.filesystem { root = os.getenv "FOLDER" }
local sum = ah.tool { name = "sum", description = "A tool.", durable = true,
  handler = function(_, ctx)
    local text, err = fs:read "in.txt"
    if not text then
      return nil, err
    end
    assert(fs:append("out.txt", text))
    ctx:step("die", function()
      if os.getenv "DIE" then os.execute "kill -9 $PPID" end
    end, { on_lost = "retry" })
    return #text .. " " .. fs:read "out.txt"
  end }
local model = ah.scripted { { calls = { { name = "sum", arguments = {} } } }, "Done.",
  resumes = true }
local agent = assert(ah.agent { model = model, tools = { sum }, store = os.getenv "STORE",
  id = "x" })
for _, m in ipairs(assert(agent:run(not agent.unfinished and "Go." or nil)).messages) do
  if m.role == "tool" then print(m.content) end
end
print((fs:read "out.txt"))
]]

  local function write(name, text)
    command.write(scratch .. "/" .. name, text)
  end

  -- Returns what the second process prints. meanwhile: the file's content from then on.
  local function killed(meanwhile)
    n = n + 1
    write("reads.lua", SCRIPT)
    write("in.txt", "one")
    os.remove(scratch .. "/out.txt")
    local env = ("STORE=%s/%d.db FOLDER=%s"):format(scratch, n, scratch)
    local start = ("%s %s %s/reads.lua"):format(env, command.BINARY, scratch)
    assert.is_nil((os.execute(("DIE=1 sh -c '%s >/dev/null 2>&1; test $? = 0'"):format(start))))
    write("in.txt", meanwhile)
    local p <close> = assert(io.popen(start .. " 2>&1"))
    return p:read "a"
  end

  it("goes on with the file if it is the same", function()
    assert.equal("3 one\none\n", killed "one")
  end)

  it("is told of a conflict if it is another one, and has changed nothing", function()
    local said = killed "two"
    assert.truthy(said:find("'in.txt' has changed since this call looked at it", 1, true), said)
    assert.truthy(said:find("\nnil\n", 1, true), said)
  end)
end)
