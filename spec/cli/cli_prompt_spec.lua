-- agenthost prompt, -p, and texts with white space: what is a prompt, its parts, its flags, and its
-- conversation in a store. lua/agenthost/command/prompt.lua.
local ah = require "agenthost"
local command = require "support.command"
local mock = require "support.mock"
local server = require "support.server"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if = typing.it(it, pending)
local it_mock = mock.is_built() and it or pending

local DOT = "GIF89a\1\0\1\0\x80\0\0\xff\0\0\0\0\0!\xf9\4\0\0\0\0\0,"
  .. "\0\0\0\0\1\0\1\0\0\2\2D\1\0;" -- an image

local home -- the folder of the spec: files, and the state with the store

before_each(function()
  home = command.folder()
end)

after_each(command.tidy)

-- Runs a line of a shell in the folder; `a` in it is the command with demo/echo.
local function at_home(text)
  return command.shell(("unset AGENTHOST_MODEL; export XDG_STATE_HOME=%s/state; cd %s; "
    .. 'a() { "$A" -m demo/echo "$@"; }; %s'):format(home, home, text))
end

local function file(name, text)
  local f <close> = assert(io.open(home .. "/" .. name, "wb"))
  f:write(text)
end

local function fine(out, text)
  assert.same({ code = 0, out = out, err = "" }, at_home(text))
end

local function refused(part, text)
  local r = at_home(text)
  has(r.err, "agenthost: " .. part)
  assert.same({ 2, "" }, { r.code, r.out })
  return r
end

