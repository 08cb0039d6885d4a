// Runs the end-to-end tests, one file at a time. A browser on a busy machine can be late: a file with a
// failure is run once more, and what failed first is said at the end. What fails twice fails.
//
//   node tools/run_e2e.mjs [FILE…]     default: e2e/*.test.mjs
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../e2e');

/** The failures of these files: [{ file, name }]. */
async function failuresOf(files) {
  const failures = [];
  const stream = run({ files, concurrency: 1 });
  stream.on('test:fail', ({ file, name }) => failures.push({ file, name }));
  const printed = stream.compose(new spec());
  for await (const text of printed) process.stdout.write(text);
  return failures;
}

const named = process.argv.slice(2).map((file) => path.resolve(file));
const files = named.length > 0 ? named : readdirSync(folder).filter((name) => name.endsWith('.test.mjs')).sort().map((name) => path.join(folder, name));

const first = await failuresOf(files);
if (first.length > 0) {
  const again = [...new Set(first.map(({ file }) => file))];
  console.log(`\n${first.length} failed; once more: ${again.map((file) => path.basename(file)).join(', ')}\n`);
  const second = await failuresOf(again);
  for (const { file, name } of first) {
    const fails = second.some((failure) => failure.file === file && failure.name === name);
    console.log(`${fails ? 'failed twice' : 'failed once, then passed'}: ${path.basename(file)}: ${name}`);
  }
  if (second.length > 0) process.exitCode = 1;
}
