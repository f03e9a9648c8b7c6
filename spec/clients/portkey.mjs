// The gateway of Portkey between the clients and the mock: one form is put into another, in
// requests, answers and streams.
// npm: @portkey-ai/gateway openai @anthropic-ai/sdk
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ANSWER, PARAMETERS, QUESTIONS, failure, load, run } from "./harness.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));

const OpenAI = load("openai").default;
const Anthropic = load("@anthropic-ai/sdk").default;

const RUNNABLE = { name: "weather", description: "Says." };
const CHAT_TOOLS = [
  {
    type: "function",
    function: { ...RUNNABLE, parameters: PARAMETERS, function: async () => "21", parse: JSON.parse },
  },
];
const TOOL = { ...RUNNABLE, type: "custom", input_schema: PARAMETERS, run: async () => "21" };

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

// The address of a gateway that listens; it ends with this process.
async function startGateway() {
  const port = await freePort();
  const script = load.resolve("@portkey-ai/gateway/build/start-server.js");
  const fetch_first = ["--import", path.join(here, "portkey_fetch.mjs")];
  const words = [...fetch_first, script, "--headless", `--port=${port}`];
  const gateway = spawn(process.execPath, words, { stdio: "ignore" });
  process.on("exit", () => gateway.kill());
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 300; i += 1) {
    if (await fetch(url).catch(() => null)) return url;
    await sleep(100);
  }
  return assert.fail("the gateway did not start");
}

const headers = (provider, host) => ({
  "x-portkey-provider": provider,
  "x-portkey-custom-host": host,
});

const chats = (client, model, question, stream) => async () => {
  const messages = [{ role: "user", content: question }];
  const ask = { model, max_tokens: 1000, messages, tools: CHAT_TOOLS, stream };
  const text = await client.chat.completions.runTools(ask).finalContent();
  assert.equal(text, ANSWER);
};

// Without a thread: the gateway takes `thread` out of requests.
const messages = (client, question, stream) => async () => {
  const runner = client.beta.messages.toolRunner({
    model: "m",
    max_tokens: 4096,
    messages: [{ role: "user", content: question }],
    tools: [{ ...TOOL, parse: (input) => input }],
    thinking: { type: "enabled", budget_tokens: 1024 },
    stream,
    thread: false,
  });
  assert.equal((await runner.runUntilDone()).content[0].text, ANSWER);
};

async function responses(client) {
  const tools = [{ type: "function", ...RUNNABLE, parameters: PARAMETERS, strict: false }];
  const ask = { model: "m", tools };
  const first = await client.responses.create({ ...ask, input: "two" });
  const calls = first.output.filter((item) => item.call_id);
  const input = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "21" }));
  const more = { ...ask, previous_response_id: first.id, input };
  assert.equal((await client.responses.stream(more).finalResponse()).output_text, ANSWER);
}

await run(async ({ url }) => {
  const gateway = await startGateway();
  const common = { apiKey: "any", maxRetries: 0 };
  const openai = (provider, host) =>
    new OpenAI({ ...common, baseURL: gateway + "/v1", defaultHeaders: headers(provider, host) });
  const hosts = { openai: "/v1", anthropic: "/v1", google: "/v1beta", ollama: "" };
  const anthropic = new Anthropic({
    ...common,
    baseURL: gateway,
    defaultHeaders: headers("anthropic", url + "/v1"),
  });
  const cases = {};
  for (const [provider, below] of Object.entries(hosts)) {
    const client = openai(provider, url + below);
    // The client loses the signatures that later models of Google want back.
    const model = provider === "google" ? "gemini-2.5-pro" : "m";
    for (const question of Object.keys(QUESTIONS)) {
      for (const stream of [false, true]) {
        const how = stream ? "streamed" : "whole";
        cases[`chat as ${provider}, ${how}: ${question}`] = chats(client, model, question, stream);
      }
    }
    cases[`chat as ${provider}: failures`] = async () => {
      const ask = { model, messages: [{ role: "user", content: "busy" }], max_tokens: 9 };
      const busy = await failure(client.chat.completions.create(ask));
      assert.ok(busy instanceof OpenAI.RateLimitError, busy.message);
    };
  }
  for (const stream of [false, true]) {
    cases[`messages, ${stream ? "streamed" : "whole"}`] = messages(anthropic, "two", stream);
  }
  cases.responses = () => responses(openai("openai", url + "/v1"));
  return cases;
});
