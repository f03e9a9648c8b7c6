-- Servers of MCP as items of `tools`: in lists of lists, what policies see of their calls, and what
-- a change of their lists does to the requests. And what of our environment they get.
local ah = require "agenthost"
local command = require "support.command"
local mcp = require "support.mcp"

local META = "io.modelcontextprotocol/"

local function own(name)
  return ah.tool { name = name, description = "Ours.", handler = function() return "ours" end }
end

describe("servers of MCP in lists of tools", function()
  after_each(mcp.clear)

  -- Returns the names that a model is offered.
  local function offered(tools, run)
    local seen
    local fields = { tools = tools, model = ah.scripted { function(request)
      seen = {}
      for i, tool in ipairs(request.tools) do
        seen[i] = tool.name
      end
      return "Done."
    end } }
    run(fields)
    return seen
  end

  local function run(fields)
    fields[1] = "Go."
    assert(ah.run(fields))
  end

  it("have their tools behind the script's, in their order", function()
    local one = mcp.server([[return { tools = { tool "b", tool "read" } }]], { name = "one" })
    local two = mcp.server([[return { tools = { tool "a", tool "read" } }]], { name = "two" })
    local tools = { { { one, own "x" }, own "read" }, own "y", { two } }
    local expected = { "x", "read", "y", "b", "one_read", "a", "two_read" }
    assert.are.same(expected, offered(tools, run))
    assert.are.same(expected, offered(tools, function(fields)
      local agent <close> = assert(ah.agent(fields))
      assert(agent:run "Go.")
    end))
    assert.are.equal(one, tools[1][1][1])
  end)

  it("leave groups and names of groups as they are", function()
    local group = ah.tool_group { name = "mcp-spec", tools = { own "g" } }
    local server = mcp.server [[return { tools = { tool "a" } }]]
    assert.are.same({ "g", "a" }, offered({ { group, "mcp-spec" }, { server } }, run))
  end)

  it("are refused in lists that are too deep, as tools are", function()
    local server = mcp.server [[return { tools = { tool "a" } }]]
    local deep = { server }
    for _ = 1, 17 do
      deep = { deep }
    end
    local ok, err = pcall(ah.run, { model = "demo/echo", tools = deep, "Go." })
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("nested lists", 1, true), tostring(err))
    local endless = {}
    endless[1], endless[2], endless[3] = endless, endless, server
    ok, err = pcall(ah.run, { model = "demo/echo", tools = endless, "Go." })
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("nested lists", 1, true), tostring(err))
  end)

  it("are refused in sections and registries", function()
    local server = mcp.server [[return { tools = { tool "a" } }]]
    assert.has_error(function() ah.section { key = "s", tools = { server } } end)
    assert.has_error(function() ah.registry { server } end)
    assert.is_truthy(ah.section { key = "s", tools = assert(server:tools()) })
  end)
end)

describe("a list of tools that is read again", function()
  after_each(mcp.clear)

  it("has the same tools where their definitions are the same", function()
    local server = mcp.server([[
      local n = 0
      return { capabilities = { tools = {} }, on = { ["tools/list"] = function(message, api)
        n = n + 1
        api.reply(message, { ttlMs = 0, tools = api.array { tool "same",
          tool("other", { description = "Version " .. n }) } })
      end } }]], { on_drift = "tell" })
    local one, two = assert(server:tools()), assert(server:tools())
    assert.are.same({ "other", "same" }, { two[1].name, two[2].name })
    assert.is_true(rawequal(one[2], two[2]))
    assert.is_false(rawequal(one[1], two[1]))
    assert.are_not.equal(one[1].version, two[1].version)
  end)
end)

describe("policies on calls of servers of MCP", function()
  after_each(mcp.clear)

  it("tell tools from outside, and by a prefix their server", function()
    local gh = mcp.server([[return { tools = { tool("drop", {
      annotations = { destructiveHint = true, readOnlyHint = false } }) },
      call = { drop = function() return "dropped" end } }]], { prefix = "gh" })
    local seen = {}
    assert(ah.run { tools = { own "gh-own", { gh } }, "Go.", model = ah.scripted {
      { calls = { { name = "gh-own" }, { name = "gh_drop" } } }, "Done." },
      policies = { function(call)
        seen[call.name] = call.annotations
        if call.annotations.untrusted and call.name:find "^gh_" then
          return "deny", "from outside"
        end
      end } })
    assert.are.same({ ["gh-own"] = {}, gh_drop = { untrusted = true, destructive = true,
      read_only = false } }, seen)
  end)
end)

