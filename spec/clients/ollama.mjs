// The client of Ollama: chats with tools, streamed and not, thoughts, failures, and what the mock
// does not have.
// npm: ollama
import assert from "node:assert/strict";
import { ANSWER, PARAMETERS, QUESTIONS, TOO_LARGE, collect, failure, load, run } from "./harness.mjs";

const { Ollama } = load("ollama");

const TOOLS = [
  { type: "function", function: { name: "weather", description: "Says.", parameters: PARAMETERS } },
];

const user = (content) => [{ role: "user", content }];

// One message of all that was said.
async function say(client, messages, stream) {
  const ask = { model: "m", messages, tools: TOOLS, think: true };
  if (!stream) return (await client.chat(ask)).message;
  const parts = await collect(client.chat({ ...ask, stream: true }));
  const joined = (name) => parts.map((part) => part.message[name] ?? "").join("");
  const tool_calls = parts.flatMap((part) => part.message.tool_calls ?? []);
  return { role: "assistant", content: joined("content"), thinking: joined("thinking"), tool_calls };
}

const chats = (client, question, count, stream) => async () => {
  const messages = user(question);
  const first = await say(client, messages, stream);
  assert.equal(first.tool_calls.length, count);
  const results = first.tool_calls.map((call) => ({
    role: "tool",
    content: "21",
    tool_name: call.function.name,
  }));
  messages.push(first, ...results);
  assert.equal((await say(client, messages, stream)).content, ANSWER);
};

async function failures(client) {
  const ask = (content, more) => client.chat({ model: "m", messages: user(content), ...more });
  assert.match((await failure(ask("busy"))).message, /slow down/);
  const full = await failure(ask("full"));
  assert.deepEqual([full.name, full.status_code], ["ResponseError", 400]);
  assert.match(full.message, /prompt too long/);
  assert.ok(await failure(collect(ask("cut", { stream: true }))));
  assert.match((await failure(collect(ask("half", { stream: true })))).message, /Overloaded/);
  const schema = await ask("structured", { format: PARAMETERS });
  assert.deepEqual(JSON.parse(schema.message.content), { city: "Paris" });
}

async function large(client) {
  const error = await failure(client.chat({ model: "m", messages: user(TOO_LARGE) }));
  assert.deepEqual([error.name, error.status_code], ["ResponseError", 413]);
  assert.match(error.message, /larger than 64 MiB/);
}

async function absent(client) {
  const asked = [
    () => client.embed({ model: "m", input: "x" }),
    () => client.generate({ model: "m", prompt: "x" }),
    () => client.show({ model: "m" }),
  ];
  for (const ask of asked) {
    assert.match((await failure(ask())).message, /agenthost mock has no .* POST \/api\/chat/);
  }
}

await run(({ url }) => {
  const client = new Ollama({ host: url });
  const cases = {};
  for (const [question, count] of Object.entries(QUESTIONS)) {
    for (const stream of [false, true]) {
      cases[`chat, ${stream ? "streamed" : "whole"}: ${question}`] = chats(client, question, count, stream);
    }
  }
  return {
    ...cases,
    "failures, and structured output": () => failures(client),
    "what is too large": [() => large(client), 1],
    "what there is not": [() => absent(client), 3],
    models: async () => assert.equal((await client.list()).models[0].name, "script"),
  };
});
