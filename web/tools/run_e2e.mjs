// Runs the end-to-end tests, two files at a time where there are processors for them: a page waits for its server half of
// the time. A browser on a busy machine can be late: a file with a failure is run once more, by itself, and what failed
// first is said at the end. What fails twice fails.
//
//   node tools/run_e2e.mjs [--static FOLDER] [FILE…]     default: e2e/*.test.mjs
//
// --static: of the page as static files, such as ../build/static-page, but for what needs a server (e2e/needs_server.mjs)
// or has another page to itself.
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { needServer } from '../e2e/needs_server.mjs';

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../e2e');

const given = process.argv.slice(2);
const isStatic = given[0] === '--static';
if (isStatic) process.env.HEED_STATIC = given[1].startsWith('http:') ? given[1] : path.resolve(given[1]);

/** In a regular expression. */
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** Every test, or all but those that need a server. Of Node.js 20, a test is run where the root's name matches, too. */
const unwanted = ['<root>', ...needServer.map(({ test }) => test).filter(Boolean)];
const wanted = isStatic ? { testNamePatterns: [new RegExp(`^(?!(?:${unwanted.map(literal).join('|')})$)`)] } : {};

/** The failures of these files: [{ file, name }]. */
async function failuresOf(files, concurrency) {
  const failures = [];
  const stream = run({ files, concurrency, ...wanted });
  stream.on('test:fail', ({ file, name }) => failures.push({ file, name }));
  const printed = stream.compose(new spec());
  for await (const text of printed) process.stdout.write(text);
  return failures;
}

const named = given.slice(isStatic ? 2 : 0).map((file) => path.resolve(file));
const files = named.length > 0 ? named : readdirSync(folder).filter((name) => name.endsWith('.test.mjs')).filter((name) => !isStatic || !needServer.some(({ file, test }) => file === name && !test)).sort().map((name) => path.join(folder, name));

const first = await failuresOf(files, Math.min(2, availableParallelism()));
if (first.length > 0) {
  const again = [...new Set(first.map(({ file }) => file))];
  console.log(`\n${first.length} failed; once more: ${again.map((file) => path.basename(file)).join(', ')}\n`);
  const second = await failuresOf(again, 1);
  for (const { file, name } of first) {
    const fails = second.some((failure) => failure.file === file && failure.name === name);
    console.log(`${fails ? 'failed twice' : 'failed once, then passed'}: ${path.basename(file)}: ${name}`);
  }
  if (second.length > 0) process.exitCode = 1;
}
