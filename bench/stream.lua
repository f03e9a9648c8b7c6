-- One streamed answer, TIMES times, as for `raw stream`: with a callback for each piece or without.
-- The first answer does not count.
--
--   agenthost bench/stream.lua BASE_URL TIMES [callback]
local ah = require "agenthost"

local url, times = arg[1], math.tointeger(tonumber(arg[2]))
local pieces, bytes = 0, 0

local on = arg[3] == "callback" and { content = function(e)
  pieces = pieces + 1
  bytes = bytes + #e.text
end } or nil

local function ask()
  local reply = assert(ah.run { model = "openai/bench", base_url = url, api_key = "bench",
    stream = true, on = on, "go" })
  return #reply.text
end

local length = ask()
assert(not on or (bytes == length and pieces > 1), "the callback saw another text")

local wall, cpu = ah.now(), os.clock()
for _ = 1, times do
  ask()
end
print(('{"wall_ms":%.3f,"cpu_ms":%.3f}'):format((ah.now() - wall) * 1e3, (os.clock() - cpu) * 1e3))
