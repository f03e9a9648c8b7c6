--- The command /allowed of a chat: calls that are always allowed in this folder.
local _, use = ...
local fault, words_of = use "pairs".fault, use "allowed".words

local function list(chat)
  local rules, why = chat.allowed:rules()
  if not rules then
    fault("The list of allowed calls is not used: %s", why)
  end
  local lines = {}
  for i, rule in ipairs(rules) do
    lines[i] = ("%3d  %s"):format(i, words_of(rule))
  end
  chat.output:line(lines[1] and table.concat(lines, "\n")
    or "In this folder each call that is asked about is asked about each time.")
end

local function run(chat, words)
  if words == "" then
    return list(chat)
  end
  local n = math.tointeger(tonumber(words:match "^remove%s+(%d+)$"))
  if not n then
    fault "/allowed takes nothing, or: remove N"
  end
  chat.output:note("Asked about again: " .. words_of(chat.allowed:remove(n)))
end

local rows = {
  { name = "allowed", words = "[remove N]", doc = "list what is always allowed, or take one back",
    offer = function() return { "remove" } end, run = run },
}

return { rows = rows }
