-- The checking build (make check-asan) finds the faults that are planted for it
-- (support/ahtest_plant.c), each in a program of its own. Other builds do not find them.
local ahtest = require "ahtest"

local function plant(name)
  local build = os.getenv "AGENTHOST_BUILD" or "./build"
  local code = ('package.cpath = "%s/?.so" require("ahtest").plant("%s") print "unseen"'):format(
    build, name)
  local program = assert(io.popen(("lua5.4 -e '%s' 2>&1"):format(code)))
  local said = program:read "a"
  program:close()
  return said
end

describe("the checking build", function()
  local finds = {
    drop = "a buffer of at most 8 bytes was full, and is used unasked",
    read = "a buffer of at most 8 bytes was full, and is used unasked",
    beyond = "heap-buffer-overflow",
  }
  for name, words in pairs(finds) do
    it("finds what is planted: " .. name, function()
      local said = plant(name)
      if ahtest.checking then
        assert.is_truthy(said:find(words, 1, true), said:sub(1, 500))
        assert.is_nil(said:find("unseen", 1, true))
      else
        assert.equal("unseen\n", said)
      end
    end)
  end
end)
