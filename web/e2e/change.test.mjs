import assert from 'node:assert/strict';
import { test } from 'node:test';
import { meet, openTables, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
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
  for (const what of ['heads', 'edges', 'neurons', 'words', 'swap', 'freeze', 'steer', 'points']) {
    await Promise.all([[360, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
      const page = await session.open(link(`&what=${what}&changes=${encodeURIComponent('L2H3;L1H2*1.5;L1H2:7>2;L3N30@4-~;L0!')}`), { width, dark });
      await page.getByTestId('kl').waitFor();
      await settled(page);
      assert.deepEqual(page.problems, [], `${what} at ${width}`);
      await openTables(page);
      assert.deepEqual(await seriousFindings(page), [], `${what} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${what} at ${width}`);
      await picture(page, `change-${what}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});

test('a head is switched off, restored and scaled by keyboard, with the numbers of the API', async () => {
  const page = await session.open(link());
  await page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
  await page.getByRole('switch', { name: 'block 0, head 0', exact: true }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Space');
  await page.getByRole('switch', { name: 'block 1, head 1, off' }).waitFor();
  await assertPredictions(page, { interventions: [{ kind: 'ablate', point: 'L1H1' }] });
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
  await assertPredictions(page, { interventions: [{ kind: 'scale', point: 'L1H1', factor: 3 }] });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('an edge is cut in the map and in the list', async () => {
  const page = await session.open(link('&what=edges'));
  const map = page.getByRole('application', { name: /Attention of block 1, head 2/ });
  await map.focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'Enter']) await page.keyboard.press(key);
  const last = await page.evaluate(() => document.querySelectorAll('[aria-label="Predict after"] button').length - 1);
  await page.getByTestId('changes').getByText('no longer attends to').waitFor();
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
  await assertPredictions(page, { interventions: [{ kind: 'ablate', point: `L${layer}N${index}` }] });
  await page.context().close();
});

test('a word is replaced', async () => {
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

test('activations are replaced by those of another prompt, and the link restores that', async () => {
  const other = 'The owl waited';
  const page = await session.open(link('&what=swap'));
  await page.getByRole('textbox', { name: 'The other text' }).fill(other);
  await page.getByRole('toolbar', { name: 'Word of: The other text' }).getByRole('button').nth(1).click();
  await page.getByRole('toolbar', { name: 'Word of this text' }).getByRole('button').nth(1).click();
  await page.getByRole('button', { name: /^Replace “/ }).click();
  await page.getByTestId('kl').waitFor();
  const from = await post('/api/traces', { text: other });
  const again = await session.open(new URL(page.url()).hash);
  for (const one of [page, again]) {
    await one.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();
    await assertPredictions(one, { interventions: [{ kind: 'swap', point: 'blocks.2.hook_resid_post', positions: '1', from: from.id, from_positions: '1' }] });
  }
  await page.context().close();
  await again.context().close();
});

test('the change of attention is the difference of the rows of the API', async () => {
  const page = await session.open(link('&changes=L0H1&layer=1&head=2'));
  const base = await post('/api/traces', { text });
  const after = await post('/api/traces', { base: base.id, interventions: [{ kind: 'ablate', point: 'L0H1' }] });
  const row = async (id) => (await (await fetch(`${session.address}/api/traces/${id}/attention/self/1/2/rows/${base.tokens.length - 1}?format=json`)).json()).values;
  const [was, is] = [await row(base.id), await row(after.id)];
  const moved = was.reduce((sum, weight, key) => sum + Math.abs(weight - is[key]), 0) / 2;
  const caption = page.getByRole('region', { name: 'What changed in attention' }).locator('figcaption strong');
  await caption.waitFor();
  assertShows(await caption.textContent(), moved, 'weight that moved');
  await page.context().close();
});

/** Opens the table of predictions. */
const openPredictions = (page) => page.getByTestId('predictions').locator('xpath=ancestor::details').locator('summary').click();

test('a neuron is set to its mean from a word on', async () => {
  const page = await session.open(link('&what=neurons&position=11'));
  const region = page.getByRole('region', { name: 'Make a change' });
  await region.getByRole('spinbutton', { name: 'Neuron' }).fill('30');
  await region.getByRole('button', { name: 'Mean' }).click();
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('L1N30'));
  await region.getByRole('combobox', { name: 'at' }).selectOption('11-');
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('L1N30@11-~'));
  await page.getByTestId('kl').waitFor();
  await openPredictions(page);
  const base = await post('/api/traces', { text });
  const after = await post('/api/traces', { base: base.id, interventions: [{ kind: 'mean', point: 'L1N30', positions: '11-', from: base.id }] });
  const { kl } = await session.get(`/api/traces/${base.id}/compare/${after.id}?position=11`);
  await page.waitForFunction((wanted) => Math.abs(Number(document.querySelector('[data-testid=kl] strong').textContent.replace(/·10.*/, '')) - wanted) < 1e-4 || wanted < 1e-4, kl);
  await page.context().close();
});

test('attention is frozen while a word is replaced', async () => {
  const { tokens } = await post('/api/tokenize', { text });
  const [owl] = (await session.get('/api/vocabulary?find=%20owl&limit=5')).tokens.filter(({ text: word }) => word === ' owl');
  const page = await session.open(link(`&what=freeze&changes=${encodeURIComponent(`@1=${owl.id}`)}`));
  await page.getByRole('button', { name: 'Freeze every head' }).focus();
  await page.keyboard.press('Enter');
  await page.getByTestId('changes').getByText('every head: attention frozen').waitFor();
  await openPredictions(page);
  const base = await post('/api/traces', { text });
  await assertPredictions(page, {
    tokens: tokens.map(({ id }, position) => (position === 1 ? owl.id : id)),
    interventions: [{ kind: 'freeze', from: base.id }],
  });
  await page.context().close();
});

test('a direction between two words is added and its strength changed', async () => {
  const [towards, away] = ['The happy owl', 'The sad owl'];
  const page = await session.open(link('&what=steer'));
  const region = page.getByRole('region', { name: 'Make a change' });
  await region.getByRole('textbox', { name: 'Towards' }).fill(towards);
  await region.getByRole('textbox', { name: /^Away from/ }).fill(away);
  await region.getByLabel('After block').selectOption('2');
  await region.getByRole('toolbar', { name: /^Word of: Away/ }).waitFor();
  await region.getByRole('button', { name: /^Steer towards/ }).click();
  await page.getByTestId('kl').waitFor();
  await region.getByRole('slider', { name: 'Strength' }).focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => decodeURIComponent(location.hash).includes('+8:'));
  const vectorOf = async (one) => {
    const { id, tokens } = await post('/api/traces', { text: one });
    return (await session.get(`/api/traces/${id}/arrays/blocks.2.hook_resid_post?positions=${tokens.length - 1}&format=json`)).values;
  };
  const [plus, minus] = [await vectorOf(towards), await vectorOf(away)];
  await openPredictions(page);
  await assertPredictions(page, { interventions: [{ kind: 'add', point: 'blocks.2.hook_resid_post', vector: plus.map((number, index) => 8 * (number - minus[index])) }] });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('any point is changed by name, by keyboard; the server’s error for an unknown one is shown', async () => {
  const page = await session.open(link('&what=points'));
  const region = page.getByRole('region', { name: 'Make a change' });
  const name = region.getByRole('combobox', { name: 'Point' });
  const offered = await region.locator('datalist option').evaluateAll((all) => all.map((one) => one.value));
  const base = await post('/api/traces', { text });
  for (const point of offered) await post('/api/traces', { base: base.id, interventions: [{ kind: 'scale', point, factor: 0.5 }] });

  await name.fill('hook_rezid_mid');
  await page.keyboard.press('Enter');
  const refused = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ base: base.id, interventions: [{ kind: 'ablate', point: 'hook_rezid_mid' }] }) });
  await region.getByRole('alert').getByText((await refused.json()).error.message.replace(/^./, (letter) => letter.toUpperCase()), { exact: true }).waitFor();
  assert.equal(await page.getByTestId('changes').count(), 0);
  page.problems = page.problems.filter((problem) => !problem.includes('400'));

  await name.fill('blocks.1.hook_resid_mid');
  await region.getByRole('textbox', { name: 'at', exact: true }).fill('3-');
  await region.getByRole('combobox', { name: 'Change' }).selectOption('scale');
  await region.getByRole('spinbutton', { name: 'Factor' }).fill('0.5');
  await page.keyboard.press('Enter');
  await page.getByTestId('changes').getByText('blocks.1.hook_resid_mid: × 0.5 from').waitFor();
  await name.fill('L2H3.q');
  await region.getByRole('textbox', { name: 'at', exact: true }).fill('');
  await region.getByRole('combobox', { name: 'Change' }).selectOption('zero');
  await region.getByRole('button', { name: 'Apply' }).click();
  await page.getByTestId('changes').getByText('L2H3.q: off').waitFor();
  await name.fill('blocks.2.attn.hook_v');
  await region.getByRole('textbox', { name: 'at', exact: true }).fill('1-2');
  await region.getByRole('combobox', { name: 'Change' }).selectOption('swap');
  await region.getByRole('textbox', { name: 'The other text' }).fill('The owl waited');
  await region.getByRole('toolbar', { name: 'Word of: The other text' }).getByRole('button').nth(1).click();
  await region.getByRole('button', { name: 'Apply' }).click();
  await page.getByTestId('changes').getByText('blocks.2.attn.hook_v at 1-2').waitFor();

  // the name in other libraries; a vector is added to one block only
  await region.getByRole('combobox', { name: 'Change' }).selectOption('add');
  await region.getByRole('textbox', { name: 'The text' }).fill('The happy fox');
  await region.getByRole('toolbar', { name: 'Word of: The text' }).getByRole('button').nth(1).waitFor();
  await name.fill('resid_post');
  await region.getByRole('button', { name: 'Apply' }).click();
  await region.getByRole('alert').getByText('is in every block').waitFor();
  await name.fill('L1.resid_post');
  await region.getByText('Means blocks.1.hook_resid_post').waitFor();
  await region.getByRole('button', { name: 'Apply' }).click();
  const added = page.getByTestId('changes').getByText('towards “The happy fox”');
  await added.waitFor();
  await page.getByRole('button', { name: /^Remove: after block 1/ }).click();
  await added.waitFor({ state: 'detached' });
  const from = await post('/api/traces', { text: 'The owl waited' });
  const again = await session.open(new URL(page.url()).hash);
  for (const one of [page, again]) {
    await openPredictions(one);
    await assertPredictions(one, { interventions: [
      { kind: 'scale', point: 'blocks.1.hook_resid_mid', positions: '3-', factor: 0.5 },
      { kind: 'ablate', point: 'L2H3.q' },
      { kind: 'swap', point: 'blocks.2.attn.hook_v', positions: '1-2', from: from.id, from_positions: '1-2' },
    ] });
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
});

test('changes beyond the end of a shorter text are marked and not sent', async () => {
  const page = await session.open(link(`&changes=${encodeURIComponent('L2H3;L1H2:7>2;L1.attn@9*2')}`));
  await page.getByTestId('kl').waitFor();
  assert.equal(await page.getByTestId('changes').getByText('not applied').count(), 0);
  const sent = [];
  await meet(page, /^\/api\/traces$/, ({ body }) => void sent.push(body));
  const prompt = page.getByRole('textbox').first();
  await prompt.fill('The fox waited');
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByTestId('changes').getByText('not applied').nth(1).waitFor();
  await page.waitForFunction(() => document.querySelector('[data-testid=kl]'));
  await settled(page);
  assert.deepEqual(sent.filter((body) => body.includes('interventions')).map((body) => JSON.parse(body).interventions), [[{ kind: 'ablate', point: 'L2H3' }]]);
  await prompt.fill(text);
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByTestId('changes').getByText('not applied').first().waitFor({ state: 'detached' });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a narrow window shows the effect of a change beside its switch', async () => {
  const page = await session.open(link(), { width: 360, height: 740 });
  const brief = page.getByRole('region', { name: 'Summary of the predictions' });
  const one = page.getByRole('switch', { name: 'block 2, head 0', exact: true });
  await one.scrollIntoViewIfNeeded();
  await one.click();
  await brief.getByText('KL').waitFor();
  const [box, control] = [await brief.boundingBox(), await page.getByRole('switch', { name: 'block 2, head 0, off' }).boundingBox()];
  assert.ok(box.y >= 0 && box.y + box.height <= 740, 'in sight');
  assert.ok(control.y >= 0 && control.y + control.height <= box.y, 'not over its switch');
  const base = await post('/api/traces', { text });
  const after = await post('/api/traces', { base: base.id, interventions: [{ kind: 'ablate', point: 'L2H0' }] });
  const { rows } = await session.get(`/api/traces/${base.id}/compare/${after.id}?position=-1&top=10`);
  const [first] = rows.sort((a, b) => Math.max(b.before.probability, b.after.probability) - Math.max(a.before.probability, a.after.probability));
  const [was, is] = (await brief.locator('li').first().locator('.number').textContent()).split('→');
  assertShows(was, first.before.probability, 'before');
  assertShows(is, first.after.probability, 'after');
  await brief.getByRole('button', { name: /More/ }).click();
  await page.waitForFunction(() => document.querySelector('[data-testid=kl]').getBoundingClientRect().top < 400);
  await page.context().close();
});

test('Generate applies the changes, lists them and discards them', async () => {
  const changes = 'L2;L1H2@3-*2;L0!';
  const page = await session.open(link(`&temperature=0&top-k=0&top-p=1&min-p=0&changes=${encodeURIComponent(changes)}`));
  await page.getByRole('link', { name: /^Generate with/ }).click();
  const marked = page.getByRole('region', { name: 'Changes to the model' });
  await marked.getByText('block 2: off').waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  const written = (count) => page.waitForFunction((wanted) => document.querySelectorAll('[data-testid=written] button').length === wanted, count);
  for (let count = 1; count <= 4; ++count) {
    await page.getByRole('button', { name: 'Step', exact: true }).click();
    await written(count);
  }
  const drawn = () => page.getByTestId('written').locator('button').evaluateAll((all) => all.map((one) => one.textContent.trim()));
  const base = await post('/api/traces', { text });
  const generated = async (interventions) => {
    const response = await fetch(`${session.address}/api/generate`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text, max_new_tokens: 4, temperature: 0, top_k: 0, top_p: 1, min_p: 0, interventions }) });
    return [...(await response.text()).matchAll(/event: token\r?\ndata: (.*)/g)].map(([, data]) => JSON.parse(data).token.text.replace(/ /g, '␣').replace(/\n/g, '↵'));
  };
  const last = base.tokens.length - 1;
  const frozen = { kind: 'freeze', point: 'L0', from: base.id, positions: `0-${last}` };
  const changed = await generated([{ kind: 'ablate', point: 'L2' }, { kind: 'scale', point: 'L1H2', positions: '3-', factor: 2 }, frozen]);
  assert.deepEqual(await drawn(), changed);

  await marked.getByRole('button', { name: 'Discard changes' }).click();
  await marked.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Step', exact: true }).click();
  await written(1);
  const trained = await generated([]);
  assert.deepEqual(await drawn(), trained.slice(0, 1));
  assert.notDeepEqual(changed, trained);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
