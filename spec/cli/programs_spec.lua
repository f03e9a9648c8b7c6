-- The command's own programs (lua/agenthost/command): only the binary has them, and no script can
-- break them.
local command = require "support.command"

local agenthost, contents, has, temp = command.agenthost, command.contents, command.has,
  command.temp
local BUILD = command.BINARY:match "^(.*)/"

-- Removes everything that a script can remove, the library's table included.
local DESTROY = [[
local ah, G, next, debug = require "agenthost", _G, next, debug
local function empty(t)
  local key = next(t)
  while key ~= nil do
    t[key] = nil
    key = next(t)
  end
end
local setmetatable, strings = debug.setmetatable, debug.getmetatable ""
for _, name in G.ipairs { "string", "table", "math", "os", "io", "utf8", "coroutine", "debug" } do
  empty(G[name])
end
for key in G.pairs(G.package.loaded) do
  G.package.loaded[key] = nil
end
empty(strings)
strings.__index = function() return function() return "not yours" end end
setmetatable("", { __index = strings.__index })
]]
local ALL = DESTROY .. "empty(ah) empty(G)\n"
local GLOBALS = "local G = _G for key in pairs(G) do G[key] = nil end\n"

local function script(text)
  return temp(text)
end

after_each(command.tidy)

describe("the command's programs", function()
  it("are in the binary alone", function()
    local words = { "A server on this machine", "show which providers have a key",
      "package.loaded[\"agenthost.command\"] = {" }
    local function holds(file)
      local text, found = contents(BUILD .. "/" .. file), {}
      for i, word in ipairs(words) do
        found[i] = text:find(word, 1, true) ~= nil
      end
      return found
    end
    words[1] = contents("lua/agenthost/command/mock.lua"):match "^%-%-%- ([^\n]+)"
    assert.same({ true, true, true }, holds "agenthost")
    assert.same({ false, false, false }, holds "libagenthost.so")
    assert.same({ false, false, false }, holds "agenthost.so")
  end)

  it("tell of models whatever -e did", function()
    local r = agenthost("models", "-e", "ah.alias { mine = 'demo/echo' }\n" .. ALL, "demo/echo")
    assert.equal("", r.err)
    assert.equal(0, r.code)
    has(r.out, "demo/echo")
    has(r.out, "mine   demo/echo")
  end)

  it("have words for an -e that cannot be traced", function()
    local r = agenthost("models", "-e", DESTROY .. "G.error 'mine'")
    assert.equal(1, r.code)
    has(r.err, "mine\nstack traceback:")
    assert.is_nil(r.err:find("agenthost/command", 1, true))
  end)

  for _, format in ipairs { "text", "json" } do
    it("tell of the tools of a script that destroyed everything, as " .. format, function()
      local text = [[
local ah = require "agenthost"
local tool = ah.tool { name = "look", description = "Looks.", params = { at = "string" } }
local agent = ah.agent { model = "demo/echo", tools = { tool } }
]]
      local words = format == "json" and { "--json" } or {}
      local function tools(of, more)
        local path = script(text .. more .. "return agent\n")
        words[#words + 1] = path
        local r = agenthost(of, table.unpack(words))
        words[#words] = nil
        return { r.code, (r.out:gsub(path:gsub("%p", "%%%0"), "SCRIPT")), r.err }
      end
      for _, of in ipairs { "tools", "check" } do
        assert.same(tools(of, ""), tools(of, ALL))
      end
    end)
  end
end)

describe("agenthost check", function()
  it("tells faults whose words are no UTF-8", function()
    for _, words in ipairs { {}, { "--json" } } do
      words[#words + 1] = script('error("a\\xffb\\x80", 0)')
      local r = agenthost("check", table.unpack(words))
      assert.equal(1, r.code)
      has(r.out, "a\u{FFFD}b\u{FFFD}")
    end
  end)
end)

describe("a script that destroyed everything", function()
  it("has its answer and its report", function()
    local path = script([[
local ah = require "agenthost"
local run, print = ah.run, print
]] .. GLOBALS .. [[
print(run { model = "demo/echo", "Hello" })
]])
    local r = agenthost("--json", path)
    assert.same({ "", 0 }, { r.err:gsub("^Hello\n", ""), r.code })
    has(r.out, '"text":"Hello"')
    local lines = agenthost("--jsonl", path)
    has(lines.out, '"success":true')
  end)

  it("has its report, too, where it left no file to open", function()
    local path = script("held = {} repeat held[#held + 1] = io.open('/dev/null') until not "
      .. "io.open('/dev/null') error('none left', 0)")
    local r = command.shell(('ulimit -n 60; "$A" --json %s'):format(path))
    has(r.out, '{"error":{"code":"internal","message":"none left')
    assert.equal(1, r.code)
  end)

  it("is told of as any other where it did nothing", function()
    local r = agenthost(script(ALL))
    has(r.err, "printed nothing, began no run and returned no agent")
    assert.equal(0, r.code)
  end)

  it("may still return an agent, which answers", function()
    local r = agenthost(script([[
local ah = require "agenthost"
local agent = ah.agent { model = "demo/echo" }
]] .. GLOBALS .. "return agent\n"), "Hello")
    assert.equal("Hello\n", r.out)
    assert.equal(0, r.code)
  end)
end)

describe("agenthost mock", function()
  local mock = require "support.mock"
  local with_mock = mock.is_built() and it or pending

  with_mock("goes on where its script destroyed everything", function()
    local m <close> = mock.start([[
local ah = require "agenthost"
return function()
  local G = _G
  if next(ah) then
    (function()
]] .. ALL .. [[
    end)()
  end
  return { text = "Here." }
end
]])
    for _ = 1, 3 do
      local r = assert(m:ask("/v1/chat/completions", { model = "m",
        messages = { { role = "user", content = "Hi" } } }))
      assert.equal("Here.", r:json().choices[1].message.content, m:errors())
    end
  end)
end)

describe("what the programs stand on and scripts have, too:", function()
  local ah = require "agenthost"

  it("ah.nearest is the name that was meant, or none", function()
    local names = { "temperature", "tools", "tool_choice", "on" }
    assert.equal("tools", ah.nearest("tool", names))
    assert.equal("tool_choice", ah.nearest("Tool-Choice", names))
    assert.equal("temperature", ah.nearest("temprature", names))
    assert.is_nil(ah.nearest("zebra", names))
    assert.is_nil(ah.nearest("", {}))
    assert.is_nil(ah.nearest(("tools"):rep(1000000), names))
    assert.is_nil(ah.nearest("a\0b\xff", names))
  end)

  it("ah.nearest raises for what is no list of names", function()
    for _, case in ipairs { { "x", { 1 } }, { "x", { "a", nil, "b" } }, { "x", { a = "b" } },
      { "x", "y" }, { "x" }, { nil, {} }, { {}, {} } } do
      assert.is_false((pcall(ah.nearest, case[1], case[2])))
    end
    local ok, why = pcall(ah.nearest, "x", { "a", true })
    assert.is_false(ok)
    has(tostring(why), "ah.nearest: names[2]: expected a string, found boolean")
  end)

  it("ah.aliases tells names, in a table that is the caller's own", function()
    ah.alias { ["programs-spec"] = "demo/echo" }
    local told = ah.aliases()
    assert.equal("demo/echo", told["programs-spec"])
    told["programs-spec"] = "demo/tools"
    assert.equal("demo/echo", ah.aliases()["programs-spec"])
  end)

  it("ah.providers tells where addresses and keys come from, and no key", function()
    local by_name = {}
    for _, provider in ipairs(ah.providers()) do
      by_name[provider.name] = provider
      assert.equal("boolean", type(provider.keyless))
    end
    assert.same({ "OPENAI_BASE_URL", "OPENAI_API_BASE" }, by_name.openai.url_env)
    assert.equal("OPENAI_API_KEY", by_name.openai.key_env[1])
    assert.equal("https://api.openai.com/v1", by_name.openai.url)
    ah.providers()[1].name = "mine"
    assert.is_not.equal("mine", ah.providers()[1].name)
  end)
end)
