--- Resources of runs (seed 002, Resource Registry), bound by name or type. Each is made when a
-- handler first asks for it, and closed after its last use, the newest first.
--
-- A *container* belongs to a run and holds its singletons. A *view* belongs to a call
-- (ctx.resources) and holds the resources of that call. lua_resources.c decides when either ends.
local ah = ...

local MAX_DEPTH = 32 -- of resources that ask for resources

local views = setmetatable({}, { __mode = "k" }) -- view -> { container, ctx, values, last, over }

local function fail(code, text, ...)
  error(ah.error { code = code, message = "resources: " .. text:format(...) }, 0)
end

local function is_resource(def)
  local meta = type(def) == "table" and getmetatable(def)
  return type(meta) == "table" and rawget(meta, "__name") == "agenthost.resource"
end

local function class_of(value)
  local meta = getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__name") or meta
end

local function name_of(key)
  return type(key) == "string" and key or class_of(key) == "agenthost.type" and key.name
    or tostring(key)
end

local function path_to(container, key)
  local names = {}
  for i, k in ipairs(container.path) do
    names[i] = name_of(k)
  end
  names[#names + 1] = name_of(key)
  return table.concat(names, " -> ")
end

-- -- making -----------------------------------------------------------------------------------

local function check_path(container, key)
  for _, k in ipairs(container.path) do
    if k == key then
      fail("prompt_validation", "they depend on each other: %s", path_to(container, key))
    end
  end
  if #container.path >= MAX_DEPTH then
    fail("prompt_validation", "more than %d depend on each other: %s", MAX_DEPTH,
      path_to(container, key))
  end
end

--- Calls def.provide. It cannot wait, so that no other call comes between: see ah._fenced in
-- lua_resources.c.
local function provide(container, key, def, ctx)
  local path = container.path
  check_path(container, key)
  path[#path + 1] = key
  local ok, value = pcall(def.provide, ctx)
  if ok and not value then
    ok, value = pcall(fail, "usage", "'%s' was provided as %s", name_of(key), tostring(value))
  end
  path[#path] = nil
  if not ok then
    error(value, 0)
  end
  return value
end

--- Makes a value that `owner` closes. Its slot is allocated before the value is made.
local function make(container, owner, key, def, ctx)
  local slot = { name = name_of(key), close = def.close, value = false, below = false }
  local value = provide(container, key, def, ctx)
  if def.close then
    slot.value, slot.below = value, owner.last
    owner.last = slot
  end
  return value
end

local function make_once(container, owner, key, def, ctx)
  if not owner.values[key] then
    owner.values[key] = false
    owner.values[key] = make(container, owner, key, def, ctx)
  end
  return owner.values[key]
end

local function resolve(s, key, def)
  local container = s.container
  if def.scope == "singleton" then
    return make_once(container, container, key, def, container.ctx)
  elseif def.scope == "prototype" then
    return make(container, s.ctx and s or container, key, def, s.ctx or container.ctx)
  elseif not s.ctx then
    fail("prompt_validation", "a singleton cannot need a resource of one call: %s",
      path_to(container, key))
  end
  return make_once(container, s, key, def, s.ctx)
end

-- -- views ------------------------------------------------------------------------------------

local function has_methods(value)
  return type(value.snapshot) == "function" and type(value.restore) == "function"
end

--- Returns true if the value is to be restored when a call fails. Values of the library restore
-- themselves.
local function is_undone(value)
  local kind, class = type(value), class_of(value)
  if (kind ~= "table" and kind ~= "userdata")
    or (type(class) == "string" and class:find("^agenthost%.")) then
    return false
  end
  local ok, has = pcall(has_methods, value)
  return ok and has
end

local function find(view, key)
  local s = views[view]
  if not s or s.over then
    fail("usage", "the call is over")
  elseif key == nil then
    fail("usage", "a name or a type is missing")
  end
  local def = s.container.defs[key]
  local made = is_resource(def)
  local value = def
  if made then
    value = resolve(s, key, def)
  end
  if s.ctx and not (made and def.scope ~= "singleton") and is_undone(value) then
    s.ctx:enlist(value, name_of(key))
  end
  return value
end

local function get(view, key)
  local value = find(view, key)
  if value == nil then
    local names = {}
    for k in pairs(views[view].container.defs) do
      names[#names + 1] = name_of(k)
    end
    table.sort(names)
    fail("usage", "there is no '%s'; there are: [%s]", name_of(key), table.concat(names, ", "))
  end
  return value
end

local VIEW = { __name = "agenthost.resources",
  __index = { get = ah._fenced(get), get_optional = ah._fenced(find) } }

function VIEW.__newindex()
  error("ctx.resources is read-only", 2)
end

local function new_view(container, ctx)
  local view = setmetatable({}, VIEW)
  views[view] = { container = container, ctx = ctx, values = {}, last = false, over = false }
  return view
end

-- -- closing ------------------------------------------------------------------------------------

local function report(slot, err)
  ah.log("warning", ("resource '%s' could not be closed: %s"):format(slot.name, tostring(err)))
end

local function close_all(owner)
  while owner.last do
    local slot = owner.last
    owner.last = slot.below
    local ok, err = pcall(slot.close, slot.value)
    if not ok then
      pcall(report, slot, err)
    end
  end
end

-- -- for lua_resources.c ------------------------------------------------------------------------

local M = {}

local function put(defs, key, value)
  if type(key) ~= "string" and class_of(key) ~= "agenthost.type" then
    fail("prompt_validation", "they are bound by a name or a type, found a %s", type(key))
  end
  defs[key] = value
end

local function put_all(defs, from)
  for key, value in pairs(from or {}) do
    put(defs, key, value)
  end
end

--- Returns the definitions of a prompt and of a run, which take precedence; nil if there are none.
function M.bind(of_prompt, of_run)
  local defs = {}
  put_all(defs, of_prompt)
  put_all(defs, of_run)
  return next(defs) ~= nil and defs or nil
end

function M.open(defs)
  local container = { defs = defs, path = {}, values = {}, last = false }
  container.ctx = { resources = new_view(container) }
  return container
end

local OWN = { __name = VIEW.__name, __index = VIEW.__index }

function OWN.__newindex(view, key, value)
  put(views[view].container.defs, key, value)
end

--- Returns a view of the container for `setup`; assignments to it bind more in this container only.
function M.own(container)
  container.defs = M.bind(container.defs) or {}
  return setmetatable(new_view(container), OWN)
end

--- Returns the definitions that are bound in the container; nil if there are none.
function M.bound(container)
  return next(container.defs) ~= nil and container.defs or nil
end

--- Returns a view for a call; a nil container has no resources.
function M.view(container, ctx)
  return new_view(container or M.open {}, ctx)
end

--- Returns the key `filesystem` if it is bound, else the key of the only filesystem. Returns nil if
-- there is none; nil, true if there are several.
local function key_of_files(defs)
  if defs.filesystem ~= nil then
    return "filesystem"
  end
  local found
  for key, def in pairs(defs) do
    if class_of(def) == "agenthost.filesystem" then
      if found then
        return nil, true
      end
      found = key
    end
  end
  return found
end

--- Returns ctx.filesystem; nil if there is none. Raises if there are several.
function M.filesystem(view)
  local key, several = key_of_files(views[view].container.defs)
  if several then
    fail("usage", "several are filesystems; ctx.filesystem is the one named 'filesystem'")
  end
  return key and view:get(key)
end

--- Returns the filesystem outside of a call; nil also if it is not made yet, or is made for each
-- call.
function M.files(container)
  local key = key_of_files(container.defs)
  local def = container.defs[key or "filesystem"]
  if is_resource(def) then
    def = container.values[key]
  end
  return class_of(def) == "agenthost.filesystem" and def or nil
end

function M.leave(view)
  local s = views[view]
  s.over = true
  close_all(s)
end

M.close = close_all

return M
