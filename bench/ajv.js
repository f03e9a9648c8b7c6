// bench-ajv: the tool call of bench/schema.c checked by Ajv, from text and from an existing object,
// compared with our check from text. Run by `make bench-ajv`, which installs Ajv into the build
// folder.
//
//   node ajv.js FOLDER_OF_AJV SCHEMA_PROGRAM
"use strict";
const { execFileSync } = require("child_process");
const { createRequire } = require("module");
const path = require("path");

const [folder, program] = process.argv.slice(2);
const Ajv = createRequire(path.resolve(folder, "x.js"))("ajv/dist/2020").default;
const ours = JSON.parse(execFileSync(program, ["20"], { encoding: "utf8" }));
const { schema, value } = JSON.parse(execFileSync(program, ["case"], { encoding: "utf8" }));
const validate = new Ajv().compile(schema);
const text = JSON.stringify(value);

function microseconds(f) {
  const ROUNDS = 200000;
  let least = Infinity;
  for (let tries = 0; tries < 5; tries++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < ROUNDS; i++)
      if (!f()) throw new Error("the value does not conform");
    least = Math.min(least, Number(process.hrtime.bigint() - start) / 1e3 / ROUNDS);
  }
  return least;
}

const parsed = microseconds(() => validate(JSON.parse(text)));
const object = microseconds(() => validate(value));
const here = ours.call_scan_us + ours.call_us;
console.log(`a call of ${text.length} bytes: ${here.toFixed(2)} us scanned and checked here; ` +
  `${parsed.toFixed(2)} us by JSON.parse and Ajv (${(here / parsed).toFixed(2)}), ` +
  `${object.toFixed(2)} us by Ajv of an object`);
