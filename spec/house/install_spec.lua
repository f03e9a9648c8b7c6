-- `make install` and the packager's other targets: below a DESTDIR and a PREFIX with spaces, with
-- every link of the pages valid, programs that need only the installed files, the user's own flags,
-- and the tar file of `make dist`.
local command = require "support.command"
local markdown = require "support.markdown"

local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"
local VERSION = require("agenthost").version
local SANITIZE = os.getenv "AGENTHOST_ASAN" and "-fsanitize=address,undefined" or ""

local folder, env

-- Returns the output of both kinds and the exit code. $W is a folder of this spec with a space in
-- its name, $B the build folder.
local function run(text)
  local r = command.shell(env .. "exec 2>&1; set -e\n" .. text)
  return r.out, r.code
end

local function check(text)
  local out, code = run(text)
  assert(code == 0, ("exit %d: %s\n%s"):format(code, text, out))
  return out
end

local function lines(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    list[#list + 1] = line
  end
  return list
end

setup(function()
  folder = os.tmpname()
  os.remove(folder)
  env = "unset LD_PRELOAD MAKEFLAGS MAKELEVEL BUILD DESTDIR PREFIX CFLAGS EXTRA WERROR\n"
    .. ("W=%s B=%s\n"):format(command.quote(folder .. "/a folder"), command.quote(BUILD))
  check 'mkdir -p "$W"'
end)

teardown(function()
  os.execute("chmod -R u+w " .. folder .. "; rm -rf " .. folder)
  command.tidy()
end)

describe("make install", function()
  local ROOT = "/dest/opt/our tools"
  local INSTALL = [[make -s BUILD="$B" DESTDIR="$W/dest" PREFIX="/opt/our tools" ]]
    .. [[LIBDIR="/opt/our tools/lib64" ]]

  setup(function() check(INSTALL .. "install") end)

  local function installed()
    return lines(check(('cd "$W%s" && find . -type f -o -type l | sort'):format(ROOT)))
  end

  it("puts all below DESTDIR and PREFIX, spaces in them or not", function()
    local set = {}
    for _, path in ipairs(installed()) do
      set[path:sub(3)] = true
    end
    for _, path in ipairs { "bin/agenthost", "include/agenthost.h", "include/agenthost_lua.h",
      "lib64/libagenthost.a", "lib64/libagenthost.so", "lib64/pkgconfig/agenthost.pc",
      "lib64/pkgconfig/agenthost-lua.pc", "lib/lua/5.4/agenthost.so",
      "share/bash-completion/completions/agenthost", "share/zsh/site-functions/_agenthost",
      "share/fish/vendor_completions.d/agenthost.fish", "share/agenthost/types/agenthost.lua",
      "share/doc/agenthost/README.md", "share/doc/agenthost/CHANGELOG.md",
      "share/doc/agenthost/LICENSE", "share/doc/agenthost/docs/reference/lua.md",
      "share/doc/agenthost/examples/quickstart.lua", "share/doc/agenthost/examples/embed.c" } do
      assert.is_true(set[path], path)
    end
    assert.equal(1, #lines(check('ls -A "$W"')))
    assert.equal("/opt\n", check('cd "$W/dest" && find . -mindepth 1 -maxdepth 1 | cut -c2-'))
  end)

  it("puts the manual page there, or says why there is none", function()
    local page = ('"$W%s/share/man/man1/agenthost.1"'):format(ROOT)
    if select(2, run "command -v scdoc || ls man/agenthost.1") ~= 0 then
      assert.matches("no manual page", check(INSTALL .. "man"))
      return pending "there is no scdoc here"
    end
    assert.matches("%.TH", check("cat " .. page))
  end)

  it("keeps every link of the pages, and every heading that one names", function()
    local pages, links = lines(check(('find "$W%s/share/doc" -name "*.md"'):format(ROOT))), 0
    for _, page in ipairs(pages) do
      for target, place in markdown.prose(page):gmatch "%]%(([^)#:]*)#?([^):]*)%)" do
        local path = target == "" and page or page:gsub("[^/]*$", "") .. target
        assert(io.open(path), ("%s links to %s"):format(page, target)):close()
        assert(place == "" or markdown.anchors(path)[place],
          ("%s links to %s#%s"):format(page, target, place))
        links = links + 1
      end
    end
    assert.is_true(#pages > 20 and links > 100)
  end)

  it("runs its examples from where they are", function()
    local out = check(('cd "$W%s/share/doc/agenthost/examples"\n'):format(ROOT)
      .. "../../../../bin/agenthost -q quickstart.lua")
    assert.matches("Titan", out)
  end)

  it("has all that the command is made of, as any program would be", function()
    check(([[
mkdir -p "$W/command" && cp -r src/cli "$W/command/"
cp "$B/command_sources.c" "$B/pages_sources.c" "$W/command/cli/"
cc -std=c11 -D_POSIX_C_SOURCE=200809L -I"$W/command" -I"$W%s/include" %s -o "$W/command/agenthost" \
  "$W"/command/cli/*.c -L"$W%s/lib64" -lagenthost -pthread]]):format(ROOT, SANITIZE, ROOT))
    local function says(words)
      return check(('LD_LIBRARY_PATH="$W%s/lib64" "$W/command/agenthost" %s'):format(ROOT, words))
    end
    assert.equal("Hello\n", says [[-q -e 'print(ah.run { model = "demo/echo", "Hello" })']])
    assert.matches("openai", says "models")
    assert.matches("_agenthost", says "completion bash")
    check 'rm -rf "$W/command"'
  end)

  it("does without completions where the command is another machine's", function()
    local out = check [[make -s BUILD="$B" DESTDIR="$W/cross" NATIVE=/nonexistent install]]
    assert.matches("no completions", out)
    assert.equal("", check 'find "$W/cross" -name "_agenthost"; rm -rf "$W/cross"')
  end)

  it("installs what was built, whatever the flags were, and builds nothing anew", function()
    local before = check 'cat "$B/flags"; ls --full-time "$B/agenthost"'
    check(INSTALL .. "install CFLAGS=-O0")
    assert.equal(before, check 'cat "$B/flags"; ls --full-time "$B/agenthost"')
  end)

  -- pkg-config sees only the installed files.
  local PKG_CONFIG = ('P="$W%s/lib64/pkgconfig"; pc() { PKG_CONFIG_LIBDIR="$P" \z
    PKG_CONFIG_SYSROOT_DIR="$W/dest" pkg-config "$@"; }\n'):format(ROOT)
  local PROGRAM = PKG_CONFIG .. [[cp examples/embed.c "$W/program.c"; cd "$W"
    flags="$(pc --cflags --libs %s agenthost)"
    eval "cc -std=c11 -Wall -Wextra -Werror %s program.c $flags -o program"
    LD_LIBRARY_PATH="$W]] .. ROOT .. [[/lib64" ./program]]

  it("asks a program that includes agenthost.h for no other library's development files", function()
    assert.matches("%- stock:", check(PROGRAM:format("", SANITIZE)))
    local headers = check(PKG_CONFIG .. [[cd "$W"
      eval "cc -M program.c $(pc --cflags agenthost)"]])
    for _, other in ipairs { "lua", "lauxlib", "curl", "cJSON", "pcre2", "yaml" } do
      assert.is_nil(headers:find("/" .. other .. "[^/ ]*%.h"), other)
    end
    assert.equal(VERSION .. "\n", check(PKG_CONFIG .. "pc --modversion agenthost"))
  end)

  it("says what the archive is linked with", function()
    check(('mkdir "$W/aside"; mv "$W%s/lib64/"*.so* "$W/aside/"'):format(ROOT))
    local out, code = run(PROGRAM:format("--static", SANITIZE))
    check(('mv "$W/aside/"* "$W%s/lib64/"'):format(ROOT))
    assert(code == 0, out)
    assert.matches("%- stock:", out)
  end)

  it("asks a program that includes agenthost_lua.h for Lua's headers as well", function()
    assert.equal("Requires: agenthost = " .. VERSION .. " lua5.4\n", check(PKG_CONFIG ..
      'grep Requires "$P/agenthost-lua.pc"'))
    check(PKG_CONFIG .. [[cd "$W"; echo '#include <agenthost_lua.h>
      int main(void) { return luaopen_agenthost == 0; }' > lua.c
      eval "cc -c lua.c $(pc --cflags agenthost) $(pkg-config --cflags lua5.4)"]])
  end)

  it("is undone by make uninstall", function()
    check(INSTALL .. "uninstall")
    assert.same({}, installed())
  end)
end)

describe("the user's own build", function()
  local ONE = 'make -s BUILD="$B/spec" "$B/spec/src/base/slice.o" '

  teardown(function() check 'rm -rf "$B/spec"' end)

  it("never fails for a warning; our checks do", function()
    local warn = ONE .. [[CFLAGS="-O1 -Wtraditional" ]]
    assert.matches("warning:", check(warn))
    local _, code = run(warn .. "WERROR=-Werror")
    assert.not_equal(0, code)
    local asked = [[ BUILD="$B/spec" CFLAGS="-O3 -Wpedantic" |
      grep -c -- " -Werror " || :]]
    for _, goal in ipairs { "all", "test", "install", "examples", "rock" } do
      assert.equal("0\n", check("make -n " .. goal .. asked), goal)
    end
    -- -B: as if nothing had been built
    for _, goal in ipairs { "check", "check-asan", "check-compilers" } do
      assert.truthy(tonumber(check("make -nB " .. goal .. asked)) > 0, goal)
    end
  end)

  it("begins anew with other flags, and only then", function()
    check(ONE .. "CFLAGS=-O1")
    assert.equal("", check(ONE .. "CFLAGS=-O1"))
    for _, other in ipairs { "CFLAGS=-O0", "CFLAGS=-O0 CPPFLAGS=-DX=\\'a\\'", "LDFLAGS=-Wl,-O1",
      "PCRE2=", "YAML=" } do
      assert.matches("CC src/base/slice.c", check(ONE .. other), other)
      assert.equal("", check(ONE .. other), other)
    end
  end)

  it("cleans, uninstalls and helps without any library", function()
    for _, goal in ipairs { "help", "-n clean", "-n uninstall", "-n dist", "-n check-32" } do
      check("make -s PKG_CONFIG=false " .. goal)
    end
    local out, code = run "make -s PKG_CONFIG=false -n all"
    assert.not_equal(0, code)
    assert.matches("README", out)
  end)
end)

describe("make clean", function()
  it("leaves the roots and libraries that were fetched, distclean nothing", function()
    local has = [[mkdir -p "$W/tree"; cp --parents Makefile */*.mk "$W/tree"; cd "$W/tree"
      mkdir -p build/src build/asan build/roots/x/usr build/roots/x/src
      mkdir -p build/musl/usr build/musl/build
      touch agenthost build/flags; make -s ]]
    assert.equal("build build/musl build/musl/usr build/roots build/roots/x build/roots/x/usr\n",
      check(has .. "clean; echo $(find . -path './[ab]*' ! -path './bench*' | sort | cut -c3-)"))
    assert.equal("", check(has .. "distclean; find . -path './[ab]*' ! -path './bench*'"))
  end)
end)

describe("make dist", function()
  it("has the manual page made, and needs neither git nor scdoc after", function()
    if select(2, run "git rev-parse HEAD && command -v scdoc") ~= 0 then
      return pending "needs git and scdoc"
    end
    check(([[make -s BUILD="$B/spec" dist; tar -C "$W" -xzf "$B/spec/agenthost-%s.tar.gz"
      rm -rf "$B/spec"; cd "$W/agenthost-%s"
      test ! -e .git; grep -q '\.TH' man/agenthost.1; echo marked >> man/agenthost.1
      make -s man; tail -n 1 build/agenthost.1 | grep -q marked
      make -s -j2 build/src/base/slice.o build/src/base/json.o]]):format(VERSION, VERSION))
  end)
end)
