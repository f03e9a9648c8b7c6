-- The form of comments and pages (support/sentences.lua), which `make lint` checks: each fault is
-- found at its line; texts that only resemble a fault are accepted.
local CHECKER = "lua5.4 spec/support/sentences.lua "

-- Returns the faults that the checker reports for a file with this text, and its exit code.
local function check(extension, text)
  local path = os.tmpname()
  os.rename(path, path .. extension)
  path = path .. extension
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local pipe = assert(io.popen(CHECKER .. path .. " 2>&1"))
  local out = pipe:read "a"
  local _, _, code = pipe:close()
  os.remove(path)
  return out:gsub("[^\n]*" .. extension:gsub("%p", "%%%0") .. ":", ""), code
end

describe("the form of comments and pages", function()
  it("has no opening without a subject, in C and in Lua", function()
    local out, code = check(".c", "int a; /* What it is. */\n/* Whether it is. */\n/* Is it? */\n")
    assert.equal("1: a comment begins with 'What'\n2: a comment begins with 'Whether'\n"
      .. "3: a comment begins with 'Is'\n3: a comment asks a question\n", out)
    assert.equal(1, code)
    assert.equal("1: a comment begins with 'How'\n", (check(".lua", "-- How it is\nlocal a = 1\n")))
  end)

  it("has lines of at most 100 columns, counted by characters", function()
    local long = ("é"):rep(100)
    assert.equal("2: 101 columns\n", (check(".c", long .. "\n" .. long .. "x\n")))
    assert.equal("3: 103 columns\n", (check(".md", "| " .. long .. " |\n\n" .. long .. " xy\n")))
  end)

  it("has none of the words that hide their subject, and no long cells", function()
    assert.equal("1: the word 'who'\n2: the word 'told'\n",
      (check(".c", "/* For a caller who waits. */\nint a; /* set when told */\n")))
    assert.equal("1: the word 'nobody'\n", (check(".md", "It is for nobody, or `nobody`.\n")))
    assert.same({ "", 0 }, { check(".md", "The person who asks is told `at hand`.\n") })
    local cell = ("x"):rep(200)
    assert.same({ "", 0 }, { check(".md", "| a | " .. cell .. " |\n") })
    assert.equal("1: a cell of 201 characters: at most 200\n",
      (check(".md", "| a | " .. cell .. "y |\n")))
  end)

  it("leaves code, strings, annotations and what goes on alone", function()
    local out, code = check(".lua", '---@field a? string\nlocal s = "What?" -- a word\n'
      .. "-- It shows the caller\n-- What is there.\n")
    assert.same({ "", 0 }, { out, code })
    assert.same({ "", 0 }, { check(".md", "```text\n" .. ("x "):rep(80) .. "\n```\n") })
  end)
end)
