// The SDKs' clients use the tools, questions, resources and entities of a script, through
// `agenthost mcp serve` on standard input and output, and over HTTP: the SDK of the older revisions,
// and the one of revision 2026-07-28.
// npm: @modelcontextprotocol/sdk @modelcontextprotocol/client
import assert from "node:assert/strict";
import { load, runCases, serve } from "./harness.mjs";

const INFO = [{ name: "check", version: "1" }];
const FORMS = { capabilities: { elicitation: { form: {} } } };

const older = {
  ...load("@modelcontextprotocol/sdk/client/index.js"),
  ...load("@modelcontextprotocol/sdk/client/stdio.js"),
  ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  types: load("@modelcontextprotocol/sdk/types.js"),
};
const newer = {
  ...load("@modelcontextprotocol/client"),
  ...load("@modelcontextprotocol/client/stdio"),
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A client of each kind: `call` makes a call with options, `changes` counts changes of the list.
function olderClient() {
  const client = new older.Client(...INFO, FORMS);
  const self = { sdk: older, client, changes: 0 };
  self.call = (name, args, options) =>
    client.callTool({ name, arguments: args }, undefined, options);
  self.answer = (body) => client.setRequestHandler(older.types.ElicitRequestSchema, body);
  client.setNotificationHandler(older.types.ToolListChangedNotificationSchema, () => {
    self.changes += 1;
  });
  return self;
}

function newerClient(mode, revision) {
  const client = new newer.Client(...INFO, { ...FORMS, versionNegotiation: { mode } });
  const self = { sdk: newer, client, changes: 0, revision };
  self.call = (name, args, options) => client.callTool({ name, arguments: args }, options);
  self.answer = (body) => client.setRequestHandler("elicitation/create", body);
  client.setNotificationHandler("notifications/tools/list_changed", () => {
    self.changes += 1;
  });
  return self;
}

const CLIENTS = {
  "older SDK": olderClient,
  "newer SDK, older revision": () => newerClient("legacy", "2025-11-25"),
  "newer SDK, probing": () => newerClient("auto", "2026-07-28"),
  "newer SDK, 2026-07-28": () => newerClient({ pin: "2026-07-28" }, "2026-07-28"),
};

const shop = await serve("mcp_workshop.lua");
const TRANSPORTS = {
  "standard streams": (sdk) =>
    new sdk.StdioClientTransport({ command: shop.command[0], args: shop.command.slice(1) }),
  HTTP: (sdk) =>
    new sdk.StreamableHTTPClientTransport(new URL(shop.url), {
      requestInit: { headers: { Authorization: `Bearer ${shop.token}` } },
    }),
};

const textOf = (result) => result.content.map((part) => part.text).join("|");

async function lists({ client }) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name).join(" ");
  assert.match(names, /add fail greet .*order.* stopped wait work/);
  const add = tools.find((tool) => tool.name === "add");
  assert.deepEqual(add.inputSchema.required, ["a", "b"]);
}

async function results({ call }) {
  const sum = await call("add", { a: 2, b: 3 });
  assert.deepEqual(sum.structuredContent, { sum: 5 });
  assert.equal(textOf(sum), '{"sum":5}');
  const failed = await call("fail", {});
  assert.equal(failed.isError, true);
  assert.match(textOf(failed), /no paper/);
  assert.equal((await call("add", { a: "two" })).isError, true);
  await assert.rejects(call("nothing", {}), /Unknown tool/);
}

async function progress({ call }) {
  const seen = [];
  const result = await call("work", {}, { onprogress: (at) => seen.push(at) });
  assert.equal(textOf(result), "worked");
  assert.ok(seen.length >= 2, `${seen.length} reports`);
  assert.ok(seen.every((at, i) => i === 0 || at.progress > seen[i - 1].progress));
  assert.match(seen[0].message, /^part/);
}

async function cancel({ call }) {
  const before = Number(textOf(await call("stopped", {})));
  const stop = new AbortController();
  const waiting = call("wait", {}, { signal: stop.signal });
  setTimeout(() => stop.abort("enough"), 200);
  await assert.rejects(waiting);
  for (let i = 0; i < 50 && Number(textOf(await call("stopped", {}))) === before; i += 1) {
    await sleep(100);
  }
  assert.equal(Number(textOf(await call("stopped", {}))), before + 1);
}

async function question({ call, answer }) {
  let asked;
  answer((request) => {
    asked = request.params;
    return { action: "accept", content: { name: "Ada" } };
  });
  assert.equal(textOf(await call("greet", {})), "Hello Ada");
  assert.equal(asked.message, "Who is it?");
  assert.deepEqual(asked.requestedSchema.required, ["name"]);
  answer(() => ({ action: "decline" }));
  assert.equal((await call("greet", {})).isError, true);
}

async function resources({ client }) {
  const { resources: list } = await client.listResources();
  assert.ok(list.some((one) => one.uri === "agenthost://prompt/rules"));
  const { contents } = await client.readResource({ uri: "agenthost://prompt/rules" });
  assert.match(contents[0].text, /Be exact/);
  await assert.rejects(client.readResource({ uri: "agenthost://prompt/none" }));
}

// In a session the methods come with the instance; else the list has them from the beginning.
async function entity(self) {
  const names = async () => (await self.client.listTools()).tools.map((tool) => tool.name);
  if ((await names()).includes("order_status")) {
    assert.equal(textOf(await self.call("order_status", { id: "o-7" })), "o-7 is on its way");
    return;
  }
  await self.call("order", { id: "o-7" });
  for (let i = 0; i < 50 && self.changes === 0; i += 1) await sleep(100);
  assert.equal(self.changes, 1);
  const name = (await names()).find((one) => /^order_.*_status$/.test(one));
  assert.equal(textOf(await self.call(name, {})), "o-7 is on its way");
}

async function together({ call }) {
  const asked = Array.from({ length: 20 }, (_, i) => call("add", { a: i, b: 1 }));
  const sums = (await Promise.all(asked)).map((result) => result.structuredContent.sum);
  assert.deepEqual(sums, Array.from({ length: 20 }, (_, i) => i + 1));
}

const BODIES = { lists, results, progress, cancel, question, resources, entity, together };

const all = (make, connect) => async () => {
  const self = make();
  await self.client.connect(connect(self.sdk));
  assert.equal(self.client.getNegotiatedProtocolVersion?.(), self.revision);
  for (const [name, body] of Object.entries(BODIES)) {
    await body(self).catch((error) => assert.fail(`${name}: ${error.stack}`));
  }
  await self.client.close();
};

const cases = {};
for (const [name, make] of Object.entries(CLIENTS)) {
  for (const [transport, connect] of Object.entries(TRANSPORTS)) {
    cases[`${name}, ${transport}`] = all(make, connect);
  }
}
await runCases(cases);
process.exit(0);
