-- Best of four: a conversation is forked, each fork answers in its own way, and a judge picks one.
-- All requests share one budget that is never exceeded (docs/reference/budgets.md#reserve).
--
--   agenthost examples/best_of.lua ["Why is the sky blue?"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/best_of.lua
--
-- The best answer goes to stdout, the steps to stderr. Without a model scripted ones stand in.
local ah = require "agenthost"

local question = ... or "Why is the sky blue?"
local WAYS = { "for a child", "with a comparison", "for a physicist", "in ten words" }
local OPTIONS = { max_tokens = 2000 } -- the most that a request reserves for its answer

local budget = ah.budget { total_tokens = 40000, requests = 8, reserve = true }

-- Scripted models, used if none is named.
local ANSWERS = {
  ["for a child"] = "Sunlight has all colours, and the air throws the blue ones around the most.",
  ["with a comparison"] = "Air sorts light as a sieve sorts sand: the finest, blue, is caught.",
  ["for a physicist"] = "Rayleigh scattering goes with the inverse fourth power of the wavelength.",
  ["in ten words"] = "Air scatters blue light more than red, so blue arrives everywhere.",
}
local writer = ah.scripted(function(request)
  local said = request.entries[#request.entries].content[1].text
  for _, way in ipairs(WAYS) do
    if said:find(way, 1, true) then
      return { text = ANSWERS[way], usage = { input = 60, output = 20 }, delay = 0.01 }
    end
  end
  return { text = "I will answer it.", usage = { input = 30, output = 6 } }
end)
local judging = ah.scripted { { text = '{"best":2,"why":"It is exact, and it can be pictured."}',
  usage = { input = 150, output = 20 } } }

local named = os.getenv "AGENTHOST_MODEL" -- --model NAME
local first = ah.agent { model = named or writer, budget = budget, options = OPTIONS,
  system = "You answer in one sentence." }
assert(first:run("I will ask you this: " .. question .. " Say only that you will answer it."))

-- An answer that fails does not end the others: one is enough for the judge.
local results = ah.map(WAYS, function(way)
  local reply, err = first:fork():run("Answer now, " .. way .. ".")
  return { way = way, text = reply and reply.text, failure = err }
end, { concurrency = #WAYS })
local answers = {}
for _, answer in ipairs(results) do
  if answer.text then
    answers[#answers + 1] = answer
    io.stderr:write(("%d. %s: %s\n"):format(#answers, answer.way, answer.text))
  else
    io.stderr:write(("   %s: %s\n"):format(answer.way, answer.failure))
  end
end
assert(#answers > 0, "there is no answer to judge")

local list = { question }
for i, answer in ipairs(answers) do
  list[#list + 1] = ("%d. %s"):format(i, answer.text)
end
local verdict = assert(ah.run { model = named or judging, budget = budget, options = OPTIONS,
  system = "You judge answers. Pick the one that is true and easiest to remember.",
  output = ah.schema { type = "object", required = { "best", "why" },
    properties = { best = { type = "integer", minimum = 1, maximum = #answers },
      why = { type = "string" } } },
  table.concat(list, "\n") })

local used = budget:used()
io.stderr:write(("The judge: %s (%d requests, %d tokens)\n"):format(verdict.value.why,
  used.requests, used.total_tokens))
print(answers[verdict.value.best].text)
