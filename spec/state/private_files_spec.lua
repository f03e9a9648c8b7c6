-- Files that the program writes (conversations, recordings, logs) are accessible only to their
-- owner, whatever exists at the path before: wider modes, links, other names, pipes, other users'
-- files. Also: Lua files that are data only.
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"

local SECRET = "secret talk"

describe("a private file", function()
  local dir
  before_each(function()
    local pipe <close> = assert(io.popen "mktemp -d")
    dir = assert(pipe:read("l"))
    assert(os.execute(("chmod 755 '%s'"):format(dir)))
  end)
  after_each(function()
    command.tidy()
    os.execute(("rm -rf '%s'"):format(dir))
  end)

  local function shell(words)
    return command.shell(("cd '%s'; umask 022; %s"):format(dir, words))
  end

  local function stat(name, what)
    return (shell(("stat -c '%s' %s"):format(what or "%a", name)).out:gsub("\n", ""))
  end

  local function contents(name)
    local f <close> = assert(io.open(dir .. "/" .. name))
    return f:read("a")
  end

  -- The writers: each begins the file at `path`, and returns true, or false and a message.
  local writers = {
    save = function(path)
      local agent = ah.agent { model = ah.scripted { "ok" } }
      assert(agent:run(SECRET))
      local ok, err = agent:save(dir .. "/" .. path)
      return ok == true, err and err.message
    end,
    record = function(path)
      local script = command.temp(([[print(require "agenthost".run { model = "compatible/x",
        base_url = "http://127.0.0.1:1/v1", retries = 0, %q })]]):format(SECRET))
      local r = shell(("timeout 10 \"$A\" --record %s '%s' </dev/null"):format(path, script))
      assert.not_equal(124, r.code, "it hangs")
      return not (r.out .. r.err):find "cannot record", r.out .. r.err
    end,
    log = function(path)
      local script = command.temp '"Hello."\n'
      os.execute(("printf 'return { \"Hello.\" }' > '%s'"):format(script))
      local r = shell(([[ (timeout 10 "$A" mock --once 1 --log %s '%s' 2>err || echo fails) > url &
        for i in $(seq 100); do [ -s url ] && break; sleep .05; done; read -r u < url
        case "$u" in http*) "$A" -e 'print(require "agenthost".run { model = "compatible/x",
          base_url = arg[1], retries = 0, "%s" })' "$u/v1" </dev/null >out 2>&1;; esac
        wait; cat err >&2; ! grep -q fails url ]]):format(path, script, SECRET))
      return r.code == 0, r.err
    end,
  }

  for name, begin in pairs(writers) do
    local appends = name == "log"

    it("is made for its owner alone: " .. name, function()
      local ok, why = begin "new"
      assert.is_true(ok, why)
      assert.equal("600", stat "new")
      assert.truthy(contents("new"):find(SECRET, 1, true))
    end)

    it("is made private where it was not: " .. name, function()
      shell "echo before > old; chmod 666 old"
      assert.is_true(begin "old")
      assert.equal("600", stat "old")
      assert.equal(appends, contents("old"):find("before", 1, true) == 1)
    end)

    it("follows no link: " .. name, function()
      shell "echo precious > victim; mkdir shared; ln -s ../victim shared/f; ln -s ../gone shared/g"
      for _, path in ipairs { "shared/f", "shared/g" } do
        local ok, why = begin(path)
        assert.is_false(ok)
        assert.matches("it is a symbolic link; name the file itself", why)
      end
      assert.equal("precious\n", contents "victim")
      assert.equal("", shell("ls gone 2>/dev/null").out)
    end)

    it("waits for no pipe and writes to no device: " .. name, function()
      shell "mkfifo pipe; mkdir folder"
      for _, path in ipairs { "pipe", "folder", "/dev/null" } do
        if not (path == "/dev/null" and name == "save") then
          local ok, why = begin(path)
          assert.is_false(ok)
          assert.matches("it is no regular file", why)
        end
      end
      assert.equal("fifo", stat("pipe", "%F"))
    end)

    it("shares nothing with a file of two names: " .. name, function()
      shell "echo precious > victim; ln victim f"
      local ok, why = begin "f"
      assert.equal(not appends, ok, why)
      assert.equal("precious\n", contents "victim")
      assert.equal(appends and "644" or "600", stat "f")
    end)

    it("is not another user's: " .. name, function()
      if shell("id -u").out ~= "0\n" or shell("command -v setpriv").out == "" then
        return pending "needs root and setpriv"
      end
      shell [[mkdir shared; chmod 777 shared
        setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'umask 0; : > shared/f']]
      local ok, why = begin "shared/f"
      if appends then
        assert.is_false(ok)
        assert.matches("it is another user's", why)
      else
        assert.equal("600 0", stat("shared/f", "%a %u"), why)
      end
      local read = shell("setpriv --reuid 65534 --regid 65534 --clear-groups cat shared/f")
      assert.falsy(read.out:find(SECRET, 1, true))
    end)
  end

  it("shows nothing to whoever had the old one open", function()
    shell "echo before > f; chmod 644 f"
    local reader <close> = assert(io.open(dir .. "/f"))
    assert.is_true(writers.record "f")
    assert.equal("before\n", reader:read("a"))
  end)
