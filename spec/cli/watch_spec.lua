-- --watch: a script, or the specs, run again when a file of the project changes (src/cli/watch.c,
-- lua/agenthost/command/watch.lua).
local command = require "support.command"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if = typing.it(it, pending)

local WAITING = "waiting for changes"
local folder

before_each(function()
  folder = command.folder()
end)

after_each(command.tidy)

local function write(name, text)
  return command.write(folder .. "/" .. name, text)
end

-- Starts the command with --watch in a terminal.
local function start(...)
  return typing.command({ "--watch", ... })
end

-- Reads until the part comes behind all that was read before.
local function next_part(t, part)
  t.all = ""
  return typing.read(t, part)
end

local function press(t, key)
  t.pty:write(key)
  return (typing.finish(t))
end

describe("a script with --watch", function()
  it_if("answers the words again when it has changed; Ctrl-C ends it", function()
    local path = write("agent.lua", "return require 'agenthost'.agent { model = 'demo/echo' }")
    local t = typing.read(start(path, "Hello", "there"), WAITING)
    has(t.all, "Hello there\r\n")
    has(t.all, "agenthost: " .. path .. ": exit code 0; " .. WAITING)
    write("agent.lua", "return require 'agenthost'.agent {\n} }")
    next_part(t, WAITING)
    has(t.all, path .. " has changed; running " .. path .. " again")
    has(t.all, "agent.lua:2: <eof> expected near '}'")
    has(t.all, "exit code 1; " .. WAITING)
    write("agent.lua", "print 'well' os.exit(7)")
    next_part(t, WAITING)
    has(t.all, "well\r\n")
    has(t.all, "exit code 7; " .. WAITING)
    assert.equal(130, press(t, "\3"))
  end)

  it_if("is ended and run again while it works, in a new process", function()
    write("number.lua", "return 1")
    local path = write("server.lua", [[
      local ah = require "agenthost"
      package.path = arg[0]:match "^.*/" .. "?.lua"
      again = (again or 0) + 1
      print("number " .. require "number", again, os.getenv "AGENTHOST_WATCHED")
      ah.sleep(1000) ]])
    local t = typing.read(start(path), "number 1\t1\tnil")
    write("number.lua", "return 2")
    next_part(t, "number 2\t1\tnil")
    has_not(t.all, WAITING)
    assert.equal(130, press(t, "\3"))
  end)

  it_if("is ended by force if it does not end", function()
    local path = write("stubborn.lua", [[
      print "begun"
      local ended = setmetatable({}, { __close = function()
        os.execute "sleep 1000" -- no Lua code, which could be stopped
      end })
      local _ <close> = ended
      require "agenthost".sleep(1000) ]])
    local t = typing.read(start(path), "begun")
    write("stubborn.lua", "print 'calm'")
    next_part(t, WAITING)
    has(t.all, "calm\r\n")
    assert.equal(130, press(t, "\3"))
  end)

  it_if("that goes on after a Ctrl-C, as a chat does, is still watched", function()
    local path = write("chat.lua", [[
      local ah = require "agenthost"
      ah.interactive()
      ah.spawn(function()
        ah.sleep(0.01)
        print "asks"
      end)
      pcall(ah.sleep, 1000)
      print "leaves" ]])
    local t = typing.read(start(path), "asks")
    t.pty:write "\3"
    next_part(t, WAITING)
    has(t.all, "leaves\r\n")
    has(t.all, "exit code 0")
    write("chat.lua", "print 'new'")
    next_part(t, WAITING)
    has(t.all, "new")
    assert.equal(130, press(t, "\3"))
  end)

  it_if("heeds Lua files and settings of its folder, no others and no hidden ones", function()
    assert(os.execute(("mkdir %s/.hidden %s/below"):format(folder, folder)))
    local path = write("agent.lua", "print 'run'")
    local t = typing.read(start(path), WAITING)
    for _, name in ipairs { "notes.txt", "agent.lua.swp", ".#agent.lua", ".hidden/x.lua",
      "below/x.lua" } do
      write(name, "return 1")
    end
    next_part(t, WAITING)
    has(t.all, "/below/x.lua has changed")
    write("agenthost.conf", "")
    next_part(t, WAITING)
    has(t.all, "/agenthost.conf has changed")
    os.remove(folder .. "/below/x.lua")
    next_part(t, WAITING)
    has(t.all, "/below/x.lua has changed")
    assert.equal(130, press(t, "\3"))
  end)

  it("passes SIGTERM and SIGINT on, and ends with its code", function()
    for name, code in pairs { TERM = 143, INT = 130 } do
      local ready = folder .. "/" .. name
      local path = write("agent.lua", ([[
        local stat <close> = io.open "/proc/self/stat"
        local ready <close> = io.open(%q, "w")
        ready:write(stat:read "n")
        ready:close()
        pcall(require "agenthost".sleep, 1000)
        print "ended" ]]):format(ready))
      local r = command.shell(([["$A" --watch %s & p=$!
        until [ -s %s ]; do sleep 0.05; done
        kill -%s $p; wait $p; echo "code $?"
        kill -0 $(cat %s) && echo "there" ]]):format(path, ready, name, ready))
      assert.equal(("ended\ncode %d\n"):format(code), r.out)
      has_not(r.err, WAITING)
    end
  end)

  it("needs a script in a file, and no -i", function()
    for line, words in pairs {
      ["--watch"] = "--watch needs a script in a file",
      ["--watch -"] = "--watch needs a script in a file",
      ["-w -e 'print(1)'"] = "--watch needs a script in a file",
      ["-wi " .. write("agent.lua", "")] = "--watch and -i: give one of them",
      ["-w " .. folder .. "/none.lua"] = "cannot open",
      ["-w -p Hello"] = "option --watch is not for agenthost prompt",
    } do
      local r = command.shell('"$A" ' .. line .. " </dev/null")
      assert.equal(2, r.code, line)
      has(r.err, words)
    end
  end)
end)

