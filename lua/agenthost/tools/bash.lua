--- bash: runs a command of this machine for a model. lua_command.c runs it; this file has the
-- tool's description, its limits, and the text of the outcome for the model.
--
-- Processes are outside the transaction of a call: their effects stay. So a call fails only if the
-- command could not be run; an exit code, a signal and a timeout are outcomes, which the result
-- reports.
local ah = ...

local WHAT = "ah.builtin: bash"
local MIB = 1 << 20
local TAIL = 64 * 1024 -- bytes that are kept of output beyond `keep`
local MAX_WRITABLE = 15 -- beside the working folder
local MAX_READABLE = 15

local MOST = 2 ^ 40

local function seconds(name, default, doc)
  return { name = name, kinds = "number", least = 0.001, most = MOST, default = default,
    unit = "seconds", doc = doc }
end

local function bytes(name, default, doc)
  return { name = name, kinds = "number", least = 1, most = MOST, default = default,
    unit = "bytes", doc = doc }
end

local read = ah._reader {
  what = WHAT, type = "ah.BashOptions", rows = {
    seconds("timeout", 60,
      "the time of a command, unless the model asks for another"),
    seconds("max_timeout", 600, "the longest time that the model may ask for"),
    seconds("grace", 2, "the time between TERM and KILL"),
    { name = "cwd", kinds = "string", otherwise = "that of the run's files",
      doc = "the working folder, opened when the tool is made" },
    { name = "env", kinds = "table", type = "table<string, string|boolean>",
      doc = "variables beside the usual ones: a string; `true` for the host's value; `false` for "
        .. "none" },
    { name = "shell", kinds = "string", otherwise = "bash or sh",
      doc = "a program that is called with `-c` and the command" },
    bytes("max_output", 32 * 1024, "output that the model is shown; of a longer one, head and "
      .. "tail"),
    bytes("keep", 4 * MIB, "longer output is kept in a file up to this size, with the last 64 KiB "
      .. "of the rest"),
    { name = "merge", kinds = "boolean", default = false,
      doc = "joins both streams, in the order of writing; the value then has no `stdout` and "
        .. "`stderr`" },
    { name = "output_folder", kinds = "string boolean", default = "bash-output",
      is = "string or false", type = "string|false",
      doc = "the folder of that file in the run's filesystem. Nothing is kept if it is false, or "
        .. "in a run without files" },
    bytes("memory", nil, "address space of each process"),
    bytes("file_size", nil, "size of each file that is written"),
    { name = "cpu", kinds = "number", least = 1, most = MOST, unit = "seconds",
      doc = "processor time of each process" },
    { name = "processes", kinds = "number", least = 1, most = MOST,
      doc = "all processes of the user together; no effect for root" },
    { name = "sandbox", kinds = "string", words = "none auto require landlock bubblewrap",
      default = "auto", doc = "see [below](builtin.md#what-it-can-reach)" },
    { name = "readable", kinds = "list", otherwise = "everything", type = "string[]",
      doc = "in a sandbox: folders that can be read, 15 at most, beside the writable ones and "
        .. "[the system's](processes.md#sandbox)" },
    { name = "network", kinds = "boolean", default = false,
      doc = "in a sandbox: true if the internet can be reached" },
    { name = "writable", kinds = "list", type = "string[]",
      doc = "in a sandbox: folders that can be written to beside the working folder; 15 at most" },
    { name = "owners", kinds = "boolean", default = false,
      doc = "in a `landlock` sandbox, for root: keeps the rights over owners (`chown`, files and "
        .. "processes of others, becoming another user)" },
  },
}

-- -- options ------------------------------------------------------------------------------

local function read_options(options)
  local o = read(options)
  if o.output_folder == true then
    ah._raise(WHAT .. ": field 'output_folder' must be a string, or false")
  end
  o.max_timeout = math.max(o.max_timeout, o.timeout)
  return o
end

local function exists(path)
  local f = io.open(path)
  return f and f:close()
end

--- Returns the words before the text of a command.
local function shell_words(shell)
  if shell then
    return { shell, "-c" }
  end
  for _, path in ipairs { "/bin/bash", "/usr/bin/bash" } do
    if exists(path) then
      return { path, "--noprofile", "--norc", "-c" }
    end
  end
  return { "/bin/sh", "-c" }
end

