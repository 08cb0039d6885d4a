// Puts the page, the engine and its models into one folder that any web server can serve.
//
//   node tools/static_page.mjs --engine FOLDER [--engine FOLDER] [--page dist-static] [--models ../models] [--out ../build/static-page]
//
// FOLDER has heed.js and heed.wasm (build/wasm/bin); the second, with threads (build/wasm-threads/bin), is for pages that
// are isolated from other origins. Files but index.html, service-worker.js and the app's
// description have the hash of their content in their address, so that two versions can lie side by side.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Engine } from '../../src/wasm/engine.mjs';

const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const { values } = parseArgs({ options: { engine: { type: 'string', multiple: true }, page: { type: 'string' }, models: { type: 'string' }, out: { type: 'string' } } });
if (!values.engine) {
  console.error('usage: node tools/static_page.mjs --engine FOLDER [--engine FOLDER] [--page FOLDER] [--models FOLDER] [--out FOLDER]');
  process.exit(2);
}
const [engine, threadsEngine] = values.engine.map((folder) => path.resolve(folder));
const page = path.resolve(values.page ?? path.join(web, 'dist-static'));
const models = path.resolve(values.models ?? path.join(web, '../models'));
const out = path.resolve(values.out ?? path.join(web, '../build/static-page'));

/** Of the first view; the others are loaded once the page is at rest. */
const firstModel = 'starter';
const recordedRun = 'recorded';
/** Models and the recorded run, by the names that the engine has for them: folders of `models`. */
const carried = { [firstModel]: firstModel, english: 'english', [recordedRun]: 'recorded-run' };
/** Stored smaller than in the program, since the first view waits for it (docs/static-page.md, "Numbers"). */
const rounded = { [firstModel]: { dtype: 'int8', embedding: true, compute_f32: true } };
/** Of the first model: a folder of `models`, which the page fetches with the first question about features. */
const transcoders = 'starter-transcoders';
/** Of a model's folder, what only its tests read. */
const unused = ['claims.json'];

const filesIn = (folder) => readdirSync(folder, { recursive: true }).map(String).filter((name) => statSync(path.join(folder, name)).isFile()).sort();

function hashOf(folder, names) {
  const hash = createHash('sha256');
  for (const name of names) hash.update(`${name}\0${statSync(path.join(folder, name)).size}\0`).update(readFileSync(path.join(folder, name)));
  return hash.digest('hex').slice(0, 12);
}

/** Copies files to a folder whose name has their hash; its address relative to the page. */
function place(kind, from, names, building) {
  const folder = `${kind}-${hashOf(from, names)}/`;
  for (const name of names) {
    mkdirSync(path.dirname(path.join(building, folder, name)), { recursive: true });
    cpSync(path.join(from, name), path.join(building, folder, name));
  }
  return folder;
}

const building = `${out}.partial`;
rmSync(building, { recursive: true, force: true });
cpSync(page, building, { recursive: true });

/** The files of an engine; a script for its workers is a part of Emscripten's older modules with threads. */
function partsOf(folder) {
  const parts = ['heed.js', 'heed.wasm'];
  for (const name of parts) if (!existsSync(path.join(folder, name))) throw new Error(`there is no ${name} in ${folder}: build it with "cmake --preset wasm" and "cmake --build --preset wasm"`);
  return existsSync(path.join(folder, 'heed.worker.js')) ? [...parts, 'heed.worker.js'] : parts;
}
const scratch = mkdtempSync(path.join(tmpdir(), 'heed-static-page-'));
/** A folder with a model as it is to be stored. */
async function stored(name, folder) {
  if (!rounded[name]) return folder;
  const heed = await Engine.load(path.join(engine, 'heed.js'));
  heed.put(name, folder);
  // Its examples are measured anew: a claim that its numbers no longer carry ends the build.
  const claims = JSON.parse(readFileSync(path.join(folder, 'claims.json')));
  heed.convert(name, '/rounded', { ...rounded[name], claims });
  const to = path.join(scratch, name);
  cpSync(folder, to, { recursive: true });
  for (const [file, bytes] of heed.files('/rounded')) writeFileSync(path.join(to, file), bytes);
  return to;
}

/** What the list of models says of one whose files are not loaded yet. */
async function describe(name, folder) {
  const heed = await Engine.load(path.join(engine, 'heed.js'));
  heed.put(name, folder);
  heed.open(name);
  const { read, dimensions } = JSON.parse((await heed.ask('GET', '/api/model')).bytes);
  return { about: read?.title ?? null, parameters: dimensions.parameters };
}

const release = {
  engine: `${place('engine', engine, partsOf(engine), building)}heed.js`,
  ...(threadsEngine && { threadsEngine: `${place('threads-engine', threadsEngine, partsOf(threadsEngine), building)}heed.js` }),
  models: {},
};
for (const [name, folder] of Object.entries(carried)) {
  const from = await stored(name, path.join(models, folder));
  const files = filesIn(from).filter((file) => !unused.includes(file));
  const facts = name === recordedRun ? {} : await describe(name, path.join(models, folder));
  release.models[name] = { ...facts, folder: place(`models/${name}`, from, files, building), files: files.map((file) => ({ path: file, bytes: statSync(path.join(from, file)).size })) };
}

const ofFirst = path.join(models, transcoders);
const parts = filesIn(ofFirst);
release.transcoders = { folder: place('models/transcoders', ofFirst, parts, building), files: parts.map((file) => ({ path: file, bytes: statSync(path.join(ofFirst, file)).size })) };

rmSync(scratch, { recursive: true });

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
const indexFile = path.join(building, 'index.html');
const html = readFileSync(indexFile, 'utf8').replace('</title>', `</title>\n    <meta name="heed-release" content="${escaped(JSON.stringify(release))}" />`);
if (!html.includes('heed-release')) throw new Error(`${indexFile} has no title`);
writeFileSync(indexFile, html);

// The service worker's list of files: a version is all of them.
const worker = path.join(building, 'service-worker.js');
const all = filesIn(building).map((name) => name.split(path.sep).join('/')).filter((name) => name !== 'service-worker.js');
const isFirst = (name) => !name.startsWith('threads-engine-') && (!name.startsWith('models/') || name.startsWith(`models/${firstModel}-`));
const address = (name) => (name === 'index.html' ? './' : name);
const version = hashOf(building, [...all, 'service-worker.js']);
const list = { version, first: all.filter(isFirst).map(address), rest: all.filter((name) => !isFirst(name)).map(address) };
writeFileSync(worker, `self.heedFiles=${JSON.stringify(list)};\n${readFileSync(worker, 'utf8')}`);

rmSync(out, { recursive: true, force: true });
renameSync(building, out);
const bytes = (names) => names.reduce((sum, name) => sum + statSync(path.join(out, name === './' ? 'index.html' : name)).size, 0);
console.log(`${out}: version ${version}, ${list.first.length} files of ${(bytes(list.first) / 1e6).toFixed(1)} MB for the first visit, ${(bytes(list.rest) / 1e6).toFixed(1)} MB later`);
