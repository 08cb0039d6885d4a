import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTables, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and the hare saw the fox';
const link = (more = '') => `#/change?text=${encodeURIComponent(text)}&layer=1&head=2${more}`;

async function post(path, body) {
  const response = await fetch(session.address + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** The page's table of predictions against the API's comparison of the prompt with and without `interventions`. */
async function assertPredictions(page, changed) {
  const base = await post('/api/traces', { text });
  const after = await post('/api/traces', { ...(changed.tokens ? { tokens: changed.tokens } : { base: base.id }), interventions: changed.interventions ?? [] });
  const { kl, rows } = await session.get(`/api/traces/${base.id}/compare/${after.id}?position=-1&top=10`);
  const shown = page.getByTestId('kl').locator('strong');
  await page.waitForFunction((wanted) => {
    const text = document.querySelector('[data-testid=kl] strong')?.textContent;
    return text !== undefined && Math.abs(Number(text.replace('\u2212', '-')) - wanted) <= 6e-5;
  }, kl < 5e-5 ? 0 : kl, { timeout: 10_000 }).catch(async () => assertShows(await shown.textContent(), kl, 'KL divergence'));
  const table = page.getByTestId('predictions');
  const lines = await table.locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.ok(lines.length >= 8);
  const largest = [...rows].sort((a, b) => Math.max(b.before.probability, b.after.probability) - Math.max(a.before.probability, a.after.probability)).slice(0, lines.length);
  largest.forEach((row, index) => {
    assertShows(lines[index][1], row.before.probability, `${row.text} before`);
    assertShows(lines[index][2], row.after.probability, `${row.text} after`);
    assert.equal(lines[index][3], `${row.before.rank} → ${row.after.rank}`);
  });
}

test('each kind of change opens from its link, without serious findings or sideways scrolling', async () => {
  for (const what of ['heads', 'edges', 'neurons', 'words', 'swap']) {
    for (const [width, dark] of [[360, true], [1280, false], [1920, true]]) {
      const page = await session.open(link(`&what=${what}&changes=${encodeURIComponent('L2H3;L1H2*1.5;L1H2:7>2;L3N30~')}`), { width, dark });
      await page.getByTestId('kl').waitFor();
      await page.waitForLoadState('networkidle');
      assert.deepEqual(page.problems, [], `${what} at ${width}`);
      await openTables(page);
      assert.deepEqual(await seriousFindings(page), [], `${what} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${what} at ${width}`);
      await picture(page, `change-${what}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }
  }
});

test('a head is switched off, undone and scaled by keyboard alone, with the API’s numbers', async () => {
  const page = await session.open(link());
  await page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
  await page.getByRole('switch', { name: 'head 0 of block 0', exact: true }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Space');
  await page.getByRole('switch', { name: 'head 1 of block 1, off' }).waitFor();
  await assertPredictions(page, { interventions: [{ kind: 'ablate', place: 'L1H1' }] });
  assert.match(decodeURIComponent(page.url()), /changes=L1H1/);

  await page.keyboard.press('Control+z');
  await page.getByTestId('kl').waitFor({ state: 'detached' });
  assert.equal(await page.getByTestId('changes').count(), 0);
  await page.keyboard.press('Control+Shift+Z');
  await page.getByTestId('kl').waitFor();

  const strength = page.getByRole('slider', { name: 'Strength' });
  await strength.focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('L1H1*3'));
  await assertPredictions(page, { interventions: [{ kind: 'scale', place: 'L1H1', factor: 3 }] });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('an edge is cut in the map and in the list', async () => {
  const page = await session.open(link('&what=edges'));
  const map = page.getByRole('application', { name: /Attention of head 2 in block 1/ });
  await map.focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'Enter']) await page.keyboard.press(key);
  const last = await page.evaluate(() => document.querySelectorAll('[aria-label="Predict after"] button').length - 1);
  await page.getByTestId('changes').getByText('no longer sees').waitFor();
  await page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
  await assertPredictions(page, { interventions: [{ kind: 'cut', layer: 1, head: 2, edges: [[last, 1]] }] });
  await page.getByRole('button', { name: /^Cut: / }).first().click();
  await page.waitForFunction(() => document.querySelectorAll('[data-testid=changes] li').length === 2);
  await page.context().close();
});

test('a neuron is switched off', async () => {
  const page = await session.open(link('&what=neurons'));
  const neuron = page.getByRole('region', { name: 'Make a change' }).getByRole('switch').first();
  const name = await neuron.getAttribute('aria-label');
  await neuron.focus();
  await page.keyboard.press('Enter');
  const [, index, layer] = /neuron (\d+) of block (\d+)/.exec(name);
  await page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
  await assertPredictions(page, { interventions: [{ kind: 'ablate', place: `L${layer}N${index}` }] });
  await page.context().close();
});

test('a word is edited', async () => {
  const { tokens } = await post('/api/tokenize', { text });
  const [owl] = (await session.get('/api/vocabulary?find=%20owl&limit=5')).tokens.filter(({ text: word }) => word === ' owl');
  assert.ok(owl, 'the starter knows owls');
  const page = await session.open(link('&what=words'));
  await page.getByRole('toolbar', { name: 'Token to replace' }).getByRole('button').nth(1).click();
  await page.getByRole('searchbox').fill('owl');
  await page.getByRole('group', { name: 'Tokens found' }).getByRole('button', { name: '␣owl', exact: true }).click();
  await page.getByTestId('kl').waitFor();
  await page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
  await assertPredictions(page, { tokens: tokens.map(({ id }, position) => (position === 1 ? owl.id : id)) });
  await page.context().close();
});

test('another prompt’s activations are swapped in, and the link brings them back', async () => {
  const other = 'The owl waited';
  const page = await session.open(link('&what=swap'));
  await page.getByLabel('The other text').fill(other);
  await page.getByRole('toolbar', { name: 'Word of the other text' }).getByRole('button').nth(1).click();
  await page.getByRole('toolbar', { name: 'Word of this text' }).getByRole('button').nth(1).click();
  await page.getByRole('button', { name: /^Swap “/ }).click();
  await page.getByTestId('kl').waitFor();
  const from = await post('/api/traces', { text: other });
  const again = await session.open(new URL(page.url()).hash);
  for (const one of [page, again]) {
    await one.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
    await assertPredictions(one, { interventions: [{ kind: 'swap', place: 'blocks.0.hook_resid_post', positions: '1', from: from.id, from_positions: '1' }] });
  }
  await page.context().close();
  await again.context().close();
});

test('what changed in attention is the difference of the API’s rows', async () => {
  const page = await session.open(link('&changes=L0H1&layer=1&head=2'));
  const base = await post('/api/traces', { text });
  const after = await post('/api/traces', { base: base.id, interventions: [{ kind: 'ablate', place: 'L0H1' }] });
  const row = async (id) => (await (await fetch(`${session.address}/api/traces/${id}/attention/1/2/rows/${base.tokens.length - 1}?format=json`)).json()).values;
  const [was, is] = [await row(base.id), await row(after.id)];
  const moved = was.reduce((sum, weight, key) => sum + Math.abs(weight - is[key]), 0) / 2;
  const caption = page.getByRole('region', { name: 'What changed in attention' }).locator('figcaption strong');
  await caption.waitFor();
  assertShows(await caption.textContent(), moved, 'weight that moved');
  await page.context().close();
});
