-- Templates, sections and prompts: their declaration, rendering and overrides, without a model;
-- runs are in prompt_run_spec.lua.
local ah = require "agenthost"

local function tool(name, more)
  local def = { name = name, description = "Does " .. name .. ".", handler = function() end }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

local function names(tools)
  local list = {}
  for i, t in ipairs(tools) do
    list[i] = t.name
  end
  return table.concat(list, " ")
end

--- Returns the line of the caller, for errors that must name it.
local function here()
  return debug.getinfo(2, "l").currentline
end

--- Returns the error object that f raises; its message must name this file.
local function raised(f, code)
  local ok, err = pcall(f)
  assert.is_false(ok)
  assert.equal(code, err.code, tostring(err))
  assert.truthy(err.message:find("^spec/prompt/prompt_spec.lua:%d+: "), err.message)
  return err
end

local function invalid(f)
  return raised(f, "prompt_validation")
end

local function text_of(section, params)
  return ah.prompt({ section }):render(params).text
end

describe("a template", function()
  local function render(template, params, values)
    return text_of(ah.section { key = "s", template = template, params = params }, values)
  end

  it("puts strings in as they are and all else as JSON, numbers exact", function()
    local params = { s = "string", i = "integer", n = "number", b = "boolean", t = "any",
      z = "any" }
    local values = { s = 'a "quoted"\nline', i = math.maxinteger, n = 0.1, b = true,
      t = { x = { 1, 2 } }, z = ah.null }
    assert.equal('a "quoted"\nline|9223372036854775807|0.1|true|{"x":[1,2]}|null',
      render("${s}|${i}|${n}|${b}|${t}|${z}", params, values))
  end)

  it("does not look into what it has put in", function()
    assert.equal("${b} $$", render("${a}", { a = "string", b = "string = x" }, { a = "${b} $$" }))
  end)

  it("takes a dollar sign for one where no placeholder begins", function()
    assert.equal("$5, $x, ${a} and $", render("$5, $x, $${a} and $"))
  end)

  it("is dedented", function()
    assert.equal("a\n  b\n\nc", render("\n\n    a\n      b\n   \n    c  \n\n  "))
    assert.equal("a\n\tb", render("\ta\n\t\tb"))
    assert.equal("a\n  b", render("a\n  b"))
    assert.equal("", render("  \n "))
    assert.equal("a\n\0", render("a\n\0\n"))
  end)

  it("refuses what is neither a placeholder nor text, with its place", function()
    for _, text in ipairs { "${", "${}", "${1a}", "${a b}", "${a.b}", "${a", "${ä}",
      "${" .. ("x"):rep(65) .. "}" } do
      local err = invalid(function() ah.section { key = "k", template = "one\n two " .. text } end)
      assert.truthy(err.message:find("line 2, column 6", 1, true), err.message)
      assert.equal("k", err.section_path)
    end
  end)

  it("refuses what is no UTF-8, and what is too long", function()
    invalid(function() ah.section { key = "k", template = "\xff" } end)
    invalid(function() ah.section { key = "k", template = ("x"):rep((1 << 20) + 1) } end)
    assert.truthy(ah.section { key = "k", template = ("x"):rep(1 << 20) })
  end)

  it("makes no prompt larger than 16 MiB", function()
    local s = ah.section { key = "k", params = { x = "string" }, template = ("${x}"):rep(20) }
    local err = raised(function() text_of(s, { x = ("x"):rep(1 << 20) }) end, "prompt_render")
    assert.truthy(err.message:find("larger than 16777216 bytes", 1, true))
  end)
end)

