--- A model for spec/screens whose answers come in parts, each when the spec says so.
--
--   local gated = dofile "gated.lua"
--   gated { { "first part ", "second part" }, "an answer at once", { calls = { ... } } }
--
-- The list may be a function(request) that returns the answer. Of a list, the n-th answer is to the
-- request whose conversation has n - 1 of them. A part after the first one waits for the file
-- gate.N of the folder, N counted over all parts of the process that wait (support/tmux.lua, `go`).
local ah = require "agenthost"

local gates = 0

local function wait()
  gates = gates + 1
  local file
  repeat
    ah.sleep(0.02)
    file = io.open(("gate.%d"):format(gates))
  until file
  file:close()
end

local function answer(turn, out)
  for _, one in ipairs(turn.calls or {}) do
    out:call(one)
  end
  for i, part in ipairs(turn) do
    if i > 1 then
      wait()
    end
    out:text(part)
  end
end

return function(turns)
  return ah.adapter { name = "spec/gated", answer = function(request, out)
    local n = 1
    for _, entry in ipairs(request.entries) do
      n = n + (entry.type == "assistant" and 1 or 0)
    end
    local turn = type(turns) == "function" and turns(request)
      or turns[n] or "There is no answer left."
    answer(type(turn) == "table" and turn or { turn }, out)
  end }
end
