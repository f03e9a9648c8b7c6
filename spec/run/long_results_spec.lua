-- Results of which a model gets only head and tail: if the run has files, a file has all of it.
-- docs/reference/tool.md, "What a handler gives back".
local ah = require "agenthost"
local command = require "support.command"
local sound = require "support.sound"

local LIMIT = 64 * 1024

local function quiet() end

local function call(name, arguments, id)
  return { calls = { { name = name, arguments = arguments, id = id } } }
end

local function tool(handler, fields)
  local t = { name = "t", description = "Gives much.", params = { n = "integer?" },
    handler = handler or function() return ("line of text\n"):rep(20000) end }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return ah.tool(t)
end

-- Calls once, with the id; returns the result for the model, and the path in it.
local function once(fields, id)
  fields.model, fields.log, fields[1] = ah.scripted { call("t", {}, id or "c1"), "ok" }, quiet, "go"
  fields.tools = fields.tools or { tool() }
  local reply = assert(ah.run(fields))
  sound.check(reply:transcript())
  local content = reply.messages[3].content
  return content, content:match "; all of it is in the file '([^']+)' %.%.%.%]\n", reply
end

after_each(command.tidy)

describe("a result that is too long for the model", function()
  it("is a file whose path stands between head and tail, within the limit", function()
    for limit = 1024, LIMIT, 9000 do
      local fs = ah.filesystem { memory = true }
      local text = ("a\u{263a} line\n"):rep(20000)
      local content, path = once({ resources = { filesystem = fs },
        tools = { tool(function() return text end, { max_result = limit }) } }, "c1")
      assert.equal("tool-output/c1.txt", path)
      assert.equal(text, fs:read(path))
      assert.is_true(#content <= limit and utf8.len(content) ~= nil)
      local head, tail = content:match "^(.-)\n%[%.%.%. .- %.%.%.%]\n(.*)$"
      assert.equal(head, text:sub(1, #head))
      assert.equal(tail, text:sub(-#tail))
      assert.truthy(content:find((" of %d bytes left out"):format(#text), 1, true))
    end
  end)

  it("can be read with the built-in tool, a member a line where it is JSON", function()
    local rows = {}
    for i = 1, 5000 do
      rows[i] = { id = i, text = 'a "quoted", comma \\', list = ah.array {} }
    end
    local fs = ah.filesystem { root = command.folder() }
    local tools = ah.builtin { "read_file" }
    tools[2] = tool(function() return ah.ok(rows, "Found, them all.") end)
    local reply = assert(ah.run { tools = tools, resources = { filesystem = fs }, log = quiet, "go",
      model = ah.scripted { call("t", {}, "big"),
        call("read_file", { path = "tool-output/big.txt", pattern = '^..?id":4711,', context = 2 }),
        call("read_file", { path = "tool-output/big.txt", tail = 1 }), "ok" } })
    assert.matches('{"id":4711,\n +%d+%-"list":%[%],\n', reply.messages[5].content)
    assert.truthy(reply.messages[5].content:find([["text":"a \"quoted\", comma \\"}]], 1, true))
    assert.matches('comma \\\\"}%]$', reply.messages[7].content)
    local message, json = fs:read("tool-output/big.txt"):match "^(.-)\n\n(.*)$"
    assert.equal("Found, them all.", message)
    assert.equal(ah.json.encode(rows), ah.json.encode(ah.json.decode(json)))
  end)

  it("is the same file for the same calls, and a new one where that is taken", function()
    local fs = ah.filesystem { memory = true }
    local paths = {}
    for i, id in ipairs { "same", "same", "same", "a.b/../c:d", ("x"):rep(300) } do
      paths[i] = select(2, once({ resources = { filesystem = fs } }, id))
    end
    assert.same({ "tool-output/same.txt", "tool-output/same-2.txt", "tool-output/same-3.txt",
      "tool-output/a_b____c_d.txt" }, { table.unpack(paths, 1, 4) })
    assert.is_true(fs:exists(paths[5]) and #paths[5] < 130)
    local again = ah.filesystem { memory = true }
    assert.equal(paths[1], select(2, once({ resources = { filesystem = again } }, "same")))
  end)

  it("is one file for each of several calls at once", function()
    local fs = ah.filesystem { memory = true }
    local reply = assert(ah.run { resources = { filesystem = fs }, log = quiet, "go",
      tools = { tool(function(args)
        ah.sleep(0.001 * args.n)
        return ("%d,"):format(args.n):rep(50000)
      end, { parallel = true }) },
      model = ah.scripted { { calls = { { name = "t", id = "a", arguments = { n = 3 } },
        { name = "t", id = "b", arguments = { n = 1 } } } }, "ok" } })
    for i, id in ipairs { "a", "b" } do
      local text = assert(fs:read(("tool-output/%s.txt"):format(id)))
      assert.equal(text:sub(1, 100), reply.messages[2 + i].content:sub(1, 100))
    end
  end)

  it("is in the file without what the conversation must not hold", function()
    local fs = ah.filesystem { memory = true }
    local key = "sk-canary-1234567890"
    local server = require "support.server"
    local s <close> = server.start { responses = { server.chat_call("t", "{}", "c1"),
      server.chat_text "ok" } }
    assert(ah.run { model = "openai/m", base_url = s.url, api_key = key, log = quiet, "go",
      resources = { filesystem = fs },
      tools = { tool(function() return ("x"):rep(40000) .. key .. ("x"):rep(40000) end) } })
    local text = fs:read "tool-output/c1.txt"
    assert.is_nil(text:find("canary", 1, true))
    assert.truthy(text:find("x[secret]x", 1, true))
  end)

  it("is in no file where the result is short, hidden, or that of a failed call", function()
    for _, handler in ipairs {
      function() return ("x"):rep(LIMIT) end,
      function()
        return ah.result { message = "m", value = ("x"):rep(2 * LIMIT),
          exclude_value_from_context = true }
      end,
      function() return nil, ("x"):rep(2 * LIMIT) end,
      function() error(("x"):rep(2 * LIMIT)) end,
      function() return ah.result { value = ("x"):rep(2 * LIMIT), success = false } end,
    } do
      local fs = ah.filesystem { memory = true }
      local _, path = once { resources = { filesystem = fs }, tools = { tool(handler) } }
      assert.is_nil(path)
      assert.is_false(fs:exists "tool-output")
    end
  end)

  it("is taken back with the call around the run", function()
    local fs = ah.filesystem { memory = true }
    for _, fails in ipairs { true, false } do
      local outer = ah.tool { name = "outer", description = "Runs.", handler = function()
        local _, path = once({ resources = { filesystem = fs } }, "inner")
        assert.is_true(fs:exists(path))
        assert(not fails, "after all")
      end }
      assert(ah.run { tools = { outer }, model = ah.scripted { call "outer", "ok" }, log = quiet,
        "go" })
      assert.equal(not fails, fs:exists "tool-output/inner.txt")
    end
  end)

  -- Without a place to write to, a result is cut to head and tail, and the call still succeeds.
  for name, resources in pairs {
    ["there are no files"] = function() return nil end,
    ["the filesystem is read-only"] = function()
      return { filesystem = ah.filesystem { files = {}, read_only = true } }
    end,
    ["the filesystem is full"] = function()
      return { filesystem = ah.filesystem { memory = true, max_total = 4096 } }
    end,
    ["a file may not be so large"] = function()
      return { filesystem = ah.filesystem { memory = true, max_file = 100000 } }
    end,
    ["something else has the folder's name"] = function()
      return { filesystem = ah.filesystem { files = { ["tool-output"] = "a file" } } }
    end,
    ["the folder of the machine is gone"] = function()
      local path = command.folder()
      local fs = ah.filesystem { root = path }
      assert(os.execute("rmdir " .. path))
      return { filesystem = fs }
    end,
    ["several are filesystems"] = function()
      return { a = ah.filesystem { memory = true }, b = ah.filesystem { memory = true } }
    end,
    ["what is called filesystem is none"] = function()
      return { filesystem = { write = error } }
    end,
    ["it is closed"] = function()
      local fs = ah.filesystem { memory = true }
      fs:close()
      return { filesystem = fs }
    end,
  } do
    it("is shown in part alone where " .. name, function()
      local content, path, reply = once { resources = resources() }
      assert.is_nil(path)
      assert.matches("bytes left out; the limit is 65536 (max_result of the tool) ...]", content, 1,
        true)
      assert.is_true(reply.messages[3].success)
    end)
  end

  -- The disk refuses a file of this size, which is noticed only when it is put into place.
  it("is shown in part alone where the disk refuses it, and the rest is kept", function()
    local root = command.folder()
    local script = command.temp(([[
      local ah = require "agenthost"
      local fs = ah.filesystem { root = %q, sync = false }
      local t = ah.tool { name = "t", description = "T.", handler = function()
        assert(fs:write("kept", "small"))
        return ("x"):rep(500000)
      end }
      local reply = assert(ah.run { tools = { t }, resources = { filesystem = fs }, "go",
        model = ah.scripted { { calls = { { name = "t", id = "c1" } } }, "ok" } })
      local m = reply.messages[3]
      print(m.success, #m.content, m.content:find("tool-output", 1, true), fs:read "kept",
        fs:exists "tool-output/c1.txt")
    ]]):format(root))
    local r = command.shell(("trap '' XFSZ; ulimit -f 100; \"$A\" %s"):format(script))
    assert.matches("^true\t%d+\tnil\tsmall\t", r.out)
    assert.matches("false\n$", r.out)
  end)

  it("is kept in what is provided once it was made, and in an overlay of the script", function()
    local fs = ah.filesystem { memory = true }
    local resource = ah.resource { provide = function() return fs end }
    assert.is_nil(select(2, once { resources = { filesystem = resource } }))
    local path = select(2, once { resources = { filesystem = resource },
      tools = { tool(function(_, ctx) return ctx.filesystem and ("x"):rep(2 * LIMIT) end) } })
    assert.is_true(fs:exists(path))
    local over = fs:overlay()
    path = select(2, once({ resources = { filesystem = over } }, "over"))
    assert.is_true(over:exists(path))
    assert.is_false(fs:exists(path))
  end)

  it("is named in the event, and for strategies", function()
    local seen = {}
    once { resources = { filesystem = ah.filesystem { memory = true } },
      on = { tool_invoked = function(e) seen[1] = e.content:match "tool%-output/c1.txt" end },
      strategies = { function(m) seen[2] = m.result:match "tool%-output/c1.txt" end } }
    assert.same({ "tool-output/c1.txt", "tool-output/c1.txt" }, seen)
  end)
end)
