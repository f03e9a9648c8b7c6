--- ah.handoff: a tool with which the model lets another agent go on with the conversation, by the
-- agent's system text, tools, model and policies. src/lua/lua_handoff.c stages the change.
local ah = ...

local raise = ah._raise

local M = {}

local read = ah._reader {
  what = "ah.handoff", type = "ah.HandoffConfig", rows = {
    { name = "to", kinds = "any", needed = true, is = "agent or function",
      type = "ah.Agent|fun(): ah.Agent",
      doc = "the agent that takes over; a function that returns it, for agents that hand over to "
        .. "each other" },
    { name = "when", kinds = "string", needed = true,
      doc = "tells the model when to hand over: 1 to 200 printable ASCII characters" },
    { name = "name", kinds = "string", otherwise = "`handoff_to_` and the agent's `name`",
      doc = "of the tool, as for [`ah.tool`](tool.md#ahtool); with a function in `to`, it must be "
        .. "given" },
  },
}

-- The handoffs that lead to the agents of conversations, by agent.
local paths = setmetatable({}, { __mode = "k" })

-- The handoffs by their tools.
local handoffs = setmetatable({}, { __mode = "k" })

local function is_agent(value)
  return type(value) == "userdata" and tostring(value):find "^agent " ~= nil
end

local function target(def)
  local to = def.to
  if type(to) == "function" then
    to = to()
  end
  if not is_agent(to) then
    return nil, ah.error { code = "usage",
      message = ("%s: field 'to' must lead to an agent, found a %s"):format(def.name, type(to)) }
  elseif tostring(to) == "agent (closed)" then
    return nil, ah.error { code = "usage",
      message = ("the agent of the tool '%s' is closed; go on without it"):format(def.name) }
  end
  return to
end

-- -- an agent with `setup` ---------------------------------------------------------------------

-- The argument of `setup`. Its changes are kept for the agent that is made afterwards.
local Conversation = {}

local function changes_of(conversation)
  local changes = conversation[Conversation]
  return not changes.over and changes
    or raise "conversation: `setup` is over; a handler has ctx:add_tools, a script agent:add_tools"
end

