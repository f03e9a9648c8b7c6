// The client of OpenAI: Chat Completions and Responses, their tool runners, streams, custom tools,
// failures, and what the mock does not have.
// npm: openai zod
import assert from "node:assert/strict";
import { ANSWER, ARGUMENTS, PARAMETERS, QUESTIONS, TOO_LARGE, collect, failure, load, run } from "./harness.mjs";

const OpenAI = load("openai").default;
const { zodResponseFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const FUNCTION = { name: "weather", description: "Says.", parameters: PARAMETERS };
const CHAT_TOOLS = [{ type: "function", function: FUNCTION }];
const RUN_TOOLS = [
  { type: "function", function: { ...FUNCTION, function: async () => "21", parse: JSON.parse } },
];
const GRAMMAR = { syntax: "lark", definition: "start: /.+/" };
const CHAT_CUSTOM = [
  { type: "custom", custom: { name: "weather", format: { type: "grammar", grammar: GRAMMAR } } },
];
const TOOLS = [{ type: "function", strict: false, ...FUNCTION }];
const CUSTOM = [{ type: "custom", name: "weather", format: { type: "grammar", ...GRAMMAR } }];

const user = (content) => [{ role: "user", content }];

// A runner's conversation, whole or streamed.
const runs = (client, question, stream) => async () => {
  const runner = client.chat.completions.runTools({
    model: "m",
    messages: user(question),
    tools: RUN_TOOLS,
    stream,
    ...(stream && { stream_options: { include_usage: true } }),
  });
  assert.equal(await runner.finalContent(), ANSWER);
  assert.ok((await runner.totalUsage()).total_tokens > 0);
};

async function chatCustom(client) {
  const messages = user("custom");
  const ask = { model: "m", messages, tools: CHAT_CUSTOM };
  const { message } = (await client.chat.completions.create(ask)).choices[0];
  const [call] = message.tool_calls;
  assert.deepEqual(call.custom, { name: "weather", input: "Paris in May" });
  const chunks = await collect(client.chat.completions.create({ ...ask, stream: true }));
  const pieces = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.equal(pieces.map((piece) => piece.custom.input).join(""), "Paris in May");
  messages.push(message, { role: "tool", tool_call_id: call.id, content: "21" });
  const last = await client.chat.completions.create(ask);
  assert.equal(last.choices[0].message.content, ANSWER);
}

// Items sent back, and previous_response_id, in two requests after the first.
const responds = (client, question, count, tools, store) => async () => {
  const ask = { model: "m", tools, store, include: ["reasoning.encrypted_content"] };
  const input = user(question);
  const first = await client.responses.stream({ ...ask, input }).finalResponse();
  const calls = first.output.filter((item) => item.call_id);
  assert.equal(calls.length, count);
  if (tools === TOOLS) assert.deepEqual(JSON.parse(calls[0].arguments), ARGUMENTS);
  const whole = await client.responses.create({ ...ask, input });
  assert.equal(whole.output.length, first.output.length);
  const answerTo = ({ type, call_id }) => ({ type: type + "_output", call_id, output: "21" });
  const results = calls.map(answerTo);
  const all = [...input, ...first.output, ...results];
  assert.equal((await client.responses.create({ ...ask, input: all })).output_text, ANSWER);
  if (store) {
    const more = { ...ask, previous_response_id: first.id, input: results };
    assert.equal((await client.responses.stream(more).finalResponse()).output_text, ANSWER);
  }
};

async function structured(client) {
  const format = zodResponseFormat(z.object({ city: z.string() }), "place");
  const ask = { model: "m", messages: user("structured"), response_format: format };
  const chat = await client.chat.completions.parse(ask);
  assert.deepEqual(chat.choices[0].message.parsed, { city: "Paris" });
  const { name, schema } = format.json_schema;
  const text = { format: { type: "json_schema", name, schema, strict: true } };
  const response = await client.responses.parse({ model: "m", input: "structured", text });
  assert.deepEqual(response.output_parsed, { city: "Paris" });
}

async function failures(client) {
  const say = (content, more) =>
    client.chat.completions.create({ model: "m", messages: user(content), ...more });
  const busy = await failure(say("busy"));
  assert.ok(busy instanceof OpenAI.RateLimitError && busy.requestID.startsWith("req_"));
  assert.ok((await failure(say("broken"))) instanceof OpenAI.InternalServerError);
  assert.ok(await failure(collect(say("cut", { stream: true }))));
  assert.match((await failure(collect(say("half", { stream: true })))).message, /Overloaded/);
  assert.equal((await say("refuse")).choices[0].message.refusal, "I will not.");
  assert.equal((await say("long")).choices[0].finish_reason, "length");
  assert.equal((await say("outgrown")).choices[0].finish_reason, "length");
  for (const ask of [say("full"), client.responses.create({ model: "m", input: "full" })]) {
    const full = await failure(ask);
    assert.ok(full instanceof OpenAI.BadRequestError);
    assert.equal(full.code, "context_length_exceeded");
    assert.match(full.message, /5000 tokens.* 6000 tokens/);
  }
  const stream = client.responses.stream({ model: "m", input: "half" });
  assert.match((await failure(stream.finalResponse())).message, /Overloaded/);
}

async function refused(client) {
  const bad = await failure(
    client.chat.completions.create({ model: "m", messages: user("x"), tools: [] }),
  );
  assert.ok(bad instanceof OpenAI.BadRequestError);
  assert.equal(bad.param, "tools");
  const missing = client.responses.create({ model: "m", input: "x", previous_response_id: "resp_x" });
  assert.equal((await failure(missing)).code, "previous_response_not_found");
  const large = await failure(
    client.chat.completions.create({ model: "m", messages: user(TOO_LARGE) }),
  );
  assert.deepEqual([large.status, large.type], [413, "invalid_request_error"]);
  assert.ok(large.requestID.startsWith("req_"));
}

// What there is not is said so, in this client's own form.
async function absent(client) {
  const asked = [
    () => client.embeddings.create({ model: "m", input: "x" }),
    () => client.files.list(),
    () => client.completions.create({ model: "m", prompt: "x" }),
    () => client.conversations.create({}),
    () => client.responses.retrieve("resp_x"),
  ];
  for (const ask of asked) {
    const error = await failure(ask());
    assert.ok(error instanceof OpenAI.NotFoundError, error.message);
    assert.match(error.message, /agenthost mock has no .* POST \/chat\/completions/);
  }
}

async function models(client) {
  assert.deepEqual((await collect(client.models.list())).map((model) => model.id), ["script"]);
  assert.equal((await client.models.retrieve("any")).id, "any");
  const count = await client.responses.inputTokens.count({ model: "m", input: "Hello" });
  assert.ok(count.input_tokens > 0);
}

await run(({ url }) => {
  const client = new OpenAI({ apiKey: "any", baseURL: url + "/v1", maxRetries: 1 });
  const cases = {};
  for (const [question, count] of Object.entries(QUESTIONS)) {
    for (const stream of [false, true]) {
      cases[`runTools, ${stream ? "streamed" : "whole"}: ${question}`] = runs(client, question, stream);
    }
    for (const store of [false, true]) {
      cases[`responses, ${store ? "" : "not "}stored: ${question}`] =
        responds(client, question, count, TOOLS, store);
    }
  }
  return {
    ...cases,
    "chat: custom tools": () => chatCustom(client),
    "responses: custom tools": responds(client, "custom", 1, CUSTOM, true),
    "structured output": () => structured(client),
    failures: () => failures(client),
    refusals: [() => refused(client), 3],
    "what there is not": [() => absent(client), 5],
    models: () => models(client),
  };
});
