--- Texts that show a person a call that waits for an approval.
local ah, use = ...
local changed, text = use "changed", use "text"

local M = {}

local NAME = 200              -- bytes of the name of an argument
local BYTES, LINES = 4096, 40 -- of one argument, or of a change, unless all is to be shown
local MOST = 128 << 10        -- bytes of all, each of which a terminal may write as six

-- -- arguments ---------------------------------------------------------------------------------

local function sorted(members)
  local names = {}
  for name in pairs(members) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

--- Returns a value as JSON with a line for each member.
function M.pretty(value, indent)
  local flat = text.json(value)
  if type(value) ~= "table" or #flat <= 2 then
    return flat
  end
  local inner, parts = (indent or "") .. "  ", {}
  local is_list = flat:sub(1, 1) == "["
  for i, name in ipairs(is_list and value or sorted(value)) do
    parts[i] = inner .. (is_list and M.pretty(name, inner)
      or text.json(name) .. ": " .. M.pretty(value[name], inner))
  end
  return ("%s\n%s\n%s%s"):format(flat:sub(1, 1), table.concat(parts, ",\n"), indent or "",
    flat:sub(-1))
end

-- Returns the first `lines` lines of a text, with at most so many bytes.
local function beginning(s, bytes, lines)
  local cut, at = text.cut(s, bytes), 0
  for _ = 1, lines do
    at = cut:find("\n", at + 1, true)
    if not at then
      return cut
    end
  end
  return cut:sub(1, at - 1)
end

-- Adds a text whose further lines are indented. True: something is left out.
local function add_block(texts, s, whole)
  local cut = beginning(s, whole and MOST // 2 or BYTES, whole and math.maxinteger or LINES)
  texts[#texts + 1] = (cut:gsub("\n", "\n    "))
  if #cut < #s then
    texts[#texts + 1] = { ("\n    [%d bytes more%s]"):format(#s - #cut,
      whole and "" or "; s shows them"), color = "yellow" }
  end
  return #cut < #s
end

-- Adds the arguments that are not in `left_out`, a line or a block each.
local function add_arguments(texts, arguments, whole, left_out)
  local cut = false
  for _, name in ipairs(sorted(arguments)) do
    if not left_out[name] then
      local value = arguments[name]
      local label = ("  %s: "):format(text.cut(changed.line(name), NAME))
      texts[#texts + 1] = { "\n", { label, faint = true } }
      cut = add_block(texts, type(value) == "string" and value or text.json(value), whole) or cut
    end
  end
  return cut
end

-- -- changes -----------------------------------------------------------------------------------

local COLORS = { ["+"] = "green", ["-"] = "red" }

local function add_changes(texts, changes, whole)
  local lines = changed.lines(changes, "  ")
  local n = math.min(#lines, whole and 10000 or LINES)
  for i = 1, n do
    texts[#texts + 1] = { "\n", { lines[i], color = COLORS[lines[i]:match "^    ([+-])"] } }
  end
  if n < #lines then
    texts[#texts + 1] = { ("\n    [%d lines more%s]"):format(#lines - n,
      whole and "" or "; s shows them"), color = "yellow" }
  end
  return n < #lines
end

-- Functions that change a file of an overlay as the built-in tools do, by their names.
local CHANGE = {}

function CHANGE.write_file(files, path, arguments)
  return files:write(path, arguments.content)
end

function CHANGE.edit_file(files, path, arguments)
  for _, one in ipairs(arguments.edits or { arguments }) do
    local n, err = files:edit(path, one.old, one.new, { all = one.all })
    if not n then
      return nil, err
    end
  end
  return true
end

local PUT = { content = true, old = true, new = true, all = true, edits = true, overwrite = true }

-- Returns the changes that a call of a file tool would make in this folder now; nil if they are not
-- known.
local function changes_of(call)
  local change = CHANGE[call.name]
  local files = change and ah.filesystem { root = "." }
  if not files then
    return nil
  end
  local _ <close> = files
  local over = files:overlay()
  local ok, done = pcall(change, over, call.arguments.path, call.arguments)
  local changes = ok and done and over:changes()
  over:drop()
  for _, one in ipairs(changes or {}) do
    one.root = nil -- the path is below this folder
  end
  return changes and changes[1] and not (changes[1].binary or changes[1].cut) and changes or nil
end

-- -- all of it ---------------------------------------------------------------------------------

local function size_of(shown)
  if type(shown) == "string" then
    return #shown
  end
  local n = 0
  for _, one in ipairs(shown) do
    n = n + size_of(one)
  end
  return n
end

-- Returns the texts that can be shown at once, and true if there are others.
local function limited(texts)
  local left = MOST
  for i, one in ipairs(texts) do
    left = left - size_of(one)
    if left < 0 then
      local first = table.move(texts, 1, i - 1, 1, {})
      first[i] = { ("\n    [%d parts more, too long to be shown]"):format(#texts - i + 1),
        color = "yellow" }
      return first, true
    end
  end
  return texts, false
end

-- -- an approval -------------------------------------------------------------------------------

-- The reasons of the ready-made policies, in words about the call.
local WORDS = {
  ["the tool is destructive"] = "it may delete or overwrite something",
  ["the tool is open_world"] = "it reaches other computers",
  ["the tool is untrusted"] = "the source of the tool is not trusted",
  ["the tool is not read_only"] = "it may change something",
}

--- Returns a text that shows the call of an approval, and true if something is left out.
---@param whole boolean? all of it is shown
---@param own boolean? the call is of the command's own tools
function M.approval(ask, whole, own)
  local call = ask.call
  local arguments = type(call.arguments) == "table" and call.arguments
    or { arguments = call.arguments }
  local texts = { { changed.line(call.name), bold = true }, ": ",
    WORDS[ask.question] or text.cut(changed.line(ask.question), BYTES) }
  local planned = own and not ask.changes and changes_of(call) or nil
  local cut = add_arguments(texts, arguments, whole, planned and PUT or {})
  if ask.result then
    texts[#texts + 1] = { "\n", { "  result: ", faint = true } }
    cut = add_block(texts, ask.result, whole) or cut
  end
  if ask.changes or planned then
    cut = add_changes(texts, ask.changes or planned, whole) or cut
  end
  local first, is_long = limited(texts)
  return first, cut and not is_long
end

return M
