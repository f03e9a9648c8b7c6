--- Asks in a chat: an ask stands at the prompt until a person responds, or until it is over. They
-- are shown one after the other. An item of chat.asks is a table of
--   ask      the ask
--   asking   how a person responds to it (asking.lua); nil: it was not at the prompt yet
--   typed    what was typed when the reading of a response was interrupted
--   since    the time when it was shown, if a person typed something else then
local ah, use, _, later = ...
local allowed, asking_of, changed = use "allowed", later "asking", later "changed"
local facts, text = use "chat.facts", use "text"

local M = {}

local QUEUED = 1000000
local SOON = 1 -- seconds in which a response may be what was meant for the model

-- -- opening and closing -----------------------------------------------------------------------

--- The front end of the agent: gives the ask to the loop, until there is a response.
function M.front(chat, ask)
  local rule = chat.allowed:covers(ask)
  if rule then
    chat.output:note("Allowed in this folder: " .. allowed.words(rule))
    return true
  elseif not chat.editor.on_terminal then
    if ask.kind == "approval" then
      return false, "there is no terminal on which a person could allow it"
    end
    return
  end
  local item = { ask = ask }
  local _ <close> = setmetatable({}, { __close = function()
    chat.inbox:send { "ask_over", item }
  end })
  chat.inbox:send { "ask", item }
  ah.channel():receive() -- until the ask is over
end

-- Opens the list of allowed calls, and says what is in it.
local function open_allowed(chat)
  chat.allowed = allowed.open(chat.script)
  local rules, why = chat.allowed:rules()
  if why then
    chat.output:fault("The list of allowed calls is not used: " .. why)
  elseif rules[1] and chat.editor.on_terminal then
    chat.output:note(("%d %s always allowed in this folder, see /allowed."):format(#rules,
      #rules == 1 and "call is" or "calls are"))
  end
end

--- Makes the chat ready for the asks of its agent.
function M.attach(chat)
  chat.asks, chat.asks_over, chat.closed = {}, 0, {}
  chat.closings = chat.agent:events { max = QUEUED, types = { "ask_closed" } }
  chat.agent:on_ask(function(ask) return M.front(chat, ask) end)
  if not chat.allowed then
    open_allowed(chat)
  end
end

--- Takes an ask that was opened.
function M.enter(chat, item)
  chat.asks_over = chat.asks[1] and chat.asks_over or 0
  chat.asks[#chat.asks + 1] = item
  if #chat.asks == 1 then
    chat.editor:status(nil)
    chat.editor:bell()
  end
end

-- Returns the event of the end of an ask. It may have ended together with others.
local function closing(chat, id)
  while #chat.closings > 0 do
    local event = chat.closings()
    chat.closed[event.id] = event
  end
  local found = chat.closed[id]
  chat.closed = chat.asks[1] and chat.closed or {}
  return found
end

local function answered(event)
  local who = event.by == "store" and "from another terminal"
    or "by " .. changed.line(event.by or "?")
  local value = event.value
  if type(value) ~= "table" or value.approved == nil then
    return ("answered %s%s"):format(who, value ~= nil and ": " .. text.cut(text.json(value), 200)
      or "")
  end
  return ("%s %s%s"):format(value.approved and "allowed" or "refused", who,
    value.why and ": " .. changed.line(value.why) or "")
end

local ENDS = { default = "nobody responded, so the default holds", timeout = "its time is over",
  cancelled = "its call is over", parked = "it waits in the store",
  denied = "nobody can respond any more" }

-- Takes an ask off the list. False: it is not there any more.
local function remove(chat, item)
  for i, one in ipairs(chat.asks) do
    if one == item then
      table.remove(chat.asks, i)
      chat.asks_over = chat.asks_over + 1
      return true
    end
  end
  return false
end

--- Takes the end of an ask, and says how it came unless a person in the chat has responded.
function M.leave(chat, item)
  if not remove(chat, item) then
    return
  end
  local event, call = closing(chat, item.ask.id), item.ask.call
  chat.output:note(("%s: %s"):format(call and changed.line(call.name) or "The question",
    event and (event.how == "answered" and answered(event) or ENDS[event.how]) or "it is over"))
end

-- -- at the prompt -----------------------------------------------------------------------------

local function schema_of(chat, name)
  for _, tool in ipairs(facts.of(chat.agent).tools) do
    if tool.name == name then
      return tool.parameters
    end
  end
end

local function make(chat, item)
  item.asking = asking_of.new(item.ask, { allowed = chat.allowed, own = not chat.script,
    rich = chat.editor.rich,
    say = function(shown) chat.output:line(shown) end,
    schema = function(name) return schema_of(chat, name) end })
  item.since = (chat.draft or "") ~= "" and ah.now() or nil
  item.asking:show()
end

--- Returns what editor:read takes for a response.
function M.asked(chat, item)
  if not item.asking then
    make(chat, item)
  end
  local all = chat.asks_over + #chat.asks
  local asked = item.asking:asked(all > 1 and ("(%d of %d)"):format(chat.asks_over + 1, all) or nil)
  asked.text, item.typed = item.typed or asked.text, nil
  return asked
end

-- Responds to the other asks for which a rule was kept.
local function apply_rules(chat)
  for _, item in ipairs(table.move(chat.asks, 1, #chat.asks, 1, {})) do
    local rule = chat.allowed:covers(item.ask)
    if rule then
      remove(chat, item)
      chat.output:note("Allowed in this folder: " .. allowed.words(rule))
      item.ask:respond(true)
    end
  end
end

--- Takes the line that a person typed.
function M.take(chat, item, line)
  if item.since and ah.now() - item.since < SOON then
    item.since = nil
    chat.output:note "You were typing something else: please respond once more."
    return
  end
  if item.asking:take(line) then
    if item.asking.edited then
      chat.output.edited[item.ask.call.id] = ah.json.encode(item.asking.edited)
    end
    remove(chat, item)
    apply_rules(chat)
  end
end

-- -- unfinished runs ---------------------------------------------------------------------------

--- Returns true if the agent is to go on with a run that an earlier process did not end, or false
-- after that was cancelled; nil if there is none, or if a person decides later.
function M.unfinished(chat)
  local run = chat.agent.unfinished
  if not run then
    return nil
  elseif not chat.editor.on_terminal then
    return true
  end
  local waits = #(run.asks or {})
  chat.output:line { { "The last answer did not end. ", bold = true }, "Its question: ",
    text.cut(changed.line(run.question or "?"), 200), waits > 0 and (waits == 1
      and "\nIt waits for a response, which is asked for again." or
      ("\nIt waits for %d responses, which are asked for again."):format(waits)) or "" }
  while true do
    local line, why = chat.editor:read { keep = false, prompt = { { "Go on with it? [y/n] ",
      bold = true } } }
    if not line then
      chat.over = true
      return nil, why
    elseif line == "y" or line == "yes" then
      return true
    elseif line == "n" or line == "no" then
      assert(chat.agent:cancel())
      return false
    end
  end
end

return M
