--- A plain reader of Gemini's format, independent of the adapter, with which the specs compare the
-- adapter: one pass over decoded tables, no streaming, no limits.
local server = require "support.server"

local M = {}

local FILTERS = { SAFETY = true, RECITATION = true, LANGUAGE = true, BLOCKLIST = true,
  PROHIBITED_CONTENT = true, SPII = true }

local function members(value)
  return type(value) == "table" and value ~= server.null and value or {}
end

-- Returns the pieces of an answer: events, a list, or one document.
local function pieces(x)
  local list = {}
  if (x.headers["content-type"] or ""):find("event-stream", 1, true) then
    for data in x.body:gmatch("data: ?([^\r\n]+)") do
      list[#list + 1] = server.decode(data)
    end
    return list
  end
  local doc = server.decode(x.body)
  return doc[1] and doc or { doc }
end

-- Keeps a part as the adapter promises to: plain pieces of text joined, thoughts left out.
local function keep(r, part)
  local last = r.parts[#r.parts]
  local plain = part.text and not part.functionCall and not part.thoughtSignature
  r.signed = r.signed or part.thoughtSignature ~= nil
  if part.thought and not part.thoughtSignature then
    return
  elseif plain and r.plain then
    last.text = last.text .. part.text
  else
    r.parts[#r.parts + 1] = plain and { text = part.text } or part
  end
  r.plain = plain
end

local function take_part(r, part)
  local call = part.functionCall
  if call then
    local arguments = server.encode(members(call.args))
    r.calls[#r.calls + 1] = { id = call.id, name = call.name,
      arguments = arguments == "[]" and "{}" or arguments }
  elseif part.text and not part.thought then
    r.text = r.text .. part.text
  end
  keep(r, part)
end

local function take(r, piece)
  r.error = r.error or piece.error
  local candidate = members(members(piece.candidates)[1])
  for _, part in ipairs(members(members(candidate.content).parts)) do
    take_part(r, part)
  end
  r.said = candidate.finishReason or members(piece.promptFeedback).blockReason or r.said
  r.message = candidate.finishMessage or r.message
  r.usage = piece.usageMetadata or r.usage
end

local function delay_of(error)
  for _, detail in ipairs(members(error.details)) do
    local s = tonumber((detail.retryDelay or ""):match("^(.*)s$"))
    if s then
      return s <= 60 and math.tointeger(s * 1000) or -2
    end
  end
end

local function failure(status, error)
  local delay = delay_of(error)
  return { error = error.message, retry_after = delay,
    retryable = (status == 429 or status >= 500) and delay ~= -2 }
end

local function stop_of(r)
  if r.said == "MAX_TOKENS" then
    return "length"
  elseif r.calls[1] then
    return "tool_calls"
  end
  return FILTERS[r.said] and "content_filter" or "end"
end

local function usage_of(said)
  local u = said or {}
  local thoughts = u.thoughtsTokenCount or 0
  return { input = u.promptTokenCount or 0, cached_read = u.cachedContentTokenCount or 0,
    cached_write = 0, output = (u.candidatesTokenCount or 0) + thoughts, reasoning = thoughts,
    known = said ~= nil }
end

--- Reads a response plainly, without the adapter.
function M.read(x)
  local r = { text = "", calls = {}, parts = server.array {} }
  for _, piece in ipairs(pieces(x)) do
    take(r, piece)
  end
  if r.error then
    return failure(x.status < 300 and r.error.code or x.status, r.error)
  elseif r.said == "MALFORMED_FUNCTION_CALL" then
    return { error = r.message, retryable = true }
  elseif not r.said then
    return { error = "", retryable = true }
  end
  return { text = r.text, calls = r.calls, stop = stop_of(r), stop_word = r.said,
    usage = usage_of(r.usage),
    opaque = { r.signed and { data = { parts = r.parts }, calls = #r.calls } or nil } }
end

-- -- requests ----------------------------------------------------------------------------

-- Lowers the types: schemas of older clients have them in upper case, or under another name.
local function lower_types(schema)
  for key, value in pairs(members(schema)) do
    if key == "type" and type(value) == "string" then
      schema[key] = value:lower()
    else
      lower_types(value)
    end
  end
  return schema
end

local function declaration(d)
  local parameters = d.parametersJsonSchema or d.parameters_json_schema or lower_types(d.parameters)
  local description = d.description ~= server.null and d.description ~= "" and d.description or nil
  return { name = d.name, description = description, parametersJsonSchema = parameters }
end

-- Returns the text of a result, whatever a client wrapped it in.
local function result_text(response)
  local content = response.content
  if type(content) == "table" then
    return content[1].text
  end
  return response.output or response.return_value or ""
end

-- Returns a part in camel case; ids are left out if the recording has none.
local function part_of(part)
  local call = part.functionCall or part.function_call
  local result = part.functionResponse or part.function_response
  if call then
    return { functionCall = { name = call.name, args = members(call.args), id = call.id },
      thoughtSignature = part.thoughtSignature }
  elseif result then
    return { functionResponse = { name = result.name, id = result.id,
      response = { output = result_text(result.response) } } }
  end
  return part
end

local function content_of(content)
  local parts = server.array {}
  for i, part in ipairs(content.parts) do
    parts[i] = part_of(part)
  end
  return { role = content.role, parts = parts }
end

--- Returns a recorded request in the form of ours. Left out, as we do not send it: the form of the
-- answer (responseModalities, schemas), safety settings, the mode VALIDATED and lists of several
-- allowed names. Our `system` has no role.
function M.explained(body)
  local config, out = body.generationConfig or {}, { contents = server.array {} }
  for i, content in ipairs(body.contents) do
    out.contents[i] = content_of(content)
  end
  out.generationConfig = { maxOutputTokens = config.maxOutputTokens }
  out.system = body.systemInstruction and body.systemInstruction.parts[1].text
  local choice = body.toolConfig and body.toolConfig.functionCallingConfig
  if choice and choice.mode ~= "VALIDATED" and #(choice.allowedFunctionNames or {}) < 2 then
    out.choice = choice
  end
  for i, d in ipairs(body.tools and body.tools[1].functionDeclarations or {}) do
    out.tools = out.tools or server.array {}
    out.tools[i] = declaration(d)
  end
  return out
end

local MODES = { AUTO = "auto", ANY = "required", NONE = "none" }

local function choice_of(choice)
  local names = choice and choice.allowedFunctionNames
  return names and { name = names[1] } or choice and MODES[choice.mode]
end

local function note_of(content)
  local text = content.parts[1].text
  return text and text:match("^<system>(.*)</system>$")
end

local function user_entries(list, content, ids)
  local note = note_of(content)
  if note then
    list[#list + 1] = { type = "note", text = note }
  elseif content.parts[1].text then
    local parts = server.array {}
    for i, part in ipairs(content.parts) do
      parts[i] = { type = "text", text = part.text }
    end
    list[#list + 1] = { type = "user", content = parts }
  end
  for _, part in ipairs(content.parts) do
    local result = part.functionResponse
    if result then
      list[#list + 1] = { type = "tool_result", id = result.id or table.remove(ids, 1),
        name = result.name, content = result.response.output, success = true }
    end
  end
end

-- Calls without an id get one, which without_made removes for the comparison.
local function assistant_entry(list, content, origin, ids)
  local entry = { type = "assistant", content = server.array {} }
  for _, part in ipairs(content.parts) do
    local call = part.functionCall
    if call then
      local id = call.id or ("made_%d_%d"):format(#list, #ids)
      ids[#ids + 1] = not call.id and id or nil
      local arguments = server.encode(call.args)
      entry.tool_calls = entry.tool_calls or server.array {}
      table.insert(entry.tool_calls, { id = id, name = call.name,
        arguments = arguments == "[]" and "{}" or arguments })
    end
  end
  entry.content[1] = { type = "opaque", origin = origin, data = { parts = content.parts } }
  list[#list + 1] = entry
end

--- Returns the entries of an explained request: head ones, then those of contents from `from` on.
function M.entries(out, model, from, origin)
  local list, ids = {}, {}
  if from == 1 then
    list[1] = { type = "settings", model = "gemini/" .. model,
      options = { max_tokens = out.generationConfig.maxOutputTokens,
        tool_choice = choice_of(out.choice) } }
    list[2] = out.system and { type = "prompt", text = out.system }
  end
  for i = from, #out.contents do
    local content = out.contents[i]
    if content.role == "user" then
      user_entries(list, content, ids)
    else
      assistant_entry(list, content, origin, ids)
    end
  end
  return list
end

--- Returns the tools of a request that `known` does not have yet, as an entry, or nil.
function M.tools(out, known)
  local fresh = server.array {}
  for _, d in ipairs(out.tools or {}) do
    if not known[d.name] then
      known[d.name] = true
      fresh[#fresh + 1] =
        { name = d.name, description = d.description, parameters = d.parametersJsonSchema }
    end
  end
  return fresh[1] and { type = "tools_added", tools = fresh }
end

--- Removes the ids that assistant_entry made.
function M.without_made(out)
  for _, content in ipairs(out.contents) do
    for _, part in ipairs(content.parts) do
      local holder = part.functionCall or part.functionResponse
      if holder and holder.id and holder.id:find("^made_") then
        holder.id = nil
      end
    end
  end
  return out
end

return M
