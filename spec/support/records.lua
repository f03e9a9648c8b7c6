-- Records of streams for the specs of the journal.
local ah = require "agenthost"

local records = {}

local json = ah.json.encode
local array = ah.array

-- Returns a record of this kind; `said` and `kept` are tables.
function records.row(kind, said, kept)
  return { kind = kind, said = json(said or ah.object {}), kept = kept and json(kept) }
end

local row = records.row

records.OPENED = { format = 1, written_by = "0.2.0", readable_from = 1, stream = "conversation" }

function records.opened()
  return row("opened", records.OPENED)
end

function records.user(text)
  return { type = "user", content = array { { type = "text", text = text } }, time = 1 }
end

function records.note(text)
  return { type = "note", text = text, time = 1 }
end

-- calls: a list of ids
function records.assistant(text, calls)
  local list = array {}
  for i, id in ipairs(calls or {}) do
    list[i] = { id = id, name = "look", arguments = "{}" }
  end
  return { type = "assistant", content = array { { type = "text", text = text } },
    tool_calls = #list > 0 and list or nil, stop = "end", time = 1 }
end

function records.result(id, content)
  return { type = "tool_result", id = id, name = "look", content = content or "seen",
    success = true, time = 1 }
end

function records.answer(entry, iteration)
  return row("answer", { entry = entry, iteration = iteration or 1, stop = "end",
    usage = { input = 10, output = 2, known = true } })
end

function records.call_started(call, id, arguments)
  return row("call_started", { call = call, id = id, tool = "look", key = ("0"):rep(64),
    definition = "d", on_lost = "tell" }, arguments)
end

function records.run_ended(run, first)
  return row("run_ended", { run = run, first = first, success = true, code = "", text = "Done.",
    stop = "end", progress = ah.object {} })
end

function records.turn(staged)
  return row("turn", { staged = staged and array(staged), progress = { iterations = 1 } })
end

-- Returns n records or a few more: turns with one call, 2 KiB of text and a change of a slice.
function records.long(n)
  local list = { records.opened(), row("run_started", { run = 1, first = 0 }) }
  local text, content = ("t"):rep(500), ("r"):rep(1500)
  local turn = 0
  while #list < n do
    local id = "call_" .. turn
    table.move({
      row("request", { model = "a/b", adapter = "a", attempt = 1, entries = 2 * turn }),
      records.answer(records.assistant(text, { id }), turn + 1),
      records.call_started(0, id),
      row("call_finished", { call = 0, success = true }),
      row("settled", { call = 0, result = records.result(id, content),
        slices = { Look = { keep = turn, add = array { { path = "a/b/c" } } } } }),
      records.turn(),
    }, 1, 6, #list + 1, list)
    turn = turn + 1
  end
  return list
end

return records
