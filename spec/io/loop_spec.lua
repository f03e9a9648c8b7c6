-- The event loop: timers with a simulated clock, descriptors with pipes, wake-ups by threads and
-- signals. The same specs hold for epoll and for poll (built with AH_POLLER_POLL).
local ahtest = require "ahtest"

-- Waits until nothing is due; fails after 1000 rounds.
local function run_due(loop)
  for _ = 1, 1000 do
    if not loop:wait(0) then
      return
    end
  end
  error("the loop never comes to rest")
end

local function note(list, name)
  return function() list[#list + 1] = name end
end

describe("a timer", function()
  local loop, log
  before_each(function()
    loop, log = ahtest.loop { clock = 0 }, {}
  end)
  after_each(function()
    assert.equal(0, loop:close())
  end)

  it("is called once its time has come, not before, and once", function()
    local t = loop:timer(note(log, "a"))
    t:set(100)
    loop:set_clock(99)
    run_due(loop)
    assert.same({}, log)
    assert.is_true(t:is_set())
    loop:set_clock(100)
    assert.is_true(loop:wait(0))
    assert.is_false(t:is_set())
    run_due(loop)
    assert.same({ "a" }, log)
  end)

  it("comes in the order of times, and of setting where times are equal", function()
    local order = { 50, 10, 30, 10, 70, 50, 5, 30, 10 }
    for i, at in ipairs(order) do
      loop:timer(note(log, at .. "-" .. i)):set(at)
    end
    loop:set_clock(100)
    run_due(loop)
    assert.same({ "5-7", "10-2", "10-4", "10-9", "30-3", "30-8", "50-1", "50-6", "70-5" }, log)
  end)

  it("comes in order whatever the pattern of setting and unsetting was", function()
    local seed, timers = 12345, {}
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % n
    end
    for i = 1, 300 do
      local t = { at = 0 }
      t.timer = loop:timer(function() log[#log + 1] = t.at end)
      timers[i] = t
    end
    for _ = 1, 2000 do
      local t = timers[random(300) + 1]
      t.at = random(500)
      t.timer:set(t.at)
      if random(5) == 0 then
        t.timer:unset()
      end
    end
    local want = {}
    for _, t in ipairs(timers) do
      if t.timer:is_set() then
        want[#want + 1] = t.at
      end
    end
    table.sort(want)
    loop:set_clock(1000)
    run_due(loop)
    assert.same(want, log)
  end)

  it("comes in order among thousands, that of setting where times are equal", function()
    for _, range in ipairs { 1, 20, 5000, 1 << 40 } do
      local seed, timers, settings, was = range, {}, 0, nil
      local function random(n)
        seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
        return (seed >> 17) % n
      end
      local called, left = 0, 0
      local function set(t)
        settings = settings + 1
        t.at, t.number = random(range), settings
        t.timer:set(t.at)
      end
      for i = 1, 5000 do
        local t = {}
        timers[i] = t
        t.timer = loop:timer(function()
          called, left = called + 1, left - 1
          assert(not was or was.at < t.at or (was.at == t.at and was.number < t.number),
            "out of order")
          was = { at = t.at, number = t.number }
          local other = timers[random(5000) + 1]
          if other.timer:is_set() and random(3) == 0 then
            other.timer:unset() -- due timers, too
            left = left - 1
          end
        end)
      end
      for _ = 1, 20000 do
        local t = timers[random(5000) + 1]
        if random(4) == 0 then
          t.timer:unset()
        else
          set(t)
        end
      end
      for _, t in ipairs(timers) do
        left = left + (t.timer:is_set() and 1 or 0)
      end
      assert.is_true(left > 2000)
      loop:set_clock(loop:now() + range // 3) -- first some timers are due, then all
      run_due(loop)
      loop:set_clock(1 << 41)
      run_due(loop)
      assert.equal(0, left)
      assert.is_true(called > 1000)
      loop:set_clock(0)
    end
  end)

  it("can be moved and unset, also from the callback of another", function()
    local a, b, c = loop:timer(note(log, "a")), loop:timer(note(log, "b")), nil
    c = loop:timer(function()
      log[#log + 1] = "c"
      a:unset()
      b:set(200)
      if #log == 1 then
        c:set(300)
      end
    end)
    a:set(10)
    b:set(10)
    c:set(5)
    a:unset()
    a:unset()
    a:set(10)
    loop:set_clock(10)
    run_due(loop)
    assert.same({ "c" }, log)
    loop:set_clock(300)
    run_due(loop)
    assert.same({ "c", "b", "c", "b" }, log)
  end)

  it("set in a callback for now comes with the next wait, it cannot hold the loop", function()
    local t, n = nil, 0
    t = loop:timer(function()
      n = n + 1
      t:set(0)
    end)
    t:set(0)
    assert.is_true(loop:wait(0))
    assert.is_true(n == 1 or n == 2)
    t:unset()
  end)

  it("that is always due does not starve descriptors", function()
    local r, w = ahtest.pipe()
    local t
    t = loop:timer(function() t:set(0) end)
    t:set(0)
    loop:watch(r, "r", note(log, "read"))
    ahtest.fd_write(w, "x")
    for _ = 1, 10 do
      loop:wait(0)
    end
    assert.is_true(#log > 0)
    t:unset()
    loop:watch(r, "")
    ahtest.fd_close(r)
    ahtest.fd_close(w)
  end)

  it("may be set for the end of all time", function()
    local late, early = loop:timer(note(log, "late")), loop:timer(note(log, "early"))
    late:set(math.maxinteger)
    early:set(math.mininteger)
    run_due(loop)
    assert.same({ "early" }, log)
    assert.equal(2147483647, loop:timeout())
    late:unset()
  end)

  it("is what timeout tells of", function()
    assert.equal(-1, loop:timeout())
    local t = loop:timer(print)
    t:set(70)
    assert.equal(70, loop:timeout())
    loop:set_clock(71)
    assert.equal(0, loop:timeout())
    t:unset()
    assert.equal(-1, loop:timeout())
  end)
end)

describe("a wait", function()
  local loop, r, w, log
  before_each(function()
    loop, log = ahtest.loop(), {}
    r, w = ahtest.pipe()
  end)
  after_each(function()
    assert.equal(0, loop:close())
    ahtest.fd_close(r)
    ahtest.fd_close(w)
  end)

  local function elapsed(f)
    local from = loop:now()
    local result = f()
    return loop:now() - from, result
  end

  it("returns false when its time is over and nothing came", function()
    assert.is_false(loop:wait(0))
    local ms, came = elapsed(function() return loop:wait(30) end)
    assert.is_false(came)
    assert.is_true(ms >= 29)
  end)

  it("lasts until the next timer", function()
    loop:timer(note(log, "t")):set(loop:now() + 30)
    local ms = elapsed(function()
      while #log == 0 do
        loop:wait(-1)
      end
    end)
    assert.is_true(ms >= 30 and ms < 20000)
  end)

  it("tells of a descriptor that can be read, until it is not", function()
    loop:watch(r, "r", function(fd, events)
      log[#log + 1] = events .. ahtest.fd_read(fd)
    end)
    assert.is_false(loop:wait(0))
    ahtest.fd_write(w, "one")
    assert.is_true(loop:wait(-1))
    run_due(loop)
    assert.same({ "rone" }, log)
    ahtest.fd_write(w, "two")
    assert.is_true(loop:wait(-1))
    assert.same({ "rone", "rtwo" }, log)
    loop:watch(r, "")
  end)

  it("tells of a descriptor that can be written, as long as that is asked for", function()
    loop:watch(w, "w", function(fd, events)
      log[#log + 1] = events
      loop:watch(fd, "")
    end)
    assert.is_true(loop:wait(-1))
    run_due(loop)
    assert.same({ "w" }, log)
  end)

  it("tells of a hang-up as both", function()
    ahtest.fd_close(w)
    loop:watch(r, "r", function(_, events)
      log[#log + 1] = events
      loop:watch(r, "")
    end)
    assert.is_true(loop:wait(-1))
    assert.is_truthy(log[1] == "rw" or log[1] == "r")
    r, w = ahtest.pipe(), w
  end)

  it("follows a watch that changes its function or its events", function()
    ahtest.fd_write(w, "x")
    loop:watch(r, "r", note(log, "first"))
    loop:watch(r, "r", note(log, "second"))
    loop:wait(-1)
    assert.same({ "second" }, log)
    loop:watch(r, "")
    loop:watch(r, "")
    run_due(loop)
    assert.same({ "second" }, log)
    loop:watch(r, "r", note(log, "third"))
    loop:wait(-1)
    loop:watch(r, "")
    assert.same({ "second", "third" }, log)
  end)

  it("does not call for descriptors whose watch a callback of the same wait has ended", function()
    local ends = {}
    for i = 1, 10 do
      ends[i] = { ahtest.pipe() }
      ahtest.fd_write(ends[i][2], "x")
    end
    for i = 1, 10 do
      loop:watch(ends[i][1], "r", function()
        log[#log + 1] = i
        for j = 1, 10 do
          loop:watch(ends[j][1], "")
        end
      end)
    end
    run_due(loop)
    assert.equal(1, #log)
    for i = 1, 10 do
      ahtest.fd_close(ends[i][1])
      ahtest.fd_close(ends[i][2])
    end
  end)

  it("does not mistake a new descriptor with an old number", function()
    local other_r, other_w = ahtest.pipe()
    local fresh_r, fresh_w
    local function swap()
      loop:watch(other_r, "")
      loop:watch(r, "")
      if not fresh_r then
        ahtest.fd_close(other_r)
        fresh_r, fresh_w = ahtest.pipe()
        loop:watch(fresh_r, "r", note(log, "fresh"))
      end
    end
    ahtest.fd_write(w, "x")
    ahtest.fd_write(other_w, "x")
    loop:watch(r, "r", swap)
    loop:watch(other_r, "r", function()
      loop:watch(r, "")
      loop:watch(other_r, "")
      log[#log + 1] = "other"
    end)
    run_due(loop)
    assert.is_truthy(#log == 0 or log[1] == "other")
    if fresh_r then
      assert.same({}, log)
      loop:watch(fresh_r, "")
      ahtest.fd_close(fresh_r)
      ahtest.fd_close(fresh_w)
    end
    ahtest.fd_close(other_w)
  end)

  it("serves more descriptors than one batch holds", function()
    local ends = {}
    for i = 1, 150 do
      ends[i] = { ahtest.pipe() }
      loop:watch(ends[i][1], "r", function(fd)
        log[#log + 1] = ahtest.fd_read(fd)
      end)
      ahtest.fd_write(ends[i][2], "x")
    end
    run_due(loop)
    assert.equal(("x"):rep(150), table.concat(log))
    for i = 1, 150 do
      loop:watch(ends[i][1], "")
      ahtest.fd_close(ends[i][1])
      ahtest.fd_close(ends[i][2])
    end
  end)

  it("may be nested in a callback", function()
    local t = loop:timer(note(log, "inner"))
    loop:watch(r, "r", function(fd)
      ahtest.fd_read(fd)
      t:set(0)
      while t:is_set() do
        loop:wait(-1)
      end
      log[#log + 1] = "outer"
    end)
    ahtest.fd_write(w, "x")
    run_due(loop)
    assert.same({ "inner", "outer" }, log)
    loop:watch(r, "")
  end)

  it("ends with a wake-up given before it, once", function()
    loop:wake()
    loop:wake()
    assert.is_true(loop:wait(-1))
    assert.is_false(loop:wait(0))
  end)

  it("ends with a wake-up from another thread", function()
    loop:wake_later(20)
    local ms, came = elapsed(function() return loop:wait(50000) end)
    assert.is_true(came)
    assert.is_true(ms < 40000)
  end)

  it("ends with a signal, whether its handler wakes the loop or not", function()
    for _, wake in ipairs { false, true } do
      loop:signal_later(20, wake)
      local ms, came = elapsed(function() return loop:wait(50000) end)
      assert.is_true(came)
      assert.is_true(ms < 40000)
      run_due(loop)
    end
  end)

  it("takes any number of wake-ups", function()
    for _ = 1, 20000 do
      loop:wake()
    end
    run_due(loop)
    assert.is_false(loop:wait(0))
  end)

  it("refuses what cannot be watched", function()
    for _, fd in ipairs { -1, 1 << 30 } do
      local ok, err = loop:watch(fd, "r", print)
      assert.is_nil(ok)
      assert.equal("usage", err.status)
    end
  end)
end)

describe("the loop's descriptor", function()
  local loop, r, w
  before_each(function()
    loop = ahtest.loop()
    r, w = ahtest.pipe()
  end)
  after_each(function()
    loop:close()
    ahtest.fd_close(r)
    ahtest.fd_close(w)
  end)

  -- Runs with epoll only: without it there is no such descriptor.
  local function it_fd(name, f)
    it(name, function()
      local fd = loop:fd()
      if fd < 0 then
        pending "this build waits with poll"
      end
      assert.equal(fd, loop:fd())
      f(fd)
    end)
  end

  it_fd("is readable when a watched descriptor is ready", function(fd)
    assert.is_false(ahtest.fd_readable(fd))
    loop:watch(r, "r", function() ahtest.fd_read(r) end)
    ahtest.fd_write(w, "x")
    assert.is_true(ahtest.fd_readable(fd, 1000))
    run_due(loop)
    assert.is_false(ahtest.fd_readable(fd))
    loop:watch(r, "")
  end)

  it_fd("is readable after a wake-up", function(fd)
    loop:wake()
    assert.is_true(ahtest.fd_readable(fd))
    run_due(loop)
    assert.is_false(ahtest.fd_readable(fd))
  end)

  it_fd("is readable when a timer is due, and no longer when it was called", function(fd)
    local n = 0
    local t = loop:timer(function() n = n + 1 end)
    t:set(loop:now() + 20)
    assert.is_false(ahtest.fd_readable(fd))
    for want = 1, 3 do
      while n < want do
        assert.is_true(ahtest.fd_readable(fd, 1000))
        loop:wait(0)
      end
      run_due(loop)
      assert.is_false(ahtest.fd_readable(fd))
      t:set(loop:now() + (want == 2 and 0 or 5))
    end
    t:unset()
  end)

  it_fd("keeps its peace about a timer that was unset", function(fd)
    local t = loop:timer(error)
    t:set(loop:now() + 10)
    t:unset()
    ahtest.fd_readable(fd, 20)
    run_due(loop)
    assert.is_false(ahtest.fd_readable(fd, 20))
  end)

  it("knows timers set before it was asked for", function()
    local t = loop:timer(function() end)
    t:set(loop:now() + 10)
    local fd = loop:fd()
    if fd < 0 then
      pending "this build waits with poll"
    end
    assert.is_true(ahtest.fd_readable(fd, 1000))
    loop:wait(0)
    t:unset()
  end)
end)

describe("a loop without memory", function()
  it("is not made, and nothing is left", function()
    for n = 1, 20 do
      local loop, err = ahtest.loop { fail_at = n }
      if loop then
        assert.equal(0, loop:close())
      else
        assert.equal("internal", err.status)
      end
    end
    assert.is_nil((ahtest.loop { fail_from = 1 }))
  end)

  it("refuses a watch and goes on", function()
    local loop = ahtest.loop { fail_from = 4 }
    local ends, refused = {}, nil
    while not refused and #ends < 300 do -- until there is no memory for a larger descriptor
      local i = #ends + 1
      ends[i] = { ahtest.pipe() }
      local ok, err = loop:watch(ends[i][1], "r", print)
      refused = not ok and err.status
    end
    assert.equal("internal", refused)
    assert.is_false(loop:wait(0))
    assert.equal(0, loop:close())
    for _, pair in ipairs(ends) do
      ahtest.fd_close(pair[1])
      ahtest.fd_close(pair[2])
    end
  end)
end)
