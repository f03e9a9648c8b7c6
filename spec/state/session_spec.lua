-- Types, sessions and the effects of tool calls on them.
local ah = require "agenthost"
local patiently = require "support.patiently"

local Note = ah.type { name = "Note", fields = { text = "string", stars = "integer = 0" } }
local Total = ah.type { name = "Total", fields = { n = "integer" } }
local Add = ah.type { name = "Add", fields = { n = "integer" } }

local function tool(name, handler, more)
  local def = { name = name, description = "Does it.", handler = handler }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

--- Calls the tools in one message, in order; returns the contents of the results and the reply.
local function call(tools, fields)
  local calls = {}
  for i, t in ipairs(tools) do
    calls[i] = { name = t.name, arguments = fields and fields.arguments or {} }
  end
  fields = fields or {}
  fields.arguments = nil
  fields.tools, fields.model, fields[1] = tools, ah.scripted { { calls = calls }, "done" }, "go"
  fields.log = function() end
  local reply, err = ah.run(fields)
  local contents = {}
  for _, m in ipairs((reply or err.reply).messages) do
    contents[#contents + 1] = m.role == "tool" and m.content or nil
  end
  return contents, reply, err
end

local function texts(slice)
  local list = {}
  for i, note in ipairs(slice:all()) do
    list[i] = note.text
  end
  return table.concat(list, " ")
end

--- Makes a session that adds up; it refuses a total over 10.
local function adding()
  local s = ah.session { types = { Note } }
  s:register(Total, { keep = "latest" })
  s:reduce(Total, Add, function(view, event)
    local n = (view:latest() or { n = 0 }).n + event.value.n
    assert(n <= 10, "over 10")
    return view:replace { { n = n } }
  end)
  return s
end

local function raises(words, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find(words, 1, true), tostring(err))
  return err
end

describe("a type", function()
  it("makes checked values with their defaults", function()
    local note = Note { text = "a" }
    assert.same({ "a", 0 }, { note.text, note.stars })
    assert.equal('Note {"stars":0,"text":"a"}', tostring(note))
    assert.equal("tool_validation", raises("/text: must be a string", Note, { text = 1 }).code)
    raises("/color", Note, { text = "a", color = "red" })
    raises("a function cannot be JSON", Note, { text = print })
    raises("table expected", Note, "a")
  end)

  it("takes an empty table for an empty list where a list is wanted", function()
    local T = ah.type { name = "T", fields = { list = "string[]", deep = { { list = "any[]" } } } }
    local t = T { list = {}, deep = { { list = {} } } }
    assert.equal('T {"deep":[{"list":[]}],"list":[]}', tostring(t))
    t.list[1] = "x"
    assert.equal('T {"deep":[{"list":[]}],"list":["x"]}', tostring(t))
    raises("/list", T, { list = { a = 1 }, deep = {} })
  end)

  it("is refused without a name, or with other than one way to say its fields", function()
    raises("field 'name' is missing", ah.type, { fields = {} })
    raises("name must be", ah.type, { name = "9", fields = {} })
    raises("fields (the short form) or schema", ah.type, { name = "T" })
    raises("fields (the short form) or schema", ah.type, { name = "T", fields = {}, schema = {} })
    raises("must have type object", ah.type, { name = "T", schema = { type = "array" } })
    raises("unknown field 'feilds'", ah.type, { name = "T", feilds = {} })
  end)

  it("stands where a schema may", function()
    local Pair = ah.type { name = "Pair", fields = { left = Note, right = Note } }
    assert.equal("b", Pair { left = { text = "a" }, right = Note { text = "b" } }.right.text)
    assert.is_true(ah.schema(Note):validate { text = "a" })
    assert.equal(Note.schema:text(), ah.schema(Note):text())
    assert.equal("Note", Note.name)
  end)
end)

describe("a session", function()
  it("keeps all values of a type, the latest, or one for each key", function()
    local s = ah.session { types = { Note } }
    s:register(Total, { keep = "latest" })
    local Seat = ah.type { name = "Seat", fields = { row = "integer", who = "string" } }
    s:register(Seat, { key = "row" })
    for i = 1, 3 do
      s:dispatch(Note { text = "n" .. i })
      s:dispatch(Total { n = i })
      s:dispatch(Seat { row = i % 2, who = "w" .. i })
    end
    assert.same({ 3, 1, 2 }, { #s[Note], s.Total:len(), #s.Seat })
    assert.same({ "n3", 3 }, { s[Note]:latest().text, s[Total]:latest().n })
    assert.same({ "w3", "w2" }, { s.Seat:all()[1].who, s.Seat:all()[2].who })
    assert.equal("Note", getmetatable(s[Note]:latest()).__name)
  end)

  it("gives copies", function()
    local s = ah.session { types = { Note } }
    local note = Note { text = "a" }
    s:dispatch(note)
    note.text = "b"
    s[Note]:latest().text = "c"
    assert.equal("a", s[Note]:latest().text)
  end)

  it("checks what it is given", function()
    local s = ah.session { types = { Note } }
    local note = Note { text = "a" }
    note.text = nil
    raises("Note: /text", s.dispatch, s, note)
    raises("instance of a type, found a table", s.dispatch, s, { text = "a" })
    raises("no type 'Total'", s.dispatch, s, Total { n = 1 })
    raises("expected a value of type Note, found a Total", s[Note].append, s[Note], Total { n = 1 })
    raises("did you mean 'Note'?", function() return s.Notes end)
    raises("no slice 'Total'", function() return s[Total] end)
    raises("another type 'Note'", s.register, s, ah.type { name = "Note", fields = {} })
    raises("policy of slice 'Note' cannot change", s.register, s, Note, { policy = "log" })
    raises("no type can be named 'dispatch'", s.register, s,
      ah.type { name = "dispatch", fields = {} })
    raises("keep and key", s.register, s, Note, { keep = "latest", key = "text" })
    raises("function(view, event)", s.reduce, s, Note, Add, function(_, _, c) return c end)
    assert.equal(0, #s[Note])
  end)

  it("appends, replaces and clears slices directly", function()
    local s = ah.session { types = { Note } }
    s[Note]:append { text = "a" }
    s[Note]:append(Note { text = "b" })
    assert.equal("a b", texts(s[Note]))
    raises("/text", s[Note].replace, s[Note], { { text = "c" }, { text = 1 } })
    assert.equal("a b", texts(s[Note]))
    s[Note]:replace { { text = "c" }, { text = "d" } }
    assert.equal("c d", texts(s[Note]))
    s[Note]:clear()
    assert.same({ 0, nil }, { #s[Note], s[Note]:latest() })
  end)

  it("holds long lists", function()
    local s = ah.session { types = { Note } }
    for _ = 1, 100000 do
      s[Note]:append { text = "a" }
    end
    assert.equal(100000, #s[Note])
    s[Note]:clear()
  end)
end)

describe("a reducer", function()
  it("says on its view what becomes of the slice", function()
    local s = ah.session { types = { Note } }
    s:reduce(Note, Add, function(view, event)
      assert(event.type == "Add" and event.value.n)
      view:append { text = "a" }:extend { { text = "b" }, Note { text = "c" } }
      assert(#view:all() == view:len() and view:latest().text == "c")
      if event.value.n == 0 then
        view:clear()
      end
    end)
    s:dispatch(Add { n = 1 })
    assert.equal("a b c", texts(s[Note]))
    s:dispatch(Add { n = 0 })
    assert.equal("", texts(s[Note]))
  end)

  it("fails whole: no reducer of the event has then changed anything", function()
    local s = adding()
    s:reduce(Note, Add, function(view) view:append { text = "seen" } end)
    raises("the reducer of Total for Add failed: over 10", s.dispatch, s, Add { n = 11 })
    s:dispatch(Add { n = 3 })
    assert.same({ "seen", 3 }, { texts(s[Note]), s[Total]:latest().n })
  end)

  it("must return its view or nothing, and change nothing else", function()
    local s, kept = ah.session { types = { Note, Total } }, nil
    local function refused(words, f)
      s:reduce(Total, Add, f)
      raises(words, s.dispatch, s, Add { n = 1 })
    end
    refused("it returned a table", function() return { { n = 1 } } end)
    refused("Total: /n", function(view) view:append { n = "1" } end)
    refused("nothing but its slice", function() s[Note]:append { text = "a" } end)
    refused("nothing but its slice", function() s:dispatch(Note { text = "a" }) end)
    refused("nothing but its slice", function() s.dispatcher:publish(Note { text = "a" }) end)
    refused("cannot wait", function() ah.sleep(0) end)
    refused("kept", function(view) kept = view error "kept" end)
    raises("has returned", kept.append, kept, { n = 1 })
    assert.same({ 0, 0 }, { #s[Note], #s[Total] })
  end)

  it("can take the place of what a slice does with its own type", function()
    local s = ah.session()
    s:reduce(Note, Note, function(view, event)
      return view:replace { event.value, event.value }
    end)
    s:dispatch(Note { text = "a" })
    s:dispatch(Note { text = "b" })
    assert.equal("b b", texts(s[Note]))
    s:register(Note) -- no options: unchanged
    s:dispatch(Note { text = "c" })
    assert.equal("c c", texts(s[Note]))
  end)
end)

describe("a snapshot", function()
  it("is restored in a session of the same types", function()
    local s, other = adding(), adding()
    s:dispatch(Add { n = 4 })
    s[Note]:append { text = "\u{263a}" }
    other[Note]:append { text = "gone" }
    assert.is_true(other:restore(s:snapshot()))
    assert.equal(s:snapshot(), other:snapshot())
    other:dispatch(Add { n = 1 })
    assert.equal(5, other[Total]:latest().n)
    assert.is_true(other:restore('{"agenthost_session":1,"slices":{}}'))
    assert.equal(0, #other[Total] + #other[Note])
  end)

  it("that does not fit changes nothing", function()
    local s = adding()
    s[Note]:append { text = "a" }
    for text, words in pairs {
      ["{"] = "not JSON", ["[]"] = "no snapshot",
      ['{"agenthost_session":2,"slices":{}}'] = "must be",
      ['{"agenthost_session":1,"slices":{"X":[]}}'] = "no slice X",
      ['{"agenthost_session":1,"slices":{"Note":{}}}'] = "not a list",
      ['{"agenthost_session":1,"slices":{"Total":[],"Note":[{"text":"b"},{}]}}'] = "Note: ",
    } do
      local ok, err = s:restore(text)
      assert.is_nil(ok)
      assert.equal("usage", err.code)
      assert.truthy(err.message:find(words, 1, true), err.message)
    end
    assert.equal("a", texts(s[Note]))
  end)

  it("leaves a log that holds anything as it is", function()
    local s = ah.session()
    s:register(Note, { policy = "log" })
    local full = '{"agenthost_session":1,"slices":{"Note":[{"stars":0,"text":"a"}]}}'
    assert(s:restore(full))
    s:dispatch(Note { text = "b" })
    assert(s:restore(full))
    assert.equal("a b", texts(s[Note]))
  end)
end)

describe("a child session", function()
  it("reads through to its parent and writes its own", function()
    local s = adding()
    local child = s:child()
    s[Note]:append { text = "a" }
    assert.equal("a", texts(child[Note]))
    child[Note]:append { text = "b" }
    s[Note]:append { text = "c" }
    assert.same({ "a b", "a c" }, { texts(child[Note]), texts(s[Note]) })
    child:dispatch(Add { n = 2 })
    assert.same({ 1, 0 }, { #child[Total], #s[Total] })
    assert.is_true(child.parent == s and s.parent == nil and child.dispatcher == s.dispatcher)
    assert.equal("a b", texts(ah.session { parent = child }[Note]))
  end)
end)

describe("a view of a session", function()
  it("reads what the session is, and changes nothing", function()
    local s = adding()
    local child = s:child()
    local view = child:view()
    s[Note]:append { text = "a" }
    assert.equal("a", texts(view[Note]))
    for _, f in ipairs { function() view[Note]:clear() end, function() view:child() end,
      function() view:dispatch(Add { n = 1 }) end, function() view:restore(s:snapshot()) end,
      function() view:register(Add) end, function() view.parent[Note]:append { text = "b" } end } do
      raises("read-only", f)
    end
    raises("must be made by ah.session", ah.run, { session = view, model = "demo/echo", "x" })
    assert.equal(s:snapshot(), view:snapshot())
  end)
end)

describe("a tool call", function()
  it("that succeeds gives its value to the slices of its type", function()
    local s = adding()
    local seen = {}
    s:reduce(Note, Add, function(_, event) seen[#seen + 1] = event.value or "none" end)
    s:reduce(Total, Add, function() end)
    local by_instance = tool("a", function() return Add { n = 1 } end)
    local by_tool = tool("b", function() return ah.ok({ n = 2 }, "said") end, { result = Add })
    local none = tool("c", function() end, { result = Add })
    local failing = tool("d", function()
      return ah.result { value = Add { n = 9 }, success = false }
    end)
    local other = tool("e", function() return { n = 5 } end)
    local unknown = tool("f", function() return ah.type { name = "U", fields = {} } {} end)
    local wrong = tool("g", function() local v = Add { n = 1 } v.n = "x" return v end)
    local contents = call({ by_instance, by_tool, none, failing, other, unknown, wrong },
      { session = s })
    assert.same({ '{"n":1}', 'said\n\n{"n":2}', "OK", '{"n":9}', '{"n":5}', "{}",
      "Tool 'g' execution failed: Add: /n: must be an integer, found \"x\"" }, contents)
    assert.same({ 1, 2, "none" }, { seen[1].n, seen[2].n, seen[3] })
    assert.equal(3, #seen)
  end)

  it("that fails leaves sessions as they were, and is told why", function()
    local s = adding()
    local contents = call({
      tool("a", function(_, ctx)
        ctx.session:dispatch(Add { n = 4 })
        s[Note]:append { text = "kept" }
      end),
      tool("b", function()
        s:dispatch(Add { n = 4 })
        s[Note]:append { text = "gone" }
        assert(s[Total]:latest().n == 8 and s:snapshot():find("gone"))
        error "broken"
      end),
      tool("c", function() return Add { n = 7 } end),
      tool("d", function() s:dispatch(Add { n = 7 }) end),
    }, { session = s })
    assert.same({ "OK", "Tool 'b' execution failed: broken",
      "Tool 'c' execution failed: the reducer of Total for Add failed: over 10",
      "Tool 'd' execution failed: the reducer of Total for Add failed: over 10" }, contents)
    assert.same({ "kept", 4 }, { texts(s[Note]), s[Total]:latest().n })
  end)

  it("beside others cannot erase their work, and fails where its own does not fit", function()
    local s = adding()
    local function add(name, n, seconds)
      return tool(name, function()
        s:dispatch(Add { n = n })
        s[Note]:append { text = name }
        ah.sleep(seconds)
        return s[Total]:latest().n
      end, { parallel = true })
    end
    local tools = { add("a", 4, 0.003), add("b", 5, 0.002), add("c", 6, 0), add("d", 1, 0) }
    local contents = call(tools, { session = s })
    assert.same({ "4", "5",
      "Tool 'c' execution failed: the reducer of Total for Add failed: over 10", "1" }, contents)
    assert.same({ "a b d", 10 }, { texts(s[Note]), s[Total]:latest().n })
  end)

  it("commits the runs in it with it, or not at all", function()
    for _, fails in ipairs { false, true } do
      local s, child = adding(), nil
      child = s:child()
      call({ tool("outer", function()
        s:dispatch(Add { n = 1 })
        call({
          tool("x", function() s:dispatch(Add { n = 2 }) child[Note]:append { text = "x" } end),
          tool("y", function() s:dispatch(Add { n = 4 }) error "no" end),
          tool("z", function(_, ctx) assert(ctx.session[Total]:latest().n == 3) end),
        }, { session = s })
        assert.equal(3, s[Total]:latest().n)
        return not fails, fails and error "no" or nil
      end) }, { session = s })
      assert.equal(fails and "" or "x", texts(child[Note]))
      assert.equal(fails and 0 or 1, #s[Total])
    end
  end)

  it("that is stopped leaves nothing, and can do nothing more", function()
    patiently(function(times)
      local s, late = adding(), nil
      local contents = call({ tool("slow", function()
        local _ <close> = setmetatable({}, { __close = function()
          late = select(2, pcall(function() s:dispatch(Add { n = 1 }) end))
        end })
        s:dispatch(Add { n = 1 })
        ah.run { session = s, model = ah.scripted(function()
          s[Note]:append { text = "of the model" }
          ah.sleep(60)
        end), "x" }
      end, { timeout = 0.01 * times }) }, { session = s })
      assert.truthy(contents[1]:find("did not finish", 1, true))
      assert.truthy(tostring(late):find("the call is over", 1, true))
      assert.same({ 0, 0 }, { #s[Total], #s[Note] })
    end)
  end)

  it("writes logs at once and for good", function()
    local s = ah.session { types = { Total } }
    s:register(Note, { policy = "log" })
    s:reduce(Total, Note, function(view) view:append { n = 1 } end)
    call({ tool("a", function()
      s:dispatch(Note { text = "tried" })
      s[Note]:append { text = "again" }
      assert.equal(1, #s[Total])
      error "no"
    end) }, { session = s })
    assert.same({ "tried again", 0 }, { texts(s[Note]), #s[Total] })
  end)

  it("has a session of its own where none is given", function()
    local sessions = {}
    local t = tool("t", function(_, ctx) sessions[#sessions + 1] = ctx.session end)
    local asks = { calls = { { name = "t" } } }
    local agent = ah.agent { tools = { t }, model = ah.scripted { asks, "a", asks, "b" } }
    agent:run("x")
    agent:run("y")
    call { t }
    assert.is_true(sessions[1] == sessions[2] and sessions[2] ~= sessions[3])
  end)
end)

describe("a dispatcher", function()
  local function listening(s, kind)
    local got = {}
    local stop = s.dispatcher:subscribe(kind, function(v, name)
      got[#got + 1] = name .. " " .. (v.text or v.name)
    end)
    return got, stop
  end

  it("delivers what is published in a call when it is committed", function()
    local s = adding()
    local all, notes = listening(s), listening(s, Note)
    local inner = tool("inner", function(_, ctx) ctx:publish(Note { text = "inner" }) end)
    call({
      tool("a", function(_, ctx)
        local note = Note { text = "a" }
        ctx:publish(note)
        note.text = "changed"
        s.dispatcher:publish { type = "plain", text = "p" }
        call({ inner }, { session = s })
        assert.equal("tool_invoked inner", table.concat(all, ","))
        ctx:publish(Note { text = "last" })
      end),
      tool("b", function(_, ctx) ctx:publish(Note { text = "b" }) error "no" end),
    }, { session = s })
    assert.equal("tool_invoked inner,Note a,plain p,Note inner,Note last,"
      .. "tool_invoked a,tool_invoked b", table.concat(all, ","))
    assert.equal("Note a,Note inner,Note last", table.concat(notes, ","))
  end)

  it("delivers at once elsewhere, until unsubscribed", function()
    local s = ah.session { types = { Note } }
    local shared = ah.session { bus = s.dispatcher }
    local got, stop = listening(s, "Note")
    shared.dispatcher:publish(Note { text = "a" })
    stop()
    stop()
    s.dispatcher:publish(Note { text = "b" })
    assert.equal("Note a", table.concat(got, ","))
    raises("a table with a field 'type'", s.dispatcher.publish, s.dispatcher, { text = "a" })
    raises("a function cannot be JSON", s.dispatcher.publish, s.dispatcher,
      { type = "x", f = print })
    raises("a type, the name of one", s.dispatcher.subscribe, s.dispatcher, 1, print)
  end)

  it("turns the error of a subscriber into a warning", function()
    local s, warnings = ah.session { types = { Note } }, {}
    s.dispatcher:subscribe(nil, function() error "no ear" end)
    local contents = call({ tool("a", function(_, ctx) ctx:publish(Note { text = "a" }) end) },
      { session = s, on = { warning = function(e) warnings[#warnings + 1] = e.message end } })
    assert.same({ "OK" }, contents)
    assert.same({ "the subscriber of 'Note' failed: no ear",
      "the subscriber of 'tool_invoked' failed: no ear" }, warnings)
  end)
end)

describe("an enlisted object", function()
  local function counter()
    return { n = 0, snapshot = function(self) return self.n end,
      restore = function(self, n) self.n = n end }
  end

  local function counts(c, by, more)
    return tool("count" .. by, function(_, ctx)
      assert(ctx:enlist(c) == c)
      ctx:enlist(c)
      c.n = c.n + by
      ah.sleep(0)
      assert(by < 10, "too much")
    end, more)
  end

  it("is set back when the call fails or is stopped", function()
    local c = counter()
    call { counts(c, 1), counts(c, 10), counts(c, 2),
      tool("slow", function(_, ctx) ctx:enlist(c).n = 99 ah.sleep(5) end, { timeout = 0.01 }) }
    assert.equal(3, c.n)
  end)

  it("is set back by the call that fails, with all in it", function()
    local c = counter()
    local outer = tool("outer", function(_, ctx)
      ctx:enlist(c).n = 5
      call { counts(c, 1), counts(c, 10) }
      assert.equal(6, c.n)
    end)
    local failing = tool("failing", function()
      call { counts(c, 1) }
      assert.equal(7, c.n)
      error "no"
    end)
    call { outer, failing }
    assert.equal(6, c.n)
  end)

  it("belongs to one call at a time", function()
    local c = counter()
    local contents = call { counts(c, 1, { parallel = true }), counts(c, 2, { parallel = true }) }
    assert.equal("OK", contents[1])
    assert.truthy(contents[2]:find("another call is at work on this object", 1, true))
    assert.equal(1, c.n)
  end)

  it("must have both methods, and tells in a warning that it could not be set back", function()
    local warnings = {}
    local c = counter()
    c.restore = function() error "stuck" end
    local contents = call({ counts(c, 10), tool("b", function(_, ctx) ctx:enlist {} end),
      tool("d", function(_, ctx) ctx:enlist(5) end) },
      { on = { warning = function(e) warnings[#warnings + 1] = e.message end } })
    assert.truthy(warnings[1]:find("could not be restored after a failed call: stuck", 1, true))
    assert.truthy(contents[2]:find("no method 'snapshot'", 1, true))
    assert.truthy(contents[3]:find("found a number", 1, true))
  end)
end)

describe("a tool", function()
  it("gets its arguments as the type that it takes", function()
    local seen
    local t = tool("t", function(args) seen = args end, { params = Note })
    call({ t }, { arguments = { text = "a" } })
    assert.equal('Note {"stars":0,"text":"a"}', tostring(seen))
    local contents = call({ t }, { arguments = {} })
    assert.truthy(contents[1]:find("^Tool validation failed: .*text"))
  end)

  it("is shown as it renders, else as its type does, else as JSON", function()
    local Shown = ah.type { name = "Shown", fields = { n = "integer" },
      render = function(v) return v.n == 0 and error "zero" or "<" .. v.n .. ">" end }
    local warnings = {}
    local contents = call({
      tool("a", function() return Shown { n = 1 } end),
      tool("b", function() return { n = 2 } end, { result = Shown }),
      tool("c", function() return Shown { n = 3 } end,
        { render = function(v) return "[" .. v.n .. "]" end }),
      tool("d", function() return Shown { n = 0 } end),
      tool("e", function() return 5 end, { render = function() return 7 end }),
      tool("f", function() return ah.ok(Shown { n = 6 }, "said") end),
    }, { on = { warning = function(e) warnings[#warnings + 1] = e.message end } })
    assert.same({ "<1>", "<2>", "[3]", '{"n":0}', "5", "said\n\n<6>" }, contents)
    assert.truthy(warnings[1]:find("the renderer of tool 'd' failed", 1, true))
    assert.truthy(warnings[2]:find("returned no string", 1, true))
    assert.equal(2, #warnings)
  end)

  it("gives its examples, which its types must take, and whether it keeps its words", function()
    local function declare(example)
      return tool("t", print, { params = { id = "string" }, result = Note, examples = { example } })
    end
    local ok = { description = ("\xc3\xa4"):rep(200), input = { id = "a" },
      output = Note { text = "b" } }
    assert.equal("b", declare(ok).examples[1].output.text)
    ok.output = { text = 1 }
    assert.equal("prompt_validation", raises("examples[1]: output: /text", declare, ok).code)
    local many = {}
    for i = 1, 33 do
      many[i] = { description = "x" }
    end
    raises("32 at most", tool, "t", print, { examples = many })
    assert.is_true(tool("t", print).accepts_overrides)
    assert.is_false(tool("t", print, { accepts_overrides = false }).accepts_overrides)
  end)

  it("tells how far it is, and who asked", function()
    local told, adapter = {}, nil
    call({ tool("t", function(_, ctx)
      adapter = ctx.adapter
      ctx:progress "begun"
      ctx:progress(0.5)
      ctx:progress(1, "over")
      ctx:progress(2)
    end) }, { on = { tool_progress = function(e)
      told[#told + 1] = { e.message or "-", e.fraction or "-" }
    end } })
    assert.same({ { "begun", "-" }, { "-", 0.5 }, { "over", 1.0 } }, told)
    assert.same({ provider = "scripted", model = "script", tool_change_mode = "append",
      supports_dynamic_tools = true }, adapter)
  end)

  it("knows the budget it draws on, and the prompt as it was rendered", function()
    local seen = {}
    local function look(_, ctx)
      seen[#seen + 1] = ctx.budget_tracker or "none"
      seen[#seen + 1] = ctx.rendered_prompt and ctx.rendered_prompt.text or "none"
    end
    local budget = ah.budget { requests = 50 }
    call({ tool("inner", look), tool("outer", function() call { tool("inner", look) } end) },
      { budget = budget, prompt = ah.prompt { ah.section { title = "One", template = "text" } } })
    call { tool("inner", look) }
    assert.same({ true, "## One\n\ntext", true, "none", false, "none" },
      { seen[1] == budget, seen[2], seen[3] == budget, seen[4], seen[5] == budget, seen[6] })
  end)

  it("fails with the message of an error object alone", function()
    local contents = call {
      tool("a", function() return nil, ah.error { code = "usage", message = "not so" } end),
      tool("b", function() return ah.filesystem { memory = true }:read "x" end),
    }
    assert.equal("not so", contents[1])
    assert.truthy(contents[2]:find("^there is no "), contents[2])
  end)
end)
