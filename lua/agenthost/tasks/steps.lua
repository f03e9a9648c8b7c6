--- The steps of durable handlers: what a function got from outside is recorded, and given again
-- when the handler is entered again. C calls these functions with the plain one (`plain`), which
-- works as everywhere else inside of `outside`.
local ah = ...

local ask_step, outside, wall = ah._step, ah._outside, ah._wall
local raise, new_error, encode, decode = ah._raise, ah.error, ah.json.encode, ah.json.decode
local sha256, base64, unbase64 = ah.sha256, ah.base64.encode, ah.base64.decode

local read_options = ah._reader {
  what = "ctx:step", type = "ah.StepConfig", rows = {
    { name = "on_lost", kinds = "string function", default = "tell",
      is = "`tell`, `retry`, `ask` or function", type = '"tell"|"retry"|"ask"|fun(key: string)',
      doc = "what to do if the program died while the function was at work, see "
        .. "[Lost steps](durable.md#lost-steps)" },
    { name = "secret", kinds = "boolean", default = false,
      doc = "true: the result is not recorded, and the call is not durable from here on" },
  },
}

local M = {}

local MOST_RESULTS, MOST_NAME = 200, 200 -- of a name: bytes

-- -- values as JSON ----------------------------------------------------------------------------

local ERROR = getmetatable(new_error { code = "usage", message = "" })

