-- The built-in tool bash: commands that a model may run, the results that it gets, and the sandbox.
-- docs/reference/builtin.md. process_spec.lua also checks that commands leave no process.
local ah = require "agenthost"

local scratch

setup(function()
  scratch = assert(io.popen("mktemp -d")):read("l")
end)

teardown(function()
  os.execute("rm -rf " .. scratch)
end)

local function folder(name)
  local path = scratch .. "/" .. name
  os.execute("mkdir -p " .. path)
  return path
end

-- Runs calls of bash one after the other; returns the results for the model, and the reply.
local function run(options, calls, fields)
  local turns = {}
  for i, args in ipairs(calls) do
    turns[i] = { calls = { { name = "bash", arguments = args } } }
  end
  turns[#turns + 1] = "done"
  fields = fields or {}
  fields.model, fields.tools = ah.scripted(turns), assert(ah.builtin { bash = options })
  fields[1] = "Go."
  local reply, err = ah.run(fields)
  local shown = {}
  for _, m in ipairs(reply and reply.messages or {}) do
    shown[#shown + 1] = m.role == "tool" and m.content or nil
  end
  return shown, reply, err
end

local function sh(options, command, fields)
  return run(options, { { command = command } }, fields)[1]
end

-- Returns the values of the calls, as strategies see them.
local function values(options, calls, fields)
  local list = {}
  fields = fields or {}
  fields.strategies = { function(outcome) list[#list + 1] = outcome.value end }
  run(options, calls, fields)
  return list
end

local function has(text, part)
  assert.truthy(text:find(part, 1, true), text)
end

local function hasnt(text, part)
  assert.is_nil(text:find(part, 1, true), text)
end

local NONE = { sandbox = "none", cwd = "/" }

describe("bash", function()
  it("runs a text in a shell, or words without one, and says how it ended", function()
    local shown = run(NONE, {
      { command = "echo out; exit 3" },
      { argv = { "printf", "%s|", "a b", "$HOME", ";" } },
      { command = "cat", stdin = "hello" },
      { command = "kill -9 $$" },
      { command = "true" },
    })
    assert.truthy(shown[1]:find "^out\n%[exit code 3 after %d+%.%d s%]$", shown[1])
    has(shown[2], "a b|$HOME|;|\n[exit code 0")
    has(shown[3], "hello\n[exit code 0")
    has(shown[4], "[ended by signal KILL")
    assert.truthy(shown[5]:find "^%[exit code 0 after", shown[5])
  end)

  it("tells stdout from stderr in its value", function()
    local list = values(NONE, {
      { command = "echo 1; echo 2 >&2; echo 3; echo 4 2>&1" },
      { command = "true" },
      { command = "exec >&-; echo late >&2" },
    })
    assert.same({ "1\n3\n4\n", "2\n", 8 }, { list[1].stdout, list[1].stderr, list[1].bytes })
    assert.same({ "", "", "" }, { list[2].output, list[2].stdout, list[2].stderr })
    assert.same({ "late\n", "", "late\n" }, { list[3].output, list[3].stdout, list[3].stderr })
  end)

  -- Text that waits in both pipes is read from stdout first, so the pauses between the writes get
  -- longer until a busy machine has read in between.
  it("shows the model stdout and stderr as they came", function()
    local command = "echo 1; sleep %g; echo 2 >&2; sleep %g; echo 3"
    local shown, value
    for _, pause in ipairs { 0.1, 0.5, 2, 5 } do
      local call = { { command = command:format(pause, pause) } }
      local fields = { strategies = { function(outcome) value = outcome.value end } }
      shown = run(NONE, call, fields)[1]
      if value.output == "1\n2\n3\n" then break end
    end
    has(shown, "1\n2\n3\n[exit code 0")
    assert.same({ "1\n2\n3\n", "1\n3\n", "2\n" }, { value.output, value.stdout, value.stderr })
  end)

  it("keeps everything in its very place where both are merged", function()
    local command = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    local expected = {}
    for i = 1, 9 do
      expected[i] = ("o%d\ne%d\n"):format(i, i)
    end
    local v = values({ sandbox = "none", cwd = "/", merge = true }, { { command = command } })[1]
    assert.equal(table.concat(expected), v.output)
    assert.same({}, { v.stdout, v.stderr })
    assert.equal(v.output,
      values(NONE, { { command = ("exec 2>&1; %s"):format(command) } })[1].stdout)
  end)

  it("cuts each stream for itself, and loses nothing of either", function()
    local options = { sandbox = "none", cwd = "/", max_output = 2000, keep = 10000 }
    local v = values(options, { {
      command = "for i in $(seq 3000); do echo o$i; echo e$i >&2; done" } })[1]
    assert.equal(2 * 16893, v.bytes)
    for letter, text in pairs { o = v.stdout, e = v.stderr } do
      has(text, letter .. "1\n" .. letter .. "2\n")
      has(text, "left out")
      has(text, letter .. "2999\n" .. letter .. "3000\n")
      hasnt(text, letter == "o" and "e1" or "o1")
      assert.is_true(#text < 2100)
    end
  end)

  it("says what is wrong with a call", function()
    local shown = run(NONE, { {}, { command = "true", argv = { "true" } }, { argv = { "" } },
      { argv = { "no-such-program" } }, { argv = { "a\0b" } }, { command = "true", timeout = 1e6 },
      { command = "true", cwd = "no/such/folder" } })
    for i, part in ipairs { "either command", "either command", "no words", "there is no program",
      "NUL byte", "timeout", "enter the folder" } do
      has(shown[i], part)
    end
  end)

  it("has a clean environment, and what the options give", function()
    local key = "AGENTHOST_BUILD" -- of this process
    assert(os.getenv(key))
    local plain = sh(NONE, "env | sort")
    hasnt(plain, key)
    for _, name in ipairs { "PATH=", "HOME=", "LANG=", "TERM=dumb" } do
      has(plain, name)
    end
    local given = sh({ sandbox = "none", cwd = "/",
      env = { [key] = true, EXTRA = "a b", LANG = false } }, "env | sort")
    has(given, key .. "=" .. os.getenv(key))
    has(given, "EXTRA=a b\n")
    hasnt(given, "LANG=")
  end)

  it("is ended after its time, with all that it has started", function()
    local mark = "AH_MARK=timed_" .. os.time()
    local options = { timeout = 0.3, grace = 0.2, env = { AH_MARK = mark } }
    options.sandbox, options.cwd = "none", "/"
    local v = values(options, { {
      command = "trap '' TERM; setsid sleep 100 & echo on; while :; do sleep 1; done" } })[1]
    assert.truthy(v.timed_out)
    has(v.output, "on\n")
    has(v.outcome, "its time was over")
    assert.truthy(v.seconds < 50)
    local list = assert(io.popen("grep -lsa " .. mark .. " /proc/[0-9]*/environ | grep -v self"))
    assert.equal("", list:read("a"))
    list:close()
    assert.is_true(values(NONE, { { command = "sleep 100", timeout = 0.2 } })[1].timed_out)
  end)

  it("is killed when its run is over", function()
    local mark = "AH_MARK=run_" .. os.time()
    local began = os.time()
    local _, reply, err = run({ sandbox = "none", cwd = "/", env = { AH_MARK = mark } },
      { { command = "trap '' TERM; setsid sleep 100 & while :; do sleep 1; done" } },
      { timeout = 0.4, log = function() end })
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    assert.truthy(os.time() - began < 50)
    local list = assert(io.popen("grep -lsa " .. mark .. " /proc/[0-9]*/environ | grep -v self"))
    assert.equal("", list:read("a"))
    list:close()
  end)

  it("shows head and tail of much output, and keeps all of it in the run's files", function()
    local fs = ah.filesystem { memory = true }
    local options = { sandbox = "none", cwd = "/", max_output = 2000 }
    local calls = { { command = "seq 1 10000" } }
    local v = values(options, calls, { resources = { filesystem = fs } })[1]
    assert.equal(48894, v.bytes)
    assert.truthy(#v.output < 2200)
    assert.truthy(v.output:find "^1\n2\n3\n")
    assert.truthy(v.output:find "\n10000\n$")
    has(v.output, "45 KiB of 47 KiB left out; read " .. v.file)
    assert.equal(48894, #assert(fs:read(v.file)))
    assert.truthy(assert(fs:read(v.file)):find "\n5000\n5001\n")
    v = values(options, calls)[1]
    assert.is_nil(v.file)
    has(v.output, "of 47 KiB left out ...]")
    options.output_folder = false
    assert.is_nil(values(options, calls, { resources = { filesystem = fs } })[1].file)
  end)

  it("survives a gigabyte of output, of which it keeps what it may", function()
    local fs = ah.filesystem { memory = true }
    local v = values({ sandbox = "none", cwd = "/", keep = 100000 },
      { { command = "yes | head -c 1000000000; echo; echo end" } },
      { resources = { filesystem = fs } })[1]
    assert.equal(1000000005, v.bytes)
    assert.truthy(v.output:find "\nend\n$")
    local text = assert(fs:read(v.file))
    assert.truthy(#text < 100000 + 70000)
    has(text, "[... 953 MiB left out ...]")
  end)

  it("shows bytes that are no text as U+FFFD", function()
    has(sh(NONE, [[printf 'a\377b\000c']]), "a\u{FFFD}b\0c")
    local shown = sh({ sandbox = "none", cwd = "/", max_output = 101 },
      "printf 'é%.0s' $(seq 1000)")
    assert.truthy(utf8.len(shown))
    hasnt(shown, "\u{FFFD}")
  end)

  it("has limits", function()
    local v = values({ sandbox = "none", cwd = folder "limits", file_size = 100000 },
      { { argv = { "dd", "if=/dev/zero", "of=big", "bs=1000", "count=1000" } } })[1]
    assert.equal("XFSZ", v.signal)
    v = values({ sandbox = "none", cwd = "/", memory = 200 * 2 ^ 20 },
      { { argv = { "dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=1" } } })[1]
    has(v.output, "memory exhausted")
    v = values({ sandbox = "none", cwd = "/", cpu = 1 }, { { command = "while :; do :; done" } })[1]
    assert.truthy(v.signal == "KILL" or v.signal == "XCPU", v.outcome)
    assert.truthy(v.cpu_seconds > 0.5, v.cpu_seconds)
  end)
end)

describe("where bash works", function()
  it("is the folder of the run's files, and its option `cwd` before that", function()
    local root = folder "root"
    local resources = { filesystem = ah.filesystem { root = root } }
    local options = { sandbox = "none" }
    has(sh(options, "mkdir -p sub; pwd", { resources = resources }), root .. "\n")
    has(run(options, { { command = "pwd", cwd = "sub" } }, { resources = resources })[1],
      root .. "/sub\n")
    has(sh({ sandbox = "none", cwd = scratch }, "pwd", { resources = resources }), scratch .. "\n")
    has(sh(options, "pwd"), os.getenv "PWD" .. "\n")
  end)

  it("sees what earlier calls have written", function()
    local fs = ah.filesystem { root = folder "seen" }
    local write = ah.tool { name = "w", description = "Writes.",
      handler = function() return assert(fs:write("f", "written")) end }
    local tools = assert(ah.builtin { bash = { sandbox = "none" } })
    tools[2] = write
    local reply = assert(ah.run { tools = tools, resources = { filesystem = fs },
      model = ah.scripted { { calls = { { name = "w" },
        { name = "bash", arguments = { command = "cat f" } } } }, "done" }, "Go." })
    has(reply.messages[4].content, "written\n[exit code 0")
  end)

  it("cannot be files in memory, or an overlay", function()
    local fs = ah.filesystem { root = folder "below" }
    for _, files in ipairs { ah.filesystem { memory = true }, fs:overlay() } do
      has(sh({ sandbox = "none" }, "pwd", { resources = { filesystem = files } }), "give the tool")
    end
  end)

  it("is only read where the files are read-only, which needs a sandbox", function()
    local fs = ah.filesystem { root = folder "sealed", read_only = true }
    has(sh({ sandbox = "none" }, "pwd", { resources = { filesystem = fs } }), "needs a sandbox")
    if ah._sandbox { sandbox = "auto" } ~= "none" then
      local shown = sh({}, "echo x > f && echo yes; ls", { resources = { filesystem = fs } })
      assert.truthy(shown:find "Permission denied" or shown:find "Read%-only", shown)
      hasnt(shown, "yes\n")
    end
  end)
end)

describe("the sandbox of bash", function()
  local function offered(kind)
    return pcall(ah._sandbox, { sandbox = kind }) and ah._sandbox { sandbox = kind }
  end

  for _, kind in ipairs { "landlock", "bubblewrap" } do
    local function test(name, f)
      it(kind .. " " .. name, function()
        if not offered(kind) then
          pending(kind .. " is not here")
        else
          f(folder(kind))
        end
      end)
    end

    test("lets write in the folder at work, those named, and a temporary one alone", function(at)
      local other, more = folder "other", folder "more"
      local v = values({ sandbox = kind, cwd = at, writable = { more } }, { { command = ([[
        echo 1 > f && mkdir -p d && mv f d/f && echo in
        echo 2 > $TMPDIR/f && cat $TMPDIR/f; echo 3 > %s/f; cat %s/f
        echo x > %s/f && echo WROTE; rm -rf %s; mkdir %s/d && echo MADE
        ln %s/ah_probe %s/l; : > /dev/null && echo null; echo $TMPDIR
      ]]):format(more, more, other, other, other, other, at) } })[1]
      has(v.output, "in\n2\n3\n")
      has(v.output, "null\n")
      for _, word in ipairs { "WROTE", "MADE" } do
        hasnt(v.output, word)
      end
      assert(os.rename(other, other)) -- it still exists
      has(v.sandbox, kind)
      has(v.sandbox, v.sandbox:find("no filter of calls", 1, true) and "no TCP" or "no network")
      local temporary = v.output:match "(/[^\n]*agenthost%-%w+)\n"
      assert.is_nil(temporary and os.rename(temporary, temporary))
    end)

    test("keeps from the network unless it is wanted", function(at)
      local server = "exec 3<>/dev/tcp/127.0.0.1/9 && echo CONNECTED"
      local shown = sh({ sandbox = kind, cwd = at }, server)
      hasnt(shown, "CONNECTED")
      if kind == "landlock" then
        has(shown, "Permission denied")
        has(sh({ sandbox = kind, cwd = at, network = true }, server), "refused")
      end
    end)

    test("keeps from the host's environment and its processes", function(at)
      local shown = sh({ sandbox = kind, cwd = at }, [[
        P=$PPID; while [ "${P:-0}" -gt 1 ]; do
          cat /proc/$P/environ; kill -CONT $P && echo REACHED $P
          P=$(cut -d' ' -f4 /proc/$P/stat)
        done 2>/dev/null | tr '\0' '\n'; id -u]])
      hasnt(shown, "AGENTHOST_BUILD")
      local abi = tonumber(ah._sandbox { sandbox = kind }:match "ABI (%d+)")
      if not abi or abi >= 6 then
        hasnt(shown, "REACHED")
      end
    end)
  end

  it("is said before a run, and refused where it is not to be had", function()
    local tool = assert(ah.builtin { bash = { sandbox = "none" } })[1]
    hasnt(tool.spec.description, "no network")
    local ok, err = pcall(ah.builtin, { bash = { sandbox = "jail" } })
    assert.is_false(ok)
    has(err.message, '"landlock" or "bubblewrap", found "jail"')
    if not offered "bubblewrap" then
      assert.is_nil((ah.builtin { bash = { sandbox = "bubblewrap" } }))
    end
  end)
end)

describe("bash as a tool", function()
  it("is seen by approvals and policies like any other", function()
    local asked
    local shown = sh(NONE, "echo ran", {
      policies = { function() return "ask", "it is a command" end },
      approve = function(call)
        asked = call.arguments.command
        return false, "not today"
      end,
    })
    assert.equal("echo ran", asked)
    has(shown, "not today")
    hasnt(shown, "ran\n")
  end)

  it("refuses options that are wrong, with the nearest name", function()
    for _, case in ipairs {
      { { timout = 5 }, "did you mean 'timeout'?" }, { { timeout = "5" }, "must be a number" },
      { { timeout = 0 }, "at least 0.001, found 0" },
      { { env = { ["A=B"] = "x" } }, "no name of a variable" },
      { { env = { A = 5 } }, "must be a string" }, { { output_folder = true }, "or false" },
      { { output_folder = 5 }, "a boolean or a string" }, { { sandbox = "al" }, 'or "bubblewrap"' },
      { { readable = { "/x", a = 1 } }, "unexpected name 'a'" }, { { owners = 1 }, "a boolean" },
    } do
      local ok, err = pcall(ah.builtin, { bash = case[1] })
      assert.is_false(ok)
      has(err.message, case[2])
      has(err.message, "bash_spec.lua:")
    end
    local ok, err = pcall(ah.builtin, { "bsh" })
    assert.is_false(ok)
    has(err.message, "did you mean 'bash'?")
  end)
end)
