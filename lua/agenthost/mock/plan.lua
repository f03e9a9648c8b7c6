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
local LEAST_ROOM, MOST_ROOM = 256, 8192 -- bytes that are made together, after the first event

-- The end of the piece that begins at `at`: after PIECE bytes, or where their last character ends.
local function end_of(text, at)
  local to = math.min(at + PIECE - 1, #text)
  while to < #text and (text:byte(to + 1) & 0xC0) == 0x80 do
    to = to + 1
  end
  return to
end

local function next_piece(text, at)
  if at < #text then
    local to = end_of(text, at + 1)
    return to, text:sub(at + 1, to)
  end
end

--- Iterates over a text in pieces, cut between characters; an empty text has none. They are
-- made one by one: `for _, piece in plan.pieces(text) do`.
function plan.pieces(text)
  return next_piece, text, 0
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

-- Iterates over the pieces of a turn's text: its own list, or those that are made.
local function pieces_of(text)
  if type(text) == "table" then
    return ipairs(text)
  end
  return plan.pieces(text or "")
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
  return setmetatable({ give = give, line_end = line_end, counts = counts }, Stream)
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

--- Calls put_piece(piece) for each; a list of the script's own has its delay between them.
function Stream:each(text, delay, put_piece)
  local pause = type(text) == "table" and delay and math.floor(delay * 1000)
  for at, piece in pieces_of(text) do
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

--- The plan as JSON; bytes that are no UTF-8 as hex.
---@param p table { status, type, headers = list of { name, value }, wait, steps, streamed, drop }
function plan.encode(p)
  local steps = ah.array {}
  for i, step in ipairs(p.steps or {}) do
    if step.bytes and not utf8.len(step.bytes) then
      step = { hex = hex(step.bytes) }
    end
    steps[i] = step
  end
  p.steps, p.headers = steps, ah.array(p.headers or {})
  return ah.json.encode(p)
end

return plan
