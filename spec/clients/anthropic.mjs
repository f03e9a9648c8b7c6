// The client of Anthropic: messages, the tool runner with and without a thread, threads, thoughts,
// parallel results, failures, and what the mock does not have.
// npm: @anthropic-ai/sdk
import assert from "node:assert/strict";
import { ANSWER, PARAMETERS, QUESTIONS, TOO_LARGE, collect, failure, load, run } from "./harness.mjs";

const Anthropic = load("@anthropic-ai/sdk").default;

const TOOL = { name: "weather", description: "Says.", input_schema: PARAMETERS };
const RUNNABLE = { ...TOOL, type: "custom", run: async () => "21", parse: (input) => input };
const THINKING = { type: "enabled", budget_tokens: 1024 };
const ASK = { model: "m", max_tokens: 4096, tools: [TOOL], thinking: THINKING };

const user = (content) => ({ role: "user", content });
const result = (use) => ({ type: "tool_result", tool_use_id: use.id, content: "21" });

// `thread`: undefined as the runner has it by itself, or false.
const runs = (client, question, stream, thread) => async () => {
  const runner = client.beta.messages.toolRunner({
    ...ASK,
    tools: [RUNNABLE],
    messages: [user(question)],
    cache_control: { type: "ephemeral" },
    stream,
    thread,
  });
  const last = await runner.runUntilDone();
  assert.equal(last.content[0].text, ANSWER);
  assert.ok(last.usage.cache_read_input_tokens > 0);
};

async function threads(client) {
  const thread = client.beta.messages.thread({ model: "m", max_tokens: 99, system: "Be brief." });
  const first = await thread.send(user("Hello"));
  await thread.send(user("Again"));
  await thread.stream(user("And streamed")).finalMessage();
  assert.equal(thread.messages.length, 6);
  await thread.fork().send(user("Elsewhere"));
  const create = (previous_message_id) =>
    client.beta.messages.create({
      model: "m",
      max_tokens: 99,
      messages: [user("x")],
      thread: { type: "continue", previous_message_id },
      betas: ["message-threads-2026-08-12"],
    });
  assert.equal((await failure(create(first.id))).errorCode, "thread_already_continued");
  assert.equal((await failure(create("msg_none"))).errorCode, "thread_not_found");
}

async function thoughts(client) {
  const first = await client.messages.stream({ ...ASK, messages: [user("two")] }).finalMessage();
  const [thinking, text, ...uses] = first.content;
  assert.deepEqual([thinking.thinking, text.text, uses.length], ["Both of them.", "Let me look.", 2]);
  const after = (content, ...more) =>
    client.messages.create({
      ...ASK,
      messages: [user("two"), { role: "assistant", content }, ...more],
    });
  const results = uses.map((use) => user([result(use)]));
  assert.equal((await after(first.content, ...results)).content[0].text, ANSWER);
  const changed = [{ ...thinking, thinking: "Other." }, text, ...uses];
  assert.match((await failure(after(changed, ...results))).message, /cannot be modified/);
  assert.match((await failure(after([text, ...uses], ...results))).message, /Expected `thinking`/);
  assert.match((await failure(after(first.content, results[0]))).message, /without `tool_result`/);
}

async function structured(client) {
  const schema = { ...PARAMETERS, properties: { city: { type: "string" } } };
  const format = { type: "json_schema", schema: { ...schema, additionalProperties: false } };
  const message = await client.messages.parse({
    model: "m",
    max_tokens: 99,
    messages: [user("structured")],
    output_config: { format },
  });
  assert.deepEqual(message.parsed_output ?? JSON.parse(message.content[0].text), { city: "Paris" });
}

async function failures(client) {
  const say = (content, more) =>
    client.messages.create({ model: "m", max_tokens: 99, messages: [user(content)], ...more });
  const busy = await failure(say("busy"));
  assert.ok(busy instanceof Anthropic.RateLimitError);
  assert.equal(busy.error.request_id, busy.requestID);
  assert.ok((await failure(say("broken"))) instanceof Anthropic.InternalServerError);
  assert.ok(await failure(collect(say("cut", { stream: true }))));
  const half = await failure(collect(say("half", { stream: true })));
  assert.match(half.message, /Overloaded/);
  assert.equal((await say("refuse")).stop_reason, "refusal");
  assert.equal((await say("long")).stop_reason, "max_tokens");
  assert.equal((await say("outgrown")).stop_reason, "model_context_window_exceeded");
  const full = await failure(say("full"));
  assert.ok(full instanceof Anthropic.BadRequestError);
  assert.equal(full.error.error.message, "prompt is too long: 6000 tokens > 5000 maximum");
  assert.match((await say("Hello"))._request_id, /^req_/);
}

async function refused(client) {
  const ask = { model: "m", max_tokens: "many", messages: [user("x")] };
  const bad = await failure(client.messages.create(ask));
  assert.ok(bad instanceof Anthropic.BadRequestError);
  assert.equal(bad.error.error.type, "invalid_request_error");
  assert.equal(bad.error.request_id, bad.requestID);
  const large = await failure(
    client.messages.create({ model: "m", max_tokens: 99, messages: [user(TOO_LARGE)] }),
  );
  assert.ok(large instanceof Anthropic.ContentTooLargeError, large.message);
  assert.equal(large.error.error.type, "request_too_large");
  assert.equal(large.error.request_id, large.requestID);
  const headers = { "x-long": "x".repeat(33000) };
  const head = await failure(client.models.list({}, { headers }));
  assert.ok(head instanceof Anthropic.RequestHeaderFieldsTooLargeError, head.message);
  assert.equal(head.error.request_id, head.requestID);
}

async function absent(client) {
  for (const ask of [() => client.beta.files.list(), () => client.messages.batches.list()]) {
    const error = await failure(ask());
    assert.ok(error instanceof Anthropic.NotFoundError, error.message);
    assert.match(error.error.error.message, /agenthost mock has no .* POST \/v1\/messages/);
  }
}

async function models(client) {
  assert.deepEqual((await collect(client.models.list())).map((model) => model.id), ["script"]);
  assert.equal((await client.beta.models.retrieve("any")).id, "any");
  const count = await client.messages.countTokens({ model: "m", messages: [user("Hello")] });
  assert.ok(count.input_tokens > 0);
}

await run(({ url }) => {
  const client = new Anthropic({ apiKey: "any", baseURL: url, maxRetries: 1 });
  const cases = {};
  for (const question of Object.keys(QUESTIONS)) {
    for (const stream of [false, true]) {
      const how = `toolRunner, ${stream ? "streamed" : "whole"}`;
      cases[`${how}, in a thread: ${question}`] = runs(client, question, stream, undefined);
      cases[`${how}: ${question}`] = runs(client, question, stream, false);
    }
  }
  return {
    ...cases,
    threads: [() => threads(client), 2],
    "thoughts and parallel results": [() => thoughts(client), 3],
    "structured output": () => structured(client),
    failures: () => failures(client),
    refusals: [() => refused(client), 3],
    "what there is not": [() => absent(client), 2],
    models: () => models(client),
  };
});