describe("agenthost test -w", function()
  before_each(function()
    assert(os.execute(("mkdir %s/spec"):format(folder)))
    write("spec/a_spec.lua", "it('is fine', function() end)")
    write("shop.lua", "return 1")
  end)

  -- Starts it in the folder, in a terminal.
  local function tests(words)
    return typing.start { "/bin/sh", "-c", ("cd %s; exec %s test %s"):format(folder,
      command.BINARY, words) }
  end

  for _, words in ipairs { "spec -w -o TAP", "-w -- -o TAP" } do
    it_if("runs the specs again when one has changed: " .. words, function()
      local t = typing.read(tests(words), WAITING)
      has(t.all, "ok 1 - is fine")
      has(t.all, "agenthost: the specs: exit code 0; " .. WAITING)
      write("spec/a_spec.lua", "it('fails', function() assert.equal(1, 2) end)")
      next_part(t, WAITING)
      has(t.all, "agenthost: spec/a_spec.lua has changed; running the specs again")
      has(t.all, "not ok 1 - fails")
      has(t.all, "the specs: exit code 1; " .. WAITING)
      assert.equal(130, press(t, "\3"))
    end)
  end

  it_if("runs them again when another Lua file has changed", function()
    local t = typing.read(tests "-w", WAITING)
    write("shop.lua", "return 2")
    next_part(t, WAITING)
    has(t.all, "agenthost: shop.lua has changed; running the specs again")
    assert.equal(130, press(t, "\3"))
  end)

  it_if("ends with Ctrl-C while a spec is at work", function()
    write("spec/a_spec.lua", [[
      it("waits", function() print "begun" require "agenthost".sleep(1000) end)]])
    local t = typing.read(tests "-w", "begun")
    assert.equal(130, press(t, "\3"))
  end)

  it("is not taken from the options of busted", function()
    has(command.shell(('cd %s; "$A" test -- -w'):format(folder)).err, "unknown")
  end)
end)