local methods = {
  add_tools = function(conversation, tools)
    local added = changes_of(conversation).tools
    added[#added + 1] = tools
  end,
  set_system = function(conversation, text)
    if type(text) ~= "string" then
      raise(("conversation:set_system: the text must be a string, found a %s"):format(type(text)))
    end
    changes_of(conversation).system = text
  end,
}

function Conversation.__index(_, name)
  if name == "resources" then
    raise "conversation.resources: an agent that took over has none while ah.load sets it up"
  end
  return methods[name] or raise(("conversation: there is no '%s'; there are id, session, "
    .. "resources, params, add_tools, set_system"):format(tostring(name)))
end

function Conversation.__newindex()
  raise("conversation: its fields cannot be set; use conversation:set_system(text) or "
    .. "conversation:add_tools(tools)")
end

local function copy(t)
  local all = {}
  for k, v in pairs(t or {}) do
    all[k] = v
  end
  return all
end

-- Calls `setup`, which may wait, and opens the agent as it was set up; nil and an error.
local function set_up(to, def, place)
  local changes = { tools = { def.tools }, system = def.system }
  local returned = table.pack(def.setup(setmetatable({ [Conversation] = changes, id = place.id,
    session = place.session, params = copy(def.params), resources = place.resources },
    Conversation)))
  changes.over = true
  if returned.n > 1 and returned[1] == nil then
    return nil, returned[2]
  end
  local fields = copy(def)
  fields.setup, fields.params = nil, def.prompt and def.params
  fields.session, fields.output = place.session, place.output or def.output
  fields.tools, fields.system = changes.tools, changes.system
  local agent, err = ah.agent(fields)
  return agent and ah._like(agent, to), err
end

-- Opens the agent in this place: `session`, `output`, `id` and `resources` of the conversation.
local function open(to, place)
  local def = ah._definition(to)
  if def and def.setup then
    return set_up(to, def, place)
  end
  return to:open { session = place.session, output = place.output }
end

-- -- handing over -----------------------------------------------------------------------------

-- Returns the agent that takes over, opened for this conversation (false: the conversation's own),
-- and the handoffs that lead to it.
local function taker(def, to, ctx)
  local own, active, output, id = ah._conversation(ctx)
  if ah._same(active, to) then
    return nil, ah.error { code = "usage",
      message = "this agent is active already: go on without a handoff" }
  elseif ah._same(own, to) then
    return false, {}
  end
  local path = { table.unpack(paths[active] or {}) }
  path[#path + 1] = def.name
  local opened, err = open(to, { session = ctx.session, output = output, id = id,
    resources = ctx.resources })
  return opened, opened and path or err
end

local function hand_over(def, ctx)
  local to, wrong = target(def)
  if not to then
    return nil, wrong
  end
  local opened, path = taker(def, to, ctx)
  if opened == nil then
    return nil, path
  end
  local name = ah._agent_name(to) or def.name
  local state = ah.json.encode { agent = name, path = ah.array(path) }
  local ok, err = ah._hand_over(ctx, opened or nil, name, state,
    ah.json.encode { tool = def.name })
  if not ok then
    return nil, err
  end
  if opened then
    paths[opened] = path
  end
  return ("The conversation is handed over to %s, with other instructions and tools."):format(name)
end

--- ah.handoff { to = agent, when = "...", name = "..." }: the tool.
function M.handoff(t)
  local def = read(t)
  local name = def.name
  if type(def.to) ~= "function" and not is_agent(def.to) then
    raise(("ah.handoff: field 'to' must be an agent or a function that returns one, found a %s")
      :format(type(def.to)))
  end
  if not name then
    local of = is_agent(def.to) and ah._agent_name(def.to)
    name = of and "handoff_to_" .. of
      or raise("ah.handoff: field 'name' is missing: give it here, or to the agent "
        .. "(ah.agent { name = ... })")
  end
  local handoff = { to = def.to, name = name }
  local tool = ah.tool { name = name, description = def.when, on_lost = "retry",
    handler = function(_, ctx)
      return hand_over(handoff, ctx)
    end }
  handoffs[tool] = handoff
  return tool
end

-- Returns the handoff of that name in a list of tools and lists.
local function find(list, name)
  for _, item in ipairs(type(list) == "table" and list or {}) do
    local handoff = handoffs[item]
    handoff = handoff and handoff.name == name and handoff or find(item, name)
    if handoff then
      return handoff
    end
  end
end

-- Opens the agent to which the handoffs of this path lead; nil and an error.
local function reach(tools, path, place)
  local to, err
  for _, name in ipairs(path) do
    local handoff = find(tools, name)
    if not handoff then
      return nil, ah.error { code = "usage",
        message = ("cannot load: the conversation was handed over by the tool '%s', which is not "
          .. "in `tools`: give it, as ah.handoff has made it"):format(name) }
    end
    to, err = target(handoff)
    if not to then
      return nil, err
    end
    tools = (ah._definition(to) or {}).tools
  end
  to, err = open(to, place)
  if to then
    paths[to] = path
  end
  return to, err
end

--- For conversations that are continued: opens the agent that is active (`state` of its handoff;
-- nil: the conversation's own), and the one to which the pending turn hands over (`next`; nil: it
-- does not).
function M.resume(agent, fields, session, output, state, next)
  local place = { session = session, output = output, id = ah._conversation_id(agent) }
  if state then
    local to, err = reach(fields.tools, state.path, place)
    if not to then
      return nil, err
    end
    ah._resume(agent, to, state.agent)
  end
  if next then
    local to, err
    if #next.path > 0 then
      to, err = reach(fields.tools, next.path, place)
      if not to then
        return nil, err
      end
    end
    ah._resume_next(agent, to, next.agent)
  end
  return agent
end

return M
