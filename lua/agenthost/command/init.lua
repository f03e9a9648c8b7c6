--- agenthost init: makes the folder of a project from a template, all files of it or none. The
-- templates are the folders of lua/agenthost/command/templates; PROJECT in a page of them stands
-- for the name of the project.
local ah, use, texts = ...
local stored, text = use "stored", use "text"
local fault = use "pairs".fault

-- first: the line that a user types next; chat: true if agenthost chat talks with its agent.lua
local TEMPLATES = {
  { name = "tools", doc = "an agent with a tool (the default)", chat = true,
    first = [[$(agenthost) agent.lua "What do 3 bags of mint tea cost?"]] },
  { name = "entities", doc = "an agent whose tools are methods of what it finds", chat = true,
    first = [[$(agenthost) agent.lua "What has Ada ordered?"]] },
  { name = "chat", doc = "an agent to talk with in a chat",
    first = [[$(agenthost) chat agent.lua]] },
  { name = "embed-c", doc = "a program in C with an agent", first = [[make && ./app]] },
}

local function names_and_docs()
  local names, lines = {}, {}
  for i, template in ipairs(TEMPLATES) do
    names[i] = template.name
    lines[i] = ("  %-10s%s\n"):format(template.name, template.doc)
  end
  return table.concat(names, " "), table.concat(lines)
end

local NAMES, DOCS = names_and_docs()

local function template_of(name)
  for _, template in ipairs(TEMPLATES) do
    if template.name == name then
      return template
    end
  end
end

-- -- the folder ----------------------------------------------------------------------------------

local function check(path)
  if not utf8.len(path) or path:find "%c" or not path:find "[^/]" then
    fault("'%s' cannot be the name of a folder", text.clean(text.cut(path, 300)))
  elseif path:find "^%-" then
    fault("the name of a folder cannot begin with '-' here; write ./%s", text.clean(path))
  end
end

-- Returns the nearest folder that exists, and the path from it to the new one: "" if that exists.
local function place_of(path)
  local root, rest = path, ""
  while not ah._real_path(root) do
    local above, name = root:match "^(.-)([^/]+)/*$"
    root, rest = above == "" and "." or above, name .. (rest ~= "" and "/" .. rest or "")
  end
  return root, rest
end

-- Returns the value unless it is nil; raises the error of a filesystem.
local function done(path, value, err)
  return value or fault("cannot make '%s': %s", text.clean(path), err.message)
end

local function write_all(path, files)
  local root, rest = place_of(path)
  local fs <close> = done(path, ah.filesystem { root = root })
  if rest == "" and done(path, fs:list())[1] then
    fault("'%s' is not empty: agenthost init writes into a new or an empty folder",
      text.clean(path))
  end
  local overlay = fs:overlay()
  for name, content in pairs(files) do
    local at = rest == "" and name or rest .. "/" .. name
    if overlay:exists(at) then -- the commit fails if the file appears after this
      fault("'%s' exists already", text.clean(at))
    end
    done(path, overlay:write(at, content))
  end
  done(path, overlay:commit())
end

-- -- the files -----------------------------------------------------------------------------------

-- Returns the contents of a template by their paths, and the sorted list of these.
local function files_of(template, project)
  local files, names, beginning = {}, {}, "templates/" .. template.name .. "/"
  for name, content in pairs(texts) do
    if name:sub(1, #beginning) == beginning then
      local path = name:sub(#beginning + 1)
      files[path] = path:find "%.md$" and content:gsub("PROJECT", function() return project end)
        or content
      names[#names + 1] = path
    end
  end
  table.sort(names)
  return files, names
end

-- -- the end -------------------------------------------------------------------------------------

-- Returns the word with which a shell starts this program.
local function this_program()
  local own = ah._real_path "/proc/self/exe" -- nil: not on Linux
  for folder in (os.getenv "PATH" or ""):gmatch "[^:]+" do
    local found = ah._real_path(folder .. "/agenthost")
    if found then
      return (not own or found == own) and "agenthost" or stored.quoted(own)
    end
  end
  return own and stored.quoted(own) or "agenthost"
end

local function run(flags, words, out)
  local path, template = words[1], template_of(flags.template or TEMPLATES[1].name)
  check(path)
  local name = (ah._real_path(path) or path):match "([^/]*)/*$"
  local files, names = files_of(template, name)
  write_all(path, files)
  local program = this_program()
  local first = template.first:gsub("%$%(agenthost%)", function() return program end)
  local enter = ah._real_path(path) ~= ah._real_path "." and ("cd %s && "):format(
    stored.quoted(path)) or ""
  local chat = template.chat and ("\n  %s chat agent.lua"):format(program) or ""
  out:write(("%s has %s.\nNext:\n  %s%s%s\n  %s test\n"):format(text.clean(path),
    table.concat(names, ", "), enter, first, chat, program))
end

return {
  name = "init",
  doc = "make a project: an agent, a tool, a spec, a README",
  usage = "NAME",
  help = [[
Makes the folder NAME with a project that runs at once, without a key, and
prints what to type next. NAME may be a path; the folder must be new or empty.

Templates:
]] .. DOCS,
  operand = { name = "folder", least = 1, most = 1, complete = "folder" },
  flags = { { name = "template", value = "NAME", words = NAMES, once = true,
    doc = "what to begin with (default: tools)" } },
  mixed = true,
  run = stored.carefully(run),
}
