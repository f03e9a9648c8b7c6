// The `claude` command holds a tool conversation with the mock. That our adapter drives it is in
// claude.sh.
// npm: @anthropic-ai/claude-code
import { claudeEnvironment, command, folder, runAgent } from "./harness.mjs";

await runAgent(({ url }) => {
  const env = claudeEnvironment(url);
  const options = ["--allowedTools", "Bash", "--output-format"];
  return {
    text: (prompt) => command("claude", ["-p", prompt, ...options, "text"], env),
    "stream-json, verbose": (prompt) =>
      command("claude", ["-p", prompt, "--verbose", ...options, "stream-json"], env),
  };
});
