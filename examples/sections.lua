-- A library's desk: rarely needed texts are summaries until the model reads them, and the answer is
-- a value of a schema.
--
--   agenthost examples/sections.lua ["How long may I keep a film?"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/sections.lua
--
-- The answer goes to stdout, the sections that are read to stderr.
local ah = require "agenthost"

local desk = ah.prompt {
  ns = "examples", key = "desk",
  output = { type = "object", required = { "answer", "section" }, additionalProperties = false,
    properties = { answer = { type = "string" }, section = { type = "string",
      description = "the key of the section that says so" } } },
  ah.section {
    title = "Desk", params = { name = "string", members_only = "boolean = false" },
    template = [[
      You are at the desk of the ${name}. Answer from the sections below alone,
      and read a section before you answer from it.
    ]],
    ah.section {
      title = "Loans", visibility = "summary", summary = "How long things may be kept.",
      template = [[
        - Books may be kept for 28 days.
        - Films may be kept for 7 days.
        - Maps stay in the house.
      ]],
    },
    ah.section {
      title = "Members", enabled = function(params) return params.members_only end,
      template = "Only members may borrow.",
    },
  },
}

-- For the scripted model, used if none is named: it opens the section that the prompt names, and
-- quotes the line that has most of the question's words.
local function words_in(line, question)
  local n = 0
  for word in question:lower():gmatch("%a%a%a+") do
    n = n + (line:lower():find(word, 1, true) and #word or 0)
  end
  return n
end

local stand_in = ah.scripted(function(request)
  local key = request.system:match('with key "([^"]+)"')
  local last = request.entries[#request.entries]
  if last.type == "user" then
    return { calls = { { name = "read_section", arguments = { section_key = key } } } }
  end
  local question, best, most = request.entries[1].content[1].text, "That is not said.", 0
  for line in last.content:gmatch("%- ([^\n]+)") do
    local n = words_in(line, question)
    if n > most then
      best, most = line, n
    end
  end
  return ah.json.encode { answer = best, section = key }
end)

local reply = assert(ah.run {
  model = os.getenv("AGENTHOST_MODEL") or stand_in, -- --model NAME overrides both
  prompt = desk, params = { name = "City Library" },
  on = { tool_invoked = function(e) io.stderr:write(e.name, " ", e.arguments, "\n") end },
  ... or "How long may I keep a film?",
})
print(("%s (%s)"):format(reply.value.answer, reply.value.section))
