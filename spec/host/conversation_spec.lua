-- Conversations that last: agent:save, ah.load, agent:fork, agent:use. docs/reference/agent.md,
-- "Conversations that last".
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

local function tool(name, handler, description)
  return ah.tool {
    name = name,
    description = description or ("The tool " .. name .. "."),
    handler = handler or function()
      return name
    end,
  }
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

local path

before_each(function()
  path = os.tmpname()
end)
after_each(function()
  os.remove(path)
end)

describe("ah.load", function()
  local function section(more)
    local def = {
      key = "context",
      template = "All.",
      summary = "S.",
      visibility = "summary",
      tools = { tool "s1", tool "s2", tool "s3" },
    }
    for k, v in pairs(more or {}) do
      def[k] = v
    end
    return ah.section(def)
  end

  local READ = call("read_section", { section_key = "context" })

  it("takes sections in its array part, and no text", function()
    local agent = ah.agent { model = ah.scripted { READ, "one" }, section(), log = quiet }
    assert(agent:run "a")
    assert(agent:save(path))
    local breaks = 0
    local later = assert(ah.load(path, {
      section(),
      model = ah.scripted { call "s2", "two" },
      log = quiet,
      on = {
        cache_break = function()
          breaks = breaks + 1
        end,
      },
    }))
    local said = assert(later:run "b").messages
    assert.equal("s2", said[#said - 1].content)
    assert.equal(0, breaks)
    for _, wrong in ipairs { { section(), "b" }, { "b" }, { messages = {} } } do
      wrong.model = "demo/echo"
      local ok, err = pcall(ah.load, path, wrong)
      assert.is_false(ok)
      assert.matches("the conversation is in the file", err.message, 1, true)
    end
  end)

  it("gives an error where the file names a model that is none here; a script's raises", function()
    local agent = ah.agent { model = ah.scripted { "one", "two" } }
    assert(agent:run "a")
    assert(agent:save(path))
    for _, fields in ipairs { {}, { tools = { tool "t" } } } do
      local later, err = ah.load(path, fields)
      assert.is_nil(later)
      assert.equal("provider", err.code)
      assert.matches("held with 'scripted/script', which is not known here", err.message)
    end
    assert.is_false((pcall(ah.load, path, { model = "nobody/x" })))
    assert(ah.load(path, { model = "demo/echo" }))
    assert(ah.agent({ model = "openai/x", api_key = "key" }):save(path))
    local ok, err = pcall(ah.load, path, { api_key = "key", tool_change_mode = "no such" })
    assert.is_false(ok) -- the model is known, so the wrong field is an error of the script
    assert.matches("tool_change_mode", err.message)
  end)

  it("goes on with a conversation that met max_tools by the tools of a section", function()
    for _, mode in ipairs { "inline", "append", "reference", "dispatcher", "restart" } do
      local requests = {}
      local function fields(turns, more)
        local t = {
          model = ah.scripted {
            tool_change_mode = mode,
            answer = function(r)
              requests[#requests + 1] = r
              return table.remove(turns, 1) or "done"
            end,
          },
          tools = { tool "mine" },
          max_tools = 3,
          log = quiet,
          section(),
        }
        for k, v in pairs(more or {}) do
          t[k] = v
        end
        return t
      end
      local agent = ah.agent(fields { READ })
      assert(agent:run "a")
      assert(agent:run "b")
      assert.matches("3 tools", tostring(agent))
      assert(agent:save(path))
      local warnings = {}
      local later = assert(ah.load(path, fields({ READ, "two" }, {
        log = function(level, line)
          warnings[#warnings + 1] = level == "warning" and line or nil
        end,
      })))
      assert.matches("3 tools", tostring(later))
      assert.matches("left out: max_tools", warnings[1])
      local before = requests[#requests]
      assert(later:run "c")
      assert.same(before.tools, requests[#requests].tools)
      assert.equal(before.system, requests[#requests].system)
      assert.matches("3 tools", tostring(later))
      assert.matches("3 tools", tostring(later:fork()))
      assert.equal(1, #warnings)
      assert.matches("5 tools", tostring(assert(ah.load(path, fields({}, { max_tools = 5 })))))
      assert.is_false((pcall(ah.load, path, fields({}, {
        tools = { tool "mine", tool "t2", tool "t3" },
      }))))
      sound.check(later:transcript())
    end
  end)

  it("counts so for an agent whose session was opened by another", function()
    local session = ah.session()
    session:dispatch(ah.set_visibility_override { path = "context", visibility = "full" })
    local agent = assert(ah.agent {
      model = "demo/echo",
      session = session,
      max_tools = 2,
      tools = { tool "mine" },
      log = quiet,
      section(),
    })
    assert.matches("2 tools", tostring(agent))
    local ok, err = pcall(ah.agent, {
      model = "demo/echo",
      max_tools = 2,
      tools = { tool "mine" },
      section { visibility = "full" },
    })
    assert.is_false(ok)
    assert.matches("4 tools are more than max_tools", err.message)
  end)
end)

describe("agent:save and ah.load", function()
  it("go on with the same bytes: the next request extends the last one", function()
    local requests = {}
    local function model(answers)
      return ah.scripted(function(r)
        requests[#requests + 1] = ah.json.encode(r)
        return table.remove(answers, 1)
      end)
    end
    local late = tool "late"
    local first = tool("first", function(_, ctx)
      ctx:add_tools(late)
    end)
    local agent = ah.agent {
      model = model { call "first", "one" },
      tools = { first },
      system = "S",
      options = { temperature = 0.5 },
      log = quiet,
    }
    assert(agent:run "a")
    assert(agent:save(path))
    local again = assert(
      ah.load(
        path,
        {
          model = model { call "late", "two" },
          log = quiet,
          tools = { first, late },
          system = "S",
          options = { temperature = 0.5 },
        }
      )
    )
    local reply = assert(again:run "b")

    assert.equal("late", reply.messages[#reply.messages - 1].content)
    assert.same({}, reply.injected_tools)
    local function head(text)
      return text:match('.*("model":.*)$')
    end
    local function entries(text)
      return text:match('^{"entries":%[(.*)%],"model":.-$')
    end
    assert.equal(head(requests[2]), head(requests[3]))
    assert.equal(entries(requests[2]), entries(requests[3]):sub(1, #entries(requests[2])))
    sound.check(again:transcript())
  end)

  it("bind tools by specification: bound, declared anew, stale", function()
    local agent = ah.agent {
      model = ah.scripted { "one" },
      log = quiet,
      tools = { tool "same", tool "changed", tool "gone" },
    }
    assert(agent:run "a")
    assert(agent:save(path))
    local again = assert(
      ah.load(
        path,
        {
          log = quiet,
          tools = { tool "same", tool("changed", nil, "Another definition."), tool "new" },
          model = ah.scripted {
            {
              calls = {
                { name = "same" },
                { name = "changed" },
                { name = "gone" },
                { name = "new" },
              },
              expect = { tools = { "same", "changed", "gone", "new" } },
            },
            "two",
          },
        }
      )
    )
    local results, added = {}, {}
    for _, m in ipairs(assert(again:run "b").messages) do
      results[#results + 1] = m.role == "tool" and m.content or nil
    end
    for _, e in ipairs(sound.of(sound.entries(again:transcript()), "tools_added")) do
      added[#added + 1] = #e.tools
    end

    assert.same(
      {
        "same",
        "changed",
        "Tool 'gone' is stale: it is of an earlier session of this conversation and was not "
          .. "found again. Nothing was run.",
        "new",
      },
      results
    )
    assert.same({ 3, 2 }, added)
  end)

  it("take the model from the conversation unless one is named", function()
    local agent = ah.agent { model = "demo/echo" }
    assert(agent:run "a")
    assert(agent:save(path))
    assert.equal("b", assert(ah.load(path)):run("b").text)
    assert.equal("c", assert(ah.load(path, { model = ah.scripted { "c" } })):run("b").text)
  end)

  it("save a turn at work, whose open calls are answered when it is loaded", function()
    local agent
    local model = ah.scripted {
      { calls = { { name = "done" }, { name = "save" }, { name = "never" } } },
      "ok",
    }
    agent = ah.agent {
      model = model,
      log = quiet,
      tools = {
        tool "done",
        tool "never",
        tool("save", function()
          assert(agent:save(path))
        end),
      },
    }
    assert(agent:run "a")
    local again = assert(ah.load(path, { model = ah.scripted { "two" }, log = quiet }))
    local entries = sound.check(again:transcript())
    local results = sound.of(entries, "tool_result")

    assert.equal(3, #results)
    assert.equal("done", results[1].content)
    assert.matches("Its outcome is unknown", results[2].content)
    assert.matches("Its outcome is unknown", results[3].content)
    assert.equal("two", assert(again:run "b").text)
  end)

  it("write a file as a whole or not at all, readable by its owner only", function()
    local agent = ah.agent { model = "demo/echo" }
    write(path, "before")
    local ok, err = agent:save(path .. "/nowhere/x")
    assert.is_nil(ok)
    assert.equal("usage", err.code)
    assert.matches("cannot write '.*nowhere/x'", err.message)
    assert.is_true(agent:save(path))
    assert.equal(1, ah.json.decode(read(path)).transcript.agenthost_transcript)
    local mode = io.popen("stat -c %a " .. path):read "l"
    assert.equal("600", mode)
  end)

  it("refuse what is no sound conversation, saying where", function()
    local function entry(text)
      return '{"agenthost_transcript":1,"entries":[' .. text .. "]}"
    end
    local assistant = '{"type":"assistant","content":[],"tool_calls":['
      .. '{"id":"c1","name":"t","arguments":"{}"}]}'
    for text, words in pairs {
      ["{"] = "is not JSON",
      ["[]"] = "no conversation of this version",
      ['{"agenthost_transcript":2,"entries":[]}'] = "no conversation of this version",
      [entry "7"] = "entry 0 is no object",
      [entry '{"type":"note","text":"a"},{"type":"user","content":"x"}'] = "entry 1 %(user%)",
      [entry('{"type":"tool_result","id":"c1","name":"t","content":"x",' .. '"success":true}')] =
        "without its call",
      [entry(assistant)] = "no answer right after it",
      [entry '{"type":"tools_added","tools":[{"name":"x"}]}'] = "entry 0 %(tools_added%)",
    } do
      write(path, text)
      local agent, err = ah.load(path, { model = "demo/echo" })
      assert.is_nil(agent)
      assert.equal("usage", err.code)
      assert.matches("cannot load '" .. path:gsub("%p", "%%%0"), err.message)
      assert.matches(words, err.message)
      assert.equal("damaged", err.reason)
    end
    local agent, err = ah.load(path .. ".none")
    assert.is_nil(agent)
    assert.matches("No such file", err.message)
    assert.same({ "usage", "not_found" }, { err.code, err.reason })
    assert.equal("unreadable", select(2, ah.load "/").reason)
    assert(ah.agent({ model = ah.scripted {} }):save(path))
    err = select(2, ah.load(path))
    assert.matches("which is not known here", err.message)
    assert.same({ "provider" }, { err.code, err.reason })
  end)

  it("refuse checkpoints that are damaged or of a later version", function()
    assert(ah.agent({ model = "demo/echo" }):save(path))
    local sound_one = read(path)
    local pending = '"entries":[],"pending":{"assistant":{"type":"assistant","content":[]}}'
    for text, words in pairs {
      [sound_one:gsub('"readable_from":1', '"readable_from":9')] = "in format 9",
      [sound_one:gsub('"stream":"conversation"', '"stream":"budget"')] = "no conversation",
      [sound_one:gsub('"slices":{}', '"slices":{"Item":7}')] = "a slice must be a list",
      [sound_one:gsub('"entities":%[%]', '"entities":[{"class":7}]')] = "class",
      [sound_one:gsub('"entries":%b[]', pending)] = "has a pending turn",
      [sound_one:gsub('"runs":0', '"runs":2000000000')] = "up to 1073741824",
      [sound_one:gsub('"runs":0', '"runs":{}')] = "runs",
      [sound_one:gsub('"transcript":%b{}', '"transcript":[]')] = "transcript",
      [sound_one:sub(1, -5)] = "is not JSON",
    } do
      assert.not_equal(sound_one, text)
      write(path, text)
      local agent, err = ah.load(path, { model = "demo/echo" })
      assert.is_nil(agent)
      assert.same({ "usage", "damaged" }, { err.code, err.reason })
      assert.matches(words, err.message, 1, true)
      assert.not_matches("record 1", err.message, 1, true)
    end
  end)

  it("take the files of version 0.1.0", function()
    local Item = ah.type { name = "Item", fields = { name = "string" } }
    write(path, [[
{"agenthost_transcript":1,"entries":[{"type":"settings","model":"demo/echo","options":{}},]]
      .. [[{"type":"tools_added","tools":[{"name":"t","description":"The tool t.","parameters":]]
      .. [[{"type":"object","properties":{},"additionalProperties":false}}]},]]
      .. [[{"type":"user","content":[{"type":"text","text":"a"}],"time":1700000000000}],]]
      .. [["pending":{"assistant":{"type":"assistant","content":[],"tool_calls":[]]
      .. [[{"id":"c1","name":"t","arguments":"{}"},{"id":"c2","name":"t","arguments":"{}"}],]]
      .. [["stop":"tool_calls","origin":{"adapter":"echo","model":"echo","endpoint":""},]]
      .. [["usage":{"input":1,"cached_read":0,"cached_write":0,"output":1,"reasoning":0,]]
      .. [["known":true},"time":1700000000001},"results":[{"type":"tool_result","id":"c1",]]
      .. [["name":"t","content":"one","success":true,"time":1700000000002},null],]]
      .. [["staged":[{"type":"note","text":"Noted.","time":1700000000003}]},]]
      .. [["session":{"agenthost_session":1,"slices":{"Item":[{"name":"bread"}]}}}
]])
    local session = ah.session { types = { Item } }
    local again = assert(ah.load(path, { session = session, tools = { tool "t" } }))
    local entries = sound.check(again:transcript())
    local results = sound.of(entries, "tool_result")

    assert.equal("one", results[1].content)
    assert.matches("Its outcome is unknown", results[2].content)
    assert.equal("Noted.", sound.of(entries, "note")[1].text)
    assert.equal("bread", session[Item]:latest().name)
    assert(again:save(path))
    assert.same(entries, ah.json.decode(read(path)).transcript.entries)
    assert.equal("b", assert(assert(ah.load(path)):run("b")).text)
  end)

  it("leave secrets and the places of this machine out of the file", function()
    local session = ah.session()
    local Note = ah.type { name = "Note", fields = { text = "string" } }
    session:register(Note)
    session:dispatch(Note { text = "It is hunter2-hunter2." })
    local agent = assert(ah.agent { model = "openai/x", api_key = "hunter2-hunter2",
      session = session, store = { engine = "memory" }, id = "one" })
    assert(agent:save(path))
    local text = read(path)
    agent:close()
    assert.matches("[secret]", text, 1, true)
    for _, word in ipairs { "hunter2", '"folder"', '"script"' } do
      assert.not_matches(word, text, 1, true)
    end
  end)

  it("pass over entries of a later version", function()
    write(
      path,
      '{"agenthost_transcript":1,"more":[1],"entries":[{"type":"dream","of":"sheep"},'
        .. '{"type":"user","content":[{"type":"text","text":"a"}],"mood":"good"}]}'
    )
    local agent = assert(ah.load(path, { model = "demo/echo" }))
    assert.equal("b", assert(agent:run "b").text)
  end)

  it("refuse fields that have no place there, at the script's line", function()
    write(path, '{"agenthost_transcript":1,"entries":[]}')
    for _, fields in ipairs { { messages = {} }, { "text" }, { modell = "x" } } do
      fields.model = "demo/echo"
      assert.is_false((pcall(ah.load, path, fields)))
    end
  end)
end)

describe("agent:fork", function()
  it("goes two ways from one conversation", function()
    local a = ah.agent { model = "demo/echo", tools = { tool "t" } }
    assert(a:run "start")
    local b = a:fork()
    b:add_tools(tool "u")
    assert(a:run "left")
    assert(b:run "right")
    local function users(agent)
      local list = {}
      for _, e in ipairs(sound.of(sound.check(agent:transcript()), "user")) do
        list[#list + 1] = e.content[1].text
      end
      return table.concat(list, " ")
    end
    assert.equal("start left", users(a))
    assert.equal("start right", users(b))
    assert.matches("1 tools", tostring(a))
    assert.matches("2 tools", tostring(b))
  end)

  it("takes observers, limits and strategies with it, and leaves the turn at work", function()
    local agent, other
    local seen, asked = 0, 0
    agent = ah.agent {
      log = quiet,
      on = {
        done = function()
          seen = seen + 1
        end,
      },
      max_iterations = 1,
      strategies = {
        function()
          asked = asked + 1
        end,
      },
      model = ah.scripted(function()
        return call "t"
      end),
      tools = { tool("t", function()
        other = other or agent:fork()
      end) },
    }
    assert.equal("max_iterations_exceeded", select(2, agent:run "x").code)
    local _, err = other:run "y"
    assert.equal("max_iterations_exceeded", err.code)
    assert.same({ 2, 2 }, { seen, asked })
    assert.equal(2, #sound.of(sound.check(other:transcript()), "user"))
    assert.equal(1, #sound.of(sound.entries(other:transcript()), "assistant"))
  end)
end)

describe("agent:use", function()
  it("goes on with another model, and says what it costs", function()
    local reasons = {}
    local second = ah.scripted { { expect = { user = "b", system = "S" }, text = "two" } }
    local agent = ah.agent {
      model = ah.scripted { "one" },
      system = "S",
      on = {
        cache_break = function(e)
          reasons[#reasons + 1] = e.reason
        end,
      },
    }
    assert(agent:run "a")
    assert.equal(agent, assert(agent:use(second)))
    assert.equal("two", assert(agent:run "b").text)
    assert(agent:use "demo/echo")
    assert.equal("c", assert(agent:run "c").text)
    assert.same({ "model_changed", "model_changed" }, reasons)
    local models = {}
    for _, e in ipairs(sound.of(sound.check(agent:transcript()), "settings")) do
      models[#models + 1] = e.model
    end
    assert.same({ "scripted/script", "demo/echo" }, models)
  end)

  it("keeps the options unless others are given", function()
    local model = ah.scripted {
      {
        check = function(r)
          return r.options.seed == 1
        end,
        text = "a",
      },
      {
        check = function(r)
          return r.options.seed == 1
        end,
        text = "b",
      },
      {
        check = function(r)
          return r.options.seed == nil and r.options.top_p == 0.5
        end,
        text = "c",
      },
    }
    local agent = ah.agent { model = model, options = { seed = 1 }, log = quiet }
    assert(agent:run "a")
    assert(agent:use(model))
    assert(agent:run "b")
    assert(agent:use { model = model, options = { top_p = 0.5 } })
    assert(agent:run "c")
  end)

  it("changes nothing where it fails, and is refused during a run", function()
    local agent
    agent = ah.agent {
      model = ah.scripted { call "t", "ok", "ok" },
      log = quiet,
      tools = {
        tool("t", function()
          return tostring(select(2, pcall(agent.use, agent, "demo/echo")))
        end),
      },
    }
    for _, wrong in ipairs { "nobody/x", "demo/none" } do
      assert.is_nil((agent:use(wrong)))
    end
    for _, wrong in ipairs {
      { model = "demo/echo", options = { sed = 1 } },
      7,
    } do
      assert.is_false((pcall(agent.use, agent, wrong)))
    end
    assert.matches("the agent is running", assert(agent:run "x").messages[3].content)
    assert.equal("ok", assert(agent:run "y").text)
  end)
end)

describe("a conversation that goes on", function()
  it("costs a run what is new in it, and keeps the prefix between runs", function()
    local breaks, bytes = 0, {}
    local agent = ah.agent {
      model = "demo/echo",
      system = "S",
      tools = { tool "t" },
      on = {
        cache_break = function()
          breaks = breaks + 1
        end,
        request = function(e)
          bytes[#bytes + 1] = e.bytes
        end,
      },
    }
    for i = 1, 50 do
      assert(agent:run("text " .. i))
    end
    assert.equal(0, breaks)
    for i = 3, 50 do
      assert.is_true(bytes[i] > bytes[i - 1])
    end
  end)
end)

describe("the session of an agent", function()
  local Item = ah.type { name = "Item", fields = { name = "string" } }
  local add = ah.tool {
    name = "add",
    description = "Adds an item.",
    params = Item,
    result = Item,
    handler = function(item)
      return item
    end,
  }

  local function names(session)
    local list = {}
    for i, item in ipairs(session[Item]:all()) do
      list[i] = item.name
    end
    return table.concat(list, " ")
  end

  local function model(...)
    local answers = {}
    for i, name in ipairs { ... } do
      answers[2 * i - 1], answers[2 * i] = call("add", { name = name }), "done"
    end
    return ah.scripted(answers)
  end

  it("is in the file, and restored into the one that is given", function()
    local first, second = ah.session { types = { Item } }, ah.session { types = { Item } }
    local agent = ah.agent { model = model "bread", tools = { add }, session = first }
    assert(agent:run "Add bread.")
    assert(agent:save(path))
    assert.same(ah.json.decode(first:snapshot()).slices, ah.json.decode(read(path)).slices)
    local later = assert(ah.load(path, { model = model "milk", tools = { add }, session = second }))
    assert(later:run "Add milk.")
    assert.same({ "bread", "bread milk" }, { names(first), names(second) })
  end)

  it("is kept for the next file where none is given", function()
    local session = ah.session { types = { Item } }
    local agent = ah.agent { model = model "bread", tools = { add }, session = session }
    assert(agent:save(path))
    assert.same({}, ah.json.decode(read(path)).slices)
    assert(agent:run "Add bread.")
    assert(agent:save(path))
    local before = ah.json.decode(read(path)).slices
    assert.is_table(before.Item)
    assert(assert(ah.load(path, { model = "demo/echo" })):fork():save(path))
    assert.same(before, ah.json.decode(read(path)).slices)
  end)

  it("must fit the types that are registered", function()
    write(path, '{"agenthost_transcript":1,"entries":[],"session":{"agenthost_session":1,'
      .. '"slices":{"Item":[{"name":1}]}}}')
    local session = ah.session { types = { Item } }
    local agent, err = ah.load(path, { model = "demo/echo", session = session })
    assert.is_nil(agent)
    assert.equal("usage", err.code)
    assert.truthy(err.message:find("name", 1, true), err.message)
    err = select(2, ah.load(path, { model = "demo/echo", session = ah.session() }))
    assert.equal("usage", err.code)
  end)

  it("is the fork's own from there on", function()
    local session, heard, seen = ah.session { types = { Item } }, 0, nil
    session.dispatcher:subscribe("tool_invoked", function()
      heard = heard + 1
    end)
    local look = tool("look", function(_, ctx)
      seen = ctx.session
    end)
    local agent = ah.agent { model = model "bread", tools = { add, look }, session = session }
    assert(agent:run "Add bread.")
    local other = agent:fork()
    session:dispatch(Item { name = "milk" })
    assert(other:use(ah.scripted { call "look", "done" }))
    assert(other:run "Look.")
    seen:dispatch(Item { name = "rice" })
    assert.same({ "bread milk", "bread rice", 1 }, { names(session), names(seen), heard })
  end)
end)