--- Opens the folders of a list, so that they stay the same whatever a command puts at their paths.
-- Returns the list, or nil and an error.
local function open_list(paths, name, most)
  local folders = {}
  for i, path in ipairs(paths) do
    if type(path) ~= "string" or path:sub(1, 1) ~= "/" then
      ah._raise(("%s: %s: '%s' is no absolute path"):format(WHAT, name, tostring(path)))
    elseif i > most then
      ah._raise(("%s: %s has more than %d folders"):format(WHAT, name, most))
    end
    local err
    folders[i], err = ah._folder(path)
    if not folders[i] then
      return nil, err
    end
  end
  return folders
end

--- Returns true, or nil and an error.
local function open_folders(o)
  local err
  o.folders, err = open_list(o.writable or {}, "writable", MAX_WRITABLE)
  if o.folders and o.readable then
    o.read_folders, err = open_list(o.readable, "readable", MAX_READABLE)
  end
  if o.cwd and not err then
    o.root, err = ah._folder(o.cwd)
  end
  return not err or nil, err
end

-- -- running ------------------------------------------------------------------------------

--- Returns the folder that a call works in, and whether it is read-only; or nil and the reason.
local function folder_of(o, ctx)
  if o.root then
    return o.root
  end
  local fs = ctx.filesystem
  if not fs then
    return ah._folder()
  end
  local folder, read_only = ah._folder(fs)
  if not folder then
    return nil, "the files of this run are in memory, or wait in an overlay, where no command sees "
      .. "them: give the tool bash a `cwd`"
  end
  return folder, read_only
end

