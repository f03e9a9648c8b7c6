-- Sessions, budgets and files in memory with a name: several agents share one, a store keeps it
-- beside their conversations, and the next process has it again. spec/crash has the processes that
-- die in between. docs/reference/stores.md has the rules.
local ah = require "agenthost"
local command = require "support.command"

local scratch

setup(function()
  scratch = command.folder()
end)

teardown(function()
  collectgarbage()
  command.tidy()
end)

local n = 0

local function path(suffix)
  n = n + 1
  return ("%s/%d%s"):format(scratch, n, suffix)
end

-- Runs a script in a process of its own. Returns all it prints.
local function program(store, text)
  local name = command.write(path ".lua", "local ah, STORE = require 'agenthost', ...\n" .. text)
  local p <close> = assert(io.popen(("%s %s %s 2>&1"):format(command.BINARY, name, store)))
  return p:read "a"
end

local Count = ah.type { name = "Count", fields = { n = "integer" } }
local Name = ah.type { name = "Name", fields = { text = "string" } }

local function new_session(store, fields)
  fields = fields or { types = { Count } }
  fields.name, fields.store = "stock", store
  return ah.session(fields)
end

-- A model that calls the tool once in each run, with these values of a parameter.
local function calling(tool, parameter, values)
  local turns = {}
  for _, value in ipairs(values) do
    turns[#turns + 1] = { calls = { { name = tool, arguments = { [parameter] = value } } } }
    turns[#turns + 1] = "Done."
  end
  return ah.scripted(turns)
end

-- An agent whose calls count `counts`, one for each run, in the session.
local function new_agent(session, fields, counts)
  local add = ah.tool { name = "add", description = "Adds.", params = { n = "integer" },
    handler = function(args)
      session:dispatch(Count { n = args.n })
      if args.n < 0 then
        return nil, "not below 0"
      end
      return args.n
    end }
  fields.session, fields.tools, fields.model = session, { add }, calling("add", "n", counts)
  return ah.agent(fields)
end

local function numbers(session)
  local list = {}
  for i, value in ipairs(session.Count:all()) do
    list[i] = value.n
  end
  return list
end

-- Forgets the objects of the script, as its end does.
local function forget()
  collectgarbage()
  collectgarbage()
end

local function usage(pattern, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.equal("usage", err.code)
  assert.matches(pattern, err.message)
end

describe("a session with a name", function()
  it("is shared by agents, and kept once", function()
    local store = path ".db"
    do
      local session = new_session()
      local a <close> = assert(new_agent(session, { store = store, id = "a" }, { 1, 2 }))
      local b <close> = assert(new_agent(session, { store = store, id = "b" }, { 10 }))
      assert(a:run "Go.")
      assert(b:run "Go.")
      assert(a:run "Go on.")
      assert.same({ 1, 10, 2 }, numbers(session))
    end
    forget()
    local session = assert(new_session(store))
    assert.same({ 1, 10, 2 }, numbers(session))
    for _, id in ipairs { "a", "b" } do
      assert(new_agent(session, { store = store, id = id }, {}))
    end
    assert.same({ 1, 10, 2 }, numbers(session))
  end)

  it("has what the script changes outside of calls, at once", function()
    local store = path ".db"
    local said = program(store, [[
      local Count = ah.type { name = "Count", fields = { n = "integer" } }
      local s = assert(ah.session { name = "stock", store = STORE, types = { Count } })
      s:dispatch(Count { n = 1 })
      s.Count:append(Count { n = 2 })
      ah.sleep(0.01)
      s.Count:append(Count { n = 3 })
      s.Count:clear()
      s.Count:replace { Count { n = 4 }, Count { n = 5 } }
      s:restore(s:snapshot())
      ah.sleep(0.01)
      os.execute "kill -9 $PPID"
    ]])
    assert.equal("Killed\n", said)
    assert.same({ 4, 5 }, numbers(assert(new_session(store))))
    forget()
  end)

  it("has nothing of a call that has failed", function()
    local store = path ".db"
    do
      local session = assert(new_session(store))
      local a <close> = assert(new_agent(session, { store = store, id = "a" }, { -1, 1 }))
      assert(a:run "Go.")
      assert(a:run "Go.")
    end
    forget()
    assert.same({ 1 }, numbers(assert(new_session(store))))
    forget()
  end)

  it("has what agents without a store change", function()
    local store = path ".db"
    do
      local session = assert(new_session(store))
      local a <close> = assert(new_agent(session, {}, { 1 }))
      assert(a:run "Go.")
    end
    forget()
    assert.same({ 1 }, numbers(assert(new_session(store))))
    forget()
  end)

  it("needs no store", function()
    local session = new_session()
    session:dispatch(Count { n = 1 })
    local a <close> = assert(new_agent(session, {}, { 2 }))
    local b <close> = assert(new_agent(session, {}, { 3 }))
    assert(a:run "Go.")
    assert(b:run "Go.")
    assert.same({ 1, 2, 3 }, numbers(session))
  end)

  it("gives types their values when they are registered", function()
    local store = path ".db"
    do
      local session = assert(new_session(store, { types = { Count, Name } }))
      session:dispatch(Count { n = 1 })
      session:dispatch(Name { text = "one" })
    end
    forget()
    do -- so many records that there is a checkpoint, without the type
      local session = assert(new_session(store, {}))
      session:register(Count)
      assert.same({ 1 }, numbers(session))
      for i = 2, 150 do
        session:dispatch(Count { n = i })
        if i % 10 == 0 then
          ah.sleep(0.001)
        end
      end
    end
    forget()
    do
      local session = assert(new_session(store))
      assert.equal(150, #session.Count)
      session:register(Name)
      assert.equal("one", session.Name:latest().text)
      session.Name:clear()
      session:reduce(Name, Count, function(view) return view:all() end)
      assert.equal(0, #session.Name)
    end
    forget()
    assert.equal(0, #assert(new_session(store, { types = { Name } })).Name)
  end)

  it("refuses values that do not fit a type", function()
    local store = path ".db"
    assert(new_session(store)):dispatch(Count { n = 1 })
    forget()
    local session = assert(new_session(store, {}))
    usage("Count", session.register, session,
      ah.type { name = "Count", fields = { text = "string" } })
  end)

  it("is one object in a process", function()
    local store = path ".db"
    do
      local session = assert(new_session(store))
      local other, err = new_session(store)
      assert.is_nil(other)
      assert.equal("conflict", err.code)
      assert.matches('"session/stock" is open in this program', err.message)
      other, err = new_agent(new_session(), { store = store, id = "a" }, {})
      assert.is_nil(other)
      assert.equal("conflict", err.code)
      session:dispatch(Count { n = 1 })
    end
    assert.same({ 1 }, numbers(assert(new_session(store)))) -- the other one was garbage
  end)

  it("is that of one process", function()
    local store = path ".db"
    do
      local session = assert(new_session(store))
      assert.matches('^nil\tconflict\t.*"session/stock" is held by process %d+', program(store, [[
        local s, err = ah.session { name = "stock", store = STORE }
        print(s, err.code, err.message)
      ]]))
      session:dispatch(Count { n = 1 })
    end
    forget()
    assert.matches("^session", program(store,
      "print(ah.session { name = 'stock', store = STORE })"))
  end)

  it("must be in the store of the conversations", function()
    local session = assert(new_session(path ".db"))
    usage("in two stores", new_agent, session, { store = path ".db", id = "a" }, {})
  end)

  it("has no values before its store", function()
    local session = new_session()
    session:dispatch(Count { n = 1 })
    usage('"session/stock" has values before it has its store', new_agent, session,
      { store = path ".db", id = "a" }, {})
  end)

  it("has a name that a stream can have", function()
    for _, name in ipairs { "", "a/b", "a\nb", "\xff", ("x"):rep(121) } do
      usage("ah.session: name must be", ah.session, { name = name })
    end
    assert.truthy(ah.session { name = ("x"):rep(120) })
    usage("give `name`", ah.session, { store = path ".db" })
    usage("a child has no name", ah.session, { name = "x", parent = ah.session() })
  end)

  it("cannot be opened by a handler, whose call may fail", function()
    local store = path ".db"
    local ok, err
    local open = ah.tool { name = "open", description = "Opens.", handler = function()
      ok, err = pcall(new_session, store)
      return "opened"
    end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "open" } } }, "Done." },
      tools = { open }, "Go." })
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.matches('a handler cannot open "session/stock"', err.message)
    assert.is_nil(io.open(store))
  end)

  it("is copied by a fork, which keeps it by itself", function()
    local store = path ".db"
    do
      local session = assert(new_session(store))
      local a <close> = assert(new_agent(session, { store = store, id = "a" }, { 1 }))
      assert(a:run "Go.")
      assert(a:fork { id = "b" }):close()
      session:dispatch(Count { n = 2 })
      assert.same({ 1, 2 }, numbers(session))
    end
    forget()
    local own = ah.session { types = { Count } }
    assert(new_agent(own, { store = store, id = "b" }, {}))
    assert.same({ 1 }, numbers(own))
  end)
end)

describe("a session without a name", function()
  it("is that of one agent with a store at a time", function()
    local store = path ".db"
    local session = ah.session { types = { Count } }
    local a = assert(new_agent(session, { store = store, id = "a" }, { 1 }))
    assert(a:run "Go.")
    usage('needs a name, as in ah.session { name = "stock" }', new_agent, session,
      { store = store, id = "b" }, {})
    assert(new_agent(session, {}, {})):close()
    a:close()
    local b <close> = assert(new_agent(session, { store = store, id = "b" }, { 2 }))
    assert(b:run "Go.")
    assert.same({ 1, 2 }, numbers(session))
  end)
end)

local function new_budget(store, fields)
  fields = fields or { requests = 2 }
  fields.name, fields.store = "month", store
  return ah.budget(fields)
end

local function ask(budget, fields)
  fields = fields or {}
  fields.budget, fields[1] = budget, "Go."
  fields.model = fields.model or "demo/echo"
  return ah.run(fields)
end

describe("a budget with a name", function()
  it("stays used up", function()
    local store = path ".db"
    do
      local budget = assert(new_budget(store))
      assert(ask(budget))
      assert(ask(budget))
      assert.equal("budget_exceeded", select(2, ask(budget)).code)
    end
    forget()
    do
      local budget = assert(new_budget(store))
      assert.equal(2, budget:used().requests)
      assert.equal("budget_exceeded", select(2, ask(budget)).code)
    end
    forget()
    local said = program(store, [[
      local b = assert(ah.budget { name = "month", store = STORE, requests = 3 })
      print(b:used().requests, ah.run { model = "demo/echo", budget = b, "Go." })
      print(select(2, ah.run { model = "demo/echo", budget = b, "Go." }).code)
    ]])
    assert.equal("2\tGo.\nbudget_exceeded\n", said)
  end)

  it("takes the store of the first agent that has it", function()
    local store = path ".db"
    for i = 1, 2 do
      do
        local budget = new_budget()
        local agent <close> = assert(ah.agent { model = "demo/echo", store = store, id = "a",
          budget = budget })
        assert.equal(i - 1, budget:used().requests)
        assert(agent:run "Go.")
      end
      forget()
    end
  end)

  it("may be in another store than the conversation", function()
    local store = path ".db"
    do
      local budget = assert(new_budget(store))
      assert(ask(budget, { store = path ".db", id = "a" }))
    end
    forget()
    assert.equal(1, assert(new_budget(store)):used().requests)
  end)

  it("may be written where it is used", function()
    local store = path ".db"
    for _ = 1, 2 do
      assert(ask { name = "month", store = store, requests = 2 })
      forget()
    end
    local _, err = ask { name = "month", store = store, requests = 2 }
    assert.equal("budget_exceeded", err.code)
    forget()
  end)

  it("counts a request that its process did not outlive, by its estimate", function()
    local store = path ".db"
    program(store, [[
      local b = assert(ah.budget { name = "month", store = STORE })
      ah.run { model = ah.scripted(function()
        ah.sleep(0.01)
        os.execute "kill -9 $PPID"
      end), budget = b, store = STORE, id = "one", "Go." }
    ]])
    local used = assert(new_budget(store)):used()
    assert.equal(1, used.requests)
    assert.is_true(used.input_tokens > 0 and used.estimated)
    forget()
  end)

  it("is read from its checkpoint", function()
    local store = path ".db"
    do
      local budget = assert(new_budget(store, { prices = { ["demo/*"] = { input = 1000000 } } }))
      for _ = 1, 100 do
        assert(ask(budget))
        ah.sleep(0)
      end
    end
    forget()
    local used = assert(new_budget(store)):used()
    assert.equal(100, used.requests)
    assert.is_true(used.cost > 0)
    forget()
  end)

  it("is that of one process, and one object of it", function()
    local store = path ".db"
    local budget = assert(new_budget(store))
    local other, err = new_budget(store)
    assert.is_nil(other)
    assert.equal("conflict", err.code)
    assert.matches('"budget/month" is held by process %d+', program(store, [[
      print(select(2, ah.budget { name = "month", store = STORE }).message)
    ]]))
    assert.truthy(budget)
  end)

  it("has its amounts from the store alone", function()
    usage("used and name", ah.budget, { name = "month", used = { requests = 1 } })
    usage("give `name`", ah.budget, { store = path ".db" })
    usage("budget: name must be", ah.budget, { name = "a/b" })
  end)
end)

local function new_files(store, fields)
  fields = fields or {}
  fields.memory, fields.name, fields.store = true, fields.name or "notes", store
  return ah.filesystem(fields)
end

local function contents(files)
  local all = {}
  for _, name in ipairs(assert(files:glob "**")) do
    all[name] = files:read(name)
  end
  return all
end

-- An agent whose calls append `texts`, one for each run, to a file.
local function new_writer(files, fields, texts)
  local note = ah.tool { name = "note", description = "Notes.", params = { text = "string" },
    handler = function(args)
      assert(files:append("notes.txt", args.text))
      if args.text == "bad" then
        return nil, "not that"
      end
      return "noted"
    end }
  fields.tools, fields.model = { note }, calling("note", "text", texts)
  return ah.agent(fields)
end

describe("files in memory with a name and a store", function()
  it("are as they were", function()
    local store = path ".db"
    do
      local files <close> = assert(new_files(store, { files = { ["a.txt"] = "one" } }))
      assert(files:write("d/e/b.bin", "\xff\0two"))
      assert(files:write("d/c.txt", "three"))
      assert(files:write("gone.txt", ""))
      assert(files:edit("a.txt", "one", "four"))
      assert(files:rename("d/c.txt", "c.txt"))
      assert(files:delete "gone.txt")
      assert(files:mkdir "empty/folder")
    end
    for _ = 1, 2 do
      local files <close> = assert(new_files(store, { files = { ["a.txt"] = "new", x = "y" } }))
      assert.same({ ["a.txt"] = "four", ["d/e/b.bin"] = "\xff\0two", ["c.txt"] = "three" },
        contents(files))
      assert.equal("folder", files:stat("empty/folder").type)
      assert.equal("four", files:read "a.txt")
    end
    do
      local files <close> = assert(new_files(store))
      for _, item in ipairs(assert(files:list())) do
        assert(files:delete(item.name, { recursive = true }))
      end
    end
    local files <close> = assert(new_files(store, { files = { ["a.txt"] = "new" } }))
    assert.same({}, contents(files))
  end)

  it("have what the script changes outside of calls, at once", function()
    local store = path ".db"
    local said = program(store, [[
      local files = assert(ah.filesystem { memory = true, name = "notes", store = STORE })
      files:write("a.txt", "1")
      ah.sleep(0.01)
      local over = files:overlay()
      over:write("b.txt", "2")
      over:commit()
      ah.sleep(0.01)
      os.execute "kill -9 $PPID"
    ]])
    assert.equal("Killed\n", said)
    local files <close> = assert(new_files(store))
    assert.same({ ["a.txt"] = "1", ["b.txt"] = "2" }, contents(files))
  end)

  it("have what calls change, of agents with a store and without, and nothing of a failed one",
    function()
      local store = path ".db"
      do
        local files <close> = assert(new_files(store))
        local a <close> = assert(new_writer(files, { store = store, id = "a" },
          { "one ", "bad", "two " }))
        local b <close> = assert(new_writer(files, {}, { "three " }))
        assert(a:run "Go.")
        assert(a:run "Go.")
        assert(a:run "Go.")
        assert(b:run "Go.")
      end
      local files <close> = assert(new_files(store))
      assert.same({ ["notes.txt"] = "one two three " }, contents(files))
    end)

  it("are read from a checkpoint", function()
    local store = path ".db"
    do
      local files <close> = assert(new_files(store))
      assert(files:write("old.txt", "old"))
      for i = 1, 150 do
        assert(files:write("n.txt", tostring(i)))
        ah.sleep(0)
      end
    end
    local files <close> = assert(new_files(store))
    assert.same({ ["old.txt"] = "old", ["n.txt"] = "150" }, contents(files))
  end)

  it("are those of one process, and one object of it", function()
    local store = path ".db"
    local files <close> = assert(new_files(store))
    assert.matches('"files/notes" is held by process %d+', program(store, [[
      print(select(2, ah.filesystem { memory = true, name = "notes", store = STORE }).message)
    ]]))
    assert.same({}, contents(files))
  end)

  it("must fit the limits of the filesystem", function()
    local store = path ".db"
    do
      local files <close> = assert(new_files(store))
      assert(files:write("a.txt", ("x"):rep(100)))
    end
    local files, err = new_files(store, { max_total = 50 })
    assert.is_nil(files)
    assert.equal("conflict", err.code)
    assert.matches("50 bytes", err.message)
    forget()
    local whole <close> = assert(new_files(store))
    assert.equal(100, #whole:read "a.txt")
  end)

  it("need a name, and no handler", function()
    usage("give `name`", ah.filesystem, { memory = true, store = path ".db" })
    usage("ah.filesystem: name must be", new_files, path ".db", { name = "a/b" })
  end)
end)
