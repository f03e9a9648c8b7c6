-- Sums up many files at the same time (docs/how-to/many-documents.md), with one budget, and with
-- the state on a terminal. Without a folder it takes a thousand notes, which it makes in memory.
-- Without --model a stand-in answers, which needs no key.
--
--   agenthost examples/map.lua
--   agenthost --model openai/gpt-4o-mini examples/map.lua FOLDER
--
-- Summaries go to stdout, the state and failures to stderr. Ctrl-C prints the summaries so far.
local ah = require "agenthost"

local AT_ONCE = 50

-- -- the documents -----------------------------------------------------------------------------

local function make_notes()
  local towns, goods = { "Bonn", "Rome", "Oslo", "Lyon" }, { "tea", "salt", "paper" }
  local files = {}
  for i = 1, 1000 do
    files[("note-%04d.txt"):format(i)] = ("%d bags of %s went to %s. The weather was fair."):format(
      i * 7 % 90 + 1, goods[i % 3 + 1], towns[i % 4 + 1])
  end
  return files
end

local folder = ...
local files = assert(ah.filesystem(folder and { root = folder, read_only = true }
  or { files = make_notes() }))
local paths = assert(files:glob("**", { max = 10000 }))

-- -- the model ---------------------------------------------------------------------------------

-- Answers with the first sentence of the text, after a while.
local function stand_in(request)
  local text = request.entries[#request.entries].content[1].text
  local words = select(2, text:gsub("%S+", ""))
  return { text = text:match "\n([^.]+%.)" or text, delay = 0.02 + #text % 7 / 50,
    usage = { input = 2 * words, output = 12, cost = words * 1e-6 } }
end

-- -- the work ----------------------------------------------------------------------------------

local budget = ah.budget { requests = 3 * #paths }

local function sum_up(path)
  local text, err = files:read(path)
  if not text then
    return nil, err
  end
  return ah.run { model = ah.scripted(stand_in), budget = budget, retries = 5, timeout = 120,
    "Sum up in one sentence:\n" .. text }
end

local failed = 0

local function show(replies, errors)
  for i, path in ipairs(paths) do
    if errors[i] then
      failed = failed + 1
      io.stderr:write(path, ": ", tostring(errors[i]), "\n")
    elseif replies[i] then
      print(path, replies[i])
    end
  end
end

local from = ah.now()
local whole, replies, errors = pcall(ah.map, paths, sum_up,
  { concurrency = AT_ONCE, on_error = "collect", progress = true })
if not whole then -- after Ctrl-C the error has what was done
  show(replies.results or {}, replies.errors or {})
  error(replies, 0)
end
show(replies, errors)
io.stderr:write(("%d files, %d failed, %d requests, %.1f s\n"):format(#paths, failed,
  budget:used().requests, ah.now() - from))
