// The `codex` command holds a tool conversation with the mock, through Responses.
// npm: @openai/codex
import { writeFileSync } from "node:fs";
import path from "node:path";
import { command, folder, runAgent } from "./harness.mjs";

const settings = (url) => `
model = "gpt-5.5"
model_provider = "mock"
model_reasoning_summary = "auto"
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

await runAgent(({ url }) => {
  const home = folder("codex");
  writeFileSync(path.join(home, "config.toml"), settings(url));
  const env = { CODEX_HOME: home, MOCK_KEY: "any" };
  return {
    exec: (prompt) => command("codex", ["exec", "--skip-git-repo-check", prompt], env),
    "exec --json": (prompt) =>
      command("codex", ["exec", "--json", "--skip-git-repo-check", prompt], env),
  };
});
