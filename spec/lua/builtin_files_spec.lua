-- The built-in file tools (docs/reference/builtin_files.md): the results that a model gets, the
-- same in memory and in a folder of the machine, and that a failed call leaves no partial change.
local ah = require "agenthost"

local markdown = require "support.markdown"

local has_patterns = pcall(ah.schema, { pattern = "a" })

local folders = {}

local function new_folder()
  local path = os.tmpname()
  assert(os.execute(("rm '%s' && mkdir '%s'"):format(path, path)))
  folders[#folders + 1] = path
  return path
end

local KINDS = {
  ["in memory"] = function() return ah.filesystem { memory = true } end,
  ["in a folder"] = function() return ah.filesystem { root = new_folder(), sync = false } end,
}

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

-- Runs a model that makes these calls, one in each answer. Returns the last result that the model
-- gets, and true if it is a success.
local function told(fs, ...)
  local turns, calls = {}, { ... }
  for i, c in ipairs(calls) do
    turns[i] = { calls = { c } }
  end
  turns[#turns + 1] = "done"
  local reply = assert(ah.run { model = ah.scripted(turns), tools = ah.builtin(),
    resources = { filesystem = fs }, log = function() end, "go" })
  local last = reply.messages[1 + 2 * #calls]
  return last.content, last.success ~= false
end

local function succeeds(...)
  local text, ok = told(...)
  assert(ok, text)
  return text
end

local function fails(...)
  local text, ok = told(...)
  assert(not ok, text)
  return text
end

local function numbers(n)
  local list = {}
  for i = 1, n do
    list[i] = "line " .. i
  end
  return table.concat(list, "\n") .. "\n"
end

for kind, make in pairs(KINDS) do
  describe("built-in tools for files " .. kind, function()
    local fs
    before_each(function()
      fs = assert(make())
      fs:write("src/main.c", "int main(void)\n{\n    return 0;\n}\n")
      fs:write("big", numbers(2310))
    end)
    teardown(function()
      for _, path in ipairs(folders) do
        os.execute(("rm -rf '%s'"):format(path))
      end
      folders = {}
    end)

    it("read a file with the numbers of its lines", function()
      assert.equal("src/main.c: 4 lines\n     1\tint main(void)\n     2\t{\n"
        .. "     3\t    return 0;\n     4\t}",
        succeeds(fs, call("read_file", { path = "src/main.c" })))
    end)

    it("read parts, and say how to go on", function()
      local text = succeeds(fs, call("read_file", { path = "big" }))
      assert.matches("^big: lines 1 to 500 of 2,310\n     1\tline 1\n", text)
      assert.matches("\n   500\tline 500\n%[500 of 2,310 lines; go on with offset = 501%]$", text)
      text = succeeds(fs, call("read_file", { path = "big", offset = 501, limit = 2 }))
      assert.equal("big: lines 501 to 502 of 2,310\n   501\tline 501\n   502\tline 502\n"
        .. "[502 of 2,310 lines; go on with offset = 503]", text)
      text = succeeds(fs, call("read_file", { path = "big", tail = 2 }))
      assert.equal("big: lines 2,309 to 2,310 of 2,310\n  2309\tline 2309\n  2310\tline 2310", text)
      assert.equal("offset 9 is behind the end: 'src/main.c' is 4 lines long",
        fails(fs, call("read_file", { path = "src/main.c", offset = 9 })))
    end)

    it("read no more bytes than a result has, and the very end of a tail", function()
      fs:write("wide", (("x"):rep(1500) .. "\n"):rep(99) .. "the end\n")
      local text = succeeds(fs, call("read_file", { path = "wide" }))
      assert.is_true(#text < 60000)
      local last = math.tointeger(text:match("(%d+) of 100 lines; go on"))
      assert.matches("^wide: lines 1 to " .. last .. " of 100", text)
      text = succeeds(fs, call("read_file", { path = "wide", tail = 100 }))
      assert.matches("   100\tthe end$", text)
      fs:write("long", ("y"):rep(9000) .. "\nshort\n")
      text = succeeds(fs, call("read_file", { path = "long" }))
      assert.matches("y %[cut: the line has 9,000 bytes%]\n     2\tshort$", text)
    end)

    it("read the lines that match, and those around them", function()
      assert.equal("src/main.c: lines that match (:) and those around them (-)\n     2-{\n"
        .. "     3:    return 0;\n     4-}", succeeds(fs, call("read_file",
          { path = "src/main.c", pattern = "return", context = 1 })))
      assert.matches("no line of 'big' matches 'zzz'",
        succeeds(fs, call("read_file", { path = "big", pattern = "zzz" })))
    end)

    it("say what cannot be read and why", function()
      fs:write("bin", "\x7fELF\0\1")
      fs:write("empty", "")
      assert.equal("'bin' is a binary file of 6 bytes; only text can be read",
        fails(fs, call("read_file", { path = "bin" })))
      assert.equal("'empty' is empty", succeeds(fs, call("read_file", { path = "empty" })))
      assert.equal("there is no 'src/mian.c' (did you mean 'src/main.c'?)",
        fails(fs, call("read_file", { path = "src/mian.c" })))
      assert.matches("folder, not a file", fails(fs, call("read_file", { path = "src" })))
      assert.truthy(fails(fs, call("read_file", { path = "../x" })):find("..", 1, true))
    end)

    it("list folders and globs", function()
      assert.equal("big  " .. "21,993 bytes\nsrc/", succeeds(fs, call("list_files", {})))
      assert.equal("src/main.c  33 bytes", succeeds(fs, call("list_files", { glob = "**/*.c" })))
      assert.equal("no file in the root matches '*.c'; in all folders below it: **/*.c",
        succeeds(fs, call("list_files", { glob = "*.c" })))
      assert.matches("did you mean 'src'", fails(fs, call("list_files", { path = "scr" })))
      for i = 1, 201 do
        fs:write(("many/%03d"):format(i), "")
      end
      assert.matches("200  0 bytes\n%[there are more than the 200 shown; narrow it",
        succeeds(fs, call("list_files", { path = "many" })))
    end)

    it("search contents", function()
      assert.equal("src/main.c\n     3:    return 0;",
        succeeds(fs, call("grep", { pattern = "RETURN", ignore_case = true, glob = "*.c" })))
      assert.equal("big: 2,310 lines", succeeds(fs, call("grep",
        { pattern = "line", count = true })))
      assert.matches("line 100\n%[there is more than the 100 lines shown",
        succeeds(fs, call("grep", { pattern = "line" })))
      assert.equal("no line matches 'zzz' in 'src'",
        succeeds(fs, call("grep", { pattern = "zzz", path = "src" })))
      assert.matches("plain = true looks for the text itself$",
        fails(fs, call("grep", { pattern = "main(" })))
      assert.equal("src/main.c\n     1:int main(void)",
        succeeds(fs, call("grep", { pattern = "main(", plain = true })))
      if has_patterns then
        assert.equal("src/main.c\n     3:    return 0;",
          succeeds(fs, call("grep", { pattern = "return \\d" })))
      end
    end)

    it("edit a text that is there once", function()
      assert.equal("Replaced 1 place in 'src/main.c'.", succeeds(fs, call("edit_file",
        { path = "src/main.c", old = "return 0", new = "return 1" })))
      assert.matches("return 1;", (fs:read("src/main.c")))
      assert.equal("Replaced 2,310 places in 'big'.", succeeds(fs, call("edit_file",
        { path = "big", old = "line", new = "row", all = true })))
    end)

    it("say why a text was not replaced", function()
      local function why(old, path)
        return fails(fs, call("edit_file", { path = path or "src/main.c", old = old, new = "x" }))
      end
      assert.matches("in 'big' 2310 times, in lines 1, 2, 3, .*%(all = true%)", why("line", "big"))
      assert.matches("it is in line 2 with other white space", why "{\n\treturn 0;\n}")
      assert.matches("its first line is in line 2, but what follows differs", why "{\n  foo")
      assert.matches("leave out the line numbers", why "     3\t    return 0;")
      assert.matches("did you mean 'src/main.c'", why("y", "src/main.h"))
      assert.matches("give old and new", fails(fs, call("edit_file", { path = "big", old = "x" })))
      assert.matches("return 0;", (fs:read("src/main.c")))
    end)

    it("make all of several edits, or none", function()
      local before = fs:read("src/main.c")
      local text = fails(fs, call("edit_file", { path = "src/main.c", edits = {
        { old = "int main", new = "int start" }, { old = "nothing", new = "x" } } }))
      assert.matches("^edit 2 of 2: the text to replace is not in .* none of the edits was made$",
        text)
      assert.equal(before, (fs:read("src/main.c")))
      succeeds(fs, call("edit_file", { path = "src/main.c", edits = {
        { old = "int main", new = "int start" }, { old = "int start", new = "int go" } } }))
      assert.matches("^int go%(void%)", (fs:read("src/main.c")))
    end)

    it("keep the line ends of a file that has \\r\\n", function()
      fs:write("dos", "one\r\ntwo\r\nthree\r\n")
      succeeds(fs, call("edit_file", { path = "dos", old = "one\ntwo\n", new = "1\n2\n" }))
      assert.equal("1\r\n2\r\nthree\r\n", (fs:read("dos")))
      assert.matches("^dos: 3 lines, line ends \\r\\n\n",
        succeeds(fs, call("read_file", { path = "dos" })))
    end)

    it("write what is new, and overwrite only what was looked at", function()
      assert.equal("Made 'new/a': 2 lines, 3 bytes.",
        succeeds(fs, call("write_file", { path = "new/a", content = "x\ny" })))
      local text = fails(fs, call("write_file", { path = "big", content = "x" }))
      assert.matches("'big' is there already %(21,993 bytes%) and was not read", text)
      assert.equal(21993, fs:stat("big").size)
      fails(fs, call("read_file", { path = "big", offset = 9999 }),
        call("write_file", { path = "big", content = "x" }))
      assert.equal("Replaced 'big': 1 line, 1 byte; it had 21,993 bytes.",
        succeeds(fs, call("read_file", { path = "./big", limit = 1 }),
          call("write_file", { path = "big", content = "x" })))
      assert.matches("^Replaced", succeeds(fs, call("write_file",
        { path = "src/main.c", content = "", overwrite = true })))
    end)
  end)
end

describe("ah.builtin", function()
  it("gives the tools that are named, in an order of its own, with their options", function()
    local names = {}
    for i, tool in ipairs(ah.builtin { "grep", "read_file", list_files = { max = 1 } }) do
      names[i] = tool.name
    end
    assert.same({ "read_file", "list_files", "grep" }, names)
  end)

  it("refuses names and options that it does not know, at the line of the script", function()
    for words, wrong in pairs {
      ["there is no tool 'raed_file' (did you mean 'read_file'?)"] = { "raed_file" },
      ["read_file: unknown field 'line' (did you mean 'lines'?)"] = { read_file = { line = 1 } },
      ["field 'lines' must be an integer of at least 1, found 0"] = { read_file = { lines = 0 } },
    } do
      local ok, err = pcall(function()
        local tools = ah.builtin(wrong)
        return tools
      end)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(words, 1, true), tostring(err))
      assert.matches("builtin_files_spec.lua:%d+: ", tostring(err))
    end
  end)

  it("gives tools that say so where there are no files", function()
    assert.equal("there are no files here: no filesystem is bound to this run",
      fails(nil, call("list_files", {})))
  end)

  it("gives tools that policies see like any other", function()
    local fs = ah.filesystem { files = { a = "one" } }
    local reply = assert(ah.run { tools = ah.builtin(), resources = { filesystem = fs },
      policies = { function(c)
        if c.name == "write_file" then return "deny", "nothing is written on Sundays" end
      end },
      model = ah.scripted { { calls = { call("write_file", { path = "b", content = "x" }) } },
        "done" }, "go" })
    assert.matches("nothing is written on Sundays", reply.messages[3].content)
    assert.is_false(fs:exists("b"))
  end)
end)

describe("ctx.calls", function()
  it("lists what was answered, in this answer as well", function()
    local seen = {}
    local look = ah.tool { name = "look", description = "Looks.", params = { n = "integer" },
      handler = function(_, ctx)
        seen[#seen + 1] = #ctx.calls
        return ctx.calls[1] and ctx.calls[1].arguments.n or 0
      end }
    local reply = assert(ah.run { tools = { look }, model = ah.scripted {
      { calls = { call("look", { n = 7 }), call("look", { n = 8 }) } },
      { calls = { call("look", { n = 9 }) } }, "done" }, "go" })
    assert.same({ 0, 1, 2 }, seen)
    assert.equal("7", reply.messages[6].content)
  end)
end)

describe("docs/reference/builtin_files.md", function()
  local PAGE = markdown.read("docs/reference/builtin_files.md")
  local GIVEN = { http_fetch = { allow = "public", post = true } }

  local function names_in(heading, n)
    local names = {}
    for _, row in ipairs(markdown.tables(markdown.section(PAGE, heading))[n] or {}) do
      for _, name in ipairs(markdown.names(row[1])) do
        names[name] = true
      end
    end
    return names
  end

  local OTHERS = "^bash|^builtin|^files|^html|^planning"
  for file in io.popen(("ls lua/agenthost/tools | grep -Ev '%s'"):format(OTHERS)):lines() do
    local name = file:match("^(.*)%.lua$")
    it("has the parameters and options of " .. name, function()
      local tool = ah.builtin(GIVEN[name] and { [name] = GIVEN[name] } or { name })[1]
      local params, options = {}, {}
      for param in pairs(tool.spec.parameters.properties) do
        params[param] = true
      end
      assert.same(params, names_in("## " .. name, 1))
      for _, subject in ipairs(ah._options()) do
        for _, row in ipairs(subject.what == "ah.builtin: " .. name and subject.rows or {}) do
          options[row.name] = true
        end
      end
      assert.same(options, names_in("## " .. name, 2))
      assert.equal(tool.name, name)
    end)
  end
end)

describe("examples/workspace.lua", function()
  local function run(arguments)
    local binary = (os.getenv "AGENTHOST_BUILD" or "build") .. "/agenthost"
    local pipe <close> = assert(io.popen(
      ("unset AGENTHOST_MODEL; %s examples/workspace.lua %s 2>&1"):format(binary, arguments)))
    return pipe:read "a"
  end

  it("shows a call that fails in the middle and leaves nothing behind", function()
    local text = run ""
    assert.matches("src/main.lua: greet in 1 lines\n      %(src/main.lua is changed, for now%)\n"
      .. "FAIL  replace_everywhere\n.*      src/main.lua: greet in 1 lines\n", text)
    assert.matches("FAIL  edit_file\ndone  read_file\ndone  edit_file\n", text)
    assert.matches("\ngreet is hello now, in two files; CHANGES.md says so.\n$", text)
  end)

  it("works in an empty folder of the machine, and in no other", function()
    local folder = new_folder()
    assert.matches("CHANGES.md says so.\n$", run(folder))
    local fs <close> = assert(ah.filesystem { root = folder })
    assert.matches("M.hello%(name%)", (fs:read "src/greet.lua"))
    assert.equal('local g = require "greet"\nprint(g.hello("Ann"))\n', (fs:read "src/main.lua"))
    assert.equal("1.0  greet is there\n2.0  greet is hello now\n", (fs:read "CHANGES.md"))
    assert.matches("the folder is not empty", run(folder))
    os.execute(("rm -rf '%s'"):format(folder))
  end)
end)
