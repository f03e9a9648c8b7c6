-- Agent scripts: the command with a script that returns an agent, and with one that does nothing.
-- docs/reference/agent.md, "Agent scripts"; src/cli/agent.c, lua/agenthost/command/inspect.lua.
local ah = require "agenthost"
local command = require "support.command"

local has = command.has

after_each(command.tidy)

describe("agenthost agent.lua", function()
  local AGENT = 'local ah = require "agenthost"\nreturn ah.agent { model = "demo/echo"%s }\n'

  it("lets the returned agent answer the words", function()
    local r = command.script(AGENT:format "", "What", "is new?")
    assert.same({ code = 0, out = "What is new?\n", err = "" }, r)
    r = command.agenthost("-e", 'return ah.agent { model = "demo/echo" }', "x")
    assert.same({ code = 0, out = "x\n", err = "" }, r)
  end)

  it("takes the agent named so from a table that is returned", function()
    local r = command.script('local ah = require "agenthost"\n'
      .. 'return { agent = ah.agent { model = "demo/echo" } }', "hi")
    assert.same({ code = 0, out = "hi\n", err = "" }, r)
  end)

  it("waits for its background calls", function()
    local r = command.script([[
      local ah = require "agenthost"
      local job = ah.tool { name = "job", description = "A job.", background = true,
        handler = function() ah.sleep(0.01) return "done" end }
      return ah.agent { tools = { job },
        model = ah.scripted { { calls = { { name = "job" } } }, "Begun.", "It is done." } }]], "go")
    assert.same({ code = 0, out = "It is done.\n", err = "" }, r)
  end)

  it("opens a conversation of its own for them", function()
    local r = command.script([[
      local ah = require "agenthost"
      local model = ah.scripted(function(r) return "messages: " .. #r.entries end)
      local agent = ah.agent { model = model,
        setup = function(c) io.stderr:write("setup ", #c.id, "\n") end }
      agent:run "the script's own"
      return agent]], "x")
    assert.same({ code = 0, out = "messages: 1\n", err = "setup 16\nsetup 16\n" }, r)
  end)

  it("prints the reply as JSON, or the error", function()
    local r = command.agenthost("--json", command.temp(AGENT:format ""), "a", "b")
    assert.equal(0, r.code)
    assert.equal("a b", ah.json.decode(r.out).reply.text)
    local failing = command.temp(AGENT:format ", setup = function() error 'no' end")
    r = command.agenthost("--json", failing, "a")
    assert.equal(1, r.code)
    has(ah.json.decode(r.out).error.message, ":2: no")
    r = command.agenthost("--jsonl", command.temp(AGENT:format ""), "a")
    assert.equal(0, r.code)
    for line in r.out:gmatch "[^\n]+" do
      assert(ah.json.decode(line))
    end
  end)

  it("says how where there are no words", function()
    local path = command.temp(AGENT:format "")
    local r = command.agenthost(path)
    assert.equal(2, r.code)
    assert.equal("", r.out)
    has(r.err, "returned an agent")
    has(r.err, 'Try:  agenthost ' .. path .. ' "Hello"')
    r = command.agenthost("--json", path)
    assert.equal(2, r.code)
    assert.equal("usage", ah.json.decode(r.out).error.code)
  end)

  it("exits as its run ended", function()
    local codes = {}
    for i, fields in ipairs { ", setup = function() error 'no' end",
      ", timeout = 0.01, setup = function() ah.sleep(9) end", ", budget = { requests = 0 }",
      ", checks = 1" } do
      codes[i] = command.script(AGENT:format(fields), "x").code
    end
    codes[#codes + 1] = command.script(AGENT:gsub("demo/echo", "compatible/x"):format(
      ', retries = 0, base_url = "http://127.0.0.1:1"'), "x").code
    assert.same({ 1, 4, 4, 1, 3 }, codes)
  end)

  it("fails with the error that a script returns in place of an agent", function()
    local r = command.shell('unset OPENAI_API_KEY; "$A" -e '
      .. command.quote 'return ah.agent { model = "openai/x" }' .. " hello")
    assert.same({ 3, "" }, { r.code, r.out })
    has(r.err, "OPENAI_API_KEY")
    r = command.script 'return nil, "words of its own"'
    assert.equal(0, r.code)
    r = command.script('return require "agenthost".agent { modle = "x" }', "hello")
    assert.equal(1, r.code)
    has(r.err, ":1: ah.agent: unknown field 'modle' (did you mean 'model'?)")
  end)

  it("lets a script that runs by itself be, words or none", function()
    local r = command.script('local ah = require "agenthost"\n'
      .. 'print(#arg, ..., ah.run { model = "demo/echo", "ran" })', "a", "b")
    assert.same({ code = 0, out = "2\ta\tran\n", err = "" },
      { code = r.code, out = r.out, err = r.err })
    for _, quiet_one in ipairs { 'print "x"', 'io.write "x"', 'io.stdout:write("x") io.flush()',
      'local ah = require "agenthost" ah.run { model = "demo/echo", "x" }' } do
      r = command.script(quiet_one)
      assert.same({ 0, "" }, { r.code, r.err })
    end
  end)

  it("says so where a script did nothing at all", function()
    local path = command.temp 'local ah = require "agenthost" local t = {} return t'
    local r = command.agenthost(path)
    assert.same({ 0, "" }, { r.code, r.out })
    has(r.err, path .. " printed nothing, began no run and returned no agent")
    has(r.err, "return ah.agent { ... }")
    assert.equal("", command.agenthost("-q", path).err)
    r = command.agenthost(path, "Hello")
    assert.same({ 2, "" }, { r.code, r.out })
    has(r.err, 'did not use "Hello"')
    r = command.script("local word = ...", "Hello")
    assert.equal(0, r.code)
    has(r.err, "printed nothing")
  end)

  it("is known to agenthost tools and check, with what setup adds", function()
    local path = command.temp [[
local ah = require "agenthost"
return ah.agent { model = "demo/echo", setup = function(c)
  c:set_system "Mine."
  c:add_tools(ah.tool { name = "own", description = "Own." })
end }]]
    local r = command.agenthost("tools", path)
    has(r.out, path .. ":2: ah.agent, which is returned, asks demo/echo, 1 tool of")
    has(r.out, "own: Own.")
    local met = ah.json.decode(command.agenthost("tools", "--json", path).out).met[1]
    assert.same({ true, "Mine.", 1 }, { met.returned, met.system, #met.tools })
    r = command.agenthost("check", path)
    assert.same({ code = 0, out = path .. ": no faults (1 agent, 0 runs, 1 tool)\n", err = "" }, r)
  end)

  it("has faults in setup told at their line, and an agent that is not used", function()
    local path = command.temp [[
local ah = require "agenthost"
return ah.agent { model = "demo/echo",
  setup = function(c) c:add_tool() end }]]
    local r = command.agenthost("check", path)
    assert.equal(1, r.code)
    has(r.out, path .. ":3: conversation: there is no 'add_tool' (did you mean 'add_tools'?)")
    r = command.agenthost("check",
      command.temp 'local a = require "agenthost".agent { model = "demo/echo" }')
    assert.equal(0, r.code)
    has(r.out, "neither runs its agent nor returns it")
    r = command.agenthost("check", command.temp [[local ah = require "agenthost"
local inner = ah.agent { model = "demo/echo" }
return ah.agent { model = "demo/echo", setup = function() inner:run "x" end }]])
    assert.equal(0, r.code)
    has(r.out, "`setup` is called when a run begins")
  end)
end)

describe("examples/agent.lua", function()
  it("answers the words, with a basket for each conversation", function()
    local r = command.shell([[unset AGENTHOST_MODEL; "$A" examples/agent.lua 'Put a "lamp"' in.]])
    assert.same({ code = 0, out = "The tools said:\n- put: 1 x lamp, 19 euros each\n- total: 19\n",
      err = "" }, r)
    r = command.shell('unset AGENTHOST_MODEL; "$A" check examples/agent.lua')
    assert.same({ code = 0, err = "",
      out = "examples/agent.lua: no faults (1 agent, 0 runs, 2 tools)\n" }, r)
  end)
end)
