import assert from 'node:assert/strict';
import { test } from 'node:test';
import { meet, openTables, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and the hare saw the fox';
const link = (more = '') => `#/whole-model?text=${encodeURIComponent(text)}${more}`;

async function makeTrace() {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  assert.equal(response.status < 300, true);
  return response.json();
}

/** The page with its picture drawn. */
async function opened(more = '', options) {
  const page = await session.open(link(more), options);
  await page.locator('main canvas').first().waitFor();
  await page.getByRole('navigation', { name: 'Where the picture is' }).getByRole('button', { name: 'Model' }).waitFor();
  return page;
}

const app = (page) => page.getByRole('application', { name: /^Picture of/ });
const status = (page) => page.locator('#whole-status');
const crumbs = (page) => page.getByRole('navigation', { name: 'Where the picture is' }).locator('button').allTextContents();

/** The number that ends the line under the picture, once it is loaded. */
async function numberShown(page) {
  await page.waitForFunction(() => /: .*\d/.test(document.getElementById('whole-status').textContent) && !/not loaded/.test(document.getElementById('whole-status').textContent));
  return (await status(page).textContent()).split(': ').pop().trim();
}

test('the picture is as large as its model: its parameters are those of the API', async () => {
  const page = await opened();
  const { dimensions } = await session.get('/api/model');
  assert.match(await status(page).textContent(), new RegExp(`\\b${dimensions.parameters.toLocaleString('en-US')} parameters`));
  assert.equal(await page.getByRole('treeitem', { name: /^Block \d+\./ }).count(), dimensions.layers);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('cells of a link show the numbers of the API: a query, a weight, a share of attention', async () => {
  const trace = await makeTrace();
  const [layer, head, position] = [trace.layers - 1, trace.heads - 1, 3];
  const at = (part, row, column) => `&at=${encodeURIComponent(`b${layer}/attention/h${head}/${part}/${row}.${column}`)}`;

  const queries = await session.get(`/api/traces/${trace.id}/arrays/blocks.${layer}.attn.hook_q?positions=${position}&heads=${head}&format=json`);
  let page = await opened(at('q', position, 5));
  assertShows(await numberShown(page), queries.values[5], 'query');
  assert.deepEqual((await crumbs(page)).slice(-2), [`L${layer}H${head}`, 'query']);
  await page.context().close();

  const last = trace.tokens.length - 1;
  const { terms } = await session.get(`/api/traces/${trace.id}/derivation?point=blocks.${layer}.attn.hook_q&layer=${layer}&head=${head}&position=${last}&index=7&terms=100000`);
  page = await opened(at('wq', 11, 7));
  assertShows(await numberShown(page), terms.find(({ label }) => label === 'channel 11').right, 'weight');
  await page.context().close();

  const pattern = await session.get(`/api/traces/${trace.id}/attention/self/${layer}/${head}?format=json`);
  page = await opened(at('pattern', position, 1));
  assertShows(await numberShown(page), pattern.values[position * trace.tokens.length + 1], 'attention');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('weights come in few answers and equal the factors of the computations', async () => {
  const trace = await makeTrace();
  const [layer, head, position] = [1, 2, trace.tokens.length - 1];
  const { head_size } = (await session.get('/api/model')).dimensions;
  // A cell of each matrix, and the element of the trace whose computation has that weight.
  const cells = [
    [`attention/h${head}/wk`, 20, 6, `attn.hook_k&head=${head}&index=6`],
    [`attention/h${head}/wv`, 3, 30, `attn.hook_v&head=${head}&index=30`],
    [`attention/h${head}/wo`, 5, 100, `attn.hook_result&head=${head}&index=100`],
    ['attention/out/wo', head * head_size + 5, 100, `attn.hook_result&head=${head}&index=100`, 5],
    ['mlp/up', 100, 500, 'mlp.hook_pre&index=500'],
    ['mlp/down', 700, 42, 'hook_mlp_out&index=42'],
  ];
  for (const [part, row, column, element, term = row] of cells) {
    const { terms } = await session.get(`/api/traces/${trace.id}/derivation?point=blocks.${layer}.${element}&layer=${layer}&position=${position}&terms=100000`);
    const asked = [];
    const page = await opened();
    await meet(page, /^\/api\//, ({ path }) => void asked.push(path));
    await page.evaluate((at) => (location.hash += `&at=${at}`), encodeURIComponent(`b${layer}/${part}/${row}.${column}`));
    assertShows(await numberShown(page), terms.find(({ label }) => Number(/\d+$/.exec(label)[0]) === term).right, part);
    assert.ok(asked.filter((url) => url.includes('/api/weights/')).length >= 1, part);
    // An untied unembedding is not among the weights that the server sends.
    assert.equal(asked.filter((url) => url.includes('/derivation') && !url.includes('point=logits')).length, 0, part);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test('the outline flies to a part, and the link brings it back', async () => {
  const page = await opened();
  await page.getByRole('treeitem', { name: /^Model\./ }).focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('at=b0/attention'));
  assert.deepEqual(await crumbs(page), ['Model', 'Block 0', 'attention']);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-selected')), 'true');
  const again = await session.open(new URL(page.url()).hash);
  await again.locator('main canvas').first().waitFor();
  await again.waitForFunction(() => document.querySelectorAll('nav[aria-label="Where the picture is"] button').length === 3);
  assert.deepEqual(await crumbs(again), ['Model', 'Block 0', 'attention']);
  await page.context().close();
  await again.context().close();
});

test('keys zoom, open, expand, read cells and go back', async () => {
  const page = await opened();
  const before = await app(page).locator('canvas').screenshot();
  await app(page).focus();
  await page.keyboard.press('+');
  await page.waitForTimeout(300);
  assert.notDeepEqual(await app(page).locator('canvas').screenshot(), before);
  await page.keyboard.press('0');
  await page.getByRole('treeitem', { name: /^Block 1\./ }).click();
  await page.waitForFunction(() => location.hash.includes('open=1'));
  await page.getByRole('treeitem', { name: /Expanded in the picture/ }).waitFor();
  await app(page).focus();
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.querySelectorAll('nav[aria-label="Where the picture is"] button').length === 1);
  await page.getByRole('button', { name: 'Collapse all' }).click();
  await page.waitForFunction(() => !location.hash.includes('open='));

  const cell = await opened(`&at=${encodeURIComponent('b0/attention/h0/q')}`);
  await app(cell).focus();
  await cell.keyboard.press('ArrowRight');
  await cell.keyboard.press('ArrowRight');
  await cell.waitForFunction(() => /number 1: /.test(document.getElementById('whole-status').textContent));
  await page.context().close();
  await cell.context().close();
});

test('a click on a block expands it, the wheel zooms', async () => {
  const page = await opened();
  const box = await app(page).boundingBox();
  // Somewhere in the middle of the picture there is a block: look for one.
  let found = false;
  for (const [across, down] of [[0.4, 0.35], [0.5, 0.4], [0.35, 0.5], [0.6, 0.6], [0.45, 0.3]]) {
    await page.mouse.move(box.x + across * box.width, box.y + down * box.height);
    await page.waitForTimeout(100);
    found = !/^Model/.test(await status(page).textContent());
    if (found) break;
  }
  assert.ok(found);
  await page.mouse.down();
  await page.mouse.up();
  await page.waitForFunction(() => /at=b\d/.test(decodeURIComponent(location.hash)));
  await page.mouse.wheel(0, 2000);
  await page.mouse.wheel(0, 2000);
  await page.waitForFunction(() => !/at=b\d/.test(decodeURIComponent(location.hash)));
  await page.context().close();
});

test('stations show the vector’s predictions, those of the logit lens, and the prediction itself', async () => {
  const trace = await makeTrace();
  const last = trace.tokens.length - 1;
  const { rows, cells } = await session.get(`/api/traces/${trace.id}/lens?top=3&positions=${last}`);
  const page = await opened();
  const guesses = page.locator('.guess li');
  const expect = async (tokens, shares) => {
    await page.waitForFunction((first) => document.querySelector('.guess li code')?.textContent === first, tokens[0].replace(/ /g, '␣'));
    assert.deepEqual(await guesses.locator('code').allTextContents(), tokens.map((token) => token.replace(/ /g, '␣')));
    for (const [rank, share] of (await guesses.locator('.number').allTextContents()).entries()) assertShows(share, shares[rank], tokens[rank]);
  };
  const slider = page.getByRole('slider', { name: /How far/ });
  await slider.focus();
  await page.keyboard.press('ArrowRight');
  const first = cells[rows.indexOf('0_pre')][0];
  await expect(first.tokens.map(({ text: token }) => token), first.probabilities);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  const after = cells[rows.indexOf(trace.layers > 1 ? '1_pre' : 'final_post')][0];
  await expect(after.tokens.map(({ text: token }) => token), after.probabilities);
  for (let station = 3; station < 2 * trace.layers + 2; ++station) await page.keyboard.press('ArrowRight');
  const { candidates } = await session.get(`/api/traces/${trace.id}/next?position=${last}&limit=3`);
  await expect(candidates.map(({ token }) => token), candidates.map(({ probability }) => probability));
  assert.equal(await slider.getAttribute('aria-valuetext'), 'The prediction');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('playing moves the data; with reduced motion it goes by stations', async () => {
  for (const motion of ['no-preference', 'reduce']) {
    const page = await opened('', { motion });
    const slider = page.getByRole('slider', { name: /How far/ });
    await page.getByRole('button', { name: /^Play/ }).click();
    await page.waitForFunction(() => Number(document.querySelector('input[aria-label^="How far"]').value) >= 1);
    await page.getByRole('button', { name: 'Pause' }).click();
    if (motion === 'reduce') assert.equal(Number(await slider.inputValue()) % 1, 0);
    await page.context().close();
  }
});

test('another model’s shape is drawn without numbers', async () => {
  const { presets } = await session.get('/api/presets');
  const largest = presets.reduce((one, other) => (other.parameters > one.parameters ? other : one));
  const page = await opened(`&picture=${largest.name}`);
  await page.waitForFunction((parameters) => document.getElementById('whole-status').textContent.includes(parameters), `${largest.parameters.toLocaleString('en-US')} parameters`);
  assert.equal(await page.getByRole('button', { name: /^Play/ }).count(), 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('no serious findings, no sideways scrolling, at three widths and in both themes', async () => {
  for (const [width, dark, more] of [[390, false, ''], [390, true, ''], [1280, false, '&open=1&at=b1&step=5'], [1280, true, `&at=${encodeURIComponent('b1/attention/h0')}`], [1920, false, ''], [1920, true, '&picture=gpt3']]) {
    const page = await opened(more, { width, dark });
    await openTables(page);
    // Weights may still be loading.
    await page.waitForTimeout(1500);
    assert.deepEqual(await seriousFindings(page), [], `${width} ${dark}`);
    assert.equal(await overflowsSideways(page), false, `${width} ${dark}`);
    await picture(page, `whole-${width}-${dark ? 'dark' : 'light'}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test('another family’s shape has its own parts and parameters', async () => {
  const { presets } = await session.get('/api/presets');
  for (const name of ['llama-3.2-1b', 'qwen3-0.6b', 'pythia-160m']) {
    if (!presets.some((preset) => preset.name === name)) continue;
    const { total } = await session.get(`/api/parameters?config=${name}`);
    const page = await session.open(`#/whole-model?picture=${name}`);
    await page.getByText(`${total.toLocaleString('en-US')} parameters`).first().waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});
