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
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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
  execFileSync(binary, ['microworld', '-n', '400', '-s', '2', '-o', stories], { stdio: 'ignore' });
  return [named, '--corpus', stories];
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

/** In the page: counts the requests to the engines in workers that are not answered, as a browser does those to a server. */
function watchWorkers() {
  const pending = new Set();
  let changed = performance.now();
  const numbers = new WeakMap();
  let workers = 0;
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
    if (message.kind === 'request') change('add', `${numbers.get(this)} ${message.id}`);
    if (message.kind === 'stop') change('delete', `${numbers.get(this)} ${message.id}`);
    return postMessage.call(this, message, ...others);
  };
  globalThis.areWorkersQuiet = () => pending.size === 0 && performance.now() - changed >= 500;
}

/** Waits until the page has asked for nothing for half a second, be it of a server or of the engine in a worker. */
export async function settled(page, options) {
  await page.waitForLoadState('networkidle', options);
  if (process.env.HEED_STATIC) await page.waitForFunction(() => globalThis.areWorkersQuiet(), undefined, options);
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
  const files = ['config.json', 'model.safetensors'].map((name) => path.join(folder, name));
  await page.getByRole('group', { name: 'Models' }).getByLabel('Files of a model').setInputFiles(files);
  await page.waitForURL(/[?&]model=/);
  const name = /[?&]model=([^&]*)/.exec(page.url())[1];
  const [mode, query = ''] = link.split('?');
  await page.evaluate((hash) => (location.hash = hash), `${mode}?${query.replace(/(^|&)model=[^&]*/, '')}&model=${name}`);
}

/**
 * Call at the top of a test file, with the directory of a model other than starter where one is tested; the static page
 * opens it as a reader's own. `session.open(link, options)` gives a page; the test fails where the page
 * logs an error, and `session.get(path)` asks the API at `session.address`; `session.page` is where the page is.
 */
export function useExplorer(serverOptions, model) {
  const own = process.env.HEED_STATIC ? model : undefined;
  const session = { address: '', page: '', browser: null, server: null, files: null };
  before(async () => {
    session.server = await startServer(serverOptions, model);
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
    const response = await fetch(session.address + where);
    if (!response.ok) throw new Error(`${where}: ${response.status} ${await response.text()}`);
    return response.json();
  };

  /** A query with the server's default sampling, changed by `changes`. */
  session.sampling = async (changes = {}) => {
    const { sampling_options } = await session.get('/props');
    const defaults = Object.fromEntries(sampling_options.map(({ name, default: value }) => [name, value]));
    return new URLSearchParams({ ...defaults, ...changes }).toString();
  };

  session.open = async (link = '', { width = 1280, height = 900, dark = false, motion = 'reduce', ...options } = {}) => {
    const context = await session.browser.newContext({
      viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', reducedMotion: motion, acceptDownloads: true, ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(waitMilliseconds);
    if (process.env.HEED_STATIC) await page.addInitScript(watchWorkers);
    page.problems = [];
    page.on('pageerror', (error) => page.problems.push(String(error)));
    page.on('console', (message) => {
      // A server without a translator says so with 404, which the browser logs.
      const isAbsent = /\/api\/translator$/.test(message.location().url) && message.text().includes('404');
      if (message.type() === 'error' && !isAbsent) page.problems.push(message.text());
    });
    await page.goto(`${session.page}/${own ? '' : link}`);
    await page.locator('main h1').first().waitFor();
    if (own) await openOwn(page, own, link);
    return page;
  };
  return session;
}

/** What the server says of its translator; null where it holds none, as the static page. */
export async function translatorOf(session) {
  if (process.env.HEED_STATIC) return null;
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
  // Colours on their way from one to another are of neither theme.
  await page.evaluate(() => Promise.allSettled(document.getAnimations()
    .filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
    .map(({ finished }) => finished)));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`));
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
