--- A full context in the messages of each wire: code `context_full`, with the window and the used
-- tokens if the message has them; and similar messages of other errors. The messages are from
-- recordings (../shared/wire), from the servers' sources and docs, and from users' reports.
local ah = require "agenthost"
local ahtest = require "ahtest"
local server = require "support.server"

local encode = server.encode

local function read(provider, status, body, type)
  local r = ahtest.wire_read {
    provider = provider == "responses" and "openai" or provider,
    model = provider == "responses" and "responses/m" or "m", base_url = "http://x",
      status = status,
    headers = { ["content-type"] = type or "application/json" }, body = body,
  }
  local e = assert(r.error, body)
  local details = e.details ~= "" and server.decode(e.details) or {}
  return e, details
end

local MAX = "This model's maximum context length is "

-- message, window, used, and other members of the error (`at`: its status)
local FULL = {
  openai = {
    { "Your input exceeds the context window of this model. Please adjust your input and try "
      .. "again.",
      code = "context_length_exceeded" },
    { MAX .. "4097 tokens. However, your messages resulted in 5018 tokens. Please reduce the "
      .. "length "
      .. "of the messages.", 4097, 5018, code = "context_length_exceeded" },
    { MAX .. "1048565 tokens. However, you requested 1250025 tokens (1250025 in the messages, 0 in "
      .. "the completion). Please reduce the length of the messages or completion.", 1048565,
        1250025,
      code = "invalid_request_error" },
    { MAX .. "4097 tokens, however you requested 4116 tokens (3860 in your prompt; 256 for the "
      .. "completion). Please reduce your prompt; or completion length.", 4097, 3860 },
    { "This model’s maximum context length is 131072 tokens. However, you requested 671051 tokens "
      .. "(670951 in the messages, 100 in the completion).", 131072, 670951 },
    { MAX .. "32768 tokens. However, your request has 66511 input tokens. Please reduce the "
      .. "length of "
      .. "the input messages.", 32768, 66511 },
    { "'max_tokens' or 'max_completion_tokens' is too large: 4096. " .. MAX
      .. "8192 tokens and your "
      .. "request has 6000 input tokens (4096 > 8192 - 6000).", 8192, 6000 },
    { "You passed 11193 input tokens and requested 0 output tokens. However, the model's context "
      .. "length "
      .. "is only 8192 tokens, resulting in a maximum input length of 8192 tokens.", 8192, 11193 },
    { "The decoder prompt (length 9001) is longer than the maximum model length of 8192.", 8192,
      9001 },
    { "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 428548 "
      .. "tokens. Please reduce the length of the messages.", 272000, 428548 },
    { "This endpoint's maximum context length is 200000 tokens. However, you requested about "
      .. "2500021 "
      .. "tokens (2500021 of text input). Please reduce the length of either one, or use the "
      .. "context-compression plugin.", 200000, 2500021, code = 400 },
    { "This endpoint's maximum context length is 8192 tokens. However, you requested about 12000 "
      .. "tokens "
      .. "(10000 of text input, 2000 in the output).", 8192, 10000, code = 400 },
    { "Provider returned error", 200000, 212345, code = 400,
      metadata = { provider_name = "Anthropic",
      raw = '{"type":"error","error":{"type":"invalid_request_error","message":'
        .. '"prompt is too long: 212345 tokens > 200000 maximum"}}' } },
    { "Provider returned error", code = 400,
      metadata = { raw = "ERROR: Input is too long for requested model." } },
    { "Please reduce the length of the messages or completion.", code = "context_length_exceeded",
      at = 413 },
    { "Please reduce the length of the messages or completion. Current length is 140000 while "
      .. "limit is "
      .. "131072", 131072, 140000 },
    { "Prompt contains 40960 tokens and 0 draft tokens, too large for model with 32768 maximum "
      .. "context "
      .. "length", 32768, 40960, type = "invalid_request_message_order" },
    { "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
      8192, 13392, type = "exceed_context_size_error", code = 400, n_ctx = 8192,
      n_prompt_tokens = 13392 },
    { "the request exceeds the available context size, try increasing it", 8192, 13392,
      type = "exceed_context_size_error", code = 400, n_ctx = 8192, n_prompt_tokens = 13392 },
    { "the request exceeds the available context size. try increasing the context size or enable "
      .. "context shift", at = 500 },
    { "Requested tokens (5000) exceed context window of 2048", 2048, 5000 },
    { "The number of tokens to keep from the initial prompt is greater than the context length. "
      .. "Try to "
      .. "load the model with a larger context length, or provide a shorter input" },
    { "Trying to keep the first 4113 tokens when context the overflows. However, the model is "
      .. "loaded "
      .. "with context length of only 4096 tokens, which is not enough.", 4096, 4113 },
    { "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
      262144,
      516368 },
    { "Requested token count exceeds the model's maximum context length of 131072 tokens. You "
      .. "requested "
      .. "a total of 140000 tokens: 139000 tokens from the input messages and 1000 tokens for the "
      .. "completion.", 131072, 139000 },
    { "Input length (265330) exceeds model's maximum context length (262144).", 262144, 265330 },
    { "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 512 "
      .. "`max_new_tokens`", 8193, 8000, at = 422 },
    { "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      131072,
      537812 },
    { "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
      .. 'AnthropicException - b\'{"type":"error","error":'
      .. '{"type":"invalid_request_error","message":'
      .. '"prompt is too long: 209375 tokens > 200000 maximum"}}\'. Received Model Group=claude',
        200000,
      209375, code = "400" },
    { 'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":'
      .. '"invalid_request_error","message":"prompt is too long: 7 tokens > 5 maximum"}}', 5, 7,
      code = "400" },
    { "litellm.ContextWindowExceededError: litellm.BadRequestError: BedrockException: Context "
      .. "Window "
      .. 'Error - {"message":"Input is too long for requested model."}', code = "400" },
    { "litellm.BadRequestError: VertexAIException BadRequestError - The input token count "
      .. "(1125602) "
      .. "exceeds the maximum number of tokens allowed (1048576).", 1048576, 1125602,
        code = "400" },
    { "too many tokens: size limit exceeded by 168512 tokens. Try using shorter or fewer inputs. "
      .. "The "
      .. "limit for this model is 132000 tokens.", 132000 },
    { "Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000,
      code = "tokens_limit_reached", at = 413 },
    { "prompt token count of 70000 exceeds the limit of 64000", 64000, 70000,
      code = "model_max_prompt_tokens_exceeded" },
    { "invalid params, context window exceeds limit (2013)", type = "bad_request_error" },
    { "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
      262144,
      300000 },
    { "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
      98304,
      code = "invalid_parameter_error" },
    { "Prompt exceeds max length", code = "1261" },
    { "prompt too long; exceeded max context length by 1119046 tokens (ref: 96164522)" },
    { "The model returned the following errors: Input is too long for requested model." },
    { "An error occurred (ValidationException) when calling the InvokeModel operation: Input is "
      .. "too long "
      .. "for requested model." },
    { "Too many input tokens. Max input tokens: 8192, request input token count: 9500", 8192,
      9500 },
    { "The prompt is too long: 140000, model maximum context length: 131072", 131072, 140000 },
    { "The estimated number of input and maximum output tokens (32000) exceeded this model "
      .. "context window "
      .. "limit (24000).", 24000, 32000 },
    { "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 4096, 5000,
      type = "validation" },
    { "The number of tokens to keep from the initial prompt is greater than the context length "
      .. "(n_keep: 4520>= n_ctx: 4096). Try to load the model with a larger context length", 4096,
        4520 },
    { "Error code: 400 - Input is too long for requested model." },
    { "ValidationException: Input is too long for requested model." },
  },
  anthropic = {
    { "prompt is too long: 3333404 tokens > 200000 maximum", 200000, 3333404,
      type = "invalid_request_error" },
    { "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input "
      .. "length or `max_tokens` and try again", 200000, 188240, type = "invalid_request_error" },
    { "input length and max_tokens exceed context limit: 200043 + 32000 > 204658, decrease input "
      .. "length",
      204658, 200043, type = "invalid_request_error" },
  },
  gemini = {
    { "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
      1048575,
      1196265, code = 400, status = "INVALID_ARGUMENT" },
    { "The input token count exceeds the maximum number of tokens allowed (1048576).", 1048576,
      code = 400 },
    { "Unable to submit request because the input token count is 1048577 but the model only "
      .. "supports up "
      .. "to 32768. Reduce the input token count and try again.", 32768, 1048577, code = 400 },
  },
}

