import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, overflowsSideways, picture, seriousFindings, translatorOf, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const chapters = ['tokens', 'embeddings', 'head', 'mask', 'heads', 'block', 'depth', 'training', 'two-texts'];

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

async function post(path, body) {
  const response = await fetch(session.address + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** A kind's table on the page, and the same array of the API. */
async function compareKind(page, id, kind, layer, head) {
  const section = page.locator(`section[data-kind=${kind}]`);
  const row = kind === 'encoder' ? '' : '&row=written';
  const { values, shape } = await session.get(`/api/traces/${id}/attention/${kind}/${layer}/${head}?unit=words${row}&format=json`);
  const table = section.locator('details', { hasText: 'As a table' });
  if (!(await table.evaluate((one) => one.open))) await table.locator('summary').click();
  await table.locator('tbody tr').first().waitFor();
  const shown = await table.locator('tbody tr').evaluateAll((rows) => rows.map((one) => [...one.querySelectorAll('td')].map((cell) => cell.textContent)));
  assert.deepEqual([shown.length, shown[0].length], shape, kind);
  const flat = values.flat(Infinity);
  shown.flat().forEach((text, index) => assertShows(text, flat[index], `${kind} ${index}`));
  return { weights: flat, columns: shape[1] };
}

test('three kinds of attention of a translator equal those of the API, and the mask hides later words', async () => {
  const translator = await translatorOf(session);
  const page = await session.open('#/learn?chapter=two-texts&encoder=1.0&decoder=0.0&cross=1.0&from=1&to=2');
  if (translator === null) {
    await page.getByRole('region', { name: 'No translator' }).waitFor();
    assert.match(await page.locator('article').innerText(), /This server holds no translator, so there are no numbers to show beside this chapter/);
    assert.deepEqual(page.problems, []);
    return page.context().close();
  }
  const { source, target } = translator.examples?.[0] ?? { source: 'The dog sleeps.' };
  const free = await post('/api/traces', { source, ...(target && { target }) });
  for (const kind of ['encoder', 'decoder', 'cross']) await page.getByTestId(`says-${kind}`).waitFor();
  const { weights, columns } = await compareKind(page, free.id, 'encoder', 1, 0);
  await compareKind(page, free.id, 'decoder', 0, 0);
  await compareKind(page, free.id, 'cross', 1, 0);
  const after = (row) => row.slice(2).reduce((sum, weight) => sum + weight, 0);
  assertShows(await page.getByTestId('ahead').textContent(), after(weights.slice(columns, 2 * columns)), 'words after the chosen one');
  assert.match(await page.locator('article').innerText(), new RegExp(`“${translator.name}”`));

  // Another word moves the vectors of earlier ones, unless there is a mask.
  const masked = await post('/api/traces', { source_tokens: free.source.tokens.map(({ id }) => id), target_tokens: free.target.tokens.map(({ id }) => id), interventions: [{ kind: 'mask_future', point: 'encoder' }] });
  const position = free.source.words[1].begin;
  const [without, within] = await Promise.all([free, masked].map(({ id }) => session.get(`/api/traces/${id}/influence?side=source&position=${position}`)));
  await page.getByTestId('influence').waitFor();
  const cells = await page.getByTestId('influence').locator('tbody tr').evaluateAll((rows) => rows.map((row) => [row.cells[1].textContent, row.cells[3].textContent]));
  assert.equal(cells.length, free.source.tokens.length);
  cells.forEach(([one, other], index) => {
    assertShows(one, without.encoder[index], `no mask, ${index}`);
    assertShows(other, within.encoder[index], `with the mask, ${index}`);
    if (index < position) assert.equal(other, '0');
  });
  const { text, without: usual } = await post(`/api/traces/${masked.id}/translation`, {});
  const said = await page.getByTestId('translations').innerText();
  for (const one of [text, ...(text === usual.text ? [] : [usual.text])]) assert.ok(said.includes(one), `${said} has ${one}`);

  await page.getByRole('button', { name: 'Mask switched on in the encoder' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('mask=on') && /To words after it/.test(document.querySelector('[data-testid=says-encoder]')?.textContent ?? ''));
  const hidden = await compareKind(page, masked.id, 'encoder', 1, 0);
  hidden.weights.forEach((weight, index) => index % columns > Math.floor(index / columns) && assert.equal(weight, 0));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a word of the target is chosen by keyboard, and the sentence says what is read to write it', async (context) => {
  const translator = await translatorOf(session);
  if (translator === null) return context.skip('this server holds no translator');
  const page = await session.open('#/learn?chapter=two-texts&cross=1.0&to=1');
  await page.getByTestId('says-cross').waitFor();
  await page.getByRole('toolbar', { name: 'Words of the target' }).locator('button[aria-pressed=true]').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('to=2'));
  const { source, target } = translator.examples?.[0] ?? { source: 'The dog sleeps.' };
  const free = await post('/api/traces', { source, ...(target && { target }) });
  const { positions } = await session.get(`/api/traces/${free.id}/attention/cross/1/0/rows/${free.target.words[2].begin}?top=1&unit=words&row=written`);
  await page.waitForFunction((word) => document.querySelector('[data-testid=says-cross]')?.textContent.includes(`To write “${word}”`), free.target.words[2].text);
  const said = await page.getByTestId('says-cross').innerText();
  assert.ok(said.includes(`“${positions[0].text}”`), `${said} names ${positions[0].text}`);
  assertShows(await page.getByTestId('says-cross').locator('strong').first().textContent(), positions[0].weight, 'the largest weight');
  await page.context().close();
});

test('no serious findings or overflow in any chapter', async () => {
  for (const chapter of chapters) {
    await Promise.all([[360, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
      const page = await session.open(`#/learn?chapter=${chapter}`, { width, dark });
      await page.locator('.live > *').first().waitFor();
      await page.waitForLoadState('networkidle');
      assert.deepEqual(await seriousFindings(page), [], `${chapter} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${chapter} at ${width}`);
      assert.deepEqual(page.problems, [], chapter);
      await picture(page, `learn-${chapter}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});
