-- Runs the official JSON-Schema-Test-Suite, a copy of which is at PATH:
--
--   lua5.4 spec/support/schema_suite.lua PATH [-v] [draft ...]
--
-- Counts, for the required part of each draft, the cases with the suite's result, with the default
-- options and with `unknown_keywords = "allow"`. A schema without $schema is of the draft of its
-- folder. The suite's remote documents are preloaded, at the addresses of its server. Fails if a
-- draft has fewer than WANTED. With -v each miss is printed.
package.cpath = (os.getenv("AGENTHOST_BUILD") or "build") .. "/?.so;" .. package.cpath
local ah = require "agenthost"

local SERVER = "http://localhost:1234/"
local DRAFTS = { "draft2020-12", "draft2019-09", "draft7" }
-- The number of all cases.
local WANTED = { ["draft2020-12"] = { 1299, 1299 }, ["draft2019-09"] = { 1259, 1259 },
  draft7 = { 927, 927 } }
local DIALECT = { ["draft2020-12"] = "https://json-schema.org/draft/2020-12/schema",
  ["draft2019-09"] = "https://json-schema.org/draft/2019-09/schema",
  draft7 = "http://json-schema.org/draft-07/schema#" }

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return assert(f:read("a"))
end

--- Returns the paths of the JSON files in a directory, sorted.
local function files(directory, depth)
  local list = {}
  local pipe <close> = assert(io.popen(("find '%s' -maxdepth %d -name '*.json' | sort")
    :format(directory:gsub("'", "'\\''"), depth)))
  for path in pipe:lines() do
    list[#list + 1] = path
  end
  return list
end

--- Returns the remote documents by their address.
local function remotes(suite)
  local root, documents = suite .. "/remotes/", {}
  for _, path in ipairs(files(root, 9)) do
    documents[SERVER .. path:sub(#root + 1)] = read(path)
  end
  return documents
end

--- Returns the text of a test's schema, which gets the draft if it names none.
local function text_of(schema, draft)
  if type(schema) == "table" and schema["$schema"] == nil then
    schema["$schema"] = DIALECT[draft]
  end
  return ah.json.encode(schema)
end

--- Returns the fault of one case, or nil.
local function miss(schema, why, test)
  if not schema then
    return "refused: " .. tostring(why)
  end
  local ok, message = schema:validate_text(ah.json.encode(test.data))
  if (ok == true) ~= test.valid then
    return test.valid and "invalid: " .. tostring(message) or "valid"
  end
end

--- Returns the number of cases that pass, and the number of all cases.
local function run(suite, draft, options, verbose)
  local passed, total = 0, 0
  for _, path in ipairs(files(suite .. "/tests/" .. draft, 1)) do
    for _, group in ipairs(assert(ah.json.decode(read(path)))) do
      local ok, schema = pcall(ah.schema, text_of(group.schema, draft), options)
      for _, test in ipairs(group.tests) do
        local wrong = miss(ok and schema, schema, test)
        total, passed = total + 1, passed + (wrong and 0 or 1)
        if wrong and verbose then
          print(("%s: %s: %s: %s"):format(path:sub(#suite + 8), group.description, test.description,
            wrong))
        end
      end
    end
  end
  return passed, total
end

local MODES = { "as they are", "unknown keywords allowed" }

local function run_both(suite, draft, documents, verbose)
  local good = true
  for mode, words in ipairs(MODES) do
    local passed, total = run(suite, draft,
      { documents = documents, unknown_keywords = mode == 2 and "allow" or nil }, verbose)
    print(("%s, %s: %d of %d"):format(draft, words, passed, total))
    good = good and passed >= WANTED[draft][mode]
  end
  return good
end

local suite, chosen, verbose, good = nil, {}, false, true
for _, word in ipairs(arg) do
  if word == "-v" then
    verbose = true
  elseif not suite then
    suite = word
  else
    chosen[#chosen + 1] = word
  end
end
assert(suite, "say where the suite is: lua5.4 spec/support/schema_suite.lua PATH")
local documents = remotes(suite)
for _, draft in ipairs(#chosen > 0 and chosen or DRAFTS) do
  good = run_both(suite, draft, documents, verbose) and good
end
os.exit(good)
