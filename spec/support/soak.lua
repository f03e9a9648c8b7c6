-- Runs turns with tools in one process, to see if the process grows. Run by the command:
--
--   agenthost spec/support/soak.lua BASE_URL TURNS WARM
--
-- The model at BASE_URL makes 10 calls in a conversation. Handlers in turn return, wait, refuse,
-- raise and get wrong arguments; events and records have observers. After WARM turns and at the end
-- it measures the memory of the process and its open descriptors, and prints both as one line of
-- JSON. Needs /proc.
local ah = require "agenthost"
local descriptors = dofile "spec/support/descriptors.lua"

local url, wanted, warm = arg[1], tonumber(arg[2]), tonumber(arg[3])
local turns, seen = 0, 0

local function kib()
  collectgarbage()
  collectgarbage()
  local f <close> = assert(io.open "/proc/self/status")
  return tonumber(f:read("a"):match("VmRSS:%s*(%d+)"))
end

local function look()
  return { kib = kib(), descriptors = descriptors() }
end

local ways = {
  function(args) return args.a + args.b end,
  function(args) return { sum = args.a + args.b, text = ("x"):rep(args.a * 10) } end,
  function() ah.sleep(0) end,
  function() return nil, "not today" end,
  function() error "broken" end,
  function(args, ctx)
    ctx:note("asked for " .. args.a)
    return ah.ok(args, "as it is")
  end,
}

local add = ah.tool { name = "add", description = "Adds two integers.",
  params = { a = "integer", b = "integer" }, parallel = true, timeout = 60,
  handler = function(args, ctx)
    turns = turns + 1
    return ways[turns % #ways + 1](args, ctx)
  end }

local picky = ah.tool { name = "add", description = "Takes no such arguments.",
  params = { a = "string" }, handler = function() error "not called" end }

local function converse(k)
  local refused = k % 10 == 0
  local reply = assert(ah.run { model = "openai/bench", base_url = url, api_key = "soak",
    tools = { refused and picky or add }, system = k % 2 == 0 and "Be brief." or nil,
    on = function(e) seen = seen + #e.type end, log = function(_, line) seen = seen + #line end,
    "go" })
  turns = turns + (refused and reply.tool_calls or 0)
end

local before
local k = 0
repeat
  k = k + 1
  converse(k)
  if turns >= warm and not before then
    before = look()
  end
until turns >= wanted
print(ah.json.encode { before = before, after = look(), turns = turns })
