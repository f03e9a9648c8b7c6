--- Renders a conversation for the `claude` command: blocks of a user message, results of calls and,
-- for a new process, the conversation so far as lines of JSON (docs/reference/claude.md).
--
-- The command has no field for notes or for an earlier conversation, so they are written in tags of
-- ours within other text. Therefore these tags are escaped in every other text.
local ah = ...

local encode = ah.json.encode
local TAGS = { system = true, conversation = true }

--- Escapes our tags in a text, in upper and lower case, as a model reads both alike.
local function harmless(text, bracket)
  return (text:gsub("<(/?)(%a+)", function(slash, word)
    return TAGS[word:lower()] and bracket .. slash .. word or nil
  end))
end

local function text_block(text)
  return { type = "text", text = text }
end

local function image_block(image)
  if image.url then
    return { type = "image", source = { type = "url", url = image.url } }
  end
  return { type = "image",
    source = { type = "base64", media_type = image.mime, data = image.data } }
end

--- Adds the blocks of a user's entry, or of a note.
local function add_blocks(blocks, entry)
  if entry.type == "note" then
    blocks[#blocks + 1] = text_block("<system>" .. harmless(entry.text, "&lt;") .. "</system>")
    return
  end
  for _, part in ipairs(entry.content or {}) do
    if part.type == "image" then
      blocks[#blocks + 1] = image_block(part)
    elseif type(part.text) == "string" and part.text ~= "" then
      blocks[#blocks + 1] = text_block(harmless(part.text, "&lt;"))
    end
  end
end

--- Returns the text of a result, with a text in place of each image that the command does not take.
local function result_text(entry)
  local text = type(entry.content) == "string" and entry.content or ""
  for _, image in ipairs(entry.images or {}) do
    if image.url then
      text = ("%s\n\n[An image (%s) belongs here; results of tools cannot show it to you.]"):format(
        text, image.url)
    end
  end
  return text
end

local function joined_text(parts)
  local texts = {}
  for _, part in ipairs(parts or {}) do
    texts[#texts + 1] = part.type == "text" and part.text or nil
  end
  return table.concat(texts)
end

-- -- a new process: the conversation as text -----------------------------------------------------

--- Adds the images of the entry; returns their numbers as the last member of its line.
local function add_images(images, entry)
  local result, numbers = entry.type == "tool_result", {}
  for _, image in ipairs(result and entry.images or entry.content or {}) do
    if type(image) == "table" and image.type == "image" and not (result and image.url) then
      images[#images + 1] = image_block(image)
      numbers[#numbers + 1] = tostring(#images)
    end
  end
  return numbers[1] and (',"images":[%s]'):format(table.concat(numbers, ",")) or ""
end

--- Returns one line of the conversation. Line ends within are escaped, so that no text can look
-- like another line.
local function line_of(entry, images)
  local head
  if entry.type == "tool_result" then
    head = ('"role":"tool","id":%s,"name":%s,"content":%s'):format(encode(entry.id),
      encode(entry.name), encode(result_text(entry)))
  elseif entry.type == "note" then
    head = '"role":"system","content":' .. encode(entry.text)
  else
    head = ('"role":%s,"content":%s'):format(encode(entry.type), encode(joined_text(entry.content)))
  end
  if entry.tool_calls then
    head = head .. ',"calls":' .. encode(entry.tool_calls)
  end
  return ("{%s%s}\n"):format(head,
    type(entry.content) == "string" and entry.type ~= "tool_result" and ""
      or add_images(images, entry))
end

--- Returns the number of entries up to the last answer or tool result.
local function past_of(entries)
  for i = #entries, 1, -1 do
    if entries[i].type == "assistant" or entries[i].type == "tool_result" then
      return i
    end
  end
  return 0
end

--- Returns the blocks that give a new process the whole conversation.
local function everything(entries)
  local blocks, past = {}, past_of(entries)
  if past > 0 then
    local lines, images = {}, {}
    for i = 1, past do
      lines[i] = line_of(entries[i], images)
    end
    blocks[1] = text_block("<conversation>\n" .. harmless(table.concat(lines), "\\u003c")
      .. "</conversation>\n\nAbove is our conversation so far, one JSON object a line. The calls "
      .. "in it were made and need not be made again. Go on with it; do not speak of its form."
      .. (images[1] and " The images in it follow, in the order of their numbers." or ""))
    table.move(images, 1, #images, 2, blocks)
  end
  for i = past + 1, #entries do
    add_blocks(blocks, entries[i])
  end
  if #blocks == 0 then
    blocks[1] = text_block "(empty message)"
  end
  return blocks
end

-- -- the next message of a process ---------------------------------------------------------------

--- Returns the blocks of the entries from `first` on, without tool results.
local function news(entries, first)
  local blocks = ah.array {}
  for i = first, #entries do
    if entries[i].type ~= "tool_result" then
      add_blocks(blocks, entries[i])
    end
  end
  return blocks
end

--- Returns a result in MCP's form, followed by the blocks in `more`.
local function result(entry, more)
  local content = { text_block(harmless(result_text(entry), "&lt;")) }
  for _, image in ipairs(entry.images or {}) do
    if not image.url then
      content[#content + 1] = { type = "image", mimeType = image.mime, data = image.data }
    end
  end
  table.move(more, 1, #more, #content + 1, content)
  return { content = content, isError = entry.success == false or nil }
end

local HINTS = { destructive = "destructiveHint", idempotent = "idempotentHint",
  open_world = "openWorldHint", read_only = "readOnlyHint" }

--- Returns annotations as MCP's hints; `untrusted` has none.
local function hints(annotations)
  local said = {}
  for name, hint in pairs(HINTS) do
    if annotations and type(annotations[name]) == "boolean" then
      said[hint] = annotations[name]
    end
  end
  return next(said) and said or nil
end

--- Returns the tools of a request as MCP lists them.
local function tools(list)
  local all = ah.array {}
  for i, tool in ipairs(list) do
    local schema = tool.parameters
    all[i] = { name = tool.name, description = tool.description,
      annotations = hints(tool.annotations),
      inputSchema = schema and schema.type ~= nil and schema
        or { type = "object", properties = ah.object {} } }
  end
  return { tools = all }
end

return { everything = everything, news = news, result = result, tools = tools }
