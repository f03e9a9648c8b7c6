-- The document on dynamic tool registration (seed 000), statement by statement: read_section,
-- what an adapter declares, injection, restart, overrides of visibility, events and counters.
local ah = require "agenthost"
local D = require "support.documents"
local sound = require "support.sound"

local tool, read, call, calls, turn = D.tool, D.read, D.call, D.calls, D.turn

local SUFFIX =
  '---\n[This section is summarized. To view full content, call `read_section` with key "%s".]'

-- The document's usage example: tools in a summarized section. `more` are children, or other
-- fields.
local function research(more)
  local fields = {
    title = "Context",
    key = "context",
    template = "Detailed research context...",
    summary = "Research context available.",
    visibility = "summary",
    tools = { tool "search", tool "cite" },
  }
  for k, v in pairs(more or {}) do
    fields[k] = v
  end
  return ah.prompt { ns = "example", key = "research", sections = { ah.section(fields) } }
end

local function summarized(key, tools, more)
  local fields =
    { key = key, template = "All of " .. key, summary = "Sum of " .. key, visibility = "summary",
      tools = tools }
  for k, v in pairs(more or {}) do
    fields[k] = v
  end
  return ah.section(fields)
end

local DYNAMIC = {
  "append", "inline", "reference", "additional_tools", "search_pair", "list_changed",
}

describe("the capability of an adapter", function()
  it("is declared as the document's table has it", function()
    local matrix = {
      ["openai/gpt-4o"] = true,
      ["litellm_proxy/gpt-4o"] = true,
      ["anthropic/claude-opus-4-8"] = true,
      ["claude_agent_sdk/claude-opus-4-8"] = false,
    }
    for name, dynamic in pairs(matrix) do
      local can = assert(ah.capabilities(name, { api_key = "k", base_url = "http://127.0.0.1:1" }))
      assert.equal(dynamic, can.supports_dynamic_tools, name)
    end
  end)

  it("is false where an adapter declares nothing", function()
    local adapter = ah.adapter { name = "acme/plain", answer = function() return "Hi." end }
    assert.is_false(ah.capabilities(adapter).supports_dynamic_tools)
    assert.equal("restart", ah.capabilities(adapter).tool_change_mode)
  end)

  it("is `restart` or it is dynamic, for every mode", function()
    for _, mode in ipairs(DYNAMIC) do
      assert.is_true(ah.capabilities(D.model({}, mode)).supports_dynamic_tools, mode)
    end
    assert.is_false(ah.capabilities(D.model({}, "restart")).supports_dynamic_tools)
  end)

  it("is a property of adapter objects: `if adapter.supports_dynamic_tools then`", function()
    assert.is_true(ah.scripted({ "Hi." }).supports_dynamic_tools)
    assert.is_false(ah.scripted({ tool_change_mode = "restart", "Hi." }).supports_dynamic_tools)
    assert.is_false(ah.adapter({ name = "a/b", answer = function() end }).supports_dynamic_tools)
    local inline = ah.adapter { name = "a/b", answer = function() end, tool_change_mode = "inline" }
    assert.is_true(inline.supports_dynamic_tools)
    assert.equal("inline", inline.tool_change_mode)
  end)

  it("is what a handler finds in its context", function()
    for mode, dynamic in pairs { append = true, restart = false } do
      local found
      local look = tool("look", { handler = function(_, ctx)
        found = ctx.adapter.supports_dynamic_tools
      end })
      D.run({ calls "look", "done" }, { mode = mode, tools = { look } })
      assert.equal(dynamic, found)
    end
  end)

  it("is asked for under other spellings with a hint", function()
    local err = D.raised(ah.adapter, { name = "a/b", answer = function() end,
      supports_dynamic_tools = true })
    assert.matches("supports_dynamic_tools", err.message)
    assert.matches("tool_change_mode", err.message)
  end)
end)

