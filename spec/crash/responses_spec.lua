-- Responses to asks that other processes give, after the script has changed, and too late.
local ah = require "agenthost"
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local has, has_not = command.has, command.has_not

describe("a response of another process", function()
  local at

  before_each(function()
    at = crashes.folder()
    assert.equal(crashes.WAITING, crashes.start(at, "approval").code)
  end)

  after_each(function()
    crashes.remove(at)
    command.tidy()
  end)

  local function ask()
    local list = crashes.asks(at)
    assert.equal(1, #list)
    return list[1]
  end

  local function store(f)
    local s <close> = assert(ah.store(at .. "/store.db"))
    return f(s)
  end

  local function keyed()
    return #crashes.lines_of(at .. "/keyed")
  end

  it("counts if only the code of the tool has changed", function()
    assert.equal(0, crashes.respond(at, ask(), "yes").code)
    assert.equal(crashes.WAITING, crashes.start(at, "approval", "CHANGED=code").code)
    assert.equal(1, keyed())
    assert.same({ "changed" }, crashes.lines_of(at .. "/code"))
  end)

  it("is asked for anew if the definition has changed, with the difference", function()
    local before = ask()
    assert.equal(0, crashes.respond(at, before, "yes").code)
    assert.equal(crashes.WAITING, crashes.start(at, "approval", "CHANGED=definition").code)
    assert.equal(0, keyed())
    local again = ask()
    assert.not_equal(before.ask, again.ask)
    has(again.question, "it costs 5")
    has(again.question, "definition of the tool has changed")
    local r = crashes.respond(at, before, "yes")
    assert.not_equal(0, r.code)
    assert.equal(0, crashes.respond(at, again, "yes").code)
    assert.equal(crashes.WAITING, crashes.start(at, "approval", "CHANGED=definition").code)
    assert.equal(1, keyed())
  end)

  it("is refused in words after a cancel", function()
    local before = ask()
    store(function(s) assert(s:cancel "flow") end)
    local r = crashes.start(at, "approval")
    assert.equal(1, r.code)
    has(r.err, "cancelled")
    r = crashes.respond(at, before, "yes")
    assert.is_true(r.code == 1 or r.code == 2)
    has(r.err, before.ask)
    has(r.err, "closed")
    assert.equal(0, keyed())
    assert.same({}, crashes.asks(at))
  end)

  it("comes after a cancel that is not yet taken: the run ends", function()
    local before = ask()
    store(function(s) assert(s:cancel "flow") end)
    crashes.respond(at, before, "yes")
    assert.equal(1, crashes.start(at, "approval").code)
    assert.equal(0, keyed())
  end)

  it("is one of two at once: the first counts", function()
    local of = ask()
    local command_line = ("%s respond flow %s %%s --store '%s/store.db' >'%s/r%%d' 2>&1; "
      .. "echo $? >>'%s/r%%d'"):format(command.quote(command.BINARY), of.ask, at, at, at)
    os.execute(("( %s ) & ( %s ) & wait"):format(command_line:format("yes", 1, 1),
      command_line:format("no", 2, 2)))
    local codes = {}
    for i = 1, 2 do
      local lines = crashes.lines_of(at .. "/r" .. i)
      codes[i] = tonumber(lines[#lines])
      if codes[i] ~= 0 then
        has(table.concat(lines, "\n"), "already answered")
      end
    end
    assert.equal(1, codes[1] + codes[2], "one must be refused, and one taken")
    assert.equal(crashes.WAITING, crashes.start(at, "approval").code)
    assert.equal(codes[1] == 0 and 1 or 0, keyed())
  end)

  it("may be there before the process is killed that takes it", function()
    assert.equal(0, crashes.respond(at, ask(), "yes").code)
    local n = 0
    repeat
      n = n + 1
      local r = crashes.start(at, "approval", "AGENTHOST_CRASH_AT=1")
    until r.code ~= crashes.CRASHED or n == 5
    assert.equal(crashes.WAITING, crashes.start(at, "approval").code)
    assert.equal(1, keyed())
    has_not(ask().question, "asked again")
  end)
end)

describe("a response after the time of the ask", function()
  it("is refused in words, and the handler gets the error of the timeout", function()
    local at <const> = crashes.folder()
    local script = command.temp([[
      local ah = require "agenthost"
      local folder = ...
      local which = ah.tool { name = "which", description = "Asks.", durable = true,
        handler = function(_, ctx)
          local n, err = ctx:ask { question = "How many?", schema = { type = "integer" },
            timeout = 1 }
          return n or err.code
        end }
      local agent = assert(ah.agent { store = folder .. "/store.db", id = "flow", tools = { which },
        model = ah.scripted { resumes = true, { calls = { { name = "which" } } },
          function(request) return request.entries[#request.entries].content end } })
      print(assert(agent:run(not agent.unfinished and "Go." or nil)))]])
    local function start()
      return command.shell(("\"$A\" %s '%s' </dev/null"):format(script, at))
    end
    assert.equal(crashes.WAITING, start().code)
    local ask = assert(crashes.asks(at)[1])
    os.execute "sleep 1.1"
    assert.same({}, crashes.asks(at))
    local r = crashes.respond(at, ask, "6")
    assert.is_true(r.code == 1 or r.code == 2)
    has(r.err, "its time is over")
    r = start()
    assert.equal(0, r.code, r.err)
    assert.equal("deadline_exceeded\n", r.out)
    crashes.remove(at)
    command.tidy()
  end)
end)
