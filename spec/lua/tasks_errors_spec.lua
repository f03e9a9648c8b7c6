-- Errors of tasks: wrong arguments, failures that nothing awaits, deadlocks.
local ah = require "agenthost"
local command = require "support.command"

after_each(command.tidy)

-- Runs a script; returns what it printed on both, without its path.
local function script(text)
  local path = command.temp('local ah = require "agenthost"\n' .. text)
  local done = command.agenthost(path)
  done.err = done.err:gsub(path:gsub("%p", "%%%0"), "x.lua")
  return done
end

describe("a wrong argument", function()
  local channel, semaphore, task = ah.channel(), ah.semaphore(1), ah.spawn(function() end)
  local permit = semaphore:acquire()
  local f = function() end

  for text, call in pairs {
    ["ah.spawn: the first argument must be a function, found nil"] = { ah.spawn },
    ["ah.scope: the argument must be a function, found table"] = { ah.scope, {} },
    ["ah.every: the second argument must be a function, found nil"] = { ah.every, 1 },
    ["ah.every: the seconds must be a number from 0 to 1e9, found x"] = { ah.every, "x", f },
    ["ah.every: the seconds must be 0.001 at least"] = { ah.every, 0, f },
    ["ah.with_timeout: the seconds must be a number from 0 to 1e9, found -1"] =
      { ah.with_timeout, -1, f },
    ["ah.with_timeout: the seconds must be a number from 0 to 1e9, found -nan"] =
      { ah.with_timeout, -(0 / 0), f },
    ["ah.with_timeout: the second argument must be a function, found number"] =
      { ah.with_timeout, 1, 2 },
    ["ah.all: value 2 of the list must be a function, found number"] = { ah.all, { f, 2 } },
    ["ah.race needs at least one function"] = { ah.race, {} },
    ["ah.map: the second argument must be a function, found nil"] = { ah.map, {} },
    ["ah.channel: the number of values must be an integer from 0 to 1000000, found 0.5"] =
      { ah.channel, 0.5 },
    ["ah.channel: the number of values must be an integer from 0 to 1000000, found 1000001"] =
      { ah.channel, 1000001 },
    ["ah.semaphore: the number of permits must be an integer from 1 to 1000000, found no value"] =
      { ah.semaphore },
    ["nil is no value: it stands for a closed channel"] = { channel.send, channel },
    ["a channel has no 'sent': it has send, receive, close"] =
      { function() return channel.sent end },
    ["a semaphore has no 'release': it has acquire"] = { function() return semaphore.release end },
    ["a permit has no 'close': it has release"] = { function() return permit.close end },
    ["a task has no 'stop': it has await, cancel, status"] = { function() return task.stop end },
    ["a scope has no 'all': it has spawn, cancel"] =
      { ah.scope, function(scope) return scope.all end },
    ["scope:spawn: the first argument must be a function, found nil"] =
      { ah.scope, function(scope) scope:spawn() end },
  } do
    it("is told: " .. text, function()
      local ok, err = pcall(table.unpack(call))
      assert.is_false(ok)
      assert.equal("usage", err.code)
      assert.truthy(err.message:gsub("%-?nan", "-nan"):find(text, 1, true), err.message)
      assert.matches("tasks_errors_spec.lua:%d", tostring(err))
    end)
  end
end)