describe("the tool read_section", function()
  it("is the one tool of disclosure; there is no open_sections", function()
    local s = D.run({ calls("open_sections", { section_keys = { "context" } }), "done" },
      { prompt = research() })
    assert.equal("read_section", s:offered(1))
    assert.equal("Tool 'open_sections' not found. Available tools: [read_section]. "
      .. "Did you mean 'read_section'?",
      (s:results(1):gsub("; did you mean", ". Did you mean")))
    assert.same({ false }, s:successes())
  end)

  it("is described as the document has it, with one required section_key", function()
    local s = D.run({ "done" }, { prompt = research() })
    local declared = D.declared(s.requests[1], "read_section")
    assert.equal("Read the full content of a summarized section.", declared.description)
    assert.same({ "section_key" }, declared.parameters.required)
    assert.equal("string", declared.parameters.properties.section_key.type)
  end)

  it("is offered behind all other tools, and only where something is summarized", function()
    local s = D.run({ "done" }, { prompt = research(), tools = { tool "first" } })
    assert.equal("first read_section", s:offered(1))
    s = D.run({ calls("read_section", { section_key = "context" }), "done" },
      { prompt = research { visibility = "full" } })
    assert.equal("search cite", s:offered(1))
    assert.matches("^Tool 'read_section' not found", s:results(1))
  end)

  it("answers with the message and the content", function()
    local s = D.run({ read "context", "done" }, { prompt = research { tools = {} } })
    assert.equal("Content of section 'context':\n\n## Context\n\nDetailed research context...",
      s:results(1))
  end)

  it("has the value { content, expanded_tools } of the document", function()
    local seen = {}
    D.run({ read("context", "plain"), "done" }, {
      prompt = ah.prompt { research():section "context", summarized "plain" },
      strategies = { function(m) seen[#seen + 1] = m.value end },
    })
    assert.same({ "search", "cite" }, seen[1].expanded_tools)
    assert.equal("## Context\n\nDetailed research context...", seen[1].content)
    assert.same({}, seen[2].expanded_tools)
    assert.equal("All of plain", seen[2].content)
  end)

  it("says so of an unknown key, and goes on", function()
    local s = D.run({ read("none", "context.none", "Context", "", " context", "höhle", "context."),
      "done" },
      { prompt = research() })
    for i, key in ipairs { "none", "context.none", "Context", "", " context", "höhle",
      "context." } do
      assert.equal("Unknown section key: '" .. key .. "'", s:results(i))
      assert.is_false(s:successes()[i])
    end
    assert.equal("done", s.reply.text)
    assert.same({}, s:of "tools_injected")
  end)

  it("refuses arguments that are none", function()
    local s = D.run({
      turn(call "read_section", call("read_section", { section_key = 7 }),
        call("read_section", { section_key = ah.null }), call("read_section", { key = "context" }),
        call("read_section", "{"), call("read_section", { section_key = "context", more = 1 })),
      "done",
    }, { prompt = research() })
    assert.same({ false, false, false, false, false, false }, s:successes())
    assert.same({}, s:of "tools_injected")
  end)

  it("says that a section is expanded, with its content and without its tools", function()
    local s = D.run({ read("context", "context"), read "context", "done" }, { prompt = research() })
    for _, i in ipairs { 2, 3 } do
      assert.equal("Section is already expanded.\n\n## Context\n\nDetailed research context...",
        s:results(i))
    end
    assert.same({ true, true, true }, s:successes())
    assert.same({ "search", "cite" }, s.reply.injected_tools)
    assert.equal(1, #s:of "tools_injected")
  end)

  it("says so of a section that was never summarized, too", function()
    local s = D.run({ read "open", "done" },
      { prompt = ah.prompt { ah.section { key = "open", template = "O" }, summarized "shut" } })
    assert.equal("Section is already expanded.\n\nO", s:results(1))
  end)

  it("reads a section without tools again and again; nothing is opened", function()
    for _, mode in ipairs { "append", "restart" } do
      local session = ah.session()
      local s = D.run({ read "plain", read "plain", "done" },
        { mode = mode, session = session, prompt = ah.prompt { summarized "plain" } })
      assert.same({ "Content of section 'plain':\n\nAll of plain",
        "Content of section 'plain':\n\nAll of plain" },
        s:results())
      assert.equal(0, #session.visibility_overrides)
      assert.same({}, s:of "cache_break")
      assert.same({}, s:of "tools_injected")
      assert.equal(s.requests[1].system, s.requests[3].system)
    end
  end)

  it("renders with the parameters of the run", function()
    local s = D.run({ read "papers", "done" }, {
      params = { subject = "möons" },
      prompt = ah.prompt { summarized("papers", {}, { params = { subject = "string" },
        template = "On ${subject}.", summary = "About ${subject}." }) },
    })
    assert.matches("About möons.", s.requests[1].system, 1, true)
    assert.equal("Content of section 'papers':\n\nOn möons.", s:results(1))
  end)

  it("cannot be declared by anybody else", function()
    local function in_section()
      return ah.prompt { summarized("a", { tool "read_section" }) }
    end
    local function beside()
      return ah.run { model = D.model {}, prompt = research(), tools = { tool "read_section" },
        "Go." }
    end
    assert.equal("prompt_validation", D.raised(in_section).code)
    assert.equal("prompt_validation", D.raised(beside).code)
  end)

  it("does not reach what is disabled, nor what is below it", function()
    local off = ah.section { key = "off", template = "X", enabled = false,
      summarized("in", { tool "x" }) }
    local s = D.run({ read("off", "off.in"), "done" },
      { prompt = ah.prompt { off, summarized "a" } })
    assert.same({ "Unknown section key: 'off'", "Unknown section key: 'off.in'" }, s:results())
  end)

  it("stays to the end once it was offered", function()
    local s = D.run({ read "context", "done" }, { prompt = research() })
    assert.equal("read_section search cite", s:offered(2))
  end)
end)

describe("the suffix of a summary", function()
  it("is the document's, with tools and without", function()
    local rendered = ah.prompt { research():section "context", summarized "plain" }:render()
    assert.equal("## Context\n\nResearch context available.\n\n" .. SUFFIX:format "context"
      .. "\n\nSum of plain\n\n" .. SUFFIX:format "plain", rendered.text)
  end)

  it("names the path of a nested section", function()
    local rendered = ah.prompt { ah.section { key = "guide",
      summarized("deep", { tool "d" }) } }:render()
    assert.equal("Sum of deep\n\n" .. SUFFIX:format "guide.deep", rendered.text)
    assert.same({ "guide.deep" }, rendered.summarized)
  end)

  it("tells the model nothing of tools", function()
    local s = D.run({ "done" }, { prompt = research { tools = { tool "find_paper" } } })
    assert.falsy(s.requests[1].system:find "find_paper")
    assert.falsy(s.requests[1].system:find "tool")
    assert.same({}, research():render().tools)
  end)
end)

describe("injection", function()
  for _, mode in ipairs(DYNAMIC) do
    it("adds the tools in mid-conversation, by " .. mode, function()
      local s = D.run({ read "context", calls "search", "done" },
        { mode = mode, prompt = research() })
      assert.equal("done", s.reply.text)
      assert.equal(3, #s.requests)
      assert.equal("search", s:results(2))
      assert.same({ "search", "cite" }, s.reply.injected_tools)
      assert.equal(s.requests[1].system, s.requests[2].system)
      for _, e in ipairs(s:of "cache_break") do
        assert.equal("tools_changed", e.reason)
      end
      sound.check(s.reply:transcript())
    end)
  end

  it("keeps the messages and asks the model no more than is needed", function()
    local s = D.run({ read "context", "done" }, { mode = "inline", prompt = research() })
    assert.equal(2, s.reply.iterations)
    for i, e in ipairs(s.requests[1].entries) do
      assert.same(e, s.requests[2].entries[i])
    end
    assert.same({ "system", "user", "assistant", "tool", "assistant" }, (function()
      local roles = {}
      for i, m in ipairs(s.reply.messages) do
        roles[i] = m.role
      end
      return roles
    end)())
  end)

  it("declares the new tools in full, at the end of the list", function()
    local search = tool("search", { params = { text = "string: what" },
      description = "Search it." })
    local s = D.run({ read "context", "done" }, { mode = "append", tools = { tool "a" },
      prompt = research { tools = { search } } })
    assert.equal("a read_section search", s:offered(2))
    assert.same(search.spec.parameters, D.declared(s.requests[2], "search").parameters)
  end)

  it("collects tools of the whole section tree, in its order", function()
    local s = D.run({ read "context", "done" }, { prompt = research { children = {
      ah.section { key = "one", tools = { tool "t1" },
        ah.section { key = "two", tools = { tool "t2" } } },
      ah.section { key = "off", tools = { tool "t3" }, enabled = false },
    } } })
    assert.same({ "search", "cite", "t1", "t2" }, s.reply.injected_tools)
  end)

  it("opens a section whose tools are all below it", function()
    local session = ah.session()
    local s = D.run({ read "context", "done" }, { session = session, prompt = research { tools = {},
      children = { ah.section { key = "one", template = "One", tools = { tool "t1" } } } } })
    assert.same({ "t1" }, s.reply.injected_tools)
    local paths = {}
    for _, override in ipairs(session.visibility_overrides:all()) do
      paths[override.path] = override.visibility
    end
    assert.equal("full", paths.context)
  end)

  it("leaves what is summarized below it with its suffix, until it is read", function()
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ read "context", read "context.deep", calls "d", "done" }, { mode = mode,
        prompt = research { children = { summarized("deep", { tool "d" }) } } })
      assert.truthy(s:results(1):find(SUFFIX:format "context.deep", 1, true))
      assert.equal("read_section search cite", s:offered(2))
      assert.equal("read_section search cite d", s:offered(3))
      assert.equal("d", s:results(3))
    end
  end)

  it("reads a nested section though the one around it is still a summary", function()
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ read "context.deep", calls "d", "done" }, { mode = mode,
        prompt = research { children = { summarized("deep", { tool "d" }) } } })
      assert.matches("^Content of section 'context.deep':", s:results(1))
      assert.equal("done", s.reply.text)
    end
  end)

  it("opens several sections in one answer, each once", function()
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ read("a", "b", "a"), turn(call "ta", call "tb"), "done" }, { mode = mode,
        prompt = ah.prompt { summarized("a", { tool "ta" }), summarized("b", { tool "tb" }) } })
      assert.same({ "ta", "tb" }, s.reply.injected_tools)
      assert.matches("^Section is already expanded%.", s:results(3))
      assert.same({ "ta", "tb" }, { s:results(4), s:results(5) })
      assert.equal(mode == "restart" and 1 or 0, #(function()
        local list = {}
        for _, e in ipairs(s:of "cache_break") do
          list[#list + 1] = e.reason == "restart" and e or nil
        end
        return list
      end)())
    end
  end)

  it("lets a later call of the same answer use what came", function()
    local s = D.run({ turn(call("read_section", { section_key = "context" }), call "cite"),
      "done" },
      { mode = "append", prompt = research() })
    assert.equal("cite", s:results(2))
  end)

  it("takes a call in front of the reading as one of an unknown tool", function()
    local s = D.run({ turn(call "cite", call("read_section", { section_key = "context" })),
      calls "cite", "done" },
      { prompt = research() })
    assert.matches("^Tool 'cite' not found", s:results(1))
    assert.equal("cite", s:results(3))
  end)

  it("does not offer what was not read", function()
    local s = D.run({ calls "search", "done" }, { prompt = research() })
    assert.matches("^Tool 'search' not found. Available tools: %[read_section%]", s:results(1))
  end)

  it("skips a duplicate with the document's warning, and takes the others", function()
    local first = tool("first", { handler = function(_, ctx) ctx:add_tools(tool "search") end })
    for _, mode in ipairs { "append", "restart" } do
      local s = D.run({ calls "first", read "context", calls "search", "done" },
        { mode = mode, prompt = research(), tools = { first } })
      local warning = s:of("warning")[1]
      assert.equal("Skipping duplicate tool during injection", warning.message)
      assert.equal("search", warning.tool_name)
      assert.same({ "search", "cite" }, s.reply.injected_tools)
      assert.equal("done", s.reply.text)
    end
  end)

  it("is undone when a policy or the tool limit leaves nothing to add", function()
    local s = D.run({ read "context", "done" }, { prompt = research(), max_tools = 2 })
    assert.equal("done", s.reply.text)
    assert.same({ "search" }, s.reply.injected_tools)
  end)
