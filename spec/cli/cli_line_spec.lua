-- The command line: flags of the commands before and after the command's name, as their rows define
-- them. C, which reads the command lines of scripts, and the program in Lua read alike. Also the
-- messages when there is no Lua state.
local command = require "support.command"
local descriptors = require "support.descriptors"
local flags = require "support.flags"
local programs = require "support.programs"
local random = require "support.random"

local agenthost, has, has_not, shell, temp = command.agenthost, command.has, command.has_not,
  command.shell, command.temp

after_each(command.tidy)

local function refused(part, ...)
  local r = agenthost(...)
  assert.equal("", r.out)
  has(r.err, "agenthost: " .. part)
  assert.equal(2, r.code)
  return r
end

describe("flags of a command", function()
  local SCRIPT = 'return require("agenthost").agent { model = "openai/x" }'

  it("may stand in front of its name or behind it", function()
    local path = temp(SCRIPT)
    local told = agenthost("tools", "--model", "demo/echo", "--json", path)
    assert.equal(0, told.code, told.err)
    has(told.out, '"model":"demo/echo"')
    for _, words in ipairs {
      { "--model=demo/echo", "--json", "tools", path },
      { "--json", "tools", "--model=demo/echo", path },
      { "--json", "--model", "demo/echo", "tools", "--", path } } do
      assert.same(told, agenthost(table.unpack(words)))
    end
  end)

  it("in front of it may be those that only it has", function()
    refused("option --port needs a number from 0 to 65535, found '65536'", "--port", "65536",
      "mock", "x")
    local r = refused("cannot open 'none.lua'", "--port", "65535", "--once=1", "mock", "none.lua")
    has_not(r.err, "option")
  end)

  it("are told to those who give them to another, in front of it or behind it", function()
    for _, words in ipairs { { "--port", "1", "check", "x" }, { "check", "--port=1", "x" } } do
      has(refused("option --port is not for agenthost check", table.unpack(words)).err,
        "\nSee agenthost check --help.")
    end
    refused("option --version is not for agenthost check", "check", "-V", "x")
    refused("option --eval is not for agenthost tools", "tools", "-e", "x()", "x")
  end)

  it("are told to be of another where there is none", function()
    refused("option --port is not for running a script, but for agenthost mock", "--port", "1",
      "x.lua")
    refused("option --show is not for running a script, but for agenthost config", "--show")
    refused("option --port needs a N", "--port")
  end)

  it("that want a number take digits alone, in their range", function()
    for _, bad in ipairs { "x", "1x", "0x1", "1.5", "+1", " 1", "999999999999999999999" } do
      refused("option --port needs a number from 0 to 65535, found '", "mock", "--port", bad, "x")
    end
    refused("option --port needs a N, found '-1'", "mock", "--port", "-1", "x")
    refused("option --once needs a number from 0 to 999999999, found '1000000000'", "mock",
      "--once=1000000000", "x")
  end)

  it("that want a word name those there are", function()
    refused("option --format needs one of these: all openai responses anthropic gemini ollama, "
      .. "found 'open'", "mock", "--format", "open", "x")
  end)

  it("name the nearest of all that there are", function()
    has(refused("unknown option '--prot' (did you mean --port?)", "mock", "--prot", "1", "x").err,
      "See agenthost mock --help.")
    refused("unknown option '--shwo' (did you mean --show?)", "--shwo")
  end)

  it("colour what is said of the line they stand on", function()
    has(agenthost("check", "--color=always", "--nonsense").err, "\27[31m")
    has(agenthost("--color=always", "check", "--nonsense").err, "\27[31m")
    has_not(agenthost("check", "--color=always", "--color=never", "--nonsense").err, "\27")
  end)

  it("may have any value that is a line end or no text", function()
    local folder = temp()
    os.remove(folder)
    local r = shell(([[mkdir %s && cd %s && printf 'A_B=1\n' >'a
fault' && echo 'print(os.getenv "A_B")' >'b
show' && "$A" check --env-file 'a
fault' 'b
show'; rm -r %s]]):format(folder, folder, folder))
    assert.equal("1\n", r.err)
    has(r.out, "b\nshow: no faults")
    refused("unknown option '--\\xff\\xfe'", "check", "--\255\254")
  end)
end)

describe("words behind a command", function()
  it("are as many as it takes", function()
    refused("no script given", "check")
    refused("no script given", "mock", "--port=1")
    refused("agenthost mock takes one script, found '--once' besides", "mock", "x.lua", "--once",
      "1")
    refused("agenthost models takes one model, found 'b/c' besides", "models", "a/b", "b/c")
    refused("agenthost config takes no operand, found 'x'", "config", "x")
    local shells = "agenthost completion needs one of these shells: bash zsh fish aliases saved "
      .. "servers"
    refused(shells, "completion")
    refused(shells, "completion", "tcsh")
    refused("agenthost completion takes one shell, found 'zsh' besides", "completion", "bash",
      "zsh")
  end)

  it("that name a file which cannot be read are told with what may have been meant", function()
    local path = temp()
    os.rename(path, path .. ".lua")
    command.made[#command.made + 1] = path .. ".lua"
    for _, name in ipairs { "check", "tools", "mock" } do
      has(refused("cannot open '" .. path .. "': No such file", name, path).err,
        ("Did you mean '%s.lua'?"):format(path))
      refused("cannot open '/': Is a directory", name, "/")
    end
    local r = agenthost("check", "--json", "none.lua")
    has(r.out, '{"error":{"code":"usage","message":"cannot open ')
    assert.equal(2, r.code)
  end)
end)

describe("help", function()
  it("of a command comes by its name, too, whatever stands around", function()
    local help = agenthost("check", "--help").out
    has(help, "Usage: agenthost check")
    for _, words in ipairs { { "help", "check" }, { "--help", "check" }, { "-q", "check", "-h" },
      { "check", "--jsonl", "--help", "--nonsense" }, { "check", "-vh" } } do
      assert.equal(help, agenthost(table.unpack(words)).out)
    end
    assert.equal(agenthost("--help").out, agenthost("help").out)
    refused("there is no command, page, function, field or term 'nears'", "help", "nears")
  end)

  it("is no command where a script is meant", function()
    for _, name in ipairs { "line", "flags", "settings", "near", "report" } do
      refused(("cannot open '%s'"):format(name), "--", name)
      refused(("'%s' is no command"):format(name), name)
    end
  end)

  it("names the flags of running where there is no Lua state", function()
    local r = shell [[ulimit -n 4; "$A" --help]]
    assert.equal(0, r.code, r.err)
    has(r.out, "Usage: agenthost [options] script.lua")
    for flag in agenthost("--help").out:match("\nOptions:\n(.-)\nWords"):gmatch "[^\n]+" do
      has(r.out, flag)
    end
    r = shell [[ulimit -n 4; "$A" check x.lua]]
    assert.same({ 1, "" }, { r.code, r.out })
    has(r.err, "agenthost: cannot start: ")
  end)
end)

describe("what a command writes", function()
  it("is told to be lost where it is, and not where nobody reads on", function()
    for _, line in ipairs { "models demo/echo", "config", "completion bash",
      "tools examples/quickstart.lua", "--json check examples/quickstart.lua" } do
      local r = shell(('"$A" %s >/dev/full'):format(line))
      assert.equal(1, r.code, line)
      assert.matches("^agenthost: cannot write to standard output: [^\n]+\n", r.err)
      has_not(r.err, "traceback")
      r = shell(('{ "$A" %s; echo "code $?" >&2; } | true'):format(line))
      assert.truthy(r.err == "code 0\n", line .. r.err)
    end
  end)

  it("goes behind what a file has", function()
    local path = temp("before\n")
    shell(('"$A" tools examples/quickstart.lua >>%s; echo after >>%s'):format(path, path))
    assert.matches("^before\nexamples/quickstart.lua:%d+: .*\nafter\n$", command.contents(path))
  end)

  it("goes where stdout went, what a script prints to stderr", function()
    local path, out = temp('print "mine" io.stdout:write "and\\n" os.execute "echo child"'), temp()
    local r = shell(('"$A" check %s >%s'):format(path, out))
    assert.equal("", r.out)
    for _, line in ipairs { "mine\n", "and\n", "child\n" } do
      has(r.err, line)
    end
    has(command.contents(out), "no faults")
    has_not(command.contents(out), "mine")
  end)
end)

describe("a file that writes to a descriptor", function()
  local ah = require "agenthost"

  it("is refused for what is none", function()
    for _, bad in ipairs { -1, 1 << 31, math.mininteger, 1.5, "x", {}, 65000 } do
      assert.is_false((pcall(ah._writer, bad)), tostring(bad))
    end
    assert.is_false((pcall(ah._writer)))
  end)

  it("has a descriptor of its own, which the collector closes, too", function()
    collectgarbage()
    local before = descriptors()
    for _ = 1, 20 do
      ah._writer(2)
    end
    collectgarbage()
    assert.equal(before, descriptors())
    local w <close> = ah._writer(2)
    assert.equal("file", io.type(w))
    assert.is_true(w:close())
    assert.is_false((pcall(w.write, w, "x")))
  end)
end)

-- Compares both readers on random command lines: a line without a fault is for C the run of a
-- script with the same words; for a line with a fault C prints the program's message.
describe("C and the program", function()
  local COUNT = tonumber(os.getenv "AGENTHOST_LINES") or 150
  local WORDS = { "-v", "-q", "-qv", "-vv", "-vvq", "--eval=return", "-ereturn", "-qe", "--model",
    "--model=a/b", "a/b", "--env-file=%s", "--env-file", "%s", "%s", "--color", "--color=never",
    "always", "--color=x", "-V", "--version", "--", "-", "", "--model=", "-x", "--x", "--json=1",
    "---", "-e=", "=", "-\255", "--modle", "--record", "--replay=", "--port", "--port=1" }

  -- Returns the command line as the program reads it, and the remaining words, of which the first
  -- is the script.
  local function read(words)
    local said = flags.said()
    local all = table.move(words, 1, #words, #said + 1, { table.unpack(said) })
    return programs "line".read("", "", tostring(#said), table.unpack(all))
  end

  it("read lines alike", function()
    local path, next_one = temp "print('ran', ...)", random(7)
    local ran, told = 0, 0
    for _ = 1, COUNT do
      local words = {}
      for i = 1, next_one(5) do
        words[i] = WORDS[next_one(#WORDS)]:gsub("%%s", path)
      end
      local said, r = read(words), agenthost(table.unpack(words))
      local fault = said:match "fault\n(.*)$"
      local line = table.concat(words, " | ")
      if fault then
        told = told + 1
        assert.equal("agenthost: " .. fault:gsub("\255", "\\xff") .. "\n", r.err, line)
        assert.same({ "", 2 }, { r.out, r.code }, line)
      else
        ran = ran + 1
        assert.truthy(said:find "script\n$" or said:find "word %d+\n$", line .. said)
        has_not(r.err, "option")
        assert.truthy(r.code < 2 or r.err:find "no script given" or r.err:find "cannot open"
          or said:find "word %d+\n$" and r.err:find "is no command"
          or r.err:find "found no '='" or r.err:find "did not use", line .. r.err)
      end
    end
    assert.is_true(ran > COUNT / 10 and told > COUNT / 4, ran .. " " .. told)
  end)
end)
