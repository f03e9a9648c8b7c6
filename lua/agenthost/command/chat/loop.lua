--- The loop of a chat. One task reads lines, one runs the agent; both, asks and signals send events
-- to the loop, which alone changes the chat. So a person can type while the model answers.
--
-- A chat is a table of
--   agent    the conversation
--   flags    of the command line
--   script   the path of the script of the agent; nil: it is the command's own
--   store    the store of the conversation, maybe in memory
--   open     open(id) returns an agent with another conversation of the store
--   editor   the line editor (editor.lua)
--   output   what is shown of the conversation (chat/output.lua)
--   inbox    a channel of events: { name, ... } calls chat.on[name](chat, ...)
--   run      the task in which the agent answers; nil: none is at work
--   reading  { task, ask } of the line that is read now; nil: none is
--   asks     the list of open asks (chat/asks.lua); the first is at the prompt
--   draft    what the next line begins with, such as what was typed when its reading ended early
--   typed    texts that differ from what was typed (@FILE), with what was typed
--   undone   a list of turns: the conversation ended there before the undos that can be taken back
--   plan     true: only tools that read are run (chat/plan.lua)
--   sent     how many messages there are with those said during the answer at work; nil: none was
--   leaving  true: the chat ends after the answer at work
--   over     true: the chat ends
--   project, definition
--            the files of the script (reload.lua), and the agent that it has returned
--   model    the model of /model; nil: that of the agent
--   instructions
--            { files, left } of agents_md.lua; nil: none were looked for
local ah, use, _, later = ...
local pairs_of, editor_of = use "pairs", use "editor"
local asks, commands, output_of = use "chat.asks", later "chat.commands", use "chat.output"
local facts, message, plan = use "chat.facts", use "chat.message", use "chat.plan"
local project = later "chat.project"

local M = {}

local PROMPT, PLANNING = { { "> ", bold = true } }, { { "plan> ", bold = true } }
local EVENTS = 1000 -- that wait for the loop
local HANGUP = 129  -- exit code after SIGHUP

-- -- reading -----------------------------------------------------------------------------------

-- True if the next line may be read: without editing, an answer would be printed into it.
local function may_read(chat)
  return chat.asks[1] or chat.editor.rich or not chat.run
end

-- Returns what completes the line; nothing before there is an agent, or if that cannot be found.
local function complete(chat, ...)
  local ok, candidates, from = pcall(commands.complete, chat, ...)
  if ok and chat.agent then
    return candidates, from
  end
end

-- Starts the task that reads a line: a response to the first ask, or what the person says.
local function start_reading(chat)
  local ask = chat.asks[1]
  local asked = ask and asks.asked(chat, ask) or { prompt = chat.plan and PLANNING or PROMPT,
    text = chat.draft, complete = function(...) return complete(chat, ...) end }
  if not ask then
    chat.draft = nil
  end
  local reading = { ask = ask }
  reading.task = ah.spawn(function()
    local ok, line, why, text = pcall(chat.editor.read, chat.editor, asked)
    chat.inbox:send { "line", reading, ok and line or nil, ok and why or line, text }
  end)
  chat.reading = reading
end

-- The same, but an ask that cannot be shown ends the answer that asks.
local function start_reading_or_cancel(chat)
  local ok, err = pcall(start_reading, chat)
  if not ok and not chat.asks[1] then
    error(err, 0)
  elseif not ok then
    table.remove(chat.asks, 1)
    chat.output:fault(err)
    assert(chat.agent:cancel())
  end
end

--- Ends the reading of a line, which begins again with what was typed. A line that is complete is
-- in the inbox.
function M.stop_reading(chat)
  local reading = chat.reading
  if not reading then
    return
  end
  chat.reading = nil
  reading.task:cancel()
  if reading.ask then
    reading.ask.typed = chat.editor.draft
  else
    chat.draft = chat.editor.draft or chat.draft
  end
end

-- Calls a function, and shows its failure as that of a command.
local function carefully(chat, f, ...)
  local ok, err = pcall(f, ...)
  if not ok then
    chat.output:fault(err)
  end
end

-- -- the agent ---------------------------------------------------------------------------------

--- Lets the agent answer the content, or without it go on.
function M.ask_model(chat, content)
  chat.undone, chat.sent = {}, nil
  chat.output:begin()
  chat.run = ah.spawn(function()
    local ok, reply, err = pcall(chat.agent.run, chat.agent, content)
    chat.inbox:send { "done", ok, reply, err }
  end)
end

-- Returns how many messages of the person the conversation has, and true if one is its end.
local function questions(chat)
  local n, last = 0, nil
  for _, entry in ipairs(facts.of(chat.agent).entries) do
    n, last = n + (entry.type == "user" and 1 or 0), entry
  end
  return n, last ~= nil and last.type == "user"
end

--- Takes what the person said: the agent answers it, after the answer at work if there is one.
function M.say(chat, line)
  local content = plan.with_note(chat, message.content(line))
  chat.typed[content] = content ~= line and line or nil
  if not chat.run then
    carefully(chat, project.refresh, chat)
    return M.ask_model(chat, content)
  end
  chat.sent = (chat.sent or questions(chat)) + 1
  assert(chat.agent:send(content))
  chat.output:note "It is read after the present step."
