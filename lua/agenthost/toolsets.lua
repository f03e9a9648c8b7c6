--- Toolsets: items of the field `tools`, or of lists in it, whose tools are known only when they
-- are asked for, and may change, such as a server of MCP. A conversation asks for them before its
-- first message, as its `setup` does for other objects, and a strategy takes over what has changed
-- after each call.
--
-- A toolset is a table whose metatable has `__toolset`, with
--   name, optional  its name; true if a run goes on without it
--   changes         number of changes of the list so far
--   list            list of definitions, each with `key` and `version`; nil before the first
--   definitions()   that list, brought up to date; or nil and an error; may wait
--   names_of(definition)  the names that its tool may have, the best one first
--   tool(definition, name)  a tool
local ah = ...

local MOST_LISTS = 16 -- within each other

local toolsets = {}

-- -- names ----------------------------------------------------------------------------------------

local Names = {}
Names.__index = Names

--- Returns the names of an agent's tools: each belongs to one tool, and stays with it. `taken` is a
-- list of tools that have theirs.
function toolsets.names(taken)
  local names = setmetatable({ owner = {}, given = {} }, Names)
  for _, tool in ipairs(taken) do
    names.owner[tool.name] = tool
  end
  return names
end

local function give(self, name, set, definition)
  self.owner[name] = definition.key
  self.given[set][definition.key] = name
  return name
end

--- Returns the name of a definition's tool: the first of its names that is free, or that with a
-- number behind it.
function Names:of(set, definition)
  self.given[set] = self.given[set] or {}
  local known = self.given[set][definition.key]
  if known then
    return known
  end
  local first, second = set:names_of(definition)
  for _, name in ipairs { first, second } do
    if not self.owner[name] then
      return give(self, name, set, definition)
    end
  end
  local n = 2
  while self.owner[second:sub(1, 58) .. "_" .. n] do
    n = n + 1
  end
  return give(self, second:sub(1, 58) .. "_" .. n, set, definition)
end

-- -- tools ----------------------------------------------------------------------------------------

local Attached = {}
Attached.__index = Attached

--- Returns the tool of a definition, the same one as long as the definition is the same.
local function tool_of(self, set, definition)
  local kept = self.tools[set]
  local there = kept[definition.key]
  if not there or there.version ~= definition.version then
    there = { version = definition.version,
      tool = set:tool(definition, self.names:of(set, definition)) }
    kept[definition.key] = there
  end
  return there.tool
end

local function add(self, set, conversation)
  local list, err = set:definitions()
  if not list and set.optional then
    ah.log("warning", err.message .. "; the run goes on without its tools")
    return true
  elseif not list then
    return nil, err
  end
  local tools = {}
  for i, definition in ipairs(list) do
    tools[i] = tool_of(self, set, definition)
  end
  conversation:add_tools(tools)
  return true
end

--- Brings the tools of a conversation up to date with a list that has changed.
local function follow(self, set, m, declared)
  local here = {}
  for _, definition in ipairs(set.list) do
    local tool = tool_of(self, set, definition)
    here[definition.key] = true
    if not declared[tool.name] then
      m:add(tool)
    elseif declared[tool.name].version ~= tool.version then
      m:replace(tool)
    end
  end
  for key, name in pairs(self.names.given[set] or {}) do
    if not here[key] and declared[name] then
      m:remove(name)
    end
  end
end

local function follow_all(self, m)
  local declared
  for _, set in ipairs(self.sets) do
    if set.list and (set.changes > 0 or set.optional) then
      if not declared then
        declared = {}
        for _, tool in ipairs(m.tools) do
          declared[tool.name] = tool
        end
      end
      follow(self, set, m, declared)
    end
  end
end

-- -- fields ---------------------------------------------------------------------------------------

local function is_set(item)
  local meta = type(item) == "table" and getmetatable(item)
  return type(meta) == "table" and meta.__toolset == true
end

local function is_list(item)
  return type(item) == "table" and getmetatable(item) == nil and item.name == nil
end

--- Returns a list without the toolsets in it and in the lists in it, which are added to `sets`.
local function split(list, sets, depth)
  local others = {}
  for i = 1, #list do
    local item = list[i]
    if is_set(item) then
      sets[#sets + 1] = item
    elseif is_list(item) and depth < MOST_LISTS then
      others[#others + 1] = split(item, sets, depth + 1)
    else
      others[#others + 1] = item
    end
  end
  return others
end

--- Adds the tools of a list and of the lists in it; the run refuses deeper ones.
local function flatten(list, into, depth)
  for _, item in ipairs(list) do
    if type(item) == "userdata" then
      into[#into + 1] = item
    elseif type(item) == "table" and depth < MOST_LISTS then
      flatten(item.tools or item, into, depth + 1)
    end
  end
  return into
end

local function copy(fields)
  local made = {}
  for key, value in next, fields do
    made[key] = value
  end
  return made
end

--- Returns the fields of a run or an agent without toolsets: their tools are added by `setup`, and
-- follow the sets by a strategy.
function toolsets.attach(fields)
  local made = copy(fields)
  local self = setmetatable({ tools = {} }, Attached)
  self.sets = {}
  made.tools = split(fields.tools, self.sets, 1)
  self.names = toolsets.names(flatten(made.tools, {}, 1))
  for _, set in ipairs(self.sets) do
    self.tools[set] = {}
  end
  local rest = fields.setup
  function made.setup(conversation)
    for _, set in ipairs(self.sets) do
      local ok, err = add(self, set, conversation)
      if not ok then
        return nil, err
      end
    end
    if rest then
      return rest(conversation)
    end
  end
  if fields.strategies == nil or type(fields.strategies) == "table" then
    made.strategies = copy(fields.strategies or {})
    table.insert(made.strategies, { name = "toolsets",
      after = function(_, m) follow_all(self, m) end })
  end
  return made
end

return toolsets
