-- The floors and modules (support/floors.lua, support/modules.lua) hold for the build; violations
-- are found in a small tree that has them.
local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"

local function run(command)
  local program = assert(io.popen(command .. " 2>&1"))
  local said = program:read "a"
  return program:close() == true, said
end

local function write(path, ...)
  local file <close> = assert(io.open(path, "w"))
  file:write("/* A file of a small tree. */\n", ...)
end

local function told(said, words)
  assert(said:find(words, 1, true), said)
end

describe("the floors of the house", function()
  it("hold, by includes and by symbols", function()
    local ok, said = run("lua5.4 spec/support/floors.lua " .. BUILD)
    assert(ok, said)
    assert.equal("", said)
  end)

  describe("of a tree that breaks them", function()
    local dir, here

    local function faults()
      local ok, said = run(("cd %s && lua5.4 %s/spec/support/floors.lua build"):format(dir, here))
      assert.is_false(ok)
      return said
    end

    local function compile(name)
      assert(run(("cd %s && %s -Isrc -c src/%s.c -o build/src/%s.o"):format(dir,
        os.getenv "CC" or "cc", name, name)))
    end

    before_each(function()
      dir, here = select(2, run "mktemp -d"):match "%S+", select(2, run "pwd"):match "[^\n]+"
      assert(run(("cd %s && mkdir -p src/base src/lua build/src/base build/src/lua"):format(dir)))
    end)

    after_each(function()
      run("rm -r " .. dir)
    end)

    it("are told of an include that goes up, between floors and between modules", function()
      write(dir .. "/src/base/buf.c", '#include "lua/lua_api.h"\n')
      write(dir .. "/src/lua/lua_words.c", '#include "lua/lua_api.h"\n')
      write(dir .. "/src/lua/lua_api.c", '#include "lua/lua_words.h"\n')
      local said = faults()
      told(said, "src/base/buf.c:2: base must not use lua/lua_api.h\n")
      told(said, "src/lua/lua_words.c:2: module value must not use lua/lua_api.h of module embed, "
        .. "which stands above it\n")
      assert.falsy(said:find("src/lua/lua_api.c", 1, true), said)
    end)

    it("are told of a call that no include shows", function()
      write(dir .. "/src/base/buf.c", "void ah_high(void);\nvoid ah_low(void);\n",
        "void ah_low(void)\n{\n    ah_high();\n}\n")
      write(dir .. "/src/lua/lua_words.c", "void ah_high(void);\nvoid ah_words(void);\n",
        "void ah_words(void)\n{\n    ah_high();\n}\n")
      write(dir .. "/src/lua/lua_api.c", "void ah_low(void);\nvoid ah_high(void);\n",
        "void ah_high(void)\n{\n    ah_low();\n}\n")
      for _, name in ipairs { "base/buf", "lua/lua_words", "lua/lua_api" } do
        compile(name)
      end
      local said = faults()
      told(said, "src/base/buf.c:1: base must not use lua/lua_api.c: ah_high\n")
      told(said, "src/lua/lua_words.c:1: module value must not use lua/lua_api.c of module embed, "
        .. "which stands above it: ah_high\n")
      assert.falsy(said:find("src/lua/lua_api.c:", 1, true), said)
      write(dir .. "/src/lua/lua_words.c", "void ah_words(void);\n") -- newer than the build
      assert(run(("touch -d '+1 minute' %s/src/lua/lua_words.c"):format(dir)))
      assert.falsy(faults():find("src/lua/lua_words.c:1: module", 1, true))
    end)

    it("are told of a file in no module, and of a module's file that is not there", function()
      write(dir .. "/src/lua/lua_strange.c")
      local said = faults()
      told(said, "src/lua/lua_strange.c:1: in no module: say in spec/support/modules.lua to which "
        .. "one it belongs\n")
      told(said, "no such file, to be taken out of value: lua/lua_words\n")
      told(said, "nothing is built in build")
    end)
  end)
end)
