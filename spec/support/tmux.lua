--- A person at a terminal, for spec/screens: types into a shell in tmux, and compares what is on
-- the screen with the text that is kept in spec/screens/NAME.txt.
--
--   local t <close> = tmux.start("turns", { columns = 60, rows = 20, env = { "LANG=C" } })
--   t:file("agent.lua", text)         a file of the shell's folder
--   t:enter "agenthost chat agent.lua"  types the line, and Enter
--   t:type "half a"  t:keys "C-c Enter"  t:paste(text)  t:bytes "\27"
--   t:wait "a text"                   until it is on the screen; t:wait_gone likewise
--   t:text()                          the screen as it is
--   t:resize(40, 20)
--   t:go()                            lets a model of gated.lua send its next part
--   t:screen "two turns"              adds the screen to those of the case. With the kept screen it
--                                     waits until both are the same
--   t:history "all of it"             the same, with what has left the screen at the top
--   t:styled "colors"                 the same, with the styles as <1> (bold), <31> (red) ... <0>
--   t:pid()                           the process that runs in the shell
--   local other <close> = t:beside()  another terminal of the same person; its screens are t's
--
-- The shell has a folder of its own, in which the command is `agenthost`, and an environment of its
-- own. Times, ids, versions and the folder are replaced by words. Closing compares all screens,
-- or writes them with UPDATE=1 in the environment.
local ah = require "agenthost"
local command = require "support.command"

local LIMIT = 60     -- seconds for what comes in a moment on an idle machine
local POLL = 0.05
local STILL = 0.6    -- seconds without a change, before a screen is kept by UPDATE=1
local KEPT = "spec/screens/%s.txt"
local UPDATES = os.getenv "UPDATE" ~= nil

local M = {}

local Tmux = {}
Tmux.__index = Tmux

local quote = command.quote

local function output_of(line)
  local pipe <close> = assert(io.popen(line))
  local text = pipe:read "a"
  return text, pipe:close()
end

--- True if tmux is installed.
function M.is_there()
  return (output_of "command -v tmux") ~= ""
end

-- -- the terminal ------------------------------------------------------------------------------

-- Runs a command of tmux in the server of this terminal; returns its output.
local function call(t, ...)
  local words = {}
  for i, word in ipairs { "tmux", "-u", "-S", t.socket, "-f", "/dev/null", ... } do
    words[i] = quote(tostring(word))
  end
  local text, ok = output_of("LC_ALL=C.UTF-8 " .. table.concat(words, " ") .. " 2>&1")
  return ok and text or error(("tmux %s: %s"):format(..., text), 2)
end

