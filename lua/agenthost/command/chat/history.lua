--- Commands of a chat that go back to an earlier question of the conversation, and forward again.
local _, use = ...
local dropped, facts, text, turns = use "dropped", use "chat.facts", use "text", use "chat.turns"

local fault = use "pairs".fault

-- Returns a set of the tools whose calls have no effects outside: they only read, or change only
-- what is recorded.
local function harmless_tools(agent)
  local set = {}
  for _, tool in ipairs(facts.of(agent).tools) do
    local is = tool.annotations or {}
    set[tool.name] = is.read_only or is.open_world == false or nil
  end
  return set
end

local function is_closed(agent)
  return not pcall(agent.mark, agent)
end

-- Opens the conversation anew. If that fails, the chat ends.
local function reopen(chat)
  local ok, agent = pcall(chat.open, chat.agent.id)
  if ok then
    use "chat.loop".switch(chat, agent)
  else
    chat.over, chat.failed = true, true
  end
end

-- Raises why the conversation did not go to another turn.
local function refuse(chat, err, name)
  if is_closed(chat.agent) then
    reopen(chat)
  elseif err.code == "conflict" then
    fault("%s\n/%s --keep-files leaves all files as they are, /%s --force overwrites them.",
      text.clean((err.message:gsub("; with `force`.*", ""))), name, name)
  end
  error(err, 0)
end

-- Lets the conversation go on after a turn. Returns what is dropped and changed.
local function go(chat, turn, how, name)
  local harmless = harmless_tools(chat.agent)
  local found, err = chat.agent:rewind(turn, { files = not how.keep_files, force = how.force })
  if not found then
    refuse(chat, err, name)
  end
  return dropped.brief(found, not how.keep_files, harmless)
end

-- Returns the flags among the words, and the other word.
local function read_words(words, name)
  local how, other = {}, nil
  for word in words:gmatch "%S+" do
    if word == "--keep-files" then
      how.keep_files = true
    elseif word == "--force" then
      how.force = true
    elseif word:find "^%-" or other then
      fault("/%s does not take '%s': it takes --keep-files or --force", name,
        text.clean(word))
    else
      other = word
    end
  end
  return how, other
end

local function show(chat, head, lines)
  table.insert(lines, 1, head)
  chat.output:note(table.concat(lines, "\n"))
end

-- Goes back to before question n of the list.
local function back(chat, list, last, n, how, name)
  local entries = facts.of(chat.agent).entries
  local lines = go(chat, list[n].before, how, name)
  chat.draft = turns.words_after(chat, entries, chat.agent)
  if last > list[n].before then
    table.insert(chat.undone, last)
  end
  local more = #list - n
  show(chat, ("Taken back: %s%s%s"):format(turns.beginning(list[n]),
    more > 0 and (" (and %d later)"):format(more) or "",
    list[n].open and " (it had no answer)" or ""), lines)
end

local function undo(chat, words)
  local how, other = read_words(words, "undo")
  local list, last = turns.questions(chat.agent)
  if other then
    fault("/undo does not take '%s'\n/rewind goes back over several questions.", text.clean(other))
  elseif not list[1] then
    turns.none(chat, "There is no question to take back.")
  end
  back(chat, list, last, #list, how, "undo")
end

local function redo(chat, words)
  local how, other = read_words(words, "redo")
  local turn = chat.undone[#chat.undone]
  if other then
    fault("/redo does not take '%s'", text.clean(other))
  elseif not turn then
    fault "There is nothing to bring back: since the last question nothing was taken back."
  end
  local undone = chat.undone
  local lines = go(chat, turn, how, "redo")
  chat.draft = nil
  table.remove(undone)
  local list = turns.questions(chat.agent)
  show(chat, "Brought back: " .. turns.beginning(list[#list] or {}), lines)
end

local function rewind(chat, words)
  local how, word = read_words(words, "rewind")
  local list, last = turns.questions(chat.agent)
  local n = turns.choose(chat, list, word)
  if n then
    back(chat, list, last, n, how, "rewind " .. n)
  end
end

local FLAGS = { "--keep-files", "--force" }

local function offer()
  return FLAGS
end

local rows = {
  { name = "undo", words = "[--keep-files]", doc = "take the last question and its answer back",
    idle = true, offer = offer, run = undo },
  { name = "redo", words = "[--keep-files]", doc = "bring back what was taken back", idle = true,
    offer = offer, run = redo },
  { name = "rewind", words = "[N]", doc = "go back to before question N, or choose it", idle = true,
    offer = offer, run = rewind },
}

return { rows = rows }
