import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const chapters = ['tokens', 'embeddings', 'head', 'mask', 'heads', 'block', 'depth', 'training'];

test('the tour is navigated by keyboard from the first to the last chapter', async () => {
  const page = await session.open('#/learn');
  const current = page.locator('nav [aria-current="step"]');
  for (let index = 0; index < chapters.length; ++index) {
    assert.match(await current.innerText(), new RegExp(`^${index + 1}`));
    await page.locator('.live > .card').first().waitFor();
    await page.locator('article .katex').first().waitFor();
    if (index === chapters.length - 1) break;
    await page.locator('article .turn button.primary').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction((id) => location.hash.includes(`chapter=${id}`), chapters[index + 1]);
  }
  await page.getByRole('button', { name: /Now follow a word/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /Follow one word/ }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('an element of a matrix shows its computation by keyboard', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=head&layer=1&head=2&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const { id } = await made.json();
  const tip = page.getByRole('tooltip');
  const lastOf = (title) => tip.filter({ hasText: title }).locator('tr.sum td').last();
  await page.getByRole('application', { name: /^Queries Q/ }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  const query = await session.get(`/api/traces/${id}/derivation?point=blocks.1.attn.hook_q&layer=1&head=2&position=1&index=1`);
  assertShows(await lastOf('dimension 1').textContent(), query.value, 'query');
  await page.getByRole('application', { name: /^Pattern A/ }).focus();
  await page.keyboard.press('ArrowDown');
  assertShows(await lastOf('Attention of').textContent(), 1, 'shares');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight'); // masked: nothing to tell
  await tip.waitFor({ state: 'hidden' });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a chapter shows its example, but keeps a text that the user typed', async () => {
  const { examples } = await session.get('/api/model');
  const page = await session.open('#/learn');
  const texts = new Set();
  for (let index = 1; index < chapters.length; ++index) {
    await page.locator('nav li button').nth(index).click();
    await page.waitForFunction((id) => location.hash.includes(`chapter=${id}`), chapters[index]);
    const view = new URLSearchParams(page.url().split('?')[1]);
    const example = examples.find(({ text }) => text === view.get('text'));
    assert.ok(example, chapters[index]);
    assert.deepEqual([Number(view.get('layer') ?? 0), Number(view.get('head') ?? 0)], [example.layer, example.head], chapters[index]);
    texts.add(example.id);
  }
  for (const id of ['mole-animal', 'adjectives', 'mystery']) assert.ok(texts.has(id), id);
  await page.context().close();

  const own = await session.open(`#/learn?text=${encodeURIComponent('The fox slept')}`);
  await own.locator('nav li button').nth(2).click();
  await own.waitForFunction(() => location.hash.includes('chapter=head'));
  assert.match(own.url(), /text=The\+fox\+slept/);
  await own.context().close();
});

test('the surprise at each token equals that of the API', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=training&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const trace = await made.json();
  await page.locator('.live > .card').first().locator('tbody tr').first().waitFor();
  const shown = await page.locator('.live > .card').first().locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(shown.length, trace.tokens.length - 1);
  let sum = 0;
  for (let position = 0; position + 1 < trace.tokens.length; ++position) {
    const { candidates } = await session.get(`/api/traces/${trace.id}/next?position=${position}&temperature=1&limit=0`);
    const chance = candidates.find(({ id }) => id === trace.tokens[position + 1].id).probability;
    assertShows(shown[position][2], chance, `chance at ${position}`);
    assertShows(shown[position][3], -Math.log(chance), `surprise at ${position}`);
    sum -= Math.log(chance);
  }
  assertShows(await page.locator('.loss').innerText(), sum / shown.length, 'loss');
  await page.context().close();
});

test('every chapter’s live view can be exported', async () => {
  for (const chapter of chapters) {
    const page = await session.open(`#/learn?chapter=${chapter}`);
    const menu = page.locator('.live details.export').first();
    await menu.waitFor();
    await page.waitForLoadState('networkidle'); // what comes later may stand before it
    if (chapter === 'heads') assert.equal((await exported(page, menu, 'PNG')).toString('latin1', 1, 4), 'PNG');
    else assert.match((await exported(page, menu, 'SVG')).toString(), /^<svg [^]*<\/svg>$/, chapter);
    assert.ok((await exported(page, menu, 'CSV')).toString().split('\r\n').length > 2, chapter);
    assert.deepEqual(page.problems, [], chapter);
    await page.context().close();
  }
});

test('the exported matrices of a head equal those of the API', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=head&layer=1&head=2&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const { id } = await made.json();
  const { values, shape } = await session.get(`/api/traces/${id}/arrays/blocks.1.attn.hook_q?heads=2&format=json`);
  const menu = page.locator('.live .card', { hasText: 'The formula' }).locator('details.export');
  const file = await exported(page, menu, 'npy: Q');
  const header = file.readUInt16LE(8);
  assert.match(file.toString('latin1', 10, 10 + header), new RegExp(`\\(${shape[1]}, ${shape.at(-1)}\\)`));
  const numbers = new Float32Array(file.buffer.slice(file.byteOffset + 10 + header, file.byteOffset + file.length));
  assert.deepEqual([...numbers], values.flat(Infinity).map(Math.fround));
  const rows = (await exported(page, menu, 'CSV')).toString().trim().split('\r\n');
  assert.equal(rows[0], 'matrix,row,row_name,column,value');
  assert.equal(rows.length, 1 + 4 * numbers.length + 2 * shape[1] ** 2);
  await page.context().close();
});

test('no serious findings or overflow in any chapter', async () => {
  for (const chapter of chapters) {
    for (const [width, dark] of [[360, true], [1280, false], [1920, true]]) {
      const page = await session.open(`#/learn?chapter=${chapter}`, { width, dark });
      await page.locator('.live > *').first().waitFor();
      await page.waitForLoadState('networkidle');
      assert.deepEqual(await seriousFindings(page), [], `${chapter} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${chapter} at ${width}`);
      assert.deepEqual(page.problems, [], chapter);
      await picture(page, `learn-${chapter}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }
  }
});
