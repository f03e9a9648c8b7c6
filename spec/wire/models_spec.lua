-- Knowledge of models: by family and version, for unknown names, under the names of other servers,
-- from a program's settings, and from the refusals of a server.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local random = require "support.random"
local mock = require "support.mock"
local sound = require "support.sound"

local function known(model)
  return assert(ah.capabilities(model, { base_url = "http://localhost", api_key = "none" }))
end

-- name; how tools are added later; which side searches; strict; schema; the source of the facts
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

-- -- properties -----------------------------------------------------------------------------------

-- Returns a function: numbers from lo to hi, or from 1 to lo.
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

-- Compares versions part by part; a missing part is 0.
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

  -- In each family a later version has at least the abilities of an earlier one.
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
      local before = newest[r.pattern]
      if r.since and (not before or ahtest.model_order(r.since, before) > 0) then
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

-- -- facts from a program -------------------------------------------------------------------------

describe("what a program says of a model", function()
  it("wins over the table, in part or as a whole", function()
    ah.alias { ["models-spec"] = { model = "openai/spec-tune", like = "gpt-6.1-sol",
      context_window = 5000, prices = { input = 1, output = 2 }, strict_tools = false },
      ["anthropic/spec-tune"] = { like = "claude-opus-5-5" },
      ["anthropic/spec-plain"] = { tool_changes = true, reasoning = "effort", efforts = { "low",
        "max" } } }
    local tune, opus = known "models-spec", known "anthropic/spec-tune"
    assert.same({ "alias", "openai", "spec-tune", 5000, 128000, false, true },
      { tune.known.abilities.from, tune.provider, tune.model, tune.context_window,
        tune.max_output, tune.strict_tools, tune.native_output })
    assert.same({ input = 1.0, cached_read = 1.0, cached_write = 1.0, output = 2.0 }, tune.prices)
    assert.same({ "reference", "provider", "alias" }, { opus.tool_change_mode, opus.tool_search,
      opus.known.figures.from })
    local plain = known "anthropic/spec-plain"
    assert.same({ "reference", false, { "low", "max" } }, { plain.tool_change_mode,
      plain.strict_tools, plain.efforts })
    assert.equal("additional_tools", known("openai/responses/spec-tune").tool_change_mode)
    assert.equal("default", known("openai/spec-tune2").known.abilities.from)
  end)

  it("may be said again", function()
    ah.alias { ["openai/spec-again"] = { context_window = 1 } }
    ah.alias { ["openai/spec-again"] = { context_window = 2 } }
    assert.equal(2, known("openai/spec-again").context_window)
  end)

  it("is refused where it is wrong, with what it must be", function()
    for _, case in ipairs {
      { { context = 5 }, "has no field 'context'" },
      { { strict_tool = true }, "did you mean 'strict_tools'?" },
      { { context_window = 0 }, "a number of tokens above 0" },
      { { max_output = "many" }, "a number of tokens above 0" },
      { { like = "nobody-knows" }, "whose family is known" },
      { { tool_search = "provider" }, "true or false" },
      { { reasoning = "much" }, '"none", "budget" or "effort"' },
      { { efforts = {} }, "a list of none, minimal" },
      { { efforts = { "low", "huge" } }, "a list of none, minimal" },
      { { prices = { input = -1 } }, "for a million tokens" },
      { { prices = { entry = 1 } }, "for a million tokens" },
      { { prices = {} }, "for a million tokens" },
    } do
      local ok, err = pcall(ah.alias, { ["openai/spec-wrong"] = case[1] })
      assert.is_false(ok)
      assert.truthy(tostring(err):find(case[2], 1, true), tostring(err))
    end
    for _, bad in ipairs { 5, "no-slash", { context_window = 5 } } do
      local _, err = pcall(ah.alias, { specbad = bad })
      assert.truthy(tostring(err):find("field 'specbad' must be", 1, true), tostring(err))
    end
  end)

  it("stands in the configuration, too", function()
    local folder = os.tmpname()
    os.remove(folder)
    os.execute(("mkdir -p %s/agenthost"):format(folder))
    local path = folder .. "/agenthost/config"
    local function models(text, words)
      local f = assert(io.open(path, "w"))
      f:write(text)
      f:close()
      return command.shell(('env -i PATH="$PATH" XDG_CONFIG_HOME=%s "$A" %s')
        :format(folder, words))
    end
    local text = 'models.fast = groq/some\nmodels.openai/my-tune:8b = '
      .. '{"like": "gpt-6.1-sol", "context_window": 5000}\n'
    local told = models(text, "models openai/my-tune:8b").out
    assert.matches("what it can do  the configuration (gpt-# from 6.1 on, ", told, 1, true)
    assert.matches("holds           5000 tokens", told, 1, true)
    assert.matches("alias  model\nfast   groq/some", told, 1, true)
    assert.equal("groq/some", ah.json.decode(models(text, "models --json fast").out)
      .providers[1].models[1].model)
    local config = ah.json.decode(models(text, "config --json").out)
    assert.equal("groq/some", config.models.fast)
    for line, words in pairs { ['models.a = {"like"}'] = ":1: models.a must be a model, or a JSON",
      ['models.openai/a = {"lik":"x"}'] = "did you mean 'like'?", ["models. = a"] = ":1:",
      ["models.a = b"] = "must be", ["model.a = openai/b"] = "no such setting" } do
      local r = models(line .. "\n", "models")
      assert.equal(2, r.code, line)
      assert.truthy(r.err:find(words, 1, true), r.err)
      assert.truthy(r.err:find("agenthost/config", 1, true), r.err)
    end
    os.execute("rm -r " .. folder)
  end)
end)

