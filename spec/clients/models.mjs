// Fails where the table of models (src/wire/models_table.c) is older than the types of the providers'
// packages: where these name a model of a family that it does not know, or newer than the newest of
// its family there. Names given behind it are asked about instead, PROVIDER/NAME each.
//
// npm: openai @anthropic-ai/sdk @google/genai
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const [modules, agenthost, ...asked] = process.argv.slice(2); // as run.mjs says them

// The types that list names of models, and the provider that serves them. A type is a union of texts.
const SOURCES = [
  { package: "openai", provider: "openai", files: ["resources/shared.d.ts"],
    types: ["ChatModel", "AllModels"] },
  { package: "@anthropic-ai/sdk", provider: "anthropic",
    files: ["resources/messages/messages.d.ts"], types: ["Model"] },
  { package: "@google/genai", provider: "gemini", files: ["dist/genai.d.ts"], types: ["Model_2", "Model"] },
];

// The texts of a union, whichever quotes it has.
function namesOf(text, type) {
  const union = text.match(new RegExp(`\\btype ${type}\\s*=([^;]*);`));
  return union ? [...union[1].matchAll(/['"]([^'"]+)['"]/g)].map((m) => m[1]) : [];
}

function namesIn(source) {
  const names = new Set();
  for (const file of source.files) {
    const where = path.join(modules, "node_modules", source.package, file);
    if (!existsSync(where)) return { faults: [`${source.package}: ${file} is not there any more`] };
    const text = readFileSync(where, "utf8");
    for (const type of source.types) namesOf(text, type).forEach((name) => names.add(name));
  }
  if (names.size < 10) return { faults: [`${source.package}: its types list no models any more`] };
  return { names: [...names].map((name) => `${source.provider}/${name}`), faults: [] };
}

// What the table says of each: where it has the name from.
function tableOf(names) {
  const code = `local list = {}
    for i, name in ipairs({...}) do
      local said = assert(ah.capabilities(name, { base_url = "http://localhost", api_key = "none" }))
      list[i] = { name = name, from = said.known.name.from, family = said.known.name.family }
    end
    print(ah.json.encode(ah.array(list)))`;
  return JSON.parse(execFileSync(agenthost, ["-q", "-e", code, ...names], { encoding: "utf8" }));
}

function faultOf(said) {
  if (said.from === "newest")
    return `${said.name} is newer than the newest of its family (${said.family})`;
  if (!said.family) return `${said.name} is of no family that is known`;
  return null;
}

const listed = asked.length ? [{ names: asked, faults: [] }] : SOURCES.map(namesIn);
const names = listed.flatMap((source) => source.names ?? []);
const faults = [...listed.flatMap((source) => source.faults), ...tableOf(names).map(faultOf)];
const found = faults.filter(Boolean);
found.forEach((fault) => console.log(`  failed src/wire/models_table.c: ${fault}`));
if (!found.length) console.log(`  ok the table knows the ${names.length} names of models in the types`);
