-- Runs the command, or another program, in a terminal: reads its output, types the input, and shows
-- the result on a screen.
local ahtest = require "ahtest"
local command = require "support.command"
local screen = require "support.screen"

-- A terminal needs /dev/ptmx, which may be missing in a minimal root folder.
local probe = ahtest.pty({ "/bin/true" }, { env = {} })

local typing = { SECONDS = 60 }

--- Returns a spec's `it`, or its `pending` if no terminal can be made.
function typing.it(it, pending)
  return function(name, f)
    if probe then
      it(name, f)
    else
      pending(name .. " (no terminal can be made here)")
    end
  end
end

--- Starts a program by its words; options: env (a list in place of the usual), columns, bells (the
--- screen counts them; otherwise one is an error).
function typing.start(words, options)
  options = options or {}
  local env = { "XDG_CONFIG_HOME=/dev/null", "HOME=/", "PATH=/usr/bin:/bin" }
  for _, pair in ipairs(options.env or { "TERM=xterm" }) do
    env[#env + 1] = pair
  end
  local columns = options.columns or 80
  local t = { all = "", screen = screen.new(columns) }
  t.screen.bells = options.bells and 0
  t.pty = assert(ahtest.pty(words, { env = env, columns = columns }))
  return t
end

--- Starts the command with these words.
function typing.command(words, options)
  return typing.start({ command.BINARY, table.unpack(words) }, options)
end

--- Reads until the text contains `part`; to the end without one.
function typing.read(t, part)
  local until_ = os.time() + typing.SECONDS
  while not (part and t.all:find(part, 1, true)) do
    assert(os.time() < until_, ("waited too long for %q, found:\n%s"):format(tostring(part), t.all))
    local bytes = t.pty:read(1)
    if not bytes then
      assert(not part, ("ended before %q:\n%s"):format(tostring(part), t.all))
      break
    end
    t.all = t.all .. bytes
  end
  return t
end

--- Reads to the end: returns the exit code, all output, and the final screen.
function typing.finish(t)
  typing.read(t)
  local code = t.pty:wait(30)
  t.pty:close()
  return code, t.all, t.screen:feed(t.all):text()
end

--- Types Ctrl-D, which ends a program at an empty line; it must succeed. Returns the final screen.
function typing.quit(t)
  t.pty:write "\4"
  local code, all, shown = typing.finish(t)
  assert(code == 0, all)
  return shown
end

--- Starts a script with these words before it.
function typing.script(text, options, words)
  words = words or {}
  words[#words + 1] = command.temp(text)
  return typing.command(words, options)
end

return typing
