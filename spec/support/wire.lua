--- Shared checks of the specs of an adapter's wire. They compare the adapter's reading of a
-- response with a plain reading, whole and cut at every byte, and check that requests begin with
-- the ones before.
--
--   local wire = require "support.wire" { provider =, model =, base_url =, plain = function(x) }
--   wire.check(x) wire.check_cuts(x) wire.read(x, { cut =, step =, key = })
--   wire.it_reads(it, { x, ... })      a spec each of check and check_cuts
--   wire.check_recordings { it =, pending =, exchanges =, lowered = function() }
--
-- x is a response in the form of support.recordings: { name, status, headers, body }. `values =
-- true`: arguments are compared as decoded values, for wires that send values instead of text.
local ahtest = require "ahtest"
local assert = require "luassert"
local server = require "support.server"

local M = {}

local BYTES_A_STREAM = 4000000 -- fed for one stream; long streams are cut at fewer places

local function tool_names(wire, calls)
  local list = {}
  for i, c in ipairs(calls) do
    local arguments = c.arguments
    if wire.values then
      arguments = server.encode(server.decode(arguments))
    end
    list[i] = { name = c.name, arguments = arguments }
  end
  return list
end

-- Asserts that ids are the given ones where these can be kept, and that no two are equal.
local function check_ids(calls, given, where)
  local seen = {}
  for i, c in ipairs(calls) do
    assert.is_true(#c.id > 0 and #c.id <= 64 and not seen[c.id], where)
    seen[c.id] = true
    local id = given[i].id
    if id and #id <= 64 and (seen[id] == nil or c.id == id) then
      assert.equal(id, c.id, where)
    end
  end
end

-- Returns the text and the refusal of a content, and the opaque parts, which are sent back
-- verbatim: { data =, calls = calls before it }.
local function parts_of(content)
  local said = { text = "", refusal = "", opaque = {} }
  for _, part in ipairs(content) do
    if part.type == "opaque" then
      table.insert(said.opaque, { data = part.data, calls = part.calls or 0 })
    else
      said[part.type] = said[part.type] .. part.text
    end
  end
  return said
end

local function read_by(wire, x, cuts)
  local o = {
    provider = wire.provider,
    model = wire.model,
    base_url = wire.base_url,
    status = x.status,
    headers = x.headers,
    body = x.body,
  }
  for k, v in pairs(cuts or {}) do
    o[k] = v
  end
  return ahtest.wire_read(o)
end

local function check_failure(expected, got, where)
  assert.is_table(got.error, where .. ": should have failed")
  assert.truthy(({ provider = 1, http = 1, context_full = 1 })[got.error.code], where)
  assert.equal(expected.retryable, got.error.retryable, where)
  local said = expected.error:sub(1, 200)
  assert.truthy(got.error.message:find(said, 1, true), where .. ": " .. got.error.message)
  assert.equal(expected.retry_after or got.retry_after, got.retry_after, where)
end

local function check_answer(wire, expected, got, where)
  assert.is_nil(got.error and got.error.message, where)
  local entry = server.decode(got.entry)
  local parts, calls = parts_of(entry.content), entry.tool_calls or {}
  assert.equal(expected.text, parts.text, where)
  assert.equal(expected.text, got.text, where)
  assert.equal(expected.refusal or "", parts.refusal, where)
  assert.same(tool_names(wire, expected.calls), tool_names(wire, calls), where)
  check_ids(calls, expected.calls, where)
  assert.same(expected.opaque or {}, parts.opaque, where)
  assert.equal(expected.stop, entry.stop, where)
  assert.equal(expected.stop_word, expected.stop_word and entry.stop_word, where)
  assert.same(expected.usage, entry.usage, where)
end

local function check_by(wire, x)
  local expected, got = wire.plain(x), read_by(wire, x)
  if expected.error then
    check_failure(expected, got, x.name)
  else
    check_answer(wire, expected, got, x.name)
  end
end

-- Returns the whole outcome as one string.
local function outcome(r)
  local e = r.error or {}
  return table.concat({
    r.entry or "",
    r.text,
    r.deltas,
    r.retry_after,
    e.code or "",
    e.message or "",
    e.status or "",
    tostring(e.retryable),
  }, "\n")
end

local function cuts_by(wire, x)
  local whole, n = outcome(read_by(wire, x)), #x.body
  local stride = math.max(1, n * n // BYTES_A_STREAM)
  for at = 1, n - 1, stride do
    local cut = outcome(read_by(wire, x, { cut = at }))
    if cut ~= whole then
      assert.equal(whole, cut, ("%s, cut at %d"):format(x.name, at))
    end
  end
  for _, step in ipairs { 1, 2, 3, 7, 1000 } do
    assert.equal(
      whole,
      outcome(read_by(wire, x, { step = step })),
      ("%s, pieces of %d"):format(x.name, step)
    )
  end
end

-- Returns the segments of a request that a provider caches, each with its kind.
local function bytes_of(request)
  local list = {}
  for _, s in ipairs(request.segments) do
    list[#list + 1] = s.kind ~= "deferred" and s.kind .. " " .. s.bytes or nil
  end
  return list
end

-- Asserts that the next request begins with the segments of the one before, or gives a reason.
local function check_prefix(before, after, where)
  local old, new = bytes_of(before), bytes_of(after)
  if after.reason then
    return assert.equal("tools_changed", after.reason, where)
  end
  for i, bytes in ipairs(old) do
    assert.equal(bytes, new[i], where)
  end
end

local function whole(body, status, headers)
  headers = headers or {}
  headers["content-type"] = headers["content-type"] or "application/json"
  return { name = body, status = status or 200, headers = headers, body = body }
end

local function stream(bytes)
  return {
    name = bytes,
    status = 200,
    headers = { ["content-type"] = "text/event-stream; charset=utf-8" },
    body = bytes,
  }
end

--- Returns the first part of that type in an entry's content.
function M.part(entry, kind)
  for _, part in ipairs(entry.content) do
    if part.type == kind then
      return part
    end
  end
end

--- Returns entries (tables) as the JSON texts that ahtest.wire_lower takes.
local function encoded(entries)
  local list = {}
  for i, e in ipairs(entries) do
    list[i] = server.encode(e)
  end
  return list
end

-- Returns the items of `list` after `head`, or nil if it does not begin with it.
local function beyond(head, list)
  for i, text in ipairs(head) do
    if list[i] ~= text then
      return nil
    end
  end
  return table.move(list, #head + 1, #list, 1, {})
end

--- Checks successive requests of one file, lowered from entries with the same content. Each
-- continues the one before if its entries do. `form`: entries(body, origin), explained(body),
-- options(request).
function M.check_requests(list, form)
  local before, history = {}, {}
  for _, x in ipairs(list) do
    local o = form.options(x.request)
    local origin = { adapter = o.provider, model = o.model, endpoint = o.base_url }
    local entries = encoded(form.entries(x.request.body, origin))
    local more = history[1] and beyond(before, entries)
    history = more and table.pack(table.unpack(history)) or {}
    history[#history + 1] = more or entries
    local requests = { ahtest.wire_lower(o, table.unpack(history)) }
    local got = server.decode(requests[#requests].body)
    assert.equal(
      server.encode(form.explained(server.decode(server.encode(x.request.body)))),
      server.encode(form.explained(got)),
      x.name
    )
    if more then
      check_prefix(requests[#requests - 1], requests[#requests], x.name)
    end
    before = entries
  end
end

--- Returns the exchanges of a folder that are requests of a form, by file.
function M.by_file(exchanges, is_ours)
  local files, list = {}, {}
  for _, x in ipairs(exchanges) do
    if x.request and type(x.request.body) == "table" and is_ours(x.request) then
      if not files[x.file] then
        files[x.file] = {}
        list[#list + 1] = files[x.file]
      end
      table.insert(files[x.file], x)
    end
  end
  return list
end

-- Declares specs for the recordings of one form: each answer is read, whole and cut at every byte,
-- and `lowered` checks the requests. `it` and `pending` are busted's own.
local function check_recordings(wire, o)
  local function each(name, what)
    o.it(name, function()
      if #o.exchanges == 0 then
        return o.pending "../shared/wire is not here"
      end
      what()
    end)
  end

  each("are read as a plain reading reads them", function()
    for _, x in ipairs(o.exchanges) do
      check_by(wire, x)
    end
  end)
  each("give the same however their bytes are cut", function()
    for _, x in ipairs(o.exchanges) do
      cuts_by(wire, x)
    end
  end)
  each("are lowered to the requests that were recorded", o.lowered)
end

M.check_ids, M.outcome, M.check_prefix, M.whole, M.stream, M.encoded =
  check_ids, outcome, check_prefix, whole, stream, encoded

return function(wire)
  return setmetatable({
    read = function(x, cuts)
      return read_by(wire, x, cuts)
    end,
    check = function(x)
      check_by(wire, x)
    end,
    check_cuts = function(x)
      cuts_by(wire, x)
    end,
    it_reads = function(it, cases)
      it("is read as a plain reading reads it", function()
        for _, x in ipairs(cases) do
          check_by(wire, x)
        end
      end)
      it("is the same however its bytes are cut", function()
        for _, x in ipairs(cases) do
          cuts_by(wire, x)
        end
      end)
    end,
    check_recordings = function(o)
      check_recordings(wire, o)
    end,
  }, { __index = M })
end
