-- The C stack of the library: at most 256 KiB of a host's thread for any input. Each case of
-- spec/stack/deep.lua runs in a thread whose stack is measured, some in a thread with no more
-- stack.
local BUILD = os.getenv "AGENTHOST_BUILD" or "build"
local SCRIPT = "spec/stack/deep.lua"
local LIMIT = 256 * 1024
-- For a script that calls functions within functions through C as deep as its Lua allows.
local LUA_LIMIT = 512 * 1024
local ASAN = os.getenv "AGENTHOST_ASAN" -- its frames are larger

-- Returns the output of the program; nil and the output if it fails.
local function stack(...)
  local words = { BUILD .. "/stack" }
  for _, word in ipairs { ... } do
    words[#words + 1] = "'" .. word .. "'"
  end
  local pipe = assert(io.popen(table.concat(words, " ") .. " 2>&1"))
  local text = pipe:read "a"
  if not pipe:close() then
    return nil, text
  end
  return text
end

local function bytes(...)
  local text, err = stack(...)
  assert.is_truthy(text, err)
  return assert(math.tointeger(tonumber(text:match "(%d+)%s*$")), text)
end

local NAMES = {}
for name in assert(stack(SCRIPT, "?")):gmatch "([%a_]+)\n" do
  NAMES[#NAMES + 1] = name
end

describe("the stack of a host's thread", function()
  it("is measured: what takes more is seen", function()
    local n = bytes("-", tostring(LIMIT + 4096))
    assert.is_true(n > LIMIT, tostring(n))
    assert.is_true(bytes("-", "4096") < 16384)
  end)

  it("is overrun where it is too small for what is done", function()
    assert.is_nil((stack("-", tostring(LIMIT), "128")))
  end)

  assert(#NAMES > 40)
  for _, name in ipairs(NAMES) do
    local limit = name:find "^lua_" and LUA_LIMIT or LIMIT
    it("does for " .. name:gsub("_", " "), function()
      local n = bytes(SCRIPT, name)
      assert.is_true(ASAN ~= nil or n <= limit, ("%d bytes"):format(n))
    end)
  end

  it("need have no more than that and what a thread itself takes", function()
    if ASAN then
      return
    end
    for _, name in ipairs { "any_of", "references", "checks_in_drives", "encode", "walks" } do
      bytes(SCRIPT, name, tostring((LIMIT >> 10) + 32))
    end
  end)
end)
