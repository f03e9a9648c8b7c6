-- The client under test of the conformance suite of MCP: does with a server what the scenario asks
-- for. The suite names the scenario in the environment, and the server as the last argument.
local ah = require "agenthost"

local scenario = os.getenv "MCP_CONFORMANCE_SCENARIO"
local context = ah.json.decode(os.getenv "MCP_CONFORMANCE_CONTEXT" or "{}")

-- Follows the address of a login, as a browser does: the suite answers it at once.
local function browse(url)
  for _ = 1, 5 do
    local response = assert(ah.http { url = url })
    url = response.headers.location
    if not url then
      return
    end
  end
end

-- Returns how tokens are got in the scenarios of authorization.
local function auth()
  if scenario:find "^auth/" then
    return { open = browse, file = false, timeout = 10, client_id = context.client_id,
      client_secret = context.client_secret, issuer = context.issuer,
      client_metadata_url = "https://conformance-test.local/client-metadata.json" }
  end
end

local server <close> = ah.mcp { url = arg[#arg], timeout = 20, auth = auth() }

-- Makes the calls in a run, and returns their results.
local function call(list, asks)
  local reply = assert(ah.run { model = ah.scripted { { calls = list }, "Done." }, asks = asks,
    tools = { server }, "Go." })
  for _, message in ipairs(reply.messages) do
    if message.role == "tool" then
      print(message.name, message.content)
    end
  end
end

-- Returns the arguments without those that are null, which no schema of the suite allows.
local function without_null(arguments)
  local left = {}
  for name, value in pairs(arguments) do
    if value ~= ah.null then
      left[name] = value
    end
  end
  return left
end

local function names()
  local list = {}
  for _, tool in ipairs(assert(server:tools())) do
    list[#list + 1] = tool.name
  end
  return list
end

-- Calls each tool that the server has, without arguments that it does not need.
local function call_all(arguments, asks)
  local list = {}
  for i, name in ipairs(names()) do
    list[i] = { name = name, arguments = arguments and arguments[name] or ah.object {} }
  end
  if list[1] then
    call(list, asks)
  end
end

local scenarios = {
  ["elicitation-sep1034-client-defaults"] = function()
    call({ { name = "test_client_elicitation_defaults" } }, function() return ah.object {} end)
  end,
  ["http-custom-headers"] = function()
    local list = {}
    for i, one in ipairs(context.toolCalls) do
      list[i] = { name = one.name, arguments = without_null(one.arguments) }
    end
    call(list)
  end,
  ["http-invalid-tool-headers"] = function()
    call_all { valid_tool = { region = "us-west1" } }
  end,
  ["http-standard-headers"] = function()
    call_all()
    for _, resource in ipairs(assert(server:resources())) do
      server:read(resource.uri)
    end
    for _, prompt in ipairs(assert(server:prompts())) do
      server:prompt(prompt.name)
    end
  end,
  ["json-schema-2020-12-preservation"] = function()
    for _, tool in ipairs(assert(server:tools())) do
      if tool.name == "json_schema_2020_12_tool" then
        call { { name = "json_schema_echo", arguments = { schema = tool.params } } }
      end
    end
  end,
  ["sep-2322-client-request-state"] = function()
    call({ { name = "test_mrtr_echo_state" }, { name = "test_mrtr_no_state" },
      { name = "test_mrtr_no_result_type" } }, function()
      call { { name = "test_mrtr_unrelated" } }
      return { confirmed = true }
    end)
  end,
  tools_call = function()
    call { { name = "add_numbers", arguments = { a = 5, b = 3 } } }
  end,
}

local play = scenarios[scenario] or call_all
play()
