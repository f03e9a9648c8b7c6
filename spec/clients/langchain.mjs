// LangChain with its providers: tool calls, whole and streamed, conversations that go on, structured
// output, failures.
// npm: @langchain/core @langchain/openai @langchain/anthropic @langchain/google-genai @langchain/ollama zod
import assert from "node:assert/strict";
import { ANSWER, QUESTIONS, collect, failure, load, run } from "./harness.mjs";

const { ContextOverflowError } = load("@langchain/core/errors");
const { AIMessage, HumanMessage, SystemMessage, ToolMessage } = load("@langchain/core/messages");
const { tool } = load("@langchain/core/tools");
const { concat } = load("@langchain/core/utils/stream");
const { ChatOpenAI } = load("@langchain/openai");
const { ChatAnthropic } = load("@langchain/anthropic");
const { ChatGoogleGenerativeAI } = load("@langchain/google-genai");
const { ChatOllama } = load("@langchain/ollama");
const { z } = load("zod");

// Its client of Google leaves a rejected promise behind where a stream is cut.
process.on("unhandledRejection", () => {});

const schema = z.object({ city: z.string(), unit: z.string().optional() });
const weather = tool(async () => "21", { name: "weather", description: "Says.", schema });
const place = z.object({ city: z.string() });

const ask = async (model, messages, stream) =>
  stream ? (await collect(model.stream(messages))).reduce(concat) : model.invoke(messages);

const talks = (model, question, count, stream) => async () => {
  const bound = model.bindTools([weather]);
  const messages = [new HumanMessage(question)];
  const first = await ask(bound, messages, stream);
  assert.equal(first.tool_calls.length, count);
  const results = first.tool_calls.map(
    ({ id, name }) => new ToolMessage({ content: "21", tool_call_id: id, name }),
  );
  messages.push(first, ...results);
  const second = await ask(bound, messages, stream);
  assert.equal(second.text, ANSWER);
  messages.push(second, new HumanMessage("And then?"));
  assert.match((await ask(bound, messages, stream)).text, /Hello there/);
};

const failures = (model) => async () => {
  assert.match((await failure(model.invoke("busy"))).message, /slow down/);
  assert.ok(await failure(collect(model.stream("cut"))));
};

// It knows the words of two services for a full context.
const fills = (model) => async () => {
  for (const asked of [model.invoke("full"), collect(model.stream("full"))]) {
    const full = await failure(asked);
    assert.ok(ContextOverflowError.isInstance(full), full.stack);
  }
};

// A history that no model said: calls of the client's own, and messages of one role in a row.
const histories = (model) => async () => {
  const id = "call_of_mine";
  const call = new AIMessage({ content: "", tool_calls: [{ id, name: "weather", args: {} }] });
  const result = new ToolMessage({ content: "21", tool_call_id: id, name: "weather" });
  const messages = [new SystemMessage("S"), new HumanMessage("How warm is Paris?"), call, result];
  assert.equal((await model.bindTools([weather]).invoke(messages)).text, ANSWER);
  const [first, second] = [new HumanMessage("One"), new AIMessage("Two")];
  const rows = [first, first, second, second, new HumanMessage("Three")];
  assert.match((await model.invoke(rows)).text, /Hello there/);
};

await run(({ url }) => {
  const openai = { apiKey: "any", configuration: { baseURL: url + "/v1" }, maxRetries: 1 };
  const responses = { ...openai, model: "gpt-5", useResponsesApi: true, reasoning: { summary: "auto" } };
  const anthropic = { apiKey: "any", anthropicApiUrl: url, model: "claude-sonnet-4-5", maxRetries: 1 };
  const google = { apiKey: "any", baseUrl: url, model: "gemini-3-pro", maxRetries: 1 };
  const ollama = { baseUrl: url, model: "m", maxRetries: 1 };
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const models = {
    "openai chat": new ChatOpenAI({ ...openai, model: "gpt-4o" }),
    "openai responses": new ChatOpenAI(responses),
    "openai responses, not stored": new ChatOpenAI({ ...responses, zdrEnabled: true }),
    anthropic: new ChatAnthropic({ ...anthropic, maxTokens: 4096, thinking }),
    google: new ChatGoogleGenerativeAI({ ...google, thinkingConfig: { includeThoughts: true } }),
    ollama: new ChatOllama({ ...ollama, think: true }),
  };
  const cases = {};
  for (const [name, model] of Object.entries(models)) {
    for (const [question, count] of Object.entries(QUESTIONS)) {
      for (const stream of [false, true]) {
        const how = stream ? "streamed" : "whole";
        cases[`${name}, ${how}: ${question}`] = talks(model, question, count, stream);
      }
    }
    cases[`${name}: failures`] = failures(model);
    cases[`${name}: histories of the client's own`] = histories(model);
  }
  for (const name of ["openai chat", "openai responses", "anthropic"]) {
    cases[`${name}: a full context`] = fills(models[name]);
  }
  for (const name of ["openai chat", "openai responses", "google", "ollama"]) {
    cases[`${name}: structured output`] = async () => {
      const answer = await models[name].withStructuredOutput(place).invoke("structured");
      assert.deepEqual(answer, { city: "Paris" });
    };
  }
  return cases;
});
