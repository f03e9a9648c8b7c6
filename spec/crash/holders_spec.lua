-- Two processes and one conversation: the second one is refused, and names the first; one that
-- takes the conversation goes on, and the first can record nothing more when it wakes.
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local has = command.has

describe("a conversation that two processes want", function()
  local at, pid

  -- Waits until the file has a line, and returns it.
  local function line_of(file)
    for _ = 1, 1000 do
      local line = crashes.lines_of(at .. "/" .. file)[1]
      if line then
        return line
      end
      os.execute "sleep 0.01"
    end
    error("nothing in " .. file)
  end

  -- Starts the first process, and waits until its handler has begun.
  before_each(function()
    at = crashes.folder()
    os.execute(("( FOLDER='%s' NAME=one %s spec/crash/holder.lua >'%s/out' 2>'%s/err' </dev/null; "
      .. "echo $? >'%s/code' ) &"):format(at, command.quote(command.BINARY), at, at, at))
    line_of "effects"
    pid = line_of "pid"
  end)

  after_each(function()
    os.execute(("touch '%s/go'; kill -CONT %s 2>/dev/null"):format(at, pid))
    line_of "code"
    crashes.remove(at)
    command.tidy()
  end)

  local function other(words)
    return command.shell(("FOLDER='%s' NAME=two \"$A\" %s </dev/null"):format(at, words))
  end

  local function script()
    return other "spec/crash/holder.lua"
  end

  local function end_of_first()
    os.execute(("touch '%s/go'; kill -CONT %s"):format(at, pid))
    return tonumber(line_of "code"), command.contents(at .. "/err")
  end

  local function records()
    return command.shell(("sqlite3 '%s/store.db' 'SELECT count(*) FROM records'"):format(at)).out
  end

  it("is refused to the second, which names the first", function()
    local r = script()
    assert.equal(1, r.code)
    has(r.err, "conflict: ")
    has(r.err, "process " .. pid)
    os.execute("kill -STOP " .. pid)
    has(script().err, "process " .. pid)
    assert.same({ "one first" }, crashes.lines_of(at .. "/effects"))
    local code, err = end_of_first()
    assert.equal(0, code, err)
    has(command.contents(at .. "/out"), "The end of one.")
  end)

  it("is taken from one that is stopped, which wakes and writes nothing more", function()
    os.execute("kill -STOP " .. pid)
    local r = other(("resume h --take --store '%s/store.db'"):format(at))
    assert.equal(0, r.code, r.err)
    local before = records()
    local effects = crashes.lines_of(at .. "/effects")
    local code, err = end_of_first()
    assert.equal(1, code)
    has(err, "store: ")
    has(err, "another process has taken over")
    assert.equal(before, records())
    assert.same(effects, crashes.lines_of(at .. "/effects"))
    assert.equal("one first", effects[1])
    assert.is_nil(table.concat(effects, " "):find("one second", 1, true))
  end)

  it("goes on after the death of the first", function()
    os.execute("kill -9 " .. pid)
    local r = script()
    assert.equal(0, r.code, r.err)
    assert.same({ "one first", "two first", "two second" }, crashes.lines_of(at .. "/effects"))
    has(r.out, "The end of two.")
  end)
end)