describe("a server's list that changes in mid-run", function()
  after_each(mcp.clear)

  -- Returns the reasons of cache breaks, and the reply.
  local function grow(mode)
    local server = mcp.server [[
      local script = { tools = { tool "grow" } }
      script.call = {
        grow = function(_, _, api)
          script.tools[2] = tool "fresh"
          api.changed()
          return "grown"
        end,
        fresh = function() return "fresh here" end,
      }
      return script]]
    local breaks, seen = {}, {}
    local function note(request)
      seen[#seen + 1] = request.tools
    end
    local reply = assert(ah.run { tools = { server }, "Go.",
      on = { cache_break = function(e) breaks[#breaks + 1] = e.reason end },
      model = ah.scripted { tool_change_mode = mode,
        function(request) note(request) return { calls = { { name = "grow" } } } end,
        function(request) note(request) return { calls = { { name = "fresh" } } } end,
        "Done." } })
    return breaks, reply, seen
  end

  for _, mode in ipairs { "inline", "additional_tools", "search_pair" } do
    it("is called in the next answer, with the beginning unbroken: " .. mode, function()
      local breaks, reply = grow(mode)
      assert.are.equal("fresh here", reply.messages[5].content)
      assert.are.same({ "fresh" }, reply.injected_tools)
      assert.are.same({}, breaks)
    end)
  end

  it("breaks the cache once where tools are appended to the list", function()
    local breaks, reply, seen = grow "append"
    assert.are.equal("fresh here", reply.messages[5].content)
    assert.are.same({ "tools_changed" }, breaks)
    assert.are.same({ "grow", "fresh" }, { seen[2][1].name, seen[2][2].name })
  end)
end)

describe("our environment", function()
  after_each(function()
    mcp.clear()
    command.tidy()
  end)

  it("reaches no server: keys, and variables of files", function()
    local fields, log = mcp.fields [[return { tools = { tool "a" } }]]
    local keys = command.temp "DEEPSEEK_API_KEY=from-file\nMY_TOKEN=from-file\n"
    local script = command.temp(([[
      local ah = require "agenthost"
      assert(os.getenv "MY_TOKEN" == "from-file" and os.getenv "OPENAI_API_KEY" == "sk-secret-1")
      local server <close> = ah.mcp { command = "lua5.4", args = { %q, %q, %q } }
      assert(ah.run { model = "demo/echo", api_key = "sk-secret-2", tools = { server }, "Go." })
    ]]):format(table.unpack(fields.args)))
    local result = command.shell(("OPENAI_API_KEY=sk-secret-1 ANTHROPIC_API_KEY=sk-secret-3 "
      .. "AGENTHOST_STORE=/nowhere \"$A\" --env-file %s %s"):format(command.quote(keys),
      command.quote(script)))
    assert.are.equal(0, result.code, result.err)
    local names = table.concat(log()[1].env, " ")
    assert.is_truthy(names:find("PATH", 1, true))
    for _, name in ipairs { "KEY", "TOKEN", "AGENTHOST" } do
      assert.is_nil(names:find(name, 1, true), names)
    end
    assert.is_nil(ah.json.encode(log()):find("sk-secret", 1, true))
  end)

  it("is in no message, either", function()
    local server, log = mcp.server [[return { tools = { tool "a" }, call = { a = function()
      return "A" end } }]]
    assert(ah.run { model = ah.scripted { { calls = { { name = "a" } } }, "Done." },
      tools = { server }, "Go." })
    local meta = mcp.last(log, "tools/call").params._meta
    local names = {}
    for name in pairs(meta) do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.are.same({ META .. "clientCapabilities", META .. "clientInfo",
      META .. "protocolVersion", "progressToken" }, names)
  end)
end)
