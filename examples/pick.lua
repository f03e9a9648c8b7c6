-- More tools than a model should read at once: it gets brief descriptions, and picks tools.
--
--   agenthost examples/pick.lua ["Which file is the longest?"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/pick.lua
--
-- The size of each request and its calls go to stderr, the answer to stdout. Without a model a
-- scripted one shows what a model would do.
local ah = require "agenthost"

local question = ... or "Which file is the longest?"
local files = { ["notes.txt"] = "Buy tea.\nBuy cups.",
  ["poem.txt"] = "Gulls above the salt.\n\n\n" }

local function tool(name, description, full, params, handler)
  return ah.tool { name = name, description = description, full_description = full,
    params = params, handler = handler }
end

local registry = ah.registry {
  tool("list_files", "Lists the files.",
    "Lists the names of all files, sorted. There are no folders.", {}, function()
      local names = {}
      for name in pairs(files) do
        names[#names + 1] = name
      end
      table.sort(names)
      return names
    end),
  tool("count_lines", "Counts the lines of a file.",
    "Counts the lines of one file, empty ones too. For several files call it several times.",
    { name = "string: as list_files tells it", empty = "boolean = true: count empty lines, too" },
    function(args)
      local text = files[args.name]
      if not text then
        return nil, "There is no file " .. args.name
      end
      local n = 0
      for line in (text .. "\n"):gmatch "([^\n]*)\n" do
        n = n + ((args.empty or line ~= "") and 1 or 0)
      end
      return n
    end),
}
-- Other tools, which this question does not need.
for i = 1, 40 do
  registry:register(tool("other_" .. i, "Does something else.", ("Does something else. "):rep(20),
    { first = "string", second = "integer = 1", third = "a|b|c = a" }, function() end))
end

-- A scripted model, used if none is named.
local function call(name, arguments)
  return { name = name, arguments = arguments }
end
local rehearsed = ah.scripted {
  { calls = { call("list_files"), call("pick_tools", { tools = { "count_lines" } }) } },
  { calls = { call("count_lines", { name = "notes.txt" }), call("count_lines",
    { name = "poem.txt" }) } },
  "poem.txt is the longest: it has 4 lines, notes.txt has 2.",
}

local reply = assert(ah.run {
  model = not os.getenv "AGENTHOST_MODEL" and rehearsed or nil,
  registry = registry, brief = true, question,
  on = {
    request = function(e) io.stderr:write(("request of %d bytes\n"):format(e.bytes)) end,
    tool_invoked = function(e)
      io.stderr:write(("  %s %s: %s\n"):format(e.name, e.arguments, e.content:match "[^\n]*"))
    end,
  },
})
print(reply)
