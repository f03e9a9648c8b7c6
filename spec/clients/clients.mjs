// make check-clients: the official clients of OpenAI, Anthropic and Ollama against
// `agenthost mock`, which they must not be able to tell from the providers. Each makes a tool
// round trip, streamed and not, meets a failure, and is refused what is wrong.
//
//   node clients.mjs FOLDER_OF_MODULES AGENTHOST TURNS
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { once } from "node:events";
import { createInterface } from "node:readline";

const [folder, agenthost, turns] = process.argv.slice(2);
const load = createRequire(path.resolve(folder, "x.js"));
const OpenAI = load("openai").default;
const Anthropic = load("@anthropic-ai/sdk").default;
const { Ollama } = load("ollama");

const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, unit: { type: "string" } },
  required: ["city"],
};
const ARGUMENTS = { city: "Paris", unit: "celsius" };
const ANSWER = "It is 21 degrees in Paris.";

// What a promise was rejected with; it must be.
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("it went well");
}

async function drain(stream) {
  for await (const _ of stream);
}

// -- OpenAI -------------------------------------------------------------------------------

const chatTools = [
  { type: "function", function: { name: "weather", description: "Says.", parameters: PARAMETERS } },
];

async function chat(client) {
  const messages = [{ role: "user", content: "How warm is Paris?" }];
  const ask = { model: "m", messages, tools: chatTools };
  const first = await client.chat.completions.create(ask);
  const call = first.choices[0].message.tool_calls[0];
  assert.equal(first.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(call.function.arguments), ARGUMENTS);

  const streamed = client.chat.completions.stream({
    ...ask,
    stream_options: { include_usage: true },
  });
  const whole = await streamed.finalChatCompletion();
  assert.deepEqual(JSON.parse(whole.choices[0].message.tool_calls[0].function.arguments), ARGUMENTS);
  assert.ok(whole.usage.prompt_tokens_details.cached_tokens > 0);

  messages.push(first.choices[0].message, { role: "tool", tool_call_id: call.id, content: "21" });
  const last = await client.chat.completions.create(ask);
  assert.equal(last.choices[0].message.content, ANSWER);
}

const responseTools = [
  { type: "function", name: "weather", description: "Says.", parameters: PARAMETERS, strict: false },
];

async function responses(client) {
  const input = [{ role: "user", content: "How warm is Paris?" }];
  const ask = { model: "m", input, tools: responseTools, include: ["reasoning.encrypted_content"] };
  const final = await client.responses.stream(ask).finalResponse();
  const call = final.output.find((item) => item.type === "function_call");
  assert.deepEqual(JSON.parse(call.arguments), ARGUMENTS);
  assert.equal(final.output[0].type, "reasoning");
  assert.ok(final.output[0].encrypted_content.length > 0);

  const result = { type: "function_call_output", call_id: call.call_id, output: "21" };
  const whole = await client.responses.create({ ...ask, input: [...input, ...final.output, result] });
  assert.equal(whole.output_text, ANSWER);
  const next = await client.responses.create({
    model: "m",
    tools: responseTools,
    previous_response_id: final.id,
    input: [result],
  });
  assert.equal(next.output_text, ANSWER);
}

async function openaiFailures(client) {
  const say = (content, more) =>
    client.chat.completions.create({ model: "m", messages: [{ role: "user", content }], ...more });
  assert.ok((await failure(say("busy"))) instanceof OpenAI.RateLimitError);
  const cut = await say("cut", { stream: true });
  assert.ok(await failure(drain(cut)));
  assert.equal((await say("refuse")).choices[0].message.refusal, "I will not.");
  const bad = await failure(say("x", { tools: [] }));
  assert.ok(bad instanceof OpenAI.BadRequestError);
  assert.equal(bad.param, "tools");
  assert.equal((await client.models.list()).data[0].id, "script");
}

// -- Anthropic ------------------------------------------------------------------------------

const anthropicTools = [{ name: "weather", description: "Says.", input_schema: PARAMETERS }];

async function messages(client) {
  const thread = [{ role: "user", content: "How warm is Paris?" }];
  const ask = {
    model: "m",
    max_tokens: 2048,
    messages: thread,
    tools: anthropicTools,
    thinking: { type: "enabled", budget_tokens: 1024 },
    cache_control: { type: "ephemeral" },
  };
  const first = await client.messages.stream(ask).finalMessage();
  const [thinking, use] = first.content;
  assert.equal(thinking.thinking, "The tool knows.");
  assert.ok(thinking.signature.length > 0);
  assert.deepEqual(use.input, ARGUMENTS);
  assert.equal(first.stop_reason, "tool_use");

  thread.push(
    { role: "assistant", content: first.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "21" }] },
  );
  const last = await client.messages.create(ask);
  assert.equal(last.content[0].text, ANSWER);
  assert.ok(last.usage.cache_read_input_tokens > 0);
  const count = await client.messages.countTokens({ model: "m", messages: thread.slice(0, 1) });
  assert.ok(count.input_tokens > 0);
}

async function anthropicFailures(client) {
  const say = (content, more) =>
    client.messages.create({
      model: "m",
      max_tokens: 99,
      messages: [{ role: "user", content }],
      ...more,
    });
  assert.ok((await failure(say("busy"))) instanceof Anthropic.RateLimitError);
  assert.ok(await failure(drain(await say("cut", { stream: true }))));
  assert.equal((await say("refuse")).stop_reason, "refusal");
  const bad = await failure(say("x", { max_tokens: "many" }));
  assert.ok(bad instanceof Anthropic.BadRequestError);
  assert.equal(bad.error.error.type, "invalid_request_error");
  assert.equal((await client.models.list()).data[0].id, "script");
}

// -- Ollama ---------------------------------------------------------------------------------

async function ollama(client) {
  const thread = [{ role: "user", content: "How warm is Paris?" }];
  const ask = { model: "m", messages: thread, tools: chatTools, think: true };
  const calls = [];
  let thought = "";
  for await (const part of await client.chat({ ...ask, stream: true })) {
    calls.push(...(part.message.tool_calls ?? []));
    thought += part.message.thinking ?? "";
  }
  assert.deepEqual(calls[0].function.arguments, ARGUMENTS);
  assert.equal(thought, "The tool knows.");
  thread.push(
    { role: "assistant", content: "", tool_calls: calls },
    { role: "tool", content: "21", tool_name: "weather" },
  );
  assert.equal((await client.chat(ask)).message.content, ANSWER);
  const busy = await failure(
    client.chat({ model: "m", messages: [{ role: "user", content: "busy" }] }),
  );
  assert.match(busy.message, /slow down/);
  assert.equal((await client.list()).models[0].name, "script");
}

// -- all of it ------------------------------------------------------------------------------

const server = spawn(agenthost, ["mock", "-q", turns], { stdio: ["ignore", "pipe", "inherit"] });
const [url] = await once(createInterface(server.stdout), "line");
const openai = new OpenAI({ apiKey: "any", baseURL: url + "/v1", maxRetries: 1 });
const anthropic = new Anthropic({ apiKey: "any", baseURL: url, maxRetries: 1 });
const cases = {
  "openai chat.completions": () => chat(openai),
  "openai responses": () => responses(openai),
  "openai failures": () => openaiFailures(openai),
  "anthropic messages": () => messages(anthropic),
  "anthropic failures": () => anthropicFailures(anthropic),
  ollama: () => ollama(new Ollama({ host: url })),
};
let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`  ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`  failed ${name}: ${error.stack}`);
  }
}
server.kill();
console.log(`clients: ${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
