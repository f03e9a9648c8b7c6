--- Prompts and resources that a script offers: it returns their definitions in a table with the
-- agent. This file reads the definitions, with errors that name the field.
local ah = ...

local templates = ah._module "agenthost.protocols.mcp.server.template"

local M = {}

local MOST = 1000 -- prompts, and resources
local MOST_ARGUMENTS = 64
local MOST_NAME, MOST_URI = 128, 2048 -- bytes

local read_script = ah._reader {
  what = "the script", type = "ah.McpScript", rows = {
    { name = "agent", kinds = "any", needed = true, type = "ah.Agent|ah.Registry",
      doc = "the agent, or the registry, whose tools are served" },
    { name = "prompts", kinds = "list", type = "ah.McpPrompt[]", doc = "[prompts](#prompts)" },
    { name = "resources", kinds = "list", type = "ah.McpResource[]",
      doc = "[resources](#resources), and templates of resources" },
  },
}

local read_prompt = ah._reader {
  what = "prompts", type = "ah.McpPrompt", rows = {
    { name = "name", kinds = "string", needed = true, doc = "its name, 1 to 128 bytes" },
    { name = "title", kinds = "string", doc = "its name for people" },
    { name = "description", kinds = "string", doc = "what it is for" },
    { name = "arguments", kinds = "list", type = "ah.McpPromptArgument[]",
      doc = "its [arguments](#prompts), which are texts" },
    { name = "get", kinds = "function", needed = true,
      type = "fun(arguments: table<string, string>, ctx: ah.Ctx): string|table, string?",
      doc = "`function(arguments, ctx)`: returns a text, or a list of [messages](#messages)" },
  },
}

local COMPLETE = "fun(text: string, others: table<string, string>): string[]"

local read_argument = ah._reader {
  what = "prompts: arguments", type = "ah.McpPromptArgument", rows = {
    { name = "name", kinds = "string", needed = true, doc = "its name, 1 to 128 bytes" },
    { name = "title", kinds = "string", doc = "its name for people" },
    { name = "description", kinds = "string", doc = "what it is" },
    { name = "required", kinds = "boolean", default = false,
      doc = "true: a request without it is refused" },
    { name = "complete", kinds = "function", type = COMPLETE,
      doc = "`function(text, others)`: returns values that begin as `text` does, the best first; "
        .. "`others` has the arguments that are known already" },
  },
}

local read_resource = ah._reader {
  what = "resources", type = "ah.McpResource", rows = {
    { name = "uri", kinds = "string", doc = "its address, such as `notes://today`" },
    { name = "uri_template", kinds = "string",
      doc = "in place of `uri`: a template of addresses, such as `notes://{year}/{name}`" },
    { name = "name", kinds = "string", needed = true, doc = "its name" },
    { name = "title", kinds = "string", doc = "its name for people" },
    { name = "description", kinds = "string", doc = "what it has" },
    { name = "mime_type", kinds = "string", otherwise = "of a text `text/plain`",
      doc = "the type of its contents" },
    { name = "read", kinds = "function", needed = true,
      type = "fun(of: string|table<string, string>, ctx: ah.Ctx): any, string?",
      doc = "`function(uri, ctx)`, of a template `function(params, ctx)`: returns its "
        .. "[contents](#contents)" },
    { name = "wait", kinds = "function", type = "fun(of: string|table<string, string>)",
      doc = "`function(uri)` or `function(params)`: waits until the contents have changed; called "
        .. "again and again [while clients listen](#changes)" },
    { name = "complete", kinds = "table", type = "table<string, " .. COMPLETE .. ">",
      doc = "of a template: functions by the names of its variables, as of arguments" },
  },
}

local function fault(text, ...)
  error(ah.error { code = "usage", message = text:format(...) }, 0)
end

local function check_name(what, name)
  if name == "" or #name > MOST_NAME or name:find "%c" then
    fault("%s: field 'name' must have 1 to %d bytes and no controls", what, MOST_NAME)
  end
end

