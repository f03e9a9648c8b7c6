-- Output for programs: --json (one object) and --jsonl (one event per line). With these options
-- stdout has nothing else.
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"

local agenthost, has, shell, temp = command.agenthost, command.has, command.shell, command.temp

local function object(r)
  assert.equal(1, select(2, r.out:gsub("\n", "")), r.out)
  return assert(ah.json.decode(r.out))
end

local function events(r)
  local list = {}
  for line in r.out:gmatch("([^\n]*)\n") do
    list[#list + 1] = assert(ah.json.decode(line))
  end
  return list
end

local LOOP = [[
  local ah = require "agenthost"
  local ping = ah.tool { name = "ping", description = "Answers.", handler = function()
    print("in the handler")
    return ah.run { model = "demo/echo", "nested" }.text
  end }
  local model = ah.scripted { { calls = { { name = "ping" } }, usage = { input = 10, output = 2,
    cached_read = 4, cost = 0.25 } },
    { text = "Said \"so\".\n", usage = { input = 20, output = 3, cost = 0.5 } } }
  local reply, err = ah.run { model = model, tools = { ping }, "Go" }
  print(reply or err)]]

after_each(command.tidy)

describe("--json", function()
  it("is one object with the reply; what the script prints goes to stderr", function()
    local r = agenthost("--json", temp(LOOP))
    assert.equal(0, r.code)
    assert.equal('in the handler\nSaid "so".\n\n', r.err)
    local reply = object(r).reply
    assert.same({ text = 'Said "so".\n', stop = "end", iterations = 2, tool_calls = 1,
      usage = { input = 30, cached_read = 4, output = 5, known = true, cost = 0.75 } }, reply)
  end)

  it("has the last outermost run, and null where it failed or there is none", function()
    local two = 'ah.run { model = "demo/echo", "1" } ah.run { model = "demo/echo", "2" }'
    assert.equal("2", object(agenthost("--json", "-e", two)).reply.text)
    assert.same({ reply = ah.null }, object(agenthost("--json", "-e", "local x = 1")))
    local handled = 'ah.run { model = "demo/echo", "1" } ah.run { model = ah.scripted {}, "2" }'
    local r = agenthost("--json", "-e", handled)
    assert.same({ 0, '{"reply":null}\n' }, { r.code, r.out })
  end)

  it("is an error with its code where the script failed", function()
    local r = agenthost("--json", "-e",
      'error(ah.error { code = "budget_exceeded", message = "dear" })')
    assert.equal(4, r.code)
    assert.same({ error = { code = "budget_exceeded", message = "dear" } }, object(r))
    has(r.err, "agenthost: budget_exceeded: dear")
    r = agenthost("--json", "-e", 'error("own\\xff", 0)')
    assert.equal(1, r.code)
    assert.equal("internal", object(r).error.code)
    has(object(r).error.message, "own\u{FFFD}")
    r = agenthost("--json", "no/such.lua")
    assert.same({ 2, "usage" }, { r.code, object(r).error.code })
    has(object(r).error.message, "cannot open 'no/such.lua'")
  end)

  it("is there, too, when the script ends itself with os.exit", function()
    local r = agenthost("--json", "-e", 'ah.run { model = "demo/echo", "Hi" } os.exit(0)')
    assert.same({ 0, "Hi" }, { r.code, object(r).reply.text })
    for _, way in ipairs { "3", "3, true" } do
      r = agenthost("--json", "-e", ("os.exit(%s)"):format(way))
      assert.equal(3, r.code)
      assert.equal("the script ended with os.exit(3)", object(r).error.message)
    end
  end)

  it("keeps children of the script off stdout", function()
    local r = agenthost("--json", "-e", "os.execute('echo child') io.stdout:write('mine\\n')")
    assert.equal('{"reply":null}\n', r.out)
    has(r.err, "child\n")
    has(r.err, "mine\n")
  end)

  it("fails where stdout is full or closed", function()
    assert.equal(1, shell([["$A" --json -e 'x = 1' >/dev/full]]).code)
    local r = shell([["$A" --json -e 'x = 1' >&-]])
    assert.equal(1, r.code)
    has(r.err, "cannot write to standard output")
  end)
end)

describe("--jsonl", function()
  it("is every event of every run, in order, and a last line about the whole", function()
    local r = agenthost("--jsonl", temp(LOOP))
    assert.equal(0, r.code)
    local list, types = events(r), {}
    for i, e in ipairs(list) do
      types[i] = e.type .. (e.run or "")
      assert.equal("float", math.type(e.time + 0.0))
    end
    assert.equal("start1 tool_loop_iteration1 request1 usage1 tool_calls1 tool_started1 "
      .. "start2 tool_loop_iteration2 request2 content2 usage2 done2 tool_invoked1 "
      .. "tool_loop_iteration1 request1 content1 usage1 done1 done", table.concat(types, " "))
    assert.equal(1, list[7].parent)
    local last = list[#list]
    assert.same({ true, "ok", "", 2, 3, 1 }, { last.success, last.code, last.message, last.runs,
      last.iterations, last.tool_calls })
    assert.same({ 30 + list[11].input, 5 + list[11].output },
      { last.usage.input, last.usage.output })
  end)

  it("ends with the error of a script that failed", function()
    local r = agenthost("--jsonl", "-e", 'assert(ah.run { model = ah.scripted {}, "x" })')
    assert.equal(3, r.code)
    local list = events(r)
    local last = list[#list]
    assert.same({ "done", false, "provider" }, { last.type, last.success, last.code })
    assert.is_nil(last.run)
    assert.same({ false, "provider", 1 }, { list[#list - 1].success, list[#list - 1].code,
      list[#list - 1].run })
    assert.equal("done", events(agenthost("--jsonl", "-e", "error('x')"))[1].type)
    assert.is_false(events(agenthost("--jsonl", "-e", "os.exit(1)"))[1].success)
  end)

  it("writes each line when it happens", function()
    patiently(function(times)
      local path = temp(('local ah = require "agenthost" print(ah.run { model = ah.scripted { '
        .. '{ text = { "one ", "two" }, delay = %g } }, "x" })'):format(0.2 * times))
      local pipe <close> = assert(io.popen(command.BINARY .. " --jsonl " .. path .. " 2>/dev/null"))
      local seen = {}
      for line in pipe:lines() do
        local e = assert(ah.json.decode(line))
        seen[#seen + 1] = e.type == "content" and ah.now() or nil
      end
      assert.equal(2, #seen)
      assert.is_true(seen[2] - seen[1] > 0.1 * times)
    end)
  end)

  it("tells no event after the last line", function()
    local r = agenthost("--jsonl", "-e", [[
      local co = coroutine.wrap(function() ah.run { model = "demo/echo", "x" } end)
      co()
      error("out")]])
    local list = events(r)
    assert.same({ "done", false }, { list[#list].type, list[#list].success })
  end)

  it("ends quietly when its reader has gone", function()
    local path = temp('local ah = require "agenthost" while true do '
      .. 'assert(ah.run { model = "demo/echo", "x" }) end')
    local line = '{ timeout -k 5 60 "$A" --jsonl %s; echo "code $?" >&2; } | head -n 1'
    local r = shell(line:format(path))
    assert.equal("code 0\n", r.err)
    assert.equal(1, #events(r))
  end)

  it("after an interrupt ends with cancelled", function()
    local path = temp('require("agenthost").run { model = "demo/echo", "x" } '
      .. 'require("agenthost").sleep(20)')
    local out = temp()
    local r = shell(([["$A" --jsonl %s >%s & p=$!
      for i in $(seq 200); do [ -s %s ] && break; sleep 0.05; done
      kill -INT $p; wait $p]]):format(path, out, out))
    assert.equal(130, r.code)
    local list = events { out = command.contents(out) }
    assert.same({ "done", "cancelled", false }, { list[#list].type, list[#list].code,
      list[#list].success })
  end)

  it("is not to be had with --json", function()
    local r = agenthost("--json", "--jsonl", "-e", "x()")
    assert.equal(2, r.code)
    has(r.err, "--json and --jsonl: give one of them")
  end)
end)
