--- Calls of tools as tests see them: lists calls with their results, compares them with expected
-- ones, and checks that they fit the tools that a request offers. For ah.scripted and
-- agenthost.testing; a run does not depend on it.
local ah = ...

local M = {}

local function decoded(arguments)
  local value = arguments == "" and ah.object {} or ah.json.decode(arguments)
  return value == nil and arguments or value
end

local function as_text(v)
  return type(v) == "table" and ah.json.encode(next(v) == nil and ah.object(v) or v) or tostring(v)
end

--- Returns a call as one line: the name, then the arguments as JSON.
local function describe(call)
  return call and call.name .. (call.arguments and " " .. as_text(call.arguments) or "") or "none"
end

--- Returns nil if the calls equal the wanted ones, else a message with both. Calls are { name,
-- arguments, result, success }; a field that a wanted call leaves out may be anything.
function M.differ(wanted, found)
  for i = 1, math.max(#wanted, #found) do
    local w, f = wanted[i], found[i]
    local same = w and f and w.name == f.name
      and (w.arguments == nil or as_text(w.arguments) == as_text(f.arguments))
    if not same then
      return ("expected call %d to be %s, found %s"):format(i, describe(w), describe(f))
    end
    for _, key in ipairs { "result", "success" } do
      if w[key] ~= nil and w[key] ~= f[key] then
        return ("expected the %s of call %d (%s) to be '%s', found '%s'"):format(key, i,
          describe(f), tostring(w[key]), tostring(f[key]))
      end
    end
  end
end

--- Returns the calls of the request's last turn, with their results.
function M.of_request(request)
  local entries, calls = request.entries, {}
  local at = #entries
  while at > 0 and not (entries[at].type == "assistant" and entries[at].tool_calls) do
    at = at - 1
  end
  for i, call in ipairs(at > 0 and entries[at].tool_calls or {}) do
    local answer = entries[at + i] or {}
    calls[i] = { name = call.name, arguments = decoded(call.arguments), result = answer.content,
      success = answer.success }
  end
  return calls
end

-- Returns the tools that the request offers, by name, those added in mid-conversation included.
local function offered(request)
  local tools = {}
  for _, tool in ipairs(request.tools) do
    tools[tool.name] = tool
  end
  for _, e in ipairs(request.entries) do
    for _, tool in ipairs(e.type == "tools_added" and e.tools or {}) do
      tools[tool.name] = tool
    end
    for _, name in ipairs(e.type == "tools_removed" and e.names or {}) do
      tools[name] = nil
    end
  end
  return tools
end

-- Returns true if a tool is declared in brief, so that its parameters are not known.
local function is_brief(parameters)
  return next(parameters.properties or {}) == nil and parameters.additionalProperties ~= false
end

--- Returns the calls of a conversation's messages, each { name, arguments, result, success }.
function M.of_messages(messages)
  local calls, by_id = {}, {}
  for _, message in ipairs(messages) do
    for _, call in ipairs(message.tool_calls or {}) do
      by_id[call.id] = { name = call.name, arguments = decoded(call.arguments) }
      calls[#calls + 1] = by_id[call.id]
    end
    local call = by_id[message.tool_call_id]
    if call then
      call.result, call.success = message.content, message.success ~= false
    end
  end
  return calls
end

local function fits(tool, call)
  if is_brief(tool.parameters) then
    return true
  end
  local arguments = call.arguments or {}
  if type(arguments) == "string" then
    arguments = decoded(arguments)
  elseif next(arguments) == nil then
    arguments = ah.object {}
  end
  return ah.schema(tool.parameters):validate(arguments, "forbid")
end

--- Returns nil if all calls of the turn fit the tools of the request, else the reason why one does
-- not.
function M.drift(turn, request)
  local tools = turn.calls and offered(request)
  for _, call in ipairs(turn.calls or {}) do
    local tool = tools[call.name]
    if not call.wrong and not tool then
      return ("no tool '%s' is offered"):format(call.name)
    end
    local ok, why = true, nil
    if not call.wrong then
      ok, why = fits(tool, call)
    end
    if not ok then
      return ("the tool '%s' does not take %s: %s"):format(call.name,
        as_text(call.arguments or "{}"), why)
    end
  end
end

return M