end

-- True if what a person said during the answer came too late for it: no answer follows, or the
-- message waits for the next run, and the transcript does not have it yet.
local function is_late(chat)
  local n, is_last = questions(chat)
  return is_last or n < chat.sent
end

-- Ends the answer at work. Its text stays.
local function cancel(chat)
  assert(chat.agent:cancel())
end

-- -- events ------------------------------------------------------------------------------------

local on = {}

-- Ctrl-C ends the answer, then drops what was typed, then ends the chat.
local function interrupt(chat, ask, text)
  if chat.run then
    chat.draft = not ask and text ~= "" and text or nil
    cancel(chat)
  elseif text == "" or not chat.editor.on_terminal then
    chat.over = true
  end
end

-- Ctrl-D, or the end of the input. An answer at work is waited for; a second Ctrl-D ends it.
local function ended(chat)
  if not chat.run then
    chat.over = true
  elseif chat.editor.gone then
    os.exit(HANGUP) -- the run stays unfinished in the store, as after SIGHUP
  elseif chat.leaving or chat.asks[1] then
    chat.leaving = true
    cancel(chat)
  else
    chat.leaving = true
    chat.output:note "The chat ends after this answer."
  end
end

-- A line was read. It may have been complete when its reading was stopped, and another one begun.
function on.line(chat, reading, line, why, text)
  local ask = reading.ask
  if chat.reading == reading then
    chat.reading = nil
  end
  M.stop_reading(chat)
  if why == "interrupt" then
    interrupt(chat, ask, text)
  elseif why == "end" then
    ended(chat)
  elseif not line then
    chat.over = true -- the terminal is of no use any more
    error(why, 0)
  elseif ask then
    asks.take(chat, ask, line)
  elseif commands.is_command(line) then
    commands.perform(chat, line)
  elseif line:find "%S" then
    M.say(chat, line)
  end
end

function on.done(chat, ok, reply, err)
  chat.run = nil
  chat.output:settle()
  chat.output:finish(ok and reply or nil, not ok and reply or err)
  chat.failed = chat.failed or not ok or not reply
  if chat.sent and ok and reply and is_late(chat) then
    M.ask_model(chat)
  else
    chat.over = chat.over or chat.leaving
  end
end

-- An ask was opened, or is over.
function on.ask(chat, ask)
  M.stop_reading(chat)
  asks.enter(chat, ask)
end

function on.ask_over(chat, ask)
  if chat.reading and chat.reading.ask == ask then
    M.stop_reading(chat)
  end
  asks.leave(chat, ask)
end

M.on = on

-- Waits for an event and takes it. A Ctrl-C comes as the error `cancelled` if no line is read.
local function step(chat)
  if not chat.reading and may_read(chat) then
    start_reading_or_cancel(chat)
  end
  local ok, event = pcall(chat.inbox.receive, chat.inbox)
  if ok then
    return on[event[1]](chat, table.unpack(event, 2, 6))
  elseif type(event) == "table" and event.code == "cancelled" then
    return interrupt(chat, nil, "")
  end
  error(event, 0)
end

-- Closes the agent, and shows if its last records could not be written.
local function close(chat)
  local ok, err = chat.agent:close()
  if not ok then
    chat.output:fault(err)
  end
end

-- Shows what happens in the conversation from now on.
local function attach(chat)
  chat.undone = {}
  chat.output:attach(chat.agent)
  asks.attach(chat)
end

--- Lets the chat go on with another conversation. The one before is closed.
function M.switch(chat, agent)
  chat.output:settle()
  close(chat)
  chat.agent = agent
  attach(chat)
end

--- Lets the chat go on with another agent of its conversation, which has closed the one before.
function M.replace(chat, agent)
  chat.agent = agent
  attach(chat)
end

--- Shows the end of the conversation, and goes on with a run that did not end.
function M.go_on(chat)
  chat.output:recall(chat.agent)
  if asks.unfinished(chat) then
    M.ask_model(chat)
  end
end

-- Calls `begin` while the first line can be typed already, since it may take its time.
local function begin_behind_prompt(chat, begin)
  if chat.editor.rich then
    start_reading(chat)
    ah.yield()
  end
  local _ <close> = setmetatable({}, { __close = function() M.stop_reading(chat) end })
  begin()
end

--- Runs a chat: a table with `flags`, `script` and `plan`. begin() sets `agent`, `store` and
-- `open`, or raises. Returns the exit code.
function M.run(chat, begin)
  ah.interactive()
  local editor <close> = editor_of.open { history = pairs_of.in_state "chat_history" }
  chat.editor, chat.inbox, chat.typed, chat.asks = editor, ah.channel(EVENTS), {}, {}
  chat.output = output_of.new(chat)
  chat.output:welcome()
  begin_behind_prompt(chat, begin)
  chat.output:instructions(chat.instructions and chat.instructions.files or {})
  local _ <close> = setmetatable({}, { __close = function() close(chat) end })
  attach(chat)
  M.go_on(chat)
  while not chat.over do
    carefully(chat, step, chat)
  end
  return chat.failed and not editor.on_terminal and 1 or 0
end

return M
