-- The protocol of the claude command with random lines: each line is accepted or refused by an
-- error of a provider, all lines that are written back are JSON, and no key is shown.
-- CLAUDE_LINES=1000000 sets the number of lines.
local ah = require "agenthost"

local talks = ah._module "agenthost.providers.claude_talk"
local LINES = tonumber(os.getenv "CLAUDE_LINES") or 20000
local KEY = "sk-canary-0123456789abcdef"

--- Lines of all kinds, which the mutations change.
local SEEDS = {
  '{"type":"system","subtype":"init","capabilities":["sdk_mcp_tools_list_changed"]}',
  '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":5,'
    .. '"error_status":529}',
  '{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","usage":{}}},'
    .. '"parent_tool_use_id":null}',
  '{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{'
    .. '"type":"tool_use","id":"t1","name":"mcp__host__add","input":{}}}}',
  '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{'
    .. '"type":"text_delta","text":"half \\ud83d"}}}',
  '{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"}}}',
  '{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":"a"}',
  '{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":0.25,'
    .. '"permission_denials":[{"tool_name":"Bash ' .. KEY .. '"}]}',
  '{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"API '
    .. 'Error: 400 ' .. KEY .. ' prompt is too long: 9 tokens > 5 maximum"}',
  '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["' .. KEY
    .. '",{}]}',
  '{"type":"control_request","request_id":"q1","request":{"subtype":"mcp_message","message":{'
    .. '"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{},'
    .. '"_meta":{"claudecode/toolUseId":"t1"}}}}}',
  '{"type":"control_request","request_id":"q2","request":{"subtype":"mcp_message","message":{'
    .. '"jsonrpc":"2.0","id":"8","method":"tools/list"}}}',
  '{"type":"control_request","request_id":"q3","request":{"subtype":"can_use_tool",'
    .. '"tool_name":"mcp__host__add","input":{"a":[1,2]}}}',
  '{"type":"control_request","request_id":"q4","request":{"subtype":"hook_callback"}}',
  '{"type":"control_response","response":{"subtype":"error","request_id":"host_1","error":"'
    .. KEY .. '"}}',
  '{"type":"control_cancel_request","request_id":"q1"}',
}
local PIECES = { "{}", "[]", "null", "true", "7", "-1.5e9", '"x"', '"mcp__host__"', '""', "{", "}",
  "[", ",", ":", '"', "\\", "\\u0000", "\\ud800", "\xff", "\n", '"type":"result"', '"id":{}',
  '"request_id":7', "1e999", ("["):rep(600) }

local function choose(list)
  return list[math.random(#list)]
end

--- Replaces a value of JSON text in the line, or inserts, removes and changes bytes.
local function mutate(line)
  for _ = 1, math.random(0, 3) do
    local at, how = math.random(#line + 1), math.random(5)
    if how == 1 then
      line = line:sub(1, at - 1) .. choose(PIECES) .. line:sub(at)
    elseif how == 2 then
      line = line:sub(1, at - 1) .. line:sub(at + math.random(8))
    elseif how == 3 then
      line = line:gsub('":("?[%w_/]+"?)', function()
        return math.random(4) == 1 and '":' .. choose(PIECES) or nil
      end)
    elseif how == 4 then
      local other = choose(SEEDS)
      line = line:sub(1, at) .. other:sub(math.random(#other))
    else
      line = line:sub(1, at)
    end
  end
  return line
end

local REQUEST = { system = "Be brief.", options = {}, entries = { { type = "user",
  content = { { type = "text", text = "Hello" } } } }, tools = { { name = "add",
  description = "Adds.", parameters = { type = "object" } } } }

--- Returns the request that continues the conversation: with the model's message, and a result.
local function answered()
  local entries = table.move(REQUEST.entries, 1, 1, 1, {})
  entries[2] = { type = "assistant", content = {}, tool_calls = { { id = "t1", name = "add",
    arguments = "{}" } } }
  entries[3] = { type = "tool_result", id = "t1", name = "add", content = "3", success = true }
  return { system = REQUEST.system, options = {}, tools = REQUEST.tools, entries = entries }
end

--- Asserts that a whole key in the line is not shown; a part of a key is not a key.
local function check_told(text, line)
  local left, keys = line:gsub("sk%-canary%-0123456789abcdef", "")
  if keys > 0 and not left:find("canary", 1, true) then
    assert.falsy(text:find("canary", 1, true), text)
  end
  assert.falsy(text:find "[%c\127]", text)
end

local function new_out(said)
  return {
    line = function(_, event)
      assert.is_truthy(type(event) == "table" or not event:find "\n")
    end,
    warn = function(_, text) check_told(text, said) end,
    fail = function(_, f) check_told(f.message, said) end,
  }
end

local function check_out(talk)
  local lines = talk:take_out()
  assert.is_true(lines == "" or lines:sub(-1) == "\n")
  for line in lines:gmatch "[^\n]+" do
    assert(ah._members(line, "a line that is written"))
  end
end

describe("the talk with the claude command", function()
  it("takes or refuses whatever is said, and tells no key", function()
    -- The host knows the key from this model.
    assert(ah.capabilities("openai/gpt-4o", { api_key = KEY }))
    local seed = tonumber(os.getenv "SEED") or os.time()
    math.randomseed(seed)
    local refused, ended, talk = 0, 0, nil
    for _ = 1, LINES do
      if not talk then
        talk = talks.new(math.random(2) == 1)
        talk:ask(REQUEST)
      end
      local line = mutate(choose(SEEDS)):gsub("\n", " ")
      local ok, what = pcall(talk.line, talk, line, new_out(line))
      if not ok then
        refused = refused + 1
        assert.equal("provider", type(what) == "table" and what.code or tostring(what),
          ("seed %d: %s"):format(seed, line))
        check_told(what.message, line)
      end
      check_out(talk)
      if not ok or what then
        ended = ended + 1
        local on = ok and what == "calls" and talk:fits(answered())
        if on then
          talk:ask(answered())
          check_out(talk)
        end
        talk = on and talk or nil
      end
    end
    assert.is_true(refused > LINES / 10)
    assert.is_true(ended > refused)
  end)
end)
