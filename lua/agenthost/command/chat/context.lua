--- The command of a chat that shows what the model sees.
local ah, use = ...
local facts, told = use "chat.facts", use "told"

local ROOM = 60   -- characters of the beginning of a text
local MOST = 20   -- parts of the system text that are listed

local function plural(n, what)
  return ("%d %s%s"):format(n, what, n == 1 and "" or "s")
end

-- -- the model and its tokens ------------------------------------------------------------------

-- Returns the tokens that the context window holds; nil: unknown.
local function window_of(model)
  local ok, known = pcall(ah.capabilities, model or "")
  if ok and not known then -- without a key
    ok, known = pcall(ah.capabilities, model, { api_key = "none" })
  end
  return ok and known and known.context_window or nil
end

local function share(tokens, window)
  return window and (", %.1f %% of the window"):format(100 * tokens / window) or ""
end

local function add_usage(add, last, window)
  local usage = last and last.usage
  if not usage then
    add("last request", "none yet")
  elseif not usage.known then
    add("last request", "its tokens are unknown, since the provider did not report them")
  else
    add("last request", plural(usage.input, "token") .. share(usage.input, window))
    add("", ("%d of them from the provider's cache"):format(usage.cached_read))
    add("last answer", plural(usage.output, "token"))
  end
end

-- -- the texts ---------------------------------------------------------------------------------

-- Returns the parts of a text: each begins with a line "# Heading".
local function parts_of(text)
  local parts, at = {}, 1
  for from in text:gmatch "\n()#+ " do
    parts[#parts + 1] = text:sub(at, from - 1)
    at = from
  end
  parts[#parts + 1] = text:sub(at)
  return parts
end

local function add_system(add, text)
  if (text or "") == "" then
    add("system text", "none")
    return
  end
  add("system text", plural(#text, "byte"))
  local parts = parts_of(text)
  for i = 1, math.min(#parts, MOST) do
    add("", ("%6d  %s"):format(#parts[i], told.line(parts[i]:match "^%s*([^\n]*)", ROOM)))
  end
  if #parts > MOST then
    add("", ("... and %s more"):format(plural(#parts - MOST, "part")))
  end
end

local function add_tools(add, tools)
  local bytes, names = 0, {}
  for i, tool in ipairs(tools) do
    bytes = bytes + #ah.json.encode { name = tool.name, description = tool.description,
      parameters = tool.parameters }
    names[i] = tool.name
  end
  add("tools", #tools == 0 and "none" or ("%d, %s"):format(#tools, plural(bytes, "byte")))
  for _, name in ipairs(names) do
    add("", told.line(name, ROOM))
  end
end

-- Adds the files AGENTS.md that were read (agents_md.lua), and those that were left out.
local function add_project(add, project)
  local label = "AGENTS.md"
  for _, file in ipairs(project and project.files or {}) do
    add(label, ("%s, %s%s"):format(told.line(file.name, ROOM), plural(file.bytes, "byte"),
      file.cut and ", not all of it" or ""))
    label = ""
  end
  for _, file in ipairs(project and project.left or {}) do
    add(label, ("%s is left out: %s"):format(told.line(file.path, ROOM), told.line(file.why, 200)))
    label = ""
  end
end

-- -- the command -------------------------------------------------------------------------------

-- Returns the number of entries by their types, the number of calls, and the last answer.
local function counted(entries)
  local n, calls, last = { user = 0, assistant = 0, note = 0 }, 0, nil
  for _, entry in ipairs(entries) do
    n[entry.type] = (n[entry.type] or 0) + 1
    if entry.type == "assistant" then
      calls, last = calls + #(entry.tool_calls or {}), entry
    end
  end
  return n, calls, last
end

local function context(chat)
  local rows = {}
  local function add(label, words)
    rows[#rows + 1] = ("%-14s%s"):format(label, words)
  end
  local about = facts.of(chat.agent)
  local n, calls, last = counted(about.entries)
  local window = window_of(about.model)
  add("model", told.line(about.model or "unknown", ROOM))
  add("window", window and plural(window, "token") or "unknown")
  add_usage(add, last, window)
  add("messages", ("%d of yours, %s, %s"):format(n.user, plural(n.assistant, "answer"),
    plural(n.note, "note")))
  add("calls", tostring(calls))
  add_tools(add, about.tools)
  add_system(add, about.system)
  add_project(add, chat.instructions)
  chat.output:line(table.concat(rows, "\n"))
end

local rows = {
  { name = "context", doc = "show what the model sees, and how much it is", run = context },
}

return { rows = rows }
