-- Asks that wait in a store, beyond the run that asked: approvals, questions of durable handlers,
-- and the ways in which they end.
local ah = require "agenthost"
local results = require "spec.support.results"

local CALL = { calls = { { name = "pay", arguments = { euros = 12 } } } }

local function store_of()
  return assert(ah.store { engine = "memory" })
end

-- An agent whose calls need an approval; `paid` counts the runs of the handler.
local function payer(store, more)
  local fields = { paid = 0 }
  fields.tool = function(description)
    return ah.tool { name = "pay", description = description or "Pays.",
      params = { euros = "integer" }, handler = function(args)
        fields.paid = fields.paid + 1
        return "paid " .. args.euros
      end }
  end
  local def = { store = store, id = "order", tools = { fields.tool() },
    policies = { function(call)
      if call.name == "pay" then
        return "ask", "it costs money"
      end
    end },
    model = ah.scripted { CALL, "Done.", "Well.", resumes = true } }
  for name, value in pairs(more or {}) do
    def[name] = value
  end
  fields.open = function(description)
    if description then
      def.tools = { fields.tool(description) }
    end
    return assert(ah.agent(def))
  end
  return fields
end

local function waits(agent, text)
  local reply, err = agent:run(text)
  assert.is_nil(reply)
  assert.equal("waiting", err.code, err.message)
  return err
end

