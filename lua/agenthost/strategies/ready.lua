--- Ready-made strategies (ah.unlock, ah.phases, ah.unfold): they decide which tools are declared
-- and which may be called yet (docs/reference/strategies.md). They use only the interface of
-- scripts' own strategies. They keep no state themselves: `m.state` has it for each conversation.
local ah = ...

local MAX_DEPTH = 16 -- of facades in facades, and of lists in lists

-- -- options ------------------------------------------------------------------------------

local function refuse(text, ...)
  ah._raise(text:format(...))
end

local TOOLS = "string|ah.Tool|(string|ah.Tool)[]"
local NAMED = "tool, name, or list of them"

local read = {} -- readers of options, by function

read.unlock = ah._reader {
  what = "ah.unlock", type = "ah.UnlockConfig", rows = {
    { name = "tools", kinds = "string list object", needed = true, is = NAMED, type = TOOLS,
      doc = "what is locked. Tool objects are declared by the strategy; names refer to tools "
        .. "declared elsewhere" },
    { name = "after", kinds = "string list object", is = NAMED, type = TOOLS,
      doc = "each must have succeeded once in this conversation" },
    { name = "on", kinds = "function", type = "fun(value: any, m: ah.Outcome): any",
      doc = "`on(value, m)`: called with the value of each successful call of `after` (of any tool "
        .. "without `after`); true if the call counts" },
    { name = "when", kinds = "function", type = "fun(m: ah.Outcome): any",
      doc = "`when(m)`: called before each call of a locked tool, as "
        .. "[`before`](strategies.md#before-a-call) is; true allows the call" },
    { name = "any", kinds = "boolean", default = false,
      doc = "one of the conditions is enough; otherwise all must be met" },
    { name = "missing", kinds = "string", otherwise = "made from the conditions",
      doc = "the text after `This tool is not yet available. ` in the result, and after "
        .. "`Not available at once. ` in the description" },
    { name = "name", kinds = "string", default = "unlock",
      doc = "the strategy's name, as of [any strategy](strategies.md#writing-one)" },
  },
}
read.phases = ah._reader {
  what = "ah.phases", type = "ah.PhasesConfig", rows = {
    { name = "phases", kinds = "list", needed = true, is = "list of tables", type = "ah.Phase[]",
      doc = "at least one phase, see below" },
    { name = "start", kinds = "string", otherwise = "the first",
      doc = "the name of the first phase of a conversation" },
    { name = "hide", kinds = "boolean", default = false,
      doc = "only the tools of the current phase are declared. By default all tools stay declared, "
        .. "which keeps the provider's cache" },
    { name = "name", kinds = "string", default = "phases",
      doc = "the strategy's name, as of [any strategy](strategies.md#writing-one)" },
  },
}
read.phase = ah._reader {
  what = "ah.phases: phases", type = "ah.Phase", rows = {
    { name = "name", kinds = "string", needed = true, doc = "a name that no other phase has" },
    { name = "tools", kinds = "string list object", is = NAMED, type = TOOLS,
      doc = "as in `ah.unlock`; with `hide` only tool objects. A tool may be in several phases" },
    { name = "next", kinds = "table function",
      type = "table<string, string>|fun(m: ah.Outcome): string?",
      doc = "a table from a tool's name to the phase that follows its success; or `next(m)`, "
        .. "called after each success in this phase, which returns the next phase or nil" },
  },
}
read.unfold = ah._reader {
  what = "ah.unfold", type = "ah.UnfoldConfig", rows = {
    { name = "name", kinds = "string", needed = true,
      doc = "the facade's name, as of any tool; the strategy's name is `unfold.` and this" },
    { name = "description", kinds = "string", needed = true,
      doc = "the facade's description: what is behind it" },
    { name = "full_description", kinds = "string",
      doc = "the facade's full description, as in [`ah.tool`](tool.md#ahtool)" },
    { name = "tools", kinds = "list object", is = "list", type = "(ah.Tool|ah.StrategyObject)[]",
      doc = "tools, and facades made by `ah.unfold`, nested at most 16 levels deep; either this or "
        .. "`categories`" },
    { name = "categories", kinds = "table",
      type = "table<string, (ah.Tool|ah.StrategyObject)[]>",
      doc = "such lists by name: the facade then takes the parameter `category` and opens that "
        .. "list" },
    { name = "exclusive", kinds = "boolean", default = false,
      doc = "only one category is open at a time; opening another closes it" },
  },
}

