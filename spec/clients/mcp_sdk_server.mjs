// A server of MCP of the newest SDK, with both kinds of revisions:
//
//   node mcp_sdk_server.mjs MODULES [http]
//
// MODULES is a folder with the SDK's packages. It speaks over its standard streams, or over HTTP
// and prints its address.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, http] = process.argv.slice(2);
const load = createRequire(path.join(modules, "x.js"));
const { McpServer, acceptedContent, createMcpHandler, inputRequired } = load(
  "@modelcontextprotocol/server",
);
const { z } = load("zod");

let stopped = 0;
let grown = false;
let changed = () => {};

const says = (text) => ({ content: [{ type: "text", text }] });

function addGrown(server) {
  server.registerTool("grown", { description: "Is new." }, () => says("I am new"));
}

function grow(server) {
  grown = true;
  if (!http) addGrown(server); // a request over HTTP has a server of its own
  changed();
  return says("grown");
}

async function work(ctx) {
  const token = ctx.mcpReq._meta?.progressToken;
  for (let i = 1; i <= 3; i += 1) {
    const params = { progressToken: token, progress: i, total: 3, message: `part ${i}` };
    await ctx.mcpReq.notify({ method: "notifications/progress", params });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return says("worked");
}

function wait(ctx) {
  return new Promise((resolve) => {
    ctx.mcpReq.signal.addEventListener("abort", () => {
      stopped += 1;
      resolve(says("stopped"));
    });
  });
}

function greet(ctx) {
  const form = z.object({ name: z.string() });
  const answer = acceptedContent(ctx.mcpReq.inputResponses, "who", form);
  if (answer) return says(`Hello ${answer.name}`);
  const who = inputRequired.elicit({ message: "Who is it?", requestedSchema: form });
  return inputRequired({ inputRequests: { who } });
}

function make() {
  const server = new McpServer(
    { name: "sdk", version: "1" },
    { capabilities: { tools: { listChanged: true } } },
  );
  const sum = { inputSchema: z.object({ a: z.number(), b: z.number() }), description: "Adds." };
  server.registerTool("add", sum, ({ a, b }) => says(String(a + b)));
  server.registerTool("greet", { description: "Greets." }, greet);
  server.registerTool("grow", { description: "Adds a tool." }, () => grow(server));
  server.registerTool("stopped", { description: "Counts." }, () => says(String(stopped)));
  server.registerTool("wait", { description: "Waits." }, wait);
  server.registerTool("work", { description: "Works." }, work);
  if (grown) addGrown(server);
  return server;
}

if (http) {
  const { toNodeHandler } = load("@modelcontextprotocol/node");
  const handler = createMcpHandler(make);
  changed = () => handler.notify.toolsChanged();
  const listening = createServer(toNodeHandler(handler)).listen(0, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${listening.address().port}`);
  });
} else {
  load("@modelcontextprotocol/server/stdio").serveStdio(make);
}
