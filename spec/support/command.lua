--- Runs the command under test, for the specs of src/cli: in a shell, or in a terminal.
local command = {}

local function absolute(folder)
  local pipe <close> = assert(io.popen(("cd '%s' && pwd"):format(folder)))
  return pipe:read("l")
end

command.BINARY = absolute(os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"

--- Temporary files and folders of the current spec; tidy() removes them.
command.made, command.folders = {}, {}

function command.tidy()
  for i, path in ipairs(command.made) do
    os.remove(path)
    command.made[i] = nil
  end
  for i, path in ipairs(command.folders) do
    os.execute("rm -rf " .. path)
    command.folders[i] = nil
  end
end

--- Makes an empty folder. Returns its name.
function command.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir " .. path))
  command.folders[#command.folders + 1] = path
  return path
end

--- Makes a new file with this text (or only its name). Returns its name.
function command.temp(text)
  local path = os.tmpname()
  command.made[#command.made + 1] = path
  return text and command.write(path, text) or path
end

--- Writes this text to a file. Returns its name.
function command.write(path, text)
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
  return path
end

function command.contents(path)
  local f <close> = assert(io.open(path))
  return f:read("a")
end

function command.quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

-- Returns the content of a file, which is removed.
local function taken(path)
  local text = command.contents(path)
  os.remove(path)
  return text
end

--- Runs a shell command; `$A` in it is the binary. Returns { code, out, err }.
function command.shell(text)
  local out, err = os.tmpname(), os.tmpname()
  local line = ("A=%s; export XDG_CONFIG_HOME=/dev/null; { %s\n} >%s 2>%s"):format(
    command.quote(command.BINARY), text, out, err)
  local _, how, code = os.execute(line)
  return { code = how == "exit" and code or 128 + code, out = taken(out), err = taken(err) }
end

--- Runs the binary with these words, each one argument.
function command.agenthost(...)
  local words = { '"$A"' }
  for _, word in ipairs { ... } do
    words[#words + 1] = command.quote(word)
  end
  return command.shell(table.concat(words, " ") .. " </dev/null")
end

--- Runs a script text from a file; the further arguments are the script's.
function command.script(text, ...)
  local path = command.write(os.tmpname(), text)
  local got = command.agenthost(path, ...)
  os.remove(path)
  return got
end

function command.has(text, part)
  assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

function command.has_not(text, part)
  assert(not text:find(part, 1, true), ("%q in:\n%s"):format(part, text))
end

return command
