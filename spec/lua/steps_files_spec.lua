-- Files of the machine that durable handlers look at: what is recorded, what is given when the
-- handler is entered again, and the error for a file that has changed meanwhile.
-- docs/reference/durable.md has the rules.
local ah = require "agenthost"
local lives = require "support.lives"

local new_journal, enter, kinds = lives.new_journal, lives.enter, lives.kinds

local root, fs

before_each(function()
  root = os.tmpname()
  os.remove(root)
  assert(os.execute("mkdir " .. root))
  fs = assert(ah.filesystem { root = root })
end)

after_each(function()
  fs:close()
  os.execute("rm -rf " .. root)
end)

local function write(name, text)
  local f <close> = assert(io.open(root .. "/" .. name, "wb"))
  f:write(text)
end

-- The record of the i-th step, as tables.
local function record(journal, i)
  local one = journal:records()[i]
  return ah.json.decode(one.said), ah.json.decode(one.kept)
end

-- Returns results as a text.
local function told(value, err)
  if value == nil then
    return ("%s %s: %s"):format(err.code, err.reason, err.message)
  elseif type(value) == "table" and value[1] then
    value = value[1].text or value[1].name
  end
  return type(value) == "string" and value or ah.json.encode(value)
end

-- Returns the result of the handler, and that of its next entry, after meanwhile(); the journal.
local function twice(handler, meanwhile)
  local journal = new_journal()
  local first = assert(enter(journal, handler))
  if meanwhile then
    meanwhile()
  end
  return first, enter(journal, handler), journal
end

-- The ways to look at a file.
local LOOKS = {
  function() return fs:read "a.txt" end,
  function() return fs:read("a.txt", { offset = 1, limit = 2 }) end,
  function() return fs:lines "a.txt" end,
  function() return fs:stat "a.txt" end,
  function() return fs:exists "a.txt" end,
}

