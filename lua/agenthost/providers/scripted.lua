--- ah.scripted: a model that plays the answers of a script, for tests and examples.
--
--   ah.scripted { turn, turn, ... }      one turn for each request, in this order
--   ah.scripted(function(request) ... end)   or a turn for each request from a function
--   ah.scripted { tool_change_mode = "inline", answer = function(request) ... end }
--   ah.scripted { rules = { { when = { user = "Paris" }, text = "..." }, ... } }
--
-- A rule is a turn with `when`: the first rule whose `when` holds answers, any number of times.
--
-- tool_change_mode says how a tool that is added in mid-conversation reaches the model: "append"
-- (the default: the list grows at its end), "inline", "reference", "additional_tools",
-- "search_pair", "list_changed", "dispatcher", "restart".
--
-- begins_only = true: the model cannot continue a conversation in which another model has answered.
-- As a fallback it is skipped there.
--
-- A turn is a string (the whole answer), a function(request) that returns a turn, or a table of
-- these fields:
--   text = "..."              or a list of strings: streamed piece by piece
--   calls = { { name, arguments = {...} or "json text", id = ... }, ... }
--             `returns`: the handler does not run; the result is this value, or what this
--             function(args, ctx) returns; `wrong`: not checked by `strict`
--   refusal = "...", stop = "end"|"length"|..., usage = { input, output, ... }
--   delay = seconds           before the answer, and between its pieces
--   cut = true                the answer ends before it is complete
--   fail = { message, code, status, retryable, retry_after, window, used }    instead of an answer;
--     code is "context_full"; absent: "provider"
--   raw = "bytes"             instead of everything else
--   expect = { ... }          what the request must contain (see `check_expect`)
--   check = function(request) ... end     raises, or returns false, message, to refuse it
--
-- A request is { model, options, tools, system, entries }, entries as in the transcript.
-- Beside the turns, ah.scripted takes `returns`, { tool name = value or function }, for all calls
-- of a tool, and `strict`: each call must be of an offered tool, with arguments that fit its
-- schema.
--
-- A request without a turn left is an error of the run. adapter:done() raises unless every turn was
-- used; adapter:requests() lists the requests.
local ah = ...

local TURN = {
  { name = "text", kinds = "string list", is = "string or list of strings",
    type = "string|string[]", doc = "the answer; a list is sent piece by piece" },
  { name = "calls", kinds = "list", type = "ah.ScriptedCall[]", doc = "calls of tools" },
  { name = "refusal", kinds = "string", doc = "the model refuses, with this text" },
  { name = "stop", kinds = "string", otherwise = "`end`, or `tool_calls` with calls",
    doc = "why the answer ends" },
  { name = "usage", kinds = "table", type = "table<string, number>",
    doc = "tokens: `input`, `cached_read`, `cached_write`, `output`, `reasoning`, integers; "
      .. "`cost`, a number, US dollars" },
  { name = "delay", kinds = "number", least = 0, most = 1e9, unit = "seconds",
    doc = "before the answer and between its pieces" },
  { name = "cut", kinds = "boolean", default = false,
    doc = "the answer breaks off before its end: an error of code `http`, retried" },
  { name = "fail", kinds = "table", type = "ah.Failure", doc = "an error instead of an answer" },
  { name = "raw", kinds = "string",
    doc = "bytes in place of the whole answer, for other kinds of broken answers" },
  { name = "expect", kinds = "table", type = "ah.Expect",
    doc = "what the request must contain, see below" },
  { name = "check", kinds = "function", type = "fun(request: table): boolean?, string?",
    doc = "`check(request)`: returns `false, message`, or raises, to refuse the request" },
}

