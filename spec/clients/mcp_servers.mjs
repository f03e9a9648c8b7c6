// ah.mcp uses servers that are not ours, by mcp_servers.lua: the reference servers of MCP and a
// server of the newest SDK, on their standard streams and over HTTP.
// npm: @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/server @modelcontextprotocol/node zod
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import path from "node:path";
import { createInterface } from "node:readline";
import { folder, installed, ours, program, runCases } from "./harness.mjs";

const script = ours.file("mcp_servers.lua");
const modules = path.dirname(installed(""));
const bin = (name) => installed(`.bin/${name}`);
const sdk = [ours.file("mcp_sdk_server.mjs"), modules];

const uses = (check, ...words) => async () => {
  const { code, text } = await program(ours.agenthost, [script, check, ...words], {});
  assert.equal(code, 0, text);
};

function begin(file, words, env) {
  const child = spawn(file, words, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  process.on("exit", () => child.kill());
  return child;
}

// The address of a server that prints it as its first line.
async function addressOf(child) {
  const [line] = await once(createInterface(child.stdout), "line");
  return line;
}

// A port that is free now.
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

// server-everything over HTTP, which says nothing of use: it is asked until it answers.
async function everything(port) {
  const child = begin(bin("mcp-server-everything"), ["streamableHttp"], { PORT: String(port) });
  for (let i = 0; i < 100; i += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/mcp`).catch(() => null);
    if (answer) return child;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return assert.fail("server-everything did not start");
}

// A proxy in front of server-everything. POST /cut: the stream of the next call is cut after its
// first bytes. POST /resumed: how many streams were asked for again. POST /restart: the server is
// started again, without its sessions.
async function proxy() {
  const port = await freePort();
  let child = await everything(port);
  let cut = false;
  let resumed = 0;
  const control = {
    "/cut": async () => {
      cut = true;
    },
    "/resumed": async () => String(resumed),
    "/restart": async () => {
      child.kill();
      await once(child, "exit");
      child = await everything(port);
    },
  };
  const pass = (asked, answer) => {
    const { method, url, headers } = asked;
    if (headers["last-event-id"]) resumed += 1;
    const passed = request({ port, method, path: url, headers }, (response) => {
      answer.writeHead(response.statusCode, response.headers);
      const stream = /event-stream/.test(response.headers["content-type"] ?? "");
      response.on("data", (data) => {
        answer.write(data);
        if (cut && stream && method === "POST") {
          cut = false;
          setTimeout(() => passed.destroy(), 300);
        }
      });
      response.on("end", () => answer.end());
      response.on("close", () => answer.destroy());
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  };
  const server = createServer(async (asked, answer) => {
    if (!control[asked.url]) return pass(asked, answer);
    return answer.end(await control[asked.url]());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

const everywhere = await proxy();
const newest = await addressOf(begin(process.execPath, [...sdk, "http"]));
const files = folder("files");

await runCases({
  "server-everything, standard streams": uses("everything", bin("mcp-server-everything")),
  "server-everything, HTTP": uses("everything", everywhere),
  "server-everything, a stream that is cut": uses("cut", everywhere),
  "server-everything, a session that is forgotten": uses("restarted", everywhere),
  "server-filesystem": uses("filesystem", bin("mcp-server-filesystem"), files),
  "server-memory": uses("memory", bin("mcp-server-memory")),
  "SDK, standard streams": uses("sdk", process.execPath, ...sdk),
  "SDK, HTTP": uses("sdk", newest),
});
process.exit(0);