describe("a prompt", function()
  it("is a text with white space, or any text behind -p", function()
    for _, line in ipairs { 'a "two words"', 'a -p two words', 'a two" "words', 'a -p "two words"',
      'a prompt two words', '"$A" "two words" -m demo/echo',
      'a -- "two words" || a -p two words' } do
      fine("two words\n", "exec 2>/dev/null; " .. line .. " </dev/null")
    end
    for _, word in ipairs { "list", "x.lua", "a/b" } do
      fine(word .. "\n", "a -p " .. word .. " </dev/null")
    end
    fine("-m\n", "a -p -- -m </dev/null")
  end)

  it("is no other word: the nearest command or file is named, and nothing is sent", function()
    file("agent", "")
    has(refused("'lst' is no command, and a script ends in .lua or has a /", "a lst").err,
      "\nDid you mean agenthost list?\nA prompt of one word:  agenthost -p WORD")
    has(refused("'agent' is no command", "a agent").err, "\nDid you mean './agent'?\n")
    file("notes.lua", "print 'ran'")
    has(refused("'notes' is no command", "a notes").err, "\nDid you mean 'notes.lua'?\n")
    fine("ran\n", "a notes.lua")
    local r = at_home "a --json lst"
    assert.equal("usage", ah.json.decode(r.out).error.code)
    has_not(refused("'Read' is no command", "a Read").err, "--head")
    local alone = "has a /\nA prompt of one word:  agenthost -p WORD @FILE     (see"
    has(refused("'Read' is no command", "a Read @notes.lua").err, alone)
    has(refused("'lst' is no command", "a -q lst more @notes.lua").err, alone)
    has(refused("'look' is no command", "a -t list_files look").err, "agenthost -p WORD  ")
    has(refused("'lst' is no command", "a --plain lst").err, "Did you mean agenthost list?")
    refused("option --tool is not for running a script", "a -t list_files notes.lua")
    refused("unknown option '-model' (did you mean --model?)", '"$A" -model demo/echo "a b"')
    refused("unknown option '-system' (did you mean --system?)", 'a -system "a b" x.lua')
  end)

  it("is no script, even one whose name has white space", function()
    file("my script.lua", "print 'ran'")
    fine("ran\n", 'a "my script.lua"')
    fine("see my script.lua\n", 'a "see my script.lua" </dev/null')
  end)

  it("needs a text and a model", function()
    refused("no prompt is given\nTry:  agenthost -m demo/echo", "a -p </dev/null")
    refused("no prompt is given", "a -s x </dev/null")
    refused("option --eval is not for agenthost prompt", "a -p -e 'x()' y")
    local r = refused("no model is chosen\n", 'OPENAI_API_KEY=very-secret "$A" "a b" </dev/null')
    has(r.err, "-m PROVIDER/MODEL, or AGENTHOST_MODEL=")
    has(r.err, "openai/ (OPENAI_API_KEY)")
    has_not(r.err, "very-secret")
    fine("Hello, world\n", 'PATH="$(dirname "$A"):$PATH"; '
      .. r.err:match "Without key or cost:  ([^\n]+)" .. " </dev/null")
    fine("a b\n", 'AGENTHOST_MODEL=demo/echo "$A" "a b" </dev/null')
    refused("model: unknown provider 'x'", '"$A" -m x/y "a b" </dev/null')
    assert.equal(3, at_home('OPENAI_API_KEY= "$A" -m openai/x "a b" </dev/null').code)
  end)

  it("has the exit codes and reports of a script", function()
    local r = at_home [[a --json "a b" </dev/null]]
    assert.equal("a b", ah.json.decode(r.out).reply.text)
    r = at_home [[a --jsonl "a b" </dev/null]]
    has(r.out, '"type":"content"')
    assert.equal(0, r.code)
    r = at_home 'a --json --jsonl "a b"'
    assert.equal(2, r.code)
    has(r.err, "--json and --jsonl: give one of them")
    r = at_home [[a --record r.jsonl "a b" </dev/null; a -v "a b" </dev/null]]
    assert.equal(0, r.code)
    has(r.err, "agenthost: info: ")
  end)

  it("ends when its output cannot be written, or nobody reads it", function()
    local r = at_home [[a "a b" </dev/null >/dev/full]]
    assert.equal(1, r.code)
    has(r.err, "cannot write to standard output")
    r = at_home [[{ (trap '' PIPE; while echo; do :; done) 2>/dev/null # until nobody reads
      a "a b" </dev/null; echo "code $?" >&2; } | true]]
    assert.same({ "", "code 0\n" }, { r.out, r.err })
  end)

  it_if("ends by Ctrl-C while it asks", function()
    local t = typing.start({ "/bin/sh", "-c", ("cd %s && exec %s -q -m demo/tools --no-store "
      .. "-t write_file 'write \"x\"'"):format(home, command.BINARY) }, { bells = true })
    typing.read(t, "Allow it? [y/n/a/e/?]")
    t.pty:write "\3"
    local code, _, shown = typing.finish(t)
    assert.equal(130, code)
    has(shown, "interrupted")
    assert.is_nil(io.open(home .. "/x"))
  end)

  it("reads the settings as a script does", function()
    file("agenthost.conf", "model = demo/echo\n")
    file("vars", "AGENTHOST_MODEL=demo/tools\n")
    fine("a b\n", '"$A" "a b" </dev/null')
    has(at_home('"$A" --env-file vars -t list_files "a b" </dev/null').out, "The tools said:")
  end)
end)

