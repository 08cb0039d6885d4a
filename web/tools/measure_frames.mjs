// Frames a second of the whole model's picture in Chromium without a GPU, counted with requestAnimationFrame, and
// the processor time of the page's main thread for each frame, which other programs disturb less.
//
//   node tools/measure_frames.mjs              the page that `heed explore` serves (see e2e/harness.mjs)
//   PAGES=built,../before node tools/…         builds of the page in folders, in turn
//   PROFILE=expand node tools/…                what one motion spends its time on
//   ROUNDS=5                                   how often each motion is measured [5]
//   THROTTLE=4                                 a processor that is so many times slower [1]
//   TEXT=…, SHAPE=gpt3                         another prompt, or another model's shape, which has no numbers to play
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { startBrowser, startServer } from '../e2e/harness.mjs';

const text = process.env.TEXT ?? 'The fox waited in the forest, and the hare saw the fox';
const shape = process.env.SHAPE ? `&picture=${process.env.SHAPE}` : '';
const at = (place) => `#/whole-model?text=${encodeURIComponent(text)}${shape}${place ? `&at=${encodeURIComponent(place)}` : ''}`;
const number = 'b2/attention/h3/q/4.7';

/** Each motion: where it begins, what starts it, and how many milliseconds it takes at least. */
const motions = {
  'zoom to a number': { from: '', start: `location.hash = ${JSON.stringify(at(number))}`, milliseconds: 1200 },
  'zoom out again': { from: number, start: `location.hash = ${JSON.stringify(at(''))}`, milliseconds: 1200 },
  play: { from: '', start: 'play()', milliseconds: 4000 },
  'play in a block': { from: 'b2', start: 'play()', milliseconds: 4000 },
  'attention step by step': { from: '', before: 'look().click()', start: 'steps()', milliseconds: 6000 },
  expand: { from: '', start: 'block().click()', milliseconds: 650 },
  collapse: { from: '', before: 'block().click()', start: 'block().click()', milliseconds: 650 },
};

const prelude = `
  const block = () => [...document.querySelectorAll('[role=treeitem]')].find((item) => /^Block 2\\b/.test(item.getAttribute('aria-label') ?? item.textContent.trim()));
  const look = () => [...document.querySelectorAll('button')].find((button) => /^Look into/.test(button.textContent));
  const steps = () => document.querySelector('.steps .play').click();
  const play = () => [...document.querySelectorAll('button')].find((button) => /^Play/.test(button.getAttribute('aria-label') ?? '')).click();`;

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2', '.txt': 'text/plain' };

async function opened(browser, address, folder, place) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'no-preference' });
  const page = await context.newPage();
  if (folder) {
    await page.route(`${address}/**`, (route) => {
      const { pathname } = new URL(route.request().url());
      if (/^\/(api|props|health|v1)\b/.test(pathname)) return route.continue();
      const file = path.join(folder, pathname === '/' ? 'index.html' : pathname);
      return route.fulfill({ body: readFileSync(file), contentType: types[path.extname(file)] ?? 'application/octet-stream' });
    });
  }
  if (process.env.THROTTLE) {
    const client = await context.newCDPSession(page);
    await client.send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.THROTTLE) });
  }
  await page.goto(`${address}/${at(place)}`);
  await page.locator('main canvas').first().waitFor();
  await page.getByRole('treeitem').first().waitFor();
  await page.waitForTimeout(2500);
  return page;
}

/** Timestamps of the frames of a motion. */
function counted(page, { start, milliseconds }) {
  return page.evaluate(`new Promise((resolve) => {
    ${prelude}
    const times = [];
    const frame = (now) => {
      times.push(now);
      if (now - times[0] >= ${milliseconds}) resolve(times);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame((now) => { ${start}; frame(now); });
  })`);
}

/** Milliseconds that the main thread has computed so far. */
async function computed(client) {
  const { metrics } = await client.send('Performance.getMetrics');
  return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function profiled(page, motion) {
  const client = await page.context().newCDPSession(page);
  await client.send('Profiler.enable');
  await client.send('Profiler.setSamplingInterval', { interval: 200 });
  await client.send('Profiler.start');
  await counted(page, motion);
  const { profile } = await client.send('Profiler.stop');
  const own = new Map();
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, `${callFrame.functionName || '(anonymous)'} ${path.basename(callFrame.url)}:${callFrame.lineNumber + 1}`]));
  profile.samples.forEach((id, index) => own.set(names.get(id), (own.get(names.get(id)) ?? 0) + profile.timeDeltas[index] / 1000));
  const total = (profile.endTime - profile.startTime) / 1000;
  console.log(`\n${total.toFixed(0)} ms; own time of functions:`);
  for (const [name, time] of [...own].sort((a, b) => b[1] - a[1]).slice(0, 25)) console.log(`${time.toFixed(0).padStart(7)} ms  ${name}`);
}

const server = await startServer();
const browser = await startBrowser();
const folders = process.env.PAGES ? process.env.PAGES.split(',') : [''];
const rounds = Number(process.env.ROUNDS ?? 5);
const wanted = process.env.PROFILE ?? process.env.MOTION;
console.log(`Load ${loadavg().map((load) => load.toFixed(2)).join(' ')}; frames a second: median and least of ${rounds} rounds; worst wait between two frames; main thread\n`);
for (const [name, motion] of Object.entries(motions)) {
  if ((wanted && wanted !== name) || (shape && /^(play|attention)/.test(name))) continue;
  const results = new Map(folders.map((folder) => [folder, { rates: [], waits: [], costs: [] }]));
  for (let round = 0; round < rounds; ++round) {
    for (const folder of folders) {
      const page = await opened(browser, server.address, folder, motion.from);
      if (motion.before) {
        await page.evaluate(`{ ${prelude} ${motion.before}; }`);
        await page.waitForTimeout(2000);
      }
      if (process.env.PROFILE) await profiled(page, motion);
      else {
        const client = await page.context().newCDPSession(page);
        await client.send('Performance.enable', { timeDomain: 'threadTicks' });
        const before = await computed(client);
        const times = await counted(page, motion);
        const { rates, waits, costs } = results.get(folder);
        costs.push(((await computed(client)) - before) / (times.length - 1));
        rates.push((1000 * (times.length - 1)) / (times.at(-1) - times[0]));
        waits.push(Math.max(...times.slice(1).map((time, index) => time - times[index])));
      }
      await page.context().close();
    }
  }
  if (!process.env.PROFILE) for (const [folder, { rates, waits, costs }] of results) console.log(`${name.padEnd(18)} ${(folder || 'served').padEnd(24)} ${median(rates).toFixed(1).padStart(5)} fps, least ${Math.min(...rates).toFixed(1).padStart(5)}, worst wait ${Math.max(...waits).toFixed(0).padStart(4)} ms, ${median(costs).toFixed(1).padStart(5)} ms computed for each`);
}
console.log(`\nLoad ${loadavg().map((load) => load.toFixed(2)).join(' ')}`);
await browser.close();
await server.stop();
