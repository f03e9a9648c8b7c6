--- What the server sends in answer to one request, in steps: bytes, waits, and how it ends.
-- The C side plays it; this file makes it, cuts texts into pieces, and breaks answers as a
-- script asks for it. A stream is made piece by piece, when the client takes it: no more of it is
-- ever there than what is on its way. It knows no provider.
local ah = ...

local plan = {}

local PIECE = 12 -- bytes of a text that the script did not cut itself
local COUNTED = 64 -- steps between two turns for others
local SLICE = 32768 -- bytes of a step that are handed over together
local LARGE = 1 << 18 -- bytes of a step that leaves much behind
local HOLE = ("%%s %p"):format(plan) -- what stands for a piece, and in no text of others
local LEAST_ROOM, MOST_ROOM = 256, 32768 -- bytes that are made together, after the first event

-- The end of the piece that begins at `at`: after PIECE bytes, or where their last character ends.
local function end_of(text, at)
  local to = math.min(at + PIECE - 1, #text)
  while to < #text and (text:byte(to + 1) & 0xC0) == 0x80 do
    to = to + 1
  end
  return to
end

--- Words from outside, fit for JSON: where they are no UTF-8, each byte that is no ASCII is "?".
function plan.legible(words)
  return utf8.len(words) and words or (words:gsub("[\x80-\xff]", "?"))
end

--- Arguments for wires that have them as an object; what is none is empty there.
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

-- `counts`: the steps are only counted, so nothing is put into words.
local function new_stream(give, line_end, counts)
  return setmetatable({ give = give, line_end = line_end, counts = counts, events = 0 }, Stream)
end

-- Here and below in tail calls: what a large step was made from is not to wait with it.
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

--- The number of the next event, for who numbers them: from 0 on.
function Stream:number()
  if self.form then
    return HOLE:format "number"
  end
  self.events = self.events + 1
  return self.events - 1
end

-- What put_piece puts for any piece, encoded once: a list of texts. At `piece`, and at `number`
-- where it numbers its events, those are to stand.
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

-- In pieces of ours. The first one may differ from those behind it in what stands around it.
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

-- Lets garbage stand in the middle of n steps.
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

-- Lets n steps through up to the middle, the last of them half; then the connection breaks.
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

-- The steps that `write` has; every now and then give {} lets others have a turn.
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

-- Writes the body as the turn breaks it. The middle of a body is known when all of it has been
-- counted, so what breaks there is written twice; nothing of it is kept.
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

--- A streamed body, made as it is asked for. `write(out, counts)` says all of it; where `counts` is
-- true, only to count its steps.
---@param line_end? string of its events; nil: "\n"
function plan.stream(turn, write, line_end)
  return { room = 0, made = coroutine.create(function()
    write_broken(turn, write, line_end or "\n", coroutine.yield)
  end) }
end

--- A body that is there at once, and still goes out piece by piece.
---@param steps table list of steps
function plan.stream_of(steps)
  return { room = 0, made = coroutine.create(function()
    for _, step in ipairs(steps) do
      coroutine.yield(step)
    end
  end) }
end

local function sliced(stream)
  local bytes, at = stream.rest, stream.at
  stream.at = at + SLICE
  stream.rest = stream.at <= #bytes and bytes or nil
  return { bytes = bytes:sub(at, at + SLICE - 1) }
end

-- The next step, or a slice of one that is large; nil: there is none.
local function next_step(stream)
  if stream.rest then
    return sliced(stream)
  end
  local ok, step = coroutine.resume(stream.made)
  if not ok then
    error(step, 0)
  elseif coroutine.status(stream.made) == "dead" then
    return nil
  elseif step.bytes and #step.bytes > SLICE then
    if #step.bytes > LARGE then
      collectgarbage() -- what it was made from is as large
    end
    stream.rest, stream.at = step.bytes, 1
    return sliced(stream)
  end
  return step
end

--- The next steps of a stream, and true if there may be more. What is said at once comes together,
-- up to a size that begins with a single event and grows: so the first is out soon, and many cost
-- little. May have no steps. Raises what the writer raised.
function plan.pull(stream)
  local bytes, size = {}, 0
  local step
  repeat
    step = next_step(stream)
    bytes[#bytes + 1] = step and step.bytes
    size = size + (step and step.bytes and #step.bytes or 0)
  until not (step and step.bytes) or size >= stream.room
  stream.room = math.min(math.max(stream.room * 2, LEAST_ROOM), MOST_ROOM)
  local steps = { size > 0 and { bytes = table.concat(bytes) } or nil }
  if step and (step.wait or step.close) then
    steps[#steps + 1] = step
  end
  return steps, step ~= nil and not step.close
end

--- The steps of a body that is there at once, as the turn breaks it, and the length that its head
-- tells.
function plan.whole(turn, bytes)
  bytes = turn.raw or turn.garbage or bytes
  if breaks_off(turn) then
    return { { bytes = bytes:sub(1, #bytes // 2) }, { close = true } }, #bytes
  end
  return { { bytes = bytes } }, #bytes
end

-- -- handing it over ----------------------------------------------------------------------

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Texts stand in a line: what would end it is %XX there.
local function line_of(key, value)
  return key .. " " .. (tostring(value):gsub("[%%\n%z]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end

local function whole_number(value)
  return math.tointeger(value) or 0
end

-- "step WAIT CLOSE BYTES [HEX]"; HEX in place of bytes behind the head.
local function step_line(step, behind)
  local bytes = step.bytes or ""
  local has_nul = bytes:find("\0", 1, true)
  behind[#behind + 1] = not has_nul and bytes or nil
  return ("step %d %d %d %s"):format(whole_number(step.wait), step.close and 1 or 0,
    has_nul and 0 or #bytes, has_nul and hex(bytes) or "")
end

--- The plan as lines "KEY VALUE", an empty line, and behind it the bytes of all steps. The whole is
-- handed over as a C string: bytes with a NUL stand in the line of their step, as hex.
---@param p table { status, type, headers = list of { name, value }, wait, steps, streamed, drop }
function plan.encode(p)
  local lines, behind = {}, {}
  for _, key in ipairs { "n", "status", "length", "wait" } do
    lines[#lines + 1] = ("%s %d"):format(key, whole_number(p[key]))
  end
  for _, key in ipairs { "drop", "streamed", "more", "warn" } do
    lines[#lines + 1] = p[key] and key .. " 1" or nil
  end
  for _, key in ipairs { "type", "say" } do
    lines[#lines + 1] = p[key] and line_of(key, p[key]) or nil
  end
  for _, pair in ipairs(p.headers or {}) do
    lines[#lines + 1] = line_of("name", pair[1])
    lines[#lines + 1] = line_of("value", pair[2])
  end
  for _, step in ipairs(p.steps or {}) do
    lines[#lines + 1] = step_line(step, behind)
  end
  return table.concat(lines, "\n") .. "\n\n" .. table.concat(behind)
end

return plan
