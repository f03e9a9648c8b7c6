-- Runs spec files, each in a process of its own, so that leftovers of one (memory, descriptors,
-- loaded modules) neither slow the next nor hide its faults. Prints a line for each file, with its
-- full output if a case was skipped. The failures and the sums come at the end.
--   lua5.4 spec/support/each.lua "COMMAND" FILE...
local RESULT = "^(%d+) passed, (%d+) failed, (%d+) skipped$"

-- Returns the lines that `command` prints, without the line of its result, and its three counts. A
-- file that ends without a result (a crash, an error outside of its cases) counts as failed.
local function run(command)
  local pipe <close> = assert(io.popen(command .. " 2>&1"))
  local lines, counts = {}, nil
  for line in pipe:lines() do
    local passed, failed, skipped = line:match(RESULT)
    if passed then
      counts = { tonumber(passed), tonumber(failed), tonumber(skipped) }
    elseif not line:find("^[%+%-%*%.]+$") then -- a sign for each case
      lines[#lines + 1] = line
    end
  end
  if not counts then
    lines[#lines + 1] = "ended without a result"
    counts = { 0, 1, 0 }
  elseif not pipe:close() and counts[2] == 0 then
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

local command, sums, failures = arg[1], { 0, 0, 0 }, {}
for i = 2, #arg do
  local begun = os.time()
  local lines, counts = run(command .. " " .. arg[i])
  for k = 1, 3 do
    sums[k] = sums[k] + counts[k]
  end
  show(arg[i], lines, counts, os.time() - begun)
  if counts[2] > 0 then
    table.insert(failures, ("\n%s failed:\n%s"):format(arg[i], table.concat(lines, "\n")))
  end
end
for _, failure in ipairs(failures) do
  print(failure)
end
print(("%d passed, %d failed, %d skipped"):format(table.unpack(sums)))
os.exit(sums[2] == 0)
