-- An agent that works on files: it reads and edits; one call fails in the middle, and its changes
-- are undone.
--
--   agenthost examples/workspace.lua                  a small project in memory
--   agenthost examples/workspace.lua FOLDER           the same in an empty folder
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/workspace.lua FOLDER "Do this"
--
-- The calls go to stderr, the answer to stdout. Without a model a scripted one shows what a model
-- would do.
local ah = require "agenthost"

local folder, task = ...
local rehearsing = not task
task = task or "Rename the function greet to hello, everywhere."

local SAMPLE = {
  ["src/greet.lua"] = "local M = {}\n\nfunction M.greet(name)\n  return \"Hi, \" .. name\nend\n\n"
    .. "return M\n",
  ["src/main.lua"] = "local g = require \"greet\"\nprint(g.greet(\"Ann\"))\n",
  ["CHANGES.md"] = "1.0  greet is there\n",
}

local fs = folder and assert(ah.filesystem { root = folder }) or ah.filesystem { memory = true }
if rehearsing then
  assert(#assert(fs:list()) == 0, "the folder is not empty: say in a second argument what to do")
  for path, text in pairs(SAMPLE) do
    assert(fs:write(path, text))
  end
end

-- A tool of our own over many files. It fails at the first file that it may not change; its changes
-- to other files are then undone, without code for that.
local replace_everywhere = ah.tool {
  name = "replace_everywhere", description = "Replaces a word in all files.",
  params = { old = "string 1..", new = "string" },
  handler = function(args, ctx)
    local changed = {}
    for _, found in ipairs(assert(ctx.filesystem:grep(args.old, { plain = true, count = true }))) do
      changed[#changed + 1] = found.path
    end
    table.sort(changed, function(a, b) return a > b end)
    for _, path in ipairs(changed) do
      if path:find "^CHANGES" then
        return nil, path .. " tells what was: it is not rewritten. Nothing was replaced"
      end
      assert(ctx.filesystem:edit(path, args.old, args.new, { all = true }))
      io.stderr:write("      (", path, " is changed, for now)\n")
    end
    return "replaced in " .. table.concat(changed, ", ")
  end,
}

-- A file must be read before it is edited, and the history of changes only grows.
local policies = {
  ah.policies.read_before_write { read = "read_file", write = "edit_file" },
  function(call)
    if call.name == "write_file" and call.arguments.path == "CHANGES.md" then
      return "deny", "CHANGES.md only grows: use edit_file"
    end
  end,
}

-- A scripted model, used if none is named.
local function call(name, arguments)
  return { name = name, arguments = arguments }
end
local rehearsed = ah.scripted {
  { calls = { call("grep", { pattern = "greet", count = true }) } },
  { calls = { call("replace_everywhere", { old = "greet(", new = "hello(" }),
    call("replace_everywhere", { old = "greet", new = "hello" }) } },
  { calls = { call("edit_file", { path = "CHANGES.md", old = "1.0", new = "2.0" }) } },
  { calls = { call("read_file", { path = "CHANGES.md" }),
    call("edit_file", { path = "CHANGES.md", old = "1.0  greet is there\n",
      new = "1.0  greet is there\n2.0  greet is hello now\n" }) } },
  function() return "greet is hello now, in two files; CHANGES.md says so." end,
}

-- Writes each file with the word to stderr, with the number of its lines.
local function show(word)
  for _, found in ipairs(fs:grep(word, { count = true })) do
    io.stderr:write("      ", found.path, ": ", word, " in ", found.count, " lines\n")
  end
end

local reply = assert(ah.run {
  model = rehearsing and not os.getenv "AGENTHOST_MODEL" and rehearsed or nil,
  tools = { replace_everywhere, table.unpack(ah.builtin()) },
  resources = { filesystem = fs }, policies = policies,
  on = { tool_invoked = function(e)
    io.stderr:write(e.success and "done  " or "FAIL  ", e.name, "\n")
    if e.name == "replace_everywhere" then
      show "greet"
    end
  end },
  task,
})
print(reply)
