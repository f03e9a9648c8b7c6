// make check-clients: runs the client files named, each with what npm installs for it.
//
//   node run.mjs FOLDER AGENTHOST NAME...
//
// A file NAME.mjs says in a line `// npm: ...` what it needs. It is given FOLDER/NAME, where that is
// and nowhere else, newest versions, which are printed, and AGENTHOST; it runs its cases with
// harness.mjs, or prints lines of their form ("  ok", "  failed") by itself. Clients run in a
// network of their own that has loopback alone, where `unshare` can make one, with an empty HOME.
// One line a case, one at the end; a client that npm cannot install is skipped with a word.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [folder, agenthost, ...names] = process.argv.slice(2);
const here = fileURLToPath(new URL(".", import.meta.url));
const LOOPBACK = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
const fenced = spawnSync(LOOPBACK[0], [...LOOPBACK.slice(1), "true"]).status === 0;
const sums = { ok: 0, failed: 0, skipped: 0 };

function skip(name, why) {
  sums.skipped += 1;
  console.log(`${name}: skipped, ${why}`);
}

function packagesOf(file) {
  return /^\/\/ npm: (.+)$/m.exec(readFileSync(file, "utf8"))[1].split(" ");
}

function install(where, packages) {
  mkdirSync(where, { recursive: true });
  const options = ["--silent", "--no-audit", "--no-fund", "--no-save", "--prefix", where];
  const npm = spawnSync("npm", ["install", ...options, ...packages], { stdio: "pipe" });
  return npm.status === 0;
}

// A package may name its version (`name@1.2`), or have another name (`alias@npm:name`).
function versions(where, packages) {
  const version = (wanted) => {
    const [name] = /^@?[^@]+/.exec(wanted);
    const file = path.join(where, "node_modules", name, "package.json");
    return `${name} ${JSON.parse(readFileSync(file, "utf8")).version}`;
  };
  return packages.map(version).join(", ");
}

// Only what a client needs: no key and no proxy of whoever runs this.
function environment(home) {
  return {
    PATH: process.env.PATH,
    LANG: "C.UTF-8",
    HOME: home,
    TMPDIR: home,
    CLIENT_FENCED: fenced ? "yes" : "",
    DO_NOT_TRACK: "1",
    NO_UPDATE_NOTIFIER: "1",
  };
}

// Prints what the cases say, and counts them by the first word of their lines.
async function cases(file, where) {
  const home = mkdtempSync(path.join(path.resolve(where), "home-"));
  const asked = [file, path.resolve(where), path.resolve(agenthost)];
  const words = [...(fenced ? LOOPBACK : []), process.execPath, ...asked];
  const child = spawn(words[0], words.slice(1), {
    env: environment(home),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  for await (const line of createInterface(child.stdout)) {
    const word = /^ {2}(ok|failed|skipped) /.exec(line);
    if (word) sums[word[1]] += 1;
    console.log(line);
  }
  const [code] = await closed;
  rmSync(home, { recursive: true, force: true });
  if (code !== 0) {
    sums.failed += 1;
    console.log(`  failed ${path.basename(file)} ended with ${code}`);
  }
}

for (const name of names) {
  const file = path.join(here, `${name}.mjs`);
  const where = path.join(folder, name);
  const packages = packagesOf(file);
  if (install(where, packages)) {
    console.log(`${name}: ${versions(where, packages)}`);
    await cases(file, where);
  } else {
    skip(name, `npm could not install ${packages.join(", ")}`);
  }
}
const net = fenced ? "loopback alone" : "the network of this machine, by addresses of loopback";
console.log(`node ${process.version}, ${net}`);
console.log(
  `check-clients: ${sums.ok} passed, ${sums.failed} failed, ${sums.skipped} skipped`,
);
process.exitCode = sums.failed ? 1 : 0;