describe("a section", function()
  it("has a key made from its title", function()
    for title, key in pairs { ["Guidance"] = "guidance", ["Available Tools"] = "available-tools",
      ["  2. What?! -- now "] = "2-what-now", ["under_score"] = "under_score", ["Ünder"] = "nder",
      ["__init__ x"] = "init__-x", [("long "):rep(30)] = (("long-"):rep(13)):sub(1, 64) } do
      assert.equal(key, ah.section({ title = title }).key)
    end
  end)

  it("refuses keys and titles that are none", function()
    for _, def in ipairs { {}, { title = "日本" }, { title = "!" }, { key = "" }, { key = "a.b" },
      { key = "A" }, { key = "-a" }, { key = ("a"):rep(65) }, { key = "a", title = "" },
      { key = "a", title = "two\nlines" }, { key = "a", title = ("x"):rep(201) } } do
      invalid(function() ah.section(def) end)
    end
  end)

  it("refuses unknown fields and wrong types at the script's line", function()
    local err = raised(function() ah.section { titel = "x" } end, "usage")
    assert.truthy(err.message:find("unknown field 'titel' (did you mean 'title'?)", 1, true))
    for field, value in pairs { key = 1, title = {}, template = true, enabled = 1, tools = "t",
      visibility = "half", summary = 1, children = 1, accepts_overrides = "no" } do
      local line = here() + 1
      err = raised(function() ah.section { key = "k", [field] = value } end, "usage")
      assert.truthy(err.message:find(":" .. line .. ": ", 1, true))
    end
    raised(function() ah.section { key = "k", template = "a", body = "b" } end, "usage")
    raised(function()
      ah.section { key = "k", children = {}, ah.section { key = "c" } }
    end, "usage")
    invalid(function() ah.section { key = "k", tools = { "t" } } end)
    invalid(function() ah.section { key = "k", { key = "c" } } end)
    invalid(function() ah.section { key = "k", params = { a = "strin" } } end)
    invalid(function() ah.section { key = "k", schema = { type = "string" } } end)
    invalid(function() ah.section { key = "k", params = {}, schema = {} } end)
  end)

  it("needs a summary where it may be summarized", function()
    local err = invalid(function() ah.section { key = "k", visibility = "summary" } end)
    assert.equal("k", err.section_path)
    invalid(function() ah.section { key = "k", visibility = function() return "full" end } end)
    assert.truthy(ah.section { key = "k", visibility = "full" })
  end)

  it("shows what it is made of", function()
    local t, child = tool "t", ah.section { key = "c" }
    local s = ah.section { title = "A Title", body = "  text ", tools = { t }, child }
    assert.same({ "a-title", "A Title", "text", "section a-title" },
      { s.key, s.title, s.template, tostring(s) })
    assert.equal(t, s.tools[1])
    assert.equal(child, s.children[1])
    assert.is_nil(s.summary)
    raised(function() return s.kee end, "usage")
  end)

  it("may have the names of seed 003", function()
    local s = ah.tools_section { title = "T", description = "${x}", params = { x = "string" },
      tools = { tool "t" }, children = { ah.section { title = "C", body = "c" } } }
    assert.equal("## T\n\n1\n\n### C\n\nc", text_of(s, { x = "1" }))
  end)

  it("has at most 32 levels", function()
    local s = ah.section { key = "s" }
    for _ = 2, 32 do
      s = ah.section { key = "s", s }
    end
    assert.truthy(ah.prompt { s }:section(("s."):rep(31) .. "s"))
    invalid(function() ah.section { key = "s", s } end)
  end)

  it("cannot stand for more sections than there may be", function()
    local s = ah.section { key = "s" }
    local err = invalid(function()
      for _ = 1, 20 do
        s = ah.section { key = "s", ah.section { key = "a", s }, ah.section { key = "b", s } }
      end
    end)
    assert.truthy(err.message:find("10000 sections", 1, true))
  end)
end)

