-- Compares agenthost with a raw libcurl + cJSON loop, measured in the same run against the same
-- loopback server. Only the ratios are meaningful; the times depend on the machine and its load.
-- docs/internals/performance.md explains the results.
--
--   lua5.4 bench/bench.lua [--quick] [--json] [--rounds N] [--only NAME]
--
-- The binaries are in $AGENTHOST_BUILD, or ./build: httpd, raw, many, schema, agenthost. Each round
-- runs all variants of a measure close together, in changing order. A ratio is the median of the
-- rounds' ratios, a time the median of the rounds' times. The first round warms the caches and does
-- not count. The start of a process counts only in the cold start.
--   cold      a process from its start to the end of a conversation with one call
--   loop      many short conversations
--   late      the second half of one long conversation, for each turn
--   tools     conversations in which 500 tools are declared
--   stream    one long streamed answer, for each delta; without and with a callback in Lua
--   many      conversations at once with a model that takes 100 ms to answer
--   entities  the discovery of 1,000 entities of 10 methods
--   sessions  the cost of a transaction for an empty call, and with large sessions
--   schemas   a tool call checked, and 1 MB scanned and checked, compared with cJSON's parser
--   tasks     tasks, compared with plain coroutines of the stock interpreter
--   store     turns with a store in memory and in a file, compared with turns without one
--   mcp       calls and starts of a server of MCP, compared with the same messages sent by hand
-- "server" is the server's processor time as a share of the raw loop's time. Near 1 the benchmark
-- would measure the server.
local ROOT = arg[0]:match("^(.*)bench/[^/]*$") or "./"
package.path = ROOT .. "spec/?.lua;" .. package.path

local server = require "support.server"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local RAW, MANY, AGENTHOST = BUILD .. "/raw", BUILD .. "/many", BUILD .. "/agenthost"
local SCHEMA = BUILD .. "/schema"
local PATH = "/chat/completions"

local SIZES = {
  full = { rounds = 9, starts = 20, loop = { 200, 10 }, late = 400, tools = { 500, 5, 10 },
    deltas = 20000, many = { 1000, 2 }, schema = 40, session = { 10000, 100 },
    entities = 1000, tasks = { 100000, 99990 }, store = { 20, 40, 9 }, mcp = { 300, 20 } },
  quick = { rounds = 2, starts = 3, loop = { 20, 10 }, late = 60, tools = { 500, 1, 10 },
    deltas = 2000, many = { 100, 1 }, schema = 3, session = { 1000, 10 },
    entities = 200, tasks = { 10000, 10000 }, store = { 20, 5, 2 }, mcp = { 50, 3 } },
}

local function fail(message)
  io.stderr:write("bench: ", message, "\n")
  os.exit(1, true) -- closes the server, too
end

local function exists(name)
  local f <close> = io.open(name, "rb")
  return f ~= nil
end

local function quote(s)
  return "'" .. tostring(s):gsub("'", "'\\''") .. "'"
end

-- Runs a command whose last output is one JSON object.
local function figures(...)
  local words = {}
  for i, word in ipairs { ... } do
    words[i] = quote(word)
  end
  local command = table.concat(words, " ")
  local p = assert(io.popen(command, "r"))
  local out = p:read("a")
  local last = out:match("(%b{})%s*$")
  if not p:close() or not last then
    fail(command .. " failed" .. (out ~= "" and ":\n" .. out or ""))
  end
  return server.decode(last)
end

local function median(list)
  table.sort(list)
  local middle = #list // 2 + 1
  return #list % 2 == 1 and list[middle] or (list[middle - 1] + list[middle]) / 2
end

-- -- the measures ---------------------------------------------------------------------------
--
-- A measure: key, title, server (options), run[variant](base) -> figures, and rows of
-- { key, title, unit, field, factor, of = "agenthost", aim = ratio, most = absolute }.

local function turns_of(tools, conversations, turns)
  local function raw(base, ...)
    return figures(RAW, "loop", base .. PATH, conversations, turns, tools, ...)
  end
  return {
    raw = raw,
    keep = function(base) return raw(base, "--keep") end,
    agenthost = function(base)
      return figures(AGENTHOST, ROOT .. "bench/turns.lua", base, conversations, turns, tools)
    end,
  }
end

