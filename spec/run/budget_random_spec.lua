-- Random trees of runs that share budgets, against a model of the accounting: each run counts its
-- events for its own budget and those of all runs around it. Runs wait, fail, are cut, retried,
-- taken over by a fallback and stopped by a timeout; handlers start runs, tasks and other tools.
--
--   AGENTHOST_BUDGET_STEPS=100000   requests and calls (default 4000)
--   AGENTHOST_BUDGET_SEED=17        the first seed (default 1)
local ah = require "agenthost"
local new_random = require "support.random"

local STEPS = tonumber(os.getenv "AGENTHOST_BUDGET_STEPS") or 4000
local SEED = tonumber(os.getenv "AGENTHOST_BUDGET_SEED") or 1
local PRICES = { ["scripted/*"] = { input = 10, output = 50, cached_read = 1, cached_write = 20 } }
local AT_ONCE = 24

local function quiet() end

-- -- the model -------------------------------------------------------------------------

-- A budget and its account: what must have been used, and `loose`: tokens that may have been.
local function new_account(random, roomy)
  local limits = { reserve = random(3) > 1, prices = PRICES }
  local scale, tokens = roomy and 40 or 1, roomy and 4 or 1
  local function limit(name, n)
    if random(3) == 1 then
      limits[name] = n
    end
  end
  limit("requests", random(30) * scale)
  limit("tool_calls", random(20) * scale)
  limit("input_tokens", 4000 + random(10000) * tokens)
  limit("output_tokens", 200 + random(3000) * tokens)
  limit("total_tokens", 4000 + random(10000) * tokens)
  limit("cost", (8000 + random(20000) * tokens) / 1e5)
  return { budget = ah.budget(limits), limits = limits, requests = 0, calls = 0, input = 0,
    output = 0, loose_input = 0, loose_output = 0 }
end

local KINDS = { "input_tokens", "output_tokens", "total_tokens", "cost" }

local function check_limits(account)
  local used, reserved = account.budget:used(), account.budget:reserved()
  local limits = account.limits
  assert(used.requests <= (limits.requests or math.huge), "too many requests")
  assert(used.tool_calls <= (limits.tool_calls or math.huge), "too many calls")
  for _, kind in ipairs(KINDS) do
    if limits.reserve and limits[kind] then
      assert(used[kind] + reserved[kind] <= limits[kind] + 1e-9, kind .. " is exceeded")
    end
  end
end

local function check_end(account)
  check_limits(account)
  local used, reserved = account.budget:used(), account.budget:reserved()
  for name, amount in pairs(reserved) do
    assert(amount == 0, name .. " is still reserved")
  end
  assert.same({ account.requests, account.calls }, { used.requests, used.tool_calls })
  for _, kind in ipairs { "input", "output" } do
    local over = used[kind .. "_tokens"] - account[kind]
    assert(over >= 0 and over <= account["loose_" .. kind],
      ("%s: %d used, counted %d and at most %d"):format(kind, used[kind .. "_tokens"],
        account[kind], account["loose_" .. kind]))
  end
  assert.equal(used.input_tokens + used.output_tokens, used.total_tokens)
end

-- Counts the request in flight of a run (`sent`), which has ended in the way `how`.
local function settle(node, how, usage)
  local sent = node.sent
  node.sent = nil
  for _, account in ipairs(sent and node.accounts or {}) do
    if how == "answered" and usage.known then
      account.input = account.input + usage.input
      account.output = account.output + usage.output
    elseif how == "answered" then
      account.loose_input = account.loose_input + 1e6
      account.loose_output = account.loose_output + node.max_tokens
    elseif how == "lost" and account.limits.reserve then
      local certain = sent.reached and sent.cut
      account.loose_input = account.loose_input + 1e6
      account.output = account.output + (certain and node.max_tokens or 0)
      account.loose_output = account.loose_output + (certain and 0 or node.max_tokens)
    end
  end
end

-- -- the trees -------------------------------------------------------------------------

local Tree = {}
Tree.__index = Tree

function Tree:model(node)
  local random = self.random
  return ah.scripted(function()
    local sent = assert(node.sent, "no request was reported")
    sent.reached = true
    for _, account in ipairs(node.accounts) do
      check_limits(account)
    end
    local delay = random(3) > 1 and random(4) / 1000 or nil
    local dice = random(20)
    if dice <= 2 then
      sent.refused = true
      return { fail = { message = "busy", status = 429, retryable = true, retry_after = 0.001 } }
    elseif dice == 3 then
      sent.refused = true
      return { fail = { message = "down", status = 503 } }
    elseif dice == 4 then
      sent.cut = true
      return { fail = { message = "the line is cut" } }
    end
    local input = random(100)
    local usage = random(8) > 1 and { input = input, output = random(node.max_tokens),
      cached_read = random(input) - 1, cached_write = 0 } or nil
    if usage and random(3) == 1 then
      usage.cached_write = input - usage.cached_read
    end
    local calls
    for i = 1, node.depth > 0 and dice > 11 and random(3) or 0 do
      calls = calls or {}
      calls[i] = { name = ({ "plain", "parallel", "nested" })[random(3)],
        arguments = { n = random(1000000) } }
    end
    return { text = "ok", calls = calls, usage = usage, delay = delay }
  end)
