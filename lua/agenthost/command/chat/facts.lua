--- Facts about an agent, from its transcript.
local ah = ...

local M = {}

-- The changes of an entry, by its type.
local take = {}

function take.settings(facts, entry)
  facts.model = entry.model or facts.model
end

function take.prompt(facts, entry)
  facts.system = entry.text
end

-- Returns the index of the tool of this name; nil if there is none.
local function index_of(tools, name)
  for i, tool in ipairs(tools) do
    if tool.name == name then
      return i
    end
  end
end

function take.tools_added(facts, entry)
  for _, tool in ipairs(entry.tools) do
    facts.tools[index_of(facts.tools, tool.name) or #facts.tools + 1] = tool
  end
end

function take.tools_removed(facts, entry)
  for _, name in ipairs(entry.names) do
    local i = index_of(facts.tools, name)
    if i then
      table.remove(facts.tools, i)
    end
  end
end

--- Returns the text of a message.
function M.text_of(entry)
  local parts = {}
  for _, part in ipairs(entry.content) do
    parts[#parts + 1] = part.text or ("[%s]"):format(part.type)
  end
  return table.concat(parts, "\n")
end

--- Returns a table of `model`, a name, `system`, the system text, `tools`, a list of those that the
-- model has, and `entries`.
---@return table
function M.of(agent)
  local facts = { tools = {}, entries = ah.json.decode(agent:transcript()).entries }
  for _, entry in ipairs(facts.entries) do
    if take[entry.type] then
      take[entry.type](facts, entry)
    end
  end
  return facts
end

return M
