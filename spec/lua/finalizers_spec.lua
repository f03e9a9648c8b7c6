-- Finalizers of scripts that run after those of the library's objects that they hold: Lua calls
-- finalizers in the reverse order of creation. Whatever they do is an error of theirs, and never
-- ends the process. Each object is tried in a process of its own, in the command and in stock Lua.
local command = require "support.command"

-- `late` was made first, so its finalizer runs last; in stock Lua even after the host's.
local SCRIPT = [[
local ah
local functions = {}
local late = setmetatable({}, { __gc = function(t)
  local function try(f, ...) pcall(f, ...) end
  local meta = debug.getmetatable(t.object) or {}
  for _, set in ipairs { meta, type(meta.__index) == "table" and meta.__index or {} } do
    for _, f in pairs(set) do
      if type(f) == "function" then
        try(f, t.object)
        try(f, t.object, t.object)
        try(f, t.object, {})
        try(f, t.object, "text")
      end
    end
  end
  try(tostring, t.object)
  for _, field in ipairs { "prompt", "session", "registry", "budget" } do
    try(ah.run, { model = "demo/echo", [field] = t.object, "go" })
  end
  for _, f in ipairs(functions) do
    try(f, t.object)
    try(f, { t.object })
    try(f, { model = "demo/echo", tools = { t.object }, "go" })
  end
  io.write "survived"
end })

ah = require "agenthost"
for _, f in pairs(ah) do
  functions[#functions + 1] = type(f) == "function" and f or nil
end
local function section(tool)
  return ah.section { key = "k", template = "t", tools = { tool } }
end
local make = {
  adapter = function() return ah.scripted { "hi" } end,
  agent = function(tool) return ah.agent { model = "demo/echo", tools = { tool } } end,
  budget = function() return ah.budget { requests = 3 } end,
  class = function() return ah.entity { name = "Thing", prefix = "thing", id = "id" } end,
  error = function() return ah.error "no" end,
  filesystem = function() return ah.filesystem { memory = true } end,
  group = function(tool) return ah.tool_group { name = "g", tools = { tool } } end,
  instance = function()
    local Thing = ah.entity { name = "Thing", prefix = "thing", id = "id" }
    Thing:tool { name = "look", description = "Looks.", handler = function() end }
    return Thing { id = 3 }
  end,
  prompt = function(tool) return ah.prompt { name = "p", section(tool) } end,
  registry = function() return ah.registry {} end,
  rendered = function(tool) return ah.prompt { name = "p", section(tool) }:render() end,
  reply = function() return ah.run { model = "demo/echo", "hi" } end,
  schema = function() return ah.schema { type = "string" } end,
  search = function(tool) return ah.search { tools = { tool } }.search end,
  section = section,
  session = function() return ah.session() end,
  tool = function(tool) return tool end,
  type = function() return ah.type { name = "thing", schema = { type = "object" } } end,
}
late.object = make[ arg[1] ](ah.tool { name = "x", description = "X.", handler = print })
if arg[2] == "collected" then
  late = nil
  collectgarbage()
  collectgarbage()
end
]]

local OBJECTS = { "adapter", "agent", "budget", "class", "error", "filesystem", "group", "instance",
  "prompt", "registry", "rendered", "reply", "schema", "search", "section", "session",
  "tool", "type" }

-- The run is at work, and ends before the agent.
local RUN = [[
local ah, exit = require "agenthost", os.exit
local tool = ah.tool { name = "t", description = "T.", handler = function() end }
local agent = ah.agent { model = "demo/tools", tools = { tool },
  on = { tool_invoked = function() exit(0, true) end } }
local late = setmetatable({}, { __gc = function()
  agent:cancel()
  agent:send "more"
  io.write "survived"
end })
agent:run "go"
]]

describe("a finalizer that runs after that of", function()
  after_each(command.tidy)

  local library = os.getenv("AGENTHOST_BUILD") or "./build"
  for program, words in pairs {
    ["the command"] = '"$A"',
    ["stock Lua"] = ("LUA_CPATH='%s/?.so' lua5.4"):format(library),
  } do
    it("an object gets an error for using it, when it is collected and at the end, in " .. program,
      function()
        local file = command.temp(SCRIPT)
        for _, object in ipairs(OBJECTS) do
          for _, when in ipairs { "collected", "closed" } do
            local r = command.shell(("%s %s %s %s"):format(words, file, object, when))
            assert.same({ object, when, 0, "survived" },
              { object, when, r.code, r.out:match("survived$") or r.err })
          end
        end
      end)

    it("a run may use its agent, in " .. program, function()
      local r = command.shell(words .. " " .. command.temp(RUN))
      assert.same({ 0, "survived" }, { r.code, r.out })
    end)
  end
end)
