--- What the server sends in answer to one request, in steps: bytes, waits, and how it ends.
-- The C side plays it; this file makes it, cuts texts into pieces, and breaks answers as a
-- script asks for it. It knows no provider.
local ah = ...

local plan = {}

local PIECE = 12 -- bytes of a text that the script did not cut itself

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

--- A body being written, event by event.
local Stream = {}
Stream.__index = Stream

---@param line_end? string of its events; nil: "\n"
function plan.stream(line_end)
  return setmetatable({ steps = {}, line_end = line_end or "\n" }, Stream)
end

function Stream:put(bytes)
  self.steps[#self.steps + 1] = { bytes = bytes }
end

--- A named server-sent event, or one without a name.
function Stream:event(name, data)
  local text = type(data) == "string" and data or ah.json.encode(data)
  local ends = self.line_end
  self:put((name and "event: " .. name .. ends or "") .. "data: " .. text .. ends .. ends)
end

--- A line of JSON.
function Stream:line(value)
  self:put(ah.json.encode(value) .. "\n")
end

--- Calls put_piece(piece) for each; a list of the script's own has its delay between them.
function Stream:each(text, delay, put_piece)
  local pause = type(text) == "table" and delay and math.floor(delay * 1000)
  for at, piece in pieces_of(text) do
    if pause and at > 1 then
      self.steps[#self.steps + 1] = { wait = pause }
    end
    put_piece(piece)
  end
end

-- -- breaking it ----------------------------------------------------------------------------

-- The steps up to the middle, the last of them half.
local function cut(steps)
  local kept = table.move(steps, 1, (#steps + 1) // 2, 1, {})
  local last = kept[#kept]
  if last and last.bytes then
    kept[#kept] = { bytes = last.bytes:sub(1, #last.bytes // 2) }
  end
  kept[#kept + 1] = { close = true }
  return kept
end

local function with_garbage(steps, garbage)
  local half = (#steps + 1) // 2
  local mixed = table.move(steps, 1, half, 1, {})
  mixed[#mixed + 1] = { bytes = garbage }
  return table.move(steps, half + 1, #steps, #mixed + 1, mixed)
end

--- The steps of an answer as the turn breaks them.
function plan.broken(turn, steps, streamed)
  if turn.garbage then
    steps = streamed and with_garbage(steps, turn.garbage) or { { bytes = turn.garbage } }
  end
  if turn.raw then
    steps = { { bytes = turn.raw } }
  end
  if turn.cut or turn.close == "mid-stream" then
    steps = cut(steps)
  end
  return steps
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
