-- Waiting in handlers: ah.sleep, ah.http, nested runs; and how a wait is stopped.
local ah = require "agenthost"
local patiently = require "support.patiently"
local server = require "support.server"
local sound = require "support.sound"

local function handler_result(handler, more)
  local t = ah.tool { name = "t", description = "Waits.", handler = handler }
  local options =
    { model = ah.scripted { { calls = { { name = "t" } } }, "ok" }, tools = { t }, "go" }
  for k, v in pairs(more or {}) do
    options[k] = v
  end
  local reply, err = ah.run(options)
  local entries = sound.check((reply or err.reply):transcript())
  return sound.of(entries, "tool_result")[1], err
end

describe("ah.sleep", function()
  it("waits about as long as it is told, on the main thread and in a handler", function()
    local began = ah.now()
    ah.sleep(0.02)
    handler_result(function()
      ah.sleep(0.02)
    end)
    local took = ah.now() - began
    assert.is_true(took >= 0.039 and took < 10, tostring(took))
  end)

  it("refuses what is no time", function()
    assert.has_error(function()
      ah.sleep(-1)
    end)
    assert.has_error(function()
      ah.sleep(0 / 0)
    end)
  end)

  it("lets other handlers work meanwhile", function()
    patiently(function(times)
      local order = {}
      local t = ah.tool {
        name = "t",
        description = "Waits.",
        params = { n = "integer" },
        parallel = true,
        handler = function(args)
          ah.sleep(args.n / 200 * times)
          order[#order + 1] = args.n
        end,
      }
      local calls = {}
      for i, n in ipairs { 3, 1, 2 } do
        calls[i] = { name = "t", arguments = { n = n } }
      end
      assert(ah.run { model = ah.scripted { { calls = calls }, "ok" }, tools = { t }, "go" })
      assert.same({ 1, 2, 3 }, order)
    end)
  end)

  it("gives others a turn by coroutine.yield, too", function()
    local r = handler_result(function()
      for _ = 1, 3 do
        coroutine.yield("ignored")
      end
      return "back"
    end)
    assert.equal("back", r.content)
  end)
end)

describe("ah.http", function()
  it("gives status, headers and body, in a handler and on the main thread", function()
    local s <close> = server.start {
      responses = { { status = 201, headers = { ["X-Kind"] = "test" }, body = "made" } },
    }
    local function get()
      return assert(ah.http { url = s.url .. "/a", headers = { ["X-From"] = "spec" }, body = "{}" })
    end
    local main = get()
    assert.same({ 201, "made", "test" }, { main.status, main.body, main.headers["x-kind"] })
    assert.equal(
      "made",
      handler_result(function()
        return get().body
      end).content
    )
    local seen = s:requests()
    assert.equal(2, #seen)
    assert.same(
      { "POST", "/a", "{}", "spec" },
      { seen[1].method, seen[1].path, seen[1].body, seen[1].headers["x-from"] }
    )
  end)

  it("gives nil and an error where no response came", function()
    local s = server.start { responses = { { body = "x" } } }
    local url = s.url
    s:close()
    local response, err = ah.http { url = url }
    assert.is_nil(response)
    assert.equal("http", err.code)
    assert.is_true(err.retryable)
  end)

  it("stops at its limits", function()
    local s <close> = server.start { responses = { { body = ("x"):rep(1000), endless = true } } }
    local _, err = ah.http { url = s.url, max_body = 5000 }
    assert.matches("max_body", err.message)
  end)

  it("ends with the run's deadline", function()
    local s <close> = server.start { responses = { { stall = true } } }
    local began = ah.now()
    local _, err = handler_result(function()
      ah.http { url = s.url }
    end, { timeout = 0.05 })
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - began < 20)
  end)

  it("refuses bad addresses and fields", function()
    assert.equal("usage", select(2, ah.http { url = "file:///etc/passwd" }).code)
    for _, fields in ipairs { { url = "http://127.0.0.1:1/a\0b" },
      { url = "http://127.0.0.1:1", method = "GET\0" },
      { url = "http://127.0.0.1:1", headers = { ["X\0Y"] = "1" } } } do
      assert.equal("usage", select(2, ah.http(fields)).code)
    end
    assert.has_error(function()
      ah.http { url = "http://127.0.0.1", verb = "GET" }
    end)
    assert.has_error(function()
      ah.http {}
    end)
  end)
end)

describe("a run that a stopped call waited for", function()
  local inner_done

  local function inner()
    return ah.run {
      model = ah.scripted { { text = "late", delay = 60 } },
      on = {
        done = function(e)
          inner_done = e.code
        end,
      },
      "go",
    }
  end

  before_each(function()
    inner_done = nil
  end)

  it("is cancelled with it where the call yielded", function()
    local r = handler_result(
      inner,
      {
        tools = {
          ah.tool { name = "t", description = "Asks.", timeout = 0.03, handler = inner },
        },
      }
    )
    assert.matches("did not finish", r.content)
    ah.sleep(0.01)
    assert.equal("cancelled", inner_done)
  end)

  it("ends at the deadline of the run around it where the call drives", function()
    local began = ah.now()
    local _, err = handler_result(
      coroutine.wrap(function()
        while true do
          inner()
          coroutine.yield()
        end
      end),
      { timeout = 0.05 }
    )
    assert.equal("deadline_exceeded", err.code)
    assert.equal("deadline_exceeded", inner_done)
    assert.is_true(ah.now() - began < 20)
  end)

  it("does not keep a sleep that drives beyond the run's end", function()
    local began = ah.now()
    local _, err = handler_result(
      coroutine.wrap(function()
        ah.sleep(60)
      end),
      { timeout = 0.05 }
    )
    assert.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - began < 20)
  end)
end)

