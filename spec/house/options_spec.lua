-- Options as rows (ah._options): the rows are sound, every table that they describe is read by
-- them, and annotations and pages agree with them.
local ah = require "agenthost"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local KINDS = { boolean = true, integer = true, number = true, string = true, list = true,
  table = true, ["function"] = true, object = true, any = true }

describe("the rows of options", function()
  it("have names, kinds and one line of text each", function()
    for _, subject in ipairs(ah._options()) do
      local seen = {}
      assert.matches("^ah%.%u%w+$", subject.type)
      assert.is_true(#subject.rows <= 64, subject.what)
      for _, row in ipairs(subject.rows) do
        local name = subject.what .. ": " .. row.name
        assert.matches("^%l[%l_]*$", row.name, name)
        assert.is_nil(seen[row.name], name)
        seen[row.name] = true
        assert.is_true(#row.kinds > 0, name)
        for _, kind in ipairs(row.kinds) do
          assert.is_true(KINDS[kind], name)
        end
        assert.is_nil((row.doc or ""):find "\n", name)
        assert.is_true(not row.words or table.concat(row.kinds, " "):find "string" ~= nil, name)
        assert.is_true(not row.most or row.least <= row.most, name)
      end
    end
  end)

  it("stand in the annotations and pages as `make generate` writes them", function()
    local out = os.tmpname()
    local ok = os.execute(("'%s/agenthost' tools/generate.lua --check 2>%s"):format(BUILD, out))
    local f <close> = assert(io.open(out))
    os.remove(out)
    assert.is_true(ok, f:read "a")
  end)

  it("are new tables each time, which nobody can spoil", function()
    ah._options()[1].rows[1].name = "spoiled"
    assert.not_equal("spoiled", ah._options()[1].rows[1].name)
  end)

  it("are had by type, too, for which no module is loaded", function()
    local by_type = {}
    for _, subject in ipairs(ah._options()) do
      by_type[subject.type] = subject
    end
    assert.same(by_type["ah.Config"], ah._options "ah.Config")
    assert.is_nil(ah._options "ah.Nothing")
    local code = [[print(#ah._options("ah.Config").rows > 9,
      next(debug.getregistry()["agenthost.loaded"] or {}))]]
    local out <close> = assert(io.popen(("'%s/agenthost' -e '%s'"):format(BUILD, code)))
    assert.equal("true\tnil\n", out:read "a")
  end)
end)

-- Calls with { [field] = value } in `http`; returns the error.
local function http(fields)
  local ok, err = pcall(ah.run, { model = "demo/echo", http = fields, "x" })
  return not ok and tostring(err) or nil
end

describe("a table that is read by rows", function()
  it("tells a name that is none, with the nearest", function()
    assert.matches("ah.run: http: unknown field 'idle_timeot' %(did you mean 'idle_timeout'%?%)",
      http { idle_timeot = 1 })
    assert.matches("ah.run: http: found a value without a name", http { 5 })
    assert.matches("ah.run: http: unexpected boolean as key", http { [true] = 5 })
    assert.matches("ah.run: field 'http' must be a table, { ... }, found number", http(5))
  end)

  it("tells a value of another kind, and one out of its range", function()
    local least = "ah.run: http: field 'idle_timeout' must be a number of at least 0.001, found "
    assert.matches(least .. "string", http { idle_timeout = "5" })
    assert.matches(least .. "0", http { idle_timeout = 0 })
    assert.matches("field 'max_body' must be a number of at least 1, found %-?nan",
      http { max_body = 0 / 0 })
    assert.matches("field 'max_body' must be a number of at most 1e%+15, found inf",
      http { max_body = math.huge })
    assert.matches("field 'max_body' must be a number of at least 1, found agenthost.schema",
      http { max_body = ah.schema { type = "object" } })
  end)

  it("names the first mistake in the order of the rows, whatever the order of the table", function()
    for _ = 1, 20 do
      assert.matches("'connect_timeout'", http { max_body = 0, max_header = 0, total_timeout = 0,
        idle_timeout = 0, connect_timeout = 0 })
    end
  end)

  it("takes fields by metatables as its own, and checks them, too", function()
    assert.is_nil(http(setmetatable({ idle_timeout = 1 }, { __index = { max_body = 5 << 20 } })))
    assert.matches("field 'max_body' must be a number of at least 1, found 0",
      http(setmetatable({ idle_timeout = 1 }, { __index = { max_body = 0 } })))
  end)

  it("runs no code of the script after a field was looked at", function()
    local asked = 0
    local t = setmetatable({}, { __index = function(_, key)
      asked = asked + 1
      return key == "max_body" and (asked <= 5 and 5 << 20 or "changed") or nil
    end })
    assert.is_nil(http(t))
    assert.equal(5, asked)
  end)
end)

describe("a reader of the library's own Lua", function()
  local made = 0
  local function reader(rows, more)
    made = made + 1
    local subject = { what = "ah.x", type = "ah.SpecOnly" .. made, rows = rows }
    for key, value in pairs(more or {}) do
      subject[key] = value
    end
    return ah._reader(subject)
  end

  local function told(read, t, what)
    local ok, err = pcall(read, t, what)
    return not ok and tostring(err) or nil
  end

  local read = reader {
    { name = "size", kinds = "integer", least = 2, most = 33, default = 4 },
    { name = "way", kinds = "string list", words = "here there" },
    { name = "done", kinds = "function", needed = true, doc = "what comes last" },
  }

  it("tells the script's line, and what is wrong in the words of all readers", function()
    for words, t in pairs {
      ["options_spec.lua:%d+: ah.x: unknown field 'sise' %(did you mean 'size'%?%)"] = { sise = 1 },
      ["ah.x: field 'size' must be an integer from 2 to 33, found 1"] = { size = 1, done = print },
      ["ah.x: field 'size' must be an integer from 2 to 33, found 2.5"] = { size = 2.5 },
      ["ah.x: field 'way' must be \"here\", \"there\" or a list, { ... }, found \"hree\""] =
        { way = "hree" },
      ["ah.x: way%[2%] is nil; a list has no holes"] = { way = { "a", nil, "b" } },
      ["ah.x: way: unexpected name 'a'"] = { way = { "a", a = 1 } },
      ["ah.x: field 'done' is missing: what comes last"] = { size = 3 },
      ["ah.x: found a value without a name"] = { 3 },
      ["ah.x: expected a table of fields, found string"] = "x",
    } do
      assert.matches(words, told(read, t))
    end
    assert.matches("expected a table of fields, found nil", told(read))
    assert.matches("ah.other: unknown field", told(read, { x = 1 }, "ah.other"))
  end)

  it("gives a table of its own, with what is inherited and the defaults", function()
    local given = setmetatable({ size = 7 }, { __index = { done = print } })
    local own = read(given)
    assert.same({ size = 7, done = print }, own)
    assert.is_nil(getmetatable(own))
    own.size = 8
    assert.equal(7, given.size)
    assert.equal(4, read { done = print }.size)
    local flag = reader { { name = "flag", kinds = "boolean", default = true } }
    assert.is_true(flag {}.flag)
    assert.is_false(flag { flag = false }.flag)
  end)

  it("is shown by ah._options, once, with the default as pages show it", function()
    local words = {}
    for _ = 1, 2 do
      reader({ { name = "a", kinds = "string", default = "x" }, { name = "b", kinds = "any",
        otherwise = "none of them" }, { name = "c", kinds = "boolean", default = false } },
        { type = "ah.SpecOnlyShown", doc = "a text" })
    end
    for _, subject in ipairs(ah._options()) do
      for _, row in ipairs(subject.type == "ah.SpecOnlyShown" and subject.rows or {}) do
        words[#words + 1] = ("%s %s %s"):format(row.name, row.kinds[1], row.otherwise)
      end
    end
    assert.same({ 'a string `"x"`', "b any none of them", "c boolean false" }, words)
  end)

  it("may be that of a subject of C", function()
    assert.matches("ah.y: field 'read_only' must be a boolean, found string",
      told(ah._reader "ah.Annotations", { read_only = "x" }, "ah.y"))
    assert.matches("no subject has that type", told(ah._reader, "ah.Nothing"))
  end)

  it("is not made of rows that make no sense", function()
    for words, rows in pairs { ["'strng' is no kind"] = { { name = "a", kinds = "strng" } },
      ["without kinds"] = { { name = "a" } }, ["without a name"] = { { kinds = "any" } },
      ["'doc' of a row is no text"] = { { name = "a", kinds = "any", doc = 5 } } } do
      assert.matches(words, told(reader, rows))
    end
    local many = {}
    for i = 1, 65 do
      many[i] = { name = "a" .. i, kinds = "any" }
    end
    assert.matches("too many rows", told(reader, many))
    assert.matches("no subject", told(ah._reader, { rows = {} }))
    local spoiled = { { name = "a" .. math.random(1e9), kinds = "string" } }
    local reads = reader(spoiled)
    spoiled[1].name, spoiled[1] = nil, nil
    collectgarbage()
    assert.matches("unknown field 'b'; there are a%d+", told(reads, { b = 1 }))
  end)

  it("has no other beside it: no list of names is checked by hand", function()
    local pipe <close> = assert(io.popen "grep -rlE '_check_fields|unknown field' lua/agenthost")
    local files = {}
    for file in pipe:lines() do
      files[#files + 1] = not file:find "agenthost/command/" and file or nil
    end
    assert.same({}, files)
  end)
end)
