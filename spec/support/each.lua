-- Runs spec files, each in a process of its own, so that leftovers of one (memory, descriptors,
-- loaded modules) neither slow the next nor hide its faults. Prints a line for each file, with its
-- full output if a case was skipped. The failures and the sums come at the end.
--   lua5.4 spec/support/each.lua JOBS "COMMAND" FILE...
-- JOBS files run at a time, but for those that need the machine, or the tree, for themselves.
local RESULT = "^(%d+) passed, (%d+) failed, (%d+) skipped$"

-- Files that measure, run make in the tree, or look at a screen.
local ALONE = { "^spec/house/", "^spec/screens/",
  "_cost_spec%.lua$", "/cost_spec%.lua$", "_growth_spec%.lua$" }

-- Returns the lines that a file's run has printed, without the line of its result, and its three
-- counts. A run without a result (a crash, an error outside of the cases) counts as failed.
local function read(path)
  local lines, counts, ended = {}, nil, nil
  for line in io.lines(path) do
    local passed, failed, skipped = line:match(RESULT)
    if passed then
      counts = { tonumber(passed), tonumber(failed), tonumber(skipped) }
    elseif line:find "^exit status " then
      ended = line
    elseif not line:find("^[%+%-%*%.]+$") then -- a sign for each case
      lines[#lines + 1] = line
    end
  end
  while lines[#lines] == "" do
    table.remove(lines)
  end
  if not counts then
    lines[#lines + 1] = "ended without a result"
    counts = { 0, 1, 0 }
  elseif ended ~= "exit status 0" and counts[2] == 0 then
    lines[#lines + 1] = "all cases passed, but the process failed"
    counts[2] = 1
  end
  return lines, counts
end

-- Prints the file's line, and the output if a case was skipped; failures are printed at the end.
local function show(file, lines, counts, seconds)
  local failed = counts[2] > 0 and (", %d failed"):format(counts[2]) or ""
  print(("%s  %d passed%s  %d s"):format(file, counts[1], failed, seconds))
  if counts[3] > 0 then
    print(table.concat(lines, "\n"))
  end
  io.flush()
end

local function is_alone(file)
  for _, pattern in ipairs(ALONE) do
    if file:find(pattern) then
      return true
    end
  end
end

-- Returns the files that run beside others, and those that do not.
local function sorted(files)
  local together, alone = {}, {}
  for _, file in ipairs(files) do
    local to = is_alone(file) and alone or together
    to[#to + 1] = file
  end
  return together, alone
end

-- Runs one file: its output goes into a file, and its name and its seconds into the pipe.
local ONE = [[begun=$(date +%%s); %s "$0" > "$1" 2>&1; printf '\nexit status %%d\n' $? >> "$1"
printf '%%s %%d %%s\n' "$1" $(($(date +%%s) - begun)) "$0"]]

-- Calls take(file, path of the output, seconds) for each file as soon as it has run.
local function each(jobs, command, files, take)
  local list, out = os.tmpname(), os.tmpname()
  local to <close> = assert(io.open(list, "w"))
  for i, file in ipairs(files) do
    to:write(("%s %s.%d\n"):format(file, out, i))
  end
  to:close()
  local pipe <close> = assert(io.popen(("xargs -r -P %d -n 2 sh -c '%s' < %s"):format(jobs,
    ONE:format(command):gsub("'", "'\\''"), list)))
  for line in pipe:lines() do
    local path, seconds, file = line:match "^(%S+) (%d+) (%S+)$"
    take(file, path, seconds)
    os.remove(path)
  end
  os.remove(list)
  os.remove(out)
end

local jobs, command, sums, failures = tonumber(arg[1]) or 1, arg[2], { 0, 0, 0 }, {}
local function take(file, path, seconds)
  local lines, counts = read(path)
  for k = 1, 3 do
    sums[k] = sums[k] + counts[k]
  end
  show(file, lines, counts, seconds)
  if counts[2] > 0 then
    table.insert(failures, ("\n%s failed:\n%s"):format(file, table.concat(lines, "\n")))
  end
end

local together, alone = sorted { table.unpack(arg, 3) }
each(1, command, alone, take)
each(jobs, command, together, take)
for _, failure in ipairs(failures) do
  print(failure)
end
print(("%d passed, %d failed, %d skipped"):format(table.unpack(sums)))
os.exit(sums[2] == 0)
