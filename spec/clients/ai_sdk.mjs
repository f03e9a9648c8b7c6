// The AI SDK with its providers: tool loops of several steps, streams, structured output, failures.
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

await run(({ url }) => {
  const openai = createOpenAI({ apiKey: "any", baseURL: url + "/v1" });
  const models = {
    "openai chat": openai.chat("gpt-5"),
    "openai responses": openai("gpt-5"),
    anthropic: createAnthropic({ apiKey: "any", baseURL: url + "/v1" })("claude-sonnet-4-5"),
    google: createGoogleGenerativeAI({ apiKey: "any", baseURL: url + "/v1beta" })("gemini-3-pro"),
  };
  const cases = {};
  for (const [name, model] of Object.entries(models)) {
    for (const [question, count] of Object.entries(QUESTIONS)) {
      cases[`${name}, whole: ${question}`] = loops(model, question, count);
      cases[`${name}, streamed: ${question}`] = streams(model, question);
    }
    cases[`${name}: failures, and structured output`] = failures(model);
  }
  return cases;
});
