-- The start of the command: it loads what it needs, when it needs it.
local command = require "support.command"
local flags = require "support.flags"

local agenthost, has, shell, temp = command.agenthost, command.has, command.shell, command.temp

after_each(command.tidy)

-- The code of a script that performs a line with the programs' files, as the command does, and
-- prints the programs that were loaded. It has a state of its own: in this one specs have loaded
-- many.
local LOADED = [[
package.path = "./spec/?.lua;" .. package.path
local use = require "support.programs"
local texts, loaded
for i = 1, 9 do
  local name, value = debug.getupvalue(use, i)
  texts, loaded = name == "texts" and value or texts, name == "loaded" and value or loaded
end
%s
local names = {}
for name in pairs(loaded) do
  names[#names + 1] = name
end
table.sort(names)
print(table.concat(names, " "))
]]

local function loaded(code, words)
  local path = temp(LOADED:format(code))
  local r = agenthost(path, table.unpack(words or {}))
  assert.same({ "", 0 }, { r.err, r.code })
  return (r.out:gsub("\n$", ""))
end

-- Returns the programs that are loaded to read a line.
local function to_read(found, ...)
  local said = flags.said()
  local words = { "", found, tostring(#said) }
  table.move(said, 1, #said, #words + 1, words)
  table.move({ ... }, 1, select("#", ...), #words + 1, words)
  return loaded([[use "line".read(...)]], words)
end

-- Asserts that none of these words is a program of the list; a word "x*" also stands for "x.y".
local function none_of(words, list)
  for word in words:gmatch "%S+" do
    local name = word:gsub("%*$", "")
    for one in list:gmatch "%S+" do
      assert.is_false(one == name or word ~= name and one:find(name .. ".", 1, true) == 1,
        word .. " in " .. list)
    end
  end
end

describe("the programs that are loaded", function()
  it("are those of the line's command, and none of other commands", function()
    none_of("prompt* settings* models mock* styled performed", to_read("", "work.lua"))
    has(to_read("", "list", "--here"), " list ")
    none_of("prompt* settings* models mock* styled", to_read("", "list", "--here"))
    has(to_read("", "What is this?"), " prompt ")
    none_of("settings* models mock* styled editor prompt.parts prompt.consent prompt.place",
      to_read("", "What is this?"))
  end)

  it("are those of settings only if there are some", function()
    none_of("settings*", to_read("", "models"))
    has(to_read("found", "models"), " settings settings.file ")
  end)

  it("do not read the line again where a command runs apart, or answers", function()
    local code = [[
      local ran
      loaded.models = { run = function(given, words, out, line)
        ran = given.all and words[1] == "a\n\\\n\xff\0b"
      end }
      local code = use "performed".passed { command = { name = "models" }, at = 2,
        words = { "models", "a\n\\\n\xff\0b" }, flags = { all = true }, settings = "" }
      assert(not code:find "[\n\0]")
      use "performed".apart(code, "1", "")
      assert(ran)]]
    assert.equal("models performed", loaded(code))
  end)
end)

describe("libcurl", function()
  local maps <close> = io.open "/proc/self/maps"
  local it_if = maps and it or pending

  it_if("is opened by the first request", function()
    local r = agenthost("-e", [[
      local function is_open()
        local maps <close> = io.open "/proc/self/maps"
        return maps:read "a":find("libcurl", 1, true) ~= nil
      end
      print(ah.run { model = "demo/echo", "Hello" }, is_open())
      print(ah.http { url = "http://127.0.0.1:1/" }, is_open())]])
    assert.equal("", r.err)
    assert.matches("^Hello\tfalse\nnil\t", r.out)
  end)

  it_if("is named where it is missing", function()
    local folder = command.folder()
    for _, name in ipairs { "libcurl.so.4", "libcurl-gnutls.so.4" } do
      assert(io.open(folder .. "/" .. name, "w")):close()
    end
    local r = shell(([[LD_LIBRARY_PATH=%s OPENAI_API_KEY=x OPENAI_BASE_URL=http://127.0.0.1:1/v1 \
      "$A" --no-store -m openai/gpt-4o "Hello there"]]):format(folder))
    assert.equal(3, r.code)
    has(r.err, "libcurl cannot be opened (Debian: apt-get install libcurl4): ")
    r = shell(("LD_LIBRARY_PATH=%s \"$A\" --version -v"):format(folder))
    has(r.out, "libcurl none\ntls none\n")
  end)
end)
