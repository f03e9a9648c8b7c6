--- Shows a conversation: the answer as it comes, a line for each call, and the state of the run.
-- Events come from a queue, so that an agent of a script can be watched, too.
local ah, use, _, later = ...
local facts, styled, text = use "chat.facts", later "styled", use "text"

local M = {}

local QUEUED = 1000000 -- events
local TYPES = { "content", "usage", "tool_started", "tool_progress", "tool_invoked", "retry",
  "fallback", "queued", "handoff" }
local SHOWN = 200      -- bytes of the arguments or of the result of a call in its line
local VALUE = 80       -- bytes of one argument there
local TAIL = 20        -- lines of the last answer when a conversation goes on
local SOON = 1         -- seconds after which the state of a run is shown

local Output = {}
Output.__index = Output

-- -- lines -------------------------------------------------------------------------------------

--- Writes a line.
function Output:line(shown)
  self:end_text()
  self.editor:print_line(shown)
end

--- Writes a line about the chat itself.
function Output:note(words)
  self:line { words, faint = true }
end

--- Writes an error: a text, or what a function has raised or returned.
function Output:fault(err)
  local words = type(err) == "table" and (err.words or err.message) or tostring(err)
  self:line { words, color = "red" }
end

-- -- answers -----------------------------------------------------------------------------------

local function print_texts(o, texts)
  for _, one in ipairs(texts) do
    o.editor:print(one)
  end
end

-- Ends the text of an answer.
function Output:end_text()
  if self.printer then
    local printer = self.printer
    self.printer = nil
    print_texts(self, printer:finish())
  end
  if self.editor.unfinished then
    self.editor:print "\n"
  end
end

-- Adds a piece of an answer: as it is, unless styles can be shown.
local function add_text(o, piece)
  if not o.editor.rich then
    return o.editor:print(piece)
  end
  o.printer = o.printer or styled.printer()
  print_texts(o, o.printer:feed(piece))
end

-- -- calls -------------------------------------------------------------------------------------

-- Returns the first line of a text, cut to `most` bytes.
local function brief(s, most)
  local line = s:match "^%s*([^\n]*)"
  local cut = text.cut(line, most or SHOWN)
  return #cut < #s and cut .. " ..." or cut
end

-- Returns the arguments of a call in one line.
local function arguments_of(json)
  local arguments = ah.json.decode(json)
  if type(arguments) ~= "table" then
    return brief(json)
  end
  local names, parts = {}, {}
  for name in pairs(arguments) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = arguments[name]
    parts[i] = name .. "=" .. brief(type(value) == "string" and value or ah.json.encode(value),
      VALUE)
  end
  return brief(table.concat(parts, " "))
end

-- Writes the line of a call that has its result. /show N shows all of it.
local function call_line(o, call)
  o.calls[#o.calls + 1] = call
  o:line { { ("[%d] "):format(#o.calls), faint = true }, { call.name, bold = true }, " ",
    arguments_of(call.arguments), { " -> ", faint = true },
    { brief(call.content), faint = call.success, color = not call.success and "red" or nil } }
end

-- -- the state of the run ------------------------------------------------------------------------

local function show_state(o)
  local seconds = math.floor(ah.now() - o.since)
  local words = o.doing or "The model answers"
  o.editor:status(seconds >= SOON and not o.chat.asks[1]
    and { { ("%s, %d s. Ctrl-C ends it."):format(words, seconds), faint = true } } or nil)
end

local shown = {}

function shown.content(o, e)
  add_text(o, e.text)
end

function shown.usage(o)
  o:end_text()
end

function shown.tool_started(o, e)
  o.doing = e.name
end

function shown.tool_progress(o, e)
  o.doing = e.name .. (e.message and ": " .. brief(e.message) or "")
    .. (e.fraction and (" %d %%"):format(e.fraction * 100) or "")
end

function shown.tool_invoked(o, e)
  o.doing = nil
  if not e.parent_call then
    call_line(o, { name = e.name, arguments = o.edited[e.id] or e.arguments, content = e.content,
      success = e.success, duration = e.duration })
    o.edited[e.id] = nil
  end
end

function shown.retry(o, e)
  o:note(("%s; the request is sent again in %.1f s"):format(e.message, e.delay))
end

function shown.fallback(o, e)
  o:note(("%s fails (%s), %s goes on"):format(e.from, e.message, e.to))
end

function shown.handoff(o, e)
  o:note(("%s goes on"):format(e.to))
end

function shown.queued(o, e)
  o.doing = "It waits: " .. e.reason
end

--- Watches the agent, until it is closed.
function Output:attach(agent)
  local events = agent:events { max = QUEUED, types = TYPES }
  self.events = events
  ah.spawn(function()
    for event in events do
      shown[event.type](self, event)
    end
  end)
end

-- -- a run -------------------------------------------------------------------------------------

--- A run begins.
function Output:begin()
  self.since, self.doing = ah.now(), nil
  self.clock = ah.every(SOON, function() show_state(self) end)
end

--- Waits until all events of the run are shown.
function Output:settle()
  while #self.events > 0 do
    ah.yield()
  end
end

--- A run has ended, with a reply or an error.
function Output:finish(reply, err)
  self.clock:cancel()
  self.editor:status(nil)
  self:end_text()
  if not reply and type(err) == "table" and err.code == "cancelled" then
    self:note "(ended)"
  elseif not reply then
    self:fault(err)
  end
  if self.editor.on_terminal then
    self:line ""
  end
end

-- -- a conversation that goes on -----------------------------------------------------------------

-- Takes the calls of the transcript. Returns the last question and the last answer, texts.
local function recall(o, entries)
  local question, answer, asked = nil, nil, {}
  for _, entry in ipairs(entries) do
    if entry.type == "user" then
      question, answer = facts.text_of(entry), nil
    elseif entry.type == "assistant" then
      answer = facts.text_of(entry)
      for _, call in ipairs(entry.tool_calls or {}) do
        asked[call.id] = call
      end
    elseif entry.type == "tool_result" and asked[entry.id] then
      o.calls[#o.calls + 1] = { name = entry.name, arguments = asked[entry.id].arguments,
        content = entry.content, success = entry.success }
    end
  end
  return question, answer
end

-- Shows the end of a text.
local function tail(s)
  local lines = {}
  for line in (s .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
  end
  local cut = #lines > TAIL
  return (cut and "...\n" or "") .. table.concat(lines, "\n", cut and #lines - TAIL + 1 or 1)
end

--- Takes the agent's conversation as it is, and shows its last question and answer.
function Output:recall(agent)
  self.calls = {}
  local question, answer = recall(self, facts.of(agent).entries)
  if question and self.editor.on_terminal then
    self:note(("Conversation %s goes on."):format(agent.id))
    self:line { { "> ", bold = true }, tail(question) }
    if answer and answer:find "%S" then
      add_text(self, tail(answer) .. "\n")
      self:end_text()
    end
  end
end

--- Says how a chat is used, at its beginning.
function Output:welcome()
  if self.editor.on_terminal and not self.chat.flags.quiet then
    self:note(("agenthost %s. /help lists the commands, Ctrl-D ends."):format(ah.version))
  end
end

--- Names the files AGENTS.md that are in the system text.
function Output:instructions(files)
  local names = {}
  for i, file in ipairs(files) do
    names[i] = file.name
  end
  if names[1] and self.editor.on_terminal and not self.chat.flags.quiet then
    self:note(("The model has read %s, see /context."):format(table.concat(names, " and ")))
  end
end

function M.new(chat)
  return setmetatable({ chat = chat, editor = chat.editor, calls = {}, edited = {} }, Output)
end

return M
