--- The prompt cache that the mock pretends to have: what was sent is kept as a tree of segments
-- (tools, system, messages, in the provider's own caching order), and what a request repeats
-- from its beginning is cached. Real providers cache nothing below some hundred tokens, and
-- forget; this one does neither, so that each break shows. A token is four bytes.
local MAX_SEGMENTS = 50000 -- kept in all; then everything is forgotten

local Cache = {}
Cache.__index = Cache

local function tokens_of(bytes)
  return (bytes + 3) // 4
end

-- The bytes of the first n segments.
local function bytes_of(segments, n)
  local bytes = 0
  for i = 1, n do
    bytes = bytes + #segments[i].text
  end
  return bytes
end

-- Number of segments that are read from the cache. With `marks` (a set of indexes) they end at the
-- last one that an earlier request marked.
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

-- The kind of two different segments at the same place; of two kinds the one that comes first.
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

-- The conversation of a request: those that began with the same message are one.
local function conversation_of(key, segments)
  return key .. "\0" .. first_message(segments)
end

-- The kind of segment ("tools", "system" or "messages") where this request first differs from the
-- one before it in the same conversation; nil if it repeats all of it.
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

--- Looks a request up: { input, read, write, broke }: tokens of it in all, read from the cache,
-- newly kept at marks once it is answered; and the kind of segment with which it departs from the
-- request before. Changes nothing: a request that fails has read nothing and left nothing.
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

--- Keeps a request that is answered; parameters as look() has them.
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
