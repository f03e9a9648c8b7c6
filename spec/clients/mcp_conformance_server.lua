-- The server under test of the conformance suite of MCP: the tools, prompts and resources that its
-- scenarios ask for, for `agenthost mcp serve --http`. mcp_conformance_server.mjs runs the suite.
local ah = require "agenthost"

local PNG = ah.base64.decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8"
  .. "BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
local dot = assert(ah.image { data = PNG })

local function tool(name, description, handler, more)
  local fields = { name = name, description = description, handler = handler }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  return ah.tool(fields)
end

-- Returns an object's schema. Its title is the key of the question.
local function object(title, properties, required)
  return { type = "object", title = title, properties = properties, required = required }
end

local NAME = object("user_name", { name = { type = "string" } }, { "name" })
local CONFIRM = object("confirm", { ok = { type = "boolean" } }, { "ok" })

-- Returns a handler that asks once, and says `words` and the answer.
local function asks(question, schema, words)
  return function(_, ctx)
    local answer, err = ctx:ask { question = question, schema = schema }
    if not answer then
      return nil, err
    end
    return words .. ah.json.encode(answer)
  end
end

-- -- tools ----------------------------------------------------------------------------------------

local plain = {
  tool("test_simple_text", "Returns a text.", function()
    return "This is a simple text response for testing."
  end),
  tool("test_image_content", "Returns an image.", function() return dot end),
  tool("test_error_handling", "Fails.", function()
    return nil, "This tool intentionally returns an error for testing"
  end),
  tool("test_tool_with_progress", "Reports its progress.", function(_, ctx)
    for i = 0, 2 do
      ctx:progress(i / 2, ("step %d"):format(i))
      ah.sleep(0.06)
    end
    return "It is done."
  end),
  tool("test_logging_tool", "Writes to the log.", function()
    ah.log("info", "test_logging_tool")
    return "It is logged."
  end),
  tool("test_x_mcp_header", "Repeats a parameter that is a header, too.", function(args)
    return args.region
  end, { schema = { type = "object", required = { "region" }, properties = {
    region = { type = "string", ["x-mcp-header"] = "Region" },
    size = { type = "integer", ["x-mcp-header"] = "Size" } } } }),
}

local DEFAULTS = object(nil, {
  name = { type = "string", default = "John Doe" }, age = { type = "integer", default = 30 },
  score = { type = "number", default = 95.5 }, verified = { type = "boolean", default = true },
  status = { type = "string", enum = { "active", "inactive", "pending" }, default = "active" } })

-- Returns words with titles, in the form of a schema.
local function titled(last)
  local list = {}
  for i, word in ipairs { "First", "Second", "Third" } do
    list[i] = { const = "value" .. i, title = word .. last }
  end
  return list
end

-- Schemas of ours have no enumNames.
local WORDS = ah.schema(object(nil, {
  untitledSingle = { type = "string", enum = { "option1", "option2", "option3" } },
  titledSingle = { type = "string", oneOf = titled " Option" },
  legacyEnum = { type = "string", enum = { "opt1", "opt2", "opt3" },
    enumNames = { "Option One", "Option Two", "Option Three" } },
  untitledMulti = { type = "array", items = { type = "string",
    enum = { "option1", "option2", "option3" } } },
  titledMulti = { type = "array", items = { anyOf = titled " Choice" } },
}), { unknown_keywords = "allow" })

local asking = {
  tool("test_elicitation", "Asks for a name and an address.", function(args, ctx)
    return asks(args.message, object(nil, {
      username = { type = "string", description = "User's response" },
      email = { type = "string", description = "User's email address" } },
      { "username", "email" }), "User response: ")(args, ctx)
  end, { params = { message = "string" } }),
  tool("test_elicitation_sep1034_defaults", "Asks with defaults.",
    asks("Who are you?", DEFAULTS, "Elicitation completed: ")),
  tool("test_elicitation_sep1330_enums", "Asks for words of lists.",
    asks("Which?", WORDS, "Elicitation completed: ")),
  tool("test_input_required_result_elicitation", "Asks for a name.",
    asks("What is your name?", NAME, "Hello, ")),
  tool("test_input_required_result_request_state", "Asks for a confirmation.",
    asks("Please confirm", CONFIRM, "state-ok ")),
  tool("test_input_required_result_tampered_state", "Asks for a confirmation.",
    asks("Please confirm", CONFIRM, "Confirmed: ")),
  tool("test_input_required_result_multi_round", "Asks twice.", function(_, ctx)
    local name = assert(ctx:ask { question = "Step 1: What is your name?",
      schema = object("step1", { name = { type = "string" } }, { "name" }) })
    local color = assert(ctx:ask { question = "Step 2: What is your favorite color?",
      schema = object("step2", { color = { type = "string" } }, { "color" }) })
    return ("%s likes %s."):format(name.name, color.color)
  end),
  tool("test_streaming_elicitation", "Asks for a confirmation, with progress.", function(_, ctx)
    ctx:progress(0.5)
    return asks("Please confirm", CONFIRM, "Confirmed: ")(nil, ctx)
  end),
  tool("test_missing_capability", "Asks for what the client lacks.",
    asks("Please confirm", CONFIRM, "Confirmed: ")),
}