local function environment(t, more)
  local list = { "HOME=" .. t.folder, "PATH=" .. t.folder .. "/bin:/usr/bin:/bin", "PS1=$ ",
    "TERM=tmux-256color", "LANG=C.UTF-8", "XDG_CONFIG_HOME=" .. t.folder .. "/config",
    "XDG_STATE_HOME=" .. t.folder .. "/state" }
  return table.move(more or {}, 1, #(more or {}), #list + 1, list)
end

local function begin(t, options)
  local words = { "exec", "env", "-i" }
  for _, pair in ipairs(environment(t, options.env)) do
    words[#words + 1] = quote(pair)
  end
  words[#words + 1] = "sh"
  call(t, "new-session", "-d", "-x", options.columns or 80, "-y", options.rows or 24, "-c",
    t.folder .. "/work", table.concat(words, " "))
  call(t, "set-option", "-g", "status", "off")
  call(t, "set-option", "-g", "window-size", "manual")
  t:resize(options.columns or 80, options.rows or 24)
  return t:wait "$"
end

-- -- input -------------------------------------------------------------------------------------

function Tmux:type(text)
  call(self, "send-keys", "-l", "--", text)
  return self
end

--- Presses keys by their names in tmux.
function Tmux:keys(names)
  for name in names:gmatch "%S+" do
    call(self, "send-keys", name)
  end
  return self
end

function Tmux:enter(text)
  return self:type(text):keys "Enter"
end

--- Sends bytes as they are.
function Tmux:bytes(text)
  for byte in text:gmatch "." do
    call(self, "send-keys", "-H", ("%02x"):format(byte:byte()))
  end
  return self
end

function Tmux:paste(text)
  command.write(self.folder .. "/paste", text)
  call(self, "load-buffer", self.folder .. "/paste")
  call(self, "paste-buffer", "-p", "-d")
  return self
end

function Tmux:resize(columns, rows)
  call(self, "resize-window", "-x", columns, "-y", rows)
  return self
end

-- -- output ------------------------------------------------------------------------------------

local WORDS = { -- what differs from run to run, and what stands for it
  { "agenthost %d+%.%d+%.%d+%f[^%w-]", "agenthost VERSION" },
  { "%d+%.%d+ s%f[^%w]", "N s" },
  { "%d+ s%f[^%w]", "N s" },
  { "%d%d%d%d%-%d%d%-%d%d", "DATE" },
  { "%d%d:%d%d:%d%d", "TIME" },
  { "%f[%w]%d%d:%d%d%f[^%w]", "TIME" },
}

local function fixed(t, text)
  text = text:gsub(t.folder:gsub("%p", "%%%0"), "FOLDER")
  for _, pair in ipairs(WORDS) do
    text = text:gsub(pair[1], pair[2])
  end
  return (text:gsub("%f[%w]%x%x%x%x%x%x%x%x[%x-]*%f[^%w-]", function(id)
    return id:find "%d" and "ID" or nil
  end))
end

-- Returns the screen without trailing blanks; further words are of `tmux capture-pane`.
local function captured(t, ...)
  local text = call(t, "capture-pane", "-p", ...):gsub("\27%[([%d;]*)m", "<%1>")
  return (fixed(t, text:gsub("[ \t]+\n", "\n"):gsub("\n+$", "\n")))
end

-- Calls f until it returns a value; returns it, or nil after LIMIT.
local function patiently(f)
  local until_ = ah.now() + LIMIT
  repeat
    local value = f()
    if value then
      return value
    end
    ah.sleep(POLL)
  until ah.now() > until_
end

--- Returns the screen as it is.
function Tmux:text()
  return call(self, "capture-pane", "-p")
end

--- Waits until the text is on the screen, as it is shown there in one line.
function Tmux:wait(text)
  return patiently(function()
    return captured(self):find(text, 1, true)
  end) and self or error(("no %q on the screen:\n%s"):format(text, captured(self)), 2)
end

--- Waits until the text is no longer on the screen.
function Tmux:wait_gone(text)
  return patiently(function()
    return not captured(self):find(text, 1, true)
  end) and self or error(("%q stays on the screen:\n%s"):format(text, captured(self)), 2)
end

-- Returns the screen when it has not changed for a while.
local function at_rest(t, ...)
  local last, since = captured(t, ...), ah.now()
  while ah.now() - since < STILL do
    ah.sleep(POLL)
    local now = captured(t, ...)
    if now ~= last then
      last, since = now, ah.now()
    end
  end
  return last
end

-- Adds the screen, which is to be the kept one of this place.
local function add(t, title, ...)
  local words = { ... }
  local screens = t.of.screens
  local want = t.of.kept[#screens + 1]
  local heading = ("---- %s\n"):format(title)
  local same = not UPDATES and want and patiently(function()
    return heading .. captured(t, table.unpack(words)) == want
  end)
  screens[#screens + 1] = same and want or heading .. at_rest(t, ...)
  assert(same or UPDATES, ("the screen is not that of %s:\n%s\nbut:\n%s"):format(
    KEPT:format(t.of.name), want or "(none)", screens[#screens]))
  return t
end

function Tmux:screen(title)
  return add(self, title)
end

function Tmux:history(title)
  return add(self, title, "-S", "-")
end

function Tmux:styled(title)
  return add(self, title, "-e")
end

-- -- the rest ----------------------------------------------------------------------------------

--- Writes a file into the shell's folder.
function Tmux:file(name, text)
  command.write(self.folder .. "/work/" .. name, text)
  return self
end

--- Adds a program of the build to those of the shell.
function Tmux:link(name)
  local program = command.BINARY:gsub("agenthost$", name)
  assert(os.execute(("ln -s %s %s/bin"):format(quote(program), self.folder)))
  return self
end

--- Returns a file of the shell's folder.
function Tmux:contents(name)
  return command.contents(self.folder .. "/work/" .. name)
end

--- Lets a model of gated.lua send its next part.
function Tmux:go()
  self.gone = (self.gone or 0) + 1
  return self:file(("gate.%d"):format(self.gone), "")
end

--- Returns the process that runs in the shell.
function Tmux:pid()
  local shell = call(self, "display-message", "-p", "#{pane_pid}"):match "%d+"
  return assert(patiently(function()
    return command.contents(("/proc/%s/task/%s/children"):format(shell, shell)):match "%d+"
  end), "nothing runs in the shell")
end

local n_sockets = 0

local function new(fields)
  n_sockets = n_sockets + 1
  fields.socket = ("%s/socket%d"):format(fields.folder, n_sockets)
  return setmetatable(fields, Tmux)
end

function Tmux:beside(options)
  return begin(new { folder = self.folder, of = self.of }, options or {})
end

function Tmux:close()
  pcall(call, self, "kill-server")
  if self.of ~= self or self.closed then
    return
  end
  self.closed = true
  os.execute("rm -rf " .. self.folder)
  if UPDATES then
    command.write(KEPT:format(self.name), table.concat(self.screens, "\n"))
  end
end
Tmux.__close, Tmux.__gc = Tmux.close, Tmux.close

-- Returns the list of the kept screens.
local function kept(name)
  local f <close> = io.open(KEPT:format(name))
  local list = {}
  for line in f and f:lines "L" or function() end do
    if line:find "^%-%-%-%- " then
      list[#list + 1] = ""
    end
    list[#list] = list[#list] .. line
  end
  for i = 1, #list - 1 do
    list[i] = list[i]:sub(1, -2) -- the blank line between screens
  end
  return list
end

--- Starts a shell for the case of this name.
function M.start(name, options)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir -p %s/work %s/bin %s/config && ln -s %s %s/bin/agenthost && "
    .. "cp spec/support/gated.lua %s/work"):format(folder, folder, folder,
      quote(command.BINARY), folder, folder)))
  local t = new { folder = folder, name = name, screens = {}, kept = kept(name) }
  t.of = t
  return begin(t, options or {})
end

return M
