// The AI SDK with its providers: tool loops of several steps, streams, structured output, failures,
// images and files, tools that the services carry out.
// npm: ai @ai-sdk/openai @ai-sdk/anthropic @ai-sdk/google zod
import assert from "node:assert/strict";
import { ANSWER, QUESTIONS, collect, failure, load, run } from "./harness.mjs";

const { Output, generateText, stepCountIs, streamText, tool } = load("ai");
const { createOpenAI } = load("@ai-sdk/openai");
const { createAnthropic } = load("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = load("@ai-sdk/google");
const { z } = load("zod");

globalThis.AI_SDK_LOG_WARNINGS = false;

const inputSchema = z.object({ city: z.string(), unit: z.string().optional() });
const tools = { weather: tool({ description: "Says.", inputSchema, execute: async () => "21" }) };
// Thoughts wherever they can be asked for; nothing is kept by the server.
const providerOptions = {
  openai: { store: false, reasoningSummary: "auto", include: ["reasoning.encrypted_content"] },
  anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } },
  google: { thinkingConfig: { includeThoughts: true } },
};

const askOf = (model, prompt) => ({
  model,
  prompt,
  tools,
  providerOptions,
  stopWhen: stepCountIs(4),
  maxRetries: 1,
});

const loops = (model, question, count) => async () => {
  const { steps, text } = await generateText(askOf(model, question));
  assert.equal(text, ANSWER);
  assert.deepEqual(steps.map((step) => step.toolCalls.length), [count, 0]);
};

const streams = (model, question) => async () => {
  let failed;
  const onError = ({ error }) => (failed = error);
  const { textStream } = streamText({ ...askOf(model, question), onError });
  const text = (await collect(textStream)).join("");
  if (failed) throw failed;
  assert.ok(text.endsWith(ANSWER), text);
};

const failures = (model) => async () => {
  const busy = await failure(generateText({ model, prompt: "busy", maxRetries: 1 }));
  assert.match(busy.message, /slow down/);
  assert.equal(busy.errors?.length, 2, "it was not tried again");
  const output = Output.object({ schema: z.object({ city: z.string() }) });
  const structured = await generateText({ model, prompt: "structured", output });
  assert.deepEqual(structured.output, { city: "Paris" });
};

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

// Images and files of the user, an image and an error as results, a choice of one tool.
const parts = (model) => async () => {
  const content = [
    { type: "text", text: "What is this?" },
    { type: "image", image: PNG, mediaType: "image/png" },
    { type: "file", data: Buffer.from("%PDF-1.4"), mediaType: "application/pdf", filename: "a.pdf" },
  ];
  const messages = [{ role: "user", content }];
  assert.match((await generateText({ model, system: "S", messages })).text, /Hello there/);
  const image = { type: "media", data: PNG.toString("base64"), mediaType: "image/png" };
  const toModelOutput = () => ({ type: "content", value: [{ type: "text", text: "21" }, image] });
  const drawn = { weather: tool({ inputSchema, execute: async () => "21", toModelOutput }) };
  assert.equal((await generateText({ ...askOf(model, "two"), tools: drawn })).text, ANSWER);
  const fails = { weather: tool({ inputSchema, execute: () => Promise.reject(new Error("21")) }) };
  assert.equal((await generateText({ ...askOf(model, "plain"), tools: fails })).text, ANSWER);
  const toolChoice = { type: "tool", toolName: "weather" };
  const forced = await generateText({ model, prompt: "plain", tools, toolChoice });
  assert.equal(forced.toolCalls.length, 1);
};

// Tools that the services carry out themselves are declared, and not called.
const hosted = (models, { openai, anthropic, google }) => async () => {
  const asked = {
    anthropic: {
      web: anthropic.tools.webSearch_20250305({}),
      code: anthropic.tools.codeExecution_20250825({}),
    },
    "openai responses": { web: openai.tools.webSearch({}), code: openai.tools.codeInterpreter({}) },
    google: { search: google.tools.googleSearch({}), url: google.tools.urlContext({}) },
  };
  for (const [name, hostedTools] of Object.entries(asked)) {
    const ask = { model: models[name], prompt: "Hello", tools: hostedTools };
    assert.match((await generateText(ask)).text, /Hello there/);
  }
};

await run(({ url }) => {
  const openai = createOpenAI({ apiKey: "any", baseURL: url + "/v1" });
  const anthropic = createAnthropic({ apiKey: "any", baseURL: url + "/v1" });
  const google = createGoogleGenerativeAI({ apiKey: "any", baseURL: url + "/v1beta" });
  const models = {
    "openai chat": openai.chat("gpt-5"),
    "openai responses": openai("gpt-5"),
    anthropic: anthropic("claude-sonnet-4-5"),
    google: google("gemini-3-pro"),
  };
  const cases = {};
  for (const [name, model] of Object.entries(models)) {
    for (const [question, count] of Object.entries(QUESTIONS)) {
      cases[`${name}, whole: ${question}`] = loops(model, question, count);
      cases[`${name}, streamed: ${question}`] = streams(model, question);
    }
    cases[`${name}: failures, and structured output`] = failures(model);
    cases[`${name}: images, files and errors`] = parts(model);
  }
  cases["tools of the services"] = hosted(models, { openai, anthropic, google });
  return cases;
});
