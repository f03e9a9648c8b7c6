--- ah.channel and ah.semaphore: how tasks give values to each other, and share what there is little
-- of. Those that wait are served in their order; what was given to a task that was stopped before
-- it could go on is given to the next one.
local ah = ...

ah._module "agenthost.tasks.task" -- which reports deadlocks

local park, raise = ah._park, ah._raise

local M = {}

local CLOSED = {} -- what a park is woken with when the channel is closed

-- -- queues ------------------------------------------------------------------------------------

local function queue()
  return { first = 1, last = 0 }
end

local function push(q, entry)
  q.last = q.last + 1
  q[q.last] = entry
  return q.last
end

-- Puts the value before all others, but behind those put back that were sent earlier.
local function put_back(q, value, number)
  local i = q.first - 1
  q.first, q.numbers = i, q.numbers or {}
  while q.numbers[i + 1] and q.numbers[i + 1] < number do
    q[i], q.numbers[i] = q[i + 1], q.numbers[i + 1]
    i = i + 1
  end
  q[i], q.numbers[i] = value, number
end

-- Removes the first entry and returns it; nil if there is none.
local function pop(q)
  while q.first <= q.last do
    local entry = q[q.first]
    q[q.first], q.first = nil, q.first + 1
    if q.numbers then
      q.numbers[q.first - 1] = nil
    end
    if entry ~= nil then
      return entry
    end
  end
end

local last_gift = 0

-- A wait in a queue: { park, value, queue, at, given, number, taken, back }. `back` is called with
-- the entry if its task was stopped after the gift and before it could go on.
local ENTRY = {}

function ENTRY.__close(entry)
  entry.queue[entry.at] = nil
  if entry.given ~= nil and not entry.taken then
    entry.back(entry)
  end
end

-- Waits in the queue. Returns what the wait was ended with.
local function wait_in(q, word, value, back)
  local entry <close> = setmetatable({ park = park(), value = value, queue = q, back = back },
    ENTRY)
  entry.at = push(q, entry)
  entry.park:wait(word)
  entry.taken = true
  return entry.given
end

-- Gives the gift to the first that waits. Returns its entry; nil if nothing waits.
local function give(q, gift, number)
  local entry = pop(q)
  while entry do
    if entry.park:wake() then
      last_gift = last_gift + 1
      entry.given, entry.number = gift, number or last_gift
      return entry
    end
    entry = pop(q)
  end
end

-- -- channels ----------------------------------------------------------------------------------

local KEY = {} -- of the channel in its object
local methods = {}

local function check_value(value)
  if value == nil then
    raise "channel:send: nil is no value: it stands for a closed channel"
  end
end

-- A value that was on its way to a receiver that was stopped: the first of the next.
local function return_value(channel)
  return function(entry)
    if entry.given ~= CLOSED and not give(channel.receivers, entry.given, entry.number) then
      put_back(channel.values, entry.given, entry.number)
      channel.count = channel.count + 1
    end
  end
end

local function ignore() end -- the value has arrived, though its sender was stopped

--- channel:send(value): waits until there is room, or a receiver. True; false if the channel is
-- closed, and the value is not sent.
function methods.send(object, value)
  local channel = object[KEY]
  check_value(value)
  if channel.closed then
    return false
  elseif channel.count == 0 and give(channel.receivers, value) then
    return true
  elseif channel.count < channel.room then
    push(channel.values, value)
    channel.count = channel.count + 1
    return true
  end
  return wait_in(channel.senders, "send", value, ignore) ~= CLOSED
end

--- channel:receive(): waits for a value. nil if the channel is closed and holds none.
function methods.receive(object)
  local channel = object[KEY]
  if channel.count == 0 then
    local sender = give(channel.senders, true)
    if sender then
      return sender.value
    elseif channel.closed then
      return nil
    end
    local value = wait_in(channel.receivers, "receive", nil, return_value(channel))
    if value == CLOSED then
      return nil
    end
    return value
  end
  local value = pop(channel.values)
  local sender = give(channel.senders, true)
  if sender then
    push(channel.values, sender.value)
  else
    channel.count = channel.count - 1
  end
  return value
end

--- channel:close(): nothing more is sent. What it holds can still be received.
function methods.close(object)
  local channel = object[KEY]
  channel.closed = true
  while give(channel.receivers, CLOSED) or give(channel.senders, CLOSED) do end
end

local CHANNEL = { __name = "agenthost.channel", __close = methods.close, __call = methods.receive }

function CHANNEL.__len(object)
  return object[KEY].count
end

function CHANNEL.__index(_, name)
  return methods[name] or raise(("a channel has no '%s': it has send, receive, close"):format(
    tostring(name)))
end

local LIMITS = { most = 1000000 } -- values of a channel, permits of a semaphore

local function check_count(n, least, what)
  if math.type(n) ~= "integer" or n < least or n > LIMITS.most then
    raise(("%s must be an integer from %d to %d, found %s"):format(what, least, LIMITS.most,
      tostring(n)))
  end
end

--- ah.channel(n): holds n values (0) that no receiver has taken yet.
function M.channel(n)
  n = n == nil and 0 or n
  check_count(n, 0, "ah.channel: the number of values")
  return setmetatable({ [KEY] = { room = n, count = 0, values = queue(), senders = queue(),
    receivers = queue() } }, CHANNEL)
end

-- -- semaphores --------------------------------------------------------------------------------

local function release(semaphore)
  if not give(semaphore.waiting, true) then
    semaphore.free = semaphore.free + 1
  end
end

local PERMIT = { __name = "agenthost.permit" }

--- permit:release(): gives it back, once; so does the end of a variable marked <close>.
local function release_permit(permit)
  local semaphore = permit[KEY]
  if semaphore then
    permit[KEY] = false
    release(semaphore)
  end
end

PERMIT.__close = release_permit
PERMIT.__index = function(_, name)
  return name == "release" and release_permit
    or raise(("a permit has no '%s': it has release"):format(tostring(name)))
end

--- semaphore:acquire(): waits for one of its permits.
local function acquire(object)
  local semaphore = object[KEY]
  local permit = setmetatable({ [KEY] = false }, PERMIT) -- first: it may need memory
  if semaphore.free > 0 then
    semaphore.free = semaphore.free - 1
  else
    wait_in(semaphore.waiting, "acquire", nil, function() release(semaphore) end)
  end
  permit[KEY] = semaphore
  return permit
end

local SEMAPHORE = { __name = "agenthost.semaphore" }

function SEMAPHORE.__index(_, name)
  return name == "acquire" and acquire
    or raise(("a semaphore has no '%s': it has acquire"):format(tostring(name)))
end

--- ah.semaphore(n): n permits.
function M.semaphore(n)
  check_count(n, 1, "ah.semaphore: the number of permits")
  return setmetatable({ [KEY] = { free = n, waiting = queue() } }, SEMAPHORE)
end

return M
