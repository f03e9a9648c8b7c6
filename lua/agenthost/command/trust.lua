--- agenthost trust: stores the folders whose agenthost.conf may have settings that need trust. The
-- stored hash is that of the text that was shown, even if the file changes meanwhile.
local ah, use = ...
local file, judge, pairs_of, trusted = use "settings.file", use "settings.judge", use "pairs",
  use "trusted"
local text = use "text"

local clean, fault, shown = text.clean, pairs_of.fault, pairs_of.shown

-- -- which file ----------------------------------------------------------------------------------

local function nothing_in(folder)
  fault("there is no %s in %s\nIt is a project's file of settings; agenthost trust FOLDER names "
    .. "another folder.", file.NAME,
    folder and ("'%s'"):format(shown(folder)) or "this folder, nor in those above it")
end

-- Returns the settings file of this folder, or that of the current project for nil.
local function look(folder)
  local real, why = ah._real_path(folder or ".")
  if folder and not real then
    fault("there is no folder '%s': %s", shown(folder), why)
  end
  local project
  if folder then
    project = file.at(real)
  else
    project = file.project()
  end
  if not project then
    nothing_in(folder)
  elseif not project.text then
    pairs_of.unreadable("project's settings", project.path, project.why)
  end
  project.settings = file.settings(project.text, project.path)
  return project
end

-- Returns the record to store for the project, and the content of its variables' file.
local function record_of(project)
  local content, _, why = judge.variables_of(project.settings)
  if why then
    fault("cannot read the variables' file that '%s' names: %s", shown(project.path), why)
  end
  return { path = project.path, settings = trusted.hash(project.text),
    variables = trusted.hash(content) }, content
end

local function same(a, b)
  return a ~= nil and a.settings == b.settings and a.variables == b.variables
end

-- -- showing ----------------------------------------------------------------------------------

