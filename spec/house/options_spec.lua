-- Options as rows (ah._options): the rows are sound, every table that they describe is read by
-- them, and the annotations and pages say what they say.
local ah = require "agenthost"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local KINDS = { boolean = true, integer = true, number = true, string = true, list = true,
  table = true, ["function"] = true, object = true, any = true }

describe("the rows of options", function()
  it("have names, kinds and one line of text each", function()
    for _, subject in ipairs(ah._options()) do
      local seen = {}
      assert.matches("^ah%.%u%w+$", subject.type)
      assert.is_true(#subject.rows > 0 and #subject.rows <= 64, subject.what)
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
end)

-- Calls with { [field] = value } in `http`: what was raised.
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
