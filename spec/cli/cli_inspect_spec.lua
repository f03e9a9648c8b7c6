-- agenthost tools and agenthost check: they report what a script would run, without its runs.
local ah = require "agenthost"
local command = require "support.command"

local agenthost, has, has_not, temp = command.agenthost, command.has, command.has_not, command.temp

-- Inspects a script text; returns the result and the path of the script.
local function inspect(name, text, ...)
  local path = temp(text)
  return agenthost(name, path, ...), path
end

local function check(text, ...)
  local path = temp(text)
  local r = agenthost("check", "--json", path, ...)
  return assert(ah.json.decode(r.out), r.err), r.code, path
end

-- Returns the faults as "line: message".
local function faults(text)
  local found, code = check(text)
  local list = {}
  for i, f in ipairs(found.faults) do
    list[i] = ("%d: %s"):format(f.line or 0, f.message:gsub("[^%s(]*/lua_%w+:", "SCRIPT:"))
  end
  assert.equal(#list > 0 and 1 or 0, code)
  return list
end

local HEAD = 'local ah = require "agenthost"\n'

after_each(command.tidy)

describe("agenthost tools", function()
  local SCRIPT = HEAD .. [[
    print("from the script")
    local find = ah.tool { name = "find", description = "Finds a thing.",
      params = { name = "string: of the thing", limit = "integer 1..9 = 3" },
      handler = function() error("never called") end }
    local now = ah.tool { name = "now", description = "Shows the time." }
    local agent = ah.agent { model = "demo/tools", system = "Be brief.", tools = { find, now } }
    print(agent:run("Which?"), "never printed")]]

  it("shows what a model would see, and runs nothing", function()
    local r, path = inspect("tools", SCRIPT)
    assert.equal(0, r.code)
    assert.equal("from the script\n", r.err)
    assert.equal(path .. ":7: ah.agent asks demo/tools, 2 tools of",
      r.out:match("^(.-) %d+ bytes\n\nfind: "))
    has(r.out, "find: Finds a thing.\n  limit?: integer 1..9 = 3\n"
      .. "  name: string  -- of the thing\n\nnow: Shows the time.\n")
  end)

  it("has the exact specifications with --json", function()
    local r, path = inspect("tools", SCRIPT, "--json")
    assert.equal(0, r.code) -- after the script's name, words are the script's
    r = agenthost("tools", "--json", path)
    local met = ah.json.decode(r.out).met
    assert.equal(1, #met)
    local one = met[1]
    assert.same({ "ah.agent", path, 7, "demo/tools", "Be brief." },
      { one.kind, one.file, one.line, one.model, one.system })
    local find = ah.tool { name = "find", description = "Finds a thing.",
      params = { name = "string: of the thing", limit = "integer 1..9 = 3" } }
    assert.equal(ah.json.encode(find.spec), ah.json.encode(one.tools[1]))
    assert.equal("now", one.tools[2].name)
  end)

  it("shows what tools say of themselves", function()
    local script = HEAD .. [[
      local drop = ah.tool { name = "drop", description = "Drops it.", version = "2",
        annotations = { read_only = false, destructive = true } }
      ah.run { model = "demo/echo", tools = { drop }, "x" }]]
    local r = inspect("tools", script)
    has(r.out, "drop: Drops it.\n  (not read_only, destructive, version 2)\n")
    r = agenthost("tools", "--json", (select(2, inspect("tools", script))))
    local one = ah.json.decode(r.out).met[1].tools[1]
    assert.same({ "2", { read_only = false, destructive = true }, "Drops it." },
      { one.version, one.annotations, one.description })
  end)

  it("takes --model, standard input and the script's arguments", function()
    local r = command.shell([[echo 'print(...) require("agenthost").run { model = "x/y", "x" }' |
      "$A" tools --model demo/echo - a b]])
    assert.equal(0, r.code)
    assert.equal("a\tb\n", r.err)
    has(r.out, "stdin:1: ah.run asks demo/echo, 0 tools of 0 bytes")
  end)

  it("tells the faults in place of tools where there are any", function()
    local r = inspect("tools", HEAD .. 'ah.run { model = "demo/echo", tols = {}, "x" }')
    assert.equal(1, r.code)
    has(r.out, ":2: ah.run: unknown field 'tols' (did you mean 'tools'?)")
  end)
end)

describe("agenthost check", function()
  it("says of a sound script that it is, in one line", function()
    local r = agenthost("check", "examples/quickstart.lua")
    assert.same({ code = 0, err = "",
      out = "examples/quickstart.lua: no faults (0 agents, 1 run, 2 tools)\n" }, r)
  end)

  it("opens no store for what it finds", function()
    local path = command.temp()
    os.remove(path)
    for _, declared in ipairs { "return ah.agent { %s }", "ah.run { %s, 'Hello' }" } do
      local fields = ('model = "demo/echo", store = %q, id = "one"'):format(path)
      local r = agenthost("check", command.temp(HEAD .. declared:format(fields)))
      assert.equal(0, r.code, r.out)
      assert.is_nil(io.open(path))
    end
    local r = agenthost("check", command.temp(HEAD .. ([[
      local session = assert(ah.session { name = "stock", store = %q })
      local budget = assert(ah.budget { name = "month", store = %q })
      return ah.agent { model = "demo/echo", session = session, budget = budget }
    ]]):format(path, path)))
    assert.equal(0, r.code, r.out)
    assert.is_nil(io.open(path))
    has(agenthost("check", command.temp(HEAD .. "return ah.agent { store = 7, id = 'one' }")).out,
      "store")
  end)

  it("lists every fault of a declaration, at its line", function()
    assert.same({
      "3: tool: name 'Find it' must be 1 to 64 of a-z, 0-9, _ and -; write 'find_it'",
      "3: ah.tool: unknown field 'desc' (did you mean 'description'?)",
      "3: ah.tool: handlers are function(args, ctx); this one has 3 parameters",
      "3: params.a: 'strng' is no type (did you mean 'string'?)",
      "3: params.c: 'int' is no type (did you mean 'integer'?)",
      "6: ah.tool: expected a table of fields, found string: write ah.tool { ... }",
      "7: tool 'late': description must be printable ASCII, byte 1 is not (other characters: "
        .. "full_description)",
    }, faults(HEAD .. [[

      ah.tool { name = "Find it", desc = "?",
        params = { a = "strng", b = "integer", c = "int" },
        handler = function(a, b, c) end }
      ah.tool "x"
      ah.tool { name = "late", description = "é" }]]))
  end)

  it("lists every fault of a run, its tools and options one by one", function()
    local _, e = pcall(ah.run, { model = "nope/m", "x" })
    local unknown = e.message:match "model: unknown provider 'nope'; known are openai, .* and demo$"
    assert.same({
      "4: " .. unknown,
      "4: the text for the model must be a string, found number",
      "4: ah.run: unknown field 'max_iteration' (did you mean 'max_iterations'?)",
      "4: on: there is no event 'dnoe' (did you mean 'done'?)",
      "4: ah.run: options: unknown field 'temprature' (did you mean 'temperature'?)",
      "4: ah.run: tools[2] must be made by ah.tool, found string 'b', and there is no tool group "
        .. "of that name",
      "4: tool 'a' is declared twice (SCRIPT:2, parameters none; and SCRIPT:2, parameters none)",
    }, faults(HEAD .. [[
      local a = ah.tool { name = "a", description = "A." }
      local b = ah.tool { name = "b", description = "B." }
      ah.run { model = "nope/x", tools = { a, "b", a, b }, max_iteration = 3, 17,
        options = { temprature = 1, seed = 2 }, on = { done = print, dnoe = print } }]]))
  end)

  it("reports a misspelt field once", function()
    assert.same({
      "2: ah.tool: unknown field 'desciption' (did you mean 'description'?)",
      "3: ah.agent: unknown field 'modle' (did you mean 'model'?)",
    }, faults [[
      local ah = require "agenthost"
      local t = ah.tool { name = "t", desciption = "T.", handler = function() end }
      return ah.agent { modle = "demo/echo", tools = { t } }]])
  end)

  it("finds syntax errors, and what the script raises before its first run", function()
    assert.same({ "2: <name> expected near '='" }, faults("local x = 1\nlocal = 2"))
    assert.same({ "1: boom" }, faults("error('boom')"))
    assert.same({ "1: there" }, faults('error(require("agenthost").error { message = "there" })'))
    assert.same({ "0: not even a string" }, faults('error("not even a string", 0)'))
  end)

  it("leaves a script its strings after an error that it catches", function()
    assert.same({ "0: mine 11" }, faults [[
      local ah = require "agenthost"
      function string.upper() return "mine" end
      pcall(ah.agent, setmetatable({}, { __pairs = function() error "no" end }))
      error(("x"):upper() .. " " .. "10" + 1, 0)]])
  end)

  it("holds examples of schemas against them", function()
    assert.same({ "2: tool 't': examples[2] of n: must be an integer, found \"x\"" }, faults(HEAD
      .. [[ah.tool { name = "t", description = "T.", schema = { type = "object",
        properties = { n = { type = "integer", examples = { 1, "x" } } } } }]]))
  end)

  it("knows the limits of the provider", function()
    local text = HEAD .. [[
      local tools = {}
      for i = 1, %d do
        tools[i] = ah.tool { name = "t" .. i, description = "T.",
          full_description = ("x"):rep(%d) }
      end
      ah.run { model = "%s/x", max_tools = 999, tools = tools, options = { stop = { %s } }, "x" }]]
    assert.same({
      "7: openai takes 128 tools at most, found 129",
      "7: openai takes 4 texts in options.stop at most, found 5",
    }, faults(text:format(129, 1024, "openai", '"a", "b", "c", "d", "e"')))
    local why = "7: openai takes 1024 characters as description of tool 't1' at most, found 1025"
    assert.same({ why }, faults(text:format(1, 1025, "openai", "")))
    assert.same({}, faults((text:format(129, 1025, "demo", "")):gsub("demo/x", "demo/echo")))
  end)

  it("notes options that the provider's wire has no word for", function()
    local found = check(HEAD .. [[
      local options = { seed = 1, stop = "x" }
      ah.run { model = "openai/responses/x", api_key = "none-such", options = options, "x" }]])
    assert.same({}, found.faults)
    assert.same({
      "openai/responses has no options.seed: it is left out",
      "openai/responses has no options.stop: it is left out",
    }, { found.notes[1].message, found.notes[2].message })
  end)

  it("notes what is no fault: a missing key or model, tools that nothing offers", function()
    local found, code = check(HEAD .. [[
      local a = ah.tool { name = "a", description = "A." }
      local agent = ah.agent { model = "openai/x" }
      ah.run { "x" }]])
    assert.equal(0, code)
    local notes = {}
    for i, n in ipairs(found.notes) do
      notes[i] = ("%d: %s"):format(n.line, n.message)
    end
    assert.equal(3, #notes)
    assert.truthy(notes[1]:find("^3: openai: no key"))
    assert.equal('4: no model is named: give model = "provider/model", --model or '
      .. "AGENTHOST_MODEL", notes[2])
    assert.equal("2: tool 'a' is in no list of tools of an agent or a run: add it to one",
      notes[3])
  end)

  it("knows that tools of closed sections and of strategies come later", function()
    local found, code = check(HEAD .. [[
      local function tool(name) return ah.tool { name = name, description = "A." } end
      local function section(key, ...)
        return ah.section { key = key, template = "T", visibility = "summary", summary = "S",
          tools = { tool(key) }, ... }
      end
      local fields = { model = "demo/echo", strategies = {
        ah.unfold { name = "f", description = "F.", tools = { tool "unfolded" } },
        ah.phases { hide = true, phases = { { name = "p", tools = { tool "first" },
          next = { first = "q" } }, { name = "q", tools = { tool "second" } } } },
        { later = { tool "later" }, after = function() end } } }
      local prompt = ah.prompt { section("a", section "b") }
      local agent = ah.agent { prompt = prompt, model = "demo/echo" }
      fields[1] = section("c", section "d")
      return ah.agent(fields)]])
    assert.equal(0, code)
    assert.same({}, found.notes)
  end)

  it("stops at the first run, whatever the script does about it", function()
    local touched = temp()
    os.remove(touched)
    local later = (' io.open("%s", "w"):close()'):format(touched)
    for _, run in ipairs {
      'ah.run { model = "demo/echo", "x" }',
      'pcall(ah.run, { model = "demo/echo", "x" })',
      'ah.agent { model = "demo/echo" }:run("x")',
      'local r = ah.run { model = ah.scripted { "x" }, on = print, "x" } while not r do end',
      'os.exit(3)',
      'ah.registry { ah.tool { name = "t", description = "T.", handler = function()'
        .. later .. ' end } }:execute("t")',
    } do
      local found, code = check(HEAD .. run .. later)
      assert.same({ 0, {} }, { code, found.faults }, run)
      assert.is_nil(io.open(touched), run)
    end
  end)

  it("that a task begins, whatever the others and the script wait for", function()
    local every = "local every <close> = ah.every(0.01, function() end)\n"
    for _, text in ipairs {
      every .. "ah.map({ 1 }, function() ah.run { 'x' } end)",
      every .. "every:await(ah.spawn(function() ah.run { 'x' } end))",
      "ah.every(0.01, function() end)\nah.spawn(function() ah.run { 'x' } end)",
      "ah.every(0.01, function() end)\nah.spawn(function() ah.sleep(0.02) ah.run { 'x' } end)",
      "ah.spawn(function() ah.scope(function() ah.run { 'x' } end) end)\nah.sleep(0.01)",
    } do
      local found, code = check(HEAD .. text)
      assert.equal(0, code, text)
      assert.equal(1, #found.met, text)
      assert.equal(0, #found.faults, text)
      assert.truthy(found.met[1].line > 1)
    end
  end)

  it("or one second after its last line, where tasks are at work without one", function()
    local found, code = check(HEAD .. "ah.every(0.01, function() end)")
    assert.equal(0, code)
    assert.matches("neither ah.run nor ah.agent was reached", found.notes[1].message)
  end)

  it("also where the run is begun in another file or coroutine, and closes what is open", function()
    local found, code = check(HEAD .. [[
      local open <close> = setmetatable({}, { __close = function() print("closed") end })
      coroutine.wrap(function() ah.run { model = "demo/echo", "x" } end)()
      error("never")]])
    assert.same({ 0, {}, 1 }, { code, found.faults, #found.met })
    local r = inspect("check", 'local c <close> = setmetatable({}, { __close = function() '
      .. 'print("closed") end }) require("agenthost").run { model = "demo/echo", "x" }')
    assert.equal("closed\n", r.err)
  end)

  it("tells when nothing was met, or the script left before", function()
    has(select(1, inspect("check", "local x = 1")).out,
      "note: neither ah.run nor ah.agent was reached")
    local r, path = inspect("check", "if not ... then os.exit(2) end")
    has(r.out, path .. ":1: note: os.exit(2) was called before any run")
    has_not(agenthost("check", path, "an argument").out, "os.exit")
  end)

  it("knows registries, executors and briefs", function()
    local script = HEAD .. [[
      local function tool(name, handler)
        return ah.tool { name = name, description = "Brief.", full_description = "Full.",
          params = { q = "string" }, handler = handler }
      end
      local registry = ah.registry { tool("a", print), tool("b", print), tool "c" }
      registry:register_all_builtin { "grep" }:pick "a"
      ah.run { model = "demo/echo", registry = registry, brief = true,
        executors = { c = print }, "x" }]]
    local found, code = check(script)
    assert.same({ 0, {} }, { code, found.faults })
    local r = inspect("tools", script)
    has(r.out, "5 tools")
    has(r.out, "a: Full.\n  q: string")
    has(r.out, "b: Brief.")
    has(r.out, "pick_tools: ")
    assert.same({ "4: ah.run: field 'registry' must be made by ah.registry, found a table" },
      faults(HEAD .. '\n\nah.run { model = "demo/echo", registry = {}, "x" }'))
    r = inspect("check", 'require("agenthost").registry():execute "t"')
    has(r.out, ":1: note: registry:execute('t') was called before any run")
  end)

  it("keeps the script's output, its children's too, off stdout", function()
    local r = inspect("check", 'io.write("mine\\n") os.execute("echo child") error("x", 0)')
    assert.equal(1, r.code)
    has(r.err, "mine\n")
    has(r.err, "child\n")
    assert.truthy(r.out:find("^x\n.*: 1 fault "))
  end)

  it("ends at the first Ctrl-C also where the script only computes", function()
    local path, out = temp('print("ready") while true do end'), temp("")
    local r = command.shell(([["$A" check %s 2>%s & p=$!
      for i in $(seq 200); do [ -s %s ] && break; sleep 0.05; done
      kill -INT $p; ( sleep 10; kill -KILL $p ) >/dev/null 2>&1 & guard=$!
      wait $p; rc=$?; kill $guard; exit $rc]]):format(path, out, out))
    assert.same({ 130, "" }, { r.code, r.out })
  end)

  it("needs a script that can be read", function()
    local r = agenthost("check", "no/such.lua")
    assert.equal(2, r.code)
    has(r.err, "cannot open 'no/such.lua'")
    assert.equal("", r.out)
    has(command.shell('"$A" check - <&-').out, "cannot read standard input")
    r = agenthost("check")
    assert.equal(2, r.code)
    has(r.err, "no script given\nSee agenthost check --help.")
  end)
end)
