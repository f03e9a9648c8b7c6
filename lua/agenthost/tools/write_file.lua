--- write_file: creates a file, or replaces one as a whole. An existing file that was neither read
-- nor written in this conversation is not overwritten, as the model may not know its contents.
local ah = ...
local files = ah._module "agenthost.tools.files"

local read = ah._reader {
  what = "ah.builtin: write_file", type = "ah.WriteFileOptions", rows = {
    { name = "overwrite", kinds = "boolean", default = false,
      doc = "true: every call may replace any file" },
  },
}

-- A success of one of these with the same path: the model knows the file.
local KNOWS = { read_file = true, write_file = true, edit_file = true }

local function is_known(ctx, path)
  local plain = files.plain_path(path)
  for _, call in ipairs(ctx.calls) do
    local of = KNOWS[call.name] and call.success and call.arguments and call.arguments.path
    if type(of) == "string" and files.plain_path(of) == plain then
      return true
    end
  end
  return false
end

local function describe(text)
  return ("%s, %s"):format(files.count(files.count_lines(text), "line"),
    files.count(#text, "byte"))
end

local function write(fs, args, may_overwrite)
  local there = fs:exists(args.path) and fs:stat(args.path)
  if there and there.type == "file" and not may_overwrite() then
    return nil, ("'%s' is there already (%s) and was not read in this conversation: read it "
      .. "with read_file and change it with edit_file, or give overwrite = true to replace it")
      :format(args.path, files.count(there.size, "byte"))
  end
  local done, err = fs:write(args.path, args.content)
  if not done then
    return nil, err
  elseif there then
    return ("Replaced '%s': %s; it had %s."):format(args.path, describe(args.content),
      files.count(there.size, "byte"))
  end
  return ("Made '%s': %s."):format(args.path, describe(args.content))
end

return function(options)
  options = read(options)
  return ah.tool {
    name = "write_file",
    description = "Writes a whole file, with the folders that are missing. To change a part of "
      .. "one use edit_file.",
    params = {
      path = "string 1..: of the file, from the root",
      content = "string: the whole text",
      overwrite = "boolean?: replace a file that was not read before",
    },
    annotations = { read_only = false, destructive = true, idempotent = true, open_world = false },
    handler = function(args, ctx)
      local fs, why = files.filesystem(ctx)
      if not fs then
        return nil, why
      end
      return write(fs, args, function()
        return options.overwrite or args.overwrite or is_known(ctx, args.path)
      end)
    end,
  }
end
