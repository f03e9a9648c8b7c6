// What the client files of `make check-clients` share: the client's modules, a mock that is started
// and ended, what the model says in turns.lua, and the cases with their results.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));

// As run.mjs says them.
const [modules, agenthost] = process.argv.slice(2);
const { CLIENT_FENCED, HOME } = process.env;
const TIMEOUT = 120_000; // of a command, in ms

// What clients warn of is not about the mock.
console.warn = () => {};

/** The CommonJS form of a module of the client. */
export const load = createRequire(path.join(modules, "x.js"));

/** The path of the command, and of a file beside this one. */
export const ours = { agenthost, file: (name) => path.join(here, name) };

/** What turns.lua has the model say. */
export const ANSWER = "It is 21 degrees in Paris.";
export const ARGUMENTS = { city: "Paris", unit: "celsius" };
export const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, unit: { type: "string" } },
  required: ["city"],
};
/** Questions that lead to calls, and to how many: with thoughts, in parallel, without thoughts. */
export const QUESTIONS = { "How warm is Paris?": 1, "Which of two is warmer?": 2, "A plain call.": 1 };

/** A text that makes a request too large for the mock; the client says so as its service would. */
export const TOO_LARGE = "x".repeat(64 << 20);

/** What a promise was rejected with; it must be. */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("it went well");
}

/** All that an asynchronous iterator gives. */
export async function collect(stream) {
  const list = [];
  for await (const item of await stream) list.push(item);
  return list;
}

/** A mock that plays a script: `url`, and `faults()`, what it refused so far. */
async function start(script) {
  const log = path.join(mkdtempSync(path.join(HOME, "mock-")), "log");
  const words = ["mock", "-q", "--strict", "--log", log, path.join(here, script)];
  const server = spawn(agenthost, words, { stdio: ["ignore", "pipe", "ignore"] });
  process.on("exit", () => server.kill());
  const lines = createInterface(server.stdout);
  const [url] = await Promise.race([
    once(lines, "line"),
    once(server, "exit").then(() => assert.fail("agenthost mock did not start")),
  ]);
  const requests = () => readFileSync(log, "utf8").split("\n").filter(Boolean).map(JSON.parse);
  return {
    url,
    requests,
    // But for HEAD, by which the claude command sees that there is a server.
    faults: () => requests().filter((r) => r.fault && r.method !== "HEAD").map((r) => r.fault),
    stop: () => server.kill(),
  };
}

// A case is a function, or [a function, how many requests it has refused].
async function runCase(mock, what) {
  const [body, expected = 0] = Array.isArray(what) ? what : [what];
  const before = mock.faults().length;
  await body();
  const faults = mock.faults().slice(before);
  assert.equal(faults.length, expected, `the mock refused: ${faults.join("; ")}`);
}

/** Runs cases, functions by their names, and prints one line each. */
export async function runCases(cases) {
  for (const [name, body] of Object.entries(cases)) {
    try {
      const said = await body();
      console.log(`  ok ${name}${said ? `: ${said}` : ""}`);
    } catch (error) {
      console.log(`  failed ${name}: ${error.stack}`);
    }
  }
}

/** Runs the cases that `cases(mock)` gives, one line each; ends the mock and this process. */
export async function run(cases, script = "turns.lua") {
  const mock = await start(script);
  const named = Object.entries(await cases(mock));
  await runCases(Object.fromEntries(named.map(([name, what]) => [name, () => runCase(mock, what)])));
  mock.stop();
  process.exit(0);
}

/** The path of a file in a package of the client. */
export const installed = (file) => path.join(modules, "node_modules", file);

/** Runs a command of the client in an empty folder: { code, text }. */
export function command(name, words, env) {
  return program(installed(`.bin/${name}`), words, env);
}

/** Runs a program in an empty folder: { code, text }. */
export async function program(file, words, env) {
  const cwd = mkdtempSync(path.join(HOME, "work-"));
  const child = spawn(file, words, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIMEOUT,
  });
  let text = "";
  child.stdout.on("data", (data) => (text += data));
  child.stderr.on("data", (data) => (text += data));
  const [code] = await once(child, "close");
  return { code, text };
}

/** A folder below HOME, made where it is not there. */
export function folder(name) {
  const where = path.join(HOME, name);
  mkdirSync(where, { recursive: true });
  return where;
}

/** Begins `agenthost mcp serve` with a script: its command line, URL and token. */
export async function serve(script) {
  const command = [agenthost, "mcp", "serve", path.join(here, script)];
  const token = "the-token-of-the-server";
  const env = { ...process.env, AGENTHOST_MCP_TOKEN: token };
  const server = spawn(agenthost, [...command.slice(1, 3), "--http", command[3]], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.on("exit", () => server.kill());
  const [url] = await Promise.race([
    once(createInterface(server.stdout), "line"),
    once(server, "exit").then(() => assert.fail("agenthost mcp serve did not start")),
  ]);
  return { command, url, token };
}

/** Runs the cases of an agent that uses mcp_shop.lua; `cases(mock, shop)` is as for runAgent. */
export async function runShop(cases) {
  const shop = await serve("mcp_shop.lua");
  await runAgent((mock) => cases(mock, shop), {
    script: "mcp_turns.lua",
    prompt: "Use the shop.",
    answer: "All three results came.",
    results: ["mint costs 42 euros", "7 percent for Ada c-7"],
  });
}

const BOTH = {
  script: "agent_turns.lua",
  prompt: "Run both.",
  answer: "Both were run.",
  results: ["first-1", "second-2"],
};

/**
 * Runs the cases of a command-line agent: two commands called at once with thoughts, then an answer.
 * `cases(mock)` gives a function a case that runs the agent with the prompt, and returns what
 * command() does. `talks` has other words for the conversation. Agents are run only where they
 * cannot ask anything outside.
 */
export async function runAgent(cases, talks = BOTH) {
  if (!CLIENT_FENCED) {
    console.log("  skipped the agent: it needs a network of its own (unshare -rn and ip)");
    process.exit(0);
  }
  const talk = (mock, ask) => async () => {
    const before = mock.requests().length;
    const { code, text } = await ask(talks.prompt);
    assert.ok(text.includes(talks.answer), `exit code ${code}: ${text}`);
    const last = JSON.stringify(mock.requests().slice(before).map((r) => r.body));
    assert.ok(talks.results.every((result) => last.includes(result)), "no results were sent");
  };
  await run(async (mock) => {
    const named = Object.entries(await cases(mock));
    return Object.fromEntries(named.map(([name, ask]) => [name, talk(mock, ask)]));
  }, talks.script);
}

/** Returns the settings of codex for the mock at `url` and a model; tables may follow. */
export const codexSettings = (url, model) => `
model = "${model}"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[model_providers.mock]
name = "mock"
base_url = "${url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`;

/** Returns the environment of claude for the mock at `url`. */
export const claudeEnvironment = (url) => ({
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: "any",
  CLAUDE_CONFIG_DIR: folder("claude"),
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_TELEMETRY: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_AUTOUPDATER: "1",
});
