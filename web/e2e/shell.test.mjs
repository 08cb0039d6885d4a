import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';

const built = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../built');
const session = useExplorer();
const modes = ['learn', 'follow', 'whole-model', 'compare', 'change', 'generate', 'translate', 'watch-it-learn', 'count'];

test('every mode opens from its link, without errors, serious findings or sideways scrolling', async () => {
  for (const mode of modes) {
    await Promise.all([[360, true], [1280, false]].map(async ([width, dark]) => {
      const page = await session.open(`#/${mode}`, { width, dark });
      await settled(page);
      assert.deepEqual(page.problems, [], `${mode} at ${width}`);
      assert.deepEqual(await seriousFindings(page), [], `${mode} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${mode} at ${width}`);
      await picture(page, `${mode}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});

test('the navigation is reached and used by keyboard', async () => {
  const page = await session.open();
  const links = page.getByRole('navigation', { name: 'Modes' }).getByRole('link');
  assert.equal(await links.count(), modes.length);
  for (let index = 1; index < modes.length; ++index) {
    await links.nth(index).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction((mode) => document.querySelector('nav [aria-current="page"]')?.hash.startsWith(`#/${mode}`), modes[index]);
    assert.equal(new URL(page.url()).hash.split('?')[0], `#/${modes[index]}`);
  }
  await page.context().close();
});

test('on a phone the tabs show that there are more, at the ends that hide some', async () => {
  const page = await session.open('#/learn?chapter=tokens', { width: 390 });
  const nav = page.getByRole('navigation', { name: 'Modes' });
  const arrows = () => nav.evaluate((row) => ['::before', '::after'].map((end) => getComputedStyle(row, end).visibility));
  await page.waitForFunction(() => document.querySelector('header nav').dataset.more === 'end');
  assert.deepEqual(await arrows(), ['hidden', 'visible']);
  await nav.getByRole('link').last().focus();
  await page.waitForFunction(() => document.querySelector('header nav').dataset.more === 'start');
  assert.deepEqual(await arrows(), ['visible', 'hidden']);
  assert.equal(await page.locator('nav[aria-label=Chapters] ol').getAttribute('data-more'), 'end');
  await page.context().close();
  const wide = await session.open('#/learn?chapter=tokens');
  assert.equal(await wide.getByRole('navigation', { name: 'Modes' }).getAttribute('data-more'), '');
  await wide.context().close();
});

test('a link of before keeps its mode', async () => {
  const page = await session.open(`#/?text=${encodeURIComponent('The fox slept')}`);
  await page.getByRole('heading', { level: 1, name: /Follow one word/ }).waitFor();
  await page.context().close();
});

test('a typed prompt becomes part of the link, which restores it', async () => {
  const page = await session.open();
  await page.getByLabel('Prompt', { exact: true }).fill('The fox waited for the hare');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('fox'));
  const again = await session.open(new URL(page.url()).hash);
  assert.equal(await again.getByLabel('Prompt', { exact: true }).inputValue(), 'The fox waited for the hare');
  await page.context().close();
  await again.context().close();
});

test('a lost connection is reported, and the page continues once it is back', async () => {
  const page = await session.open();
  let lost = true;
  await page.route(/\/(api|health)/, (route) => (lost ? route.abort('connectionrefused') : route.continue()));
  await page.getByLabel('Prompt', { exact: true }).fill('A quiet hare');
  await page.keyboard.press('Enter');
  const alert = page.getByRole('alert').filter({ hasText: 'does not respond' });
  await alert.waitFor();
  lost = false;
  await alert.waitFor({ state: 'detached' });
  await page.waitForFunction(() => document.querySelector('[role=status]')?.textContent?.includes('tokens'));
  await page.context().close();
});

test('an idle page notices a lost server and makes the trace again on its successor', async () => {
  const page = await session.open(`#/follow?text=${encodeURIComponent('A quiet hare')}&layer=1&head=1`);
  await page.locator('.said .figure').first().waitFor();
  const read = [];
  page.on('request', (request) => request.method() === 'POST' && request.url().endsWith('/api/traces') && read.push(JSON.parse(request.postData()).text));
  let lost = true;
  await page.route(/\/(api|health)/, (route) => (lost ? route.abort('connectionrefused') : route.continue()));
  const alert = page.getByRole('alert').filter({ hasText: 'does not respond' });
  await alert.waitFor();
  lost = false;
  await alert.waitFor({ state: 'detached' });
  await page.locator('.said .figure').first().waitFor();
  assert.deepEqual(read, ['A quiet hare']);
  await page.context().close();
});

/** How many bytes the server sends for a file of the page. */
function sent(file) {
  return new Promise((resolve, reject) => {
    http.get(`${session.address}/${file}`, { headers: { 'Accept-Encoding': 'gzip' } }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part)).on('end', () => {
        if (response.statusCode !== 200 || response.headers['content-encoding'] !== 'gzip') return reject(new Error(`${file}: ${response.statusCode}, ${response.headers['content-encoding']}`));
        resolve(Buffer.concat(parts).length);
      });
    }).on('error', reject);
  });
}

test('the whole page takes less than 1.5 MB compressed', async () => {
  const files = readdirSync(built, { recursive: true }).filter((name) => statSync(path.join(built, name)).isFile());
  const sizes = await Promise.all(files.map((name) => sent(name === 'index.html' ? '' : name)));
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(whole < 1.5e6, `${whole} bytes in ${files.length} files`);
});

test('the footer leads to the licences of the bundled libraries', async () => {
  const page = await session.open();
  await page.getByRole('link', { name: 'third-party licences' }).click();
  await page.getByText('SIL OPEN FONT LICENSE').waitFor();
  await page.context().close();
});
