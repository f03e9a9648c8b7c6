-- The commands on stores: agenthost asks, respond and resume; --store and AGENTHOST_STORE.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local agenthost, shell = command.agenthost, command.shell
local has, has_not = command.has, command.has_not

if not ahtest.store_engines().sqlite then
  return
end

local folder, path

before_each(function()
  folder = command.folder()
  path = folder .. "/state/work.db"
end)

after_each(command.tidy)

local function write(name, text)
  return command.write(folder .. "/" .. name, text)
end

-- Makes a conversation that waits for ask_1.
local function wait_for(name, ask, more)
  local of = { ask = ask, folder = folder, script = folder .. "/a.lua" }
  for key, value in pairs(more or {}) do
    of[key] = value
  end
  streams.make(path, name, streams.waiting(of),
    { waiting = { "ask_1" }, state = "waiting", folder = folder, script = of.script })
end

-- Runs the binary in the folder, with the words of a shell's line.
local function run(words, env)
  return shell(("cd %s && env TZ=UTC XDG_STATE_HOME=%s %s \"$A\" %s </dev/null"):format(folder,
    folder, env or "", words))
end

describe("agenthost asks", function()
  it("shows each open ask, and the line that responds to it", function()
    wait_for("talk_1", { question = "May it?\nReally?\27[2J" })
    wait_for("talk_2", { kind = "question", question = "When?", schema = { type = "string" },
      ["until"] = 2114380800000 })
    local r = run("asks --store state/work.db")
    assert.equal(0, r.code, r.err)
    has(r.out, "talk_1  ask_1  1970-01-01")
    has(r.out, "  May it?\n    Really?")
    has_not(r.out, "\27")
    has(r.out, "  tool: delete_rows\n  arguments: {\"table\":\"orders\"}\n")
    has(r.out, ("  agenthost respond talk_1 ask_1 yes --store %s\n"):format(path))
    has(r.out, ", until 2037-01-01")
    has(r.out, "  response: {\"type\":\"string\"}\n")
    has(r.out, "  agenthost respond talk_2 ask_1 JSON")
  end)

  it("shows an id with marks of direction so that a shell takes the line", function()
    local id = "a'b\u{202e}\\\u{9b}c"
    wait_for(id)
    local r = run "asks --store state/work.db"
    has(r.out, "a'b\\u202e\\\\x9bc  ask_1")
    local line = r.out:match "agenthost (respond [^\n]+)\n"
    has(line, "respond $'a\\'b\\342\\200\\256\\\\\\302\\233c' ask_1 yes")
    write("respond.sh", '"$A" ' .. line .. " --json")
    r = shell('A="$A" bash ' .. folder .. "/respond.sh")
    assert.equal(id, ah.json.decode(r.out).conversation, r.err)
  end)

  it("shows the changes that are to be approved, and what the store says of them", function()
    write("list", "milk\nbread\n")
    write("a.lua", [[
      local ah = require "agenthost"
      local Item = ah.type { name = "Item", fields = { name = "string" } }
      local files = ah.filesystem { root = "." }
      local buy = ah.tool { name = "buy", description = "Buys.", handler = function(_, ctx)
        assert(files:edit("list", "milk\n", "\27[31mred\n"))
        ctx.session:dispatch(Item { name = "milk" })
        return "bought"
      end }
      return assert(ah.agent { tools = { buy }, id = "shop", store = "state/work.db",
        session = ah.session { types = { Item } },
        policies = { { after = function() return "ask", "it buys" end } },
        model = ah.scripted { { calls = { { name = "buy" } } }, "Done.", resumes = true } })]])
    assert(os.execute("mkdir -p " .. folder .. "/state"))
    assert.equal(5, run("a.lua Buy.").code)
    local r = run("asks --store state/work.db")
    has(r.out, "  it buys\n  tool: buy\n  arguments: {}\n  result: bought\n  changes:\n")
    has(r.out, "/list\n      --- a/list\n      +++ b/list\n      @@ -1,2 +1,2 @@\n      -milk\n"
      .. "      +\\x1b[31mred\n       bread\n    slice Item: 0 values go, 1 come\n"
      .. "      +{\"name\":\"milk\"}\n  agenthost respond shop 1 yes")
    local ask = ah.json.decode(run("asks --json --store state/work.db").out).asks[1]
    assert.same({ "bought", "file", "slice" }, { ask.result, ask.changes[1].kind,
      ask.changes[2].kind })
    has(run("show shop --store state/work.db").out, "ask         1: it buys (changes) buy({})\n")
    has(run("show shop --kept --store state/work.db").out, "      -milk\n")
    assert.equal(2, run([[respond shop 1 '{"approved":true,"arguments":{}}' --store state/work.db]]
      ).code)
    assert.equal(0, run("respond shop 1 yes --store state/work.db").code)
    assert.equal(0, run("resume shop --store state/work.db").code)
    local f <close> = assert(io.open(folder .. "/list"))
    assert.equal("\27[31mred\nbread\n", f:read "a")
  end)

  it("shows changes of any store as far as they can be read", function()
    for i, kept in ipairs { "[]", '{"changes":5}', '{"changes":[1,{},{"kind":"file"},'
      .. '{"kind":"slice","removed":4},{"kind":"entity","fields":{"a":1}}]}' } do
      wait_for("talk_" .. i, { result = "x" }, { kept = kept })
    end
    local r = run("asks --store state/work.db")
    assert.equal(0, r.code, r.err)
    has(r.out, "  changes are erased\n")
    has(r.out, "    something else\n    something else\n    changes ?\n")
  end)

  it("finds the store of the environment, of the settings, or the default", function()
    wait_for "talk_1"
    has(run("asks", "AGENTHOST_STORE=" .. path).out, "respond talk_1 ask_1 yes\n")
    write("config", "store = state/work.db\n")
    os.execute(("mkdir -p %s/agenthost && mv %s/config %s/agenthost/config"):format(folder, folder,
      folder))
    local r = shell(("XDG_CONFIG_HOME=%s \"$A\" asks </dev/null"):format(folder))
    has(r.err, folder .. "/agenthost/state/work.db")
    os.execute(("mv %s/state %s/agenthost/"):format(folder, folder))
    has(shell(("XDG_CONFIG_HOME=%s \"$A\" asks </dev/null"):format(folder)).out, "talk_1")
    os.execute(("mv %s/agenthost/state/work.db %s/agenthost/store.db"):format(folder, folder))
    has(run("asks").out, "respond talk_1 ask_1 yes\n")
  end)

  it("prints marks of direction as escapes in JSON", function()
    wait_for("talk_1", { question = "May\u{202e} it?\u{9b}2J" })
    local r = run("asks --json", "AGENTHOST_STORE=" .. path)
    has(r.out, "May\\u202e it?\\u009b2J")
    assert.equal("May\u{202e} it?\u{9b}2J", ah.json.decode(r.out).asks[1].question)
    wait_for("talk_2", { kind = "question", schema = { type = "string" } })
    r = run("respond talk_2 ask_1 '\"a\u{202e}b\"' --json", "AGENTHOST_STORE=" .. path)
    has(r.out, "a\\u202eb")
  end)

  it("prints JSON, of one conversation by the beginning of its id", function()
    wait_for "talk_1"
    wait_for "other"
    local all = ah.json.decode(run("asks --json", "AGENTHOST_STORE=" .. path).out).asks
    assert.equal(2, #all)
    local one = ah.json.decode(run("asks --json ta", "AGENTHOST_STORE=" .. path).out).asks
    assert.same({ "talk_1", "ask_1", nil }, { one[1].conversation, one[1].ask, one[2] })
  end)

  it("says what is missing", function()
    local r = run "asks"
    assert.equal(2, r.code)
    has(r.err, "cannot open the store '" .. folder .. "/agenthost/store.db'")
    wait_for "talk_1"
    wait_for "talk_2"
    r = run("asks talk_3 --store state/work.db")
    assert.equal(2, r.code)
    has(r.err, "there is no conversation 'talk_3'")
    has(r.err, "did you mean talk_")
    has(r.err, "\nagenthost list shows which there are.")
    has(run("asks talk --store state/work.db").err, "several conversations begin with 'talk'")
    streams.make(path, "idle", { streams.waiting({})[1] }, { state = "idle" })
    has(run("asks idle --store state/work.db").out, "Nothing waits for a response.")
  end)
end)

describe("agenthost respond", function()
  local function respond(words)
    return run("respond --store state/work.db " .. words)
  end

  it("posts a response, by the words yes and no or as JSON", function()
    wait_for "talk_1"
    wait_for "talk_2"
    wait_for("other", { kind = "question", schema = { type = "string" } })
    local r = respond "talk_1 ask_1 yes --by Ann"
    assert.equal(0, r.code, r.err)
    has(r.out, "agenthost resume talk_1 --store " .. path)
    assert.same({ ask = "ask_1", value = { approved = true }, by = "Ann" },
      ah.json.decode(streams.inbox(path, "talk_1")[1].body))
    has_not(run("asks --store state/work.db").out, "talk_1")
    has(run("asks --store state/work.db").out, "talk_2  ask_1")
    assert.equal(0, respond([[talk_2 ask_1 '{"approved":false,"why":"no"}']]).code)
    assert.same({ approved = false, why = "no" },
      ah.json.decode(streams.inbox(path, "talk_2")[1].body).value)
    r = respond [[oth ask_1 '"Monday"' --json]]
    assert.same({ conversation = "other", ask = "ask_1", value = "Monday" },
      ah.json.decode(r.out))
  end)

  it("refuses what does not fit, with exit code 2, and a second response with 1", function()
    wait_for "talk_1"
    for words, want in pairs {
      ["talk_1 ask_1 maybe"] = "neither yes, no nor JSON: unexpected character",
      ["talk_1 ask_1 7"] = "does not match its schema",
      ["talk_1 ask_9 yes"] = "did you mean 'ask_1'",
      ["talk_1 7 yes"] = "open is 'ask_1'",
      ["talk_1 ask_1"] = "agenthost respond needs ID ASK JSON, found 2 of them",
      ["talk_9 ask_1 yes"] = "did you mean talk_1" } do
      local r = respond(words)
      assert.equal(2, r.code, words)
      has(r.err, want)
    end
    assert.same({}, streams.inbox(path, "talk_1"))
    assert.equal(0, respond("talk_1 ask_1 no").code)
    local r = respond "talk_1 ask_1 yes"
    assert.equal(1, r.code)
    has(r.err, "already answered: the first response counts")
  end)
end)

describe("agenthost resume", function()
  it("runs the script of the conversation in its folder", function()
    write("a.lua", [[
      local pipe <close> = io.popen "pwd"
      print("again", pipe:read "l", ...)]])
    wait_for "talk_1"
    local r = shell(("cd / && \"$A\" resume talk --store %s </dev/null"):format(path))
    assert.equal(0, r.code, r.err)
    assert.equal("again\t" .. folder .. "\n", r.out)
    r = run "resume --store state/work.db"
    assert.equal(0, r.code, r.err)
    has(r.out, "again")
    r = run "resume --json --store state/work.db talk_1"
    assert.same({ reply = ah.null }, ah.json.decode(r.out))
    has(r.err, "again")
  end)

  it("leaves other conversations of the script alone", function()
    write("a.lua", [[
      return require "agenthost".agent { id = "talk_2", model = "demo/echo" }]])
    wait_for "talk_1"
    local r = run("resume talk_1 --store state/work.db")
    assert.equal(2, r.code, r.err)
    has(r.err, "has not opened conversation 'talk_1', but another one or none")
    has_not(run("show talk_2 --store state/work.db").out, " run ")
  end)

  it("says what is missing", function()
    wait_for("talk_1", {}, { script = folder .. "/gone.lua" })
    local r = run "resume talk_1 --store state/work.db"
    assert.equal(2, r.code)
    has(r.err, "gone.lua")
    wait_for("talk_2", {}, { folder = folder .. "/none" })
    r = run "resume talk_2 --store state/work.db"
    assert.equal(1, r.code)
    has(r.err, "cannot enter '" .. folder .. "/none'")
    streams.make(path, "ended", { streams.waiting({})[1] }, { state = "idle" })
    has(run("resume ended --store state/work.db").err, "has no unfinished run to go on with")
    streams.make(path, "code", { streams.record("opened", { format = 1, stream = "conversation",
      written_by = "0.1.0", readable_from = 1, folder = folder }), streams.record("run_started",
      { run = 1, first = 0 }) }, { state = "running" })
    has(run("resume code --store state/work.db").err, "was not begun by a script in a file")
    r = shell(("cd / && \"$A\" resume --store %s </dev/null"):format(path))
    assert.equal(2, r.code)
    has(r.err, "no conversation of this folder")
  end)
end)

describe("a script's store", function()
  it("is not in its environment, nor in that of its processes", function()
    local script = write("a.lua", [[
      print(os.getenv "AGENTHOST_STORE", os.execute 'test -z "$AGENTHOST_STORE"')]])
    local r = run(script, "AGENTHOST_STORE=" .. path)
    assert.equal("nil\ttrue\texit\t0\n", r.out)
  end)

  it("is taken from --store before AGENTHOST_STORE, which config shows", function()
    local r = run("config --json --store x.db", "AGENTHOST_STORE=/y.db")
    local shown = ah.json.decode(r.out)
    assert.same({ from = "flag", value = "x.db" }, shown.settings.store)
    assert.same({ from = "environment", value = "/y.db" }, shown.variables.AGENTHOST_STORE)
  end)

  it("keeps only what has an id, and a warning says so", function()
    write("a.lua", [[
      return require "agenthost".agent { id = os.getenv "ID", model = "demo/echo" }]])
    local r = run "--store none.db a.lua Hello"
    assert.equal(0, r.code, r.err)
    has(r.err, "nothing is kept in 'none.db': a.lua names no conversation\nGive its agent an id")
    assert.equal("", run("--quiet --store none.db a.lua Hello").err)
    assert.equal("", run("--store state/some.db a.lua Hello", "ID=ann").err)
    has(run("list --store state/some.db").out, "  ann  idle  Hello\n")
  end)

  it("of a project's file needs trust", function()
    write("agenthost.conf", "store = work.db\n")
    has(run("config").out, "says where conversations are kept")
    has(agenthost("config").out, "\nstore ")
  end)
end)

describe("--json of a script whose run waits", function()
  local SCRIPT = [[
    local ah = require "agenthost"
    local buy = ah.tool { name = "buy", description = "Buys.", on_lost = "retry",
      handler = function() return "bought" end }
    local calls = { calls = { { name = "buy" }, { name = "buy" } } }
    local agent = assert(ah.agent { id = "order", tools = { buy },
      policies = { function() return "ask", "it costs" end },
      model = ah.scripted { resumes = true, { calls = { { name = "buy" } } }, calls, "Done." } })
    assert(agent:run(not agent.unfinished and "Buy." or nil))]]

  local function respond(ask)
    assert.equal(0, run("respond --store state/work.db order " .. ask .. " yes").code)
  end

  it("has the ids of its asks, also when it goes on", function()
    write("a.lua", SCRIPT)
    local r = run "--json --store state/work.db a.lua"
    assert.equal(5, r.code, r.err)
    local err = ah.json.decode(r.out).error
    assert.equal("waiting", err.code)
    assert.same({ "1" }, err.asks)
    respond "1"
    r = run "--jsonl --store state/work.db a.lua"
    assert.equal(5, r.code, r.err)
    err = ah.json.decode(r.out:match "([^\n]+)\n$")
    assert.equal("done", err.type)
    assert.same({ "2" }, err.asks)
    respond "2"
    run "--store state/work.db a.lua"
    respond "3"
    r = run "--json --store state/work.db a.lua"
    assert.equal(0, r.code, r.err)
    assert.equal("Done.", ah.json.decode(r.out).reply.text)
  end)

  it("has none for other errors", function()
    write("a.lua", [[error "broken"]])
    local r = run "--json --store state/work.db a.lua"
    assert.equal(1, r.code)
    assert.is_nil(ah.json.decode(r.out).error.asks)
  end)
end)
