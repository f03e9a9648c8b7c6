-- Resources of runs: docs/reference/sessions.md, "Resources".
local ah = require "agenthost"

--- Calls the handlers in one message; returns the contents of the results, the reply and the error.
local function call(fields, ...)
  local calls, tools = {}, {}
  for i, handler in ipairs { ... } do
    tools[i] = ah.tool { name = "t" .. i, description = "Does it.", handler = handler }
    calls[i] = { name = "t" .. i }
  end
  fields.model, fields.tools = ah.scripted { { calls = calls }, "done" }, tools
  fields.log = function() end
  fields[#fields + 1] = "go"
  local reply, err = ah.run(fields)
  local contents = {}
  for _, m in ipairs((reply or err.reply).messages) do
    contents[#contents + 1] = m.role == "tool" and m.content or nil
  end
  return contents, reply, err
end

--- Makes a resource that logs when it is made and closed.
local function told(log, name, scope, needs)
  return ah.resource {
    scope = scope,
    provide = function(ctx)
      for _, other in ipairs(needs or {}) do
        ctx.resources:get(other)
      end
      log[#log + 1] = "+" .. name
      return { name = name }
    end,
    close = function(value)
      log[#log + 1] = "-" .. value.name
    end,
  }
end

describe("resources", function()
  it("are values, made ones, and those of the prompt, by name or type", function()
    local Plan = ah.type { name = "Plan", fields = { n = "integer" } }
    local prompt = ah.prompt { resources = { a = "prompt's", b = "prompt's" },
      ah.section { key = "s", template = "t" } }
    local contents = call({ prompt = prompt, resources = { b = "run's", [Plan] = { n = 3 },
      made = ah.resource { provide = function(ctx) return ctx.resources:get "b" .. "!" end } } },
      function(_, ctx)
        local r = ctx.resources
        return { r:get "a", r:get "b", r:get(Plan).n, r:get "made",
          tostring(r:get_optional "none") }
      end, function(_, ctx) return ctx.resources:get "maed" end)
    assert.equal('["prompt\'s","run\'s",3,"run\'s!","nil"]', contents[1])
    assert.equal("Tool 't2' execution failed: resources: there is no 'maed'; there are: "
      .. "[Plan, a, b, made]", contents[2])
  end)

  it("are made when they are asked for, and closed in reverse order, whatever fails", function()
    local log = {}
    local resources = { one = told(log, "one"), two = told(log, "two", nil, { "one" }),
      unused = told(log, "unused"), call = told(log, "call", "tool_call", { "two" }),
      each = told(log, "each", "prototype"),
      bad = ah.resource { provide = function() return true end, close = error } }
    call({ resources = resources }, function(_, ctx)
      local r = ctx.resources
      r:get "call"
      assert(r:get "call" == r:get "call" and r:get "each" ~= r:get "each")
      r:get "bad"
      log[#log + 1] = "end"
      error "no"
    end, function(_, ctx)
      ctx.resources:get "call"
    end)
    assert.equal("+one +two +call +each +each end -each -each -call +call -call -two -one",
      table.concat(log, " "))
  end)

  it("are closed when the run fails, and when a call is stopped", function()
    local log = {}
    local _, reply = call({ timeout = 0.5, resources = { one = told(log, "one"),
      call = told(log, "call", "tool_call") } }, function(_, ctx)
      ctx.resources:get "one"
      ctx.resources:get "call"
      ah.sleep(60)
    end)
    assert.is_nil(reply)
    assert.equal("+one +call -call -one", table.concat(log, " "))
  end)

  it("that need each other are told by their path", function()
    local log = {}
    local contents = call({ resources = { a = told(log, "a", nil, { "b" }),
      b = told(log, "b", "tool_call", { "c" }), c = told(log, "c", nil, { "a" }),
      x = told(log, "x", "prototype", { "y" }), y = told(log, "y", "prototype", { "x" }),
      none = ah.resource { provide = function() end },
      fails = ah.resource { provide = function() error("no disk", 0) end } } },
      function(_, ctx) ctx.resources:get "a" end, function(_, ctx) ctx.resources:get "x" end,
      function(_, ctx) ctx.resources:get "none" end, function(_, ctx) ctx.resources:get "fails" end,
      function(_, ctx) ctx.resources:get "fails" end)
    local before = "Tool 't%d' execution failed: "
    assert.same({
      before:format(1) .. "resources: a singleton cannot need a resource of one call: a -> b",
      before:format(2) .. "resources: they depend on each other: x -> y -> x",
      before:format(3) .. "resources: 'none' was provided as nil",
      before:format(4) .. "no disk", before:format(5) .. "no disk",
    }, contents)
    assert.same({}, log)
  end)

  it("with snapshot and restore are set back when the call fails", function()
    local list = { n = 0 }
    function list:snapshot() return self.n end
    function list:restore(n) self.n = n end
    call({ resources = { plain = list, made = ah.resource { provide = function()
      return setmetatable({ n = 5 }, { __index = list })
    end } } }, function(_, ctx)
      ctx.resources:get("plain").n = 1
    end, function(_, ctx)
      ctx.resources:get("plain").n = 2
      ctx.resources:get("made").n = 2
      error "no"
    end, function(_, ctx)
      assert(ctx.resources:get("made").n == 5)
    end)
    assert.equal(1, list.n)
  end)

  it("have the file system, which is ctx.filesystem", function()
    local fs, other = ah.filesystem { memory = true }, ah.filesystem { memory = true }
    local seen = {}
    local function look(_, ctx)
      local ok, found = pcall(function() return ctx.filesystem end)
      seen[#seen + 1] = not ok and "several" or found == nil and "none" or found == fs
    end
    call({}, look)
    call({ resources = { files = fs, x = 1 } }, look)
    call({ resources = { files = fs, more = other } }, look)
    call({ resources = { filesystem = fs, more = other } }, look)
    call({ resources = { filesystem = ah.resource { provide = function() return fs end } } }, look)
    assert.same({ "none", true, "several", true, true }, seen)
    assert.same({ "Tool 't1' execution failed: no" }, (call({ resources = { fs = fs } },
      function(_, ctx) assert(ctx.filesystem:write("a", "x")) error "no" end)))
    assert.is_false(fs:exists "a")
  end)

  it("are no more when the call is over, and cannot be changed", function()
    local kept
    local contents = call({ resources = { a = 1 } }, function(_, ctx)
      kept = ctx.resources
      kept.a = 2
    end)
    assert.truthy(contents[1]:find("read-only", 1, true))
    local ok, err = pcall(kept.get, kept, "a")
    assert.is_false(ok)
    assert.equal("usage", err.code)
  end)

  it("go with a fork, each run with its own", function()
    local log = {}
    local agent = ah.agent { resources = { a = told(log, "a") }, tools = { ah.tool {
      name = "t", description = "Uses it.", handler = function(_, ctx)
        ctx.resources:get "a"
      end } }, model = ah.scripted(function(request)
        local last = request.entries[#request.entries]
        return last.type == "tool_result" and "done" or { calls = { { name = "t" } } }
      end) }
    assert(agent:run "one")
    assert(agent:fork():run "two")
    assert.equal("+a -a +a -a", table.concat(log, " "))
  end)

  it("are declared strictly", function()
    local function fails(words, f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(words, 1, true), tostring(err))
    end
    fails("unknown field 'scop'", ah.resource, { provide = print, scop = "x" })
    fails("field 'provide' is missing", ah.resource, {})
    fails("must be a function", ah.resource, { provide = 1 })
    fails('found "run"', ah.resource, { provide = print, scope = "run" })
    fails("by a name or a type", ah.agent, { model = "demo/echo", resources = { 1 } })
    fails("resources", ah.agent, { model = "demo/echo", resources = 1 })
    fails("resources", ah.prompt, { resources = print })
  end)
end)