local function pack_error(err)
  local fields = {}
  for key, value in pairs(err) do
    local ok, json = pcall(encode, { [key] = value })
    if type(key) == "string" and ok then
      fields[#fields + 1] = json:sub(2, -2)
    end
  end
  return '{"e":{' .. table.concat(fields, ",") .. "}}"
end

-- One value as JSON; nil and why it cannot be. `nil` is {}.
local function pack_one(value)
  if value == nil then
    return "{}"
  elseif type(value) == "table" and getmetatable(value) == ERROR then
    return pack_error(value)
  end
  local ok, json = pcall(encode, value)
  if not ok then
    return nil, type(json) == "table" and json.message or json
  end
  return '{"v":' .. json .. "}"
end

local function pack(n, ...)
  local parts = {}
  for i = 1, n do
    local json, why = pack_one((select(i, ...)))
    if not json then
      return nil, why
    end
    parts[i] = json
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function unpack_one(item)
  return item.e and new_error(item.e) or item.v
end

local function damaged()
  error(new_error { code = "store", message = "the record of a step is damaged: open another "
    .. "conversation, or give the call up" }, 0)
end

local function read_list(kept)
  local list = type(kept) == "string" and decode(kept)
  if type(list) ~= "table" or #list > MOST_RESULTS then
    damaged()
  end
  for i = 1, #list do
    local item = list[i]
    if type(item) ~= "table" or (item.e ~= nil and type(item.e) ~= "table") then
      damaged()
    end
  end
  return list
end

-- The results of a recorded step; raises what it has raised. kind: the type that the first one must
-- have; nil: any.
local function replay(success, kept, kind)
  local list = read_list(kept)
  if not success then
    error(list[1] and unpack_one(list[1]), 0)
  end
  local results = {}
  for i = 1, #list do
    results[i] = unpack_one(list[i])
  end
  if kind and type(results[1]) ~= kind then
    damaged()
  end
  return table.unpack(results, 1, #list)
end

-- -- the end of a step -------------------------------------------------------------------------

-- A raised value that is no JSON is kept as its text.
local function finish_raised(step, err)
  step:finish(false, pack(1, err) or pack(1, tostring(err)))
  error(err, 0)
end

-- Records the results of `outside`, and returns them.
local function finish(step, what, ok, ...)
  if not ok then
    return finish_raised(step, (...))
  elseif select("#", ...) > MOST_RESULTS then
    return finish_raised(step, new_error { code = "tool_validation",
      message = ("%s: more than %d results"):format(what, MOST_RESULTS) })
  end
  local kept, why = pack(select("#", ...), ...)
  if not kept then
    return finish_raised(step, new_error { code = "tool_validation",
      message = ("%s: its result must be JSON: %s"):format(what, (why:gsub("^.-: at ", "at "))) })
  end
  step:finish(true, kept)
  return ...
end

local function lost_error(what)
  return new_error { code = "conflict", lost = true,
    message = ("%s was begun by a process that has died, and its end is not recorded: it may have "
      .. "happened"):format(what) }
end

-- Returns the results of `outside`, or raises what was raised.
local function checked(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

-- -- steps that reach outside ------------------------------------------------------------------

-- A step that is begun, done by f(...) and recorded. on_lost: "tell" or "retry"; raises: a lost
-- step raises, else it returns nil and an error.
local function effect(step, state, what, on_lost, raises, f, ...)
  if state == "lost" and on_lost == "tell" then
    local err = lost_error(what)
    if raises then
      return finish_raised(step, err)
    end
    return finish(step, what, true, nil, err)
  end
  step:begin(on_lost, what)
  return finish(step, what, outside(step, f, ...))
end

-- -- ah.http -----------------------------------------------------------------------------------

local SAFE = { GET = true, HEAD = true, OPTIONS = true } -- without an effect
local AGAIN = { GET = true, HEAD = true, OPTIONS = true, PUT = true, DELETE = true } -- idempotent

local function keep_text(s)
  return utf8.len(s) and s or { base64 = base64(s) }
end

local function text_of(kept)
  return type(kept) == "table" and unbase64(kept.base64) or kept
end

local function each_text(response, f)
  if type(response) ~= "table" then
    return response
  elseif type(response.headers) ~= "table" then
    damaged()
  end
  local headers = {}
  for name, value in pairs(response.headers) do
    headers[name] = f(value)
  end
  return { status = response.status, body = f(response.body), headers = headers }
end

local function with_key(request, key)
  local copy, headers = {}, {}
  for name, value in pairs(request) do
    copy[name] = value
  end
  for name, value in pairs(request.headers or {}) do
    if type(name) == "string" and name:lower() == "idempotency-key" then
      return request
    end
    headers[name] = value
  end
  headers["Idempotency-Key"] = key
  copy.headers = headers
  return copy
end

local function restored(response, ...)
  return each_text(response, text_of), ...
end

local function kept_response(response, ...)
  return each_text(response, keep_text), ...
end

function M.http(plain, request)
  if type(request) ~= "table" or type(request.url) ~= "string" then
    return plain(request)
  elseif request.stream ~= nil then
    raise "ah.http: a response in pieces is no step: read it inside of ctx:step(name, function)"
  end
  local method = tostring(request.method or request.body and "POST" or "GET")
  local body = type(request.body) == "string" and request.body or ""
  local step, state, success, kept = ask_step("http",
    sha256(method .. "\n" .. request.url .. "\n" .. body):sub(1, 32))
  if not step then
    return checked(outside(nil, plain, request))
  elseif state == "recorded" then
    return restored(replay(success, kept))
  end
  local on_lost = request.on_lost or AGAIN[method] and "retry" or "tell"
  local asked = SAFE[method] and request or with_key(request, step:key())
  return restored(effect(step, state, ("%s %s"):format(method, request.url), on_lost, false,
    function() return kept_response(plain(asked)) end))
end

-- -- ah.sleep, ah.now, ah.random ---------------------------------------------------------------

function M.sleep(plain, seconds)
  local step, state, success, kept = ask_step("sleep", ("%.17g"):format(seconds))
  local left = seconds
  if state == "recorded" then
    left = math.max(0, math.min(seconds, replay(success, kept, "number") - wall()))
  elseif step then
    step:finish(true, pack(1, wall() + seconds))
  end
  checked(outside(nil, plain, left))
end

local function value_of(kind, name, plain, ...)
  local step, state, success, kept = ask_step(kind, name)
  if state == "recorded" then
    return replay(success, kept)
  elseif not step then
    return checked(outside(nil, plain, ...))
  end
  return finish(step, kind, outside(nil, plain, ...))
end

function M.now(plain)
  return value_of("now", "", plain)
end

function M.random(plain, ...)
  return value_of("random", table.concat({ ... }, " "), plain, ...)
end

-- -- files of the machine ----------------------------------------------------------------------

-- The name of a step for what these arguments look at.
local function name_of(method, folder, path, options)
  local ok, more = pcall(encode, options)
  local name = ("%s %s/%s %s"):format(method, folder, path or "", options and ok and more or "")
    :match "^%s*(.-)%s*$"
  return #name <= MOST_NAME and utf8.len(name) and name or sha256(name):sub(1, 32)
end

-- The fields of a list, such as `truncated`, beside its items.
local function keep_list(list)
  if type(list) ~= "table" then
    return list
  end
  local kept = { items = {}, fields = {} }
  for key, value in pairs(list) do
    kept[math.type(key) and "items" or "fields"][key] = value
  end
  return kept
end

local function list_of(kept)
  if type(kept) ~= "table" then
    return kept
  elseif type(kept.items) ~= "table" or type(kept.fields) ~= "table" then
    damaged()
  end
  for key, value in pairs(kept.fields) do
    kept.items[key] = value
  end
  return kept.items
end

-- The part of a result that a handler depends on, as text. The message of an error names other
-- files.
local function seen(value, more)
  if value == nil and type(more) == "table" then
    return encode { tostring(more.code), tostring(more.reason) }
  end
  return encode { value, more }
end

local function conflict(step, path)
  step:conflict()
  return nil, new_error { code = "conflict", reason = "conflict", path = path,
    message = ("'%s' has changed since this call looked at it, before the call was begun again. "
      .. "What the call saw then is in the journal. Look at the file again, and repeat the call")
      :format(path) }
end

local function as_is(value)
  return value
end

local UNKEEP = { [keep_text] = text_of, [keep_list] = list_of, [as_is] = as_is }

-- A look at a file, taken at each entry. The first one of a task is compared with the recorded one.
-- keep: makes its result JSON.
local function look(method, keep, plain, folder, fs, ...)
  if ah._replayed() then
    local _, _, success, kept = ask_step("read", name_of(method, folder, ...), true)
    local value, more = replay(success, kept)
    return UNKEEP[keep](value), more
  end
  local value, more = plain(fs, ...)
  if value == nil and more.code == "cancelled" then
    return nil, more
  end
  local step, state, success, kept = ask_step("read", name_of(method, folder, ...), true)
  local json = value ~= nil and keep(value) or value
  if state == "recorded" then
    if seen(replay(success, kept)) ~= seen(json, more) then
      return conflict(step, (...) or "")
    end
  elseif step and method == "read" and value then
    step:finish(true, pack(2, json, more), sha256(value), more.size)
  elseif step then
    step:finish(true, pack(2, json, more))
  end
  return value, more
end

-- An error, or one value without the second result.
local function one(value, err)
  if value == nil then
    return nil, err
  end
  return value
end

function M.file_read(...)
  return look("read", keep_text, ...)
end

function M.file_lines(...)
  return one(look("lines", keep_list, ...))
end

function M.file_stat(...)
  return one(look("stat", as_is, ...))
end

function M.file_exists(...)
  return one(look("exists", as_is, ...))
end

-- A list is given again as it was, since no change depends on one.
local function give_list(kind, plain, folder, fs, ...)
  local step, state, success, kept = ask_step(kind, name_of("", folder, ...))
  if state == "recorded" then
    local list, err = replay(success, kept)
    return one(list_of(list), err)
  end
  local ok, list, err = pcall(plain, fs, ...)
  if not ok and step then
    return finish_raised(step, list)
  elseif not ok then
    error(list, 0)
  elseif step then
    step:finish(true, pack(2, keep_list(list), err))
  end
  return one(list, err)
end

function M.file_list(...)
  return give_list("list", ...)
end

function M.file_glob(...)
  return give_list("glob", ...)
end

function M.file_grep(...)
  return give_list("grep", ...)
end

-- -- ctx:ask -----------------------------------------------------------------------------------

function M.ask(plain, ctx, ask)
  if type(ask) ~= "table" or type(ask.question) ~= "string" then
    return plain(ctx, ask)
  end
  local name = sha256(ask.question):sub(1, 32)
  if ask.secret then
    ah._secret(name)
    return checked(outside(nil, plain, ctx, ask))
  end
  local step, state, success, kept = ask_step("ask", name)
  if state == "recorded" then
    return replay(success, kept)
  elseif not step then
    return checked(outside(nil, plain, ctx, ask))
  end
  return finish(step, "ctx:ask", outside(nil, plain, ctx, ask, step)) -- may wait for days
end

-- -- ctx:step ----------------------------------------------------------------------------------

local QUESTION = "The step '%s' of %s was begun by a process that has died. Did it happen?"
local HAPPENED, NOT, UNKNOWN = "it happened", "it did not happen", "I do not know"

-- Asks a person. True: it happened; false: it did not; nil: unknown.
local function ask_person(ctx, name)
  local ok, response = outside(nil, ctx.ask, ctx, { question = QUESTION:format(name, ctx.tool_name),
    schema = { enum = { HAPPENED, NOT, UNKNOWN } } })
  if ok and response == HAPPENED then
    return true
  elseif ok and response == NOT then
    return false
  end
end

-- Finds out what happened to a lost step: true and its value, false or nil.
local function find_out(ctx, step, name, on_lost)
  if on_lost == "ask" then
    return ask_person(ctx, name)
  end
  return checked(outside(nil, on_lost, step:key()))
end

local function run_step(step, what, on_lost, f)
  step:begin(type(on_lost) == "string" and on_lost or "function", what)
  local results = table.pack(outside(step, f, step:key()))
  if step:changed() and results[1] then
    return finish_raised(step, new_error { code = "usage",
      message = what .. ": a run inside of it has changed session, files or entities; that is done "
        .. "again at each entry, and a step is not: make the run outside of the step" })
  end
  return finish(step, what, table.unpack(results, 1, results.n))
end

local function settle_lost(ctx, step, name, what, on_lost, f)
  if on_lost == "retry" then
    return run_step(step, what, on_lost, f)
  end
  local happened, result
  if on_lost ~= "tell" then
    happened, result = find_out(ctx, step, name, on_lost)
  end
  if happened == false then
    return run_step(step, what, on_lost, f)
  elseif happened then
    return finish(step, what, true, result)
  end
  return finish_raised(step, lost_error(what))
end

local ON_LOST = { tell = true, retry = true, ask = true }

local function read_step(name, f, options)
  if type(name) ~= "string" or name == "" or #name > 100 or not utf8.len(name) then
    raise "ctx:step: the name must be a string of 1 to 100 bytes, in UTF-8"
  elseif type(f) ~= "function" then
    raise(("ctx:step: the second argument must be a function, found %s"):format(type(f)))
  end
  options = read_options(options or {})
  if type(options.on_lost) == "string" and not ON_LOST[options.on_lost] then
    raise(("ctx:step: on_lost is \"tell\", \"retry\", \"ask\" or a function, found \"%s\""):format(
      options.on_lost))
  end
  return options
end

function M.step(_, ctx, name, f, options)
  options = read_step(name, f, options)
  local what = ("the step '%s'"):format(name)
  if options.secret then
    ah._secret(name)
    return checked(outside(nil, f, ctx.idempotency_key))
  end
  local step, state, success, kept = ask_step("step", name)
  if not step then -- after a secret step
    return checked(outside(nil, f, ctx.idempotency_key))
  elseif state == "recorded" then
    return replay(success, kept)
  elseif state == "lost" then
    return settle_lost(ctx, step, name, what, options.on_lost, f)
  end
  return run_step(step, what, options.on_lost, f)
end

-- -- ah.run, agent:run -------------------------------------------------------------------------

local RUN = "a run inside of the handler"

-- The texts of the array part, which the run is asked.
local function said(...)
  local parts = {}
  for _, argument in ipairs { ... } do
    if type(argument) == "string" then
      parts[#parts + 1] = argument
    elseif type(argument) == "table" then
      for _, part in ipairs(argument) do
        parts[#parts + 1] = type(part) == "string" and part or nil
      end
    end
  end
  return table.concat(parts, "\n")
end

-- A reply as a table, with the entries that it has added to the conversation.
local function keep_reply(reply, agent)
  local json, entries, first = ah._reply_parts(reply, not agent)
  return { reply = json, entries = entries, first = first }
end

local function reply_of(kept, agent)
  return ah._reply(kept.reply, kept.entries, kept.first, agent)
end

-- The results of a run: what it has changed in the call, and its replies as tables; its error.
local function keep_run(agent, changes, reply, err)
  local partial = type(err) == "table" and err.reply
  local parts = { changes = changes, reply = reply and keep_reply(reply, agent) or nil,
    partial = partial and keep_reply(partial, agent) or nil }
  return pack(2, parts, err)
end

local function results_of(agent, parts, err)
  if parts.changes then
    ah._restage(parts.changes)
  end
  if parts.reply then
    return reply_of(parts.reply, agent)
  elseif parts.partial then
    err.reply = reply_of(parts.partial, agent)
  end
  return nil, err
end

function M.run(plain, ...)
  local agent = type((...)) == "userdata" and (...) or nil
  local text = said(select(agent and 2 or 1, ...))
  local step, state, success, kept = ask_step("run", sha256(text):sub(1, 32))
  if not step then
    return checked(outside(nil, plain, ...))
  elseif state == "recorded" then
    return results_of(agent, replay(success, kept, "table"))
  elseif state == "lost" then
    local err = lost_error(RUN)
    step:finish(true, pack(2, ah.object {}, err))
    return nil, err
  end
  step:begin("tell", RUN)
  local ok, reply, err = outside(step, plain, ...)
  if not ok then
    step:changed()
    return finish_raised(step, reply)
  end
  local changes = step:take()
  if changes == false then
    changes, reply = nil, nil
    err = new_error { code = "usage", message = RUN .. " has changed something that cannot "
      .. "be kept with its reply, such as the session of another agent: make the change in the "
      .. "handler" }
  end
  step:finish(true, keep_run(agent, changes, reply, err))
  return reply, err
end

-- -- the first of several ----------------------------------------------------------------------

--- A decision between tasks: returns the step, and what was decided if that is recorded: a number
-- from 0 to n, or without n a boolean. nil: the code makes no steps.
function M.first(name, n)
  local step, state, success, kept = ask_step("first", name)
  if state == "recorded" then
    local decided = replay(success, kept, n and "number" or "boolean")
    if n and not (math.type(decided) == "integer" and decided >= 0 and decided <= n) then
      damaged()
    end
    return step, decided
  end
  return step
end

--- Records the decision.
function M.decide(step, decided)
  step:finish(true, pack(1, decided))
end

return M
