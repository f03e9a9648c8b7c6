--- Commands of a chat about its project: /reload, and what --watch does between two turns.
local _, use, _, later = ...
local fault, reload, text = use "pairs".fault, later "reload", use "text"

local M = {}

-- Loads the files of the project again, and lets the conversation go on with what they return.
-- Raises if that is not possible; then all is as it was.
local function load_again(chat)
  local definition, why = chat.project:reload()
  if not definition then
    error(why, 0)
  end
  local agent, changed = reload.carry(chat.agent, definition)
  if not agent then
    error(changed, 0)
  end
  chat.definition = definition
  use "chat.loop".replace(chat, agent)
  if chat.model then
    assert(agent:use(chat.model))
  end
  chat.output:note(("The project is loaded again. %s"):format(changed[1]
    and text.clean(table.concat(changed, "; ")) or "The model reads the same as before."))
end

--- With --watch, loads the project again if a file of it has changed. Raises as /reload does.
function M.refresh(chat)
  if chat.flags.watch and chat.project and chat.project:changed()[1] then
    load_again(chat)
  end
end

local function run(chat)
  if not chat.project then
    fault "There is no project to load again: the chat was started without a script."
  end
  load_again(chat)
end

M.rows = {
  { name = "reload", doc = "load the script and its modules again", idle = true, run = run },
}

return M
