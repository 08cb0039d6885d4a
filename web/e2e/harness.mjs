// Starts `heed explore` and a browser for a test file, and stops both after it.
//
//   HEED_BINARY   the program [build/release/bin/heed]
//   HEED_ADDRESS  a running server to use instead of starting one
//   HEED_STATIC   a folder of static files (build/static-page): the page is served from there by python3 -m http.server,
//                 and has the engine in a worker; HEED_BINARY is what its numbers are compared with. Or the address of
//                 such files
//   CHROMIUM      the browser [/usr/bin/chromium]
//   FIREFOX       the browser instead, such as /usr/bin/firefox-esr: Playwright drives it by WebDriver BiDi, which it calls
//                 experimental
//   SCREENSHOTS   a folder for screenshots of the views [none]
import axe from 'axe-core';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import playwright from 'playwright-core';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const startMilliseconds = 60_000;
/** A machine may be busy, and the static page starts an engine of its own in every window. */
const waitMilliseconds = 45_000;

const binary = process.env.HEED_BINARY ?? path.join(root, 'build/release/bin/heed');

/**
 * What the page's starter is to be compared with: the same stored numbers, since static files hold them rounded; and
 * the stories in which the program looks for contexts of starter's neurons. A model, and options.
 */
function starterOfPage() {
  const where = process.env.HEED_STATIC;
  if (!where || where.startsWith('http:')) return ['starter'];
  const folder = path.resolve(root, where);
  const stored = readdirSync(path.join(folder, 'models')).find((name) => name.startsWith('starter-'));
  const named = path.join(mkdtempSync(path.join(tmpdir(), 'heed-e2e-')), 'starter'); // a model is called like its folder
  cpSync(path.join(folder, 'models', stored), named, { recursive: true });
  process.on('exit', () => rmSync(path.dirname(named), { recursive: true, force: true }));
  const stories = path.join(path.dirname(named), 'stories.txt');
  // Each with an end of line of its own, as the engine reads them: windows of another text begin at other words.
  const written = JSON.parse(execFileSync(binary, ['microworld', '-n', '400', '-s', '2', '--json'], { encoding: 'utf8', maxBuffer: 2 ** 26 }));
  writeFileSync(stories, written.stories.map(({ text }) => `${text}\n`).join(''));
  return [named, '--corpus', stories];
}

/** What the program knows by name alone of its own starter; of the page's the engine that the page has says it, in Node.js. */
const ofOwnStarter = /^\/api\/(senses|probes)\b/;
let engineOfPage;

async function askEngineOfPage(where, method = 'GET', body = undefined) {
  engineOfPage ??= (async () => {
    const folder = path.resolve(root, process.env.HEED_STATIC);
    const find = (below, start) => path.join(folder, below, readdirSync(path.join(folder, below)).find((name) => name.startsWith(start)));
    const { Engine } = await import('../../src/wasm/engine.mjs');
    const engine = await Engine.load(path.join(find('', 'engine-'), 'heed.js'));
    engine.put('starter', find('models', 'starter-'));
    engine.put('starter-transcoders', find('models', 'transcoders-'));
    engine.open('starter');
    return engine;
  })();
  const { status, bytes } = await (await engineOfPage).ask(method, where, body);
  if (status !== 200) throw new Error(`${where}: ${status} ${bytes}`);
  return JSON.parse(bytes);
}

export async function startServer(options = [], model = undefined) {
  if (process.env.HEED_ADDRESS) return { address: process.env.HEED_ADDRESS.replace(/\/$/, ''), stop: async () => {} };
  const opened = model ? [model] : starterOfPage();
  const child = spawn(binary, ['explore', '-m', ...opened, '--port', '0', ...options], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  const address = await new Promise((resolve, reject) => {
    let output = '';
    const timer = setTimeout(() => reject(new Error(`no address within ${startMilliseconds} ms:\n${output}`)), startMilliseconds);
    const read = (chunk) => {
      output += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (found) {
        clearTimeout(timer);
        resolve(found[0]);
      }
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`${binary} ended with ${code}:\n${output}`)));
  });
  return { address, stop };
}