local ADDRESS = { ["$anchor"] = "addressDef", type = "object", properties = {
  street = { type = "string" }, city = { type = "string" } } }

local schemas = tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features",
  function() return "ok" end, { schema = {
    ["$schema"] = "https://json-schema.org/draft/2020-12/schema",
    ["$defs"] = { address = ADDRESS }, type = "object",
    properties = { name = { type = "string" }, address = { ["$ref"] = "#/$defs/address" },
      contactMethod = { type = "string", enum = { "phone", "email" } },
      phone = { type = "string" }, email = { type = "string" } },
    allOf = { { anyOf = { { required = { "phone" } }, { required = { "email" } } } } },
    ["if"] = { properties = { contactMethod = { const = "phone" } },
      required = { "contactMethod" } },
    ["then"] = { required = { "phone" } }, ["else"] = { required = { "email" } },
    additionalProperties = false } })

-- -- prompts --------------------------------------------------------------------------------------

local function complete(text)
  local found = {}
  for _, word in ipairs { "testValue1", "testValue2", "paris", "park", "party" } do
    found[#found + 1] = word:sub(1, #text) == text and word or nil
  end
  return found
end

local prompts = {
  { name = "test_simple_prompt", description = "A text.",
    get = function() return "This is a simple prompt for testing." end },
  { name = "test_prompt_with_arguments", description = "A text with two words.",
    arguments = { { name = "arg1", description = "First test argument", required = true,
        complete = complete },
      { name = "arg2", description = "Second test argument", required = true } },
    get = function(args)
      return ("Prompt with arguments: arg1='%s', arg2='%s'"):format(args.arg1, args.arg2)
    end },
  { name = "test_prompt_with_embedded_resource", description = "A resource and a text.",
    arguments = { { name = "resourceUri", description = "URI of the resource", required = true } },
    get = function(args)
      return { { content = { type = "resource", uri = args.resourceUri, mime_type = "text/plain",
          text = "Embedded resource content for testing." } },
        "Please process the embedded resource above." }
    end },
  { name = "test_prompt_with_image", description = "An image and a text.",
    get = function() return { dot, "Please analyze the image above." } end },
  { name = "test_input_required_result_prompt", description = "Asks for its context.",
    get = function(_, ctx)
      local answer = assert(ctx:ask { question = "What context should the prompt use?",
        schema = object("user_context", { context = { type = "string" } }, { "context" }) })
      return "The context is " .. answer.context
    end },
}

-- -- resources ------------------------------------------------------------------------------------

local resources = {
  { uri = "test://static-text", name = "Static text", description = "A text.",
    mime_type = "text/plain", read = function()
      return "This is the content of the static text resource."
    end },
  { uri = "test://static-binary", name = "Static binary", description = "An image.",
    mime_type = "image/png", read = function() return { data = PNG } end },
  { uri = "test://watched-resource", name = "Watched", description = "It changes at times.",
    mime_type = "text/plain", read = function() return os.date() end,
    wait = function() ah.sleep(3600) end },
  { uri_template = "test://template/{id}/data", name = "Template", description = "By id.",
    mime_type = "application/json", read = function(params)
      return ah.json.encode { id = params.id, templateTest = true,
        data = "Data for ID: " .. params.id }
    end },
}

return { prompts = prompts, resources = resources, agent = assert(ah.agent {
  name = "conformance", model = "demo/echo", tools = { plain, asking, schemas } }) }
