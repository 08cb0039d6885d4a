// What a visitor of the static page waits for, in headless Chromium: the compressed transfer until the first attention, the
// time until it is painted on a first visit and on a later one, from the click of a word to its numbers, and frames a
// second while the whole model's picture is zoomed. Medians.
//
//   node tools/measure_static.mjs [FOLDER]     the page as static files [../build/static-page]
//   ROUNDS=7                                   how often each is measured [7]
//   PORT=8200                                  of the server of this measurement [any]
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import { loadavg } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { startBrowser } from '../e2e/harness.mjs';

const folder = path.resolve(process.argv[2] ?? path.join(path.dirname(fileURLToPath(import.meta.url)), '../../build/static-page'));
const rounds = Number(process.env.ROUNDS ?? 7);
const sentence = 'The fox waited in the forest, and the hare saw the fox';
const follow = `#/follow?text=${encodeURIComponent(sentence)}`;
const attention = '.arcs svg path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.wasm': 'application/wasm', '.webmanifest': 'application/manifest+json', '.woff2': 'font/woff2', '.txt': 'text/plain' };

/** What is sent, as by a host that compresses text and WebAssembly and lets names with a hash be cached; by path. */
const compressed = new Map();
function bodyOf(file) {
  if (!compressed.has(file)) compressed.set(file, gzipSync(readFileSync(file), { level: 9 }));
  return compressed.get(file);
}
const serve = (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  const file = path.join(folder, pathname === '/' ? 'index.html' : decodeURIComponent(pathname));
  if (!file.startsWith(folder) || !existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
  const isNamedByContent = /-[\w-]{8,}(\/|\.)/.test(pathname);
  response.setHeader('Content-Type', types[path.extname(file)] ?? 'application/octet-stream');
  response.setHeader('Cache-Control', isNamedByContent ? 'max-age=31536000, immutable' : 'no-cache');
  if (!/gzip/.test(request.headers['accept-encoding'] ?? '')) return createReadStream(file).pipe(response);
  const body = bodyOf(file);
  return response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': body.length }).end(body);
};

const server = http.createServer(serve);
await new Promise((resolve) => server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', resolve));
const address = `http://127.0.0.1:${server.address().port}`;
const browser = await startBrowser();
const median = (numbers) => [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)];
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
const kindOf = (name) => (/\.wasm$/.test(name) ? 'engine' : /^\/models\//.test(name) ? 'model' : 'page');

/** Notes when a selector's element has been painted. */
const noting = (selector) => {
  const watch = new MutationObserver(() => {
    if (globalThis.painted || !document.querySelector(selector)) return;
    watch.disconnect();
    // The frame after the one that has it.
    requestAnimationFrame(() => requestAnimationFrame((now) => (globalThis.painted = now)));
  });
  watch.observe(document, { childList: true, subtree: true });
};

async function visit(context) {
  const page = await context.newPage();
  await page.addInitScript(noting, attention);
  await page.goto(`${address}/${follow}`);
  await page.waitForFunction(() => globalThis.painted);
  const { painted, at } = await page.evaluate(() => ({ painted: globalThis.painted, at: performance.timeOrigin + globalThis.painted }));
  return { page, painted, at };
}

/** What this server has sent, to workers too: kind, bytes and time of each file. */
const sent = [];
server.on('request', (request, response) => {
  const kind = kindOf(new URL(request.url, address).pathname);
  response.on('finish', () => sent.push({ kind, bytes: Number(response.getHeader('Content-Length') ?? 0), at: Date.now() }));
});
/** Bytes by kind until a time: what is kept for visits without a network comes later. */
function bytesUntil(time) {
  const bytes = { page: 0, engine: 0, model: 0 };
  for (const file of sent) if (file.at <= time) bytes[file.kind] += file.bytes;
  return bytes;
}

async function first() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  sent.length = 0;
  const { page, painted, at } = await visit(context);
  const bytes = bytesUntil(at);
  // Once the page is at rest, all files are kept.
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    if (active.state !== 'activated') await new Promise((resolve) => active.addEventListener('statechange', resolve));
  });
  await page.close();
  const later = await visit(context);
  await context.close();
  return { painted, bytes, cached: later.painted };
}

/** Milliseconds from the click on another word until its first numbers are painted. */
async function clicks() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await visit(context);
  await page.waitForTimeout(1500);
  const times = [];
  for (let round = 0; round < rounds; ++round) {
    times.push(await page.evaluate((index) => new Promise((resolve) => {
      const section = document.querySelector('section[aria-label="At a glance"]');
      const said = section.querySelector('.said p strong.query');
      const before = said?.textContent;
      const button = section.querySelectorAll('.tokens > button')[index];
      const began = performance.now();
      const watch = new MutationObserver(() => {
        const now = section.querySelector('.said p strong.query');
        if (!now || now.textContent === before) return;
        watch.disconnect();
        requestAnimationFrame(() => requestAnimationFrame((painted) => resolve(painted - began)));
      });
      watch.observe(section, { childList: true, subtree: true, characterData: true });
      button.click();
    }), [5, 9, 3, 10, 4, 8][round % 6]));
    await page.waitForTimeout(400);
  }
  await context.close();
  return times;
}

/** Frames a second while the picture of the whole model zooms to a number. */
async function frames() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'no-preference' });
  const page = await context.newPage();
  const at = (place) => `#/whole-model?text=${encodeURIComponent(sentence)}${place ? `&at=${encodeURIComponent(place)}` : ''}`;
  await page.goto(`${address}/${at('')}`);
  await page.locator('main canvas').first().waitFor();
  await page.getByRole('treeitem').first().waitFor();
  await page.waitForTimeout(2500);
  const rates = [];
  for (let round = 0; round < rounds; ++round) {
    rates.push(await page.evaluate((hash) => new Promise((resolve) => {
      const times = [];
      const frame = (now) => {
        times.push(now);
        if (now - times[0] >= 1200) resolve((1000 * (times.length - 1)) / (now - times[0]));
        else requestAnimationFrame(frame);
      };
      requestAnimationFrame((now) => {
        location.hash = hash;
        frame(now);
      });
    }), at(round % 2 === 0 ? 'b2/attention/h3/q/4.7' : '')));
    await page.waitForTimeout(600);
  }
  await context.close();
  return rates;
}

const visits = [];
for (let round = 0; round < rounds; ++round) visits.push(await first());
const { bytes } = visits[0];
const all = (numbers, digits = 0) => numbers.map((number) => number.toFixed(digits)).join(', ');
console.log(`Load ${loadavg().map((load) => load.toFixed(2)).join(' ')}, ${rounds} rounds`);
console.log(`transfer until the first attention, gzip -9: ${megabytes(bytes.page + bytes.engine + bytes.model)} (engine ${megabytes(bytes.engine)}, model ${megabytes(bytes.model)}, page ${megabytes(bytes.page)})`);
console.log(`first attention, nothing cached: ${median(visits.map(({ painted }) => painted)).toFixed(0)} ms (${all(visits.map(({ painted }) => painted))})`);
console.log(`first attention, a later visit: ${median(visits.map(({ cached }) => cached)).toFixed(0)} ms (${all(visits.map(({ cached }) => cached))})`);
const clicked = await clicks();
console.log(`a word clicked until its numbers: ${median(clicked).toFixed(0)} ms (${all(clicked)})`);
const rates = await frames();
console.log(`frames a second while the picture zooms: ${median(rates).toFixed(0)} (${all(rates)})`);
await browser.close();
await new Promise((resolve) => {
  server.close(resolve);
  server.closeAllConnections();
});