end)

describe("the event of an injection", function()
  it("has the names, the section and the time", function()
    local s = D.run({ read "context", "done" }, { prompt = research() })
    local e = s:of("tools_injected")[1]
    assert.same({ "search", "cite" }, e.tool_names)
    assert.equal("context", e.section_key)
    assert.is_true(e.timestamp > 1600000000)
    assert.equal("read_section", e.strategy)
  end)

  it("has the dotted path of a nested section, one event a section", function()
    local s = D.run({ read("a", "a.b"), "done" }, { prompt = ah.prompt {
      ah.section { key = "a", template = "A", tools = { tool "ta" }, summary = "S",
        visibility = "summary",
        summarized("b", { tool "tb" }) } } })
    local keys = {}
    for i, e in ipairs(s:of "tools_injected") do
      keys[i] = e.section_key .. "=" .. table.concat(e.tool_names, " ")
    end
    assert.same({ "a=ta", "a.b=tb" }, keys)
  end)

  it("is logged with section, count and names", function()
    local s = D.run({ read "context", "done" }, { prompt = research() })
    assert.truthy(s:log():find('info Injected tools from section expansion: section_key=context '
      .. 'tool_count=2 tool_names=["search","cite"]', 1, true), s:log())
  end)
end)

describe("the counters of disclosure", function()
  it("count injected tools and dynamic expansions", function()
    local grown = D.grown(function()
      D.run({ read "context", "done" }, { prompt = research() })
    end)
    assert.equal(2, grown["tools.injected"])
    assert.equal(1, grown["disclosure.dynamic"])
    assert.equal(0, grown["disclosure.restarts"])
  end)

  it("count restarts instead where the adapter is no dynamic one", function()
    local grown = D.grown(function()
      D.run({ read "context", "done" }, { mode = "restart", prompt = research() })
    end)
    assert.equal(0, grown["disclosure.dynamic"])
    assert.equal(1, grown["disclosure.restarts"])
  end)

  it("count nothing for sections without tools, unknown and expanded ones", function()
    local grown = D.grown(function()
      D.run({ read("plain", "none"), "done" },
        { mode = "restart", prompt = ah.prompt { summarized "plain" } })
    end)
    assert.same({ 0, 0, 0 },
      { grown["disclosure.dynamic"], grown["disclosure.restarts"], grown["tools.injected"] })
  end)
end)

