--- Words for money that was spent.
local M = {}

local CENTS = 2 -- decimals of a dollar or more

--- Returns US dollars with two significant digits, and at least with cents: "$0.0042", "$0.13",
-- "$12.30".
---@param cost number
---@return string
function M.dollars(cost)
  local decimals = CENTS
  if cost > 0 and cost < 1 then
    local exponent = tonumber(("%.1e"):format(cost):match "e(.+)$")
    decimals = math.min(math.max(1 - exponent, CENTS), 9)
  end
  return ("$%." .. decimals .. "f"):format(cost)
end

--- Returns the cost in words, nil if there is nothing to say: answers have no price because nothing
-- is billed for them.
---@param cost number? US dollars; nil: no cost is known
---@param unknown integer answers of unknown cost
---@return string?
function M.words(cost, unknown)
  if not cost then
    return unknown > 0 and "cost unknown" or nil
  elseif unknown == 0 then
    return M.dollars(cost)
  end
  return ("%s and the unknown cost of %d answer%s"):format(M.dollars(cost), unknown,
    unknown == 1 and "" or "s")
end

return M
