-- The session holds the open sections: slice `visibility_overrides`, event
-- `set_visibility_override`, written by read_section and by scripts. An agent's prompt is evaluated
-- again when a run of it begins.
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

local function tool(name)
  return ah.tool { name = name, description = "T.", handler = function() return name end }
end

local function context(more)
  local def = { key = "context", title = "Context", template = "All of it.", summary = "A summary.",
    visibility = "summary", tools = { tool "search" } }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.section(def)
end

local function read(key)
  return { calls = { { name = "read_section", arguments = { section_key = key } } } }
end

local function show(path, visibility)
  return ah.set_visibility_override { path = path, visibility = visibility or "full" }
end

local SUMMARY = "## Context\n\nA summary.\n\n---\n[This section is summarized. "
  .. 'To view full content, call `read_section` with key "context".]'
local FULL = "## Context\n\nAll of it."

-- Makes an agent whose model plays the turns; its requests and the breaks of its prefix are in the
-- log.
local function agent_of(fields, turns, mode)
  local log = { breaks = {}, requests = {} }
  fields.model = ah.scripted { tool_change_mode = mode, answer = function(request)
    log.requests[#log.requests + 1] = request
    log.system = request.system
    return table.remove(turns, 1) or "done"
  end }
  fields.log = quiet
  fields.on = { cache_break = function(e) log.breaks[#log.breaks + 1] = e.reason end }
  return ah.agent(fields), log
end

local function tools_of(agent)
  local live = {}
  for _, e in ipairs(sound.check(agent:transcript())) do
    for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
      live[t.name] = true
    end
    for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
      live[name] = nil
    end
  end
  local names = {}
  for name in pairs(live) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, " ")
end

local function overrides(session)
  local list = {}
  for i, o in ipairs(session.visibility_overrides:all()) do
    list[i] = o.path .. "=" .. o.visibility
  end
  return table.concat(list, " ")
end

describe("the slice visibility_overrides", function()
  it("has the same set on the dynamic path and after a restart", function()
    local children = { key = "a", template = "a", tools = { tool "a" } }
    for _, mode in ipairs { "inline", "restart" } do
      local session = ah.session()
      local agent = agent_of({ prompt = ah.prompt { context { ah.section(children) } },
        session = session }, { read "context" }, mode)
      assert(agent:run "x")
      assert.equal("context=full context.a=full", overrides(session))
      assert.equal("a read_section search", tools_of(agent))
    end
  end)

  it("is written by scripts before a run: the section is open in the first request", function()
    local session = ah.session()
    session:dispatch(show "context")
    local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session }, {})
    assert(agent:run "x")
    assert.equal(FULL, log.system)
    assert.equal("search", tools_of(agent))
  end)

  it("is heeded at the start of the next run, in both directions", function()
    local session = ah.session()
    local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session }, {})
    assert(agent:run "1")
    assert.equal(SUMMARY, log.system)
    session:dispatch(show "context")
    assert(agent:run "2")
    assert.equal(FULL, log.system)
    assert.equal("read_section search", tools_of(agent))
    session:dispatch(show("context", "summary"))
    assert(agent:run "3")
    assert.equal(SUMMARY, log.system)
    assert.equal("read_section", tools_of(agent))
    assert.same({ "tools_changed", "prompt_changed" }, log.breaks) -- the first reason of several
    assert.equal("context=summary", overrides(session))
  end)

  it("closes what was read, and read_section opens it again", function()
    for _, mode in ipairs { "inline", "restart" } do
      local session = ah.session()
      local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session },
        { read "context" }, mode)
      assert(agent:run "1")
      local before = #log.breaks
      assert(agent:run "2")
      assert.equal(before, #log.breaks) -- nothing has changed
      session:dispatch(show("context", "summary"))
      assert(agent:run "3")
      assert.equal(SUMMARY, log.system, mode)
      assert.equal("read_section", tools_of(agent))
      assert(agent:run "4")
      agent:use(ah.scripted { tool_change_mode = mode, read "context", "again" })
      assert.equal("again", tostring(assert(agent:run "5")))
      assert.equal("read_section search", tools_of(agent))
    end
  end)

  it("refuses what is no override", function()
    assert.is_false((pcall(ah.set_visibility_override, { path = "a", visibility = "hidden" })))
    assert.is_false((pcall(ah.set_visibility_override, { visibility = "full" })))
    local session = ah.session()
    assert.is_false((pcall(session.visibility_overrides.append, session.visibility_overrides,
      { path = 7, visibility = "full" })))
    session:dispatch(show "no.such.section") -- it may belong to another prompt
    local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session }, {})
    assert(agent:run "x")
    assert.equal(SUMMARY, log.system)
  end)

  it("is told to reducers of the script; the newest counts where a path stands twice", function()
    local Seen = ah.type { name = "Seen", fields = { path = "string" } }
    local session = ah.session { types = { Seen } }
    session:reduce(Seen, ah.set_visibility_override, function(view, event)
      return view:append(Seen { path = event.value.path })
    end)
    local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session },
      { read "context" })
    assert(agent:run "x")
    assert.equal("context", session[Seen]:latest().path)
    session.visibility_overrides:append { path = "context", visibility = "summary" }
    assert(agent:run "x")
    assert.equal(SUMMARY, log.system)
  end)

  it("is left as it was where the call around the run fails", function()
    local session = ah.session()
    local inner = ah.tool { name = "inner", description = "I.", handler = function(_, ctx)
      assert(ah.run { model = ah.scripted { read "context", "read" }, session = ctx.session,
        prompt = ah.prompt { context() }, log = quiet, "go" })
      assert.equal("context=full", overrides(ctx.session))
      error "and yet"
    end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "inner" } } }, "done" },
      tools = { inner }, session = session, log = quiet, "go" })
    assert.equal("", overrides(session))
  end)
