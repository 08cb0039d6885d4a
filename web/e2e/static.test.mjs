// The page as static files: what it does without a server. Only with HEED_STATIC (tools/run_e2e.mjs --static).
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overflowsSideways, picture, seriousFindings, startFiles, useExplorer } from './harness.mjs';
import { startHub } from './hub.mjs';

const where = process.env.HEED_STATIC;
const skip = where ? false : 'needs the page as static files: HEED_STATIC';
const folderOnly = skip || (where.startsWith('http:') ? 'needs a folder of static files' : false);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const starter = path.join(root, 'models/starter');
const scratch = mkdtempSync(path.join(tmpdir(), 'heed-static-'));
after(() => rmSync(scratch, { recursive: true }));
const session = useExplorer();

const sentence = 'Late one evening, a fluffy blue hare';
const follow = `#/follow?text=${encodeURIComponent(sentence)}`;
const menu = (page) => page.getByRole('button', { name: /^Model: / });
const panel = (page) => page.getByRole('group', { name: 'Models' });
const words = (page) => page.getByRole('region', { name: 'At a glance' }).locator('.tokens > button');

/** Waits until the service worker has every file. */
async function kept(page) {
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    if (active.state !== 'activated') await new Promise((resolve) => active.addEventListener('statechange', resolve));
  });
  const models = await page.evaluate(() => JSON.parse(document.querySelector('meta[name="heed-release"]').content).models);
  const wanted = Object.values(models).flatMap(({ folder, files }) => files.map((file) => folder + file.path));
  // waitForFunction() takes a promise for an answer.
  const all = () => page.evaluate(async (paths) => (await Promise.all(paths.map((one) => caches.match(new URL(one, location.href).href)))).every(Boolean), wanted);
  for (const end = Date.now() + 60_000; !(await all()); ) {
    assert.ok(Date.now() < end, 'every file is kept within a minute');
    await page.waitForTimeout(100);
  }
}

