-- Progressive disclosure (seed 000): read_section opens a summarized section, and its tools are
-- added in mid-conversation, or by a restart if the adapter cannot add them.
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

local function tool(name)
  return ah.tool {
    name = name,
    description = "The tool " .. name .. ".",
    handler = function()
      return name
    end,
  }
end

local function read(key)
  return { calls = { { name = "read_section", arguments = { section_key = key } } } }
end

local function call(name)
  return { calls = { { name = name } } }
end

local function names(request)
  local list = {}
  for _, t in ipairs(request.tools) do
    list[#list + 1] = t.name
  end
  for _, e in ipairs(request.entries) do
    for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
      list[#list + 1] = t.name
    end
  end
  return table.concat(list, " ")
end

local function research(extra)
  return ah.prompt {
    ns = "example",
    key = "research",
    ah.section {
      key = "context",
      title = "Context",
      template = "Detailed research context...",
      summary = "Research context available.",
      visibility = "summary",
      tools = { tool "search", tool "cite" },
      table.unpack(extra or {}),
    },
  }
end

-- Runs turns on a model of this mode: returns reply, error, requests, events.
local function run(mode, turns, fields)
  local model = ah.scripted {
    tool_change_mode = mode,
    answer = function(r)
      local turn = table.remove(turns, 1)
      return type(turn) == "function" and turn(r) or turn
    end,
  }
  local events = {}
  fields.model, fields.log = model, fields.log or quiet
  fields.on = function(e)
    events[#events + 1] = e
  end
  fields[#fields + 1] = "Go."
  local reply, err = ah.run(fields)
  return reply, err, model.requests(), events
end

local function of(events, kind)
  local list = {}
  for _, e in ipairs(events) do
    list[#list + 1] = e.type == kind and e or nil
  end
  return list
end

local function contents(reply)
  local list = {}
  for _, m in ipairs(reply.messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  return list
end

local CONTENT = "Content of section 'context':\n\n## Context\n\nDetailed research context..."

describe("read_section of a section with tools", function()
  it(
    "injects them in mid-conversation: one evaluation, the second request extends the first",
    function()
      local before = ah.metrics()
      local reply, _, requests, events = run(
        "inline",
        { read "context", call "search", "done" },
        { prompt = research() }
      )

      assert.equal("done", reply.text)
      assert.same({ CONTENT .. "\n\nNew tools: search, cite.", "search" }, contents(reply))
      assert.same({ "search", "cite" }, reply.injected_tools)
      assert.equal("read_section", names(requests[1]))
      assert.equal("read_section search cite", names(requests[2]))
      assert.equal(requests[1].system, requests[2].system)
      assert.same({}, of(events, "cache_break"))
      local injected = of(events, "tools_injected")[1]
      assert.same({ "search", "cite" }, injected.tool_names)
      assert.equal("context", injected.section_key)
      assert.equal("number", type(injected.timestamp))
      local now = ah.metrics()
      local function grown(name)
        return now["agenthost." .. name] - before["agenthost." .. name]
      end
      assert.same(
        { 2, 1, 0 },
        { grown "tools.injected", grown "disclosure.dynamic", grown "disclosure.restarts" }
      )
      sound.check(reply:transcript())
    end
  )

  it("restarts where the adapter cannot take them: the same answer, the same tools", function()
    local before = ah.metrics()
    local reply, _, requests, events = run(
      "restart",
      { read "context", call "search", "done" },
      { prompt = research() }
    )

    assert.equal("done", reply.text)
    assert.same({ "search", "cite" }, reply.injected_tools)
    assert.equal("read_section search cite", names(requests[2]))
    assert.equal("## Context\n\nDetailed research context...", requests[2].system)
    assert.equal("restart", of(events, "cache_break")[1].reason)
    assert.equal(1, #of(events, "cache_break"))
    assert.equal("search", contents(reply)[2])
    local now = ah.metrics()
    assert.equal(1, now["agenthost.disclosure.restarts"] - before["agenthost.disclosure.restarts"])
    assert.equal(0, now["agenthost.disclosure.dynamic"] - before["agenthost.disclosure.dynamic"])
    sound.check(reply:transcript())
  end)

  it("restarts at most max_restarts times, and the error says what was asked for", function()
    local sections = {}
    for i = 1, 3 do
      sections[i] = ah.section {
        key = "s" .. i,
        template = "T",
        summary = "S",
        visibility = "summary",
        tools = { tool("t" .. i) },
      }
    end
    local before = ah.metrics()["agenthost.disclosure.restarts"]
    local reply, err = run(
      "restart",
      { read "s1", read "s2", read "s3", "done" },
      { max_restarts = 2, table.unpack(sections) }
    )
    assert.is_nil(reply)
    assert.equal("visibility_expansion_required", err.code)
    assert.matches("^Section expansion requires restart", err.message)
    assert.equal("Adapter does not support dynamic tools", err.reason)
    assert.same({ "s3" }, err.section_keys)
    assert.same({ s3 = "full" }, err.requested_overrides)
    assert.equal("tool", err.phase)
    assert.equal(2, ah.metrics()["agenthost.disclosure.restarts"] - before)
    assert.equal(3, err.reply.iterations)
    sound.check(err.reply:transcript())
  end)

  it("counts only its own restarts, not those for other tools", function()
    local before = ah.metrics()["agenthost.disclosure.restarts"]
    local reply, _, _, events = run("restart", { call "more", read "context", "done" }, {
      prompt = research(),
      tools = {
        ah.tool {
          name = "more",
          description = "M.",
          handler = function(_, ctx)
            ctx:add_tools(tool "extra")
          end,
        },
      },
    })
    assert.same({ "extra", "search", "cite" }, reply.injected_tools)
    assert.equal(2, #of(events, "cache_break"))
    assert.equal(1, ah.metrics()["agenthost.disclosure.restarts"] - before)
  end)

  it("logs as the seed says", function()
    local lines = {}
    run("append", { read "context", "done" }, {
      prompt = research(),
      log = function(level, line)
        lines[#lines + 1] = level .. " " .. line
      end,
    })
    local text = table.concat(lines, "\n")
    assert.truthy(
      text:find(
        "info Injected tools from section expansion: section_key=context "
          .. 'tool_count=2 tool_names=["search","cite"]',
        1,
        true
      ),
      text
    )
  end)
end)

describe("read_section", function()
  it("answers for unknown, expanded and toolless sections", function()
    local plain =
      ah.section { key = "plain", template = "Plain.", summary = "P.", visibility = "summary" }
    local reply, _, requests, events = run(
      "restart",
      { read "none", read "context", read "context", read "plain", read "plain", "done" },
      {
        prompt = ah.prompt {
          ah.section {
            key = "context",
            title = "Context",
            template = "Detailed research context...",
            summary = "R.",
            visibility = "summary",
            tools = { tool "search" },
          },
          plain,
        },
      }
    )

    assert.same({
      "Unknown section key: 'none'",
      CONTENT .. "\n\nNew tools: search.",
      "Section is already expanded.\n\n## Context\n\nDetailed research context...",
      "Content of section 'plain':\n\nPlain.",
      "Content of section 'plain':\n\nPlain.",
    }, contents(reply))
    assert.equal(1, #of(events, "tools_injected"))
    assert.equal(1, #of(events, "cache_break"))
    assert.matches('`read_section` with key "plain"', requests[#requests].system)
  end)

  it("collects from open descendants and leaves summarized ones alone, to any depth", function()
    local tree = research {
      ah.section { key = "open", template = "O", tools = { tool "o" } },
      ah.section { key = "off", template = "X", tools = { tool "x" }, enabled = false },
      ah.section {
        key = "deep",
        template = "D",
        summary = "DS",
        visibility = "summary",
        tools = { tool "d" },
        ah.section {
          key = "deeper",
          template = "E",
          summary = "ES",
          visibility = "summary",
          tools = { tool "e" },
        },
      },
    }
    for _, mode in ipairs { "inline", "restart" } do
      local reply, _, requests = run(
        mode,
        { read "context", read "context.deep", read "context.deep.deeper", "done" },
        { prompt = tree }
      )
      assert.same({ "search", "cite", "o", "d", "e" }, reply.injected_tools)
      assert.equal("read_section search cite o", names(requests[2]))
      assert.equal("read_section search cite o d e", names(requests[4]))
    end
  end)

  it("skips a tool whose name is taken, with the warning", function()
    local reply, _, _, events = run("inline", {
      {
        calls = {
          { name = "first" },
          { name = "read_section", arguments = { section_key = "context" } },
        },
      },
      "done",
    }, {
      prompt = research(),
      tools = {
        ah.tool {
          name = "first",
          description = "F.",
          handler = function(_, ctx)
            ctx:add_tools(tool "search")
          end,
        },
      },
    })
    assert.same({ "search", "cite" }, reply.injected_tools)
    local warning = of(events, "warning")[1]
    assert.same(
      { "Skipping duplicate tool during injection", "search" },
      { warning.message, warning.tool_name }
    )
  end)

  it("brings what a later call of the same answer can use", function()
    local reply = run("inline", {
      {
        calls = {
          {
            name = "read_section",
            arguments = {
              section_key = "context",
            },
          },
          { name = "cite" },
        },
      },
      "done",
    }, { prompt = research() })
    assert.equal("cite", contents(reply)[2])
  end)
end)

describe("a conversation in which a section is open", function()
  it(
    "keeps it open from run to run, forked, saved and loaded, for every kind of adapter",
    function()
      for _, mode in ipairs { "append", "inline", "reference", "dispatcher", "restart" } do
        local path = os.tmpname()
        local turns = {}
        local requests = {}
        local function model()
          return ah.scripted {
            tool_change_mode = mode,
            answer = function(r)
              requests[#requests + 1] = r
              return table.remove(turns, 1)
            end,
          }
        end
        local prompt = research()
        local function use()
          return mode == "dispatcher"
              and { calls = { { name = "call_tool", arguments = { name = "cite" } } } }
            or call "cite"
        end
        local agent = ah.agent { model = model(), prompt = prompt, log = quiet }
        turns = { read "context", "one" }
        assert(agent:run "a")
        assert(agent:save(path))
        local breaks = 0
        for _, again in ipairs {
          agent,
          agent:fork(),
          assert(ah.load(path, {
            model = model(),
            prompt = prompt,
            log = quiet,
            on = {
              cache_break = function()
                breaks = breaks + 1
              end,
            },
          })),
        } do
          turns = { use(), read "context", "two" }
          local before = requests[2]
          local reply = assert(again:run "b")
          local list = contents(reply)
          assert.equal("cite", list[2], mode)
          assert.matches("^Section is already expanded.", list[3])
          assert.same({}, reply.injected_tools)
          assert.equal(before.system, requests[#requests].system)
          assert.same(before.tools, requests[#requests].tools)
          sound.check(again:transcript())
        end
        assert.equal(0, breaks)
        os.remove(path)
      end
    end
  )

  it("is set anew in the words of a prompt that has changed meanwhile", function()
    local path = os.tmpname()
    local agent = ah.agent {
      model = ah.scripted { read "context", "one" },
      prompt = research(),
      log = quiet,
    }
    assert(agent:run "a")
    assert(agent:save(path))
    local other = ah.prompt {
      ah.section {
        key = "context",
        title = "Context",
        template = "New words.",
        summary = "S.",
        visibility = "summary",
        tools = { tool "search", tool "cite" },
      },
    }
    local model = ah.scripted {
      {
        check = function(r)
          return r.system == "## Context\n\nNew words."
        end,
        text = "two",
      },
    }
    assert(assert(ah.load(path, { model = model, prompt = other, log = quiet })):run "b")
    os.remove(path)
  end)
end)

-- A handler raises visibility_expansion_required: seed 000's MainLoop stores the requested
-- overrides and continues.
describe("a handler that asks for sections", function()
  local MODES = { "append", "inline", "reference", "search_pair", "dispatcher", "restart" }

  local function ask(fields)
    fields.code = "visibility_expansion_required"
    fields.message = fields.message or "the context is needed"
    error(ah.error(fields))
  end

  -- Makes a tool that calls `before`, then raises in its first `times` calls.
  local function asking(fields, times, before)
    local n = 0
    return ah.tool {
      name = "needs",
      description = "N.",
      handler = function(_, ctx)
        n = n + 1
        if before then
          before(ctx, n)
        end
        return n > (times or 1) and "did" or ask(fields)
      end,
    }
  end

  local function overrides(session)
    local list = {}
    for i, o in ipairs(session.visibility_overrides:all()) do
      list[i] = o.path .. "=" .. o.visibility
    end
    return table.concat(list, " ")
  end

  local ASKED = "Tool 'needs' execution failed: the context is needed\n\n"
    .. "The sections that it asked for are shown as it asked; call it again."

  it("has them opened in its adapter's way, and the run goes on", function()
    local Mark = ah.type { name = "Mark", fields = { n = "integer" } }
    local function mark(ctx, n)
      ctx.session:dispatch(Mark { n = n })
    end
    for _, mode in ipairs(MODES) do
      local before = ah.metrics()
      local session = ah.session { types = { Mark } }
      local reply, err, requests, events = run(
        mode,
        { call "needs", call "needs", read "context", "done" },
        {
          prompt = research(),
          session = session,
          tools = {
            asking({ requested_overrides = { context = "full" }, reason = "for now" }, 1, mark),
          },
        }
      )
      assert.is_nil(err, mode)
      assert.same({
        ASKED .. "\n\n" .. CONTENT .. "\n\nNew tools: search, cite.",
        "did",
        "Section is already expanded.\n\n## Context\n\nDetailed research context...",
      }, contents(reply), mode)
      assert.equal("context=full", overrides(session))
      assert.equal(1, #session[Mark]:all()) -- the failed call was rolled back
      assert.same({ "search", "cite" }, reply.injected_tools)
      assert.equal("context", of(events, "tools_injected")[1].section_key)
      assert.is_false(of(events, "tool_invoked")[1].success)
      local restarts = mode == "restart" and 1 or 0
      assert.equal(
        mode == "restart" and "## Context\n\nDetailed research context..." or requests[1].system,
        requests[2].system
      )
      local now = ah.metrics()
      local function grown(name)
        return now["agenthost.disclosure." .. name] - before["agenthost.disclosure." .. name]
      end
      assert.same({ restarts, 1 - restarts }, { grown "restarts", grown "dynamic" })
      sound.check(reply:transcript())
    end
  end)

  it("may ask for several, for ones below others, and by section_keys alone", function()
    local deep = {
      ah.section {
        key = "deep",
        template = "Deep.",
        summary = "D.",
        visibility = "summary",
        tools = { tool "deep" },
      },
    }
    for _, mode in ipairs(MODES) do
      for _, fields in ipairs {
        { requested_overrides = { context = "full", ["context.deep"] = "full" } },
        { section_keys = { "context.deep", "context" } },
        { section_keys = { "context.deep" } },
      } do
        local session = ah.session()
        local reply = assert(run(mode, { call "needs", call "needs", "done" }, {
          prompt = research(deep),
          session = session,
          tools = { asking(fields) },
        }))
        local injected = table.concat(reply.injected_tools, " ")
        assert.equal("search cite deep", injected, mode)
        assert.equal("context=full context.deep=full", overrides(session))
      end
    end
  end)

  it("may be two in one answer", function()
    local pair = { calls = { { name = "needs" }, { name = "also" } } }
    for _, mode in ipairs(MODES) do
      for _, parallel in ipairs { true, false } do
        local function one(name, key)
          local n = 0
          return ah.tool {
            name = name,
            description = "N.",
            parallel = parallel,
            handler = function()
              n = n + 1
              return n > 1 and name or ask { section_keys = { key } }
            end,
          }
        end
        local prompt = ah.prompt {
          ah.section {
            key = "a",
            template = "A.",
            summary = "S.",
            visibility = "summary",
            tools = { tool "ta" },
          },
          ah.section {
            key = "b",
            template = "B.",
            summary = "S.",
            visibility = "summary",
            tools = { tool "tb" },
          },
        }
        local reply, _, requests, events = run(mode, { pair, pair, "done" }, {
          prompt = prompt,
          max_restarts = 1,
          tools = { one("needs", "a"), one("also", "b") },
        })
        assert.equal("done", tostring(reply))
        assert.same({ "ta", "tb" }, reply.injected_tools)
        assert.same({ "needs", "also" }, { table.unpack(contents(reply), 3) })
        if mode == "restart" then
          assert.equal("A.\n\nB.", requests[2].system)
          assert.equal(1, #of(events, "cache_break"))
        end
      end
    end
  end)

  it("may have one closed: its tools go, its text with the next system text", function()
    for _, mode in ipairs(MODES) do
      local session = ah.session()
      local agent = ah.agent {
        model = ah.scripted {
          tool_change_mode = mode,
          read "context",
          call "needs",
          mode == "dispatcher"
              and { calls = { { name = "call_tool", arguments = { name = "search" } } } }
            or call "search",
          read "context",
          "done",
          function(request)
            return request.system
          end,
        },
        prompt = research(),
        session = session,
        tools = { asking { requested_overrides = { context = "summary" } } },
        log = quiet,
      }
      local list = contents(assert(agent:run "x"))
      assert.matches("^Tool 'search' is no longer available", list[3], mode)
      assert.equal(CONTENT .. "\n\nNew tools: search, cite.", list[4])
      assert.equal("context=full", overrides(session))
      sound.check(agent:transcript())
    end
  end)

  it("is told of a key that leads to none; the session has it", function()
    local session = ah.session()
    local reply = assert(run("inline", { call "needs", call "needs", "done" }, {
      prompt = research(),
      session = session,
      tools = { asking { section_keys = { 'no "such"' } } },
    }))
    assert.equal(ASKED .. "\n\nUnknown section key: 'no \"such\"'", contents(reply)[1])
    assert.equal('no "such"=full', overrides(session))
    assert.equal("did", contents(reply)[2])
  end)

  it("has failed where what it asks for is none", function()
    for _, fields in ipairs {
      { requested_overrides = "context" },
      { requested_overrides = { context = "open" } },
      { requested_overrides = { context = 7 } },
      { requested_overrides = { "context" } },
      { section_keys = "context" },
      { section_keys = { 7 } },
      { section_keys = { context = true } },
      { requested_overrides = { [("k"):rep(5000)] = "full" } },
    } do
      local session = ah.session()
      local reply = assert(run("inline", { call "needs", "done" }, {
        prompt = research(),
        session = session,
        tools = { asking(fields) },
      }))
      assert.matches("requested_overrides must be", contents(reply)[1])
      assert.equal("", overrides(session))
    end
  end)

  it("ends the run where it names no section", function()
    for _, fields in ipairs { {}, { requested_overrides = {}, section_keys = {} } } do
      local reply, err = run("inline", { call "needs", "done" }, {
        prompt = research(),
        tools = { asking(fields) },
      })
      assert.is_nil(reply)
      assert.equal("visibility_expansion_required", err.code)
      assert.equal("needs", err.tool)
    end
  end)

  it("may ask max_restarts times, and the error has what it asked for", function()
    for _, mode in ipairs { "inline", "restart" } do
      for _, most in ipairs { 0, 1, 10 } do
        local session = ah.session()
        local reply, err = ah.run {
          model = ah.scripted {
            tool_change_mode = mode,
            answer = function()
              return call "needs"
            end,
          },
          prompt = research(),
          session = session,
          tools = {
            asking({
              requested_overrides = { context = "full" },
              section_keys = { "context" },
              reason = "for now",
            }, 100),
          },
          max_restarts = most,
          loop_detector = false,
          log = quiet,
          "Go.",
        }
        assert.is_nil(reply)
        assert.equal("visibility_expansion_required", err.code)
        assert.same(
          { { context = "full" }, { "context" }, "for now", "tool", "needs" },
          { err.requested_overrides, err.section_keys, err.reason, err.phase, err.tool }
        )
        assert.matches("max_restarts = " .. most, err.message, 1, true)
        assert.equal(most + 1, err.reply.iterations)
        assert.equal(most > 0 and "context=full" or "", overrides(session))
        sound.check(err.reply:transcript())
      end
    end
  end)

  it("asks in a run without a prompt: the run around it can read the section", function()
    for _, mode in ipairs(MODES) do
      local session = ah.session()
      local inner = ah.tool {
        name = "inner",
        description = "I.",
        handler = function(_, ctx)
          return assert(ah.run {
            model = ah.scripted { call "needs", call "needs", "inside" },
            session = ctx.session,
            tools = { asking { section_keys = { "context" } } },
            log = quiet,
            "go",
          })
        end,
      }
      local reply = assert(run(mode, { call "inner", read "context", "done" }, {
        prompt = research(),
        session = session,
        tools = { inner },
      }))
      assert.equal("inside", contents(reply)[1])
      assert.equal(CONTENT .. "\n\nNew tools: search, cite.", contents(reply)[2])
    end
  end)

  it("asks through a run that it fails, and the run around that opens them", function()
    local session, times = ah.session(), 0
    local inner = ah.tool {
      name = "inner",
      description = "I.",
      handler = function()
        times = times + 1
        if times > 1 then
          return "inside"
        end
        local _, err = ah.run {
          model = ah.scripted { call "needs", "inside" },
          max_restarts = 0,
          tools = { asking { section_keys = { "context" }, reason = "deep inside" } },
          log = quiet,
          "go",
        }
        error(err)
      end,
    }
    local reply = assert(run("inline", { call "inner", call "inner", "done" }, {
      prompt = research(),
      session = session,
      tools = { inner },
    }))
    assert.same({ "search", "cite" }, reply.injected_tools)
    assert.equal("inside", contents(reply)[2])
  end)

  it("has them open in the conversation when that is forked, saved and loaded", function()
    for _, mode in ipairs(MODES) do
      local path = os.tmpname()
      local function model(turns)
        return ah.scripted {
          tool_change_mode = mode,
          answer = function()
            return table.remove(turns, 1) or "done"
          end,
        }
      end
      local fields = {
        model = model { call "needs", "done", read "context", "done" },
        prompt = research(),
        tools = { asking { section_keys = { "context" } } },
        log = quiet,
      }
      local agent = ah.agent(fields)
      assert(agent:run "a")
      assert(agent:save(path))
      local breaks = 0
      fields.model, fields.on =
        model { read "context" }, {
          cache_break = function()
            breaks = breaks + 1
          end,
        }
      for _, again in ipairs { agent:fork(), assert(ah.load(path, fields)) } do
        assert.matches("^Section is already expanded", contents(assert(again:run "b"))[2], mode)
      end
      assert.equal(0, breaks)
      os.remove(path)
    end
  end)
end)

describe("a system text that a strategy has set", function()
  -- Makes a strategy that sets SAID once, after the result with this content.
  local SAID = "Said by a strategy."
  local function says_after(content)
    local said = false
    return function(m)
      if not said and m.result:find(content, 1, true) then
        said = true
        m:prompt(SAID)
      end
    end
  end

  local function two()
    return ah.prompt {
      ah.section {
        key = "context",
        template = "All of it.",
        summary = "S.",
        visibility = "summary",
        tools = { tool "search" },
      },
      ah.section {
        key = "more",
        template = "More of it.",
        summary = "M.",
        visibility = "summary",
        tools = { tool "cite" },
      },
    }
  end

  it("stays when sections are opened, and afterwards, for every kind of adapter", function()
    local turns_of = {
      { call "plain", read "context", read "more" },
      { read "context", call "plain", read "more" },
      {
        {
          calls = {
            { name = "plain" },
            { name = "read_section", arguments = { section_key = "context" } },
          },
        },
        read "more",
      },
    }
    for _, mode in ipairs { "append", "inline", "reference", "dispatcher", "restart" } do
      for i, list in ipairs(turns_of) do
        local where = mode .. " " .. i
        local path = os.tmpname()
        local turns, systems = { table.unpack(list) }, {}
        local function model()
          return ah.scripted {
            tool_change_mode = mode,
            answer = function(r)
              systems[#systems + 1] = r.system
              return table.remove(turns, 1) or "done"
            end,
          }
        end
        local fields = {
          model = model(),
          prompt = two(),
          tools = { tool "plain" },
          strategies = { says_after "plain" },
          log = quiet,
        }
        local agent = ah.agent(fields)
        assert(agent:run "a")
        assert.equal(SAID, systems[#systems], where)
        assert(agent:run "b")
        assert.equal(SAID, systems[#systems], where)
        assert(agent:save(path))
        assert(agent:fork():run "c")
        assert.equal(SAID, systems[#systems], where)
        fields.model = model()
        local later = assert(ah.load(path, fields))
        assert(later:run "d")
        assert.equal(SAID, systems[#systems], where)
        assert.equal("agent scripted/script, 4 tools", tostring(later):match "^[^,]*, %d+ tools")
        sound.check(later:transcript())
        os.remove(path)
      end
    end
  end)

  it("goes where the script says another one when it loads the conversation", function()
    local path = os.tmpname()
    local agent = ah.agent {
      model = ah.scripted { call "plain", "done" },
      system = "First.",
      tools = { tool "plain" },
      strategies = { says_after "plain" },
      log = quiet,
    }
    assert(agent:run "a")
    assert(agent:save(path))
    for given, wanted in pairs { ["First."] = SAID, ["Second."] = "Second." } do
      local system
      local later = assert(ah.load(path, {
        model = ah.scripted {
          answer = function(r)
            system = r.system
            return "done"
          end,
        },
        system = given,
        log = quiet,
      }))
      assert(later:run "b")
      assert.equal(wanted, system)
    end
    os.remove(path)
  end)
end)

-- Random trees, random sequences of reads, injections, removals, saves, loads, forks and renders:
-- the model's tools equal the replay, breaks of the prefix are reported, and transcripts are sound.
describe("random disclosure", function()
  local random = math.random

  local function make_tree(depth, counter)
    local children = {}
    for i = 1, random(0, depth > 2 and 0 or 3) do
      children[i] = make_tree(depth + 1, counter)
    end
    counter.n = counter.n + 1
    local n = counter.n
    local tools = {}
    for i = 1, random(0, 2) do
      tools[i] = tool(("s%d_%d"):format(n, i))
    end
    return ah.section {
      key = "k" .. n,
      title = random() < 0.5 and "Title" or nil,
      template = "Text " .. n,
      summary = "Summary " .. n,
      tools = tools,
      enabled = random() < 0.9,
      visibility = random() < 0.6 and "summary" or "full",
      table.unpack(children),
    }
  end

  local function paths_of(section, prefix, list)
    local path = prefix .. section.key
    list[#list + 1] = path
    for _, child in ipairs(section.children) do
      paths_of(child, path .. ".", list)
    end
    return list
  end

  -- Replays a transcript; returns its tools as a set.
  local function replay(entries)
    local live = {}
    for _, e in ipairs(entries) do
      for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
        live[t.name] = true
      end
      for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
        live[name] = nil
      end
    end
    return live
  end

  local function extends(long, short)
    for i, e in ipairs(short.entries) do
      if ah.json.encode(e) ~= ah.json.encode(long.entries[i] or ah.null) then
        return false
      end
    end
    return long.system == short.system
      and (#short.tools == #long.tools)
      and ah.json.encode(long.tools) == ah.json.encode(short.tools)
  end

  local MODES = { "append", "inline", "additional_tools", "search_pair", "dispatcher", "restart" }

  local function one(seed)
    math.randomseed(seed)
    local counter, sections, paths = { n = 0 }, {}, {}
    for i = 1, random(1, 3) do
      sections[i] = make_tree(1, counter)
      paths_of(sections[i], "", paths)
    end
    local prompt = ah.prompt(sections)
    local mode, requests, breaks, extra = MODES[random(#MODES)], {}, 0, 0
    local turns
    local function model()
      return ah.scripted {
        tool_change_mode = mode,
        answer = function(r)
          requests[#requests + 1] = r
          requests[#requests].broke = breaks
          return table.remove(turns, 1) or "done"
        end,
      }
    end
    local fields = {
      model = model(),
      prompt = prompt,
      log = quiet,
      max_tools = 1000,
      loop_detector = false,
      max_restarts = 1000,
      on = {
        cache_break = function()
          breaks = breaks + 1
        end,
      },
    }
    local agent = ah.agent(fields)
    local path = os.tmpname()
    for _ = 1, random(2, 5) do
      turns = {}
      for i = 1, random(1, 3) do
        turns[i] = read(random() < 0.1 and "none" or paths[random(#paths)])
      end
      local what = random(6)
      if what == 1 then
        extra = extra + 1
        agent:add_tools(tool("extra" .. extra))
      elseif what == 2 then
        agent:remove_tools("extra" .. random(3))
      elseif what == 3 then
        agent = agent:fork()
        requests[#requests + 1] = false
      elseif what == 4 then
        assert(agent:save(path))
        local tools = {}
        for i = 1, extra do
          tools[i] = replay(sound.entries(agent:transcript()))["extra" .. i] and tool("extra" .. i)
            or nil
        end
        local given = {}
        for _, t in pairs(tools) do
          given[#given + 1] = t
        end
        local again = { tools = given }
        for k, v in pairs(fields) do
          again[k] = v
        end
        again.model = model()
        agent = assert(ah.load(path, again))
        requests[#requests + 1] = false
      end
      assert(agent:run "x")
      local entries = sound.check(agent:transcript())
      local live, count = replay(entries), 0
      for _ in pairs(live) do
        count = count + 1
      end
      assert.equal(("%d tools"):format(count), tostring(agent):match("%d+ tools"))
    end
    os.remove(path)
    for i = 2, #requests do
      local a, b = requests[i - 1], requests[i]
      if a and b and a.broke == b.broke then
        assert(
          extends(b, a),
          ("seed %d, mode %s: request %d broke the prefix untold"):format(seed, mode, i)
        )
      end
    end
  end

  it("keeps history sound, tools in step with the replay and the prefix unbroken", function()
    local first = tonumber(os.getenv "AGENTHOST_SEED") or 1
    for seed = first, first + (tonumber(os.getenv "AGENTHOST_ROUNDS") or 60) do
      one(seed)
    end
  end)
end)

-- Sessions that others change while a conversation is at work. Every section that is open for the
-- model has its tools, whoever opened or closed sections, and no text of a section is shown without
-- its tools. AGENTHOST_ROUNDS is the number of conversations, AGENTHOST_SEED the first seed.
describe("random disclosure in a session that others change", function()
  local MODES = { "append", "inline", "reference", "search_pair", "dispatcher", "restart" }
  local random

  local function make(depth, known, prefix)
    local n = #known + 1
    local path = prefix .. "k" .. n
    local own, children = {}, {}
    known[n] = { path = path, tools = own }
    for i = 1, random(0, 2) do
      own[i] = tool(("s%d_%d"):format(n, i))
    end
    for i = 1, random(0, depth > 2 and 0 or 2) do
      children[i] = make(depth + 1, known, path .. ".")
    end
    return ah.section {
      key = "k" .. n,
      template = ("Text %d."):format(n),
      summary = ("Summary %d."):format(n),
      tools = own,
      visibility = random(10) <= 7 and "summary" or "full",
      table.unpack(children),
    }
  end

  local function any(known)
    return known[random(#known)].path
  end

  local function some(known)
    local list = {}
    for _ = 1, random(3) do
      list[any(known)] = random(4) == 1 and "summary" or "full"
    end
    return list
  end

  -- Makes a tool that changes open sections: itself, through another conversation, or by a request.
  local function meddler(known, prompt)
    return ah.tool {
      name = "meddle",
      description = "M.",
      handler = function(_, ctx)
        local how = random(4)
        if how == 1 then
          for path, visibility in pairs(some(known)) do
            ctx.session:dispatch(ah.set_visibility_override {
              path = path,
              visibility = visibility,
            })
          end
        elseif how == 2 then
          local inner = { model = ah.scripted { read(any(known)), "read" }, log = quiet, "go" }
          inner.session, inner.prompt = ctx.session, prompt
          assert(ah.run(inner))
        elseif how == 3 then
          error(ah.error {
            code = "visibility_expansion_required",
            message = "more",
            requested_overrides = some(known),
          })
        else
          error "and nothing of it stays"
        end
        return "done"
      end,
    }
  end

  -- Goes through the entries: returns all tools that were ever offered; asserts that each result of
  -- read_section is true.
  local function judge(entries, known, where)
    local live, ever, keys, said = {}, {}, {}, {}
    local function check_said()
      for _, path in ipairs(said) do
        for _, s in ipairs(known) do
          for _, t in ipairs(s.path == path and s.tools or {}) do
            local words = "%s: %s is said to be open without %s"
            assert(live[t.name], words:format(where, path, t.name))
          end
        end
      end
      said = {}
    end
    for _, e in ipairs(entries) do
      if e.type == "assistant" or e.type == "user" then
        check_said()
      end
      for _, c in ipairs(e.type == "assistant" and e.tool_calls or {}) do
        keys[c.id] = ah.json.decode(c.arguments).section_key
      end
      if e.type == "tool_result" and e.content:find("^Section is already expanded") then
        said[#said + 1] = keys[e.id]
      end
      for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
        live[t.name], ever[t.name] = true, true
      end
      for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
        live[name] = nil
      end
    end
    check_said()
    return ever
  end

  local function check_request(request, entries, known, where)
    local ever = judge(entries, known, where)
    for n, s in ipairs(known) do
      for _, t in ipairs(request.system:find(("Text %d."):format(n), 1, true) and s.tools or {}) do
        local words = "%s: the text of %s stands there without %s"
        assert(ever[t.name], words:format(where, s.path, t.name))
      end
    end
  end

  local function one(seed)
    local state = seed
    random = function(a, b) -- handlers draw, too, so the generator is our own
      state = (state * 1103515245 + 12345) % 2147483648
      local low, high = b and a or 1, b or a
      return low + (state >> 8) % (high - low + 1)
    end
    local known, sections = {}, {}
    for i = 1, random(3) do
      sections[i] = make(1, known, "")
    end
    local prompt, mode = ah.prompt(sections), MODES[random(#MODES)]
    local where = ("seed %d, %s"):format(seed, mode)
    local agent, turns
    local path = os.tmpname()
    local function model()
      return ah.scripted {
        tool_change_mode = mode,
        answer = function(r)
          if agent then
            check_request(r, sound.entries(agent:transcript()), known, where)
          end
          return table.remove(turns, 1) or "done"
        end,
      }
    end
    local fields = {
      model = model(),
      prompt = prompt,
      session = ah.session(),
      tools = { meddler(known, prompt) },
      log = quiet,
      loop_detector = false,
      max_iterations = 100,
      max_restarts = 100,
      on_conflict = random(2) == 1 and "error" or nil,
    }
    agent = ah.agent(fields)
    for _ = 1, random(2, 4) do
      turns = {}
      for i = 1, random(2, 5) do
        turns[i] = random(3) == 1 and call "meddle" or read(any(known))
      end
      local what = random(4)
      if what == 1 then
        agent = agent:fork()
      elseif what == 2 then
        assert(agent:save(path))
        fields.model, fields.session = model(), nil
        agent = assert(ah.load(path, fields))
      end
      local reply, err = agent:run "x" -- without summarized sections there is no read_section
      assert(reply or err.code == "tool_not_found", where .. ": " .. tostring(err))
      judge(sound.check(agent:transcript()), known, where)
    end
    os.remove(path)
  end

  it("would see a section that is said to be open without its tools", function()
    local entries = {
      { type = "assistant", tool_calls = { { id = "1", arguments = '{"section_key":"k1"}' } } },
      { type = "tool_result", id = "1", content = "Section is already expanded.\n\nText 1." },
    }
    local known = { { path = "k1", tools = { tool "s1_1" } } }
    assert.has_error(function()
      judge(entries, known, "planted")
    end)
    table.insert(entries, 1, { type = "tools_added", tools = { { name = "s1_1" } } })
    judge(entries, known, "sound")
    assert.has_error(function()
      local request = { system = "Text 1." }
      check_request(request, { table.unpack(entries, 2, 2) }, known, "planted")
    end)
  end)

  it("says that a section is open only where its tools are, and shows none without", function()
    local first = tonumber(os.getenv "AGENTHOST_SEED") or 1
    for seed = first, first + (tonumber(os.getenv "AGENTHOST_ROUNDS") or 150) do
      one(seed)
    end
  end)
end)

describe("examples/research.lua", function()
  local function example(question)
    local binary = (os.getenv "AGENTHOST_BUILD" or "./build") .. "/agenthost"
    local command = ("unset AGENTHOST_MODEL; %s examples/research.lua %s 2>&1"):format(
      binary,
      question
    )
    local pipe <close> = assert(io.popen(command))
    return pipe:read "a"
  end

  it("comes to the same answer with a dynamic and with a restarting adapter", function()
    local text = example ""
    local answer =
      "Galilei, Sidereus Nuncius: Io, Europa, Ganymede, Callisto [galilei1610]\n  4 answers, "
        .. "context open, tools: search, cite\n"
    for _, mode in ipairs { "inline: ", "restart: " } do
      assert.truthy(text:find(mode .. answer, 1, true), text)
    end
    assert.equal(1, select(2, text:gsub("cache break: restart", "")))
    assert.equal(2, select(2, text:gsub("new tools: search, cite", "")))
    assert.truthy(example("'Pluto?'"):find("nothing on Pluto", 1, true))
  end)
end)

describe("ah.capabilities", function()
  it("tells what the adapter of a model can do", function()
    assert.same(
      {
        provider = "demo",
        model = "echo",
        supports_dynamic_tools = true,
        tool_change_mode = "append",
        native_output = false,
        images = true,
        reasoning_back = false,
        tool_search = "here",
        strict_tools = false,
      },
      ah.capabilities "demo/echo"
    )
    local restarting = ah.scripted { tool_change_mode = "restart", "x" }
    assert.is_false(ah.capabilities(restarting).supports_dynamic_tools)
    assert.equal("restart", ah.capabilities(restarting).tool_change_mode)
    for _, wrong in ipairs { "nobody/x", "demo/none", 7 } do
      assert.is_false((pcall(ah.capabilities, wrong)))
    end
  end)
end)
