--- agenthost replay: makes the requests of a stored conversation again, and compares them with what
-- was recorded of them; with --tools, runs its handlers again as well (handlers.lua). Exit code 1:
-- there is a difference.
local ah, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"

local fault, shown = pairs_of.fault, pairs_of.shown

local MOST = 200 -- bytes of a value that is shown

-- Returns a store in memory with the conversation of an exported file, and its id; nil: the name is
-- the id of a conversation, which has no "/". Other files end the command.
local function from_file(name)
  if not name:find("/", 1, true) and not (name:find(".", 1, true) and ah._real_path(name)) then
    return nil
  end
  local parts, exports = stored.read_exports(name)
  if not exports then
    fault("'%s' is no export of a conversation; a saved conversation has no records of its requests"
      .. "\nGive the id of a conversation in a store, or a file of agenthost store export.",
      shown(name))
  elseif parts[2] then
    fault("'%s' has %d conversations: replay takes a file with one of them", shown(name), #parts)
  end
  local store = assert(ah.store { engine = "memory" })
  local done, err = store:import(parts[1])
  if not done then
    fault("%s", err.message)
  end
  return store, done.id
end

local function find(flags, name, line)
  local store, id = from_file(name)
  if store then
    return store, id
  end
  local path
  store, path = stored.open(flags, line)
  return store, stored.find(store, name, path).conversation
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

-- -- the handlers --------------------------------------------------------------------------------

local function summary_of_calls(got)
  local list = { ("%d of %d calls are equal"):format(got.equal, got.calls) }
  list[#list + 1] = count(got.not_recorded, "not_recorded")
  list = { table.concat(list, ", ") .. "\n" }
  for _, one in ipairs(got.missing) do
    list[#list + 1] = ("turn %d, call %s of %s: not_recorded: %s\n"):format(one.turn,
      text.clean(one.call), text.clean(one.tool), text.clean(one.what))
  end
  return table.concat(list)
end

local function difference_of_call(d)
  return ("turn %d, call %s of %s (record %d) has another result\n%s%s%s"):format(d.turn,
    text.clean(d.call), text.clean(d.tool), d.record, value("recorded", d.recorded),
    value("now", d.now), d.message and "  " .. text.clean(d.message) .. "\n" or "")
end

-- Returns the path of the script, in the folder of the conversation, which is entered.
local function enter(word, opened)
  local path = word or opened.script
  if not path then
    fault "the conversation was not begun by a script in a file: name one behind the id"
  end
  local real, why = ah._real_path(path)
  if not real then
    fault("cannot open '%s': %s", shown(path), why)
  end
  local done, words = ah._enter(opened.folder or ".")
  if not done then
    fault("cannot enter '%s', the folder of the conversation: %s", shown(opened.folder), words)
  end
  return real
end

-- -- the command ---------------------------------------------------------------------------------

-- Returns the outcome of both replays, or raises a fault.
local function outcome(flags, words, line)
  local store <close>, id = find(flags, words[1], line)
  local got, err = store:replay(id)
  if not got then
    fault("%s", err.message)
  elseif flags.tools then
    local opened = assert(ah._opened(store, id))
    got.handlers = use "handlers"(store, id, opened, enter(words[2], opened))
  elseif words[2] then
    fault "a script is only for --tools"
  end
  return got
end

-- Prints the outcome. Returns the exit code.
local function print_outcome(flags, got, out)
  local calls = got.handlers
  if flags.json then
    out:write(text.json(got), "\n")
  else
    out:write(summary(got), got.difference and difference(got.difference) or "",
      calls and summary_of_calls(calls) or "",
      calls and calls.difference and difference_of_call(calls.difference) or "")
  end
  return (got.difference or calls and calls.difference) and 1 or 0
end

local function run(flags, words, out, line)
  return print_outcome(flags, outcome(flags, words, line), out)
end

-- The same in a state of its own: the outcome, or the fault, as text.
local function look(flags, words, _, line)
  local done, got = pcall(outcome, flags, words, line)
  if not done and type(got) == "table" and got.words then
    got = { fault = got.words }
  elseif not done then
    error(got, 0)
  end
  return ah.json.encode(got)
end

return {
  name = "replay",
  doc = "make the requests of a conversation again, and compare",
  usage = "ID|FILE [script.lua]",
  help = [[
Makes each request of the conversation ID (a unique beginning is enough), or of
one in a FILE of agenthost store export, again from its records, and compares
the hashes that were recorded when it was sent. Nothing is sent, and no key is
needed. The first difference is printed, and the exit code is then 1.
With --tools, the script that began the conversation (or script.lua) is run up
to its first run, and the handlers of its agent run again on what was recorded;
their results are compared. What was not recorded is reported, and not done.
]],
  operand = { name = "id", least = 1, most = 2, complete = "lua" },
  flags = { "json", stored.flag,
    { name = "tools", doc = "run the handlers again, too" } },
  mixed = true,
  apart = "tools",
  find = look,
  run = stored.carefully(run),
  tell = function(flags, found, out)
    local got = ah.json.decode(found)
    if got.fault then
      return 2, got.fault
    end
    return print_outcome(flags, got, out)
  end,
}
