-- Hostile text on a terminal: escapes, controls, marks of direction, characters that cannot be seen
-- and bytes that are not UTF-8, from each place from which text can come, in each command that
-- prints. The terminal gets the command's own sequences alone, and what was hidden is shown as a
-- number.
local ah = require "agenthost"
local command = require "support.command"
local server = require "support.server"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if = typing.it(it, pending)

-- The sequences in them are none of those that the command sends.
local EVIL = "IN\27[2J\27]0;t\7\27]8;;http://x\27\\L\27Pq\27\\\27c\u{9b}5m\u{85}\u{61c}\u{202e}"
  .. "\u{2066}\u{2028}\u{200b}\u{feff}\u{e0041}\8\8\127\11\12\15 OUT"
local NAME = "IN\27[2J\27]0;t\7\u{9b}5m\u{202e}\u{200b}\u{e0041}\8\127OUT" -- of files and such
local HALF = "IN\27[2J\x9b5m\xe4\xb8\xed\xa0\x80\xff\xc0\x80OUT" -- where any bytes may be

-- -- the judge ---------------------------------------------------------------------------------

-- Sequences of the command, each for the whole of what follows ESC.
local OWN = { "^[DM78]", "^%[J", "^%[K", "^%[%d*[AC]", "^%[%?25[hl]", "^%[%?2004[hl]", "^%[>1u",
  "^%[<u" }
local STYLES = { ["0"] = true, ["1"] = true, ["2"] = true, ["3"] = true, ["31"] = true,
  ["32"] = true, ["33"] = true, ["36"] = true }

local function own_sequence(s, at)
  local style = s:match("^%[([%d;]*)m", at)
  if style then
    for code in style:gmatch "[^;]+" do
      assert(STYLES[code], "a style that is not ours: " .. style)
    end
    return #style + 2
  end
  for _, pattern in ipairs(OWN) do
    local _, last = s:find(pattern, at)
    if last then
      return last - at + 1
    end
  end
end

-- Asserts that the output has no control but line ends, tabs and the sequences above, is UTF-8, and
-- has nothing that turns the direction or cannot be seen.
local function judge(all)
  local function fail(at, what)
    error(("%s at %q"):format(what, all:sub(math.max(1, at - 60), at + 40)), 0)
  end
  local at = 1
  while at <= #all do
    local before = at
    at = all:find("[^\32-\126]", at) or #all + 1
    local byte = all:byte(at)
    if byte == 27 then
      local n = own_sequence(all, at + 1)
      at = n and at + n + 1 or fail(at, "a sequence")
    elseif byte == 13 then
      at = all:find("^\n", at + 1) and at + 2 or all:find("^\27", at + 1) and at + 1
        or all:find("^[^\n]", at + 1) and at + 1 or at + 1
    elseif byte == 10 or byte == 9 or all:find("^\7\27%[1m[AQ]%l", at) then -- the bell of an ask
      at = at + 1
    elseif byte and byte < 0x80 then
      fail(at, "a control")
    elseif byte then
      local last = utf8.len(all, at, at) and utf8.offset(all, 2, at) or fail(at, "bytes")
      local code = utf8.codepoint(all, at)
      if code < 0xa0 or code == 0x61c or code == 0x200b or code == 0xfeff
        or code >= 0x200e and code <= 0x200f or code >= 0x2028 and code <= 0x202e
        or code >= 0x2060 and code <= 0x206f or code >= 0xe0000 and code <= 0xe007f then
        fail(at, "a hidden character")
      end
      at = last
    end
    assert(at > before)
  end
end

-- -- the place ---------------------------------------------------------------------------------

local home

before_each(function()
  home = command.folder()
end)

after_each(command.tidy)

local function file(name, text)
  local f <close> = assert(io.open(home .. "/" .. name, "wb"))
  f:write(text)
  return name
end

