--- agenthost replay: makes the requests of a stored conversation again, and compares them with what
-- was recorded of them. Exit code 1: there is a difference.
local _, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"

local fault, shown = pairs_of.fault, pairs_of.shown

local MOST = 200 -- bytes of a value that is shown

-- Returns the conversation, or ends the command: a file has no records of requests.
local function find(store, id, path)
  local f = id:find "[/.]" and io.open(id)
  if f then
    f:close()
    fault("'%s' is a file: a saved conversation has no records of its requests\n"
      .. "Give the id of a conversation in a store.", shown(id))
  end
  return stored.find(store, id, path).conversation
end

local function count(n, words)
  return n > 0 and ("%d %s"):format(n, words) or nil
end

local function summary(got)
  local list = { ("%d of %d requests are equal"):format(got.equal, got.requests) }
  list[#list + 1] = count(got.other_revision,
    ("of another revision of their wire (%d, now %d)"):format(got.revision or 0,
      got.revision_now or 0))
  list[#list + 1] = count(got.not_recorded, "not_recorded")
  return table.concat(list, ", ") .. "\n"
end

local function value(name, said)
  return said and ("  %s: %s\n"):format(name, text.clean(text.cut(said, MOST))) or ""
end

local function difference(d)
  return ("request %d (record %d) differs in its %s%s%s\n%s%s"):format(d.request, d.record, d["in"],
    d.entry and ", entry " .. d.entry or "", d.pointer and ", at " .. text.clean(d.pointer) or "",
    value("recorded", d.recorded), value("now", d.rebuilt))
end

local function run(flags, words, out, line)
  local store <close>, path = stored.open(flags, line)
  local got, err = store:replay(find(store, words[1], path))
  if not got then
    fault("%s", err.message)
  end
  out:write(flags.json and text.json(got) .. "\n" or summary(got)
    .. (got.difference and difference(got.difference) or ""))
  return got.difference and 1 or 0
end

return {
  name = "replay",
  doc = "make the requests of a conversation again, and compare",
  usage = "ID",
  help = [[
Makes each request of the conversation ID (a unique beginning is enough) again
from its records, and compares it with the hashes that were recorded when it
was sent. Nothing is sent, and no key is needed. The first difference is
printed, by its entry, or by its place in the JSON if the store was opened with
bytes = true. The exit code is 1 if there is one.
]],
  operand = { name = "id", least = 1, most = 1 },
  flags = { "json", stored.flag },
  mixed = true,
  run = stored.carefully(run),
}