local function cold(size)
  local function start(...)
    return figures(RAW, "run", size.starts, ...)
  end
  return {
    key = "cold", title = "cold start", server = { turns = 1 },
    run = {
      raw = function(base) return start(RAW, "loop", base .. PATH, 1, 1, 2) end,
      agenthost = function(base)
        return start(AGENTHOST, ROOT .. "bench/turns.lua", base, 1, 1, 2)
      end,
    },
    rows = {
      { key = "wall_us", unit = "us wall", field = "wall_ms", factor = 1e3, aim = 1.3 },
      { key = "cpu_us", unit = "us cpu", field = "cpu_ms", factor = 1e3, aim = 1.3 },
      { key = "peak_kb", unit = "KiB peak", field = "peak_kb", factor = 1, aim = 1.3 },
    },
  }
end

local function by_turn(key, title, prefix, aim, run, conversations, turns, counted)
  local factor = 1e3 / (conversations * counted)
  return {
    key = key, title = title, server = { turns = turns }, run = run,
    rows = {
      { key = "cpu_us", unit = "us cpu", field = prefix .. "cpu_ms", factor = factor, aim = aim },
      { key = "wall_us", unit = "us wall", field = prefix .. "wall_ms", factor = factor,
        aim = aim },
    },
  }
end

local function loop(size)
  local n, turns = table.unpack(size.loop)
  return by_turn("loop", ("loop %d x %d, a turn"):format(n, turns), "", 1.2,
    turns_of(2, n, turns), n, turns, turns)
end

