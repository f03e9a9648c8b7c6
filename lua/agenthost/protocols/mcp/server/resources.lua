--- Resources of a script and its templates of resources: the lists, and `resources/read`. The list
-- begins with the sections of the agent's prompt.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local rounds = ah._module "agenthost.protocols.mcp.server.rounds"
local templates = ah._module "agenthost.protocols.mcp.server.template"

local CODES, fault = message.CODES, message.fault

local MOST_URI = 8192
local MOST_CONTENTS = 8 << 20 -- bytes of what is read
local MOST_ITEMS = 1000 -- contents of one resource

local M = {}

local function about(one)
  return { name = one.name, title = one.title, description = one.description,
    mimeType = one.mime_type }
end

--- Returns the list of the resources as clients see it. sections: the list of those of the prompt.
function M.shown(resources, sections)
  local list = ah.array { table.unpack(sections) }
  for _, one in ipairs(resources) do
    local made = about(one)
    made.uri = one.uri
    list[#list + 1] = made
  end
  return list
end

--- Returns the list of the templates as clients see it.
function M.shown_templates(patterns)
  local list = ah.array {}
  for i, one in ipairs(patterns) do
    list[i] = about(one)
    list[i].uriTemplate = one.uri_template
  end
  return list
end

--- Returns the definition that has this address, and what its functions are called with: the
-- address, or the variables of the template that matches; nil for none.
function M.find(offers, uri)
  if offers.resources[uri] then
    return offers.resources[uri], uri
  end
  for _, one in ipairs(offers.templates) do
    local params = templates.match(one.template, uri)
    if params then
      return one, params
    end
  end
end

-- -- contents -------------------------------------------------------------------------------------

local function is_text(bytes)
  return utf8.len(bytes) ~= nil and not bytes:find "%z"
end

-- Returns one item of contents in the form of the protocol; nil and the reason.
local function content_of(uri, one, item)
  local made = { uri = uri, mimeType = one.mime_type }
  local bytes = item
  if type(item) == "table" then
    made.uri, made.mimeType = item.uri or uri, item.mime_type or item.mime or one.mime_type
    bytes = item.text or item.data
  end
  if type(bytes) ~= "string" or type(made.uri) ~= "string" then
    return nil, ("read returned a %s; it must be a text, bytes, or a table with 'text' or 'data'")
      :format(type(item))
  end
  local as_text = is_text(bytes) and (type(item) == "string" or item.data == nil)
  made.text = as_text and bytes or nil
  made.blob = not as_text and ah.base64.encode(bytes) or nil
  made.mimeType = made.mimeType or as_text and "text/plain" or "application/octet-stream"
  return made, #bytes
end

-- Returns what `read` has returned as contents; nil and the reason.
local function contents_of(uri, one, given)
  local items = type(given) == "table" and given.text == nil and given.data == nil and given
    or { given }
  local list, size = ah.array {}, 0
  for i, item in ipairs(items) do
    local made, bytes = content_of(uri, one, item)
    if not made then
      return nil, bytes
    end
    size = size + bytes
    if size > MOST_CONTENTS or i > MOST_ITEMS then
      return nil, ("the contents have more than %d items or %d bytes"):format(MOST_ITEMS,
        MOST_CONTENTS)
    end
    list[i] = made
  end
  if not list[1] then
    return nil, "read returned an empty table"
  end
  return list
end

-- -- resources/read -------------------------------------------------------------------------------

--- Returns nil and the error for an address without a resource.
function M.unknown(q)
  return nil, { code = q.features.modern and CODES.params or CODES.no_resource,
    message = "Resource not found", data = { uri = message.said(q.params.uri) } }
end

local function show(uri, one)
  return function(q, given, why)
    if given == nil and type(why) == "string" then
      return fault(CODES.internal, "%s", why)
    elseif given == nil then
      return M.unknown(q)
    end
    local contents, wrong = contents_of(uri, one, given)
    if not contents then
      return rounds.wrong(q, uri, "%s", wrong)
    end
    return { contents = contents, ttlMs = q.features.modern and 0 or nil,
      cacheScope = q.features.modern and q.server.scope or nil }
  end
end

--- Answers `resources/read` for the resources of the script; nil and an error.
function M.read(q)
  local uri = message.text(q.params.uri, MOST_URI)
  local one, of = nil, nil
  if uri then
    one, of = M.find(q.server.offers, uri)
  end
  if not one then
    return M.unknown(q)
  end
  return rounds.script(q, { name = uri, arguments = ah.object {}, show = show(uri, one),
    job = function(ctx)
      return one.read(of, ctx)
    end })
end

return M
