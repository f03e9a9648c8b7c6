--- Lists of a server of MCP: read page by page, and kept as long as the server says or until it
-- says that they have changed (specification 2026-07-28, server/utilities/caching).
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_PAGES, MOST_ITEMS = 100, 2000
local LIST_TIMEOUT = 30 -- seconds for a page of a list
local LONGEST_FRESH = 24 * 3600 -- seconds that a list is kept, whatever the server says

local lists = {}

local function refused(server, why)
  return nil, server.connection:failure("provider", why)
end

--- Reads all pages of a list. Returns its items, not checked yet, and how many seconds it may be
-- kept; or nil and an error.
function lists.pages(server, method, member)
  local items, cursor, ttl = {}, nil, LONGEST_FRESH
  for _ = 1, MOST_PAGES do
    local result, err = server.connection:request(method, { cursor = cursor },
      { timeout = math.min(LIST_TIMEOUT, server.config.timeout) })
    if not result then
      return nil, err
    elseif not message.is_list(result[member]) then
      return refused(server, ('its answer to %s has no "%s"'):format(method, member))
    elseif #items + #result[member] > MOST_ITEMS then
      return refused(server, ("it has more than %d %s"):format(MOST_ITEMS, member))
    end
    table.move(result[member], 1, #result[member], #items + 1, items)
    ttl = math.min(ttl, math.type(result.ttlMs) == "integer" and result.ttlMs / 1000 or 0)
    cursor = message.text(result.nextCursor, 1 << 16)
    if not cursor then
      return items, ttl
    end
  end
  return refused(server, ("its list has more than %d pages"):format(MOST_PAGES))
end

--- True if the server has what a list is about, such as "tools".
function lists.has(server, capability)
  return message.is_object(server.connection.capabilities[capability])
end

--- Returns the items of a list, not checked yet, from those that are kept if they are fresh; or nil
-- and an error.
function lists.items(server, capability, method, member)
  local connection = server.connection
  connection:catch_up()
  local ok, err = connection:ready()
  if not ok then
    return nil, err
  elseif not lists.has(server, capability) then
    return {}
  end
  local kept = server.kept -- another table once a list has changed
  local known = kept[method]
  if known and (connection:announces(capability) or ah.now() < known.expires) then
    return known.items
  end
  connection:listen()
  local items, ttl = lists.pages(server, method, member)
  if not items then
    return nil, ttl
  end
  kept[method] = { items = items, expires = ah.now() + ttl }
  return items
end

lists.LONGEST_FRESH = LONGEST_FRESH

return lists
