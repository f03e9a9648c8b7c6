--- Replay of handlers: the handlers of a stored conversation run again, turn by turn, on what its
-- records hold, and their results are compared with the recorded ones. For testing.replay and
-- agenthost replay --tools. Each turn is in a store of its own (ah._turns), in which runs enter
-- handlers again as those of durable tools, and take no step that is not recorded.
local ah = ...

local encode = ah.json.encode

local MOST_WORDS = 400 -- bytes of a result that is shown
local BEFORE = 40      -- of these, before the first difference
local MOST_MISSING = 20

-- The members of a result that a handler decides, as text.
local function members(result)
  local copy = {}
  for key, value in pairs(result) do
    copy[key] = value
  end
  copy.time, copy.id = nil, nil
  return encode(copy)
end

local function first_difference(a, b)
  local at = 1
  while at <= #a and a:byte(at) == b:byte(at) do
    at = at + 1
  end
  return at
end

-- The part of a text around a byte, in whole characters.
local function part(said, at)
  local from = math.max(1, at - BEFORE)
  while from > 1 and (said:byte(from) or 0) & 0xC0 == 0x80 do
    from = from - 1
  end
  local to = math.min(#said, from + MOST_WORDS - 1)
  while to < #said and said:byte(to + 1) & 0xC0 == 0x80 do
    to = to - 1
  end
  return (from > 1 and "..." or "") .. said:sub(from, to) .. (to < #said and "..." or "")
end

local function words(result)
  return (result.success and "" or "failed: ") .. result.content
end

local function difference(turn, call, now, message)
  local d = { turn = turn.turn, call = call.id, tool = call.tool, record = call.record,
    message = message }
  local was = words(call.result)
  local is = now and words(now)
  if is == was then -- another member is different, such as images
    was, is = members(call.result), members(now)
  end
  local at = is and first_difference(was, is) or 1
  d.recorded, d.now = part(was, at), is and part(is, at)
  return d
end

-- Returns the results in the copy, and what is not recorded, by the indexes of calls.
local function outcomes(copy, id)
  local results, missing = {}, {}
  for record in assert(copy:records(id, { kinds = { "settled", "lost" } })) do
    local said = record.said
    if record.kind == "settled" then
      results[said.call] = said.result
    elseif said.call and not missing[said.call] then
      missing[said.call] = said.what
    end
  end
  return results, missing
end

local function note_missing(got, turn, call, what)
  got.not_recorded = got.not_recorded + 1
  if #got.missing < MOST_MISSING then
    table.insert(got.missing, { turn = turn.turn, call = call.id, tool = call.tool, what = what })
  end
end

-- Compares the calls of a turn. A call behind one that is not recorded may have seen its changes.
local function compare(got, turn, copy, id, ended)
  local results, missing = outcomes(copy, id)
  local diverged = ended.code == "diverged"
  local behind
  for _, call in ipairs(turn.calls) do
    local now = results[call.call]
    local what = call.erased and "its arguments, which were erased" or missing[call.call] or behind
    if what then
      note_missing(got, turn, call, what)
      behind = behind or call.changes and ("what call %s has changed"):format(call.id)
    elseif now and members(now) == members(call.result) then
      got.equal = got.equal + 1
    elseif now or not diverged or ended.message:find("call " .. call.id .. ":", 1, true) then
      local why = not now and ended.message or nil
      got.difference = got.difference or difference(turn, call, now, why)
    end
  end
  got.turns, got.calls = got.turns + 1, got.calls + #turn.calls
end

-- Enters the handlers of the turn in its copy. Returns the error with which the run has ended.
local function enter(agent, session, copy, id)
  local conversation, err = agent:open { store = copy, id = id, session = session }
  if not conversation then
    return nil, err
  end
  local _, ended = conversation:run()
  conversation:close()
  return ended or {}
end

--- Runs the handlers of a conversation again.
---@param store table made by ah.store
---@param id string
---@param tools any an agent, or a list of tools
---@param session any the session that they use beside ctx.session; nil: none
---@param before? fun(turn: table) called before each turn
---@return table? outcome
---@return table? err
return function(store, id, tools, session, before)
  local agent = tools
  if type(tools) == "table" then
    agent = assert(ah.agent { model = ah.scripted {}, tools = tools, store = false })
  end
  local got = { turns = 0, calls = 0, equal = 0, not_recorded = 0, missing = {} }
  local turns <close> = ah._turns(store, id)
  while not got.difference do
    local ok, copy, turn = pcall(turns)
    if not ok then
      return nil, copy
    elseif not copy then
      break
    end
    if before then
      before(turn)
    end
    local ended, err = enter(agent, session, copy, id)
    if not ended then
      return nil, err
    end
    compare(got, turn, copy, id, ended)
    copy:close()
  end
  return got
end
