--- Flows of spec/crash/flow.lua that die, and are started again until they end.
--
-- At the end these must hold: the conversation is that of the undisturbed run but for the results
-- of lost calls; the session has what the successful calls of the conversation counted, and no
-- more; no line of the sink `tell` is there twice; a key of the sink `keyed` or `retry` is there
-- for each call of the undisturbed run (a consumer drops equal keys).
local ah = require "agenthost"
local assert = require "luassert"
local command = require "spec.support.command"

local crashes = {}

crashes.CRASHED, crashes.KILLED, crashes.WAITING = 86, 137, 5

-- The documented texts of calls that were lost.
local LOST = {
  ["the run was lost"] = true, ["the step was lost"] = true, -- of the flows' own handlers
  ["The outcome of this call is unknown: the program ended while it ran. It was not run again."]
    = true,
}

local STARTS = 40

--- Returns a new folder for a flow.
function crashes.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute(("mkdir -p '%s/files'"):format(path)))
  return path
end

function crashes.remove(folder)
  assert(os.execute(("rm -rf '%s'"):format(folder)))
end

local function lines_of(path)
  local list = {}
  local f <close> = io.open(path)
  for line in f and f:lines() or function() end do
    list[#list + 1] = line
  end
  return list
end

crashes.lines_of = lines_of

--- Starts the flow in the folder. env: words of a shell before the command.
function crashes.start(at, flow, env)
  return command.shell(("%s \"$A-crash\" spec/crash/flow.lua '%s' %s </dev/null"):format(env or "",
    at, flow))
end

-- Returns the response of a person: 13 is refused, 20 becomes 21, and an effect has happened if the
-- sink has it.
local function response_to(at, ask)
  local n = (ask.arguments or {}).n
  if ask.kind == "lost" then
    return lines_of(at .. "/tell")[1] and '{"happened":true,"result":1}' or '{"happened":false}'
  elseif ask.kind == "question" then
    return "6"
  elseif n == 13 then
    return '{"approved":false,"why":"unlucky"}'
  elseif n == 20 then
    return '{"approved":true,"arguments":{"n":21}}'
  end
  return "yes"
end

function crashes.asks(at)
  local r = command.shell(("\"$A-crash\" asks --json --store '%s/store.db'"):format(at))
  assert(r.code == 0, r.err)
  return ah.json.decode(r.out).asks
end

function crashes.respond(at, ask, response, env)
  return command.shell(("%s \"$A-crash\" respond '%s' %s '%s' --by Ann --store '%s/store.db'")
    :format(env or "", ask.conversation, ask.ask, response, at))
end

-- Responds to all open asks. A process that was killed may have left its response.
function crashes.respond_all(at, words)
  for _, ask in ipairs(crashes.asks(at)) do
    local r = crashes.respond(at, ask, response_to(at, ask))
    assert(r.code == 0 or r.err:find("already answered", 1, true), words .. ": " .. r.err)
  end
end

--- Starts the flow again, and responds, until it ends. disturb(i): env of the i-th start, may be
-- nil. Returns its last result and the number of starts.
function crashes.go_on(at, flow, words, disturb)
  for i = 1, STARTS do
    local r = crashes.start(at, flow, disturb and disturb(i))
    if r.code == 0 then
      return r, i
    elseif r.code == crashes.WAITING then
      crashes.respond_all(at, words)
    else
      assert(r.code == crashes.CRASHED or r.code == crashes.KILLED,
        ("%s: exit code %d: %s%s"):format(words, r.code, r.err, r.out))
    end
  end
  error(words .. ": the flow never ends")
end

--- Returns the state that a flow has printed, without times.
function crashes.said(out)
  local state = ah.json.decode(out)
  for _, entry in ipairs(state.entries) do
    entry.time, entry.timestamp, entry.usage = nil, nil, nil
  end
  return state
end

local function set_of(list)
  local set = {}
  for _, line in ipairs(list) do
    set[line] = true
  end
  return set
end

--- Runs the flow undisturbed. Returns { flow, state, points, starts, seconds } and its sinks by
-- name. `points`: how many crash points each start has.
function crashes.whole(flow)
  local at <const> = crashes.folder()
  local points, count = {}, at .. "/count"
  local begun = ah.now()
  local r, starts = crashes.go_on(at, flow, flow, function(i)
    return ("AGENTHOST_CRASH_COUNT='%s.%d'"):format(count, i)
  end)
  for i = 1, starts do
    points[i] = assert(tonumber(lines_of(count .. "." .. i)[1]), "no number of crash points")
  end
  local whole = { flow = flow, state = crashes.said(r.out), points = points, starts = starts,
    seconds = (ah.now() - begun) / starts }
  for _, sink in ipairs { "keyed", "retry", "tell" } do
    whole[sink] = set_of(lines_of(at .. "/" .. sink))
  end
  crashes.remove(at)
  return whole
end

-- Compares the conversations. Returns the number of lost calls.
local function compare_entries(whole, found, words)
  local expected, lost = whole.state.entries, 0
  assert.equal(#expected, #found.entries, words .. ": number of entries")
  for i, entry in ipairs(expected) do
    local other = found.entries[i]
    if (other.type == "tool_result" or other.role == "tool") and LOST[other.content] then
      lost = lost + 1
      assert.equal(entry.id or entry.tool_call_id, other.id or other.tool_call_id, words)
      assert.is_false(other.success, words)
    else
      assert.same(entry, other, words)
    end
  end
  return lost
end

-- Each ticket that a result gives is closed by one note: with the result of the call, or as lost.
-- Returns the number of lost calls.
local function compare_tickets(found, words)
  local open, lost = {}, 0
  for _, entry in ipairs(found.entries) do
    if entry.type == "tool_result" then
      lost = lost + (LOST[entry.content] and 1 or 0)
      if entry.ticket then
        open[entry.ticket] = true
      end
    elseif entry.ticket then
      assert.is_true(open[entry.ticket], words .. ": a note without an open ticket")
      open[entry.ticket] = nil
      if entry.text:find("is done. Its result:", 1, true) == nil then
        assert.matches("its outcome is unknown: .*It was not run again%.$", entry.text)
        lost = lost + 1
      end
    end
  end
  assert.is_nil(next(open), words .. ": a ticket without a note")
  return lost
end

local function sum(state)
  local n = 0
  for _, value in ipairs((state.session.slices or {}).Count or {}) do
    n = n + value.n
  end
  return n
end

-- Returns the sum that the successful calls of the conversation have counted: their results are
-- numbers.
local function counted(state)
  local n = 0
  for _, entry in ipairs(state.entries) do
    if entry.type == "tool_result" and entry.success then
      n = n + (tonumber(entry.content) or 0)
    elseif entry.type == "note" then
      n = n + (tonumber(entry.text:match "is done%. Its result:%s+(%d+)$") or 0)
    end
  end
  return n
end

local function compare_sinks(whole, at, lost, words)
  local seen, n = {}, 0
  for _, id in ipairs(lines_of(at .. "/tell")) do
    assert.is_nil(seen[id], words .. ": an effect with on_lost = \"tell\" happened twice")
    assert.is_true(whole.tell[id], words .. ": an effect that nothing asked for")
    seen[id] = true
  end
  for id in pairs(whole.tell) do
    n = n + (seen[id] and 0 or 1)
  end
  assert.is_true(n <= lost, words .. ": an effect is missing whose call was not lost")
  for _, sink in ipairs { "keyed", "retry" } do
    assert.same(whole[sink], set_of(lines_of(at .. "/" .. sink)), words .. ": sink " .. sink)
  end
end

local function compare_files(at, words)
  local first = lines_of(at .. "/files/f1.txt")[1]
  for i = 2, 3 do
    assert.equal(first, lines_of(("%s/files/f%d.txt"):format(at, i))[1],
      words .. ": files are neither all old nor all new")
  end
end

-- Flows whose results are not what they count.
local UNCOUNTED = { found = true, lost_ask = true, once = true, most = true, output = true,
  failing = true, entity = true }
-- Flows of which no call may be lost.
local EXACT = { shared = true, failing = true, entity = true, sets = true, grown = true,
  notes = true }

-- The state of the entity is what the calls have made it.
local function compare_balance(found, words)
  for _, entry in ipairs(found.entries) do
    local balance = entry.type == "tool_result" and entry.content:match "^balance (%d+)$"
    if balance then
      assert.equal(10 + counted(found), tonumber(balance), words .. ": balance")
      entry.content = "balance 25"
    end
  end
end

-- The order in which agents side by side count is not always the same.
local function sort_counts(state)
  table.sort(state.session.slices.Count, function(a, b) return a.n < b.n end)
end

-- All that the undisturbed run used was used, and at most what was at work more than once.
local function compare_used(whole, found, words)
  for name, n in pairs(whole or {}) do
    local used = found[name]
    if name == "requests" then
      assert(used >= n and used <= n + 2, ("%s: %d %s"):format(words, used, name))
    elseif name ~= "estimated" then
      assert(used >= n, ("%s: %g %s, %g undisturbed"):format(words, used, name, n))
    end
  end
end

--- Compares the end of a disturbed run with that of the undisturbed one. Returns the number of lost
-- calls.
function crashes.compare(whole, at, out, words)
  local found = crashes.said(out)
  if whole.flow == "entities" then
    compare_balance(found, words)
  elseif whole.flow == "fallback" and found.entries[#found.entries].type == "settings" then
    table.remove(found.entries) -- the script that is started after the run names its model again
  end
  local lost = whole.flow == "background" and compare_tickets(found, words)
    or whole.flow ~= "background" and compare_entries(whole, found, words)
  if whole.flow == "shared" then
    sort_counts(whole.state)
    sort_counts(found)
  end
  if lost == 0 then
    assert.same(whole.state.session, found.session, words .. ": session")
    assert.same(whole.state.results, found.results, words)
    assert.same(whole.state.files, found.files, words .. ": files")
    compare_used(whole.state.used, found.used, words)
  end
  assert.is_true(lost == 0 or not EXACT[whole.flow], words .. ": a call is lost")
  if not UNCOUNTED[whole.flow] then
    assert.equal(counted(found), sum(found), words .. ": the session does not fit the results")
  end
  compare_sinks(whole, at, lost, words)
  compare_files(at, words)
  return lost
end

-- Runs the flow in a new folder, where the start `start` is disturbed by `env`. Returns the number
-- of lost calls; if that start ended by itself, false and how many crash points it passed.
local function disturb(whole, start, env, code, words, again)
  local at <const> = crashes.folder()
  local r, passed
  for i = 1, start - 1 do
    r = crashes.start(at, whole.flow)
    assert(r.code == crashes.WAITING, ("%s: start %d: %s"):format(words, i, r.err))
    crashes.respond_all(at, words)
  end
  r = crashes.start(at, whole.flow, ("AGENTHOST_CRASH_COUNT='%s/passed' %s"):format(at, env))
  if r.code == 0 or r.code == crashes.WAITING then
    passed = tonumber(lines_of(at .. "/passed")[1])
    crashes.remove(at)
    return false, passed
  end
  assert(r.code == code, ("%s: exit code %d: %s"):format(words, r.code, r.err))
  r = crashes.go_on(at, whole.flow, words, again)
  local lost = crashes.compare(whole, at, r.out, words)
  crashes.remove(at)
  return lost
end

crashes.disturb = disturb

--- Kills each start of the flow by each value of the variable from 1 on, until one does not kill it
-- any more; with `every`, by each so manieth value. again(n, i): env of the i-th start after the
-- first one was killed. Returns the number of values that killed, and of lost calls.
function crashes.exhaust(whole, variable, code, every, again)
  local points, lost = 0, 0
  for start = 1, whole.starts do
    local n = 1
    while true do
      local words <const> = ("%s, start %d, %s=%d"):format(whole.flow, start, variable, n)
      local here, passed = disturb(whole, start, variable .. "=" .. n, code, words,
        again and function(i)
          return again(n, i)
        end)
      if not here then -- a flow with parallel tasks may have fewer points this time
        assert.is_true(variable ~= "AGENTHOST_CRASH_AT" or passed < n,
          ("%s: it did not stop, and passed %d points"):format(words, passed or 0))
        break
      end
      points, lost = points + 1, lost + here
      n = n + (every or 1)
    end
  end
  return points, lost
end

return crashes
