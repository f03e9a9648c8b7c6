-- Attacks on each promise of docs/reference/builtin.md about what a command of bash can reach and
-- what it leaves: as root and as another user, in each sandbox of this machine and in none, on
-- simulated older kernels (spec/support/older_kernel.c), by spec/support/attack.c. Attacks on the
-- filesystem object are in attacks_files_spec.lua. ATTACK_ROUNDS is the number of repetitions of
-- races (default 3).
local ahtest = require "ahtest"

local BUILD = os.getenv "AGENTHOST_BUILD" or "build"
local ASAN = os.getenv "AGENTHOST_ASAN"
local ROUNDS = tonumber(os.getenv "ATTACK_ROUNDS" or "3")
local PATH = "PATH=/usr/bin:/bin:/usr/sbin:/sbin"

local scratch, root, marks = nil, nil, 0

local function capture(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  pipe:close()
  return text
end

local function write(path, text)
  local f = assert(io.open(path, "w"))
  f:write(text)
  f:close()
end

local function read(path)
  local f = io.open(path)
  local text = f and f:read "a"
  return text, f and f:close()
end

-- Not below /tmp, which bubblewrap replaces. All users may use the contents.
setup(function()
  root = capture "id -u" == "0\n"
  scratch = capture("mktemp -d /var/tmp/agenthost-attacks.XXXXXX"):match "%S+"
  os.execute(("cp %s/agenthost %s/attack %s/older_kernel.so spec/support/fenced.lua %s"):format(
    BUILD, BUILD, BUILD, scratch))
  os.execute(("chmod 755 %s %s/*"):format(scratch, scratch))
end)

teardown(function()
  os.execute("chmod -R u+rwx " .. scratch .. "; rm -rf " .. scratch)
end)

local function new_folder(name)
  marks = marks + 1
  local path = ("%s/%s%d"):format(scratch, name, marks)
  os.execute(("mkdir %s && chmod 777 %s"):format(path, path))
  return path
end

local function new_mark()
  marks = marks + 1
  return ("%d_%d_%s"):format(marks, os.time(), scratch:match "%w+$")
end

-- Counts the processes with the mark in their environment.
local function marked(mark)
  local n = 0
  for _ in capture("grep -lsa AH_MARK=" .. mark .. " /proc/[0-9]*/environ"):gmatch "/proc/%d" do
    n = n + 1
  end
  return n
end

local function gone(mark)
  for _ = 1, 200 do
    if marked(mark) == 0 then
      return true
    end
    os.execute "sleep 0.05"
  end
  return false
end

-- Returns the users that a host may have here.
local function users()
  return root and { "root", "nobody" } or { "self" }
end

local function as(user)
  return user == "nobody" and scratch .. "/attack nobody " or ""
end

local function quoted(value)
  if type(value) ~= "table" then
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
  end
  local parts = {}
  for k, v in pairs(value) do
    parts[#parts + 1] = ("[%s] = %s"):format(quoted(k), quoted(v))
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- where: user, abi (of Landlock), no_bwrap, before (words before all others), tmpdir
local function command_line(job, where)
  local older = where.abi or where.no_bwrap
  local path = new_folder "job" .. "/job.lua"
  write(path, "return " .. quoted(job))
  os.execute("chmod 644 " .. path)
  return table.concat {
    "cd / && HOME=", scratch, where.tmpdir and " TMPDIR=" .. where.tmpdir or "", " ",
    where.before or "", as(where.user), "env ",
    older and ("LD_PRELOAD=%s%s/older_kernel.so "):format(ASAN and ASAN .. ":" or "", scratch)
      or "",
    where.abi and ("LANDLOCK_ABI=%d "):format(where.abi) or "",
    where.no_bwrap and "NO_BWRAP=1 " or "", scratch, "/agenthost ", scratch, "/fenced.lua ", path,
  }
end

local function result_of(text)
  return assert(load(text, "=host", "t"), text)()
end

local function host(job, where)
  return result_of(capture(command_line(job, where or {}) .. " 2>&1"))
end

-- Runs all at once; returns their results in the same order.
local function hosts(jobs, where)
  local at, lines, list = new_folder "hosts", {}, {}
  for i, job in ipairs(jobs) do
    lines[i] = ("(%s) > %s/%d 2>&1 &"):format(command_line(job, where), at, i)
  end
  os.execute(table.concat(lines, " ") .. " wait")
  for i in ipairs(jobs) do
    list[i] = result_of(read(at .. "/" .. i))
  end
  return list
end

local function offered(kind)
  local r = host { options = { sandbox = kind, cwd = "/" }, calls = { { command = "true" } } }
  local v = r.values[1]
  return v and v.exit_code == 0 and not v.sandbox:find("no filter of calls", 1, true)
end

-- Returns the sandboxes of this machine that keep all promises (Landlock only if calls are
-- filtered, too), and their variants on older kernels.
local function kinds()
  local list = {}
  if offered "landlock" then
    for _, abi in ipairs { false, 5, 3, 2, 1 } do
      list[#list + 1] = { kind = "landlock", abi = abi or nil }
    end
  end
  if offered "bubblewrap" then
    list[#list + 1] = { kind = "bubblewrap" }
  end
  return list
end

-- Calls f for each sandbox and each user.
local function for_each(f)
  local list = kinds()
  if #list == 0 then
    pending "no sandbox here"
  end
  for _, each in ipairs(list) do
    for _, user in ipairs(users()) do
      each.user = user
      f(each, ("%s %s as %s"):format(each.kind, each.abi or "", user))
    end
  end
end

local function end_victim(victim)
  os.execute("kill -9 " .. victim.pid)
  victim.pipe:close()
end

-- Starts an unrelated process of the user, which its <close> variable ends. Returns pipe and id.
local function new_victim(user)
  local pipe = io.popen("exec setsid " .. as(user) .. scratch .. "/attack wait")
  return setmetatable({ pipe = pipe, pid = tonumber(pipe:read "l") }, { __close = end_victim })
end

-- Returns the process's limits, whether it is stopped, its processors, and its scheduling.
local function state_of(pid)
  local status = read("/proc/" .. pid .. "/status") or "gone"
  local fields, at = {}, 2
  for field in (read("/proc/" .. pid .. "/stat") or ""):gsub("^.*%)", ""):gmatch "%S+" do
    at = at + 1
    fields[at] = field
  end
  return table.concat({ read("/proc/" .. pid .. "/limits") or "gone",
    status:match "State:[^\n]*" or "", status:match "Cpus_allowed:[^\n]*" or "",
    fields[18], fields[19], fields[41] }, "\n")
end

-- Returns name -> errno, from the output of attack.c.
local function attempts(text)
  local list, n = {}, 0
  for name, errno in text:gmatch "([%w_%-]+) (%d+)\n" do
    list[name], n = tonumber(errno), n + 1
  end
  return list, n
end

describe("a command in a sandbox", function()
  it("reaches nobody else, nothing outside, and no ways around it", function()
    for_each(function(where, what)
      local victim <close>, at = new_victim(where.user), new_folder "work"
      local file = new_folder "outside" .. "/file"
      write(file, "precious")
      os.execute("chmod 666 " .. file)
      local before = state_of(victim.pid)
      local command = ("echo SELF $$; %s/attack try %d %s; ls %s"):format(scratch, victim.pid, file,
        at)
      local r = host({ options = { sandbox = where.kind, cwd = at },
        calls = { { command = command } } }, where)
      local older = victim.pid < tonumber(r.shown[1]:match "SELF (%d+)")
      local list, n = attempts(r.shown[1])
      assert.truthy(n > 80, what .. r.shown[1])
      for name, errno in pairs(list) do
        -- before Linux 6.12 a process with a higher id can be signalled
        if not (name:find "kill" or name:find "sigqueue") or not where.abi or older then
          assert.are_not.equal(0, errno, what .. ": " .. name)
        end
      end
      assert.equal(before, state_of(victim.pid), what)
      assert.equal("precious", read(file), what)
      assert.equal("file\n", capture("ls " .. file:match ".*/"), what)
    end)
  end)

  it("neither reaches the host, nor its supervisors", function()
    for_each(function(where, what)
      local at = new_folder "work"
      local r = host({ options = { sandbox = where.kind, cwd = at, timeout = 20 }, calls = {
        { command = [[P=$PPID; N=0; while [ "${P:-0}" -gt 1 ] && [ $((N=N+1)) -lt 4 ]; do
            for w in --nofile=0:0 --cpu=1:1 --fsize=0 --as=0; do
              prlimit --pid $P $w 2>/dev/null && echo LIMITED; done
            kill -CONT $P 2>/dev/null && echo SIGNALLED $P
            kill -CONT -$P 2>/dev/null && echo SIGNALLED GROUP $P
            renice -n 19 -p $P >/dev/null 2>&1 && echo SLOWED
            taskset -p 1 $P >/dev/null 2>&1 && echo BOUND
            cat /proc/$P/environ >/dev/null 2>&1 && echo READ
            P=$(awk '/^PPid/{print $2}' /proc/$P/status)
          done; P=$PPID; kill -STOP $P; kill -9 $P; echo end]] },
        { command = "echo next" } } }, where)
      assert.truthy(r.shown[1]:find("end\n", 1, true) or where.kind == "bubblewrap", what)
      for _, word in ipairs { "LIMITED", "SLOWED", "BOUND", "READ" } do
        assert.is_nil(r.shown[1]:find(word), what .. r.shown[1])
      end
      if where.kind == "landlock" then -- in bubblewrap the parent is part of the sandbox
        assert.is_nil(r.shown[1]:find "SIGNALLED", what .. r.shown[1])
      end
      assert.truthy(r.shown[2]:find "next", what)
    end)
  end)

  it("does what programs usually do", function()
    for_each(function(where, what)
      local at = new_folder "work"
      local r = host({ options = { sandbox = where.kind, cwd = at }, calls = { { command = scratch
        .. "/attack allowed " .. at
        .. "; sleep 5 & kill $!; ulimit -n 50; nice -n 3 true && echo nice" } } }, where)
      local list, n = attempts(r.shown[1])
      assert.truthy(n >= 16, what .. r.shown[1])
      for name, errno in pairs(list) do
        assert.equal(0, errno, what .. ": " .. name)
      end
      assert.truthy(r.shown[1]:find "nice\n", what)
    end)
  end)

  it("has the internet, and no other sockets, where the network is allowed", function()
    for_each(function(where, what)
      local r = host({ options = { sandbox = where.kind, cwd = "/", network = true },
        calls = { { command = scratch .. "/attack internet" } } }, where)
      local list = attempts(r.shown[1])
      for name, errno in pairs(list) do
        local wanted = name == "inet" or name == "inet6" or name == "addresses"
        assert.equal(wanted, errno == 0, what .. ": " .. name .. " " .. errno)
      end
    end)
  end)

  it("has no capabilities that it could pass on, and gains none", function()
    if not root then
      pending "needs root"
    end
    for_each(function(where, what)
      if where.user == "nobody" then
        return
      end
      local r = host({ options = { sandbox = where.kind, cwd = "/" }, calls = { { command = [[
        cat /proc/self/status; P=$PPID; while [ "${P:-0}" -gt 1 ]; do
          tr '\0' '\n' < /proc/$P/environ
          P=$(awk '/^PPid/{print $2}' /proc/$P/status)
        done 2>/dev/null
        setpriv --reuid 65534 true && echo OTHER
        chown 1:1 /var/tmp 2>/dev/null && echo OWNER]] } } }, { user = "root", abi = where.abi,
        before = "A_KEY=sk-canary " .. scratch .. "/attack inherit " })
      local text, kept = r.shown[1], where.kind == "landlock" and 0x12 or 0
      for _, set in ipairs { "CapInh", "CapAmb" } do
        assert.equal(0, tonumber(text:match(set .. ":%s*(%x+)"), 16), what .. set)
      end
      for _, set in ipairs { "CapEff", "CapPrm" } do
        assert.equal(kept, tonumber(text:match(set .. ":%s*(%x+)"), 16), what .. set)
      end
      assert.equal("1", text:match "NoNewPrivs:%s*(%d)", what)
      assert.equal("2", text:match "Seccomp:%s*(%d)", what)
      for _, word in ipairs { "sk%-canary", "OTHER", "OWNER" } do
        assert.is_nil(text:find(word), what .. text)
      end
    end)
  end)

  it("has its rights over owners where root wants it", function()
    if not root or not offered "landlock" then
      pending "needs root, and Landlock"
    end
    local at = new_folder "work"
    local command = { command = "touch f && chown 12345 f && stat -c %u f" }
    for _, owners in ipairs { true, false } do
      local r = host { options = { sandbox = "landlock", cwd = at, owners = owners },
        calls = { command } }
      assert.equal(owners, r.shown[1]:find "12345\n" ~= nil, r.shown[1])
    end
  end)
end)

describe("a folder that may be written to", function()
  local function swapped(where, what, options, first)
    local out = new_folder "outside"
    write(out .. "/f", "precious")
    os.execute("chmod 666 " .. out .. "/f")
    for k, v in pairs(where) do
      options[k == "kind" and "sandbox" or "unused"] = k == "kind" and v or nil
    end
    local r = host({ options = options, calls = {
      { command = first:gsub("OUT", out) .. "; true" },
      { command = ("cd OUT && echo x > g; echo x > OUT/f; echo x > OUT/new"):gsub("OUT", out) },
      { command = ("echo x > OUT/late; echo pwn > ./f; echo pwn >> OUT/f; true"):gsub("OUT", out) },
    } }, where)
    assert.truthy(r.shown[3], what .. tostring(r.error))
    assert.equal("precious", read(out .. "/f"), what)
    assert.equal("f\n", capture("ls " .. out), what)
    return r
  end

  it("is not another one because a link or a folder stands in its place", function()
    for_each(function(where, what)
      local at = new_folder "work"
      os.execute(("mkdir -p %s/cache/deep %s/sub; chmod -R 777 %s"):format(at, at, at))
      swapped(where, what, { cwd = at, writable = { at .. "/cache", at .. "/cache/deep" } },
        "rm -rf cache; ln -s OUT cache")
      os.execute("rm -rf " .. at .. "/*; mkdir -p " .. at .. "/cache/deep; chmod -R 777 " .. at)
      swapped(where, what, { cwd = at, writable = { at .. "/cache/deep" } },
        "mv cache moved; mkdir cache; ln -s OUT cache/deep")
      os.execute("rm -rf " .. at .. "/*; mkdir -p " .. at .. "/sub; chmod -R 777 " .. at)
      swapped(where, what, { cwd = at .. "/sub", writable = { at } }, -- the working folder itself
        "cd ..; mv sub old; ln -s OUT sub")
    end)
  end)

  it("may be removed and made anew below the folder at work", function()
    for_each(function(where, what)
      local at = new_folder "work"
      os.execute(("mkdir %s/cache; chmod 777 %s/cache"):format(at, at))
      local r = host({ options = { sandbox = where.kind, cwd = at, writable = { at .. "/cache" } },
        calls = { { command = "rm -rf cache && mkdir cache" },
          { command = "echo x > cache/f && cat cache/f" } } }, where)
      assert.truthy(r.shown[2]:find "^x\n", what .. r.shown[2])
    end)
  end)

  it("must be there when the tool is made", function()
    local r = host { options = { sandbox = "auto", writable = { "/no/such/folder" } }, calls = {} }
    assert.truthy(r.error:find("cannot open the folder '/no/such/folder'", 1, true), r.error)
  end)
end)

describe("the temporary folder of a command", function()
  local DEEP = [[cd $TMPDIR; n=$(printf %0200d 0); i=0
    while [ $i -lt 25 ]; do mkdir $n; cd ./$n; i=$((i+1)); done; head -c 100000 /dev/zero > keep]]
  local HOSTILE = {
    deep = DEEP,
    closed = "cd $TMPDIR; mkdir -p a/b/c; touch a/b/f; chmod 0 a/b/c a/b a $TMPDIR",
    links = "ln -s OUT $TMPDIR/l; mkdir $TMPDIR/d; ln -s OUT $TMPDIR/d/l; chmod 0 $TMPDIR/d",
    names = "cd $TMPDIR; mkdir swept-0 swept-1 swept-2; mkdir swept-0/x swept-1/x; touch swept-2/y",
    many = "cd $TMPDIR; for i in $(seq 8); do mkdir $i; (cd $i; seq 100 | xargs touch); done",
  }

  it("is removed, whatever is in it, and nothing else", function()
    if not offered "landlock" then
      pending "no Landlock here"
    end
    for name, command in pairs(HOSTILE) do
      for _, user in ipairs(users()) do
        local at, out = new_folder "tmp", new_folder "outside"
        write(out .. "/f", "precious")
        host({ options = { sandbox = "landlock", cwd = out }, calls = { { command =
          (command:gsub("OUT", out)) } } }, { user = user, tmpdir = at })
        assert.equal("", capture("ls -A " .. at), name .. " as " .. user)
        assert.equal("precious", read(out .. "/f"))
      end
    end
  end)

  it("is removed when the host is killed", function()
    if not offered "landlock" then
      pending "no Landlock here"
    end
    local at, mark = new_folder "tmp", new_mark()
    local line = command_line({ calls = { { command = DEEP .. "; sleep 100" } },
      options = { sandbox = "landlock", cwd = "/", env = { AH_MARK = mark } } }, { tmpdir = at })
    line = line:gsub("env ", "exec env ", 1)
    os.execute(("(%s) >/dev/null 2>&1 & echo $! > %s.pid"):format(line, at))
    for _ = 1, 200 do
      if marked(mark) > 1 then
        break
      end
      os.execute "sleep 0.05"
    end
    os.execute("kill -9 " .. read(at .. ".pid"))
    assert.truthy(gone(mark))
    for _ = 1, 200 do
      if capture("ls -A " .. at) == "" then
        break
      end
      os.execute "sleep 0.05"
    end
    assert.equal("", capture("ls -A " .. at))
  end)
end)

describe("what a command leaves", function()
  -- All have MARK in their environment; I and O are the two supervisors, H is the host.
  local CHAIN = [[I=$PPID; O=$(awk '/^PPid/{print $2}' /proc/$I/status)
    H=$(awk '/^PPid/{print $2}' /proc/$O/status); ]]
  local DAEMON = "setsid sleep 100 & (setsid sh -c 'sleep 100 & sleep 100 &' &); "
  local ATTACKS = {
    "kill -STOP $I; kill -STOP $O $I",
    "kill -9 $I", "kill -9 $O", "kill -9 $O $I", "kill -9 -- -$I -$O",
    "(while :; do kill -STOP $I $O; done) &",
    "prlimit --pid $I --nofile=0:0", "prlimit --pid $I --nofile=0:0; prlimit --pid $O --nofile=0:0",
    "prlimit --pid $I --cpu=1:1", "prlimit --pid $O --stack=0:0 --as=0:0 --fsize=0:0",
    "renice -n 19 -p $I $O", "taskset -p 1 $I", "chrt -i -p 0 $I",
    "ATTACK trace $I >/dev/null & ATTACK trace $O >/dev/null &",
    "exec 1>&- 2>&-", "yes > /dev/null &", "trap '' TERM HUP INT CONT",
    "kill -CONT -- -1",
  }
  -- Without a sandbox, on processors without a filter of calls: killing one supervisor fails the
  -- call, killing both at once lets the command escape.
  local KILLS_ONE = { ["kill -9 $I"] = true, ["kill -9 $O"] = true }
  local KILLS_BOTH = { ["kill -9 $O $I"] = true, ["kill -9 -- -$I -$O"] = true }

  local function attacks_on(kind)
    if kind ~= "none" or ahtest.filters_calls then
      return ATTACKS, {}
    end
    local list = {}
    for _, attack in ipairs(ATTACKS) do
      list[#list + 1] = not KILLS_BOTH[attack] and attack or nil
    end
    return list, KILLS_ONE
  end

  -- Runs a host for each attack, at the same time.
  local function attacked(where, kind)
    local jobs, names, began = {}, {}, os.time()
    local attacks, may_fail = attacks_on(kind)
    for i, attack in ipairs(attacks) do
      names[i] = new_mark()
      jobs[i] = { options = { sandbox = kind, cwd = "/", timeout = 1, grace = 0.3,
        env = { AH_MARK = names[i] } }, calls = { { command = (CHAIN .. DAEMON .. attack
          .. "\nsleep 100"):gsub("ATTACK", scratch .. "/attack") }, { command = "echo next" } } }
    end
    for i, r in ipairs(hosts(jobs, where)) do
      local what = ("%s %s as %s: %s: "):format(kind, where.abi or "", where.user, attacks[i])
      local v = r.values[1]
      if v or not may_fail[attacks[i]] then
        assert.truthy(v, what .. tostring(r.error or r.shown[1]))
        assert.truthy(v.timed_out or v.signal, what .. v.outcome)
        assert.equal(0, v.left, what)
      else
        assert.truthy(r.shown[1]:find "the supervisor of '.*' was killed", what .. r.shown[1])
      end
      assert.equal(0, marked(names[i]), what)
      assert.truthy(r.shown[2]:find "next", what)
    end
    assert.truthy(os.time() - began < 60)
  end

  it("is ended after its time in a sandbox, whatever it does to its supervisors", function()
    for_each(function(where)
      if not where.abi or where.abi == 5 then
        attacked(where, where.kind)
      end
    end)
  end)

  it("is ended after its time without a sandbox as well", function()
    for _, user in ipairs(users()) do
      attacked({ user = user }, "none")
    end
  end)

  it("is ended when the host is killed, its supervisors stopped or not", function()
    for _, user in ipairs(users()) do
      local mark = new_mark()
      os.execute(command_line({ options = { sandbox = "none", cwd = "/", env = { AH_MARK = mark } },
        calls = { { command = CHAIN .. DAEMON .. "kill -STOP $O $I; kill -9 $H; sleep 100" } } },
        { user = user }) .. " >/dev/null 2>&1")
      assert.truthy(gone(mark), user)
    end
  end)
end)

-- Here without bash's filter of system calls, so that a command can signal its supervisors.
describe("the supervisors of a process", function()
  local CHAIN = "I=$PPID; O=$(awk '/^PPid/{print $2}' /proc/$I/status); "
  local DAEMON = "setsid sleep 100 & (setsid sh -c 'sleep 100 & sleep 100 &' &); sleep 0.1; "

  -- Returns the result when all processes are gone.
  local function attacked(script, options)
    local mark = new_mark()
    options = options or { timeout_ms = 700, grace_ms = 300 }
    options.env = { PATH, "AH_MARK=" .. mark }
    local p = assert(ahtest.process({ "sh", "-c", CHAIN .. DAEMON .. script }, options))
    local r = assert(p:wait(60), "it does not end: " .. script)
    p:close()
    assert.truthy(gone(mark), script)
    return r
  end

  it("let each other go on when they are stopped, and end all in time", function()
    for _, script in ipairs { "kill -STOP $I; sleep 100", "kill -STOP $O; sleep 100",
      "kill -STOP $O $I; sleep 100", "kill -STOP $O $I; sleep 0.5; kill -STOP $O $I; sleep 100" } do
      local r = attacked(script)
      assert.same({ "timed out", 0 }, { r.how, r.left }, script)
      assert.truthy(r.wall_ms < 20000, script .. r.wall_ms)
    end
  end)

  it("end all when one of them is killed", function()
    for _ = 1, ROUNDS do
      for _, script in ipairs { "kill -9 $I; sleep 100", "kill -9 $O; sleep 100",
          "kill -TERM $I; sleep 100", "kill -STOP $O; kill -9 $I; sleep 100",
        "kill -STOP $I; kill -9 $O; sleep 100" } do
        local r = attacked(script)
        assert.truthy(r.how == "failed" or r.how == "timed out", script .. r.how)
        assert.truthy(r.left == 0, script .. r.left)
        assert.truthy(r.wall_ms < 30000, script .. r.wall_ms)
      end
    end
  end)

  it("see what is below with no right to open files", function()
    for _, script in ipairs { "prlimit --pid $I --nofile=0:0; sleep 100",
      "prlimit --pid $I --nofile=0:0; prlimit --pid $O --nofile=0:0; exit 3",
      "prlimit --pid $O --nofile=0:0; kill -9 $I; sleep 100" } do
      assert.equal(0, attacked(script).left, script)
    end
  end)

  it("are not held by who stops them again and again", function()
    local loop = "(trap '' TERM; while :; do kill -STOP $I $O; done) & "
    local other = "export I O; setsid sh -c '" .. loop:gsub("''", '""') .. "wait' & "
    local r = attacked(loop .. other .. "sleep 100")
    assert.equal("timed out", r.how)
    assert.truthy(r.wall_ms < 60000, r.wall_ms)
  end)

  it("are not held by who stops them faster than they are let go on", function()
    local storm = BUILD .. "/attack storm $I $O & "
    local r = attacked(storm .. "setsid " .. storm .. "sleep 100")
    assert.equal("timed out", r.how)
    assert.truthy(r.wall_ms < 60000, r.wall_ms)
  end)

  it("are not held by who traces them", function()
    local r = attacked(BUILD .. "/attack trace $I > /dev/null & sleep 100")
    assert.equal("timed out", r.how)
    assert.truthy(r.wall_ms < 30000, r.wall_ms)
  end)

  it("are told to go on when the process is stopped, without a time", function()
    local mark = new_mark()
    local p = assert(ahtest.process(
      { "sh", "-c", CHAIN .. DAEMON .. "kill -STOP $O $I; echo on; sleep 100" },
      { env = { PATH, "AH_MARK=" .. mark }, grace_ms = 300 }))
    assert.equal("on", (p:line(30)))
    p:stop()
    assert.equal("stopped", p:wait(30).how)
    p:close()
    assert.truthy(gone(mark))
  end)

  it("leave no zombie, and nothing running, when the object is closed", function()
    local pid = read("/proc/self/stat"):match "^%d+"
    local children = ("/proc/self/task/%s/children"):format(pid)
    local before = read(children)
    for _, script in ipairs { "kill -STOP $O $I", "kill -9 $I", "kill -9 $O", "true" } do
      local mark = new_mark()
      local p = assert(ahtest.process(
        { "sh", "-c", CHAIN .. DAEMON .. script .. "; echo on; sleep 100" },
        { env = { PATH, "AH_MARK=" .. mark } }))
      p:line(5)
      p:close()
      assert.truthy(gone(mark), script)
    end
    assert.equal(before, (read(children)))
  end)
end)

describe("a machine without a sandbox", function()
  local NOTHING = { abi = 0, no_bwrap = true }

  it("is told once where the best there is was asked for", function()
    local job = { options = { sandbox = "auto", cwd = "/" },
      calls = { { command = "true" }, { command = "true" } } }
    local r = host(job, NOTHING)
    assert.equal(1, #r.warnings)
    assert.truthy(r.warnings[1]:find("this machine offers no sandbox", 1, true), r.warnings[1])
    assert.equal("none", r.values[1].sandbox)
    job.options.sandbox = "none"
    assert.equal(0, #host(job, NOTHING).warnings)
  end)

  it("makes no tool where a sandbox is required, and says what to install", function()
    local job = { options = { sandbox = "require", cwd = "/" }, calls = { { command = "true" } } }
    local r = host(job, NOTHING)
    assert.same({}, r.values)
    for _, part in ipairs { "this machine offers none", "Landlock", "bubblewrap" } do
      assert.truthy(r.error:find(part, 1, true), r.error)
    end
    if offered "auto" then
      r = host(job, {})
      assert.are_not.equal("none", r.values[1].sandbox)
      assert.equal(0, #r.warnings)
    end
  end)

  it("takes bubblewrap where there is no Landlock", function()
    if not offered "bubblewrap" then
      pending "no bubblewrap here"
    end
    local r = host({ options = { sandbox = "auto", cwd = "/" }, calls = { { command = "true" } } },
      { abi = 0 })
    assert.equal("bubblewrap, no network", r.values[1].sandbox)
  end)
end)
