-- Lent bytes (src/base/lent.h): a build that poisons them finds code that uses them after a call
-- out. `make check-asan` is such a build; it finds each fault of lent_faults.c. No build reports
-- the correct variant of any of them.
local command = require "support.command"

local folder = command.BINARY:match("^(.*)/")
local program = command.quote(folder .. "/lent-faults")

local names, poisons = {}, false
for line in command.shell(program).out:gmatch("[^\n]+") do
  if line == "lent" then
    poisons = true
  else
    names[#names + 1] = line
  end
end

-- Compiles `text` and lent.c with ASan, so that plain builds are tested, too. Returns the path of
-- the binary, or false (no compiler with ASan) and the compiler's errors.
local function compile(text, flags)
  local source, binary = command.temp(text), command.temp()
  local r = command.shell(("cc -x c -std=c11 -D_POSIX_C_SOURCE=200809L -g -fsanitize=address %s "
    .. "-Isrc -o %s %s src/base/lent.c"):format(flags, binary, source))
  return r.code == 0 and binary, r.err
end

local SMALL = [[
#include <stdio.h>
#include "base/lent.h"
int main(int argc, char **argv)
{
    char text[] = "some bytes", own[sizeof text];
    ah_slice lent = ah_lend((ah_slice){text, sizeof text});

    (void)argv;
    memcpy(own, lent.p, lent.n);
    ah_calling_out();
    printf("%s\n", argc > 1 ? own : lent.p);
    return 0;
}
]]

describe("what is lent", function()
  after_each(command.tidy)

  it("is nothing but what it is in a build without the checker", function()
    local binary, err = compile(SMALL, "")
    if not binary then
      pending("no compiler with AddressSanitizer: " .. err)
    end
    assert.equal("some bytes\n", command.shell("LD_PRELOAD= " .. binary).out)
  end)

  it("is found by the checker where used behind a call out, not where it is copied", function()
    local binary, err = compile(SMALL, "-DAH_LENT")
    if not binary then
      pending("no compiler with AddressSanitizer: " .. err)
    end
    local bad = command.shell("LD_PRELOAD= ASAN_OPTIONS= " .. binary)
    assert.is_true(bad.code ~= 0)
    assert.matches("heap%-use%-after%-free", bad.err)
    local good = command.shell("LD_PRELOAD= ASAN_OPTIONS= " .. binary .. " copied")
    assert.same({ 0, "some bytes\n" }, { good.code, good.out })
  end)

  it("is used as it should be by all that is planted to do so", function()
    assert.is_true(#names >= 10)
    for _, name in ipairs(names) do
      local r = command.shell(("%s %s kept"):format(program, command.quote(name)))
      assert.same({ name, 0, "done\n" }, { name, r.code, r.out }, r.err)
    end
  end)

  if poisons then
    for _, name in ipairs(names) do
      it("is found: " .. name, function()
        local r = command.shell(("%s %s"):format(program, command.quote(name)))
        assert.is_true(r.code ~= 0, r.out)
        assert.is_true(r.err:find("heap-use-after-free", 1, true) ~= nil
          or r.err:find("pinned bytes were changed", 1, true) ~= nil, r.err)
      end)
    end
  end
end)