-- Similar messages of other errors.
local OTHERS = {
  openai = {
    { "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The "
      .. "input or "
      .. "output tokens must be reduced in order to run successfully.", at = 429,
        code = "rate_limit_exceeded" },
    { "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, "
      .. "Requested 12328, please reduce your message size and try again.", at = 413,
        type = "tokens",
      code = "rate_limit_exceeded" },
    { "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested "
      .. "2000.",
      at = 429, code = "rate_limit_exceeded" },
    { "prompt is too long: 5 tokens > 3 maximum", at = 429 },
    { "prompt is too long: 5 tokens > 3 maximum", at = 401 },
    { MAX .. "8192 tokens. However, your request has 9000 input tokens.", at = 503 },
    { "Too many tokens, please wait before trying again." },
    { "ThrottlingException: Too many tokens, please wait before trying again.", at = 429 },
    { "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
      .. "whereas you "
      .. "provided 100000.", param = "max_tokens" },
    { "'max_tokens' or 'max_completion_tokens' is too large: 32000. " .. MAX
      .. "16384 tokens and your "
      .. "request has 4000 input tokens (32000 > 16384 - 4000)." },
    { MAX .. "4096 tokens. However, you requested 100100 tokens (100 in the messages, 100000 in "
      .. "the "
      .. "completion)." },
    { "max_tokens=999999 cannot be greater than max_model_len=81920" },
    { "too many tokens: max tokens must be less than or equal to 4096, the maximum output for "
      .. "this model "
      .. "- received 8192." },
    { "Invalid 'messages[2].content': string too long. Expected a string with maximum length "
      .. "10485760",
      code = "string_above_max_length" },
    { "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an "
      .. "array with "
      .. "length 200 instead.", code = "array_above_max_length" },
    { 'messages.4.content.0: the tool result "prompt is too long: 5 tokens > 3 maximum" is no '
      .. 'JSON' },
    { 'Failed to parse tool call arguments: "This model\'s maximum context length is 5 tokens"' },
    { "Failed to call a function.", code = "tool_use_failed",
      failed_generation = '{"say":"exceed_context_size_error: the request exceeds the available '
        .. 'context size"}' },
    { "Provider returned error", metadata = { raw = '{"error":{"message":"tool said: prompt is '
      .. 'too long"}}' } },
    { "Request Entity Too Large", at = 413 },
    { "You exceeded your current quota", at = 429, code = "insufficient_quota" },
  },
  anthropic = {
    { "Request exceeds the maximum size", at = 413, type = "request_too_large" },
    { "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for "
      .. "claude-3",
      type = "invalid_request_error" },
    { "input length and `max_tokens` exceed context limit: 12 + 400000 > 200000, decrease input "
      .. "length or "
      .. "`max_tokens` and try again", type = "invalid_request_error" },
    { "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
      at = 429, type = "rate_limit_error" },
    { "messages.1: `tool_use` ids were found without `tool_result` blocks; context window",
      type = "invalid_request_error" },
    { "prompt is too long: 5 tokens > 3 maximum", at = 529, type = "overloaded_error" },
  },
  gemini = {
    { "You exceeded your current quota. Quota exceeded for metric: "
      .. "generate_content_paid_tier_input_token_count, limit: 1000000", at = 429, code = 429 },
    { "Unable to submit request because it has a maxOutputTokens value of 100000 but the "
      .. "supported range "
      .. "is from 1 (inclusive) to 65537 (exclusive).", code = 400 },
    { "The input token count (5) exceeds the maximum number of tokens allowed (3).", at = 503,
      code = 503 },
  },
}

