// The verdicts of JavaScript. Reads lines of JSON, [expression, text, ...], and writes for each a line: "-"
// where the expression is refused under the flag u, else a digit for each text, 1 where it matches; "?" where
// that takes longer than MOST.
const { readFileSync } = require("fs");
const vm = require("vm");

const MOST = 300; // ms for the texts of one expression
const judge = new vm.Script("subjects.map((s) => (expression.test(s) ? '1' : '0')).join('')");
const context = vm.createContext({});

const verdict = (line) => {
  const [text, ...subjects] = JSON.parse(line);
  try {
    context.expression = new RegExp(text, "u");
  } catch {
    return "-";
  }
  context.subjects = subjects;
  try {
    return judge.runInContext(context, { timeout: MOST });
  } catch {
    return "?";
  }
};

const lines = readFileSync(process.argv[2], "utf8").split("\n").slice(0, -1);
process.stdout.write(lines.map(verdict).join("\n") + "\n");
