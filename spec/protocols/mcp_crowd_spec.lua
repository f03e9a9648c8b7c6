-- Many clients of one server of MCP over HTTP at once: all are served, and one that is slow or
-- waits holds up no other; nothing of one client is in what another one gets.
local ah = require "agenthost"
local client = require "support.mcp_client"

local Server = ah._module "agenthost.protocols.mcp.server"
local serve_http = ah._module "agenthost.protocols.mcp.server.http"

local LONG = 60 -- seconds after which a server does not answer any more
local HEADERS = { Authorization = "Bearer secret", ["Content-Type"] = "application/json",
  Accept = "application/json, text/event-stream" }

describe("a server of MCP with many clients", function()
  local task, url, stored

  local function served()
    local Account = ah.entity { name = "Account", fields = { "id" },
      find = function(id) return stored[id] end }
    Account:tool { name = "add", description = "Adds.", params = { n = "integer" },
      handler = function(self, args)
        self.sum = (self.sum or 0) + args.n
        return ("%s has %d"):format(self.id, self.sum)
      end }
    local open = ah.tool { name = "open", description = "Opens.", params = { id = "string" },
      handler = function(args)
        ah.sleep(0.001)
        return Account(stored[args.id] or { id = args.id })
      end }
    local wait = ah.tool { name = "wait", description = "Waits.",
      handler = function() ah.sleep(600) end }
    local agent = assert(ah.agent { model = "demo/echo", tools = { open, wait }, discover = true,
      setup = function(conversation)
        local n = 0
        conversation:add_tools(ah.tool { name = "count", description = "Counts.",
          handler = function()
            n = n + 1
            ah.sleep(0.001)
            return tostring(n)
          end })
      end })
    return { agent = agent, resources = { { uri = "big:1", name = "big",
      read = function() return ("x"):rep(4 << 20) end } } }
  end

  before_each(function()
    stored = {}
    local ready = ah.channel(1)
    task = ah.spawn(function()
      assert(serve_http(function(begin)
        return Server.new(served(), { name = "spec", version = "1", start = begin, private = true })
      end, { listen = "127.0.0.1:0", token = "secret", ready = function(at) ready:send(at) end }))
    end)
    url = assert(ah.with_timeout(LONG, function() return ready:receive() end))
  end)

  after_each(function()
    task:cancel()
  end)

  local function headers_with(more)
    local headers = {}
    for _, list in ipairs { HEADERS, more } do
      for name, value in pairs(list) do
        headers[name] = value
      end
    end
    return headers
  end

  -- Sends a request of revision 2026-07-28; `stream` as of ah.http. Returns the response.
  local function send(method, params, stream)
    params._meta = client.meta {}
    return assert(ah.http { url = url, timeout = not stream and LONG or nil, stream = stream,
      headers = headers_with { ["MCP-Protocol-Version"] = "2026-07-28", ["Mcp-Method"] = method,
        ["Mcp-Name"] = params.name or params.uri },
      body = ah.json.encode { jsonrpc = "2.0", id = 1, method = method, params = params } })
  end

  local function call(name, arguments)
    local m = ah.json.decode(send("tools/call", { name = name, arguments = arguments }).body)
    return m.result.content[1].text
  end

  -- Returns a function that makes requests of a session: it returns the result.
  local function session()
    local at
    local function ask(method, params)
      local r = assert(ah.http { url = url, timeout = LONG, headers = headers_with(at or {}),
        body = ah.json.encode { jsonrpc = "2.0", id = 1, method = method, params = params } })
      local id = r.headers["mcp-session-id"]
      at = at or { ["Mcp-Session-Id"] = type(id) == "table" and id[1] or id }
      local text = r.body:match "data: ([^\n]*\"result\"[^\n]*)" or r.body
      return assert(ah.json.decode(text)).result
    end
    ask("initialize", { protocolVersion = "2025-11-25", capabilities = ah.object {},
      clientInfo = { name = "spec", version = "1" } })
    return ask
  end

  -- Calls f(1) to f(n) at the same time, and waits for all.
  local function together(n, f)
    local tasks = {}
    for i = 1, n do
      tasks[i] = ah.spawn(f, i)
    end
    for _, one in ipairs(tasks) do
      one:await()
    end
  end

  it("serves 200 at once, while one waits, one reads nothing, and many listen", function()
    local waiting = ah.spawn(send, "tools/call", { name = "wait" })
    local slow <close> = send("resources/read", { uri = "big:1" }, "bytes")
    local listening = {}
    for i = 1, 150 do
      listening[i] = send("subscriptions/listen", { notifications = ah.object {} }, "sse")
      assert.are.equal(200, listening[i].status)
    end
    together(200, function()
      assert.are.equal("1", call "count")
    end)
    waiting:cancel()
    for _, one in ipairs(listening) do
      one:close()
    end
    assert.are.equal(200, slow.status)
  end)

  it("gives each session a conversation of its own", function()
    local texts = {}
    together(20, function(i)
      local ask, id = session(), "a" .. i
      ask("tools/call", { name = "open", arguments = { id = id } })
      local names = {}
      for _, one in ipairs(ask("tools/list", ah.object {}).tools) do
        names[#names + 1] = one.name
      end
      assert.are.equal(("account_%s_add count open wait"):format(id), table.concat(names, " "))
      for n = 1, 2 do
        assert.are.equal(tostring(n), ask("tools/call", { name = "count" }).content[1].text)
        texts[i] = ask("tools/call", { name = "account_" .. id .. "_add",
          arguments = { n = i } }).content[1].text
      end
    end)
    for i, text in ipairs(texts) do
      assert.are.equal(("a%d has %d"):format(i, 2 * i), text)
    end
    assert.are.equal(20, #texts)
  end)

  it("keeps instances of entities apart where there is no session", function()
    for i = 1, 10 do
      stored["b" .. i] = { id = "b" .. i }
    end
    together(20, function(i)
      local id = "b" .. (i + 1) // 2
      assert.is_truthy(call("account_add", { id = id, n = 1 }):find("^" .. id .. " has %d$"))
    end)
    for i = 1, 10 do
      assert.are.equal(2, stored["b" .. i].sum)
    end
  end)
end)
