--- Reports on a script, to programs (--json, --jsonl) and to people (the line of progress and the
-- closing lines), from the sums of its events. Nested runs count in the sums. Errors are
-- reported where they occur.
local ah, use = ...
local money, text = use "money", use "text"

local M = {}

local decode, encode = ah.json.decode, ah.json.encode

-- input, cached, output: tokens; known: true if a provider sent any; cost: US dollars, nil if none
-- is known; unpriced: answers of unknown cost; prices_of: date of the oldest prices, nil if none
-- were used
local function new_usage()
  return { input = 0, cached = 0, output = 0, known = false, unpriced = 0 }
end

local runs, at_work = 0, 0 -- runs begun; runs not yet done
local turns, calls, failed = 0, 0, 0 -- answers of models; answered calls, those without success
local usage = new_usage()
local doing -- the current wait: nil, "request", "queued", "tools" or "retry"
local tools = 0 -- handlers at work
local model, tool, progress, retry, reason = "", "", "", 0, "" -- of the latest event
local maps = {} -- the last map_progress of each ah.map at work, by its number; `at`: when it came
local unfinished = {} -- the last map_progress of each map that ended before its list
local root -- the last run not started by a handler: { run, usage, done }

-- -- counting -----------------------------------------------------------------------------

local function ascii(s, most)
  return ((s or ""):sub(1, most):gsub("[^\32-\126]", "?"))
end

local function add(sum, e)
  sum.input = sum.input + (e.input or 0)
  sum.cached = sum.cached + (e.cached_read or 0)
  sum.output = sum.output + (e.output or 0)
  sum.known = sum.known or e.known == true
  sum.cost = e.cost and e.cost + (sum.cost or 0.0) or sum.cost
  local dated = e.prices_of and (not sum.prices_of or e.prices_of < sum.prices_of)
  sum.prices_of = dated and e.prices_of or sum.prices_of
end

local counted = {}

function counted.start(e)
  runs, at_work = runs + 1, at_work + 1
  model = ascii(e.provider, 47) .. "/" .. ascii(e.model, 71)
  if not e.parent then
    root = { run = e.run, usage = new_usage() }
  end
  return true
end

counted.resumed = counted.start

function counted.request()
  doing = "request"
end

-- A wait for a budget is over with its event.
function counted.queued(e)
  if e.reason ~= "budget" then
    doing, reason = "queued", e.reason
  end
end

function counted.retry(e)
  doing, retry = "retry", e.attempt or 0
end

function counted.usage(e)
  turns = turns + 1
  add(usage, e)
  if root and e.run == root.run then
    add(root.usage, e)
  end
  doing = tools > 0 and "tools" or nil
end

function counted.tool_started(e)
  tools, progress, tool, doing = tools + 1, "", ascii(e.name, 64), "tools"
end

-- Keeps the latest progress of a handler: "indexing, 40 %".
function counted.tool_progress(e)
  tool, progress = ascii(e.name, 64), ascii(e.message, 95)
  if e.fraction then
    progress = ("%s%s%.0f %%"):format(progress, progress ~= "" and ", " or "", 100 * e.fraction)
  end
  return true
end

-- A refused call was never started, so beside handlers at work it makes their number one too low.
function counted.tool_invoked(e)
  calls = calls + 1
  failed = failed + (e.success and 0 or 1)
  progress = ""
  if tools == 0 then
    return true
  end
  tools = tools - 1
  doing = tools > 0 and doing or nil
  return tools > 0
end

-- The end of a map in a cancelled handler is not reported.
local function end_maps(run)
  for number, map in pairs(maps) do
    if run and map.run == run then
      maps[number] = nil
    end
  end
end

