-- Replaces the `claude` command: speaks its protocol over stdin and stdout, as the recorded
-- transcripts show it, and answers from a script instead of a model.
--
--   lua5.4 fake_claude.lua SCRIPT LOG WORDS...
--
-- SCRIPT is Lua that returns a list of processes: the k-th process that is started takes the k-th
-- item (the last one repeats). Each is a list of messages, { text, calls = { { name, arguments, id
-- } } }, or with fail = { status, text }, retry = n, die = code, raw = "a line", hang = true, other
-- = "a tool of its own", cost = dollars of the turn, leave = true (exits after its answer), old =
-- true (announces no capabilities). LOG gets each line that is received, unchanged, and {"argv":..}
-- at each start.
package.path = arg[0]:match("^(.*)/support/") .. "/?.lua;" .. package.path
local server = require "support.server"

local encode = server.encode
local log = assert(io.open(arg[2], "a+"))
local started = 1
for line in log:lines() do
  started = started + (line:find('^{"argv"') and 1 or 0)
end

local function note(line)
  log:write(line, "\n")
  log:flush()
end

note(encode { argv = server.array(table.move(arg, 3, #arg, 1, {})),
  key = os.getenv "ANTHROPIC_API_KEY" or "",
  url = os.getenv "ANTHROPIC_BASE_URL" or "", secret = os.getenv "OTHER_SECRET" or "",
  home = os.getenv "HOME" or "", most = os.getenv "CLAUDE_CODE_MAX_OUTPUT_TOKENS" or "",
  claude = os.getenv "CLAUDE_CONFIG_DIR" or "" })

local processes = dofile(arg[1])
local script = processes[math.min(started, #processes)]
local last_request, messages, calls, spent = 0, 0, 0, 0

local function say(msg)
  io.stdout:write(type(msg) == "string" and msg or encode(msg), "\n")
  io.stdout:flush()
end

local inbox = {} -- lines that were read while waiting for a response

local function read_line()
  local line = io.read "l"
  if not line then
    os.exit(0)
  end
  note(line)
  return server.decode(line)
end

local list_changed = false

--- Handles a line that is not a response to one of our requests.
local function take(msg)
  if msg.type == "control_request" and msg.request.subtype == "interrupt" then
    say { type = "control_response", response = { subtype = "success",
      request_id = msg.request_id } }
    say { type = "result", subtype = "error_during_execution", is_error = true,
      errors = server.array { "interrupted" } }
  elseif msg.type == "control_request" then
    list_changed = list_changed or msg.request.subtype == "mcp_message"
    say { type = "control_response", response = { subtype = "success",
      request_id = msg.request_id } }
  elseif msg.type == "user" then
    inbox[#inbox + 1] = msg
  end
end

local ask

local function wait_for(id)
  while true do
    local msg = read_line()
    if msg.type == "control_response" and msg.response.request_id == id then
      return msg.response
    end
    take(msg)
    if list_changed and ask then
      list_changed = false
      ask { subtype = "mcp_message", server_name = "host",
        message = { jsonrpc = "2.0", id = 900 + last_request, method = "tools/list" } }
    end
  end
end

function ask(request)
  last_request = last_request + 1
  local id = ("r-%d"):format(last_request)
  say { type = "control_request", request_id = id, request = request }
  return wait_for(id)
end

local function mcp(method, params, id)
  local answer = ask { subtype = "mcp_message", server_name = "host",
    message = { jsonrpc = "2.0", id = id, method = method, params = params } }
  return answer.response and answer.response.mcp_response
end

local function event(e)
  say { type = "stream_event", event = e, parent_tool_use_id = server.null, session_id = "s" }
end

local function block(i, start, delta)
  event { type = "content_block_start", index = i, content_block = start }
  if delta then
    event { type = "content_block_delta", index = i, delta = delta }
  end
  event { type = "content_block_stop", index = i }
end

local function say_message(m)
  messages = messages + 1
  event { type = "message_start", message = { id = "msg_" .. messages, type = "message",
    role = "assistant", content = server.array {}, usage = { input_tokens = 100,
      output_tokens = 1 } } }
  if m.text then
    block(0, { type = "text", text = "" }, { type = "text_delta", text = m.text })
  end
  for i, c in ipairs(m.calls or {}) do
    calls = calls + 1
    c.id = c.id or ("toolu_%d_%d"):format(started, calls)
    block(i, { type = "tool_use", id = c.id, name = "mcp__host__" .. c.name, input = {} },
      { type = "input_json_delta", partial_json = encode(c.arguments or {}) })
  end
  event { type = "message_delta", delta = { stop_reason = m.calls and "tool_use" or "end_turn" },
    usage = { output_tokens = 7 } }
  event { type = "message_stop" }
end

--- Makes calls as the command does: one after the other, each requested by its id.
local function make_calls(m)
  for i, c in ipairs(m.calls) do
    if not c.denied then
      mcp("tools/call", { name = c.name, arguments = c.arguments or {},
        _meta = { ["claudecode/toolUseId"] = c.id, progressToken = i } }, 100 + i)
    end
  end
end

local function finish(m)
  local failed = m.fail
  spent = spent + (m.cost or 0)
  say { type = "result", subtype = "success", is_error = failed and true or false,
    api_error_status = failed and failed.status or nil, result = failed and failed.text or m.text,
    total_cost_usd = spent,
    permission_denials = server.array { m.other and { tool_name = m.other } } }
end

local function leave(m)
  if m.leave then
    os.exit(0)
  end
end

local function retry(m)
  for i = 1, m.retry or 0 do
    say { type = "system", subtype = "api_retry", attempt = i, max_retries = 10, retry_delay_ms = 1,
      error_status = 529, error = "overloaded" }
  end
end

local special = {}
function special.raw(m)
  say(m.raw)
end
function special.die(m)
  io.stderr:write("something broke\n")
  os.exit(m.die)
end
function special.hang()
  while true do
    take(read_line())
  end
end
function special.other(m)
  local answer = ask { subtype = "can_use_tool", tool_name = m.other, input = { a = 1 } }
  note(encode { permission = answer.response.behavior })
  note(encode { unknown = ask { subtype = "elicitation" }.subtype })
end

local function turn()
  say { type = "system", subtype = "init", capabilities = server.array {
    "interrupt_receipt_v1", not script.old and "sdk_mcp_tools_list_changed" or nil } }
  while true do
    local m = table.remove(script, 1) or { text = "nothing more" }
    retry(m)
    for _, kind in ipairs { "other", "die", "raw", "hang" } do
      if m[kind] then
        special[kind](m)
      end
    end
    if m.calls then
      say_message(m)
      make_calls(m)
    else
      if not m.fail then
        say_message(m)
      end
      finish(m)
      return leave(m)
    end
  end
end

local first = read_line()
assert(first.request.subtype == "initialize", "no initialize")
mcp("initialize", { protocolVersion = "2025-11-25" }, 0)
say { type = "control_response", response = { subtype = "success", request_id = first.request_id } }
mcp("notifications/initialized", nil, nil)
mcp("tools/list", nil, 1)
while true do
  if not inbox[1] then
    take(read_line())
  else
    table.remove(inbox, 1)
    turn()
  end
end
