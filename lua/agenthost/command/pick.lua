--- A numbered list of conversations, of which a person picks one.
local ah, use = ...
local pairs_of, text, told = use "pairs", use "text", use "told"
local fault = pairs_of.fault

local M = {}

M.MOST = 20
M.PROMPT = "Go on with number: "

--- Returns the lines of a list from store:conversations.
function M.lines(list)
  local lines, width = {}, told.width()
  for i = 1, math.min(#list, M.MOST) do
    local one = list[i]
    local left = ("%3d  %s  %s  %s  "):format(i, told.minute(one.changed), text.clean(one.id),
      told.line(one.state or "?", 10))
    lines[i] = left .. told.line(one.title or "", math.max(width - utf8.len(left) - 1, 20))
  end
  return table.concat(lines, "\n")
end

--- Returns the id of the number that was typed; nil: nothing was.
function M.chosen(list, line)
  local word = line:match "%S+"
  local n = word and math.tointeger(tonumber(word))
  if not word then
    return nil
  end
  return n and n <= M.MOST and list[n] and list[n].id
    or fault("there is no number '%s' in the list: give 1 to %d",
      pairs_of.shown(text.cut(word, 40)), math.min(#list, M.MOST))
end

--- Returns the id of the conversation that a person picks on the terminal.
function M.ask(list)
  if not ah._is_terminal(0) or not ah._is_terminal(2) then
    fault("there is no terminal on which a conversation could be picked\n"
      .. "Give its id: --resume=ID; agenthost list has the ids.")
  end
  io.stderr:write(M.lines(list), "\n", M.PROMPT)
  local line = io.stdin:read "l"
  io.stderr:write(line and "" or "\n")
  return M.chosen(list, line or "") or fault "no conversation was picked"
end

return M