describe("a prompt", function()
  local lookup = tool("lookup_entity", {
    params = { entity_id = "string: Global identifier to fetch",
      include_related = "boolean = false" },
  })

  -- seed 003, Example
  local function overview()
    return ah.prompt {
      name = "tools_overview",
      sections = {
        ah.section {
          title = "Guidance",
          body = [[
            Use tools when you need up-to-date context. Prefer ${primary_tool} for critical lookups.
            ]],
          params = { primary_tool = "string" },
          children = {
            ah.tools_section {
              title = "Available Tools",
              tools = { lookup },
              params = { primary_tool = "string" },
              description = [[
                    Invoke ${primary_tool} whenever you need fresh entity context.
                    ]],
            },
          },
        },
      },
    }
  end

  it("is the example of seed 003", function()
    local prompt = overview()
    assert.equal([[
## Guidance

Use tools when you need up-to-date context. Prefer lookup_entity for critical lookups.

### Available Tools

Invoke lookup_entity whenever you need fresh entity context.]],
      tostring(prompt:render { primary_tool = "lookup_entity" }))
    assert.equal("lookup_entity", prompt:tools()[1].name)
    assert.equal(lookup, prompt:tools()[1])
    assert.same({ "tools_overview", "prompt tools_overview" }, { prompt.id, tostring(prompt) })
  end)

  it("orders sections and tools depth-first, with headings by depth", function()
    local function node(title, ...)
      return ah.section { title = title, template = title:lower(), tools = { tool(title:lower()) },
        ... }
    end
    local r = ah.prompt {
      node("A", node("B", node("C", node("D", node("E", node "F")))), node "G"), node "H",
    }:render()
    assert.equal("## A\n\na\n\n### B\n\nb\n\n#### C\n\nc\n\n##### D\n\nd\n\n###### E\n\ne\n\n"
      .. "###### F\n\nf\n\n### G\n\ng\n\n## H\n\nh", r.text)
    assert.equal("a b c d e f g h", names(r.tools))
  end)

  it("leaves no gap where there is nothing to say", function()
    local r = ah.prompt { ah.section { key = "a" }, ah.section { title = "B", template = " " },
      ah.section { key = "c", template = "c" } }:render()
    assert.equal("## B\n\nc", r.text)
    assert.equal("", ah.prompt({}):render().text)
  end)

  it("gives the same bytes each time", function()
    local text = overview():render({ primary_tool = "x" }).text
    for _ = 1, 20 do
      assert.equal(text, overview():render({ primary_tool = "x" }).text)
    end
  end)

  it("leaves out disabled sections, their tools and their children", function()
    local function declare(enabled)
      return ah.prompt { ah.section { key = "a", template = "a",
        params = { on = "boolean = false" }, enabled = enabled, tools = { tool "t" },
        ah.section { key = "b", template = "b", tools = { tool "u" } } },
        ah.section { key = "c", template = "c" } }
    end
    assert.same({ "c", "" }, { declare(false):render().text, names(declare(false):tools()) })
    assert.equal("a\n\nb\n\nc", declare(true):render().text)
    local by_params = declare(function(params) return params.on end)
    assert.equal("c", by_params:render().text)
    assert.equal("a\n\nb\n\nc", by_params:render({ on = true }).text)
    assert.equal("t u", names(by_params:tools { on = true }))
    assert.equal("c", by_params:render({ on = false }).text)
  end)

  it("asks no function of what is below a disabled section", function()
    local prompt = ah.prompt { ah.section { key = "a", enabled = false,
      ah.section { key = "b", enabled = function() error "asked" end } } }
    assert.equal("", prompt:render().text)
  end)

  it("holds back what is summarized", function()
    local prompt = ah.prompt { ah.section { title = "Context", template = "All ${x}",
      summary = "Some ${x}", visibility = "summary", params = { x = "string = y" },
      tools = { tool "search" },
      ah.section { key = "inner", template = "i", tools = { tool "z" } } } }
    local r = prompt:render()
    -- seed 000, Summary Suffix
    assert.equal([[
## Context

Some y

---
[This section is summarized. To view full content, call `read_section` with key "context".]]
      .. "]", r.text)
    assert.same({ "", { "context" } }, { names(r.tools), r.summarized })
  end)

  it("names nested sections by their path", function()
    local r = ah.prompt { ah.section { key = "a", ah.section { key = "b", summary = "s",
      visibility = function() return "summary" end } } }:render()
    assert.truthy(r.text:find('with key "a.b".]', 1, true))
    assert.same({ "a.b" }, r.summarized)
  end)

  it("refuses functions that fail or give something else, naming the section", function()
    local function with(field, f)
      return ah.prompt { ah.section { key = "a", ah.section { key = "b", summary = "s",
        [field] = f } } }
    end
    local err = raised(function() with("enabled", function() error "boo" end):render() end,
      "prompt_render")
    assert.same({ "a.b", true }, { err.section_path, err.message:find("boo", 1, true) ~= nil })
    for _, v in ipairs { 1, true, "half", {} } do
      err = raised(function() with("visibility", function() return v end):render() end,
        "prompt_render")
      assert.equal("a.b", err.section_path)
    end
    raised(function() with("enabled", function() coroutine.yield() end):render() end,
      "prompt_render")
    assert.equal("", with("enabled", function() end):render().text)
  end)

  it("lets a function render the prompt that it belongs to", function()
    local prompt, depth = nil, 0
    prompt = ah.prompt { ah.section { key = "a", template = "a ${n}",
      params = { n = "integer = 1" },
      enabled = function()
        depth = depth + 1
        return depth > 3 or #prompt:render({ n = depth + 1 }).text > 0
      end } }
    assert.equal("a 1", prompt:render().text)
    assert.equal("a 2", prompt:render({ n = 2 }).text)
  end)

  it("refuses two sections of one path and two tools of one name, wherever", function()
    local err = invalid(function()
      ah.prompt { ah.section { key = "a", ah.section { key = "b" }, ah.section { title = "B" } } }
    end)
    assert.equal("a.b", err.section_path)
    local summary = { visibility = "summary", summary = "s" }
    for _, hidden in ipairs { { enabled = false }, summary, {} } do
      hidden.key, hidden.tools = "a", { tool "same" }
      err = invalid(function()
        ah.prompt { ah.section(hidden), ah.section { key = "b", tools = { tool "same" } } }
      end)
      assert.same({ "b", "same" }, { err.section_path, err.tool })
    end
  end)

  it("refuses a placeholder that no parameter has, with its place", function()
    local line = here() + 2
    local err = invalid(function()
      ah.prompt { ah.section { key = "a", params = { primary_tool = "string" },
        ah.section { key = "b", template = "x\n  ${primary_tol}" } } }
    end)
    assert.same({ "a.b", "primary_tol" }, { err.section_path, err.param })
    assert.truthy(err.message:find("(did you mean 'primary_tool'?) at line 2, column 3", 1, true))
    assert.truthy(err.message:find(":" .. line .. ": ", 1, true))
    invalid(function() ah.prompt { ah.section { key = "a", template = "${x}" } } end)
    invalid(function()
      ah.prompt { ah.section { key = "a", template = "t", summary = "${x}" } }
    end)
    invalid(function() -- only its own parameters, not those of its parent
      ah.prompt { ah.section { key = "a", params = { x = "string" },
        ah.section { key = "b", params = { y = "string" }, template = "${x}" } } }
    end)
  end)

  it("refuses what is no section, no name and no field", function()
    invalid(function() ah.prompt { "text" } end)
    invalid(function() ah.prompt { key = "A" } end)
    invalid(function() ah.prompt { ns = "n" } end)
    for _, ns in ipairs { "/", "a/", "/a", "a//b", "a/B", ("a/"):rep(64) .. "b" } do
      invalid(function() ah.prompt { ns = ns, key = "k" } end)
    end
    invalid(function() ah.prompt { key = "a/b" } end)
    raised(function() ah.prompt { key = "a", name = "b" } end, "usage")
    raised(function() ah.prompt { section = {} } end, "usage")
    raised(function() ah.prompt { sections = {}, ah.section { key = "a" } } end, "usage")
    raised(function() ah.prompt {}:render "text" end, "prompt_render")
    raised(function() ah.prompt {}:render { 1, 2 } end, "prompt_render")
    raised(function() return ah.prompt({}).sections end, "usage")
  end)

  it("finds its sections by path, keeps its resources and its output", function()
    local inner, resources = ah.section { key = "b" }, { db = print }
    local prompt = ah.prompt { ns = "app", key = "main", resources = resources,
      output = { type = "object" }, ah.section { key = "a", inner } }
    assert.equal(inner, prompt:section "a.b")
    assert.is_nil(prompt:section "b")
    assert.equal(resources, prompt.resources)
    assert.equal('{"type":"object"}', prompt.output:text())
    assert.equal('{"type":"object"}', prompt:render().output:text())
    assert.equal("app/main", prompt.id)
    assert.is_nil(ah.prompt({}).resources)
  end)

  it("has a namespace of one name or of several", function()
    local longest = ("a/"):rep(63) .. "bc"
    for _, ns in ipairs { "examples/tooling", "a/b/c", longest } do
      assert.equal(ns .. "/demo", ah.prompt({ ns = ns, key = "demo" }).id)
    end
    local prompt = ah.prompt { ns = "examples/tooling", key = "demo",
      ah.section { key = "tone", template = "Be brief." },
      overrides = { ["examples/tooling/demo"] = { sections = { tone = {
        hash = ah.prompt({ ah.section { key = "tone", template = "Be brief." } })
          :hashes().sections.tone, template = "Be long." } } } } }
    assert.equal("Be long.", prompt:render().text)
  end)
end)

describe("the parameters of a prompt", function()
  local function pair(a, b)
    return ah.prompt { ah.section { key = "a", params = a, template = "a=${x}",
      ah.section { key = "b", params = b, template = "b=${x}" } } }
  end

  it("are for every section that declares them", function()
    assert.equal("a=1\n\nb=1", pair({ x = "string" }, { x = "string" }):render({ x = "1" }).text)
    assert.equal("a=1\n\nb=1", pair({ x = "string" }):render({ x = "1" }).text)
  end)

  it("are those of a section where they are under its path, else of those around it", function()
    local prompt = pair({ x = "string" }, { x = "string" })
    assert.equal("a=1\n\nb=1", prompt:render({ a = { x = "1" } }).text)
    assert.equal("a=1\n\nb=2", prompt:render({ a = { x = "1" }, ["a.b"] = { x = "2" } }).text)
    assert.equal("a=0\n\nb=2", prompt:render({ x = "0", ["a.b"] = { x = "2" } }).text)
    -- a section without parameters of its own takes its parent's; other values may be given for it
    local given = { x = "0", ["a.b"] = { x = "2" } }
    assert.equal("a=0\n\nb=2", pair({ x = "string" }):render(given).text)
  end)

  it("may have the name of a section where they are no tables", function()
    local prompt = ah.prompt { ah.section { key = "tone", params = { tone = "any" },
      template = "${tone}" } }
    assert.equal("kind", prompt:render({ tone = "kind" }).text)
    assert.equal("kind", prompt:render({ tone = { tone = "kind" } }).text)
    assert.equal("[1]", prompt:render({ tone = { 1 } }).text)
  end)

  it("have the defaults of their schema", function()
    assert.equal("a=1\n\nb=2", pair({ x = "string = 1" }, { x = "string = 2" }):render().text)
    local s = ah.section { key = "s", template = "${x}", schema = { type = "object",
      properties = { x = { type = "integer", default = 7 } } } }
    assert.equal("7", text_of(s))
  end)

  it("must be there and right, which is told with the section and the name", function()
    local prompt = pair({ x = "string" }, { x = "integer" })
    local err = raised(function() prompt:render() end, "prompt_render")
    assert.same({ "a", "x" }, { err.section_path, err.param })
    err = raised(function() prompt:render { x = "1" } end, "prompt_render")
    assert.same({ "a.b", "x" }, { err.section_path, err.param })
    assert.truthy(err.message:find("must be an integer", 1, true))
    raised(function() prompt:render { x = print } end, "prompt_render")
  end)

  it("must be right where the section is summarized, but not where it is disabled", function()
    local function declare(more)
      more.key, more.params, more.template = "s", { x = "string" }, "${x}"
      return ah.prompt { ah.section(more) }
    end
    raised(function() declare({ visibility = "summary", summary = "s" }):render() end,
      "prompt_render")
    assert.equal("", declare({ enabled = false }):render().text)
  end)

  it("are not asked for by tools()", function()
    local prompt = ah.prompt { ah.section { key = "a", params = { x = "string" },
      template = "${x}", tools = { tool "t" } } }
    assert.equal("t", names(prompt:tools()))
    local asking = ah.prompt { ah.section { key = "a", params = { x = "string" },
      enabled = function(p) return p.x == "1" end, tools = { tool "t" } } }
    assert.equal("t", names(asking:tools { x = "1" }))
    raised(function() asking:tools() end, "prompt_render")
  end)

  it("must be known, with the nearest name", function()
    local prompt = pair({ x = "string", colour = "string?" }, { size = "integer?", x = "string" })
    for _, case in ipairs {
      { { colour = "", colur = "" }, "colur", "colour" }, { { a = { sise = 1 } }, "sise", "size" },
      { { ["a.b"] = { colour = "" } }, "colour" }, { { ["a.c"] = {} }, "a.c", "a.b" },
    } do
      case[1].x = "1"
      local err = raised(function() prompt:render(case[1]) end, "prompt_render")
      assert.equal(case[2], err.param)
      assert.equal(case[3] ~= nil, err.message:find("did you mean '" .. tostring(case[3]), 1, true)
        ~= nil, err.message)
    end
    assert.equal("a=1\n\nb=1", prompt:render({ x = "1", size = 1, a = { colour = "" } }).text)
  end)

  it("may have any name in a schema", function()
    local s = ah.section { key = "s", template = "t", schema = { type = "object",
      properties = { ["a b\"\u{e4}"] = { type = "integer" } } } }
    assert.equal("t", text_of(s, { ["a b\"\u{e4}"] = 1 }))
    raised(function() text_of(s, { ["a b\"\u{e4}"] = "x" }) end, "prompt_render")
  end)
end)

describe("the examples of a tool", function()
  local function with(examples)
    return ah.tool { name = "find", description = "Finds.", params = { text = "string" },
      result = { type = "integer" }, examples = examples }
  end

  it("are kept as they are", function()
    local examples = { { description = "A search.", input = { text = "x" }, output = 3 },
      { input = { text = "y" } } }
    assert.same(examples, with(examples).examples)
    assert.same({}, with(nil).examples)
    assert.same({}, with({}).examples)
  end)

  it("must be calls that the tool takes and answers, else the place is named", function()
    for param, input in pairs { text = { text = 1 }, txt = { text = "", txt = "" } } do
      local err = invalid(function() with { { input = { text = "" } }, { input = input } } end)
      assert.same({ "find", param }, { err.tool, err.param })
      assert.truthy(err.message:find("examples[2]: input: /", 1, true), err.message)
    end
    for _, example in ipairs { { output = 1 }, { input = { text = "" }, output = "x" },
      { input = {}, inputs = 1 }, { input = { text = "" }, description = ("x"):rep(201) }, "x",
      { input = print } } do
      invalid(function() with { example } end)
    end
    invalid(function() with { input = {} } end)
  end)
end)

describe("overrides", function()
  local function declare(overrides, more)
    local t = tool("find", { accepts_overrides = more and more.tool })
    return ah.prompt { ns = "shop", key = "support", overrides = overrides,
      ah.section { key = "tone", template = "Be ${how}.", summary = "Tone.", tools = { t },
        params = { how = "string = kind" }, accepts_overrides = more and more.section,
        ah.section { key = "deep", template = "d" } } }
  end

  local function with(kind, name, fields, more)
    fields.hash = fields.hash or declare():hashes()[kind][name]
    return declare({ ["shop/support"] = { [kind] = { [name] = fields } } }, more)
  end

  --- Runs the lines in the command; returns its stderr.
  local function warnings(lines)
    local path = os.tmpname()
    local f = assert(io.open(path, "w"))
    f:write('local ah = require "agenthost"\n', lines)
    f:close()
    local binary = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"
    local pipe <close> = assert(io.popen(("%s %s 2>&1"):format(binary, path)))
    local said = pipe:read("a")
    os.remove(path)
    return said
  end

  it("change texts, summaries and visibility", function()
    assert.equal("Be very kind.\n\nd",
      with("sections", "tone", { template = "Be very ${how}." }):render().text)
    local r = with("sections", "tone", { visibility = "summary", summary = "T." }):render()
    assert.truthy(r.text:find("^T%.\n\n%-%-%-\n%["))
    assert.equal("", names(r.tools))
    assert.equal("Be kind.\n\nx", with("sections", "tone.deep", { template = "x" }):render().text)
  end)

  it("change what the model is told of a tool, and nothing else of it", function()
    local prompt = with("tools", "find", { description = "Sucht \u{fc}berall." })
    local found = prompt:tools()[1]
    assert.equal("Sucht \u{fc}berall.", found.spec.description)
    assert.same(tool("find").spec.parameters, found.spec.parameters)
    local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "find" } } }, "ok" },
      tools = { found }, "x" })
    assert.equal("OK", reply.messages[3].content)
  end)

  it("have hashes that change with what they guard, and with nothing else", function()
    local h = declare():hashes()
    assert.same(h, declare():hashes())
    assert.same(h, with("sections", "tone", { template = "x" }):hashes())
    assert.same(h, with("tools", "find", { description = "x" }):hashes())
    local function of(def)
      return ah.prompt({ ah.section(def) }):hashes().sections.a
    end
    local seen = {}
    for _, def in ipairs { { key = "a" }, { key = "a", template = "t" },
      { key = "a", summary = "t" }, { key = "a", template = "t", summary = "t" },
      { key = "a", visibility = "summary", summary = "t" },
      { key = "a", visibility = print, summary = "t" } } do
      local hash = of(def)
      assert.truthy(hash:find("^%x+$") and #hash == 16)
      assert.is_nil(seen[hash])
      seen[hash] = true
    end
    assert.equal(of { key = "a", template = "t" }, of { key = "a", title = "T", template = " t" })
  end)

  it("are not applied where they are stale or unwelcome, and the log says so", function()
    for _, case in ipairs {
      { "the original has changed", { hash = "0000000000000000", template = "x" } },
      { "it has no hash", { template = "x" } },
      { "does not accept overrides", { hash = true, template = "x" },
        "accepts_overrides = false," },
      { "there is no such section", { template = "x" }, "", "tone2" },
    } do
      local said = warnings(([[
        local function declare(o)
          return ah.prompt { ns = "s", key = "p", overrides = o,
            ah.section { key = "tone", %s template = "t" } }
        end
        local fields = ah.json.decode(%q)
        if fields.hash == true then
          fields.hash = declare():hashes().sections.tone
        end
        print(declare { ["s/p"] = { sections = { [%q] = fields } } }:render())
      ]]):format(case[3] or "", ah.json.encode(case[2]), case[4] or "tone"))
      assert.truthy(said:find("%f[%a]t\n"), said)
      assert.truthy(said:find("not applied: .*" .. case[1]), said)
    end
    assert.equal("Be kind.\n\nd",
      with("sections", "tone", { template = "x" }, { section = false }):render().text)
    local kept = with("tools", "find", { description = "x" }, { tool = false }):tools()[1]
    assert.equal("Does find.", kept.spec.description)
    assert.equal("Be kind.\n\nd", declare({ ["other/p"] = { no = 1 } }):render().text)
  end)

  it("are refused where they are wrong", function()
    for _, fields in ipairs { { template = "${nobody}" }, { template = "${" },
      { visibility = "half" }, { templat = "x" }, { template = 1 } } do
      invalid(function() with("sections", "tone", fields) end)
    end
    invalid(function() with("sections", "tone.deep", { visibility = "summary" }) end)
    invalid(function() with("tools", "find", { description = "" }) end)
    for _, wrong in ipairs { { section = {} }, { sections = 1 }, { sections = { tone = 1 } }, 1 } do
      invalid(function() declare { ["shop/support"] = wrong } end)
    end
    invalid(function() ah.prompt { overrides = {}, ah.section { key = "a" } } end)
    raised(function() declare(3) end, "usage")
    raised(function() declare { x = print } end, "usage")
  end)

  it("may stand in a file of JSON or Lua", function()
    local function file(suffix, text)
      local path = os.tmpname()
      os.remove(path)
      local f = assert(io.open(path .. suffix, "w"))
      f:write(text)
      f:close()
      return path .. suffix
    end
    local hash = declare():hashes().sections.tone
    local json = file(".json", ah.json.encode {
      ["shop/support"] = { sections = { tone = { hash = hash, template = "J" } } } })
    local lua = file(".lua", ('return { ["shop/support"] = { sections = { tone = { hash = %q, '
      .. 'template = "L" } } } }'):format(hash))
    assert.equal("J\n\nd", declare(json):render().text)
    assert.equal("L\n\nd", declare(lua):render().text)
    for _, text in ipairs { "return os", "print(1)", "return {", "return 1, 2", "\27Lua",
      "return { f = function() end }" } do
      local bad = file(".lua", text)
      local code = text == "return 1, 2" and "prompt_validation" or "usage"
      raised(function() declare(bad) end, code)
      os.remove(bad)
    end
    local bad = file(".json", "{")
    raised(function() declare(bad) end, "usage")
    raised(function() declare(bad .. "x") end, "usage")
    os.remove(bad)
    os.remove(json)
    os.remove(lua)
  end)
end)
