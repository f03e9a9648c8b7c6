--- The forms in which tools, results and sections of a prompt are shown to clients of the Model
-- Context Protocol.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local M = {}

-- -- tools ----------------------------------------------------------------------------------------

-- Tools of agenthost itself that need a conversation in which the list can change.
local CHANGING = { read_section = true, pick_tools = true, search_tools = true, call_tool = true }

local HINTS = { read_only = "readOnlyHint", destructive = "destructiveHint",
  idempotent = "idempotentHint", open_world = "openWorldHint" }

local function hints(annotations)
  local shown
  for name, hint in pairs(HINTS) do
    if annotations[name] ~= nil then
      shown = shown or {}
      shown[hint] = annotations[name]
    end
  end
  return shown
end

-- Returns the schema of structured results; nil if the revision cannot carry them.
local function output_schema(tool, features)
  local schema = tool.result
  if type(schema) == "table" and (features.any_value or schema.type == "object") then
    return schema
  end
end

local function shown_tool(tool, features)
  return { name = tool.name, description = tool.spec.description, inputSchema = tool.params,
    outputSchema = output_schema(tool, features), annotations = hints(tool.annotations) }
end

--- Returns the tools by their names, and the list of them as `tools/list` shows it, sorted.
---@param fixed boolean true: without the tools that need a list which changes
function M.tools(list, features, fixed)
  local by_name, shown = {}, ah.array {}
  for _, tool in ipairs(list) do
    if not (fixed and CHANGING[tool.name]) then
      by_name[tool.name] = tool
      shown[#shown + 1] = shown_tool(tool, features)
    end
  end
  table.sort(shown, function(a, b) return a.name < b.name end)
  return by_name, shown
end

-- -- results --------------------------------------------------------------------------------------

-- Compiled schemas of results, by their tools' tables.
local compiled = setmetatable({}, { __mode = "k" })

local function fits(tool, schema, value)
  compiled[tool] = compiled[tool] or ah.schema(schema)
  return compiled[tool]:validate(value) ~= nil
end

-- Returns the value of a result as structured content; nil if the tool declares none, or a policy
-- has left something that no longer fits.
local function structured(tool, outcome, features)
  local schema = output_schema(tool, features)
  local value = outcome.value
  if schema and outcome.success and value ~= nil and fits(tool, schema, value) then
    return value
  end
end

local function image(one)
  if one.url then
    return { type = "resource_link", uri = one.url, name = one.url:match "[^/]*$",
      mimeType = one.mime }
  end
  return { type = "image", data = ah.base64.encode(one.data), mimeType = one.mime }
end

local function text(words)
  return { type = "text", text = words }
end

-- Codes of errors whose words are for clients. Those of others may have paths and code of the
-- script.
local TOLD = { budget_exceeded = true, deadline_exceeded = true, waiting = true, cancelled = true }

-- Returns the result of a call that was not made, such as one whose `setup` has failed.
local function not_made(call)
  local err = call.error or { code = "internal", message = "the call has no result" }
  if not TOLD[err.code] then
    ah.log("warning", ("mcp: %s: %s"):format(call.name, err.message))
  end
  return M.failure(("Tool '%s' was not run: %s"):format(call.name,
    TOLD[err.code] and err.message or "the server's log has the reason"))
end

--- Returns the result of `tools/call`.
---@param call table with `outcome` and `images`, or `error`
function M.result(tool, call, features)
  local outcome = call.outcome
  if not outcome then
    return not_made(call)
  end
  local content = ah.array { text(outcome.content) }
  for _, one in ipairs(outcome.success and call.images or {}) do
    content[#content + 1] = image(one)
  end
  return { content = content, isError = not outcome.success or nil,
    structuredContent = structured(tool, outcome, features) }
end

--- Returns the result of a call that failed, for the model.
function M.failure(words)
  return { content = ah.array { text(words) }, isError = true }
end

-- -- the prompt -----------------------------------------------------------------------------------

local WHOLE = "agenthost://prompt"

local function resource(uri, name, title, render)
  return { shown = { uri = uri, name = name, title = title, mimeType = "text/markdown" },
    render = render }
end

local function is_section(value)
  return type(value) == "userdata" and tostring(value):find "^section " ~= nil
end

-- Returns the prompt of a definition, the list of its sections at the top.
local function sections_of(fields)
  local list = {}
  for i, one in ipairs(fields) do
    list[i] = is_section(one) and one or nil
  end
  if list[1] or not fields.prompt then
    return list[1] and ah.prompt(list), list
  end
  local prompt, keys = fields.prompt, {}
  for path in pairs(prompt:hashes().sections) do
    keys[#keys + 1] = not path:find(".", 1, true) and path or nil
  end
  table.sort(keys)
  for i, key in ipairs(keys) do
    list[i] = prompt:section(key)
  end
  return prompt, list
end

local function params_of(params, prompt)
  return params and prompt and params or {}
end

-- Returns a function that renders one section with the parameters that it declares.
local function renderer(section, params)
  return function()
    local prompt = ah.prompt { section }
    local ok, rendered = pcall(prompt.render, prompt, params)
    if not ok then -- parameters of other sections are unknown to this one
      rendered = prompt:render { [section.key] = params[section.key] }
    end
    return tostring(rendered)
  end
end

--- Returns the system text and each section at the top of the prompt as resources: by their
-- addresses, and the list of them.
function M.sections(fields)
  local by_uri, shown = {}, ah.array {}
  local function add(one)
    by_uri[one.shown.uri] = one
    shown[#shown + 1] = one.shown
  end
  local prompt, sections = sections_of(fields)
  local params = params_of(fields.params, prompt)
  if prompt then
    add(resource(WHOLE, "prompt", nil, function() return tostring(prompt:render(params)) end))
  elseif fields.system then
    add(resource(WHOLE, "prompt", nil, function() return fields.system end))
  end
  for _, section in ipairs(sections) do
    add(resource(WHOLE .. "/" .. section.key, section.key, section.title,
      renderer(section, params)))
  end
  return by_uri, shown
end

--- Returns the contents of a section; nil and the reason.
function M.contents(one)
  local ok, words = pcall(one.render)
  if not ok then
    return nil, message.said(type(words) == "table" and words.message or tostring(words))
  end
  return ah.array { { uri = one.shown.uri, mimeType = one.shown.mimeType, text = words } }
end

return M