end)

-- "Section is already expanded." is about this conversation, as others may share the session.
describe("a section that is open in the session alone", function()
  local MODES = { "inline", "append", "reference", "additional_tools", "search_pair", "dispatcher",
    "restart" }

  local function prompt_of()
    return ah.prompt { context { ah.section { key = "deep", template = "Deep.", summary = "D.",
      visibility = "summary", tools = { tool "deep" } } }, context { key = "plain", tools = {} } }
  end

  local function nested(session, path)
    assert(ah.run { model = ah.scripted { read(path), "read" }, session = session,
      prompt = prompt_of(), log = quiet, "go" })
  end

  -- The ways in which a section can be opened.
  local WAYS = {
    handler = function(path, session) session:dispatch(show(path)) end,
    ["nested run"] = function(path, session) nested(session, path) end,
    ["another agent"] = function(path, session)
      local other = agent_of({ prompt = prompt_of(), session = session }, { read(path) })
      assert(other:run "go")
    end,
  }

  local function results(agent)
    local list = {}
    for _, e in ipairs(sound.check(agent:transcript())) do
      if e.type == "tool_result" then
        list[#list + 1] = e.content:match "^[^\n]*" .. (e.content:match "New tools: .*" or "")
      end
    end
    return list
  end

  local function opener(way, path)
    return ah.tool { name = "opener", description = "O.", handler = function(_, ctx)
      WAYS[way](path, ctx.session)
      return "opened"
    end }
  end

  local CONTENT = "Content of section 'context':New tools: search."
  local AGAIN = "Section is already expanded."
  local OPEN = { calls = { { name = "opener" } } }

  it("is opened where it is read, with its tools, however it came to be open", function()
    for _, mode in ipairs(MODES) do
      for way in pairs(WAYS) do
        local session = ah.session()
        local agent, log = agent_of({ prompt = prompt_of(), session = session,
          tools = { opener(way, "context") } },
          { { calls = { { name = "opener" } } }, read "context", read "context" }, mode)
        assert(agent:run "x")
        assert.same({ "opened", CONTENT, AGAIN }, results(agent), mode .. " " .. way)
        assert.equal("opener read_section search", tools_of(agent), mode .. " " .. way)
        assert.equal("context=full", overrides(session))
        local breaks = #log.breaks
        assert(agent:run "y")
        assert.equal(breaks, #log.breaks, mode .. " " .. way)
      end
    end
  end)

  it("is opened in the same answer, by the call behind the one that opened it", function()
    for _, mode in ipairs(MODES) do
      local agent = agent_of({ prompt = prompt_of(), tools = { opener("handler", "context") } },
        { { calls = { { name = "opener" },
          { name = "read_section", arguments = { section_key = "context" } },
          { name = "read_section", arguments = { section_key = "context" } } } } }, mode)
      assert(agent:run "x")
      assert.same({ "opened", CONTENT, AGAIN }, results(agent), mode)
    end
  end)

  it("is opened with what is open below it, or around it", function()
    for _, mode in ipairs(MODES) do
      local session = ah.session()
      local agent = agent_of({ prompt = prompt_of(), session = session, tools = { ah.tool {
        name = "opener", description = "O.", handler = function(_, ctx)
          ctx.session:dispatch(show "context")
          ctx.session:dispatch(show "context.deep")
          return "opened"
        end } } }, { OPEN, read "context.deep", read "context" }, mode)
      assert(agent:run "x")
      assert.same({ "opened", "Content of section 'context.deep':New tools: search, deep.", AGAIN },
        results(agent), mode)
      local open = agent_of({ prompt = prompt_of(), session = session, tools = { tool "other" } },
        { read "context" }, mode)
      assert(open:run "x")
      assert.same({ AGAIN }, results(open), mode) -- the conversation began with both of them open
    end
  end)

  it("brings only what is missing where it is open here and what is below it is not", function()
    for _, mode in ipairs(MODES) do
      local tools = { opener("handler", "context.deep") }
      local agent = agent_of({ prompt = prompt_of(), tools = tools },
        { read "context", OPEN, read "context", read "context" }, mode)
      assert(agent:run "x")
      assert.same({ CONTENT, "opened", "Content of section 'context':New tools: deep.", AGAIN },
        results(agent), mode)
    end
  end)

  it("gives its content where it has no tools", function()
    for _, mode in ipairs { "inline", "restart" } do
      local agent, log = agent_of({ prompt = prompt_of(), tools = { opener("handler", "plain") } },
        { { calls = { { name = "opener" } } }, read "plain" }, mode)
      assert(agent:run "x")
      assert.same({ "opened", "Content of section 'plain':" }, results(agent))
      assert.same({}, log.breaks)
    end
  end)

  it("ends no run by on_conflict where its tools are there already", function()
    local agent = agent_of({ prompt = prompt_of(), on_conflict = "error", tools = { ah.tool {
      name = "closer", description = "C.", handler = function(_, ctx)
        ctx.session:dispatch(show("context", "summary"))
        return "closed"
      end } } }, { read "context", { calls = { { name = "closer" } } }, read "context" })
    assert(agent:run "x")
    assert.same({ CONTENT, "closed", "Content of section 'context':" }, results(agent))
  end)

  it("brings the tools for which there was no room, once there is", function()
    local agent = agent_of({ prompt = prompt_of(), max_tools = 2, tools = { ah.tool {
      name = "leaver", description = "L.", handler = function() return "left" end } },
      strategies = { function(m)
        if m.result == "left" then
          m:remove "leaver"
        end
      end } }, { read "context", { calls = { { name = "leaver" } } }, read "context" })
    assert(agent:run "x")
    assert.same({ "Content of section 'context':", "left", CONTENT }, results(agent))
  end)

  it("does not stand in the system text of a restart for which another one was read", function()
    local agent, log = agent_of({ prompt = ah.prompt { context(),
      context { key = "other", template = "Other.", tools = { tool "o" } } },
      tools = { opener("handler", "other") } },
      { { calls = { { name = "opener" } } }, read "context", read "other" }, "restart")
    assert(agent:run "x")
    assert.truthy(log.requests[3].system:find('with key "other"', 1, true))
    assert.truthy(log.requests[4].system:find("Other.", 1, true))
    assert.equal("o opener read_section search", tools_of(agent))
  end)

  it("is open in a conversation that is loaded, and in a fork once it is run", function()
    local path = os.tmpname()
    for _, mode in ipairs(MODES) do
      local session = ah.session()
      local agent = agent_of({ prompt = prompt_of(), session = session }, {}, mode)
      assert(agent:run "x")
      session:dispatch(show "context")
      assert(agent:save(path))
      local turns = { read "context" }
      local later = assert(ah.load(path, { prompt = prompt_of(), log = quiet,
        model = ah.scripted { tool_change_mode = mode, answer = function()
          return table.remove(turns, 1) or "done"
        end } }))
      assert(later:run "y")
      assert.same({ AGAIN }, results(later), mode)
      assert.equal("read_section search", tools_of(later))
    end
    os.remove(path)
  end)
end)

describe("a conversation and its overrides", function()
  local path = os.tmpname()
  teardown(function() os.remove(path) end)

  local Item = ah.type { name = "Item", fields = { name = "string" } }

  it("are saved and loaded together, with a session of the script and without", function()
    local session = ah.session { types = { Item } }
    session:dispatch(Item { name = "bread" })
    local more = { key = "more", title = "More", tools = { tool "m" } }
    local prompt = ah.prompt { context(), context(more) }
    local agent = agent_of({ prompt = prompt, session = session }, { read "context" }, "inline")
    assert(agent:run "1")
    session:dispatch(show "more")
    assert(agent:save(path))
    for _, given in ipairs { ah.session { types = { Item } }, false } do
      local requests = {}
      local later = assert(ah.load(path, { prompt = prompt, session = given or nil, log = quiet,
        model = ah.scripted { tool_change_mode = "inline", answer = function(r)
          requests[#requests + 1] = r
          return "done"
        end } }))
      assert(later:run "2")
      assert.equal("m read_section search", tools_of(later))
      assert.truthy(requests[1].system:find("## More\n\nAll of it.", 1, true))
      assert(later:save(path .. ".2"))
      local file = assert(io.open(path .. ".2")):read "a"
      assert.same({ Item = { { name = "bread" } }, visibility_overrides = {
        { path = "context", visibility = "full" }, { path = "more", visibility = "full" } } },
        ah.json.decode(file).slices)
      os.remove(path .. ".2")
    end
  end)

  it("has a section that was closed and loaded open again with tools that work", function()
    for _, mode in ipairs { "inline", "append", "reference", "restart" } do
      for _, how in ipairs { "read", "shown" } do
        local prompt = ah.prompt { context() }
        local agent = agent_of({ prompt = prompt }, { read "context" }, mode)
        assert(agent:run "1")
        local text = agent:transcript()
        local f <close> = assert(io.open(path, "w"))
        f:write((text:gsub("}%s*$", ',"session":{"agenthost_session":1,"slices":{'
          .. '"visibility_overrides":[{"path":"context","visibility":"summary"}]}}}')))
        f:close()
        local session = ah.session()
        local turns = { how == "read" and read "context" or "ready",
          { calls = { { name = "search" } } } }
        local later = assert(ah.load(path, { prompt = prompt, session = session, log = quiet,
          on_conflict = "error", model = ah.scripted { tool_change_mode = mode, answer = function()
            return table.remove(turns, 1) or "done"
          end } }))
        assert.equal("context=summary", overrides(session))
        if how == "shown" then
          assert(later:run "2")
          session:dispatch(show "context")
        end
        local messages = assert(later:run "3").messages
        assert.equal("search", messages[#messages - 1].content, mode .. " " .. how)
        sound.check(later:transcript())
      end
    end
  end)

  it("are a fork's own", function()
    local session = ah.session()
    local agent, log = agent_of({ prompt = ah.prompt { context() }, session = session }, {})
    assert(agent:run "1")
    local other = agent:fork()
    session:dispatch(show "context")
    assert(other:run "2")
    assert.equal(SUMMARY, log.system)
    assert(agent:run "2")
    assert.equal(FULL, log.system)
  end)

  it("are taken from the transcript where the file has no session", function()
    local agent = agent_of({ prompt = ah.prompt { context() } }, { read "context" }, "inline")
    assert(agent:run "1")
    local f <close> = assert(io.open(path, "w"))
    f:write(agent:transcript())
    f:close()
    local session = ah.session()
    assert(ah.load(path, { prompt = ah.prompt { context() }, session = session, log = quiet,
      model = ah.scripted { tool_change_mode = "inline", "done" } }))
    assert.equal("context=full", overrides(session))
  end)
end)

describe("the prompt of an agent", function()
  it("is looked at again when a run begins: functions count, and nothing is said twice", function()
    local on, asked = false, 0
    local agent, log = agent_of({ prompt = ah.prompt { ah.section { key = "a", template = "A" },
      ah.section { key = "b", template = "B", tools = { tool "b" }, enabled = function()
        asked = asked + 1
        return on
      end } } }, {})
    assert(agent:run "1")
    on = true
    assert(agent:run "2")
    assert.equal("A\n\nB", log.system)
    assert.equal("b", tools_of(agent))
    local entries, before = #sound.entries(agent:transcript()), asked
    assert(agent:run "3")
    assert.equal(entries + 2, #sound.entries(agent:transcript())) -- user, assistant
    assert.equal(1, asked - before)
    on = false
    assert(agent:run "4")
    assert.equal("A", log.system)
    assert.equal("", tools_of(agent))
    assert.same({ "tools_changed", "prompt_changed" }, log.breaks)
  end)

  it("offers read_section once something is summarized, and to the end", function()
    local how = "full"
    local section = context { visibility = function() return how end }
    local agent = agent_of({ prompt = ah.prompt { section } }, {})
    assert(agent:run "1")
    assert.equal("search", tools_of(agent))
    how = "summary"
    assert(agent:run "2")
    assert.equal("read_section", tools_of(agent))
    how = "full"
    assert(agent:run "3")
    assert.equal("read_section search", tools_of(agent))
  end)

  it("keeps what a strategy made of it, and the tools that the script took away", function()
    local on = 0
    local agent, log = agent_of({ prompt = ah.prompt { ah.section { key = "a", template = "A",
      tools = { tool "a", tool "gone" }, enabled = function()
        on = on + 1
        return true
      end } }, strategies = { function(m) m:prompt "Said by a strategy." end } },
      { { calls = { { name = "a" } } } })
    assert(agent:run "1")
    agent:remove_tools "gone"
    assert(agent:run "2")
    assert.equal("Said by a strategy.", log.system)
    assert.equal("a", tools_of(agent))
    assert.is_true(on > 1)
  end)

  it("takes other parameters with agent:run", function()
    local agent, log = agent_of({ params = { who = "Ann" }, prompt = ah.prompt {
      ah.section { key = "a", template = "Greet ${who}.", params = { who = "string" } } } }, {})
    assert(agent:run "1")
    assert(agent:run("2", { params = { who = "Bob" } }))
    assert.equal("Greet Bob.", log.system)
    assert(agent:run("3", { params = { who = "Bob" } }))
    assert(agent:run "4")
    assert.same({ "prompt_changed" }, log.breaks)
    for _, wrong in ipairs { { params = { whom = "x" } }, { params = {} }, { param = {} }, 7 } do
      assert.is_false((pcall(agent.run, agent, "5", wrong)))
    end
    assert(agent:run "6")
    assert.equal("Greet Bob.", log.system)
    local plain = ah.agent { model = "demo/echo" }
    assert.is_false((pcall(plain.run, plain, "x", { params = {} })))
  end)

  it("whose function fails then fails the run, and the next one may go on", function()
    local broken
    local agent = agent_of({ prompt = ah.prompt { ah.section { key = "a", template = "A",
      enabled = function()
        return not broken or error "no more"
      end } } }, {})
    assert(agent:run "1")
    broken = true
    local reply, err = agent:run "2"
    assert.is_nil(reply)
    assert.equal("prompt_render", err.code)
    assert.equal("a", err.section_path)
    broken = false
    assert(agent:run "3")
  end)
end)

describe("the value of read_section", function()
  local function of_tool(reply)
    for _, m in ipairs(reply.messages) do
      if m.role == "tool" then
        return m.content
      end
    end
  end

  it("is the content and the names of the tools, and the model is shown the content", function()
    local values = {}
    local reply = assert(ah.run { context(), log = quiet,
      model = ah.scripted { read "context", read "context", read "none", "done" },
      strategies = { function(m) values[#values + 1] = m.value or "none" end }, "x" })
    assert.same({ { content = FULL, expanded_tools = { "search" } },
      { content = FULL, expanded_tools = {} }, "none" }, values)
    assert.equal("Content of section 'context':\n\n" .. FULL .. "\n\nNew tools: search.",
      of_tool(reply))
  end)
end)
