// The `claude` command calls a tool and an entity's method of a script, through
// `agenthost mcp serve` on standard input and output, and over HTTP.
// npm: @anthropic-ai/claude-code
import { writeFileSync } from "node:fs";
import path from "node:path";
import { claudeEnvironment, command, folder, runShop } from "./harness.mjs";

await runShop(({ url }, shop) => {
  const env = claudeEnvironment(url);
  const ask = (name, server) => (prompt) => {
    const file = path.join(folder("claude"), `${name}.json`);
    writeFileSync(file, JSON.stringify({ mcpServers: { shop: server } }));
    const words = ["--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__shop"];
    return command("claude", ["-p", prompt, ...words], env);
  };
  const headers = { Authorization: `Bearer ${shop.token}` };
  return {
    "standard streams": ask("stdio", { command: shop.command[0], args: shop.command.slice(1) }),
    HTTP: ask("http", { type: "http", url: shop.url, headers }),
  };
});