local function is_tool(value)
  return type(value) == "userdata" and (getmetatable(value) or {}).__name == "agenthost.tool"
end

-- Strategies of unfold -> their facades, so that one may be among the tools of another.
local FACADES = setmetatable({}, { __mode = "k" })

-- Appends the values of a list, and of all lists and tool groups in it, to `list`. `what` is its
-- place in error messages.
local function flatten(what, value, list, depth)
  if type(value) ~= "table" or FACADES[value] then
    list[#list + 1] = value
    return list
  elseif depth > MAX_DEPTH then
    refuse("%s...: more than %d lists within each other", what:sub(1, 100), MAX_DEPTH)
  end
  if (getmetatable(value) or {}).__name == "agenthost.tool_group" then
    value = value.tools
  end
  for i = 1, ah._check_list(value, what) do
    flatten(("%s[%d]"):format(what, i), value[i], list, depth + 1)
  end
  return list
end

-- Returns a name, a tool, or a list of them, as a list of names; an empty list for nil.
local function names_of(what, field, value)
  if value == nil then
    return {}
  end
  local names = {}
  for i, v in ipairs(flatten(("%s: %s"):format(what, field), value, {}, 1)) do
    if type(v) ~= "string" and not is_tool(v) then
      refuse("%s: %s[%d] must be a tool or a tool's name, found a %s", what, field, i, type(v))
    end
    names[i] = is_tool(v) and v.name or v
  end
  if #names == 0 then
    refuse("%s: field '%s' names no tool", what, field)
  end
  return names
end

local function tools_among(value)
  local tools = {}
  for _, v in ipairs(flatten("tools", value, {}, 1)) do
    tools[#tools + 1] = is_tool(v) and v or nil
  end
  return tools
end

local function set_of(list)
  local set = {}
  for _, v in ipairs(list) do
    set[v] = true
  end
  return set
end

-- Returns "`a`, `b` and `c`".
local function quoted(names, word)
  local list = {}
  for i, name in ipairs(names) do
    list[i] = "`" .. name .. "`"
  end
  local last = table.remove(list)
  return #list == 0 and last or table.concat(list, ", ") .. " " .. word .. " " .. last
end

-- Replaces one list of tools with another: only tools that differ are added or removed.
local function swap(m, old, new)
  local was, is = set_of(old), set_of(new)
  for _, tool in ipairs(old) do
    if not is[tool] then
      m:remove(tool.name)
    end
  end
  for _, tool in ipairs(new) do
    if not was[tool] then
      m:add(tool)
    end
  end
end

-- -- unlock -------------------------------------------------------------------------------

-- Means "some call" among the names of tools; no tool can have this name.
local ANY_CALL = "*"

local function keys_missing(keys, done)
  local missing = {}
  for _, key in ipairs(keys) do
    missing[#missing + 1] = not done[key] and key or nil
  end
  return missing
end

-- Renders, for the model, the calls that must come first.
local function say_calls(missing, any, on)
  if missing[1] == ANY_CALL then
    return "The result of an earlier call must allow it."
  end
  local it = (#missing == 1 or any) and "its result" or "their results"
  return ("Call %s first%s."):format(
    quoted(missing, any and "or" or "and"), on and "; " .. it .. " must allow this" or "")
end

-- `alone`: the sentence about the condition, unless it is an alternative to the calls.
local function say_needs(keys, t, alone)
  local words = {}
  if #keys > 0 then
    words[1] = say_calls(keys, t.any, t.on)
  end
  if t.when then
    words[#words + 1] = #keys > 0 and t.any and "Or its condition must hold." or alone
  end
  return table.concat(words, " ")
end

-- Returns the text in the description of a locked tool. It is true before and after the tool is
-- unlocked, so that the description never changes.
local function say_lock(keys, t)
  return "Not available at once. " .. (t.missing or say_needs(keys, t, "Its condition must hold."))
end

-- Returns the reason why the tool is locked, or nil if it is not.
local function shut(keys, t, m)
  local missing = keys_missing(keys, m.state or {})
  local holds = t.when and t.when(m)
  if t.any and (#missing < #keys or holds) then
    return nil
  end
  if not t.any and #missing == 0 and (holds or not t.when) then
    return nil
  end
  return say_needs(missing, { any = t.any, on = t.on, when = t.when and not holds },
    "Its condition does not hold.")
end

local function check_not_among(names, locked)
  for _, name in ipairs(names) do
    if locked[name] then
      refuse("ah.unlock: '%s' would have to be called before it is unlocked", name)
    end
  end
end

--- ah.unlock: tools that are declared, but may be called only after something has happened.
local function unlock(t)
  t = read.unlock(t)
  if t.after == nil and not t.on and not t.when then
    refuse "ah.unlock: one of 'after', 'on' and 'when' must say what unlocks the tools"
  end
  local locked = set_of(names_of("ah.unlock", "tools", t.tools))
  local keys = names_of("ah.unlock", "after", t.after)
  check_not_among(keys, locked)
  if #keys == 0 and t.on then
    keys = { ANY_CALL }
  end
  local wanted = set_of(keys)

  local S = { name = t.name, tools = tools_among(t.tools), describe = {} }
  for name in pairs(locked) do
    S.describe[name] = say_lock(keys, t)
  end
  function S.before(_, m)
    local why = locked[m.name] and shut(keys, t, m)
    return why and "This tool is not yet available. " .. (t.missing or why) or nil
  end
  function S.after(_, m)
    local key = wanted[ANY_CALL] and ANY_CALL or m.name
    if not m.success or not wanted[key] or (m.state and m.state[key]) then
      return
    end
    if not t.on or t.on(m.value, m) then
      local state = m.state or {}
      state[key] = true
      m.state = state
    end
  end
  return S
end

-- -- phases -------------------------------------------------------------------------------

local function check_next(phases, phase)
  local what = ("ah.phases: phase '%s'"):format(phase.name)
  for tool, target in pairs(type(phase.next) == "table" and phase.next or {}) do
    if type(tool) ~= "string" or not phases[target] then
      refuse("%s: next maps names of tools to phases, and '%s' is none", what, tostring(target))
    end
  end
end

-- Returns the phases by name, each { name, names (set), tools, next }, and the list in order.
local function read_phases(t)
  local phases, order = {}, {}
  for i, p in ipairs(t.phases) do
    local what = ("ah.phases: phases[%d]"):format(i)
    p = read.phase(p, what)
    if phases[p.name] then
      refuse("%s: field 'name' must be a string that no other phase has", what)
    end
    local names = names_of("ah.phases", ("phase '%s': tools"):format(p.name), p.tools)
    local tools = tools_among(p.tools)
    if t.hide and #tools < #names then
      refuse("ah.phases: with hide, phase '%s' needs the tools themselves, not names", p.name)
    end
    order[i] = { name = p.name, names = set_of(names), tools = tools, next = p.next }
    phases[p.name] = order[i]
  end
  for _, p in ipairs(order) do
    check_next(phases, p)
  end
  return phases, order
end

-- Returns the tools of the phases, each once.
local function tools_of(phases)
  local list, seen = {}, {}
  for _, phase in ipairs(phases) do
    for _, tool in ipairs(phase.tools) do
      if seen[tool.name] and seen[tool.name] ~= tool then
        refuse("ah.phases: there are two tools named '%s'", tool.name)
      end
      list[#list + 1] = not seen[tool.name] and tool or nil
      seen[tool.name] = tool
    end
  end
  return list
end

-- Returns "`plan_done` leads to 'execution'."
local function say_ways(phase)
  local tools, words = {}, {}
  for tool in pairs(type(phase.next) == "table" and phase.next or {}) do
    tools[#tools + 1] = tool
  end
  table.sort(tools)
  for i, tool in ipairs(tools) do
    words[i] = (" `%s` leads to '%s'."):format(tool, phase.next[tool])
  end
  return table.concat(words)
end

local function say_wrong_phase(tool, current, required)
  return ("Tool '%s' belongs to phase %s; the current phase is '%s'.%s"):format(
    tool, table.concat(required, " and "), current.name, say_ways(current))
end

--- ah.phases: tools that belong to phases of the work; successes lead from one phase to the next.
local function phases_of(t)
  t = read.phases(t)
  if #t.phases == 0 then
    refuse "ah.phases: field 'phases' must be a list of { name, tools, next }"
  end
  local phases, order = read_phases(t)
  local start = phases[t.start or order[1].name]
  if not start then
    refuse("ah.phases: start: there is no phase '%s'", t.start)
  end
  local all, required, hide = tools_of(order), {}, t.hide
  for _, phase in ipairs(order) do
    for name in pairs(phase.names) do
      required[name] = required[name] or {}
      table.insert(required[name], "'" .. phase.name .. "'")
    end
  end

  local function current(m)
    local phase = phases[m.state or start.name]
    if not phase then
      refuse("the conversation is in phase '%s', which there is not", m.state)
    end
    return phase
  end

  local S = { name = t.name, tools = hide and start.tools or all, later = all }
  function S.before(_, m)
    local now = required[m.name] and current(m)
    if now and not now.names[m.name] then
      return say_wrong_phase(m.name, now, required[m.name])
    end
  end
  function S.after(_, m)
    local now = m.success and current(m)
    local way = now and now.next
    local target
    if type(way) == "function" then
      target = way(m)
    else
      target = way and way[m.name]
    end
    if not target or target == now.name then
      return
    end
    if not phases[target] then
      refuse("next of phase '%s' gave '%s', which is no phase", now.name, tostring(target))
    end
    m.state = target
    m:note(("The current phase is now '%s'."):format(target))
    if hide then
      swap(m, now.tools, phases[target].tools)
    end
  end
  return S
end

-- -- unfold -------------------------------------------------------------------------------

-- Name of the only group of a facade without categories.
local ALL = ""

-- Returns the tools and facades of one group; a strategy of unfold is replaced by its facade.
local function read_items(facade, group, list)
  if type(list) ~= "table" then
    refuse("ah.unfold: %s: %s must be a list of tools", facade.name, group)
  end
  local items = {}
  list = flatten(("ah.unfold: %s: %s"):format(facade.name, group), list, {}, 1)
  if #list == 0 then
    refuse("ah.unfold: %s: %s must be a list of tools", facade.name, group)
  end
  for i, v in ipairs(list) do
    if not is_tool(v) and not FACADES[v] then
      refuse("ah.unfold: %s: %s[%d] must be made by ah.tool or ah.unfold, found a %s",
        facade.name, group, i, type(v))
    end
    items[i] = FACADES[v] or v
  end
  return items
end

local function read_groups(facade, t)
  if not t.categories then
    facade.groups[ALL] = read_items(facade, "tools", t.tools)
    return { ALL }
  end
  local names = {}
  for name, list in pairs(t.categories) do
    if type(name) ~= "string" or name == ALL then
      refuse("ah.unfold: %s: categories maps names to lists of tools", facade.name)
    end
    names[#names + 1] = name
    facade.groups[name] = read_items(facade, ("category '%s'"):format(name), list)
  end
  table.sort(names)
  return names
end

-- Indexes every facade and tool of a tree by name; a name may belong to one of them only.
local function index(facade, by_name, depth)
  if depth > MAX_DEPTH then
    refuse("ah.unfold: more than %d facades inside one another", MAX_DEPTH)
  end
  local function put(name, value)
    if by_name[name] and by_name[name] ~= value then
      refuse("ah.unfold: there are two tools named '%s'", name)
    end
    by_name[name] = value
  end
  put(facade.name, facade)
  for _, group in ipairs(facade.order) do
    for _, item in ipairs(facade.groups[group]) do
      if is_tool(item) then
        put(item.name, item)
      else
        index(item, by_name, depth + 1)
      end
    end
  end
  return by_name
end

local function facade_tool(facade, t)
  local schema
  if t.categories then
    schema = {
      type = "object", required = { "category" }, additionalProperties = false,
      properties = { category = { type = "string", enum = facade.order } },
    }
  end
  return ah.tool {
    name = t.name,
    description = t.description,
    full_description = t.full_description,
    schema = schema,
    handler = function(args)
      return args.category and ("Category '%s' of `%s` is open."):format(args.category, t.name)
        or ("`%s` is open."):format(t.name)
    end,
  }
end

-- Returns the groups that are open, in the order of their opening; nil if the facade is closed.
local function open_groups(facade, state)
  return state[facade.name]
end

-- Returns true if the facade itself can be called.
local function is_shown(facade, state)
  local open = open_groups(facade, state)
  return not open or facade.exclusive or #open < #facade.order
end

-- Appends the tools that are available in a state to `list`, in order.
local function tools_in(facade, state, list)
  if is_shown(facade, state) then
    list[#list + 1] = facade.tool
  end
  for _, group in ipairs(open_groups(facade, state) or {}) do
    for _, item in ipairs(facade.groups[group] or {}) do
      if is_tool(item) then
        list[#list + 1] = item
      else
        tools_in(item, state, list)
      end
    end
  end
  return list
end

-- Closes all groups of the facade, and of the facades in them.
local function close(facade, state)
  for _, group in ipairs(open_groups(facade, state) or {}) do
    for _, item in ipairs(facade.groups[group] or {}) do
      if not is_tool(item) then
        close(item, state)
      end
    end
  end
  state[facade.name] = nil
end

local function open_group(facade, group, state)
  if facade.exclusive then
    close(facade, state)
  end
  local open = state[facade.name] or {}
  open[#open + 1] = group
  state[facade.name] = open
end

-- Returns the group that a call would open, if it is open already; ALL if no group is left to open;
-- else a false value.
local function is_open(facade, m)
  local open = open_groups(facade, m.state or {})
  local group = facade.groups[ALL] and ALL
    or type(m.arguments) == "table" and m.arguments.category
  return open and (set_of(open)[group] and group or not is_shown(facade, m.state) and ALL)
end

local function say_open(facade, group, m)
  local there, names = {}, {}
  for _, tool in ipairs(m.tools) do
    there[tool.name] = true
  end
  for _, tool in ipairs(tools_in(facade, m.state, {})) do
    names[#names + 1] = tool ~= facade.tool and there[tool.name] and tool.name or nil
  end
  local what = group == ALL and ("`%s`"):format(facade.name)
    or ("Category '%s' of `%s`"):format(group, facade.name)
  return ("%s is open already. Its tools: [%s]"):format(what, table.concat(names, ", "))
end

local function check_unfold(t)
  if (t.tools == nil) == (t.categories == nil) then
    refuse("ah.unfold: %s: one of 'tools' and 'categories' says what there is to unfold", t.name)
  end
  if t.exclusive and not t.categories then
    refuse("ah.unfold: %s: 'exclusive' is for categories: only one of them is open", t.name)
  end
end

-- Returns all tools behind a facade, which may be added later.
local function tools_behind(facade, by_name)
  local list = {}
  for _, item in pairs(by_name) do
    if item ~= facade then
      list[#list + 1] = is_tool(item) and item or item.tool
    end
  end
  return list
end

--- ah.unfold: one tool that is replaced by many when it is called.
local function unfold(t)
  t = read.unfold(t)
  check_unfold(t)
  local root = { name = t.name, groups = {}, exclusive = t.exclusive }
  root.order = read_groups(root, t)
  root.tool = facade_tool(root, t)
  local by_name = index(root, {}, 1)

  local function facade_of(name)
    local item = by_name[name]
    return item and not is_tool(item) and item or nil
  end

  local later = tools_behind(root, by_name)
  local S = { name = "unfold." .. t.name, tools = { root.tool }, later = later }
  function S.before(_, m)
    local facade = facade_of(m.name)
    local group = facade and is_open(facade, m)
    return group and say_open(facade, group, m) or nil
  end
  function S.after(_, m)
    local facade = m.success and facade_of(m.name)
    if not facade then
      return
    end
    local state = m.state or {}
    local old = tools_in(root, state, {})
    open_group(facade, facade.groups[ALL] and ALL or m.arguments.category, state)
    m.state = state
    swap(m, old, tools_in(root, state, {}))
  end
  FACADES[S] = root
  return S
end

return { unlock = unlock, phases = phases_of, unfold = unfold }
