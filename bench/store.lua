-- Cost of a store: the same conversations without one, with one in memory and with one in a file
-- (sync "process"), in turn in each of ROUNDS rounds, with the model that httpd plays. Prints as
-- JSON, for each of the sizes of a turn's new text in KiB, the medians of microseconds of processor
-- time for each turn, of all threads of the process, and those of the rounds' differences.
--
--   agenthost bench/store.lua BASE_URL FOLDER TURNS CONVERSATIONS ROUNDS [KIND KIB | waits KIND]
--
-- TURNS are those of a conversation, for which httpd is started. With KIND (none, memory, sqlite)
-- it makes the conversations of that kind alone, for profiles; with "waits" and a kind it measures
-- memory.
local ah = require "agenthost"

local URL, FOLDER = arg[1], arg[2]
local TURNS, CONVERSATIONS = math.tointeger(tonumber(arg[3])), math.tointeger(tonumber(arg[4]))
local ROUNDS, ONLY = math.tointeger(tonumber(arg[5])), arg[6]
local SIZES = { 0.25, 2, 10 } -- KiB
local KINDS = { "none", "memory", "sqlite" }
local WORDS = ("Words of a result, as a tool returns them; "):rep(400)

local made, results = 0, 0

--- Returns a function that returns another text of `kib` KiB each time: one that the store has
-- already would not be written again.
local function results_of(kib)
  local rest = WORDS:sub(1, math.floor(kib * 1024) - 8)
  return function()
    results = results + 1
    return ("%08d"):format(results) .. rest
  end
end

--- Returns a new store of a kind, and its file; nil: none.
local function open_store(kind)
  if kind == "memory" then
    return assert(ah.store { engine = "memory" })
  elseif kind == "sqlite" then
    made = made + 1
    local path = ("%s/bench-%d.db"):format(FOLDER, made)
    return assert(ah.store(path)), path
  end
end

--- Returns the microseconds of processor time of one turn with `kib` KiB of new text.
local function measure(kind, kib)
  local add = ah.tool { name = "add", description = "Adds two integers.",
    params = { a = "integer", b = "integer" }, handler = results_of(kib) }
  local store, path = open_store(kind)
  local spent = 0
  for i = 1, CONVERSATIONS do
    local agent <close> = assert(ah.agent { store = store or false, id = "conversation " .. i,
      model = "openai/bench", base_url = URL, api_key = "bench", tools = { add },
      max_iterations = TURNS + 2 })
    collectgarbage()
    local from = os.clock()
    assert(agent:run "go")
    spent = spent + os.clock() - from
  end
  if store then
    store:close()
  end
  for _, suffix in ipairs(path and { "", "-locks" } or {}) do
    os.remove(path .. suffix)
  end
  return spent * 1e6 / (CONVERSATIONS * TURNS)
end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

--- Returns the medians of the kinds, and of what those with a store take more than that without.
local function compare(kib)
  local times, more, figures = {}, {}, { kib = kib }
  for round = 0, ROUNDS do -- the first one warms up and does not count
    local of = {}
    for _, kind in ipairs(KINDS) do
      of[kind] = measure(kind, kib)
    end
    for _, kind in ipairs(round > 0 and KINDS or {}) do
      times[kind], more[kind] = times[kind] or {}, more[kind] or {}
      table.insert(times[kind], of[kind])
      table.insert(more[kind], of[kind] - of.none)
    end
  end
  for _, kind in ipairs(KINDS) do
    figures[kind .. "_us"] = median(times[kind])
    figures[kind .. "_more_us"] = kind ~= "none" and median(more[kind]) or nil
  end
  return figures
end

--- Returns the size of the file and of the conversation of 1,000 turns, and the median of the
--- milliseconds of processor time in which it is ready.
local function measure_long()
  local path = FOLDER .. "/bench-long.db"
  local fields = { store = path, id = "long", model = "openai/bench", base_url = URL,
    api_key = "bench", max_iterations = TURNS + 2, tools = { ah.tool { name = "add",
      description = "Adds two integers.", params = { a = "integer", b = "integer" },
      handler = results_of(2) } } }
  local agent, reply, times = assert(ah.agent(fields)), nil, {}
  for _ = 1, 1000 // TURNS do
    reply = assert(agent:run "go")
  end
  agent:close()
  for i = 1, 5 do
    local from = os.clock()
    agent = assert(ah.agent(fields))
    times[i] = (os.clock() - from) * 1e3
    agent:close()
  end
  local f <close> = assert(io.open(path))
  local size = f:seek "end"
  os.remove(path)
  os.remove(path .. "-locks")
  return { bytes = size, said = #reply:transcript(), ready_ms = median(times) }
end

--- Returns the KiB of memory that belong to this process alone.
local function memory()
  collectgarbage()
  for line in io.lines "/proc/self/smaps_rollup" do
    local kib = line:match "^Private_Dirty:%s*(%d+)"
    if kib then
      return tonumber(kib)
    end
  end
end

--- Returns the KiB of a store that was used, with its first conversations, and of one of n more.
local function measure_memory(kind, n)
  local before = memory()
  local store, path = open_store(kind)
  local agents = {}
  local function begin(count)
    for _ = 1, count do
      local agent = assert(ah.agent { store = store or false, id = "waits " .. #agents,
        model = "demo/echo" })
      assert(agent:run "A question.")
      agents[#agents + 1] = agent
    end
  end
  begin(100)
  local first = memory()
  begin(n)
  local each = (memory() - first) / n
  for _, agent in ipairs(agents) do
    agent:close()
  end
  if store then
    store:close()
    os.remove(path)
    os.remove(path .. "-locks")
  end
  return { first = first - before, each = each }
end

if ONLY == "waits" then
  print(ah.json.encode(measure_memory(arg[7], 1000)))
elseif ONLY then
  print(measure(ONLY, tonumber(arg[7])))
else
  local turns = {}
  for i, kib in ipairs(SIZES) do
    turns[i] = compare(kib)
  end
  print(ah.json.encode { turns = turns, long = measure_long() })
end
