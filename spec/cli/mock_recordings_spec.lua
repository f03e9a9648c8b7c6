-- agenthost mock against recorded traffic: it accepts the requests that providers accepted, and its
-- answers have the shape of theirs: members, and the order of a stream's events.
local mock = require "support.mock"
local program = mock.program()
local recordings = require "support.recordings"
local server = require "support.server"

local FOLDERS = { { "openai-chat", "openai" }, { "openai-responses", "responses" },
  { "anthropic", "anthropic" }, { "gemini", "gemini" }, { "ollama", "ollama" } }

local DEFAULT_URL = { openai = "/v1/chat/completions", responses = "/v1/responses",
  anthropic = "/v1/messages", gemini = "/v1beta/models/m:generateContent", ollama = "/api/chat" }

-- These continue responses of another server.
local NOT_TAKEN = {
  ["openai-responses/16-previous-response-id.json 2"] = true,
  ["openai-responses/16-previous-response-id.json 3"] = true,
  ["openai-responses/16-previous-response-id.json 4"] = true,
}

local function started(script)
  local path = os.tmpname()
  local f = assert(io.open(path, "w"))
  f:write(script)
  f:close()
  program.start(path, "all", "strict", "")
  os.remove(path)
end

local function headers_of(x, format)
  local headers = {}
  for name, value in pairs(x.request.headers or {}) do
    headers[name:lower()] = type(value) == "table" and value[1] or value
  end
  if format == "anthropic" then -- recordings have no betas
    headers["anthropic-version"] = "2023-06-01"
    headers["anthropic-beta"] = "inline-tools-2026-09-15"
  end
  return headers
end

-- Returns the mock's answer to a recorded request.
local function answered(x, format)
  local url = x.request.url ~= server.null and x.request.url or nil
  local target = url and url:match("^https?://[^/]+(.*)$") or DEFAULT_URL[format]
  local body = x.request.body
  body = type(body) == "string" and body or server.encode(body)
  return mock.answer(program, "POST", target, headers_of(x, format), body)
end