local function words_of(o, args)
  if (args.command == nil) == (args.argv == nil) then
    return nil, "give either command, a text for the shell, or argv, a list of words"
  end
  if args.argv then
    return args.argv
  end
  local words = table.move(o.shell_words, 1, #o.shell_words, 1, {})
  words[#words + 1] = args.command
  return words
end

-- -- the result -----------------------------------------------------------------------------

local function size(n)
  return n < 10000 and n .. " bytes" or n < 10 * MIB and n // 1024 .. " KiB" or n // MIB .. " MiB"
end

--- Writes the output to a file if the run has files; returns its path, or nil.
local function write_file(o, ctx, r)
  local fs = o.output_folder and ctx.filesystem
  if not fs then
    return nil
  end
  local path = ("%s/%s.txt"):format(o.output_folder,
    ctx.call_id:gsub("[^%w_-]", "_"):sub(1, 100))
  local left_out = r.bytes - #r.output - #r.tail
  local gap = left_out > 0 and ("\n[... %s left out ...]\n"):format(size(left_out)) or ""
  return fs:write(path, r.output .. gap .. r.tail) and path or nil
end

--- Returns head and tail of an output of more than max_output bytes, cut between characters; else
-- all of it.
local function shorten(o, r, file)
  local all = r.output .. r.tail
  if r.bytes <= o.max_output then
    return ah._repair(all)
  end
  local half = o.max_output // 2
  local head = all:sub(1, half):gsub("[\xC0-\xFF][\x80-\xBF]*$", "")
  local tail = all:sub(-half):gsub("^[\x80-\xBF]+", "")
  return ("%s\n[... %s of %s left out%s ...]\n%s"):format(ah._repair(head),
    size(r.bytes - #head - #tail), size(r.bytes), file and "; read " .. file or "",
    ah._repair(tail))
end

local function outcome(o, r)
  local after = ("%.1f s"):format(r.seconds)
  if r.how == "timed_out" then
    return ("[ended after %s: its time was over (timeout)]"):format(after)
  elseif r.signal then
    return ("[ended by signal %s after %s]"):format(r.signal, after)
  end
  local hint = r.code ~= 0 and o.sandbox_text ~= "none" and "; sandbox: " .. o.sandbox_text or ""
  return ("[exit code %d after %s%s]"):format(r.code, after, hint)
end

--- Returns the value of a call, which `render` shows to the model.
local function value_of(o, ctx, r)
  local file = r.bytes > o.max_output and write_file(o, ctx, r) or nil
  return {
    output = shorten(o, r, file), file = file, bytes = r.bytes,
    stdout = r.stdout and shorten(o, r.stdout, file),
    stderr = r.stderr and shorten(o, r.stderr, file),
    outcome = outcome(o, r), exit_code = r.code,
    signal = r.signal, timed_out = r.how == "timed_out", seconds = r.seconds, cpu_seconds = r.cpu,
    memory = r.peak, sandbox = r.sandbox, left = r.left,
  }
end

local function render(value)
  local left = not value.left and "\n[it is not known whether processes of it are left]"
    or value.left > 0 and ("\n[%d processes could not be ended]"):format(value.left) or ""
  local gap = (value.output == "" or value.output:sub(-1) == "\n") and "" or "\n"
  return value.output .. gap .. value.outcome .. left
end

--- Warns, once for each tool, that sandbox = "auto" found no sandbox.
local function warn_once(o, ctx)
  if o.sandbox == "auto" and o.kind == "none" and not o.warned then
    o.warned = true
    ah._warn(ctx, "bash: this machine offers no sandbox: commands may do what the user may. "
      .. "Install bubblewrap, use a kernel with Landlock, or say sandbox = \"none\" to accept it "
      .. "or sandbox = \"require\" to refuse it")
  end
end

--- Returns the folders that may be written to: the working folder first, unless it is read-only.
local function writable(o, root, read_only)
  local list = read_only and {} or { root }
  return table.move(o.folders, 1, #o.folders, #list + 1, list)
end

--- Returns the folders that may be read beside those of the system: the working folder, which may
-- be read-only, then o.read_folders. Returns nil if reading is not limited.
local function readable(o, root)
  return o.read_folders and table.move(o.read_folders, 1, #o.read_folders, 2, { root })
end

local function run(o, args, ctx)
  local argv, wrong = words_of(o, args)
  if not argv then
    return nil, wrong
  end
  local root, read_only = folder_of(o, ctx)
  if not root then
    return nil, read_only
  elseif read_only and o.kind == "none" then
    return nil, "a folder that is read-only needs a sandbox"
  end
  warn_once(o, ctx)
  local r, err = ah._command {
    argv = argv, env = o.environment, folders = writable(o, root, read_only), start = root,
    start_in = args.cwd, stdin = args.stdin, timeout = args.timeout or o.timeout,
    grace = o.grace, merge = o.merge, memory = o.memory, file_size = o.file_size, cpu = o.cpu,
    processes = o.processes, keep = o.keep, tail = TAIL, sandbox = o.kind,
    network = o.network, owners = o.owners, readable = readable(o, root),
  }
  return r and value_of(o, ctx, r), err
end

-- -- the tool ---------------------------------------------------------------------------------

local function describe(o)
  local text = {
    "Runs a command on this machine and waits for it. Give `command`, a text for the shell, "
      .. "or `argv`, a program and its arguments, which no shell looks at.",
    ("The result has stdout and stderr together, and how the command ended. When it ends, or "
      .. "after %g seconds (or `timeout`), all that it has started is ended, too: nothing goes on "
      .. "in the background."):format(o.timeout),
    ("Of more than %s of output you see head and tail: narrow it down, with grep or head."):format(
      size(o.max_output)),
    "It has no terminal: do not start editors, pagers or anything that asks.",
  }
  if o.sandbox_text ~= "none" then
    text[#text + 1] = ("Only the working directory and $TMPDIR can be written to%s."):format(
      o.network and "" or "; there is no network")
  end
  return table.concat(text, "\n")
end

--- options: docs/reference/builtin.md.
return function(options)
  local o = read_options(options)
  local text, kind = ah._sandbox { sandbox = o.sandbox, network = o.network }
  if not text then
    return nil, kind
  end
  o.sandbox_text, o.kind = text, kind
  local ok, err = open_folders(o)
  if not ok then
    return nil, err
  end
  o.environment = ah._environment(o.env, WHAT)
  o.shell_words = shell_words(o.shell)
  return ah.tool {
    name = "bash",
    description = "Runs a command of the machine and shows its output and exit code.",
    full_description = describe(o),
    params = {
      ["command?"] = "string 1..: what the shell is to run, such as: grep -rn main src | head",
      ["argv?"] = { "string" },
      ["timeout?"] = ("number 0.1..%g: seconds after which it is ended"):format(o.max_timeout),
      ["cwd?"] = "string 1..: the folder to begin in, absolute or below the working directory",
      ["stdin?"] = "string: what it reads from its standard input; nothing without",
    },
    annotations = { read_only = false, destructive = true, idempotent = false, open_world = true },
    render = render,
    handler = function(args, ctx)
      return run(o, args, ctx)
    end,
  }
end
