--- What the specs of an adapter ask of every answer and request, whoever's form they have.
--
--   wirecheck.read("gemini", x)             what ahtest.wire_read gives for an exchange
--   wirecheck.check("gemini", expected, x)  expected = { text, refusal, calls, stop, said, usage,
--     opaque } or { error, retryable, retry_after }
--   wirecheck.check_cuts("gemini", x)       the same however the bytes are cut
--   wirecheck.check_prefix(before, after)   the segments of one request begin those of the next
local assert = require "luassert"
local ahtest = require "ahtest"
local server = require "support.server"

local M = {}

local BYTES_A_STREAM = 2000000 -- fed for one stream: long ones are cut at fewer places

function M.read(provider, x, more)
  local o = { provider = provider, base_url = "http://x", model = x.model }
  o.status, o.headers, o.body = x.status, x.headers, x.body
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return ahtest.wire_read(o)
end

--- A part of an entry's content by its type.
function M.part(entry, kind)
  for _, part in ipairs(entry.content) do
    if part.type == kind then
      return part
    end
  end
end

-- Arguments as they mean the same: white space does not count.
local function plain_calls(calls)
  local list = {}
  for i, c in ipairs(calls or {}) do
    list[i] = { name = c.name, arguments = server.encode(server.decode(c.arguments)) }
  end
  return list
end

local function check_ids(given, calls, where)
  local seen = {}
  for i, c in ipairs(calls) do
    assert.is_true(#c.id > 0 and #c.id <= 64 and not seen[c.id], where)
    assert.equal(given[i].id or c.id, c.id, where)
    seen[c.id] = true
  end
end

local function check_failure(expected, got, where)
  assert.is_table(got.error, where .. ": should have failed")
  assert.equal(expected.retryable, got.error.retryable, where .. ": " .. got.error.message)
  local said = expected.error:sub(1, 200)
  assert.truthy(got.error.message:find(said, 1, true), where .. ": " .. got.error.message)
  assert.equal(expected.retry_after or -1, got.retry_after, where)
end

local function check_answer(expected, got, where)
  assert.is_nil(got.error and got.error.message, where)
  local entry = server.decode(got.entry)
  local text, opaque = M.part(entry, "text"), M.part(entry, "opaque")
  assert.equal(expected.text, got.text, where)
  assert.equal(expected.text, text and text.text or "", where)
  assert.same(plain_calls(expected.calls), plain_calls(entry.tool_calls), where)
  check_ids(expected.calls, entry.tool_calls or {}, where)
  assert.equal(expected.stop, entry.stop, where)
  assert.equal(expected.said, entry.provider_stop, where)
  assert.same(expected.usage, entry.usage, where)
  assert.equal(server.encode(expected.opaque), server.encode(opaque and opaque.data), where)
end

function M.check(provider, expected, x)
  local got = M.read(provider, x)
  local verify = expected.error and check_failure or check_answer
  verify(expected, got, x.name)
end

-- All that came out, as one string.
local function outcome(r)
  local e = r.error or {}
  return table.concat({ r.entry or "", r.text, r.retry_after, e.code or "", e.message or "",
    e.status or "", tostring(e.retryable) }, "\n")
end

function M.check_cuts(provider, x)
  local whole, n = outcome(M.read(provider, x)), #x.body
  local stride = math.max(1, n * n // BYTES_A_STREAM)
  for at = 1, n - 1, stride do
    local cut = outcome(M.read(provider, x, { cut = at }))
    if cut ~= whole then
      assert.equal(whole, cut, ("%s, cut at %d"):format(x.name, at))
    end
  end
  for _, step in ipairs { 1, 2, 3, 7, 1000 } do
    local cut = outcome(M.read(provider, x, { step = step }))
    assert.equal(whole, cut, ("%s, pieces of %d"):format(x.name, step))
  end
end

--- The segments of one request begin those of the next, or it says that tools changed.
function M.check_prefix(before, after, where)
  if after.reason then
    return assert.equal("tools_changed", after.reason, where)
  end
  for i, s in ipairs(before.segments) do
    local now = after.segments[i]
    assert.equal(s.kind .. " " .. s.bytes, now and now.kind .. " " .. now.bytes, where)
  end
end

--- Entries (tables) as the JSON texts that ahtest.wire_lower takes.
function M.encoded(entries)
  local list = {}
  for i, e in ipairs(entries) do
    list[i] = server.encode(e)
  end
  return list
end

return M
