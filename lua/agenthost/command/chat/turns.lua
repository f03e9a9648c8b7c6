--- The questions of the conversation of a chat, to go back to before one of them.
local ah, use = ...
local facts, plan = use "chat.facts", use "chat.plan"
local stored, text, told = use "stored", use "text", use "told"

local fault = use "pairs".fault

local M = {}

-- -- the questions -----------------------------------------------------------------------------

--- Returns the questions of the conversation, and its last turn. A question is a table of
--   before   the turn before it
--   words    its beginning; nil: it begins with an image
--   open     true: it has no answer
function M.questions(agent)
  local list, at = {}, 0
  local found, err = agent:rewind(0, { dry = true })
  for _, item in ipairs((found or error(err, 0)).dropped) do
    if item.kind == "question" or item.kind == "turn" and (item.question or not list[1]) then
      list[#list + 1] = { before = at, words = item.question, open = item.kind == "question" }
    end
    at = item.kind == "turn" and item.turn or at
  end
  return list, at
end

--- Raises that there is no question. Those before a fork belong to another conversation.
function M.none(chat, words)
  local opened = ah._opened(chat.store, chat.agent.id)
  local base = told.get(told.get(opened, "base", "table"), "stream", "string")
  fault("%s%s", words, base and ("\nThose before belong to conversation %s: /resume %s"):format(
    text.clean(base), stored.quoted(base)) or "")
end

--- Returns the beginning of a question in one line.
function M.beginning(question)
  return told.line(plan.without_note(question.words or "(an image)"), 60)
end

-- Returns the texts of the user between two answers, from the entry at `from` on: what was typed,
-- if it was typed in this chat.
local function words_of(chat, entries, from)
  local found = {}
  for i = from, #entries do
    if entries[i].type == "assistant" then
      break
    end
    if entries[i].type == "user" then
      local said = facts.text_of(entries[i])
      found[#found + 1] = chat.typed[said] or plan.without_note(said)
    end
  end
  return found[1] and table.concat(found, "\n") or nil
end

-- Returns how many messages of the user there are.
local function count_messages(entries)
  local n = 0
  for _, entry in ipairs(entries) do
    n = n + (entry.type == "user" and 1 or 0)
  end
  return n
end

-- Returns the index of message n; behind the last entry without one.
local function find_message(entries, n)
  for i, entry in ipairs(entries) do
    n = n - (entry.type == "user" and 1 or 0)
    if n == 0 then
      return i
    end
  end
  return #entries + 1
end

--- Returns what the user said behind the messages that the agent has, from the entries of a
-- conversation that goes on from the same beginning; nil: nothing.
function M.words_after(chat, entries, agent)
  local kept = count_messages(facts.of(agent).entries)
  return words_of(chat, entries, find_message(entries, kept + 1))
end

-- -- choosing ----------------------------------------------------------------------------------

local function list_questions(chat, list)
  local lines = {}
  for i, question in ipairs(list) do
    lines[i] = ("%4d  %s%s"):format(i, M.beginning(question),
      question.open and "  (no answer)" or "")
  end
  chat.output:line(table.concat(lines, "\n"))
end

--- Returns the number of a question from the words of a command; nil: the person has chosen none.
-- Without words the questions are listed, and the person is asked, if there is one.
function M.choose(chat, list, word)
  if not list[1] then
    M.none(chat, "There is no question yet.")
  elseif not word then
    list_questions(chat, list)
    word = chat.editor.on_terminal
      and chat.editor:read { prompt = "Go back to before question: ", keep = false }
    if not word or not word:find "%S" then
      return nil
    end
  end
  local n = math.tointeger(tonumber(word))
  return n and list[n] and n or fault("There is no question %s: the numbers are 1 to %d.",
    text.clean(text.cut(word, 40)), #list)
end

return M
