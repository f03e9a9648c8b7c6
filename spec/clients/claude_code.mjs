// The `claude` command holds a tool conversation with the mock. That our adapter drives it is in
// claude.sh.
// npm: @anthropic-ai/claude-code
import { command, folder, runAgent } from "./harness.mjs";

await runAgent(({ url }) => {
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "any",
    CLAUDE_CONFIG_DIR: folder("claude"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
    DISABLE_AUTOUPDATER: "1",
  };
  const options = ["--allowedTools", "Bash", "--output-format"];
  return {
    text: (prompt) => command("claude", ["-p", prompt, ...options, "text"], env),
    "stream-json, verbose": (prompt) =>
      command("claude", ["-p", prompt, "--verbose", ...options, "stream-json"], env),
  };
});
