--- Streams of conversations for the specs of stores: records as docs/reference/journal.md has them,
-- appended to a store's file by the engine itself.
local ah = require "agenthost"
local ahtest = require "ahtest"

local streams = {}

local VERSION = { written_by = "0.1.0", readable_from = 1 }

--- Returns a record for `streams.make`.
function streams.record(kind, said, time, kept)
  return { time or 1000, kind, ah.json.encode(said), kept }
end

local record = streams.record

local function opened(of)
  return record("opened", { format = 1, stream = "conversation", folder = of.folder,
    script = of.script, base = of.base, written_by = VERSION.written_by,
    readable_from = VERSION.readable_from })
end

--- Returns the records of a run with one call of `tool`, up to what it asks. of: { folder, script,
-- base, tool, arguments, ask = members of its `ask`, kept = of it }
function streams.waiting(of)
  local call = { id = "call_1", name = of.tool or "delete_rows",
    arguments = of.arguments or '{"table":"orders"}' }
  local ask = { ask = "ask_1", call = 0, kind = "approval", question = "May it?",
    arguments = ah.json.decode(call.arguments) }
  for name, value in pairs(of.ask or {}) do
    ask[name] = value
  end
  return { opened(of), record("run_started", { run = 1, first = 0 }),
    record("entries", { entries = ah.array { { type = "user", time = 1,
      content = ah.array { { type = "text", text = "Tidy up." } } } } }),
    record("answer", { entry = { type = "assistant", content = ah.array {}, time = 2,
      stop = "tool_calls", tool_calls = ah.array { call },
      origin = { adapter = "scripted", model = "script", endpoint = "" } }, iteration = 1,
      stop = "tool_calls" }),
    record("ask", ask, of.asked or 5000, of.kept),
    record("parked", { asks = ah.array { ask.ask } }) }
end

--- Returns the records that settle the call, and end the run.
function streams.ending()
  return record("settled", { call = 0, result = { type = "tool_result", id = "call_1",
    name = "delete_rows", content = "done", success = true, time = 3 } }),
    record("turn", { progress = { iterations = 1 } }),
    record("run_ended", { run = 1, first = 0, success = true, code = "", text = "Done.",
      stop = "stop", progress = { iterations = 1 } })
end

--- Appends a stream to the store's file. label: a table; nil: none
function streams.make(path, name, records, label)
  local s = assert(ahtest.store("sqlite", { path = path, sync = "process", create = true }))
  local fence = assert(s:hold(name))
  local after = #assert(s:read(name, 1, math.maxinteger))
  assert(s:append { { name, after, fence, table.unpack(records) } })
  local done = assert(s:wait()[1])
  assert(done[2] == 0, done[3])
  if label then
    assert(s:label(name, ah.json.encode(label)))
  end
  s:release(name)
  s:close()
end

--- Returns the messages in the inbox of a stream.
function streams.inbox(path, name)
  local s = assert(ahtest.store("sqlite", { path = path }))
  local list = assert(s:inbox(name))
  s:close()
  return list
end

return streams
