--- Our side of the protocol with a `claude` process (docs/reference/claude.md): makes the lines for
-- the command and reads its lines. It does no I/O; claude.lua owns the process and calls this.
--
-- The command runs its own loop: it asks for each call of a tool, and gets the result when the run
-- has made the call. The model's output is events of the Messages API, which are passed on
-- unchanged.
local ah = ...

local text = ah._module "agenthost.providers.claude_text"
local encode, members = ah.json.encode, ah._members

local NAME = "claude_agent_sdk"
local SERVER = "host"
local PREFIX = "mcp__" .. SERVER .. "__"
local WHAT = NAME .. ": a line of the command"
local EFFORTS = { none = true, low = true, medium = true, high = true, xhigh = true, max = true }
local MOST_CALLS = 1024 -- limit of calls without a result, or results without their request
local MOST_TOLD = 400 -- bytes of the command's text in messages
local COST_UNIT = 1000000000 -- units in one US dollar

local function refuse(message, more)
  local err = { code = "provider", message = NAME .. ": " .. message }
  for key, value in pairs(more or {}) do
    err[key] = value
  end
  error(ah.error(err), 0)
end

-- -- options --------------------------------------------------------------------------------------
-- The command cannot set other options. They are refused, not ignored, because they may matter.
-- Options of one provider only have no effect here, as with every other provider.

local NOTHING = { cache = true, cache_key = true, tool_choice_every_turn = true }

local function refuse_option(name, why)
  error(ah.error { code = "usage", phase = "request",
    message = ("options: %s %s"):format(name:sub(1, 64), why) }, 0)
end

local function take_option(taken, name, value)
  if name == "reasoning" then
    if not EFFORTS[value] then
      refuse_option(name, 'must be "none", "low", "medium", "high", "xhigh" or "max" where the '
        .. "claude command asks the model")
    end
    taken.effort = value
  elseif name == "max_tokens" then
    if math.type(value) ~= "integer" or value <= 0 then
      refuse_option(name, "must be an integer above 0")
    end
    taken.max_tokens = value
  elseif name == "tool_choice" then
    if value ~= "auto" and value ~= "none" then
      refuse_option(name, 'must be "auto" or "none" where the claude command asks the model')
    end
    taken.toolless = value == "none"
  elseif not NOTHING[name] then
    refuse_option(name, "cannot be set where the claude command asks the model; leave it out (it "
      .. "takes max_tokens, reasoning and tool_choice)")
  end
end