-- A poller gives up after PATIENCE seconds, so that an endless loop fails instead of hanging.
describe("a handler that polls", function()
  local PATIENCE = 30

  local function poller(name, until_true)
    return ah.tool { name = name, description = "Polls.", parallel = true, handler = function()
      local began = ah.now()
      while not until_true() do
        if ah.now() - began > PATIENCE then
          return "starved"
        end
        coroutine.yield()
      end
      return "seen"
    end }
  end

  local function calls_of(...)
    local calls = {}
    for i, name in ipairs { ... } do
      calls[i] = { name = name }
    end
    return { calls = calls }
  end

  local function results(reply)
    local list = {}
    for _, e in ipairs(sound.of(sound.check(reply:transcript()), "tool_result")) do
      list[#list + 1] = e.content
    end
    return list
  end

  it("lets timers come where the last job of its round is another run's", function()
    for _, order in ipairs { { "wakes", "nests" }, { "nests", "wakes" }, { "nests" } } do
      local flag, inner = false, nil
      local poll = poller("poll", function() return flag end)
      local set = ah.tool { name = "set", description = "Sets.", parallel = true,
        handler = function()
        ah.sleep(0.1)
        flag = true
      end }
      local function nest()
        inner = inner or assert(ah.run { model = ah.scripted { calls_of("poll", "set"), "ok" },
          tools = { poll, set }, "go" })
      end
      local nests = ah.tool { name = "nests", description = "Drives.", parallel = true,
        handler = function()
          table.sort({ 2, 1 }, function(a, b)
            nest()
            return a < b
          end)
          return results(inner)[1]
        end }
      local wakes = ah.tool { name = "wakes", description = "Wakes meanwhile.", parallel = true,
        handler = function() ah.sleep(0.05) return "seen" end }
      local reply = assert(ah.run { model = ah.scripted { calls_of(table.unpack(order)), "ok" },
        tools = { nests, wakes }, "go" })
      for _, result in ipairs(results(reply)) do
        assert.equal("seen", result)
      end
    end
  end)

  it("lets timers come where the last job of its round is taken back", function()
    local flag = false
    local poll = poller("poll", function() return flag end)
    local works = ah.tool { name = "works", description = "Works on.", parallel = true,
      handler = function()
        coroutine.yield()
        local began = ah.now()
        while ah.now() - began < 0.06 do
        end
      end }
    local late = ah.tool { name = "late", description = "Is stopped as the last.", parallel = true,
      timeout = 0.03, handler = function()
        while true do
          coroutine.yield()
        end
      end }
    local set = ah.tool { name = "set", description = "Sets.", parallel = true, handler = function()
      ah.sleep(0.1)
      flag = true
    end }
    local reply = assert(ah.run { model = ah.scripted { calls_of("poll", "set", "works", "late"),
      "ok" }, tools = { poll, set, works, late }, "go" })
    local got = results(reply)
    assert.equal("seen", got[1])
    assert.matches("did not finish", got[4])
  end)

  it("leaves other runs, descriptors and timers their turns", function()
    local s <close> = server.start { responses = { { body = "body" } } }
    local got
    local poll = poller("poll", function() return got end)
    local asks = ah.tool { name = "asks", description = "Asks.", parallel = true,
      handler = function()
      ah.sleep(0.01)
      local inner = assert(ah.run { model = ah.scripted {
        { text = "inner", delay = 0.01 } }, "go" })
      got = assert(ah.http { url = s.url .. "/" }).body .. inner.text
    end }
    local reply = assert(ah.run { model = ah.scripted { calls_of("poll", "poll", "asks"), "ok" },
      tools = { poll, asks }, "go" })
    assert.same({ "seen", "seen", "OK" }, results(reply))
    assert.equal("bodyinner", got)
  end)
end)
