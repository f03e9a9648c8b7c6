-- Answers that violate their provider's documentation, on every wire, whole and streamed: each is
-- an error that names the place, and never a good, an empty or a shortened answer. A generator
-- changes one member after the other; members that are not documented change nothing.
-- AGENTHOST_MUTANTS=all does so with all recordings, too (minutes); the default is a few members of
-- each.
local ahtest = require "ahtest"
local mutants = require "support.mutants"
local recordings = require "support.recordings"
local server = require "support.server"

local ALL = os.getenv "AGENTHOST_MUTANTS" == "all"
local MOST = ALL and math.huge or 60 -- mutants of one recording

local encode, null, array = server.encode, server.null, server.array

local function merge(...)
  local all = {}
  for _, t in ipairs { ... } do
    for k, v in pairs(t) do
      all[k] = v
    end
  end
  return all
end

-- Returns promises moved below another path.
local function under(path, promises)
  local all = {}
  for p, kinds in pairs(promises) do
    all[p == "" and path or p:sub(1, 1) == ":" and path .. p or path .. "." .. p] = kinds
  end
  return all
end

-- -- the wires ------------------------------------------------------------------------------

local BLOCK = {
  [""] = "object", ["type"] = "string",
  [":text.text"] = "string",
  [":tool_use.id"] = "name", [":tool_use.name"] = "name", [":tool_use.input"] = "object",
  [":thinking.thinking"] = "string", [":thinking.signature"] = "string null absent",
  [":redacted_thinking.data"] = "string",
  [":server_tool_use.id"] = "name", [":server_tool_use.name"] = "name",
  [":server_tool_use.input"] = "object null absent",
  [":tool_search_tool_result.content"] = "object",
  [":tool_search_tool_result.content.tool_references"] = "array absent",
  [":tool_search_tool_result.content.tool_references[]"] = "object",
  [":tool_search_tool_result.content.tool_references[].tool_name"] = "name",
}
local STOP = { stop_reason = "string null absent", stop_details = "object null absent",
  ["stop_details.explanation"] = "string null absent" }

local anthropic = {
  provider = "anthropic",
  whole = merge({ type = "string", role = "string absent", content = "array" },
    under("content[]", BLOCK), STOP),
  piece = merge({
    type = "string",
    [":message_start.message"] = "object", [":message_start.message.content"] = "array absent",
    [":message_start.message.role"] = "string absent",
    [":content_block_start.index"] = "count", [":content_block_delta.index"] = "count",
    [":content_block_stop.index"] = "count",
    [":content_block_delta.delta"] = "object", [":content_block_delta.delta.type"] = "string",
    [":content_block_delta.delta:text_delta.text"] = "string",
    [":content_block_delta.delta:input_json_delta.partial_json"] = "string",
    [":content_block_delta.delta:thinking_delta.thinking"] = "string",
    [":content_block_delta.delta:signature_delta.signature"] = "string",
    [":message_delta.delta"] = "object",
  }, under(":content_block_start.content_block", merge(BLOCK,
    { [":tool_use.input"] = "object null absent" })), under(":message_delta.delta", STOP)),
}

local ARGUMENTS = "string object null absent"
local OPENAI = { role = "string null absent", refusal = "string null absent",
  content = "string array null absent", ["content[]"] = "object",
  ["content[].text"] = "string absent", ["content[]:text.text"] = "string",
  ["content[].type"] = "string absent", tool_calls = "array null absent",
  ["tool_calls[]"] = "object", ["tool_calls[].id"] = "string count null absent",
  ["tool_calls[].index"] = "count null absent", ["tool_calls[].type"] = "string null absent",
  ["tool_calls[].function.arguments"] = ARGUMENTS,
  reasoning_content = "string null absent", reasoning_details = "array null absent",
  thinking_blocks = "array null absent", ["reasoning_details[]"] = "object",
  ["thinking_blocks[]"] = "object", ["reasoning_details[].text"] = "string null absent",
  ["reasoning_details[].summary"] = "string null absent",
  ["reasoning_details[].thinking"] = "string null absent",
  ["thinking_blocks[].thinking"] = "string null absent",
  ["thinking_blocks[].text"] = "string null absent",
  ["thinking_blocks[].summary"] = "string null absent" }
