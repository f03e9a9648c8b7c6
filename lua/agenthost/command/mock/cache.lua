--- The mock's prompt cache: a tree of the segments that were sent (tools, system, messages, in the
-- provider's own caching order). The part that a request repeats from its beginning is cached. Real
-- providers cache nothing below some hundred tokens, and forget; this cache does neither, so that
-- each break shows. A token is four bytes.
local MAX_SEGMENTS = 50000 -- kept in all; then everything is forgotten

local Cache = {}
Cache.__index = Cache

local function tokens_of(bytes)
  return (bytes + 3) // 4
end

-- Returns the bytes of the first n segments.
local function bytes_of(segments, n)
  local bytes = 0
  for i = 1, n do
    bytes = bytes + #segments[i].text
  end
  return bytes
end

-- Returns the number of segments that are read from the cache. With `marks` (a set of indexes) they
-- end at the last one that an earlier request marked.
local function find(node, segments, marks)
  local read = 0
  for i, segment in ipairs(segments) do
    node = node.next[segment.text]
    if not node then
      break
    end
    read = (not marks or node.marked) and i or read
  end
  return read
end

local ORDER = { tools = 1, system = 2, messages = 3 }

-- Returns the kind of two different segments at the same place; of two kinds the first in order.
local function what_differs(was, is)
  return is and ORDER[is.kind] < ORDER[was.kind] and is.kind or was.kind
end

local function first_message(segments)
  for _, segment in ipairs(segments) do
    if segment.kind == "messages" then
      return segment.text
    end
  end
  return ""
end

-- Returns the conversation of a request, identified by its first message.
local function conversation_of(key, segments)
  return key .. "\0" .. first_message(segments)
end

-- Returns the kind of segment ("tools", "system" or "messages") where this request first differs
-- from the one before it in the same conversation; nil if it repeats all of it.
function Cache:break_of(key, segments)
  for i, segment in ipairs(self.before[conversation_of(key, segments)] or {}) do
    if not segments[i] or segments[i].text ~= segment.text then
      return what_differs(segment, segments[i])
    end
  end
end

local function last_of(marks)
  local last = 0
  for i in pairs(marks or {}) do
    last = math.max(last, i)
  end
  return last
end

--- Looks a request up and returns { input, read, write, broke }: its tokens, those read from the
-- cache, those to be stored at marks once it has an answer, and the kind of segment in which it
-- first differs from the request before. Changes nothing, as a request that fails stores nothing.
---@param key string what has a cache of its own: the format and the model
---@param segments table list of { kind = "tools"|"system"|"messages", text = string }
---@param marks? table set of indexes behind which the client asks for caching; nil: everywhere
function Cache:look(key, segments, marks)
  local read = find(self.roots[key] or { next = {} }, segments, marks)
  local read_tokens = tokens_of(bytes_of(segments, read))
  return {
    input = tokens_of(bytes_of(segments, #segments)),
    read = read_tokens,
    write = math.max(0, tokens_of(bytes_of(segments, last_of(marks))) - read_tokens),
    broke = self:break_of(key, segments),
  }
end

--- Stores a request that has an answer; parameters as for look().
function Cache:keep(key, segments, marks)
  if self.kept > MAX_SEGMENTS then
    self.roots, self.before, self.kept = {}, {}, 0
  end
  local node = self.roots[key] or { next = {} }
  self.roots[key], self.before[conversation_of(key, segments)] = node, segments
  for i, segment in ipairs(segments) do
    local after = node.next[segment.text]
    if not after then
      after = { next = {} }
      node.next[segment.text] = after
      self.kept = self.kept + 1
    end
    after.marked = after.marked or not marks or marks[i]
    node = after
  end
end

return function()
  return setmetatable({ roots = {}, before = {}, kept = 0 }, Cache)
end
