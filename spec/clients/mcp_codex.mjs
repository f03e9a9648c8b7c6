// The `codex` command calls a tool and an entity's method of a script, through
// `agenthost mcp serve`. It reads the list of tools once, unless a feature is switched on that it
// has but does not use yet; another one is revision 2026-07-28, over HTTP alone. The model is one to
// which it declares all tools, so that none need be searched.
// npm: @openai/codex
import { writeFileSync } from "node:fs";
import path from "node:path";
import { codexSettings, command, folder, runShop } from "./harness.mjs";

const settings = (url, shop, features) => `${codexSettings(url, "gpt-5")}
[features]
${features}
[mcp_servers.shop]
${shop}
`;

await runShop(({ url }, shop) => {
  const env = { MOCK_KEY: "any", SHOP_TOKEN: shop.token };
  const ask = (name, server, features) => (prompt) => {
    const home = folder(`codex-${name}`);
    writeFileSync(path.join(home, "config.toml"), settings(url, server, features));
    const words = ["exec", "--skip-git-repo-check", prompt];
    return command("codex", words, { ...env, CODEX_HOME: home });
  };
  const [program, ...words] = shop.command;
  const stdio = (...more) =>
    `command = "${program}"\nargs = ${JSON.stringify([...words, ...more])}`;
  const http = `url = "${shop.url}"\nbearer_token_env_var = "SHOP_TOKEN"`;
  const changes = "mcp_tool_list_changed = true";
  return {
    "standard streams, a fixed list": ask("fixed", stdio("--fixed"), ""),
    "standard streams": ask("stdio", stdio(), changes),
    HTTP: ask("http", http, changes),
    "HTTP, 2026-07-28": ask("newest", http, "mcp_2026_07_28 = true"),
  };
});
