-- Part of `make check-clients`: the real `claude` command, driven by our adapter, against
-- `agenthost mock` on loopback. The Makefile sets AGENTHOST_CLAUDE, ANTHROPIC_BASE_URL and an empty
-- HOME. The server plays claude_turns.lua, which checks the requests of the command.
local ah = require "agenthost"

local LONG = ("t"):rep(59) .. "_long" -- 64 characters
local HUGE = ("0123456789abcdef"):rep(4096) .. "\u{1F600} end" -- over 64 KiB
local PNG = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\8\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx"
  .. "\x9cc`\0\1\0\0\5\0\1\r\n-\xb4\0\0\0\0IEND\xaeB`\x82"

local image = assert(ah.image { data = PNG })
local heard = {}

local function tool(name, handler)
  return ah.tool { name = name, description = "A tool.",
    full_description = "The tool " .. name .. ": äöü \u{65E5}\u{672C}.",
    params = { text = "string?" }, handler = handler }
end

local function tools()
  local list = {
    tool(LONG, function(args)
      heard[#heard + 1] = args.text
      return "größe \u{1F600}"
    end),
    tool("huge", function() return HUGE end),
    tool("draw", function() return { "drawn", image } end),
  }
  for i = #list + 1, 500 do
    list[i] = tool(("t%03d"):format(i), function() return "no" end)
  end
  return list
end

local agent <close> = assert(ah.agent { model = "claude_agent_sdk/claude-opus-4-8", retries = 0,
  timeout = 60, system = "Be brief.", tools = tools(), max_tools = 500,
  options = { reasoning = "low", max_tokens = 1234 } })

local reply = assert(agent:run { "Look at this: ", image })
assert(reply.text == "all three", reply.text)
assert(heard[1] == "für \u{1F600}", heard[1])
assert(reply.tool_calls == 3 and reply.usage.cost and reply.usage.cost > 0)
reply = assert(agent:run "And now?")
assert(reply.text == "once more", reply.text)
local _, err = ah.run { model = "claude_agent_sdk/claude-opus-4-8", retries = 0, timeout = 60, "x" }
assert(err and err.code == "provider" and err.message:find("no more", 1, true), tostring(err))
print "check-clients: the claude command: calls, results, images, options, cost, errors: ok"
