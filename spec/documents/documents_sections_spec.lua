-- The document on the registration of tools (seed 003), statement by statement: sections of tools,
-- prompts, rendering, and their errors.
local ah = require "agenthost"
local D = require "support.documents"

local tool = D.tool

local function lookup_tool()
  return ah.tool {
    name = "lookup_entity",
    description = "Fetch structured information for a given entity id.",
    params = { entity_id = "string: Global identifier to fetch",
      include_related = "boolean = false" },
    result = ah.schema.short { entity_id = "string", document_url = "string" },
    handler = function(params)
      local result = { entity_id = params.entity_id, document_url = "https://example.com" }
      local message = ("Fetched entity %s."):format(result.entity_id)
      return ah.result { message = message, payload = result }
    end,
  }
end

-- The document's example, with its names: name, body, params, children, description.
local function overview(lookup)
  local guidance = { primary_tool = "string" }
  return ah.prompt {
    name = "tools_overview",
    sections = {
      ah.section {
        title = "Guidance",
        body = [[
            Use tools when you need up-to-date context. Prefer ${primary_tool} for critical lookups.
            ]],
        params = guidance,
        children = {
          ah.tools_section {
            title = "Available Tools",
            tools = { lookup or tool "lookup_entity" },
            params = guidance,
            description = [[
                    Invoke ${primary_tool} whenever you need fresh entity context.
                    ]],
          },
        },
      },
    },
  }
end

local MARKDOWN = [[
## Guidance

Use tools when you need up-to-date context. Prefer lookup_entity for critical lookups.

### Available Tools

Invoke lookup_entity whenever you need fresh entity context.]]

local function refused(...)
  local err = D.raised(ah.prompt, { ... })
  assert.equal("prompt_validation", err.code, tostring(err))
  return err
end

local function names(list)
  local out = {}
  for i, t in ipairs(list) do
    out[i] = t.name
  end
  return table.concat(out, " ")
end

