--- agenthost mcp tools: the tools of a server, with their state among the pinned definitions.
local ah, use = ...
local pairs_of, servers, stored, text = use "pairs", use "mcp.servers", use "stored", use "text"

local fault, shown = pairs_of.fault, pairs_of.shown

local HINTS = { "read_only", "destructive", "idempotent", "open_world" }

-- Returns the row of a judged definition.
local function row_of(one)
  local definition = one.definition
  return { name = definition.key, description = definition.description,
    full_description = definition.full_description, state = one.state,
    annotations = definition.annotations, parameters = ah.json.decode(definition.schema:text()),
    result = definition.result and ah.json.decode(definition.result:text()) or nil }
end

local function hints_of(row)
  local list = {}
  for _, name in ipairs(HINTS) do
    local value = row.annotations[name]
    list[#list + 1] = value ~= nil and (value and name or "not " .. name) or nil
  end
  list[#list + 1] = row.state ~= "pinned" and row.state or nil
  return list[1] and (" (%s)"):format(table.concat(list, ", ")) or ""
end

local function put_row(out, row)
  out:write(("%s%s\n  %s\n"):format(text.clean(row.name), hints_of(row),
    text.clean(row.description)))
end

-- Prints one tool with its whole description and its parameters.
local function put_whole(out, row)
  out:write(text.clean(row.name), hints_of(row), "\n")
  for line in ((row.full_description or row.description) .. "\n"):gmatch "([^\n]*)\n" do
    out:write("  ", text.clean(line), "\n")
  end
  out:write("\nparameters\n")
  for line in (ah.schema.describe(row.parameters) .. "\n"):gmatch "([^\n]*)\n" do
    out:write("  ", text.clean(line), "\n")
  end
end

-- Returns the rows that are asked for.
local function chosen(rows, name)
  if not name then
    return rows
  end
  local names = {}
  for i, row in ipairs(rows) do
    if row.name == name then
      return { row }
    end
    names[i] = row.name
  end
  servers.no_tool(name, names)
end

-- -- prompts and resources -----------------------------------------------------------------------

-- Prints the items of a list, a line and perhaps a description each.
local function put_items(out, items, label)
  for _, item in ipairs(items) do
    out:write(text.clean(item[label] or "?"), "\n")
    local about = item.description or item.title
    if about then
      out:write("  ", text.clean(about), "\n")
    end
  end
end

local function put_list(flags, out, label, items, err)
  if not items then
    return servers.failure(err)
  elseif flags.json then
    out:write(text.json(ah.array(items)), "\n")
  else
    put_items(out, items, label)
  end
end

-- -- the whole -----------------------------------------------------------------------------------

local function put_tools(flags, out, server, name)
  local list, err = server:definitions()
  if not list then
    return servers.failure(err)
  end
  local rows = {}
  for i, one in ipairs(server.judged or {}) do
    rows[i] = row_of(one)
  end
  rows = chosen(rows, name)
  if flags.json then
    out:write(text.json(ah.array(rows)), "\n")
    return
  end
  for _, row in ipairs(rows) do
    (name and put_whole or put_row)(out, row)
  end
end

local function run(flags, words, out, line)
  local server <close>, rest = servers.of_line(words, line, flags.file)
  if rest[2] or rest[1] and (flags.prompts or flags.resources) then
    fault("agenthost mcp tools takes one TOOL, found '%s' besides", shown(rest[#rest]))
  elseif flags.prompts then
    return put_list(flags, out, "name", server:prompts())
  elseif flags.resources then
    return put_list(flags, out, "uri", server:resources())
  end
  return put_tools(flags, out, server, rest[1])
end

return {
  name = "mcp tools",
  doc = "the tools of a server, or all about one of them",
  usage = "SERVER [TOOL] | [TOOL] -- COMMAND [ARGS...]",
  help = [[
Starts or asks the server, and lists its tools with the hints that it gives.
Their definitions are pinned when they are first seen: new and changed ones are
marked. With TOOL: its whole description and its parameters.
]],
  exits = "0 ok, 2 wrong usage, 3 it cannot be reached, 4 it does not answer.",
  operand = { name = "server", least = 1 },
  flags = { "json", servers.flag,
    { name = "prompts", doc = "its prompts in place of its tools" },
    { name = "resources", doc = "its resources in place of its tools" }, "env-file" },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
