--- The plan of a response: its steps are bytes, waits, and the way in which it ends. This file
-- makes them, cuts texts into pieces, breaks answers as a script asks for it, and sends them. A
-- stream is made piece by piece, as the client takes it: only the bytes on their way are held in
-- memory. It knows no provider.
local ah, use = ...
local foreign = use "foreign"

local plan = {}

local PIECE = 12 -- bytes of a text that the script did not cut itself
local COUNTED = 1024 -- steps between two turns for others
local SLICE = 32768 -- bytes of a step that are sent together
local LARGE = 1 << 18 -- bytes of a step after which garbage is collected
local HOLE = ("%%s %p"):format(plan) -- placeholder that no other text contains
local LEAST_ROOM, MOST_ROOM = 256, 32768 -- bytes that are made together, after the first event
local OVER = {} -- raised when nothing more is to be made

-- The end of the piece that begins at `at`: after PIECE bytes, or where their last character ends.
local function end_of(text, at)
  local to = math.min(at + PIECE - 1, #text)
  while to < #text and (text:byte(to + 1) & 0xC0) == 0x80 do
    to = to + 1
  end
  return to
end

--- Makes a text from outside fit for JSON: if it is not UTF-8, each byte that is not ASCII is "?".
function plan.legible(words)
  return utf8.len(words) and words or (words:gsub("[\x80-\xff]", "?"))
end

--- Decodes arguments for wire formats that have them as an object; any other value is empty there.
function plan.object_of(arguments)
  local object = ah.json.decode(arguments)
  local is_array = getmetatable(object) == getmetatable(ah.array {})
  return type(object) == "table" and not is_array and object or ah.object {}
end

function plan.joined(text)
  return type(text) == "table" and table.concat(text) or text or ""
end

-- -- a streamed body ------------------------------------------------------------------------

--- A body being written, event by event: `give` gets each step before the next one is made.
local Stream = {}
Stream.__index = Stream

-- `counts`: the steps are only counted, so nothing is encoded.
local function new_stream(give, line_end, counts)
  return setmetatable({ give = give, line_end = line_end, counts = counts, events = 0 }, Stream)
end

-- Tail calls, here and below, let the data that a large step was made from be freed while it is
-- sent.
function Stream:put(bytes)
  return self.give { bytes = bytes }
end

--- A named server-sent event, or one without a name.
function Stream:event(name, data)
  if self.counts then
    return self.give {}
  end
  local text = type(data) == "string" and data or ah.json.encode(data)
  local ends = self.line_end
  return self:put((name and "event: " .. name .. ends or "") .. "data: " .. text .. ends .. ends)
end

--- A line of JSON.
function Stream:line(value)
  if self.counts then
    return self.give {}
  end
  return self:put(ah.json.encode(value) .. "\n")
end

--- The number of the next event, from 0 on, for providers that number events.
function Stream:number()
  if self.form then
    return HOLE:format "number"
  end
  self.events = self.events + 1
  return self.events - 1
end

-- Calls put_piece once with a placeholder and returns the encoded event, cut into a list of texts.
-- The field `piece` is the index at which put_form puts a piece; `number` is the index of the
-- event's number, nil if events are not numbered.
function Stream:form_of(put_piece)
  local form, give, at = {}, self.give, 1
  self.form, self.give = form, function(step) form.bytes = step.bytes end
  put_piece(HOLE:format "piece")
  self.form, self.give = nil, give
  for from, name, to in form.bytes:gmatch('()"' .. HOLE:format "(%a+)" .. '"()') do
    form[#form + 1], form[#form + 2] = form.bytes:sub(at, from - 1), ""
    form[name], at = #form, to
  end
  form[#form + 1] = form.bytes:sub(at)
  return form
end

function Stream:put_form(form, piece)
  form[form.piece] = ah.json.encode(piece)
  if form.number then
    form[form.number] = self:number()
  end
  return self:put(table.concat(form))
end

-- Cuts the text into pieces. The event of the first one may differ from those of the others.
function Stream:each_of(text, put_piece)
  local at, form = 0, nil
  while at < #text do
    local to = end_of(text, at + 1)
    local piece = text:sub(at + 1, to)
    if self.counts then
      self.give {}
    elseif at == 0 then
      put_piece(piece)
    else
      form = form or self:form_of(put_piece)
      self:put_form(form, piece)
    end
    at = to
  end
end

--- Calls put_piece(piece), which puts one event, for the pieces of a text, cut between characters;
-- an empty text has none. The pieces of a list are the script's own, with its delay between them.
-- All events of a text that is cut here are alike but for the piece and number().
function Stream:each(text, delay, put_piece)
  if type(text) ~= "table" then
    return self:each_of(text or "", put_piece)
  end
  local pause = delay and math.floor(delay * 1000)
  for at, piece in ipairs(text) do
    if pause and at > 1 then
      self.give { wait = pause }
    end
    put_piece(piece)
  end
end

-- -- breaking it ----------------------------------------------------------------------------

-- Returns a `give` that puts garbage in the middle of n steps.
local function mixing(n, garbage, give)
  local at = 0
  return function(step)
    give(step)
    at = at + 1
    if at == (n + 1) // 2 then
      give { bytes = garbage }
    end
  end
end

-- Returns a `give` that passes n steps on up to the middle, the last one cut in half, and then
-- breaks the connection.
local function cutting(n, give)
  local left = (n + 1) // 2
  return function(step)
    left = left - 1
    if left == 0 and step.bytes then
      step = { bytes = step.bytes:sub(1, #step.bytes // 2) }
    end
    give(step)
    if left == 0 then
      give { close = true }
    end
  end
end

-- Counts the steps of `write`; give {} lets other tasks run after each COUNTED of them.
local function count(write, give)
  local n = 0
  write(new_stream(function()
    n = n + 1
    if n % COUNTED == 0 then
      give {}
    end
  end, "", true), true)
  return n
end

local function breaks_off(turn)
  return turn.cut or turn.close == "mid-stream"
end

-- Writes the body, broken as the turn asks for. Its middle is only known after all of it has been
-- counted, so a body that breaks there is made twice; nothing of it is kept.
local function write_broken(turn, write, line_end, give)
  if turn.raw then
    write = function(out) out:put(turn.raw) end
  end
  if breaks_off(turn) or (turn.garbage and not turn.raw) then
    local n = count(write, give)
    local cuts = breaks_off(turn)
    local mixes = turn.garbage and not turn.raw
    give = cuts and cutting(n + (mixes and 1 or 0), give) or give
    give = mixes and mixing(n, turn.garbage, give) or give
  end
  write(new_stream(give, line_end), false)
end

--- Returns a streamed body: a function that gives its steps. `write(out, counts)` writes all of it;
-- if `counts` is true, its steps are only counted.
---@param line_end? string of its events; nil: "\n"
function plan.stream(turn, write, line_end)
  return function(give)
    write_broken(turn, write, line_end or "\n", give)
  end
end

--- Like plan.stream, for a complete body, broken as the turn asks for. The second result is the
-- Content-Length of its head.
function plan.whole(turn, bytes)
  bytes = turn.raw or turn.garbage or bytes
  local cut = breaks_off(turn)
  return function(give)
    give { bytes = cut and bytes:sub(1, #bytes // 2) or bytes }
    return cut and give { close = true }
  end, #bytes
end

-- -- sending it ---------------------------------------------------------------------------

local sleep = foreign.waits(ah.sleep)

local write = foreign.waits(function(response, bytes) return response:write(bytes) end)

--- A response that is being sent. Events that are ready at once are sent together, up to a size
-- that begins with a single event and grows: the first is sent soon, and many cost little.
local Out = {}
Out.__index = Out

function Out:write(bytes)
  return write(self.response, bytes) or error(OVER, 0)
end

-- Sends the head, with the first bytes: a body that fails before them has sent no head.
function Out:begin()
  if self.begun then
    return
  end
  self.begun = true
  self.head()
end

function Out:flush()
  local bytes = table.concat(self.pieces, "", 1, self.n)
  self.pieces, self.n, self.size = {}, 0, 0
  self.room = math.min(math.max(self.room * 2, LEAST_ROOM), MOST_ROOM)
  self:begin()
  return bytes ~= "" and self:write(bytes)
end

function Out:put_large(bytes)
  self:flush()
  if #bytes > LARGE then
    collectgarbage() -- what it was made from is as large
  end
  for at = 1, #bytes, SLICE do
    self:write(bytes:sub(at, at + SLICE - 1))
  end
end

function Out:put(bytes)
  if #bytes > SLICE then
    return self:put_large(bytes)
  end
  self.n = self.n + 1
  self.pieces[self.n] = bytes
  self.size = self.size + #bytes
  if self.size >= self.room then
    return self:flush()
  end
end

-- Sends a step { bytes }, { wait } in milliseconds or { close }; an empty one lets other tasks run.
function Out:give(step)
  if step.bytes then
    return self:put(step.bytes)
  elseif step.wait or step.close then
    self:flush()
  end
  if step.close then
    self.response:abort()
    error(OVER, 0)
  end
  return sleep((step.wait or 0) / 1000)
end

--- Sends a body. Returns true; or false, the error, and true if the head had been sent.
---@param body fun(give: fun(step: table))
---@param response ah.ServerResponse
---@param head fun() sends the head; called once, before the first bytes
function plan.say(body, response, head)
  local out = setmetatable({ response = response, head = head, pieces = {}, n = 0, size = 0,
    room = 0 }, Out)
  local ok, why = pcall(function()
    body(function(step) return out:give(step) end)
    out:flush()
  end)
  return ok or why == OVER, why, out.begun
end

--- Waits before an answer.
plan.sleep = sleep

return plan
