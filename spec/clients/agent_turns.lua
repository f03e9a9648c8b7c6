-- The model's answers to command-line agents in `make check-clients`: two commands at once, with
-- thoughts, then an answer that shows that both results came. Other requests of the agents, for
-- titles and the like, get one word.
local COMMANDS = { "Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell" }

-- Returns the tool that runs commands; its name differs between agents.
local function tool_of(request)
  for _, name in ipairs(COMMANDS) do
    for _, tool in ipairs(request.tools) do
      if tool.name == name then
        return tool
      end
    end
  end
end

local function call_of(tool, text)
  local member = tool.parameters.properties.cmd and "cmd" or "command"
  local is_list = tool.parameters.properties[member].type == "array"
  return { name = tool.name, arguments = { description = member == "command" and "Says." or nil,
    [member] = is_list and { "sh", "-c", text } or text } }
end

local function texts_of(request)
  local said, results = "", ""
  for _, entry in ipairs(request.entries) do
    if entry.type == "tool_result" then
      results = results .. tostring(entry.content)
    end
    for _, part in ipairs(entry.type == "user" and entry.content or {}) do
      said = said .. (part.text or "")
    end
  end
  return said, results
end

return function(request)
  local tool, said, results = tool_of(request), texts_of(request)
  if not tool or not said:find("Run both", 1, true) then
    return "Fine."
  elseif results:find("first-1", 1, true) and results:find("second-2", 1, true) then
    return { reasoning = "Both are there.", text = { "Both ", "were ", "run." } }
  elseif results ~= "" then
    return "The results are not those: " .. results
  end
  return { reasoning = "Two commands.", text = "I will run both.",
    calls = { call_of(tool, "printf first-%s 1"), call_of(tool, "printf second-%s 2") } }
end
