-- agenthost test: specs of a project, run by busted in the command's own Lua state.
local command = require "support.command"

local has, has_not, quote, shell, write = command.has, command.has_not, command.quote,
  command.shell, command.write

local SPEC = [[
local ah = require "agenthost"
local testing = require "agenthost.testing"

describe("the echo", function()
  it("echoes", function()
    assert.equal("Hello", testing.run { model = "demo/echo", "Hello" }.text)
  end)
  it("waits", function() assert.is_nil(ah.sleep(0.001)) end)
  it("knows the names of the user", function() assert(ah.agent { model = "mine" }) end)
  if os.getenv "FAILS" then it("fails", function() assert.equal(1, 2) end) end
end)
]]

local folder

-- Runs a line of the shell in a folder that has spec/echo_spec.lua, with the user's settings.
local function run(line)
  return shell(("cd %s && export XDG_CONFIG_HOME=$PWD; %s"):format(folder, line))
end

before_each(function()
  folder = command.folder()
  assert(os.execute(("mkdir %s/spec %s/agenthost"):format(folder, folder)))
  write(folder .. "/spec/echo_spec.lua", SPEC)
  write(folder .. "/agenthost/config", "[models]\nmine = demo/echo\n")
end)

after_each(command.tidy)

describe("agenthost test", function()
  -- Runs the line. Returns what it prints.
  local function ended(code, counts, line)
    local r = run(line)
    assert.same({ code, "" }, { r.code, r.err })
    has(r.out, counts .. " / 0 errors / 0 pending")
    return r.out
  end

  it("runs the specs of the folder spec, with the library and the settings", function()
    has_not(ended(0, "3 successes / 0 failures", '"$A" test'), "\27")
  end)

  it("ends with exit code 1 if a spec fails, and prints all that it found", function()
    has(ended(1, "3 successes / 1 failure", 'FAILS=1 "$A" test'),
      "spec/echo_spec.lua:10: Expected objects to be equal.")
  end)

  it("gives busted the files and the words after --", function()
    write(folder .. "/one_spec.lua", 'it("is one", function() end) it("is two", function() end)')
    assert.equal("ok 1 - is one\nok 2 - is two\n1..2\n", run '"$A" test one_spec.lua -o TAP'.out)
    assert.equal("ok 1 - is two\n1..1\n", run '"$A" test -- -o TAP --filter=two one_spec.lua'.out)
    local r = run '"$A" test missing_spec.lua'
    assert.equal(1, r.code)
    has(r.out, "Cannot find file or directory: missing_spec.lua")
    r = run '"$A" test --filter=two'
    assert.equal(2, r.code)
    has(r.err, "unknown option '--filter'")
  end)

  it("obeys .busted", function()
    write(folder .. "/.busted", 'return { default = { ROOT = { "more" }, output = "TAP" } }')
    assert(os.execute("mv " .. folder .. "/spec " .. folder .. "/more"))
    local r = run '"$A" test'
    assert.equal(0, r.code)
    has(r.out, "ok 3 - the echo knows the names of the user\n1..3\n")
  end)

  it("writes nothing into the user's store", function()
    write(folder .. "/store_spec.lua", [[
      local ah = require "agenthost"
      it("has none", function()
        assert.is_nil(os.getenv "AGENTHOST_STORE")
        assert(ah.agent { id = "ann", model = "demo/echo" }:run "Hello")
      end)]])
    local r = run 'AGENTHOST_STORE=$PWD/x.db "$A" test store_spec.lua && ls'
    assert.equal(0, r.code)
    has_not(r.out, "x.db")
  end)

  it("keeps the exit code and the output of a spec that ends the process", function()
    write(folder .. "/exit_spec.lua", 'it("ends", function() io.write "so far" os.exit(7) end)')
    local r = run '"$A" test exit_spec.lua'
    assert.same({ 7, "so far" }, { r.code, r.out })
  end)

  it("says which package is missing", function()
    local r = run 'LUA_PATH="/nowhere/?.lua" LUA_PATH_5_4="/nowhere/?.lua" "$A" test'
    assert.same({ 1, "" }, { r.code, r.out })
    has(r.err, "agenthost: busted, which runs specs, cannot be loaded: module 'busted.runner' not "
      .. "found\nDebian has it in the package lua-busted; with LuaRocks:\n"
      .. "luarocks --lua-version=5.4 install busted\n")
  end)

  it("is ended by Ctrl-C, also in a spec without an end", function()
    write(folder .. "/busy_spec.lua", [[
      it("is busy", function() print "begun" io.stdout:flush() while true do end end)
      it("is busy again", function() while true do end end)]])
    local r = run [[
      mkfifo lines; "$A" test busy_spec.lua >lines & pid=$!
      { read -r line; kill -INT $pid; cat >rest; } <lines; wait $pid]]
    assert.equal(130, r.code)
  end)

  it("has colours on a terminal only, and there unless they are not wanted", function()
    local function on_terminal(words)
      return run(("TERM=xterm script -qec %s /dev/null"):format(
        quote(words:gsub("%$A", command.BINARY)))).out
    end
    if not os.execute "command -v script >/dev/null" then
      return pending "there is no script here (Debian: bsdutils)"
    end
    has(on_terminal '$A test', "\27[")
    has_not(on_terminal 'NO_COLOR=1 $A test', "\27[")
    has_not(on_terminal '$A test --color=never', "\27[")
    has_not(on_terminal 'TERM=dumb $A test', "\27[")
    has(on_terminal 'NO_COLOR=1 $A test --color=always', "\27[")
  end)
end)

describe("os.exit that closes the state", function()
  it("ends quietly if the reader of what is still to be written has gone", function()
    local script = [[while not io.open "closed" do ah.sleep(0.01) end
      io.write "late" os.exit(3, true)]]
    local r = run(('{ "$A" -e %s; echo $? >code; } | { exec <&-; : >closed; }'):format(
      quote(script)) .. "; cat code")
    assert.same({ "3\n", "" }, { r.out, r.err })
  end)
end)
