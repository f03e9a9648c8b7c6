--- Calls that wait for answers of their client between two requests of revision 2026-07-28: the
-- first one is answered with questions and a state, the second one repeats it with answers and the
-- state (basic/patterns/mrtr). The run of the call waits in this process. The state names it, and
-- is signed over the client, the call and the time, so that it is good for this call alone, once,
-- for a while.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_WAITING = 256 -- calls
local MOST_STATE = 1024 -- bytes

local Waiting = {}
Waiting.__index = Waiting

-- seconds: how long a call may wait.
local function new(seconds)
  return setmetatable({ seconds = seconds, key = ah.random_bytes(32), by_name = {}, n = 0 },
    Waiting)
end

local function digest(q, call)
  return ah.sha256(ah.json.encode { q.principal, q.method, call.name, call.arguments })
end

-- True if two texts are the same. The time does not depend on where they differ.
local function same(a, b)
  local once = ah.random_bytes(32)
  return ah.hmac(once, a) == ah.hmac(once, b)
end

local function sign(self, said)
  local text = ah.base64url.encode(ah.json.encode(said))
  return text .. "." .. ah.base64url.encode(ah.hmac(self.key, text, "bytes"))
end

-- Returns what a state says; nil for one that was not signed here.
local function read(self, state)
  local text, signature = state:match "^([%w_-]+)%.([%w_-]+)$"
  local own = text and ah.base64url.encode(ah.hmac(self.key, text, "bytes"))
  if not own or not same(own, signature) then
    return nil
  end
  return ah.json.decode((ah.base64url.decode(text)))
end

local function drop(self, name)
  if self.by_name[name] then
    self.by_name[name], self.n = nil, self.n - 1
  end
end

--- Ends the calls whose time is over; with `all`, all of them.
function Waiting:sweep(all)
  local now, over = ah.now(), {}
  for name, entry in pairs(self.by_name) do
    over[#over + 1] = (all or entry.till <= now) and name or nil
  end
  for _, name in ipairs(over) do
    local entry = self.by_name[name]
    drop(self, name)
    entry.cancel()
  end
end

--- Keeps a call. Returns the state for the client; nil if too many calls wait.
function Waiting:keep(q, call, cancel)
  self:sweep()
  if self.n >= MOST_WAITING then
    return nil
  end
  local name, till = ah.base64url.encode(ah.random_bytes(16)), ah.now() + self.seconds
  self.by_name[name] = { call = call, cancel = cancel, till = till }
  self.n = self.n + 1
  return sign(self, { call = name, till = till, digest = digest(q, call) })
end

--- Returns the kept call that a request goes on with, and the function that cancels it; nil and the
-- reason. `call` has the name and the arguments of the request.
function Waiting:take(q, call, state)
  self:sweep()
  local said = message.text(state, MOST_STATE) and read(self, state)
  if not said then
    return nil, '"requestState" is not one of this server'
  elseif said.digest ~= digest(q, call) then
    return nil, '"requestState" is of another call'
  end
  local entry = self.by_name[said.call]
  if not entry then
    return nil, "the call no longer waits: its time is over, or its answers came already; "
      .. "make it anew"
  end
  drop(self, said.call)
  return entry.call, entry.cancel
end

return new
