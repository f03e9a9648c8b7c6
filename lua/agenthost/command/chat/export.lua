--- The command of a chat that writes the conversation to a file: as Markdown for people, as the
-- store's export, or as agent:save does.
local ah, use = ...
local facts, pairs_of, text = use "chat.facts", use "pairs", use "text"

local fault, shown = pairs_of.fault, pairs_of.shown

local SHOWN = 2000       -- bytes of the arguments or of the result of a call
local MOST = 1 << 30     -- bytes of a file

-- -- Markdown ----------------------------------------------------------------------------------

-- Returns the text without controls of a terminal, since files are shown on one, too.
local function harmless(s)
  return (text.repaired(s):gsub("[^\n\t]+", ah._harmless))
end

-- Returns a text as a block of code, shortened.
local function block(s)
  local cut = text.cut(s, SHOWN)
  if #cut < #s then
    cut = ("%s\n[... %d bytes more]"):format(cut, #s - #cut)
  end
  return "    " .. cut:gsub("\n", "\n    ")
end

local function texts_of(parts)
  local found = {}
  for _, part in ipairs(parts or {}) do
    if part.type == "image" then
      found[#found + 1] = ("[an image%s]"):format(part.url and ": " .. part.url or "")
    elseif part.type ~= "opaque" then
      found[#found + 1] = part.text
    end
  end
  return table.concat(found, "\n\n")
end

local add = {}

function add.user(out, entry)
  out[#out + 1] = "## Question\n\n" .. texts_of(entry.content)
end

function add.assistant(out, entry)
  local said = texts_of(entry.content)
  out[#out + 1] = said ~= "" and "## Answer\n\n" .. said or nil
  for _, call in ipairs(entry.tool_calls or {}) do
    out[#out + 1] = ("**Call of %s**\n\n%s"):format(call.name, block(call.arguments))
  end
end

function add.tool_result(out, entry)
  out[#out + 1] = ("**Result of %s**%s\n\n%s"):format(entry.name,
    entry.success and "" or " (failed)", block(entry.content))
end

function add.note(out, entry)
  out[#out + 1] = "**Note**\n\n" .. entry.text
end

local function markdown(chat)
  local about = facts.of(chat.agent)
  local out = { ("# Conversation %s\n\nModel: %s"):format(chat.agent.id, about.model or "unknown") }
  for _, entry in ipairs(about.entries) do
    if add[entry.type] then
      add[entry.type](out, entry)
    end
  end
  return harmless(table.concat(out, "\n\n")) .. "\n"
end

-- -- files -------------------------------------------------------------------------------------

-- Writes a file as a whole or not at all.
local function write(path, content)
  local folder, name = path:match "^(.*/)([^/]*)$"
  local real = ah._real_path(folder or ".")
  if not real then
    fault("There is no folder '%s' for the file.", shown(text.clean(folder)))
  end
  local fs = ah.filesystem { root = real, max_file = MOST, sync = false }
  local ok, err = fs:write(name or path, content)
  return ok or error(err, 0)
end

local WRITE = {
  md = function(chat, path) write(path, markdown(chat)) end,
  jsonl = function(chat, path)
    assert(chat.agent:mark()) -- all records are written then
    write(path, assert(chat.store:export(chat.agent.id)))
  end,
  json = function(chat, path) assert(chat.agent:save(path)) end,
}

local function export(chat, words)
  local path, force = words, false
  if path:find "^%-%-force%s" or path == "--force" then
    path, force = path:match "^%-%-force%s*(.*)$", true
  end
  if path == "" then
    path = ("chat-%s.md"):format(chat.agent.id:gsub("[^%w_-]", "_"))
  end
  local how = WRITE[path:match "%.(%w+)$" or ""]
  if not how then
    fault("'%s' is no name that says what to write: it ends with .md (for people), .jsonl (for "
      .. "agenthost store import) or .json (for ah.load)", shown(text.clean(path)))
  elseif ah._real_path(path) and not force then
    fault("There is a file '%s' already: /export --force overwrites it.", shown(text.clean(path)))
  end
  how(chat, path)
  chat.output:note(("The conversation is in %s."):format(shown(text.clean(path))))
end

local function offer()
  return { "--force" }
end

local rows = {
  { name = "export", words = "[FILE]", idle = true, offer = offer, run = export,
    doc = "write the conversation to FILE.md, .jsonl or .json" },
}

return { rows = rows }
