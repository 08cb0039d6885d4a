// Milliseconds from the start of the navigation until the first attention is painted, with nothing cached.
//
//   node tools/measure_first_view.mjs          the page that `heed explore` serves (see e2e/harness.mjs)
//   ROUNDS=5                                   how often it is measured [5]
import { loadavg } from 'node:os';
import { startBrowser, startServer } from '../e2e/harness.mjs';

const server = await startServer();
const browser = await startBrowser();
const rounds = Number(process.env.ROUNDS ?? 5);
const results = [];
for (let round = 0; round < rounds; ++round) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const watch = new MutationObserver(() => {
      if (globalThis.painted || !document.querySelector('.said .figure')) return;
      watch.disconnect();
      // The frame after the one that has it.
      requestAnimationFrame(() => requestAnimationFrame((now) => (globalThis.painted = now)));
    });
    watch.observe(document, { childList: true, subtree: true });
  });
  await page.goto(`${server.address}/`);
  await page.waitForFunction(() => globalThis.painted);
  const { painted, entries } = await page.evaluate(() => ({
    painted: globalThis.painted,
    entries: performance.getEntriesByType('resource').map(({ name, startTime, responseEnd, transferSize }) => ({ name: new URL(name).pathname + new URL(name).search, startTime, responseEnd, transferSize })),
  }));
  results.push({ painted, entries });
  await context.close();
}
results.sort((one, other) => one.painted - other.painted);
const middle = results[Math.floor(results.length / 2)];
console.log(`Load ${loadavg().map((load) => load.toFixed(2)).join(' ')}; first attention painted after ${results.map(({ painted }) => painted.toFixed(0)).join(', ')} ms; median ${middle.painted.toFixed(0)} ms\n`);
for (const { name, startTime, responseEnd, transferSize } of middle.entries.filter(({ startTime }) => startTime < middle.painted)) console.log(`${startTime.toFixed(0).padStart(6)} – ${responseEnd.toFixed(0).padStart(5)} ms ${String(transferSize).padStart(8)} bytes  ${name}`);
await browser.close();
await server.stop();