local CHOICE = { ["choices[]"] = "object", ["choices[].index"] = "count null absent",
  ["choices[].finish_reason"] = "string null absent",
  ["choices[].native_finish_reason"] = "string null absent" }

local openai = {
  provider = "openai",
  whole = merge({ choices = "array", ["choices[].message"] = "object" }, CHOICE,
    under("choices[].message", merge(OPENAI, { ["tool_calls[].function"] = "object",
      ["tool_calls[].function.name"] = "string" }))),
  piece = merge({ choices = "array null absent", ["choices[].delta"] = "object null absent",
    ["choices[].delta.reasoning"] = "string null absent" },
    CHOICE, under("choices[].delta", merge(OPENAI,
      { ["tool_calls[].function"] = "object null absent",
        ["tool_calls[].function.name"] = "string null absent" }))),
}

local ITEM = { [""] = "object", type = "string", [":message.content"] = "array",
  [":message.role"] = "string absent", [":message.phase"] = "string null absent",
  [":message.content[]"] = "object", [":message.content[].type"] = "string",
  [":message.content[]:output_text.text"] = "string",
  [":message.content[]:refusal.refusal"] = "string",
  [":function_call.call_id"] = "name", [":function_call.name"] = "name",
  [":function_call.arguments"] = "string object",
  [":function_call.namespace"] = "string null absent",
  [":reasoning.encrypted_content"] = "string null absent",
  [":tool_search_call.arguments"] = "string object absent",
  [":tool_search_call.call_id"] = "string null absent",
  [":tool_search_call.execution"] = "string null absent",
  [":tool_search_output.tools"] = "array", [":tool_search_output.tools[]"] = "object",
  [":tool_search_output.tools[].name"] = "name" }
local ANSWER = { output = "array", status = "string null absent",
  incomplete_details = "object null absent",
  ["incomplete_details.reason"] = "string null absent" }
local LAST = under("response", merge(ANSWER, under("output[]", ITEM),
  { [""] = "object", output = "array absent" }))

local responses = {
  provider = "openai",
  model = "responses/test",
  whole = merge(ANSWER, under("output[]", ITEM)),
  piece = merge({
    type = "string",
    [":response.output_text.delta.delta"] = "string", [":response.refusal.delta.delta"] = "string",
    [":response.function_call_arguments.delta.delta"] = "string",
    [":response.reasoning_summary_text.delta.delta"] = "string",
    [":response.reasoning_text.delta.delta"] = "string",
    [":response.output_item.added.item"] = "object",
    [":response.output_item.added.output_index"] = "count absent",
    [":response.output_item.done.output_index"] = "count absent",
  }, under(":response.output_item.done.item", ITEM), under(":response.completed", LAST),
    under(":response.incomplete", LAST), under(":response.failed", LAST)),
}

local GEMINI = { candidates = "array absent", ["candidates[]"] = "object",
  ["candidates[].index"] = "count null absent", ["candidates[].content"] = "object absent",
  ["candidates[].finishReason"] = "string null absent",
  ["candidates[].content.role"] = "string null absent",
  ["candidates[].content.parts"] = "array absent", ["candidates[].content.parts[]"] = "object",
  ["candidates[].content.parts[].text"] = "string absent",
  ["candidates[].content.parts[].thought"] = "boolean null absent",
  ["candidates[].content.parts[].thoughtSignature"] = "string absent",
  ["candidates[].content.parts[].functionCall"] = "object absent",
  ["candidates[].content.parts[].functionCall.name"] = "name",
  ["candidates[].content.parts[].functionCall.args"] = "object null absent",
  ["candidates[].content.parts[].functionCall.id"] = "string null absent",
  promptFeedback = "object null absent", ["promptFeedback.blockReason"] = "string null absent" }
local gemini = { provider = "gemini", whole = GEMINI, piece = GEMINI }

