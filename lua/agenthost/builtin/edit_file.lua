--- edit_file: replaces texts in a file, by the letter, each where it stands exactly once unless
-- all are meant. Several edits are made in their order, all of them or none: where one fails
-- the call does, and its transaction leaves the file as it was.
local ah = ...
local files = ah._module "agenthost.files"

local MAX_EDITS = 100

local function normal(line)
  return (line:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

-- The lines without regard to white space; blank ones at either end are left out if `trim`.
local function normal_lines(text, trim)
  local lines = {}
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = normal(line)
  end
  while trim and lines[1] == "" do
    table.remove(lines, 1)
  end
  while trim and lines[#lines] == "" do
    lines[#lines] = nil
  end
  return lines
end

local function stands_at(lines, at, wanted)
  for i, line in ipairs(wanted) do
    if lines[at + i - 1] ~= line then
      return false
    end
  end
  return true
end

-- Where something like the text stands: how it differs, for a model to try again.
local function nearly(text, old)
  local wanted, lines = normal_lines(old, true), normal_lines(text)
  if #wanted == 0 then
    return nil
  end
  local first
  for at, line in ipairs(lines) do
    if line == wanted[1] then
      first = first or at
      if stands_at(lines, at, wanted) then
        return ("it is in line %d with other white space; read that part again"):format(at)
      end
    end
  end
  return first and ("its first line is in line %d, but what follows differs"):format(first)
end

-- Why the text is not there, as well as can be told.
local function why_absent(fs, path, old, message)
  local text = fs:read(path)
  if old:find "^ *%d+\t" then
    return message .. " (leave out the line numbers that read_file shows)"
  end
  local hint = text and nearly(text, old)
  return hint and ("the text to replace is not in '%s': %s"):format(path, hint) or message
end

-- A file whose lines end with \r\n is shown without them: they are put in here.
local function with_crlf(fs, path, edit)
  if not edit.old:find "\n" or edit.old:find "\r\n" or not fs:lines(path, { max = 1 }).crlf then
    return nil
  end
  return fs:edit(path, edit.old:gsub("\n", "\r\n"), (edit.new:gsub("\r?\n", "\r\n")),
    { all = edit.all })
end

-- How many places; nil and why.
local function replace(fs, path, edit)
  local n, err = fs:edit(path, edit.old, edit.new, { all = edit.all })
  if not n and err.reason == "no_match" and fs:exists(path) then
    n = with_crlf(fs, path, edit)
    return n, not n and why_absent(fs, path, edit.old, err.message) or nil
  elseif not n and err.reason == "several_matches" then
    return nil, err.message .. " (all = true)"
  end
  return n, not n and err.message or nil
end

local function edits_of(args)
  if args.edits then
    if args.old or args.new or #args.edits == 0 then
      return nil, "give either old and new, or edits with at least one of them"
    end
    return args.edits
  elseif not (args.old and args.new) then
    return nil, "give old and new, or a list of edits"
  end
  return { { old = args.old, new = args.new, all = args.all } }
end

local function edit_all(fs, path, edits)
  local places = 0
  for i, edit in ipairs(edits) do
    local n, why = replace(fs, path, edit)
    if not n then
      local which = #edits > 1 and ("edit %d of %d: "):format(i, #edits) or ""
      return nil, which .. why .. (#edits > 1 and "; none of the edits was made" or "")
    end
    places = places + n
  end
  return ("Replaced %s in '%s'."):format(files.count(places, "place"), path)
end

return function(options)
  files.check_options("edit_file", options, {})
  return ah.tool {
    name = "edit_file",
    description = "Replaces a text in a file by another; it must stand there exactly so, and "
      .. "once unless `all`. Several `edits` are made in order, all or none.",
    params = {
      path = "string 1..: of the file, from the root",
      old = "string 1..?: the text to replace, white space included, without line numbers",
      new = "string?: what takes its place",
      all = "boolean?: replace it wherever it stands",
      ["edits?"] = { {
        old = "string 1..", new = "string", all = "boolean?" } },
    },
    handler = function(args, ctx)
      local fs, why = files.filesystem(ctx)
      if not fs then
        return nil, why
      end
      local edits, what = edits_of(args)
      if not edits then
        return nil, what
      elseif #edits > MAX_EDITS then
        return nil, ("%d edits are too many: at most %d in one call"):format(#edits, MAX_EDITS)
      end
      return edit_all(fs, args.path, edits)
    end,
  }
end
