// Milliseconds from the start of the navigation until the first view is painted, with nothing cached: of the page as it is
// opened, the tour with its first picture; of Follow, the first attention with its numbers and curves.
//
//   node tools/measure_first_view.mjs          the page that `heed explore` serves (see e2e/harness.mjs)
//   ROUNDS=7                                   how often each is measured [7]
import { loadavg } from 'node:os';
import { startBrowser, startServer } from '../e2e/harness.mjs';

const server = await startServer();
const browser = await startBrowser();
const rounds = Number(process.env.ROUNDS ?? 7);
const views = [
  { name: 'the page as it is opened', link: '', painted: '.live :is(button, svg, canvas)' },
  { name: 'Follow', link: '#/follow', painted: '.arcs svg path' },
];

async function measure({ link, painted }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript((selector) => {
    const watch = new MutationObserver(() => {
      if (globalThis.painted || !document.querySelector(selector)) return;
      watch.disconnect();
      // The frame after the one that has it.
      requestAnimationFrame(() => requestAnimationFrame((now) => (globalThis.painted = now)));
    });
    watch.observe(document, { childList: true, subtree: true });
  }, painted);
  await page.goto(`${server.address}/${link}`);
  await page.waitForFunction(() => globalThis.painted);
  const found = await page.evaluate(() => ({
    painted: globalThis.painted,
    entries: performance.getEntries().filter(({ entryType }) => ['navigation', 'resource', 'paint'].includes(entryType)).map(({ name, startTime, responseStart, responseEnd, transferSize, entryType }) => ({
      name: entryType === 'paint' ? name : new URL(name).pathname + new URL(name).search, startTime, responseStart, responseEnd: responseEnd ?? startTime, transferSize: transferSize ?? 0,
    })),
  }));
  await context.close();
  return found;
}

for (const view of views) {
  const results = [];
  for (let round = 0; round < rounds; ++round) results.push(await measure(view));
  results.sort((one, other) => one.painted - other.painted);
  const middle = results[Math.floor(results.length / 2)];
  const before = middle.entries.filter(({ startTime }) => startTime < middle.painted);
  const bytes = before.reduce((sum, { transferSize }) => sum + transferSize, 0);
  console.log(`Load ${loadavg().map((load) => load.toFixed(2)).join(' ')}; ${view.name}: painted after ${results.map(({ painted }) => painted.toFixed(0)).join(', ')} ms; median ${middle.painted.toFixed(0)} ms; ${bytes} bytes before it\n`);
  console.log('  asked – first byte – end');
  for (const { name, startTime, responseStart, responseEnd, transferSize } of before) console.log(`${startTime.toFixed(0).padStart(7)} – ${(responseStart ?? startTime).toFixed(0).padStart(5)} – ${responseEnd.toFixed(0).padStart(5)} ms ${String(transferSize).padStart(8)} bytes  ${name}`);
  console.log('');
}
await browser.close();
await server.stop();