describe("restart-based expansion", function()
  it("goes on with the transcript and the section in the prompt", function()
    local s = D.run({ read "context", calls "search", "done" },
      { mode = "restart", prompt = research() })
    assert.equal("done", s.reply.text)
    assert.equal("## Context\n\nDetailed research context...", s.requests[2].system)
    assert.equal("read_section search cite", s:offered(2))
    assert.equal("search", s:results(2))
    assert.equal("restart", s:of("cache_break")[1].reason)
    sound.check(s.reply:transcript())
  end)

  it("gives what the dynamic way gives: text, calls, tools, results", function()
    local function outcome(mode)
      local s = D.run({ read "context", turn(call "search", call "cite"), read "context", "done" },
        { mode = mode, prompt = research() })
      return { s.reply.text, s.reply.tool_calls, s.reply.injected_tools, s.reply.iterations,
        s:results(2), s:results(3), (s:results(4):gsub("\n.*", "")) }
    end
    assert.same(outcome "inline", outcome "restart")
  end)

  it("ends with visibility_expansion_required and its fields where no restart is left", function()
    local s = D.run({ read "context" }, { mode = "restart", max_restarts = 0, prompt = research() })
    assert.equal("visibility_expansion_required", s.err.code)
    assert.matches("^Section expansion requires restart", s.err.message)
    assert.same({ context = "full" }, s.err.requested_overrides)
    assert.equal("Adapter does not support dynamic tools", s.err.reason)
    assert.same({ "context" }, s.err.section_keys)
    sound.check(s.err.reply:transcript())
  end)

  it("is no iteration of its own", function()
    local s = D.run({ read "context", "done" },
      { mode = "restart", prompt = research(), max_iterations = 2 })
    assert.equal("done", s.reply.text)
    assert.equal(2, s.reply.iterations)
  end)
end)

