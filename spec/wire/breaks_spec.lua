--- `cache_break` is reported if and only if a request does not begin with the segments of the one
-- before. Random conversations, in which tools are added, removed, changed and added again, and
-- prompts and settings are changed and changed back, on each wire in each of its modes, are
-- compared with the bytes that are sent. BREAKS=n sets the number of conversations of each kind
-- (default 40).
local ah = require "agenthost"
local ahtest = require "ahtest"
local random = require "support.random"
local server = require "support.server"

local MODES = { false, "restart", "append", "inline", "reference", "additional_tools",
  "search_pair", "list_changed", "dispatcher" }
local WIRES = {
  { provider = "anthropic", model = "claude-sonnet-5" },
  { provider = "anthropic", model = "claude-haiku-4-5" },
  { provider = "openai", model = "gpt-4o" },
  { provider = "openai", model = "responses/gpt-5.6" },
  { provider = "gemini", model = "gemini-2.5-pro" },
  { provider = "ollama", model = "llama3.2" },
}
local COUNT = math.tointeger(tonumber(os.getenv "BREAKS" or 40))

--- Returns true if the second request begins with all segments of the first, except deferred tools.
local function begins(before, after)
  local function cached(r)
    local list = {}
    for _, s in ipairs(r.segments) do
      list[#list + 1] = s.kind ~= "deferred" and s.kind .. s.bytes or nil
    end
    return list
  end
  local old, new = cached(before), cached(after)
  for i, bytes in ipairs(old) do
    if new[i] ~= bytes then
      return false
    end
  end
  return true
end

--- Returns the fault in the report of the later request, or nil. `set`: its settings have changed.
local function fault(before, after, set)
  local same = begins(before, after) and not set
  if after.reason and same then
    return "told " .. after.reason .. ", and nothing departs"
  elseif not after.reason and not same then
    return "it departs, and nothing is told"
  end
  for _, s in ipairs(after.segments) do
    local bytes = s.bytes:gsub("^,", "") -- the first item of a list has no comma
    if not after.body:find(bytes, 1, true) then
      return "a segment is not in the body: " .. s.bytes
    end
  end
end

local encode = server.encode

local function spec_of(name, version)
  return { name = name, description = name .. version,
    parameters = { type = "object", properties = { n = { type = "integer" } } } }
end

--- Returns the entries of a conversation, request by request, and for each true if its settings
-- differ from those of the last request.
local function conversation(pick)
  local names, there, version = { "a", "b", "c", "d" }, {}, {}
  local calls, lists, sets = 0, {}, {}
  local option, sent, prompt = 1, 1, "P1"
  local list

  local function add(name)
    there[name] = true
    version[name] = version[name] or 1
    list[#list + 1] = encode { type = "tools_added",
      tools = server.array { spec_of(name, version[name]) } }
  end

  local function remove(name)
    there[name] = nil
    list[#list + 1] = encode { type = "tools_removed", names = server.array { name } }
  end

  local function set()
    list[#list + 1] = encode { type = "settings", model = "x/m",
      options = { max_tokens = 100 * option } }
  end

  local function say(text)
    prompt = text
    list[#list + 1] = encode { type = "prompt", text = text }
  end

  local function change()
    local name, what = names[pick(#names)], pick(10)
    if what <= 3 then
      if there[name] then remove(name) else add(name) end
    elseif what <= 5 then -- another definition, perhaps of a removed tool
      version[name] = pick(2)
      add(name)
    elseif what == 6 and there[name] then -- removed and added again
      remove(name)
      add(name)
    elseif what == 6 or what == 7 then
      if not there[name] then
        add(name)
        remove(name)
      end
    elseif what == 8 then
      local was = prompt
      say("P" .. pick(3))
      if pick(2) == 1 then say(was) end
    elseif what == 9 then
      local was = option
      option = pick(2)
      set()
      if pick(2) == 1 then
        option = was
        set()
      end
    end
  end

  for k = 1, 7 do
    list = {}
    if k == 1 then
      set()
      say "P1"
      for i = 1, pick(3) - 1 do add(names[i]) end
    elseif pick(6) > 1 then -- otherwise the same is sent again, as after a failed request
      calls = calls + 1
      local id = "call_" .. calls
      list[1] = encode { type = "assistant", content = server.array {}, stop = "tool_calls",
        tool_calls = server.array { { id = id, name = names[1], arguments = "{}" } } }
      list[2] = encode { type = "tool_result", id = id, name = names[1], content = "ok",
        success = true }
    end
    for _ = 1, pick(4) - 1 do change() end
    if k == 1 or pick(3) == 1 then
      list[#list + 1] = encode { type = "user",
        content = server.array { { type = "text", text = "u" .. k } } }
    end
    lists[k], sets[k] = list, option ~= sent
    sent = option
  end
  return lists, sets
end

local function told(list)
  local lines = {}
  for i, entries in ipairs(list) do
    lines[i] = i .. ":\n  " .. table.concat(entries, "\n  ")
  end
  return table.concat(lines, "\n")
end

describe("a broken cache", function()
  for _, wire in ipairs(WIRES) do
    for _, mode in ipairs(MODES) do
      local o = { provider = wire.provider, model = wire.model, base_url = "http://x",
        mode = mode or nil, key = "k" }
      local user = encode { type = "user",
        content = server.array { { type = "text", text = "hi" } } }
      if pcall(ahtest.wire_lower, o, { user }) then
        it(("is told of where bytes depart: %s/%s %s"):format(wire.provider, wire.model,
          mode or "by itself"), function()
          local pick, breaks, kept = random(#wire.model + #(mode or "")), 0, 0
          for n = 1, COUNT do
            local list, sets = conversation(pick)
            local r = { ahtest.wire_lower(o, table.unpack(list)) }
            for i = 2, #r do
              local wrong = fault(r[i - 1], r[i], sets[i])
              assert.is_nil(wrong, wrong and ("conversation %d, request %d: %s\n%s"):format(n, i,
                wrong, told(list)))
              breaks = breaks + (r[i].reason and 1 or 0)
              kept = kept + (r[i].reason and 0 or 1)
            end
          end
          assert.is_true(breaks > 0 and kept > 0) -- both outcomes occurred
        end)
      end
    end
  end

  it("is found by the check of this spec where it is told wrongly", function()
    local pick = random(1)
    local o = { provider = "openai", model = "gpt-4o", base_url = "http://x", key = "k" }
    local missed, made_up = 0, 0
    for _ = 1, 20 do
      local list, sets = conversation(pick)
      local r = { ahtest.wire_lower(o, table.unpack(list)) }
      for i = 2, #r do
        local was = r[i].reason
        r[i].reason = not was and "tools_changed" or nil
        assert.truthy(fault(r[i - 1], r[i], sets[i]))
        missed, made_up = missed + (was and 1 or 0), made_up + (was and 0 or 1)
        r[i].reason = was
      end
    end
    assert.is_true(missed > 0 and made_up > 0)
  end)

  it("has as its reason what is other, and an entry that is new", function()
    local pick, seen = random(7), {}
    local function of_kind(r, kind)
      local list = {}
      for _, s in ipairs(r.segments) do
        list[#list + 1] = s.kind == kind and s.bytes or nil
      end
      return table.concat(list, "\n")
    end
    for _ = 1, 40 do
      local list, sets = conversation(pick)
      local r = { ahtest.wire_lower({ provider = "openai", model = "gpt-4o", key = "k",
        base_url = "http://x" }, table.unpack(list)) }
      local from = #list[1]
      for i = 2, #r do
        local to, why = from + #list[i], r[i].reason
        local differs = { settings_changed = sets[i],
          tools_changed = of_kind(r[i], "tool") ~= of_kind(r[i - 1], "tool"),
          prompt_changed = of_kind(r[i], "system") ~= of_kind(r[i - 1], "system") }
        if why then
          assert.is_true(differs[why], why)
          assert.is_true(r[i].at >= from and r[i].at < to)
          seen[why] = true
        end
        from = to
      end
    end
    assert.same({ settings_changed = true, tools_changed = true, prompt_changed = true }, seen)
  end)
end)

-- The same through runs: changes of handlers in a turn, against the requests of a scripted model.
describe("a run's cache_break", function()
  local function tool(name, version, handler)
    return ah.tool { name = name, description = name .. version,
      handler = handler or function() end }
  end

  -- Runs a model of the mode whose handlers change tools at random. Returns its requests, and the
  -- cache_break events as { number of the request, reason }.
  local function run(mode, pick)
    local events, requests, there = {}, {}, {}
    local names = { "a", "b", "c" }
    local function change(ctx)
      for _ = 1, pick(4) - 1 do
        local name = names[pick(#names)]
        if there[name] and pick(2) == 1 then
          ctx:remove_tools(name)
          there[name] = nil
          if pick(2) == 1 then
            ctx:add_tools(tool(name, 1))
            there[name] = true
          end
        else
          if there[name] then
            ctx:remove_tools(name)
          end
          ctx:add_tools(tool(name, pick(2)))
          there[name] = true
        end
      end
    end
    local n = 0
    local model = ah.scripted { tool_change_mode = mode, answer = function(r)
      n = n + 1
      requests[n] = r
      return n < 6 and { calls = { { name = "change", arguments = {} } } } or "done"
    end }
    assert(ah.run { model = model, system = "S", tools = { tool("change", 1, function(_, ctx)
      change(ctx)
    end) }, loop_detector = false, "x", on = { cache_break = function(e)
      events[#events + 1] = { n + 1, e.reason }
    end } })
    return requests, events
  end

  local function bytes(requests)
    local list = {}
    for i, r in ipairs(requests) do
      list[i] = ah.json.encode(r.tools or {}) .. ah.json.encode(r.system or "")
    end
    return list
  end

  it("is told where the list of tools is another one, and nowhere else (append)", function()
    local pick = random(3)
    for _ = 1, COUNT // 4 do
      local requests, events = run("append", pick)
      local told_of, was = {}, bytes(requests)
      for _, e in ipairs(events) do
        told_of[e[1]] = e[2]
      end
      for i = 2, #was do
        assert.equal(was[i] ~= was[i - 1], told_of[i] ~= nil, was[i - 1] .. "\n" .. was[i])
      end
    end
  end)

  it("is never told where changes stand in entries, or where no cache reaches", function()
    local pick = random(4)
    for _, mode in ipairs { "reference", "additional_tools", "inline", "list_changed" } do
      for _ = 1, COUNT // 4 do
        local _, events = run(mode, pick)
        assert.same({}, events, mode)
      end
    end
  end)
end)