describe("the parts of a prompt", function()
  it("are its words, standard input, files and pages, in this order", function()
    file("b.txt", "of b\n")
    file("a`.txt", "```\nno end")
    fine([[
Compare b.txt with a`.txt now

Standard input:
```
piped
```

b.txt:
```
of b
```

a`.txt:
````
```
no end
````
]], "echo piped | a Compare\\  @b.txt with @a\\`.txt now | sed 's/  / /'")
  end)

  it("are the text itself if there is one without words", function()
    file("q.txt", "What is it?")
    fine("piped\n", "echo piped | a -p")
    fine("piped\n", "echo piped | a -s 'Be brief.'")
    fine("What is it?\n", "a -p @q.txt </dev/null")
    fine("What is it?\n", "a -p <q.txt")
    fine("x y\n", "a 'x y' <&-")
  end)

  it("are only words behind --, and within a text", function()
    file("q.txt", "x")
    fine("@q.txt\n", "a -p -- @q.txt </dev/null")
    fine("see @q.txt and @none\n", "a 'see @q.txt and @none' </dev/null")
    fine("@\n", "a -p @ </dev/null")
  end)

  it("must be there, and text", function()
    file("notes.txt", "x")
    file("zero", "a\0b")
    file("latin", "caf\xe9")
    file("dot", DOT)
    file("large", ("x"):rep((4 << 20) + 1))
    file("half", ("x\n"):rep(1 << 20))
    has(refused("cannot read 'note.txt': No such file or directory\n", "a -p @note.txt </dev/null")
      .err, "Did you mean @notes.txt?")
    refused("cannot read '.': Is a directory", "a -p @. </dev/null")
    refused("'zero' is no text: byte 2 is 0", "a -p @zero </dev/null")
    refused("'latin' is no text in UTF-8: byte 4 is 0xe9\niconv", "a -p @latin </dev/null")
    refused("'dot' is no text, but an image (image/gif)\nGive it as --image dot.",
      "a -p @dot </dev/null")
    refused("standard input is no text", "a -p <zero")
    refused("'large' has more than 4 MiB", "a -p @large </dev/null")
    refused("standard input has more than 4 MiB", "yes | a -p")
    refused("the prompt has ", "a -p x @half @half @half </dev/null")
    refused("cannot read 'no\\x1b[2J': ", "a -p '@no\27[2J' </dev/null")
    refused("the prompt is no text in UTF-8", "a -p '\xff' </dev/null")
  end)

  it("may be a page, reduced to its text", function()
    local s <close> = server.start { routes = {
      ["/page"] = { { headers = { ["Content-Type"] = "text/html" },
        body = "<p>Two <b>moons</b>" } },
      ["/gone"] = { { status = 404, body = "none" } } } }
    local r = at_home(("a 'Sum up:' @%s/page </dev/null"):format(s.url))
    assert.same({ 0, "" }, { r.code, r.err })
    has(r.out, "Two moons")
    has_not(r.out, "<p>")
    refused(("cannot fetch '%s/gone': "):format(s.url), ("a -p @%s/gone </dev/null"):format(s.url))
    has(at_home(("a -p @%s/gone </dev/null"):format(s.url)).err, "status 404")
    refused("cannot fetch 'http://", "a -p @http:// </dev/null")
  end)
end)

describe("the flags of a prompt", function()
  it("name what is near of a word that is not known", function()
    refused("a model has no option 'temprature' (did you mean temperature?)",
      "a -o temprature=1 'x y'")
    refused("the option temperature must be a number, found 'x'", "a -o temperature=x 'x y'")
    refused("option --option needs NAME=VALUE", "a -o temperature 'x y'")
    refused("there is no tool 'gerp' (did you mean grep?)", "a -t gerp 'x y'")
    refused("option --max-cost needs a number greater than 0", "a --max-cost 0 'x y'")
    refused("cannot read the schema 'none': ", "a --schema none 'x y'")
    file("bad.json", '{"type": 5}')
    refused("the schema 'bad.json' is not valid: ", "a --schema bad.json 'x y'")
    refused("--continue and --no-store: give one of them", "a -c --no-store 'x y'")
    refused("--record and --replay: give one of them", "a --record a --replay b 'x y'")
  end)

  it("--schema prints JSON that fits, or fails", function()
    file("s.json", '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
    fine('{"n":3}\n', [[a --schema s.json '{"n": 3}' </dev/null]])
    local r = at_home [[a --json --schema s.json '{"n": 3}' </dev/null]]
    assert.same({ n = 3 }, ah.json.decode(r.out).reply.value)
    r = at_home [[a --schema s.json 'no json' </dev/null]]
    assert.same({ 1, "" }, { r.code, r.out })
    has(r.err, "the answer is not what `output` asks for: it is not JSON")
  end)

  it("--max-cost needs known prices", function()
    refused("budget: the cost is limited, but prices has no", "a --max-cost 0.5 'x y' </dev/null")
  end)

  it_mock("reach the model", function()
    local m <close> = mock.start [[return function()
      return { text = "Ok.", usage = { input = 9000000, output = 9 } }
    end]]
    file("dot.gif", DOT)
    local run = ('OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=k "$A" -m openai/gpt-4o '):format(m.url)
    local r = at_home(run .. "-s 'Be brief.' -o temperature=0.5 -o max_tokens=50 -t read_file,grep "
      .. "-t grep --image dot.gif 'What is this?' </dev/null")
    assert.same({ code = 0, out = "Ok.\n", err = "" }, r)
    local body = m:log()[1].body
    assert.same({ 0.5, 2 }, { body.temperature, #body.tools })
    has(ah.json.encode(body.messages[1]), "Be brief.")
    assert.same({ "text", "image_url" }, { body.messages[2].content[1].type,
      body.messages[2].content[2].type })
    r = at_home(("%s--record r.jsonl 'x y' </dev/null; %s--replay r.jsonl 'x y' </dev/null"):format(
      run, run))
    assert.same({ code = 0, out = "Ok.\nOk.\n", err = "" }, r)
    assert.equal(2, #m:log())
    r = at_home(run .. "--max-cost 0.50 'x y' </dev/null")
    assert.equal(4, r.code)
    has(r.err, "budget")
  end)
end)

describe("the tools of a prompt", function()
  local TOOLS = '"$A" -m demo/tools '

  it("read this folder, and ask nothing", function()
    file("notes.txt", "buy milk\n")
    has(at_home(TOOLS .. [[-t read_file 'read "notes.txt"' </dev/null]]).out, "\tbuy milk")
  end)

  it("that write, run or fetch are refused where nobody can be asked", function()
    local r = at_home(TOOLS .. [[-t bash,write_file,http_fetch 'do "touch made"' </dev/null]])
    assert.equal(0, r.code, r.err)
    for _, name in ipairs { "bash", "write_file", "http_fetch" } do
      has(r.out, ("- %s: Tool '%s' was not run: not approved: there is no terminal"):format(name,
        name))
    end
    assert.is_nil(io.open(home .. "/made"))
  end)

  -- Starts a prompt on a terminal that asks about a call of the tool.
  local function asked(tool, words, more)
    return typing.read(typing.start({ "/bin/sh", "-c", ("cd %s; export XDG_STATE_HOME=%s/state; "
      .. "%s -q -m demo/tools -t %s '%s' %s"):format(home, home, command.BINARY, tool,
      words, more or "") }, { bells = true }), "Allow it? [y/n/a/e/?]")
  end

  it_if("ask the person at the terminal", function()
    for line, said in pairs { ["y\r"] = "write_file: Made 'made-y'",
      ["n\r"] = "the user does not allow it", ["n, too long\r"] = "not approved: too long",
      ["\4"] = "no person at the terminal" } do
      local name = line == "y\r" and "made-y" or "made\27[2J"
      local t = asked("write_file", ('write "%s"'):format(name))
      t.pty:write "x\r"
      typing.read(t, "That is no response.")
      t.pty:write(line)
      local code, all, shown = typing.finish(t)
      assert.equal(0, code, all)
      has(shown, "write_file: it writes a file of this folder\n")
      has(shown, "\n  path: " .. name:gsub("\27", "\\x1b") .. "\n")
      has(shown:gsub("\n", ""), said)
      assert.equal(1, t.screen.bells)
      assert.equal(line == "y\r", io.open(home .. "/made-y") ~= nil)
      os.remove(home .. "/made-y")
    end
  end)

  it_if("ask on the terminal while the answer goes to a file", function()
    local t = asked("write_file", 'write "made"', "</dev/null >out.txt")
    t.pty:write "y\r"
    assert.equal(0, (typing.finish(t)))
    has(at_home("cat out.txt").out, "write_file: Made 'made'")
  end)

  it_if("are not asked about any more when another terminal has responded", function()
    local t = asked("write_file", 'write "made"')
    local until_ = os.time() + typing.SECONDS
    local ask
    repeat -- the ask is on the screen before it is in the store
      assert(os.time() < until_)
      ask = ah.json.decode(at_home('"$A" asks --json').out).asks[1]
    until ask
    assert.equal(0, at_home(('"$A" respond %s %s no'):format(ask.conversation, ask.ask)).code)
    typing.read(t, "It has a response from elsewhere, or its call is over.")
    local code, all = typing.finish(t)
    assert.equal(0, code, all)
    has(all, "Tool 'write_file' was not run")
  end)

  it_if("are asked about no more after `always`, also without a terminal", function()
    local t = asked("write_file", 'write "made"')
    t.pty:write "a\r"
    typing.read(t, "no question is asked any more about: write_file for all files of the folder")
    typing.read(t, "Keep that? [y/n]")
    t.pty:write "y\r"
    assert.equal(0, (typing.finish(t)))
    local r = at_home(TOOLS .. [[-t write_file,bash 'write "other"' </dev/null]])
    has(r.err, "Allowed in this folder: write_file for all files of the folder\n")
    has(r.out, "write_file: Made 'other'")
    has(r.out, "Tool 'bash' was not run: not approved")
  end)
end)

describe("the conversation of a prompt", function()
  it("goes on with -c, in its folder, with its model, system text, options and tools", function()
    fine("one two\n", 'a -s "Be brief." -o temperature=1 "one two" </dev/null')
    fine("three\n", '"$A" -c -p three </dev/null')
    local list = ah.json.decode(at_home('"$A" list --json').out).conversations
    assert.same({ 1, "one two" }, { #list, list[1].title })
    has(at_home('"$A" show').out, "  opened      by a prompt, version ")
    local shown = at_home('"$A" show --json').out
    has(shown, '"text":"Be brief."')
    assert.equal(1, select(2, shown:gsub('"temperature":1', "")))
    refused("no prompt is given", '"$A" -c </dev/null')
    refused("no prompt or chat of this folder", 'mkdir sub; cd sub; "$A" -c -p four </dev/null')
    fine("four\n", ('cd sub; "$A" --resume %s -p four </dev/null'):format(list[1].id:sub(1, 12)))
    fine("five\n", ('"$A" --resume=%s -p five </dev/null'):format(list[1].id))
    refused("there is no terminal on which a conversation could be picked",
      '"$A" --resume "x y" </dev/null')
  end)

  it("is a new one each time, also within a second", function()
    fine(("a b\n"):rep(5), 'for i in 1 2 3 4 5; do setarch -R "$A" -m demo/echo "a b" </dev/null '
      .. '2>/dev/null || a "a b" </dev/null; done')
    assert.equal(5, #ah.json.decode(at_home('"$A" list --json').out).conversations)
  end)

  it("must be there to go on", function()
    refused("no conversation is kept yet: there is no store '", '"$A" -c -p x </dev/null')
    refused("no conversation is kept yet", '"$A" --resume ab -p x </dev/null')
    fine("a b\n", 'a "a b" </dev/null')
    refused("there is no conversation 'none' in '", '"$A" --resume none -p x </dev/null')
  end)

  it("keeps its tools, and takes those that are named", function()
    file("a.txt", "of a\n")
    has(at_home([["$A" -m demo/tools -t read_file 'read "a.txt"' </dev/null]]).out, "of a")
    has(at_home([["$A" -c 'read "a.txt"' </dev/null]]).out, "- read_file: a.txt: 1 line")
    local r = at_home [["$A" -c -t list_files 'see "."' </dev/null]]
    assert.equal(0, r.code, r.err)
    has(r.out, "- list_files: ")
  end)

  it("is where --store or AGENTHOST_STORE says, or nowhere", function()
    fine("a b\n", 'a --no-store "a b" </dev/null; test ! -e state')
    fine("a b\n", 'a --store here.db "a b" </dev/null; test -e here.db -a ! -e state')
    fine("a b\nc\n", 'export AGENTHOST_STORE=$PWD/there.db; exec </dev/null; a "a b"; '
      .. '"$A" -c -p c')
    fine("a b\n", 'unset HOME XDG_STATE_HOME; a "a b" </dev/null')
  end)

  it("is not kept if the default store cannot be opened, and says so", function()
    local r = at_home 'mkdir -p state/agenthost/store.db; a "a b" </dev/null'
    assert.same({ 0, "a b\n" }, { r.code, r.out })
    has(r.err, "agenthost: warning: this conversation is not kept: ")
    r = at_home 'a --store state/agenthost/store.db "a b" </dev/null'
    assert.same({ 1, "" }, { r.code, r.out })
  end)

  it("is not that of a script", function()
    file("agent.lua", 'return require("agenthost").agent { id = "mine", model = "demo/echo" }')
    fine("x\n", '"$A" --store s.db agent.lua x')
    local r = refused("conversation mine was not begun by a prompt",
      '"$A" --store s.db --resume mine -p y </dev/null')
    has(r.err, "agenthost resume mine")
    refused("no prompt or chat of this folder is in", '"$A" --store s.db -c -p y </dev/null')
  end)

  it_mock("goes on with an unfinished run, or ends it", function()
    local m <close> = mock.start [[local n = 0
      return function()
        n = n + 1
        return { text = "Answer " .. n, delay = n == 1 and 60 or nil }
      end]]
    local run = ('export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=k; '):format(m.url)
    at_home(run .. [["$A" -m openai/gpt-4o "What now?" </dev/null & pid=$!
      until "$A" show --json 2>/dev/null | grep -q '"kind":"request"'; do sleep 0.1; done
      kill -9 $pid; wait $pid]])
    local r = at_home(run .. [["$A" resume </dev/null]])
    has(r.err, "is one of prompts: agenthost --resume ")
    r = at_home(run .. [["$A" -c </dev/null]])
    assert.same({ 0, "Answer 2\n", "" }, { r.code, r.out, r.err })
  end)
end)

describe("on a terminal", function()
  local function start(words, env)
    return typing.command(words, { env = env or { "TERM=xterm" } })
  end
  local WORDS = { "-q", "-m", "demo/echo", "--no-store", "Some **bold** and \27[2J `code`" }

  it_if("the answer is styled, and its escapes are shown", function()
    local code, all = typing.finish(start(WORDS))
    assert.equal(0, code)
    has(all, "Some \27[1mbold\27[0m and \\x1b[2J \27[36mcode\27[0m")
    has_not(all, "\27[2J")
  end)

  it_if("it is plain with --plain, --color=never, NO_COLOR and TERM=dumb", function()
    for _, case in ipairs { { "--plain" }, { "--color=never" },
      { env = { "TERM=xterm", "NO_COLOR=1" } }, { env = { "TERM=dumb" } } } do
      local code, all = typing.finish(start({ case[1] or "-q", table.unpack(WORDS) }, case.env))
      assert.equal(0, code)
      has(all, "Some **bold** and \\x1b[2J `code`")
      has_not(all, "\27[")
    end
  end)

  it("in a pipe it is as it came, unless --color=always", function()
    fine("**b** \27[2J\n", "a '**b** \27[2J' </dev/null")
    fine("\27[1mb\27[0m \\x1b[2J\n", "a --color=always '**b** \27[2J' </dev/null")
  end)

  it_if("Ctrl-C ends it, and keeps what was printed", function()
    local body = 'data: {"choices":[{"index":0,"delta":{"content":"Half "}}]}\n\n'
    local m <close> = server.start { responses = { { stall = #body, body = body .. body,
      headers = { ["Content-Type"] = "text/event-stream" } } } }
    local t = typing.start({ command.BINARY, "-q", "-m", "openai/gpt-4o", "--no-store", "a b" },
      { env = { "TERM=xterm", "OPENAI_API_KEY=k", "OPENAI_BASE_URL=" .. m.url .. "/v1" } })
    typing.read(t, "Half")
    t.pty:write "\3"
    local code, _, shown = typing.finish(t)
    assert.equal(130, code)
    has(shown, "Half")
    has(shown, "interrupted")
  end)
end)
