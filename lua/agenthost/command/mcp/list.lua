--- agenthost mcp list: the servers that have names here. Starts none, unless --check is given.
local ah, use = ...
local servers, stored, text = use "mcp.servers", use "stored", use "text"

local pins = ah._module "agenthost.protocols.mcp.client.pins"

-- Returns the number of pinned tools of an entry, and of those that have changed; nil if they are
-- not known.
local function pinned_of(entry, all)
  local id = servers.id(entry)
  local record, n, changed = id and all[id], 0, 0
  for _, pin in pairs(record and record.tools or {}) do
    n, changed = n + 1, changed + (pin.offered and 1 or 0)
  end
  return id and n, changed
end

local function row_of(entry, all)
  local file, pinned, changed = entry.file, pinned_of(entry, all)
  return { name = entry.name, from = file.from, path = text.repaired(file.path),
    trusted = file.trusted, disabled = entry.disabled, where = servers.where(entry),
    pinned = pinned or nil, changed = changed, entry = entry }
end

-- Starts the server of a row, and adds how it is.
local function check(row)
  local began, ok, server = ah.now(), pcall(servers.open, row.entry)
  if not ok then
    row.state, row.why = "failed", type(server) == "table" and server.words or tostring(server)
    return
  end
  local _ <close> = server
  local list, err = server:definitions()
  row.state, row.why = list and "ok" or "failed", err and err.message
  row.revision, row.tools = server.connection.revision, list and #list
  row.seconds = ah.now() - began
end

local function state_of(row)
  if row.state then
    return row.state
  end
  return row.disabled and "off" or row.trusted and "trusted" or "untrusted"
end

local function put_row(out, row)
  local pinned = row.pinned and ("%d pinned%s"):format(row.pinned,
    row.changed > 0 and (", %d changed"):format(row.changed) or "") or ""
  local checked = row.tools and ("%d tools, %s, %.1f s"):format(row.tools,
    text.clean(row.revision or "?"), row.seconds) or row.why and text.clean(row.why) or pinned
  out:write(("%-16s %-8s %-10s %s\n"):format(text.clean(row.name), row.from, state_of(row),
    row.where), checked ~= "" and (" "):rep(36) .. checked .. "\n" or "")
end

-- Returns the rows of JSON.
local function without_entries(rows)
  for _, row in ipairs(rows) do
    row.entry = nil
  end
  return ah.array(rows)
end

local function run(flags, _, out)
  local path = ah._mcp_pins()
  local all, why = pins.read(path or "")
  if path and not all then
    return 2, why
  end
  local rows, wrong, failed = {}, {}, false
  for i, entry in ipairs(servers.entries(servers.files(flags.file), function(file)
    wrong[#wrong + 1] = file.why
  end)) do
    rows[i] = row_of(entry, all or {})
    if flags.check and not rows[i].disabled and rows[i].trusted then
      check(rows[i])
      failed = failed or rows[i].state == "failed"
    end
  end
  if flags.json then
    out:write(text.json { servers = without_entries(rows), faults = ah.array(wrong) }, "\n")
  else
    for _, row in ipairs(rows) do
      put_row(out, row)
    end
  end
  if wrong[1] then
    return 2, table.concat(wrong, "\n")
  elseif not rows[1] and not flags.json then
    out:write(("No server has a name here: there is no %s, and no %s beside your settings.\n")
      :format(servers.NAME, servers.OWN))
  end
  return failed and 3 or 0
end

return {
  name = "mcp list",
  doc = "the servers that have names here",
  help = [[
Lists the servers of the project's .mcp.json and of your own mcp.json, with the
file's state and the number of pinned tools. Nothing is started; --check starts
those that are trusted, and says how they are.
]],
  exits = "0 ok, 2 a file cannot be used, 3 a server cannot be reached.",
  operand = { name = "word", most = 0 },
  flags = { "json", servers.flag,
    { name = "check", doc = "start them: revision, number of tools, time" }, "env-file" },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
