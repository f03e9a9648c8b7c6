// The `pi` command holds a tool conversation with the mock, through each form that it speaks.
// npm: @earendil-works/pi-coding-agent
import { writeFileSync } from "node:fs";
import path from "node:path";
import { command, folder, runAgent } from "./harness.mjs";

// What pi calls each form, the path behind the mock's address, and a model's name.
const FORMS = {
  anthropic: ["anthropic-messages", "", "claude-opus-4-8"],
  chat: ["openai-completions", "/v1", "gpt-5"],
  responses: ["openai-responses", "/v1", "gpt-5"],
  google: ["google-generative-ai", "/v1beta", "gemini-3-pro"],
};

const model = (id) => ({
  id,
  name: id,
  reasoning: true,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 200000,
  maxTokens: 8000,
});

await runAgent(({ url }) => {
  const providers = {};
  const cases = {};
  const env = { PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" };
  for (const [form, [api, below, id]] of Object.entries(FORMS)) {
    const provider = `mock-${form}`;
    providers[provider] = { baseUrl: url + below, apiKey: "any", api, models: [model(id)] };
    const words = ["-p", "--provider", provider, "--model", id, "--thinking", "low"];
    cases[form] = (prompt) => command("pi", [...words, prompt], env);
  }
  const home = folder(".pi/agent");
  writeFileSync(path.join(home, "models.json"), JSON.stringify({ providers }));
  return cases;
});
