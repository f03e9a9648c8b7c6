-- Limits of the cost of one call into C: checks of costly schemas and patterns, searches of files,
-- hints for edits. Each ends at its limit of steps, or earlier if its run, its call or the program
-- has no time left. COST_WHOLE=1 also lets each check use all of its steps.
local ah = require "agenthost"
local command = require "support.command"
local costs = require "support.costs"

local WHOLE = os.getenv "COST_WHOLE"
local SLOW = os.getenv "AGENTHOST_ASAN" and 8 or 1
-- Seconds of a processor: for code with a limit of 0.2 s, and for all the steps of a check.
local SOON, STEPS = 4 * SLOW, 20 * SLOW

local has_patterns = pcall(ah.schema, { pattern = "a" })

local function it_matches(name, f)
  if has_patterns then
    it(name, f)
  else
    pending(name .. " (this build has no PCRE2)")
  end
end

-- Returns the reply or nil, the error, the result for the model, and the seconds of a processor.
local function call(fields, arguments, more)
  fields.name, fields.description = "t", "Is checked."
  fields.handler = fields.handler or function() return "ran" end
  local run = { tools = { ah.tool(fields) }, log = function() end, "Go",
    model = ah.scripted { { calls = { { name = "t", arguments = arguments } } }, "done" } }
  for k, v in pairs(more or {}) do
    run[k] = v
  end
  local start = os.clock()
  local reply, err = ah.run(run)
  local took, said = os.clock() - start, ""
  for _, message in ipairs((reply or err).messages or {}) do
    said = message.role == "tool" and message.content or said
  end
  return reply, err, said, took
end

local function soon(took, most)
  assert.is_true(took < (most or SOON), ("took %.1f s"):format(took))
end

local function has(text, part)
  assert.is_truthy(text:find(part), text:sub(1, 500))
end

local TOO_MANY = "takes more steps to check than are allowed"

describe("a check that costs much", function()
  for _, case in ipairs(costs) do
    local name, schema, arguments, spends = table.unpack(case)
    local it_if = schema:find '[pP]attern' and it_matches or it

    it_if("ends when its run does: " .. name, function()
      local fields = { schema = ah.json.decode(schema) }
      local reply, err, _, took = call(fields, arguments, { timeout = 0.2 })
      soon(took)
      assert.is_true(reply ~= nil or err.code == "deadline_exceeded", tostring(err))
    end)

    local function spend()
      local reply, err, said, took = call({ schema = ah.json.decode(schema) }, arguments)
      soon(took, STEPS)
      assert.is_truthy(reply, tostring(err))
      assert.equal(spends, said:find(TOO_MANY, 1, true) ~= nil, said:sub(1, 300))
    end
    if WHOLE then
      it_if("ends by its steps: " .. name, spend)
    end
  end
end)

local PATTERN = { type = "object", properties = { a = { items = { pattern = "^(a+)+$" } } } }
local VALUE = '{"a":[' .. ('"' .. costs.TEXT .. '",'):rep(400) .. "1]}"

