// Several models in one page: changing between them, and downloads from a hub that may misbehave.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overflowsSideways, picture, seriousFindings, startServer, useExplorer } from './harness.mjs';
import { startHub } from './hub.mjs';

const starter = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../models/starter');
const cache = mkdtempSync(path.join(tmpdir(), 'heed-models-'));
const hub = await startHub('gpt2', starter);
Object.assign(process.env, { HF_ENDPOINT: hub.address, HEED_CACHE: cache, HEED_OFFLINE: '0', no_proxy: '127.0.0.1' });
delete process.env.HF_TOKEN;
after(async () => {
  await hub.stop();
  rmSync(cache, { recursive: true });
});
const session = useExplorer();
const alone = { skip: process.env.HEED_ADDRESS ? 'needs a server of its own' : false };
const sentence = 'Late one evening, a fluffy blue hare';

const menu = (page) => page.getByRole('button', { name: /^Model: / });
const panel = (page) => page.getByRole('group', { name: 'Models' });
const gpt2 = (page) => panel(page).getByRole('button', { name: /GPT-2/ });

async function opened(link = '', options = {}) {
  const page = await session.open(link, options);
  await menu(page).click();
  await gpt2(page).waitFor();
  return page;
}

/** Nothing of the model has its name; what was loaded is there to go on from. */
function assertNoModel() {
  const directory = path.join(cache, 'models', 'gpt2');
  if (existsSync(directory)) for (const name of readdirSync(directory)) assert.match(name, /\.partial(\.json)?$/);
}

test('what the hub does wrong is said, and leaves no model', alone, async () => {
  const page = await opened();
  const faults = [
    ['lies about the content', /hash|sha256/, (_, response, content) => response.end(Buffer.from(content).fill(7, 1000, 2000))],
    ['redirects to a file', /redirect/, (_, response) => response.writeHead(302, { Location: 'file:///etc/passwd' }).end()],
    ['is busy for long', /4000 seconds/, (_, response) => response.writeHead(429, { 'Retry-After': '4000' }).end()],
  ];
  for (const [what, message, misbehave] of faults) {
    hub.misbehave = misbehave;
    await gpt2(page).click();
    await panel(page).getByRole('alert').filter({ hasText: message }).waitFor({ timeout: 60_000 }).catch((error) => assert.fail(`${what}: ${error.message}`));
    assertNoModel();
  }
  assert.deepEqual(page.problems, []);
  assert.deepEqual(await seriousFindings(page), []);
  await page.context().close();
});

test('a download is followed, cancelled and resumed, and its model follows the sentence', alone, async () => {
  const part = 3_000_000;
  let held = null;
  hub.misbehave = (_, response, content) => {
    response.writeHead(200, { ETag: '"model.safetensors"', 'Content-Length': content.length });
    response.write(content.subarray(0, part));
    held = response;
  };
  const link = `#/follow?text=${encodeURIComponent(sentence)}&layer=4&head=1`;
  const page = await opened(link);
  await gpt2(page).click();
  await panel(page).getByText('3 MB of').waitFor();
  const bar = panel(page).getByRole('progressbar');
  assert.equal(Number(await bar.getAttribute('aria-valuenow')), Math.round((100 * part) / hub.weights));
  await picture(page, 'models-downloading');
  await panel(page).getByRole('button', { name: 'Cancel' }).click();
  const resume = panel(page).getByRole('button', { name: /^Resume GPT-2/ });
  await resume.waitFor();
  held.destroy();
  assertNoModel();
  assert.equal((await fetch(`${session.address}/api/model?model=gpt2`)).status, 404);

  hub.misbehave = null;
  hub.ranges.length = 0;
  await resume.click();
  const ready = panel(page).locator('.one').filter({ hasText: 'GPT-2' });
  await ready.click({ timeout: 30_000 });
  assert.deepEqual(hub.ranges, [part]);
  await page.waitForFunction(() => location.hash.includes('model=gpt2'));
  // The same sentence, followed by the model that came; the head of the former one is not kept.
  await page.locator('main h1').first().waitFor();
  assert.equal(await page.getByLabel('Prompt', { exact: true }).inputValue(), sentence);
  await page.waitForFunction(() => document.querySelectorAll('.first .tokens button').length > 5);
  const { traces } = await session.get('/api/traces');
  assert.equal(traces[0].model.name, 'gpt2');
  assert.equal(traces[0].tokens.map(({ text }) => text).join(''), sentence);
  assert.match(await menu(page).textContent(), /GPT-2/);
  assert.match(await menu(page).textContent(), /has read 8 million web pages/);
  // The link is all that says so, and back is the former view.
  const again = await session.open(new URL(page.url()).hash);
  assert.match(await menu(again).textContent(), /GPT-2/);
  await again.context().close();
  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes('model='));
  await page.getByRole('button', { name: /^Model: starter/ }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the list is used by keyboard, on narrow and wide screens, in light and dark', async () => {
  for (const [width, dark] of [[390, true], [390, false], [1280, true], [1280, false]]) {
    const page = await session.open(`#/follow?text=${encodeURIComponent(sentence)}`, { width, dark });
    await menu(page).focus();
    await page.keyboard.press('Enter');
    await panel(page).waitFor();
    assert.equal(await menu(page).getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.closest('#models') !== null), true);
    assert.equal(await overflowsSideways(page), false);
    assert.deepEqual(await seriousFindings(page), []);
    await picture(page, `models-${width}-${dark ? 'dark' : 'light'}`);
    await page.keyboard.press('Escape');
    await panel(page).waitFor({ state: 'detached' });
    assert.match(await page.evaluate(() => document.activeElement.textContent.trim()), /^Model: /);
    await page.context().close();
  }
});

test('a model that is not there is named with those that are, and the list leads back', async () => {
  const page = await session.open('#/count').then(async (first) => {
    await first.goto(`${session.page}/#/follow?model=nowhere&text=a+hare`);
    return first;
  });
  await page.getByRole('alert').getByText(/no model 'nowhere' here; there are: (?=.*\bstarter\b).*\benglish\b/).waitFor();
  await menu(page).click();
  await panel(page).locator('.one').first().click();
  await page.getByRole('button', { name: /^Model: starter/ }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.first .tokens button').length > 0);
  assert.equal(await page.getByLabel('Prompt', { exact: true }).inputValue(), 'a hare');
  await page.context().close();
});

test('where the server does not download, the buttons are off and say why', alone, async () => {
  const server = await startServer(['--no-downloads']);
  try {
    const page = await session.open('#/count');
    await page.goto(`${server.address}/#/count`);
    await menu(page).click();
    await panel(page).getByText('this server was started with --no-downloads').waitFor();
    for (const button of await panel(page).locator('.published button').all()) assert.equal(await button.isDisabled(), true);
    await page.context().close();
  } finally {
    await server.stop();
  }
});