local read = {}
read.spec = ah._reader {
  what = "ah.scripted", type = "ah.Script", list = "ah.ScriptedAnswer", rows = {
    { name = "answer", kinds = "function", type = "fun(request: table): ah.ScriptedAnswer",
      doc = "in place of turns: returns a turn for each request" },
    { name = "rules", kinds = "list", type = "ah.ScriptedRule[]",
      doc = "in place of both: the first [rule](scripted.md#rules) that matches answers" },
    { name = "returns", kinds = "table", type = "table<string, any>",
      doc = "[doubles](testing.md#doubles) of tools, by name" },
    { name = "strict", kinds = "boolean", default = false,
      doc = "a call of a tool that the request does not offer, or with arguments that the tool "
        .. "does not take, is an error that names the difference" },
    { name = "tool_change_mode", kinds = "string", otherwise = "`append`",
      words = "append inline reference additional_tools search_pair list_changed dispatcher "
        .. "restart",
      type = "ah.ToolChangeMode",
      doc = "how tools added in mid-conversation reach this model, see below" },
    { name = "begins_only", kinds = "boolean", default = false,
      doc = "the model cannot continue a conversation in which another model has spoken: as a "
        .. "fallback it is skipped" },
    { name = "resumes", kinds = "boolean", default = false,
      doc = "the n-th turn answers the request whose conversation has n - 1 answers: a test goes "
        .. "on with a conversation in another process" },
  },
}
read.call = ah._reader {
  what = "ah.scripted: calls", type = "ah.ScriptedCall", rows = {
    { name = "name", kinds = "string", needed = true, doc = "the tool's name" },
    { name = "arguments", kinds = "string table", default = "{}", is = "table or JSON text",
      doc = "the call's arguments" },
    { name = "id", kinds = "string", otherwise = "generated",
      doc = "the call's id, which its result repeats" },
    { name = "returns", kinds = "any",
      doc = "the result in place of the handler's, or a `function(args, ctx)` that returns it; see "
        .. "[Doubles](testing.md#doubles)" },
    { name = "wrong", kinds = "boolean", default = false,
      doc = "`strict` does not check this call" },
  },
}
read.when = ah._reader {
  what = "ah.scripted: when", type = "ah.When", rows = {
    { name = "user", kinds = "string",
      doc = "part of the user's text, if the user spoke last" },
    { name = "result", kinds = "string",
      doc = "part of a tool's result, if a result came last" },
    { name = "system", kinds = "string", doc = "part of the system text" },
    { name = "tools", kinds = "list", is = "list of names", type = "string[]",
      doc = "tools that the request must offer" },
    { name = "model", kinds = "string", doc = "the model's name" },
  },
}
read.expect = ah._reader {
  what = "ah.scripted: expect", type = "ah.Expect", doc = "what a request must hold", rows = {
    { name = "user", kinds = "string", doc = "the text of the last user message" },
    { name = "system", kinds = "string", doc = "the system text; empty if there is none" },
    { name = "tools", kinds = "list", is = "list of names", type = "string[]",
      doc = "tools that the request must offer" },
    { name = "result", kinds = "string",
      doc = "the content of the last entry, a tool's result" },
    { name = "model", kinds = "string", doc = "the model's name (`script`)" },
    { name = "calls", kinds = "list", type = "ah.TestCall[]",
      doc = "all calls of the turn before, each `{ name = ..., arguments = ..., result = ..., "
        .. "success = ... }`; a field left out may have any value" },
  },
}

local WHEN = { name = "when", kinds = "table", type = "ah.When",
  doc = "the conditions; without it the rule always matches" }

