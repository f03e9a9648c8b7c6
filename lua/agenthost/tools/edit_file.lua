--- edit_file: replaces exact texts in a file. Each must occur exactly once, unless all places are
-- meant. Several edits are made in their order, all or none: if one fails the call fails, and its
-- transaction restores the file.
local ah = ...
local files = ah._module "agenthost.tools.files"

local read = ah._reader { what = "ah.builtin: edit_file", type = "ah.EditFileOptions", rows = {} }

local MAX_EDITS = 100
-- Limits of the search for a hint: bytes, lines, and pairs of lines.
local HINT_BYTES = 256 * 1024
local HINT_LINES = 10000
local HINT_PAIRS = 50000

local function normal(line)
  return (line:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

-- Returns the lines, with one blank for each run of white space and none at either end.
local function normal_lines(text)
  local lines = {}
  for line in (text:sub(1, HINT_BYTES) .. "\n"):gmatch "([^\n]*)\n" do
    if #lines == HINT_LINES then
      break
    end
    lines[#lines + 1] = normal(line)
  end
  return lines
end

-- Returns the lines without blank ones at either end.
local function trimmed(lines)
  local first, last = 1, #lines
  while lines[first] == "" do
    first = first + 1
  end
  while last > first and lines[last] == "" do
    last = last - 1
  end
  return table.move(lines, first, last, 1, {})
end

-- Returns the number of wanted lines, from the first one, that match the lines from `at` on.
local function standing(lines, at, wanted)
  local n = 0
  while n < #wanted and lines[at + n] == wanted[n + 1] do
    n = n + 1
  end
  return n
end

-- Returns where text that nearly matches is, and how it differs, so that a model can try again; nil
-- if there is none.
local function nearly(text, old)
  local wanted, lines = trimmed(normal_lines(old)), normal_lines(text)
  local whole, pairs_left = #old <= HINT_BYTES and #wanted < HINT_LINES, HINT_PAIRS
  local first
  for at = 1, #wanted > 0 and #lines or 0 do
    local n = standing(lines, at, wanted)
    pairs_left = pairs_left - n - 1
    if n == #wanted and whole then
      return ("it is in line %d with other white space; read that part again"):format(at)
    elseif pairs_left < 0 then
      break
    end
    first = first or n > 0 and at
  end
  return first and ("its first line is in line %d, but what follows differs"):format(first)
end

-- Returns the error message for a text that was not found, with a hint if there is one.
local function why_absent(fs, path, old, message)
  local text = fs:read(path)
  if old:find "^ *%d+\t" then
    return message .. " (leave out the line numbers that read_file shows)"
  end
  local hint = text and nearly(text, old)
  return hint and ("the text to replace is not in '%s': %s"):format(path, hint) or message
end

-- Repeats an edit with \r\n as line ends, for files in which read_file shows them as \n. Returns
-- nil if the file has no \r\n or the edit does not need it.
local function with_crlf(fs, path, edit)
  if not edit.old:find "\n" or edit.old:find "\r\n" or not fs:lines(path, { max = 1 }).crlf then
    return nil
  end
  return fs:edit(path, edit.old:gsub("\n", "\r\n"), (edit.new:gsub("\r?\n", "\r\n")),
    { all = edit.all })
end

-- Returns the number of places that were replaced; nil and the reason if it fails.
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
  read(options)
  return ah.tool {
    name = "edit_file",
    description = "Replaces a text in a file by another; it must match exactly, and occur once "
      .. "unless `all`. Several `edits` are made in order, all or none.",
    params = {
      path = "string 1..: of the file, from the root",
      old = "string 1..?: the text to replace, white space included, without line numbers",
      new = "string?: what takes its place",
      all = "boolean?: replace it wherever it stands",
      ["edits?"] = { {
        old = "string 1..", new = "string", all = "boolean?" } },
    },
    annotations = { read_only = false, destructive = true, idempotent = false, open_world = false },
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
