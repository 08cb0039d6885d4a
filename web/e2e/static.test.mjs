// The page as static files: what it does without a server. Only with HEED_STATIC (tools/run_e2e.mjs --static).
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { carriedTranslator, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { startHub } from './hub.mjs';
import { assertShows } from './numbers.mjs';
import { drop, follow, menu, panel, root, sentence, skip, words } from './static_page.mjs';

const starter = path.join(root, 'models/starter');
const scratch = mkdtempSync(path.join(tmpdir(), 'heed-static-'));
after(() => rmSync(scratch, { recursive: true }));
const session = useExplorer();

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
    // Not loaded yet, and described all the same.
    await panel(page).getByRole('button', { name: /english.*books.*million parameters/i }).waitFor();
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

test('a translator that is dropped has its own mode, is kept, and the former model is one choice away', { skip }, async () => {
  const page = await session.open(follow);
  await words(page).first().waitFor();
  const modes = page.getByRole('navigation', { name: 'Modes' }).getByRole('link');
  const many = await modes.count();
  await drop(page, [carriedTranslator]);
  await page.getByRole('heading', { name: 'Follow a word from one text to the other' }).waitFor();
  await page.getByRole('toolbar', { name: /^Words of the target/ }).waitFor();
  assert.deepEqual(await modes.allTextContents(), ['Translate']);
  await page.getByRole('button', { name: /^Model: translator.*encoder of \d+ and decoder of \d+ blocks/ }).click();
  await panel(page).getByRole('button', { name: 'Keep', exact: true }).click();
  await panel(page).getByText('kept in this browser').waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  const link = page.url();
  await panel(page).getByRole('button', { name: /^starter/ }).click();
  await words(page).first().waitFor();
  assert.match(page.url(), /#\/follow\?/);
  assert.equal(decodeURIComponent(/text=([^&]*)/.exec(page.url())[1].replaceAll('+', ' ')), sentence);
  assert.equal(await modes.count(), many);

  // Without one, the mode says how to open one.
  await modes.filter({ hasText: 'Translate' }).click();
  await page.getByText('This page has no translator open').waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  await page.locator('main').getByLabel('Files of a model').setInputFiles(['config.json', 'model.safetensors', 'tokenizer.json'].map((name) => path.join(carriedTranslator, name)));
  await page.waitForURL(/model=my-model/);
  await page.getByRole('toolbar', { name: /^Words of the target/ }).waitFor();

  // The next visit, at the link of the one that is kept.
  await page.goto(link);
  await page.reload();
  await page.getByRole('toolbar', { name: /^Words of the target/ }).waitFor();
  await menu(page).click();
  await panel(page).getByRole('button', { name: 'Remove translator' }).click();
  await words(page).first().waitFor();
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

test('a link carries the text, the model, the head, the changes and the chapter', { skip }, async () => {
  const text = 'The dog chased the cat';
  const page = await session.open(`#/change?model=english&text=${encodeURIComponent(text)}&layer=1&head=2`);
  await page.getByRole('switch', { name: 'block 1, head 2', exact: true }).click();
  const shown = page.getByTestId('kl').locator('strong');
  await shown.waitFor();
  await settled(page);
  const kl = await shown.textContent();
  // What a teacher sends: another browser has nothing of the first one's.
  const link = page.url().slice(session.page.length + 1);
  for (const part of ['model=english', 'text=The+dog+chased+the+cat', 'layer=1', 'head=2', 'changes=L1H2']) assert.ok(link.includes(part), `${part} in ${link}`);
  const other = await session.open(link);
  await other.getByTestId('kl').locator('strong').waitFor();
  await settled(other);
  assert.equal(await other.getByTestId('kl').locator('strong').textContent(), kl);
  await other.getByRole('button', { name: /^Model: english/ }).waitFor();
  await other.getByRole('switch', { name: 'block 1, head 2, off' }).waitFor();
  // The numbers are those of the native program.
  const post = async (where, body) => (await fetch(session.address + where, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();
  const base = await post('/api/traces', { text, model: 'english' });
  const changed = await post('/api/traces', { base: base.id, interventions: [{ kind: 'ablate', point: 'L1H2' }] });
  assertShows(kl, (await session.get(`/api/traces/${base.id}/compare/${changed.id}?position=-1&top=10`)).kl, 'KL divergence');
  const chapter = await session.open(`#/learn?chapter=head&model=english&text=${encodeURIComponent(text)}&layer=1&head=2`);
  await chapter.locator('nav[aria-label=Chapters] [aria-current]').waitFor();
  assert.match(await chapter.locator('nav[aria-label=Chapters] [aria-current]').textContent(), /One head/);
  for (const each of [page, other, chapter]) {
    assert.deepEqual(each.problems, []);
    await each.context().close();
  }
});
