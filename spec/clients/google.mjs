// The client of Google: chats with tools, streamed and not, automatic function calling, signatures,
// failures, and what the mock does not have.
// npm: @google/genai
import assert from "node:assert/strict";
import { ANSWER, PARAMETERS, QUESTIONS, TOO_LARGE, collect, failure, load, run } from "./harness.mjs";

const { ApiError, GoogleGenAI } = load("@google/genai");

const DECLARATION = { name: "weather", description: "Says.", parametersJsonSchema: PARAMETERS };
const TOOLS = [{ functionDeclarations: [DECLARATION] }];

const answerTo = ({ id, name }) => ({ functionResponse: { id, name, response: { output: "21" } } });

// The text and the calls of a message, streamed or not.
async function say(chat, message, stream) {
  if (!stream) {
    const response = await chat.sendMessage({ message });
    return { text: response.text, calls: response.functionCalls ?? [] };
  }
  const chunks = await collect(chat.sendMessageStream({ message }));
  return {
    text: chunks.map((chunk) => chunk.text ?? "").join(""),
    calls: chunks.flatMap((chunk) => chunk.functionCalls ?? []),
  };
}

// Three messages; the last one repeats the first, with all that was said before.
const chats = (ai, question, count, stream, includeThoughts) => async () => {
  const config = { tools: TOOLS, thinkingConfig: { includeThoughts } };
  const chat = ai.chats.create({ model: "gemini-3-pro", config });
  for (let i = 0; i < 2; i += 1) {
    const { calls } = await say(chat, question, stream);
    assert.equal(calls.length, count);
    const { text } = await say(chat, calls.map(answerTo), stream);
    assert.equal(text, ANSWER);
  }
  assert.match((await say(chat, "And then?", stream)).text, /Hello there/);
};

// The client makes the calls itself.
const automatic = (ai, stream) => async () => {
  const tool = {
    tool: async () => TOOLS[0],
    callTool: async (calls) => calls.map(answerTo),
  };
  const ask = { model: "gemini-3-pro", contents: "two", config: { tools: [tool] } };
  if (!stream) {
    assert.equal((await ai.models.generateContent(ask)).text, ANSWER);
    return;
  }
  const chunks = await collect(ai.models.generateContentStream(ask));
  assert.ok(chunks.map((chunk) => chunk.text ?? "").join("").endsWith(ANSWER));
};

async function signatures(ai) {
  const contents = [{ role: "user", parts: [{ text: "Paris" }] }];
  const ask = () => ai.models.generateContent({ model: "gemini-3-pro", contents, config: { tools: TOOLS } });
  const [{ content }] = (await ask()).candidates;
  const [part] = content.parts;
  assert.match(part.thoughtSignature, /^[A-Za-z0-9+/]+=*$/);
  contents.push(content, { role: "user", parts: [answerTo(part.functionCall)] });
  assert.equal((await ask()).text, ANSWER);
  delete part.thoughtSignature;
  assert.match((await failure(ask())).message, /missing a thought_signature/);
}

async function structured(ai) {
  const config = { responseMimeType: "application/json", responseJsonSchema: PARAMETERS };
  const ask = { model: "m", contents: "structured", config };
  assert.deepEqual(JSON.parse((await ai.models.generateContent(ask)).text), { city: "Paris" });
}

async function failures(ai) {
  const ask = (contents) => ({ model: "m", contents });
  const busy = await failure(ai.models.generateContent(ask("busy")));
  assert.ok(busy instanceof ApiError && busy.status === 429, busy.message);
  assert.equal((await failure(ai.models.generateContent(ask("broken")))).status, 500);
  assert.ok(await failure(collect(ai.models.generateContentStream(ask("cut")))));
  assert.match((await failure(collect(ai.models.generateContentStream(ask("half"))))).message, /Overloaded/);
  const full = await failure(ai.models.generateContent(ask("full")));
  assert.ok(full instanceof ApiError && full.status === 400, full.message);
  assert.match(full.message, /token count \(6000\) exceeds .* allowed \(5000\)/);
  const long = await ai.models.generateContent(ask("long"));
  assert.equal(long.candidates[0].finishReason, "MAX_TOKENS");
}

async function refused(ai) {
  const config = { tools: [{ functionDeclarations: [{ name: "1 bad name" }] }] };
  const bad = await failure(ai.models.generateContent({ model: "m", contents: "x", config }));
  assert.equal(bad.status, 400);
  assert.equal(JSON.parse(bad.message).error.status, "INVALID_ARGUMENT");
  const large = await failure(ai.models.generateContent({ model: "m", contents: TOO_LARGE }));
  assert.ok(large instanceof ApiError && large.status === 413, large.message);
  assert.match(JSON.parse(large.message).error.message, /larger than 64 MiB/);
}

async function absent(ai) {
  const asked = [
    () => ai.models.embedContent({ model: "m", contents: "x" }),
    () => ai.caches.create({ model: "m", config: { contents: "x" } }),
    () => ai.files.list(),
  ];
  for (const ask of asked) {
    const error = await failure(ask());
    assert.equal(error.status, 404);
    assert.match(JSON.parse(error.message).error.message, /agenthost mock has no .*generateContent/);
  }
}

async function models(ai) {
  assert.deepEqual((await collect(ai.models.list())).map((model) => model.name), ["models/script"]);
  assert.equal((await ai.models.get({ model: "any" })).name, "models/any");
  assert.ok((await ai.models.countTokens({ model: "m", contents: "Hello" })).totalTokens > 0);
}

await run(({ url }) => {
  const ai = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: url } });
  const cases = {};
  for (const [question, count] of Object.entries(QUESTIONS)) {
    for (const stream of [false, true]) {
      for (const thoughts of [false, true]) {
        const how = `${stream ? "streamed" : "whole"}${thoughts ? ", thoughts told" : ""}`;
        cases[`chat, ${how}: ${question}`] = chats(ai, question, count, stream, thoughts);
      }
    }
  }
  return {
    ...cases,
    "automatic calls, whole": automatic(ai, false),
    "automatic calls, streamed": automatic(ai, true),
    signatures: [() => signatures(ai), 1],
    "structured output": () => structured(ai),
    failures: () => failures(ai),
    refusals: [() => refused(ai), 2],
    "what there is not": [() => absent(ai), 3],
    models: () => models(ai),
  };
});
