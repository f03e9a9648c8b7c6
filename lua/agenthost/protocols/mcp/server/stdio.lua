--- The transport of the Model Context Protocol over standard input and output: a message a line,
-- one client. The server ends when its input does.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local GRACE = 1 -- seconds that requests at work have once the input has ended
local SWEEP = 30 -- seconds between two looks at calls that wait too long

-- Answers a request in a task of its own.
local function answer(server, peer, m, send)
  local q = { id = m.id, method = m.method, params = m.params, peer = peer, principal = "stdio" }
  function q.send(line)
    if not q.cancelled then
      send(line)
    end
  end
  local ok, err = peer:enter(q)
  if not ok then
    return send(message.failure(m.id, err.code, err.message))
  end
  server.start(function()
    local line = server:answer(q)
    peer:leave(q)
    if line then
      send(line)
    end
    if peer.over and peer.n == 0 then
      peer.over:close()
    end
  end)
end

local function take(server, peer, line, send)
  local m, why = message.read(line)
  if not m then
    send(message.failure(why.id, why.code, why.message))
  elseif m.kind == "request" then
    answer(server, peer, m, send)
  else
    peer:take(m)
  end
end

-- Waits until the requests at work have ended, but not for long.
local function wait_for_rest(peer)
  if peer.n > 0 then
    peer.over = ah.channel()
    ah.with_timeout(GRACE, function()
      peer.over:receive()
    end)
  end
end

--- Serves until the input ends. new_server(start) returns the server, or nil and the reason, which
-- this returns, too. input:line() as that of ah._input; send(line) raises if it fails.
return function(new_server, input, send)
  return ah.scope(function(scope)
    local server, why = new_server(function(f)
      scope:spawn(f)
    end)
    if not server then
      return nil, why
    end
    local _ <close> = ah.every(SWEEP, function()
      server.waiting:sweep()
    end)
    local peer = server:peer(send)
    while true do
      local line, cut = input:line()
      if not line then
        break
      elseif cut then
        send(message.failure(nil, message.CODES.request, ("a message over %d bytes"):format(
          #line)))
      elseif line:find "%S" then
        take(server, peer, line, send)
      end
    end
    wait_for_rest(peer)
    peer:close()
    server:close()
    return true
  end)
end
