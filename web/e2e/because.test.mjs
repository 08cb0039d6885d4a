// Why a word is predicted: the paths on the page are those of the API, and what is left without each is what an
// intervention gives that is asked for by itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overflowsSideways, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
/** The same weights as a model of a directory, for which heed has no transcoders. */
const plain = useExplorer([], fileURLToPath(new URL('../../models/starter', import.meta.url)));
const text = 'Late one evening, a fluffy blue hare';
const shown = (token) => token.text.replace(/ /g, '␣');

const makeTrace = (explorer, interventions = [], of = text) => explorer.ask('/api/traces', 'POST', { text: of, interventions });

/** What the API gives of the word where this path's neurons, or what its features write, are taken away: asked for by itself. */
async function nextWithout(explorer, path) {
  const positions = String(path.position);
  if (path.features.length === 0) {
    const off = path.neurons.map((neuron) => ({ kind: 'ablate', point: `L${path.layer}N${neuron}`, positions }));
    return explorer.ask(`/api/traces/${(await makeTrace(explorer, off)).id}/next?limit=0`);
  }
  const features = await Promise.all(path.features.map(({ feature }) => explorer.ask(`/api/features/${path.layer}/${feature}`)));
  const vector = features[0].vector.map((_, c) => -features.reduce((sum, feature, i) => sum + path.features[i].activation * feature.vector[c], 0));
  return explorer.ask(`/api/traces/${(await makeTrace(explorer, [{ kind: 'add', point: features[0].writes, vector, positions }])).id}/next?limit=0`);
}

async function openCard(explorer = session, of = text, options = {}) {
  const page = await explorer.open(`#/follow?text=${encodeURIComponent(of)}`, options);
  const part = page.locator('#next');
  await part.waitFor();
  await part.scrollIntoViewIfNeeded();
  const fold = part.locator('.fold[aria-expanded="false"]'); // on a narrow page
  if (await fold.count()) await fold.click();
  const card = page.getByTestId('because');
  await card.waitFor();
  await card.scrollIntoViewIfNeeded();
  await card.getByTestId('because-verdict').waitFor();
  return { page, card };
}

/** The card beside the API. */
async function checkCard(explorer, unit) {
  const trace = await makeTrace(explorer);
  const causes = await explorer.ask(`/api/traces/${trace.id}/causes`);
  assert.equal(causes.unit, unit);
  assert.equal(causes.paths.length, 3);
  const { page, card } = await openCard(explorer);
  assert.match(await card.getByTestId('because-verdict').innerText(), new RegExp(`“${causes.token.text.trim()}” is predicted with`));
  const rows = card.locator('ol > li');
  assert.equal(await rows.count(), 3);
  for (const [index, path] of causes.paths.entries()) {
    const row = rows.nth(index);
    assert.equal(await row.locator('.chip').first().innerText(), shown(path.token));
    assert.equal(await row.locator('.way .chip').last().innerText(), shown(causes.token));
    assert.equal(await row.evaluate((one) => one.classList.contains('cause')), path.cause);
    assertShows(await row.locator('.before-text').innerText(), causes.probability, 'before');
    assertShows(await row.locator('.without').innerText(), path.without, 'without it');
    await checkUnits(explorer, row, path);
    const next = await nextWithout(explorer, path);
    const word = next.candidates.find(({ id }) => id === causes.token.id);
    assert.ok(Math.abs(word.probability - path.without) < 1e-4, `${word.probability} after an ablation, ${path.without} in the card`);
    assert.equal(next.candidates[0].id, path.instead.id);
    if (path.instead.id !== causes.token.id) assertShows(await row.locator('.instead').innerText(), next.candidates[0].probability, 'the word instead');
    // The verdict follows from the numbers.
    const taken = causes.probability - path.without;
    assert.equal(path.cause, taken >= 0.005 && path.controls.every((control) => taken > Math.abs(causes.probability - control)));
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
  return causes;
}

/** What stands between the word and the prediction: neurons by their number, features by the words that they answer to. */
async function checkUnits(explorer, row, path) {
  const name = await row.locator('.neurons').innerText();
  if (path.features.length === 0) {
    assert.match(name, new RegExp(`^${path.neurons.length} neurons? of block ${path.layer}`));
    return;
  }
  const first = path.features.find(({ words }) => words.length > 0);
  assert.ok(name.startsWith(`${path.features.length} feature`) && name.includes(`of block ${path.layer}: “${first.words[0].token.text.trim()}”`), name);
  await row.locator('.features summary').click();
  const listed = row.locator('.features li');
  assert.equal(await listed.count(), path.features.length);
  for (const [index, feature] of path.features.entries()) {
    const line = await listed.nth(index).innerText();
    assert.ok(line.includes(`feature ${feature.feature}:`), line);
    assert.ok(line.includes(`strongest at “${feature.words[0].token.text.trim()}” (${feature.words[0].contexts} of ${feature.of})`), line);
    const one = await explorer.ask(`/api/features/${path.layer}/${feature.feature}`);
    assert.deepEqual([one.words, one.context, one.of], [feature.words, feature.context, feature.of]);
  }
}

test('the paths are those of the API, and without what their features write the word is left as the card says', async () => {
  const { paths } = await checkCard(session, 'feature');
  assert.ok(paths.some(({ cause }) => cause), 'a path of this text is a cause');
});

test('of a model without transcoders they lead through neurons', async () => {
  await checkCard(plain, 'neuron');
});

test('where no path beats its controls, none is called a cause', async () => {
  const { examples } = await session.get('/api/model');
  for (const { text: of } of [...examples].filter(({ text: one }) => one.length < 120)) {
    const trace = await makeTrace(session, [], of);
    const { paths } = await session.ask(`/api/traces/${trace.id}/causes`);
    if (paths.some(({ cause }) => cause)) continue;
    const { page, card } = await openCard(session, of);
    assert.match(await card.getByTestId('because-verdict').innerText(), /No single path decides/);
    assert.equal(await card.locator('li.cause').count(), 0);
    await page.context().close();
    return;
  }
  console.log('# of every example, a path is a cause');
});

test('the card reads well in both themes and on a phone, and by keyboard', async () => {
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    for (const dark of [false, true]) {
      const { page, card } = await openCard(session, text, { width, height, dark });
      await card.locator('.neurons').first().waitFor();
      if (process.env.SCREENSHOTS) await card.screenshot({ path: `${process.env.SCREENSHOTS}/because-${width}-${dark ? 'dark' : 'light'}.png` });
      await card.locator('.features summary').first().click();
      assert.deepEqual(await seriousFindings(page), []);
      assert.equal(await overflowsSideways(page), false);
      const link = card.locator('.neurons').first();
      await link.focus();
      assert.equal(await link.evaluate((one) => one === document.activeElement), true);
      const position = new URLSearchParams((await link.getAttribute('href')).split('?')[1]).get('position');
      await page.keyboard.press('Enter');
      await page.waitForFunction((of) => new URLSearchParams(location.hash.split('?')[1]).get('position') === of, position);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  }
});
