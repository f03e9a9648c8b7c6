--- Planning tools (seed 002, Planning Tool Suite): a list of steps that the model keeps in a
-- session. ah.planning_section { session, strategy, accepts_overrides } returns the section with
-- the four tools; ah.planning has the types, for session[ah.planning.Plan]:latest().
local ah, own_tool = ...

local MAX_TEXT, MAX_STEPS = 500, 1000
local STATUS = "pending|in_progress|done"

local Step = {
  step_id = "integer 1..",
  title = "string 1.." .. MAX_TEXT,
  status = STATUS,
  ["notes?"] = { "string" },
}

local types = {
  Plan = ah.type {
    name = "Plan",
    fields = {
      objective = "string 1.." .. MAX_TEXT,
      status = "active|completed",
      steps = { Step },
    },
  },
  SetupPlan = ah.type {
    name = "SetupPlan",
    fields = {
      objective = "string 1.." .. MAX_TEXT .. ": what the plan is to reach",
      ["initial_steps?"] = { "string 1.." .. MAX_TEXT },
    },
  },
  AddStep = ah.type {
    name = "AddStep",
    fields = { steps = { "string 1.." .. MAX_TEXT } },
  },
  UpdateStep = ah.type {
    name = "UpdateStep",
    fields = {
      step_id = "integer 1..: the number of the step",
      ["title?"] = "string 1.." .. MAX_TEXT .. ": its new title",
      ["status?"] = STATUS,
      ["note?"] = "string 1.." .. MAX_TEXT .. ": an observation or reflection to keep with it",
    },
  },
}

-- -- changes of a plan; all raise errors that a model can act on ----------------------------

local function refuse(text, ...)
  error(ah.error { code = "tool_validation", message = text:format(...) }, 0)
end

local function check_title(title)
  if not title:find "%S" then
    refuse "a title must not be blank"
  end
  return title
end

local function active(plan)
  if not plan then
    refuse "there is no plan yet: call planning_setup_plan first"
  end
  if plan.status == "completed" then
    refuse "the plan is completed: call planning_setup_plan for another one"
  end
  return plan
end

