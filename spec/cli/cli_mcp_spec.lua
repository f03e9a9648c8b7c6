-- agenthost mcp list, tools, call and pin, the option --mcp of prompts and chats, and ah.mcp_file:
-- servers by name, by address and by command, the trust that a project's file needs, and changed
-- definitions that a person accepts.
local ah = require "agenthost"
local command = require "support.command"
local typing = require "support.typing"

local has, has_not, quote = command.has, command.has_not, command.quote
local it_if = typing.it(it, pending)

local FAKE = os.getenv "PWD" .. "/spec/support/fake_mcp.lua"
local EVIL = "IN\27[2J\27]0;t\7\u{202e}\u{200b} OUT"
local root -- HOME is root/home, a project root/home/project

local function write(path, text)
  os.execute(("mkdir -p %s"):format(quote((root .. "/" .. path):match "^(.*)/")))
  command.write(root .. "/" .. path, text)
end

-- Writes the script of a server. Returns the words that start it.
local function server(text, name)
  local path = ("%s/%s.lua"):format(root, name or "server")
  command.write(path, text)
  return { "lua5.4", FAKE, path, path .. ".log" }
end

-- Returns a script whose tool `add` has this description.
local function script(description)
  return ([[
    return { tools = { { name = "add", description = %q, annotations = { readOnlyHint = true },
      inputSchema = { type = "object", properties = { a = { type = "number" },
        s = { type = "string" } }, required = { "a" } } } },
      call = { add = function(x) return "sum " .. x.a .. (x.s or "") end } }]]):format(description)
end

-- Returns a file of servers.
local function file_of(servers)
  return ah.json.encode { mcpServers = ah.object(servers) }
end

