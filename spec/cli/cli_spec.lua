-- The command: its options, its messages, its exit codes, signals, and that --help and the man page
-- agree.
local binary = require "support.command"

local agenthost, script, shell = binary.agenthost, binary.script, binary.shell
local contents, has, has_not = binary.contents, binary.has, binary.has_not
local BINARY, made, temp = binary.BINARY, binary.made, binary.temp

local function lines(s)
  return select(2, s:gsub("\n", ""))
end

local function usage_error(r, part)
  assert.equal(2, r.code)
  assert.equal("", r.out)
  has(r.err, "agenthost: " .. part)
  has(r.err, "--help")
end

after_each(binary.tidy)

describe("the command runs", function()
  it("a file, and its print is all there is on stdout", function()
    local r = script('print("hello")')
    assert.same({ code = 0, out = "hello\n", err = "" }, r)
  end)

  it("a script from standard input", function()
    local path = temp("print(arg[0], ...)")
    local r = shell(('"$A" - one two <%s'):format(path))
    assert.same({ code = 0, out = "-\tone\ttwo\n", err = "" }, r)
  end)

  it("a script with arguments in `...` and in `arg`", function()
    local path = temp('print(select("#", ...), ...) print(#arg, arg[0], arg[1], arg[2])')
    local r = agenthost(path, "a b", "")
    assert.equal(("2\ta b\t\n2\t%s\ta b\t\n"):format(path), r.out)
  end)

  it("what stands behind the script untouched, options too", function()
    local r = script("print(...)", "--help", "-q", "--", "--model=x")
    assert.same({ code = 0, out = "--help\t-q\t--\t--model=x\n", err = "" }, r)
  end)

  it("a script whose first line is a shebang, with lines counted from there", function()
    local r = script("#!/usr/bin/env agenthost\nprint(1)\nerror('here')")
    assert.equal("1\n", r.out)
    has(r.err, ":3: here")
  end)

  it("an executable script through its shebang line", function()
    local path = temp("#!" .. BINARY .. "\nprint('self', ...)\n")
    local r = shell(("chmod +x %s && %s x"):format(path, path))
    assert.same({ code = 0, out = "self\tx\n", err = "" }, r)
  end)

  it("require 'agenthost' from any folder, without any installation", function()
    local path = temp('print(type(require "agenthost"))')
    local r = shell(('cd / && "$A" %s'):format(path))
    assert.same({ code = 0, out = "table\n", err = "" }, r)
  end)

  it("a script in a named pipe, opened once", function()
    local path = temp()
    os.remove(path)
    local command = 'mkfifo %s && { echo "print(42)" >%s & timeout 10 "$A" %s; }'
    local r = shell(command:format(path, path, path))
    assert.same({ code = 0, out = "42\n", err = "" }, r)
  end)
end)

