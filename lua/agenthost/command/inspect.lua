--- Finds the agents, runs and tools of a script without asking a model, for agenthost tools and
-- agenthost check.
--
-- The script's top level runs in a coroutine, with ah.tool, ah.agent, ah.run and os.exit replaced.
-- Its first ah.run, agent:run or registry:execute ends it: the coroutine yields, which pcall cannot
-- catch (if it cannot yield, an error is raised). Code before that takes effect; code after it is
-- not checked, no handler is called and no model is asked. The view of a model is taken from a real
-- request: each agent and run found is run once with a scripted model, which also calls `setup`.
-- A faulty declaration is built again field by field, so that each faulty field is reported and the
-- script continues with the others.
--
-- inspected.lua prints the findings, in a Lua state without the script. The chunk returns one
-- function; see the end of the file.
local ah, use = ...
local foreign = use "foreign"
local repaired = use "text".repaired

-- Kept here, because the script may remove them from the library's table.
local real = { run = ah.run, agent = ah.agent, tool = ah.tool }
local array, object, compile, scripted = ah.array, ah.object, ah.schema, ah.scripted
local decode, encode = ah.json.decode, ah.json.encode
local STOP = setmetatable({ message = "stopped by agenthost check" }, {
  __tostring = function(stop) return stop.message end,
})

-- Limits that providers document or enforce, in characters and items; `unsent` are options that
-- their wire format has no field for.
local LIMITS = {
  openai = { tools = 128, description = 1024, stop = 4, unsent = {} },
  ["openai/responses"] = { unsent = { "seed", "stop" } },
  anthropic = { unsent = { "seed" } },
  azure = { tools = 128, description = 1024, stop = 4, unsent = {} },
  gemini = { tools = 128, stop = 5, unsent = {} },
  groq = { tools = 128, stop = 4, unsent = {} },
  ollama = { unsent = { "tool_choice" } },
  xai = { tools = 128, stop = 4, unsent = {} },
}

-- Fields whose members are tried one by one if the whole field is refused.
local MEMBERS = { params = true, tools = true, options = true, http = true, on = true }

local TASKS_SECONDS = 1 -- for tasks that are at work after the last line, and reach no run

local seen -- the findings of the current script

-- -- places and messages ------------------------------------------------------------------

--- Returns "x.lua:12", the innermost line of the script, or nil.
local function place()
  for level = 2, math.maxinteger do
    local info = debug.getinfo(level, "Sl")
    if not info then
      return nil
    elseif info.currentline > 0 and info.source:sub(1, 10) ~= "=agenthost" then
      return info.short_src .. ":" .. info.currentline
    end
  end
end

--- Returns the message of an error, raised or returned.
local function words(err)
  if type(err) == "table" and type(err.message) == "string" then
    return err.message
  end
  return tostring(err)
end

--- Returns { file, line, message }; the place is that at the message's beginning, else `at`.
local function remark(message, at)
  local file, line, rest = message:match("^([^\n]-):(%d+): (.*)$")
  if not file then
    file, line = (at or ""):match("^(.*):(%d+)$")
    rest = message
  end
  return { file = file, line = math.tointeger(line), message = rest }
end

local function fault(err, at)
  table.insert(seen.faults, remark(words(err), at or place()))
end

local function note(at, text, ...)
  table.insert(seen.notes, remark(text:format(...), at))
end

-- -- putting declarations together ------------------------------------------------------------

local function stand_in()
  seen.stand_ins = seen.stand_ins + 1
  return real.tool { name = "faulty_" .. seen.stand_ins, description = "Has a fault." }
end

