--- Starts `agenthost mock` for a spec and reports the requests that it got.
--
--   local mock = require "support.mock"
--   local m <close> = mock.start 'return { "Hello." }'       -- a script's text
--   ... m.url is "http://127.0.0.1:PORT" ...
--   m:log()[1].body.model, m:errors()
local ah = require "agenthost"
local command = require "support.command"
local programs = require "support.programs"
local server = require "support.server"

local mock = {}

local Mock = {}
Mock.__index = Mock
Mock.__name = "support.mock"

--- Returns true if the command was built with it.
function mock.is_built()
  return not command.shell('"$A" -v --version').out:find("libmicrohttpd none", 1, true)
end

local function file_with(text)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
  return path
end

--- Returns the program itself (lua/agenthost/command/mock.lua) in this process.
function mock.program()
  return programs "mock"
end

local Answer = {}
Answer.__index = Answer

function Answer:begin(head)
  self.status, self.headers, self.length = head.status, head.headers, head.length
  return true
end

function Answer:write(piece)
  table.insert(self.pieces, piece)
  return true
end

function Answer:abort()
  self.broken = true
end

function Answer:body()
  return table.concat(self.pieces)
end

--- Returns a request in the form of ah.serve; headers: by name, or nil.
function mock.request(method, target, headers, body)
  local lists = {}
  for name, value in pairs(headers or {}) do
    lists[name:lower()] = { value }
  end
  return { method = method, target = target, path = target:match "^[^?]*", headers = lists,
    body = body }
end

--- Returns the program's answer to a request in this process: { status, headers (lists), length,
-- pieces, broken, body() }.
function mock.answer(program, ...)
  local answer = setmetatable({ pieces = {} }, Answer)
  program.answer(mock.request(...), answer)
  return answer
end

--- Starts the mock with this script and further words of the command line.
function mock.start(script, ...)
  return mock.start_after("", script, ...)
end

--- Starts the mock after a command of the shell, such as "ulimit -n 30;".
function mock.start_after(before, script, ...)
  local self = setmetatable({ script = file_with(script), log_path = os.tmpname(),
    err_path = os.tmpname() }, Mock)
  local words = { "mock", "--log", self.log_path, ... }
  words[#words + 1] = self.script
  for i, word in ipairs(words) do
    words[i] = command.quote(word)
  end
  -- `exec`, so that the shell's process id is the server's.
  self.pipe = assert(io.popen((
    "echo $$; %s XDG_CONFIG_HOME=/dev/null exec %s %s </dev/null 2>%s"):format(before,
      command.quote(command.BINARY), table.concat(words, " "), command.quote(self.err_path))))
  self.pid, self.url = self.pipe:read("l"), self.pipe:read("l")
  if not self.url then
    local told = self:errors()
    self:close()
    error("agenthost mock did not start: " .. told, 2)
  end
  return self
end

--- Returns the requests so far, a decoded table each.
function Mock:log()
  local list = {}
  for line in io.lines(self.log_path) do
    list[#list + 1] = server.decode(line)
  end
  return list
end

--- Returns the mock's stderr so far.
function Mock:errors()
  return command.contents(self.err_path)
end

--- Sends a request. Returns { status, headers, body, json() }, or nil and the error if no complete
-- response came. A table is sent as JSON; `headers` are additional. A nil body sends GET.
function Mock:ask(path, body, headers)
  local all = { ["Content-Type"] = body and "application/json" }
  for name, value in pairs(headers or {}) do
    all[name] = value
  end
  local answer, err = ah.http { url = self.url .. path, headers = all, timeout = 10,
    body = type(body) == "table" and server.encode(body) or body }
  if not answer then
    return nil, err
  end
  function answer.json()
    return server.decode(answer.body)
  end
  return answer
end

--- Ends the mock, and removes its files; returns its exit code, or nil if it had ended already.
function Mock:close()
  local code
  if self.pipe then
    os.execute("kill " .. self.pid .. " 2>/dev/null")
    code = self:wait()
  end
  for _, path in ipairs { self.script, self.log_path, self.err_path } do
    os.remove(path)
  end
  return code
end

--- Waits until the mock ends by itself (--once).
function Mock:wait()
  local _, _, code = self.pipe:close()
  self.pipe = nil
  return code
end

Mock.__close = Mock.close

return mock
