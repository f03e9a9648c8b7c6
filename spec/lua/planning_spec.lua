-- The planning tools (seed 002, Planning Tool Suite). docs/reference/planning.md.
local ah = require "agenthost"

local function call(name, arguments)
  return { name = "planning_" .. name, arguments = arguments }
end

-- Runs these calls, one an answer; returns the contents of their results and the plan.
local function run(calls, fields)
  fields = fields or {}
  local session = fields.session or ah.session()
  local turns = {}
  for i, c in ipairs(calls) do
    turns[i] = { calls = c.name and { c } or c }
  end
  turns[#turns + 1] = "ok"
  local reply = assert(ah.run {
    model = ah.scripted(turns),
    session = not fields.elsewhere and session or nil,
    log = function() end,
    ah.planning_section { session = session, strategy = fields.strategy },
    "Go.",
  })
  local results = {}
  for _, m in ipairs(reply.messages) do
    results[#results + 1] = m.role == "tool" and m.content or nil
  end
  return results, session[ah.planning.Plan]:latest(), session
end

local SETUP = call("setup_plan", { objective = "O", initial_steps = { "a", "b" } })

describe("a plan", function()
  it("is created, extended, updated and read", function()
    local results, plan = run {
      SETUP,
      call("add_step", { steps = { "c", "d" } }),
      call("add_step", { steps = { "e" } }),
      call("update_step", { step_id = 3, title = "C", status = "in_progress" }),
      call("read_plan"),
    }
    assert.same({
      "The plan has 2 steps, numbered from 1.",
      "Added steps 3 to 4.",
      "Added step 5.",
      "Step 3 is updated. 0 of 5 steps done.",
    }, { table.unpack(results, 1, 4) })
    local text, json = results[5]:match "^(.-)\n\n(.*)$"
    assert.equal("0 of 5 steps done.", text)
    assert.same(plan, ah.json.decode(json))
    assert.equal("active", plan.status)
    assert.same({ step_id = 3, title = "C", status = "in_progress" }, plan.steps[3])
  end)

  it("counts one step as one", function()
    local results = run {
      call("setup_plan", { objective = "O", initial_steps = { "a" } }),
      call("update_step", { step_id = 2, status = "done" }),
      call("update_step", { step_id = 1, status = "in_progress" }),
      call("setup_plan", { objective = "O" }),
    }
    assert.same({ "The plan has 1 step, numbered from 1.",
      "Tool validation failed: there is no step 2; the plan has 1 step",
      "Step 1 is updated. 0 of 1 step done.", "The plan has 0 steps, numbered from 1." }, results)
  end)

  it("is completed by its last step, and only another plan goes on from there", function()
    local results, plan = run {
      SETUP,
      call("update_step", { step_id = 2, status = "done" }),
      call("update_step", { step_id = 1, status = "done", note = "n" }),
      call("add_step", { steps = { "c" } }),
      call("update_step", { step_id = 1, title = "x" }),
      call("read_plan"),
    }
    local over = "Tool validation failed: the plan is completed: "
      .. "call planning_setup_plan for another one"
    assert.same({ over, over }, { results[4], results[5] })
    assert.equal("completed", plan.status)
    assert.same({ "n" }, plan.steps[1].notes)
    results, plan = run { SETUP, call("setup_plan", { objective = "P" }), call("read_plan") }
    assert.same({ "P", "active", 0 }, { plan.objective, plan.status, #plan.steps })
    assert.truthy(results[3]:find('"steps":[]', 1, true))
  end)

  it("refuses what cannot be done, in words of its own, and stays as it was", function()
    local results, plan = run {
      call("read_plan"),
      call("add_step", { steps = { "c" } }),
      call("update_step", { step_id = 1, status = "done" }),
      SETUP,
      call("update_step", { step_id = 3, status = "done" }),
      call("update_step", { step_id = 1 }),
      call("add_step", { steps = ah.array {} }),
      call("add_step", { steps = { "fine", "  " } }),
    }
    local none = "Tool validation failed: there is no plan yet: call planning_setup_plan first"
    assert.same({
      none,
      none,
      none,
      "The plan has 2 steps, numbered from 1.",
      "Tool validation failed: there is no step 3; the plan has 2 steps",
      "Tool validation failed: there is nothing to change: give title, status or note",
      "Tool validation failed: there is nothing to add: give at least one step",
      "Tool validation failed: a title must not be blank",
    }, results)
    assert.equal(2, #plan.steps)
  end)

  it("has titles of 1 to 500 characters and statuses of three kinds", function()
    local results, plan = run {
      call("setup_plan", { objective = ("ä"):rep(500), initial_steps = { ("x"):rep(500) } }),
      call("add_step", { steps = { ("x"):rep(501) } }),
      call("add_step", { steps = { "" } }),
      call("update_step", { step_id = 1, status = "finished" }),
      call("update_step", { step_id = "1" }),
    }
    assert.equal(1, #plan.steps)
    for i = 2, 5 do
      assert.matches("^Tool validation failed: /", results[i])
    end
  end)

  it("has at most 1000 steps", function()
    local many = {}
    for i = 1, 600 do
      many[i] = "s" .. i
    end
    local results, plan = run {
      call("setup_plan", { objective = "O", initial_steps = many }),
      call("add_step", { steps = many }),
    }
    assert.equal("Tool validation failed: a plan has at most 1000 steps", results[2])
    assert.equal(600, #plan.steps)
  end)

  it("belongs to the section's session, whatever session the run has", function()
    local results, plan = run({ SETUP, call("read_plan") }, { elsewhere = true })
    assert.equal(2, #plan.steps)
    assert.matches("^0 of 2", results[2])
  end)

  it("may be shared by sections, and follows what a script dispatches", function()
    local _, _, session = run { SETUP }
    session:dispatch(ah.planning.AddStep { steps = { "by the script" } })
    local results, plan = run({ call("read_plan") }, { session = session })
    assert.equal("by the script", plan.steps[3].title)
    assert.matches("^0 of 3", results[1])
    local ok, err = pcall(session.dispatch, session, ah.planning.UpdateStep { step_id = 9 })
    assert.is_false(ok)
    assert.matches("there is no step 9", tostring(err))
    assert.same(plan, session[ah.planning.Plan]:latest())
  end)

  it("is rolled back with a call that fails around it", function()
    local session = ah.session()
    local section = ah.planning_section { session = session }
    local outer = ah.tool {
      name = "outer",
      description = "Plans, then fails.",
      handler = function()
        assert(ah.run {
          session = session,
          section,
          "Plan.",
          model = ah.scripted { { calls = {
            SETUP,
          } }, "ok" },
        })
        assert(#session.Plan:latest().steps == 2)
        error "too late"
      end,
    }
    assert(ah.run {
      session = session,
      tools = { outer },
      log = function() end,
      model = ah.scripted { { calls = { { name = "outer" } } }, "ok" },
      "Go.",
    })
    assert.is_nil(session.Plan:latest())
  end)
end)

describe("ah.planning_section", function()
  local function text(strategy)
    local section = ah.planning_section { session = ah.session(), strategy = strategy }
    return tostring(ah.prompt({ section }):render {}), section
  end

  it("has one structure for all strategies; only the mindset differs", function()
    local seen, rest = {}, nil
    for _, strategy in ipairs { "react", "plan_act_reflect", "goal_decompose_route_synthesise" } do
      local head, mindset, tail = text(strategy):match "^(## Planning\n\n.-\n\n)(.-)(\n\n%- .*)$"
      assert.is_nil(seen[mindset])
      seen[mindset] = true
      rest = rest or head .. tail
      assert.equal(rest, head .. tail)
    end
    assert.equal(text(nil), text "react")
    for _, tool in ipairs { "setup_plan", "add_step", "update_step", "read_plan" } do
      assert.truthy(rest:find("`planning_" .. tool .. "`", 1, true))
    end
  end)

  it("says what is wrong with its fields, at the script's line", function()
    local session = ah.session()
    for words, fields in pairs {
      ["unknown field 'sesion'"] = { sesion = session },
      ["field 'session' is missing"] = {},
      ['"plan_act_reflect" or "goal_decompose_route_synthesise", found "cot"'] = {
        session = session,
        strategy = "cot",
      },
    } do
      local ok, err = pcall(function()
        ah.planning_section(fields)
      end)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(words, 1, true), tostring(err))
      assert.matches("planning_spec.lua:%d+: ", tostring(err))
    end
  end)

  it("keeps overrides out where it is told to", function()
    local section = ah.planning_section { session = ah.session(), accepts_overrides = false }
    local warned = {}
    local prompt = ah.prompt { ns = "n", key = "k", section }
    local hash = prompt:hashes().sections.planning
    assert(ah.run {
      model = "demo/echo",
      prompt = prompt,
      "x",
      overrides = { ["n/k"] = { sections = { planning = { hash = hash, template = "Other." } } } },
      log = function(level, line)
        warned[#warned + 1] = level .. " " .. line
      end,
    })
    assert.matches("warning", table.concat(warned, "\n"))
  end)
end)

describe("examples/planner.lua", function()
  it("shows the plan as it changes, and the answer", function()
    local binary = (os.getenv "AGENTHOST_BUILD" or "build") .. "/agenthost"
    local pipe <close> =
      assert(io.popen(("unset AGENTHOST_MODEL; %s examples/planner.lua 2>&1"):format(binary)))
    local text = pipe:read "a"
    assert.truthy(
      text:find("Write a haiku about the sea (active)\n  [ ] Collect images\n", 1, true)
    )
    assert.truthy(
      text:find(
        "(completed)\n  [x] Collect images\n      Salt, gulls, a slow tide.\n"
          .. "  [x] Write three lines\n",
        1,
        true
      )
    )
    assert.matches(
      "\nGulls above the salt\nthe tide takes its time to turn\nnobody is late\n$",
      text
    )
  end)
end)
