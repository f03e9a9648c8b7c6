-- A model that plans before it acts, and keeps its plan in a session.
--
--   agenthost examples/planner.lua ["Write a haiku about the sea"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/planner.lua
--
-- The plan goes to stderr as it changes, the answer to stdout. Without a model a scripted one shows
-- what a model would do.
local ah = require "agenthost"

local task = ... or "Write a haiku about the sea"
local session = ah.session()
local notes = {}

local jot = ah.tool {
  name = "jot", description = "Writes a line down.", params = { line = "string 1..200" },
  handler = function(args)
    notes[#notes + 1] = args.line
    return ("%d lines"):format(#notes)
  end,
}

local MARK = { pending = "[ ]", in_progress = "[>]", done = "[x]" }

local function show(plan)
  io.stderr:write(plan.objective, " (", plan.status, ")\n")
  for _, step in ipairs(plan.steps) do
    io.stderr:write("  ", MARK[step.status], " ", step.title, "\n")
    for _, note in ipairs(step.notes or {}) do
      io.stderr:write("      ", note, "\n")
    end
  end
end

-- A scripted model, used if none is named.
local function call(name, arguments)
  return { name = name, arguments = arguments }
end
local rehearsed = ah.scripted {
  { calls = { call("planning_setup_plan", { objective = task,
    initial_steps = { "Collect images", "Write three lines" } }) } },
  { calls = { call("planning_update_step", { step_id = 1, status = "done",
    note = "Salt, gulls, a slow tide." }),
    call("planning_update_step", { step_id = 2, status = "in_progress" }) } },
  { calls = { call("jot", { line = "Gulls above the salt" }),
    call("jot", { line = "the tide takes its time to turn" }),
    call("jot", { line = "nobody is late" }) } },
  { calls = { call("planning_update_step", { step_id = 2, status = "done" }) } },
  function() return table.concat(notes, "\n") end,
}

local reply = assert(ah.run {
  model = not os.getenv "AGENTHOST_MODEL" and rehearsed or nil,
  session = session, tools = { jot },
  ah.planning_section { session = session, strategy = "plan_act_reflect" },
  on = { tool_invoked = function(e)
    if e.success and e.name:find "^planning_" then
      show(session[ah.planning.Plan]:latest())
    end
  end },
  task,
})
print(reply)
