-- Child processes (src/io/process.h): streams, limits, and that no process is left running.
local ahtest = require "ahtest"
local patiently = require "support.patiently"

local PATH = "PATH=/usr/bin:/bin"
local marks = 0

-- Counts the processes with the mark in their environment; zombies have none.
local function marked(mark)
  local list = assert(io.popen("grep -lsa " .. mark .. " /proc/[0-9]*/environ"))
  local n, self = 0, "/proc/self/"
  for line in list:lines() do
    n = n + (line:sub(1, #self) == self and 0 or 1)
  end
  list:close()
  return n
end

-- Starts a command; returns it and the mark in the environment of all its descendants.
local function start(argv, options)
  marks = marks + 1
  local mark = ("AH_MARK=%d_%s"):format(marks, tostring(argv):match("0x(%x+)"))
  options = options or {}
  options.env = { PATH, mark }
  return assert(ahtest.process(argv, options)), mark
end

local function sh(script, options)
  return start({ "sh", "-c", script }, options)
end

-- Returns true if all processes with the mark end within 30 s or so; those that are not waited for
-- end later.
local function gone(mark)
  for _ = 1, 1500 do
    if marked(mark) == 0 then
      return true
    end
    os.execute "sleep 0.02"
  end
end

-- Waits for the end, which must come in time and leave no process.
local function finish(p, mark, seconds)
  local r = assert(p:wait(seconds or 60), "it does not end")
  p:close()
  assert.equal(0, r.left)
  assert.equal(0, marked(mark))
  return r
end

local function run(script, options, seconds)
  local p, mark = sh(script, options)
  return finish(p, mark, seconds)
end

describe("a process", function()
  it("has its streams, its exit code, and nothing but the environment given", function()
    local r = run "echo out; echo err >&2; env | grep -v AH_MARK | sort | head -5; exit 3"
    assert.equal("exited", r.how)
    assert.equal(3, r.code)
    assert.equal("err\n", r.stderr)
    assert.truthy(r.stdout:find("^out\nPATH=/usr/bin:/bin\nPWD="), r.stdout)
    assert.is_nil(r.error)
  end)

  it("has both streams in one where they are merged, in the order of writing", function()
    assert.equal("1\n2\n3\n", run("echo 1; echo 2 >&2; echo 3", { merge = true }).stdout)
  end)

  it("tells the signal that ended it, and what it used", function()
    local r = run "kill -9 $$"
    assert.same({ "exited", -1, 9 }, { r.how, r.code, r.signal })
    r = run "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    assert.truthy(r.cpu_ms > 0)
    assert.truthy(r.wall_ms >= r.cpu_ms // 4)
  end)

  it("has no other descriptor of the host, and its signals are the usual ones", function()
    local r = run "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status; cat"
    assert.equal("0 1 2 3", (r.stdout:match("^[%d\n]+"):gsub("\n", " "):match("^(.-) *$")))
    for _, name in ipairs { "SigBlk", "SigIgn" } do
      local mask = tonumber(r.stdout:match(name .. ":%s*(%x+)"), 16)
      assert.equal(0, mask & ~0x180000000, name) -- 32 and 33 belong to the C library
    end
  end)

  it("that cannot be started says why", function()
    local p, why = ahtest.process({ "no-such-program" }, { env = { PATH } })
    assert.is_nil(p)
    assert.equal("there is no program 'no-such-program' in PATH (/usr/bin:/bin)", why)
    local r = finish(start { "/no/such/program" })
    assert.same({ "failed", -1, "cannot run '/no/such/program': No such file or directory" },
      { r.how, r.code, r.error })
    r = finish(start({ "sh" }, { cwd = "/no/such/folder" }))
    assert.equal("cannot enter the folder for 'sh': No such file or directory", r.error)
  end)

  it("can be talked to line by line while it lives", function()
    local p, mark = sh("while read l; do echo \"got $l\"; done; printf last", { input = true })
    for i = 1, 100 do
      assert(p:write("line " .. i .. "\n"))
      assert.equal("got line " .. i, (p:line(30)))
    end
    p:close_input()
    assert.equal("last", (p:line(30)))
    assert.is_nil((p:line(30)))
    assert.equal(0, finish(p, mark).code)
    p, mark = sh("printf 'a\\r\\n\\nb'")
    assert.same({ "a", "", "b" }, { (p:line(30)), (p:line(30)), (p:line(30)) })
    finish(p, mark)
  end)

  it("takes large inputs as it reads, and may close its input or leave it", function()
    local gate = os.tmpname()
    local p, mark = sh("while [ -e " .. gate .. " ]; do sleep 0.05; done; wc -c", { input = true })
    for _ = 1, 5 do
      assert(p:write(("x"):rep(1000000)))
    end
    assert.truthy(p:unwritten() > 0)
    os.remove(gate)
    p:close_input()
    assert.equal("5000000\n", finish(p, mark).stdout)
    p, mark = sh("exec 0<&-; echo closed; sleep 0.2; exit 4", { input = true })
    assert.equal("closed", (p:line(30)))
    p:write(("x"):rep(100000))
    local ok, why = p:write "x"
    assert.is_nil(ok)
    assert.truthy(why:find("takes no more input", 1, true))
    assert.equal(4, finish(p, mark).code)
  end)

  it("is not read on while nobody takes what it writes", function()
    local p, mark = sh("yes | head -c 3000000; yes aaaaaaa | tr -d '\\n' | head -c 5000",
      { max_pending = 1000 })
    assert.equal("y", (p:line(30)))
    assert.truthy(#p:read() <= 1000)
    local r = finish(p, mark)
    assert.truthy(r.bytes > 2998000 and r.bytes < 3005000)
    p, mark = sh("printf %2000s x; sleep 5", { max_pending = 1000 })
    assert.is_nil((p:line(0.2)))
    assert.truthy(#p:read() <= 1000)
    p:stop()
    assert.equal("stopped", finish(p, mark).how)
  end)

  it("may write a gigabyte", function()
    local p, mark = sh "yes | head -c 1000000000"
    local r = finish(p, mark, 600)
    assert.equal(1000000000, r.bytes)
    assert.equal(2 ^ 20, #r.stdout)
  end)
end)

describe("the end of a process", function()
  it("is the end of what it left: background, sessions of their own, double forks", function()
    local r = run [[sleep 100 & setsid sleep 100 &
      (setsid sh -c 'sleep 100 & sleep 100 &' &); echo ok]]
    assert.same({ "exited", 0, "ok\n" }, { r.how, r.code, r.stdout })
    assert.truthy(r.wall_ms < 50000, r.wall_ms)
  end)

  it("comes when it is stopped, and after its time", function()
    local p, mark = sh "echo on; sleep 100; echo off"
    assert.equal("on", (p:line(30)))
    p:stop()
    local r = finish(p, mark)
    assert.same({ "stopped", -1, 15 }, { r.how, r.code, r.signal })
    r = run("sleep 100", { timeout_ms = 100 })
    assert.same({ "timed out", 15 }, { r.how, r.signal })
  end)

  it("leaves time for an answer to TERM, and none for ignoring it", function()
    patiently(function(times)
      local r = run("trap 'echo bye; exit 7' TERM; while :; do sleep 0.01; done",
        { timeout_ms = 500 * times, grace_ms = 20000 })
      assert.same({ "timed out", 7, "bye\n" }, { r.how, r.code, r.stdout })
    end)
    -- stopped only after it has reported that it ignores the signals
    local p, mark = sh([[trap '' TERM INT HUP; (setsid sleep 100 & sleep 100) & echo on
      while :; do sleep 1; done]], { grace_ms = 150 })
    assert.equal("on", (p:line(30)))
    p:stop()
    local r = finish(p, mark)
    assert.same({ "stopped", 9 }, { r.how, r.signal })
    assert.truthy(r.wall_ms < 50000, r.wall_ms)
  end)

  it("ends those that are stopped, too", function()
    local r = run("kill -STOP $$", { timeout_ms = 150 })
    assert.same({ "timed out", 15 }, { r.how, r.signal })
  end)

  it("ends a bomb: a tree of processes, and one that forks and leaves, for ever", function()
    local r = run("f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 100; }; f 6",
      { timeout_ms = 500 }, 60)
    assert.equal("timed out", r.how)
    -- each link has a session of its own and lives a moment; all of them would take minutes
    local link = [[i=${1:-0}; [ $i -lt 30000 ] && setsid sh -c "$LINK" sh $((i+1)) & exit]]
    marks = marks + 1
    local mark = "AH_MARK=link" .. marks .. "_" .. os.time()
    local p = assert(ahtest.process({ "sh", "-c", "trap '' TERM; sh -c \"$LINK\" & sleep 0.3" },
      { env = { PATH, mark, "LINK=trap '' TERM; " .. link }, grace_ms = 100 }))
    r = finish(p, mark, 60)
    assert.same({ "exited", 0 }, { r.how, r.code })
    assert.truthy(r.wall_ms < 30000, r.wall_ms)
  end)

  it("comes also when it kills or stops its supervisor", function()
    local p, mark = sh "kill -9 $PPID; sleep 100"
    local r = assert(p:wait(60))
    assert.same({ "failed", "the supervisor of 'sh' was killed" }, { r.how, r.error })
    assert.truthy(gone(mark))
    p, mark = sh "kill -STOP $PPID; echo on; sleep 100"
    assert.equal("on", (p:line(30)))
    p:stop()
    assert.equal("stopped", finish(p, mark).how)
  end)

  it("comes at once when its object is closed", function()
    local p, mark = sh "trap '' TERM; setsid sleep 100 & echo on; while :; do sleep 1; done"
    assert.equal("on", (p:line(30)))
    p:close()
    assert.equal(0, marked(mark))
  end)

  it("comes when the host dies", function()
    local mark = "AH_MARK=dead_" .. os.time()
    local script = ([[package.cpath = %q
      local p = assert(require "ahtest".process(
        { "sh", "-c", "setsid sleep 100 & echo on; sleep 100" }, { env = { %q, %q } }))
      print((p:line(30)))
      io.stdout:flush()
      os.execute("kill -9 $PPID")]]):format(package.cpath, PATH, mark)
    local host = assert(io.popen("lua5.4 - 2>&1 <<'END'\n" .. script .. "\nEND"))
    assert.equal("on", (host:read("l")))
    host:close()
    assert.truthy(gone(mark))
  end)
end)
