-- claude_agent_sdk with commands that violate the protocol: every run ends with an error or an
-- answer, in limited time and memory, and leaves no process and no descriptor.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local descriptors = require "support.descriptors"

-- The beginning of the programs below: a command that does the handshake and waits for the
-- question.
local HEAD = [[
local function say(line) io.stdout:write(line, "\n") io.stdout:flush() end
local function read() return io.read "l" or os.exit(0) end
local function event(e) say('{"type":"stream_event","event":' .. e .. '}') end
local function start()
  event '{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}' end
local function block(b)
  event('{"type":"content_block_start","index":0,"content_block":' .. b .. '}')
  event '{"type":"content_block_stop","index":0}' end
local function text(s) block('{"type":"text","text":"' .. s .. '"}') end
local function stop(why) event('{"type":"message_delta","delta":{"stop_reason":"' .. why .. '"}}')
  event '{"type":"message_stop"}' end
local function result() say '{"type":"result","subtype":"success","is_error":false}' end
local function answer(s) start() text(s) stop "end_turn" result() end
local function ask(id, request)
  say('{"type":"control_request","request_id":"' .. id .. '","request":' .. request .. '}') end
local function rpc(id, message)
  ask(id, '{"subtype":"mcp_message","server_name":"host","message":' .. message .. '}') end
local function call(id, use) rpc(id, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{'
  .. '"name":"add","arguments":{},"_meta":{"claudecode/toolUseId":"' .. use .. '"}}}') end
local function use(id)
  block('{"type":"tool_use","id":"' .. id .. '","name":"mcp__host__add","input":{}}') end
local function wait_for(what)
  local line repeat line = read() until line:find(what, 1, true) return line end
wait_for '"type":"user"'
]]

--- Returns true if any of the processes whose ids are in the file is alive.
local function alive(file)
  return os.execute(("for p in $(cat '%s'); do kill -0 $p 2>/dev/null && exit 0; done; exit 1")
    :format(file)) == true
end

--- Returns the open descriptors of this process, after a garbage collection.
local function fds()
  collectgarbage()
  collectgarbage()
  return descriptors()
end

--- Installs a command that runs this program (text of Lua, or of the shell, where $PIDS is the file
-- for process ids). Returns the name of that file.
local function hostile(program, shell)
  local numbers = command.temp ""
  local path = shell or command.temp(HEAD .. program)
  local wrapper = command.temp(("#!/bin/sh\nPIDS='%s'\necho $$ >$PIDS\n%s\n"):format(numbers,
    shell and program or ("exec lua5.4 '%s'"):format(path)))
  os.execute("chmod +x " .. wrapper)
  ahtest.setenv("AGENTHOST_CLAUDE", wrapper)
  return numbers
end

local function add_tool(calls)
  return ah.tool { name = "add", description = "Adds.", handler = function()
    calls[#calls + 1] = true
    return "added"
  end }
end

describe("a claude command that", function()
  local numbers, before

  --- Runs the command; after_each checks that nothing of it is left.
  local function run(program, fields, shell)
    numbers = hostile(program, shell)
    local o = { model = "claude_agent_sdk/x", api_key = "k", retries = 0, timeout = 20, "Hello",
      http = { idle_timeout = 5 }, tools = { add_tool {} } }
    for k, v in pairs(fields or {}) do
      o[k] = v
    end
    return ah.run(o)
  end

  --- Waits until earlier commands are closed: the number of descriptors no longer changes.
  before_each(function()
    repeat
      before = fds()
      ah.sleep(0.05)
    until fds() == before
  end)
  after_each(function()
    for _ = 1, 100 do
      if not alive(numbers) and fds() == before then
        break
      end
      ah.sleep(0.05)
    end
    assert.is_false(alive(numbers), "a process is left")
    assert.equal(before, fds())
    ahtest.setenv("AGENTHOST_CLAUDE", nil)
    command.tidy()
  end)

  local function fails(program, ...)
    local reply, err = run(program)
    assert.is_nil(reply)
    assert.equal("provider", err.code)
    for _, part in ipairs { ... } do
      command.has(err.message, part)
    end
  end

  it("writes a line of 100 MB", function()
    fails([[local piece = ("x"):rep(1 << 20)
      io.stdout:write '{"type":"x","x":"' for _ = 1, 100 do io.stdout:write(piece) end
      say '"}' answer "late"]], "more than 67108864 bytes")
  end)

  it("never ends a line", function()
    fails([[while io.stdout:write(("x"):rep(65536)) do end]], "more than 67108864 bytes")
  end)

  it("says nothing but on stderr, without an end", function()
    local reply, err = run([[while true do io.stderr:write(("y"):rep(65536)) end]],
      { http = { idle_timeout = 0.5 } })
    assert.is_nil(reply)
    command.has(err.message, "wrote nothing for 500 ms")
  end)

  it("writes what is not UTF-8, is nested too deeply, or is no object", function()
    fails([[say '{"type":"\xff\xfe"}']], "UTF-8")
    fails([[say(('{"a":'):rep(10000) .. "1" .. ("}"):rep(10000))]], "deep")
    fails([[say "[1,2]"]], "no JSON object")
    fails([[say '{"type":"result"']], "is not JSON")
    fails([[say '{"type":"a","type":"b"}']], "type")
    fails([[say '{"type":"stream_event","event":[]}']], "event must be an object")
    fails([[say '{"type":"stream_event","event":{}}']], "event.type must be a string")
    fails([[start() say '{"type":"result","result":"x"}']], "is_error must be a boolean")
    fails([[start() block '{"type":"text","text":{}}' result()]], "text must be a string")
  end)

  --- Returns a turn that ends with an error of these words (as in JSON); `more` is the rest of its
  -- line.
  local function ends_with(words, more)
    return ([[start() say([==[{"type":"result","subtype":"success","is_error":true%s,]==]
      .. [==["result":"%s"}]==])]]):format(more or "", words)
  end

  it("says that the context is full", function()
    local api = [[API Error: 400 {\"type\":\"error\",\"error\":{]]
      .. [[\"type\":\"invalid_request_error\",]]
      .. [[\"message\":\"prompt is too long: 9 tokens > 5 maximum\"}}]]
    for words, window in pairs { ["Prompt is too long"] = false, [api] = 5 } do
      local _, err = run(ends_with(words))
      assert.equal("context_full", err.code, err.message)
      assert.is_false(err.retryable)
      assert.equal(window or nil, err.window)
    end
    fails(ends_with "it said: prompt is too long")
    fails(ends_with("Prompt is too long", ',"api_error_status":429'))
  end)

  it("writes pages, keys and what a terminal acts on into its failures", function()
    local key = "sk-canary-1234567890"
    local page = [[<html><title>Bad Gateway</title>\u001b[31m]] .. ("x "):rep(90) .. key
    local stderr = [[io.stderr:write(("y "):rep(3000), "\27[31mred\27[0m ",
      "sk-canary-1234567890", ("z"):rep(390)) os.exit(3)]]
    for _, program in ipairs { stderr, ends_with(page) } do
      local _, err = run(program, { api_key = key })
      assert.equal("provider", err.code)
      for _, part in ipairs { "%c", "\127", "canary", "1234567890", "%[31m" } do
        assert.falsy(err.message:find(part), err.message)
      end
      assert.is_true(#err.message < 600)
    end
  end)

  it("sends messages and members of types that nobody knows", function()
    local reply = assert(run [[say '{"type":"news"}' say '{}' say '{"type":7,"subtype":[]}' say ""
      say '{"type":"system","subtype":"later","capabilities":7}'
      say '{"type":"system","subtype":"init","capabilities":[1,{},"x"]}'
      say '{"type":"system","subtype":"api_retry","attempt":{},"error_status":"a"}'
      say '{"type":"stream_event","event":{"type":"new"}}'
      say '{"type":"control_response","response":7}' say '{"type":"control_cancel_request"}'
      say '{"type":"stream_event","parent_tool_use_id":"a","event":{"type":"message_start"}}'
      answer "fine"]])
    assert.equal("fine", reply.text)
  end)

  it("ends in the middle of a line, or of an answer", function()
    fails([[start() io.stdout:write '{"type":"stream_ev']], "is not JSON")
    fails([[start() text "half"]], "exit code 0")
    fails([[start() text "half" os.exit(7)]], "exit code 7")
  end)

  it("ends its messages without their end", function()
    local reply, err = run [[start() text "whole" result()]]
    assert.is_nil(reply)
    command.has(err.message, "ended before the answer was complete")
  end)

  it("asks for what nobody knows, is told so, and goes on", function()
    local reply = assert(run [[ask("q1", '{"subtype":"dance"}')
      if not wait_for '"q1"':find '"subtype":"error"' then os.exit(3) end
      rpc("q2", '{"jsonrpc":"2.0","id":5,"method":"resources/list"}')
      if not wait_for '"q2"':find '-32601' then os.exit(4) end
      rpc("q3", '7') wait_for '"q3"' ask("q4", '7') wait_for '"q4"'
      rpc("q5", '{"jsonrpc":"2.0","id":6,"method":"ping"}') wait_for '"q5"'
      answer "danced"]])
    assert.equal("danced", reply.text)
  end)

  it("asks without an id", function()
    fails([[say '{"type":"control_request","request":{"subtype":"mcp_message"}}']], "without an id")
    fails([[rpc("q", '{"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{'
      .. '"claudecode/toolUseId":"t1"}}}')]], '"id" is missing')
    fails([[rpc("q", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')]],
      "newer one")
  end)

  it("asks for calls that the model never made", function()
    local calls = {}
    local reply = assert(run([[call("q1", "toolu_ghost") answer "no answer needed"]],
      { tools = { add_tool(calls) } }))
    assert.equal("no answer needed", reply.text)
    assert.equal(0, #calls)
  end)

  it("asks for 2,000 such calls", function()
    fails([[for i = 1, 2000 do call("q" .. i, "ghost" .. i) end wait_for "never"]],
      "more than 1024")
  end)

  it("asks twice for one call", function()
    local calls = {}
    local reply = assert(run([[start() use "a" stop "tool_use" call("q1", "a") call("q2", "a")
      wait_for "added" answer "once"]], { tools = { add_tool(calls) } }))
    assert.equal("once", reply.text)
    assert.equal(1, #calls)
  end)

  it("gives two calls the same id", function()
    local calls = {}
    local reply = assert(run([[start() use "a" use "a" stop "tool_use"
      call("q1", "a") wait_for "added" answer "both"]], { tools = { add_tool(calls) } }))
    assert.equal("both", reply.text)
    assert.equal(2, #calls)
  end)

  it("asks on after its answer", function()
    local agent = ah.agent { model = "claude_agent_sdk/x", tools = { add_tool {} } }
    numbers = hostile [[answer "one" call("q1", "late") ask("q2", '{"subtype":"dance"}')
      rpc("q3", '{"jsonrpc":"2.0","id":5,"method":"tools/list"}')
      local asked, told -- in either order
      repeat
        local line = read()
        asked, told = asked or line:find '"type":"user"', told or line:find '"q3"'
      until asked and told
      answer "two"]]
    assert.equal("one", assert(agent:run "x").text)
    assert.equal("two", assert(agent:run "y").text)
    agent:close()
  end)

  it("does not take SIGTERM, nor its grandchildren, who hold the pipes", function()
    local began = ah.now()
    local reply, err = run([[trap '' TERM INT HUP
      (trap '' TERM INT HUP; exec sleep 600) & echo $! >>$PIDS
      (trap '' TERM; exec setsid sleep 600) & echo $! >>$PIDS
      while :; do sleep 1; done]], { timeout = 0.5 }, true)
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - began < 60)
  end)

  it("leaves, but not its grandchildren, who hold the pipes", function()
    local reply, err = run("sleep 600 & echo $! >>$PIDS; exit 5", {}, true)
    assert.is_nil(reply)
    command.has(err.message, "exit code 5")
  end)

  it("stops itself", function()
    local reply, err = run("kill -STOP $$", { timeout = 0.5 }, true)
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
  end)
end)
