-- README.md and its example: each marked block runs and prints the output that it shows, the
-- commands are those of .ci/run, and the links are valid.
local markdown = require "support.markdown"
local server = require "support.server"

local README = markdown.read("README.md")
local BLOCKS = markdown.blocks("README.md")

local function block(kind, name)
  for _, b in ipairs(BLOCKS) do
    if b.kind == kind and b.name == name then
      return b
    end
  end
  error(("README.md has no block %s: %s"):format(kind, name))
end

-- Returns the packages that a command installs, sorted.
local function packages(command)
  local list = {}
  local words = command:gsub("\\\n", " "):match("%-%-no%-install%-recommends([^&]+)")
  for word in words:gmatch("%S+") do
    list[#list + 1] = word
  end
  table.sort(list)
  return list
end

-- Returns the paths to which a page links, without headings.
local function links(page)
  local paths = {}
  for target in markdown.prose(page):gmatch("%]%(([^)#:]+%.md)[^):]*%)") do
    local path = page:gsub("[^/]*$", "") .. target
    while path:find "[^/]+/%.%./" do
      path = path:gsub("[^/]+/%.%./", "", 1)
    end
    paths[path] = true
  end
  return paths
end

-- The questions of newcomers, and a phrase of the page that answers each.
local QUESTIONS = {
  { "what do I install on my system", "docs/install.md", "libcurl4-openssl-dev" },
  { "which models are there, and whence comes the key", "docs/reference/models.md", "_API_KEY" },
  { "can I use a local model", "docs/how-to/local-model.md", "Ollama" },
  { "what does it cost, and how do I limit that", "docs/how-to/money.md", "budget" },
  { "how do I see what went wrong", "docs/how-to/errors.md", "agenthost check" },
  { "how does a conversation last until tomorrow", "docs/how-to/save.md", ":save" },
  { "my program was killed, what is left", "docs/how-to/survive.md", "process killed" },
  { "what did it do", "docs/how-to/take-back.md", "rewind prices" },
  { "how do I delete what somebody said", "docs/how-to/keep.md", "delete ann" },
  { "the person answers tomorrow", "docs/how-to/approve.md", "agenthost respond" },
  { "must the payment not happen twice", "docs/how-to/durable-tool.md", "idempotency_key" },
  { "how do I have several conversations", "docs/how-to/conversations.md", ":open" },
  { "how does a person approve a call", "docs/how-to/approve.md", "approve" },
  { "what if the context is full", "docs/how-to/full-context.md", "context_full" },
  { "may I let it run commands", "docs/how-to/commands.md", "sandbox" },
  { "how do I test a script without a key", "docs/how-to/test.md", "testing.model" },
  { "how do I embed it in my program", "docs/reference/embedding.md", "ah_open" },
  { "what does this error code mean", "docs/reference/errors.md", "deadline_exceeded" },
  { "what does this word mean", "docs/terms.md", "transaction" },
}

local function shell(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read("a")
end

markdown.describe("README.md")

describe("README.md", function()
  it("is short, and soon shows a script and its output", function()
    local first = block("script", "moons.lua")
    local _, lines = first.text:gsub("\n", "")
    local _, before = README:sub(1, README:find("## A script", 1, true)):gsub("\n", "")
    assert.is_true(lines <= 20, lines .. " lines of script")
    assert.is_true(before <= 45, before .. " lines before the script")
    assert.truthy(first.output)
    local _, all = README:gsub("\n", "")
    assert.is_true(all <= 110, all .. " lines")
  end)

  it("has the two commands that .ci/run runs, and they install what is needed once", function()
    local build, test = block("command", "build").text, block("command", "test").text
    assert.equal(build .. test, shell(".ci/run --commands"))
    local seen = {}
    for _, package in ipairs(packages(build)) do
      seen[package] = true
    end
    for _, package in ipairs(packages(test)) do
      assert.is_nil(seen[package], package)
    end
  end)

  it("names each package of the build that the build asks pkg-config for", function()
    local named = table.concat(packages(block("command", "build").text), " ")
    for _, library in ipairs { "lua5.4", "libcurl", "libcjson", "libpcre2",
      "libmicrohttpd", "libyaml", "libsqlite3" } do
      assert.truthy(named:find(library, 1, true), library)
    end
  end)

  it("is linked to files and headings that exist, and so are the pages of docs", function()
    local pages <close> = assert(io.popen "ls *.md docs/*.md docs/*/*.md")

    for page in pages:lines() do
      for target, place in markdown.prose(page):gmatch("%]%(([^)#:]*)#?([^):]*)%)") do
        local path = target == "" and page or page:gsub("[^/]*$", "") .. target
        assert(io.open(path), ("%s links to %s"):format(page, target)):close()
        assert(place == "" or markdown.anchors(path)[place],
          ("%s links to %s#%s"):format(page, target, place))
      end
    end
  end)

  it("leads to the answers of newcomers' questions with two clicks at most", function()
    local first, near = links("README.md"), {}
    for page in pairs(first) do
      near[page] = true
      for second in pairs(links(page)) do
        near[second] = true
      end
    end
    for _, question in ipairs(QUESTIONS) do
      local words, page, phrase = table.unpack(question)
      assert.is_true(near[page], words)
      assert.truthy(markdown.read(page):find(phrase, 1, true), words)
    end
  end)

  it("tells the exit codes of the command's help", function()
    local help = shell((os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost --help")
    local told = markdown.read("docs/reference/command.md")
    told = told:match("The exit code is(.-)%[the man page%]")
    for line in help:match("Exit codes:\n(.-)\n\n"):gmatch("[^\n]+") do
      for code in line:match("^%s+([%d, ]+)"):gmatch("%d+") do
        assert.truthy(told:find("%f[%d]" .. code .. "%f[%D]"), code)
      end
    end
  end)
end)

describe("examples/quickstart.lua", function()
  local folder
  local ANSWER = "The largest moon of Saturn is Titan, with a radius of 2575 km. "
    .. "It was discovered in 1655 by Christiaan Huygens.\n"

  setup(function() folder = markdown.folder {} end)
  teardown(function() folder:close() end)

  it("answers from any folder", function()
    local command = 'AH=$PWD/agenthost; cd examples && "$AH" quickstart.lua && cd / && "$AH" %s'
    local r = folder:run(command:format(folder.path .. "/examples/quickstart.lua"))
    assert.equal(0, r.code)
    assert.equal(ANSWER .. ANSWER, r.out)
  end)

  it("takes the question as its argument", function()
    local r = folder:run('./agenthost examples/quickstart.lua "The largest moon of Mars?"')
    assert.truthy(r.out:find("Phobos, with a radius of 11 km. It was discovered in 1877", 1, true))
  end)

  it("answers what its data cannot tell", function()
    local run = "./agenthost examples/quickstart.lua "
    assert.truthy(folder:run(run .. '"The largest moon of Earth?"').out:find("is Moon", 1, true))
    assert.truthy(folder:run(run .. '"The largest moon of Venus?"').out:find("^No moons of Venus"))
    assert.truthy(folder:run(run .. "Hello").out:find("name a model", 1, true))
  end)

  it("asks the model of AGENTHOST_MODEL, and that of --model before it", function()
    local echo = folder:run("AGENTHOST_MODEL=demo/echo ./agenthost examples/quickstart.lua Hello")
    assert.equal("Hello\n", echo.out)
    assert.equal("model demo/echo\n", echo.err)
    local tools = folder:run("AGENTHOST_MODEL=demo/echo "
      .. "./agenthost --model demo/quickstart examples/quickstart.lua")
    assert.equal(ANSWER, tools.out)
    assert.truthy(tools.err:find("^model demo/quickstart\n"))
  end)

  it("asks a server that speaks as OpenAI's does", function()
    local s <close> = server.start { responses = {
      server.chat_call("list_moons", '{"planet":"Mars"}', "c1"),
      server.chat_call("moon_facts", '{"name":"Deimos"}', "c2"), server.chat_text("Done.") } }
    local r = folder:run(("OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=key-of-a-spec "
      .. "./agenthost --model openai/gpt-4o examples/quickstart.lua"):format(s.url))
    assert.same({ 0, "Done.\n" }, { r.code, r.out })
    local last = s:requests()[3]:json().messages
    assert.truthy(last[#last].content:find('"discoverer":"Asaph Hall"', 1, true))
  end)

  it("says what is missing where there is no key", function()
    local r = folder:run("./agenthost --model openai/gpt-4o examples/quickstart.lua")
    assert.equal(3, r.code)
    assert.truthy(r.err:find("OPENAI_API_KEY", 1, true))
  end)
end)
