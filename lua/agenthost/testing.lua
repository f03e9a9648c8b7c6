--- agenthost.testing: for the tests of scripts (docs/reference/testing.md). Has models that play
-- the turns of a test and fail when the tools have changed, runs that must succeed, and comparisons
-- of the calls of a conversation with expected ones. Depends on no test framework: each failure is
-- raised.
--
--   local testing = require "agenthost.testing"
--   local reply = testing.run { model = testing.model { ... }, tools = { ... }, "text" }
--   testing.expect_calls(reply, { { name = "search", arguments = { q = "tea" } } })
local ah = ...

local M = {}

local function copy(t)
  local c = {}
  for key, value in pairs(t) do
    c[key] = value
  end
  return c
end

--- Returns a scripted model that is strict: a call that does not fit the tools is an error of the
-- run, unless it has `wrong = true`. Takes the argument of ah.scripted.
---@param turns table|function
---@return table model
function M.model(turns)
  local spec = type(turns) == "function" and { answer = turns } or copy(turns)
  if spec.strict == nil then
    spec.strict = true
  end
  return ah.scripted(spec)
end

--- Calls ah.run, which must succeed and use all turns of its model; raises otherwise. Returns the
-- reply. Records of the log are discarded unless `log` takes them.
---@param fields table
---@return table reply
function M.run(fields)
  fields = copy(fields)
  fields.log = fields.log or function() end
  local reply, err = ah.run(fields)
  if not reply then
    error(err, 0)
  end
  local model = fields.model
  local scripted, done = pcall(function() return type(model) == "userdata" and model.done end)
  if scripted and done then
    done()
  end
  return reply
end

local read_replay = ah._reader {
  what = "testing.replay", type = "ah.ReplayOptions", rows = {
    { name = "tools", kinds = "any", is = "agent or list of tools", type = "ah.Agent|ah.Tool[]",
      doc = "their [handlers](stores.md#replay-of-handlers) run again, too" },
    { name = "session", kinds = "any", is = "session", type = "ah.Session",
      doc = "the session of the agent, if handlers use it by another way than `ctx.session`" },
  },
}

-- Runs the handlers of the tools again, and raises if a result is another one.
local function replay_handlers(store, id, options)
  local got, err = ah._handlers(store, id, options.tools, options.session)
  if not got then
    error(err, 0)
  end
  local d = got.difference
  if d then
    error(("turn %d of '%s': call %s of '%s' %s"):format(d.turn, id, d.call, d.tool,
      d.message or ("gave %s, and recorded is %s"):format(d.now or "nothing", d.recorded)), 0)
  end
  return got
end

--- Makes the requests of a stored conversation again (store:replay), and raises unless each of them
-- is as it was recorded. Returns the outcome; with `tools` also that of their handlers, `handlers`.
---@param store table made by ah.store
---@param id string
---@param options? table { tools, session }
---@return table outcome
function M.replay(store, id, options)
  options = options and read_replay(options) or {}
  local got, err = store:replay(id)
  if not got then
    error(err, 0)
  end
  local d = got.difference
  if d then
    error(("request %d of '%s' differs in its %s%s%s"):format(d.request, id, d["in"],
      d.entry and ", entry " .. d.entry or "", d.pointer and ", at " .. d.pointer or ""), 0)
  elseif got.equal < got.requests then
    error(("%d of %d requests of '%s' cannot be compared: %d are of another revision, %d are "
      .. "not_recorded"):format(got.requests - got.equal, got.requests, id, got.other_revision,
        got.not_recorded), 0)
  end
  got.handlers = options.tools and replay_handlers(store, id, options)
  return got
end

local function messages_of(what)
  return type(what) == "table" and what or what.messages
end

--- Returns the calls of a reply (or of a list of messages), { name, arguments, result, success }
-- each, in the order of the model. Arguments are decoded, or text if they are not JSON.
---@param reply any
---@return table[] calls
function M.calls(reply)
  return ah._calls.of_messages(messages_of(reply))
end

--- Raises unless exactly these calls were made, in this order. A field that an expected call leaves
-- out (arguments, result, success) may be anything.
---@param reply any
---@param expected table[]
---@return true
function M.expect_calls(reply, expected)
  ah._check_list(expected, "testing.expect_calls: the calls")
  local wrong = ah._calls.differ(expected, M.calls(reply))
  if wrong then
    error(wrong, 2)
  end
  return true
end

--- Returns turns that repeat the model's answers in a reply's conversation and expect the same
-- result of each call: a conversation with a real model becomes a test.
---@param reply any
---@return table[] turns
function M.turns(reply)
  local turns, expected = {}, nil
  local messages = messages_of(reply)
  for i, message in ipairs(messages) do
    if message.role == "assistant" then
      local turn = { text = message.content, expect = expected and { calls = expected } }
      expected = nil
      if message.tool_calls then
        expected = ah._calls.of_messages(table.move(messages, i, i + #message.tool_calls, 1, {}))
        turn.calls = {}
      end
      for k, call in ipairs(message.tool_calls or {}) do
        turn.calls[k] = { name = call.name, arguments = call.arguments }
      end
      turns[#turns + 1] = turn
    end
  end
  return turns
end

return M