describe("the options", function()
  it("--help and -h give the help on stdout, whatever stands behind", function()
    local r = agenthost("--help")
    assert.equal(0, r.code)
    assert.equal("", r.err)
    has(r.out, "Usage: agenthost [options] script.lua")
    assert.equal(r.out, agenthost("-h").out)
    assert.equal(r.out, agenthost("-q", "--help", "--nonsense").out)
  end)

  it("the help has at most 64 lines of 80 columns, and that of a command 24", function()
    local words = { "" }
    for word in agenthost("--help").out:match("Commands:.-\n\n"):gmatch "\n  (%l+)" do
      words[#words + 1] = word ~= "help" and word or nil
    end
    assert.is_true(#words > 10)
    for _, word in ipairs(words) do
      local help = shell(('"$A" %s --help'):format(word)).out
      assert.is_true(lines(help) <= (word == "" and 64 or 24), word)
      has(help, ("Usage: agenthost %s"):format(word))
      for line in help:gmatch("[^\n]+") do
        assert.is_true(#line <= 80, line)
      end
    end
  end)

  it("the help of a command has its options, and the rest is refused", function()
    local help = agenthost("check", "--help").out
    has(help, "--json")
    has_not(help, "--jsonl")
    usage_error(agenthost("check", "--jsonl", "x.lua"), "option --jsonl is not for agenthost check")
    usage_error(agenthost("--jsonl", "check", "x.lua"), "option --jsonl is not for agenthost check")
  end)

  it("--version says the version in one line", function()
    local r = agenthost("--version")
    assert.equal(0, r.code)
    assert.truthy(r.out:match("^agenthost %d+%.%d+%.%d+\n$"))
  end)

  it("--version -v and --verbose say libraries and features too", function()
    local r = agenthost("--version", "--verbose")
    assert.equal(0, r.code)
    assert.truthy(r.out:match("^agenthost %d+%.%d+%.%d+\n"))
    assert.equal(1, select(2, r.out:gsub("%f[^\n\0]agenthost ", "")))
    assert.truthy(r.out:lower():match("\nlua %S"))
    assert.truthy(r.out:lower():match("curl %S"))
    assert.truthy(r.out:match("\nsandboxes %S"))
    assert.equal("\n", r.out:sub(-1))
    assert.equal(r.out, agenthost("--verbose", "--version").out)
  end)

  it("-- ends the options", function()
    local path = temp("print(...)")
    local odd = path:gsub("[^/]*$", "-%0")
    made[#made + 1] = odd
    assert(os.rename(path, odd))
    local r = shell(('cd %s && "$A" -- %s -q'):format(odd:match("^(.*)/"), odd:match("[^/]*$")))
    assert.same({ code = 0, out = "-q\n", err = "" }, r)
  end)

  it("short options may be joined", function()
    assert.equal(0, agenthost("-qv", temp("print(1)")).code)
    has(agenthost("-qh").out, "Usage:")
  end)

  it("--model NAME and --model=NAME win over what the script names", function()
    local path = temp([[
      local ah = require "agenthost"
      print(ah.run { model = "openai/none", "Hello" })]])
    assert.same({ code = 0, out = "Hello\n", err = "" }, agenthost("--model", "demo/echo", path))
    assert.equal("Hello\n", agenthost("--model=demo/echo", path).out)
  end)

  it("--quiet, nothing and --verbose differ in what the log says, never in stdout", function()
    local path = temp([[
      local ah = require "agenthost"
      print(assert(ah.run { model = "demo/echo", "Hello" }))]])
    local quiet, plain = agenthost("--quiet", path), agenthost(path)
    local info, debug = agenthost("--verbose", path), agenthost("-vv", path)
    assert.same({ 0, 0, 0, 0 }, { quiet.code, plain.code, info.code, debug.code })
    assert.same({ plain.out, plain.out, plain.out }, { quiet.out, info.out, debug.out })
    assert.equal("", quiet.err)
    has(info.err, "agenthost: info: ")
    has_not(plain.err, "agenthost: info: ")
    has_not(info.err, "agenthost: debug: ")
    assert.is_true(#debug.err >= #info.err)
  end)

  it("-q keeps errors", function()
    local r = agenthost("-q", temp("error('loud')"))
    assert.equal(1, r.code)
    has(r.err, "loud")
  end)

  it("unknown ones name the nearest", function()
    usage_error(agenthost("--modle", "x"), "unknown option '--modle' (did you mean --model?)")
    usage_error(agenthost("--Verson"), "unknown option '--Verson' (did you mean --version?)")
    usage_error(agenthost("--quite=1"), "unknown option '--quite' (did you mean --quiet?)")
    usage_error(agenthost("-model", "x"), "unknown option '-model' (did you mean --model?)")
    usage_error(agenthost("-Q"), "unknown option '-Q' (did you mean -q?)")
  end)

  it("unknown ones near nothing name nothing", function()
    local r = agenthost("--frobnicate")
    usage_error(r, "unknown option '--frobnicate'")
    has_not(r.err, "did you mean")
    usage_error(agenthost("-vx"), "unknown option '-vx'")
  end)

  it("are repeated in messages cut at a character, with control characters as text", function()
    local r = agenthost("--" .. ("ä"):rep(5000))
    usage_error(r, "unknown option '--ä")
    assert.is_true(#r.err < 300)
    assert.truthy(utf8.len(r.err))
    usage_error(agenthost("--\27[2J\194\155"), "unknown option '--\\x1b[2J\\x9b'")
  end)

  it("--model wants a name", function()
    usage_error(agenthost("--model"), "option --model needs a NAME")
    usage_error(agenthost("--model="), "option --model needs a NAME, found ''")
    usage_error(agenthost("--model", "-v", "x.lua"), "option --model needs a NAME, found '-v'")
  end)

  it("others want nothing", function()
    usage_error(agenthost("--quiet=yes"), "option --quiet takes no value, found 'yes'")
    usage_error(agenthost("--=x"), "option -- takes no value, found 'x'")
  end)
end)

describe("wrong usage exits 2:", function()
  it("no script: two lines of hint, the first a thing to try", function()
    local r = agenthost()
    usage_error(r, "no script given")
    assert.equal(3, lines(r.err))
    assert.truthy(r.err:match("\nTry:  agenthost %-e '.*'\nHelp: agenthost %-%-help\n$"))
    usage_error(agenthost("-v", "--"), "no script given")
  end)

  it("the thing to try works as it is printed", function()
    local try = agenthost().err:match("\nTry: +([^\n]+)")
    local r = shell('PATH="$(dirname "$A"):$PATH"; ' .. try)
    assert.same({ code = 0, out = "Hello\n", err = "" }, r)
  end)

  it("a missing file", function()
    local r = agenthost("no/such.lua")
    usage_error(r, "cannot open 'no/such.lua': No such file or directory\n")
    assert.equal(2, lines(r.err))
  end)

  it("a missing file that another ending has", function()
    local path = temp()
    made[#made + 1] = path .. ".lua"
    os.rename(path, path .. ".lua")
    local r = agenthost(path)
    assert.equal(2, r.code)
    has(r.err, ("Did you mean '%s.lua'?"):format(path))
  end)

  it("an option without its dashes", function()
    has(agenthost("record").err, "Did you mean agenthost --record?")
  end)

  it("a folder, and an empty name", function()
    usage_error(agenthost("/"), "cannot open '/': Is a directory")
    usage_error(agenthost(""), "cannot open '': No such file or directory")
  end)

  it("standard input that is closed", function()
    local r = shell('"$A" - <&-')
    assert.equal(2, r.code)
    has(r.err, "agenthost: ")
  end)
end)

describe("a failing script", function()
  it("exits 1 and names file and line, with the traceback", function()
    local path = temp("local function f()\n  error('broken')\nend\nf()")
    local r = agenthost(path)
    assert.equal(1, r.code)
    assert.equal("", r.out)
    has(r.err, ("agenthost: %s:2: broken\n"):format(path))
    has(r.err, "stack traceback:\n")
    has(r.err, path .. ":4: in main chunk")
  end)

  it("exits 1 for a syntax error, with file and line", function()
    local path = temp("local x = 1\nlocal = 2")
    local r = agenthost(path)
    assert.equal(1, r.code)
    has(r.err, ("agenthost: %s:2: "):format(path))
  end)

  it("exits 1 for bytecode, which is never run", function()
    local r = script(string.dump(load("print('ran')")))
    assert.equal(1, r.code)
    assert.equal("", r.out)
    has(r.err, "agenthost: ")
  end)

  it("exits 1 whatever it raises", function()
    local bad_tostring = "setmetatable({}, { __tostring = error })"
    for _, value in ipairs { "nil", "false", "42", "{}", "print", bad_tostring } do
      local r = script("error(" .. value .. ")")
      assert.equal(1, r.code, value)
      assert.truthy(r.err:match("^agenthost: %S"), value)
    end
  end)

  it("keeps the order of what it printed and how it failed", function()
    local path = temp("io.write('before\\n') error('after')")
    local r = shell(('"$A" %s 2>&1'):format(path))
    assert.truthy(r.out:match("^before\nagenthost: "))
  end)

  it("chooses its own code with os.exit", function()
    assert.equal(7, script("os.exit(7)").code)
    assert.equal(0, script("os.exit(true)").code)
    assert.equal(1, script("os.exit(false)").code)
  end)

  it("cannot give commands to the terminal through its message", function()
    local r = script([[error("\27[2Jred\194\155\r\127", 0)]])
    has(r.err, "agenthost: \\x1b[2Jred\\x9b\\x0d\\x7f\n")
  end)
end)

describe("the exit code of an agenthost error", function()
  local codes = {
    internal = 1, prompt_validation = 1, prompt_render = 1, prompt_evaluation = 1,
    tool_validation = 1, tool_not_found = 1, invalid_tool_provider = 1, cancelled = 1,
    usage = 1, -- wrong use of the library by the script; 2 means a wrong command line
    provider = 3, http = 3,
    max_iterations_exceeded = 4, deadline_exceeded = 4, budget_exceeded = 4, loop_detected = 4,
    visibility_expansion_required = 4, waiting = 5,
  }
  for code, expected in pairs(codes) do
    it(("%s is %d"):format(code, expected), function()
      local raise = 'error(require("agenthost").error { code = %q, message = "words for it" })'
      local r = script(raise:format(code))
      assert.equal(expected, r.code)
      has(r.err, "agenthost: ")
      has(r.err, "words for it")
    end)
  end

  it("is the same when assert raises what ah.run returned", function()
    local r = script([[
      local ah = require "agenthost"
      assert(nil, ah.error { code = "budget_exceeded", message = "too dear" })]])
    assert.equal(4, r.code)
    has(r.err, "too dear")
  end)

  it("is 3 where no server answers", function()
    local path = temp([[
      local ah = require "agenthost"
      assert(ah.run { model = "openai/x", retries = 0, "Hello" })]])
    local env = "OPENAI_API_KEY=none-such-key OPENAI_BASE_URL=http://127.0.0.1:1/v1"
    local r = shell(('%s timeout 20 "$A" %s'):format(env, path))
    assert.equal(3, r.code, r.err)
    has(r.err, "agenthost: ")
    has_not(r.err, "none-such-key")
  end)

  it("is 1 where libcurl has no TLS and is asked for it, with a word", function()
    local tls = agenthost("-v", "--version").out:match("\ntls (%S+)\n")
    assert.truthy(tls)
    local r = shell('OPENAI_API_KEY=k OPENAI_BASE_URL=https://127.0.0.1:1/v1 timeout 20 "$A" '
      .. temp [[assert(require("agenthost").run { model = "openai/x", retries = 0, "Hello" })]])
    assert.equal(tls == "none" and 1 or 3, r.code, r.err)
    has(r.err, tls == "none" and "this libcurl was built without TLS" or "127.0.0.1:1")
  end)
end)

describe("signals", function()
  -- Starts a script that prints "ready", then does `act` (a shell command in which $p is the
  -- script's process id). Returns its exit code, its output and the seconds it took.
  local function signalled(text, act, options)
    local path, out = temp(text), temp("")
    local pipe = temp() -- standard input: open, but empty
    os.remove(pipe)
    local begun = os.time()
    local r = shell(([[mkfifo %s; exec 9<>%s
      "$A" %s %s <&9 9<&- >%s & p=$!
      for i in $(seq 200); do [ -s %s ] && break; sleep 0.05; done
      %s
      ( trap 'kill $s' TERM; sleep 120 & s=$!; wait $s && kill -KILL $p ) >/dev/null 2>&1 & guard=$!
      wait $p; rc=$?
      kill $guard; exit $rc]]):format(pipe, pipe, options or "", path, out, out, act))
    r.out, r.seconds = contents(out), os.time() - begun
    return r
  end

  local SLEEP = 'print("ready") require("agenthost").sleep(100)'
  local SPIN = 'print("ready") while true do end'

  local function ends(r, code)
    assert.equal(code, r.code, r.err)
    assert.is_true(r.seconds < 60, "took too long")
  end

  it("SIGINT ends a waiting script with 130 and one line", function()
    local r = signalled(SLEEP, "kill -INT $p")
    ends(r, 130)
    assert.equal("agenthost: interrupted\n", r.err)
  end)

  it("SIGTERM ends it with 143", function()
    local r = signalled(SLEEP, "kill -TERM $p")
    ends(r, 143)
    assert.equal("agenthost: terminated\n", r.err)
  end)

  it("end background calls with their script", function()
    ends(signalled([[
      local ah = require "agenthost"
      local job = ah.tool { name = "job", description = "A job.", background = true,
        handler = function() print "ready" ah.sleep(100) end }
      local agent = ah.agent { tools = { job },
        model = ah.scripted { { calls = { { name = "job" } } }, "Begun." } }
      agent:run "Go"
      agent:wait(100)]], "kill -TERM $p"), 143)
  end)

  it("settle a run at work: its tool is cancelled, and the script gets the error", function()
    local r = signalled([[
      local ah = require "agenthost"
      local slow = ah.tool { name = "slow", description = "Waits.", handler = function()
        print("ready")
        ah.sleep(100)
      end }
      local reply, err = ah.run { model = "demo/tools", tools = { slow }, "Go" }
      print(reply, err.code)]], "kill -INT $p")
    ends(r, 130)
    assert.equal("ready\nnil\tcancelled\n", r.out)
  end)

  it("end a script that only computes", function()
    ends(signalled(SPIN, "kill -INT $p"), 130)
  end)

  it("end a script that waits for input", function()
    local r = signalled('print("ready") io.read()', "kill -INT $p")
    ends(r, 130)
  end)

  it("with -v the place is told too", function()
    local r = signalled(SPIN, "kill -INT $p", "-v")
    ends(r, 130)
    has(r.err, "traceback")
  end)

  it("the second one ends what the first could not", function()
    local stubborn = 'print("ready") string.find(("a"):rep(500), (".-"):rep(6) .. "b")'
    -- Behind that line only the search takes 0.2 s of a processor.
    local searching = [[used() { awk '{ print $14 }' /proc/$p/stat; }; ready=$(used)
      for i in $(seq 400); do [ $(used) -ge $((ready + 20)) ] && break; sleep 0.05; done; ]]
    local arrived = [[until grep -q "ShdPnd:[^1-9a-f]*$" /proc/$p/status; do sleep 0.05; done; ]]
    ends(signalled(stubborn, searching .. "kill -INT $p; " .. arrived .. "kill -INT $p"), 130)
    ends(signalled(stubborn, searching .. "kill -INT $p; " .. arrived .. "kill -TERM $p"), 143)
  end)

  it("give 130 also where the script ends well after one", function()
    local patient = 'print("ready") pcall(require("agenthost").sleep, 100) print("bye")'
    ends(signalled(patient, "kill -INT $p"), 130)
  end)

  it("reach children with their usual meaning", function()
    local r = script('print(io.popen("yes 2>&1 | head -n 1"):read("a"))')
    assert.same({ code = 0, out = "y\n\n", err = "" }, r)
  end)
end)

describe("standard output", function()
  local ENDLESS = 'while true do print("a line") end'

  -- Reads one byte of the script's output; the exit code of the command goes to stderr.
  local function head(text)
    local command = '{ timeout 60 "$A" %s; echo "code $?" >&2; } | head -c 1'
    return shell(command:format(temp(text)))
  end

  it("closed early by its reader ends quietly", function()
    local r = head(ENDLESS)
    assert.equal("a", r.out)
    assert.equal("code 0\n", r.err)
  end)

  it("closed early does not hide how a script failed by itself", function()
    local raise = 'io.write("x") error(require("agenthost").error { code = "http", message = "m" })'
    local r = shell(('{ sleep 0.2; "$A" %s; echo "code $?" >&2; } | true'):format(temp(raise)))
    has(r.err, "code 3\n")
  end)

  it("closed early ends also a script that insists on its writes", function()
    assert.equal("code 0\n", head("while true do assert(io.write(('x'):rep(1000))) end").err)
  end)

  it("that is full is a failure", function()
    for _, write in ipairs { "print('lost')", "io.write('lost')" } do
      local r = shell(('"$A" %s >/dev/full'):format(temp(write)))
      assert.equal(1, r.code)
      has(r.err, "agenthost: cannot write to standard output: ")
    end
    assert.equal(1, shell('"$A" --help >/dev/full').code)
  end)

  it("that is full keeps the code of what failed before", function()
    local path = temp('print(1) error(require("agenthost").error { code = "http", message = "m" })')
    assert.equal(3, shell(('"$A" %s >/dev/full'):format(path)).code)
  end)

  it("that is closed is a failure, and nothing else gets its descriptor", function()
    local path = temp('local f = io.open("/dev/null") print(1) f:close()')
    local r = shell(('"$A" %s >&-'):format(path))
    assert.equal(1, r.code)
    has(r.err, "cannot write to standard output")
    assert.equal(0, shell(('"$A" %s >&-'):format(temp("local x = 1"))).code)
  end)
end)

describe("a word that is no option", function()
  local function in_folder(files, line)
    local folder = temp()
    os.remove(folder)
    os.execute("mkdir " .. folder)
    for name, text in pairs(files) do
      local f <close> = assert(io.open(folder .. "/" .. name, "w"))
      f:write(text)
      made[#made + 1] = folder .. "/" .. name
    end
    made[#made + 1] = folder -- removed after its files
    return shell(("cd %s && %s"):format(folder, line))
  end

  it("is a command where it is the name of one, whatever files there are", function()
    local files = { completion = "print('the file')" }
    usage_error(in_folder(files, '"$A" completion'), "agenthost completion needs one of")
    assert.equal("the file\n", in_folder(files, '"$A" ./completion').out)
    assert.equal("the file\n", in_folder(files, '"$A" -- completion').out)
  end)

  it("belongs to the code of -e", function()
    assert.equal("-e\ttools\t--json\n",
      agenthost("-e", "print(arg[0], ...)", "tools", "--json").out)
  end)

  it("names the nearest command or file when it cannot be opened", function()
    has(agenthost("chekc", "x.lua").err, "Did you mean agenthost check?")
    has(agenthost("Tools").err, "Did you mean agenthost tools?")
    local files = { ["weather.lua"] = "" }
    has(in_folder(files, '"$A" wether.lua').err, "Did you mean 'weather.lua'?")
    has(in_folder(files, '"$A" ../*/wheather.lua; "$A" "$PWD/wether.lua"').err, "/weather.lua'?")
    has_not(in_folder(files, '"$A" elsewhere.lua').err, "Did you mean")
  end)
end)

describe("-e", function()
  it("runs code in which ah is the library", function()
    assert.same({ code = 0, out = "Hi\n", err = "" },
      agenthost("-e", 'print(ah.run { model = "demo/echo", "Hi" })'))
    assert.equal("2\n", agenthost("-qe", "print(1 + 1)").out)
    assert.equal("3\n", agenthost("-eprint(3)").out)
    assert.equal("4\n", agenthost("--eval=print(4)").out)
  end)

  it("counts its lines from 1, takes any text, and one of them", function()
    has(agenthost("-e", "\nerror('x')").err, "agenthost: -e:2: x")
    has(agenthost("-e", "local = 1").err, "agenthost: -e:1: ")
    assert.equal(0, agenthost("-e", "-- nothing").code)
    assert.equal(0, agenthost("-e", "").code)
    usage_error(agenthost("-e"), "option --eval needs a CODE")
    usage_error(agenthost("-e", "x()", "-e", "y()"), "option --eval can be given once")
  end)
end)

describe("colour", function()
  it("is used where --color says so, whatever the environment says", function()
    local always = shell('NO_COLOR=1 TERM=dumb "$A" --color=always --nonsense')
    has(always.err, "\27[31magenthost: \27[0m")
    has_not(agenthost("--nonsense").err, "\27")
    usage_error(agenthost("--color", "yes", "x"),
      "option --color needs one of these: auto always never, found 'yes'")
  end)
end)

