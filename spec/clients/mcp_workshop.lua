-- The script that `agenthost mcp serve` serves to the SDKs of MCP in `make check-clients`: a tool
-- for each way in which a call can go.
local ah = require "agenthost"

local stopped = 0 -- calls of `wait` that were cancelled

local Order = ah.entity { name = "Order", fields = { "id" },
  find = function(id) return { id = id } end }

Order:tool { name = "status", description = "The status of the order.",
  handler = function(self) return self.id .. " is on its way" end }

local function wait()
  local _ <close> = setmetatable({}, { __close = function() stopped = stopped + 1 end })
  ah.sleep(60)
end

local function work(_, ctx)
  for i = 1, 3 do
    ctx:progress(i / 4, "part " .. i)
    ah.sleep(0.1)
  end
  return "worked"
end

local function greet(_, ctx)
  local form = { type = "object", required = ah.array { "name" }, properties = {
    name = { type = "string" }, loud = { type = "boolean", default = false } } }
  local answer, err = ctx:ask { question = "Who is it?", schema = form }
  return answer and "Hello " .. answer.name, err
end

local function tool(name, fields)
  fields.name, fields.description = name, "Does " .. name .. "."
  return ah.tool(fields)
end

return ah.agent {
  name = "workshop", model = "demo/echo", discover = true,
  ah.section { key = "rules", title = "Rules", template = "Be exact." },
  tools = {
    tool("add", { params = { a = "integer", b = "integer" },
      result = { type = "object", properties = { sum = { type = "integer" } } },
      handler = function(args) return { sum = args.a + args.b } end }),
    tool("fail", { handler = function() return nil, "there is no paper" end }),
    tool("greet", { handler = greet }),
    tool("order", { params = { id = "string" },
      handler = function(args) return Order { id = args.id } end }),
    tool("stopped", { handler = function() return stopped end }),
    tool("wait", { handler = wait }),
    tool("work", { handler = work }),
  },
}