--- Returns the options that a process is started with; refuses options that cannot be set.
local function options_of(request)
  local taken, names = { toolless = false }, {}
  for name in pairs(request.options or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    take_option(taken, name, request.options[name])
  end
  return taken
end

local function same_options(a, b)
  return a.effort == b.effort and a.max_tokens == b.max_tokens and a.toolless == b.toolless
end

-- -- lines ----------------------------------------------------------------------------------------

local Talk = {}
Talk.__index = Talk

--- relists: new tools are announced, if the command says that it can take them.
local function new_talk(relists)
  return setmetatable({ relists = relists, out = {}, requests = 0, cost = 0, known = 0, calls = {},
    n_calls = 0, turn = false, listening = false, sound = false }, Talk)
end

--- Returns the lines that are to be written to the command, and forgets them.
function Talk:take_out()
  local lines = table.concat(self.out)
  self.out = {}
  return lines
end

function Talk:put(line)
  self.out[#self.out + 1] = line
end

--- Returns the beginning of a control request; the caller adds its end.
function Talk:request_line(subtype)
  self.requests = self.requests + 1
  return ('{"type":"control_request","request_id":"host_%d","request":{"subtype":"%s"'):format(
    self.requests, subtype)
end

function Talk:put_user(blocks)
  self:put(('{"type":"user","session_id":"","parent_tool_use_id":null,"message":{"role":"user",'
    .. '"content":%s}}\n'):format(encode(blocks)))
end

--- Interrupts the command; its message is no longer needed.
function Talk:interrupt()
  self:put(self:request_line "interrupt" .. "}}\n")
  self.sound, self.listening = false, false
end

-- -- calls: the command asks for each by its id ---------------------------------------------------

function Talk:call_of(id)
  local call = self.calls[id]
  if not call then
    if self.n_calls == MOST_CALLS then
      refuse(("more than %d calls wait"):format(MOST_CALLS))
    end
    call = {}
    self.calls[id], self.n_calls = call, self.n_calls + 1
  end
  return call
end

function Talk:drop_call(id)
  if self.calls[id] then
    self.calls[id], self.n_calls = nil, self.n_calls - 1
  end
end

function Talk:forget_calls()
  self.calls, self.n_calls = {}, 0
end

--- `value` is JSON; `member` is "result" or "error".
function Talk:put_rpc(ask, rpc, member, value)
  self:put(('{"type":"control_response","response":{"subtype":"success","request_id":%s,'
    .. '"response":{"mcp_response":{"jsonrpc":"2.0","id":%s,"%s":%s}}}}\n'):format(ask, rpc or "0",
    member, value))
end

--- Writes the result of a call if it exists and the command has asked for it, but not before the
-- command has fetched a changed list of tools.
function Talk:flush(id)
  local call = self.calls[id]
  if not self.listing and call and call.ask and call.result then
    self:put_rpc(call.ask, call.rpc, "result", call.result)
    self:drop_call(id)
  end
end

function Talk:give(entry, more)
  local id = encode(entry.id)
  self:call_of(id).result = encode(text.result(entry, more))
  self.given_ids[#self.given_ids + 1] = id
  self:flush(id)
end

-- -- asking ---------------------------------------------------------------------------------------

local function digest(entries, n)
  return ah.sha256(encode(table.move(entries, 1, n, 1, {})))
end

local function tools_of(request, options)
  return encode(text.tools(options.toolless and {} or request.tools))
end

--- Returns true if the process can continue with this request: the process knows its beginning, and
-- the rest is its own answer and newer entries of users and tools.
function Talk:fits(request)
  local entries, own, options = request.entries, self.known + 1, options_of(request)
  if not self.sound or not same_options(options, self.options) or request.system ~= self.system
    or not entries[own] or entries[own].type ~= "assistant"
    or digest(entries, self.known) ~= self.said then
    return false
  end
  if not (self.relists and self.capable) and tools_of(request, options) ~= self.tools then
    return false
  end
  local results = false
  for i = own + 1, #entries do
    if entries[i].type == "assistant" then -- of another model
      return false
    end
    results = results or entries[i].type == "tool_result"
  end
  return results == self.turn
end

--- Writes the results. `more`, the blocks of users and notes, goes with the last result, as the
-- command would read a user message only after the turn.
function Talk:give_results(entries, more)
  local last
  self.given_ids = {}
  for i = self.known + 2, #entries do
    if entries[i].type == "tool_result" then
      if last then
        self:give(last, {})
      end
      last = entries[i]
    end
  end
  if last then
    self:give(last, more)
  end
end

function Talk:go_on(request, options)
  local more, tools = text.news(request.entries, self.known + 2), tools_of(request, options)
  if tools ~= self.tools then
    self:put(self:request_line "mcp_message" .. (',"server_name":"%s","message":{"jsonrpc":"2.0",'
      .. '"method":"notifications/tools/list_changed"}}}\n'):format(SERVER))
    self.tools, self.listing = tools, self.turn
  end
  if self.turn then
    self:give_results(request.entries, more)
  else
    self:put_user(more)
  end
end

function Talk:begin(request, options)
  self.options, self.system, self.tools = options, request.system, tools_of(request, options)
  self:put(self:request_line "initialize" .. (',"sdkMcpServers":["%s"],"systemPrompt":[%s]}}\n')
    :format(SERVER, encode(request.system)))
  self:put_user(text.everything(request.entries))
end

--- Asks for the next message; the process fits the request, or is a new one.
function Talk:ask(request)
  local options = options_of(request)
  self.sound = false
  if self.known > 0 then
    self:go_on(request, options)
  else
    self:begin(request, options)
  end
  self.known = #request.entries
  self.said = digest(request.entries, self.known)
  self.calling, self.turn, self.listening, self.begun = false, true, true, false
end

-- -- requests of the command ----------------------------------------------------------------------

local HELLO = ('{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},'
  .. '"serverInfo":{"name":"%s","version":"1"}}'):format(SERVER)
local UNKNOWN = '{"code":-32601,"message":"Method not found"}'

local function is_string(json)
  return json ~= nil and json:sub(1, 1) == '"'
end

--- Returns the members of an object; an empty table for any other value.
local function inside(json)
  return json and json:sub(1, 1) == "{" and members(json, WHAT) or {}
end

local function is_ours(name)
  return is_string(name) and name:sub(2, #PREFIX + 1) == PREFIX
end

--- Called when the command asks for a call. The run knows the call by the model's id for it; a
-- command that sends no such id is too old.
function Talk:on_call(ask, rpc, params)
  local id = inside(inside(params)._meta)["claudecode/toolUseId"]
  if not is_string(id) then
    refuse "the command does not say which call it means; a newer one is needed"
  elseif not rpc or not rpc:find '^["%-%d]' then
    refuse 'the command sent a call of a tool whose "id" is missing'
  end
  id = encode(ah.json.decode(id))
  local call = self:call_of(id)
  call.ask, call.rpc = ask, rpc
  self:flush(id)
end

function Talk:on_mcp(ask, message)
  local m = inside(message)
  if m.method == '"tools/call"' then
    self:on_call(ask, m.id, m.params)
  elseif m.method == '"tools/list"' then
    self:put_rpc(ask, m.id, "result", self.tools)
    self.listing = false
    for _, id in ipairs(self.given_ids or {}) do
      self:flush(id)
    end
  elseif m.method == '"initialize"' then
    self:put_rpc(ask, m.id, "result", HELLO)
  elseif not m.id or m.method == '"ping"' then
    self:put_rpc(ask, m.id, "result", "{}")
  else
    self:put_rpc(ask, m.id, "error", UNKNOWN)
  end
end

function Talk:put_answer(ask, answer)
  self:put(('{"type":"control_response","response":{"subtype":"success","request_id":%s,'
    .. '"response":%s}}\n'):format(ask, answer))
end

--- Allows our tools, as the run decides about them when they are called; denies all others.
function Talk:on_permission(ask, asked)
  if is_ours(asked.tool_name) then
    self:put_answer(ask, ('{"behavior":"allow","updatedInput":%s}'):format(asked.input or "{}"))
  else
    self:put_answer(ask, '{"behavior":"deny","message":"This tool is not available."}')
  end
end

function Talk:on_request(line)
  local ask, asked = line.request_id, inside(line.request)
  if not is_string(ask) then
    refuse "the command sent a request without an id"
  elseif asked.subtype == '"mcp_message"' then
    self:on_mcp(ask, asked.message)
  elseif asked.subtype == '"can_use_tool"' then
    self:on_permission(ask, asked)
  elseif asked.subtype == '"hook_callback"' then
    self:put_answer(ask, "{}")
  else
    self:put(('{"type":"control_response","response":{"subtype":"error","request_id":%s,'
      .. '"error":"not supported by this host"}}\n'):format(ask))
  end
end

function Talk:on_withdrawal(line)
  for id, call in pairs(self.calls) do
    if call.ask == line.request_id then
      return self:drop_call(id)
    end
  end
end

-- -- the model's message --------------------------------------------------------------------------

--- Emits an event; in it our tools have their names without the prefix that the command adds.
local function hand_on(out, event, e)
  local name = inside(e.content_block).name
  if is_ours(name) then
    local value = ah.json.decode(event)
    if value then
      value.content_block.name = value.content_block.name:sub(#PREFIX + 1)
      event = value
    end
  end
  out:line(event)
end

--- Returns "calls" if a message with calls ends here. A message without calls ends with the turn,
-- whose result may be an error.
function Talk:on_event(line, out)
  if not line.event or line.event:sub(1, 1) ~= "{" then
    refuse "a line of the command's event must be an object"
  end
  local e = inside(line.event)
  if not is_string(e.type) then
    refuse "a line of the command's event.type must be a string"
  elseif is_string(line.parent_tool_use_id) then -- of an agent that the command runs itself
    return nil
  elseif line.parent_tool_use_id and line.parent_tool_use_id ~= "null" then
    refuse "a line of the command's parent_tool_use_id must be a string or null"
  end
  if e.type == '"message_delta"' then
    self.calling = inside(e.delta).stop_reason == '"tool_use"'
  end
  if e.type ~= '"message_stop"' then
    self.begun = true
    hand_on(out, line.event, e)
  elseif self.calling then
    self.listening, self.sound = false, true
    return "calls"
  end
end

-- -- the end of a turn ----------------------------------------------------------------------------

local function status_of(line, name)
  local n = line[name] and math.tointeger(tonumber(line[name]))
  return n and n > 0 and n < 1000 and n or 0
end

local function first_of(list)
  local value = list and list:sub(1, 1) == "[" and ah.json.decode(list)
  return value and value[1]
end

local function string_of(json)
  return is_string(json) and ah.json.decode(json) or nil
end

--- Fails the request. It is not retried, as the command has already retried.
function Talk:fail(out, line, said)
  local status = status_of(line, "api_error_status")
  said = type(said) == "string" and said or string_of(line.subtype) or ""
  local advice, window, used = ah._full(status, said)
  local hint = status == 401 and "; check api_key or ANTHROPIC_API_KEY, or log in with `claude`"
  self.sound, self.listening = false, false
  out:fail { message = NAME .. ": " .. ah._excerpt(said, MOST_TOLD) .. (advice or hint or ""),
    status = status, code = advice and "context_full" or nil, window = window, used = used }
  return "failed"
end

--- Emits the cost of the turn. `total` is the cost of all turns of the process, in US dollars.
function Talk:tell_cost(out, total)
  local dollars = total and tonumber(total)
  if not dollars or dollars ~= dollars or dollars < 0 or dollars > 1e9 then
    return
  end
  local cost = math.floor(dollars * COST_UNIT + 0.5)
  local turn = math.max(cost - self.cost, 0)
  self.cost = cost
  self.begun = true
  out:line(('{"type":"message_delta","delta":{},"usage":{"cost":%d.%09d}}'):format(
    turn // COST_UNIT, turn % COST_UNIT))
end

function Talk:on_result(line, out)
  if line.is_error ~= "true" and line.is_error ~= "false" then
    refuse "a line of the command's is_error must be a boolean"
  elseif line.result and line.result ~= "null" and not is_string(line.result) then
    refuse "a line of the command's result must be a string or null"
  end
  self.turn, self.listing = false, false
  self:forget_calls()
  if line.is_error == "true" then
    return self:fail(out, line, string_of(line.result) or first_of(line.errors))
  end
  local denied = first_of(line.permission_denials)
  if type(denied) == "table" and type(denied.tool_name) == "string" then
    out:warn(("%s: the command refused to run %s"):format(NAME,
      ah._excerpt(encode(denied.tool_name), 80)))
  end
  self:tell_cost(out, line.total_cost_usd)
  self.listening, self.sound = false, true
  return "answer"
end

function Talk:on_init(line)
  local list = line.capabilities and ah.json.decode(line.capabilities)
  for _, name in ipairs(type(list) == "table" and list or {}) do
    self.capable = self.capable or name == "sdk_mcp_tools_list_changed"
  end
end

local function on_retry(line, out)
  local function short(json)
    return (json or ""):sub(1, 9)
  end
  out:warn(("%s: HTTP %d; the command tries again in %s ms (%s of %s)"):format(NAME,
    status_of(line, "error_status"), short(line.retry_delay_ms), short(line.attempt),
    short(line.max_retries)))
end

function Talk:on_answer(line, out)
  local response = inside(line.response)
  if response.subtype == '"error"' then
    return self:fail(out, response, string_of(response.error))
  end
end

--- Returns "calls" or "answer" if the message is complete, "failed" if it failed, else nil.
function Talk:take(line, out)
  if line.type == '"control_request"' then
    self:on_request(line)
  elseif line.type == '"control_response"' then
    return self:on_answer(line, out)
  elseif line.type == '"control_cancel_request"' then
    self:on_withdrawal(line)
  elseif line.type == '"stream_event"' then
    return self:on_event(line, out)
  elseif line.type == '"result"' then
    return self:on_result(line, out)
  elseif line.subtype == '"init"' then
    self:on_init(line)
  elseif line.subtype == '"api_retry"' then
    on_retry(line, out)
  end
end

--- Decodes a line. Halves of characters are allowed only in events, whose reader joins or refuses
-- them.
local function check_line(line)
  local m, halves = members(line, WHAT)
  if not m then
    refuse(halves:sub(#NAME + 3))
  elseif halves and m.type ~= '"stream_event"' then
    refuse "a line of the command is not JSON: half a character (a lone surrogate) is in it"
  end
  return m
end

--- Reads a line. Returns "calls" or "answer" if the message is complete, "failed" if it failed, and
-- nil if more lines follow.
function Talk:line(line, out)
  return line:find "%S" and self:take(check_line(line), out) or nil
end

return { new = new_talk, options_of = options_of, refuse = refuse }
