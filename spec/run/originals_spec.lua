-- Arguments with a key of the program in them: handlers and policies get them as they were sent,
-- and what is said of the call has `[secret]` in place of the key.
local ah = require "agenthost"
local ahtest = require "ahtest"
local lives = require "support.lives"
local mock = require "support.mock"
local results = require "support.results"
local server = require "support.server"
local sound = require "support.sound"

local KEY, DIGITS, QUOTED = "sk-canary-1234567890", "47114711", 'canary"quoted'
local SAID = "key = [secret]"
local TEXT = "key = " .. KEY

-- The keys are known to the program from here on.
for _, key in ipairs { KEY, DIGITS, QUOTED } do
  assert(ah.agent { model = "openai/none", api_key = key, base_url = "http://127.0.0.1:1" }):close()
end

local function call(arguments, name, id)
  return { calls = { { name = name or "write", id = id or "c1", arguments = arguments } } }
end

-- A tool that notes its arguments in `got`, and says them.
local function writer(got, more)
  local def = { name = "write", description = "Writes.", params = { path = "string",
    text = "string" }, handler = function(args)
      got[#got + 1] = args
      return "wrote " .. args.text
    end }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

-- Runs the turns with the fields. Returns all that was said: events, log, transcript, and the
-- requests that followed; and the reply.
local function run(turns, fields)
  local said = {}
  local function say(...)
    said[#said + 1] = table.concat({ ... }, " ")
  end
  local n = 0
  fields.model = ah.scripted(function(request)
    n = n + 1
    say(ah.json.encode(request.entries))
    return turns[n]
  end)
  fields.on = function(e) say(ah.json.encode(e)) end
  fields.log, fields[1] = say, "go"
  local reply, err = ah.run(fields)
  say(tostring(reply), tostring(err))
  local transcript = (reply or err.reply):transcript()
  sound.check(transcript)
  say(transcript)
  local text = table.concat(said, "\n")
  assert.is_nil(text:find("canary", 1, true), text)
  return text, reply, err
end

describe("a handler", function()
  it("gets the arguments as the model has sent them, and a file is written right", function()
    local folder = ah.filesystem { memory = true }
    local got = {}
    local text, reply = run({ call { path = "a", text = TEXT }, "done" }, {
      tools = { writer(got, { handler = function(args)
        got[1] = args
        assert(folder:write(args.path, args.text))
        return "wrote " .. args.text
      end }) } })
    assert.equal(TEXT, folder:read "a")
    assert.same({ path = "a", text = TEXT }, got[1])
    assert.same({ "wrote " .. SAID }, results(reply))
    assert.truthy(text:find('\\"text\\":\\"key = [secret]\\"', 1, true), text)
  end)

  it("gets them in parts of a number and a name, too", function()
    local got = {}
    local tool = ah.tool { name = "pay", description = "Pays.",
      schema = { type = "object", additionalProperties = true }, handler = function(args)
        got = args
        return "paid"
      end }
    local text, reply = run({ call({ euros = math.tointeger(DIGITS), [KEY] = { KEY } }, "pay"),
      "done" }, { tools = { tool } })
    assert.same({ euros = math.tointeger(DIGITS), [KEY] = { KEY } }, got)
    assert.same({ "paid" }, results(reply))
    assert.is_nil(text:find(DIGITS, 1, true), text)
  end)

  it("gets what another handler passes on", function()
    local got = {}
    local registry = ah.registry { writer(got) }
    local outer = ah.tool { name = "outer", description = "Calls.", params = { text = "string" },
      handler = function(args, ctx)
        ctx:progress("now " .. args.text)
        ctx:note("noted " .. args.text)
        return assert(registry:execute("write", { path = "p", text = args.text .. "!" }))
      end }
    local text = run({ call({ text = TEXT }, "outer"), "done" }, { tools = { outer } })
    assert.same({ path = "p", text = TEXT .. "!" }, got[1])
    for _, said in ipairs { "now ", "noted ", "wrote " } do
      assert.truthy(text:find(said .. SAID, 1, true), said)
    end
  end)

  it("says to another agent what has no key: in a run, and by a message", function()
    local seen = {}
    local other <close> = ah.agent { name = "inner", model = ah.scripted(function(request)
      seen[#seen + 1] = request.entries[#request.entries].content[1].text
      return "heard"
    end) }
    local tell = ah.tool { name = "tell", description = "Tells.", params = { text = "string" },
      handler = function(args)
        other:send(args.text)
      end }
    local inner = other:as_tool { description = "Says it again." }
    run({ { calls = { call({ request = TEXT }, "inner", "c1").calls[1],
      call({ text = TEXT }, "tell", "c2").calls[1] } }, "done" }, { tools = { inner, tell } })
    assert(other:run())
    assert.same({ SAID, SAID }, seen)
  end)
end)

describe("what is wrong with the arguments", function()
  -- Returns the result of a call with these arguments, in which no part of the key is.
  local function result(schema, arguments)
    local got = {}
    local tool = ah.tool { name = "write", description = "Writes.", schema = schema,
      coerce = false, handler = function(args)
        got = args
      end }
    local _, reply = run({ call(arguments), "done" }, { tools = { tool } })
    assert.same({}, got)
    return results(reply)[1]
  end

  local function text_of(type)
    return { type = "object", properties = { text = type } }
  end

  it("is said without the key, or a part of it", function()
    local long = ("x"):rep(60) .. KEY
    assert.equal("Tool validation failed: /text: must be an integer, found \"[secret]\"",
      (result(text_of { type = "integer" }, { text = KEY })))
    for _, arguments in ipairs { { text = long }, { text = { long } }, { [long] = 1 },
      { text = "a", [KEY] = 1 } } do
      assert.matches("^Tool validation failed: ", result(text_of { type = "integer" }, arguments))
    end
  end)

  it("is said of what only the key is wrong with", function()
    assert.equal("Tool validation failed: the arguments do not match their schema where "
      .. "`[secret]` stands for a key", result(text_of { type = "string",
        maxLength = 10 }, { text = KEY }))
  end)

  it("is not quoted if they are not JSON", function()
    assert.equal("Tool validation failed: what was sent is not JSON (not quoted: a key is in it). "
      .. "Send one JSON object; nothing was run.", result(text_of { type = "string" },
        '{"text":"' .. KEY .. '"'))
  end)

  it("is so if the key made them other than JSON", function()
    assert.matches("^Tool validation failed: what was sent is not JSON %(not quoted",
      result(text_of { type = "string" }, '{"text":"' .. QUOTED .. '"}'))
  end)

  it("is not said if they were coerced", function()
    local function coerced(number)
      local got
      local tool = ah.tool { name = "write", description = "Writes.", params = { n = "integer" },
        coerce = true,
        handler = function(args)
          got = args.n
        end }
      local text = run({ call { n = number }, "done" }, { tools = { tool } })
      assert.equal(math.tointeger(number), got)
      return text
    end
    assert.truthy(coerced("4711"):find('took \\"4711\\" as 4711', 1, true))
    assert.is_nil(coerced(DIGITS):find(DIGITS, 1, true))
  end)
end)

describe("a policy", function()
  it("judges and changes what the handler gets, and its words have no key", function()
    local got, seen = {}, {}
    local text = run({ call { path = "p", text = TEXT }, call({ path = "q", text = TEXT }, nil,
      "c2"), "done" }, { tools = { writer(got) },
      policies = { function(c)
        seen[#seen + 1] = c.arguments.text
        if c.arguments.path == "q" then
          return "deny", "not " .. c.arguments.text
        elseif c.arguments.text == TEXT then
          return "rewrite", { path = "p", text = TEXT .. "?" }
        end
      end } })
    assert.same({ TEXT, TEXT .. "?", TEXT }, seen)
    assert.same({ { path = "p", text = TEXT .. "?" } }, got)
    assert.truthy(text:find("not " .. SAID, 1, true), text)
  end)

  it("that fails is told of without the key", function()
    local text = run({ call { path = "p", text = TEXT }, "done" }, { tools = { writer {} },
      policies = { function(c) error("bad " .. c.arguments.text) end } })
    assert.truthy(text:find('"type":"warning"', 1, true), text)
    assert.truthy(text:find("bad " .. SAID, 1, true), text)
  end)
end)

describe("a strategy", function()
  it("sees the arguments as the conversation has them", function()
    local seen
    run({ call { path = "p", text = TEXT }, "done" }, { tools = { writer {} },
      strategies = { { name = "watch", after = function(_, moment)
        seen = (moment or _).arguments.text
      end } } })
    assert.equal(SAID, seen)
  end)
end)

describe("an approval", function()
  local function ask()
    return "ask", "may it?"
  end

  for _, way in ipairs { "approve", "asks" } do
    it("shows no key, and leaves what it does not change as it was: " .. way, function()
      local got, shown = {}, nil
      run({ call { path = "p", text = TEXT }, "done" }, { tools = { writer(got) },
        policies = { ask }, [way] = function(asked)
          shown = (asked.call or asked).arguments
          return true, { path = "other", text = shown.text }
        end })
      assert.same({ path = "p", text = SAID }, shown)
      assert.same({ { path = "other", text = TEXT } }, got)
    end)

    it("takes what it changes as it is: " .. way, function()
      local got = {}
      run({ call { path = "p", text = TEXT }, "done" }, { tools = { writer(got) },
        policies = { ask }, [way] = function()
          return true, { path = "p", text = SAID .. "!" }
        end })
      assert.same({ { path = "p", text = SAID .. "!" } }, got)
    end)
  end

  it("of arguments with a key outside of strings hides them", function()
    local shown
    local tool = ah.tool { name = "pay", description = "Pays.", params = { euros = "integer" },
      handler = function(args) return "paid " .. args.euros end }
    run({ call({ euros = math.tointeger(DIGITS) }, "pay"), "done" }, { tools = { tool },
      policies = { ask }, approve = function(asked)
        shown = asked.arguments
        return true
      end })
    assert.same({ arguments = "[secret]" }, shown)
  end)
end)

describe("a background call", function()
  it("has them, and its list does not", function()
    local got = {}
    local agent <close> = ah.agent { model = ah.scripted { call { path = "p", text = TEXT }, "done",
      "done" }, tools = { writer(got, { background = true, handler = function(args)
        got[1] = args
        ah.sleep(0.01)
      end }) } }
    assert(agent:run "go")
    assert.same({ path = "p", text = SAID }, agent:background()[1].arguments)
    assert.same({ path = "p", text = TEXT }, got[1])
    agent:wait()
  end)
end)

describe("a store", function()
  -- Returns the records of the turns, and what the handlers got.
  local function record(fields, turns)
    local store, got = assert(ah.store { engine = "memory" }), {}
    fields.store, fields.id, fields.tools = store, "c", { writer(got, { on_lost = "retry" }) }
    turns.resumes = true
    fields.model = ah.scripted(turns)
    local agent = assert(ah.agent(fields))
    assert(agent:run "go")
    agent:close()
    return ahtest.store_records(store, "c"), got
  end

  it("keeps the arguments with the answer, and says them without the key", function()
    local records = record({}, { { calls = { { name = "write", id = "c1",
      arguments = { path = "p", text = "plain" } }, { name = "write", id = "c2",
      arguments = { path = "p", text = TEXT } } } }, call({ path = "p", text = "x" }, nil, "c3"),
      "done" })
    local kept = {}
    for _, r in ipairs(records) do
      assert.is_nil(r.said:find("canary", 1, true), r.kind)
      kept[#kept + 1] = r.kept and r.kind .. " " .. r.kept
    end
    assert.equal(1, #kept)
    local list = ah.json.decode(kept[1]:match "^answer (.*)").arguments
    assert.same({ 2, ah.null }, { #list, list[1] })
    assert.same({ path = "p", text = TEXT }, ah.json.decode(list[2]))
  end)

  it("gives them to the handler wherever the process has ended", function()
    local turns = { call { path = "p", text = TEXT }, "done" }
    local records = record({}, turns)
    local began = 0
    for n = 1, #records - 1 do
      local store, got = assert(ah.store { engine = "memory" }), {}
      ahtest.store_fill(store, "c", records, n)
      local agent = assert(ah.agent { store = store, id = "c",
        model = ah.scripted { turns[1], turns[2], resumes = true },
        tools = { writer(got, { on_lost = "retry" }) } })
      local reply = assert(agent:run(n < 4 and "go" or nil))
      assert.same({ "wrote " .. SAID }, results(reply), records[n].kind)
      for _, args in ipairs(got) do
        began = began + 1
        assert.same({ path = "p", text = TEXT }, args, records[n].kind)
      end
      agent:close()
    end
    assert.is_true(began > 5)
  end)

  for _, how in ipairs { "in the same process", "in another one" } do
    it("keeps what an approval leaves, " .. how, function()
      local store, got = assert(ah.store { engine = "memory" }), {}
      local function open()
        return assert(ah.agent { store = store, id = "c", tools = { writer(got) },
          policies = { function() return "ask", "may it?" end },
          model = ah.scripted { call { path = "p", text = TEXT }, "done", resumes = true } })
      end
      local agent = open()
      assert.equal("waiting", select(2, agent:run "go").code)
      assert.same({ path = "p", text = SAID }, store:asks()[1].arguments)
      assert(store:respond("c", "1", { approved = true, arguments = { path = "q", text = SAID } }))
      if how == "in another one" then
        agent:close()
        agent = open()
      end
      assert(agent:run())
      agent:close()
      assert.same({ { path = "q", text = TEXT } }, got)
      for _, r in ipairs(ahtest.store_records(store, "c")) do
        assert.is_nil(r.said:find("canary", 1, true), r.kind)
      end
    end)
  end

  it("has records that can be read, whatever the key is in", function()
    local store = assert(ah.store { engine = "memory" })
    local Paid = ah.type { name = "Paid", fields = { euros = "any" } }
    local euros = math.tointeger(DIGITS)
    local tool = ah.tool { name = "pay", description = "Pays.", params = { euros = "any" },
      result = Paid, handler = function(args)
        return Paid { euros = { args.euros, { [DIGITS] = -args.euros } } }
      end }
    local function open()
      local session = ah.session { types = { Paid } }
      session:register(Paid)
      return assert(ah.agent { store = store, id = "c", tools = { tool }, session = session,
        model = ah.scripted { call({ euros = euros }, "pay"), "done", resumes = true } })
    end
    local agent = open()
    assert.equal("done", assert(agent:run "go").text)
    agent:close()
    local all = {}
    for _, r in ipairs(ahtest.store_records(store, "c")) do
      assert.truthy(ah.json.decode(r.said), r.kind)
      all[#all + 1] = r.said
    end
    all = table.concat(all)
    assert.is_nil(all:find(DIGITS, 1, true))
    assert.truthy(all:find('"add":[{"euros":[0,{"[secret]":0}]}]', 1, true), all)
    open():close()
  end)

  it("has an ask that can be read, whatever the key is in", function()
    local store = assert(ah.store { engine = "memory" })
    local tool = ah.tool { name = "pay", description = "Pays.", params = { euros = "integer" },
      handler = function(args) return "paid " .. args.euros end }
    local function open()
      return assert(ah.agent { store = store, id = "c", tools = { tool },
        policies = { function() return "ask", "may it?" end }, model = ah.scripted {
          call({ euros = math.tointeger(DIGITS) }, "pay"), "done", resumes = true } })
    end
    local agent = open()
    assert.equal("waiting", select(2, agent:run "go").code)
    agent:close()
    assert.same({ arguments = "[secret]" }, store:asks()[1].arguments)
    assert(store:respond("c", "1", true))
    agent = open()
    assert.same({ "paid [secret]" }, results(assert(agent:run())))
    agent:close()
  end)

  it("refuses a list that does not fit the calls", function()
    local records = record({}, { call { path = "p", text = TEXT }, "done" })
    for _, kept in ipairs { "[]", "[1]", "{}", '["a","b"]', '"a"', "[null,null]" } do
      for _, r in ipairs(records) do
        r.kept = r.kept and '{"arguments":' .. kept .. "}"
      end
      local state, _, message = ahtest.fold(records)
      assert.is_nil(state)
      assert.matches("`arguments` must be a list with a string or null for each of its 1 calls",
        message)
    end
  end)
end)

describe("a step", function()
  it("whose name has a key in it is found again", function()
    local made = 0
    local function handler(_, ctx)
      return ctx:step("fetch " .. KEY, function()
        made = made + 1
        return made
      end)
    end
    local journal = lives.new_journal()
    assert.equal("1", (lives.enter(journal, handler)))
    assert.equal("1", (lives.enter(journal, handler)))
    assert.truthy(ah.json.encode(lives.kinds(journal)):find("fetch [secret]", 1, true))
  end)
end)

local PLAYED = [[
local ah = require "agenthost"
local n = 0
return function()
  n = n + 1
  return n %% 2 == 1 and { calls = { { name = "write", arguments = { path = "p", text = %q } } } }
    or "done"
end
]]

describe("each adapter", function()
  local it = mock.is_built() and it or pending

  for model, path in pairs { ["openai/gpt-4o"] = "/v1", ["openai/responses/gpt-5.4"] = "/v1",
    ["anthropic/claude-opus-4-8"] = "", ["gemini/gemini-3-pro"] = "", ["ollama/qwen3"] = "" } do
    it("gives handlers the arguments as they were sent: " .. model, function()
      local m <close> = mock.start(PLAYED:format(TEXT))
      for _, stream in ipairs { true, false } do
        local got = {}
        local reply = assert(ah.run { model = model, base_url = m.url .. path, api_key = KEY,
          stream = stream, tools = { writer(got) }, log = function() end, "go" })
        assert.same({ { path = "p", text = TEXT } }, got)
        assert.is_nil(reply:transcript():find("canary", 1, true))
        assert.same({ "wrote " .. SAID }, results(reply))
      end
    end)
  end

  it("sends the next request without the key", function()
    for _, stream in ipairs { true, false } do
      local got = {}
      local s <close> = server.start { responses = {
        server.chat_call("write", ah.json.encode { path = "p", text = TEXT }, "c1",
          { stream = stream }), server.chat_text("done", { stream = stream }) } }
      assert(ah.run { model = "openai/test", base_url = s.url, api_key = KEY, stream = stream,
        tools = { writer(got) }, "go" })
      assert.equal(TEXT, got[1].text)
      local body = s:requests()[2].body
      assert.is_nil(body:find("canary", 1, true))
      assert.truthy(body:find(SAID, 1, true))
    end
  end)
end)
