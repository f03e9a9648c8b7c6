--- Commands of a chat about the chat itself.
local ah, use = ...
local fault, facts, text = use "pairs".fault, use "chat.facts", use "text"

local function help(chat)
  local lines = {}
  for i, row in ipairs((use "chat.commands".rows())) do
    lines[i] = ("  %-24s%s"):format("/" .. row.name .. (row.words and " " .. row.words or ""),
      row.doc)
  end
  lines[#lines + 1] = ("  %-24s%s"):format("!COMMAND", "run a command of the shell")
  lines[#lines + 1] = ("  %-24s%s"):format("@FILE, @URL", "in a text: add what is there")
  chat.output:line(table.concat(lines, "\n"))
end

local function show(chat, words)
  local n = words == "" and #chat.output.calls or math.tointeger(tonumber(words))
  local call = n and chat.output.calls[n]
  if not call then
    fault("there is no call %s; there are %d", words == "" and "yet" or words, #chat.output.calls)
  end
  chat.output:line { { ("[%d] %s"):format(n, call.name), bold = true },
    ("\n%s\n"):format(call.arguments), { ("-> %s, %.2f s\n"):format(
      call.success and "ok" or "failed", call.duration or 0), faint = true }, call.content }
end

-- Returns the names of the tools, for Tab and for messages.
local function tool_names(chat)
  local names = {}
  for i, tool in ipairs(facts.of(chat.agent).tools) do
    names[i] = tool.name
  end
  return names
end

-- Shows a tool with its parameters, as the model has them.
local function show_tool(chat, name)
  for _, tool in ipairs(facts.of(chat.agent).tools) do
    if tool.name == name then
      return chat.output:line { { tool.name, bold = true }, "  ", tool.description or "", "\n",
        ah.json.encode(tool.parameters) }
    end
  end
  local near = ah.nearest(name, tool_names(chat))
  fault("the model has no tool '%s'%s", text.clean(text.cut(name, 100)),
    near and (" (did you mean %s?)"):format(near) or "")
end

local function tools(chat, words)
  if words ~= "" then
    return show_tool(chat, words)
  end
  local lines = {}
  for i, tool in ipairs(facts.of(chat.agent).tools) do
    lines[#lines + 1] = { i > 1 and "\n" or "", { tool.name, bold = true }, "  ",
      tool.description or "" }
  end
  chat.output:line(lines[1] and lines or "There are no tools.")
end

local function model(chat, words)
  if words ~= "" then
    assert(chat.agent:use(words))
    chat.model = words
  end
  chat.output:note("model " .. (facts.of(chat.agent).model or "unknown"))
end

-- The names of models, for Tab.
local function models()
  local names = {}
  for name in use "completion".models():gmatch "%S+" do
    names[#names + 1] = name
  end
  return names
end

local rows = {
  { name = "help", doc = "list the commands", run = help },
  { name = "show", words = "[N]", doc = "show call N, or the last one, with its whole result",
    run = show },
  { name = "tools", words = "[NAME]", doc = "list the tools of the model, or show one",
    offer = tool_names, run = tools },
  { name = "model", words = "[NAME]", doc = "say which model answers, or go on with another",
    idle = true, run = model, offer = models },
}

return { rows = rows }
