-- A process that runs for a long time does not grow. Here 3,000 turns; `make soak` sets SOAK_TURNS
-- to 20,000 and prints the figures.
local server = require "support.server"

local ah = require "agenthost"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local TURNS = tonumber(os.getenv("SOAK_TURNS")) or 3000

local function soak(turns, warm)
  local s <close> = server.start { turns = 10, log = false, seconds = 600 }
  local command = ("'%s/agenthost' spec/support/soak.lua %s/v1 %d %d"):format(
    BUILD, s.url, turns, warm)
  local p <close> = assert(io.popen(command))
  return server.decode(p:read("a"))
end

describe("turns with tools in one process", function()
  it("leave neither memory nor descriptors behind", function()
    local proc = io.open("/proc/self/status")
    if not proc then
      pending("there is no /proc here")
      return
    end
    proc:close()
    local f = soak(TURNS, TURNS // 10)
    local grown = f.after.kib - f.before.kib
    if os.getenv("SOAK_TURNS") then
      print(("\nsoak: %d turns, %d KiB after %d turns, %d KiB at the end, descriptors %s"):format(
        f.turns, f.before.kib, TURNS // 10, f.after.kib, f.after.descriptors))
    end
    assert.is_true(f.turns >= TURNS)
    assert.equal(f.before.descriptors, f.after.descriptors)
    if not os.getenv("AGENTHOST_ASAN") then -- ASan keeps freed memory for a while
      assert.is_true(grown < 1024, grown .. " KiB more than before")
    end
  end)
end)

local function tool(name, handler, parallel)
  return ah.tool { name = name, description = "Does it.", params = { a = "string?" },
    result = { type = "string" }, handler = handler, parallel = parallel }
end

local function run(fields)
  fields.model, fields[1] = fields.model or "demo/tools", "go"
  assert(ah.run(fields))
end

local function wait()
  ah.sleep(0.001)
  return "waited"
end

-- Kinds of Lua values that C holds; each function makes one, uses it and releases it.
local holders = {
  tools = function() run { tools = { tool("say", function() return "x" end) } } end,
  ["tools that wait"] = function()
    run { tools = { tool("a", wait, true), tool("b", wait, true) } }
  end,
  prompts = function()
    run { prompt = ah.prompt { ns = "n", key = "k",
      ah.section { key = "k", template = "T", enabled = function() return true end },
      resources = { r = {} } } }
  end,
  ["typed tools"] = function()
    local Text = ah.type { name = "Text", fields = { text = "string = x" } }
    local say = ah.tool { name = "say", description = "Says.", params = Text, result = Text,
      handler = function(args) return args end, render = function(v) return v.text end }
    run { tools = { say } }
  end,
  ["messages that a failed call published"] = function()
    local Text = ah.type { name = "Text", fields = { text = "string" } }
    local say = tool("say", function(_, ctx)
      ctx.session.dispatcher:publish(Text { text = "x" })
      error "no"
    end)
    run { tools = { say }, session = ah.session() }
  end,
  adapters = function()
    run { model = ah.adapter { name = "acme/shout", answer = function() return "x" end } }
  end,
  resources = function()
    local get = tool("get", function(_, ctx) return ctx.resources:get "r" end)
    run { tools = { get }, resources = {
      r = ah.resource { provide = function() return "r" end, close = function() end } } }
  end,
  ["entities and strategies"] = function()
    local Thing = ah.entity { name = "Thing", id = "id" }
    Thing:tool { name = "poke", description = "Pokes.", handler = function() end }
    local find = ah.tool { name = "find", description = "Finds.",
      handler = function() return Thing { id = "1" } end }
    run { tools = { find }, discover = true, strategies = { function() end } }
  end,
  hooks = function()
    run { tools = { tool("a", wait) }, on = function() end, log = function() end,
      policies = { function() return "ask" end }, approve = function() return true end,
      feedback = { { text = function() return "Go on." end } },
      checks = { function() return true end } }
  end,
}

describe("values that C holds", function()
  local function references()
    collectgarbage()
    collectgarbage()
    return #debug.getregistry()
  end

  for name, hold in pairs(holders) do
    it("are let go of: " .. name, function()
      local before, after
      for i = 1, 20 do
        hold()
        after = references()
        before = i <= 5 and after or before
      end
      assert.equal(before, after)
    end)
  end
end)
