--- Resources and prompts of a server of MCP: descriptions, contents and messages, checked and made
-- into values for scripts; and the two tools with which a model reads resources.
local ah = ...

local content = ah._module "agenthost.protocols.mcp.client.content"
local message = ah._module "agenthost.protocols.mcp.message"

local MOST_CONTENTS = 1000
local MOST_ARGUMENTS = 64

local resources = {}

local function about(given)
  return { name = message.text(given.name, message.MOST_ID) or "",
    title = message.text(given.title, 1 << 10),
    description = message.text(given.description, 1 << 16),
    mime_type = message.text(given.mimeType, 256) }
end

--- Returns what a list says about a resource, or nil for one that cannot be read.
function resources.resource(given)
  local made = about(given)
  made.uri = message.text(given.uri, 1 << 14)
  made.size = math.type(given.size) == "integer" and given.size or nil
  return made.uri and made
end

function resources.template(given)
  local made = about(given)
  made.uri_template = message.text(given.uriTemplate, 1 << 14)
  return made.uri_template and made
end

function resources.prompt(given)
  local made = about(given)
  made.mime_type, made.arguments = nil, {}
  for i, argument in ipairs(message.is_list(given.arguments) and given.arguments or {}) do
    argument = message.object(argument)
    if i <= MOST_ARGUMENTS and message.text(argument.name, message.MOST_ID) then
      made.arguments[#made.arguments + 1] = { name = argument.name,
        description = message.text(argument.description, 1 << 16),
        required = argument.required == true }
    end
  end
  return made.name ~= "" and made or nil
end

--- Returns the contents of a resource, without those that are wrong.
function resources.contents(given)
  local list = {}
  for i, item in ipairs(message.is_list(given) and given or {}) do
    item = message.object(item)
    local data = type(item.blob) == "string" and ah.base64.decode(item.blob)
    if i <= MOST_CONTENTS and (type(item.text) == "string" or data) then
      list[#list + 1] = { uri = message.text(item.uri, 1 << 14),
        mime_type = message.text(item.mimeType, 256),
        text = type(item.text) == "string" and item.text or nil, data = data or nil }
    end
  end
  return list
end

--- Returns the messages of a prompt.
function resources.messages(given)
  local list = {}
  for _, item in ipairs(message.is_list(given) and given or {}) do
    item = message.object(item)
    local parts, images = content.parts(ah.array { item.content })
    list[#list + 1] = { role = item.role == "assistant" and "assistant" or "user",
      content = images and item.role ~= "assistant" and parts or content.text(parts) }
  end
  return list
end

-- -- tools for a model ----------------------------------------------------------------------------

local function shown(resource)
  return ("- %s: %s%s"):format(resource.uri or resource.uri_template, message.said(resource.name),
    resource.description and " (" .. message.said(resource.description) .. ")" or "")
end

local function list_resources(server)
  local list, err = server:resources()
  local templates = list and server:templates() or {}
  if not list then
    return nil, err
  elseif #list + #templates == 0 then
    return "There are no resources."
  end
  local lines = {}
  for _, resource in ipairs(list) do
    lines[#lines + 1] = shown(resource)
  end
  for _, template in ipairs(templates) do
    lines[#lines + 1] = shown(template)
  end
  return table.concat(lines, "\n")
end

local function read_resource(server, args, ctx)
  local list, err = server:read(args.uri, ctx)
  if not list then
    return nil, err
  end
  local parts, images = {}, false
  for i, item in ipairs(list) do
    local image = item.data and ah.image { data = item.data }
    parts[i] = item.text or image
      or ("[data (%s), %d bytes]"):format(item.mime_type or "of an unknown type", #item.data)
    images = images or type(image) == "table"
  end
  if #parts == 0 then
    return "The resource is empty."
  end
  return images and parts or content.text(parts)
end

--- Returns a definition of ours; no name of a server has the character in its key.
local function definition(name, description, schema, handler)
  return { key = "\1" .. name, name = name, description = description, schema = schema,
    handler = handler, version = "1", annotations = { read_only = true, untrusted = true } }
end

resources.definitions = {
  definition("list_resources",
    "Lists the resources of the server, and templates of their addresses.", { type = "object" },
    list_resources),
  definition("read_resource", "Reads a resource of the server by its address.",
    { type = "object", properties = { uri = { type = "string", description = "its address" } },
      required = ah.array { "uri" } }, read_resource),
}

return resources
