--- The standard streams of a server's process as a transport of MCP (connection.lua has what a
-- transport does). Owns the process.
--
-- No task of its own reads. Of the callers that wait for an answer one reads for all (the reader);
-- when it goes, another one takes over. So no task outlives a call, and what a server sends while
-- no caller waits stays in its pipe.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_TOLD = 400 -- bytes of its standard error in an error
local TICK = 1 -- seconds between looks at the time of requests

local Stdio = {}
Stdio.__index = Stdio

--- config: as of a connection; `process` has the fields of ah.process.
local function new(connection, config)
  return setmetatable({ connection = connection, config = config.process, name = config.name },
    Stdio)
end

--- Wakes one of the callers that wait while another one reads.
local function wake_another(self)
  for _, other in pairs(self.connection.pending) do
    if other.waits then
      other:wake()
      return
    end
  end
end

--- Ends the reading of a caller; another one that waits takes over.
local function stop_reading(self, pending)
  if self.reader == pending then
    self.reader = nil
  end
  if not self.reader then
    wake_another(self)
  end
end

-- -- the process ----------------------------------------------------------------------------------

--- Puts what the server has written to its standard error since the last time into the log.
function Stdio:note()
  local text = self.process and self.process:errors() or self.noted
  local known = self.noted or ""
  if not text or text == known then
    return
  end
  local new_part = text:sub(1, #known) == known and text:sub(#known + 1) or text
  self.noted = text
  for said in new_part:gmatch "[^\r\n]+" do
    ah.log("info", ("MCP server '%s' says: %s"):format(self.name, message.said(said)))
  end
end

local function last_words(self)
  local text = message.said((self.process:errors():gsub("%s+$", "")):sub(-MOST_TOLD))
  return text ~= "" and "; its standard error ends with: " .. text or ""
end

--- Starts the process. Returns true, or nil and an error.
function Stdio:open()
  if self.ended then
    self.ended:receive() -- the end of the last process
  end
  local process, err = ah.process(self.config)
  if not process then
    return nil, self.connection:failure("usage", "it cannot be started: " .. err.message)
  end
  self.process, self.noted = process, nil
  return true
end

-- Some servers end at a request before the handshake.
Stdio.may_end_early = true

local Ending = {}

--- Ends all requests with the reason, also if the caller was cancelled while the process ended.
function Ending:__close()
  local transport = self.transport
  transport:note()
  transport.process, transport.noted, transport.reader = nil, nil, nil
  transport.ended:close()
  transport.connection:over(self.err)
end

local function how_ended(outcome)
  return outcome and (outcome.exit_code and ("exit code %d"):format(outcome.exit_code)
    or outcome.signal and "signal " .. outcome.signal) or "unknown end"
end

--- Ends the process and all requests, with the reason. gently: the process may end by itself.
function Stdio:lose(why, gently)
  if not self.process or self.reader == Ending then
    return
  end
  local ending <close> = setmetatable({ transport = self,
    err = self.connection:failure("provider", why, { retryable = true, reason = "lost" }) }, Ending)
  self.reader, self.ended = Ending, ah.channel()
  self.connection:ending()
  local outcome = gently and self.process:wait { timeout = 1, discard = true }
  if not outcome then
    self.process:kill "KILL"
    outcome = self.process:close()
  end
  ending.err = self.connection:failure("provider", ("%s (%s)%s"):format(why, how_ended(outcome),
    last_words(self)), { retryable = true, reason = "lost" })
end

function Stdio:close()
  if self.process then
    self.process:close_input()
    self:lose("it was closed", true)
  end
end

-- -- writing --------------------------------------------------------------------------------------

--- Writes a line without an answer. It may be lost: a server that does not read is not waited for.
function Stdio:say(line)
  if self.process then
    pcall(self.process.write, self.process, line, { timeout = 0 })
  end
end

--- Writes a request. Returns true, or nil and an error.
function Stdio:send(pending, line)
  local ok, err = self.process:write(line, { timeout = math.max(pending.due - ah.now(), 0) })
  if ok then
    return true
  end
  -- Lines that a server does not read would be kept for it without an end.
  self:lose("it does not read its input", err.code ~= "deadline_exceeded")
  return nil, self.connection.lost or err
end

-- The notifications of a subscription come between the answers.
Stdio.listen = Stdio.say

Stdio.agreed = Stdio.note

-- -- reading --------------------------------------------------------------------------------------

--- Wakes the requests that are out of time. Returns the time until the next look at them: the next
-- one that is out of time, or one that is made meanwhile.
local function next_deadline(self)
  local now, first = ah.now(), math.huge
  for _, pending in pairs(self.connection.pending) do
    local at = pending:ends_at()
    if at <= now then
      pending:wake()
    end
    first = math.min(first, at)
  end
  return math.max(math.min(first - now, TICK), 0)
end

--- Reads one line for all that wait. Returns true if there was one.
local function read_one(self, timeout)
  local line, err = self.process:line { timeout = timeout, max = message.MOST_LINE }
  if line then
    self.connection:take(line)
  elseif line == nil then
    self:lose("it has ended", true)
  elseif err.code == "deadline_exceeded" then
    return false
  else
    self.connection:take_oversize()
  end
  return true
end

--- Waits until there may be news for the request.
function Stdio:wait(pending)
  if not self.reader or self.reader == pending then
    self.reader = pending
    read_one(self, next_deadline(self))
  else
    pending:doze()
  end
end

--- Called when a caller does something else than waiting.
function Stdio:pause(pending)
  stop_reading(self, pending)
end

--- Called when a request is over. given_up: its answer is no longer awaited.
function Stdio:leave(pending, given_up)
  if given_up then
    self:say(pending:cancellation())
  end
  stop_reading(self, pending)
end

local Glance = {}

function Glance:__close()
  stop_reading(self.transport, self)
end

--- Reads what is there already, without waiting for more.
function Stdio:catch_up()
  if self.reader then
    return
  end
  local glance <close> = setmetatable({ transport = self }, Glance)
  self.reader = glance
  while self.connection.live and read_one(self, 0) do
  end
end

return { new = new }