describe("a file that a durable handler reads", function()
  it("is recorded once, with hash, size and content", function()
    write("a.txt", "one\n")
    local function handler()
      assert(fs:read "a.txt" == fs:read "a.txt")
      return (fs:read "a.txt")
    end
    local first, second, journal = twice(handler)
    assert.equal("one\n", first)
    assert.equal(first, second)
    assert.same({ ("step  read 0 read %s/a.txt"):format(root) }, kinds(journal))
    local said, kept = record(journal, 1)
    assert.equal(ah.sha256 "one\n", said.hash)
    assert.equal(4, said.size)
    assert.equal("one\n", kept[1].v)
  end)

  it("may have any bytes, and a long path", function()
    local long = ("d"):rep(200) .. "/" .. ("ä"):rep(100)
    assert(fs:write(long, "\255\0\1"))
    local first, second, journal = twice(function()
      return ah.sha256((fs:read(long)))
    end)
    assert.equal(ah.sha256 "\255\0\1", first)
    assert.equal(first, second)
    assert.equal(1, #journal:records())
  end)

  it("is given as it was, whichever way it is looked at", function()
    write("a.txt", "one two\n")
    for i, look in ipairs(LOOKS) do
      local first, second, journal = twice(function() return told(look()) end)
      assert.equal(first, second)
      assert.equal(1, #journal:records(), i)
    end
  end)

  it("may be empty", function()
    write("a.txt", "")
    for _, look in ipairs(LOOKS) do
      local first, second = twice(function()
        local value, err = look()
        return type(value) == "table" and "a table" or told(value, err)
      end)
      assert.is_nil(first:find "^conflict")
      assert.equal(first, second)
    end
  end)

  it("is told as a conflict if it has changed meanwhile", function()
    for i, look in ipairs(LOOKS) do
      write("a.txt", "one two\n")
      local first, second = twice(function() return told(look()) end,
        function() assert(os.execute(("rm %s/a.txt"):format(root))) end)
      assert.is_nil(first:find "conflict", i)
      assert.truthy(second:find("conflict conflict: 'a.txt' has changed since this call looked at "
        .. "it", 1, true), second)
    end
    for i = 1, 4 do -- a file that exists still does
      write("a.txt", "one two\n")
      local _, second = twice(function() return told(LOOKS[i]()) end,
        function() write("a.txt", "three and four\n") end)
      assert.truthy(second:find "^conflict conflict", second)
      assert.truthy(second:find("What the call saw then is in the journal", 1, true), second)
    end
  end)

  it("is told as a conflict if it was not there", function()
    for _, look in ipairs(LOOKS) do
      local function handler() return told(look()) end
      local first, second = twice(handler)
      assert.truthy(first == "false" or first:find "^tool_validation not_found", first)
      assert.equal(first, second)
      first, second = twice(handler, function() write("a.txt", "one two\n") end)
      assert.truthy(first == "false" or first:find "^tool_validation not_found", first)
      assert.truthy(second:find "^conflict conflict: 'a.txt' has changed", second)
      os.remove(root .. "/a.txt")
    end
  end)

  it("counts only in the part that was read", function()
    write("a.txt", "one two")
    local first, second = twice(function() return (fs:read("a.txt", { limit = 3 })) end,
      function() write("a.txt", "one TWO") end)
    assert.equal("one", first)
    assert.equal("one", second)
  end)

  it("leaves the recorded steps behind it to the handler, once it has changed", function()
    write("a.txt", "one")
    local effects = {}
    local function handler(_, ctx)
      local text, err = fs:read "a.txt"
      local name = text and "pay" or "tell"
      ctx:step(name, function() effects[#effects + 1] = name return 1 end)
      if text then
        ctx:step("last", function() return 1 end)
      end
      return text or err.code
    end
    local first, second, journal = twice(handler, function() write("a.txt", "two") end)
    assert.equal("one", first)
    assert.equal("conflict", second)
    assert.same({ "pay", "tell" }, effects)
    assert.equal("conflict", (enter(journal, handler))) -- nothing is done twice
    assert.same({ "pay", "tell" }, effects)
  end)

  it("is read by the step in which it is read", function()
    write("a.txt", "one")
    local function handler(_, ctx)
      return ctx:step("read", function() return (fs:read "a.txt") end)
    end
    local first, second, journal = twice(handler, function() write("a.txt", "two") end)
    assert.equal("one", first)
    assert.equal("one", second)
    assert.equal(2, #journal:records())
  end)

  it("is not recorded after a secret step", function()
    write("a.txt", "one")
    local journal = new_journal()
    assert.equal("one", enter(journal, function(_, ctx)
      ctx:step("key", function() return 1 end, { secret = true })
      return (fs:read "a.txt")
    end))
    assert.equal(1, #journal:records())
  end)

  it("is a step of each task that reads it", function()
    write("a.txt", "one")
    local function handler()
      return table.concat(ah.map({ 1, 2, 3 }, function(i)
        ah.sleep(0.001 * (3 - i))
        return (fs:read "a.txt")
      end), " ")
    end
    local first, second, journal = twice(handler)
    assert.equal("one one one", first)
    assert.equal(first, second)
    local reads = 0
    for _, one in ipairs(kinds(journal)) do
      reads = reads + (one:find " read 0 " and 1 or 0)
    end
    assert.equal(3, reads)
  end)
end)

describe("what a durable handler has written", function()
  it("is read without a step", function()
    local function handler(_, ctx)
      assert(fs:write("new.txt", "new"))
      assert(fs:append("new.txt", "er"))
      assert(fs:exists "new.txt" and fs:stat("new.txt").size == 5)
      return ctx:step("last", function() return 1 end, { on_lost = "retry" }) == 1
        and (fs:read "new.txt")
    end
    local journal = new_journal()
    assert.same({ nil, "dead" }, { enter(journal, handler, 2) })
    assert.is_false(fs:exists "new.txt")
    write("new.txt", "of another")
    assert.equal("newer", (enter(journal, handler)))
    assert.equal("newer", (fs:read "new.txt"))
    assert.equal(2, #journal:records())
  end)

  it("is seen over the file that was recorded", function()
    write("log", "one ")
    local function handler(_, ctx)
      local before = fs:read "log"
      if not before then
        return "changed"
      end
      assert(fs:append("log", "two "))
      ctx:step("last", function() return 1 end, { on_lost = "retry" })
      return before .. (fs:read "log")
    end
    local journal = new_journal()
    assert.same({ nil, "dead" }, { enter(journal, handler, 2) })
    assert.equal("one ", (fs:read "log"))
    assert.equal("one one two ", (enter(journal, handler)))
    assert.equal("one two ", (fs:read "log"))
  end)

  it("depends on the file below if it is a change of that", function()
    write("log", "one ")
    local function handler(_, ctx)
      assert(fs:append("log", "two "))
      local text = told(fs:read "log")
      ctx:step("last", function() return 1 end, { on_lost = "retry" })
      return text
    end
    local journal = new_journal()
    assert.same({ nil, "dead" }, { enter(journal, handler, 2) })
    assert.equal("one ", (fs:read "log"))
    write("log", "three ")
    assert.truthy(enter(journal, handler):find "^conflict")
  end)
end)

describe("lists of files of the machine", function()
  it("are given again as they were", function()
    for _, name in ipairs { "a.txt", "b.txt", "c.txt" } do
      write(name, "one\n")
    end
    local function handler()
      local glob = fs:glob("*.txt", { max = 2 })
      return ah.json.encode { fs:list(), { table.unpack(glob) }, glob.truncated,
        fs:grep("one", { count = true }), #fs:glob "*.none", told(fs:list "none"),
        (select("#", fs:list())) }
    end
    local first, second, journal = twice(handler, function() write("b2.txt", "one\n") end)
    assert.truthy(first:find('["a.txt","b.txt"],true', 1, true), first)
    assert.truthy(first:find("tool_validation not_found", 1, true), first)
    assert.equal(first, second)
    assert.equal(6, #journal:records())
  end)
end)

describe("other files", function()
  it("make no steps: in memory, without a store, and in other handlers", function()
    write("a.txt", "one")
    local memory <close> = ah.filesystem { files = { ["a.txt"] = "one" } }
    local _, _, journal = twice(function()
      return (memory:read "a.txt") .. #memory:list() .. tostring(memory:exists "a.txt")
    end)
    assert.equal(0, #journal:records())
    local function handler()
      return (fs:read "a.txt") .. #fs:list()
    end
    assert.equal("one1", lives.result_of(assert(lives.new_agent(handler):run "go")))
  end)

  it("of an overlay are not those below it", function()
    write("a.txt", "one")
    local over <close> = fs:overlay()
    over:write("a.txt", "over")
    local first, second, journal = twice(function()
      return fs:read "a.txt" .. over:read "a.txt"
    end)
    assert.equal("oneover", first)
    assert.equal(first, second)
    assert.equal(2, #journal:records())
  end)
end)

describe("a handler that has read files", function()
  it("has diverged if it reads another one, or none", function()
    write("a.txt", "one")
    write("b.txt", "one")
    for _, other in ipairs { function() return (fs:read "b.txt") end, function() return "" end } do
      local journal = new_journal()
      assert(enter(journal, function() return (fs:read "a.txt") end))
      local ok, err = pcall(enter, journal, other)
      assert.is_false(ok)
      assert.equal("diverged", err.code)
      assert.truthy(err.message:find(("read 'read %s/a.txt'"):format(root), 1, true), err.message)
    end
  end)

  it("has the same outcome after a death at every record", function()
    write("a.txt", "1 ")
    local n = lives.die_everywhere(function()
      return function(_, ctx)
        local said = { (fs:read "a.txt") }
        for i = 1, 2 do
          said[#said + 1] = ctx:step("n", function() return i end, { on_lost = "retry" })
          said[#said + 1] = #fs:list()
          said[#said + 1] = fs:lines("a.txt").total
          assert(fs:write("mine.txt", tostring(i)))
        end
        return table.concat(said, " ") .. fs:read "mine.txt"
      end
    end, function(outcome, _, first)
      os.remove(root .. "/mine.txt")
      assert.equal("1  1 1 1 2 2 12", first)
      assert.equal(first, outcome)
    end)
    assert.equal(8, n)
  end)
end)
