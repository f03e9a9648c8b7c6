--- claude_agent_sdk/MODEL: the `claude` command (Claude Code) asks the model. agenthost speaks the
-- protocol of its Agent SDK with it: lines of JSON both ways (docs/reference/claude.md). This file
-- owns the processes, one for each conversation; claude_talk.lua makes and reads the lines. A
-- conversation that its process cannot continue (its options, its system text or its past have
-- changed) gets a new process.
local ah = ...

local talks = ah._module "agenthost.providers.claude_talk"
local refuse = talks.refuse

local NAME = "claude_agent_sdk"
local ADVICE = "install it (npm install -g @anthropic-ai/claude-code), or set AGENTHOST_CLAUDE to "
  .. "its path"
local MOST_LINE = 64 << 20
local MOST_TOLD = 400 -- bytes of its stderr in messages
local MOST_ERRORS = 16 << 10 -- bytes of its stderr that are kept; more than MOST_TOLD, see said_by
local KEPT = 8 -- conversations of one adapter that keep a process
local PARTING = 1 -- seconds between the interruption and TERM
local GOODBYE = 5 -- seconds for the whole end of a process

-- -- the process ----------------------------------------------------------------------------------

local PASSED = {}
for name in ("HOME PATH TMPDIR LANG http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY "
  .. "NO_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS"):gmatch "%S+" do
  PASSED[name] = true
end
local MOST_TOKENS = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"

--- Returns the variables of the command: some of the host's, and those that are set for it.
local function environment(given, options)
  local env = { USER = false, LOGNAME = false, SHELL = false, LC_ALL = false, TZ = false,
    TERM = false }
  for name, value in pairs(ah._variables()) do
    if PASSED[name] or name:find "^ANTHROPIC_" or name:find "^CLAUDE_" then
      env[name] = value
    end
  end
  env.DISABLE_AUTOUPDATER, env.DISABLE_TELEMETRY, env.DISABLE_ERROR_REPORTING = "1", "1", "1"
  env.CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
  env.ANTHROPIC_API_KEY, env.ANTHROPIC_BASE_URL = given.key, given.url
  if options.max_tokens then
    env[MOST_TOKENS] = tostring(options.max_tokens)
  end
  return env
end

