--- The money, tokens and answers that a conversation has used, and all conversations of its store
-- today and in this folder; for `/cost` of the chat.
--
--   local spent = use "spent"
--   local sums = spent.of(store, id)   -- store: an open ah.store; id: a conversation, or nil
--   sums.conversation   -- this conversation
--   sums.today          -- all conversations since the last midnight of the local time zone
--   sums.folder         -- all conversations of the working folder, by its real path
--
-- Each of the three is a table:
--
--   cost        US dollars, of the answers whose cost is known; nil if none is
--   unknown     answers that may be billed and whose cost is unknown: `cost` is without them
--   turns       answers of models
--   input       tokens, cached ones included
--   cached      those of them that were read from a cache
--   output      tokens, reasoning included
--   prices_of   date of the oldest prices that were used, as "2026-11-10"; nil if none were
--   damaged     conversations of which not all could be read; their rest is missing in the sums
--
-- Runs that handlers have begun count in the conversation of the handler. A run at work counts up
-- to its last answer. Answers that were taken back by a rewind have been paid for, so they count; a
-- fork counts only its own. An answer that was cut off counts in `unknown` alone.
--
-- It takes the time of a list of the store, and of the records of the run that is at work in each
-- conversation. For `today` some records are read of each conversation that began on an earlier day
-- and was changed today. `spent.of` raises the error of a store that cannot be read.
local ah, use = ...
local money = use "money"

local M = {}

local function new_sum()
  return { unknown = 0, turns = 0, input = 0, cached = 0, output = 0, damaged = 0 }
end

local function add(sum, spent, damaged)
  local u = spent.usage
  sum.turns = sum.turns + spent.answers
  sum.unknown = sum.unknown + (u.unpriced or 0)
  sum.input = sum.input + u.input
  sum.cached = sum.cached + u.cached_read
  sum.output = sum.output + u.output
  sum.cost = u.cost and u.cost + (sum.cost or 0.0) or sum.cost
  sum.damaged = sum.damaged + (damaged and 1 or 0)
  if u.prices_of and (not sum.prices_of or u.prices_of < sum.prices_of) then
    sum.prices_of = u.prices_of
  end
end

-- Returns the last midnight of the local time zone, seconds since 1970.
local function midnight(now)
  local day = os.date("*t", now // 1 | 0)
  return os.time { year = day.year, month = day.month, day = day.day, hour = 0 }
end

--- Returns the sums above.
---@param store ah.Store
---@param id string? the conversation; nil: none, its sums are 0
---@param now number? seconds since 1970
function M.of(store, id, now)
  local here = ah._real_path "."
  local sums = { conversation = new_sum(), today = new_sum(), folder = new_sum() }
  for _, one in ipairs(assert(ah._spent(store, midnight(now or ah.now())))) do
    add(sums.today, one.lately, one.damaged)
    if one.id == id then
      add(sums.conversation, one.spent, one.damaged)
    end
    if here and one.folder == here then
      add(sums.folder, one.spent, one.damaged)
    end
  end
  return sums
end

local function grouped(n)
  local digits = tostring(n):reverse():gsub("%d%d%d", "%0,"):reverse()
  return (digits:gsub("^,", ""))
end

--- Returns a sum in words for one line: "$0.0042, 3 turns, 1,234 tokens in (800 cached), 56 out".
---@param sum table one of the three
function M.words(sum)
  local cost = money.words(sum.cost, sum.unknown)
  return ("%s%d turn%s, %s tokens in (%s cached), %s out%s"):format(cost and cost .. ", " or "",
    sum.turns, sum.turns == 1 and "" or "s", grouped(sum.input), grouped(sum.cached),
    grouped(sum.output), sum.damaged > 0 and ("; %d damaged conversation%s not counted in full")
      :format(sum.damaged, sum.damaged == 1 and "" or "s") or "")
end

return M