test('shows what the native program computes, under a strict policy, and sends nothing elsewhere', { skip }, async () => {
  const page = await session.open('', {});
  const asked = new Set();
  page.on('request', (request) => asked.add(new URL(request.url()).origin));
  await page.goto(`${session.page}/${follow}`);
  await page.reload();
  await words(page).first().waitFor();
  const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');
  assert.match(policy, /default-src 'self'; script-src 'self' 'wasm-unsafe-eval'/);
  assert.doesNotMatch(policy.match(/script-src [^;]*/)[0], /unsafe-inline|'unsafe-eval'|http/);
  const native = await (await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: sentence }) })).json();
  assert.deepEqual(await words(page).count(), native.tokens.length);
  assert.deepEqual([...asked], [session.page]);
  assert.equal(await page.evaluate(() => document.querySelectorAll('script:not([src])').length), 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('says in the list of models what it can do, and fits a phone', { skip }, async () => {
  for (const [width, dark] of [[390, false], [1280, true]]) {
    const page = await session.open(follow, { width, dark });
    await menu(page).click();
    await panel(page).getByRole('heading', { name: 'Your own model' }).waitFor();
    await panel(page).getByRole('button', { name: /english/i }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.equal(await overflowsSideways(page), false);
    await picture(page, `static-models-${width}`);
    await page.context().close();
  }
});

test('opens the reader’s own files, keeps them for the next visit, and forgets them', { skip }, async () => {
  const own = path.join(scratch, 'my gpt');
  cpSync(starter, own, { recursive: true });
  const page = await session.open(follow);
  await menu(page).click();
  await panel(page).getByLabel('Folder of a model').setInputFiles(own);
  await page.waitForURL(/model=my-gpt/);
  await words(page).first().waitFor();
  await menu(page).click();
  await panel(page).getByText('until this page is closed').waitFor();
  await panel(page).getByRole('button', { name: 'Keep', exact: true }).click();
  await panel(page).getByText('kept in this browser').waitFor({ timeout: 30_000 });
  await page.reload();
  await words(page).first().waitFor();
  await menu(page).click();
  await panel(page).getByRole('button', { name: 'Remove my-gpt' }).click();
  await page.waitForFunction(() => !location.hash.includes('model='));
  await words(page).first().waitFor();
  await panel(page).getByText('kept in this browser').waitFor({ state: 'detached' });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('says what is wrong with a file as the program does, and lives on', { skip }, async () => {
  const files = ['config.json', 'tokenizer.json', 'model.safetensors'].map((name) => ({ name, mimeType: 'application/octet-stream', buffer: readFileSync(path.join(starter, name)) }));
  const change = (name, buffer) => files.map((file) => (file.name === name ? { ...file, buffer } : file));
  const whole = files[2].buffer;
  const hostile = [
    ['truncated', change('model.safetensors', whole.subarray(0, 60))],
    ['a header of 2^63 bytes', change('model.safetensors', Buffer.concat([Buffer.from('ffffffffffffff7f', 'hex'), whole.subarray(8, 90)]))],
    ['no JSON', change('config.json', Buffer.from('{"n_layer": '))],
  ];
  const page = await session.open(follow);
  for (const [what, given] of hostile) {
    await menu(page).click();
    await panel(page).getByLabel('Files of a model').setInputFiles(given);
    const alert = page.locator('main').getByRole('alert');
    await alert.first().waitFor({ timeout: 30_000 }).catch((error) => assert.fail(`${what}: ${error.message}`));
    const said = await alert.first().textContent();
    assert.match(said, /model\.safetensors|config\.json|JSON/, what);
    await page.evaluate(() => (location.hash = '#/follow'));
    await words(page).first().waitFor();
  }
  await menu(page).click();
  await panel(page).getByLabel('Files of a model').setInputFiles(files.slice(2));
  await panel(page).getByRole('alert').filter({ hasText: 'config.json is missing' }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('takes a model from the hub, with resume and hash', { skip }, async () => {
  const hub = await startHub('gpt2', starter);
  // The service worker is not what this is about, and its requests cannot be redirected here.
  const page = await session.open(follow, { serviceWorkers: 'block' });
  try {
    await page.context().route('https://huggingface.co/**', async (route) => {
      const { pathname, search } = new URL(route.request().url());
      const headers = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' };
      if (route.request().method() === 'OPTIONS') return route.fulfill({ status: 204, headers });
      const range = route.request().headers().range;
      const answer = await fetch(hub.address + pathname + search, { headers: range ? { range } : {} });
      return route.fulfill({ status: answer.status, headers, body: Buffer.from(await answer.arrayBuffer()) });
    });
    await menu(page).click();
    const button = panel(page).getByRole('button', { name: /GPT-2/ });
    // Another content than the hub lists.
    hub.misbehave = (_, response, content) => response.end(Buffer.from(content).fill(7, 1000, 2000));
    await button.click();
    await panel(page).getByRole('alert').filter({ hasText: /hash/ }).waitFor({ timeout: 60_000 });
    hub.misbehave = null;
    await button.click();
    const here = panel(page).locator('button.one').filter({ hasText: 'GPT-2' });
    await here.waitFor({ timeout: 60_000 });
    await here.click();
    await page.waitForURL(/model=gpt2/);
    await words(page).first().waitFor();
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
    await hub.stop();
  }
});

test('has one view for another page, without a header', { skip }, async () => {
  const address = `${session.page}/?view=attention&text=${encodeURIComponent(sentence)}`;
  const other = http.createServer((_, response) => response.end(`<!doctype html><title>A blog</title><iframe src="${address}" width="700" height="420" title="Attention"></iframe>`));
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  const context = await session.browser.newContext({ viewport: { width: 760, height: 480 } });
  try {
    const page = await context.newPage();
    const problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && !/favicon/.test(message.location().url) && problems.push(message.text()));
    await page.goto(`http://127.0.0.1:${other.address().port}/`);
    const frame = page.frameLocator('iframe');
    await frame.locator('.tokens > button').first().waitFor();
    await frame.getByText('attends to').waitFor();
    assert.equal(await frame.getByRole('navigation').count(), 0);
    assert.equal(await frame.locator('header').count(), 0);
    const link = await frame.getByRole('link', { name: 'Open in heed' }).getAttribute('href');
    assert.match(link, /#\/follow\?text=Late/);
    await picture(page, 'static-embedded');
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
    await new Promise((resolve) => other.close(resolve));
  }
});

test('trains a model in the browser while the page answers: watched, paused, resumed and stopped', { skip: folderOnly }, async () => {
  const page = await session.open('#/watch-it-learn');
  const card = page.getByRole('region', { name: 'Training', exact: true });
  const state = page.getByTestId('training-state');
  const step = async () => Number(/step ([\d,]+)/.exec(await state.textContent())?.[1].replaceAll(',', ''));
  await card.getByRole('button', { name: 'Train a model now' }).click();
  await card.getByText('Settings', { exact: true }).click();
  for (const [label, number] of Object.entries({ Blocks: 1, Heads: 2, Width: 16, Context: 64, Steps: 20000, 'Batch size': 4, Seed: 5 })) await card.getByLabel(label, { exact: true }).fill(String(number));
  await card.getByRole('button', { name: 'Start training' }).click();
  await page.waitForFunction(() => Number(document.querySelector('.plot[data-curve=loss]')?.dataset.steps) >= 1, undefined, { timeout: 60_000 });
  // The model of the page answers meanwhile.
  await page.evaluate((link) => (location.hash = link), follow);
  await words(page).first().waitFor();
  await page.evaluate(() => (location.hash = '#/watch-it-learn'));
  await card.getByRole('button', { name: 'Pause' }).click();
  await state.getByText('Paused at step').waitFor();
  await page.waitForTimeout(1000); // the state is asked for again and again
  const paused = await step();
  await page.waitForTimeout(1500);
  assert.equal(await step(), paused);
  await card.getByRole('button', { name: 'Resume' }).click();
  await page.waitForFunction((before) => Number(/step ([\d,]+)/.exec(document.querySelector('[data-testid=training-state]').textContent)?.[1].replaceAll(',', '')) > before, paused, { timeout: 60_000 });
  await card.getByRole('button', { name: 'Stop' }).click();
  await state.getByText(/Stopped/).waitFor({ timeout: 30_000 });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('works without a network after the first visit, in a second tab too, and with the other model', { skip: folderOnly }, async () => {
  const files = await startFiles(path.resolve(root, where));
  const context = await session.browser.newContext();
  const page = await context.newPage();
  let isUp = true;
  try {
    await page.goto(`${files.address}/${follow}`);
    await words(page).first().waitFor();
    await kept(page);
    await files.stop();
    isUp = false;
    await page.reload();
    await words(page).first().waitFor();
    const second = await context.newPage();
    await second.goto(`${files.address}/#/compare?model=english&text=The+dog+chased+the+cat`);
    await second.locator('main h1').first().waitFor();
    await second.getByText('The dog chased').first().waitFor().catch(() => {});
    assert.equal(await second.getByRole('alert').count(), 0);
    await words(page).nth(1).click();
    await page.getByRole('region', { name: 'At a glance' }).getByText('attends to').waitFor();
  } finally {
    await context.close();
    if (isUp) await files.stop();
  }
});

test('changes to another version as a whole: no tab has files of both', { skip: folderOnly }, async () => {
  const folders = ['1', '2'].map((version) => {
    const folder = path.join(scratch, `version-${version}`);
    cpSync(path.resolve(root, where), folder, { recursive: true });
    const edit = (name, change) => {
      writeFileSync(path.join(folder, name), change(readFileSync(path.join(folder, name), 'utf8')));
      utimesSync(path.join(folder, name), 0, 1e9 + 60 * Number(version)); // the server tells versions apart by whole seconds
    };
    edit('index.html', (html) => html.replace('</title>', `</title><meta name="test-version" content="${version}">`));
    edit('service-worker.js', (code) => code.replace(/"version":"[^"]*"/, `"version":"test-${version}"`));
    return folder;
  });
  const versionOf = (page) => page.locator('meta[name="test-version"]').getAttribute('content');
  let files = await startFiles(folders[0]);
  const port = new URL(files.address).port;
  const context = await session.browser.newContext();
  try {
    const first = await context.newPage();
    await first.goto(`${files.address}/${follow}`);
    await words(first).first().waitFor();
    await kept(first);
    await files.stop();
    files = await startFiles(folders[1], port);
    // A second tab beside the first: both have the former version, while the newer one is loaded.
    const second = await context.newPage();
    await second.goto(`${files.address}/${follow}`);
    await words(second).first().waitFor();
    assert.equal(await versionOf(second), '1');
    await second.getByRole('alert').filter({ hasText: 'A newer version of this page is ready' }).waitFor({ timeout: 60_000 });
    await words(first).nth(1).click();
    await first.getByRole('region', { name: 'At a glance' }).getByText('attends to').waitFor();
    assert.equal(await versionOf(first), '1');
    await first.close();
    await second.close();
    const third = await context.newPage();
    await third.goto(`${files.address}/${follow}`);
    await third.waitForFunction(() => document.querySelector('meta[name="test-version"]')?.content === '2', undefined, { timeout: 30_000 });
    await words(third).first().waitFor();
  } finally {
    await context.close();
    await files.stop();
  }
});