describe("time that patterns take", function()
  it_matches("counts in the steps of the check, which says which pattern it was", function()
    local _, _, said, took = call({ schema = PATTERN }, VALUE)
    soon(took, STEPS)
    has(said, "^Tool validation failed: /a/%d+: " .. TOO_MANY
      .. "; it was matched with the pattern %^%(a%+%)%+%$$")
  end)

  it_matches("ends the run at its timeout", function()
    local reply, err, _, took = call({ schema = PATTERN }, VALUE, { timeout = 0.2 })
    soon(took)
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
  end)

  it_matches("ends the call at the tool's timeout, and the run goes on", function()
    local reply, err, said, took = call({ schema = PATTERN, timeout = 0.2 }, VALUE)
    soon(took)
    assert.equal("done", reply and reply.text, tostring(err))
    has(said, "^Tool 't' was not run, its arguments took too long to check: /a/%d+: could not be "
      .. "checked to the end: the time for it is over; it was matched with the pattern %^%(a")
  end)

  it_matches("ends the check of a result", function()
    local value = ah.json.decode(VALUE)
    local reply, err, said, took = call({ params = {}, result = PATTERN, timeout = 0.2,
      handler = function() return value end }, "{}")
    soon(took)
    assert.equal("done", reply and reply.text, tostring(err))
    has(said, "execution failed: its result took too long to check: /a/%d+: ")
  end)

  it_matches("ends the check of an answer", function()
    local start = os.clock()
    local reply, err = ah.run { model = ah.scripted { VALUE }, output = PATTERN, timeout = 0.2,
      "Go" }
    soon(os.clock() - start)
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    has(err.message, "while the answer was checked: /a/%d+: ")
  end)

  it_matches("ends within a handler that validates, which does not go on", function()
    local schema, value, went_on = ah.schema(PATTERN), ah.json.decode(VALUE), false
    local _, _, said, took = call({ params = {}, timeout = 0.2, handler = function()
      for _ = 1, 100 do
        pcall(schema.validate, schema, value)
      end
      went_on = true
    end }, "{}")
    soon(took)
    assert.is_false(went_on)
    has(said, "0%.2 s")
  end)

  it_matches("ends the call around a run in which a check takes its time", function()
    local _, _, said, took = call({ params = {}, timeout = 0.2, handler = function()
      return call({ schema = PATTERN }, VALUE)
    end }, "{}")
    soon(took)
    has(said, "0%.2 s")
  end)

  it_matches("does not keep the command from ending at SIGTERM", function()
    local path = command.temp(([[
      local ah = require "agenthost"
      local t = ah.tool { name = "t", description = "d", handler = print,
        schema = ah.json.decode(%q) }
      io.stderr:write "begins\n"
      while true do
        assert(ah.run { tools = { t }, "Go",
          model = ah.scripted { { calls = { { name = "t", arguments = %q } } }, "done" } })
      end]]):format(ah.json.encode(PATTERN), VALUE))
    local start = ah.now()
    local done = command.shell(([["$A" %s 2>%s.err & p=$!
      for i in $(seq 100); do grep -q begins %s.err && break; sleep 0.1; done
      kill -TERM $p; wait $p]]):format(path, path, path))
    os.remove(path .. ".err")
    assert.equal(143, done.code, done.err)
    assert.is_true(ah.now() - start < 60)
    command.tidy()
  end)
end)

describe("looking for files", function()
  -- Returns the result that the model gets, the seconds of a processor, and its error.
  local function in_file(text, tool, arguments, timeout)
    local fs = ah.filesystem { files = { ["a.txt"] = text } }
    local start = os.clock()
    local reply, err = ah.run { tools = ah.builtin { tool }, resources = { filesystem = fs },
      model = ah.scripted { { calls = { { name = tool, arguments = arguments } } }, "done" },
      timeout = timeout or 60, "Go" }
    return reply and reply.messages[3].content, os.clock() - start, err
  end

  it_matches("ends when the run does, in the middle of a line", function()
    local _, took, err = in_file(("a"):rep(8000000), "grep", { pattern = "a*[bc]" }, 0.2)
    soon(took)
    assert.equal("deadline_exceeded", err and err.code)
  end)

  it("gives a hint of what is to be edited for little", function()
    for _, case in ipairs { { ("b\n"):rep(10), ("\n"):rep(1000000) .. "zz" },
      { ("a\n"):rep(200000), ("a\n"):rep(100000) .. "zz" }, { ("\n"):rep(4000000), "zz\nz" } } do
      local said, took = in_file(case[1], "edit_file", { path = "a.txt", old = case[2], new = "x" })
      soon(took)
      has(said, "the text to replace is not in 'a.txt'")
    end
  end)

  it("still says where it stands with other white space", function()
    local said = in_file("one\n  two\nthree\n", "edit_file",
      { path = "a.txt", old = "\none\ntwo\nthree\n\n", new = "x" })
    has(said, "it is in line 1 with other white space")
    said = in_file("x\none\ntwo\n", "edit_file", { path = "a.txt", old = "one\nthree", new = "x" })
    has(said, "its first line is in line 2, but what follows differs")
  end)
end)
