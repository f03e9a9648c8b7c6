--- Changes of the contents of resources, for clients that follow them. For each resource that has a
-- listener, one task calls its function `wait` again and again.
local ah = ...

local resources = ah._module "agenthost.protocols.mcp.server.resources"

local GAP = 0.1 -- least seconds between two calls of `wait`

local Changes = {}
Changes.__index = Changes

--- Returns the changes of what a script offers. start(f) calls f in a task that lasts.
local function new(offers, start)
  return setmetatable({ offers = offers, start = start, by_uri = {} }, Changes)
end

--- True if there is a resource whose changes are known.
function Changes:are_known()
  for _, list in ipairs { self.offers.resources, self.offers.templates } do
    for _, one in ipairs(list) do
      if one.wait then
        return true
      end
    end
  end
  return false
end

--- True if the changes of this address are known.
function Changes:has(uri)
  local one = resources.find(self.offers, uri)
  return one ~= nil and one.wait ~= nil
end

-- Calls the listeners after each change, until the task is cancelled or `wait` fails. Listeners do
-- not wait.
local function watch(entry, one, of)
  while true do
    one.wait(of)
    for listener in pairs(entry.listeners) do
      listener()
    end
    ah.sleep(GAP)
  end
end

-- Ends an entry, so that the next listener of the address begins a new one.
local function forget(self, uri, entry)
  entry.over = true
  if self.by_uri[uri] == entry then
    self.by_uri[uri] = nil
  end
end

local function begin(self, uri)
  local entry = { listeners = {} }
  self.by_uri[uri] = entry
  self.start(function()
    if entry.over then
      return
    end
    local one, of = resources.find(self.offers, uri)
    entry.task = ah.spawn(watch, entry, one, of)
    local _, err = pcall(entry.task.await, entry.task)
    if not entry.over then
      ah.log("warning", ("mcp: wait of %s: %s"):format(uri, tostring(err)))
      forget(self, uri, entry)
    end
  end)
  return entry
end

--- Calls `tell`, which must not wait, after each change of this address, whose changes are known.
-- Returns a function that ends it.
function Changes:follow(uri, tell)
  local entry = self.by_uri[uri] or begin(self, uri)
  local function listener()
    tell()
  end
  entry.listeners[listener] = true
  return function()
    entry.listeners[listener] = nil
    if not next(entry.listeners) and not entry.over then
      forget(self, uri, entry)
      if entry.task then
        entry.task:cancel()
      end
    end
  end
end

return new
