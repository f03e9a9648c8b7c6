--- The revision of each wire, a number in its ah_adapter_vt, is raised with each change of the
-- bytes that it makes of the same entries: stored conversations are replayed under it. A fixed
-- conversation is lowered by every provider in each of its modes, and the hashes of its requests
-- are compared with those of revisions.txt. REVISIONS=write writes that file anew; it refuses to,
-- if bytes have changed and the revision has not.
local ah = require "agenthost"
local ahtest = require "ahtest"

local FILE = "spec/wire/revisions.txt"
local MODES = { false, "restart", "append", "inline", "reference", "additional_tools",
  "search_pair", "list_changed", "dispatcher" }
local MODELS = { "anthropic/claude-sonnet-5", "anthropic/claude-haiku-4-5", "openai/gpt-4o",
  "openai/responses/gpt-5.6", "gemini/gemini-2.5-pro", "gemini/gemini-3-pro", "ollama/llama3.2",
  "compatible/m", "litellm_proxy/m", "openrouter/a/b", "deepseek/deepseek-reasoner", "groq/m",
  "mistral/m", "xai/m", "cerebras/m", "together_ai/m", "fireworks_ai/m", "perplexity/m",
  "nvidia_nim/m", "sambanova/m", "moonshot/m", "zai/m", "huggingface/m", "azure/m",
  "hosted_vllm/m", "lm_studio/m", "llama_cpp/m", "llamafile/m" }
local OWN = '{"provider":"scripted","model":"script","base_url":"","own":true,"annotated":%s,'
  .. '"known":false,"facts":[1,0,0,0,0,0,0,15,0,0,1,0,0,0,0,0]}'

local encode, array = ah.json.encode, ah.array

local function spec_of(name, version)
  return { name = name, description = "Tool " .. name .. version,
    annotations = { read_only = true },
    parameters = { type = "object", additionalProperties = false,
      properties = { n = { type = "integer", minimum = version }, s = { type = "string" } },
      required = array { "n" } } }
end

local function user(text, ...)
  return encode { type = "user", time = 1,
    content = array { { type = "text", text = text }, ... } }
end

local function added(...)
  return encode { type = "tools_added", tools = array { ... } }
end

local function answer(text, id, name, arguments)
  return encode { type = "assistant", time = 1, stop = id and "tool_calls" or "end",
    content = array { { type = "text", text = text } },
    tool_calls = id and array { { id = id, name = name, arguments = arguments } } or nil }
end

local function result(id, name, content)
  return encode { type = "tool_result", id = id, name = name, content = content, success = true,
    time = 1 }
end

--- Returns the entries of each request.
local function requests()
  return { encode { type = "settings", model = "x/m", options = { max_tokens = 100,
    temperature = 0.5, reasoning = "low", seed = 7, stop = array { "END" }, top_p = 0.9 } },
    encode { type = "prompt", text = 'Be "brief".\n\u{e9}', time = 1 },
    added(spec_of("first", 1), spec_of("second", 1)), user("Hello \u{1F600}\\") },
    { answer("Looking.", "call_1", "first", '{"n":1,"s":"x/y"}'),
      result("call_1", "first", "one\ntwo"), added(spec_of("third", 1)) },
    { answer("", "call 2 with an id that is no name", "third", "{}"),
      result("call 2 with an id that is no name", "third", ""),
      encode { type = "tools_removed", names = array { "second" } },
      encode { type = "note", text = "A note.", time = 1 } },
    { answer("Done."), user "Now with a schema.",
      encode { type = "prompt", text = "Another prompt.", time = 1 },
      encode { type = "settings", model = "x/m", options = { tool_choice = "required",
        strict_tools = true }, output = { type = "object", additionalProperties = false,
        properties = { a = { type = "string" } }, required = array { "a" } } } },
    { answer('{"a":"b"}'), added(spec_of("first", 2)), user "Again." }
end

