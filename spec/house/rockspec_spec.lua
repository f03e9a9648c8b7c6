-- The rockspec: its fields, and the commands that LuaRocks would run, without LuaRocks.
local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local VERSION = require("agenthost").version
local PATH = ("rockspecs/agenthost-%s-1.rockspec"):format(VERSION)

local function read_rockspec()
  local rock = {}
  assert(loadfile(PATH, "t", rock))()
  return rock
end

-- Returns the exit code and the output.
local function run(command)
  local pipe <close> = assert(io.popen("{ " .. command .. "\n} 2>&1; echo \" $?\""))
  local out, code = pipe:read("a"):match("^(.*) (%d+)\n$")
  return tonumber(code), out
end

-- Returns the command that LuaRocks makes for a build of type "make"; in the folder under test,
-- whose flags may be any.
local function command_of(target, variables, values)
  local words = { ("make -s ANY_FLAGS=yes BUILD='%s' %s"):format(BUILD, target) }
  for name, value in pairs(variables) do
    words[#words + 1] = ("%s='%s'"):format(name, value:gsub("%$%((%w+)%)", values))
  end
  return table.concat(words, " ")
end

describe("the rockspec", function()
  it("is of this version, and needs no other rock", function()
    local rock = read_rockspec()
    assert.equal("agenthost", rock.package)
    assert.equal(VERSION .. "-1", rock.version)
    assert.same({ "lua >= 5.4, < 5.5" }, rock.dependencies)
    assert.equal("make", rock.build.type)
    assert.equal("string", type(rock.source.url))
    assert.equal("MIT", rock.description.license)
  end)

  it("builds and installs a module that stock Lua loads", function()
    local build, dir = read_rockspec().build, os.tmpname()
    os.remove(dir)
    local values = { CFLAGS = "-O2 -g", LIBDIR = dir .. "/lib", LUADIR = dir .. "/lua" }
    local code, out = run(table.concat({
      "set -e; unset MAKEFLAGS MAKELEVEL",
      "LD_PRELOAD= " .. command_of(build.build_target, build.build_variables, values),
      "LD_PRELOAD= " .. command_of(build.install_target, build.install_variables, values),
      "ls -R " .. dir,
      ("LUA_CPATH='%s/lib/?.so' lua5.4 -e 'print(require \"agenthost\".version)'"):format(dir),
    }, "\n"))
    os.execute("rm -rf " .. dir)
    assert(code == 0, out)
    assert.equal(VERSION, out:match("([^\n]+)\n$"), out)
    assert.truthy(out:find("agenthost.so", 1, true), out)
    assert.truthy(out:find("types:\nagenthost.lua", 1, true), out)
  end)

  it("builds from every source that there is", function()
    local code, out = run("unset MAKEFLAGS MAKELEVEL; LD_PRELOAD= make -n -B BUILD=/nowhere rock")
    assert(code == 0, out)
    local list = assert(io.popen("ls src/*/*.c | grep -v '^src/cli/'; " ..
      "find lua/agenthost -name '*.lua' | grep -v -e types/ -e command/"))
    for path in list:lines() do
      assert.truthy(out:find(path, 1, true), path)
    end
    list:close()
  end)
end)