describe("agenthost models", function()
  it("tells where each answer comes from", function()
    local function told(model)
      return command.shell(('env -i PATH="$PATH" XDG_CONFIG_HOME=/dev/null "$A" models %s')
        :format(model)).out
    end
    assert.matches("what it can do  the table of models (claude-opus-# from 4.8 on, "
      .. "@earendil-works/pi-ai 1.5.2, 2026-11-10)", told "anthropic/claude-opus-4-8", 1, true)
    assert.matches("newer than the table of models: treated as the newest of its family "
      .. "(claude-opus-# from 5.5 on,", told "anthropic/claude-opus-7", 1, true)
    assert.matches("unknown family: conservative defaults", told "anthropic/what-is-it", 1, true)
    assert.matches("input costs     2, cached 0.1, to the cache 2.5; output 10 US dollars",
      told "anthropic/claude-sonnet-5-5", 1, true)
  end)
end)

-- -- refusals of a server -------------------------------------------------------------------------

local OUTPUT = { type = "object", properties = { n = { type = "integer" } }, required = { "n" },
  additionalProperties = false }

-- One wire and the message with which one of its servers refuses; the ability; what the body has
-- before.
local REFUSED = {
  { "anthropic/claude-sonnet-8", "tools.0.custom.strict: Extra inputs are not permitted",
    "strict_tools", '"strict":true' },
  { "openai/gpt-7", "Unknown parameter: 'tools[0].function.strict'.", "strict_tools",
    '"strict":true' },
  { "openai/responses/gpt-7", "Unsupported parameter: 'tools[0].strict' with this model.",
    "strict_tools", '"strict":true' },
  { "anthropic/claude-sonnet-8", "output_config.format: Extra inputs are not permitted",
    "native_output", '"json_schema"' },
  { "openai/gpt-7", "Invalid parameter: 'response_format' of type 'json_schema' is not supported "
    .. "with this model.", "native_output", '"json_schema"' },
  { "openai/responses/gpt-7", "Invalid parameter: 'text.format' of type 'json_schema' is not "
    .. "supported with model version `gpt-7`.", "native_output", '"json_schema"' },
  { "gemini/gemini-5-pro", "Function calling with a response mime type: 'application/json' is "
    .. "unsupported", "native_output", "responseJsonSchema" },
  { "openai/responses/gpt-7", "Encrypted content is not supported with this model.",
    "encrypted_reasoning", "encrypted_content" },
  { "anthropic/claude-sonnet-8", "adaptive thinking is not supported on this model", "reasoning",
    '"adaptive"' },
  { "openai/gpt-7", "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
    "reasoning", "reasoning_effort" },
  { "openai/responses/gpt-7", "Unsupported parameter: 'reasoning.effort' is not supported.",
    "reasoning", '"effort"' },
  { "gemini/gemini-5-pro", "Thinking level is not supported for this model.", "reasoning",
    "thinkingLevel" },
  { "ollama/new", '"new" does not support thinking', "reasoning", '"think"' },
}

