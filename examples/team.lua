-- A planner that hands its work to three agents: two search at once, the third writes.
--
--   agenthost examples/team.lua ["The moons of Jupiter"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/team.lua
--
-- The runs go to stderr as they begin and end, indented by depth; the answer goes to stdout.
-- Without a model, scripted ones show what models would do.
local ah = require "agenthost"

local topic = ... or "The moons of Jupiter"

-- Scripted models, used if none is named.
local function call(name, request)
  return { name = name, arguments = { request = request } }
end

local function last_text(request)
  local content = request.entries[#request.entries].content
  return type(content) == "string" and content or content[1].text
end

local function rehearsed(answer)
  return not os.getenv "AGENTHOST_MODEL" and ah.scripted(answer) or nil
end

-- All runs, by number: their depth, and the name of the agent.
local depth, name = {}, {}
local on = {
  start = function(e)
    depth[e.run], name[e.run] = (depth[e.parent] or -1) + 1, e.agent
    io.stderr:write(("  "):rep(depth[e.run]), e.agent, " begins\n")
  end,
  done = function(e)
    io.stderr:write(("  "):rep(depth[e.run]), name[e.run], " ends: ", e.code, "\n")
  end,
}

local historian = ah.agent { name = "historian", on = on,
  system = "You know how things were found. Answer in one sentence.",
  model = rehearsed(function() return "Galileo saw four of them in 1610." end) }
local astronomer = ah.agent { name = "astronomer", on = on,
  system = "You know what things in the sky are made of. Answer in one sentence.",
  model = rehearsed(function() return "Europa has an ocean below its ice." end) }
local writer = ah.agent { name = "writer", on = on,
  system = "You make one paragraph of the facts that you are given.",
  model = rehearsed(function(request) return "In short: " .. last_text(request) end) }

local planner = ah.agent { name = "planner", on = on, budget = { requests = 20 }, max_nested = 2,
  system = "You ask the historian and the astronomer, give their answers to the writer, and answer "
    .. "with what it writes.",
  tools = {
    historian:as_tool { description = "Says how something was found.", parallel = true },
    astronomer:as_tool { description = "Says what something is made of.", parallel = true },
    writer:as_tool { description = "Makes a paragraph of facts." },
  },
  model = rehearsed(function(request)
    local n, facts = #request.entries, {}
    if n == 1 then
      return { calls = { call("historian", last_text(request)),
        call("astronomer", last_text(request)) } }
    elseif n == 4 then
      for i = 3, 4 do
        facts[#facts + 1] = request.entries[i].content
      end
      return { calls = { call("writer", table.concat(facts, " ")) } }
    end
    return last_text(request)
  end) }

print(assert(planner:run(topic)))
