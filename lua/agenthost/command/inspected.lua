--- Prints the findings of inspect.lua, for agenthost tools and agenthost check.
local ah = ...

local function counted(n, what)
  return ("%d %s%s"):format(n, what, n == 1 and "" or "s")
end

local function lines_of(remarks, kind)
  local lines = {}
  for i, r in ipairs(remarks) do
    local at = r.file and ("%s:%d: "):format(r.file, r.line) or ""
    lines[i] = at .. kind .. r.message .. "\n"
  end
  return table.concat(lines)
end

local ANNOTATIONS = { "read_only", "destructive", "idempotent", "open_world", "untrusted" }

--- Returns "  (read_only, not destructive, version 2)" for a tool's annotations and version; "" if
-- it has none.
local function said_text(said)
  local list = {}
  for _, name in ipairs(ANNOTATIONS) do
    local value = (said.annotations or {})[name]
    list[#list + 1] = value ~= nil and (value and name or "not " .. name) or nil
  end
  list[#list + 1] = said.version and "version " .. said.version
  return #list > 0 and ("  (%s)\n"):format(table.concat(list, ", ")) or ""
end

--- Returns a tool's entry in the list: its parameters without the braces around them.
local function tool_text(spec, said)
  local form = ah.schema.describe(spec.parameters)
  local inside = form:match("^{\n(.*)\n}$") or (form ~= "{}" and "  " .. form)
  return ("%s: %s\n%s%s"):format(spec.name, spec.description, said_text(said),
    inside and inside .. "\n" or "")
end

-- Returns the tools' texts, and their size in bytes as JSON.
local function texts_of(one, tools)
  local specs, bytes = {}, 0
  for i, spec in ipairs(tools) do
    specs[i] = tool_text(spec, one.said[spec.name] or {})
    bytes = bytes + #ah.json.encode(spec)
  end
  return table.concat(specs, "\n"), bytes
end

local function deferred_text(one)
  local texts, bytes = texts_of(one, one.deferred)
  return #one.deferred > 0 and ("\nto be found: %s of %d bytes\n\n%s"):format(
    counted(#one.deferred, "tool"), bytes, texts) or ""
end

local function met_text(one)
  local texts, bytes = texts_of(one, one.request.tools)
  return ("%s: %s%s asks %s, %s of %d bytes\n\n%s%s"):format(one.at, one.kind,
    one.returned and ", which is returned," or "", one.model,
    counted(#one.request.tools, "tool"), bytes, texts, deferred_text(one))
end

local function names_of(tools)
  local names = ah.array {}
  for i, spec in ipairs(tools) do
    names[i] = spec.name
  end
  return names
end

--- Returns the tools' specs as a model sees them, with their annotations and versions.
local function specs_of(one, tools)
  local specs = ah.array {}
  for i, spec in ipairs(tools) do
    local whole, said = {}, one.said[spec.name] or {}
    for key, value in pairs(spec) do
      whole[key] = value
    end
    whole.annotations, whole.version = said.annotations, said.version
    specs[i] = whole
  end
  return specs
end

local function met_json(one, exact)
  return { kind = one.kind, file = one.file, line = one.line, model = one.model,
    returned = one.returned,
    system = one.request.system, options = one.request.options,
    tools = exact and specs_of(one, one.request.tools) or names_of(one.request.tools),
    deferred = #one.deferred > 0 and (exact and one.deferred or names_of(one.deferred)) or nil }
end

local function as_json(seen, exact)
  local met = ah.array {}
  for i, one in ipairs(seen.met) do
    met[i] = met_json(one, exact)
  end
  return ah.json.encode { met = met, faults = seen.faults, notes = seen.notes } .. "\n"
end

local function check_text(seen)
  local kinds, tools = { ["ah.run"] = 0, ["ah.agent"] = 0 }, 0
  for _, one in ipairs(seen.met) do
    kinds[one.kind] = kinds[one.kind] + 1
    tools = tools + #one.request.tools
  end
  return ("%s%s%s: %s (%s, %s, %s)\n"):format(lines_of(seen.faults, ""),
    lines_of(seen.notes, "note: "), seen.path, counted(#seen.faults, "fault"):gsub("^0", "no"),
    counted(kinds["ah.agent"], "agent"), counted(kinds["ah.run"], "run"), counted(tools, "tool"))
end

local function tools_text(seen)
  local texts = {}
  for i, one in ipairs(seen.met) do
    texts[i] = met_text(one)
  end
  return table.concat(texts, "\n") .. lines_of(seen.notes, "note: ")
end

--- Writes the findings to `out`, and returns the exit code.
---@param command "tools"|"check"
---@param flags table of the command line
---@param found string the JSON that inspect.lua returned
---@param out table
---@return integer
return function(command, flags, found, out)
  local seen = ah.json.decode(found)
  local text = check_text
  if flags.json then
    text = as_json
  elseif command == "tools" and #seen.faults == 0 then
    text = tools_text
  end
  out:write(text(seen, command == "tools"))
  return #seen.faults == 0 and 0 or 1
end
