-- The model's answers to the claude command in `make check-clients`, and checks of its requests.
local LONG = ("t"):rep(59) .. "_long"
local asked = 0

local function find(request, what)
  return require("agenthost").json.encode(request):find(what, 1, true)
end

local function result(request, what)
  local last
  for _, e in ipairs(request.entries) do
    last = e.type == "tool_result" and e or last
  end
  assert(last and last.content:find(what, 1, true), "the result lacks " .. what)
  return last
end

local turns = {
  function(request)
    assert(find(request, '"type":"image"'), "the user's image is missing")
    assert(request.options.max_tokens == 1234, "max_tokens")
    assert(find(request.options, '"effort":"low"'), "effort")
    local ours = 0
    for _, t in ipairs(request.tools) do
      ours = ours + (t.name:find "^mcp__host__" and 1 or 0)
    end
    assert(ours == 500, ours .. " tools")
    return { calls = { { name = "mcp__host__" .. LONG, arguments = { text = "für \u{1F600}" } } } }
  end,
  function(request)
    result(request, "größe \u{1F600}")
    return { calls = { { name = "mcp__host__huge", arguments = {} },
      { name = "mcp__host__draw", arguments = {} } } }
  end,
  function(request)
    assert(find(request, "0123456789abcdef"), "the long result is missing")
    assert(result(request, "drawn").images, "the image of a result is missing")
    return { text = "all three" }
  end,
  function() return { text = "once more" } end,
}

return function(request)
  asked = asked + 1
  if not turns[asked] then
    return { fail = { status = 400, message = "no more" } }
  end
  return turns[asked](request)
end