local function words(given, options)
  local list = { "-p", "--output-format", "stream-json", "--verbose", "--input-format",
    "stream-json", "--include-partial-messages", "--tools", "", "--strict-mcp-config",
    "--setting-sources", "", "--no-session-persistence", "--allowedTools", "mcp__host" }
  if given.model ~= "default" then
    table.move({ "--model", given.model }, 1, 2, #list + 1, list)
  end
  if options.effort == "none" then
    table.move({ "--thinking", "disabled" }, 1, 2, #list + 1, list)
  elseif options.effort then
    table.move({ "--effort", options.effort }, 1, 2, #list + 1, list)
  end
  return list
end

local function start(given, options)
  local asked = ah._variables().AGENTHOST_CLAUDE
  local command = asked and asked ~= "" and asked or "claude"
  local p, err = ah.process { command = command, args = words(given, options),
    env = environment(given, options), grace = PARTING, max_errors = MOST_ERRORS }
  if not p then
    refuse(("%s; %s"):format(err.code == "usage"
      and ("there is no command `%s`"):format(command:sub(1, 200)) or err.message, ADVICE))
  end
  return p
end

--- Returns the end of the stderr text, on one line, behind a colon; "" if there is none. Keys are
-- removed from all of the text that is kept, before it is cut: a part of a key would not be found.
local function said_by(p)
  local said = ah._excerpt(p:errors(), 2 * MOST_ERRORS)
  if #said > MOST_TOLD then
    said = said:sub(-MOST_TOLD):gsub("^[\x80-\xbf]+", "")
  end
  return said ~= "" and ": " .. said or ""
end

--- Called at the end of the output: raises the reason.
local function refuse_end(p)
  local how, err = p:wait { timeout = PARTING, discard = true }
  local said = said_by(p)
  if not how and err.code == "deadline_exceeded" then
    refuse("the command ended its output before its answer was complete" .. said)
  elseif not how then
    refuse(("%s; %s"):format(err.message, ADVICE))
  elseif how.signal then
    refuse(("the command was ended by signal %s%s"):format(how.signal, said))
  end
  refuse(("the command ended (exit code %d) before its answer was complete%s"):format(how.exit_code,
    said))
end

-- -- a session: a conversation's process ----------------------------------------------------------

local Session = {}
Session.__index = Session

--- Ends the process. In the middle of a turn a normal end would report interrupted calls to the
-- model and pay for the answer, so the process gets TERM at once. If the run was stopped while it
-- waited for the message, the turn is interrupted instead.
local function part(p, talk, why)
  if why == "stopped" and talk.listening then
    talk:interrupt()
    p:write(talk:take_out(), { timeout = PARTING })
  elseif talk.turn then
    p:kill "TERM"
  end
  p:close()
end

--- Ends the process in a task of its own.
function Session:leave()
  local p, talk = self.p, self.talk
  self.p, self.talk = nil, nil
  if p then
    ah._later(function()
      part(p, talk)
    end, GOODBYE)
  end
end

function Session:refuse_silence()
  refuse(("the command wrote nothing for %d ms"):format(math.floor(self.given.idle * 1000 + 0.5)),
    { code = "http" })
end

--- Writes the waiting lines. A failed write is ignored: either the process is ending, and the end
-- of its output gives the reason; or it writes without reading, and its output is read next.
function Session:write_out()
  local lines = self.talk:take_out()
  local ok, err = true, nil
  if lines ~= "" then
    ok, err = self.p:write(lines, { timeout = self.given.idle })
  end
  if not ok and err.code == "deadline_exceeded" then
    self:refuse_silence()
  end
end

function Session:begin(request)
  local talk = talks.new(self.given.tool_change_mode == "list_changed")
  self:leave()
  self.p, self.talk = start(self.given, talks.options_of(request)), talk
end

--- Asks for the next message: the conversation's process if it can continue, else a new one.
function Session:ask(request)
  self.kept = self.p ~= nil and self.talk:fits(request)
  if not self.kept then
    self:begin(request)
  end
  self.request = request
  self.talk:ask(request)
  self:write_out()
end

--- Returns the next line; nil at the end of the output.
function Session:line()
  local line, err = self.p:line { max = MOST_LINE, timeout = self.given.idle }
  if line ~= false then
    return line
  elseif err.code == "deadline_exceeded" then
    self:refuse_silence()
  end
  refuse(("a line of the command has more than %d bytes"):format(MOST_LINE))
end

--- Called at the end of the output. A kept process may have ended between two answers; then a new
-- one is asked.
function Session:ended()
  if not self.kept or self.talk.begun then
    refuse_end(self.p)
  end
  self:leave()
  self:ask(self.request)
end

--- Reads until the message is complete.
function Session:message(out)
  local what
  repeat
    local line = self:line()
    if line then
      what = self.talk:line(line, out)
      self:write_out()
    else
      self:ended()
    end
  until what
  return what
end

function Session:answer(request, out)
  local what
  repeat
    self:ask(request)
    what = self:message(out)
    if what == "calls" then
      request = select(2, out:results())
    end
  until what ~= "calls"
end

--- given: { model, tool_change_mode, key, url, idle }; key and url are nil if they are the
-- command's own.
return function(given)
  return ah._module "agenthost.providers.adapter" {
    name = NAME .. "/" .. given.model,
    reads = "anthropic",
    images = true,
    tool_change_mode = given.tool_change_mode,
    idle = given.idle,
    keep = KEPT,
    open = function()
      return setmetatable({ given = given }, Session)
    end,
    answer = function(request, out, session)
      session:answer(request, out)
    end,
    close = function(session, why)
      if session.p then
        part(session.p, session.talk, why)
      end
    end,
  }
end
