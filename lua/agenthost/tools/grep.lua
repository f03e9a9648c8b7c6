--- grep: the lines of files that match a regular expression, with lines around them, or their
-- number in each file. The number of lines is limited; the result says what it leaves out.
local ah = ...
local files = ah._module "agenthost.tools.files"

local read = ah._reader {
  what = "ah.builtin: grep", type = "ah.GrepToolOptions", rows = {
    { name = "max", kinds = "integer", least = 1, default = 100,
      doc = "lines shown, including their context" },
    files.GITIGNORE,
  },
}

local function where(args)
  return (args.path and (" in '%s'"):format(args.path) or "")
    .. (args.glob and (" in files named '%s'"):format(args.glob) or "")
end

local function rest(found, max)
  local notes = {}
  if found.truncated then
    notes[1] = ("there is more than the %d lines shown: narrow it with path or glob, or count")
      :format(max)
  end
  if found.skipped then
    notes[#notes + 1] = ("%s left out: binary or too large"):format(
      files.count(found.skipped, "file"))
  end
  return files.notes(notes, found)
end

local function show_counts(found)
  local out = {}
  for i, f in ipairs(found) do
    out[i] = ("%s: %s"):format(f.path, files.count(f.count, "line"))
  end
  return table.concat(out, "\n")
end

local function show_lines(found)
  local out, path, before = {}, nil, nil
  for _, line in ipairs(found) do
    if line.path ~= path then
      path = line.path
      out[#out + 1] = path
    elseif before and line.line > before + 1 and (line.beside or found.around) then
      out[#out + 1] = "  ..."
    end
    out[#out + 1] = files.numbered(line, line.beside and "-" or ":")
    before = line.line
  end
  return table.concat(out, "\n")
end

local function search(fs, args, settings)
  local max = settings.max
  local found, err = fs:grep(args.pattern, { path = args.path, glob = args.glob, max = max,
    plain = args.plain, ignore_case = args.ignore_case, context = args.context,
    count = args.count, gitignore = settings.gitignore and not args.ignored })
  if not found then
    local hint = err.reason == "bad_pattern" and "; plain = true looks for the text itself" or ""
    return nil, err.message .. hint
  elseif #found == 0 then
    return ("no line matches '%s'%s%s"):format(args.pattern, where(args), rest(found, max))
  end
  found.around = (args.context or 0) > 0
  return (args.count and show_counts or show_lines)(found) .. rest(found, max)
end

return function(options)
  local settings = read(options)
  return ah.tool {
    name = "grep",
    description = "Searches the contents of files: lines that match a regular expression, with "
      .. "`context`, or how many in each file (`count`).",
    params = {
      pattern = "string 1..1024: a regular expression, matched line by line",
      path = "string?: a file or folder; everything where absent",
      glob = "string 1..1024?: only files so named, such as *.lua or src/**/*.c",
      context = "integer 0..20?: lines shown before and after each",
      ignore_case = "boolean?",
      plain = "boolean?: the pattern is the text itself",
      count = "boolean?: only how many lines match, by file",
      ignored = settings.gitignore and files.IGNORED or nil,
    },
    annotations = { read_only = true, destructive = false, idempotent = true, open_world = false },
    handler = function(args, ctx)
      local fs, why = files.filesystem(ctx)
      if not fs then
        return nil, why
      end
      return search(fs, args, settings)
    end,
  }
end