--- Returns the keys in a fixed order: those of `first`, then the others by type and name.
local function ordered(t, first)
  local keys, rank = {}, {}
  for i, key in ipairs(first) do
    keys[i], rank[key] = key, i
  end
  for key in pairs(t) do
    if not rank[key] then
      keys[#keys + 1], rank[key] = key, #first + 1
    end
  end
  table.sort(keys, function(a, b)
    if rank[a] ~= rank[b] then
      return rank[a] < rank[b]
    elseif math.type(a) == "integer" and math.type(b) == "integer" then
      return a < b
    end
    return type(a) .. tostring(a) < type(b) .. tostring(b)
  end)
  return keys
end

--- Sets sound[key] to the valid ones of these members. Returns true if it found a faulty one.
local function mend_members(make, sound, key, members)
  local part, faults = {}, #seen.faults
  sound[key] = part
  for _, name in ipairs(ordered(members, {})) do
    part[name] = members[name]
    local ok, err = pcall(make, sound)
    if not ok then
      fault(err)
      part[name] = key == "tools" and math.type(name) and stand_in() or nil
    end
  end
  return #seen.faults > faults
end

--- Removes the reports of missing fields, from fault `first` on, if their misspelt names are also
--- reported. Returns the set of these fields.
local function forget_missing(first)
  local meant = {}
  for i = first, #seen.faults do
    meant[seen.faults[i].message:match "unknown field .*%(did you mean '([%w_]+)'%?%)" or ""] = true
  end
  for i = #seen.faults, first, -1 do
    if meant[seen.faults[i].message:match "field '([%w_]+)' is missing" or false] then
      table.remove(seen.faults, i)
    end
  end
  return meant
end

--- Reports each faulty field, and calls `make` with the valid fields. `good` has a value for each
--- required field; `first` is their order. Returns the result of `make`, the fields, and the set of
--- the fields whose names are misspelt.
local function mend(make, fields, good, first)
  local sound, faults = {}, #seen.faults
  for key, value in pairs(good) do
    sound[key] = value
  end
  for _, key in ipairs(ordered(fields, first)) do
    local value, before = fields[key], sound[key]
    sound[key] = value
    local ok, err = pcall(make, sound)
    local members = MEMBERS[key] and type(value) == "table" and not getmetatable(value)
    local mended = not ok and members and mend_members(make, sound, key, value)
    if not ok and not mended then
      fault(err)
    end
    if not ok and not (mended and pcall(make, sound)) then
      sound[key] = before
    end
  end
  local meant = forget_missing(faults + 1)
  return make(sound), sound, meant
end

-- -- tools ------------------------------------------------------------------------------------

--- Reports examples that the schema itself refuses, at its root and in its properties.
local function check_examples(tool, at)
  local function check(schema, path)
    local examples = type(schema) == "table" and schema.examples
    local ok, compiled = pcall(compile, schema)
    for i, example in ipairs(ok and type(examples) == "table" and examples or {}) do
      local fits, why = compiled:validate(example)
      if not fits then
        fault(("tool '%s': examples[%d]%s: %s"):format(tool.name, i, path, why), at)
      end
    end
  end
  local parameters = tool.spec.parameters
  check(parameters, "")
  for _, name in ipairs(ordered(parameters.properties or {}, {})) do
    check(parameters.properties[name], " of " .. name)
  end
end

local function declare_tool(fields)
  local at = place()
  local ok, tool = pcall(real.tool, fields)
  if not ok and type(fields) == "table" then
    seen.stand_ins = seen.stand_ins + 1
    local good = { name = "faulty_" .. seen.stand_ins, description = "Has a fault." }
    tool = mend(real.tool, fields, good, { "name", "description" })
  elseif not ok then
    fault(tool, at)
    return stand_in()
  end
  check_examples(tool, at)
  table.insert(seen.declared, { tool = tool, at = at })
  return tool
end

-- -- agents and runs --------------------------------------------------------------------------

local STORES = { ["nil"] = true, string = true, table = true, userdata = true }

--- Returns the fields with the model that the command would use, and without a store, whose
--- conversations stay as they are. Without a model it uses demo/echo, and returns true, too.
local function with_model(fields, model)
  local given = {}
  for key, value in pairs(fields) do
    given[key] = value
  end
  if STORES[type(given.store)] and given.store ~= "" then
    given.store = false
  end
  given.model = model ~= "" and model or fields.model
  if given.model == nil and (os.getenv("AGENTHOST_MODEL") or "") == "" then
    given.model = "demo/echo"
    return given, true
  end
  return given
end

local function is_section(value)
  return type(value) == "userdata" and (getmetatable(value) or {}).__name == "agenthost.section"
end

--- Returns the text for the model, which follows the sections, and its index in `fields`.
local function text_of(fields)
  local at = 1
  while is_section(fields[at]) do
    at = at + 1
  end
  return fields[at], at
end

--- Returns the agent. A missing key is only a note; any other error is raised.
local function make_agent(fields)
  local text, place_of_text = text_of(fields)
  if text ~= nil and type(text) ~= "string" and type(text) ~= "table" then
    error("the text for the model must be a string, found " .. type(text), 0)
  elseif text ~= nil and fields[place_of_text + 1] ~= nil then
    error('one text stands behind the sections (several are a list: { "...", "..." })', 0)
  end
  fields[place_of_text] = nil
  local ok, agent, err = pcall(real.agent, fields)
  if ok and agent == nil and not fields.api_key then
    fields.api_key = "none"
    ok, agent = pcall(real.agent, fields)
    fields.api_key = nil
    seen.lacking = words(err)
  end
  fields[place_of_text] = text
  return ok and agent or error(agent or err, 0)
end

local function add_met(kind, fields, model)
  local at = place() or "?"
  if type(fields) ~= "table" then
    fault(("%s: expected a table of fields, found %s"):format(kind, type(fields)), at)
    fields = {}
  end
  local given, unnamed = with_model(fields, model)
  local before, meant, ok, agent = #seen.faults, {}, pcall(make_agent, given)
  if not ok then
    agent, given, meant = mend(make_agent, given, { model = "demo/echo" }, { "model" })
  end
  if unnamed and not meant.model then
    note(at, "no model is named: give model = \"provider/model\", --model or AGENTHOST_MODEL")
  end
  for i = before + 1, #seen.faults do
    seen.faults[i].message = seen.faults[i].message:gsub("^ah%.agent%f[:[]", kind)
  end
  if seen.lacking then
    note(at, "%s", seen.lacking)
    seen.lacking = nil
  end
  local one = { kind = kind, at = at, agent = agent, fields = given }
  one.model = tostring(agent):match("^agent (.*), %d+ tools, %d+ entries$")
  table.insert(seen.met, one)
  return one
end

--- Marks the agent that the script returned at its end; a note if it returned none.
local function note_returned(value)
  local plain = type(value) == "table" and not getmetatable(value)
  for _, one in ipairs(seen.met) do
    one.returned = one.agent == value or plain and one.agent == value.agent or nil
  end
  if value == nil and #seen.met > 0 then
    note(nil, "the script neither runs its agent nor returns it: return ah.agent { ... }")
  end
end

--- Ends the script.
local function stop(script)
  seen.stopped = true
  if ah._current(true) then
    ah._root():cancel() -- ends the task at work at its next wait
    ah.channel():receive()
  elseif coroutine.running() == script and coroutine.isyieldable() then
    coroutine.yield(STOP)
  end
  error(STOP, 0)
end

-- -- what a model would see ---------------------------------------------------------------------

local UNTOLD = {
  "on", "log", "timeout", "deadline", "stream", "base_url", "api_key", "http", "tool_change_mode",
  "fallback",
}

--- Stores facts of the transcript that a request does not have: deferred tools
-- (docs/reference/search.md), which the model does not see, and each tool's annotations and
-- version, which policies use.
local function note_entries(one, agent)
  one.deferred, one.said = array {}, {}
  for _, entry in ipairs(agent and decode(agent:transcript()).entries or {}) do
    for _, spec in ipairs(entry.tools or {}) do
      one.said[spec.name] = { annotations = spec.annotations, version = spec.version }
      if entry.type == "tools_deferred" then
        table.insert(one.deferred, spec)
      end
    end
  end
end

--- Sets one.request to the first request of a run like the one found.
local function probe(one, run)
  local fields, request = {}, nil
  for key, value in pairs(one.fields) do
    fields[key] = value
  end
  for _, key in ipairs(UNTOLD) do
    fields[key] = nil
  end
  local text, place_of_text = text_of(fields)
  fields[place_of_text] = nil
  fields.log = function() end
  fields.model = scripted(function(asked)
    request = asked
    return "seen"
  end)
  local ok, agent, err = pcall(real.agent, fields)
  local answer = ok and agent and { pcall(run, agent, text or "Hello") }
  local why = answer and (answer[3] or answer[2]) or err or agent
  if not request and one.fields.setup and words(why) == STOP.message then
    note(one.at, "`setup` is called when a run begins: what it adds is not checked")
  elseif not request then
    fault(why, one.at)
  end
  note_entries(one, ok and agent)
  one.request = request or { tools = {}, system = "", options = object {} }
end

local function check_limits(one)
  local provider = one.model:match("^(openai/responses)/.") or one.model:match("^(.-)/")
  local limits = LIMITS[provider]
  if not limits then
    return
  end
  local function over(n, limit, what)
    if limit and n > limit then
      fault(("%s takes %d %s at most, found %d"):format(provider, limit, what, n), one.at)
    end
  end
  over(#one.request.tools, limits.tools, "tools")
  for _, spec in ipairs(one.request.tools) do
    local n = utf8.len(spec.description)
    over(n, limits.description, ("characters as description of tool '%s'"):format(spec.name))
  end
  local stops = one.request.options.stop
  over(type(stops) == "table" and #stops or 0, limits.stop, "texts in options.stop")
  for _, name in ipairs(limits.unsent) do
    if one.request.options[name] ~= nil then
      note(one.at, "%s has no options.%s: it is left out", provider, name)
    end
  end
end

local function offer(offered, tools)
  for _, tool in ipairs(tools or {}) do
    offered[type(tool) == "userdata" and tool.name or tool] = true
  end
end

local function offer_section(offered, section)
  offer(offered, section.tools)
  for _, child in ipairs(section.children) do
    offer_section(offered, child)
  end
end

--- Adds the tools that a model gets later: those of summarized sections and of strategies.
local function offer_later(offered, fields)
  for name in pairs(fields.prompt and fields.prompt:hashes().tools or {}) do
    offered[name] = true
  end
  for i = 1, select(2, text_of(fields)) - 1 do
    offer_section(offered, fields[i])
  end
  for _, strategy in ipairs(fields.strategies or {}) do
    offer(offered, type(strategy) == "table" and strategy.later)
  end
end

--- Adds a note for each declared tool that nothing offers.
local function note_unoffered()
  local offered = {}
  for _, one in ipairs(seen.met) do
    for _, spec in ipairs(one.request.tools) do
      offered[spec.name] = true
    end
    for _, spec in ipairs(one.deferred) do
      offered[spec.name] = true
    end
  end
  local sound = #seen.met > 0 and #seen.faults == 0 -- otherwise lists may be incomplete
  for _, one in ipairs(sound and seen.met or {}) do
    offer_later(offered, one.fields)
  end
  for _, declared in ipairs(sound and seen.declared or {}) do
    if not offered[declared.tool.name] then
      note(declared.at, "tool '%s' is in no list of tools of an agent or a run: add it to one",
        declared.tool.name)
    end
  end
end

-- -- running the script --------------------------------------------------------------------

local function load_script(path)
  if path ~= "-" then
    return loadfile(path, "t")
  end
  local text, why = io.read("a")
  if not text then
    return nil, "cannot read standard input: " .. why
  end
  return load((text:gsub("^#[^\n]*", "")), "=stdin", "t")
end

local function replace(script, model)
  local methods = getmetatable(real.agent { model = "demo/echo" }).methods
  local run = methods.run
  ah._unnamed()
  ah.tool = foreign.door(declare_tool)
  -- A C function, so that the script's line can be found after the tail call
  -- `return ah.agent { ... }`.
  ah.agent = ah._fenced(foreign.door(function(fields)
    return add_met("ah.agent", fields, model).agent
  end))
  ah.run = ah._framed(foreign.door(function(fields)
    if not seen.stopped then -- by another task
      add_met("ah.run", fields, model)
    end
    stop(script())
  end))
  methods.run = function()
    stop(script())
  end
  getmetatable(ah.registry()).__index.execute = foreign.door(function(_, name)
    if #seen.met == 0 then
      note(place(), "registry:execute('%s') was called before any run", tostring(name))
    end
    stop(script())
  end)
  rawset(_G.os, "exit", foreign.door(function(code)
    note(place(), "os.exit(%s) was called before any run", tostring(code == nil and 0 or code))
    stop(script())
  end))
  return run
end

-- The command waits for the tasks of a script. Their runs may be its only ones.
local function join_tasks()
  if not seen.stopped then
    pcall(ah.with_timeout, TASKS_SECONDS, ah._join)
  end
end

local function run_script(path, chunk, ...)
  local co = coroutine.create(chunk)
  rawset(_G, "arg", { [0] = path, ... })
  seen.script = co
  local ok, err = foreign.resume(co, ...)
  if not ok and err ~= STOP and not seen.stopped then
    fault(err, type(err) == "table" and path .. ":1" or nil)
  elseif ok and not seen.stopped then
    note_returned(err)
  end
  join_tasks()
  ah._root():cancel()
  coroutine.close(co)
end

local function inspect(path, model, ...)
  local chunk, why = load_script(path)
  if not chunk then
    return fault(why)
  end
  local run = replace(function() return seen.script end, model)
  run_script(path, chunk, ...)
  for _, one in ipairs(seen.met) do
    probe(one, run)
    check_limits(one)
  end
  note_unoffered()
  if #seen.met == 0 and not seen.stopped then
    note(nil, "neither ah.run nor ah.agent was reached: the script ended first%s",
      #seen.faults > 0 and "; correct the faults above, then check again" or "")
  end
end

-- -- handing it over ------------------------------------------------------------------------

-- Messages and file names may have any bytes.
local function remarks(list)
  for i, r in ipairs(list) do
    list[i] = { file = r.file and repaired(r.file), line = r.line, message = repaired(r.message) }
  end
  return array(list)
end

local function plain(met)
  local list = array {}
  for i, one in ipairs(met) do
    local where = repaired(one.at)
    local at = remark("", where)
    list[i] = { kind = one.kind, at = where, file = at.file, line = at.line, model = one.model,
      returned = one.returned, deferred = one.deferred, said = object(one.said),
      request = { system = one.request.system, options = one.request.options,
        tools = array(one.request.tools) } }
  end
  return list
end

--- Inspects a script and returns the findings as JSON, for inspected.lua.
---@param model string the value of --model; "": none
---@param path string the path of the script; "-": standard input
---@param ... string its arguments
---@return string
return function(model, path, ...)
  package.loaded["agenthost.command"] = nil -- the script must find the same as when it is run
  seen = { faults = {}, notes = {}, met = {}, declared = {}, stand_ins = 0 }
  inspect(path, model, ...)
  return encode { path = repaired(path), met = plain(seen.met), faults = remarks(seen.faults),
    notes = remarks(seen.notes) }
end
