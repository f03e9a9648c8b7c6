-- Shared code of the specs of the documents: runs with a scripted model whose requests, events and
-- log are kept, and short ways to write turns and to read results.
local ah = require "agenthost"

local M = {}

--- A handler that does nothing.
function M.nothing() end

--- Returns one call of a scripted turn.
function M.call(name, arguments, id)
  return { name = name, arguments = arguments, id = id }
end

--- Returns a turn that makes these calls.
function M.turn(...)
  return { calls = { ... } }
end

--- Returns a turn that makes one call.
function M.calls(name, arguments)
  return M.turn(M.call(name, arguments))
end

--- Returns a turn that reads these sections, one call each.
function M.read(...)
  local calls = {}
  for i, key in ipairs { ... } do
    calls[i] = M.call("read_section", { section_key = key })
  end
  return { calls = calls }
end

--- Returns a tool whose result is its name; `fields` override the defaults.
function M.tool(name, fields)
  local t = {
    name = name,
    description = "The tool " .. name .. ".",
    handler = function()
      return name
    end,
  }
  for key, value in pairs(fields or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

--- Returns the names of the tools that a request offers, those of its entries included.
function M.offered(request)
  local list = {}
  for _, t in ipairs(request.tools) do
    list[#list + 1] = t.name
  end
  for _, e in ipairs(request.entries) do
    for _, t in ipairs(e.type == "tools_added" and e.tools or {}) do
      list[#list + 1] = t.name
    end
  end
  return list
end

--- Returns the declaration in a request of the tool of that name, or nil.
function M.declared(request, name)
  for _, t in ipairs(request.tools) do
    if t.name == name then
      return t
    end
  end
end

local methods = {}
methods.__index = methods

--- Returns the events of that type.
function methods:of(kind)
  local list = {}
  for _, e in ipairs(self.events) do
    list[#list + 1] = e.type == kind and e or nil
  end
  return list
end

--- Returns the results of calls as the model got them: all, or the n-th.
function methods:results(n)
  local list = {}
  local reply = self.reply or self.err.reply
  for _, m in ipairs(reply.messages) do
    list[#list + 1] = m.role == "tool" and m.content or nil
  end
  return n and list[n] or list
end

--- Returns, for each call, whether it succeeded.
function methods:successes()
  local list = {}
  local reply = self.reply or self.err.reply
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      list[#list + 1] = m.success ~= false
    end
  end
  return list
end

--- Returns the names of the tools in the n-th request, with blanks between them.
function methods:offered(n)
  return table.concat(M.offered(self.requests[n]), " ")
end

--- Returns all lines of the log, as one text.
function methods:log()
  return table.concat(self.lines, "\n")
end

--- Returns a scripted model of these turns that keeps its requests; `mode` is its tool_change_mode.
function M.model(turns, mode)
  local at = 0
  return ah.scripted {
    tool_change_mode = mode,
    answer = function(request)
      at = at + 1
      local turn = turns[at]
      if turn == nil then
        error("no turn for request " .. at, 0)
      end
      return type(turn) == "function" and turn(request) or turn
    end,
  }
end

local function observed(fields)
  local seen = setmetatable({ events = {}, lines = {} }, methods)
  fields.on = function(e)
    seen.events[#seen.events + 1] = e
  end
  fields.log = function(level, line)
    seen.lines[#seen.lines + 1] = level .. " " .. line
  end
  return seen
end

--- Runs the turns: returns { reply, err, requests, events, lines }. `fields` are those of ah.run,
-- and `mode`, the model's tool_change_mode; a `model` is a scripted one. The user's text is "Go."
-- unless the array part has one.
function M.run(turns, fields)
  fields = fields or {}
  local model = fields.model or M.model(turns, fields.mode)
  local seen = observed(fields)
  fields.mode, fields.model = nil, model
  if type(fields[#fields]) ~= "string" then
    fields[#fields + 1] = "Go."
  end
  seen.reply, seen.err = ah.run(fields)
  seen.requests = model.requests()
  return seen
end

--- Returns an agent whose runs share `turns` (a list to be filled), and the records of its runs.
function M.agent(turns, fields)
  fields = fields or {}
  local seen = observed(fields)
  seen.requests = {}
  fields.model = ah.scripted {
    tool_change_mode = fields.mode,
    answer = function(request)
      seen.requests[#seen.requests + 1] = request
      local turn = table.remove(turns, 1)
      return type(turn) == "function" and turn(request) or turn
    end,
  }
  fields.mode = nil
  return ah.agent(fields), seen, fields
end

--- Returns the error that f raises.
function M.raised(f, ...)
  local ok, err = pcall(f, ...)
  assert(not ok, "nothing was raised")
  return err
end

--- Returns the growth of the counters of ah.metrics while f ran, by name without the prefix.
function M.grown(f)
  local before = ah.metrics()
  f()
  local now, by = ah.metrics(), {}
  for name, value in pairs(now) do
    by[name:gsub("^agenthost%.", "")] = value - before[name]
  end
  return by
end

return M
