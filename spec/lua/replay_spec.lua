--- store:replay: the requests of stored conversations are made again from their records, offline.
-- Random conversations go over each wire in each of its modes; tools, prompts, models and options
-- change on the way, and agents are opened anew. REPLAYS=n sets their number (default 300).
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local mock = require "support.mock"
local random = require "support.random"
local testing = require "agenthost.testing"

if not ahtest.store_engines().sqlite then
  return
end

local COUNT = math.tointeger(tonumber(os.getenv "REPLAYS" or 300))
local MODES = { false, "restart", "append", "inline", "reference", "additional_tools",
  "search_pair", "list_changed", "dispatcher" }
local WIRES = { "anthropic/claude-sonnet-5", "anthropic/claude-haiku-4-5", "openai/gpt-4o",
  "openai/responses/gpt-5.6", "gemini/gemini-2.5-pro", "ollama/llama3.2", "mistral/m",
  "openrouter/a/b", "deepseek/deepseek-reasoner", "scripted" }
-- A text in the file, the one that takes its place, the part of the request, and the entry.
local CHANGES = { { '"text":"Question', '"text":"Quesbion', "conversation", "user" },
  { '"text":"Be brief', '"text":"Be drief', "system", "prompt" },
  { '"description":"change 1', '"description":"chance 1', "tools", "tools_added" } }
local SCRIPT = [[
local n = 0
return function()
  n = n + 1
  if n % 17 == 5 then
    return { status = 400, message = "what this request has is not supported" }
  end
  return n % 3 ~= 0 and { text = "Step " .. n, reasoning = "Why not.",
    calls = { { name = "change", arguments = { n = n } } } } or "done " .. n
end]]

local has = command.has
local function quiet() end

local folder, m
setup(function()
  folder = command.folder()
  assert(os.execute("mkdir " .. folder .. "/other"))
  m = mock.is_built() and mock.start(SCRIPT)
end)
teardown(function()
  if m then
    m:close()
  end
  os.execute("chmod -R u+w " .. folder)
  command.tidy()
end)

local function tool(name, version, handler)
  return ah.tool { name = name, description = name .. " " .. version,
    params = { n = "integer?" }, handler = handler or function() return "ok" end }
end

--- Returns the tool whose handler changes the others at random.
local function changer(pick)
  local there = {}
  return tool("change", 1, function(_, ctx)
    for _ = 1, pick(4) - 1 do
      local name = ("abc"):sub(pick(3))
      name = name:sub(1, 1)
      if there[name] then
        ctx:remove_tools(name)
        there[name] = nil
      end
      if pick(3) > 1 then
        ctx:add_tools(tool(name, pick(2)))
        there[name] = true
      end
    end
    return "changed"
  end)
end

local function scripted(mode)
  local n = 0
  return ah.scripted { tool_change_mode = mode or nil, answer = function()
    n = n + 1
    return n % 3 ~= 0 and { calls = { { name = "change", arguments = {} } } } or "done"
  end }
end

--- Returns the fields of an agent on this wire, or nil if it has no such mode.
local function fields_of(wire, mode, pick)
  local fields = { system = "Be brief " .. pick(2), tools = { changer(pick) }, log = quiet,
    loop_detector = false, retries = 0, api_key = "key-of-a-replay",
    options = pick(2) == 1 and { max_tokens = 100 * pick(3) } or nil }
  if wire == "scripted" then
    fields.model = scripted(mode)
    fields.api_key = nil
    return fields
  end
  fields.base_url = m.url .. (wire:find "^openai" and "/v1" or "")
  fields.model, fields.stream = wire, pick(2) == 1
  fields.tool_change_mode = mode or nil
  return fields
end

