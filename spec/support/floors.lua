-- The floors of the house: a file may include its own floor and those above it, and
-- lua.h, curl.h, cJSON.h and pcre2.h have one door each. Run by `make lint`.
local FLOORS = { "base", "model", "prompt", "wire", "run", "lua", "cli" }
local DOORS = { ["lua.h"] = "^src/lua/", ["lauxlib.h"] = "^src/lua/", ["lualib.h"] = "^src/lua/",
  ["curl/curl.h"] = "^src/wire/http", ["cjson/cJSON.h"] = "^src/base/json",
  ["pcre2.h"] = "^src/model/schema_pattern", ["microhttpd.h"] = "^src/cli/mock_server" }

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

local list = assert(io.popen("find src -name '*.[ch]' | sort"))
for path in list:lines() do
  local floor = path:match("^src/(%a+)/")
  local n = 0
  for line in io.lines(path) do
    n = n + 1
    check_line(path, floor, n, line)
  end
end
list:close()
os.exit(faults == 0)
