--- Durable handlers over the lives of several processes: what they have recorded, and what they do
-- when they are entered again.
local ah = require "agenthost"
local ahtest = require "ahtest"
local assert = require "luassert"

local lives = {}

local function tool(handler, extra)
  local t = { name = "t", description = "A durable tool.", durable = true, handler = handler }
  for key, value in pairs(extra or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

--- An agent whose model calls the durable tool `t` once, and then says "done".
function lives.new_agent(handler, fields, store)
  fields = fields or {}
  fields.model = ah.scripted { { calls = { { name = "t", id = "c1", arguments = {} } } }, "done",
    resumes = true }
  fields.tools = { tool(handler) }
  fields.store, fields.id = store, store and "s"
  return ah.agent(fields)
end

--- Returns the result of the call, as the model reads it.
function lives.result_of(reply)
  local found
  for _, message in ipairs(reply and reply.messages or {}) do
    found = message.role == "tool" and message.content or found
  end
  return found
end

-- The records of a conversation over the lives of several processes, up to the end of its call.
local Journal = {}
Journal.__index = Journal

function lives.new_journal()
  return setmetatable({ all = {} }, Journal)
end

--- Opens the conversation as a new process does; it dies at this record of steps.
function Journal:open(handler, die, fields)
  self.store = assert(ah.store { engine = "memory" })
  ahtest.store_fill(self.store, "s", self.all, #self.all)
  local agent = assert(lives.new_agent(handler, fields, self.store))
  self.tap = ahtest.die(agent, die and die - #self:records() or 0)
  return agent
end

function Journal:run(agent)
  local reply, err = agent:run(#self.all == 0 and "go" or nil)
  pcall(agent.close, agent)
  self.all = {}
  for i, record in ipairs(ahtest.store_records(self.store, "s")) do
    if record.kind == "call_finished" or record.kind == "settled" then
      break
    end
    self.all[i] = record
  end
  return reply, err
end

function Journal:dead()
  return self.tap:dead()
end

--- The records of steps.
function Journal:records()
  local list = {}
  for _, record in ipairs(self.all) do
    list[#list + 1] = record.kind:find "^step" and record or nil
  end
  return list
end

--- Only the first n records of steps stay.
function Journal:cut(n)
  local kept = {}
  for _, record in ipairs(self.all) do
    n = n - (record.kind:find "^step" and 1 or 0)
    if n < 0 then
      break
    end
    kept[#kept + 1] = record
  end
  self.all = kept
end

--- Runs the handler, with the steps of the journal given again. Returns what the model reads of the
-- call. die: the process dies at this record of steps: nil and "dead".
function lives.enter(journal, handler, die, fields)
  local agent = journal:open(handler, die, fields)
  local reply, err = journal:run(agent)
  if journal:dead() then
    return nil, "dead"
  elseif not reply then
    error(err)
  end
  return lives.result_of(reply)
end

--- The kinds and keys of the records of steps.
function lives.kinds(journal)
  local list = {}
  for i, record in ipairs(journal:records()) do
    list[i] = record.kind .. " " .. ah.json.decode(record.said).step
  end
  return list
end

--- Enters the handler of make() without a death, and then with one at each record, and once more at
-- each record of the second entry. `same` compares the outcome of each life with the first one.
function lives.die_everywhere(make, same)
  local handler, effects = make()
  local journal = lives.new_journal()
  local first = assert(lives.enter(journal, handler))
  local n = #journal:records()
  same(first, effects, first)
  for die = 1, n do
    for again = die + 1, n + 1 do
      handler, effects = make()
      journal = lives.new_journal()
      local _, why = lives.enter(journal, handler, die)
      assert.equal("dead", why)
      local outcome = lives.enter(journal, handler, again <= n and again or nil)
      if journal:dead() then
        outcome = lives.enter(journal, handler)
      end
      same(assert(outcome), effects, first)
      assert.equal(n, #journal:records())
    end
  end
  return n
end

return lives