end

function Tree:handler(node)
  local random = self.random
  return function()
    local dice = random(9)
    if dice <= 3 then
      self:run(node)
    elseif dice == 4 then
      local tasks = {}
      for i = 1, random(3) do
        tasks[i] = function() self:run(node) end
      end
      ah.all(tasks)
    elseif dice == 5 then
      node.registry:execute("plain", { n = random(1000000) })
    elseif dice == 6 then
      node.registry:execute("nested", { n = random(1000000) })
    elseif dice == 7 then
      ah.sleep(random(3) / 1000)
    elseif dice == 8 then
      error "on purpose"
    end
  end
end

-- Returns the accounts that a run draws on, and the one of its own budget, if it has one.
function Tree:accounts_of(around)
  if not around then
    return { self.shared[1] }, self.shared[1]
  end
  local dice = self.random(4)
  local own = dice == 2 and self.shared[self.random(#self.shared)] or nil
  if dice == 1 then
    own = new_account(self.random, false)
    self.all[#self.all + 1] = own
  end
  local list, known = {}, false
  for i, one in ipairs(around.accounts) do
    list[i] = one
    known = known or one == own
  end
  list[#list + 1] = not known and own or nil
  return list, own
end

function Tree:watch(node)
  local function count(name)
    self.steps = self.steps + 1
    for _, account in ipairs(node.accounts) do
      account[name] = account[name] + 1
    end
  end
  local function ended()
    if node.sent then
      settle(node, node.sent.refused and "refused" or "lost")
    end
  end
  return {
    request = function()
      assert(not node.sent, "two requests at once")
      count "requests"
      node.sent = {}
    end,
    usage = function(e) settle(node, "answered", e) end,
    queued = function() self.waited = self.waited + 1 end,
    warning = function(e) assert(not e.message:find("had reserved", 1, true), e.message) end,
    tool_started = function() count "calls" end,
    retry = ended, fallback = ended, done = ended,
  }
end

-- Each failure for lack of budget names a limit of a budget around the run, which has no room.
local function check_failure(node, err)
  if err.code ~= "budget_exceeded" then
    return
  end
  for _, account in ipairs(node.accounts) do
    if account.limits[err.budget] == err.limit then
      assert(err.used + (err.needed or 1e-9) > err.limit - 1e-9, err.message)
      return
    end
  end
  error("no such limit: " .. err.message)
end

function Tree:run(around)
  local random = self.random
  local node = { depth = around and around.depth - 1 or 3, max_tokens = 20 + random(100) }
  local accounts, own = self:accounts_of(around)
  node.accounts = accounts
  local tools, params = {}, { n = "integer" }
  for _, name in ipairs { "plain", "parallel", "nested" } do
    tools[#tools + 1] = ah.tool { name = name, description = name, params = params,
      parallel = name == "parallel", handler = name ~= "plain" and node.depth > 0
        and self:handler(node) or quiet }
  end
  node.registry = ah.registry(tools)
  local short = random(12) == 1
  local _, err = ah.run { model = self:model(node), budget = own and own.budget, tools = tools,
    fallback = random(2) == 1 and { self:model(node) } or nil, retries = random(3) - 1,
    options = { max_tokens = node.max_tokens }, timeout = short and random(5) / 1000 or 60,
    loop_detector = false, max_iterations = 6, log = quiet, on = self:watch(node), "go" }
  if err then
    check_failure(node, err)
    assert(err.code ~= "deadline_exceeded" or short or around, err.message)
  end
end

local function grow(seed, steps)
  local random = new_random(seed)
  local tree = setmetatable({ random = random, all = {}, shared = {}, steps = 0, waited = 0 }, Tree)
  for i = 1, 3 do
    tree.shared[i] = new_account(random, true)
    tree.all[i] = tree.shared[i]
  end
  local left = AT_ONCE
  local function worker()
    repeat
      tree:run(nil)
      left = left - 1
    until left <= 0 or tree.steps >= steps
  end
  local workers = {}
  for i = 1, AT_ONCE // 2 do
    workers[i] = worker
  end
  ah.all(workers)
  for _, account in ipairs(tree.all) do
    check_end(account)
  end
  return tree.steps, tree.waited
end

describe("budgets of random trees", function()
  it("are as the model of the accounting says, never exceeded, and every run ends", function()
    local steps, waited, seed = 0, 0, SEED
    while steps < STEPS do
      local ok, n, w = xpcall(grow, debug.traceback, seed, STEPS - steps)
      assert(ok, ("seed %d (AGENTHOST_BUDGET_SEED=%d AGENTHOST_BUDGET_STEPS=1): %s"):format(seed,
        seed, tostring(n)))
      steps, waited, seed = steps + n, waited + w, seed + 1
    end
    assert(waited > STEPS // 100 or STEPS < 1000, waited .. " requests waited")
  end)
end)
