-- Progressive disclosure (docs/reference/prompts.md): the model sees a summary and one tool, reads
-- the section, and uses its tools from the next answer on. Runs the same conversation on an adapter
-- that takes tools in mid-conversation and on one that has to restart, with the same answer.
--
--   agenthost examples/research.lua ["Which moons did Galilei find?"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/research.lua
--
-- The answer goes to stdout, the steps to stderr.
local ah = require "agenthost"

local PAPERS = {
  { key = "galilei1610", title = "Galilei, Sidereus Nuncius: Io, Europa, Ganymede, Callisto" },
  { key = "huygens1656", title = "Huygens, De Saturni luna observatio nova: Titan" },
}

local search = ah.tool { name = "search", description = "Searches the titles of the papers.",
  params = { word = "string" },
  handler = function(args)
    for _, paper in ipairs(PAPERS) do
      if paper.title:lower():find(args.word:lower(), 1, true) then
        return paper
      end
    end
    return nil, "nothing on " .. args.word
  end }

local cite = ah.tool { name = "cite", description = "The citation of a paper.",
  params = { key = "string" },
  handler = function(args)
    for _, paper in ipairs(PAPERS) do
      if paper.key == args.key then
        return ("%s [%s]"):format(paper.title, paper.key)
      end
    end
    return nil, "no paper " .. args.key
  end }

local prompt = ah.prompt { ns = "example", key = "research",
  ah.section { title = "Task", template = "Answer from the papers, and cite them." },
  ah.section { title = "Context", template = "Titles of papers on moons, 1610 to 1700.",
    summary = "Research context available.", visibility = "summary", tools = { search, cite } } }

-- A scripted model, used if none is named: reads the section, searches for the longest word of the
-- question, cites.
local function stand_in(mode)
  return ah.scripted { tool_change_mode = mode, answer = function(request)
    local question, last = nil, nil
    for _, entry in ipairs(request.entries) do
      question = question or entry.type == "user" and entry.content[1].text
      last = entry.type == "tool_result" and entry or last
    end
    if not last then
      return { calls = { { name = "read_section", arguments = { section_key = "context" } } } }
    elseif last.name == "read_section" then
      local longest = ""
      for word in question:gmatch("%a+") do
        longest = #word > #longest and word or longest
      end
      return { calls = { { name = "search", arguments = { word = longest } } } }
    elseif last.name == "search" and last.success then
      local key = ah.json.decode(last.content).key
      return { calls = { { name = "cite", arguments = { key = key } } } }
    end
    return last.content
  end }
end

for _, mode in ipairs { "inline", "restart" } do
  local session = ah.session()
  local model = os.getenv("AGENTHOST_MODEL") or stand_in(mode) -- --model NAME overrides both
  local reply = assert(ah.run { model = model, prompt = prompt, session = session,
    on = {
      tool_invoked = function(e) io.stderr:write("  ", e.name, " ", e.arguments, "\n") end,
      tools_injected = function(e)
        io.stderr:write("  new tools: ", table.concat(e.tool_names, ", "), "\n")
      end,
      cache_break = function(e) io.stderr:write("  cache break: ", e.reason, "\n") end,
    },
    ... or "Which moons did Galilei find?" })
  local open = session.visibility_overrides:latest()
  print(("%s: %s"):format(mode, reply))
  print(("  %d answers, %s open, tools: %s"):format(reply.iterations,
    open and open.path or "nothing", table.concat(reply.injected_tools, ", ")))
end
