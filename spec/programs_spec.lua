-- The command's own programs (lua/agenthost/command): they are in the binary alone, and no script
-- breaks them.
local command = require "support.command"

local agenthost, contents, has, temp = command.agenthost, command.contents, command.has,
  command.temp
local BUILD = command.BINARY:match "^(.*)/"

-- Takes away all that a script can take away, the library's table included.
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
    local words = { "A server on this machine", "show who has a key", "of the binary, run when" }
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