--- Returns the revision, and the hash of the bodies and prints of all requests; nil: there is no
-- such mode.
local function made(o)
  local done = table.pack(pcall(ahtest.wire_lower, o, requests()))
  if not done[1] then
    assert(tostring(done[2]):find("tool_change_mode", 1, true), done[2])
    return nil
  end
  local all = {}
  for i = 2, done.n do
    all[#all + 1] = done[i].body
    all[#all + 1] = done[i].prints:gsub('"revision":%d+', "", 1)
  end
  return ah.json.decode(done[2].prints).revision, ah.sha256(table.concat(all, "\n")):sub(1, 16)
end

--- Returns { name, revision, hash } of every provider, mode and form of the answer, in order.
local function all_made()
  local list = {}
  local function add(name, o)
    local revision, hash = made(o)
    list[#list + 1] = revision and { name = name, revision = revision, hash = hash }
  end
  for _, model in ipairs(MODELS) do
    local provider, name = model:match "^(.-)/(.*)$"
    for _, mode in ipairs(MODES) do
      for _, stream in ipairs { false, true } do
        add(("%s %s %s"):format(model, mode or "default", stream and "stream" or "whole"),
          { provider = provider, model = name, base_url = "http://x", key = "k",
            mode = mode or nil, stream = stream })
      end
    end
  end
  for _, annotated in ipairs { false, true } do
    add("scripted " .. (annotated and "annotated" or "default") .. " stream",
      { wire = OWN:format(annotated) })
  end
  return list
end

--- Returns name -> { revision, hash }
local function written()
  local of = {}
  for line in io.lines(FILE) do
    local name, revision, hash = line:match "^(%S+ %S+ %S+) (%d+) (%x+)$"
    of[assert(name, line)] = { revision = math.tointeger(revision), hash = hash }
  end
  return of
end

local function source_of(name)
  local provider = name:match "^[^/ ]+"
  local own = { anthropic = 1, gemini = 1, ollama = 1, scripted = 1 }
  return ("src/wire/%s.c"):format(own[provider] and provider
    or name:find "^%w+/responses/" and "responses" or "openai")
end

local function check(now, was)
  if not was then
    return ("%s is not in %s: REVISIONS=write"):format(now.name, FILE)
  elseif now.revision == was.revision and now.hash ~= was.hash then
    return ("the bytes of %s have changed: raise `revision` in the ah_adapter_vt of %s, and write "
      .. "%s anew: make test SPECS=spec/wire/revisions_spec.lua REVISIONS=write"):format(now.name,
        source_of(now.name), FILE)
  elseif now.revision ~= was.revision then
    return ("the revision of %s is %d, and %d in %s: REVISIONS=write"):format(now.name,
      now.revision, was.revision, FILE)
  end
end

local function write(list)
  local f <close> = assert(io.open(FILE, "w"))
  for _, now in ipairs(list) do
    f:write(("%s %d %s\n"):format(now.name, now.revision, now.hash))
  end
end

describe("the revision of a wire", function()
  it("is raised with each change of its bytes", function()
    local list, of = all_made(), {}
    assert.is_true(#list > 150, #list)
    if io.open(FILE) then
      of = written()
    end
    if os.getenv "REVISIONS" == "write" then
      for _, now in ipairs(list) do
        local was = of[now.name]
        assert.is_false(was and was.revision == now.revision and was.hash ~= now.hash or false,
          check(now, was))
      end
      write(list)
      of = written()
    end
    for _, now in ipairs(list) do
      assert.is_nil(check(now, of[now.name]))
    end
  end)

  it("is told with the place to raise it", function()
    local now = { name = "mistral/m default stream", revision = 1, hash = "a" }
    assert.truthy(check(now, { revision = 1, hash = "b" }):find("src/wire/openai.c", 1, true))
    assert.truthy(check(now, { revision = 2, hash = "b" }):find("the revision of mistral", 1, true))
    assert.is_nil(check(now, { revision = 1, hash = "a" }))
  end)
end)

describe("the adapter of a record", function()
  it("is refused if a fact is out of range, or lacks", function()
    for _, facts in ipairs { "[9,0,0,0,0,0,0,15,0,0,1,0,0,0,0,0]", "[1]", "{}", "[-1]",
      "[1,0,0,0,0,0,0,15,0,0,1,0,0,4,0,0]" } do
      local wire = OWN:format("true"):gsub("%[.*%]", facts)
      local ok, err = pcall(ahtest.wire_lower, { wire = wire }, requests())
      assert.is_false(ok)
      assert.truthy(err:find("`facts` of `wire`", 1, true), err)
    end
  end)
end)