describe("overrides of visibility", function()
  it("are in the session after an expansion, in either way", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local session = ah.session()
      D.run({ read "context", "done" }, { mode = mode, session = session, prompt = research() })
      assert.equal(1, #session.visibility_overrides)
      assert.same({ path = "context", visibility = "full" }, session.visibility_overrides:latest())
    end
  end)

  it("open a section at once for a run that begins with them", function()
    local session = ah.session()
    session:dispatch(ah.set_visibility_override { path = "context", visibility = "full" })
    local s = D.run({ calls "search", "done" }, { session = session, prompt = research() })
    assert.equal("search", s:results(1))
    assert.equal("## Context\n\nDetailed research context...", s.requests[1].system)
  end)

  it("close a section that is open by itself", function()
    local session = ah.session()
    session:dispatch(ah.set_visibility_override { path = "context", visibility = "summary" })
    local s = D.run({ "done" }, { session = session, prompt = research { visibility = "full" } })
    assert.equal("read_section", s:offered(1))
  end)

  it("refuse what is neither full nor summary", function()
    for _, bad in ipairs { "open", "FULL", "", 1, ah.null } do
      assert.is_false(pcall(ah.set_visibility_override, { path = "context", visibility = bad }))
    end
    assert.is_false(pcall(ah.set_visibility_override, { visibility = "full" }))
  end)

  it("of a failed call are dropped", function()
    local session = ah.session()
    local fails = tool("fails", { handler = function(_, ctx)
      ctx.session:dispatch(ah.set_visibility_override { path = "context", visibility = "full" })
      error "no"
    end })
    D.run({ calls "fails", "done" }, { session = session, prompt = research(), tools = { fails } })
    assert.equal(0, #session.visibility_overrides)
  end)

  it("hold for the agent's next run, for a fork and for what was saved", function()
    for _, mode in ipairs { "append", "restart" } do
      local turns = { read "context", "one" }
      local agent, _, fields = D.agent(turns, { mode = mode, prompt = research() })
      assert(agent:run "First.")
      local path = os.tmpname()
      assert(agent:save(path))
      local loaded = assert(ah.load(path, { model = fields.model, prompt = research(),
        log = D.nothing }))
      os.remove(path)
      for _, a in ipairs { agent, agent:fork(), loaded } do
        turns[1], turns[2] = calls "cite", "two"
        local reply = assert(a:run "Go on.")
        assert.equal("cite", reply.messages[#reply.messages - 1].content)
        turns[1], turns[2] = read "context", "three"
        reply = assert(a:run "Again.")
        assert.matches("^Section is already expanded%.",
          reply.messages[#reply.messages - 1].content)
      end
    end
  end)

  it("of nobody's section mean nothing", function()
    local session = ah.session()
    session:dispatch(ah.set_visibility_override { path = "nowhere", visibility = "full" })
    local s = D.run({ "done" }, { session = session, prompt = research() })
    assert.equal("read_section", s:offered(1))
  end)
end)

describe("a section that is open in the session alone", function()
  it("is opened here, and gives its tools, when a nested run reads it", function()
    for _, mode in ipairs { "append", "restart" } do
      local inner
      local nested = tool("nested", { handler = function(_, ctx)
        inner = D.run({ read "context", calls "search", "inner" },
          { mode = mode, session = ctx.session, prompt = research() })
        return inner.reply
      end })
      local outer = D.run({ read "context", calls "nested", read "context", "done" },
        { mode = mode, prompt = research(), tools = { nested } })
      assert.equal("done", outer.reply and outer.reply.text or tostring(outer.err))
      assert.equal("search", inner:results(#inner:results()))
    end
  end)

  it("is opened here when a nested run had read it first", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local nested = tool("nested", { handler = function(_, ctx)
        return D.run({ read "context", calls "search", "inner" },
          { mode = mode, session = ctx.session, prompt = research() }).reply
      end })
      local s = D.run({ calls "nested", read "context", calls "cite", "done" },
        { mode = mode, prompt = research(), tools = { nested } })
      assert.matches("^Content of section 'context':", s:results(2))
      assert.equal("cite", s:results(3))
      assert.same({ "search", "cite" }, s.reply.injected_tools)
    end
  end)

  it("is opened here when a handler had opened it", function()
    for _, mode in ipairs { "append", "restart" } do
      local open = tool("open", { handler = function(_, ctx)
        ctx.session:dispatch(ah.set_visibility_override { path = "context", visibility = "full" })
      end })
      local s = D.run({ calls "open", read "context", calls "search", "done" },
        { mode = mode, prompt = research(), tools = { open } })
      assert.matches("^Content of section 'context':", s:results(2))
      assert.equal("search", s:results(3))
    end
  end)

  it("is opened here when another agent of the session had", function()
    local session = ah.session()
    local turns = { "hello", read "context", calls "search", "done" }
    local agent = D.agent(turns, { session = session, prompt = research() })
    assert(agent:run "Hello.")
    local reply
    local other = tool("other", { handler = function()
      D.run({ read "context", "x" }, { session = session, prompt = research() })
    end })
    local s = D.run({ calls "other", read "context", calls "search", "done" },
      { session = ah.session { parent = session }, prompt = research(), tools = { other } })
    assert.truthy(s.reply)
    reply = assert(agent:run "Read it.")
    assert.equal("done", reply.text)
    assert.equal("search", reply.messages[#reply.messages - 1].content)
  end)
end)

describe("a handler that raises visibility_expansion_required", function()
  local function opener(extra)
    return tool("open", { handler = function()
      local e = { code = "visibility_expansion_required", message = "Open it.",
        requested_overrides = { context = "full" }, reason = "asked for",
          section_keys = { "context" } }
      for k, v in pairs(extra or {}) do
        e[k] = v
      end
      error(ah.error(e))
    end })
  end

  it("has its overrides stored, the section opened and the run gone on", function()
    for _, mode in ipairs { "append", "inline", "restart" } do
      local session = ah.session()
      local s = D.run({ calls "open", calls "search", "done" },
        { mode = mode, session = session, prompt = research(), tools = { opener() } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err))
      assert.equal("search", s:results(2))
      assert.same({ path = "context", visibility = "full" }, session.visibility_overrides:latest())
      sound.check(s.reply:transcript())
    end
  end)

  it("may close one as well", function()
    local session = ah.session()
    local s = D.run({ calls "open", "done" }, { mode = "restart", session = session,
      prompt = ah.prompt { research { visibility = "full" }:section "context", summarized "other" },
      tools = { opener { requested_overrides = { context = "summary" } } } })
    assert.equal("done", s.reply and s.reply.text or tostring(s.err))
    assert.equal("summary", session.visibility_overrides:latest().visibility)
  end)

  it("ends the run at max_restarts, its fields kept", function()
    local s = D.run({ calls "open" },
      { mode = "restart", max_restarts = 0, prompt = research(), tools = { opener() } })
    assert.equal("visibility_expansion_required", s.err.code)
    assert.same({ context = "full" }, s.err.requested_overrides)
    assert.same({ "context" }, s.err.section_keys)
    assert.equal("asked for", s.err.reason)
  end)
end)

describe("the 11th restart", function()
  it("ends the run, after exactly ten that are counted", function()
    local sections, turns = {}, {}
    for i = 1, 11 do
      sections[i] = summarized("s" .. i, { tool("t" .. i) })
      turns[i] = read("s" .. i)
    end
    local s
    local grown = D.grown(function()
      s = D.run(turns, { mode = "restart", table.unpack(sections) })
    end)
    assert.equal("visibility_expansion_required", s.err.code)
    assert.equal(10, grown["disclosure.restarts"])
    assert.truthy(s.err.phase)
    assert.same({ "s11" }, s.err.section_keys)
    assert.same({ s11 = "full" }, s.err.requested_overrides)
  end)
end)