-- Returns the successful exchanges that have a request.
local function taken(folder)
  local list = {}
  for _, x in ipairs(recordings.exchanges(folder)) do
    local body = x.request and x.request.body
    if x.status == 200 and body and body ~= server.null and not x.file:find("^4%d") then
      list[#list + 1] = x
    end
  end
  return list
end

local has_recordings = #recordings.exchanges "anthropic" > 0
local it = has_recordings and it or pending

describe("agenthost mock and recorded requests", function()
  for _, f in ipairs(FOLDERS) do
    it("of " .. f[1] .. " that were taken are taken", function()
      local n, refused = 0, {}
      for _, x in ipairs(taken(f[1])) do
        -- a new start, as signatures are remembered per conversation
        started 'return function() return "ok" end'
        local p = answered(x, f[2])
        n = n + 1
        if p.status ~= 200 and not NOT_TAKEN[x.name] then
          refused[#refused + 1] = x.name .. ": " .. p.say
        end
      end
      assert.same({}, refused)
      assert.is_true(n > 3)
    end)
  end
end)

-- -- shapes -------------------------------------------------------------------------------

-- Paths such as "choices[].message.content" of everything in a document, at most 20 levels deep.
-- Values that the caller has written (arguments, schemas) are left out.
local OPEN = { args = true, input = true, arguments = true, parameters = true, metadata = true }

local function add_paths(value, path, into, depth)
  if type(value) ~= "table" or value == server.null or depth > 20 then
    return into
  end
  for key, inner in pairs(value) do
    local here = type(key) == "number" and path .. "[]" or path .. "." .. key
    if type(key) ~= "number" then
      into[here] = true
    end
    if not OPEN[key] then
      add_paths(inner, here, into, depth + 1)
    end
  end
  return into
end

-- Returns the documents of a body, one or those of a stream, with the kind of each event.
local function documents(body)
  local docs = {}
  if body:find("^%s*{") and not body:find("\n{") then
    return { server.decode(body) }
  end
  for line in body:gmatch("[^\r\n]+") do
    local data = line:match("^data: ?(.*)$") or line:match("^{.*")
    if data == "[DONE]" then
      docs[#docs + 1] = { DONE = true }
    elseif data then
      docs[#docs + 1] = server.decode(data)
    end
  end
  return docs
end

-- Returns the kind of an event of a stream, as one word.
local function kind_of(doc)
  local choice = doc.choices and doc.choices[1]
  local delta = choice and choice.delta
  if delta then
    local call = delta.tool_calls and delta.tool_calls[1]
    return call and (call.id and "call" or "arguments") or (delta.role and "role")
      or (choice.finish_reason ~= server.null and "finish") or (delta.content and "content")
      or (delta.refusal and "refusal") or "delta"
  elseif doc.message and doc.done ~= nil then
    return doc.done and "done" or (doc.message.tool_calls and "calls") or "content"
  elseif doc.candidates then
    return doc.candidates[1].finishReason and "finish" or "parts"
  end
  return doc.type or (doc.choices and "usage") or (doc.DONE and "DONE") or "document"
end

-- Returns the kinds in order, without repetitions; `ping` may be anywhere.
local function order_of(docs)
  local kinds = {}
  for _, doc in ipairs(docs) do
    local kind = kind_of(doc)
    if kind ~= kinds[#kinds] and kind ~= "ping" then
      kinds[#kinds + 1] = kind
    end
  end
  return kinds
end

local function paths_of(docs)
  local paths = {}
  for _, doc in ipairs(docs) do
    add_paths(doc, #docs > 1 and kind_of(doc) or "", paths, 0)
  end
  return paths
end

-- Returns the paths that the other document lacks, except those that match a pattern of `but`.
local function lacking(some, others, but)
  local list = {}
  for path in pairs(some) do
    local known = others[path]
    for _, pattern in ipairs(but or {}) do
      known = known or path:find(pattern) ~= nil
    end
    if not known then
      list[#list + 1] = path
    end
  end
  table.sort(list)
  return list
end

-- The recording; the format; a turn with the same content; `less`: members that the mock leaves
-- out; `more`: members that the recording lacks (of newer servers).
local CALL = 'calls = { { name = "f", arguments = { a = 1, b = "some longer words" } } }'
local SHAPES = {
  { "openai-chat/01-text.json 1", "openai", 'text = "a b"' },
  { "openai-chat/02-tool-chain.json 1", "openai", CALL },
  -- role and call are in one event
  { "openai-chat/03-tool-stream.json 1", "openai", CALL, order = false,
    more = { "^call", "^role" }, less = { "obfuscation", "^role", "^call" } },
  { "openai-responses/03-tool-roundtrip.json 1", "responses", CALL,
    less = { "billing", "strict" } },
  { "openai-responses/03-tool-roundtrip.json 2", "responses", 'text = "a"',
    less = { "billing", "phase", "strict" } },
  { "openai-responses/05-reasoning-echo.json 1", "responses",
    'reasoning = "", ' .. CALL, less = { "billing", "strict" } },
  { "openai-responses/02-text-stream.json 1", "responses", 'text = "a"',
    less = { "phase", "obfuscation" } },
  { "openai-responses/04-tool-stream.json 1", "responses", CALL,
    less = { "phase", "obfuscation", "strict" } },
  { "anthropic/01-text.json 1", "anthropic", 'text = "a"' },
  { "anthropic/07-thinking-tool.json 1", "anthropic", 'reasoning = "b", text = "a", ' .. CALL,
    more = { "caller", "stop_details" } },
  { "anthropic/05-tool-stream.json 1", "anthropic",
    'calls = { { name = "f" }, { name = "g" } }' },
  { "anthropic/08-thinking-stream.json 1", "anthropic", 'reasoning = "b", text = "a"' },
  { "gemini/01-text.json 1", "gemini", 'text = "a", usage = { output = 3, reasoning = 1 }',
    less = { "serviceTier" } },
  { "gemini/03-tool-roundtrip.json 1", "gemini", 'reasoning = "b", ' .. CALL,
    less = { "serviceTier" } },
  { "gemini/07-thought-signature-sse.json 1", "gemini", 'reasoning = "b", ' .. CALL,
    more = { "finishMessage" } },
  { "ollama/03-text.json 1", "ollama", 'text = "a"', more = { "done_reason" } },
  { "ollama/11-thinking-tools.json 1", "ollama", 'reasoning = "b", ' .. CALL },
  { "ollama/01-text-stream.json 1", "ollama", 'text = "a"',
    more = { "done_reason" }, less = { "images" } },
  { "ollama/02-tool-stream.json 1", "ollama", CALL, more = { "%.id$", "%.index$" } },
}

describe("agenthost mock and recorded answers", function()
  local recorded = {}

  setup(function()
    for _, f in ipairs(FOLDERS) do
      for _, x in ipairs(recordings.exchanges(f[1])) do
        recorded[x.name] = x
      end
    end
  end)

  for _, case in ipairs(SHAPES) do
    it("have the same shape: " .. case[1], function()
      local x = assert(recorded[case[1]], "no such recording")
      started(("return { { %s } }"):format(case[3]))
      local p = answered(x, case[2])
      assert.equal(200, p.status, p.say)
      local theirs, ours = documents(x.body), documents(p:body())
      assert.same({}, lacking(paths_of(theirs), paths_of(ours), case.less))
      assert.same({}, lacking(paths_of(ours), paths_of(theirs), case.more))
      if case.order ~= false then
        assert.same(order_of(theirs), order_of(ours))
      end
    end)
  end
end)
