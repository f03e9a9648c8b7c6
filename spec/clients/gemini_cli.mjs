// The `gemini` command holds a tool conversation with the mock.
// npm: @google/gemini-cli
import { writeFileSync } from "node:fs";
import path from "node:path";
import { command, folder, runAgent } from "./harness.mjs";

const SETTINGS = {
  security: { auth: { selectedType: "gemini-api-key" } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { enableAutoUpdate: false },
};

await runAgent(({ url }) => {
  writeFileSync(path.join(folder(".gemini"), "settings.json"), JSON.stringify(SETTINGS));
  const env = {
    GEMINI_API_KEY: "any",
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_TELEMETRY_ENABLED: "false",
    NO_BROWSER: "true",
  };
  const options = ["--yolo", "--skip-trust", "-m"];
  return {
    "gemini-2.5-pro": (prompt) =>
      command("gemini", [...options, "gemini-2.5-pro", "-p", prompt], env),
    "gemini-3-pro-preview": (prompt) =>
      command("gemini", [...options, "gemini-3-pro-preview", "-p", prompt], env),
  };
});
