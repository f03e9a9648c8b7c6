--- A provider's own search among deferred tools, from the server's side. If the client lets the
-- provider search, a turn of the script that calls only search_tools is made here, and the next
-- turn goes into the same answer. So one script serves clients that search themselves and those
-- that do not. A search finds the tools that have a word of the query, without ranking.
local search = {}

local MAX = 5 -- tools that a search returns
local MAX_SEARCHES = 8 -- in one answer

local function words_of(text)
  local words = {}
  for word in text:lower():gmatch "[%w\x80-\xff]+" do
    words[word] = true
  end
  return words
end

local function has_word(tool, words)
  for word in pairs(words_of(tool.name .. " " .. tool.description)) do
    if words[word] then
      return true
    end
  end
  return false
end

local function find(deferred, query)
  local found, words = {}, words_of(query)
  for _, tool in ipairs(deferred) do
    if #found < MAX and has_word(tool, words) then
      found[#found + 1] = tool
    end
  end
  return found
end

local function is_search(turn)
  local calls = type(turn) == "table" and turn.calls
  return calls and #calls == 1 and calls[1].name == "search_tools" and not turn.fail
    and not turn.status
end

-- Returns the request as if the client had sent it with the search's result.
local function after(request, s, n)
  local copy, entries = {}, table.move(request.entries, 1, #request.entries, 1, {})
  for key, value in pairs(request) do
    copy[key] = value
  end
  local id = "search_" .. n
  entries[#entries + 1] = { type = "assistant", content = {},
    tool_calls = { { id = id, name = "search_tools", arguments = s.arguments } } }
  entries[#entries + 1] = { type = "tool_result", id = id, name = "search_tools", content = "" }
  entries[#entries + 1] = { type = "tools_added", tools = s.found }
  copy.entries = entries
  return copy
end

--- Returns the turn to send and the searches before it, each { query, arguments, found = tools }.
---@param next_turn fun(request: table): table
---@param request table as scripted models are given it
---@param deferred table? the tools to be searched; nil: the client did not ask for it
function search.carry_out(next_turn, request, deferred, encode)
  local turn, done = next_turn(request), {}
  while deferred and is_search(turn) and #done < MAX_SEARCHES do
    local arguments = turn.calls[1].arguments or {}
    local query = tostring(arguments.query or "")
    local s = { query = query, arguments = encode { query = query }, found = find(deferred, query) }
    done[#done + 1] = s
    request = after(request, s, #done)
    turn = next_turn(request)
  end
  return turn, done
end

return search
