--- Makes the matrix of docs/reference/models.md from the output of `agenthost models --json`. Named
-- models get a row each; providers whose adapters do not differ share one.
local HEAD = "| model | tools that come later | tools to be found | strict tools | output schema | "
  .. "images | reasoning back | streams |\n|---|---|---|---|---|---|---|---|\n"

local function yes(is)
  return is and "yes" or "no"
end

--- Returns the cells of a model's row after the first.
local function cells(m)
  return ("`%s` | `%s` | %s | %s | %s | %s | %s |"):format(m.tool_change_mode, m.tool_search,
    yes(m.strict_tools), yes(m.native_output), yes(m.images), yes(m.reasoning_back),
    yes(m.streaming))
end

---@param providers table of agenthost models --json
---@return string
return function(providers)
  local rows, of = {}, {}
  for _, provider in ipairs(providers) do
    for _, m in ipairs(provider.models) do
      local name = m.model:match "^(.*)/MODEL$"
      local key = name and cells(m) or m.model
      if not of[key] then
        of[key] = { names = {}, cells = cells(m) }
        rows[#rows + 1] = of[key]
      end
      table.insert(of[key].names, "`" .. (name or m.model) .. "`")
    end
  end
  for i, row in ipairs(rows) do
    rows[i] = ("| %s | %s\n"):format(table.concat(row.names, " "), row.cells)
  end
  return HEAD .. table.concat(rows)
end
