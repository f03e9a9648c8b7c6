--- agent:as_tool: a tool whose calls run an agent. Each call opens a conversation of the agent's
-- definition; with `keep_conversation`, all calls of one outer conversation continue the same one.
-- Deadline, budgets, policies and the events of the outer run hold for it as for any nested run.
local ah = ...

local raise = ah._raise

local read = ah._reader {
  what = "agent:as_tool", type = "ah.AsTool", rows = {
    { name = "name", kinds = "string", otherwise = "the agent's `name`",
      doc = "of the tool, as for [`ah.tool`](tool.md#ahtool)" },
    { name = "description", kinds = "string", needed = true,
      doc = "tells the outer model what the agent can do for it" },
    { name = "input", kinds = "any", otherwise = "a string `request`",
      is = "table or type", type = "table|ah.Type",
      doc = "parameters of the tool, in [short form](tool.md#short-forms)" },
    { name = "text", kinds = "function", otherwise = "see below",
      type = "fun(args: table): string|ah.Parts",
      doc = "`function(args)`: makes the user's message from the arguments" },
    { name = "params", kinds = "boolean function", default = false,
      type = "boolean|fun(args: table): table<string, any>",
      doc = "true: the arguments are the [parameters](prompts.md#parameters) of the agent's "
        .. "prompt; `function(args)`: makes them" },
    { name = "output", kinds = "any", otherwise = "that of the agent",
      is = "table, JSON text or schema", type = "table|string|ah.Schema",
      doc = "JSON Schema of the answer, whose value is then the result" },
    { name = "keep_conversation", kinds = "boolean", default = false,
      doc = "true: all calls of an outer conversation continue one conversation" },
    { name = "parallel", kinds = "boolean", default = false, doc = "as for `ah.tool`" },
    { name = "background", kinds = "boolean", default = false,
      doc = "as for `ah.tool`, see [In the background](tool.md#in-the-background)" },
    { name = "timeout", kinds = "number", least = 0.001, unit = "seconds",
      doc = "limit of one call, as for `ah.tool`" },
    { name = "max_result", kinds = "integer", doc = "as for `ah.tool`" },
    { name = "full_description", kinds = "string", doc = "as for `ah.tool`" },
    { name = "annotations", kinds = "table", type = "ah.Annotations", doc = "as for `ah.tool`" },
    { name = "version", kinds = "string", doc = "as for `ah.tool`" },
    { name = "return_direct", kinds = "boolean", default = false, doc = "as for `ah.tool`" },
  },
}

-- Fields that the tool takes as they are.
local PASSED = { "description", "parallel", "background", "timeout", "max_result",
  "full_description", "annotations", "version", "return_direct" }

local REQUEST = { request = "string: the task, with all that must be known for it" }

-- The semaphores of kept conversations, by conversation.
local locks = setmetatable({}, { __mode = "k" })

-- Returns the name of the only parameter if it is a string.
local function only_text(tool)
  local properties = tool.params.properties or {}
  local name, of = next(properties)
  return name and next(properties, name) == nil and of.type == "string" and name or nil
end

-- Returns the user's message for a call.
local function message(def, args)
  if def.text then
    return def.text(args)
  end
  local text = def.only and args[def.only]
  return type(text) == "string" and text or ah.json.encode(args)
end

-- Returns the parameters of the agent's prompt for a call; nil: those of the definition.
local function params(def, args)
  if type(def.params) == "function" then
    return def.params(args)
  end
  return def.params and args or nil
end

local function open(agent, def, args)
  if tostring(agent) == "agent (closed)" then
    return nil, ah.error { code = "usage",
      message = ("the agent of the tool '%s' is closed; do without this tool"):format(def.name) }
  end
  return agent:open { params = params(def, args), output = def.schema }
end

-- Returns the kept conversation of the outer one, which is opened by the first call.
local function keep(agent, def, args, kept)
  local conversation, err = kept[def], nil
  if not conversation then
    conversation, err = open(agent, def, args)
    kept[def] = conversation
  end
  return conversation, err
end

-- Returns the value of an answer with a schema, else the reply, or nil and the error.
local function result(reply, err)
  if reply and reply.value ~= nil then
    return reply.value
  end
  return reply, err
end

local function run_kept(agent, def, args, kept)
  local conversation, err = keep(agent, def, args, kept)
  if not conversation then
    return nil, err
  end
  locks[conversation] = locks[conversation] or ah.semaphore(1)
  local _ <close> = locks[conversation]:acquire() -- calls may be parallel; its runs are not
  return result(conversation:run(message(def, args), { params = params(def, args) }))
end

local function run_once(agent, def, args)
  local conversation <close>, err = open(agent, def, args)
  if not conversation then
    return nil, err
  end
  return result(conversation:run(message(def, args)))
end

local function check(t, name)
  if not (t.name or name) then
    raise("agent:as_tool: field 'name' is missing: give it here, or to the agent "
      .. "(ah.agent { name = ... })")
  end
  if t.text and type(t.text) ~= "function" then
    raise "agent:as_tool: field 'text' must be a function that makes the user's message"
  end
end

--- agent:as_tool { ... }: the tool. `name`: that of the agent, or nil.
return function(agent, t, name)
  local given = read(t)
  check(given, name)
  local def = { name = given.name or name, text = given.text, params = given.params,
    schema = given.output and ah.schema(given.output) }
  local fields = { name = def.name, params = given.input or REQUEST }
  for _, field in ipairs(PASSED) do
    fields[field] = given[field]
  end
  function fields.handler(args)
    local kept = given.keep_conversation and ah._kept()
    if kept then
      return run_kept(agent, def, args, kept)
    end
    return run_once(agent, def, args)
  end
  local tool = ah.tool(fields)
  def.only = only_text(tool)
  return tool
end
