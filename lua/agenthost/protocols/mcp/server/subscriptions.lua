--- Clients that want to know when resources change: `subscriptions/listen` of revision 2026-07-28
-- (basic/patterns/subscriptions), `resources/subscribe` and `resources/unsubscribe` of the older
-- ones. Lists never change in revision 2026-07-28, so that no stream has them.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local resources = ah._module "agenthost.protocols.mcp.server.resources"

local META, CODES, fault = message.META, message.CODES, message.fault

local MOST_URIS = 64 -- of a stream, and of a session
local MOST_STREAMS = 512
local MOST_URI = 8192

local M = {}

-- Returns the addresses of a filter whose changes are known; nil and an error.
local function wanted_of(q)
  local given = message.object(q.params.notifications).resourceSubscriptions
  local wanted = ah.array {}
  for i, uri in ipairs(message.is_list(given) and given or {}) do
    if i > MOST_URIS then
      return fault(CODES.params, "a stream has %d resources at most", MOST_URIS)
    elseif message.text(uri, MOST_URI) and q.server.changes:has(uri) then
      wanted[#wanted + 1] = uri
    end
  end
  return wanted
end

-- Follows the resources. Returns a channel that has something if one has changed, the set of those
-- that have, and an object that ends it when it is closed.
local function follow(q, wanted)
  local news, changed, stops = ah.channel(1), {}, {}
  for i, uri in ipairs(wanted) do
    stops[i] = q.server.changes:follow(uri, function()
      changed[uri] = true
      if #news == 0 then
        news:send(true)
      end
    end)
  end
  return news, changed, setmetatable({}, { __close = function()
    for _, stop in ipairs(stops) do
      stop()
    end
  end })
end

local function updated(uri, meta)
  return message.notification("notifications/resources/updated", { _meta = meta, uri = uri })
end

-- Sends changes until the request is cancelled.
local function send_changes(q, meta, wanted)
  local news, changed, followed = follow(q, wanted)
  local _ <close> = followed
  function q.cancel()
    news:close()
  end
  q.send(message.notification("notifications/subscriptions/acknowledged", { _meta = meta,
    notifications = ah.object { resourceSubscriptions = wanted[1] and wanted or nil } }))
  while not q.cancelled and news:receive() do
    while next(changed) do
      local uri = next(changed)
      changed[uri] = nil
      q.send(updated(uri, meta))
    end
  end
end

--- Answers `subscriptions/listen`: a stream that stays open until the client ends it.
function M.listen(q)
  local wanted, err = wanted_of(q)
  local server = q.server
  if not wanted then
    return nil, err
  elseif server.listening >= MOST_STREAMS then
    return fault(CODES.internal, "%d streams are open, and there can be no more", MOST_STREAMS)
  end
  server.listening = server.listening + 1
  local _ <close> = setmetatable({}, { __close = function()
    server.listening = server.listening - 1
  end })
  local meta = { [META.subscription] = q.id }
  send_changes(q, meta, wanted)
  return not q.cancelled and { _meta = meta }
end

-- -- sessions of the older revisions --------------------------------------------------------------

local function count(t)
  local n = 0
  for _ in pairs(t) do
    n = n + 1
  end
  return n
end

local function is_known(q, uri)
  return q.server.sections[uri] ~= nil or resources.find(q.server.offers, uri) ~= nil
end

--- Answers `resources/subscribe`.
function M.subscribe(q)
  local peer, uri = q.peer, message.text(q.params.uri, MOST_URI)
  if not uri or not is_known(q, uri) then
    return resources.unknown(q)
  elseif count(peer.subscribed) >= MOST_URIS then
    return fault(CODES.internal, "a session has %d resources at most", MOST_URIS)
  elseif not peer.subscribed[uri] and q.server.changes:has(uri) then
    peer.subscribed[uri] = q.server.changes:follow(uri, function()
      peer.send(updated(uri))
    end)
  end
  return {}
end

--- Answers `resources/unsubscribe`.
function M.unsubscribe(q)
  local uri = message.text(q.params.uri, MOST_URI)
  local stop = uri and q.peer.subscribed[uri]
  if stop then
    q.peer.subscribed[uri] = nil
    stop()
  end
  return {}
end

--- Ends the subscriptions of a session.
function M.close(peer)
  for _, stop in pairs(peer.subscribed) do
    stop()
  end
  peer.subscribed = {}
end

return M
