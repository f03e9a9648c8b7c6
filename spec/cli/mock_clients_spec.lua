-- Requests of the official clients that a model server must accept, and answers that must be as the
-- service's: pieces of streams sent back one by one, results in several messages, threads, custom
-- tools, signatures, ids of requests, and paths that do not exist. `make check-clients` runs the
-- clients themselves.
local mock = require "support.mock"
local server = require "support.server"

local it = mock.is_built() and it or pending

local ANTHROPIC = { ["anthropic-version"] = "2023-06-01" }
local THREADS = { ["anthropic-version"] = "2023-06-01",
  ["anthropic-beta"] = "message-threads-2026-08-12" }
local TARGET = { openai = "/v1/chat/completions", responses = "/v1/responses",
  anthropic = "/v1/messages", gemini = "/v1beta/models/m:generateContent", ollama = "/api/chat" }

-- Answers the user's last text; results are answered with "done".
local SCRIPT = [[
local F = { { name = "f", arguments = { a = 1 } } }
local turns = {
  call = { calls = F },
  signed = { reasoning = "Hm.", calls = F },
  either = function(n) return n % 2 == 1 and { reasoning = "Hm.", calls = F } or { calls = F } end,
  both = { reasoning = "Both.", calls = { F[1], { name = "f", arguments = { a = 2 } } } },
  custom = { calls = { { name = "f", arguments = "print(1)" } } },
  member = { calls = { { name = "f", arguments = { input = "print(2)" } } } },
  busy = { status = 429, message = "slow down" },
  gone = { text = "x", close = "before" },
  half = { text = "Half", fail = { status = 529, message = "Overloaded", in_stream = true } },
  named = { text = "x", headers = { ["Request-Id"] = "mine" } },
  named_busy = { status = 429, headers = { ["Request-Id"] = "mine" } },
}
local n = 0
return function(request)
  local last, answered
  for _, e in ipairs(request.entries) do
    if e.type == "user" then
      last, answered = e.content[1].text, false
    elseif e.type == "tool_result" then
      answered = true
    end
  end
  n = n + 1
  local turn = not answered and turns[last] or "done"
  return type(turn) == "function" and turn(n) or turn
end]]

local function started()
  return mock.start(SCRIPT)
end

local function has(text, what)
  assert(text:find(what, 1, true), ("no %q in: %s"):format(what, text))
end

local function taken(answer)
  assert.equal(200, answer.status, answer.body)
  return answer:json()
end

local function refused(answer, words, status)
  assert.equal(status or 400, answer.status, answer.body)
  local e = answer:json().error
  has(type(e) == "table" and e.message or e, words)
  return e
end