local OLLAMA = { message = "object absent", done = "boolean absent",
  done_reason = "string null absent", ["message.role"] = "string absent",
  ["message.content"] = "string absent", ["message.thinking"] = "string null absent",
  ["message.tool_calls"] = "array null absent", ["message.tool_calls[]"] = "object",
  ["message.tool_calls[].id"] = "string null absent",
  ["message.tool_calls[].function"] = "object",
  ["message.tool_calls[].function.name"] = "name",
  ["message.tool_calls[].function.arguments"] = "object string null absent" }
local ollama = { provider = "ollama", whole = OLLAMA, piece = OLLAMA, lines = true }

-- -- reading --------------------------------------------------------------------------------

local function body_of(wire, docs)
  local list = {}
  for i, doc in ipairs(docs) do
    local text = type(doc) == "string" and doc or encode(doc)
    list[i] = wire.lines and text .. "\n" or "data: " .. text .. "\n\n"
  end
  return table.concat(list)
end

local function read(wire, body, streamed)
  local kind = not streamed and "application/json"
    or wire.lines and "application/x-ndjson" or "text/event-stream"
  return ahtest.wire_read { provider = wire.provider, model = wire.model,
    base_url = "http://x/v1", key = "unused-key", stream = streamed, status = 200,
    headers = { ["content-type"] = kind }, body = body }
end

