--- agenthost chat: talks with an agent on a terminal, or from a pipe. `run` reads the flags and
-- finds the conversation; `answer` runs in the state and with the flags of a script, as that of a
-- prompt does (prompt.lua).
local ah, use, _, later = ...
local pairs_of, stored = use "pairs", use "stored"
local agent_of, place_of = use "prompt.agent", later "prompt.place"
local agents_md, plan, reload = later "agents_md", later "chat.plan", later "reload"

local fault, flag, shown = pairs_of.fault, agent_of.flag, pairs_of.shown

local FREE = "agenthost chat -m demo/tools"

-- Without -t, a chat has all tools for the current folder.
local TOOLS = { table.concat(agent_of.TOOLS, ",") }
local SYSTEM = "You talk with a person at a terminal. Your tools work in the folder in which the "
  .. "person is. Answer briefly; Markdown is shown with styles."

-- Returns the real path of the script; nil: there is none.
local function script_of(words)
  if not words[1] then
    return nil
  end
  local path, why = ah._real_path(words[1])
  if not path and not words[1]:find "[/.]" then
    fault("cannot read '%s': %s\nagenthost chat takes a script; what the model is to read is typed "
      .. "in the chat.", shown(words[1]), why)
  elseif path and ah._real_path(path .. "/agent.lua") then
    fault("'%s' is a folder\nIts agent:  agenthost chat %s", shown(words[1]),
      stored.quoted((words[1]:gsub("/*$", "/agent.lua", 1))))
  end
  return path or fault("cannot read '%s': %s", shown(words[1]), why)
end

local function run(flags, words, _, line)
  place_of.check(flags)
  agent_of.check(flags)
  local script = script_of(words)
  for _, name in ipairs(script and { "system", "tool", "mcp", "option",
    "max_cost" } or {}) do
    if flags[name] then
      fault("--%s is for a chat without a script, whose agent has fields for it",
        (name:gsub("_", "-")))
    end
  end
  if flags.watch and not script then
    fault "--watch is for the files of a script: agenthost chat --watch agent.lua"
  end
  local place, path = place_of.of(flags, line, script)
  return place_of.found(flags, place:find "^open " and place .. " " .. path or place, path)
end

-- -- the agent ---------------------------------------------------------------------------------

-- Returns the system text of a new conversation.
local function system_of(chat)
  local files, left = agents_md.read()
  chat.instructions = { files = files, left = left }
  for _, one in ipairs(left) do
    agent_of.warn(chat.flags, ("'%s' is not read: %s"):format(shown(one.path), one.why))
  end
  local section = agents_md.section(files)
  return (chat.flags.system or SYSTEM) .. (section and "\n\n" .. section or "")
end

-- Returns a function that opens a conversation of a store with the agent of the command itself.
local function own_opener(chat)
  _G.arg = nil -- the records of a conversation name the script that began it
  return function(store, id, flags)
    if not id then
      agent_of.check_model(flags, FREE)
      flags.tool = flags.tool or TOOLS
    end
    local fields = agent_of.fields(flags, id and "open" or "begin", id or "", store)
    fields.system = not id and system_of(chat) or fields.system
    table.insert(fields.policies, 1, plan.policy(chat))
    return agent_of.made(fields)
  end
end

-- Returns a function that opens a conversation of a store with the agent that the script returns.
local function script_opener(chat, words)
  chat.project = reload.new(words[1])
  chat.definition = chat.project:load(table.move(words, 2, #words, 1, {}))
  return function(store, id)
    return chat.definition:open { id = id, store = store, policies = { plan.policy(chat) } }
  end
end

-- Returns the place that `run` has found, and the id and the path of the store, if it has them.
local function split(found)
  local place, rest = found:match "^(%S+) ?(.*)$"
  if place == "open" then
    return place, rest:match "^([^/]*) (/.*)$" -- an id has no slash
  end
  return place, nil, rest ~= "" and rest or nil
end

-- Sets the agent of the chat. Without a store it is kept in memory, so that all commands work.
local function begin(chat, words, place, id, path)
  local flags = chat.flags
  local opener = words[1] and script_opener(chat, words) or own_opener(chat)
  chat.agent = agent_of.kept(function(where)
    local store, err = ah.store(where or { engine = "memory" })
    if not store then
      return nil, err
    end
    chat.store = store
    return opener(store, id, flags)
  end, place, path, flags)
  function chat.open(other)
    local agent, err = opener(chat.store, other, { max_cost = flags.max_cost, mcp = flags.mcp })
    return agent or error(err, 0)
  end
end

local function answer(flags, words, _, found)
  local chat = { flags = flags, script = words[1], plan = flags.plan }
  local place, id, path = split(found)
  if not words[1] and not id then
    agent_of.check_model(flags, FREE)
  end
  agent_of.servers(flags) -- may ask the person, before the chat has the terminal
  return use "chat.loop".run(chat, function() begin(chat, words, place, id, path) end)
end

return {
  name = "chat",
  doc = "talk with a model that has tools, or with a script's agent",
  usage = "[agent.lua [words...]]",
  help = [[
Talks with the agent that agent.lua returns; without a script with a model that
has tools for this folder: it reads freely, and asks before it writes or runs a
command. /help lists what else can be typed. The conversation is kept in the
store, and -c goes on with it.
]],
  exits = "those of a script, see agenthost --help.",
  operand = { name = "script", complete = "lua" },
  flags = { "model", "watch", flag.system, flag.tool, flag.mcp, flag.option,
    { name = "continue", letter = "c", doc = "go on with the last chat of this folder" },
    { name = "resume", value = "ID", optional = true, once = true,
      doc = "go on with this conversation, or pick one" },
    { name = "plan", doc = "let the model only read, until /go" },
    flag.max_cost,
    { name = "no-store", doc = "keep nothing" },
    "env-file", "store", "record", "replay" },
  shared = true,
  run = stored.carefully(run),
  answer = stored.carefully(answer),
}
