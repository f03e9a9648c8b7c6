-- Counts the lines of the C sources that the specs have run. Reads the files of a build with
-- --coverage (make coverage) through gcov. Prints the lines of each file, of each floor, and of the
-- C core (all floors that do not know Lua). Lines in headers do not count. Exits with 1 if the core
-- is below LEAST.
--
--   lua5.4 spec/support/coverage.lua BUILD LEAST            the summary
--   lua5.4 spec/support/coverage.lua BUILD LEAST FILE...    the lines of FILE never run
local FLOORS = { "base", "schema", "model", "state", "prompt", "wire", "run", "io", "host", "lua",
  "cli" }
local CORE = { base = true, schema = true, model = true, state = true, prompt = true, wire = true,
  run = true, io = true, host = true }

local build, least = arg[1], tonumber(arg[2])

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function lines_of(command)
  local list = {}
  local p = assert(io.popen(command))
  for line in p:lines() do
    list[#list + 1] = line
  end
  assert(p:close(), "failed: " .. command)
  return list
end

-- gcov's text: "count:number:line". A count is a number (with a star if some of its blocks were not
-- run), ##### for a line that was never run, - for a line without code. The headers' sections come
-- after the file's own.
local function read_file(source)
  local object = ("%s/%s.gcda"):format(build, (source:gsub("%.c$", "")))
  local command = ("gcov --stdout --object-directory %s %s 2>/dev/null"):format(
    quote(object), quote(source))
  local run, all, never = 0, 0, {}
  local own
  for _, line in ipairs(lines_of(command)) do
    local count, number, text = line:match("^%s*([^:]+):%s*(%d+):(.*)$")
    if number == "0" and text:find("^Source:") then
      own = text == "Source:" .. source
    elseif own and count and count:find("^%d") then
      run, all = run + 1, all + 1
    elseif own and count and count:find("^[#=]") then
      all = all + 1
      never[#never + 1] = number .. ":" .. text
    end
  end
  assert(all > 0, "nothing is known of " .. source .. ": was " .. build .. " built for coverage?")
  return run, all, never
end

local function print_share(run, all, name)
  print(("%6.1f %%  %5d of %5d  %s"):format(100 * run / all, run, all, name))
end

local function print_floor(floor)
  local run, all = 0, 0
  for _, source in ipairs(lines_of("ls src/" .. floor .. "/*.c")) do
    local r, a = read_file(source)
    print_share(r, a, source)
    run, all = run + r, all + a
  end
  return run, all
end

local function print_summary()
  local floors, core = {}, { run = 0, all = 0 }
  for i, floor in ipairs(FLOORS) do
    local run, all = print_floor(floor)
    floors[i] = { run, all, "src/" .. floor }
    if CORE[floor] then
      core.run, core.all = core.run + run, core.all + all
    end
  end
  print()
  for _, f in ipairs(floors) do
    print_share(table.unpack(f))
  end
  print_share(core.run, core.all, "the C core")
  return 100 * core.run / core.all >= least
end

if not arg[3] then
  local enough = print_summary()
  if not enough then
    io.stderr:write(("coverage: the C core is below %g %% of lines\n"):format(least))
  end
  os.exit(enough)
end
for i = 3, #arg do
  local _, _, never = read_file(arg[i])
  print(arg[i])
  print(table.concat(never, "\n"))
end
