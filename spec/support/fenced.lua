-- A host of its own for spec/lua/attacks_process_spec.lua, so that it may belong to another user,
-- run on a simulated older machine, and be killed. Runs calls of bash one after the other and
-- prints the outcomes as a table in Lua.
--   agenthost fenced.lua JOB     JOB returns { options, calls = { arguments, ... }, root, timeout }
local ah = require "agenthost"

local job = dofile((...))

local function text_of(value)
  if type(value) ~= "table" then
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
  end
  local parts = {}
  for k, v in pairs(value) do
    parts[#parts + 1] = ("[%s] = %s"):format(text_of(k), text_of(v))
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local out = { values = {}, shown = {}, warnings = {} }
local tools, err = ah.builtin { bash = job.options }
if tools then
  local turns = {}
  for i, arguments in ipairs(job.calls) do
    turns[i] = { calls = { { name = "bash", arguments = arguments } } }
  end
  turns[#turns + 1] = "done"
  local reply
  reply, err = ah.run {
    model = ah.scripted(turns), tools = tools, timeout = job.timeout, log = function() end,
    resources = job.root and { filesystem = assert(ah.filesystem { root = job.root }) },
    on = { warning = function(e) out.warnings[#out.warnings + 1] = e.message end },
    strategies = { function(outcome) out.values[#out.values + 1] = outcome.value or false end },
    "Go.",
  }
  for _, m in ipairs(reply and reply.messages or {}) do
    out.shown[#out.shown + 1] = m.role == "tool" and m.content or nil
  end
end
out.error = err and tostring(err) or nil
print("return " .. text_of(out))
