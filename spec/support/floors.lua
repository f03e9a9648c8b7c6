-- The floors of the house: a file may include its own floor and those above it, and
-- lua.h, curl.h, cJSON.h, pcre2.h and yaml.h have one door each. Every file opens with what it is
-- for, and no function of the core is longer than LONGEST lines. Run by `make lint`.
local FLOORS = { "base", "model", "prompt", "wire", "run", "lua", "cli" }
local DOORS = { ["lua.h"] = "^src/lua/", ["lauxlib.h"] = "^src/lua/", ["lualib.h"] = "^src/lua/",
  ["curl/curl.h"] = "^src/wire/http", ["cjson/cJSON.h"] = "^src/base/json",
  ["pcre2.h"] = "^src/model/schema_pattern", ["microhttpd.h"] = "^src/cli/mock_server",
  ["yaml.h"] = "^src/base/yaml%.c$" }

local LONGEST = 70

local rank = {}
for i, name in ipairs(FLOORS) do
  rank[name] = i
end

local faults = 0
local function fault(...)
  faults = faults + 1
  io.stderr:write(("%s:%d: %s\n"):format(...))
end

local function check_line(path, floor, n, line)
  local name = line:match("^%s*#%s*include%s*[<\"]([^>\"]+)")
  if not name then
    return
  end
  local theirs = rank[name:match("^(%a+)/")]
  if theirs and theirs > rank[floor] then
    fault(path, n, floor .. " must not use " .. name)
  end
  local from = name:match("^(%a+)/")
  if floor == "cli" and theirs and from ~= "cli" and from ~= "base" then
    fault(path, n, "the command uses only agenthost.h and base")
  end
  if DOORS[name] and not path:match(DOORS[name]) then
    fault(path, n, name .. " has another door")
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

each("find src include lua spec fuzz bench examples -name '*.[ch]' -o -name '*.cpp' "
  .. "-o -name '*.lua'", check_opening)
each("find src -name '*.[ch]'", function(path)
  local n, opened = 0, nil
  for line in io.lines(path) do
    n = n + 1
    check_line(path, path:match "^src/(%a+)/", n, line)
    opened = check_length(path, n, line, opened)
  end
end)
os.exit(faults == 0)
