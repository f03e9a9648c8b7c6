--- Commands of a chat that go on with another conversation.
local ah, use = ...
local facts, turns = use "chat.facts", use "chat.turns"
local pick, place_of, stored, text = use "pick", use "prompt.place", use "stored", use "text"

local fault = use "pairs".fault

-- -- forks -------------------------------------------------------------------------------------

-- Returns the turn after which a fork goes on: the last one, or that before question n.
local function turn_of(list, last, n)
  if not n then
    return last
  end
  return list[n] and list[n].before
    or fault("There is no question %d: the numbers are 1 to %d.", n, #list)
end

local function fork(chat, words)
  local n = math.tointeger(tonumber(words))
  local list, last = turns.questions(chat.agent)
  local turn, entries = turn_of(list, last, n), facts.of(chat.agent).entries
  local before = chat.agent.id
  local agent, err = chat.agent:fork { at = turn, store = chat.store,
    id = not n and words ~= "" and words or nil }
  if not agent then
    error(err, 0)
  end
  chat.draft = turns.words_after(chat, entries, agent)
  use "chat.loop".switch(chat, agent)
  chat.output:note(("This is conversation %s now. To go back: /resume %s"):format(
    text.clean(agent.id), stored.quoted(before)))
end

-- -- other conversations -----------------------------------------------------------------------

local function script_of(chat)
  return chat.script and ah._real_path(chat.script)
end

-- Returns the id that a person chooses from the list; nil: none.
local function chosen(chat)
  local list = {}
  for _, one in ipairs(place_of.conversations(chat.store, script_of(chat))) do
    list[#list + 1] = one.id ~= chat.agent.id and one or nil
  end
  if not list[1] then
    fault "There is no other conversation of this folder."
  end
  chat.output:line(pick.lines(list))
  local line = chat.editor.on_terminal
    and chat.editor:read { prompt = pick.PROMPT, keep = false }
  return line and pick.chosen(list, line)
end

local function resume(chat, words)
  local id
  if words == "" then
    id = chosen(chat)
  else
    id = place_of.named(chat.store, chat.store.path or "memory", script_of(chat), words)
  end
  if not id then
    return
  elseif id == chat.agent.id then
    fault "This is that conversation."
  end
  local loop = use "chat.loop"
  loop.switch(chat, chat.open(id))
  if not chat.editor.on_terminal then
    chat.output:note(("This is conversation %s now."):format(text.clean(id)))
  end
  loop.go_on(chat)
end

local rows = {
  { name = "fork", words = "[N|ID]", idle = true, run = fork,
    doc = "go on in a new conversation from here, or before N" },
  { name = "resume", words = "[ID]", idle = true, run = resume,
    doc = "go on with another conversation of this folder" },
}

return { rows = rows }