function counted.map_progress(e)
  maps[e.map] = not e.ended and e or nil
  e.at = ah.now()
  if e.ended and e.done < e.total then
    unfinished[#unfinished + 1] = e
  end
end

function counted.done(e)
  end_maps(e.run)
  usage.unpriced = usage.unpriced + (e.unpriced or 0)
  at_work = math.max(at_work - 1, 0)
  tools = at_work > 0 and tools or 0
  doing = tools > 0 and "tools" or nil
  if root and e.run == root.run then
    root.done = e
    root.usage.unpriced = e.unpriced or 0
  end
end

--- Counts an event. Returns "map" while an ah.map reports its progress, otherwise "wait" if the
-- script now waits for something, "rest" if it does not, and "" if nothing has changed.
---@param json string
---@return string
function M.event(json)
  local e = decode(json)
  local same = counted[e.type](e)
  if next(maps) then
    return "map"
  end
  return same and "" or at_work > 0 and doing and "wait" or "rest"
end

-- -- for programs --------------------------------------------------------------------------

local function usage_json(u)
  return ('{"cached_read":%d,%s"input":%d,"known":%s,"output":%d%s%s}'):format(u.cached,
    u.cost and ('"cost":%s,'):format(encode(u.cost)) or "", u.input, u.known, u.output,
    u.prices_of and (',"prices_of":"%s"'):format(u.prices_of) or "",
    u.unpriced > 0 and (',"unpriced":%d'):format(u.unpriced) or "")
end

local function reply_json()
  local done = root and root.done
  if not done or not done.success then
    return "null"
  end
  local parts = {}
  for _, name in ipairs { "iterations", "stop", "text", "tool_calls" } do
    parts[#parts + 1] = ('"%s":%s'):format(name, encode(done[name]))
  end
  parts[#parts + 1] = '"usage":' .. usage_json(root.usage)
  parts[#parts + 1] = done.value ~= nil and '"value":' .. encode(done.value) or nil
  return "{" .. table.concat(parts, ",") .. "}"
end

--- Returns the members of an error; its message is without the code at its beginning.
local function ending_json(code, message)
  if message:sub(1, #code + 2) == code .. ": " then
    message = message:sub(#code + 3)
  end
  local asks = code == "waiting" and root and root.done and root.done.asks
  return ('"code":"%s","message":%s%s'):format(code, encode(text.repaired(message)),
    asks and ',"asks":' .. encode(asks) or "")
end

-- Returns the members that name what is kept, after a comma; "" if nothing is.
local function kept_json(id, head)
  return id ~= "" and (',"conversation":%s,"head":%s'):format(encode(id), encode(head)) or ""
end

--- Returns { "reply": ... } as JSON, of the last outermost run (null if there was none or it
-- failed), or { "error": { "code", "message", "asks" } }; `asks`: ids, if that run waits for some.
---@param code string "ok", or that of the error
---@param message string of the error, any bytes
---@param id string of the conversation that a store keeps; "": none
---@param head string of that conversation
---@return string
function M.object(code, message, id, head)
  return (code == "ok" and '{"reply":' .. reply_json() or '{"error":{' .. ending_json(code, message)
    .. "}") .. kept_json(id, head) .. "}"
end

--- Returns the last line of --jsonl: a `done` event without a run, for the whole script.
---@param time string seconds since 1970
---@return string
function M.last_line(code, message, time, id, head)
  return ('{"type":"done","time":%s,"success":%s,%s,"runs":%d,"iterations":%d,"tool_calls":%d,')
    :format(time, code == "ok", ending_json(code, message), runs, turns, calls)
    .. '"usage":' .. usage_json(usage) .. kept_json(id, head) .. "}"
end

-- -- for people ----------------------------------------------------------------------------

--- Returns "1,234,567" for 1234567.
local function grouped(n)
  local digits = tostring(n):reverse():gsub("%d%d%d", "%0,"):reverse()
  return (digits:gsub("^,", ""))
end

local function plural(n)
  return n == 1 and "" or "s"
end

local function done_text(e)
  return ("%s of %s done%s"):format(grouped(e.done), grouped(e.total),
    e.failed > 0 and (", %s failed"):format(grouped(e.failed)) or "")
end

-- Returns a line for each map that did not get to the end of its list.
local function maps_text()
  local lines = {}
  for _, list in ipairs { unfinished, maps } do
    for _, e in pairs(list) do
      lines[#lines + 1] = "map     " .. done_text(e)
    end
  end
  return table.concat(lines, "\n")
end

--- Returns three lines (turns and time, tools, tokens; none if no run began), one with the head of
-- what is kept, and one for each unfinished map.
---@param seconds string since the first run began
---@param head string of the conversation that a store keeps; "": none
---@return string
function M.closing(seconds, head)
  local of_maps = maps_text()
  if runs == 0 then
    return of_maps
  end
  local cost = money.words(usage.cost, usage.unpriced)
  local tokens = "unknown: the provider did not say"
  if usage.known then
    tokens = ("%s in (%s cached), %s out"):format(grouped(usage.input), grouped(usage.cached),
      grouped(usage.output))
  end
  local lines = "turns   %d in %d run%s, %.1f s\ntools   %d call%s, %d failed\ntokens  %s%s%s"
  return lines:format(turns, runs, plural(runs), tonumber(seconds), calls, plural(calls), failed,
    tokens, cost and ", " .. cost or "", head ~= "" and "\nhead    " .. head or "")
    .. (of_maps ~= "" and "\n" or "") .. of_maps
end

local REASONS = { in_flight = "max_in_flight requests are at work", limit = "a limit is used up",
  backoff = "it has refused requests" }

local function doing_text()
  if doing == "request" then
    return "waiting for " .. model
  elseif doing == "queued" then
    return ("waiting for %s: %s"):format(model, REASONS[reason] or reason)
  elseif doing == "retry" then
    return ("%s failed, retry %d follows"):format(model, retry)
  end
  local what = progress ~= "" and ": " .. progress or ""
  local more = tools > 1 and (" and %d more"):format(tools - 1) or ""
  return tool .. what .. more .. (what == "" and " at work" or "")
end

local function time_text(seconds)
  if seconds < 90 then
    return ("%.0f s"):format(seconds)
  elseif seconds < 90 * 60 then
    return ("%.0f min"):format(seconds / 60)
  end
  return ("%.1f h"):format(seconds / 3600)
end

-- Describes the map that began first: its calls may have maps of their own.
local function map_text()
  local first = math.huge
  for number in pairs(maps) do
    first = math.min(first, number)
  end
  local e = maps[first]
  local parts = { "ah.map: " .. done_text(e), ("%s running"):format(grouped(e.running)) }
  parts[#parts + 1] = e.tokens > 0 and grouped(e.tokens) .. " tokens" or nil
  parts[#parts + 1] = e.cost and e.cost > 0 and money.dollars(e.cost) or nil
  parts[#parts + 1] = e.left and time_text(math.max(e.left + e.at - ah.now(), 0)) .. " left" or nil
  return table.concat(parts, ", ")
end

--- Returns the line of progress during a wait.
---@param seconds string for how long
---@return string
function M.progress(seconds)
  if next(maps) then
    return map_text()
  end
  local spent = usage.input + usage.output
  return ("%s, %s s%s"):format(doing_text(), seconds,
    spent > 0 and (", %s tokens so far"):format(grouped(spent)) or "")
end

-- Returns a text of a model or a tool, on one line and cut.
local function short(s, most)
  s = s or ""
  return (text.cut(s, most):gsub("[\n\r\t]", " ")) .. (#s > most and "..." or "")
end

--- Returns one line about a finished call: its name, its arguments, its outcome and its duration.
---@param json string the event
---@return string
function M.call(json)
  local e = decode(json)
  local duration = e.duration or 0
  return ("%s%s %s %s in %s s: %s"):format(e.parent and "  " or "", -- of a run within a call
    short(e.name, 64), short(e.arguments, 80), e.success and "ok" or "failed",
    (duration < 1 and "%.3f" or "%.1f"):format(duration), short(e.content, 80))
end

return M
