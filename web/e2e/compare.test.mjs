import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { openTables, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'The mole dug under the garden. The doctor looked at the mole on her arm.';
const link = (more = '') => `#/compare?text=${encodeURIComponent(text)}&layer=2&head=3${more}`;
const views = ['heads', 'map', 'words', 'lens', 'neurons', 'vectors'];

async function makeTrace() {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  assert.ok(response.ok);
  return response.json();
}

test('each view opens from its link, without serious findings or sideways scrolling', async () => {
  for (const view of views) {
    await Promise.all([[360, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
      const page = await session.open(link(`&view=${view}`), { width, dark });
      await page.getByRole('tab', { selected: true }).waitFor();
      await settled(page);
      await page.locator('[role=tabpanel] .card').first().waitFor();
      assert.deepEqual(page.problems, [], `${view} at ${width}`);
      await openTables(page);
      assert.deepEqual(await seriousFindings(page), [], `${view} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${view} at ${width}`);
      await picture(page, `compare-${view}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});

test('statistics equal those of the API and sort the heads', async () => {
  const { id } = await makeTrace();
  const { heads } = await session.get(`/api/traces/${id}/heads`);
  const page = await session.open(link());
  await page.getByText('All statistics as a table').click();
  const table = page.getByRole('table');
  await table.getByRole('button', { name: 'Previous token' }).click();
  const best = heads.reduce((most, head) => (head.previous > most.previous ? head : most));
  const first = table.locator('tbody tr').first();
  assert.equal(await first.locator('th').textContent(), `L${best.layer}H${best.head}`);
  const cells = await first.locator('td').allTextContents();
  assertShows(cells[1], best.previous, 'previous token');
  assertShows(cells[2], best.first, 'first token');
  assertShows(cells[6], best.evenness, 'spread');
  assert.match(page.url(), /sort=previous/);
  await page.context().close();
});

test('a head is selected and its map explored by keyboard', async () => {
  const { id, tokens } = await makeTrace();
  const page = await session.open(link());
  await page.locator('[data-head="L2H3"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.head), 'L1H4');
  await page.keyboard.press('Enter');
  const map = page.getByRole('application', { name: /Attention of block 1, head 4/ });
  await map.focus();
  for (const key of ['ArrowUp', 'ArrowRight', 'ArrowRight', '+', '+', '0']) await page.keyboard.press(key);
  const query = tokens.length - 2;
  const response = await fetch(`${session.address}/api/traces/${id}/attention/self/1/4/rows/${query}?format=json`);
  const { values } = await response.json();
  const reading = page.getByTestId('map-reading');
  await reading.locator('strong', { hasText: '%' }).waitFor();
  assert.match(await reading.textContent(), new RegExp(`\\(${query}\\) attends to.*\\(2\\)`));
  assertShows(await reading.locator('strong').textContent(), values[2], 'weight under the crosshair');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the weights from and to a word equal those of the API', async () => {
  const { id } = await makeTrace();
  const page = await session.open(link('&view=words&position=5'));
  const words = page.getByRole('toolbar', { name: /^Words/ });
  await words.getByRole('button', { pressed: true }).focus();
  await page.keyboard.press('ArrowLeft');
  for (const [path, title] of [['rows', /attends to$/], ['columns', /^What attends to/]]) {
    const answer = await session.get(`/api/traces/${id}/attention/self/2/3/${path}/4?top=10`);
    const positions = answer.positions.filter(({ weight }) => weight > 0);
    const list = page.getByRole('heading', { name: title }).locator('xpath=following-sibling::ol');
    await page.waitForFunction((count) => [...document.querySelectorAll('.lists ol')].some((one) => one.children.length === count), positions.length);
    const items = await list.locator('li').evaluateAll((all) => all.map((item) => [item.querySelector('.place').textContent, item.querySelector('.weight').textContent]));
    assert.deepEqual(items.map(([position]) => Number(position)), positions.map(({ position }) => position));
    positions.forEach(({ weight }, index) => assertShows(items[index][1], weight, `${path} ${index}`));
  }
  assert.ok((await page.locator('svg path.key').count()) > 0);
  await page.context().close();
});

test('the logit lens equals that of the API, and the arrow keys move over it', async () => {
  const { id } = await makeTrace();
  const lens = await session.get(`/api/traces/${id}/lens?top=5`);
  const page = await session.open(link('&view=lens&position=1'));
  const cell = page.locator(`[data-cell="${lens.rows.length - 1},1"]`);
  await cell.waitFor();
  assertShows(await cell.locator('.share').textContent(), lens.cells.at(-1)[1].probabilities[0], 'output');
  await cell.focus();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowRight');
  const reached = lens.cells.at(-2)[2];
  const detail = page.locator('.detail');
  await page.waitForFunction(() => /\(2\)/.test(document.querySelector('.detail')?.textContent ?? ''));
  const shares = await detail.locator('li .number').allTextContents();
  reached.probabilities.forEach((probability, index) => assertShows(shares[index], probability, `guess ${index}`));
  await page.context().close();
});

test('two occurrences of a word are compared by block', async () => {
  const { id, tokens } = await makeTrace();
  const places = tokens.flatMap(({ text: word }, position) => (word === ' mole' ? [position] : []));
  assert.equal(places.length, 2);
  const { layers } = await session.get(`/api/vectors?first=${id}:${places[0]}&second=${id}:${places[1]}`);
  const page = await session.open(link('&view=vectors&word=mole&other='));
  const table = page.getByRole('region', { name: 'Similarity by block' }).locator('table');
  await page.getByRole('region', { name: 'Similarity by block' }).getByText('As a table').click();
  const cosines = await table.locator('tbody td').allTextContents();
  assert.equal(cosines.length, layers.length);
  layers.forEach(({ cosine, point }, index) => assertShows(cosines[index], cosine, point));
  assertShows(cosines[0], 1, 'the token embedding is the same');
  const chart = page.getByRole('slider', { name: /Cosine/ });
  await chart.focus();
  await page.keyboard.press('Home');
  await page.getByRole('heading', { name: 'Projection: token embedding' }).waitFor();
  await page.context().close();
});

test('a word of three texts is compared in pairs', async () => {
  const { examples } = await session.get('/api/model');
  const moles = examples.filter(({ id }) => id.startsWith('mole'));
  assert.equal(moles.length, 3);
  const traces = await Promise.all(moles.map(async ({ text: one }) => (await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: one }) })).json()));
  const [first, ...others] = moles;
  const page = await session.open(`#/compare?view=vectors&text=${encodeURIComponent(first.text)}&position=${first.position}`);
  assert.equal(await page.getByRole('textbox', { name: 'Second text' }).inputValue(), others[0].text);
  assert.equal(await page.getByRole('textbox', { name: 'Third text' }).inputValue(), others[1].text);
  await page.locator('ul.places li').nth(2).waitFor();
  const region = page.getByRole('region', { name: 'Similarity by block' });
  await region.getByText('As a table').click();
  await region.locator('thead th').nth(3).waitFor();
  assert.deepEqual((await region.locator('thead th').allTextContents()).slice(1), ['A–B', 'A–C', 'B–C']);
  const last = await region.locator('tbody tr').last().locator('td').allTextContents();
  for (const [index, [a, b]] of [[0, 1], [0, 2], [1, 2]].entries()) {
    const { layers } = await session.get(`/api/vectors?first=${traces[a].id}:${moles[a].position}&second=${traces[b].id}:${moles[b].position}`);
    assertShows(last[index], layers.at(-1).cosine, `pair ${index}`);
  }
  await page.getByLabel('beside the').selectOption('third');
  await page.waitForFunction(() => location.hash.includes('flat=third'));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the hovered or selected head and cell are shown in detail', async () => {
  const { id, tokens } = await makeTrace();
  const { heads } = await session.get(`/api/traces/${id}/heads`);
  const page = await session.open(link(), { width: 1920 });
  const aside = page.getByRole('complementary', { name: 'Selected head' });
  await aside.getByRole('heading', { name: /L2H3/ }).waitFor();
  await page.locator('[data-head=L1H4]').hover();
  await aside.getByRole('heading', { name: /L1H4/ }).waitFor();
  const { previous } = heads.find(({ layer, head }) => layer === 1 && head === 4);
  assertShows(await aside.locator('dl > div', { hasText: 'Previous token' }).locator('dd').last().textContent(), previous, 'previous token');
  await page.locator('[data-head=L2H3]').focus();
  await page.mouse.move(1, 1); // away from heads that have scrolled under the pointer
  await page.keyboard.press('ArrowLeft');
  await aside.getByRole('heading', { name: /L2H2/ }).waitFor();
  await page.context().close();

  const { rows, cells } = await session.get(`/api/traces/${id}/lens?top=5&positions=${tokens.length - 1}`);
  const lens = await session.open(link('&view=lens'));
  const table = lens.getByRole('region', { name: 'Logit lens' });
  await table.getByText('As a table').click();
  const shown = await table.locator('figure + details tbody tr, details tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].slice(1).map((one) => one.textContent)));
  assert.equal(shown.length, rows.length);
  shown.forEach(([entropy, divergence], index) => {
    assertShows(entropy, cells[index][0].entropy, `entropy of ${rows[index]}`);
    assertShows(divergence, cells[index][0].divergence, `divergence of ${rows[index]}`);
  });
  await lens.context().close();
});

test('an attention pattern is exported', async () => {
  const { id } = await makeTrace();
  const { values, shape } = await session.get(`/api/traces/${id}/attention/self/2/3?format=json`);
  const page = await session.open(link('&view=map'));
  const menu = page.locator('details.export').first();
  await menu.locator('summary').click();
  const files = {};
  for (const kind of ['npy', 'CSV', 'PNG']) {
    const waiting = page.waitForEvent('download');
    await menu.getByRole('button', { name: kind, exact: true }).click();
    files[kind] = await readFile(await (await waiting).path());
    await menu.locator('summary').click();
  }
  const header = files.npy.readUInt16LE(8);
  assert.match(files.npy.toString('latin1', 10, 10 + header), new RegExp(`\\(${shape[0]}, ${shape[1]}\\)`));
  const kept = new Float32Array(files.npy.buffer.slice(files.npy.byteOffset + 10 + header, files.npy.byteOffset + files.npy.length));
  values.forEach((value, index) => assert.ok(Math.abs(kept[index] - value) < 1e-6));
  assert.match(files.CSV.toString(), /^query,query_token,key,key_token,weight\r\n/);
  assert.equal(files.PNG.toString('latin1', 1, 4), 'PNG');
  await page.context().close();
});

test('tokens, activations and contexts of a neuron equal those of the API', async () => {
  const { id, tokens } = await makeTrace();
  const wanted = await session.get(`/api/neurons/2/30?trace=${id}`);
  const { contexts } = await session.get('/api/neurons/2/30/contexts?top=10');
  const page = await session.open(link('&view=neurons'));
  await page.getByRole('spinbutton', { name: 'Neuron' }).fill('30');
  await page.keyboard.press('Enter');
  const words = page.getByTestId('neuron-words');
  const first = words.locator('li').first();
  await first.getByText(wanted.promotes[0].token.text.replace(/ /g, '␣'), { exact: true }).waitFor();
  assertShows(await first.locator('.number').textContent(), wanted.promotes[0].value, 'what it promotes most');
  const row = page.getByRole('toolbar', { name: /^Activation at/ });
  await row.getByRole('button', { pressed: true }).focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('position=0'));
  assertShows(await page.getByTestId('activation').textContent(), wanted.activations[0], 'at the first word');
  assert.equal(wanted.activations.length, tokens.length);
  const list = page.getByTestId('contexts').locator('li');
  await list.first().waitFor({ timeout: 180_000 }); // the stories are searched
  assert.equal(await list.count(), contexts.length);
  assertShows(await list.first().locator('.number').textContent(), contexts[0].activation, 'the strongest context');
  assert.equal(await list.first().locator('mark').textContent(), contexts[0].tokens[contexts[0].position].text.trim());
  await page.getByRole('link', { name: 'Switch off' }).click();
  await page.getByTestId('changes').getByText('block 2, neuron 30: off').waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

/** The share of a picture's pixels that are drawn in the dots' colour, in its cell (row, column) of (rows, columns). */
function inkIn(canvas, [row, column, rows, columns]) {
  const [width, height] = [canvas.width / columns, canvas.height / rows];
  const { data } = canvas.getContext('2d').getImageData(column * width, row * height, width, height);
  const corner = [data[0], data[1], data[2]];
  let inked = 0;
  for (let at = 0; at < data.length; at += 4) if (corner.some((channel, index) => Math.abs(channel - data[at + index]) > 60)) inked += 1;
  return inked / (data.length / 4);
}

test('weights are drawn as dots whose area is the weight, in all views, as the link says', async () => {
  const { id, tokens } = await makeTrace();
  const { values } = await session.get(`/api/traces/${id}/attention/self/2/3?format=json`);
  const page = await session.open(link());
  await page.getByRole('group', { name: 'Draw weights as' }).getByRole('button', { name: 'Dots' }).click();
  assert.match(page.url(), /draw=dots/);
  const canvas = page.locator('aside[aria-label="Selected head"] canvas');
  const count = tokens.length;
  const weights = Array.from(values, (weight, cell) => ({ weight, row: Math.floor(cell / count), column: cell % count })).filter(({ row, column }) => column <= row).sort((a, b) => b.weight - a.weight);
  const seen = weights.map(({ weight }) => weight).filter((weight) => weight > 0).sort((a, b) => a - b);
  const most = Math.min(1, seen[Math.floor(0.94 * (seen.length - 1))]);
  await page.waitForTimeout(100);
  for (const at of [2, Math.floor(weights.length / 6), Math.floor(weights.length / 3)]) {
    const { weight, row, column } = weights[at];
    const ink = await canvas.evaluate(inkIn, [row, column, count, count]);
    const area = (Math.PI / 4) * 0.94 ** 2 * Math.min(1, weight / most);
    // A dot of so few pixels has edges of about a pixel.
    assert.ok(Math.abs(ink - area) < 0.12, `the weight ${weight} of ${most}: ink ${ink}, area ${area}`);
  }
  assert.deepEqual(await seriousFindings(page), []);
  await picture(page, 'compare-dots');
  await page.locator('[data-head="L2H3"]').click();
  await page.getByRole('application', { name: /Attention of block 2/ }).waitFor();
  assert.match(page.url(), /draw=dots/);
  const tile = page.locator('.attention-tile canvas').first();
  await tile.waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('.attention-tile canvas')].some(({ width }) => width >= 256));
  await picture(page, 'map-dots');
  await page.getByRole('group', { name: 'Draw weights as' }).getByRole('button', { name: 'Colours' }).click();
  assert.doesNotMatch(page.url(), /draw=/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