end)

describe("overrides in a .lua file", function()
  after_each(command.tidy)

  local function with(text, suffix)
    local path = command.temp() .. (suffix or ".lua")
    command.made[#command.made + 1] = path
    local f <close> = assert(io.open(path, "w"))
    f:write(text)
    f:close()
    return pcall(ah.prompt, { ns = "s", key = "p", overrides = path,
      ah.section { key = "a", template = "A." } })
  end

  it("are data: a table that is returned", function()
    assert.is_true((with 'return { ["s/p"] = {} }'))
    assert.is_true((with '#!/usr/bin/lua\nlocal t = {} for i = 1, 9 do t[i] = i end return {}'))
    assert.is_true((with "\xef\xbb\xbfreturn {}"))
  end)

  for words, text in pairs {
    ["takes longer than 2 seconds"] = "while true do end",
    ["takes longer than 2 seconds "] = "local function f() return f() end f()",
    ["takes longer than 2 seconds  "] = "local s = 'x' for _ = 1, 23 do s = s .. s end local n = 0 "
      .. "while true do if s < s .. 'y' then n = n + 1 end end",
    ["takes longer than 2 seconds   "] = "for i = 1, math and 1 or 1e18 do end",
    ["bytes of memory"] = "local s = 'x' while true do s = s .. s end",
    ["bytes of memory "] = "local t = {} for i = 1, 1e9 do t[i] = {} end",
    ["bytes of memory  "] = "local function f(t) return 1 + f { t, { 1, 2 }, { 3 } } end f()",
    ["nil value"] = "return os.exit()",
    ["string value"] = "return ('x'):rep(1e10)",
    ["nil value "] = "setmetatable({}, { __gc = 1 })",
    ["binary chunk"] = "\27Lua",
    ["JSON"] = "return function() end",
  } do
    it("are stopped and told: " .. text:sub(1, 60):gsub("%c", "?"), function()
      patiently(function() -- their 2 seconds are those of the clock
        local from = ah.now()
        local ok, err = with(text)
        assert.is_false(ok)
        assert.matches((words:gsub(" +$", "")), tostring(err))
        assert.is_true(ah.now() - from < 20)
      end)
    end)
  end

  it("are a regular file of a bounded size", function()
    for _, suffix in ipairs { ".lua", ".json" } do
      local path = command.temp() .. suffix
      command.made[#command.made + 1] = path
      assert(os.execute(("mkfifo '%s'"):format(path)))
      local ok, err = pcall(ah.prompt, { ns = "s", key = "p", overrides = path })
      assert.is_false(ok)
      assert.matches("no regular file", tostring(err))
      ok, err = with(("-"):rep(17 << 20), suffix)
      assert.is_false(ok)
      assert.matches("16777216 bytes", tostring(err))
    end
  end)
end)