local function check_functions(what, list, names)
  for name, f in pairs(list or {}) do
    if not names[name] then
      fault("%s: field 'complete': the template has no variable '%s'", what, tostring(name))
    elseif type(f) ~= "function" then
      fault("%s: field 'complete': '%s' must be a function, found %s", what, name, type(f))
    end
  end
end

-- -- prompts --------------------------------------------------------------------------------------

local function arguments_of(what, list)
  local arguments = {}
  if #list > MOST_ARGUMENTS then
    fault("%s: field 'arguments' has at most %d items, found %d", what, MOST_ARGUMENTS, #list)
  end
  for i, one in ipairs(list) do
    local here = ("%s: arguments[%d]"):format(what, i)
    one = read_argument(one, here)
    check_name(here, one.name)
    if arguments[one.name] then
      fault("%s: there are two arguments '%s'", what, one.name)
    end
    arguments[i], arguments[one.name] = one, one
  end
  return arguments
end

-- Returns the prompts as a list that has them by their names, too.
local function prompts_of(list)
  local prompts = {}
  for i, one in ipairs(list) do
    local what = ("prompts[%d]"):format(i)
    one = read_prompt(one, what)
    check_name(what, one.name)
    if prompts[one.name] then
      fault("there are two prompts '%s'", one.name)
    end
    one.arguments = arguments_of(what, one.arguments or {})
    prompts[i], prompts[one.name] = one, one
  end
  return prompts
end

-- -- resources ------------------------------------------------------------------------------------

local function check_uri(what, field, uri)
  if #uri > MOST_URI or uri:find "[%s%c]" or not uri:find "^%a[%w+.-]*:" then
    fault("%s: field '%s' must be an address such as notes://today, at most %d bytes", what, field,
      MOST_URI)
  elseif uri:lower():find "^agenthost:" then
    fault("%s: field '%s' begins as those of the prompt, agenthost:", what, field)
  end
end

local function read_address(what, one)
  if (one.uri == nil) == (one.uri_template == nil) then
    fault("%s: one of the fields 'uri' and 'uri_template' must be given, found %s", what,
      one.uri and "both" or "none")
  elseif one.uri then
    check_uri(what, "uri", one.uri)
    check_functions(what, one.complete, {})
    return one.uri
  end
  local template, why = templates.new(one.uri_template)
  if not template then
    fault("%s: field 'uri_template': %s", what, why)
  end
  check_uri(what, "uri_template", one.uri_template)
  check_functions(what, one.complete, template.names)
  one.template = template
  return one.uri_template
end

-- Returns the resources with an address, and those with a template; both have them by these, too.
local function resources_of(list)
  local fixed, patterns = {}, {}
  for i, one in ipairs(list) do
    local what = ("resources[%d]"):format(i)
    one = read_resource(one, what)
    check_name(what, one.name)
    local address = read_address(what, one)
    local to = one.uri and fixed or patterns
    if to[address] then
      fault("there are two resources '%s'", address)
    end
    to[#to + 1], to[address] = one, one
  end
  return fixed, patterns
end

-- -- the table ------------------------------------------------------------------------------------

local function check_number(name, list)
  if #list > MOST then
    fault("field '%s' has at most %d items, found %d", name, MOST, #list)
  end
  return list
end

local function read(given)
  given = read_script(given, "the script")
  local prompts = prompts_of(check_number("prompts", given.prompts or {}))
  local fixed, patterns = resources_of(check_number("resources", given.resources or {}))
  return { prompts = prompts, resources = fixed, templates = patterns }
end

--- Returns { prompts, resources, templates } for the value that a script returned: each a list that
-- has its items by their names or addresses, too. Returns nil and the reason if they are wrong.
function M.read(value)
  if type(value) ~= "table" or getmetatable(value) or value.agent == nil then
    return { prompts = {}, resources = {}, templates = {} }
  end
  local ok, offers = pcall(read, value)
  if not ok then
    return nil, type(offers) == "table" and offers.message or tostring(offers)
  end
  return offers
end

return M
