-- Keys and secret responses are in no file of a store, byte for byte: not in the database, its log,
-- its index or its locks, after a kill and after the end. Files that a tool writes have them, and
-- the store keeps the contents of such files with the record call_finished, as they are, and the
-- arguments of a call with a key in them with the record answer.
local ahtest = require "ahtest"
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local GIVEN, ENV, WORD = "sk-ant-given-0123456789abcdefghijkl", "sk-proj-env-ABCDEFGHIJKLMNOPQRST",
  "open sesame 4711"
local FILED, ARGUED = "sk-ant-filed-zyxwvutsrqponmlkjihg", "sk-ant-argued-mnopqrstuvwxyz01234"
-- The kind of record that keeps it.
local KEPT = { [FILED] = "call_finished", [ARGUED] = "answer" }

describe("a store of a conversation with secrets", function()
  local at

  before_each(function()
    at = crashes.folder()
  end)

  after_each(function()
    crashes.remove(at)
    command.tidy()
  end)

  local function run(point)
    return command.shell(("GIVEN=%s OPENAI_API_KEY=%s FILED=%s ARGUED=%s \"$A\""
      .. " spec/crash/secret.lua '%s' %s </dev/null"):format(GIVEN, ENV, FILED, ARGUED, at, point))
  end

  -- Asserts that no file of the store has a secret. Returns how many files there are.
  local function search()
    local pipe <close> = io.popen(("ls '%s'/store.db*"):format(at))
    local n = 0
    for path in pipe:lines() do
      local text = command.contents(path)
      n = n + 1
      for _, secret in ipairs { GIVEN, ENV, WORD, GIVEN:sub(8), ENV:sub(9) } do
        assert.is_nil(text:find(secret, 1, true), ("%q in %s"):format(secret, path))
      end
    end
    local store <close> = assert(ahtest.store("sqlite", { path = at .. "/store.db" }))
    for _, record in ipairs(assert(store:read("s", 1, math.maxinteger))) do
      for secret, kind in pairs(KEPT) do
        assert.is_nil(record.said:find(secret, 1, true), record.kind)
        assert.is_true(record.kind == kind or not record.kept
          or not record.kept:find(secret, 1, true), record.kind)
      end
    end
    return n
  end

  for _, point in ipairs { "handler", "asked", "request", "none" } do
    it("has none of them: killed at " .. point, function()
      local r = run(point)
      if point ~= "none" then
        assert.equal(137, r.code, r.err)
        assert.is_true(search() >= 3, "no log of the database")
        r = run "none"
      end
      assert.equal(0, r.code, r.err)
      assert.is_true(search() >= 1)
      local db = command.contents(at .. "/store.db")
      assert.truthy(db:find("My key is ", 1, true), "the question is not in the store")
      assert.truthy(db:find("wrote the key ", 1, true), "the result is not in the store")
      assert.equal("key = " .. FILED .. "\n", command.contents(at .. "/files/config"))
      assert.equal("the key " .. ARGUED, command.contents(at .. "/arguments"))
      assert.equal(WORD, command.contents(at .. "/password"))
    end)
  end
end)
