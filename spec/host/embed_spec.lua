-- The embedding interface: the cases of spec/embed, the examples, the headers on their own, and the
-- symbols that the libraries export.
local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"

-- Returns the exit code and the output of both kinds.
local function run(command)
  local pipe <close> = assert(io.popen("{ " .. command .. "\n} 2>&1; echo \" $?\""))
  local text = pipe:read("a")
  local out, code = text:match("^(.*) (%d+)\n$")
  return tonumber(code), out
end

local CASES = BUILD .. "/embed-cases"

-- The cases that keep something in a file: a build without SQLite has none.
local IN_FILES = { ["a conversation in a store goes on"] = true,
  ["an unfinished run in a store goes on"] = true, ["a store in a file"] = true }
local _, versions = run(BUILD .. "/agenthost --version --verbose")
local has_files = not versions:find "\nsqlite none\n"

-- True if the spec cannot run in this build; it is then pending.
local function lacks_files()
  if not has_files then
    pending "there is no SQLite in this build"
  end
  return not has_files
end

describe("agenthost.h", function()
  local pipe <close> = assert(io.popen(CASES))
  for name in pipe:lines() do
    it(name, function()
      if IN_FILES[name] and lacks_files() then
        return
      end
      local code, out = run(("unset OPENAI_API_KEY AGENTHOST_MODEL; %s '%s'"):format(CASES, name))
      assert(code == 0, ("exit %d\n%s"):format(code, out))
    end)
  end
end)

-- -- the examples ---------------------------------------------------------------------------

local function example(name, ...)
  local code, out = run(BUILD .. "/examples/" .. name)
  assert.equal(0, code, out)
  for _, said in ipairs { ... } do
    assert.truthy(out:find(said, 1, true), out)
  end
end

describe("examples", function()
  it("embed: a tool in C, one in Lua, and an agent that has both", function()
    example("embed", 'three cost {"euros":57}', '- stock: {"item":"lamp","pieces":12}',
      '- price: {"euros":19}')
  end)

  it("embed_poll: conversations in the program's own loop, answered by threads", function()
    example("embed_poll", 'hall: The tools said:\n- measure: {"degrees":21}',
      'roof: The tools said:\n- measure: {"degrees":21}')
  end)

  it("embed_threads: eight hosts in eight threads, one of them cancelled", function()
    example("embed_threads", "160 answers from 8 hosts, the long one: cancelled")
  end)

  it("embed_store: a conversation in a store, killed and resumed", function()
    if lacks_files() then
      return
    end
    example("embed_store", "counting\nshipping, and killed\n"
      .. "the first process has ended by signal 9\nlamps: The tools said:\n- count: 12\n"
      .. "- ship: The outcome of this call is unknown")
  end)

  it("embed.cpp: the same from C++", function()
    if not io.open(BUILD .. "/examples/embed_cpp") then
      pending "there is no C++ compiler"
      return
    end
    example("embed_cpp", "- count: 1\n- broken: it is broken")
  end)
end)

-- -- the headers and the libraries -----------------------------------------------------------

local function lines(command)
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do
    list[#list + 1] = line
  end
  return list
end

-- Keeps the sanitizers' runtime out of compilers.
local CC = "unset LD_PRELOAD; "

describe("the headers", function()
  local LUA = lines("pkg-config --cflags lua5.4")[1]

  local function compiles(compiler, language)
    for _, header in ipairs { "agenthost.h", "agenthost_lua.h" } do
      local code, out = run(("%secho '#include <%s>' | %s -x %s -Wall -Wextra -pedantic -Werror "
        .. "-Iinclude %s -fsyntax-only -"):format(CC, header, compiler, language, LUA))
      assert(code == 0, out)
    end
  end

  it("compile alone as C11", function() compiles("cc -std=c11", "c") end)

  it("compile alone as C++17", function()
    if not os.execute("command -v c++ >/dev/null") then
      pending "there is no C++ compiler"
      return
    end
    compiles("c++ -std=c++17", "c++")
  end)
end)

-- Returns the names that the headers declare.
local function promised()
  local names = {}
  for _, header in ipairs { "include/agenthost.h", "include/agenthost_lua.h" } do
    for line in io.lines(header) do
      local name = line:match("^AH_API .-([%w_]+)%(")
      if name then
        names[name] = true
      end
    end
  end
  return names
end

local function exported(command)
  local names = {}
  for _, line in ipairs(lines(command)) do
    local name = line:match("^%x+ [TDBRVW] ([^@]+)")
    if name and not name:match("^__?[a-z]san") and not name:match("^__odr_asan") then
      names[name] = true
    end
  end
  return names
end

-- A static build (make check-musl) has no shared libraries.
describe("the libraries", io.open(BUILD .. "/libagenthost.so") and function()
  it("show what the headers promise, ah_* and luaopen_*, and nothing else", function()
    local names = promised()
    assert.is_true(names.ah_open and names.ah_attach_copy and names.luaopen_agenthost)
    for name in pairs(names) do
      assert.truthy(name:match("^ah_") or name:match("^luaopen_"), name)
    end
    assert.same(names, exported("nm -D --defined-only " .. BUILD .. "/libagenthost.so"))
    assert.same(names, exported("nm -g --defined-only " .. BUILD .. "/libagenthost.a 2>&1"))
  end)

  it("are found by pkg-config where they are installed, and link", function()
    local dir = os.tmpname()
    os.remove(dir)
    local script = ([[set -e; unset LD_PRELOAD MAKEFLAGS MAKELEVEL
      make -s BUILD='%s' PREFIX=%s LIBDIR=%s/lib64 install >/dev/null
      export PKG_CONFIG_PATH=%s/lib64/pkgconfig LD_LIBRARY_PATH=%s/lib64
      test -s %s/share/doc/agenthost/LICENSE
      cc %s examples/embed.c $(pkg-config --cflags --libs agenthost) -o %s/embed
      %s/embed
      pkg-config --modversion agenthost
      make -s BUILD='%s' PREFIX=%s LIBDIR=%s/lib64 uninstall && rm %s/embed
      find %s -type f -o -type l]]):format(BUILD, dir, dir, dir, dir, dir,
      os.getenv("AGENTHOST_ASAN") and "-fsanitize=address,undefined" or "", dir, dir, BUILD, dir,
      dir, dir, dir)
    local code, out = run(script)
    os.execute("rm -rf " .. dir)
    assert(code == 0, out)
    assert.truthy(out:find("- stock:", 1, true), out)
    assert.equal(require("agenthost").version, out:match("([^\n]+)\n$"), out)
  end)
end or function() end)
