-- The server of MCP over lines, with a scripted client: lists, calls through the gate, questions,
-- sessions, and what hostile clients get.
local ah = require "agenthost"
local client = require "support.mcp_client"

local META = client.META

local add = ah.tool { name = "add", description = "Adds.",
  params = { a = "integer", b = "integer" },
  result = { type = "object", properties = { sum = { type = "integer" } }, required = { "sum" } },
  annotations = { read_only = true },
  handler = function(args) return { sum = args.a + args.b } end }
local fail = ah.tool { name = "fail", description = "Fails.",
  handler = function() return nil, "no luck" end }

local function agent(fields)
  fields.model = "demo/echo"
  return assert(ah.agent(fields))
end

local function texts(result)
  local list = {}
  for i, one in ipairs(result.content) do
    list[i] = one.text
  end
  return table.concat(list, "|")
end

local function names(result)
  local list = {}
  for i, tool in ipairs(result.tools) do
    list[i] = tool.name
  end
  return table.concat(list, " ")
end

describe("a server of MCP", function()
  describe("for clients of revision 2026-07-28", function()
    it("says what it speaks", function()
      local c <close> = client.start(agent { tools = { add } })
      local result = c:ask("server/discover").result
      assert.are.equal("complete", result.resultType)
      assert.are.same({ "2026-07-28", "2025-11-25", "2025-06-18" }, result.supportedVersions)
      assert.are.same({ tools = {} }, result.capabilities)
      assert.are.same({ name = "spec", version = "1" }, result._meta[META .. "serverInfo"])
      assert.are.equal("public", result.cacheScope)
      assert.are.equal("integer", math.type(result.ttlMs))
    end)

    it("lists the tools, sorted, with their schemas", function()
      local c <close> = client.start(agent { tools = { fail, add } })
      local result = c:ask("tools/list").result
      assert.are.same({
        { name = "add", description = "Adds.", annotations = { readOnlyHint = true },
          inputSchema = add.params, outputSchema = add.result },
        { name = "fail", description = "Fails.", inputSchema = fail.params },
      }, result.tools)
      assert.are.equal(ah.json.encode(result), ah.json.encode(c:ask("tools/list").result))
      assert.are.equal(-32602, c:ask("tools/list", { cursor = "x" }).error.code)
    end)

    it("lists the tools of a registry", function()
      local c <close> = client.start(ah.registry { fail, add })
      assert.are.equal("add fail", names(c:ask("tools/list").result))
      assert.are.same({ sum = 3 }, c:call("add", { a = 1, b = 2 }).structuredContent)
    end)

    it("calls a tool and returns text and structured content", function()
      local c <close> = client.start(agent { tools = { add, fail } })
      local result = c:call("add", { a = 1, b = 2 })
      assert.are.same({ { type = "text", text = '{"sum":3}' } }, result.content)
      assert.are.same({ sum = 3 }, result.structuredContent)
      assert.is_nil(result.isError)
      assert.are.equal("complete", result.resultType)
    end)

    it("returns failures and refused arguments as results", function()
      local c <close> = client.start(agent { tools = { add, fail } })
      local result = c:call("fail")
      assert.is_true(result.isError)
      assert.are.equal("no luck", texts(result))
      result = c:call("add", { a = 1 })
      assert.is_true(result.isError)
      assert.are.equal("Tool validation failed: /b: is required", texts(result))
    end)

    it("returns images and their addresses", function()
      local gif = "GIF89a\1\0\1\0\x80\0\0\xff\0\0\0\0\0!\xf9\4\0\0\0\0\0,"
        .. "\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
      local draw = ah.tool { name = "draw", description = "Draws.", handler = function()
        return { "a dot", ah.image { data = gif }, ah.image { url = "https://a.example/b.png" } }
      end }
      local c <close> = client.start(agent { tools = { draw } })
      assert.are.same({ { type = "text", text = "a dot" },
        { type = "image", mimeType = "image/gif", data = ah.base64.encode(gif) },
        { type = "resource_link", uri = "https://a.example/b.png", name = "b.png" } },
        c:call("draw").content)
    end)

    it("answers wrong requests by errors", function()
      local c <close> = client.start(agent { tools = { add } })
      local function code(method, params)
        return c:ask(method, params).error.code
      end
      assert.are.equal(-32601, code "tools/none")
      assert.are.equal(-32602, code("tools/call", { name = "none" }))
      assert.are.equal(-32602, code("tools/call", { name = 5 }))
      assert.are.equal(-32602, code("tools/call", { name = "add", arguments = ah.array { 1 } }))
      assert.are.equal(-32602, code("tools/list", { _meta = ah.object {} }))
      assert.are.equal(-32602, code("tools/list", { _meta = { [META .. "protocolVersion"] =
        "2026-07-28" } }))
      local m = c:ask("tools/list", { _meta = { [META .. "protocolVersion"] = "1999-01-01" } })
      assert.are.equal(-32022, m.error.code)
      assert.are.same({ "2026-07-28", "2025-11-25", "2025-06-18" }, m.error.data.supported)
      assert.are.equal("1999-01-01", m.error.data.requested)
    end)

    it("gives each call a conversation, with setup", function()
      local n = 0
      local c <close> = client.start(agent { tools = { add }, setup = function(conversation)
        n = n + 1
        local mine, count = n, 0
        conversation:add_tools(ah.tool { name = "count", description = "Counts.",
          handler = function() count = count + 1 return ("%d of %d"):format(count, mine) end })
      end })
      assert.are.equal("add count", names(c:ask("tools/list").result))
      assert.are.equal("1 of 2", texts(c:call "count"))
      assert.are.equal("1 of 3", texts(c:call "count"))
    end)

    it("makes several calls at once, and answers the first that ends", function()
      local gate = ah.channel()
      local wait = ah.tool { name = "wait", description = "Waits.",
        handler = function() return gate:receive() end }
      local go = ah.tool { name = "go", description = "Goes.",
        handler = function() gate:send "went" return "sent" end }
      local c <close> = client.start(agent { tools = { wait, go } })
      local first = c:request("tools/call", { name = "wait" })
      local second = c:request("tools/call", { name = "go" })
      local answers = { c:next(), c:next() }
      table.sort(answers, function(a, b) return a.id < b.id end)
      assert.are.equal("went", texts(answers[1].result))
      assert.are.equal("sent", texts(answers[2].result))
      assert.are.same({ first, second }, { answers[1].id, answers[2].id })
    end)

    it("reports progress to a client with a token, in growing numbers", function()
      local work = ah.tool { name = "work", description = "Works.", handler = function(_, ctx)
        ctx:progress(0.5, "half")
        ah.sleep(0.1)
        ctx:progress(0.5, "still half")
        return "done"
      end }
      local c <close> = client.start(agent { tools = { work } })
      c:call "work"
      assert.are.same({}, c.before)
      c:call("work", nil, { _meta = client.meta({}, { progressToken = "t" }) })
      assert.are.equal(2, #c.before)
      local one, two = c.before[1].params, c.before[2].params
      assert.are.same({ progressToken = "t", progress = 0.5, total = 1, message = "half" }, one)
      assert.is_true(two.progress > one.progress)
      assert.are.equal("still half", two.message)
    end)

    it("cancels a call, and answers nothing", function()
      local began, ended = ah.channel(1), ah.channel(1)
      local wait = ah.tool { name = "wait", description = "Waits.", handler = function()
        local _ <close> = setmetatable({}, { __close = function() ended:close() end })
        began:close()
        ah.sleep(600)
      end }
      local c <close> = client.start(agent { tools = { wait, add } })
      local id = c:request("tools/call", { name = "wait" })
      began:receive()
      c:send { method = "notifications/cancelled", params = { requestId = id } }
      ended:receive()
      c:call("add", { a = 1, b = 2 })
      assert.are.same({}, c.before)
    end)

    it("waits for the result of a tool in the background", function()
      local began = ah.channel(1)
      local late = ah.tool { name = "late", description = "Late.", background = true,
        params = { seconds = "number" }, handler = function(args)
          began:send(true)
          ah.sleep(args.seconds)
          return "at last"
        end }
      local c <close> = client.start(agent { tools = { late, add } })
      assert.are.equal("at last", texts(c:call("late", { seconds = 0.01 })))
      began:receive()
      local id = c:request("tools/call", { name = "late", arguments = { seconds = 600 } })
      began:receive()
      c:send { method = "notifications/cancelled", params = { requestId = id } }
      c:call("add", { a = 1, b = 2 })
      assert.are.same({}, c.before)
    end)

    it("keeps a stream of notifications open until it is cancelled", function()
      local c <close> = client.start(agent { tools = { add } })
      local id = c:request("subscriptions/listen", { notifications = { toolsListChanged = true } })
      assert.are.same({ jsonrpc = "2.0", method = "notifications/subscriptions/acknowledged",
        params = { _meta = { [META .. "subscriptionId"] = id }, notifications = {} } }, c:next())
      c:send { method = "notifications/cancelled", params = { requestId = id } }
      c:ask "tools/list"
      assert.are.same({}, c.before)
    end)

    it("lists what the prompt says as resources", function()
      local c <close> = client.start(agent { tools = { add }, params = { who = "Ann" },
        ah.section { title = "Guidance", params = { who = "string" }, template = "Serve ${who}." },
        ah.section { key = "style", template = "Be brief." } })
      assert.are.same({}, c:ask("server/discover").result.capabilities.resources)
      local result = c:ask("resources/list").result
      assert.are.equal(3, #result.resources)
      assert.are.same({ uri = "agenthost://prompt/guidance", name = "guidance", title = "Guidance",
        mimeType = "text/markdown" }, result.resources[2])
      local function read(uri)
        local m = c:ask("resources/read", { uri = uri })
        return m.result and m.result.contents[1].text or m.error.code
      end
      assert.are.equal("## Guidance\n\nServe Ann.", read "agenthost://prompt/guidance")
      assert.are.equal("Be brief.", read "agenthost://prompt/style")
      assert.are.equal("## Guidance\n\nServe Ann.\n\nBe brief.", read "agenthost://prompt")
      assert.are.equal(-32602, read "agenthost://prompt/none")
      assert.are.same({}, c:ask("resources/templates/list").result.resourceTemplates)
    end)
  end)

  describe("passes the gate:", function()
    it("policies deny and rewrite", function()
      local c <close> = client.start(agent { tools = { add, fail }, policies = { function(call)
        if call.name == "fail" then return "deny", "not today" end
        if call.arguments.a == 0 then return "rewrite", { a = 7, b = call.arguments.b } end
      end } })
      local result = c:call "fail"
      assert.is_true(result.isError)
      assert.are.equal("Tool 'fail' was not run: not today", texts(result))
      assert.are.same({ sum = 9 }, c:call("add", { a = 0, b = 2 }).structuredContent)
    end)

    it("what a policy removes from a result is in no content", function()
      local c <close> = client.start(agent { tools = { add }, policies = { {
        after = function() return "redact", { "/sum" } end } } })
      local result = c:call("add", { a = 1, b = 2 })
      assert.are.equal('{"sum":"[redacted]"}', texts(result))
      assert.is_nil(result.structuredContent)
    end)

    it("budgets hold", function()
      local c <close> = client.start(agent { tools = { add },
        budget = ah.budget { tool_calls = 1 } })
      assert.is_nil(c:call("add", { a = 1, b = 2 }).isError)
      assert.is_true(c:call("add", { a = 1, b = 2 }).isError)
    end)

    it("a failed call takes back what it changed", function()
      local fs = ah.filesystem { files = { ["a.txt"] = "old" } }
      local write = ah.tool { name = "write", description = "Writes.",
        params = { fails = "boolean" },
        handler = function(args, ctx)
          ctx.filesystem:write("a.txt", "new")
          if args.fails then return nil, "failed" end
          return "written"
        end }
      local c <close> = client.start(agent { tools = { write }, resources = { filesystem = fs } })
      assert.is_true(c:call("write", { fails = true }).isError)
      assert.are.equal("old", (fs:read "a.txt"))
      c:call("write", { fails = false })
      assert.are.equal("new", (fs:read "a.txt"))
    end)

    it("neither the checks nor the schema of answers concern a call", function()
      local c <close> = client.start(agent { tools = { add }, output = { type = "object" },
        checks = { function() error "never called" end },
        guards = { output = function() error "never called" end } })
      assert.are.same({ sum = 3 }, c:call("add", { a = 1, b = 2 }).structuredContent)
    end)
  end)

  describe("offers methods of entities", function()
    local stored, Customer
    before_each(function()
      stored = { ["c-1"] = { id = "c-1", spent = 5 } }
      Customer = ah.entity { name = "Customer", fields = { "id", "spent" },
        find = function(id) return stored[id] end }
      Customer:tool { name = "spend", description = "Spends.", params = { euros = "integer" },
        handler = function(self, args)
          self.spent = self.spent + args.euros
          if args.euros > 100 then return nil, "too much" end
          return self.spent
        end }
    end)

    local function search()
      return ah.tool { name = "search", description = "Searches.", params = { id = "string" },
        handler = function(args) return Customer(stored[args.id]) end }
    end

    it("by their class and the id, in the fixed list", function()
      local c <close> = client.start(agent { tools = { search() }, discover = true })
      local list = c:ask("tools/list").result.tools
      assert.are.equal("customer_spend", list[1].name)
      assert.are.same({ "id", "euros" }, list[1].inputSchema.required)
      assert.are.equal("12", texts(c:call("customer_spend", { id = "c-1", euros = 7 })))
      assert.are.equal("13", texts(c:call("customer_spend", { id = "c-1", euros = 1 })))
      local result = c:call("customer_spend", { id = "c-2", euros = 1 })
      assert.is_true(result.isError)
      assert.are.equal("there is no Customer 'c-2'", texts(result))
    end)

    it("which is restored if the method fails", function()
      local c <close> = client.start(agent { tools = { search() }, discover = true })
      assert.is_true(c:call("customer_spend", { id = "c-1", euros = 101 }).isError)
      assert.are.equal(5, stored["c-1"].spent)
    end)

    it("by their class and the id, for all clients of a server with a fixed list", function()
      local c <close> = client.start(agent { tools = { search() }, discover = true }, false, true)
      c:initialize "2025-11-25"
      c:call("search", { id = "c-1" })
      assert.are.same({}, c.before)
      assert.are.equal("customer_spend search", names(c:ask("tools/list").result))
      assert.are.equal("6", texts(c:call("customer_spend", { id = "c-1", euros = 1 })))
    end)

    it("as tools that come in a session", function()
      local c <close> = client.start(agent { tools = { search() }, discover = true }, false)
      c:initialize "2025-11-25"
      assert.are.equal("search", names(c:ask("tools/list").result))
      c:call("search", { id = "c-1" })
      assert.are.equal("notifications/tools/list_changed", c.before[1].method)
      assert.are.equal("customer_c1_spend search", names(c:ask("tools/list").result))
      assert.are.equal("6", texts(c:call("customer_c1_spend", { euros = 1 })))
      assert.are.same({}, c.before)
    end)
  end)

  describe("asks", function()
    local function order(options)
      options.question = "How many?"
      return ah.tool { name = "order", description = "Orders.", params = { what = "string?" },
        handler = function(args, ctx)
          local n, err = ctx:ask(options)
          if n == nil then return nil, err end
          return ("%s %s"):format(ah.json.encode(n), args.what or "cups")
        end }
    end
    local CUPS = { schema = { type = "integer", minimum = 1 } }
    local FORMS = { elicitation = ah.object {} }

    local function accept(content)
      return { action = "accept", content = content }
    end

    local function retry(c, first, answer, more)
      local params = { requestState = first.requestState,
        inputResponses = { [(next(first.inputRequests))] = answer } }
      for key, value in pairs(more or {}) do
        params[key] = value
      end
      return c:call("order", params.arguments, params)
    end

    it("by a result that needs input, and goes on with the answer", function()
      local c <close> = client.start(agent { tools = { order(CUPS) } }, FORMS)
      local first = c:call "order"
      assert.are.equal("input_required", first.resultType)
      assert.are.same({ ask_1 = { method = "elicitation/create", params = { mode = "form",
        message = "How many?", requestedSchema = { type = "object", required = { "response" },
          properties = { response = { type = "integer", minimum = 1 } } } } } },
        first.inputRequests)
      assert.are.equal("3 cups", texts(retry(c, first, accept { response = 3 })))
    end)

    it("again if an answer does not fit, or is missing", function()
      local c <close> = client.start(agent { tools = { order(CUPS) } }, FORMS)
      local second = retry(c, c:call "order", accept { response = 0 })
      assert.are.equal("input_required", second.resultType)
      local _, one = next(second.inputRequests)
      assert.is_truthy(one.params.message:find("^Not accepted: .*How many%?$"))
      local third = c:call("order", nil, { requestState = second.requestState })
      assert.are.same(second.inputRequests, third.inputRequests)
      assert.are.equal("2 cups", texts(retry(c, third, accept { response = 2 })))
    end)

    it("and refuses a state that is forged, of another call, or used", function()
      local c <close> = client.start(agent { tools = { order(CUPS) } }, FORMS)
      local first = c:call "order"
      local function refused(state, arguments)
        local _, err = c:call("order", arguments, { requestState = state })
        return err.code .. " " .. err.message
      end
      local forged = first.requestState:gsub("^(.)", { e = "f" })
      assert.is_truthy(refused(forged):find("-32602 .*not one of this server"))
      assert.is_truthy(refused(5):find("-32602 .*not one of this server"))
      assert.is_truthy(refused(("x"):rep(5000)):find "not one of this server")
      assert.is_truthy(refused(first.requestState, { what = "pots" }):find "of another call")
      assert.are.equal("1 cups", texts(retry(c, first, accept { response = 1 })))
      assert.is_truthy(refused(first.requestState):find "no longer waits")
    end)

    it("nothing of a client that shows no forms", function()
      for _, capabilities in ipairs { ah.object {}, { elicitation = { url = ah.object {} } } } do
        local c <close> = client.start(agent { tools = { order(CUPS) } }, capabilities)
        local _, err = c:call "order"
        assert.are.equal(-32021, err.code)
        assert.are.same({ requiredCapabilities = { elicitation = { form = {} } } }, err.data)
        local old <close> = client.start(agent { tools = { order(CUPS) } }, false)
        old:initialize("2025-11-25", capabilities)
        assert.is_true(old:call("order").isError)
      end
      local c <close> = client.start(agent { tools = { order { default = "none" } } })
      assert.are.equal('"none" cups', texts(c:call "order"))
      local approved <close> = client.start(agent { tools = { add },
        policies = { function() return "ask", "it adds" end } })
      local _, err = approved:call("add", { a = 1, b = 2 })
      assert.are.equal(-32021, err.code)
    end)

    it("the script's own front end of a client that shows no forms", function()
      local c <close> = client.start(agent { tools = { order(CUPS) },
        asks = function() return 7 end })
      assert.are.equal("7 cups", texts(c:call "order"))
    end)

    it("for no secret, as the client would see it", function()
      local c <close> = client.start(agent { tools = { order { secret = true } } }, FORMS)
      assert.is_true(c:call("order").isError)
    end)

    it("for objects as forms, and for other values as JSON", function()
      local flat = { type = "object", required = { "n" }, properties = {
        n = { type = "integer" }, of = { type = "string", enum = { "a", "b" }, pattern = "^a" } } }
      local c <close> = client.start(agent { tools = { order { schema = flat } } }, FORMS)
      local first = c:call "order"
      assert.are.same({ type = "object", required = { "n" }, properties = {
        n = { type = "integer" }, of = { type = "string", enum = { "a", "b" } } } },
        first.inputRequests.ask_1.params.requestedSchema)
      assert.are.equal('{"n":1} cups', texts(retry(c, first, accept { n = 1 })))
      local list <close> = client.start(agent { tools = { order { schema = { type = "array",
        items = { type = "integer" } } } } }, FORMS)
      first = list:call "order"
      assert.are.equal("string",
        first.inputRequests.ask_1.params.requestedSchema.properties.response.type)
      assert.are.equal("[1,2] cups", texts(retry(list, first, accept { response = "[1,2]" })))
    end)

    it("for approvals, and takes no for no", function()
      local served = agent { tools = { add },
        policies = { function() return "ask", "it adds" end } }
      local c <close> = client.start(served, FORMS)
      local function answered(answer)
        local first = c:call("add", { a = 1, b = 2 })
        local _, one = next(first.inputRequests)
        assert.are.equal('it adds\n\nadd {"a":1,"b":2}', one.params.message)
        return c:call("add", { a = 1, b = 2 }, { requestState = first.requestState,
          inputResponses = { ask_1 = answer } })
      end
      assert.are.same({ sum = 3 }, answered(accept { approved = true }).structuredContent)
      assert.are.equal("Tool 'add' was not run: not approved: the person said no",
        texts(answered(accept { approved = false })))
      assert.are.equal("Tool 'add' was not run: not approved: the person declined",
        texts(answered { action = "decline" }))
      assert.are.equal("Tool 'add' was not run: not approved: the person declined",
        texts(answered { action = "cancel" }))
    end)

    it("by a request of its own in a session", function()
      for revision, mode in pairs { ["2025-11-25"] = "form", ["2025-06-18"] = false } do
        local c <close> = client.start(agent { tools = { order(CUPS) } }, false)
        c:initialize(revision, FORMS)
        local id = c:request("tools/call", { name = "order" })
        local asked = c:next()
        assert.are.equal("elicitation/create", asked.method)
        assert.are.equal(mode or nil, asked.params.mode)
        c:send { id = asked.id, result = accept { response = 4 } }
        assert.are.equal("4 cups", texts(c:answer(id).result))
      end
    end)

    it("which is withdrawn if its time is over", function()
      local c <close> = client.start(agent { tools = { order { schema = CUPS.schema, timeout = 0.05,
        default = 9 } } }, false)
      c:initialize("2025-11-25", FORMS)
      local id = c:request("tools/call", { name = "order" })
      local asked = c:next()
      assert.are.equal("9 cups", texts(c:answer(id).result))
      assert.are.equal("notifications/cancelled", c.before[1].method)
      assert.are.equal(asked.id, c.before[1].params.requestId)
      c:send { id = asked.id, result = accept { response = 4 } }
      assert.are.same({}, c:ask("ping").result)
    end)

    it("and an error of the client is no answer", function()
      local c <close> = client.start(agent { tools = { order(CUPS) } }, false)
      c:initialize("2025-11-25", FORMS)
      local id = c:request("tools/call", { name = "order" })
      c:send { id = c:next().id, error = { code = -1, message = "no" } }
      assert.is_true(c:answer(id).result.isError)
    end)
  end)

  describe("for clients with a session", function()
    it("agrees on a revision", function()
      for asked, answered in pairs { ["2025-11-25"] = "2025-11-25", ["2025-06-18"] = "2025-06-18",
        ["1999-01-01"] = "2025-11-25", ["2026-07-28"] = "2025-11-25" } do
        local c <close> = client.start(agent { tools = { add } }, false)
        local result = c:initialize(asked)
        assert.are.equal(answered, result.protocolVersion)
        assert.are.same({ tools = { listChanged = true } }, result.capabilities)
        assert.are.same({ name = "spec", version = "1" }, result.serverInfo)
      end
    end)

    it("has one conversation, whose calls are made in turn", function()
      local c <close> = client.start(agent { tools = { add }, setup = function(conversation)
        local n = 0
        conversation:add_tools(ah.tool { name = "count", description = "Counts.",
          handler = function()
            local mine = n
            ah.sleep(0.01)
            n = mine + 1
            return n
          end })
      end }, false)
      c:initialize "2025-11-25"
      local ids = {}
      for i = 1, 3 do
        ids[i] = c:request("tools/call", { name = "count" })
      end
      for i, id in ipairs(ids) do
        assert.are.equal(tostring(i), texts(c:answer(id).result))
      end
    end)

    it("returns structured content only as an object, and no resultType", function()
      local list = ah.tool { name = "list", description = "Lists.",
        result = { type = "array", items = { type = "integer" } },
        handler = function() return { 1, 2 } end }
      local c <close> = client.start(agent { tools = { list, add } }, false)
      c:initialize "2025-06-18"
      assert.is_nil(c:ask("tools/list").result.tools[2].outputSchema)
      local result = c:call "list"
      assert.is_nil(result.structuredContent)
      assert.is_nil(result.resultType)
      assert.are.equal("[1,2]", texts(result))
      assert.are.same({ sum = 2 }, c:call("add", { a = 1, b = 1 }).structuredContent)
      local modern <close> = client.start(agent { tools = { list } })
      assert.are.same({ 1, 2 }, modern:call("list").structuredContent)
    end)

    it("cancels a call that waits for its turn, and the one at work", function()
      local began = ah.channel(1)
      local wait = ah.tool { name = "wait", description = "Waits.", handler = function()
        began:close()
        ah.sleep(600)
      end }
      local c <close> = client.start(agent { tools = { wait, add } }, false)
      c:initialize "2025-11-25"
      local first = c:request("tools/call", { name = "wait" })
      began:receive()
      local second = c:request("tools/call", { name = "wait" })
      local third = c:request("tools/call", { name = "add", arguments = { a = 1, b = 2 } })
      for _, id in ipairs { second, first } do
        c:send { method = "notifications/cancelled", params = { requestId = id } }
      end
      assert.are.equal('{"sum":3}', texts(c:answer(third).result))
      assert.are.same({}, c.before)
    end)

    it("serves both kinds of clients on one line", function()
      local c <close> = client.start(agent { tools = { add } })
      assert.are.equal("complete", c:ask("server/discover").result.resultType)
      c.capabilities = nil
      c:initialize "2025-11-25"
      assert.is_nil(c:call("add", { a = 1, b = 2 }).resultType)
      c.capabilities = {}
      assert.are.equal("complete", c:call("add", { a = 1, b = 2 }).resultType)
    end)
  end)

  describe("bounds and tells", function()
    it("lines that are no messages", function()
      local c <close> = client.start(agent { tools = { add } })
      for text, code in pairs { ["{"] = -32700, ["[]"] = -32600, ["5"] = -32600, ["\xff"] = -32700,
        ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]'] = -32600, ["too long"] = -32600,
        ['{"jsonrpc":"1.0","id":1,"method":"ping"}'] = -32600, [("["):rep(1000)] = -32700,
        ['{"jsonrpc":"2.0","id":{},"method":"ping"}'] = -32600,
        ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'] = -32600 } do
        c:send(text)
        local m = c:next()
        assert.are.equal(code, m.error.code, text)
      end
      c:send "  "
      assert.are.equal("add", names(c:ask("tools/list").result))
      assert.are.same({}, c.before)
    end)

    it("answers and cancellations of nothing", function()
      local c <close> = client.start(agent { tools = { add } })
      c:send { id = "ask_1", result = ah.object {} }
      c:send { id = 7, error = { code = 1, message = "x" } }
      c:send { method = "notifications/cancelled", params = { requestId = 99 } }
      c:send { method = "notifications/cancelled", params = { requestId = { 1 } } }
      c:send { method = "notifications/nothing" }
      assert.are.equal("add", names(c:ask("tools/list").result))
      assert.are.same({}, c.before)
    end)

    it("an id that is in use, and more requests than 64", function()
      local wait = ah.tool { name = "wait", description = "Waits.",
        handler = function() ah.sleep(600) end }
      local c <close> = client.start(agent { tools = { wait } })
      for i = 1, 64 do
        c:request("tools/call", { name = "wait" }, "w" .. i)
      end
      c:request("tools/call", { name = "wait" }, "w1")
      local m = c:next()
      assert.are.equal("w1", m.id)
      assert.is_truthy(m.error.message:find "at work")
      c:request("tools/call", { name = "wait" }, "w65")
      assert.is_truthy(c:next().error.message:find "64 requests are at work")
      for i = 1, 64 do
        c:send { method = "notifications/cancelled", params = { requestId = "w" .. i } }
      end
    end)

    it("a script that returns something else", function()
      for _, value in ipairs { 5, "x", {}, ah.tool { name = "t", description = "T." } } do
        local c = client.start(value)
        assert.is_nil(c:next())
        c:close()
        assert.is_truthy(c.why:find "must return ah.agent")
      end
    end)

    it("a setup that fails, without its reason", function()
      local times = 0
      local c <close> = client.start(agent { tools = { add }, log = function() end,
        setup = function()
          times = times + 1
          if times > 1 then error "/secret/path" end
        end })
      local result = c:call("add", { a = 1, b = 2 })
      assert.is_true(result.isError)
      assert.is_nil(texts(result):find "secret")
    end)
  end)
end)
