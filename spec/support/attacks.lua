-- Handlers with mistakes, and the results that the model must get. Each is called by a run that
-- continues: the next call of the same conversation succeeds.
--
--   handler   function(args, ctx)
--   says      a pattern of the result; success: the call succeeds
--   more      fields of the tool
local ah = require "agenthost"

local MIB = 1 << 20
local SMALL = { memory = 8 * MIB }
local SHORT = { timeout = 0.03 }
local MEMORY = "its code would have taken %d+ bytes of memory; the limit is 8388608"
local TIME = "did not finish within 0%.03 seconds, the timeout of the tool, and was stopped%.$"
local EXIT = "os%.exit would end the whole program and is refused in a tool's handler"

local function with(metamethod, f)
  return setmetatable({}, { [metamethod] = f })
end

local function forever()
  while true do end
end

local function recurse()
  return 1 + recurse()
end

local function last_content(request)
  return request.entries[#request.entries].content
end

-- Makes a tool that starts a run which calls the tool again, and returns the run's text.
local function self_calling()
  local tool
  tool = ah.tool { name = "self", description = "Calls itself.", handler = function()
    local turns = { { calls = { { name = "self" } } }, last_content }
    return assert(ah.run { model = ah.scripted(turns), tools = { tool }, "go" }).text
  end }
  return tool
end

local attacks = {}

local function attack(name, says, handler, more)
  attacks[#attacks + 1] = { name = name, says = says, handler = handler, more = more }
end

attack("raises a text", "^Tool 't' execution failed: boom$", function() error "boom" end)
attack("raises nil", "a nil was raised as error", function() error() end)
attack("raises a number", "a number was raised", function() error(7) end)
attack("raises a table", "error object without a message", function() error { 1 } end)
attack("raises what cannot be printed", "error object without a message", function()
  error(with("__tostring", function() error "no" end))
end)
attack("raises what prints for ever", "error object without a message", function()
  error(with("__tostring", forever))
end, SHORT)
attack("raises 10 MB", "^Tool 't' execution failed: x+ %[%.%.%. 1048%d+ bytes left out%]$",
  function()
  error(("x"):rep(10 * MIB), 0)
end)
attack("raises bytes", "execution failed: %?+$", function() error("\xff\xfe", 0) end)
attack("raises through coroutines", "execution failed: boom$", function()
  local function f(n)
    return n == 0 and error "boom" or coroutine.wrap(f)(n - 1)
  end
  f(20)
end)
attack("returns a function", "a function cannot be JSON", function() return print end)
attack("returns a thread", "a thread cannot be JSON", function() return coroutine.create(print) end)
attack("returns a file", "a userdata cannot be JSON", function() return io.stdout end)
attack("returns NaN", "NaN cannot be JSON", function() return 0 / 0 end)
attack("returns a cycle", "a table that contains itself", function()
  local t = {}
  t.t = t
  return t
end)
attack("returns a tower", "deeper than 512 levels", function()
  local t = {}
  for _ = 1, 1e5 do t = { t } end
  return t
end)
attack("returns bytes", "a string that is not UTF%-8", function() return "\xff" end)
attack("returns 10 MB", "^x+\n%[%.%.%. %d+ of 10485760 bytes left out; the limit is 65536 "
  .. "%(max_result of the tool%) %.%.%.%]\nx+$", function() return ("x"):rep(10 * MIB) end)
attack("returns many values", "^1$", function() return 1, table.unpack({}, 1, 1e5) end)
attack("returns a message that cannot be printed", "execution failed: no$", function()
  return nil, with("__tostring", function() error("no", 0) end)
end)
attack("returns a message that prints for ever", TIME, function()
  return nil, with("__tostring", forever)
end, SHORT)
attack("returns a message of bytes", "its message is not UTF%-8", function()
  return nil, "\xff"
end)
attack("loops", TIME, forever, SHORT)
attack("loops under pcall", TIME, function()
  while true do pcall(forever) end
end, SHORT)
attack("loops in a coroutine under pcall", TIME, function()
  while true do pcall(coroutine.wrap(forever)) end
end, SHORT)
attack("loops in a callback of sort", TIME, function()
  table.sort({ 1, 2 }, forever)
end, SHORT)
attack("loops in a callback of gsub", TIME, function()
  return (("x"):gsub("x", forever))
end, SHORT)
attack("loops in a metamethod", TIME, function()
  return with("__index", forever).x
end, SHORT)
attack("loops while closing", TIME, function()
  local _ <close> = with("__close", forever)
  ah.sleep(5)
end, SHORT)
attacks[#attacks].slow = true
attack("waits for ever", TIME, function() while true do ah.sleep(0.001) end end, SHORT)
attack("yields for ever", TIME, function() while true do coroutine.yield() end end, SHORT)
attack("works too long", "its code ran for more than 0%.03 seconds and was stopped; "
  .. "that is the limit of a tool without a timeout, and timeout =", forever, { work = 0.03 })
attack("works too long in a callback", "ran for more than 0%.03 seconds", function()
  table.sort({ 1, 2 }, function() while true do pcall(forever) end end)
end, { work = 0.03 })
attack("recurses", "stack overflow", recurse)
attack("recurses under pcall", "true", function()
  local function f() return pcall(f) end
  return tostring(f())
end)
attack("recurses in C", "C stack overflow", function()
  local function f() table.sort({ 1, 2 }, f) end
  f()
end)
attack("recurses in metamethods", "C stack overflow", function()
  return with("__index", function(t, k) return t[k .. "x"] end).x
end)
attack("recurses in __tostring", "C stack overflow", function()
  return tostring(with("__tostring", tostring))
end)
attack("recurses in coroutines", "C stack overflow", function()
  local function f() return coroutine.wrap(f)() end
  return f()
end)
attack("repeats a text", MEMORY, function() return #("x"):rep(1e9) end, SMALL)
attack("doubles a text", MEMORY, function()
  local s = "x"
  while true do s = s .. s end
end, SMALL)
attack("doubles a text by gsub", MEMORY, function()
  local s = ("x"):rep(1000)
  while true do s = s:gsub("^.*$", "%0%0") end
end, SMALL)
attack("joins too much", MEMORY, function()
  local t = {}
  for i = 1, 1e4 do t[i] = ("x"):rep(1e4) end
  return table.concat(t)
end, SMALL)
attack("fills a list", MEMORY, function()
  local t = {}
  while true do table.insert(t, 1) end
end, SMALL)
attack("nests tables", MEMORY, function()
  local t = {}
  while true do t = { t } end
end, SMALL)
attack("nests tables in a coroutine", MEMORY, function()
  coroutine.wrap(function()
    local t = {}
    while true do t = { t } end
  end)()
end, SMALL)
attack("compiles too much", "execution failed: not enough memory$", function()
  return assert(load("return '" .. ("x"):rep(3 * MIB) .. "'"))
end, SMALL)
attack("goes on after it was out of memory", "^survived$", function()
  local t = {}
  local ok = pcall(function()
    while true do t[#t + 1] = ("x"):rep(1000) .. #t end
  end)
  t = nil
  return ok and "not stopped" or ("x"):rep(MIB):sub(1, 0) .. "survived"
end, SMALL)
attack("eats memory under pcall for ever", TIME, function()
  local t = {}
  while true do pcall(function() t[#t + 1] = ("x"):rep(1e5) .. #t end) end
end, { memory = 8 * MIB, timeout = 0.03 })
attack("needs memory to close", "^Tool 't' execution failed: " .. MEMORY, function()
  local t = {}
  local _ <close> = with("__close", function() return #("y"):rep(1e5) end)
  while true do t = { t } end
end, SMALL)
attack("makes garbage and no more", "^made 64 MB$", function()
  for i = 1, 64 do
    local _ = ("0123456789abcdef"):rep(MIB // 16) .. i
  end
  return "made 64 MB"
end, SMALL)
attack("exits", EXIT, function() os.exit(3) end)
attack("exits and closes the state", EXIT, function() os.exit(true, true) end)
attack("exits in a coroutine", EXIT, function()
  coroutine.wrap(function() os.exit(3) end)()
end)
attack("exits under pcall", "^still here$", function()
  return pcall(os.exit, 3) and "exited" or "still here"
end)
attack("exits after waiting", EXIT, function()
  ah.sleep(0.001)
  os.exit(3)
end)
attack("exits while it closes", "^done$", function()
  local _ <close> = with("__close", function() pcall(os.exit, 3) end)
  return "done"
end)
attack("runs itself for ever", "runs inside runs are more than 8 deep", function()
  local turns = { { calls = { { name = "self" } } }, last_content }
  return assert(ah.run { model = ah.scripted(turns), tools = { self_calling() }, "go" }).text
end)
attack("runs itself for ever by driving", "runs inside runs are more than 8 deep", function()
  local function deeper()
    local reply, err = coroutine.wrap(function()
      return ah.run { model = ah.scripted(deeper), retries = 0, log = function() end, "go" }
    end)()
    return reply and reply.text or err.message
  end
  return deeper()
end)
attack("takes debug.sethook away", "its code would have taken", function()
  debug.sethook()
  local t = {}
  while true do t = { t } end
end, SMALL)

-- -- running them ----------------------------------------------------------------------

local function fine()
  return "fine"
end

--- Runs one attack and returns the result that the model got; raises unless the run and its next
-- call succeed. `work_limit` is ahtest's.
function attacks.carry_out(a, work_limit)
  local def = { name = "t", description = "Attacks.", handler = a.handler }
  local before
  for k, v in pairs(a.more or {}) do
    if k == "work" then
      before = work_limit(v)
    else
      def[k] = v
    end
  end
  local next_tool = ah.tool { name = "fine", description = "Is fine.", handler = fine }
  local reply, err = ah.run { log = function() end, tools = { ah.tool(def), next_tool },
    model = ah.scripted { { calls = { { name = "t" } } }, { calls = { { name = "fine" } } },
      { expect = { result = "fine" }, text = "done" } }, "go" }
  if before then
    work_limit(before)
  end
  assert(reply, err)
  return reply.messages[3].content
end

--- Runs all attacks that are not `slow`; raises at the first failure. Returns the number of
-- attacks.
function attacks.carry_out_all(work_limit)
  for _, a in ipairs(attacks) do
    local said = a.slow or attacks.carry_out(a, work_limit)
    if not a.slow and not said:find(a.says) then
      error(("a handler that %s: the model was told\n%s"):format(a.name, said:sub(1, 500)), 0)
    end
  end
  return #attacks
end

return attacks
