-- agenthost models: the configured providers and the abilities of adapters; and the matrix of
-- docs/reference/models.md, which is made from its output.
local ah = require "agenthost"
local command = require "support.command"
local matrix = require "support.matrix"

local has, has_not, shell = command.has, command.has_not, command.shell

-- Runs the command with only the variables of `env`.
local function models(env, words)
  return shell(("env -i PATH=\"$PATH\" XDG_CONFIG_HOME=/dev/null %s \"$A\" models %s")
    :format(env, words or ""))
end

local function providers(env, words)
  local r = models(env, "--json " .. (words or ""))
  assert.equal(0, r.code, r.err)
  local by_name, list = {}, ah.json.decode(r.out).providers
  for _, one in ipairs(list) do
    by_name[one.provider] = one
  end
  return by_name, list, r.out
end

after_each(command.tidy)

describe("agenthost models", function()
  it("names what must be set, and nothing else", function()
    has(models("", "openai/x").out, "(OPENAI_API_KEY)")
    local own = models("", "compatible/x").out
    has(own, "(COMPATIBLE_API_BASE)")
    assert.falsy(own:find("COMPATIBLE_API_KEY", 1, true), own)
    local ready = models("OPENAI_API_KEY=k", "openai/x").out
    assert.falsy(ready:find("must be set", 1, true), ready)
  end)

  it("tells which providers have a key or an address, and from where", function()
    local found = providers "OPENAI_API_KEY=k GOOGLE_API_KEY=g COMPATIBLE_API_BASE=http://h/v1"
    assert.same({ true, "OPENAI_API_KEY" }, { found.openai.ready, found.openai.key })
    assert.same({ true, "GOOGLE_API_KEY" }, { found.gemini.ready, found.gemini.key })
    assert.same({ true, "COMPATIBLE_API_BASE" },
      { found.compatible.ready, found.compatible.address })
    assert.is_nil(found.compatible.key)
    assert.is_true(found.ollama.ready)
    assert.is_false(found.anthropic.ready)
    assert.is_false(found.litellm_proxy.ready)
    assert.same({ "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN" }, found.anthropic.key_variables)
    assert.equal("https://api.anthropic.com", found.anthropic.url)
  end)

  it("tells of the first variable that is set, and of none that is empty", function()
    local found = providers "GEMINI_API_KEY= GOOGLE_API_KEY=g OPENAI_API_BASE=http://h"
    assert.equal("GOOGLE_API_KEY", found.gemini.key)
    assert.equal("OPENAI_API_BASE", found.openai.address)
    assert.is_nil(found.openai.url)
  end)

  it("shows no key and no password, in words or as JSON", function()
    local env = "OPENAI_API_KEY=sk-very-secret OLLAMA_HOST=http://me:very-secret@h"
    for _, words in ipairs { "", "--json", "openai/gpt-4o" } do
      local r = models(env, words)
      assert.equal(0, r.code)
      has_not(r.out .. r.err, "very-secret")
      has(r.out, "OPENAI_API_KEY")
    end
  end)

  it("agrees with what a run says of a provider without a key", function()
    for name, one in pairs(providers "") do
      local r = shell(("env -i \"$A\" -e 'local t, e = ah.capabilities %q; os.exit(t and 0 or 1)'")
        :format(name .. "/" .. one.models[1].model:match "/(.*)$"))
      assert.equal(one.ready, r.code == 0, name)
    end
  end)

  it("tells what the adapter of a model can do, in the words of ah.capabilities", function()
    local model = "anthropic/claude-opus-4-8"
    local _, list = providers("", model)
    local told = ah.capabilities(model, { api_key = "none" })
    assert.equal(1, #list)
    assert.equal(1, #list[1].models)
    for _, name in ipairs { "tool_change_mode", "supports_dynamic_tools", "native_output",
      "reasoning_back", "tool_search", "images", "strict_tools" } do
      assert.equal(told[name], list[1].models[1][name], name)
    end
    assert.equal("reference", told.tool_change_mode)
    assert.equal("demo", select(2, providers("", "demo/echo"))[1].provider)
    has(models("", "openai/responses/gpt-5.4").out, "additional_tools")
  end)

  it("tells of images and strict tools", function()
    local function row(model)
      local one = select(2, providers("", model))[1].models[1]
      return { one.images, one.strict_tools }
    end
    assert.same({ true, true }, row "anthropic/claude-opus-4-8")
    assert.same({ true, false }, row "anthropic/claude-3-haiku-20240307")
    assert.same({ true, false }, row "ollama/m")
    has(models("", "openai/gpt-5.4").out, "strict  schema  images  reasoning\n")
  end)

  it("shows the aliases that code before it gave, and what one stands for", function()
    local code = "-e 'ah.alias { quick = \"groq/m\", able = \"openai/gpt-5.4\" }'"
    has(models("", code).out, "\nalias  model\nable   openai/gpt-5.4\nquick  groq/m\n")
    local _, list, text = providers("", code .. " quick")
    assert.equal("groq/m", list[1].models[1].model)
    assert.equal(1, #list)
    assert.same({ quick = "groq/m", able = "openai/gpt-5.4" }, ah.json.decode(text).aliases)
    has(select(3, providers ""), '"aliases":{}')
    has_not(models("").out, "alias")
    local bad = models("", "-e 'error \"no file\"'")
    assert.equal(1, bad.code)
    has(bad.err, "no file")
  end)

  it("is a table for people, of 100 columns at most", function()
    local r = models ""
    has(r.out, "provider       ready  key")
    has(r.out, "(ANTHROPIC_API_KEY)")
    for line in r.out:gmatch "[^\n]+" do
      assert.is_true(#line <= 100, line)
    end
  end)

  it("refuses what is no model, and more than one", function()
    has(models("", "opena/x").err, "did you mean 'openai'?")
    has(models("", "openai").err, "is not of the form provider/model")
    local r = models("", "openai/a openai/b")
    assert.equal(2, r.code)
    has(r.err, "agenthost models takes one model, found 'openai/b' besides")
  end)

  it("is what the matrix of docs/reference/models.md says", function()
    local _, list = providers ""
    has(command.contents "docs/reference/models.md", "\n" .. matrix(list) .. "\n")
  end)
end)
