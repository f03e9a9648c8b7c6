-- Answers a question about moons from a table of facts, through two tools.
--
--   agenthost examples/quickstart.lua ["Which is the largest moon of Mars?"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/quickstart.lua
--
-- The answer goes to stdout; the name of the model and its calls to stderr.
local ah = require "agenthost"

local moons = {}
for line in io.lines((arg[0]:match("^.*/") or "") .. "moons.csv") do
  local name, planet, radius, year, discoverer = line:match("^(.-),(.-),(%d+),(%d*),(.*)$")
  if name then -- the first line holds the names of the columns
    moons[#moons + 1] = { name = name, planet = planet, radius_km = tonumber(radius),
      year = tonumber(year), discoverer = discoverer }
  end
end

local list_moons = ah.tool {
  name = "list_moons",
  description = "Lists the moons of a planet with their radius.",
  params = { planet = "string: the planet, such as Mars" },
  handler = function(args)
    local found = ah.array {}
    for _, moon in ipairs(moons) do
      if moon.planet == args.planet then
        found[#found + 1] = { name = moon.name, radius_km = moon.radius_km }
      end
    end
    return found
  end,
}

local moon_facts = ah.tool {
  name = "moon_facts",
  description = "Says all that is known of one moon.",
  params = { name = "string: the moon, such as Phobos" },
  handler = function(args)
    for _, moon in ipairs(moons) do
      if moon.name == args.name then
        return moon
      end
    end
    return nil, "No moon is called " .. args.name .. "; list_moons tells the names."
  end,
}

print(assert(ah.run {
  model = os.getenv("AGENTHOST_MODEL") or "demo/quickstart", -- --model NAME overrides both
  system = "Answer in one or two sentences, from what the tools say alone.",
  tools = { list_moons, moon_facts },
  on = {
    start = function(e) io.stderr:write("model ", e.provider, "/", e.model, "\n") end,
    tool_invoked = function(e) io.stderr:write("tool  ", e.name, " ", e.arguments, "\n") end,
  },
  ... or "Which is the largest moon of Saturn, and who discovered it?",
}))
