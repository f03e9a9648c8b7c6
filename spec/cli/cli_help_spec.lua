-- agenthost help WORD: commands, pages of the reference, their parts, rows of their tables.
local command = require "support.command"

local agenthost, has, has_not = command.agenthost, command.has, command.has_not

local function help(...)
  local r = agenthost("help", ...)
  assert.same({ 0, "" }, { r.code, r.err })
  return r.out
end

local function page(name)
  local f <close> = assert(io.open(("docs/reference/%s.md"):format(name)))
  return f:read "a"
end

after_each(command.tidy)

describe("agenthost help", function()
  it("shows every page of the reference whole, whatever way it is named", function()
    for path in io.popen("ls docs/reference"):lines() do
      local name = path:match "^([%w_]+)%.md$"
      local out = help("reference/" .. name)
      for title in page(name):gsub("\n```.-\n```", ""):gmatch "\n##+ ([^\n]+)" do
        has(out, "\n" .. title:gsub("`", "") .. "\n")
      end
      assert.equal(out, help("reference/" .. path))
    end
    assert.equal(help "reference/run", help "run")
    assert.equal(help "reference/run", help "RUN")
  end)

  it("shows each code of a page as it is, and prose in 80 columns", function()
    local out = help "yaml"
    has_not(out, "](")
    has_not(out, "<!--")
    has_not(out, "```")
    for line in page("yaml"):match("\n```lua\n(.-)\n```"):gmatch "[^\n]+" do
      has(out, "\n    " .. line .. "\n")
    end
    for line in out:gmatch "[^\n]+" do
      assert.is_true(utf8.len(line) <= 80 or line:find "^    " ~= nil, line)
    end
  end)

  it("shows the part of a page with this title, and what is below it", function()
    local out = help "ah.run"
    has(out, "[run]\n\nah.run\n------\n")
    has(out, "\n  timeout  ")
    has_not(out, "\n## ")
    assert.is_true(#out < #help "run")
  end)

  it("shows the rows of tables that name a field, a method, an event or a code", function()
    has(help "context_full", "[errors")
    has(help "fs:grep", "[filesystem: Methods]\n  grep")
    has(help "agent:run", "[agent: ")
    local out = help "max_iterations"
    has(out, "  max_iterations  ")
    has(out, "default 20")
  end)

  it("lists the pages with what each is about", function()
    local out = help "reference"
    for path in io.popen("ls docs/reference"):lines() do
      assert.truthy(out:find("\n  " .. path:match "^[%w_]+" .. " +%S"), path)
    end
  end)

  it("of a command that has a page names the page", function()
    has(help "models", "\nagenthost help reference/models shows the page with more.\n")
    has(help "reference/models", "Models and where they are\n=====")
    has_not(help "check", "shows the page")
  end)

  it("says what is near of a word that it does not know", function()
    local r = agenthost("help", "max_iteratons")
    assert.same({ 2, "" }, { r.code, r.out })
    has(r.err, "no command, page, function, field or term 'max_iteratons' "
      .. "(did you mean 'max_iterations'?)\nagenthost help reference lists the pages.")
    r = agenthost("help", ("x\27[2J%"):rep(10000))
    assert.equal(2, r.code)
    has_not(r.err, "\27")
    assert.is_true(#r.err < 1000)
  end)

  it("needs no files: the pages are in the binary", function()
    local r = command.shell [[cd / && "$A" help terms]]
    assert.equal(0, r.code)
    has(r.out, "Terms\n=====\n")
  end)

  it("takes titles of several words", function()
    assert.equal(help("Visibility", "overrides"), help "visibility overrides")
  end)
end)
