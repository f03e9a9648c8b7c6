-- Checks that a transcript is sound: each call has exactly one result, in order, right after its
-- message; ids are unique; nothing is pending. Independent of the library's own check.
local ah = require "agenthost"

local M = {}

--- Returns the decoded entries of a transcript's JSON text.
function M.entries(text)
  return assert(ah.json.decode(text)).entries
end

--- Raises unless the transcript (JSON text) is sound; returns its entries.
function M.check(text)
  local doc = assert(ah.json.decode(text))
  assert(doc.agenthost_transcript == 1, "no version")
  assert(doc.pending == nil, "a turn is still pending")
  local waiting, seen = {}, {}
  for i, e in ipairs(doc.entries) do
    if e.type == "tool_result" then
      local call = table.remove(waiting, 1)
      assert(call and call.id == e.id, ("entry %d answers %s, not the next call"):format(i, e.id))
      assert(call.name == e.name, ("entry %d has another tool's name"):format(i))
    else
      assert(
        #waiting == 0,
        ("entry %d comes before call %s is answered"):format(i, waiting[1] and waiting[1].id)
      )
    end
    for _, call in ipairs(e.tool_calls or {}) do
      assert(call.id ~= "" and not seen[call.id], "call id empty or used twice: " .. call.id)
      seen[call.id] = true
      waiting[#waiting + 1] = call
    end
  end
  assert(#waiting == 0, "calls without answer at the end")
  return doc.entries
end

--- Returns the entries of one type.
function M.of(entries, kind)
  local found = {}
  for _, e in ipairs(entries) do
    if e.type == kind then
      found[#found + 1] = e
    end
  end
  return found
end

return M
