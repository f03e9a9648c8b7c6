--- agenthost search: where words were said in the conversations of a store.
local ah, use = ...
local pairs_of, stored, text, told = use "pairs", use "stored", use "text", use "told"

local MOST = 20

-- Returns the snippet with [ and ] around the words that were found.
local function marked(hit)
  local parts, at = {}, 1
  for _, mark in ipairs(hit.marks) do
    parts[#parts + 1] = hit.snippet:sub(at, mark[1] - 1)
    parts[#parts + 1] = "[" .. hit.snippet:sub(mark[1], mark[2]) .. "]"
    at = mark[2] + 1
  end
  return table.concat(parts) .. hit.snippet:sub(at)
end

local function block(hit, width)
  local clock, date = told.moment(hit.time)
  local left = ("%s %s  %s %d  "):format(date, clock:sub(1, 5), text.clean(hit.id), hit.number)
  return ("%s%s\n    %-9s %s\n"):format(left,
    told.line(hit.title or "", math.max(width - utf8.len(left), 20)), hit.role,
    ah._harmless(marked(hit)))
end

local function limit_of(flags)
  if not flags.limit then
    return MOST
  end
  local limit = math.tointeger(tonumber(flags.limit))
  if not limit or limit < 1 or limit > 10000 then
    pairs_of.fault("--limit must be an integer from 1 to 10000, found '%s'",
      pairs_of.shown(flags.limit))
  end
  return limit
end

local function run(flags, words, out, line)
  local limit = limit_of(flags)
  local store <close> = stored.open(flags, line)
  local hits, err = store:search(text.repaired(table.concat(words, " ")), { best = flags.best,
    limit = limit, folder = flags.here and ah._real_path "." or nil })
  if not hits then
    return err.code == "usage" and 2 or 1, err.message
  elseif flags.json then
    out:write(text.json { hits = hits }, "\n")
    return hits[1] and 0 or 1
  end
  local width = told.width()
  for _, hit in ipairs(hits) do
    out:write(block(hit, width))
  end
  if not hits[1] then
    out:write "Nothing was found.\n"
  elseif #hits == limit then
    out:write(("These are the %s %d; --limit N shows more.\n"):format(
      flags.best and "best" or "newest", limit))
  end
  return hits[1] and 0 or 1
end

return {
  name = "search",
  doc = "find words in the conversations of a store",
  usage = "WORDS",
  help = [[
Finds what was said: messages, answers, calls and results in which all WORDS
are. hot* finds words that begin so, and '"grand hotel"' words side by side.
Accents, large and small letters make no difference. The newest are first.
]],
  exits = "0: something was found; 1: nothing, or the store fails; 2: usage.",
  operand = { name = "words", least = 1 },
  flags = { "json", stored.flag,
    { name = "best", doc = "the best hits first, of the newest 10,000" },
    { name = "here", doc = "only in conversations that began in this folder" },
    { name = "limit", value = "N", once = true, doc = "show at most N hits (default: 20)" } },
  mixed = true,
  run = stored.carefully(run),
}