describe("what a server refuses by name", function()
  local add = ah.tool { name = "add", description = "Adds.",
    params = { a = "integer" },
    handler = function() return 1 end }

  local function start(message, times)
    return mock.start(([[local list = {}
      for i = 1, %d do list[i] = { status = 400, message = %q } end
      for i = 1, 6 do list[#list + 1] = '{"n":1}' end
      return list]]):format(times or 1, message), "--lenient")
  end

  local function fields(m, case, warned)
    local url = m.url .. (case[1]:find "^openai" and "/v1" or "")
    -- OpenAI's schemas of answers are strict, too
    local output = case[3] ~= "strict_tools" and OUTPUT or nil
    return { model = case[1], base_url = url, api_key = "any", tools = { add }, output = output,
      retries = 0, options = { strict = true, reasoning = "high" }, log = function() end,
      on = { warning = function(e) warned[#warned + 1] = e.message end } }
  end

  local function bodies(m)
    local list = {}
    for _, r in ipairs(m:log()) do
      list[#list + 1] = ah.json.encode(r.body)
    end
    return list
  end

  for _, case in ipairs(REFUSED) do
    it(("is left out once, told and remembered: %s, %s"):format(case[1], case[3]), function()
      local m <close> = start(case[2])
      local warned = {}
      local agent = assert(ah.agent(fields(m, case, warned)))
      assert.equal('{"n":1}', assert(agent:run("one")).text)
      assert.equal('{"n":1}', assert(agent:run("two")).text)
      local path = os.tmpname()
      assert(agent:save(path))
      local loaded = assert(ah.load(path, fields(m, case, warned)))
      os.remove(path)
      assert.equal('{"n":1}', assert(loaded:run("three")).text)
      local sent = bodies(m)
      assert.equal(4, #sent)
      local seen = {}
      for i, body in ipairs(sent) do
        seen[i] = body:find(case[4], 1, true) ~= nil
      end
      assert.same({ true, false, false, false }, seen)
      assert.equal(1, #warned, table.concat(warned, "\n"))
      assert.truthy(warned[1]:find("trying without: ", 1, true), warned[1])
      local settings = sound.of(sound.check(agent:transcript()), "settings")
      assert.same({ [case[3]] = false }, settings[#settings].learned)
    end)
  end

  it("is told by agenthost models of the same program", function()
    local m <close> = start(REFUSED[1][2])
    local told = command.shell(
      ('env -i PATH="$PATH" XDG_CONFIG_HOME=/dev/null "$A" models -e %s %s')
      :format(command.quote(([[ah.run { model = "anthropic/claude-sonnet-8", base_url = %q,
        api_key = "any", options = { strict = true }, log = function() end, "go",
        tools = { ah.tool { name = "f", description = "F.", handler = print } } }]]):format(m.url)),
        "anthropic/claude-sonnet-8"))
    assert.truthy(told.out:find('learned         {"strict_tools":false}', 1, true),
      told.out .. told.err)
    assert.is_nil(known("anthropic/claude-sonnet-77").known.learned)
  end)

  it("is told in words where it was the schema of the answer", function()
    local case = REFUSED[4]
    local m <close> = start(case[2])
    local agent = assert(ah.agent(fields(m, case, {})))
    assert(agent:run "one")
    local sent = bodies(m)
    assert.falsy(sent[1]:find("JSON Schema", 1, true))
    assert.truthy(sent[2]:find("JSON Schema", 1, true))
  end)

  it("is each left out once where a server refuses one after the other, and then is an error",
    function()
      local m <close> = mock.start([[local function no(message)
          return { status = 400, message = message }
        end
        return { no "'tools[0].strict' is not supported", no "'reasoning.effort' is not supported",
          no "'tools[0].strict' is not supported", "{}" }]], "--lenient")
      local warned = {}
      local o = fields(m, REFUSED[3], warned)
      o[1] = "go"
      local _, err = ah.run(o)
      assert.same({ 400, 2, 3 }, { err.status, #warned, #m:log() })
    end)

  it("is an error where nothing of the kind was asked, or it is no refusal of it", function()
    for _, message in ipairs { "messages.0.strict_mode is not supported here",
      "thinking.budget_tokens must be less than max_tokens", "the prompt is too strict" } do
      local m <close> = start(message)
      local warned = {}
      local o = fields(m, REFUSED[1], warned)
      o.options, o.output, o[1] = nil, nil, "go"
      o.tool_change_mode = "append"
      local _, err = ah.run(o)
      assert.same({ 400, 0, 1 }, { err and err.status, #warned, #m:log() }, message)
    end
  end)
end)

-- -- prices ---------------------------------------------------------------------------------------

describe("a limit on money", function()
  local function spend(model, prices)
    local m <close> = mock.start(
      [[return { { text = "x", usage = { input = 1000, output = 100 } } }]])
    local budget = ah.budget { cost = 5, prices = prices }
    local _, err = ah.run { model = model, base_url = m.url .. "/v1", api_key = "any",
      budget = budget, log = function() end, "go" }
    return budget:used().cost, err
  end

  it("goes by the table where the script names no price", function()
    local cost = assert(spend "openai/gpt-6-sol")
    assert.is_true(math.abs(cost - (1000 * 2 + 100 * 10) / 1e6) < 1e-9, tostring(cost))
    cost = spend("openai/gpt-6-sol", { ["openai/gpt-6-sol"] = { input = 100, output = 0 } })
    assert.is_true(math.abs(cost - 0.1) < 1e-9, tostring(cost))
  end)

  it("needs one for a model of which none is known", function()
    local ok, err, told = pcall(spend, "openai/nobody-knows")
    assert.matches('prices has no "openai/nobody%-knows"', tostring(ok and told or err))
  end)
end)

-- -- only the table compares names --------------------------------------------------------------

-- Returns the lines of C or Lua in which a string begins like a model's name.
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
    local list = io.popen "find src -name '*.c' ! -path 'src/base/*' ! -path 'src/cli/*'"
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
