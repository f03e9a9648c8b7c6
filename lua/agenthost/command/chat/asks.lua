--- Asks in a chat: an ask stands at the prompt until a person responds, or until it is over.
local ah, use = ...
local text = use "text"

local M = {}

--- The front end of the agent: gives the ask to the loop, and waits for the response.
function M.front(chat, ask)
  if not chat.editor.on_terminal then
    return false, "there is no terminal on which a person could allow it"
  end
  local item = { ask = ask, response = ah.channel(1) }
  local _ <close> = setmetatable({}, { __close = function()
    chat.inbox:send { "ask_over", item }
  end })
  chat.inbox:send { "ask", item }
  return table.unpack(item.response:receive())
end

--- Returns what editor:read takes for a response.
function M.asked(chat, item)
  if not item.shown then
    item.shown = true
    chat.output:line { { item.ask.call and item.ask.call.name or "", bold = true }, " ",
      text.json(item.ask.call and item.ask.call.arguments), "\n", item.ask.question }
  end
  return { prompt = { { "Allow it? [y/n] ", bold = true } }, keep = false }
end

--- Takes the line that a person typed.
function M.take(_, item, line)
  local answer = line:match "^%s*(%S*)"
  if answer == "y" then
    item.response:send { true }
  elseif answer == "n" then
    item.response:send { false, "the user does not allow it" }
  end
end

--- Refuses an ask.
function M.refuse(_, item, why)
  item.response:send { false, why }
end

return M