-- Returns the answer as a run sees it, without tokens and opaque parts.
local function reply(got)
  if not got.entry then
    return "error: " .. got.error.message
  end
  local entry, parts = server.decode(got.entry), {}
  for _, part in ipairs(entry.content) do
    parts[#parts + 1] = part.type ~= "opaque" and part.type .. " " .. part.text or nil
  end
  return encode { parts = array(parts), calls = entry.tool_calls or null, stop = entry.stop,
    text = got.text }
end

-- Returns true if the message names the member or the item at the end of the path.
local function names_place(message, path)
  local name = path:match "([%w_]+)$" or path:match "([%w_]+)%[%]$"
  return message:find(name or "answer", 1, true) ~= nil
end

-- Paths whose values are the answer's own: any JSON is valid there, and an `error` is a failure.
local OPEN = { "input%.", "args%.", "arguments%.", "input%[", "^error", "%.error" }

local function is_open(path)
  for _, pattern in ipairs(OPEN) do
    if path:find(pattern) then
      return true
    end
  end
  return false
end

-- Asserts the right outcome of one mutant.
local function judge(promises, wire, mutant, got, before)
  local where = ("%s: %s is %s"):format(wire.model or wire.provider, mutant.path, mutant.how)
  if not mutants.legal(promises, mutant.doc) then
    assert.is_table(got.error, where .. ", and gave " .. reply(got))
    assert.equal("provider", got.error.code, where)
    assert.is_true(names_place(got.error.message, mutant.path),
      where .. ", and was told as " .. got.error.message)
  elseif not promises[mutant.path] and not is_open(mutant.path) then
    assert.equal(before, reply(got), where)
  end
end

local function check_whole(wire, doc, most)
  local before, n = reply(read(wire, encode(doc))), 0
  assert.falsy(before:find "^error", before)
  assert.is_true(mutants.legal(wire.whole, doc), "the answer itself: " .. encode(doc))
  for mutant in mutants.each(wire.whole, doc) do
    n = n + 1
    if n > most then
      return n
    end
    judge(wire.whole, wire, mutant, read(wire, encode(mutant.doc)), before)
  end
  return n
end

local function check_stream(wire, docs, most)
  local before, n = reply(read(wire, body_of(wire, docs), true)), 0
  assert.falsy(before:find "^error", before)
  for i, doc in ipairs(docs) do
    local all = table.move(docs, 1, #docs, 1, {})
    for mutant in mutants.each(wire.piece, type(doc) == "table" and doc or {}) do
      n = n + 1
      if n > most then
        return n
      end
      all[i] = mutant.doc
      judge(wire.piece, wire, mutant, read(wire, body_of(wire, all), true), before)
    end
  end
  return n
end

-- -- answers --------------------------------------------------------------------------------

local function event(type, fields)
  return merge({ type = type }, fields)
end

local function block(i, start, ...)
  local list = { event("content_block_start", { index = i, content_block = start }) }
  for _, delta in ipairs { ... } do
    list[#list + 1] = event("content_block_delta", { index = i, delta = delta })
  end
  list[#list + 1] = event("content_block_stop", { index = i })
  return list
end

local function flat(...)
  local all = {}
  for _, list in ipairs { ... } do
    table.move(list, 1, #list, #all + 1, all)
  end
  return all
end

local function anthropic_message(content, reason)
  return { id = "m", type = "message", role = "assistant", model = "x", content = array(content),
    stop_reason = reason or null, usage = { input_tokens = 1, output_tokens = 1 } }
end

local function anthropic_stream(reason, ...)
  return flat({ event("message_start", { message = anthropic_message {} }), event "ping" },
    flat(...), { event("message_delta", { delta = { stop_reason = reason },
      usage = { output_tokens = 1 } }), event "message_stop" })
end

local THOUGHTS = { type = "thinking", thinking = "hm", signature = "s" }
local TEXT, USE = { type = "text", text = "yes" },
  { type = "tool_use", id = "t1", name = "f", input = { x = 1 } }

local A_STREAM = anthropic_stream("tool_use", flat(
  block(0, { type = "thinking", thinking = "" }, { type = "thinking_delta", thinking = "hm" },
    { type = "signature_delta", signature = "s" }),
  block(1, { type = "text", text = "" }, { type = "text_delta", text = "ye" },
    { type = "text_delta", text = "s" }),
  block(2, { type = "tool_use", id = "t1", name = "f", input = {} },
    { type = "input_json_delta", partial_json = '{"x"' },
    { type = "input_json_delta", partial_json = ":1}" })))

local function chat(message, finish)
  return { id = "c", object = "chat.completion", model = "x",
    choices = array { { index = 0, message = message, finish_reason = finish, logprobs = null } },
    usage = { prompt_tokens = 1, completion_tokens = 1 } }
end

local function chunk(delta, finish)
  return { id = "c", object = "chat.completion.chunk", model = "x",
    choices = array { { index = 0, delta = delta, finish_reason = finish or null } } }
end

local function raw_call(arguments, extra)
  return merge({ id = "c1", type = "function",
    ["function"] = { name = "f", arguments = arguments } }, extra)
end

local O_STREAM = {
  chunk { role = "assistant", content = "" }, chunk { content = "ye" }, chunk { content = "s" },
  chunk { tool_calls = array { raw_call("", { index = 0 }) } },
  chunk { tool_calls = array { { index = 0, ["function"] = { arguments = '{"x":1}' } } } },
  chunk({}, "tool_calls"), { id = "c", choices = array {}, usage = { prompt_tokens = 1 } },
}

local MESSAGE_ITEM = { type = "message", id = "i1", role = "assistant",
  content = array { { type = "output_text", text = "yes", annotations = array {} } } }
local CALL_ITEM = { type = "function_call", id = "i2", call_id = "c1", name = "f",
  arguments = '{"x":1}' }

local function response(items, status)
  return { id = "r", object = "response", status = status or "completed",
    output = array(items), error = null, incomplete_details = null }
end

local R_STREAM = {
  event("response.created", { response = response({}, "in_progress") }),
  event("response.output_item.added", { output_index = 0, item = MESSAGE_ITEM }),
  event("response.output_text.delta", { output_index = 0, delta = "ye" }),
  event("response.output_text.delta", { output_index = 0, delta = "s" }),
  event("response.output_item.done", { output_index = 0, item = MESSAGE_ITEM }),
  event("response.output_item.added", { output_index = 1, item = CALL_ITEM }),
  event("response.function_call_arguments.delta", { output_index = 1, delta = '{"x":1}' }),
  event("response.output_item.done", { output_index = 1, item = CALL_ITEM }),
  event("response.completed", { response = response { MESSAGE_ITEM, CALL_ITEM } }),
}

local function piece(parts, finish)
  return { candidates = array { { index = 0, content = { role = "model", parts = array(parts) },
    finishReason = finish } }, usageMetadata = { promptTokenCount = 1 } }
end

local function line(message, done)
  return { model = "x", message = merge({ role = "assistant", content = "" }, message),
    done = done or false, done_reason = done and "stop" or nil, eval_count = done and 3 or nil }
end

local G_CALL = { functionCall = { name = "f", args = { x = 1 } } }
local L_CALL = { ["function"] = { name = "f", arguments = { x = 1 } } }

local WHOLE = {
  { anthropic, anthropic_message({ THOUGHTS, TEXT, USE }, "tool_use") },
  { anthropic, anthropic_message({ TEXT }, "end_turn") },
  { openai, chat({ role = "assistant", content = "yes", refusal = null }, "stop") },
  { openai, chat({ role = "assistant", content = null,
    tool_calls = array { raw_call '{"x":1}' } }, "tool_calls") },
  { openai, chat({ role = "assistant", content = array { TEXT } }, "stop") },
  { responses, response { MESSAGE_ITEM, CALL_ITEM } },
  { gemini, piece({ { text = "yes" }, G_CALL }, "STOP") },
  { ollama, line({ content = "yes", tool_calls = array { L_CALL } }, true) },
}
local STREAMED = {
  { anthropic, A_STREAM }, { openai, O_STREAM }, { responses, R_STREAM },
  { gemini, { piece { { text = "ye" } }, piece({ { text = "s" }, G_CALL }, "STOP") } },
  { ollama, { line { content = "ye" }, line { content = "s", tool_calls = array { L_CALL } },
    line({}, true) } },
}

local function error_of(wire, body, streamed)
  if type(body) == "table" then
    body = (streamed and body_of or function(_, doc)
      return encode(doc)
    end)(wire, body)
  end
  local got = read(wire, body, streamed)
  assert.is_table(got.error, "a malformed answer gave " .. reply(got))
  return got.error
end

local function refuses(wire, body, said, streamed)
  local err = error_of(wire, body, streamed)
  assert.equal("provider", err.code, err.message)
  assert.truthy(err.message:find(said, 1, true), err.message)
end

describe("an answer with a member of a wrong type", function()
  it("is an error that names the place, in a whole answer of each wire", function()
    for _, case in ipairs(WHOLE) do
      assert.is_true(check_whole(case[1], case[2], math.huge) > 30)
    end
  end)

  it("is an error that names the place, in each event of each wire", function()
    for _, case in ipairs(STREAMED) do
      assert.is_true(check_stream(case[1], case[2], math.huge) > 30)
    end
  end)

  it("is tried again as any answer that cannot be read", function()
    assert.is_true(error_of(anthropic, anthropic_message(null, "end_turn")).retryable)
    assert.is_true(error_of(openai, { chunk { content = {} } }, true).retryable)
  end)
end)

describe("the recordings, with one member changed,", function()
  local WIRES = { ["anthropic"] = anthropic, ["openai-chat"] = openai, ["gemini"] = gemini,
    ["openai-responses"] = responses, ["ollama"] = ollama }

  local function is_answer(wire, x)
    return x.status == 200 and (not x.request or not x.request.url:find "count")
      and not reply(read(wire, x.body, x.streamed)):find "^error"
  end

  local function documents(wire, x)
    local docs = {}
    if wire.lines then
      for text in x.body:gmatch "[^\n]+" do
        docs[#docs + 1] = server.decode(text)
      end
      return docs
    end
    for doc in recordings.events(x.body) do
      docs[#docs + 1] = doc
    end
    if x.body:find("data: [DONE]", 1, true) then
      docs[#docs + 1] = "[DONE]"
    end
    return docs
  end

  for folder, wire in pairs(WIRES) do
    it("give an error or the same answer: " .. folder, function()
      local n, list = 0, recordings.exchanges(folder)
      if #list == 0 then
        return pending "../shared/wire is not here"
      end
      for _, x in ipairs(list) do
        x.streamed = (x.headers["content-type"] or ""):find "event%-stream" ~= nil
          or (x.headers["content-type"] or ""):find "ndjson" ~= nil
        if is_answer(wire, x) and x.body:sub(1, 1) ~= "[" then
          n = n + (x.streamed and check_stream(wire, documents(wire, x), MOST)
            or check_whole(wire, server.decode(x.body), MOST))
        end
      end
      assert.is_true(n > 100, folder .. ": " .. n)
    end)
  end
end)

describe("an answer that is malformed as a whole", function()
  local tool_use = { { type = "tool_use", id = "t", name = "f", input = {} } }

  it("lacks what it must have", function()
    local body = anthropic_message({ TEXT }, "end_turn")
    body.content = nil
    refuses(anthropic, body, "content must be an array, found nothing")
    refuses(anthropic, "", "empty")
    refuses(openai, chat({ role = "assistant", content = null }, "stop"), "message.content")
    refuses(openai, chat({ role = "assistant" }, "stop"), "message.content")
    refuses(openai, chat({}, "stop"), "message.content")
    refuses(openai, { choices = array { null } }, "choices[0] must be an object, found null")
    refuses(openai, { choices = array { {} } },
      "choices[0].message must be an object, found nothing")
    refuses(responses, { status = "completed" }, "output must be an array, found nothing")
    refuses(gemini, { candidates = array { { finishReason = "STOP" } } }, "content.parts")
    refuses(gemini, piece({ { thought = true } }, "STOP"), "parts[0] holds neither text nor a call")
    refuses(ollama, { message = { role = "assistant" }, done = true }, "message.content")
    refuses(ollama, line({ content = "half" }), "done must be true")
  end)

  it("may be empty where its provider says so", function()
    assert.equal("", read(anthropic, encode(anthropic_message({}, "end_turn"))).text)
    assert.truthy(read(anthropic, body_of(anthropic, anthropic_stream "end_turn"), true).entry)
    assert.truthy(read(openai, encode(chat({ content = "" }, "stop"))).entry)
    assert.truthy(read(openai, encode(chat({ content = array {} }, "stop"))).entry)
    assert.truthy(read(openai, encode(chat({ content = null }, "length"))).entry)
    assert.truthy(read(openai, encode(chat({ content = null, refusal = "no" }, "stop"))).entry)
    assert.truthy(read(responses, encode(response {})).entry)
    assert.truthy(read(gemini, encode(piece({}, "STOP"))).entry)
    assert.truthy(read(ollama, encode(line({}, true))).entry)
  end)

  it("says that it ends with calls, and has none", function()
    refuses(anthropic, anthropic_message({}, "tool_use"),
      "stop_reason is 'tool_use', and it holds no call")
    refuses(anthropic, anthropic_stream "tool_use", "holds no call", true)
    refuses(openai, chat({ content = "x" }, "tool_calls"), "finish_reason is 'tool_calls'")
    refuses(openai, chat({ content = null }, "function_call"), "holds no call")
    refuses(openai, { chunk { content = "x" }, chunk({}, "tool_calls") }, "holds no call", true)
  end)

  it("has calls that name no tool", function()
    local no_name = array { { id = "a", type = "function", ["function"] = { arguments = "{}" } } }
    refuses(openai, chat({ tool_calls = no_name }, "tool_calls"), "function.name")
    refuses(openai, { chunk { tool_calls = no_name }, chunk({}, "tool_calls") },
      "call 1 names no tool", true)
  end)

  it("has two choices that are both the first", function()
    local body = chat({ content = "a" }, "stop")
    body.choices[2] = { index = 0, message = { content = "b" }, finish_reason = "stop" }
    refuses(openai, body, "choices[1].index is 0 a second time")
    body.choices[1].index, body.choices[2].index = nil, nil
    assert.equal("a", read(openai, encode(body)).text, "without numbers the first counts")
  end)

  it("has deltas for blocks that are not open", function()
    local function stream_of(...)
      return anthropic_stream("end_turn", { ... })
    end
    local text = { type = "text_delta", text = "lost" }
    local delta = event("content_block_delta", { index = 0, delta = text })
    local start = event("content_block_start", { index = 0, content_block = TEXT })
    local stop = event("content_block_stop", { index = 0 })
    refuses(anthropic, stream_of(delta), "index is 0, and no such block is open", true)
    refuses(anthropic, stream_of(start, stop, delta), "no such block is open", true)
    refuses(anthropic, stream_of(start, stop, stop), "no such block is open", true)
    refuses(anthropic, stream_of(start, event("content_block_delta", { index = 1, delta = text })),
      "index is 1, and no such block is open", true)
    refuses(anthropic, stream_of(start, event("content_block_delta", { index = -1, delta = text })),
      "index must be an integer of 0 or more", true)
    refuses(anthropic, stream_of(event("content_block_start", { index = 0,
      content_block = tool_use[1] }), delta), "delta.type is 'text_delta'", true)
    refuses(anthropic, stream_of(start, event("content_block_delta", { index = 0,
      delta = { type = "input_json_delta", partial_json = "{}" } })), "input_json_delta", true)
    refuses(anthropic, { start, stop }, "before the message", true)
    refuses(anthropic, { event("message_start", { message = anthropic_message { TEXT } }),
      event "message_stop" }, "message.content must be empty", true)
  end)

  it("loses no block that has no end", function()
    local opaque = flat(block(0, THOUGHTS))
    opaque[#opaque] = nil
    refuses(anthropic, anthropic_stream("end_turn", opaque), "within a block", true)
    assert.truthy(read(anthropic, body_of(anthropic, anthropic_stream("max_tokens", opaque)), true)
      .entry, "but where it was cut for its length")
    local open = table.move(R_STREAM, 1, #R_STREAM, 1, {})
    table.remove(open, 8)
    refuses(responses, open, "within an item of its output", true)
  end)

  it("is of the other form", function()
    for _, wire in ipairs { anthropic, openai, responses, gemini, ollama } do
      for _, body in ipairs { "null", '"x"', "5", "[]", "[1]", '{"a":1', '{"a":1,"a":2}', "{}" } do
        local err = error_of(wire, body)
        assert.truthy(err.code == "provider" or err.code == "http", body)
        assert.is_true(err.retryable, body)
      end
    end
    local text = encode(anthropic_message({ TEXT }, "end_turn"))
    refuses(anthropic, "[" .. text .. "]", "expected a JSON object")
    refuses(openai, "[" .. encode(chat({ content = "x" }, "stop")) .. "]", "expected a JSON object")
    refuses(anthropic, encode(A_STREAM[1]), "type must be 'message'")
    assert.equal("http", error_of(anthropic, { server.decode(text) }, true).code)
    refuses(gemini, encode(array { piece { { text = "x" } }, 5 }), "expected a JSON object")
    assert.equal("http", error_of(gemini, encode(array { piece { { text = "x" } } })).code)
  end)

  it("is spoken by somebody else", function()
    refuses(openai, chat({ role = "user", content = "x" }, "stop"), "role must be 'assistant'")
    local body = anthropic_message({ TEXT }, "end_turn")
    body.role = "user"
    refuses(anthropic, body, "role must be 'assistant', found another word")
  end)
end)

describe("a character cut in two by a server", function()
  local HIGH, LOW = "\\ud83d", "\\ude00" -- 😀

  -- The streams of each wire with these pieces in one string, and the string's place in the answer.
  local function raw_pieces(list, form)
    local docs = {}
    for i, text in ipairs(list) do
      docs[i] = (form:gsub("@", (text:gsub("%%", "%%%%"))))
    end
    return docs
  end

  local function a_delta(kind, member)
    return ('{"type":"content_block_delta","index":0,"delta":{"type":"%s","%s":"@"}}'):format(kind,
      member)
  end

  local function a_stream(start, form, list)
    return anthropic_stream(start.type == "tool_use" and "tool_use" or "end_turn", { event(
      "content_block_start", { index = 0, content_block = start }) }, raw_pieces(list, form),
      { event("content_block_stop", { index = 0 }) })
  end

  local function o_stream(form, list, finish, first)
    return flat(first or {}, raw_pieces(list,
      '{"choices":[{"index":0,"delta":{' .. form .. "}}]}"), { chunk({}, finish or "stop") })
  end

  local NO_TEXT = { type = "text", text = "" }
  local O_ARGS = '"tool_calls":[{"index":0,"function":{"arguments":"@"}}]'
  local FIRST = { chunk { tool_calls = array { raw_call("", { index = 0 }) } } }
  local MESSAGE = event("response.completed", { response = response { MESSAGE_ITEM } })

  local FORMS = {
    { anthropic, function(l) return a_stream(NO_TEXT, a_delta("text_delta", "text"), l) end },
    { anthropic, function(l)
      return a_stream({ type = "thinking", thinking = "" },
        a_delta("thinking_delta", "thinking"), l)
    end },
    { anthropic, function(l)
      return a_stream({ type = "tool_use", id = "a", name = "f", input = {} },
        a_delta("input_json_delta", "partial_json"), l)
    end },
    { openai, function(l) return o_stream('"content":"@"', l) end },
    { openai, function(l)
      return o_stream('"content":[{"type":"text","text":"@"}]', l)
    end },
    { openai, function(l) return o_stream('"refusal":"@"', l) end },
    { openai, function(l) return o_stream(O_ARGS, l, "tool_calls", FIRST) end },
    { responses, function(l)
      return flat(raw_pieces(l, '{"type":"response.output_text.delta","delta":"@"}'), { MESSAGE })
    end },
    { gemini, function(l)
      return flat(raw_pieces(l, '{"candidates":[{"content":{"parts":[{"text":"@"}]}}]}'),
        { piece({}, "STOP") })
    end },
    { ollama, function(l)
      return flat(raw_pieces(l, '{"message":{"role":"assistant","content":"@"},"done":false}'),
        { line({}, true) })
    end },
    { { provider = "deepseek" }, function(l)
      return flat(FIRST, o_stream('"reasoning_content":"@"', l, "tool_calls"))
    end },
  }

  local function said(form, list, step)
    local body = body_of(form[1], form[2](list))
    return ahtest.wire_read { provider = form[1].provider, model = form[1].model,
      base_url = "http://x/v1", key = "unused-key", stream = true, step = step, status = 200,
      headers = { ["content-type"] = form[1].lines and "application/x-ndjson"
        or "text/event-stream" }, body = body }
  end

  it("is whole before anyone sees it, on every wire, in every string that is streamed", function()
    for i, form in ipairs(FORMS) do
      local whole = said(form, { "x" .. HIGH .. LOW .. "y" })
      assert.is_nil(whole.error and whole.error.message, i)
      for _, list in ipairs { { "x" .. HIGH, LOW .. "y" }, { "x", HIGH, LOW, "y" },
        { "x" .. HIGH, "", LOW .. "y" }, { "x" .. HIGH, LOW .. "y", "" } } do
        for _, step in ipairs { 1, 7, 100000 } do
          local got = said(form, list, step)
          assert.is_nil(got.error and got.error.message, i)
          assert.equal(reply(whole), reply(got), i)
          assert.equal(whole.entry, got.entry, i)
          assert.truthy(utf8.len(got.text), i)
        end
      end
    end
  end)

  it("is an error where the other half never comes", function()
    for i, form in ipairs(FORMS) do
      for _, list in ipairs { { "x" .. HIGH }, { LOW .. "y" }, { "x" .. HIGH, "y" },
        { "x" .. HIGH, HIGH, LOW }, { "x", LOW }, { HIGH .. "x", LOW }, { LOW .. HIGH } } do
        local got = said(form, list)
        assert.is_table(got.error, i .. " gave " .. tostring(got.entry))
        assert.equal("provider", got.error.code, got.error.message)
        assert.truthy(got.error.message:find("surrogate", 1, true), got.error.message)
        assert.truthy(utf8.len(got.text), i)
      end
    end
  end)

  it("is an error in what is no piece, and in a whole answer", function()
    for _, text in ipairs {
      '{"id":"' .. HIGH .. '","choices":[{"index":0,"delta":{"content":"x"}}]}',
      '{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"' .. HIGH
        .. '","function":{"name":"f","arguments":"{}"}}]}}]}',
      '{"error":{"message":"' .. HIGH .. '"}}',
      '{"' .. HIGH .. '":1}',
    } do
      refuses(openai, { text, chunk({}, "stop") }, "surrogate", true)
    end
    refuses(openai, (encode(chat({ content = "@" }, "stop")):gsub("@", HIGH)), "surrogate")
  end)
end)