describe("the document's example", function()
  it("renders its markdown", function()
    local markdown = overview():render { primary_tool = "lookup_entity" }
    assert.equal(MARKDOWN, tostring(markdown))
    assert.equal(MARKDOWN, markdown.text)
  end)

  it("lists its tools", function()
    local tools = overview(lookup_tool()):tools()
    assert.equal(1, #tools)
    assert.equal("lookup_entity", tools[1].name)
  end)

  it("runs, its message and payload told to the model", function()
    local s = D.run({ D.calls("lookup_entity", { entity_id = "e-1" }), "done" },
      { prompt = overview(lookup_tool()), params = { primary_tool = "lookup_entity" } })
    assert.equal(MARKDOWN, s.requests[1].system)
    assert.equal('Fetched entity e-1.\n\n{"document_url":"https://example.com","entity_id":"e-1"}',
      s:results(1))
    assert.same({ true }, s:successes())
  end)

  it("has its id from `name`", function()
    assert.equal("tools_overview", overview().id)
  end)

  it("is the same bytes each time", function()
    assert.equal(tostring(overview():render { primary_tool = "x" }),
      tostring(overview():render { primary_tool = "x" }))
  end)
end)

describe("a result with a payload", function()
  local function result(fields)
    local value
    local s = D.run({ D.calls "t", "done" },
      { tools = { tool("t", { handler = function() return ah.result(fields) end }) },
        strategies = { function(m) value = m.value end } })
    return s:results(1), value, s
  end

  it("is one with a value", function()
    local text, value = result { message = "M", payload = { a = 1 } }
    assert.equal('M\n\n{"a":1}', text)
    assert.same({ a = 1 }, value)
  end)

  it("may be without a message", function()
    assert.equal('{"a":1}', (result { payload = { a = 1 } }))
  end)

  it("keeps false, null and the empty text", function()
    assert.equal("false", (result { payload = false }))
    assert.equal("null", (result { payload = ah.null }))
    assert.equal("M", (result { message = "M" }))
  end)

  it("cannot have both payload and value", function()
    local err = D.raised(ah.result, { message = "M", payload = 1, value = 2 })
    assert.matches("payload", err.message)
    assert.matches("value", err.message)
  end)

  it("can be a failure, or kept from the provider", function()
    local _, _, s = result { message = "M", payload = { a = 1 }, success = false }
    assert.same({ false }, s:successes())
    local text, value = result { message = "M", payload = { a = 1 },
      exclude_value_from_context = true }
    assert.equal("M", text)
    assert.same({ a = 1 }, value)
  end)
end)

describe("a tool", function()
  it("has a name of lower-case ASCII letters, digits and underscores, 64 at most", function()
    for _, name in ipairs { "lookup_entity", "a", "a1", "_x", ("a"):rep(64) } do
      assert.equal(name, tool(name).name)
    end
    for _, name in ipairs { "", "Lookup", "lookup entity", "lookup.entity", "größe",
      ("a"):rep(65) } do
      assert.equal("prompt_validation", D.raised(tool, name).code)
    end
  end)

  it("has a description of 1 to 200 ASCII characters, stripped", function()
    local function described(text) return tool("t", { description = text }) end
    assert.equal("Fetch it.", described("  Fetch it. \n ").spec.description)
    assert.equal(200, #described(" " .. ("x"):rep(200) .. " ").spec.description)
    for _, text in ipairs { "", "  \n ", ("x"):rep(201), "Größe", "Look ✓", "a\0b" } do
      assert.equal("prompt_validation", D.raised(described, text).code, text)
    end
  end)

  it("may be without a handler", function()
    local t = ah.tool { name = "t", description = "T." }
    assert.equal("t", ah.prompt({ ah.section { key = "a", tools = { t } } }):tools()[1].name)
  end)

  it("may share its params and its result with others", function()
    local params, result = ah.type { name = "P", fields = { a = "string" } },
      ah.type { name = "R", fields = { b = "string" } }
    local prompt = ah.prompt { ah.tools_section { key = "a", tools = {
      tool("one", { params = params, result = result }),
        tool("two", { params = params, result = result }) } } }
    assert.equal("one two", names(prompt:tools()))
  end)

  it("has a handler of its arguments alone, at most with a context", function()
    assert.truthy(tool("t", { handler = function(a) return a end }))
    assert.truthy(tool("t", { handler = function(a, b) return a, b end }))
    local err = D.raised(tool, "t", { handler = function(a, b, c) return a, b, c end })
    assert.equal("prompt_validation", err.code)
    assert.equal("t", err.tool)
  end)
end)

describe("a section of tools", function()
  it("is a section: title, heading, children, enablement", function()
    local section = ah.tools_section { title = "Available Tools", tools = { tool "a" },
      description = "D.",
      children = { ah.section { title = "More", template = "M." } } }
    assert.equal("available-tools", section.key)
    assert.equal("Available Tools", section.title)
    assert.equal("a", section.tools[1].name)
    assert.equal(1, #section.children)
    assert.equal("## Available Tools\n\nD.\n\n### More\n\nM.",
      tostring(ah.prompt({ section }):render()))
  end)

  it("leaves the tools out of the markdown", function()
    local text = tostring(ah.prompt({ ah.tools_section { title = "Tools",
      tools = { tool "hidden_one" } } }):render())
    assert.equal("## Tools", text)
  end)

  it("may stand anywhere, and several times", function()
    local prompt = ah.prompt {
      ah.tools_section { key = "first", tools = { tool "a" } },
      ah.section { key = "mid", template = "M.", ah.section { key = "low",
        ah.tools_section { key = "second", tools = { tool "b", tool "c" } } } },
      ah.tools_section { key = "third", tools = { tool "d" } },
    }
    assert.equal("a b c d", names(prompt:tools()))
    assert.equal("a b c d", names(prompt:render().tools))
  end)

  it("has the parameters of the section around it where it has none", function()
    local prompt = ah.prompt { ah.section { key = "g", template = "${x}", params = { x = "string" },
      ah.tools_section { key = "t", description = "Use ${x}.", tools = { tool "a" } } } }
    assert.equal("me\n\nUse me.", tostring(prompt:render { x = "me" }))
  end)

  it("may be without a description, or without tools", function()
    assert.equal("", tostring(ah.prompt({ ah.tools_section { key = "t",
      tools = { tool "a" } } }):render()))
    assert.equal("D.", tostring(ah.prompt({ ah.tools_section { key = "t", tools = {},
      description = "D." } }):render()))
  end)

  it("that is disabled gives neither markdown nor tools, nor do those below it", function()
    local function make(enabled)
      return ah.prompt { ah.section { key = "g", template = "G." },
        ah.tools_section { key = "t", description = "D.", tools = { tool "a" }, enabled = enabled,
          params = { on = "boolean = true" }, ah.tools_section { key = "u",
            tools = { tool "b" } } } }
    end
    assert.equal("", names(make(false):tools()))
    assert.equal("G.", tostring(make(false):render()))
    assert.equal("a b", names(make(true):tools()))
    local by = make(function(params) return params.on end)
    assert.equal("a b", names(by:tools()))
    assert.equal("", names(by:tools { on = false }))
    assert.equal("G.", tostring(by:render { on = false }))
  end)

  it("whose enablement is no truth value is refused", function()
    for _, bad in ipairs { "yes", 1, {} } do
      assert.is_false(pcall(ah.tools_section, { key = "t", enabled = bad }))
    end
    local prompt = ah.prompt { ah.section { key = "t", template = "T",
      enabled = function() error "no" end } }
    assert.equal("prompt_render", D.raised(prompt.render, prompt).code)
  end)

  it("takes the document's word is_enabled with a hint", function()
    local err = D.raised(ah.tools_section, { key = "t", is_enabled = false })
    assert.truthy(err.message:find("'enabled'", 1, true), err.message)
    err = D.raised(ah.section, { key = "t", isEnabled = false })
    assert.truthy(err.message:find("'enabled'", 1, true), err.message)
  end)
end)

describe("a prompt", function()
  it("takes `name`, or ns and key", function()
    assert.equal("n", ah.prompt({ name = "n", ah.section { key = "a" } }).id)
    assert.equal("s/k", ah.prompt({ ns = "s", key = "k", ah.section { key = "a" } }).id)
    assert.is_false(pcall(ah.prompt, { name = "n", key = "k", ah.section { key = "a" } }))
  end)

  it("takes `body` and `template`, not both", function()
    assert.equal("B", tostring(ah.prompt({ ah.section { key = "a", body = "B" } }):render()))
    assert.equal("B", tostring(ah.prompt({ ah.section { key = "a", template = "B" } }):render()))
    assert.is_false(pcall(ah.section, { key = "a", body = "B", template = "B" }))
  end)

  it("takes sections by name or in the array part, not both", function()
    local a = ah.section { key = "a", template = "A" }
    assert.equal("A", tostring(ah.prompt({ sections = { a } }):render()))
    assert.equal("A", tostring(ah.prompt({ a }):render()))
    assert.is_false(pcall(ah.prompt, { sections = { a }, ah.section { key = "b" } }))
  end)

  it("collects once and keeps the order", function()
    local prompt = overview()
    assert.equal(names(prompt:tools()), names(prompt:tools()))
    assert.equal(prompt:tools()[1], prompt:render({ primary_tool = "x" }).tools[1])
  end)

  it("has no side effects: rendering runs no handler", function()
    local ran = false
    local prompt = ah.prompt { ah.section { key = "a",
      tools = { tool("t", { handler = function() ran = true end }) } } }
    prompt:render()
    prompt:tools()
    assert.is_false(ran)
  end)

  it("cannot be changed by what it gives", function()
    local prompt = overview()
    local list = prompt:tools()
    list[1] = nil
    assert.equal(1, #prompt:tools())
    assert.is_false(pcall(function() prompt.id = "other" end))
  end)
end)

describe("what is wrong with a prompt", function()
  it("is said when it is made, with section, tool and type: a name twice", function()
    local err = refused(ah.section { key = "one", tools = { tool "dup" } },
      ah.section { key = "two", ah.section { key = "in",
        tools = { tool("dup", { params = { id = "string" } }) } } })
    assert.equal("two.in", err.section_path)
    assert.equal("dup", err.tool)
    assert.matches("dup", err.message)
    assert.matches("two%.in", err.message)
  end)

  it("names the types of the parameters of a duplicate", function()
    local A = ah.type { name = "LookupParams", fields = { id = "string" } }
    local B = ah.type { name = "SearchParams", fields = { text = "string" } }
    local err = refused(ah.section { key = "one", tools = { tool("dup", { params = A }) } },
      ah.section { key = "two", tools = { tool("dup", { params = B }) } })
    assert.truthy((err.message .. tostring(err.params_type)):find("SearchParams", 1, true),
      err.message)
  end)

  it("is a duplicate of a disabled section, too", function()
    assert.equal("dup", refused(ah.section { key = "one", tools = { tool "dup" }, enabled = false },
      ah.section { key = "two", tools = { tool "dup" } }).tool)
  end)

  it("is a placeholder that no parameter has", function()
    local err = refused(ah.section { key = "a", template = "Use ${nothing}." })
    assert.equal("a", err.section_path)
    assert.equal("nothing", err.param)
    err = refused(ah.section { key = "a", template = "A",
      ah.tools_section { key = "b", description = "${tol}",
      params = { tool = "string" }, tools = {} } })
    assert.equal("a.b", err.section_path)
    assert.equal("tol", err.param)
  end)

  it("is a key twice, beside each other", function()
    assert.equal("a", refused(ah.section { key = "a" }, ah.section { key = "a" }).section_path)
  end)

  it("is something that is no tool, no section", function()
    for _, bad in ipairs { { name = "t" }, "nobody-knows", 7, print } do
      assert.is_false(pcall(ah.section, { key = "a", tools = { bad } }))
    end
    for _, bad in ipairs { { key = "a" }, 7, tool "t" } do
      assert.is_false(pcall(ah.prompt, { bad }))
    end
  end)

  it("is said when it is rendered without a value, with the place", function()
    local prompt = overview()
    local err = D.raised(prompt.render, prompt)
    assert.equal("prompt_render", err.code)
    assert.equal("guidance", err.section_path)
    assert.equal("primary_tool", err.param)
    err = D.raised(prompt.render, prompt, { primary_tool = 5 })
    assert.equal("prompt_render", err.code)
    err = D.raised(prompt.render, prompt, { primary_tool = "x", second = "y" })
    assert.equal("prompt_render", err.code)
    err = D.raised(ah.run, { model = D.model {}, prompt = prompt, "Go." })
    assert.equal("prompt_render", err.code)
  end)

  it("is a value for one section that is missing while another has it", function()
    local prompt = ah.prompt { ah.section { key = "a", template = "${x}",
      params = { x = "string" } },
      ah.section { key = "b", template = "${x}", params = { x = "string" } } }
    assert.equal("1\n\n2", tostring(prompt:render { a = { x = "1" }, b = { x = "2" } }))
    local err = D.raised(prompt.render, prompt, { a = { x = "1" } })
    assert.equal("b", err.section_path)
  end)

  it("takes defaults, unicode and dollar signs as they are", function()
    local prompt = ah.prompt { ah.section { key = "a", template = "${x} costs $$5 or $6",
      params = { x = "string = tea" } } }
    assert.equal("tea costs $5 or $6", tostring(prompt:render()))
    assert.equal("thé ✓ ${y} costs $5 or $6", tostring(prompt:render { x = "thé ✓ ${y}" }))
  end)
end)

describe("a group name in a section", function()
  it("gives the tools it has, each once", function()
    ah.tool_group { name = "lookups", tools = { tool "lookup_one", tool "lookup_two" } }
    local prompt = ah.prompt { ah.tools_section { key = "a", tools = { "lookups" } } }
    assert.equal("lookup_one lookup_two", names(prompt:tools()))
  end)
end)
