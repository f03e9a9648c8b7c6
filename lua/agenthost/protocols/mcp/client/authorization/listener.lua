--- The address of this machine to which a browser brings the answer of a login (RFC 8252,
-- section 7.3). It takes one answer, and only that of its own login.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"

local MOST = 8192 -- bytes of a parameter
local FAREWELL = 2 -- seconds to show the page
local PAGE = "agenthost has the answer. You can close this page.\n"
local OTHER = "This is not the answer of a login that is under way.\n"
local HEADERS = { ["Content-Type"] = "text/plain; charset=utf-8", ["Cache-Control"] = "no-store",
  ["Referrer-Policy"] = "no-referrer" }

local Listener = {}
Listener.__index = Listener

--- Returns the parameters of an answer; nil if one of them is there twice.
local function answer_of(query)
  local answer = {}
  for _, name in ipairs { "state", "code", "iss", "error", "error_description" } do
    local list = query[name] or {}
    if #list > 1 then
      return nil
    end
    answer[name] = message.text(list[1], MOST)
  end
  return answer
end

local function respond(self, request)
  if request.path ~= self.path or request.method ~= "GET" then
    return { status = 404, headers = HEADERS, body = OTHER }
  end
  local answer = answer_of(request.query)
  if self.taken or not answer or answer.state ~= self.state then
    return { status = 400, headers = HEADERS, body = OTHER }
  end
  self.taken = true
  self.answers:send(answer)
  return { headers = HEADERS, body = PAGE }
end

--- Shows the page before the listener may close.
local function handle(self, request, response)
  local made = respond(self, request)
  local shown <close> = setmetatable({}, { __close = function()
    if self.taken then
      self.shown:close()
    end
  end })
  response:begin { status = made.status, headers = made.headers }
  response:write(made.body)
  response:close()
  response:wait()
  return shown and nil
end

--- Waits for the answer of the login. Returns its parameters `code`, `iss`, `error` and
-- `error_description`, of which some are nil.
function Listener:wait()
  local answer = self.answers:receive()
  ah.with_timeout(FAREWELL, function()
    return self.shown:receive()
  end)
  return answer
end

function Listener:__close()
  self.server:close()
end

local function listen(self, at, port)
  local err
  self.server, err = ah.serve { listen = ("%s:%d"):format(at.host, port),
    on_request = function(request, response)
      return handle(self, request, response)
    end }
  return self.server, err
end

--- Listens at a redirect URI; without a port in it at a free one, or at that of `before`, if it is
-- free. Returns a listener, for a variable marked <close>, with the whole `uri`; or nil and the
-- reason.
---@param redirect_uri string a URL of this machine, http://
---@param before string? the redirect URI of an earlier login
---@param state string what its answer must have
local function open(redirect_uri, before, state)
  local at, last = address.read(redirect_uri), before and address.read(before)
  local self = setmetatable({ state = state, path = at.path ~= "" and at.path or "/",
    answers = ah.channel(1), shown = ah.channel(1) }, Listener)
  local again = not at.port and last and last.host == at.host and last.path == at.path
    and last.port
  if not (again and listen(self, at, again)) then
    local server, err = listen(self, at, at.port or 0)
    if not server then
      return nil, err.message
    end
  end
  self.uri = ("%s://%s:%d%s"):format(at.scheme, at.host, self.server.port, at.path)
  return self
end

return { open = open }
