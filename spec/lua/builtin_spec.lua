-- ah.builtin: the built-in tools, by name. docs/reference/builtin.md.
local ah = require "agenthost"

local function refusal(...)
  local ok, err = pcall(ah.builtin, ...)
  assert.is_false(ok)
  assert.equal("usage", err.code)
  return err.message
end

describe("ah.builtin", function()
  it("refuses what is no name of a tool, at the script's line", function()
    local message = refusal { "no_such_tool" }
    assert.truthy(message:find("builtin_spec.lua:%d+: ah.builtin: there is no tool 'no_such_tool'"),
      message)
    assert.truthy(refusal(7):find("found a number", 1, true))
    assert.truthy(refusal({ 7 }):find("found a number", 1, true))
  end)

  it("gives each tool once, in an order of its own", function()
    local names = {}
    for i, tool in ipairs(assert(ah.builtin "all")) do
      names[i] = tool.name
    end
    local again = {}
    for i, tool in ipairs(assert(ah.builtin { "all", table.unpack(names) })) do
      again[i] = tool.name
    end
    assert.same(names, again)
  end)
end)
