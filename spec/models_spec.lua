-- What is known of models: by family and version, for names that nobody has seen yet, in the words of
-- those who serve them, from what a program says, and from what a server refuses.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local random = require "support.random"
local server = require "support.server"

local function known(model)
  return assert(ah.capabilities(model, { base_url = "http://localhost", api_key = "none" }))
end

-- name; how tools come later; who searches; strict; schema; where that comes from
local NAMES = [[
anthropic/claude-opus-4-8                 reference        provider yes yes table
anthropic/claude-opus-4-7                 append           provider yes yes table
anthropic/claude-opus-4-10                reference        provider yes yes table
anthropic/claude-opus-5                   reference        provider yes yes table
anthropic/claude-opus-5-5                 reference        provider yes yes table
anthropic/claude-opus-6                   reference        provider yes yes newest
anthropic/claude-opus-10-1-20280102       reference        provider yes yes newest
anthropic/claude-sonnet-5                 append           provider yes yes table
anthropic/claude-sonnet-5-5               reference        provider yes yes table
anthropic/claude-sonnet-5-6-20270101      reference        provider yes yes newest
anthropic/claude-sonnet-4-5-20250929      append           provider yes yes table
anthropic/claude-sonnet-4-20250514        append           here     no  no  table
anthropic/claude-haiku-5-5                reference        provider yes yes table
anthropic/claude-haiku-4-5                append           here     yes yes table
anthropic/claude-haiku-7                  reference        provider yes yes newest
anthropic/claude-fable-5-2                reference        provider yes yes table
anthropic/claude-mythos-5-1               reference        provider yes yes table
anthropic/claude-mythos-preview           append           provider yes yes table
anthropic/claude-opus-4-1@20250805        append           here     no  no  table
anthropic/claude-opus-4.8                 reference        provider yes yes table
anthropic/Claude-Opus-4-8                 reference        provider yes yes table
anthropic/us.anthropic.claude-opus-4-8-v1:0          reference provider yes yes table
anthropic/us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0 append provider yes yes table
anthropic/anthropic/claude-sonnet-5.5     reference        provider yes yes table
anthropic/claude-3-7-sonnet-20250219      append           here     no  no  table
anthropic/claude-3-haiku-20240307         append           here     no  no  table
anthropic/claude-2.1                      append           here     no  no  table
anthropic/claude-saga-7                   append           here     no  no  default
anthropic/claude-7                        append           here     no  no  default
anthropic/nobody-knows-this               append           here     no  no  default
openai/responses/gpt-6-sol                additional_tools provider yes yes table
openai/responses/gpt-6.1-terra            additional_tools provider yes yes table
openai/responses/gpt-6.1-mini             additional_tools provider yes yes table
openai/responses/gpt-6.10                 additional_tools provider yes yes newest
openai/responses/gpt-7                    additional_tools provider yes yes newest
openai/responses/gpt-7-nano-2027-03-01    additional_tools provider yes yes newest
openai/responses/gpt-5.10                 additional_tools provider yes yes table
openai/responses/gpt-5.4                  additional_tools provider yes yes table
openai/responses/gpt-5.4-mini-2026-03-17  additional_tools provider yes yes table
openai/responses/gpt-5.3-codex            append           here     yes yes table
openai/responses/gpt-5-2025-08-07         append           here     yes yes table
openai/responses/gpt-5-chat-latest        append           here     yes yes table
openai/responses/gpt-4o-2024-11-20        append           here     yes yes table
openai/responses/gpt-4-0613               append           here     yes no  table
openai/responses/gpt-4-32k                append           here     yes no  table
openai/responses/o1-mini                  append           here     yes no  table
openai/responses/o3-mini                  append           here     yes yes table
openai/responses/o9                       append           here     yes yes newest
openai/responses/ft:gpt-4o-mini-2024-07-18:us:x:1 append   here     yes yes table
openai/responses/gpt-omega                append           here     yes yes default
openai/gpt-6-sol                          append           here     yes yes table
openai/gpt-3.5-turbo                      append           here     yes no  table
openai/my-deployment                      append           here     yes yes default
gemini/gemini-3.5-pro-preview             append           here     no  yes table
gemini/gemini-3-flash-preview             append           here     no  yes table
gemini/gemini-4.2-argon                   append           here     no  yes newest
gemini/gemini-pro-latest                  append           here     no  yes table
gemini/models/gemini-3.1-pro-preview      append           here     no  yes table
gemini/gemini-2.5-flash                   append           here     no  no  table
gemini/gemini-2.0-flash-001               append           here     no  no  table
gemini/gemini-x                           append           here     no  no  default
moonshot/kimi-k3                          additional_tools here     no  no  table
moonshot/kimi-k3.1-pro-highspeed          additional_tools here     no  no  table
moonshot/kimi-k4-preview                  additional_tools here     no  no  newest
moonshot/kimi-k2.6                        append           here     no  no  table
moonshot/kimi-k2-0905-preview             append           here     no  no  table
moonshot/kimi-latest                      append           here     no  no  default
fireworks_ai/accounts/fireworks/models/kimi-k3p1-pro additional_tools here no yes table
openrouter/moonshotai/kimi-k3             append           here     no  no  table
]]

