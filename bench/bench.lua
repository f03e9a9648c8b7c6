-- What agenthost costs beside a raw libcurl + cJSON loop, measured in the same run
-- against the same loopback server. Only the ratios mean something: the
-- milliseconds are this machine's, today.
--
--   lua5.4 bench/bench.lua [--quick] [--json] [--rounds N]
--
-- Binaries are taken from $AGENTHOST_BUILD, or ./build: httpd, raw, schema, agenthost.
-- Each round runs raw, raw --keep and agenthost in turn; the medians are compared.
--   loop      many short conversations
--   marginal  the second half of one long conversation, by the turn
--   start-up  an empty script beside a raw that makes no request
--   schemas   a tool call checked, and 1 MB scanned and checked beside cJSON parsing it
-- The raw loop checks nothing, retries nothing and keeps no transcript.
local ROOT = arg[0]:match("^(.*)bench/[^/]*$") or "./"
package.path = ROOT .. "spec/?.lua;" .. package.path

local server = require "support.server"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local RAW, AGENTHOST, SCHEMA = BUILD .. "/raw", BUILD .. "/agenthost", BUILD .. "/schema"
local VARIANTS = { "raw", "keep", "agenthost" }

local SIZES = {
  full = { rounds = 5, loop = { 200, 10 }, marginal = { 1, 400 }, starts = 50, schema = 40 },
  quick = { rounds = 2, loop = { 20, 10 }, marginal = { 1, 60 }, starts = 5, schema = 3 },
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

-- Runs a command that prints one JSON object last.
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

-- From a list of { field = number } to the medians of the fields.
local function medians(list)
  local result = {}
  for field in pairs(list[1]) do
    local values = {}
    for i, one in ipairs(list) do
      values[i] = one[field]
    end
    result[field] = median(values)
  end
  return result
end

local function run_variant(variant, base, conversations, turns)
  if variant == "agenthost" then
    return figures(AGENTHOST, ROOT .. "bench/turns.lua", base, conversations, turns)
  end
  local keep = variant == "keep" and "--keep" or nil
  return figures(RAW, base .. "/chat/completions", conversations, turns, keep)
end

-- Each run has its own path: the server counts the turns of a path. The first
-- round warms the caches and does not count.
local function measure(variants, rounds, conversations, turns)
  local s <close> = server.start { turns = turns, log = false, seconds = 3600 }
  local runs = {}
  for round = 0, rounds do
    for _, variant in ipairs(variants) do
      local base = ("%s/%s%d/v1"):format(s.url, variant, round)
      local got = run_variant(variant, base, conversations, turns)
      runs[variant] = runs[variant] or {}
      runs[variant][round] = got
    end
  end
  for variant, list in pairs(runs) do
    runs[variant] = medians(list)
  end
  return runs
end

-- Microseconds by the turn, of all turns or of the late ones.
local function by_turn(runs, prefix)
  local result = {}
  for variant, f in pairs(runs) do
    local turns = f.conversations * (prefix == "late_" and f.turns - f.turns // 2 or f.turns)
    result[variant] = { cpu = f[prefix .. "cpu_ms"] * 1e3 / turns,
      wall = f[prefix .. "wall_ms"] * 1e3 / turns }
  end
  return result
end

local function measure_start(with_agenthost, rounds, starts)
  local empty = os.tmpname()
  local commands = { raw = { RAW, "http://127.0.0.1:1/", 0, 0 } }
  if with_agenthost then
    commands.agenthost = { AGENTHOST, empty }
  end
  local result = {}
  for variant, command in pairs(commands) do
    local list = {}
    for round = 1, rounds do
      local f = figures(RAW, "--run", starts, table.unpack(command))
      list[round] = { cpu = f.cpu_ms * 1e3, wall = f.wall_ms * 1e3, peak = f.peak_kb }
    end
    result[variant] = medians(list)
  end
  os.remove(empty)
  return result
end

local function ratio(row, variant, to)
  if row[variant] and row[to] then
    return row[variant] / row[to]
  end
end

local function round3(v)
  return v and tonumber(("%.3f"):format(v))
end

-- One line of the table: a measure of all variants, and agenthost's ratios to the others.
local function row_of(key, title, unit, by_variant, field)
  local row = { key = key, title = title, unit = unit }
  for _, variant in ipairs(VARIANTS) do
    row[variant] = round3(by_variant[variant] and by_variant[variant][field])
  end
  row.to_raw = round3(ratio(row, "agenthost", "raw"))
  row.to_keep = round3(ratio(row, "agenthost", "keep"))
  return row
end

local function cell(v, format)
  return v and format:format(v) or "-"
end

local function print_table(rows)
  local line = "%-24s %-8s %10s %10s %10s %8s %8s"
  print(line:format("", "", "raw", "raw keep", "agenthost", "to raw", "to keep"))
  for _, r in ipairs(rows) do
    print(line:format(r.title, r.unit, cell(r.raw, "%.0f"), cell(r.keep, "%.0f"),
      cell(r.agenthost, "%.0f"), cell(r.to_raw, "%.2f"), cell(r.to_keep, "%.2f")))
  end
end

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
    else
      fail("unknown option " .. arg[i] .. " (known: --quick, --json, --rounds N)")
    end
    i = i + 1
  end
  opts.rounds = opts.rounds or opts.size.rounds
  return opts
end

local function check_binaries()
  for _, name in ipairs { BUILD .. "/httpd", RAW, SCHEMA } do
    if not exists(name) then
      fail(name .. " is not built: run `make bench`, or set AGENTHOST_BUILD")
    end
  end
  return exists(AGENTHOST)
end

local function collect(size, rounds, with_agenthost)
  local variants = with_agenthost and VARIANTS or { "raw", "keep" }
  local loop = by_turn(measure(variants, rounds, table.unpack(size.loop)), "")
  local late = by_turn(measure(variants, rounds, table.unpack(size.marginal)), "late_")
  local start = measure_start(with_agenthost, rounds, size.starts)
  local turns = size.marginal[2]
  local loop_title = ("loop %d x %d, a turn"):format(table.unpack(size.loop))
  local late_title = ("turns %d to %d, a turn"):format(turns // 2, turns)
  return {
    row_of("loop.cpu_us", loop_title, "us cpu", loop, "cpu"),
    row_of("loop.wall_us", "", "us wall", loop, "wall"),
    row_of("marginal.cpu_us", late_title, "us cpu", late, "cpu"),
    row_of("marginal.wall_us", "", "us wall", late, "wall"),
    row_of("start.cpu_us", "start-up", "us cpu", start, "cpu"),
    row_of("start.wall_us", "", "us wall", start, "wall"),
    row_of("start.peak_kb", "", "kB peak", start, "peak"),
  }
end

local function print_schema(f)
  local ours, cjson = (f.scan_us + f.large_us) / 1e3, f.cjson_us / 1e3
  print(("%-24s %.2f us a call of %d bytes"):format("schemas", f.call_us, f.call_bytes))
  print(("%-24s %.1f ms scanned and checked, cJSON parses in %.1f ms: %.2f"):format(
    "  1 MB", ours, cjson, ours / cjson))
end

local function print_json(rows, rounds, complete, schema)
  local measures = {}
  for _, row in ipairs(rows) do
    measures[row.key] = row
    row.key, row.title, row.unit = nil, nil, nil
  end
  print(server.encode {
    complete = complete, rounds = rounds, measures = measures, schema = schema,
  })
end

local function main()
  local opts = read_options()
  local complete = check_binaries()
  local rows = collect(opts.size, opts.rounds, complete)
  local schema = figures(SCHEMA, opts.size.schema)
  if opts.json then
    print_json(rows, opts.rounds, complete, schema)
  else
    print_table(rows)
    print_schema(schema)
  end
  if not complete then
    fail(AGENTHOST .. " is not built, so there is nothing to compare: run `make`")
  end
end

main()
