-- examples/durable.lua: the command lines of its opening, each a process of its own.
local command = require "support.command"
local ahtest = require "ahtest"

if not ahtest.store_engines().sqlite then
  return
end

local has = command.has
local EXAMPLE = "examples/durable.lua"

local folder

before_each(function()
  folder = command.folder()
end)

after_each(command.tidy)

-- Returns the command lines of the opening, without their comments.
local function lines()
  local list = {}
  for line in command.contents(EXAMPLE):gmatch "\n%-%-   ([^\n]*agenthost [^\n]+)" do
    list[#list + 1] = line:gsub("%s+#.*$", "")
  end
  return list
end

-- Runs a line in the folder.
local function run(line)
  line = line:gsub("agenthost ", '"$A" ', 1):gsub("examples/", '"$HERE"/%0')
  return command.shell(("HERE=$PWD; cd %s; %s </dev/null"):format(folder, line))
end

local function ledger()
  local file <close> = io.open(folder .. "/refunds.txt")
  return file and file:read "a"
end

describe(EXAMPLE, function()
  it("moves the money once, though its process is killed in the middle", function()
    local list = lines()
    assert.equal(6, #list)

    local waits = run(list[1])
    assert.equal(5, waits.code, waits.err)
    has(waits.err, ("conversation 'order-7' waits for 1 response: `agenthost asks --store '%s'`")
      :format(folder .. "/refunds.db"))

    local asks = run(list[2])
    assert.equal(0, asks.code, asks.err)
    has(asks.out, "  it sends money\n  tool: refund\n  arguments: {\"euros\":40,\"order\":7}\n")
    has(asks.out, "  agenthost respond order-7 1 yes --store " .. folder .. "/refunds.db\n")

    assert.equal(0, run(list[3]).code)
    assert.is_nil(ledger())
    assert.equal(128 + 9, run(list[4]).code)
    local moved = ledger()
    assert.matches("^%x+ 40 euros for order 7\n$", moved)

    assert.same({ code = 0, out = "Your 40 euros are on their way.\n", err = "" }, run(list[5]))
    assert.equal(moved, ledger())
    assert.same({ code = 0, out = "It is as I said.\n", err = "" }, run(list[6]))
  end)

  it("moves nothing without an approval", function()
    local list = lines()
    assert.equal(5, run(list[1]).code)
    assert.equal(0, run((list[3]:gsub("yes", "no"))).code)

    local r = run(list[5])
    assert.equal(0, r.code, r.err)
    has(r.out, "I am sorry, I cannot send the 40 euros. Tool 'refund' was not run: not approved")
    assert.is_nil(ledger())
  end)

  it("moves the money if its process is killed before that", function()
    local list = lines()
    assert.equal(5, run(list[1]).code)
    assert.equal(0, run(list[3]).code)

    assert.equal(128 + 9, run((list[4]:gsub("after", "before"))).code)
    assert.is_nil(ledger())

    assert.equal("Your 40 euros are on their way.\n", run(list[5]).out)
    assert.matches("^%x+ 40 euros for order 7\n$", ledger())
  end)

  it("has no faults", function()
    local r = run('agenthost check "' .. EXAMPLE .. '"')
    assert.equal(0, r.code, r.out .. r.err)
    has(r.out, "no faults (1 agent, 0 runs, 1 tool)")
  end)
end)
