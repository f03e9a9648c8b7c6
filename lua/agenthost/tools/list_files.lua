--- list_files: the entries of a folder, or the files below it that match a glob, with their sizes.
-- Shows at most `max`; the result says what it leaves out.
local ah = ...
local files = ah._module "agenthost.tools.files"

local read = ah._reader {
  what = "ah.builtin: list_files", type = "ah.ListFilesOptions", rows = {
    { name = "max", kinds = "integer", least = 1, default = 200, doc = "entries shown" },
    files.GITIGNORE,
  },
}

local function entry(name, kind, size)
  if kind == "folder" then
    return name .. "/"
  elseif kind == "file" then
    return ("%s  %s"):format(name, files.count(size, "byte"))
  end
  return ("%s  (%s)"):format(name, kind)
end

local function folder(path)
  return path == "" and "the root" or ("the folder '%s'"):format(path)
end

local function rest(found, max)
  local notes = {}
  if found.truncated then
    notes[1] = ("there are more than the %d shown; narrow it with path and glob"):format(max)
  end
  return files.notes(notes, found)
end

local function list_folder(fs, path, max, gitignore)
  local found, err = fs:list(path, { max = max, gitignore = gitignore })
  if not found then
    return nil, err
  elseif #found == 0 then
    return ("%s %s"):format(folder(path), found.ignored and "has nothing to show" or "is empty")
      .. rest(found, max)
  end
  local out = {}
  for i, e in ipairs(found) do
    out[i] = entry(e.name, e.type, e.size)
  end
  return table.concat(out, "\n") .. rest(found, max)
end

local function list_glob(fs, path, glob, max, gitignore)
  local found, err = fs:glob(glob, { path = path, max = max, gitignore = gitignore })
  if not found then
    return nil, err
  elseif #found == 0 then
    local hint = glob:find("/", 1, true) and ""
      or ("; in all folders below it: **/%s"):format(glob)
    return ("no file in %s matches '%s'%s"):format(folder(path), glob, hint) .. rest(found, max)
  end
  local out = {}
  for i, name in ipairs(found) do
    local info = fs:stat(name)
    out[i] = info and entry(name, info.type, info.size) or name
  end
  return table.concat(out, "\n") .. rest(found, max)
end

return function(options)
  local settings = read(options)
  return ah.tool {
    name = "list_files",
    description = "Lists a folder, or with `glob` the files below it that match, such as "
      .. "**/*.lua, with their sizes.",
    params = {
      path = "string?: the folder; the root where absent",
      glob = "string 1..1024?: * and ? within a name, ** for any folders, {a,b} for either",
      ignored = settings.gitignore and files.IGNORED or nil,
    },
    annotations = { read_only = true, destructive = false, idempotent = true, open_world = false },
    handler = function(args, ctx)
      local fs, why = files.filesystem(ctx)
      if not fs then
        return nil, why
      end
      local path, gitignore = args.path or "", settings.gitignore and not args.ignored
      if args.glob then
        return list_glob(fs, path, args.glob, settings.max, gitignore)
      end
      return list_folder(fs, path, settings.max, gitignore)
    end,
  }
end
