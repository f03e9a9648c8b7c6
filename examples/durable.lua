-- A refund that a person approves. Each line is a process of its own; one is killed in the middle.
--
--   agenthost examples/durable.lua "I want my 40 euros for order 7 back."   # waits: exit code 5
--   agenthost asks --store refunds.db
--   agenthost respond order-7 1 yes --by Ann --store refunds.db
--   CRASH=after agenthost resume order-7 --store refunds.db   # killed when the money is moved
--   agenthost resume order-7 --store refunds.db               # goes on, and moves nothing
--   agenthost examples/durable.lua "Has it been sent?"        # the conversation goes on
--
-- They make files in the current folder: refunds.db has the conversation, refunds.txt is the ledger
-- of a bank. A scripted model shows what a model would do.
local ah = require "agenthost"

local LEDGER = "refunds.txt"

-- Stands for the bank: moves money, and notes the key of the transfer.
local function transfer(key, euros, order)
  local ledger <close> = assert(io.open(LEDGER, "a"))
  ledger:write(("%s %d euros for order %d\n"):format(key, euros, order))
end

-- Stands for the bank's list of transfers: true if there is one with this key.
local function has_transfer(key)
  local ledger <close> = io.open(LEDGER)
  for line in ledger and ledger:lines() or function() end do
    if line:match "^%x+" == key then
      return true
    end
  end
  return false
end

-- Kills this process where CRASH says so: before the transfer, or after it.
local function crash(point)
  if os.getenv "CRASH" == point then
    os.execute "kill -9 $PPID"
  end
end

local refund = ah.tool { name = "refund", description = "Sends money back to a customer.",
  params = { order = "integer", euros = "integer 1..500" },
  handler = function(args, ctx)
    crash "before"
    transfer(ctx.idempotency_key, args.euros, args.order)
    crash "after"
    return ("sent %d euros"):format(args.euros)
  end,
  -- Called by the next process if this one ended inside of the handler.
  on_lost = function(key, args)
    if has_transfer(key) then
      return true, ("sent %d euros"):format(args.euros)
    end
    return false -- no money was moved: the handler begins
  end }

local model = ah.scripted { resumes = true,
  { calls = { { name = "refund", arguments = { order = 7, euros = 40 } } } },
  function(request)
    local result = request.entries[#request.entries].content
    return result:find "^sent" and "Your 40 euros are on their way."
      or "I am sorry, I cannot send the 40 euros. " .. result
  end,
  "It is as I said." }

return ah.agent { store = "refunds.db", id = "order-7", model = model, tools = { refund },
  system = "You answer the customers of a shop.",
  policies = { function(call)
    if call.name == "refund" then
      return "ask", "it sends money"
    end
  end } }