describe("an approval without a front end", function()
  it("waits in the store, and the run goes on with the response", function()
    local store <close> = store_of()
    local payment = payer(store)
    local agent <close> = payment.open()
    assert.same({ "1" }, waits(agent, "Pay.").asks)
    assert.same({ "1" }, agent.unfinished.asks)
    assert.equal("it costs money", store:asks()[1].question)
    assert(store:respond("order", "1", true))
    local reply = assert(agent:run())
    assert.same({ "paid 12" }, results(reply))
    assert.equal(1, payment.paid)
    assert.is_nil(agent.unfinished)
    assert.same({}, store:asks())
  end)

  it("refuses another question, and names the open one without a half character", function()
    local store <close> = store_of()
    local agent <close> = payer(store).open()
    waits(agent, ("a"):rep(199) .. "\u{e4}" .. ("b"):rep(100))
    local ok, err = pcall(agent.run, agent, "Another one.")
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.truthy(err.message:find("('" .. ("a"):rep(199) .. "...')", 1, true), err.message)
  end)

  it("keeps its number while it waits again", function()
    local store <close> = store_of()
    local payment = payer(store)
    for _ = 1, 3 do
      local agent <close> = payment.open()
      assert.same({ "1" }, waits(agent, "Pay.").asks)
    end
    assert.equal(1, #store:asks())
  end)

  it("is a refusal with its reason, or other arguments", function()
    for response, result in pairs {
      [{ approved = false, why = "too much" }] =
        "Tool 'pay' was not run: not approved: too much",
      [{ approved = true, arguments = { euros = 3 } }] = "paid 3",
    } do
      local store <close> = store_of()
      local agent <close> = payer(store).open()
      waits(agent, "Pay.")
      assert(store:respond("order", "1", response))
      assert.same({ result }, results(assert(agent:run())))
    end
  end)

  it("is asked again if the definition of the tool has changed", function()
    local store <close> = store_of()
    local payment = payer(store)
    do
      local agent <close> = payment.open()
      waits(agent, "Pay.")
    end
    assert(store:respond("order", "1", true))
    local agent <close> = payment.open "Pays twice."
    local err = waits(agent)
    assert.equal(0, payment.paid)
    assert.matches("asked again: the definition of the tool has changed",
      store:asks()[1].question)
    assert.is_nil(store:respond("order", "1", true))
    assert(store:respond("order", err.asks[1], true))
    assert.same({ "paid 12" }, results(assert(agent:run())))
  end)

  it("is declined by another text", function()
    local store <close> = store_of()
    local payment = payer(store)
    local agent <close> = payment.open()
    waits(agent, "Pay.")
    local ok, err = pcall(agent.run, agent, "Never mind.")
    assert.is_false(ok)
    assert.equal("usage", err.code)
    local reply = assert(agent:run("Never mind.", { asks = "decline" }))
    assert.equal(0, payment.paid)
    assert.matches("not approved: the user has said something else", results(reply)[1])
    local last = reply.messages[#reply.messages - 1]
    assert.equal("Never mind.", last.content)
  end)

  it("ends with a cancellation from the store", function()
    local store <close> = store_of()
    local agent <close> = payer(store).open()
    waits(agent, "Pay.")
    assert(store:cancel "order")
    local reply, err = agent:run()
    assert.is_nil(reply)
    assert.equal("cancelled", err.code)
    assert.is_nil(agent.unfinished)
    assert.equal("usage", select(2, store:respond("order", "1", true)).code)
    assert.equal("Done.", assert(agent:run "Go on.").text)
  end)

  it("is not in the way of front ends, which may be faster than the store", function()
    local store <close> = store_of()
    local seen = {}
    local agent <close> = payer(store, { asks = function(ask)
      ah.sleep(0.01) -- the record of the ask is appended meanwhile
      seen.open = store:asks()[1].question
      return ask.kind == "approval"
    end }).open()
    assert.same({ "paid 12" }, results(assert(agent:run "Pay.")))
    assert.equal("it costs money", seen.open)
  end)

  it("takes a response from the store while a front end holds it", function()
    local store <close> = store_of()
    local by
    local agent <close> = payer(store, {
      on = { ask_closed = function(event) by = event.by end },
      asks = function()
        ah.sleep(0.01)
        assert(store:respond("order", "1", true, { by = "Ann" }))
      end,
    }).open()
    assert.same({ "paid 12" }, results(assert(agent:run "Pay.")))
    assert.equal("Ann", by)
  end)

  it("is refused without a store, as before", function()
    local payment = payer()
    local agent <close> = ah.agent { tools = { payment.tool() },
      policies = { function() return "ask", "why" end }, model = ah.scripted { CALL, "Done." } }
    assert.matches("it needs an approval", results(assert(agent:run "Pay."))[1])
  end)
end)

describe("a text that another process sends", function()
  it("passes the input guards of the agent", function()
    local store <close> = store_of()
    local agent <close> = payer(store, { guards = { input = function(text)
      return not text:find "forbidden", "not this"
    end } }).open()
    waits(agent, "Pay.")
    assert(store:send("order", "a forbidden text"))
    assert(store:send("order", "a plain text"))
    assert(store:respond("order", "1", false))
    local said = agent:run():transcript()
    assert.is_nil(said:find("forbidden", 1, true))
    assert.truthy(said:find("a plain text", 1, true))
  end)
end)

describe("parallel calls", function()
  it("end before their run waits, and are not run again", function()
    local store <close> = store_of()
    local ran = { quick = 0, slow = 0 }
    local function count(name, seconds)
      return ah.tool { name = name, description = "Counts.", parallel = true,
        handler = function()
          ran[name] = ran[name] + 1
          ah.sleep(seconds)
          return name
        end }
    end
    local def = { store = store, id = "p", tools = { count("quick", 0), count("slow", 0.02),
        ah.tool { name = "asked", description = "Asked.", parallel = true,
          handler = function() return "asked" end } },
      policies = { function(call)
        if call.name == "asked" then
          return "ask", "why"
        end
      end },
      model = ah.scripted { { calls = { { name = "quick" }, { name = "asked" },
        { name = "slow" } } }, "Done.", resumes = true } }
    do
      local agent <close> = assert(ah.agent(def))
      waits(agent, "Go.")
    end
    assert.same({ quick = 1, slow = 1 }, ran)
    assert(store:respond("p", "1", true))
    local agent <close> = assert(ah.agent(def))
    assert.same({ "quick", "asked", "slow" }, results(assert(agent:run())))
    assert.same({ quick = 1, slow = 1 }, ran)
  end)
end)

describe("a question of a handler", function()
  local function asker(store, durable, ask)
    return assert(ah.agent { store = store, id = "q", tools = { ah.tool { name = "pay",
      params = { euros = "integer" }, description = "Asks.", durable = durable,
      handler = function(_, ctx)
        local cups, err = ctx:ask(ask)
        return cups and cups .. " cups" or nil, err and err.code
      end } }, model = ah.scripted { CALL, "Done.", resumes = true } })
  end

  it("waits if the handler is durable", function()
    local store <close> = store_of()
    local ask = { question = "How many?", schema = { type = "integer", minimum = 1 } }
    do
      local agent <close> = asker(store, true, ask)
      waits(agent, "Go.")
      assert.same({ "1" }, agent.unfinished.asks)
    end
    assert.equal("tool_validation", select(2, store:respond("q", "1", "many")).code)
    assert(store:respond("q", "1", 3))
    local agent <close> = asker(store, true, ask)
    assert.same({ "3 cups" }, results(assert(agent:run())))
  end)

  it("fails with `waiting` if it is not", function()
    local store <close> = store_of()
    local agent <close> = asker(store, false, { question = "How many?" })
    assert.matches("waiting", results(assert(agent:run "Go."))[1])
  end)

  it("is `cancelled` for the handler if it is declined", function()
    local store <close> = store_of()
    local agent <close> = asker(store, true, { question = "How many?" })
    waits(agent, "Go.")
    local reply = assert(agent:run("Stop it.", { asks = "decline" }))
    assert.matches("cancelled", results(reply)[1])
  end)

  it("gets its default when its time is over, which no process has to wait for", function()
    local store <close> = store_of()
    local ask = { question = "How many?", schema = { type = "integer" }, default = 2,
      timeout = 0.05 }
    do
      local agent <close> = asker(store, true, ask)
      waits(agent, "Go.")
    end
    ah.sleep(0.06)
    assert.same({}, store:asks())
    local agent <close> = asker(store, true, ask)
    assert.same({ "2 cups" }, results(assert(agent:run())))
  end)
end)
