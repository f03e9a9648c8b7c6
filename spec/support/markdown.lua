--- Runs the code blocks of a Markdown page and compares their output with the page.
--
-- A comment before a block gives its kind; a ```text block right behind it is its output.
--   <!-- script: NAME -->   a file, run by the command; the output is its stdout
--   <!-- file: NAME -->     a file that other blocks use
--   <!-- script: NAME, from: WORDS -->   the same file as last shown; the block replaces everything
--                           from the line that begins with these words; `file:` likewise
--   <!-- shell -->          a command line: stdout; `shell: both` stdout and stderr
--   <!-- json: NAME -->, <!-- command: NAME -->   read by the spec; not run here
-- Blocks run in a folder of their own that looks like the source folder after `make`. If a page
-- shows a file several times, as it grows, each block sees its last version above the block.
local markdown = {}

local function absolute(path)
  local pipe <close> = assert(io.popen(("cd '%s' && pwd"):format(path)))
  return pipe:read("l")
end

local BUILD = absolute(os.getenv("AGENTHOST_BUILD") or "./build")
local ROOT = absolute(".")

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read("a")
end

markdown.read = read

--- Returns the reference of the Lua API as one text: lua.md and the pages that it links first.
function markdown.api()
  local texts = {}
  for name in ("lua run agent tool changing_tools schema data http policies budgets waiting "
    .. "errors"):gmatch "%S+" do
    local text = read("docs/reference/" .. name .. ".md")
    texts[#texts + 1] = text:gsub("^# ([^\n]+)", "# %1\n\n## %1")
  end
  return table.concat(texts, "\n")
end

--- Returns the paths of the pages that match these patterns of the shell.
function markdown.pages(patterns)
  local list, found <close> = {}, assert(io.popen("ls " .. patterns))
  for path in found:lines() do
    list[#list + 1] = path
  end
  return list
end

-- Returns the block that begins at line n: its language, its text, and the line behind it.
local function read_block(lines, n)
  local lang, text = lines[n]:match("^```(%w*)$"), {}
  n = n + 1
  while lines[n] and lines[n] ~= "```" do
    text[#text + 1] = lines[n]
    n = n + 1
  end
  return lang, table.concat(text, "\n") .. "\n", n + 1
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do
    lines[#lines + 1] = line
  end
  return lines
end

-- Returns the number of the next line that is not blank.
local function next_text(lines, n)
  while lines[n] == "" do
    n = n + 1
  end
  return n
end

-- Makes a block that continues a file the whole file.
local function complete(block, files)
  local name, from = block.name:match("^(.-), from: (.+)$")
  if name then
    local at = assert(("\n" .. files[name]):find("\n" .. from, 1, true), block.at)
    block.name, block.text = name, files[name]:sub(1, at - 1) .. block.text
  end
  files[block.name] = block.text
end

--- Returns the marked blocks: { kind, name, lang, text, output, at = "README.md:12" }.
function markdown.blocks(path)
  local lines, blocks, files, n = lines_of(read(path)), {}, {}, 1
  while lines[n] do
    local kind, name = lines[n]:match("^<!%-%- (%a+):? ?(.-) %-%->$")
    local opens = kind and lines[n + 1] and lines[n + 1]:match("^```%w+$")
    if opens then
      local block = { kind = kind, name = name, at = path .. ":" .. n + 1 }
      block.lang, block.text, n = read_block(lines, n + 1)
      local behind = next_text(lines, n)
      if lines[behind] == "```text" then
        block.output, n = select(2, read_block(lines, behind))
      end
      complete(block, files)
      blocks[#blocks + 1] = block
    else
      n = n + 1
    end
  end
  return blocks
end

--- Returns a page without its blocks of code.
function markdown.prose(path)
  local lines, prose, n = lines_of(read(path)), {}, 1
  while lines[n] do
    if lines[n]:match("^```%w*$") then
      n = select(3, read_block(lines, n))
    else
      prose[#prose + 1], n = lines[n], n + 1
    end
  end
  return table.concat(prose, "\n") .. "\n"
end

--- Returns the anchors of a page's headings, to which links can refer, as a set.
function markdown.anchors(path)
  local set = {}
  for heading in ("\n" .. markdown.prose(path)):gmatch("\n#+ ([^\n]*)") do
    set[heading:lower():gsub("[^%w_%- ]", ""):gsub(" ", "-")] = true
  end
  return set
end

--- Returns the tables of a page: lists of rows, which are lists of cells; `head` is the first row.
function markdown.tables(text)
  local tables, rows = {}, nil
  for _, line in ipairs(lines_of(text)) do
    if not line:match("^|") then
      rows = nil
    elseif not line:match("^|[-|]+$") then
      local cells = {}
      for cell in line:gsub("\\|", "\0"):gmatch("|([^|]+)%f[|]") do
        cells[#cells + 1] = cell:match("^%s*(.-)%s*$"):gsub("\0", "|")
      end
      if not rows then
        rows = { head = cells }
        tables[#tables + 1] = rows
      else
        rows[#rows + 1] = cells
      end
    end
  end
  return tables
end

--- Returns the part of a page under a heading, up to the next one of the same or a higher level.
function markdown.section(text, heading)
  local level = #heading:match("^#+")
  local _, from = ("\n" .. text):find("\n" .. heading .. "\n", 1, true)
  assert(from, "no heading " .. heading)
  local rest, upto = text:sub(from), nil
  for i = 1, level do
    local at = rest:find("\n" .. ("#"):rep(i) .. " ", 1, true)
    upto = at and math.min(at, upto or at) or upto
  end
  return rest:sub(1, upto and upto or -1)
end

--- Returns the words in back quotes of a cell.
function markdown.names(cell)
  local names = {}
  for name in cell:gmatch("`([^`]+)`") do
    names[#names + 1] = name
  end
  return names
end

--- Returns the names in the first column of the n-th table (default 1) in a page's section, as a
-- set.
function markdown.names_in(page, heading, n)
  local names = {}
  for _, row in ipairs(markdown.tables(markdown.section(page, heading))[n or 1]) do
    for _, name in ipairs(markdown.names(row[1])) do
      names[name] = true
    end
  end
  return names
end

-- -- running ----------------------------------------------------------------------------

local Folder = {}
Folder.__index = Folder

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
end

-- Objects built for the sanitizers need them at linking; the compiler itself does not.
local CC = [[#!/bin/sh
unset LD_PRELOAD
exec /usr/bin/cc -fsanitize=address,undefined "$@"
]]

--- Makes a folder like the source folder, with the files of these blocks.
function markdown.folder(blocks)
  local path = os.tmpname()
  os.remove(path)
  local self = setmetatable({ path = path }, Folder)
  assert(os.execute(([[mkdir -p %s/bin && cd %s && ln -s %s build && ln -s build/agenthost . &&
    for f in include examples docs; do ln -s %s/$f .; done]]):format(path, path, quote(BUILD),
    quote(ROOT))))
  if os.getenv("AGENTHOST_ASAN") then
    write(path .. "/bin/cc", CC)
    assert(os.execute(("chmod +x %s/bin/cc"):format(path)))
  end
  self:write_files(blocks, #blocks)
  return self
end

-- True if the folder of a file is there; a block may make it.
local function has_folder(path)
  local folder <close> = io.open(path:match "^(.*)/")
  return folder ~= nil
end

--- Writes the files of the first n blocks, each in its last version.
function Folder:write_files(blocks, n)
  for i = 1, n do
    if (blocks[i].kind == "script" or blocks[i].kind == "file")
      and has_folder(self.path .. "/" .. blocks[i].name) then
      write(self.path .. "/" .. blocks[i].name, blocks[i].text)
    end
  end
end

local CLEAN = "unset AGENTHOST_MODEL OPENAI_API_KEY OPENAI_BASE_URL LUA_CPATH LUA_PATH LUA_INIT"
  .. "; export XDG_CONFIG_HOME=$PWD/.config XDG_STATE_HOME=$PWD/.state" -- not the user's

--- Runs a shell command in the folder; returns { code, out, err }.
function Folder:run(command)
  local out, err = self.path .. "/.out", self.path .. "/.err"
  write(self.path .. "/.command", command)
  local _, how, code = os.execute(("cd %s && %s && PATH=$PWD/bin:$PATH sh -e .command"
    .. " </dev/null >.out 2>.err"):format(self.path, CLEAN))
  return { code = how == "exit" and code or 128 + code, out = read(out), err = read(err) }
end

--- Runs a block; raises unless it succeeds and prints the page's output.
function Folder:check(block)
  local command = block.text
  if block.kind == "script" then
    command = "./agenthost " .. block.name
  elseif block.name == "both" then
    command = "exec 2>&1\n" .. command
  end
  local r = self:run(command)
  local said = ("%s\n%s%s"):format(block.at, r.err, r.out)
  assert(r.code == 0, said)
  assert(not block.output or r.out == block.output, said)
end

function Folder:close()
  os.execute("rm -rf " .. quote(self.path))
end

--- Declares one `it` for each block of the page that runs.
function markdown.describe(path)
  local busted = require "busted"
  busted.describe(path, function()
    local blocks, folder = markdown.blocks(path), nil
    busted.setup(function() folder = markdown.folder(blocks) end)
    busted.teardown(function() folder:close() end)
    for i, block in ipairs(blocks) do
      if block.kind == "script" or block.kind == "shell" then
        local line = block.at:match("%d+$")
        busted.it(("line %s does what it says"):format(line), function()
          folder:write_files(blocks, i)
          folder:check(block)
        end)
      end
    end
  end)
end

return markdown
