--- Ready-made policies (ah.policies). They read the calls of the conversation itself, so they hold
-- across runs, saving and loading.
local ah = ...

local NAMES = "string|string[]"

local read_annotations = ah._reader "ah.Annotations"
local read_requires = ah._reader {
  what = "ah.policies.requires", type = "ah.Requires", rows = {
    { name = "tool", kinds = "string list", needed = true, type = NAMES,
      doc = "names of the tools that need `after`" },
    { name = "after", kinds = "string list", needed = true, type = NAMES,
      doc = "names of the tools that must all have succeeded before" },
  },
}
local read_before_write = ah._reader {
  what = "ah.policies.read_before_write", type = "ah.ReadBeforeWrite", rows = {
    { name = "read", kinds = "string list", needed = true, type = NAMES,
      doc = "names of the tools that read" },
    { name = "write", kinds = "string list", needed = true, type = NAMES,
      doc = "names of the tools that write" },
    { name = "argument", kinds = "string", default = "path",
      doc = "name of the argument that must be equal" },
    { name = "creates", kinds = "function", type = "fun(value: any): boolean",
      doc = "returns true if nothing exists there yet" },
  },
}

--- Returns the names in a field as a set.
local function set_of(what, t, field)
  local set, list = {}, type(t[field]) == "table" and t[field] or { t[field] }
  local ok = #list > 0
  for _, name in ipairs(list) do
    ok = ok and type(name) == "string"
    set[name] = true
  end
  if not ok then
    ah._raise(("%s: field '%s' must be a tool's name or a list of names"):format(what, field))
  end
  return set
end

local function names(set)
  local list = {}
  for name in pairs(set) do
    list[#list + 1] = name
  end
  table.sort(list)
  return table.concat(list, ", ")
end

-- -- policies by annotations ----------------------------------------------------------------

local ANNOTATIONS = { "read_only", "destructive", "idempotent", "open_world", "untrusted" }

--- Returns words for the first annotation of the tool that equals the one in the rule; nil if none
-- does. An annotation that the tool lacks counts as false.
local function matching(t, annotations)
  for _, name in ipairs(ANNOTATIONS) do
    if t[name] ~= nil and (annotations[name] or false) == t[name] then
      return (t[name] and "the tool is %s" or "the tool is not %s"):format(name)
    end
  end
end

local function by_annotations(verdict, t)
  local what = "ah.policies." .. verdict
  t = read_annotations(t, what)
  if next(t) == nil then
    ah._raise(what .. ": give at least one annotation, such as destructive = true")
  end
  return {
    name = verdict,
    before = function(_, m)
      local why = matching(t, m.annotations)
      if why then
        return verdict, why
      end
    end,
  }
end

local M = {}

--- Calls of tools with one of these annotations need an approval.
function M.ask(t)
  return by_annotations("ask", t)
end

--- Calls of tools with one of these annotations are denied.
function M.deny(t)
  return by_annotations("deny", t)
end

--- `tool` runs only after each of `after` has succeeded in this conversation.
function M.requires(t)
  t = read_requires(t)
  local tools = set_of("ah.policies.requires", t, "tool")
  local needed = set_of("ah.policies.requires", t, "after")
  return {
    name = "requires",
    before = function(_, m)
      if not tools[m.name] then
        return
      end
      local missing = {}
      for name in pairs(needed) do
        missing[name] = true
      end
      for _, call in ipairs(m.calls) do
        missing[call.name] = not call.success and missing[call.name] or nil
      end
      if next(missing) then
        return "deny", ("call %s first"):format(names(missing))
      end
    end,
  }
end

--- A call of `write` needs an earlier successful call of `read` or `write` with the same `argument`
-- (default "path"), so that unknown contents are not overwritten. `creates(value)` returns true if
-- there is nothing to read yet.
function M.read_before_write(t)
  local what = "ah.policies.read_before_write"
  t = read_before_write(t)
  local read, write, argument = set_of(what, t, "read"), set_of(what, t, "write"), t.argument
  return {
    name = "read_before_write",
    before = function(_, m)
      local value = write[m.name] and m.arguments[argument]
      if value == nil or value == false or (t.creates and t.creates(value)) then
        return
      end
      for _, call in ipairs(m.calls) do
        local known = call.success and (read[call.name] or write[call.name])
        if known and call.arguments and call.arguments[argument] == value then
          return
        end
      end
      return "deny", ("read %s with %s first"):format(tostring(value), names(read))
    end,
  }
end

return M
