--- Tools of a server of MCP and their results, made into the fields of tools, texts, images and
-- values that a run takes. Everything here is from outside, and is checked.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local headers = ah._module "agenthost.later" "agenthost.protocols.mcp.headers"

local MOST_NAME = 64
local MOST_BRIEF = 200
local MOST_FULL = 16 << 10
local MOST_PARTS = 1000

local content = {}

-- -- tools ----------------------------------------------------------------------------------------

--- Returns a name of ours for a name of the server's, at most 64 of `A-Z a-z 0-9 _ -`. A longer one
-- is cut, with a part of its hash, so that names which begin alike stay apart.
function content.name(name, prefix)
  local made = (prefix and prefix .. "_" or "") .. name:gsub("[^%w_-]", "_")
  if #made > MOST_NAME then
    made = made:sub(1, MOST_NAME - 9) .. "_" .. ah.sha256(made):sub(1, 8)
  end
  return made
end

local function cut(text, most)
  if #text <= most then
    return text
  end
  return text:sub(1, utf8.offset(text, 0, most - 3) - 1) .. "..."
end

--- Returns a line of printable ASCII.
local function brief_of(text)
  local line = text:gsub("[^\x21-\x7e]+", " "):gsub("^ +", ""):gsub(" +$", "")
  return #line > MOST_BRIEF and line:sub(1, MOST_BRIEF - 3) .. "..." or line
end

local HINTS = { readOnlyHint = "read_only", destructiveHint = "destructive",
  idempotentHint = "idempotent", openWorldHint = "open_world" }

local function annotations_of(given)
  local annotations = { untrusted = true }
  for theirs, ours in pairs(HINTS) do
    local value = message.object(given)[theirs]
    if type(value) == "boolean" then
      annotations[ours] = value
    end
  end
  return annotations
end

--- Returns the schema of a tool for ah.tool; or nil and what is wrong with it.
local function schema_of(given, must_be_object)
  if not message.is_object(given) then
    return nil, "it is no object"
  elseif must_be_object and given.type ~= "object" then
    return nil, 'its "type" is not "object"'
  end
  local ok, schema = pcall(ah.schema, ah.json.encode(given), { unknown_keywords = "allow" })
  if not ok then
    return nil, message.said(type(schema) == "table" and schema.message or tostring(schema))
  end
  return schema
end

-- The members of a definition that a model, a policy or this client uses.
local MEMBERS = { "annotations", "description", "execution", "inputSchema", "name", "outputSchema",
  "title" }

--- Returns the canonical text of a definition: the members that count, as JSON with sorted keys.
function content.canonical(given)
  local said = {}
  for _, member in ipairs(MEMBERS) do
    said[member] = given[member]
  end
  return ah.json.encode(said)
end

--- Returns what `tools/list` says about one tool:
-- `{ key, description, full_description, schema, result, annotations, text, hash, version, marked,
-- tools }`, where `key` is the server's name for it, `text` its canonical text, `hash` the SHA-256
-- of that, `version` the beginning of the hash, `marked` has its parameters for headers, and
-- `tools` is for what is made of it; or nil and what is wrong. over_http: wrong marks count. known:
-- definitions by their keys; one that is the same is returned.
function content.definition(given, over_http, known)
  if not message.is_object(given) or not message.text(given.name, message.MOST_ID)
    or given.name:find "%c" then
    return nil, "a tool without a name"
  end
  local key, said = given.name, content.canonical(given)
  local hash = ah.sha256(said)
  if known[key] and known[key].hash == hash then
    return known[key]
  end
  local schema, why = schema_of(given.inputSchema, true)
  if not schema then
    return nil, ("tool '%s': inputSchema: %s"):format(message.said(key), why)
  end
  local result
  if given.outputSchema ~= nil then
    result, why = schema_of(given.outputSchema, false)
    if not result then
      return nil, ("tool '%s': outputSchema: %s"):format(message.said(key), why)
    end
  end
  local marked
  if over_http then
    marked, why = headers.marked(given.inputSchema)
    if why then
      return nil, ("tool '%s': inputSchema: %s"):format(message.said(key), why)
    end
  end
  local text = message.text(given.description, 1 << 20) or message.text(given.title, 1 << 20) or ""
  text = text:gsub("[%z\1-\8\11-\31\127]", " ")
  local brief = brief_of(text)
  return { key = key, description = brief ~= "" and brief or brief_of("The tool " .. key),
    full_description = text:find "%S" and cut(text, MOST_FULL) or nil, schema = schema,
    result = result, annotations = annotations_of(given.annotations), marked = marked,
    text = said, hash = hash, version = hash:sub(1, 16), tools = {} }
end

-- -- results --------------------------------------------------------------------------------------

local function image_of(part)
  local bytes = type(part.data) == "string" and ah.base64.decode(part.data)
  local image = bytes and ah.image { data = bytes }
  return image or ("[an image (%s) that cannot be shown]"):format(message.said(part.mimeType))
end

local function blob_of(resource)
  local mime = type(resource.mimeType) == "string" and resource.mimeType or ""
  if mime:find "^image/" then
    return image_of { data = resource.blob, mimeType = mime }
  end
  return ("[data (%s), %d bytes as base64, of %s]"):format(message.said(mime), #resource.blob,
    message.said(resource.uri))
end

local function resource_of(part)
  local resource = message.object(part.resource)
  if type(resource.text) == "string" then
    return ("[%s]\n%s"):format(message.said(resource.uri), resource.text)
  elseif type(resource.blob) == "string" then
    return blob_of(resource)
  end
  return "[a resource without contents]"
end

local PARTS = {
  text = function(part)
    return type(part.text) == "string" and part.text or "[a text without text]"
  end,
  image = image_of,
  audio = function(part)
    return ("[audio (%s) that cannot be played]"):format(message.said(part.mimeType))
  end,
  resource = resource_of,
  resource_link = function(part)
    local about = message.text(part.description, 1 << 16)
    return ("[link to %s: %s]%s"):format(message.said(part.name), message.said(part.uri),
      about and " " .. message.said(about) or "")
  end,
}

--- Returns the parts of a content as texts and images, and true if there is an image.
function content.parts(given)
  local parts, images = {}, false
  for i, part in ipairs(message.is_list(given) and given or {}) do
    if i > MOST_PARTS then
      parts[#parts + 1] = ("[%d more parts]"):format(#given - MOST_PARTS)
      break
    end
    local make = message.is_object(part) and PARTS[part.type]
    local made = make and make(part) or ("[a part of an unknown type: %s]"):format(
      message.said(message.object(part).type))
    parts[#parts + 1] = made
    images = images or type(made) == "table"
  end
  return parts, images
end

--- Returns the parts as one text.
function content.text(parts)
  local texts = {}
  for i, part in ipairs(parts) do
    texts[i] = type(part) == "string" and part or "[an image]"
  end
  return table.concat(texts, "\n")
end

--- Returns what a handler returns for the result of `tools/call`. The structured content is the
-- value, which the gate compares with the schema; the model reads the texts in its place.
function content.result(given)
  local parts, images = content.parts(given.content)
  if given.isError == true then
    local text = content.text(parts)
    return ah.fail(text ~= "" and text or "the tool failed and did not say why")
  elseif given.structuredContent ~= nil then
    local text = content.text(parts)
    if text == "" then
      return ah.ok(given.structuredContent)
    end
    return ah.result { message = text, value = given.structuredContent,
      exclude_value_from_context = true }
  elseif images then
    return parts
  elseif #parts == 0 then
    return ah.ok()
  end
  return content.text(parts)
end

return content