local function variables_in(content, path)
  local names = {}
  pairs_of.variables(content, path, function(name)
    names[#names + 1] = name
  end)
  return names
end

-- Returns the user's settings, with which those of a project are compared; an empty set if the
-- user's file has errors.
local function own_settings()
  local ok, user = pcall(file.user, file.user_path())
  return file.by_name(ok and user.settings or {})
end

-- Returns the settings as lists of rows: { name, value, line, needs }.
local function rows_of(project, content)
  local list, own = {}, own_settings()
  for i, entry in ipairs(project.settings) do
    list[i] = { name = entry.name, value = clean(entry.text), line = entry.line,
      needs = judge.needs(entry, own), sets = content and entry.name == "env-file"
        and ah.array(variables_in(content, "the variables' file")) or nil }
  end
  return list
end

local function put_text(out, project, list)
  out:write(clean(project.path), "\n")
  for _, row in ipairs(list) do
    out:write(("  line %-4d %-24s %s%s\n"):format(row.line, row.name, row.value,
      row.needs and "    (" .. row.needs .. ")" or ""))
    if row.sets then
      out:write(("            it sets: %s\n"):format(table.concat(row.sets, " ")))
    end
  end
  if not project.mine then
    out:write "The folder or the file belongs to another user.\n"
  end
end

local function put_json(out, project, list, is_trusted)
  out:write(ah.json.encode { path = text.repaired(project.path), mine = project.mine,
    trusted = is_trusted, settings = ah.array(list) }, "\n")
end

-- -- confirmation -----------------------------------------------------------------------------

local function ask()
  io.stderr:write "Let these settings take effect? Agree only to what you would do yourself. [y/N] "
  io.stderr:flush()
  local answer = io.read "l" or ""
  return answer:lower():match "^%s*(.-)%s*$"
end

local function agreed(flags)
  if flags.yes then
    return true
  elseif not (ah._is_terminal(0) and ah._is_terminal(2)) then
    return false, "there is no terminal to ask on: read the settings, then add --yes"
  end
  local answer = ask()
  return answer == "y" or answer == "yes", "it is not trusted"
end

-- Prints JSON for a program; only --yes stores the record.
local function add_json(flags, project, record, list, out, already)
  if flags.yes and not already then
    trusted.keep(record)
  end
  put_json(out, project, list, already or flags.yes or false)
  return (already or flags.yes) and 0 or 1
end

local function add(flags, folder, out)
  local project = look(folder)
  local record, content = record_of(project)
  local list = rows_of(project, content)
  local already = same((trusted.find(project.path)), record)
  if flags.json then
    return add_json(flags, project, record, list, out, already)
  end
  put_text(out, project, list)
  out:flush()
  if already then
    out:write "It is trusted already.\n"
    return 0
  end
  local yes, why = agreed(flags)
  if not yes then
    return 1, why
  end
  trusted.keep(record)
  out:write "It is trusted, as it is now.\n"
end

-- -- the others -------------------------------------------------------------------------------

local function state_of(one)
  local found, _, missing = pairs_of.read(one.path, "file")
  if not found then
    return missing and "gone" or "unreadable"
  elseif trusted.hash(found) ~= one.settings then
    return "changed"
  end
  local ok, settings = pcall(file.settings, found, one.path)
  local content = ok and judge.variables_of(settings) or nil
  return trusted.hash(content) == one.variables and "trusted" or "changed"
end

local function list_all(flags, out)
  local list, why = trusted.list()
  if why then
    pairs_of.unreadable("trusted folders", trusted.place(), why)
  end
  local rows = {}
  for i, one in ipairs(list) do
    rows[i] = { path = text.repaired(one.path), state = state_of(one) }
  end
  if flags.json then
    out:write(ah.json.encode { trusted = ah.array(rows) }, "\n")
    return
  end
  for _, row in ipairs(rows) do
    out:write(("%-11s %s\n"):format(row.state, clean(row.path)))
  end
end

-- Returns the path of the file to remove, and for a folder that is named its path, as it may be a
-- file itself; a missing folder is named by its former path.
local function path_to_remove(folder)
  if not folder then
    local project = file.project()
    return project and project.path or nothing_in()
  end
  local real = ah._real_path(folder)
    or folder:sub(1, 1) == "/" and folder:gsub("/+$", "")
    or assert(ah._real_path ".") .. "/" .. folder:gsub("/+$", "")
  return real .. "/" .. file.NAME, real
end

local function remove(flags, folder, out)
  local path, named = path_to_remove(folder)
  if named and trusted.keep { path = named } then
    path = named
  elseif not trusted.keep { path = path } then
    return 1, ("'%s' is not trusted; agenthost trust --list shows the trusted folders"):format(
      shown(path))
  end
  if flags.json then
    out:write(ah.json.encode { path = text.repaired(path), state = "removed" }, "\n")
  else
    out:write(clean(path), " is no longer trusted.\n")
  end
end

local function run(flags, words, out)
  if flags.list and (flags.remove or words[1]) or flags.list and flags.yes then
    return 2, "--list takes no other option or operand\nSee agenthost trust --help."
  end
  if flags.list then
    return list_all(flags, out)
  end
  return (flags.remove and remove or add)(flags, words[1], out)
end

--- Runs the command; a fault of a file is returned as code 2 and a message.
local function carefully(...)
  local ok, code, words = pcall(run, ...)
  if ok then
    return code, words
  elseif type(code) == "table" and code.words then
    return 2, code.words
  end
  error(code, 0)
end

return {
  name = "trust",
  doc = "let all settings of a project take effect",
  usage = "[FOLDER]",
  help = [[
Shows the settings in agenthost.conf of FOLDER (default: this folder or the
nearest above it) and asks whether all of them may take effect. Before that,
settings that send data elsewhere, set variables, name a model or raise a limit
are left out. The hashes of this file and of the file of variables that it names
are stored in $XDG_STATE_HOME/agenthost/trusted (default: ~/.local/state); a
change of either file requires a new confirmation. Without a terminal it needs
--yes.
]],
  operand = { name = "folder", most = 1, complete = "folder" },
  flags = { "json",
    { name = "list", doc = "list the trusted folders" },
    { name = "remove", doc = "no longer trust the folder" },
    { name = "yes", letter = "y", doc = "do not ask" } },
  run = carefully,
}