-- Makes the readers of turns and of rules.
local function readers_of(rows, turn_type, rule_type)
  local of_rule = table.move(rows, 1, #rows, 1, {})
  of_rule[#of_rule + 1] = WHEN
  return {
    turn = ah._reader { what = "ah.scripted: turn", type = turn_type, rows = rows },
    rule = ah._reader { what = "ah.scripted: rule", type = rule_type, rows = of_rule },
  }
end

local PLAIN = readers_of(TURN, "ah.Turn", "ah.ScriptedRule")

-- `given`: a set of names of fields that are new, or allow more values than here. The caller has
-- checked these fields.
local function readers_with(given)
  local rows = {}
  for _, row in ipairs(TURN) do
    rows[#rows + 1] = not given[row.name] and row or nil
  end
  for name in pairs(given) do
    rows[#rows + 1] = { name = name, kinds = "any" }
  end
  return readers_of(rows, "ah.ServedTurn", "ah.ServedRule")
end

local function refuse(text, ...)
  error(ah.error { code = "provider", message = ("scripted model: " .. text):format(...) }, 0)
end

-- Reads a turn from a table, with the reader of turns or of rules.
local function read_turn(reader, turn, what)
  turn = reader(turn, what)
  turn.expect = turn.expect and read.expect(turn.expect, what .. ": expect")
  local calls = {}
  for i = 1, turn.calls and ah._check_list(turn.calls, what .. ": calls") or 0 do
    calls[i] = read.call(turn.calls[i], ("%s: calls[%d]"):format(what, i))
  end
  turn.calls = turn.calls and calls
  return turn
end

local function check_turn(turn, at, readers)
  local kind = type(turn)
  if kind == "table" then
    return read_turn(readers.turn, turn, ("ah.scripted: turn %d"):format(at))
  elseif kind ~= "string" and kind ~= "function" then
    ah._raise(("ah.scripted: turn %d must be a string, a table or a function, found %s"):format(at,
      kind))
  end
  return turn
end

--- Returns the text of the request's last user message.
local function last_user(request)
  for i = #request.entries, 1, -1 do
    local e = request.entries[i]
    if e.type == "user" then
      return e.content[1] and e.content[1].text or ""
    end
  end
end

local function names_tool(list, name)
  for _, tool in ipairs(list or {}) do
    if tool.name == name then
      return true
    end
  end
end

-- Tools that were added in mid-conversation may be in the entries.
local function has_tool(request, name)
  local has = names_tool(request.tools, name)
  for _, e in ipairs(request.entries) do
    has = has or (e.type == "tools_added" and names_tool(e.tools, name))
  end
  return has
end

--- expect = { user, system, model, tools = { names }, result = text of the last tool result, calls
-- = those of the turn before }
local function check_expect(expect, request, at)
  for key, wanted in pairs(expect) do
    local found
    if key == "tools" then
      for _, name in ipairs(wanted) do
        if not has_tool(request, name) then
          refuse("request %d does not offer the tool '%s'", at, name)
        end
      end
      found = wanted
    elseif key == "user" then
      found = last_user(request)
    elseif key == "result" then
      local last = request.entries[#request.entries]
      found = last and last.type == "tool_result" and last.content or nil
    elseif key == "calls" then
      local wrong = ah._calls.differ(wanted, ah._calls.of_request(request))
      if wrong then
        refuse("request %d: %s", at, wrong)
      end
      found = wanted
    else
      found = request[key]
    end
    if found ~= wanted then
      refuse("request %d: expected %s '%s', found '%s'", at, key, tostring(wanted), tostring(found))
    end
  end
end

-- -- rules ---------------------------------------------------------------------------------

-- Returns the last entry by the user, a tool or the model; skips notes and changes of tools.
local function last_said(request)
  for i = #request.entries, 1, -1 do
    local kind = request.entries[i].type
    if kind == "user" or kind == "tool_result" or kind == "assistant" then
      return request.entries[i]
    end
  end
  return {}
end

local function holds(text, part)
  return type(text) == "string" and text:find(part, 1, true) ~= nil
end

-- A condition on the user holds only right after the user's message, not after results of calls.
local function is_met(when, request)
  local last = last_said(request)
  for _, name in ipairs(when.tools or {}) do
    if not has_tool(request, name) then
      return false
    end
  end
  return (not when.user or (last.type == "user" and holds(last_user(request), when.user)))
    and (not when.result or (last.type == "tool_result" and holds(last.content, when.result)))
    and (not when.system or holds(request.system, when.system))
    and (not when.model or when.model == request.model)
end

--- Returns the rules as a function of the request, which returns a turn without its `when`.
local function answer_by(rules, readers)
  local turns, whens = {}, {}
  for i, rule in ipairs(rules) do
    local what = ("ah.scripted: rule %d"):format(i)
    turns[i] = read_turn(readers.rule, rule, what)
    whens[i], turns[i].when = read.when(turns[i].when or {}, what .. ": when"), nil
  end
  return function(request)
    for i, turn in ipairs(turns) do
      if is_met(whens[i], request) then
        return turn
      end
    end
    refuse("no rule (of %d) matches '%s'", #rules, tostring(last_user(request)))
  end
end

local function check_request(turn, request, at)
  if turn.expect then
    check_expect(turn.expect, request, at)
  end
  if turn.check then
    local ok, message = turn.check(request)
    if ok == false then
      refuse("request %d was refused: %s", at, tostring(message or "check returned false"))
    end
  end
end

local function write_text(x, turn)
  local pieces = type(turn.text) == "table" and turn.text or { turn.text }
  for i, piece in ipairs(pieces) do
    if i > 1 and turn.delay then
      ah.sleep(turn.delay)
    end
    x:write { text = piece }
  end
end

-- Adds each call that has `returns` to `doubles`, with that value.
local function write_calls(x, turn, doubles)
  for i, call in ipairs(turn.calls or {}) do
    local arguments = call.arguments or "{}"
    if type(arguments) == "table" then
      arguments = ah.json.encode(next(arguments) == nil and ah.object {} or arguments)
    end
    if call.returns ~= nil then
      doubles:add(call.name, arguments, call.returns)
    end
    x:write { call = { index = i - 1, id = call.id, name = call.name, arguments = arguments } }
  end
end

local function play(x, turn, doubles)
  if turn.delay then
    ah.sleep(turn.delay)
  end
  if turn.fail then
    x:write { error = turn.fail }
    return
  end
  if turn.raw then
    x:raw(turn.raw)
    return
  end
  write_text(x, turn)
  if turn.refusal then
    x:write { refusal = turn.refusal }
  end
  write_calls(x, turn, doubles)
  if turn.usage then
    x:write { usage = turn.usage }
  end
  if not turn.cut then
    x:write { stop = turn.stop or (turn.calls and "tool_calls" or "end") }
  end
end

-- -- doubles: in place of handlers ----------------------------------------------------------------

local Doubles = {}
Doubles.__index = Doubles

local function new_doubles(by_name)
  return setmetatable({ by_name = by_name or {}, written = {}, due = {} }, Doubles)
end

--- Adds the double of one call, which is now part of the answer.
function Doubles:add(name, arguments, value)
  table.insert(self.written, { name = name, arguments = arguments, value = value })
end

--- Returns true if a call has a double, which is kept for run(). `arguments` is the text of the
-- answer.
function Doubles:ask(name, arguments, call_id)
  for i, call in ipairs(self.written) do
    if call.name == name and call.arguments == arguments then
      self.due[call_id] = table.remove(self.written, i)
      return true
    end
  end
  self.due[call_id] = self.by_name[name] ~= nil and { value = self.by_name[name] } or nil
  return self.due[call_id] ~= nil
end

--- Runs the double in place of the handler: returns the value, or the function's results.
function Doubles:run(args, ctx)
  local value = self.due[ctx.call_id].value
  self.due[ctx.call_id] = nil
  if type(value) == "function" then
    return value(args, ctx)
  end
  return value
end

local function as_table(turn, request, at, readers)
  while type(turn) == "function" do
    turn = check_turn(turn(request), at, readers)
  end
  return type(turn) == "string" and { text = turn } or turn
end

-- Returns the number of answers that the request's conversation has.
local function answers_in(request)
  local n = 0
  for _, entry in ipairs(request.entries) do
    n = n + (entry.type == "assistant" and 1 or 0)
  end
  return n
end

-- Reads the turns, a list or a function, and the fields beside them.
local function read_spec(spec, readers)
  if type(spec) == "function" then
    return spec, {}
  elseif type(spec) ~= "table" then
    ah._raise("ah.scripted: expected a list of turns or a function, found " .. type(spec))
  end
  spec = read.spec(spec)
  if (spec.answer and 1 or 0) + (spec.rules and 1 or 0) + (#spec > 0 and 1 or 0) > 1 then
    ah._raise "ah.scripted: give turns, or answer or rules in their place"
  end
  for i, turn in ipairs(spec) do
    spec[i] = check_turn(turn, i, readers)
  end
  return spec.answer or spec.rules and answer_by(spec.rules, readers) or spec, spec
end

--- Makes the adapter. `spec` is a list of turns or a function; `name` and `provider` are in events
-- and errors; `more` is a set of names of fields of turns that the caller has checked.
local function scripted(spec, name, provider, more)
  local taken, requests = 0, {}
  local readers = more and readers_with(more) or PLAIN
  local turns, beside = read_spec(spec, readers)
  local doubles = new_doubles(beside.returns)

  -- Returns the next turn, as a table. ask() returns the request; it is called only if the turn
  -- needs it. `keeps`: adapter:requests() lists the request. Demo models keep none, as their
  -- conversations may be long.
  local function next_turn(ask, keeps)
    local request = beside.resumes and ask() or nil
    taken = request and answers_in(request) + 1 or taken + 1
    local at = taken
    local turn = turns
    if type(turns) == "table" then
      turn = turns[at]
      if turn == nil then
        refuse("request %d was not expected (turns given: %d)", at, #turns)
      end
    end
    local needs_request = type(turn) ~= "string"
    request = request or (needs_request and ask() or nil)
    requests[at] = keeps and request or false
    turn = as_table(turn, request, at, readers)
    check_request(turn, request, at)
    local drift = beside.strict and request and ah._calls.drift(turn, request)
    if drift then
      refuse("request %d: drift: %s", at, drift)
    end
    return turn
  end

  local function exchange(x)
    play(x, next_turn(function() return x:request() end, not provider), doubles)
  end

  return ah._adapter(provider or "scripted", name or "script", exchange, {
    --- Raises unless every turn was used.
    done = function()
      if type(turns) == "table" and taken < #turns then
        refuse("%d of %d turns were never asked for", #turns - taken, #turns)
      end
      return true
    end,
    --- Returns the requests so far, decoded; false for a turn that was a plain string.
    requests = function()
      return requests
    end,
    --- The spec of this model, for callers that read its turns before any request.
    _spec = spec,
    --- Returns the turn that answers a request, for callers that send it in a wire format of their
    -- own. They may serve any number of requests, so these are not kept.
    _turn = function(request)
      return next_turn(function() return request end, false)
    end,
  }, beside.tool_change_mode, beside.begins_only, true, function(...)
    return doubles:ask(...)
  end, function(...)
    return doubles:run(...)
  end, nil, nil, nil, true)
end

return scripted