/**
 * In the page: counts the requests to the engines in workers that are not answered, as a browser does those to a server, and
 * shows a test those that it meets.
 */
function watchWorkers() {
  const pending = new Set();
  let changed = performance.now();
  const numbers = new WeakMap();
  let workers = 0;
  /** What a test has met and not let through yet: by whom. */
  const held = new Map();
  const { postMessage, terminate } = Worker.prototype;
  const change = (name, key) => {
    pending[name](key);
    changed = performance.now();
  };
  const forget = (number) => [...pending].filter((key) => key.startsWith(`${number} `)).forEach((key) => change('delete', key));
  Worker.prototype.terminate = function () {
    forget(numbers.get(this));
    return terminate.call(this);
  };
  Worker.prototype.postMessage = function (message, ...others) {
    if (!numbers.has(this)) {
      const number = ++workers;
      numbers.set(this, number);
      this.addEventListener('message', ({ data }) => {
        if (data.kind === 'end') change('delete', `${number} ${data.id}`);
        if (data.kind === 'lost') forget(number);
      });
    }
    if (message.kind === 'start' && globalThis.runsOfTest) {
      const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
      postMessage.call(this, message, ...others);
      return postMessage.call(this, { kind: 'put', call: -1, files: globalThis.runsOfTest.map(([path, text]) => ({ path, bytes: bytes(text) })) });
    }
    const key = `${numbers.get(this)} ${message.id}`;
    if (message.kind === 'stop') {
      change('delete', key);
      const name = held.get(key);
      if (held.delete(key)) return void globalThis[`${name}Stopped`](); // the engine has not seen it
    }
    if (message.kind === 'request') {
      change('add', key);
      const meeting = globalThis.meetings?.find(({ pattern }) => pattern.test(message.target));
      if (meeting) {
        held.set(key, meeting.name);
        const { id, target: path, method, body } = message;
        globalThis[meeting.name]({ path, method, body: new TextDecoder().decode(body) }).then((answer) => {
          if (!held.delete(key)) return;
          if (answer === null) return postMessage.call(this, message, ...others);
          const bytes = new TextEncoder().encode(JSON.stringify(answer));
          for (const data of [{ kind: 'head', id, status: 200, headers: [['Content-Type', 'application/json']] }, { kind: 'chunk', id, bytes }, { kind: 'end', id, error: '' }]) this.dispatchEvent(new MessageEvent('message', { data }));
        });
        return;
      }
    }
    return postMessage.call(this, message, ...others);
  };
  globalThis.areWorkersQuiet = () => pending.size === 0 && performance.now() - changed >= 500;
}

/** Waits until the page has asked for nothing for half a second, be it of a server or of the engine in a worker. */
export async function settled(page, options) {
  await page.waitForLoadState('networkidle', options);
  if (process.env.HEED_STATIC) await page.waitForFunction(() => globalThis.areWorkersQuiet(), undefined, options);
}

let meetings = 0;

/**
 * Shows a test the page's requests whose path and query match, to a server or to the engine in a worker: `met({ path, method,
 * body })` may hold one by a promise, and answer it by what that gives, as JSON. `stopped` is called where the page gives one up.
 */
export async function meet(page, pattern, met, stopped = () => {}) {
  if (!process.env.HEED_STATIC) {
    page.on('requestfailed', (request) => {
      const { pathname, search } = new URL(request.url());
      if (pattern.test(pathname + search)) stopped();
    });
    await page.route(({ pathname, search }) => pattern.test(pathname + search), async (route) => {
      const { pathname, search } = new URL(route.request().url());
      const answer = await met({ path: pathname + search, method: route.request().method(), body: route.request().postData() ?? '' });
      await (answer ? route.fulfill({ json: answer }) : route.continue()).catch(() => {}); // one that was given up
    });
    return;
  }
  const name = `met${++meetings}`;
  await page.exposeFunction(name, async (request) => (await met(request)) ?? null);
  await page.exposeFunction(`${name}Stopped`, stopped);
  const add = ([source, by]) => void (globalThis.meetings ??= []).push({ pattern: new RegExp(source), name: by });
  await page.addInitScript(add, [pattern.source, name]);
  await page.evaluate(add, [pattern.source, name]);
}

