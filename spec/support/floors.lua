-- Checks the floors of the sources: which floor may use which, and what a pure floor may not use.
-- Inside a floor, the same holds for the modules of modules.lua. Reads the includes, and the
-- symbols of the object files in the folder of the first argument, if there is one. lua.h, curl.h,
-- cJSON.h, pcre2.h, yaml.h and microhttpd.h may each be included in one place only, and so may the
-- headers of a processor's instructions. Headers have no circles, and no two files have one name.
-- Every file opens with its purpose, and no function of the core is longer than LONGEST lines. Run
-- by `make lint`.
local MODULES = dofile((arg[0]:gsub("floors%.lua$", "modules.lua")))

-- The floors that a floor can use, besides itself; it can use their floors, too.
local ARROWS = {
  base = {},
  schema = { "base" },
  model = { "schema" },
  state = { "model" },
  prompt = { "state" },
  wire = { "model" },
  run = { "prompt", "wire" },
  io = { "base" },
  journal = { "run" },
  host = { "journal", "io" },
  lua = { "host" },
  cli = {}, -- only the public headers
}

-- Pure floors get the world as arguments: no clock, no files, no network, no threads.
local PURE = { base = true, schema = true, model = true, state = true, prompt = true, wire = true,
  run = true, journal = true }
local PLAIN = {}
for name in ("assert ctype errno float inttypes limits math stdalign stdarg stdbool stddef stdint "
  .. "stdio stdlib string strings"):gmatch "%l+" do
  PLAIN[name .. ".h"] = true
end

local DOORS = { ["lua.h"] = "^src/lua/", ["lauxlib.h"] = "^src/lua/", ["lualib.h"] = "^src/lua/",
  ["curl/curl.h"] = "^src/%l+/http", ["cjson/cJSON.h"] = "^src/base/json",
  ["pcre2.h"] = "^src/base/pattern", ["microhttpd.h"] = "^src/%l+/%l+_server",
  ["yaml.h"] = "^src/io/yaml%.c$", ["sqlite3.h"] = "^src/io/store_sqlite",
  ["cpuid.h"] = "^src/base/sha256%.c$", ["immintrin.h"] = "^src/base/sha256%.c$" }

-- Includes that still break these rules. New ones must not be added; remove those that are mended.
local LEFT = {
}

local LONGEST = 70

local faults = 0
local function fault(...)
  faults = faults + 1
  io.stderr:write(("%s:%d: %s\n"):format(...))
end

local may = {}
local function reach(from, floor)
  may[from][floor] = true
  for _, next in ipairs(ARROWS[floor]) do
    reach(from, next)
  end
end
for floor in pairs(ARROWS) do
  may[floor] = {}
  reach(floor, floor)
end

local left, ALL_LEFT = {}, {}
for i, edge in ipairs(LEFT) do
  left[edge], ALL_LEFT[i] = i, edge
end

-- -- modules ---------------------------------------------------------------------------------

-- "lua/lua_x.h", or "lua/lua_x" for both files of a name -> { its name, its rank in its floor }
local module_of = {}
local table_of = "spec/support/modules.lua"

for floor, row in pairs(MODULES) do
  for rank, module in ipairs(row) do
    for file in module[2]:gmatch "%S+" do
      local name = floor .. "/" .. (row.prefix or "") .. file
      if module_of[name] then
        fault(table_of, 1, "in two modules: " .. name)
      end
      module_of[name] = { name = module[1], rank = rank }
    end
  end
end

-- Returns the module of "lua/lua_x.c"; nil if its floor has no row, or no module has the file.
local function find_module(file)
  return module_of[file] or module_of[file:match "^(.*)%.[ch]$"]
end

-- Returns the fault if `file` uses a higher module; both are of one floor.
local function goes_up(file, theirs)
  local from, to = find_module(file), find_module(theirs)
  return from and to and to.rank > from.rank
    and ("module %s must not use %s of module %s, which stands above it"):format(from.name, theirs,
      to.name)
end