local function entry(words)
  return { command = words[1], args = table.move(words, 2, #words, 1, {}) }
end

local ENV = "unset AGENTHOST_MODEL XDG_STATE_HOME XDG_CONFIG_HOME; export HOME=%s/home; "
  .. "cd %s/%s && "

-- Runs a shell line in a folder below root, with `a` for `agenthost mcp`.
local function at(folder, line)
  return command.shell((ENV .. [[a() { "$A" mcp "$@"; }; { %s; } </dev/null]]):format(root, root,
    folder, line))
end

local function says(folder, line)
  local r = at(folder, line)
  assert.same({ 0, "" }, { r.code, r.err }, r.err .. r.out)
  return r.out
end

local function fails(code, folder, line, ...)
  local r = at(folder, line)
  assert.equal(code, r.code, r.err .. r.out)
  for _, part in ipairs { ... } do
    has(r.err, part)
  end
  return r
end

-- Starts a line on a terminal, in the project.
local function on_terminal(line)
  return typing.start({ "/bin/sh", "-c", (ENV .. "exec %s %s"):format(root, root, "home/project",
    command.BINARY, line) })
end

local S -- words of a server, behind --

before_each(function()
  root = ah._real_path(command.folder())
  write("home/project/sub/x", "")
  S = " -- " .. table.concat(server(script "Adds."), " ")
end)
after_each(command.tidy)

describe("agenthost mcp tools", function()
  it("lists the tools of a command, and shows one of them", function()
    assert.equal("add (read_only)\n  Adds.\n", says(".", "a tools" .. S))
    local one = says(".", "a tools add" .. S)
    has(one, "add (read_only)\n  Adds.\n\nparameters\n")
    has(one, "a: number")
    local rows = assert(ah.json.decode(says(".", "a tools --json" .. S)))
    assert.same({ "add", "pinned", "Adds." }, { rows[1].name, rows[1].state, rows[1].description })
    assert.equal("number", rows[1].parameters.properties.a.type)
  end)

  it("says what cannot be done", function()
    fails(2, ".", "a tools", "no server given")
    fails(2, ".", "a tools nothing", "there is no MCP server 'nothing'", ".mcp.json")
    fails(2, ".", "a tools ad" .. S, "the server has no tool 'ad' (did you mean 'add'?)")
    fails(3, ".", "a tools http://127.0.0.1:1/", "cannot be reached")
    fails(3, ".", "a tools -- false", "MCP server 'false'")
    fails(2, ".", "a tools a b" .. S, "takes one TOOL")
  end)

  it("lists prompts and resources", function()
    S = " -- " .. table.concat(server [[return { capabilities = { prompts = {}, resources = {} },
      on = { ["prompts/list"] = function(m, api) api.reply(m, { prompts = api.array {
        { name = "review", description = "Reviews." } } }) end,
      ["resources/list"] = function(m, api) api.reply(m, { resources = api.array {
        { uri = "file:///x", name = "x" } } }) end } }]], " ")
    assert.equal("review\n  Reviews.\n", says(".", "a tools --prompts" .. S))
    assert.equal("file:///x\n", says(".", "a tools --resources" .. S))
    assert.equal("", says(".", "a tools" .. S))
  end)
end)

describe("agenthost mcp call", function()
  it("calls a tool with arguments of both forms", function()
    assert.equal("sum 1.5\n", says(".", "a call add a=1.5" .. S))
    assert.equal("sum 12\n", says(".", "a call add a=1 s=2" .. S))
    assert.equal("sum 1=x\n", says(".", [[a call add '{"a":1,"s":"=x"}']] .. S))
    assert.same({ success = true, content = "sum 1", value = "sum 1" },
      ah.json.decode(says(".", "a call --json add a=1" .. S)))
  end)

  it("has exit code 1 if the tool fails, and 2 for wrong words", function()
    fails(1, ".", "a call add" .. S, "/a: is required")
    fails(1, ".", "a call add a=x" .. S, "must be")
    fails(2, ".", "a call add a=1 a=2" .. S, "the argument 'a' is given twice")
    fails(2, ".", "a call add x" .. S, "an argument is NAME=VALUE")
    fails(2, ".", "a call add '{\"a\"'" .. S, "one JSON object")
    fails(2, ".", "a call ad" .. S, "(did you mean 'add'?)")
    fails(3, ".", "a call http://127.0.0.1:1/ add", "cannot be reached")
    fails(1, ".", "a call fail -- " .. table.concat(server [[return { tools = { { name = "fail",
      inputSchema = { type = "object" } } }, call = { fail = function() return { isError = true,
      content = { { type = "text", text = "no luck" } } } end } }]], " "), "no luck")
  end)

  it("keeps an image in a file, and prints none", function()
    S = " -- " .. table.concat(server [[return { tools = { { name = "dot",
      inputSchema = { type = "object" } } }, call = { dot = function(_, _, api)
        return { content = api.array { { type = "image", mimeType = "image/gif",
          data = "R0lGODlhAQABAIAAAP8AAAAAACwAAAAAAQABAAACAkQBADs=" } } } end } }]], " ")
    local r = fails(0, ".", "a call dot" .. S, "the result has 1 image; -o FILE keeps the first")
    assert.equal("", r.out)
    says(".", "a call dot -o dot.gif" .. S)
    assert.equal("GIF89a", command.contents(root .. "/dot.gif"):sub(1, 6))
  end)

  local ASKS = [[return { tools = { { name = "ask", inputSchema = { type = "object" } } },
    call = { ask = function(_, m)
      local given = m.params.inputResponses
      if given then return "got " .. tostring((given.q.content or {}).n) end
      return { resultType = "input_required", inputRequests = { q = {
        method = "elicitation/create", params = { mode = "form", message = %q,
          requestedSchema = { type = "object", properties = { n = { type = "string" } },
            required = { "n" } } } } } }
    end } }]]

  it_if("asks the person at the terminal what the server asks", function()
    S = " -- " .. table.concat(server(ASKS:format(EVIL)), " ")
    local t = on_terminal("mcp call ask" .. S)
    typing.read(t, "IN\\x1b[2J")
    typing.read(t, "n")
    t.pty:write "blue\r"
    local code, all = typing.finish(t)
    has(all, "got blue")
    assert.equal(0, code)
    has_not(all, "\27[2J")
  end)

  it("fails if there is no terminal for a question", function()
    fails(1, ".", "a call ask -- " .. table.concat(server(ASKS:format "Which one"), " "),
      "there is no terminal on which a person could answer")
  end)
end)

describe("agenthost mcp pin", function()
  local function change(description)
    server(script(description))
  end

  it("shows a changed definition, and accepts it", function()
    says(".", "a tools" .. S)
    assert.equal("No definition has changed.\n", says(".", "a pin"))
    change("Sends.\n" .. EVIL)
    local r = fails(1, ".", "a call add a=1" .. S, "Nothing was run", "agenthost mcp pin fake_mcp")
    assert.equal("", r.out)
    r = fails(1, ".", "a pin fake_mcp", "there is no terminal to ask on")
    has(r.out, "fake_mcp, tool add, seen ")
    has(r.out, "\n description\n  - Adds.\n  + Sends.\n  + IN\\x1b[2J")
    has_not(r.out, "\27")
    fails(1, ".", "a call add a=1" .. S, "Nothing was run")
    has(says(".", "a pin --yes fake_mcp add"), "It is accepted.\n")
    assert.equal("sum 1\n", says(".", "a call add a=1" .. S))
    assert.equal("No definition has changed.\n", says(".", "a pin"))
  end)

  it("is asked for by scripts, too, which all have the same pins", function()
    says(".", "a tools" .. S)
    change "Sends."
    local words = server(script "Sends.")
    write("agent.lua", ("local ah = require 'agenthost'\nprint(ah.run { tools = { ah.mcp { command "
      .. "= 'lua5.4', args = { %q, %q, %q } } }, model = ah.scripted { function(r) return "
      .. "r.tools[1].description end }, 'Go.' })"):format(words[2], words[3], words[4]))
    local r = fails(0, ".", '"$A" agent.lua', "the definition of tool 'add' has changed")
    assert.equal("Adds.\n", r.out)
    says(".", "a pin --yes")
    assert.equal("Sends.\n", says(".", '"$A" agent.lua'))
  end)

  it("has JSON, and accepts nothing that it was not asked about", function()
    says(".", "a tools" .. S)
    change "Sends."
    fails(1, ".", "a call add a=1" .. S)
    local r = fails(1, ".", "a pin --json")
    local said = ah.json.decode(r.out).changes[1]
    assert.same({ "Adds.", "Sends.", false },
      { said.pinned.description, said.offered.description, said.accepted })
    assert.equal("No definition has changed.\n", says(".", "a pin fake_mcp other"))
    fails(2, ".", "a pin fake_mpc", "no tool of 'fake_mpc' is pinned (did you mean 'fake_mcp'?)")
    assert.is_true(ah.json.decode(says(".", "a pin --json --yes" .. S)).changes[1].accepted)
    assert.equal("sum 1\n", says(".", "a call add a=1" .. S))
  end)

  it("forgets a server", function()
    says(".", "a tools" .. S)
    change "Sends."
    fails(2, ".", "a pin --forget", "--forget needs a SERVER")
    has(says(".", "a pin --forget" .. S), "fake_mcp is forgotten")
    assert.equal("sum 1\n", says(".", "a call add a=1" .. S))
  end)

  it("names a file that is damaged", function()
    write("home/.local/state/agenthost/mcp_pins.json", "{}")
    for _, line in ipairs { "a pin", "a list", "a tools" .. S, "a call add a=1" .. S } do
      fails(2, ".", line, "/home/.local/state/agenthost/mcp_pins.json': it is damaged")
    end
  end)

  it_if("asks on the terminal", function()
    says(".", "a tools" .. S)
    for i, key in ipairs { "n", "y" } do
      change("Sends " .. i)
      fails(1, ".", "a call add a=1" .. S)
      local t = on_terminal "mcp pin"
      typing.read(t, "[y/N] ")
      t.pty:write(key .. "\r")
      local code, all = typing.finish(t)
      assert.equal(key == "y" and 0 or 1, code, all)
      has(all, "+ Sends " .. i)
    end
    assert.equal("sum 1\n", says(".", "a call add a=1" .. S))
  end)
end)

describe("a project's .mcp.json", function()
  local PROJECT, USER = "home/project/.mcp.json", "home/.config/agenthost/mcp.json"

  before_each(function()
    write(PROJECT, file_of { calc = entry(server(script "Adds.")) })
  end)

  it("is used from no folder without its consent", function()
    for _, line in ipairs { "a tools calc", "a call calc add a=1",
      '"$A" -m demo/tools --no-store --mcp "Go on."',
      '"$A" chat -m demo/tools --no-store --mcp' } do
      fails(2, "home/project/sub", line, "there is no terminal", ".mcp.json' are the project's")
    end
    local f = io.open(root .. "/server.lua.log")
    assert.is_nil(f)
    has(says("home/project/sub", "a list"), "calc             project  untrusted  lua5.4 ")
    fails(2, ".", "a tools calc", "there is no MCP server 'calc'")
  end)

  it("that is named needs no consent", function()
    assert.equal("sum 1\n", says("home/project", "a call --file .mcp.json calc add a=1"))
    local r = at("home/project", '"$A" -m demo/tools --no-store --mcp=.mcp.json "Go on."')
    has(r.out, "- add: Tool 'add' was not run: not approved")
  end)

  it_if("is shown and asked about once, and again when it has changed", function()
    write("home/project/.mcp.json", file_of { calc = entry(server(script "Adds.")),
      [EVIL:gsub("%c", "")] = { type = "http", url = "https://tea.example/?k=${TEA_KEY}",
        headers = { ["X-Key"] = "secret" } } })
    local t = on_terminal "mcp tools calc"
    typing.read(t, "[y/n]")
    for _, part in ipairs { "Servers of the project, " .. root .. "/home/project/.mcp.json",
      "calc", "starts: lua5.4", "with: " .. FAKE, "asks: https://tea.example/?k=${TEA_KEY}",
      "sends the headers: X-Key", "is given your variables: TEA_KEY", "\\u202e" } do
      has(t.all:gsub("\r?\n +", " "), part)
    end
    has_not(t.all, "secret")
    t.pty:write "y\r"
    local code, all = typing.finish(t)
    assert.equal(0, code, all)
    assert.equal("sum 1\n", says("home/project/sub", "a call calc add a=1"))
    has(says(".", '"$A" trust --list'), "trusted     " .. root .. "/home/project/.mcp.json")
    write(PROJECT, file_of { calc = { command = "true" } })
    fails(2, "home/project", "a tools calc", "there is no terminal")
    has(says(".", '"$A" trust --list'), "changed     " .. root .. "/home/project/.mcp.json")
  end)

  it("hides a server of the user of the same name, and no other", function()
    write(USER, file_of { calc = entry(server(script "Mine.", "mine")),
      own = entry(server(script "Own.", "own")) })
    fails(2, "home/project", "a tools calc", "there is no terminal")
    has(says("home/project", "a tools own"), "Own.")
    has(says(".", "a tools calc"), "Mine.")
    assert.equal("calc\nown\n", says(".", '"$A" completion servers'))
    local rows = ah.json.decode(says(".", "a list --json")).servers
    assert.same({ "calc", "user", true, 1 }, { rows[1].name, rows[1].from, rows[1].trusted,
      rows[1].pinned })
  end)

  it("of another repository is not found", function()
    os.execute(("mkdir -p %s/home/project/other/.git"):format(root))
    has(says("home/project/other", "a list"), "No server has a name here")
  end)

  it("is checked by list --check", function()
    write(USER, file_of { own = entry(server(script "Own.", "own")), off = { command = "false",
      disabled = true }, bad = { command = "false" } })
    local r = fails(3, ".", "a list --check")
    has(r.out, "own              user     ok         lua5.4")
    has(r.out, "1 tools, 2026-07-28")
    has(r.out, "off              user     off ")
    has(r.out, "bad              user     failed ")
  end)

  it("that is wrong is told by its name", function()
    for text, why in pairs { ["{"] = "it is no JSON: line 1",
      ['{"x":1}'] = 'no object "mcpServers"',
      [file_of { a = { type = "sse", url = "http://x" } }] = 'the type "sse" is not supported',
      [file_of { a = {} }] = 'needs one of "command" and "url", found none',
      [file_of { a = { command = "x", args = "y" } }] = '"args" must be a list of texts',
      [file_of { a = { command = "x", env = { A = 1 } } }] = '"env" must be an object of texts',
      ["\0"] = "NUL" } do
      write(PROJECT, text)
      has(fails(2, "home/project", "a tools a").err, why)
      local r = fails(2, "home/project", "a list", why)
      assert.equal("", r.out)
    end
    local many = {}
    for i = 1, 101 do
      many["s" .. i] = { command = "x" }
    end
    write(PROJECT, file_of(many))
    fails(2, "home/project", "a list", "it has 101 servers, more than 100")
  end)
end)

describe("ah.mcp_file", function()
  local function fields(text, options)
    local path = root .. "/servers.json"
    command.write(path, text)
    local list = {}
    for i, one in ipairs(ah.mcp_file(path, options)) do
      list[i] = one.config
    end
    return list
  end

  it("returns servers with the values of variables", function()
    local home = os.getenv "HOME"
    local list = fields(file_of { ["My Server!"] = { command = "${HOME}/x", args = ah.array {
      "a${NOT_SET_HERE:-b}c", "$HOME ${1} ${HOME" }, env = { A = "${HOME}" }, cwd = "sub" },
      ["my-server-"] = { type = "streamable-http", url = "https://x.example/${NOT_SET_HERE:-}",
        headers = { B = "Bearer ${HOME}" } }, off = { command = "x", disabled = true } },
      { sandbox = "auto", optional = true })
    assert.equal(2, #list)
    assert.same({ "my-server-", home .. "/x", "abc", "$HOME ${1} ${HOME", home, root .. "/sub",
      "auto", true }, { list[1].name, list[1].command, list[1].args[1], list[1].args[2],
      list[1].env.A, list[1].cwd, list[1].sandbox, list[1].optional })
    assert.same({ "my-server-_2", "https://x.example/", "Bearer " .. home },
      { list[2].name, list[2].url, list[2].headers.B })
    assert.equal("my-server-", fields(file_of { ["My Server!"] = { command = "x" } },
      { only = { "My Server!" } })[1].name)
  end)

  it("raises an error that names the file, the server and the variable", function()
    local function wrong(text, part, options)
      local ok, err = pcall(fields, text, options)
      assert.is_false(ok)
      assert.equal("usage", err.code)
      has(err.message, root .. "/servers.json")
      has(err.message, part)
    end
    wrong(file_of { a = { command = "x", args = ah.array { "${NOT_SET_HERE}" } } },
      "server 'a': the variable NOT_SET_HERE is not set")
    wrong(file_of { a = { url = "ftp://x" } }, "field 'url' must begin with http")
    wrong(file_of { a = { command = "x" } }, "it has no server 'b'", { only = { "b" } })
    wrong(("x"):rep((1 << 20) + 1), "larger than")
    has_not(select(2, pcall(fields, '{"mcpServers":{"a":{"headers":{"k":"my-secret"x'))
      .message, "my-secret")
  end)

  it("gives a run its tools", function()
    local path = root .. "/servers.json"
    command.write(path, file_of { calc = entry(server(script "Adds.")) })
    local servers = ah.mcp_file(path)
    local reply = assert(ah.run { tools = servers, "Go.", model = ah.scripted {
      { calls = { { name = "add", arguments = { a = 1 } } } }, "Done." } })
    assert.equal("sum 1", reply.messages[3].content)
    servers[1]:close()
  end)
end)
