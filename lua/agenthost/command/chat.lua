--- agenthost chat: talks with an agent on a terminal, or from a pipe. `run` reads the flags and
-- finds the conversation; `answer` runs in the state and with the flags of a script, as that of a
-- prompt does (prompt.lua).
local ah, use = ...
local pairs_of, stored = use "pairs", use "stored"
local agent_of, place_of = use "prompt.agent", use "prompt.place"
local plan = use "chat.plan"

local fault, flag, shown = pairs_of.fault, agent_of.flag, pairs_of.shown

-- Without -t, a chat has all tools for the current folder.
local TOOLS = { table.concat(agent_of.TOOLS, ",") }

-- Returns the real path of the script; nil: there is none.
local function script_of(words)
  if not words[1] then
    return nil
  end
  local path, why = ah._real_path(words[1])
  return path or fault("cannot read '%s': %s", shown(words[1]), why)
end

local function run(flags, words, _, line)
  place_of.check(flags)
  agent_of.check(flags)
  local script = script_of(words)
  for _, name in ipairs(script and { "system", "tool", "option", "max_cost" } or {}) do
    if flags[name] then
      fault("--%s is for a chat without a script, whose agent has fields for it",
        (name:gsub("_", "-")))
    end
  end
  return place_of.found(flags, place_of.of(flags, line, script))
end

-- -- the agent ---------------------------------------------------------------------------------

-- Returns the agent of the command itself, with the conversation.
local function own_agent(chat, place, named)
  local flags = chat.flags
  _G.arg = nil -- the records of a conversation name the script that began it
  if place ~= "open" then
    agent_of.check_model(flags)
    flags.tool = flags.tool or TOOLS
  end
  local fields = agent_of.fields(flags, place, named)
  table.insert(fields.policies, 1, plan.policy(chat))
  return agent_of.open(fields, place, flags)
end

-- Returns the agent in what a script has returned; nil: there is none.
local function agent_in(result)
  local meta = debug.getmetatable(result)
  if type(meta) == "table" and meta.__name == "agenthost.agent" then
    return result
  end
  return type(result) == "table" and rawget(result, "agent") ~= nil
    and agent_in(rawget(result, "agent")) or nil
end

-- Runs the script. Returns the agent that it returns.
local function definition_of(path, words)
  _G.arg = table.move(words, 2, #words, 1, { [0] = path })
  local chunk, why = loadfile(path, "t")
  local result, err = (chunk or fault("%s", why))(table.unpack(words, 2))
  local definition = agent_in(result)
  if not definition and result == nil and err ~= nil then
    error(err, 0)
  end
  return definition or fault("%s returned no agent to talk with\n"
    .. "An agent script ends with: return ah.agent { ... }", shown(words[1]))
end

-- Returns a conversation of the agent of a script.
local function script_agent(chat, words, place, named)
  local definition = definition_of(ah._real_path(words[1]), words)
  local id = place == "open" and named or nil
  return agent_of.kept(function(store)
    return definition:open { id = id, store = store or not id and false or nil,
      policies = { plan.policy(chat) } }
  end, place, not id and named ~= "" and named or nil, chat.flags)
end

local function answer(flags, words, _, found)
  local place, named = found:match "^(%S+) ?(.*)$"
  local chat = { flags = flags, script = words[1], plan = flags.plan }
  local agent <close> = words[1] and script_agent(chat, words, place, named)
    or own_agent(chat, place, named)
  chat.agent = agent
  return use "chat.loop".run(chat)
end

return {
  name = "chat",
  doc = "talk with a model that has tools, or with the agent of a script",
  usage = "[agent.lua [words...]]",
  help = [[
Talks with the agent that agent.lua returns; without a script with a model that
has tools for this folder: it reads freely, and asks before it writes or runs a
command. /help lists what else can be typed. The conversation is kept in the
store, and -c goes on with it.
]],
  exits = "those of a script, see agenthost --help.",
  operand = { name = "script", complete = "lua" },
  flags = { "model", flag.system, flag.tool, flag.option,
    { name = "continue", letter = "c", doc = "go on with the last chat of this folder" },
    { name = "resume", value = "ID", once = true, doc = "go on with this conversation" },
    { name = "plan", doc = "let the model only read, until /go" },
    flag.max_cost,
    { name = "no-store", doc = "keep nothing" },
    "env-file", "store", "record", "replay" },
  shared = true,
  run = stored.carefully(run),
  answer = stored.carefully(answer),
}