describe("a failure", function()
  it("is raised as it is, whatever value it is, with nil as nil", function()
    for _, value in ipairs { false, 7, "text", {}, print } do
      local task = ah.spawn(error, value)
      local _, err = pcall(task.await, task)
      assert.equal(value, err)
      assert.same({ false, value }, { pcall(ah.all, { function() error(value, 0) end }) })
    end
    local task = ah.spawn(error)
    assert.same({ false, n = 2 }, table.pack(pcall(task.await, task)))
  end)

  it("that code catches at an await fails the script no more", function()
    local done = script [[
      local task = ah.spawn(function() error "caught" end)
      print(pcall(task.await, task))
      local late = ah.spawn(function() error "late" end)
      ah.sleep(0.01)
      print(pcall(late.await, late))]]
    assert.equal(0, done.code, done.err)
    assert.equal("", done.err)
  end)

  it("of a script is raised once; further ones are warnings, beyond 64 as well", function()
    local done = script [[
      for i = 1, 70 do
        ah.spawn(function() error("fault " .. i .. ".") end)
      end]]
    assert.equal(1, done.code)
    for i = 1, 70 do
      assert.truthy(done.err:find("fault " .. i .. ".", 1, true), "fault " .. i)
    end
    assert.equal(69, select(2, done.err:gsub("a task failed, and nothing has awaited it", "")))
    assert.truthy(done.err:find("it was started at x.lua:3", 1, true), done.err)
  end)

  it("with a long text is shown by its beginning, and how much is left out", function()
    local done = script [[
      ah.spawn(function() error("first", 0) end)
      ah.spawn(function() error(("long "):rep(1000), 0) end)]]
    assert.truthy(done.err:find("long long", 1, true))
    assert.truthy(done.err:find("%d+ bytes left out"), done.err)
    assert.truthy(#done.err < 3000, #done.err)
  end)

  it("of a task's task is raised by the task, when its code has returned", function()
    local task = ah.spawn(function()
      ah.spawn(function() error("inner", 0) end)
      return "outer"
    end)
    assert.same({ false, "inner" }, { pcall(task.await, task) })
    assert.equal("failed", task:status())
  end)

  it("prints the place of a task and its state", function()
    local task <close> = ah.spawn(ah.sleep, 60)
    assert.matches("^task of .*tasks_errors_spec.lua:%d+ %(running%)$", tostring(task))
  end)
end)

describe("a deadlock", function()
  it("shows the line and the wait of each task, and of those in a nested wait, too", function()
    local done = script [[
local channel, permits = ah.channel(), ah.semaphore(1)
local permit = permits:acquire()
local inner = ah.spawn(function()
  channel:send "full" end)
ah.spawn(function()
  inner:await() end)
ah.spawn(function()
  permits:acquire() end)
ah.spawn(function()
  ah.scope(function()
    channel:close(channel:send "also full") end) end)
ah.spawn(function()
  table.sort({ 2, 1 }, function()
    permits:acquire() end) end)
ah.spawn(function()
  local wait = coroutine.wrap(function()
    permits:acquire() end)
  wait() end)
permits:acquire()]]
    assert.equal(1, done.code)
    for _, line in ipairs {
      "the task of x.lua:4 waits at x.lua:5 (send)",
      "the task of x.lua:6 waits at x.lua:7 (await)",
      "the task of x.lua:8 waits at x.lua:9 (acquire)",
      "the task of x.lua:10 waits at x.lua:11 (all its tasks)",
      "the task of x.lua:11 waits at x.lua:12 (send)",
      "the task of x.lua:13 waits at x.lua:15 (acquire)",
      "the task of x.lua:16 waits at x.lua:19 (acquire)",
    } do
      assert.truthy(done.err:find(line, 1, true), line .. "\n" .. done.err)
    end
    assert.is_nil(done.err:find("at work", 1, true), done.err)
  end)

  it("names eight tasks, and the number of the others", function()
    local done = script [[
local channel = ah.channel()
for _ = 1, 20 do ah.spawn(channel.receive, channel) end
channel:receive()]]
    assert.equal(1, done.code)
    assert.truthy(done.err:find("deadlock: nothing can go on", 1, true), done.err)
    assert.equal(8, select(2, done.err:gsub("the task of x.lua:3 waits", "")))
    assert.truthy(done.err:find("and 12 more", 1, true), done.err)
  end)

  it("of a handler ends its run, and the script goes on", function()
    local tool = ah.tool { name = "wait", description = "Waits.", handler = function()
      ah.channel():receive()
    end }
    local reply, err = ah.run { tools = { tool }, log = function() end, model = ah.scripted {
      { calls = { { name = "wait" } } }, "done" }, "hi" }
    assert.is_nil(reply)
    assert.equal("usage", err.code)
    assert.matches("a function waits at .*tasks_errors_spec.lua:%d+ %(receive%)", err.message)
  end)

  it("is none while anything can still happen", function()
    local channel = ah.channel()
    local later <close> = ah.spawn(function() ah.sleep(0.03) channel:send "late" end)
    assert.equal("late", channel:receive())
    assert.is_userdata(later)
  end)

  it("of tasks that await each other through others names both", function()
    local one, two, three
    one = ah.spawn(function() return two:await() end)
    two = ah.spawn(function() return three:await() end)
    three = ah.spawn(function() return one:await() end)
    local _, err = pcall(one.await, one)
    assert.equal("usage", err.code)
    assert.matches("tasks await each other: those of .*:%d+ and .*:%d+", err.message)
  end)
end)