local function check_module(path)
  local file = path:sub(#"src/" + 1)
  local name = module_of[file] and file or file:match "^(.*)%.[ch]$"
  if module_of[name] then
    module_of[name].there = true
  elseif MODULES[file:match "^%l+"] then
    fault(path, 1, "in no module: say in " .. table_of .. " to which one it belongs")
  end
end

local function why_not(path, floor, name)
  local theirs = name:match("^(%l+)/.*%.h$")
  if theirs == floor then
    return goes_up(path:sub(#"src/" + 1), name)
  elseif theirs and may[theirs] then
    return not may[floor][theirs] and floor .. " must not use " .. name
  elseif DOORS[name] then
    return not path:match(DOORS[name]) and name .. " has another door"
  end
  return PURE[floor] and not PLAIN[name] and name ~= "agenthost.h"
    and floor .. " is pure and must not use " .. name
end

local includes = {} -- of our headers
local callers = {}  -- "base/err.h" -> { run = true, ["its module"] = true }

-- Notes which floor includes the header: a name, "its floor" or "its module".
local function note_caller(path, floor, header)
  local theirs, file = header:match("^(%l+)/.*%.h$"), path:sub(#"src/" + 1)
  if theirs then
    local from, to = find_module(file), find_module(header)
    callers[header] = callers[header] or {}
    callers[header][theirs ~= floor and floor or from and from == to and "its module"
      or from and to and from.name == to.name and "its module" or "its floor"] = true
  end
end

local function check_line(path, floor, n, line)
  local name = line:match("^%s*#%s*include%s*[<\"]([^>\"]+)")
  if not name then
    return
  end
  if path:gsub("%.[ch]$", "") ~= "src/" .. name:gsub("%.h$", "") then
    note_caller(path, floor, name)
  end
  if path:find "%.h$" then
    local from = path:sub(#"src/" + 1)
    includes[from] = includes[from] or {}
    table.insert(includes[from], name)
  end
  local edge = path .. " " .. name
  local why = why_not(path, floor, name)
  if why and not left[edge] then
    fault(path, n, why)
  elseif why then
    LEFT[left[edge]] = false
  end
end

local function check_opening(path)
  for line in io.lines(path) do
    if not line:find "^#!" then
      if not line:find "^/[*/]" and not line:find "^%-%-" then
        fault(path, 1, "the file does not open with what it is for")
      end
      return
    end
  end
end

-- Reads text that clang-format has formatted: braces of functions are at the margin.
local function check_length(path, n, line, opened)
  if line == "{" then
    return n
  elseif line == "}" and opened and n - opened >= LONGEST then
    fault(path, opened, ("a function of %d lines, %d are the most"):format(n - opened, LONGEST))
  end
  return not line:find "^}" and opened or nil
end

local function each(find, check)
  local list <close> = assert(io.popen(find .. " | sort"))
  for path in list:lines() do
    check(path)
  end
end

local names = {}
local function check_name(path)
  local name = path:match "[^/]+$"
  if names[name] then
    fault(path, 1, "a second file of this name: " .. names[name])
  end
  names[name] = path
end

each("find src include lua spec fuzz bench examples -name '*.[ch]' -o -name '*.cpp' "
  .. "-o -name '*.lua'", check_opening)
each("find src -name '*.[ch]'", function(path)
  local floor = path:match "^src/(%l+)/"
  if not ARROWS[floor] then
    return fault(path, 1, "on no floor")
  end
  check_name(path)
  check_module(path)
  local n, opened = 0, nil
  for line in io.lines(path) do
    n = n + 1
    check_line(path, floor, n, line)
    opened = check_length(path, n, line, opened)
  end
end)

-- Checks that headers do not include each other in a circle; depth first.
local state = {}
local function check_circle(header, on_the_way)
  if state[header] == "open" then
    return fault("src/" .. header, 1, "a circle of headers: " .. on_the_way .. " " .. header)
  elseif state[header] then
    return
  end
  state[header] = "open"
  for _, name in ipairs(includes[header] or {}) do
    check_circle(name, on_the_way .. " " .. header)
  end
  state[header] = "done"
end
for header in pairs(includes) do
  check_circle(header, "")
end

-- -- callers -----------------------------------------------------------------------------------

-- The order in which the opening of a header names its callers.
local CALLERS = { "its module", "its floor", "base", "schema", "model", "state", "prompt", "wire",
  "run", "journal", "io", "host", "lua", "cli" }

local MANY = 5 -- floors that are not named one by one

local function found_callers(header)
  local list, found = {}, callers[header] or {}
  found["its module"] = found["its module"] and not found["its floor"]
  for _, name in ipairs(CALLERS) do
    list[#list + 1] = found[name] and name or nil
  end
  local own = list[1] and list[1]:find "^its" and 1 or 0
  if #list - own >= MANY then
    list = own == 1 and { list[1], "floors above" } or { "floors above" }
  end
  return table.concat(list, ", ")
end

each("find src -name '*.h'", function(path)
  local file <close> = assert(io.open(path))
  local opening = file:read("a"):match("^/%*(.-)%*/"):gsub("%s*\n %*%s*", " ")
  local said, found = opening:match("Callers: ([%l, ]+)%.$"), found_callers(path:sub(#"src/" + 1))
  if (said or opening:match "Callers: ([%l, ]+)%.%s*$") ~= found then
    fault(path, 1, ("the opening comment must end with 'Callers: %s.'"):format(found))
  end
end)

-- -- symbols -----------------------------------------------------------------------------------

-- Prints the object files that are as new as their sources.
local OBJECTS = [[
for object in $(find '%s/src' -name '*.o' 2>/dev/null | sort); do
  source=src/${object#'%s/src/'}; source=${source%%.o}.c
  if [ -f "$source" ] && ! [ "$source" -nt "$object" ]; then echo "$object"; fi
done]]

local function read_objects(build)
  local list <close> = assert(io.popen(
    ("command -v nm >/dev/null && { %s\n} | xargs -r nm -gA 2>/dev/null"):format(
      OBJECTS:format(build, build))))
  local defined, used, n = {}, {}, 0
  for line in list:lines() do
    local file, kind, symbol = line:sub(#build + #"/src/" + 1):match "^(.-)%.o:%x* *(%a) ([%w_]+)$"
    if file and (symbol:find "^ah_" or symbol:find "^luaopen_") then
      n = n + 1
      if kind == "U" then
        table.insert(used, { file = file .. ".c", symbol = symbol })
      else
        defined[symbol] = file .. ".c"
      end
    end
  end
  return defined, used, n
end

-- Returns the set of functions that the public headers declare, for use by the command.
local function read_public()
  local public = {}
  for _, header in ipairs { "include/agenthost.h", "include/agenthost_lua.h" } do
    local file <close> = io.open(header)
    for name in (file and file:read "a" or ""):gmatch "([%l_]+) ?%(" do
      public[name] = true
    end
  end
  return public
end

-- Returns the pairs of floors in LEFT, such as "cli base", as a set.
local function read_left()
  local pairs_left = {}
  for _, edge in ipairs(ALL_LEFT) do
    pairs_left[edge:match "^src/(%l+)" .. " " .. edge:match " (%l+)"] = true
  end
  return pairs_left
end

local function why_no_call(file, theirs, symbol, public, pairs_left)
  local floor, other = file:match "^%l+", theirs:match "^%l+"
  if floor == other then
    return goes_up(file, theirs)
  elseif not may[floor] or may[floor][other] or pairs_left[floor .. " " .. other] then
    return false
  end
  return not (floor == "cli" and public[symbol]) and floor .. " must not use " .. theirs
end

local function check_symbols(build)
  local public, pairs_left = read_public(), read_left()
  local defined, used, n = read_objects(build)
  if n == 0 then
    print("floors: nothing is built in " .. build .. ", symbols are not looked at")
  end
  for _, use in ipairs(used) do
    local theirs = defined[use.symbol]
    local why = theirs and why_no_call(use.file, theirs, use.symbol, public, pairs_left)
    if why then
      fault("src/" .. use.file, 1, why .. ": " .. use.symbol)
    end
  end
end

if arg[1] then
  check_symbols(arg[1])
end

for name, module in pairs(module_of) do
  if not module.there then
    fault(table_of, 1, "no such file, to be taken out of " .. module.name .. ": " .. name)
  end
end
for _, edge in ipairs(LEFT) do
  if edge then
    fault("spec/support/floors.lua", 1, "no longer so, to be taken out of LEFT: " .. edge)
  end
end
os.exit(faults == 0)