--- Returns true after one conversation, if its wire has the mode.
local function converse(store, id, wire, mode, pick)
  for _ = 1, pick(3) do
    local fields = fields_of(wire, mode, pick)
    fields.store, fields.id = store, id
    local ok, agent = pcall(ah.agent, fields)
    if not ok or not agent then
      return false
    end
    for i = 1, pick(2) do
      agent:run("Question " .. i .. " of " .. id .. "\u{e9}\"\\")
    end
    agent:close()
  end
  return true
end

local function wires()
  return m and WIRES or { "scripted" }
end

local function made(path, bytes, count)
  local store <close> = assert(ah.store { path = path, bytes = bytes })
  local ids, list, seed = {}, wires(), 0
  while #ids < count do
    seed = seed + 1
    local wire, mode = list[seed % #list + 1], MODES[seed // #list % #MODES + 1]
    local id = ("talk_%03d"):format(seed)
    if converse(store, id, wire, mode, random(seed)) then
      ids[#ids + 1] = id
    end
  end
  return ids
end

--- Changes letters in the file of a store that is closed; the texts have the same length.
local function change_letter(path, was, now)
  assert(#was == #now)
  local f <close> = assert(io.open(path, "r+b"))
  local at = f:read "a":find(was, 1, true)
  assert(at, was)
  f:seek("set", at - 1)
  f:write(now)
end

--- Returns the index of the first entry of this kind in the conversation "talk".
local function entry_of(path, kind)
  local s = assert(ahtest.store("sqlite", { path = path, sync = "process", create = false }))
  local n = 0
  for _, record in ipairs(assert(s:read("talk", 1, 100))) do
    for _, entry in ipairs(ah.json.decode(record.said).entries or {}) do
      if entry.type == kind then
        s:close()
        return n
      end
      n = n + 1
    end
  end
end

--- True if the shell command succeeds.
local function works(line)
  return command.shell(line).code == 0
end

--- Returns the words that perform a command as another user, where this one is root, and without a
-- network, where a process may have one of its own.
local function elsewhere()
  local words, other = "", "setpriv --reuid 65534 --regid 65534 --clear-groups "
  for _, alone in ipairs { "unshare -n ", "unshare -cn " } do
    words = words == "" and works(alone .. "true") and alone or words
  end
  return words .. (works('test "$(id -u)" = 0 && ' .. other .. "true") and other or "")
end

describe("replay of random conversations", function()
  local ids, path, requests

  local function sent()
    return m and #m:log()
  end

  setup(function()
    ids = made(folder .. "/many.db", false, COUNT)
    collectgarbage() -- an agent that could not be made has the file open until then
    path = folder .. "/other/moved.db"
    assert(os.rename(folder .. "/many.db", path))
    requests = sent()
  end)

  it("makes their requests again, in another folder", function()
    local store <close> = assert(ah.store(path))
    local count = 0
    for _, id in ipairs(ids) do
      local got = assert(store:replay(id))
      assert.same({ requests = got.requests, equal = got.requests, other_revision = 0,
        not_recorded = 0 }, got, id)
      count = count + got.requests
    end
    assert.is_true(count >= COUNT, count)
    assert.equal(requests, sent())
  end)

  -- The other user has no home, no settings and no key, and may write to no file; nor does a build
  -- that measures coverage (GCOV_PREFIX). The addresses in the conversations are those of the mock,
  -- which gets no request. Where this user is not root, only the environment is another one.
  it("makes their requests again from files, under another user", function()
    local files = folder .. "/files"
    do
      local store <close> = assert(ah.store(path))
      assert(os.execute("mkdir " .. files))
      for _, id in ipairs(ids) do
        command.write(("%s/%s.jsonl"):format(files, id), assert(store:export(id)))
      end
    end
    local got = command.shell(("cd %s && AS='%s'"):format(folder, elsewhere()) .. [[

      cp "$A" agenthost && chmod 755 . && chmod 444 files/* && chmod 555 files agenthost
      HERE=$PWD; cd /; umask 077
      (ulimit -f 0; $AS env -i PATH="$PATH" HOME=/nonexistent TMPDIR=/nonexistent USER=other \
        GCOV_PREFIX=/nonexistent ASAN_OPTIONS="$ASAN_OPTIONS" sh -c '
          cd /; for f in "$0"/files/*; do "$0/agenthost" replay "$f"; done' "$HERE" 2>&1) | cat]])
    local n = 0
    for line in got.out:gmatch "[^\n]+" do
      local equal, all = line:match "^(%d+) of (%d+) requests are equal$"
      assert.is_truthy(equal and equal == all and all ~= "0", line)
      n = n + 1
    end
    assert.equal(#ids, n)
    assert.equal(requests, sent())
  end)
end)

describe("store:replay", function()
  --- Returns the one request of a changed conversation, which differs in this entry.
  local function differs(path, was, now, where)
    change_letter(path, was, now)
    local store <close> = assert(ah.store(path))
    local got = assert(store:replay "talk")
    assert.equal(0, got.equal, where)
    assert.is_table(got.difference, where)
    assert.equal(1, got.difference.request, where)
    return got.difference
  end

  for _, bytes in ipairs { false, true } do
    it("finds one changed letter" .. (bytes and ", and names its place" or ""), function()
      for i, wire in ipairs(wires()) do
        for _, change in ipairs(CHANGES) do
          local path = ("%s/%d_%s_%s.db"):format(folder, i, change[3], bytes)
          local where = wire .. " " .. change[3]
          do
            local store <close> = assert(ah.store { path = path, bytes = bytes })
            assert.is_true(converse(store, "talk", wire, false, function() return 1 end))
          end
          local entry = entry_of(path, change[4])
          local got = differs(path, change[1], change[2], where)
          assert.equal(change[3], got["in"], where)
          assert.equal(entry, got.entry, where)
          assert.equal(bytes, got.pointer ~= nil, where)
          if bytes then
            has(got.recorded, change[1]:match '[^"]*$')
            has(got.rebuilt, change[2]:match '[^"]*$')
          end
        end
      end
    end)
  end

  it("makes requests again that leave something out as a try", function()
    if not mock.is_built() then
      return
    end
    local refusing <close> = mock.start [[
local n = 0
return function()
  n = n + 1
  if n == 2 then
    return { status = 400, message = "reasoning is not supported" }
  end
  return n < 4 and { calls = { { name = "change", arguments = { n = n } } } } or "done"
end]]
    local store <close> = assert(ah.store { path = folder .. "/trying.db", bytes = true })
    local agent <close> = assert(ah.agent { model = "openai/gpt-4o", stream = false,
      base_url = refusing.url .. "/v1", api_key = "key-of-a-replay", store = store, id = "talk",
      log = quiet,
      options = { reasoning = "high" }, tools = { changer(function() return 2 end) } })
    assert(agent:run "Question")
    local tried = 0
    for record in store:records("talk", { kinds = { "request" } }) do
      tried = tried + (record.said.trying and 1 or 0)
    end
    assert.is_true(tried > 0)
    local got = assert(store:replay "talk")
    assert.equal(got.requests, got.equal, ah.json.encode(got))
  end)

  it("keeps the bytes of a response, if the store does", function()
    for _, bytes in ipairs { false, true } do
      local path = ("%s/heard_%s.db"):format(folder, bytes)
      local store = assert(ah.store { path = path, bytes = bytes })
      assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
      store:close()
      local s = assert(ahtest.store("sqlite", { path = path, sync = "process", create = false }))
      local n = 0
      for _, record in ipairs(assert(s:read("talk", 1, 100))) do
        if record.kind == "answer" then
          n = n + 1
          assert.equal(bytes, record.kept ~= nil)
          if bytes then
            has(ah.json.decode(record.kept).bytes, n < 3 and '"change"' or '"done"')
          end
        end
      end
      s:close()
      assert.equal(3, n)
    end
  end)

  it("tells requests of another revision, and such as have no hashes", function()
    local path = folder .. "/old.db"
    do
      local store <close> = assert(ah.store(path))
      assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
    end
    change_letter(path, '"revision":1', '"revision":0')
    do
      local store <close> = assert(ah.store(path))
      local got = assert(store:replay "talk")
      assert.same({ 1, 0, got.requests - 1 }, { got.other_revision, got.revision, got.equal })
    end
    change_letter(path, '"revision":0', '"revisoin":0')
    local store <close> = assert(ah.store(path))
    assert.equal(1, assert(store:replay "talk").not_recorded)
  end)

  it("fails for a conversation that is not there, and for a damaged one", function()
    local path = folder .. "/bad.db"
    local store <close> = assert(ah.store(path))
    assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
    local got, err = store:replay "tall"
    assert.is_nil(got)
    assert.equal("usage", err.code)
    has(err.message, "did you mean 'talk'")
    store:close()
    change_letter(path, '"provider":"scripted"', '"provider":5         ')
    local again <close> = assert(ah.store(path))
    got, err = again:replay "talk"
    assert.is_nil(got)
    assert.equal("store", err.code)
    has(err.message, "(request) cannot be made again: `wire` lacks provider")
  end)
end)

describe("agenthost replay", function()
  local function run(words)
    return command.shell(('"$A" replay %s 2>&1'):format(words))
  end

  it("prints the outcome, and ends with 1 if there is a difference", function()
    local path = folder .. "/command.db"
    do
      local store <close> = assert(ah.store { path = path, bytes = true })
      assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
    end
    local got = run("tal --store " .. path)
    assert.equal("3 of 3 requests are equal\n", got.out)
    assert.equal(0, got.code)
    change_letter(path, '"text":"Question', '"text":"Quesbion')
    got = run("talk --store " .. path)
    assert.equal(1, got.code)
    has(got.out, "request 1 (record 5) differs in its conversation, entry 3, at "
      .. "/entries/0/content/0/text\n  recorded: \"Question 1 of talk")
    got = run("talk --json --store " .. path)
    assert.equal(1, got.code)
    assert.equal(3, ah.json.decode(got.out).difference.entry)
  end)

  it("says why a file cannot be replayed", function()
    local function refused(name, text, words)
      local path = ("%s/%s"):format(folder, name)
      if text then
        command.write(path, text)
      end
      local got = run(path)
      assert.equal(2, got.code)
      has(got.out, words)
    end
    local text
    do
      local store <close> = assert(ah.store { engine = "memory" })
      assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
      text = assert(store:export "talk")
    end
    refused("saved.json", "{}", "a saved conversation has no records of its requests")
    refused("none", nil, "cannot read the export '" .. folder .. "/none': No such file")
    refused("empty", "", "it is empty")
    refused("other", nil, "Is a directory")
    refused("two", text .. text, "has 2 conversations: replay takes a file with one of them")
    refused("cut", text:sub(1, -10), "the export")
  end)
end)

describe("testing.replay", function()
  it("raises for a difference, and for what cannot be compared", function()
    local path = folder .. "/testing.db"
    do
      local store <close> = assert(ah.store(path))
      assert.is_true(converse(store, "talk", "scripted", false, function() return 1 end))
      assert.equal(3, testing.replay(store, "talk").equal)
    end
    local function raises(words)
      local store <close> = assert(ah.store(path))
      local ok, err = pcall(testing.replay, store, "talk")
      assert.is_false(ok)
      has(err, words)
    end
    change_letter(path, '"revision":1', '"revision":0')
    raises "1 of 3 requests of 'talk' cannot be compared: 1 are of another revision"
    change_letter(path, '"revision":0', '"revision":1')
    change_letter(path, '"text":"Be brief', '"text":"Be drief')
    raises "request 1 of 'talk' differs in its system, entry 1"
  end)
end)
