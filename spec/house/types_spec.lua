-- The type annotations against the library and its pages: everything that exists has a type, and
-- every type exists.
local ah = require "agenthost"
local markdown = require "support.markdown"
local server = require "support.server"

local PATH = "lua/agenthost/types/agenthost.lua"
local TYPES = markdown.read(PATH)
local LUA = markdown.api()
local EVENTS = markdown.read("docs/reference/events.md")
local PROMPTS = markdown.read("docs/reference/prompts.md")
local SESSIONS = markdown.read("docs/reference/sessions.md")
local STRATEGIES = markdown.read("docs/reference/strategies.md")
local REGISTRY = markdown.read("docs/reference/registry.md")
local FILES = markdown.read("docs/reference/filesystem.md")
local SERVING = markdown.read("docs/reference/http.md")
local PROCESSES = markdown.read("docs/reference/processes.md")
local TERMINAL = markdown.read("docs/reference/terminal.md")

-- Returns the fields of a class, { name = true }, without those of its parents.
local function fields_of(class)
  local names, inside, found = {}, false, false
  for line in TYPES:gmatch("[^\n]*") do
    local name = line:match("^%-%-%-@class ([%w_.]+)")
    inside = name and name == class or (inside and line:match("^%-%-%-") ~= nil)
    found = found or inside
    local field = inside and line:match("^%-%-%-@field ([%a_]+)")
    if field then
      names[field] = true
    end
  end
  assert(found, "there is no class " .. class)
  return names
end

-- Returns the values of an alias of strings.
local function alias(name)
  local block = TYPES:match("%-%-%-@alias " .. name:gsub("%p", "%%%0") .. "\n(.-)\n\n")
  local values = {}
  for value in assert(block, name):gmatch('"([^"]+)"') do
    values[value] = true
  end
  return values
end

describe("the types", function()
  it("are those of everything there is in agenthost, and of nothing else", function()
    local declared, there = {}, {}
    local modules = { json = true, schema = true, policies = true, base64 = true,
      base64url = true, terminal = true, yaml = true }
    for name in TYPES:gmatch("\nfunction ah%.([%w_.]+)%(") do
      declared[name] = true
    end
    for name in TYPES:gmatch("\nah%.([%w_]+) = {}") do
      declared[name] = true
    end
    for name in pairs(fields_of("agenthost")) do
      declared[name] = true
    end
    for name, value in pairs(ah) do
      there[name] = name:sub(1, 1) ~= "_" or nil
      for inner in pairs(modules[name] and value or {}) do
        there[name .. "." .. inner] = true
      end
    end
    assert.same(there, declared)
  end)

  it("are Lua, with functions where there are functions", function()
    for name, value in pairs(assert(loadfile(PATH))()) do
      local callable = type(ah[name]) == "function" or name == "scripted"
      assert.equal(callable, type(value) == "function", name)
    end
  end)

  for class, place in pairs {
    ["ah.Reply"] = { "### The reply", 1 },
    ["ah.Message"] = { "### Messages", 1 }, ["ah.Agent"] = { "## ah.agent", 1 },
    ["ah.Ctx"] = { "### What a handler may do", 1 },
    ["ah.Schema"] = { "## ah.schema", 1 }, ["ah.SchemaOptions"] = { "## ah.schema", 2 },
    ["ah.HttpStream"] = { "### A response in pieces", 1 },
    ["ah.Process"] = { "## Methods", 1, PROCESSES },
    ["ah.ProcessEnd"] = { "## Its end", 1, PROCESSES },
    ["ah.ProcessSandbox"] = { "## Sandbox", 1, PROCESSES },
    ["ah.Error"] = { "## Errors", 1 },
    ["ah.Outcome"] = { "## Tools that come and go", 1 }, ["ah.Budget"] = { "## Budgets", 2 },
    ["ah.Section"] = { "## Sections", 2, PROMPTS },
    ["ah.Prompt"] = { "## Prompts", 2, PROMPTS }, ["ah.Rendered"] = { "## Rendering", 1, PROMPTS },
    ["ah.UnlockConfig"] = { "## ah.unlock", 1, STRATEGIES },
    ["ah.PhasesConfig"] = { "## ah.phases", 1, STRATEGIES },
    ["ah.Phase"] = { "## ah.phases", 2, STRATEGIES },
    ["ah.UnfoldConfig"] = { "## ah.unfold", 1, STRATEGIES },
    ["ah.StrategyObject"] = { "## Writing one", 1, STRATEGIES },
    ["ah.ResourceConfig"] = { "## Resources", 1, SESSIONS },
    ["ah.Resources"] = { "## Resources", 2, SESSIONS },
    ["ah.Filesystem"] = { "## Methods", 1, FILES },
    ["ah.Server"] = { "## ah.serve", 2, SERVING },
    ["ah.ServerRequest"] = { "## Requests", 1, SERVING },
    ["ah.ServerResponse"] = { "## Responses", 2, SERVING },
    ["ah.ServerRefusal"] = { "## Refusals", 2, SERVING },
    ["ah.Terminal"] = { "## Methods", 1, TERMINAL }, ["ah.Key"] = { "### Events", 1, TERMINAL },
    ["ah.Styled"] = { "### Texts", 1, TERMINAL },
    ["ah.Registry"] = { "## ah.registry", 1, REGISTRY },
    ["ah.CallReply"] = { "## ah.registry", 2, REGISTRY },
  } do
    it(("of %s have the fields that its page has"):format(class), function()
      assert.same(markdown.names_in(place[3] or LUA, place[1], place[2]), fields_of(class))
    end)
  end

  it("of scripted models have the fields that docs/reference/scripted.md has", function()
    local page = markdown.read("docs/reference/scripted.md")
    assert.same(markdown.names_in(page, "## Turns", 1), fields_of("ah.Turn"))
    assert.same(markdown.names_in(page, "## Turns", 3), fields_of("ah.Expect"))
    local model = ah.scripted {}
    for name in pairs(fields_of("ah.Adapter")) do
      assert.equal("function", type(model[name]), name)
    end
  end)

  it("of usage have the fields of a reply's usage", function()
    local s <close> = server.start { responses = { server.chat_text "a" } }
    local reply, there = assert(ah.run { model = "openai/gpt-4.1", base_url = s.url,
      api_key = "k", "x" }), {}
    for name in pairs(reply.usage) do
      there[name] = true
    end
    assert.same(there, fields_of("ah.Usage"))
  end)

  it("of tools have the fields of a tool", function()
    local tool = ah.tool { name = "t", description = "A tool.", full_description = "A.",
      params = ah.type { name = "P", fields = {} }, result = ah.type { name = "R", fields = {} },
      handler = print, render = print, version = "1", timeout = 1, strict = true }
    for name in pairs(fields_of("ah.Tool")) do
      assert.is_not_nil(tool[name], name)
    end
  end)

  it("know the codes of errors and the types of events", function()
    assert.same(markdown.names_in(LUA, "## Errors", 2), alias("ah.Code"))
    assert.same(markdown.names_in(EVENTS, "## All events"), alias("ah.EventType"))
  end)
end)
