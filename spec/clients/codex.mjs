// The `codex` command holds a tool conversation with the mock, through Responses.
// npm: @openai/codex
import { writeFileSync } from "node:fs";
import path from "node:path";
import { codexSettings, command, folder, runAgent } from "./harness.mjs";

await runAgent(({ url }) => {
  const home = folder("codex");
  const settings = `model_reasoning_summary = "auto"${codexSettings(url, "gpt-5.5")}`;
  writeFileSync(path.join(home, "config.toml"), settings);
  const env = { CODEX_HOME: home, MOCK_KEY: "any" };
  return {
    exec: (prompt) => command("codex", ["exec", "--skip-git-repo-check", prompt], env),
    "exec --json": (prompt) =>
      command("codex", ["exec", "--json", "--skip-git-repo-check", prompt], env),
  };
});