-- Ids count up and no step is ever removed, so no id is used twice.
local function append(plan, titles)
  if #plan.steps + #titles > MAX_STEPS then
    refuse("a plan has at most %d steps", MAX_STEPS)
  end
  for _, title in ipairs(titles) do
    plan.steps[#plan.steps + 1] =
      { step_id = #plan.steps + 1, title = check_title(title), status = "pending" }
  end
  return plan
end

local function count_steps(plan)
  return ("%d step%s"):format(#plan.steps, #plan.steps == 1 and "" or "s")
end

local function count_done(plan)
  local n = 0
  for _, step in ipairs(plan.steps) do
    n = n + (step.status == "done" and 1 or 0)
  end
  return n
end

local function set_up(_, event)
  check_title(event.objective)
  local plan = { objective = event.objective, status = "active", steps = ah.array {} }
  return append(plan, event.initial_steps or {})
end

local function add(plan, event)
  if #event.steps == 0 then
    refuse "there is nothing to add: give at least one step"
  end
  return append(active(plan), event.steps)
end

local function update(plan, event)
  active(plan)
  local step = plan.steps[event.step_id]
  if not step then
    refuse("there is no step %d; the plan has %s", event.step_id, count_steps(plan))
  end
  if not (event.title or event.status or event.note) then
    refuse "there is nothing to change: give title, status or note"
  end
  step.title = event.title and check_title(event.title) or step.title
  step.status = event.status or step.status
  if event.note then
    step.notes = step.notes or {}
    step.notes[#step.notes + 1] = event.note
  end
  if count_done(plan) == #plan.steps then
    plan.status = "completed"
  end
  return plan
end

--- Registers Plan and the reducers of the three events on the session.
local function register(session)
  local function reduce(Event, change)
    session:reduce(types.Plan, Event, function(view, event)
      if event.value then
        return view:replace { types.Plan(change(view:latest(), event.value)) }
      end
    end)
  end
  session:register(types.Plan, { keep = "latest" })
  reduce(types.SetupPlan, set_up)
  reduce(types.AddStep, add)
  reduce(types.UpdateStep, update)
end

-- -- the tools ----------------------------------------------------------------------------------

local function progress(plan)
  return ("%d of %s done"):format(count_done(plan), count_steps(plan))
end

-- Makes a handler that dispatches the event and returns the new state in words. The change is first
-- tried on a copy, so that its own error reaches the model.
local function dispatching(session, change, say)
  return function(event)
    change(session[types.Plan]:latest(), event)
    session:dispatch(event)
    return ah.ok(nil, say(session[types.Plan]:latest(), event))
  end
end

local function tools_for(session, accepts_overrides)
  local function tool(name, description, params, handler, result)
    return own_tool {
      name = name,
      description = description,
      params = params,
      result = result,
      handler = handler,
      accepts_overrides = accepts_overrides,
      annotations = {
        read_only = result ~= nil,
        destructive = name == "planning_setup_plan",
        idempotent = result ~= nil,
        open_world = false,
      },
    }
  end
  return {
    tool(
      "planning_setup_plan",
      "Create the plan, or replace it: the objective and the first steps.",
      types.SetupPlan,
      dispatching(session, set_up, function(plan)
        return ("The plan has %s, numbered from 1."):format(count_steps(plan))
      end)
    ),
    tool(
      "planning_add_step",
      "Append steps to the active plan.",
      types.AddStep,
      dispatching(session, add, function(plan, event)
        local last = #plan.steps
        local first = last - #event.steps + 1
        return first == last and ("Added step %d."):format(last)
          or ("Added steps %d to %d."):format(first, last)
      end)
    ),
    tool(
      "planning_update_step",
      "Change the title or status of a step, or add a note to it.",
      types.UpdateStep,
      dispatching(session, update, function(plan, event)
        local done = plan.status == "completed" and "The plan is completed: " or ""
        return ("Step %d is updated. %s%s."):format(event.step_id, done, progress(plan))
      end)
    ),
    tool("planning_read_plan", "Read the plan as it is.", nil, function()
      local plan = session[types.Plan]:latest()
      if not plan then
        refuse "there is no plan yet: call planning_setup_plan first"
      end
      return ah.ok(plan, progress(plan) .. ".")
    end, types.Plan),
  }
end

-- -- the section --------------------------------------------------------------------------------

-- The structure is the same for all strategies; only this paragraph differs.
local MINDSET = {
  react = [[
Think in short bursts: reason about the next thing only, call a tool, look at what it says, and
reason again. Keep what you observe as a note on the step it belongs to.]],
  plan_act_reflect = [[
Outline the whole plan before you act. Then carry out one step after the other, and reflect on
each when it is done: what was learned, and does the rest of the plan still hold? Append the
reflection as a note on the step.]],
  goal_decompose_route_synthesise = [[
Restate the goal in your own words first. Break it into sub-problems, one step each, before you
choose tools; then route each sub-problem to the tool that fits it. At the end, synthesise the
results into one cohesive answer.]],
}

local TEMPLATE = [[
Keep a plan of the work with the planning tools whenever it takes more than one or two actions.

%s

- `planning_setup_plan` creates the plan; it replaces one that is there.
- `planning_add_step` appends steps as they turn out to be needed.
- `planning_update_step` sets a step to `in_progress` when you begin it, to `done` when it is
  finished, and adds notes to it.
- `planning_read_plan` shows the plan as it is. It is completed when all of its steps are done.]]

local read = ah._reader {
  what = "ah.planning_section", type = "ah.PlanningConfig", rows = {
    { name = "session", kinds = "object", needed = true, is = "session", type = "ah.Session",
      doc = "keeps the plan; the section registers its types and reducers there" },
    { name = "strategy", kinds = "string", default = "react",
      words = "react plan_act_reflect goal_decompose_route_synthesise",
      doc = "the way of thinking that the text asks for; the rest is the same for all" },
    { name = "accepts_overrides", kinds = "boolean", default = true,
      doc = "allows [overrides](prompts.md#overrides) of its texts" },
  },
}

--- Makes the section with the planning tools; registers the types' reducers on the session.
local function section(t)
  t = read(t)
  register(t.session)
  return ah.section {
    key = "planning",
    title = "Planning",
    template = TEMPLATE:format(MINDSET[t.strategy]),
    tools = tools_for(t.session, t.accepts_overrides),
    accepts_overrides = t.accepts_overrides,
  }
end

return { types = types, section = section }
