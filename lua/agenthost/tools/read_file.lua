--- read_file: lines of a text file, with their numbers: a part, the end, or the lines that match.
-- Lines and bytes are limited; the result says what it leaves out, and how to continue.
local ah = ...
local files = ah._module "agenthost.tools.files"

local read = ah._reader {
  what = "ah.builtin: read_file", type = "ah.ReadFileOptions", rows = {
    { name = "lines", kinds = "integer", least = 1, default = 500,
      doc = "lines of a result, unless the model gives a `limit`" },
    { name = "max_bytes", kinds = "integer", least = 1, default = 48 * 1024, unit = "bytes",
      doc = "size of a result, which ends with a whole line and names the next one" },
  },
}

local MAX_LINES = 2000 -- fewer than a model is shown of one result

local function describe(path, lines)
  local notes = { path .. ": " }
  if #lines == lines.total and not lines.truncated then
    notes[2] = files.count(lines.total, "line")
  else
    notes[2] = ("lines %s to %s of %s%s"):format(files.number(lines[1].line),
      files.number(lines[#lines].line), lines.truncated and "more than " or "",
      files.number(lines.total))
  end
  if lines.crlf then
    notes[#notes + 1] = ", line ends \\r\\n"
  end
  if lines.malformed then
    notes[#notes + 1] = ", bytes that are not UTF-8 shown as \u{fffd}"
  end
  return table.concat(notes)
end

local function show(path, lines)
  local out = { describe(path, lines) }
  for _, line in ipairs(lines) do
    out[#out + 1] = files.numbered(line)
  end
  local last = lines[#lines].line
  if last < lines.total then
    out[#out + 1] = ("[%s of %s; go on with offset = %d]"):format(
      files.number(last), files.count(lines.total, "line"), last + 1)
  end
  return table.concat(out, "\n")
end

-- Returns the reason why a part of a file cannot be shown; nil if it can.
local function nothing_to_show(path, lines, offset)
  if lines.binary then
    return ("'%s' is a binary file of %s; only text can be read"):format(
      path, files.count(lines.size, "byte"))
  elseif lines.total > 0 and #lines == 0 then
    return ("offset %d is behind the end: '%s' is %s long"):format(
      offset, path, files.count(lines.total, "line"))
  end
end

local function read_part(fs, args, settings)
  local offset, limit = args.offset or 1, args.limit or settings.lines
  local lines, err = fs:lines(args.path,
    { first = offset, max = limit, max_bytes = settings.max_bytes, width = files.WIDTH })
  if not lines then
    return nil, err
  end
  local why = nothing_to_show(args.path, lines, offset)
  if why then
    return nil, why
  end
  return lines.total == 0 and ("'%s' is empty"):format(args.path) or show(args.path, lines)
end

-- Reads the last lines; fewer of them if they have too many bytes, so that the end is shown.
local function read_tail(fs, args, settings)
  local n = args.tail
  while true do
    local lines, err = fs:lines(args.path,
      { last = true, max = n, max_bytes = settings.max_bytes, width = files.WIDTH })
    if not lines then
      return nil, err
    end
    local why = nothing_to_show(args.path, lines)
    if why then
      return nil, why
    elseif lines.total == 0 then
      return ("'%s' is empty"):format(args.path)
    elseif lines[#lines].line == lines.total or n == 1 then
      return show(args.path, lines)
    end
    n = n // 2
  end
end

local function search(fs, args, settings)
  local found, err = fs:grep(args.pattern,
    { path = args.path, context = args.context or 2, max = settings.lines })
  if not found then
    local hint = err.reason == "bad_pattern" and "; the tool grep can look for plain text" or ""
    return nil, err.message .. hint
  elseif found.skipped then
    return nil, ("'%s' is a binary file, or too large to be searched; read it by offset and limit")
      :format(args.path)
  elseif #found == 0 then
    return ("no line of '%s' matches '%s'"):format(args.path, args.pattern)
  end
  local out, before = { ("%s: lines that match (:) and those around them (-)"):format(args.path) }
  for _, line in ipairs(found) do
    out[#out + 1] = before and line.line > before + 1 and "  ..." or nil
    out[#out + 1] = files.numbered(line, line.beside and "-" or ":")
    before = line.line
  end
  if found.truncated then
    out[#out + 1] = ("[there are more than the %d lines shown: narrow the pattern]"):format(#found)
  end
  return table.concat(out, "\n")
end

return function(options)
  local settings = read(options)
  return ah.tool {
    name = "read_file",
    description = "Reads a text file: its lines with their numbers, from `offset` on, the last "
      .. "ones (`tail`), or those that match a `pattern`.",
    params = {
      path = "string 1..: of the file, from the root, such as src/main.lua",
      offset = "integer 1..?: number of the first line to read; 1 where absent",
      limit = ("integer 1..%d?: how many lines; %d where absent"):format(
        MAX_LINES, settings.lines),
      tail = ("integer 1..%d?: the last so many lines, in place of offset and limit"):format(
        MAX_LINES),
      pattern = "string 1..1024?: a regular expression: only lines that match it",
      context = "integer 0..20?: with pattern: lines before and after each; 2 where absent",
    },
    annotations = { read_only = true, destructive = false, idempotent = true, open_world = false },
    handler = function(args, ctx)
      local fs, why = files.filesystem(ctx)
      if not fs then
        return nil, why
      elseif args.pattern then
        return search(fs, args, settings)
      elseif args.tail then
        return read_tail(fs, args, settings)
      end
      return read_part(fs, args, settings)
    end,
  }
end
