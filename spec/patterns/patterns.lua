-- Compares regular expressions in the library, in JavaScript, and in PCRE2 with its options for
-- ECMAScript:
--
--   lua5.4 spec/patterns/patterns.lua FOLDER [COUNT [SEED]]
--
-- FOLDER has the build, and gets the files for node; the expressions are from grammar.lua. The
-- library must accept the same expressions as JavaScript and find the same matches, except for what
-- docs/reference/schema.md says that it refuses. Other differences are printed and fail the
-- program. PCRE2's results are counted beside them.
--
-- A difference may be an error of node: with seed 2, node 20 finds (?!\k<n>) in a text where the
-- group has matched nothing, which is impossible.
local folder = assert(arg[1], "say where the build is")
local COUNT, SEED = tonumber(arg[2] or 20000), tonumber(arg[3] or 15)
package.cpath = folder .. "/?.so;" .. package.cpath
package.path = "spec/?.lua;" .. package.path
local ahtest = require "ahtest"
local expressions = require "patterns.grammar"

-- The documented reasons to refuse an expression that JavaScript accepts
-- (docs/reference/schema.md).
local KNOWN = { "^a lookbehind that may be of any length",
  "^a reference to a group that is repeated otherwise",
  "^a quantifier of more than 65535" }

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c)
    return ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function write(path, cases)
  local f <close> = assert(io.open(path, "wb"))
  for _, case in ipairs(cases) do
    local parts = { quoted(case.text) }
    for i, subject in ipairs(case.subjects) do
      parts[i + 1] = quoted(subject)
    end
    f:write("[", table.concat(parts, ","), "]\n")
  end
end

local function verdicts(path)
  local pipe <close> = assert(io.popen(("node spec/patterns/ecmascript.js '%s'"):format(path)))
  local list = {}
  for line in pipe:lines() do
    list[#list + 1] = line
  end
  return list
end

local function is_known(why)
  for _, pattern in ipairs(KNOWN) do
    if why:find(pattern) then
      return true
    end
  end
  return false
end

local function is_wrong(what)
  return what:find "^ours!" or what:find "^format regex!"
end

local counts = setmetatable({}, { __index = function() return 0 end })

local function count(what, case, ...)
  counts[what] = counts[what] + 1
  if is_wrong(what) then
    print(what, quoted(case.text), ...)
  end
end

--- Compares the results for one expression: JavaScript's, and the library's or PCRE2's (nil:
-- refused).
local function compare(who, case, theirs, found, why)
  if theirs == "-" then
    count(found and who .. "! takes what is none" or who .. " refuses what is none", case)
  elseif not found then
    local known = is_known(why)
    count(who .. (known and " refuses as documented" or "! refuses what is one"), case, why)
  elseif theirs == "?" or found:find("?", 1, true) then
    count(who .. " does not find out", case)
  else
    count(found == theirs and who .. " agrees" or who .. "! matches otherwise", case, theirs, found)
  end
end

local cases, next_expression = {}, expressions(SEED)
for i = 1, COUNT do
  local text, subjects = next_expression()
  cases[i] = { text = text, subjects = subjects }
end
write(folder .. "/patterns.json", cases)
local theirs = verdicts(folder .. "/patterns.json")
assert(#theirs == COUNT, "node did not judge all")
for i, case in ipairs(cases) do
  local found, why = ahtest.pattern(case.text, case.subjects)
  compare("ours", case, theirs[i], found, why)
  local syntax = ahtest.pattern(case.text, {}, true) ~= nil
  local alike = syntax == (theirs[i] ~= "-")
  count(alike and "format regex agrees" or "format regex! says otherwise", case)
  if ahtest.pcre2_pattern then
    for name, ucp in pairs { pcre2 = false, ["pcre2 with UCP"] = true } do
      compare(name, case, theirs[i], ahtest.pcre2_pattern(case.text, case.subjects, ucp),
        found and "" or why)
    end
  end
end

local lines, wrong = {}, 0
for what, n in pairs(counts) do
  lines[#lines + 1] = ("%7d  %s"):format(n, what)
  wrong = wrong + (is_wrong(what) and n or 0)
end
table.sort(lines, function(a, b) return a:sub(10) < b:sub(10) end)
print(("%d expressions, seed %d:"):format(COUNT, SEED))
print(table.concat(lines, "\n"))
os.exit(wrong == 0)