local function late(size)
  local turns = size.late
  return by_turn("late", ("turns %d to %d, a turn"):format(turns // 2, turns), "late_", 0.3,
    turns_of(2, 1, turns), 1, turns, turns - turns // 2)
end

local function tools(size)
  local n, conversations, turns = table.unpack(size.tools)
  return by_turn("tools", ("%d tools, a turn"):format(n), "", 0.5,
    turns_of(n, conversations, turns), conversations, turns, turns)
end

local function deltas(n)
  local events = {}
  for i = 1, n do
    events[i] = ('{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench",'
      .. '"choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}]}'):format(i)
  end
  events[n + 1] = '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,'
    .. '"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
  events[n + 2] = "[DONE]"
  return server.sse(events)
end

local function stream(size)
  local n = size.deltas
  local function ours(...)
    local more = { ... }
    return function(base)
      return figures(AGENTHOST, ROOT .. "bench/stream.lua", base, 1, table.unpack(more))
    end
  end
  local function row(of, aim, title, kind)
    return { key = of .. "." .. kind .. "_us", title = title, of = of, unit = "us " .. kind,
      field = kind .. "_ms", factor = 1e3 / n, aim = aim }
  end
  return {
    key = "stream", title = ("stream of %d, a delta"):format(n),
    server = { responses = { deltas(n) } },
    run = {
      raw = function(base) return figures(RAW, "stream", base .. PATH, 1) end,
      agenthost = ours(), callback = ours "callback",
    },
    rows = {
      row("agenthost", 0.6, nil, "cpu"), row("agenthost", 0.6, "", "wall"),
      row("callback", 1.2, "  with a callback", "cpu"), row("callback", 1.2, "", "wall"),
    },
  }
end

local function many(size)
  local n, turns = table.unpack(size.many)
  return {
    key = "many", title = ("%d at once"):format(n), server = { turns = turns, delay = 100 },
    run = {
      raw = function(base) return figures(RAW, "many", base, n, turns) end,
      agenthost = function(base)
        return figures(MANY, ROOT .. "bench/many.lua", base, n, turns)
      end,
    },
    rows = {
      { key = "wall_ms", unit = "ms wall", field = "wall_ms", factor = 1, aim = 1.2 },
      { key = "cpu_ms", unit = "ms cpu", field = "cpu_ms", factor = 1 },
      { key = "kb_each", unit = "KiB each", field = "kb_each", factor = 1, most = 50 },
    },
  }
end

local MEASURES = { cold = cold, loop = loop, late = late, tools = tools, stream = stream,
  many = many }
local ORDER = { "cold", "loop", "late", "tools", "stream", "many" }
local VARIANTS = { "raw", "keep", "agenthost", "callback" }

-- -- measuring --------------------------------------------------------------------------------

-- Every other round goes backwards, so that a drift affects all variants.
local function in_turn(round)
  local list = {}
  for i, variant in ipairs(VARIANTS) do
    list[round % 2 == 0 and i or #VARIANTS + 1 - i] = variant
  end
  return list
end

-- Each run has its own path, as the server counts the turns of a path.
local function run_round(m, s, round)
  local got = {}
  for _, variant in ipairs(in_turn(round)) do
    if m.run[variant] then
      local before = s:cpu_ms()
      local f = m.run[variant](("%s/%s%d/v1"):format(s.url, variant, round))
      f.server = before and (s:cpu_ms() - before) / f.wall_ms
      got[variant] = f
    end
  end
  return got
end

local function run_rounds(m, rounds)
  local opts = { log = false, seconds = 3600 }
  for k, v in pairs(m.server) do
    opts[k] = v
  end
  local s <close> = server.start(opts)
  local list = {}
  for round = 0, rounds do
    list[round] = run_round(m, s, round)
  end
  return list
end

-- Returns the median of f over the rounds; nil if a variant is missing.
local function over(rounds, f)
  local values = {}
  for i = 1, #rounds do
    values[i] = f(rounds[i])
  end
  return #values > 0 and median(values) or nil
end

local function round3(v)
  return v and tonumber(("%.3f"):format(v))
end

local function value_of(rounds, variant, row)
  return over(rounds, function(r)
    return r[variant] and r[variant][row.field] * row.factor
  end)
end

local function ratio_of(rounds, variant, to, row)
  return over(rounds, function(r)
    return r[variant] and r[to] and r[variant][row.field] / r[to][row.field]
  end)
end

local function finish_row(m, row, rounds, first)
  local of = row.of or "agenthost"
  return {
    key = m.key .. "." .. row.key, title = row.title or (first and m.title or ""), unit = row.unit,
    raw = round3(value_of(rounds, "raw", row)), keep = round3(value_of(rounds, "keep", row)),
    agenthost = round3(value_of(rounds, of, row)),
    to_raw = round3(ratio_of(rounds, of, "raw", row)),
    to_keep = round3(ratio_of(rounds, of, "keep", row)),
    aim = row.aim, most = row.most,
    server = first and m.key ~= "cold" and round3(over(rounds, function(r)
      return r.raw.server
    end)) or nil,
  }
end

local function measure(m, rounds, with_agenthost)
  if not with_agenthost then
    m.run.agenthost, m.run.callback = nil, nil
  end
  local list, rows = run_rounds(m, rounds), {}
  for i, row in ipairs(m.rows) do
    rows[i] = finish_row(m, row, list, i == 1)
  end
  return rows
end

-- -- reporting -----------------------------------------------------------------------------------

local LINE = "%-26s %-8s %9s %9s %9s %7s %7s %8s %7s"

local function cell(v, format)
  return v and format:format(v) or "-"
end

local function print_head()
  print(LINE:format("", "", "raw", "raw keep", "agenthost", "to raw", "aim", "to keep", "server"))
end

local function print_row(r)
  local aim = r.most and ("%d"):format(r.most) or cell(r.aim, "%.2f")
  local digits = r.agenthost and r.agenthost < 100 and "%.1f" or "%.0f"
  print(LINE:format(r.title, r.unit, cell(r.raw, digits), cell(r.keep, digits),
    cell(r.agenthost, digits), cell(r.to_raw, "%.2f"), aim, cell(r.to_keep, "%.2f"),
    cell(r.server, "%.2f")))
end

local function print_schema(f)
  local ours, cjson = (f.scan_us + f.large_us) / 1e3, f.cjson_us / 1e3
  print(("%-26s %.2f us a call of %d bytes"):format("schemas", f.call_us, f.call_bytes))
  print(("%-26s %.1f ms scanned and checked, cJSON parses in %.1f ms: %.2f"):format(
    "  1 MB", ours, cjson, ours / cjson))
end

-- Prints the aims, too: an empty call with session, policy and event takes at most twice the time
-- of one without, and at most 10 us more; with LARGE MB in the session, a call that writes costs
-- only what it writes.
local function print_session(f)
  print(("%-26s %.1f us an empty call, with session, policy and event %.1f: %.2f (aim 2), "
    .. "%.1f us more (aim 10)"):format("sessions", f.empty_us, f.full_us, f.full_ratio,
    f.full_more_us))
  print(("%-26s %.1f us a call, with 1 MB held %.1f, with %d MB %.1f: %.2f, dropped %.1f"):format(
    "  a value written", f.dispatch_us, f.small_us, f.large_mb, f.large_us, f.large_ratio,
    f.dropped_us))
  print(("%-26s %.0f us for each of %d MB, %.0f where 1 MB is held"):format(
    "  a snapshot written", f.snapshot_us.large, f.large_mb, f.snapshot_us.small))
end

local function print_entities(f)
  print(("%-26s %.2f us a tool, %.2f where they come again, %.0f bytes a tool"):format(
    "entities", f.discover_us, f.bind_us, f.bytes))
  print(("%-26s %.2f to a tenth as many, %.0f bytes left afterwards"):format(
    ("  %d of %d methods"):format(f.n, f.methods), f.discover_us / f.small_us, f.left))
end

local TASKS = {
  { "task", "us a task: started, ended, awaited" }, { "yield", "us a yield" },
  { "channel", "us a value through a channel" },
  { "at_once", "us a task that waits among all", "at_once_us" },
  { "bytes", "bytes of each at work", "bytes" },
}

local function print_tasks(f)
  for i, row in ipairs(TASKS) do
    local key = row[3] or row[1] .. "_us"
    local ours, plain = f.tasks[key], f.plain[key]
    print(("%-26s %-40s %9.2f, a coroutine %9.2f: %.2f"):format(i == 1 and "tasks" or "", row[2],
      ours, plain, ours / plain))
  end
  f = f.tasks
  print(("%-26s %-40s %9.2f, among 100 %9.2f: %.2f"):format("",
    "us a wait, wake and cancel of 10,000", f.among_many_us, f.among_few_us,
    f.among_many_us / f.among_few_us))
  print(("%-26s %-40s %9.2f, at the top %9.2f: %.2f"):format("", "us a run in a task",
    f.run_in_task_us, f.run_us, f.run_in_task_us / f.run_us))
  print(("%-26s %.2f us a call of ah.map, %.2f of ah.with_timeout"):format("", f.map_us,
    f.with_timeout_us))
end

-- The plain coroutines are run by the interpreter that runs this.
local function measure_tasks(size)
  local interpreter = arg[-1] or "lua5.4"
  return { plain = figures(interpreter, ROOT .. "bench/tasks.lua", "plain",
      table.unpack(size.tasks)),
    tasks = figures(AGENTHOST, ROOT .. "bench/tasks.lua", "tasks", table.unpack(size.tasks)) }
end

-- Prints with the aims what turns with a store take more than turns without one.
local function print_store(f)
  for i, row in ipairs(f.turns) do
    print(("%-26s %.1f us a turn of %g KiB, in memory %.1f: %.2f, in a file %.1f: %.2f, "
      .. "%.1f us more%s"):format(i == 1 and "stores" or "", row.none_us, row.kib, row.memory_us,
      row.memory_us / row.none_us, row.sqlite_us, row.sqlite_us / row.none_us,
      row.sqlite_more_us, row.kib == 2 and " (aim 60)" or ""))
  end
  local few, much = f.turns[2], f.turns[3]
  print(("%-26s %.1f us more for each further KiB (aim 8)"):format("",
    (much.sqlite_more_us - few.sqlite_more_us) / (much.kib - few.kib)))
  print(("%-26s ready in %.1f ms (aim 50), %.2f bytes of the file a byte said"):format(
    "  1000 turns of 2 KiB", f.long.ready_ms, f.long.bytes / f.long.said))
  print(("%-26s %.0f KiB a store with 100 conversations, %.1f a further one that waits (aim 2)")
    :format("  memory", f.sqlite.first - f.none.first, f.sqlite.each - f.none.each))
end

local function measure_store(size)
  local turns = size.store[1]
  local s <close> = server.start { turns = turns, log = false, seconds = 3600 }
  local p = assert(io.popen "mktemp -d")
  local folder = p:read "l"
  p:close()
  local function run(...)
    return figures(AGENTHOST, ROOT .. "bench/store.lua", s.url .. "/v1", folder, ...)
  end
  local f = run(table.unpack(size.store))
  f.none, f.sqlite = run(turns, 1, 1, "waits", "none"), run(turns, 1, 1, "waits", "sqlite")
  os.execute("rm -rf " .. quote(folder))
  return f
end

-- Prints with the aims what a server of MCP takes more than the same messages sent by hand.
local function print_mcp(f)
  print(("%-26s %.0f us of cpu a call, by hand %.0f: %.2f, %.0f us more (aim 100)"):format("mcp",
    f.call_mcp_cpu_us, f.call_by_hand_cpu_us, f.call_mcp_cpu_us / f.call_by_hand_cpu_us,
    f.call_ours_cpu_us))
  print(("%-26s %.1f ms of cpu, by hand %.1f: %.1f more (aim 5)"):format("  a start",
    f.start_mcp_cpu_us / 1e3, f.start_by_hand_cpu_us / 1e3, f.start_ours_cpu_us / 1e3))
  print(("%-26s %.1f ms of cpu, with the loading of the client"):format("  the first of a process",
    f.first_mcp_cpu_us / 1e3))
end

-- Returns the measures without a raw loop.
local function alone(size, complete)
  local session = complete
    and figures(AGENTHOST, ROOT .. "bench/session.lua", table.unpack(size.session))
  local entities = complete and figures(AGENTHOST, ROOT .. "bench/entities.lua", size.entities)
  return { schema = figures(SCHEMA, size.schema), session = session or nil,
    entities = entities or nil, tasks = complete and measure_tasks(size) or nil,
    store = complete and measure_store(size) or nil,
    mcp = complete and figures(AGENTHOST, ROOT .. "bench/mcp.lua", table.unpack(size.mcp)) or nil }
end

local function print_json(rows, opts, complete, figures_alone)
  local measures = {}
  for _, row in ipairs(rows) do
    measures[row.key] = row
    row.key, row.title = nil, nil
  end
  print(server.encode {
    complete = complete, rounds = opts.rounds, measures = measures,
    schema = figures_alone.schema, session = figures_alone.session,
    entities = figures_alone.entities, tasks = figures_alone.tasks,
    store = figures_alone.store, mcp = figures_alone.mcp,
  })
end

-- -- the command line -----------------------------------------------------------------------------

local function read_options()
  local opts, i = { size = SIZES.full }, 1
  while arg[i] do
    if arg[i] == "--quick" then
      opts.size = SIZES.quick
    elseif arg[i] == "--json" then
      opts.json = true
    elseif arg[i] == "--rounds" and math.tointeger(tonumber(arg[i + 1])) then
      i = i + 1
      opts.rounds = math.max(1, math.tointeger(tonumber(arg[i])))
    elseif arg[i] == "--only" and MEASURES[arg[i + 1]] then
      i = i + 1
      opts.only = arg[i]
    else
      fail(("unknown option %s (known: --quick, --json, --rounds N, --only %s)"):format(
        arg[i], table.concat(ORDER, "|")))
    end
    i = i + 1
  end
  opts.rounds = opts.rounds or opts.size.rounds
  return opts
end

local function check_binaries()
  for _, name in ipairs { BUILD .. "/httpd", RAW, MANY, SCHEMA } do
    if not exists(name) then
      fail(name .. " is not built: run `make bench`, or set AGENTHOST_BUILD")
    end
  end
  return exists(AGENTHOST)
end

local function main()
  local opts = read_options()
  local complete = check_binaries()
  local all = {}
  if not opts.json then
    print_head()
  end
  for _, name in ipairs(opts.only and { opts.only } or ORDER) do
    for _, row in ipairs(measure(MEASURES[name](opts.size), opts.rounds, complete)) do
      all[#all + 1] = row
      if not opts.json then
        print_row(row)
      end
    end
  end
  local f = opts.only and {} or alone(opts.size, complete)
  if opts.json then
    print_json(all, opts, complete, f)
  elseif f.schema then
    print_schema(f.schema)
  end
  if f.session and not opts.json then
    print_session(f.session)
    print_entities(f.entities)
    print_tasks(f.tasks)
    print_store(f.store)
    print_mcp(f.mcp)
  end
  if not complete then
    fail(AGENTHOST .. " is not built, so there is nothing to compare: run `make`")
  end
end

main()
