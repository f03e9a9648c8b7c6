-- The cost of a store, in counts that do not depend on the machine: records, appends, pages and
-- bytes. docs/internals/performance.md has the times.
local ah = require "agenthost"
local t = require "ahtest"

local RESULT = ("Words of a result. "):rep(108) -- about 2 KiB
local PAGE, HEAD, FRAME = 4096, 32, 24          -- of a WAL of SQLite

local scratch

setup(function()
  local p <close> = assert(io.popen "mktemp -d")
  scratch = p:read "l"
end)

teardown(function()
  os.execute("rm -rf '" .. scratch .. "'")
end)

--- Returns an agent whose conversation has had one run of `turns` turns with one call.
local function converse(store, id, turns)
  local list = {}
  for i = 1, turns do
    list[i] = function()
      ah.sleep(0.001) -- a real model takes longer than an append
      return { calls = { { name = "look" } } }
    end
  end
  list[turns + 1] = "done"
  local look = ah.tool { name = "look", description = "Looks.", handler = function()
    return RESULT
  end }
  local agent = assert(ah.agent { store = store, id = id, model = ah.scripted(list),
    tools = { look }, loop_detector = false, max_iterations = turns + 1 })
  return agent, assert(agent:run "go"):transcript()
end

--- Returns the records of such a conversation, their bytes, and those of the conversation.
local function recorded(turns)
  local store <close> = assert(ah.store { engine = "memory" })
  local _ <close>, transcript = converse(store, "c", turns)
  local records, bytes = t.store_records(store, "c"), 0
  for _, r in ipairs(records) do
    bytes = bytes + #r.said + #(r.kept or "")
  end
  return #records, bytes, #transcript
end

--- Returns how many pages the log of a store has, and in how many appends.
local function pages(turns)
  local path = ("%s/%d.db"):format(scratch, turns)
  local store <close> = assert(ah.store(path))
  local agent <close> = converse(store, "c", turns)
  local f <close> = assert(io.open(path .. "-wal", "rb"))
  local log = f:read "a"
  local n, appends = 0, 0
  for at = HEAD + 1, #log - FRAME - PAGE + 1, FRAME + PAGE do
    n = n + 1
    appends = appends + ((">I4"):unpack(log, at + 4) > 0 and 1 or 0) -- the last page of each
  end
  assert.is_truthy(agent)
  return n, appends
end

describe("a turn with one call", function()
  it("has five records, and 1.3 bytes for each byte of the conversation", function()
    local few, few_bytes, few_said = recorded(10)
    local more, bytes, said = recorded(30)
    assert.equal(5 * 20, more - few) -- answer, call_started, settled, turn, request
    local ratio = (bytes - few_bytes) / (said - few_said)
    assert.is_true(ratio > 1 and ratio < 1.3, "a byte has " .. ratio)
  end)

  it("costs the same late in a conversation", function()
    local _, b10 = recorded(10)
    local _, b30 = recorded(30)
    local _, b50 = recorded(50)
    assert.is_true((b50 - b30) / (b30 - b10) < 1.05)
  end)

  it("takes two appends and few pages", function()
    if not pcall(pages, 1) then
      pending "this build has no SQLite"
      return
    end
    local p10, a10 = pages(10)
    local p30, _ = pages(30)
    local p50, a50 = pages(50)
    -- On a busy machine two appends may become one.
    assert.is_true(a50 - a10 > 60 and a50 - a10 <= 2 * 40 + 2, "appends: " .. (a50 - a10))
    assert.is_true(p30 - p10 <= 8 * 20, "pages: " .. (p30 - p10))
    assert.is_true(p50 - p30 <= (p30 - p10) * 1.2, "later: " .. (p50 - p30))
  end)
end)

describe("checkpoints", function()
  it("are a part of the stream that does not grow", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local agent <close> = assert(ah.agent { store = store, id = "c", model = "demo/echo" })
    for i = 1, 300 do
      assert(agent:run("Question " .. i))
    end
    local n, bytes, others = 0, 0, 0
    for _, r in ipairs(t.store_records(store, "c")) do
      local is = r.kind == "checkpoint"
      n = n + (is and 1 or 0)
      bytes = bytes + (is and #r.said or 0)
      others = others + (is and 0 or #r.said)
    end
    assert.is_true(n >= 2, "checkpoints: " .. n)
    assert.is_true(bytes < others / 3, ("%d bytes of %d"):format(bytes, others))
  end)
end)

describe("a long text", function()
  it("is in the file once, whatever records and conversations have it", function()
    if not t.store_engines().sqlite then
      return pending "this build has no SQLite"
    end
    local path, lines = scratch .. "/once.db", {}
    for i = 1, 700 do
      lines[i] = ("line %d \"of\" a \\ result"):format(i)
    end
    local text = table.concat(lines, "\n")
    local Seen = ah.type { name = "Seen", fields = { text = "string" } }
    local look = ah.tool { name = "look", description = "Looks.", params = { n = "integer" },
      handler = function(_, ctx)
        ctx.session:dispatch(Seen { text = text })
        return text
      end }
    local turns = { { calls = { { name = "look", arguments = { n = 1 } },
      { name = "look", arguments = { n = 2 } } } } }
    for i = 2, 80 do
      turns[i] = "Done."
    end
    local store = assert(ah.store(path))
    local agent = assert(ah.agent { store = store, id = "a", model = ah.scripted(turns),
      tools = { look }, session = ah.session { types = { Seen } } })
    for _ = 1, 70 do
      assert(agent:run "Go.")
    end
    agent:fork({ id = "b" }):close()
    agent:close()
    local kinds = {}
    for _, r in ipairs(t.store_records(store, "a")) do
      kinds[r.kind] = (kinds[r.kind] or 0) + select(2, r.said:gsub("line 350 ", ""))
    end
    assert.same({ 4, 4, 4 }, { kinds.call_finished, kinds.settled, kinds.checkpoint })
    local last = t.store_records(store, "b")
    assert.truthy(last[#last].said:find("line 700 ", 1, true))
    store:close()
    local f <close> = assert(io.open(path, "rb"))
    local _, n = f:read("a"):gsub("line 350 ", "")
    assert.equal(1, n)
  end)
end)
