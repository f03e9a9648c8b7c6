--- The command /cost of a chat: the money and tokens of the conversation, of today and of this
-- folder.
local _, _, _, later = ...
local spent = later "spent"

local function cost(chat)
  local sums = spent.of(chat.store, chat.agent.id)
  local lines = {}
  for i, pair in ipairs { { "this conversation", "conversation" }, { "today", "today" },
    { "this folder", "folder" } } do
    lines[i] = ("%-18s%s"):format(pair[1], spent.words(sums[pair[2]]))
  end
  local date = sums.folder.prices_of or sums.today.prices_of
  lines[#lines + 1] = date and ("Prices that providers do not report are those of %s."):format(date)
    or nil
  chat.output:line(table.concat(lines, "\n"))
end

local rows = {
  { name = "cost", doc = "show the cost: this conversation, today, this folder",
    run = cost },
}

return { rows = rows }