-- Returns the data of each event, decoded, and the line ends.
local function events_of(body)
  local list = {}
  for data in body:gmatch("data: ([^\r\n]+)") do
    list[#list + 1] = data:find "^{" and server.decode(data) or nil
  end
  return list
end

-- -- Gemini -----------------------------------------------------------------------------------

local function user(text)
  return { role = "user", parts = { { text = text } } }
end

local function result()
  return { role = "user", parts = { { functionResponse = { name = "f",
    response = { output = "r" } } } } }
end

local function gemini(m, ...)
  return m:ask(TARGET.gemini, { contents = { ... } })
end

-- Returns the content of the model's answer to these contents.
local function said(m, ...)
  return taken(gemini(m, ...)).candidates[1].content
end

local function unsigned(content)
  content = server.decode(server.encode(content))
  for _, part in ipairs(content.parts) do
    part.thoughtSignature = nil
  end
  return content
end

describe("agenthost mock, asked by Google's clients", function()
  it("joins contents of one role, as when each piece of a stream comes back by itself", function()
    local m <close> = started()
    local stream = m:ask("/v1beta/models/m:streamGenerateContent?alt=sse",
      { contents = { user "signed" } })
    local contents = { user "signed" }
    for _, event in ipairs(events_of(stream.body)) do
      contents[#contents + 1] = event.candidates[1].content
    end
    assert.is_true(#contents > 2, stream.body)
    contents[#contents + 1] = result()
    assert.equal("done", said(m, table.unpack(contents)).parts[1].text)
    contents[#contents + 1] = said(m, table.unpack(contents))
    contents[#contents + 1] = user "go"
    assert.equal("done", said(m, table.unpack(contents)).parts[1].text)
    refused(gemini(m, user "a", contents[2], contents[3], user "b"), "function response parts")
  end)

  it("takes the results of parallel calls one by one, and refuses too few or too many", function()
    local m <close> = started()
    local calls = said(m, user "both")
    taken(gemini(m, user "both", calls, result(), result()))
    refused(gemini(m, user "both", calls, result()), "2 calls, 1 responses")
    refused(gemini(m, user "both", calls, result(), result(), result()), "2 calls, 3 responses")
  end)

  it("ends the lines of its events as the service does", function()
    local m <close> = started()
    local body = m:ask("/v1beta/models/m:streamGenerateContent?alt=sse",
      { contents = { user "go" } }).body
    has(body, "}\r\n\r\n")
    assert.is_nil(body:gsub("\r\n", ""):find "[\r\n]")
  end)

  it("asks for the signatures of calls that it signed in this conversation", function()
    local m <close> = started()
    local call = said(m, user "signed")
    taken(gemini(m, user "signed", call, result()))
    refused(gemini(m, user "signed", unsigned(call), result()), "missing a thought_signature")
    taken(gemini(m, user "call", said(m, user "call"), result()))
    taken(gemini(m, user "made up", unsigned(call), result()))
    local first, second = said(m, user "either"), said(m, user "either")
    taken(gemini(m, user "either", first, result()))
    taken(gemini(m, user "either", unsigned(second), result()))
  end)

  it("takes a call that comes again and again, each time with a signature of its own", function()
    local m <close> = mock.start [[return function()
      return { reasoning = "Hm.", calls = { { name = "f", arguments = { a = 1 } } } }
    end]]
    local contents = { user "poll" }
    for _ = 1, 3 do
      contents[#contents + 1] = said(m, table.unpack(contents))
      contents[#contents + 1] = result()
    end
    local first, last = contents[2].parts[1], contents[6].parts[1]
    assert.not_equal(first.thoughtSignature, last.thoughtSignature)
    taken(gemini(m, table.unpack(contents)))
    contents[2] = unsigned(contents[2])
    refused(gemini(m, table.unpack(contents)), "contents[1].parts[0]")
  end)

  it("asks for no signatures as an older model", function()
    local m <close> = started()
    local call = unsigned(said(m, user "signed"))
    for model, status in pairs { ["gemini-2.5-flash"] = 200, ["gemini-1.5-pro"] = 200,
      ["gemini-3-pro"] = 400, ["gemini-12"] = 400 } do
      local r = m:ask(("/v1beta/models/%s:generateContent"):format(model),
        { contents = { user "signed", call, result() } })
      assert.equal(status, r.status, model)
    end
  end)

  it("separates the elements of a stream that is no event stream as the service does", function()
    local m <close> = started()
    local body = m:ask("/v1beta/models/m:streamGenerateContent", { contents = { user "go" } }).body
    assert.equal(2, #server.decode(body))
    has(body, "}\n,\r\n{")
    assert.truthy(body:find "}\n]\n$")
  end)

  it("asks for signatures behind the last thing that the user said", function()
    local m <close> = started()
    local call, answer = unsigned(said(m, user "signed")), { role = "model",
      parts = { { text = "done" } } }
    taken(gemini(m, user "signed", call, result(), answer, user "go on"))
    refused(gemini(m, user "signed", call, result()), "missing a thought_signature")
  end)

  it("refuses a signature that was changed or is no base64, and takes what clients say for none",
    function()
      local m <close> = started()
      local call = said(m, user "signed")
      local function with(signature)
        call.parts[1].thoughtSignature = signature
        return gemini(m, user "signed", call, result())
      end
      refused(with "b3RoZXI=", "Corrupted thought signature")
      refused(with "no base64!", "Base64 decoding failed")
      refused(with(5), "expected string")
      taken(with "skip_thought_signature_validator")
    end)
end)

describe("agenthost mock's signatures", function()
  it("are base64 where the script gives none", function()
    local m <close> = started()
    local signatures = {
      said(m, user "signed").parts[1].thoughtSignature,
      taken(m:ask(TARGET.anthropic, { model = "m", max_tokens = 9, messages = {
        { role = "user", content = "signed" } } }, ANTHROPIC)).content[1].signature,
      taken(m:ask(TARGET.responses, { model = "m", input = "signed",
        include = { "reasoning.encrypted_content" } })).output[1].encrypted_content,
    }
    assert.equal(3, #signatures)
    for _, signature in ipairs(signatures) do
      assert(#signature > 0 and #signature % 4 == 0 and signature:find "^[%w+/]+=?=?$", signature)
    end
  end)
end)

-- -- Anthropic --------------------------------------------------------------------------------

local TOOLS = { { name = "f", input_schema = { type = "object" } } }

local function messages(m, list, more, headers)
  local body = { model = "m", max_tokens = 4096, tools = TOOLS, messages = list,
    thinking = { type = "enabled", budget_tokens = 1024 } }
  for name, value in pairs(more or {}) do
    body[name] = value ~= "none" and value or nil
  end
  return m:ask(TARGET.anthropic, body, headers or ANTHROPIC)
end

local function says(role, ...)
  return { role = role, content = select("#", ...) > 0 and type((...)) == "table" and { ... }
    or (...) }
end

local function result_of(call)
  return { type = "tool_result", tool_use_id = call.id, content = "r" }
end

local function assistant(blocks)
  return { role = "assistant", content = blocks }
end

describe("agenthost mock, asked by Anthropic's clients", function()
  it("joins messages of one role: results of parallel calls may come one by one", function()
    local m <close> = started()
    local ask = says("user", "both")
    local blocks = taken(messages(m, { ask })).content
    local thinking, a, b = table.unpack(blocks)
    local function after(...)
      return messages(m, { ask, assistant(blocks), ... })
    end
    assert.equal("done", taken(after(says("user", result_of(a)), says("user", result_of(b))))
      .content[1].text)
    taken(after(says("user", result_of(b)), says("user", result_of(a)), says("user", "go on")))
    refused(after(says("user", result_of(a)), says("user", "go on")), b.id)
    refused(after(says("user", result_of(a)), says("user", "go"), says("user", result_of(b))),
      "must come before other content")
    refused(after(says("user", result_of(a)), says("assistant", "hm"),
      says("user", result_of(b))), "without `tool_result` blocks")
    taken(messages(m, { ask, assistant { thinking, a }, assistant { b },
      says("user", result_of(a), result_of(b)) }))
  end)

  it("refuses thoughts that were changed under their signature", function()
    local m <close> = started()
    local ask = says("user", "signed")
    local blocks = taken(messages(m, { ask })).content
    local results = says("user", result_of(blocks[2]))
    taken(messages(m, { ask, assistant(blocks), results }))
    blocks[1].thinking = "Hm!"
    refused(messages(m, { ask, assistant(blocks), results }), "cannot be modified")
    refused(messages(m, { says("user", "other"), assistant(blocks), results }),
      "cannot be modified")
    refused(messages(m, { ask, assistant(blocks), results, says("assistant", "done"),
      says("user", "go on") }), "Invalid `signature`")
    blocks[1].thinking, blocks[1].signature = "Hm.", "b3RoZXI="
    refused(messages(m, { ask, assistant(blocks), results }), "Invalid `signature`")
  end)

  it("wants back the thoughts of this conversation's last turn, and knows no others", function()
    local m <close> = started()
    local ask = says("user", "signed")
    local thinking, call = table.unpack(taken(messages(m, { ask })).content)
    local bare, results = assistant { call }, says("user", result_of(call))
    refused(messages(m, { ask, bare, results }), "Expected `thinking`")
    taken(messages(m, { ask, bare, results, says("assistant", "done"), says("user", "go on") }))
    taken(messages(m, { says("user", "another conversation"), bare, results }))
    thinking.signature = "c2lnbmVkIGVsc2V3aGVyZQ=="
    taken(messages(m, { says("user", "another conversation"), assistant { thinking, call },
      results }))
  end)

  it("has the same id of the request in the header and in a failure", function()
    local m <close> = started()
    local seen = {}
    local function same(answer, id)
      local said_id = answer.headers["request-id"]
      assert.truthy(said_id, "no header request-id")
      assert.is_nil(seen[said_id], "the id comes twice")
      seen[said_id] = id == nil or nil
      assert.equal(id or said_id, said_id)
      local body = events_of(answer.body)
      body = body[#body] or answer:json()
      if answer.status ~= 200 or body.type == "error" then
        assert.equal(said_id, body.request_id)
      end
    end
    same(messages(m, { says("user", "hello") }))
    same(messages(m, { says("user", "busy") }))
    same(messages(m, { says("user", "half") }, { stream = true }))
    same(messages(m, { says("robot", "busy") }))
    same(m:ask("/v1/messages", "{", ANTHROPIC))
    same(m:ask("/v1/files", nil, ANTHROPIC))
    same(m:ask("/v1/models", nil, ANTHROPIC))
    same(messages(m, { says("user", "named") }), "mine")
    same(messages(m, { says("user", "named_busy") }), "mine")
  end)

  it("tells no thoughts to who wants their signature alone, and takes that back", function()
    local m <close> = started()
    local thinking, ask = { type = "adaptive", display = "omitted" }, says("user", "signed")
    local blocks = taken(messages(m, { ask }, { thinking = thinking })).content
    assert.same({ "", true }, { blocks[1].thinking, #blocks[1].signature > 0 })
    taken(messages(m, { ask, assistant(blocks), says("user", result_of(blocks[2])) }))
    for _, event in ipairs(events_of(messages(m, { ask },
      { thinking = thinking, stream = true }).body)) do
      assert.not_equal("thinking_delta", (event.delta or {}).type)
    end
  end)

  it("takes what the service's own tools say, files, and thoughts between calls", function()
    local m <close> = started()
    taken(messages(m, { says("user", { type = "image", source = { type = "file",
      file_id = "file_1" } }), assistant { { type = "server_tool_use", id = "srvtoolu_1",
      name = "bash_code_execution", input = { command = "ls" } } }, says("user", "x") },
      { tools = { TOOLS[1], { type = "code_execution_20250825", name = "code_execution" } } }))
    local thinking = { type = "enabled", budget_tokens = 8000 }
    refused(messages(m, { says("user", "x") }, { thinking = thinking }), "must be greater than")
    taken(messages(m, { says("user", "x") }, { thinking = thinking }, {
      ["anthropic-version"] = "2023-06-01",
      ["anthropic-beta"] = "interleaved-thinking-2025-05-14" }))
  end)

  it("takes sets of tools, which have no name", function()
    local m <close> = started()
    taken(messages(m, { says("user", "x") }, { tools = { TOOLS[1],
      { type = "mcp_toolset", mcp_server_name = "s" } } }))
  end)
end)

describe("a thread of agenthost mock", function()
  local function create(m, list, more)
    more = more or {}
    more.thread = { type = "create" }
    return messages(m, list, more, THREADS)
  end

  -- Sends a request that continues: without system text and tools.
  local function go_on(m, id, list, more)
    more = more or {}
    more.thread = { type = "continue", previous_message_id = id }
    more.tools = more.tools or "none"
    return messages(m, list, more, THREADS)
  end

  local function code_of(answer, words, status)
    return refused(answer, words, status).details.error_code
  end

  it("goes on with what was said: results, tools and system", function()
    local m <close> = started()
    local first = taken(create(m, { says("user", "both") }, { system = "S" }))
    local results = says("user", result_of(first.content[2]), result_of(first.content[3]))
    local second = taken(go_on(m, first.id, { results }))
    assert.equal("done", second.content[1].text)
    local third = taken(go_on(m, second.id, { says("user", "call") }))
    assert.equal("f", third.content[1].name)
    refused(go_on(m, third.id, { says("user", "no result") }), "without `tool_result` blocks")
    local streamed = go_on(m, third.id, { says("user", result_of(third.content[1])) },
      { stream = true })
    local id = events_of(streamed.body)[1].message.id
    taken(go_on(m, id, { says("user", "hello") }))
    assert.is_true(m:log()[2].input > m:log()[1].input)
  end)

  it("is told from a request that cannot go on, in the service's words", function()
    local m <close> = started()
    local first = taken(create(m, { says("user", "hello") }, { system = "S" }))
    local again = { says("user", "again") }
    assert.equal("thread_not_found", code_of(go_on(m, "msg_other", again), "msg_other", 404))
    assert.equal("thread_fingerprint_mismatch",
      code_of(go_on(m, first.id, again, { model = "other" }), "`model`"))
    refused(go_on(m, first.id, again, { tools = TOOLS }), "tools")
    refused(go_on(m, first.id, again, { system = "S" }), "system")
    taken(go_on(m, first.id, again))
    assert.equal("thread_already_continued",
      code_of(go_on(m, first.id, again), "already been continued"))
    assert.equal("thread_unsupported_request",
      code_of(messages(m, again, { thread = { type = "create" } }), "Extra inputs"))
    refused(messages(m, again, { thread = { type = "begin" } }, THREADS), "'create' or 'continue'")
  end)

  it("stays where it was when a request fails or is cut off", function()
    local m <close> = started()
    local first = taken(create(m, { says("user", "hello") }))
    assert.equal(429, go_on(m, first.id, { says("user", "busy") }).status)
    assert.is_nil(go_on(m, first.id, { says("user", "gone") }))
    go_on(m, first.id, { says("user", "half") }, { stream = true })
    taken(go_on(m, first.id, { says("user", "hello") }))
  end)

  it("counts the marks of caching of each request for itself", function()
    local m <close> = started()
    local mark = { type = "ephemeral" }
    local function marked(text)
      return says("user", { type = "text", text = text, cache_control = mark })
    end
    local answer = taken(create(m, { marked "hello" }, { system = { { type = "text", text = "S",
      cache_control = mark } } }))
    for i = 1, 4 do
      answer = taken(go_on(m, answer.id, { marked("x" .. i) }))
    end
    assert.is_true(answer.usage.cache_read_input_tokens > 0)
  end)
end)

-- -- OpenAI -----------------------------------------------------------------------------------

local GRAMMAR = { syntax = "lark", definition = "start: /.+/" }

local function chat(m, list, more)
  local body = { model = "m", messages = list, tools = { { type = "custom",
    custom = { name = "f", description = "d", format = { type = "grammar", grammar = GRAMMAR } } },
    { type = "function", ["function"] = { name = "g" } } } }
  for name, value in pairs(more or {}) do
    body[name] = value
  end
  return m:ask(TARGET.openai, body)
end

describe("agenthost mock, asked by clients of Responses", function()
  it("refuses encrypted thoughts that were changed in this conversation", function()
    local m <close> = started()
    local tools = { { type = "function", name = "f", parameters = { type = "object" } } }
    local function ask(...)
      return m:ask(TARGET.responses, { model = "m", input = { ... }, tools = tools, store = false,
        include = { "reasoning.encrypted_content" } })
    end
    local first = says("user", "signed")
    local thoughts, call = table.unpack(taken(ask(first)).output)
    local output = { type = "function_call_output", call_id = call.call_id, output = "r" }
    taken(ask(first, thoughts, call, output))
    thoughts.encrypted_content = "b3RoZXI="
    local e = refused(ask(first, thoughts, call, output), "could not be verified")
    assert.equal("invalid_encrypted_content", e.code)
    taken(ask(says("user", "from elsewhere"), thoughts, call, output))
  end)

  it("calls a tool in the namespace that holds it, and wants the namespace back", function()
    local m <close> = started()
    local tools = { { type = "namespace", name = "mcp__shop", description = "d", tools = {
      { type = "function", name = "f", parameters = { type = "object" } } } } }
    local function ask(...)
      return m:ask(TARGET.responses, { model = "m", input = { ... }, tools = tools, store = false })
    end
    local first = says("user", "call")
    local call = taken(ask(first)).output[1]
    assert.same({ "f", "mcp__shop" }, { call.name, call.namespace })
    local output = { type = "function_call_output", call_id = call.call_id, output = "r" }
    taken(ask(first, call, output))
    call.namespace = nil
    refused(ask(first, call, output), "must be 'mcp__shop'")
  end)
end)

describe("agenthost mock, asked by clients of Responses with references", function()
  it("knows the items that it kept, and no others", function()
    local m <close> = started()
    local tools = { { type = "function", name = "f", parameters = { type = "object" } } }
    local function ask(store, ...)
      return m:ask(TARGET.responses, { model = "m", input = { ... }, tools = tools, store = store })
    end
    local function references(answer)
      return { type = "item_reference", id = answer.output[1].id },
        { type = "item_reference", id = answer.output[2].id },
        { type = "function_call_output", call_id = answer.output[2].call_id, output = "r" }
    end
    local first = says("user", "signed")
    local answer = taken(ask(true, first))
    assert.equal("done", taken(ask(true, first, references(answer))).output[1].content[1].text)
    refused(ask(true, first, references(taken(ask(false, first)))), "not found", 404)
  end)

  it("takes every kind of item and tool that there is", function()
    local m <close> = started()
    local input = { says("user", "x"), { type = "reasoning", summary = server.array {},
      encrypted_content = "b3RoZXI=" } }
    for _, kind in ipairs { "shell_call", "shell_call_output", "local_shell_call", "mcp_call",
      "mcp_list_tools", "apply_patch_call", "computer_call", "file_search_call",
      "code_interpreter_call", "image_generation_call", "compaction" } do
      input[#input + 1] = { type = kind, id = "x" }
    end
    taken(m:ask(TARGET.responses, { model = "m", input = input, tools = { { type = "computer" },
      { type = "web_search_2025_08_26" }, { type = "shell" } } }))
  end)
end)

describe("custom tools of agenthost mock", function()
  it("are called and answered in Chat Completions, whole and streamed", function()
    local m <close> = started()
    for text, input in pairs { custom = "print(1)", member = "print(2)" } do
      local ask = says("user", text)
      local message = taken(chat(m, { ask })).choices[1].message
      local call = message.tool_calls[1]
      assert.same({ "custom", { name = "f", input = input } }, { call.type, call.custom })
      local answer = chat(m, { ask, { role = "assistant", content = server.null,
        tool_calls = { call } }, { role = "tool", tool_call_id = call.id, content = "r" } })
      assert.equal("done", taken(answer).choices[1].message.content)

      local pieces, first = "", nil
      for _, event in ipairs(events_of(chat(m, { ask }, { stream = true }).body)) do
        local delta = event.choices[1].delta.tool_calls
        first = first or delta and delta[1]
        pieces = pieces .. (delta and delta[1].custom.input or "")
      end
      assert.same({ "custom", "f", input }, { first.type, first.custom.name, pieces })
    end
  end)

  it("are called and answered in Responses, whole and streamed", function()
    local m <close> = started()
    local tools = { { type = "custom", name = "f", format = { type = "grammar", syntax = "regex",
      definition = ".+" } } }
    local first = taken(m:ask(TARGET.responses, { model = "m", tools = tools, input = "custom" }))
    local call = first.output[1]
    assert.same({ "custom_tool_call", "f", "print(1)" }, { call.type, call.name, call.input })
    local output = { type = "custom_tool_call_output", call_id = call.call_id, output = "r" }
    local function say(body)
      body.model, body.tools = "m", tools
      return m:ask(TARGET.responses, body)
    end
    assert.equal("done", taken(say { previous_response_id = first.id, input = { output } })
      .output[1].content[1].text)
    taken(say { input = { says("user", "custom"), call, output } })
    refused(say { input = { says("user", "custom"), call } }, "No tool output found")
    refused(say { input = { output } }, "No tool call found")

    local pieces, done = "", nil
    for _, event in ipairs(events_of(say { input = "custom", stream = true }.body)) do
      if event.type == "response.custom_tool_call_input.delta" then
        pieces = pieces .. event.delta
      elseif event.type == "response.custom_tool_call_input.done" then
        done = event.input
      end
    end
    assert.same({ "print(1)", "print(1)" }, { pieces, done })
  end)

  it("tell a script what they were called with, as JSON", function()
    local m <close> = mock.start [[return function(request)
      local last = request.entries[#request.entries]
      if last.type ~= "tool_result" then
        return { calls = { { name = "f", arguments = "a \"b\"" } } }
      end
      local call = request.entries[2].tool_calls[1]
      return request.tools[1].parameters.required[1] .. " " .. call.name .. " " .. call.arguments
    end]]
    local ask = says("user", "x")
    local message = taken(chat(m, { ask })).choices[1].message
    local answer = chat(m, { ask, { role = "assistant", tool_calls = message.tool_calls },
      { role = "tool", tool_call_id = message.tool_calls[1].id, content = "r" } })
    assert.equal([[input f {"input":"a \"b\""}]], taken(answer).choices[1].message.content)
  end)

  it("are refused where they are wrong, and choices of tools that there are not", function()
    local m <close> = started()
    local list = { says("user", "x") }
    local function tool(custom)
      return chat(m, list, { tools = { { type = "custom", custom = custom } } })
    end
    refused(tool(server.null), "tools[0].custom")
    refused(tool { name = "a b" }, "tools[0].custom.name")
    refused(tool { name = "f", format = { type = "json" } }, "tools[0].custom.format.type")
    refused(tool { name = "f", format = { type = "grammar" } }, "tools[0].custom.format.grammar")
    refused(chat(m, { list[1], { role = "assistant", tool_calls = { { id = "c", type = "custom",
      custom = { name = "f" } } } } }), "tool_calls[0].custom.input")
    for name, kind in pairs { f = "custom", g = "function" } do
      taken(chat(m, list, { tool_choice = { type = kind, [kind] = { name = name } } }))
      refused(chat(m, list, { tool_choice = { type = kind, [kind] = { name = "h" } } }),
        "Tool choice 'h' not found")
      taken(chat(m, list, { tool_choice = { type = "allowed_tools", allowed_tools = {
        mode = "auto", tools = { { type = kind, [kind] = { name = name } } } } } }))
    end
  end)
end)

-- -- all --------------------------------------------------------------------------------------

describe("a path that agenthost mock does not have", function()
  -- Path, headers, the form of the answer, and a path that the answer must name.
  local ASKED = {
    { "/v1/embeddings", {}, "openai", "POST /responses," },
    { "/v1/embeddings", { Authorization = "Bearer x" }, "openai", "POST /chat/completions" },
    { "/", {}, "openai", "POST /chat/completions" },
    { "/v1/files", ANTHROPIC, "anthropic", "POST /v1/messages" },
    { "/v1/complete", { ["x-api-key"] = "x" }, "anthropic", "POST /v1/messages" },
    { "/v1/messages/batches", {}, "anthropic", "POST /v1/messages" },
    { "/v1beta/files", {}, "gemini", "GET /v1beta/models" },
    { "/upload/v1beta/files", { ["x-goog-api-key"] = "x" }, "gemini", "GET /v1beta/models" },
    { "/v1/models/m:embedContent", {}, "gemini", "GET /v1beta/models" },
    { "/v1/cachedContents", { ["x-goog-api-key"] = "x" }, "gemini", "GET /v1beta/models" },
    { "/api/embed", {}, "ollama", "POST /api/chat" },
  }

  it("is answered in the form of who asks", function()
    local m <close> = started()
    for _, asked in ipairs(ASKED) do
      local r = m:ask(asked[1], {}, asked[2])
      assert.equal(404, r.status, asked[1])
      local e = r:json().error
      has(type(e) == "table" and e.message or e, "it answers: ")
      has(r.body, asked[4])
      local forms = { openai = type(e) == "table" and e.type == "invalid_request_error" and "param",
        anthropic = r:json().type == "error" and e.type == "not_found_error" and "request_id",
        gemini = type(e) == "table" and e.status == "NOT_FOUND" and "code",
        ollama = type(e) == "string" and "error" }
      assert.truthy(forms[asked[3]], asked[1] .. ": " .. r.body)
    end
  end)

  it("is answered so with one format, too", function()
    local m <close> = mock.start('return { "a" }', "--format", "openai")
    local r = m:ask("/v1/messages", {}, ANTHROPIC)
    assert.equal("not_found_error", r:json().error.type)
    has(r.body, "POST /chat/completions")
  end)

  it("is not that of a model", function()
    local m <close> = started()
    assert.equal("a", taken(m:ask("/v1/models/a")).id)
    assert.equal("model", taken(m:ask("/v1/models/a", nil, ANTHROPIC)).type)
    assert.equal("models/a", taken(m:ask("/v1beta/models/a")).name)
  end)
end)

describe("the cache of agenthost mock", function()
  it("has nothing of a request that was not answered", function()
    local m <close> = started()
    local function cached(text)
      local answer = m:ask(TARGET.openai, { model = "m", messages = { says("system", "S"),
        says("user", "hello"), says("assistant", "a"), says("user", text) } })
      return answer and answer.status == 200 and answer:json().usage.prompt_tokens_details
        .cached_tokens
    end
    assert.is_false(cached "busy")
    assert.is_nil(cached "gone")
    assert.equal(0, cached "hello")
    assert.is_true(cached "hello" > 0)
    assert.is_false(cached "busy")
    cached "hello"
    for i, request in ipairs(m:log()) do
      assert.is_nil(request.cache_break, "request " .. i .. " broke the cache")
    end
  end)
end)
