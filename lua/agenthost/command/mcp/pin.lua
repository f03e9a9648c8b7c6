--- agenthost mcp pin: shows definitions of tools that have changed since they were first seen, and
-- accepts them. It starts no server: a change is kept when it is refused, and what is accepted is
-- what was shown.
local ah, use = ...
local pairs_of, servers, stored, text = use "pairs", use "mcp.servers", use "stored", use "text"
local pretty = use "asking.shown".pretty

local pins = ah._module "agenthost.protocols.mcp.client.pins"

local fault, shown = pairs_of.fault, pairs_of.shown

local MOST_LINES = 400 -- of a change that are shown

-- -- which servers -------------------------------------------------------------------------------

-- Returns the id that a word or a command names; nil if the word is a name.
local function id_of(words, line)
  local at, first = line.literal, words[1]
  if at and at <= #words then
    return pins.id { command = words[at], args = table.move(words, at + 1, #words, 1, {}) }
  elseif first and first:find "^https?://" then
    return pins.id { url = first }
  end
end

-- Returns the id of the entry of this name in a file of servers; nil if it is not known.
local function id_of_entry(name, path)
  for _, entry in ipairs(servers.entries(servers.files(path), function() end)) do
    if entry.name == name then
      return servers.id(entry)
    end
  end
end

-- Returns the ids of the servers that the line names, sorted by name, and its words for tools.
local function chosen(all, words, line, flags)
  local at = line.literal and line.literal <= #words and line.literal
  local id = id_of(words, line)
  local name = not id and words[1] or nil
  local own = name and id_of_entry(name, flags.file)
  local ids = {}
  for one, server in pairs(all) do
    if not id and not name or one == id or name and (one == own or server.name == name) then
      ids[#ids + 1] = one
    end
  end
  table.sort(ids, function(a, b)
    return all[a].name < all[b].name or all[a].name == all[b].name and a < b
  end)
  return ids, table.move(words, at and 1 or 2, at and at - 1 or #words, 1, {})
end

local function check_known(ids, all, word)
  if ids[1] or not word then
    return
  end
  local names = {}
  for _, server in pairs(all) do
    names[#names + 1] = server.name
  end
  fault("no tool of '%s' is pinned%s", shown(word), servers.near(word, names))
end

-- -- changes -------------------------------------------------------------------------------------

-- Returns the changes of these servers: { id, server, tool, was, now } each.
local function changes_of(all, ids, tools)
  local list, asked = {}, {}
  for _, tool in ipairs(tools) do
    asked[tool] = true
  end
  for _, id in ipairs(ids) do
    local names = {}
    for name, pin in pairs(all[id].tools) do
      names[#names + 1] = pin.offered and (not tools[1] or asked[name]) and name or nil
    end
    table.sort(names)
    for _, name in ipairs(names) do
      local pin = all[id].tools[name]
      list[#list + 1] = { id = id, server = all[id].name, from = all[id].from, tool = name,
        was = pin, now = pin.offered }
    end
  end
  return list
end

-- Returns the lines of a member of a definition.
local function lines_of(value)
  local lines = {}
  if value ~= nil then
    local said = type(value) == "string" and value or pretty(value)
    for line in (said .. "\n"):gmatch "([^\n]*)\n" do
      lines[#lines + 1] = text.clean(line)
    end
  end
  return lines
end

-- Adds the lines of two texts: those that they have at their beginning and end stay out.
local function add_difference(lines, was, now)
  local first, last = 1, 0
  while was[first] and was[first] == now[first] do
    first = first + 1
  end
  while #was - last >= first and #now - last >= first and was[#was - last] == now[#now - last] do
    last = last + 1
  end
  for i = first, #was - last do
    lines[#lines + 1] = "  - " .. was[i]
  end
  for i = first, #now - last do
    lines[#lines + 1] = "  + " .. now[i]
  end
end

-- Returns the lines that show a change to a person.
local function lines_of_change(change)
  local was, now = ah.json.decode(change.was.text or ""), ah.json.decode(change.now.text or "")
  if type(was) ~= "table" or type(now) ~= "table" then
    return { "  It is too long to be kept: look at it with agenthost mcp tools, and compare it "
      .. "with what the server's author says." }
  end
  local names, lines = {}, {}
  for _, all in ipairs { was, now } do
    for name in pairs(all) do
      names[name] = true
    end
  end
  local sorted = {}
  for name in pairs(names) do
    sorted[#sorted + 1] = name
  end
  table.sort(sorted)
  for _, name in ipairs(sorted) do
    local a, b = lines_of(was[name]), lines_of(now[name])
    if table.concat(a, "\n") ~= table.concat(b, "\n") then
      lines[#lines + 1] = " " .. name
      add_difference(lines, a, b)
    end
  end
  return lines
end

local function put_change(out, change)
  local lines = lines_of_change(change)
  out:write(("%s, tool %s, seen %s, changed %s\n"):format(text.clean(change.server),
    text.clean(change.tool), os.date("%Y-%m-%d", change.was.seen),
    os.date("%Y-%m-%d", change.now.seen)))
  for i = 1, math.min(#lines, MOST_LINES) do
    out:write(lines[i], "\n")
  end
  if #lines > MOST_LINES then
    out:write(("  [%d lines more; --json has all]\n"):format(#lines - MOST_LINES))
  end
  out:flush()
end

-- -- consent -------------------------------------------------------------------------------------

local function agreed(flags)
  if flags.yes then
    return true
  elseif not (ah._is_terminal(0) and ah._is_terminal(2)) then
    return false, "there is no terminal to ask on: read the changes, then add --yes"
  end
  io.stderr:write "Accept this definition? The model does what it says. [y/N] "
  io.stderr:flush()
  local answer = (io.read "l" or ""):lower():match "^%s*(.-)%s*$"
  return answer == "y" or answer == "yes", "it is not accepted"
end

-- Pins what was shown. Raises a fault if the file cannot be used. A definition that has changed
-- again meanwhile is not accepted.
local function accept(path, change)
  local done, why = pins.change(path, function(all)
    local server = all[change.id]
    local pin = server and server.tools[change.tool]
    if not pin or not pin.offered or pin.offered.hash ~= change.now.hash then
      return "changed"
    end
    server.tools[change.tool] = pin.offered
    return "accepted"
  end)
  return done and done == "accepted" or fault("%s", why
    or "it has changed again meanwhile, and is not accepted")
end

-- -- actions -------------------------------------------------------------------------------------

local function forget(path, ids, words, flags, out)
  if not words[1] then
    fault "--forget needs a SERVER"
  end
  local names, why = pins.change(path, function(all)
    local names = ah.array {}
    for i, id in ipairs(ids) do
      names[i], all[id] = all[id] and all[id].name or "?", nil
    end
    return names
  end)
  if not names then
    fault("%s", why)
  elseif flags.json then
    out:write(text.json { forgotten = names }, "\n")
    return
  end
  for _, name in ipairs(names) do
    out:write(text.clean(name), " is forgotten: its tools are pinned anew when they are seen.\n")
  end
end

local function put_json(path, changes, flags, out)
  local rows = ah.array {}
  for i, change in ipairs(changes) do
    if flags.yes then
      accept(path, change)
    end
    rows[i] = { server = change.server, from = change.from, tool = change.tool,
      pinned = change.was.text and ah.json.decode(change.was.text) or nil,
      offered = change.now.text and ah.json.decode(change.now.text) or nil,
      accepted = flags.yes or false }
  end
  out:write(text.json { changes = rows }, "\n")
  return changes[1] and not flags.yes and 1 or 0
end

local function put_all(path, changes, flags, out)
  local refused
  for _, change in ipairs(changes) do
    put_change(out, change)
    local yes, why = agreed(flags)
    if yes then
      accept(path, change)
      out:write "It is accepted.\n"
    else
      refused = why
    end
  end
  if not changes[1] then
    out:write "No definition has changed.\n"
  end
  return refused and 1 or 0, refused
end

local function run(flags, words, out, line)
  local path = ah._mcp_pins() or fault "there is no place for pinned definitions: set HOME"
  local all, why = pins.read(path)
  if not all then
    fault("%s", why)
  end
  local ids, tools = chosen(all, words, line, flags)
  check_known(ids, all, words[1])
  if flags.forget then
    return forget(path, ids, words, flags, out)
  end
  return (flags.json and put_json or put_all)(path, changes_of(all, ids, tools), flags, out)
end

return {
  name = "mcp pin",
  doc = "show and accept definitions of tools that have changed",
  usage = "[SERVER [TOOL...]]",
  help = [[
A tool whose definition has changed since it was first seen is not called, and
its new text is kept from the model. This shows each change and asks whether it
is accepted. SERVER is the name in the warning, an address, or -- COMMAND. No
server is started: what was refused is kept with the pinned definitions, in
$XDG_STATE_HOME/agenthost/mcp_pins.json (default: ~/.local/state). Without a
terminal it needs --yes.
]],
  exits = "0 ok, 1 a change is not accepted, 2 wrong usage.",
  operand = { name = "server" },
  flags = { "json", servers.flag,
    { name = "forget", doc = "forget the pins of SERVER" },
    { name = "yes", letter = "y", doc = "do not ask" } },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