/** Serves a folder as any web server does. */
export async function startFiles(folder, port = 0) {
  const child = spawn('python3', ['-u', '-m', 'http.server', String(port), '--bind', '127.0.0.1', '--directory', folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const found = await new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      const match = /port (\d+)/.exec((output += chunk));
      if (match) resolve(match[1]);
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`http.server ended with ${code}: ${output}`)));
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  return { address: `http://127.0.0.1:${found}`, stop };
}

/** The page as static files, as HEED_STATIC says. */
export async function startStatic() {
  const where = process.env.HEED_STATIC;
  return where.startsWith('http:') ? { address: where, stop: async () => {} } : startFiles(path.resolve(root, where));
}

export function startBrowser() {
  if (process.env.FIREFOX) return playwright._bidiFirefox.launch({ executablePath: process.env.FIREFOX });
  return playwright.chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** Opens a model of the reader's own in the static page, and a link with it. */
async function openOwn(page, folder, link) {
  await page.getByRole('button', { name: /^Model: / }).click();
  const files = readdirSync(folder).filter((name) => ['config.json', 'model.safetensors', 'tokenizer.json'].includes(name)).map((name) => path.join(folder, name));
  await page.getByRole('group', { name: 'Models' }).getByLabel('Files of a model').setInputFiles(files);
  await page.waitForURL(/[?&]model=/);
  const name = /[?&]model=([^&]*)/.exec(page.url())[1];
  const [mode, query = ''] = link.split('?');
  await page.evaluate((hash) => (location.hash = hash), `${mode}?${query.replace(/(^|&)model=[^&]*/, '')}&model=${name}`);
}

/** Files of runs where the engine of the static page keeps those that it trains, as base64. */
function filesOfRuns(runs) {
  return runs.flatMap((run) => readdirSync(run, { recursive: true }).map(String)
    .filter((name) => statSync(path.join(run, name)).isFile())
    .map((name) => [`/runs/${path.basename(run)}/${name}`, readFileSync(path.join(run, name)).toString('base64')]));
}

/**
 * Call at the top of a test file, with the directory of a model other than starter where one is tested; the static page
 * opens it as a reader's own. `runs` are directories of training runs to show. `session.open(link, options)` gives a page; the test fails where the page
 * logs an error, and `session.get(path)` asks the API at `session.address`; `session.page` is where the page is.
 */
export function useExplorer(serverOptions = [], model = undefined, runs = []) {
  const own = process.env.HEED_STATIC ? model : undefined;
  const session = { own, address: '', page: '', browser: null, server: null, files: null };
  before(async () => {
    session.server = await startServer([...serverOptions, ...runs.flatMap((run) => ['--run', run])], model);
    session.page = session.address = session.server.address;
    if (process.env.HEED_STATIC) {
      session.files = await startStatic();
      session.page = session.files.address;
    }
    session.browser = await startBrowser();
  });
  after(async () => {
    await session.browser?.close();
    await session.server?.stop();
    await session.files?.stop();
  });

  session.get = async (where) => {
    if (process.env.HEED_STATIC && !process.env.HEED_STATIC.startsWith('http:') && !own && ofOwnStarter.test(where)) return askEngineOfPage(where);
    const response = await fetch(session.address + where);
    if (!response.ok) throw new Error(`${where}: ${response.status} ${await response.text()}`);
    return response.json();
  };

  /** As `get`, and with a method and a body, of the engine that has what the page's own starter has by its name, transcoders among it. */
  session.ask = async (where, method = 'GET', body = undefined) => {
    if (process.env.HEED_STATIC && !process.env.HEED_STATIC.startsWith('http:') && !own) return askEngineOfPage(where, method, body);
    const response = await fetch(session.address + where, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${where}: ${response.status} ${await response.text()}`);
    return response.json();
  };

  /** A query with the server's default sampling, changed by `changes`. */
  session.sampling = async (changes = {}) => {
    const { sampling_options } = await session.get('/props');
    const defaults = Object.fromEntries(sampling_options.map(({ name, default: value }) => [name, value]));
    return new URLSearchParams({ ...defaults, ...changes }).toString();
  };

  /** A page in a window of its own, before it opens anything. */
  session.blank = async ({ width = 1280, height = 900, dark = false, motion = 'reduce', ...options } = {}) => {
    const context = await session.browser.newContext({
      viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', reducedMotion: motion, acceptDownloads: true, ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(waitMilliseconds);
    if (process.env.HEED_STATIC) await page.addInitScript(watchWorkers);
    if (process.env.HEED_STATIC && runs.length > 0) await page.addInitScript((files) => (globalThis.runsOfTest = files), filesOfRuns(runs));
    page.problems = [];
    page.on('pageerror', (error) => page.problems.push(String(error)));
    page.on('console', (message) => {
      // A server without a translator says so with 404, which the browser logs.
      const isAbsent = /\/api\/translator$/.test(message.location().url) && message.text().includes('404');
      if (message.type() === 'error' && !isAbsent) page.problems.push(message.text());
    });
    return page;
  };

  session.open = async (link = '', options = {}) => {
    const page = await session.blank(options);
    await page.goto(`${session.page}/${own ? '' : link}`);
    await page.locator('main h1').first().waitFor();
    if (own) await openOwn(page, own, link);
    return page;
  };
  return session;
}

/** On the static page: the directory of the translator that the program carries, which a reader opens there as files. */
export const carriedTranslator = process.env.HEED_STATIC ? path.join(root, 'models/translator') : undefined;

/** What the server says of its translator; null where it holds none, as the static page where the reader has not opened one. */
export async function translatorOf(session) {
  if (process.env.HEED_STATIC && !session.own) return null;
  const response = await fetch(`${session.address}/api/translator`);
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`/api/translator: ${response.status}`);
  return response.json();
}

/** Writes a model to a GGUF file. */
export function convertToGguf(model, type, file) {
  execFileSync(binary, ['convert', model, '--dtype', type, '--out', file], { cwd: root, stdio: 'ignore' });
}

/** What `heed params NAME --json` says. */
export function paramsOf(name) {
  return JSON.parse(execFileSync(binary, ['params', name, '--json'], { cwd: root, encoding: 'utf8' }));
}

/** Serious and critical findings of axe-core, one line each. */
export async function seriousFindings(page) {
  await page.evaluate(axe.source);
  for (let round = 1; ; ++round) {
    await allShown(page);
    // Colours on their way from one to another are of neither theme.
    await page.evaluate(() => Promise.allSettled(document.getAnimations()
      .filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
      .map(({ finished }) => finished)));
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const found = violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`));
    // A section that began to load meanwhile was pale.
    const isPale = await page.evaluate(() => document.querySelector('.former, .stale') !== null);
    if (found.length === 0 || !isPale || round === 3) return found;
  }
}

/** Waits until nothing has been pale for half a second: so is what is of a former text while the next one is loading. */
function allShown(page) {
  return page.waitForFunction((begin) => {
    const now = performance.now();
    if (globalThis.watchedSince !== begin || document.querySelector('.former, .stale') !== null) globalThis.shownSince = now;
    globalThis.watchedSince = begin;
    return now - globalThis.shownSince >= 500;
  }, Math.random(), { timeout: 10_000 }).catch(() => {});
}

/** Opens all tables, so that they are checked too. */
export function openTables(page) {
  return page.evaluate(() => {
    for (const details of document.querySelectorAll('details:not(.export)')) details.open = true;
  });
}

/** Whether the page is wider than the window. */
export function overflowsSideways(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

export async function picture(page, name) {
  if (!process.env.SCREENSHOTS) return;
  mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`), fullPage: true });
}

/** What an Export menu saves as `kind` ("SVG", "npy"), as bytes. */
export async function exported(page, menu, kind) {
  await menu.locator('summary').click();
  const waiting = page.waitForEvent('download');
  await menu.getByRole('button', { name: kind, exact: true }).click();
  return readFileSync(await (await waiting).path());
}
