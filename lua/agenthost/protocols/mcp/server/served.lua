--- The agent of a script as a server of the Model Context Protocol serves it: definitions made of
-- its fields. `own` is for a client with a session; its conversation may gain and lose tools.
-- `fixed` is for clients without one (revision 2026-07-28), whose list of tools never changes:
-- methods of entities are tools there that take the id of the instance. `jobs` calls the functions
-- of prompts and resources.
--
-- No model is asked. The model of both is an adapter that makes the call of the client, so that
-- the call passes policies, approvals, limits, transactions and `setup` as any call does.
local ah = ...

local calls = ah._module "agenthost.protocols.mcp.server.calls"

local M = {}

-- Fields that are about a model and its answers, or about one conversation that lasts.
local DROPPED = { "model", "fallback", "base_url", "api_key", "http", "options", "stream",
  "tool_change_mode", "output", "checks", "guards", "feedback", "store", "id", "messages", "brief",
  "max_iterations", "on_max", "on_empty", "loop_detector", "retries", "name" }

local function copy(t)
  local all = {}
  for key, value in pairs(t) do
    all[key] = value
  end
  return all
end

local function is(value, name)
  return type(value) == "userdata" and tostring(value):find("^" .. name) ~= nil
end

-- Returns the fields of the definition behind the value of a script; nil and the reason.
local function fields_of(value)
  local agent = type(value) == "table" and not getmetatable(value) and value.agent or value
  if is(agent, "registry, ") then
    return { registry = agent }
  elseif is(agent, "agent ") then
    local fields = ah._definition(agent)
    if not fields then
      return nil, "the agent goes on with a conversation: return one made by ah.agent"
    end
    return copy(fields), nil, fields.name
  end
  return nil, ("the script must return ah.agent { ... } or ah.registry { ... }, or a table with "
    .. "one of them as 'agent'; found %s"):format(
    value == nil and "nothing" or "a " .. type(agent))
end

-- -- entities -------------------------------------------------------------------------------------

-- Returns the name of the parameter for the id, which no parameter of the method has.
local function id_name(class, properties)
  local name = properties.id == nil and "id" or class.prefix .. "_id"
  while properties[name] ~= nil do
    name = name .. "_"
  end
  return name
end

-- Returns the parameters of a method with that of the id.
local function with_id(class, params, name)
  local schema, required = copy(params), ah.array { name }
  schema.type = "object"
  schema.properties = copy(params.properties or {})
  schema.properties[name] = { type = "string", minLength = 1, maxLength = 512,
    description = ("id of the %s"):format(class.name) }
  for _, one in ipairs(params.required or {}) do
    required[#required + 1] = one
  end
  schema.required = required
  return schema
end

-- Returns the instance with this id; nil and an error for the model.
local function found(class, id)
  local instance = class.find(id)
  if instance == nil then
    return nil, ("there is no %s '%s'"):format(class.name, id)
  elseif type(instance) == "table" and getmetatable(instance) == nil then
    instance = class.class(instance)
  end
  if not ah.is_provider(instance) then
    return nil, ("%s '%s' cannot be found: find returned another value"):format(class.name, id)
  end
  return instance
end

-- Returns a handler that finds the instance and calls its method, which has it for itself.
local function handler_of(class, method, id)
  return function(args, ctx)
    local instance, why = found(class, args[id])
    if not instance then
      return nil, why
    end
    ctx:enlist(instance)
    args[id] = nil
    return instance[method](instance, args, ctx)
  end
end

-- Fields of a method's tool that the tool with the id has, too.
local PASSED = { "full_description", "result", "annotations", "version", "render", "parallel",
  "timeout", "memory", "max_result", "coerce" }

local function method_tool(class, tool, method)
  local id = id_name(class, tool.params.properties or {})
  local fields = { name = class.prefix .. "_" .. tool.name, description = tool.brief,
    schema = with_id(class, tool.params, id), handler = handler_of(class, method, id) }
  for _, field in ipairs(PASSED) do
    fields[field] = tool[field]
  end
  return ah.tool(fields)
end

-- Returns a tool for each method of the classes whose instances can be found by their id.
local function entity_tools()
  local tools = {}
  for _, class in pairs(ah._entities()) do
    for i, tool in ipairs(class.find and class.tools or {}) do
      tools[#tools + 1] = method_tool(class, tool, class.methods[i])
    end
  end
  table.sort(tools, function(a, b) return a.name < b.name end)
  return tools
end

-- -- definitions ----------------------------------------------------------------------------------

-- Returns the fields of a definition without `discover`, with the tools of entities.
local function fixed_fields(fields)
  local fixed = copy(fields)
  fixed.tools = { table.unpack(fields.tools or {}) }
  for _, tool in ipairs(fields.discover and entity_tools() or {}) do
    table.insert(fixed.tools, tool)
  end
  fixed.discover = nil
  return fixed
end

-- Fields of the agent that hold for the functions of prompts and resources, too.
local OF_JOBS = { "resources", "asks", "log", "timeout" }

-- Returns the definition whose one tool calls functions of the script.
local function jobs_of(fields)
  local own = { model = calls.model(), tools = { ah.tool { name = calls.JOB,
    description = "Calls a function of the script.", handler = calls.handler } } }
  for _, field in ipairs(OF_JOBS) do
    own[field] = fields[field]
  end
  return ah.agent(own)
end

--- Returns { own, fixed, jobs, fields, name } for the value that a script returned; nil and the
-- reason.
function M.new(value)
  local fields, why, name = fields_of(value)
  if not fields then
    return nil, why
  end
  for _, field in ipairs(DROPPED) do
    fields[field] = nil
  end
  fields.strategies = { table.unpack(fields.strategies or {}) }
  table.insert(fields.strategies, calls.looker)
  fields.model = calls.model()
  local own, err = ah.agent(fields)
  local fixed, jobs
  if own then
    fixed, err = ah.agent(fixed_fields(fields))
  end
  if fixed then
    jobs, err = jobs_of(fields)
  end
  if not jobs then
    return nil, err.message
  end
  return { own = own, fixed = fixed, jobs = jobs, fields = fields, name = name }
end

return M