-- Starts the words in the folder of the spec. env: a list of NAME=VALUE more.
local function start(words, env)
  local parts = {}
  for i, word in ipairs(words) do
    parts[i] = command.quote(word)
  end
  return typing.start({ "/bin/sh", "-c", ("cd %s && exec %s %s"):format(home, command.BINARY,
    table.concat(parts, " ")) }, { env = table.move(env or {}, 1, #(env or {}), 3,
    { "TERM=xterm", "XDG_STATE_HOME=" .. home .. "/state" }) })
end

-- Runs the words on a terminal, and judges the output. parts: texts that it must have. Returns it.
local function shown(words, parts, env)
  local t = typing.read(start(words, env))
  t.pty:wait(30)
  t.pty:close()
  local ok, why = pcall(function()
    judge(t.all)
    for _, part in ipairs(parts or { "\\x1b[2J" }) do
      has(t.all, part)
    end
  end)
  if not ok then
    error(("agenthost %s: %s"):format(table.concat(words, " "):gsub("[^\32-\126]", "?"), why), 0)
  end
  return t.all
end

-- Runs Lua code with -e.
local function code(text, parts, words)
  words = words or {}
  return shown(table.move({ "-e", text }, 1, 2, #words + 1, words), parts)
end

local function q(s)
  return ("%q"):format(s):gsub("\\\n", "\\n"):gsub("[^\32-\126]", function(c)
    return ("\\x%02x"):format(c:byte())
  end)
end

-- -- the specs ---------------------------------------------------------------------------------

describe("hostile text on a terminal, in the command line,", function()
  it_if("is shown when it is no command and no script", function()
    for _, evil in ipairs { NAME, HALF, "x\r\nagenthost: FORGED" } do
      local all = shown({ evil }, {})
      has_not(all, "\nagenthost: FORGED")
    end
    shown({ NAME })
    shown({ HALF }, { "\\x1b[2J\\x9b5m\\xe4\\xb8\\xed\\xa0\\x80\\xff\\xc0\\x80OUT" })
    shown({ NAME .. ".lua" })
    shown({ "./" .. HALF })
    shown({ "-q", NAME, "@" .. NAME })
  end)

  -- Each line is one of the command, with EVIL in some of its words.
  local function each(lines)
    for line in lines:gmatch "[^\n]+" do
      local words = {}
      for word in line:gmatch "%S+" do
        words[#words + 1] = word:gsub("EVIL", (NAME .. HALF):gsub("%%", "%%%%")):gsub("~", " ")
      end
      shown(words, {})
    end
  end

  it_if("is shown when it is a flag or the value of one", function()
    file("x.lua", "")
    each [[
      --EVIL
      -EVIL
      --json=EVIL x.lua
      --color EVIL x.lua
      --record /EVIL x.lua
      --replay EVIL x.lua
      --env-file EVIL x.lua
      -o EVIL a~b
      -o EVIL=1 a~b
      -o temperature=EVIL a~b
      -t EVIL a~b
      -m EVIL a~b
      -m openai/EVIL a~b
      --schema EVIL a~b
      --image EVIL -m demo/echo a~b
      --max-cost EVIL a~b
      --resume EVIL a~b
      -m demo/echo a~b @EVIL
      -m demo/echo a~b @http://127.0.0.1:1/EVIL
      --store /no/EVIL -m demo/echo a~b]]
  end)

  it_if("is shown by each command that gets it as a word", function()
    file("some.db", "")
    each [[
      show EVIL
      diff EVIL x
      fork EVIL --at 1
      fork x --at EVIL
      rewind EVIL --to 1
      replay EVIL
      resume EVIL
      respond EVIL 1 yes
      respond x EVIL EVIL
      asks EVIL
      search EVIL
      search x --limit EVIL
      store EVIL
      store delete EVIL
      store verify EVIL
      store export EVIL
      store import EVIL
      store gc --older EVIL
      list EVIL
      list --store /no/EVIL
      tools EVIL
      check EVIL
      config EVIL
      models EVIL
      models openai/EVIL
      trust EVIL
      help EVIL
      help ah.EVIL
      completion EVIL
      mock EVIL
      mock --port EVIL x
      init EVIL
      init x --template EVIL
      init some.db/EVIL
      test --EVIL
      prompt --EVIL
      EVIL x]]
  end)
end)

describe("hostile text on a terminal, in errors of scripts,", function()
  it_if("is shown", function()
    code("error(" .. q(EVIL) .. ")")
    code("error(" .. q(HALF) .. ")", { "\\x1b[2J\\x9b5m\\xe4\\xb8" })
    code("error(setmetatable({}, { __tostring = function() return " .. q(EVIL) .. " end }))")
    code("error { code = 'x', message = " .. q(EVIL) .. " }", {})
    code("local " .. HALF .. " = 1", {})
    code("require(" .. q(NAME) .. ")")
    code("warn('@on') warn(" .. q(EVIL) .. ")", {})
    code("setmetatable({}, { __gc = function() error(" .. q(EVIL) .. ") end })", {})
    code("local co = coroutine.wrap(function() error(" .. q(EVIL) .. ", 0) end) co()")
    code("ah.spawn(function() error(" .. q(EVIL) .. ") end)", {})
    code("os.exit(" .. q(EVIL) .. ")", {})
    shown { file(NAME .. ".lua", "error 'x'") }
    shown({ file("a.lua", "x = = " .. HALF) }, {})
    shown({ file("b.lua", "\27Lua" .. HALF) }, {})
    code("return ah.agent { name = " .. q(EVIL) .. ", model = 'demo/echo' }", {})
  end)

  it_if("is shown in the log", function()
    local run = "print(ah.run { model = %s, retries = 0, 'x', tools = { ah.tool { name = 't', "
      .. "description = 'd', params = { x = 'string?' }, handler = function(_, ctx) "
      .. "ctx:progress(" .. q(EVIL) .. ") %s end } } } and 1)"
    local model = ("ah.scripted { { text = EVIL, calls = { { name = 't', arguments = { x = EVIL } "
      .. "}, { name = EVIL, arguments = EVIL } } }, EVIL }"):gsub("EVIL", function()
        return q(EVIL)
      end)
    for _, flag in ipairs { "-q", "-v", "-vv" } do
      local words = flag == "-q" and {} or { flag == "-v" and "\\x1b[2J" or "\\u001b[2J" }
      code(run:format(model, "return " .. q(EVIL)), words, { flag })
      code(run:format(model, "error(" .. q(EVIL) .. ")"), words, { flag })
      code(run:format("ah.adapter { name = 'a/b', answer = function(_, out) out:fail { message = "
        .. q(EVIL) .. " } end }", ""), { flag ~= "-q" and "IN [2J" or nil }, { flag })
    end
    code(run:format(model, "ah.sleep(0.7)"), {})
    for _, flag in ipairs { "--json", "--jsonl" } do
      code(run:format(model, "return " .. q(EVIL)), { "\\u001b[2J", "\\udb40\\udc41" }, { flag })
    end
  end)
end)

-- -- conversations in a store --------------------------------------------------------------------

-- Makes a conversation with hostile text in each of its records. EVIL and NAME stand for the texts.
local RECORDS = [=[
local ah = require "agenthost"
local N = ah.type { name = "N", fields = { v = "any" } }
local function session()
  local s = ah.session { types = { N } }
  return s:register(N)
end
local E = ah.entity { name = "Thing", prefix = "thing", id = "id", fields = { "id" },
  state = { "n" } }
E:tool { name = "act", description = "Acts.", handler = function(self)
  self.n = EVIL
  return EVIL
end }
local function handler(f, more)
  local tool = { name = "t" .. (more.n or ""), description = "Does.", full_description = EVIL,
    params = { v = "any?" }, handler = f }
  for key, value in pairs(more) do
    tool[key] = key ~= "n" and value or nil
  end
  return ah.tool(tool)
end
local tools = {
  handler(function(args) return N { v = args.v } end, { n = 1, result = N }),
  handler(function() error(EVIL) end, { n = 2 }),
  handler(function(_, ctx)
    ctx:progress(EVIL)
    ctx:step(EVIL, function() return EVIL end)
    pcall(ctx.step, ctx, NAME, function() error(EVIL) end)
    return EVIL
  end, { n = 3, durable = true }),
  handler(function() return E { id = NAME, n = EVIL } end, { n = 4 }),
  handler(function(_, ctx)
    assert(ctx.filesystem:write(NAME, EVIL))
    return EVIL
  end, { n = 5 }),
  handler(function(args, ctx)
    return ctx:ask { question = EVIL, schema = { type = "string", description = EVIL } }
  end, { n = 6, durable = true }),
}
local function call(n, name)
  return { name = name or "t" .. n, arguments = { v = { [EVIL] = EVIL } } }
end
local agent, err = ah.agent { id = ID, name = "some", system = EVIL, tools = tools, discover = true,
  session = session(), log = function() end,
  resources = { filesystem = ah.filesystem { root = "files" } },
  model = ah.scripted { { text = EVIL, calls = { call(1), call(2), call(3),
    call(4), call(5), call(0, EVIL), { name = "t1", arguments = EVIL } } }, EVIL .. ID,
    { calls = { call(6) } }, EVIL, resumes = true } }
if not agent then error(err) end
local reply, err = agent:run(EVIL .. "\nsecond")
assert(reply, err)
local done, parked = agent:run(EVIL)
if done then error(done.messages[#done.messages-1].content) end
assert(parked.code == "waiting", parked)
]=]

local function with_evil(text, id)
  local values = { EVIL = EVIL, NAME = NAME, ID = id }
  return (text:gsub("%f[%w_]%u+%f[^%w_]", function(word)
    return values[word] and q(values[word])
  end))
end

local function stored()
  assert(os.execute("mkdir " .. home .. "/files"))
  for _, id in ipairs { "one", "two" } do
    local path = file(NAME .. id .. ".lua", with_evil(RECORDS, id))
    local r = command.shell(("cd %s && \"$A\" --store evil.db %s </dev/null"):format(home,
      command.quote("./" .. path)))
    assert.same({ 0, "", "" }, { r.code, r.out, r.err })
  end
end

describe("hostile text on a terminal, in a store,", function()
  it_if("is shown by each command", function()
    stored()
    local function each_line(lines, part)
      for line in lines:gmatch "[^\n]+" do
        local words = {}
        for word in line:gmatch "%S+" do
          words[#words + 1] = word
        end
        words[#words + 1] = "--store"
        words[#words + 1] = "evil.db"
        local all = shown(words, { part })
        assert(not all:find "agenthost/command", line)
      end
    end
    each_line([[
      list
      search IN --best
      store export one]], "[2J")
    each_line([[
      show one
      show one --kept
      show one --tree
      diff one two
      asks
      rewind one --to 1 --dry
      rewind one --to 0 --dry --files]], "\\x1b[2J")
    each_line [[
      resume one
      show one --cache
      replay one
      replay one --tools
      respond one 1 {}
      fork two --at 1 --id three
      store verify
      store stat
      store gc --older 1d --dry]]
    each_line([[
      list --json
      show one --json
      show one --json --kept
      asks --json
      diff one two --json
      search IN --json
      rewind one --to 0 --dry --files --json]], "\\u001b[2J")
    file("import.jsonl", '{"agenthost_store":1,"' .. EVIL .. '":"' .. HALF)
    each_line "store import import.jsonl"
  end)

  it_if("is shown when it is the store's name, or that of a script", function()
    stored()
    os.rename(home .. "/evil.db", home .. "/" .. NAME .. ".db")
    for _, words in ipairs { { "asks" }, { "store", "stat" }, { "show", "x" } } do
      shown(table.move({ "--store", NAME .. ".db" }, 1, 2, #words + 1, words))
    end
  end)
end)

-- -- prompts -------------------------------------------------------------------------------------

describe("hostile text on a terminal, in a prompt,", function()
  local function env_of(s)
    return { "OPENAI_API_KEY=key-1234", "OPENAI_BASE_URL=" .. s.url .. "/v1" }
  end
  local function words(...)
    return { "-m", "openai/gpt-4o", "-o", "temperature=0", ... }
  end

  it_if("is shown as text and as styled text", function()
    local text = ("# %s\n**%s** `%s`\n- %s\n```%s\n%s\n```\n> %s\n%s"):gsub("%%s", function()
      return (EVIL:gsub("[\11\12]", ""))
    end)
    for _, flag in ipairs { "--color=auto", "--plain", "-v", "-vv", "--json", "--jsonl" } do
      local s <close> = server.start { responses = { server.chat_text(text, { stream = true }) } }
      shown(words(flag, "a b"), { flag:find "json" and "\\u001b[2J" or "\\x1b[2J" }, env_of(s))
    end
  end)

  it_if("is shown in errors of a server", function()
    assert(os.execute("mkdir -p " .. home .. "/user/agenthost"))
    file("user/agenthost/config", "[run]\nretries = 0\n")
    local body = server.encode { error = { message = EVIL, type = EVIL, code = EVIL } }
    for _, response in ipairs { { status = 400, body = body },
      { status = 500, body = EVIL .. HALF }, { status = 200, body = HALF },
      { status = 200, body = "data: " .. HALF .. "\n\n",
        headers = { ["Content-Type"] = "text/event-stream" } },
      { status = 302, headers = { Location = "http://" .. NAME } } } do
      for _, flag in ipairs { "-q", "-vv" } do
        local s <close> = server.start { responses = { response } }
        shown(words(flag, "--no-store", "a b"), {}, table.move(env_of(s), 1, 2, 2,
          { "XDG_CONFIG_HOME=" .. home .. "/user" }))
      end
    end
  end)

  it_if("is shown when a call is to be allowed, and in its line", function()
    for key, call in pairs {
      y = { name = "write_file", arguments = { path = "x", content = EVIL } },
      n = { name = "bash", arguments = { command = "echo " .. EVIL } } } do
      local s <close> = server.start { responses = {
        server.chat_calls({ call, { name = "list_files", arguments = { path = NAME } },
          { name = EVIL, arguments = EVIL } }), server.chat_text(EVIL) } }
      local t = start(words("-v", "-t", "write_file,bash,list_files", "a b"), env_of(s))
      typing.read(t, "Allow it?")
      t.pty:write(key .. "\r")
      typing.read(t)
      t.pty:wait(30)
      t.pty:close()
      judge(t.all)
      has(t.all, "\\x1b[2J")
    end
  end)
end)

describe("hostile text on a terminal, in a chat,", function()
  local AGENT = [=[
local ah = require "agenthost"
local tools = {}
for i, f in ipairs { function() return EVIL end, function() error(EVIL) end,
  function(_, ctx) return ctx:ask { question = EVIL .. "Which?", schema = { type = "string",
    description = EVIL } } end } do
  tools[i] = ah.tool { name = "t" .. i, description = "Does.", full_description = EVIL,
    params = { v = "any?" }, handler = f }
end
return ah.agent { name = "some", system = EVIL, tools = tools, retries = 0, model = ah.scripted {
  { text = EVIL, calls = { { name = "t1", arguments = { v = EVIL } }, { name = "t2" },
    { name = EVIL, arguments = EVIL }, { name = "t3", arguments = { v = EVIL } } } },
  "done 1", resumes = true } }
]=]

  it_if("is shown in answers, calls, questions and what is typed", function()
    local path = file(NAME .. ".lua", with_evil(AGENT, ""))
    for _, flag in ipairs { "-q", "-v" } do
      local t = start { flag, "chat", "--store", "chat.db", path }
      local function typed(bytes, part)
        local from = #t.all
        t.pty:write(bytes)
        local until_ = os.time() + typing.SECONDS
        while not t.all:find(part, from + 1, true) do
          assert(os.time() < until_, part)
          t.all = t.all .. assert(t.pty:read(1), "ended before " .. part)
        end
      end
      typed("", "> ") -- before that, the terminal itself would show what is typed
      typed("go \u{202e}\u{200b}\u{e0041}\r", "Which?")
      typed("said \u{9b}5m\r", "done 1")
      typed("/context\r", "system text")
      t.pty:write "\4"
      typing.read(t)
      t.pty:wait(30)
      t.pty:close()
      judge(t.all)
      has(t.all, "\\x1b[2J")
    end
    for _, line in ipairs { "list", "show" } do
      shown({ line, "--store", "chat.db" }, {})
    end
  end)
end)

-- -- settings, scripts and inputs ----------------------------------------------------------------

describe("hostile text on a terminal, in settings,", function()
  it_if("is shown", function()
    local user = home .. "/user/agenthost"
    assert(os.execute("mkdir -p " .. user))
    local function each(text)
      file("user/agenthost/config", text)
      for _, words in ipairs { { "config" }, { "config", "--json" }, { "models" }, { "trust" },
        { "models", "--json" }, { "-m", "demo/echo", "a b" } } do
        shown(words, {}, { "XDG_CONFIG_HOME=" .. home .. "/user", "HOME=/" .. NAME,
          "AGENTHOST_MODEL=" .. NAME, "OPENAI_BASE_URL=http://u:p@" .. NAME })
      end
    end
    for _, text in ipairs { "color = " .. EVIL, HALF, "[models]\nfast = " .. HALF,
      "[models]\n" .. NAME .. " = demo/echo\n", "[" .. EVIL .. "]", "[env]\nX = " .. EVIL } do
      each(text)
      file("agenthost.conf", text)
      each ""
    end
    shown({ "--env-file", file("vars", "A B=" .. HALF), "x.lua" }, {})
    shown({ "--env-file", file("vars", HALF .. "=1"), "x.lua" }, {})
  end)
end)

describe("hostile text on a terminal, of servers of MCP,", function()
  it_if("is shown by each action", function()
    local fake = os.getenv "PWD" .. "/spec/support/fake_mcp.lua"
    local function serve(more)
      file("server.lua", with_evil(([=[return {
        capabilities = { tools = {}, prompts = {}, resources = {} },
        tools = { { name = "t", title = EVIL, description = EVIL .. %q, inputSchema = {
          type = "object", description = EVIL, properties = { [EVIL] = { type = "string",
            description = EVIL, enum = { EVIL } } } } } },
        call = { t = function(_, m, api)
          api.notify("notifications/progress", { progressToken = m.params._meta.progressToken,
            progress = 1, total = 2, message = EVIL })
          return EVIL
        end },
        on = { ["prompts/list"] = function(m, api) api.reply(m, { prompts = api.array {
            { name = NAME, description = EVIL } } }) end,
          ["resources/list"] = function(m, api) api.reply(m, { resources = api.array {
            { uri = EVIL, name = EVIL } } }) end } }]=]):format(more), ""))
    end
    serve ""
    local servers = file("servers.json", ah.json.encode { mcpServers = { [NAME:gsub("%c", "")] = {
      command = "lua5.4", args = ah.array { fake, "server.lua", "log", EVIL } } } })
    local command_of = { "--", "lua5.4", fake, "server.lua", "log" }
    local function each(parts, ...)
      shown(table.move(command_of, 1, #command_of, select("#", ...) + 2, { "mcp", ... }), parts)
    end
    each({ "[2J" }, "tools")
    each({ "[2J" }, "tools", "t")
    each({ "\\x1b[2J" }, "tools", "--prompts")
    each({ "\\x1b[2J" }, "tools", "--resources")
    each({ "\\u001b[2J" }, "tools", "--resources", "--json")
    each({ "\\x1b[2J" }, "call", "t")
    each({ "\\u001b[2J" }, "call", "t", "--json")
    shown({ "mcp", "list", "--check", "--file", servers }, { "[2J" })
    shown({ "mcp", "tools", NAME, "--file", servers }, { "there is no MCP server" })
    serve "more"
    each({ "Nothing was run" }, "call", "t")
    each({ "\\x1b[2J" }, "pin", "--yes")
  end)
end)

describe("hostile text on a terminal, in tools and inputs,", function()
  it_if("is shown by tools and check", function()
    local path = file(NAME .. ".lua", with_evil([=[
      local ah = require "agenthost"
      print("printed")
      return ah.agent { model = "demo/echo", system = EVIL, name = "a", tools = { ah.tool {
        name = "t", description = "d", full_description = EVIL, schema = { type = "object",
          properties = { [EVIL] = { type = "string", description = EVIL, enum = { EVIL } } } },
        handler = function() end } } }]=], ""))
    for _, words in ipairs { { "tools" }, { "check" } } do
      shown({ words[1], path }, {})
      shown({ words[1], "--json", path }, {})
      shown({ words[1], file("wrong.lua", "error(" .. q(EVIL) .. ")") })
    end
  end)

  it_if("is shown by agenthost -i", function()
    local t = start { "-i", "-q" }
    local at = 1
    for _, line in ipairs { q(EVIL), "{ [" .. q(EVIL) .. "] = " .. q(HALF) .. " }",
      "error(" .. q(EVIL) .. ")", "error(setmetatable({}, { __tostring = function() return "
      .. q(HALF) .. " end }))", "setmetatable({}, { __tostring = function() return " .. q(EVIL)
      .. " end })", "setmetatable({}, { __name = " .. q(EVIL) .. " })", "_G[" .. q(NAME)
      .. "] = 1", "x[" .. q(EVIL) .. "].y" } do
      typing.read(t, "> ")
      t.pty:write(line .. "\r")
      t.pty:write(("'line %d'\r"):format(at))
      typing.read(t, ("line %d\r\n"):format(at))
      at = at + 1
    end
    t.pty:write "IN\t\t"
    t.pty:write "\3\4"
    typing.read(t)
    t.pty:wait(30)
    t.pty:close()
    judge(t.all)
    has(t.all, "\\x1b[2J")
  end)
end)

describe("a line of 10 MB", function()
  -- Returns the processor time of the shell's line, in seconds.
  local function cost(line)
    local r = command.shell("{ " .. line .. "; } >/dev/null 2>&1; times")
    local minutes, seconds = r.out:match "\n(%d+)m([%d.]+)s"
    return 60 * tonumber(minutes) + tonumber(seconds)
  end

  it("is shown whole in an error, and cut elsewhere, in linear time", function()
    local text = "local L = ('%s'):rep(%d) "
    local r = command.agenthost("-e", text:format("\\27[2J", 1 << 18) .. "error(L)")
    assert.equal((1 << 18) * #"\\x1b[2J", #r.err:match "agenthost: %-e:1: ([^\n]*)")
    for _, ending in ipairs { "error(L)", "return ah.agent { model = ah.scripted { L } }" } do
      local seconds = {}
      for i, n in ipairs { 1 << 17, 10 << 18 } do
        seconds[i] = cost(('"$A" -v -e %s go'):format(command.quote(text:format("\\27[2J", n)
          .. ending)))
      end
      assert.is_true(seconds[2] < 40 * seconds[1] + 1, ("%g, %g"):format(table.unpack(seconds)))
    end
  end)
end)