local NOT_OURS = { [1] = true, [2] = true, [3] = true, at = true }

-- Returns the wire's error object.
local function error_of(case)
  local e = { message = case[1] }
  for k, v in pairs(case) do
    if not NOT_OURS[k] then
      e[k] = v
    end
  end
  return e
end

-- Returns every form in which a wire reports an error: { status, body, content type }.
local function ways(wire, case)
  local e, at = error_of(case), case.at or 400
  local list = { { at, encode { error = e, type = "error" } } }
  local function event(doc)
    list[#list + 1] = { 200, "data: " .. encode(doc) .. "\n\n", "text/event-stream" }
  end
  if wire == "openai" then
    list[#list + 1] = { at, encode(e) } -- Mistral, vLLM: only its members
    list[#list + 1] = { at, encode { error = case[1] } }
  elseif wire == "gemini" then
    list[#list + 1] = { at, encode(server.array { { error = e } }) }
  end
  if at == 400 then -- in a stream the status is only in the message
    event { type = "error", error = e }
  end
  return list
end

local function each(cases, check)
  for wire, list in pairs(cases) do
    for _, case in ipairs(list) do
      for i, way in ipairs(ways(wire, case)) do
        -- a bare string has only the message, not the code
        if not (wire == "openai" and i == 3 and (case.code or case.type or case.metadata)) then
          check(case, ("%s, way %d: %s"):format(wire, i, case[1]), read(wire, table.unpack(way)))
        end
      end
    end
  end
end

describe("a full context", function()
  it("is told as one in each wire's own words, with the numbers that they hold", function()
    each(FULL, function(case, where, e, details)
      assert.equal("context_full", e.code, where)
      assert.is_false(e.retryable, where)
      assert.same({ case[2], case[3] }, { details.window, details.used }, where)
      assert.truthy(e.message:find("the context is full", 1, true), where)
    end)
  end)

  it("is nothing that only sounds like it", function()
    each(OTHERS, function(_, where, e)
      assert.equal("provider", e.code, where)
    end)
  end)

  it("is told by every form of the table, and by none that stands further down", function()
    local f <close> = assert(io.open "src/wire/full.c")
    local source = f:read "a"
    local max = source:match '#define OPENAI_MAX%s+"(.-)"'
    local list = source:match "forms%[%] = (%b{})"
    assert.is_string(list)
    local n = 0
    for row in list:gmatch 'SAID(%b())' do
      local form = {}
      for part in row:gsub('^%("[^"]*"', ""):gsub("OPENAI_MAX", function()
        return '"' .. max .. '"'
      end):gmatch '"([^"]*)"' do
        form[#form + 1] = part
      end
      form = table.concat(form)
      local numbers = { w = 5000, u = 6000, a = 10, ["-"] = 7 }
      local words = form:gsub("#(.)", numbers):gsub("%*", " x y ")
      for _, said in ipairs { words, words:upper(), "litellm.BadRequestError: " .. words,
        "Error code: 400 - " .. words, '{"error":{"message":"' .. words .. '"}}' } do
        local e, details = read("openai", 400, encode { error = { message = said } })
        assert.equal("context_full", e.code, said)
        if said == words and not form:find("OPENAI", 1, true) then
          assert.equal(form:find("#u", 1, true) and 6000 or nil, details.used, said)
          assert.equal(form:find("#w", 1, true) and 5000 or nil, details.window, said)
        end
      end
      for _, other in ipairs { "messages.3: " .. words, 'the result "' .. words .. '" is no JSON',
        "x" .. words, '{"error":{"message":"it said: ' .. words .. '"}}' } do
        assert.equal("provider", read("openai", 400, encode { error = { message = other } }).code,
          other)
      end
      for _, status in ipairs { 401, 402, 403, 404, 408, 409, 429, 503, 529 } do
        assert.equal("provider", read("openai", status,
          encode { error = { message = words } }).code)
      end
      n = n + 1
    end
    assert.is_true(n > 60)
  end)

  it("is told by Responses in a failed answer, whole and streamed", function()
    local e = { code = "context_length_exceeded",
      message = "Your input exceeds the context window of this model. Please adjust your input." }
    local failed = { status = "failed", error = e, output = server.array {} }
    local doc = encode { type = "response.failed", response = failed }
    assert.equal("context_full", read("responses", 200, encode(failed)).code)
    assert.equal("context_full",
      read("responses", 200, "data: " .. doc .. "\n\n", "text/event-stream").code)
    assert.equal("context_full", read("responses", 200, "data: "
      .. encode { type = "error", code = e.code, message = e.message } .. "\n\n",
        "text/event-stream").code)
  end)

  it("is told by Ollama in a body, and in a line of its stream", function()
    for _, words in ipairs { "prompt too long; exceeded max context length by 4 tokens",
      "the input length exceeds the context length" } do
      local body = encode { error = words }
      assert.equal("context_full", read("ollama", 400, body).code)
      assert.equal("context_full", read("ollama", 500, body).code)
      assert.equal("context_full", read("ollama", 200, body .. "\n", "application/x-ndjson").code)
    end
    assert.equal("provider", read("ollama", 404, encode { error = "model 'x' not found" }).code)
  end)

  it("may be told in plain text", function()
    assert.equal("context_full", read("openai", 400, "prompt is too long: 9 tokens > 5 "
      .. "maximum").code)
    assert.equal("provider", read("openai", 400, "no: prompt is too long").code)
  end)

  it("is told with long words in time linear in them", function()
    local began = ah.now()
    for _, words in ipairs { ("this endpoint's maximum context length is 1 tokens"
      .. ("("):rep(200000)),
      ("the "):rep(100000), ("{"):rep(100000), ("Error: "):rep(50000),
      "request body too large for " .. ("model. max "):rep(50000) } do
      read("openai", 400, encode { error = { message = words } })
    end
    assert.is_true(ah.now() - began < 20)
  end)
end)

-- Runs once against these responses, over HTTP.
local function run(o, ...)
  local s <close> = server.start { responses = { ... } }
  o.base_url, o.api_key, o.http = s.url, "k", { retries = 0 }
  o[#o + 1] = "Hi"
  o.http = nil
  local reply, err = ah.run(o)
  return reply, err, s:requests()
end

local OVER = { status = 400, body = encode { error = {
  message = "prompt is too long: 9 tokens > 5 maximum", type = "invalid_request_error" } } }

describe("a run whose context is full", function()
  it("ends with the code, the numbers and what was said so far, after one request", function()
    local reply, err, requests = run({ model = "anthropic/claude-sonnet-5", retries = 2,
      stream = false }, OVER)
    assert.is_nil(reply)
    assert.same({ "context_full", 5, 9, 400, false },
      { err.code, err.window, err.used, err.status, err.retryable })
    assert.equal(1, #requests)
    assert.truthy(err.reply)
  end)

  it("does not try another way of telling tools, nor another model", function()
    local tool = ah.tool { name = "t", description = "T.", handler = function() end }
    local warned = 0
    local _, err, requests = run({ model = "anthropic/claude-sonnet-5", retries = 0, stream = false,
      tools = { tool }, fallback = { ah.scripted { "other" } },
      on = { warning = function() warned = warned + 1 end } }, OVER)
    assert.equal("context_full", err.code)
    assert.same({ 1, 0 }, { #requests, warned })
  end)

  it("has the answer that was cut by it, which says so", function()
    local function message(text)
      return { status = 200, headers = { ["Content-Type"] = "application/json" }, body = encode {
        type = "message", role = "assistant", id = "m", model = "m",
        content = server.array(text ~= "" and { { type = "text", text = text } } or {}),
        stop_reason = "model_context_window_exceeded", usage = { input_tokens = 1,
          output_tokens = 1 } } }
    end
    local o = { model = "anthropic/claude-sonnet-5", stream = false }
    local reply = assert(run(o, message "And so"))
    assert.same({ "And so", "context_full" }, { reply.text, reply.stop })
    for _, on_empty in ipairs { "answer", "retry", "error" } do
      local _, err, requests = run({ model = o.model, stream = false, on_empty = on_empty },
        message "")
      assert.equal("context_full", err.code)
      assert.equal(1, #requests)
    end
  end)

  it("has it told as the end of an answer on other wires, too", function()
    local choice = encode { choices = server.array { { message = { content = "a" },
      finish_reason = "model_context_window_exceeded" } } }
    local cut = encode { status = "incomplete", output = server.array {},
      incomplete_details = { reason = "model_context_window_exceeded" } }
    for model, body in pairs { ["m"] = choice, ["responses/m"] = cut } do
      local r = ahtest.wire_read { provider = "openai", model = model, base_url = "http://x",
        status = 200, headers = { ["content-type"] = "application/json" }, body = body }
      assert.equal("context_full", server.decode(r.entry).stop)
    end
  end)

  it("can be written for tests", function()
    local model = ah.scripted { { fail = { message = "too long", code = "context_full",
      status = 400,
      window = 8, used = 9 } }, { text = "And", stop = "context_full" } }
    local _, err = ah.run { model = model, "Hi" }
    assert.same({ "context_full", "too long", 8, 9 }, { err.code, err.message, err.window,
      err.used })
    assert.equal("context_full", assert(ah.run { model = model, "Hi" }).stop)
    local own = ah.adapter { name = "x/y", answer = function(_, out)
      out:fail { message = "no", code = "context_full" }
    end }
    assert.equal("context_full", select(2, ah.run { model = own, "Hi" }).code)
  end)
end)
