-- The time to compile a schema and to check a value is proportional to their size, whatever they
-- contain: costly shapes (support.hostile_schemas) at one size and at four times that size.
--
-- Work is CPU time or, in the build of `make check-schema-growth`, the number of basic blocks that
-- are executed, which other programs do not influence. AGENTHOST_GROWTH is the smallest size.
local ah = require "agenthost"
local shapes = require "support.hostile_schemas"

local counted = package.loadlib((os.getenv("AGENTHOST_BUILD") or "build") .. "/counted.so",
  "luaopen_counted")
counted = counted and counted()

local SMALLEST = tonumber(os.getenv("AGENTHOST_GROWTH")) or 250
-- Limit of the work for four times the size, a factor and a constant: sorting, caches and other
-- programs take some.
local MOST, SOME = counted and 5.5 or 7, counted and 20000 or 0.004
local TRIES = counted and 1 or 4

local has_patterns = pcall(ah.schema, { pattern = "a" })

local function work(f, ...)
  local now = counted or os.clock
  local start = now()
  local a, b = f(...)
  return now() - start, a, b
end

--- Returns the work of compiling and of checking; asserts that the shape's value is valid or not,
-- as the shape says.
local function work_of(shape, n)
  local text, value, options = shape.make(n)
  local compiling, checking = math.huge, math.huge
  for _ = 1, TRIES do
    collectgarbage()
    local took, schema = work(ah.schema, text, options)
    compiling = math.min(compiling, took)
    local checked, ok, message = work(schema.validate_text, schema, value)
    checking = math.min(checking, checked)
    assert.equal(not shape.wrong, ok == true, message)
    assert.falsy(message and not ok and message:find("takes more steps", 1, true), message)
  end
  return { compiling = compiling, checking = checking }
end

--- Returns true, or a line that says what grows faster than the size.
local function is_linear(shape, tries)
  local small, large = work_of(shape, SMALLEST), work_of(shape, 4 * SMALLEST)
  for _, what in ipairs { "compiling", "checking" } do
    if large[what] > MOST * small[what] + SOME then
      if tries > 1 and not counted then
        return is_linear(shape, tries - 1)
      end
      return ("%s %s: %.6g at %d, %.6g at %d"):format(what, shape.name, small[what], SMALLEST,
        large[what], 4 * SMALLEST)
    end
  end
  return true
end

describe("a schema that is made to be costly", function()
  for _, shape in ipairs(shapes) do
    it("takes work in its size: " .. shape.name, function()
      if not has_patterns and shape.make(1):find('"pattern', 1, true) then
        return pending("this build has no PCRE2")
      end
      assert.equal(true, is_linear(shape, 3))
    end)
  end

  it("would be found out", function()
    local planted = { name = "planted", make = function(n)
      local some = n * 250 // SMALLEST -- more would take all the steps of a check
      return '{"allOf":[' .. ('{"items":{"minimum":0}},'):rep(some) .. "true]}", "["
        .. ("1,"):rep(some) .. "1]"
    end }
    assert.matches("^checking planted", is_linear(planted, 1))
  end)
end)