describe("what is known of a model", function()
  it("is by its family and version", function()
    for line in NAMES:gmatch "[^\n]+" do
      local w = {}
      for word in line:gmatch "%S+" do
        w[#w + 1] = word
      end
      local is = known(w[1])
      assert.same({ w[2], w[3], w[4], w[5], w[6] }, { is.tool_change_mode, is.tool_search,
        is.strict_tools and "yes" or "no", is.native_output and "yes" or "no",
        is.known.abilities.from }, w[1])
    end
  end)

  it("has what it holds and costs, with source and date", function()
    local sonnet = known "anthropic/claude-sonnet-5-5"
    assert.same({ 1000000, 128000, { input = 2.0, cached_read = 0.1, cached_write = 2.5,
      output = 10.0 } }, { sonnet.context_window, sonnet.max_output, sonnet.prices })
    assert.same({ "claude-sonnet-#", "5.5" }, { sonnet.known.figures.family,
      sonnet.known.figures.since })
    assert.matches("^%d%d%d%d%-%d%d%-%d%d$", sonnet.known.figures.date)
    assert.equal(1050000, known("openai/gpt-6-sol").context_window)
    assert.equal(131072, known("groq/openai/gpt-oss-120b").context_window)
    local nobody = known "openai/my-deployment"
    assert.same({}, { nobody.context_window, nobody.max_output, nobody.prices, nobody.efforts })
  end)

  it("has prices only where the model's own provider is asked", function()
    assert.is_table(known("moonshot/kimi-k3").prices)
    assert.is_nil(known("fireworks_ai/accounts/fireworks/models/kimi-k3").prices)
    assert.is_nil(known("openrouter/anthropic/claude-opus-5.5").prices)
  end)

  it("says of a variant what is said of the variant, and of its version what it can do", function()
    local astra, mini = known "openai/gpt-6-astra", known "openai/gpt-6.1-mini"
    assert.same({ "low", "medium", "high", "xhigh", "max" }, astra.efforts)
    assert.equal(10.0, astra.prices.input)
    assert.same({ "table", "newest" }, { mini.known.abilities.from, mini.known.figures.from })
    assert.equal("gpt-#-mini", mini.known.figures.family)
    assert.equal("none", mini.efforts[1])
  end)

  it("names the provider where somebody forgot it", function()
    for name, provider in pairs { ["gpt-6-sol"] = "openai", ["claude-opus-9"] = "anthropic",
      ["o4-mini"] = "openai", ["kimi-k3"] = "moonshot", ["qwen3:8b"] = "ollama",
      ["llama3.3"] = "ollama", ["gemini-4-argon"] = "gemini", ["deepseek-chat"] = "deepseek",
      ["glm-5.3"] = "zai", ["grok-4.7"] = "xai", ["codestral-latest"] = "mistral" } do
      local _, err = pcall(ah.capabilities, name)
      assert.matches(("did you mean '%s/%s'?"):format(provider, name), tostring(err), 1, true)
    end
  end)
end)

describe("the table of models", function()
  local rows = ahtest.model_rows()

  it("has no row twice, none without a home, and no figures without a source", function()
    local seen = {}
    for _, r in ipairs(rows) do
      local key = r.pattern .. " " .. (r.since or "")
      assert.is_nil(seen[key], key)
      assert.is_string(r.home)
      assert.equal(r.pattern:find("#", 1, true) ~= nil, r.since ~= nil, r.pattern)
      if r.input > 0 then
        assert.matches("^20%d%d%-%d%d%-%d%d$", r.date or "", key)
      end
      seen[key] = true
    end
  end)
end)

-- -- properties ------------------------------------------------------------------------------------

-- Numbers from lo to hi, or from 1 to lo.
local function numbers(seed)
  local next = random(seed)
  return function(lo, hi)
    return hi and lo + next(hi - lo + 1) - 1 or next(lo)
  end
end

local function version(next)
  local parts = {}
  for i = 1, next(1, 3) do
    parts[i] = next(0, next(2) == 1 and 9 or 99)
  end
  return table.concat(parts, ".")
end

-- The same by hand: part for part, what is missing is 0.
local function compare(a, b)
  local x, y = {}, {}
  for n in a:gmatch "%d+" do x[#x + 1] = tonumber(n) end
  for n in b:gmatch "%d+" do y[#y + 1] = tonumber(n) end
  for i = 1, 4 do
    local p, q = x[i] or 0, y[i] or 0
    if p ~= q then
      return p < q and -1 or 1
    end
  end
  return 0
end

describe("versions", function()
  it("compare part for part as numbers, in one order", function()
    local next = numbers(20261122)
    for _ = 1, 2000 do
      local a, b, c = version(next), version(next), version(next)
      assert.equal(compare(a, b), ahtest.model_order(a, b), a .. " " .. b)
      assert.equal(-ahtest.model_order(a, b), ahtest.model_order(b, a))
      if ahtest.model_order(a, b) <= 0 and ahtest.model_order(b, c) <= 0 then
        assert.is_true(ahtest.model_order(a, c) <= 0, a .. " " .. b .. " " .. c)
      end
      assert.equal(0, ahtest.model_order(a, (a:gsub("%.", "p"))))
    end
    assert.equal(1, ahtest.model_order("5.10", "5.9"))
    assert.equal(0, ahtest.model_order("5", "5.0"))
    assert.equal(0, ahtest.model_order("4-5-20250929", "4.5"))
    assert.equal(0, ahtest.model_order("5-2025-08-07", "5"))
    assert.equal(0, ahtest.model_order("4-0613", "4"))
    assert.equal(0, ahtest.model_order("2p5", "2.5"))
    for _, none in ipairs { "", "x", "4o", "70b", "20250514", "-5" } do
      assert.is_nil(ahtest.model_order(none, "1"), none)
    end
  end)

  -- Of each family: what a version can do, a later one can.
  local FAMILIES = { { "anthropic/claude-opus-", 4 }, { "anthropic/claude-haiku-", 4 },
    { "anthropic/claude-sonnet-", 4 }, { "anthropic/claude-fable-", 5 },
    { "openai/responses/gpt-", 4 }, { "openai/gpt-", 4 }, { "gemini/gemini-", 1 },
    { "moonshot/kimi-k", 2 }, { "openai/responses/o", 1 } }
  local ABILITIES = { "strict_tools", "native_output" }

  local function able(name)
    local is, can = known(name), {}
    for _, a in ipairs(ABILITIES) do
      can[a] = is[a]
    end
    can.later = is.tool_change_mode ~= "append"
    can.search = is.tool_search == "provider"
    return can, is
  end

  local function later(next, family)
    local major, minor = next(family[2], family[2] + 6), next(0, 12)
    return major .. (minor > 0 and (next(2) == 1 and "." or "-") .. minor or "")
  end

  it("later than another can do no less", function()
    local next = numbers(7)
    for i = 1, 600 do
      local family = FAMILIES[i % #FAMILIES + 1]
      local a, b = later(next, family), later(next, family)
      if ahtest.model_order(a, b) > 0 then
        a, b = b, a
      end
      local one, two = able(family[1] .. a), able(family[1] .. b)
      for what, can in pairs(one) do
        assert.is_true(two[what] or not can, family[1] .. a .. " " .. what .. " " .. b)
      end
    end
  end)

  it("newer than all known are as the newest, whatever stands behind them", function()
    local next = numbers(11)
    local newest = {}
    for _, r in ipairs(ahtest.model_rows()) do
      if r.since and (not newest[r.pattern] or ahtest.model_order(r.since, newest[r.pattern]) > 0) then
        newest[r.pattern] = r.since
      end
    end
    for _, family in ipairs(FAMILIES) do
      local pattern = family[1]:match "[^/]+$" .. "#"
      local expected = able(family[1] .. newest[pattern])
      for _ = 1, 40 do
        local major = math.tointeger(tonumber(newest[pattern]:match "^%d+")) + next(1, 80)
        local name = family[1] .. major .. (next(2) == 1 and "." .. next(0, 30) or "")
          .. ({ "", "-preview", "-20280101", "-2028-01-01", "-nova", "-mini", "-pro",
            "-chat-latest", "-flash" })[next(1, 9)]
        local is, told = able(name)
        assert.same(expected, is, name)
        assert.equal("newest", told.known.abilities.from, name)
      end
    end
  end)
end)

-- -- nothing but the table compares names ---------------------------------------------------------

-- The lines of C or Lua that hold the beginning of a model's name as a text.
local function named_in(text)
  local found = {}
  text = text:gsub("/%*.-%*/", function(c) return (c:gsub("[^\n]", "")) end)
  for line in text:gmatch "[^\n]+" do
    for literal in line:gsub("^%s*%-%-.*", ""):gmatch '"([^"]*)"' do
      local low = literal:lower()
      for _, p in ipairs { "^gpt%-", "^claude%-", "^gemini%-", "^o[134]$", "^o[134]%-", "^kimi",
        "^deepseek%-", "^qwen", "^grok%-", "^glm%-", "^llama%-?%d" } do
        if low:find(p) then
          found[#found + 1] = line
        end
      end
    end
  end
  return found
end

describe("names of models", function()
  it("are compared in no file but the table", function()
    local list = io.popen "ls src/wire/*.c src/run/*.c src/lua/*.c src/prompt/*.c src/model/*.c"
    for path in list:lines() do
      if path ~= "src/wire/models_table.c" then
        assert.same({}, named_in(command.contents(path)), path)
      end
    end
    list:close()
    assert.is_true(#named_in(command.contents "src/wire/models_table.c") > 50)
  end)

  it("would be found there", function()
    assert.equal(1, #named_in 'if (ah_slice_begins(model, "gpt-7"))')
    assert.equal(1, #named_in '    {"claude-opus-6", true},\n/* "gpt-5" */')
    assert.equal(0, #named_in '.name = "claude_agent_sdk", {"gemini", &service}')
  end)
end)
