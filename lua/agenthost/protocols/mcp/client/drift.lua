--- Definitions of a server's tools that are not those that were first seen (pins.lua): what a run
-- gets in their place, and what a call of them returns. The server has `refused`, the set of such
-- tools; `told`, the hashes of which a warning was logged; and `judged`, what its pins say.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local pins = ah._module "agenthost.protocols.mcp.client.pins"

local drift = {}

--- Logs a warning about a definition, once.
local function warn_of(server, definition, text)
  if server.told[definition.key] ~= definition.hash then
    server.told[definition.key] = definition.hash
    ah.log("warning", ("MCP server '%s': %s"):format(server.name, text))
  end
end

local function where_to_accept(server)
  return server.pins.path and ("; agenthost mcp pin %s shows the change, and accepts it"):format(
    server.name) or ""
end

--- Returns the definition that a run may have in place of one that has changed; nil: none.
local function in_place_of(server, one)
  local definition = one.definition
  local what = ("the definition of tool '%s' has changed since it was first seen"):format(
    message.said(definition.key))
  if server.config.on_drift == "tell" then
    warn_of(server, definition, what .. "; the new one is declared")
    return definition
  end
  local pinned = pins.definition(one.pin, server.config.url ~= nil)
  server.refused[definition.key] = true
  warn_of(server, definition, what .. (pinned and ": the old one stays declared, and a call of it "
    .. "runs nothing" or ": it is left out") .. where_to_accept(server))
  return pinned
end

--- Compares a list with the pinned definitions. Returns the definitions that a run may have; or nil
-- and an error.
function drift.admit(server, list)
  local judged, why = server.pins:judge(list)
  if not judged then
    return nil, server.connection:failure("usage", why)
  end
  local admitted = {}
  server.refused, server.judged = {}, judged
  for _, one in ipairs(judged) do
    if one.state == "new" then
      warn_of(server, one.definition,
        ("tool '%s' is new: the server did not have it before"):format(
          message.said(one.definition.key)))
    end
    admitted[#admitted + 1] = one.state == "changed" and in_place_of(server, one)
      or one.state ~= "changed" and one.definition or nil
  end
  return admitted
end

--- Returns the answer to a call of a tool whose definition has changed.
function drift.refusal(server, key)
  return ah.fail(("Nothing was run: the definition of tool '%s' of the MCP server '%s' has changed "
    .. "since it was first seen, so it may not do what its description here says. A person has to "
    .. "accept the change%s."):format(message.said(key), server.name, server.pins.path
    and ": agenthost mcp pin " .. server.name or ""))
end

return drift
