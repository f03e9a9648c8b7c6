-- The floors of the house: which floor may use which, and what a pure one may not use at all.
-- lua.h, curl.h, cJSON.h, pcre2.h and microhttpd.h have one door each. Headers have no circles, and
-- no two files have one name. Every file opens with what it is for, and no function of the core is
-- longer than LONGEST lines. Run by `make lint`.

-- What a floor may use: itself, these, and what these may use.
local ARROWS = {
  base = {},
  schema = { "base" },
  model = { "schema" },
  state = { "model" },
  prompt = { "state" },
  wire = { "model" },
  run = { "prompt", "wire" },
  io = { "base" },
  host = { "run", "io" },
  lua = { "host" },
  cli = {}, -- the public headers alone
}

-- They get the world as arguments: no clock, no files, no network, no threads.
local PURE = { base = true, schema = true, model = true, state = true, prompt = true, wire = true,
  run = true }
local PLAIN = {}
for name in ("assert ctype errno float inttypes limits math stdalign stdarg stdbool stddef stdint "
  .. "stdio stdlib string strings"):gmatch "%l+" do
  PLAIN[name .. ".h"] = true
end

local DOORS = { ["lua.h"] = "^src/lua/", ["lauxlib.h"] = "^src/lua/", ["lualib.h"] = "^src/lua/",
  ["curl/curl.h"] = "^src/io/http", ["cjson/cJSON.h"] = "^src/base/json",
  ["pcre2.h"] = "^src/base/pattern", ["microhttpd.h"] = "^src/%l+/%l+_server" }

-- Includes that still break these rules: none may be added, and one that is gone is taken out.
local LEFT = {
  "src/cli/agent.c io/file.h",
  "src/cli/agent.h base/buf.h",
  "src/cli/missing.c base/near.h",
  "src/cli/mock_plan.h base/json.h",
  "src/cli/options.c base/err.h",
  "src/cli/options.c base/near.h",
  "src/cli/pairs.h base/buf.h",
  "src/cli/settings.c base/json.h",
  "src/cli/settings.c base/near.h",
  "src/cli/tally.h base/json.h",
  "src/cli/terminal.c base/err.h",
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

local left = {}
for i, edge in ipairs(LEFT) do
  left[edge] = i
end

local function why_not(path, floor, name)
  local theirs = name:match("^(%l+)/.*%.h$")
  if theirs and may[theirs] then
    return not may[floor][theirs] and floor .. " must not use " .. name
  elseif DOORS[name] then
    return not path:match(DOORS[name]) and name .. " has another door"
  end
  return PURE[floor] and not PLAIN[name] and name ~= "agenthost.h"
    and floor .. " is pure and must not use " .. name
end

local includes = {} -- of our headers
local function check_line(path, floor, n, line)
  local name = line:match("^%s*#%s*include%s*[<\"]([^>\"]+)")
  if not name then
    return
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

-- Of text as clang-format leaves it: braces of functions stand alone at the margin.
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
  local n, opened = 0, nil
  for line in io.lines(path) do
    n = n + 1
    check_line(path, floor, n, line)
    opened = check_length(path, n, line, opened)
  end
end)

-- A header is looked at when all that it includes was.
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

for _, edge in ipairs(LEFT) do
  if edge then
    fault("spec/support/floors.lua", 1, "no longer so, to be taken out of LEFT: " .. edge)
  end
end
os.exit(faults == 0)
