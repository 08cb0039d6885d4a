// Why a word is predicted: the paths on the page are those of the API, and what is left without each is what an
// intervention gives that is asked for by itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflowsSideways, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'Late one evening, a fluffy blue hare';
const shown = (token) => token.text.replace(/ /g, '␣');

async function makeTrace(interventions = [], of = text) {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: of, interventions }) });
  assert.ok(response.ok, await response.clone().text());
  return response.json();
}

async function openCard(of = text, options = {}) {
  const page = await session.open(`#/follow?text=${encodeURIComponent(of)}`, options);
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

test('the paths are those of the API, and switching their neurons off gives what the card says', async () => {
  const trace = await makeTrace();
  const causes = await session.get(`/api/traces/${trace.id}/causes`);
  assert.equal(causes.paths.length, 3);
  assert.ok(causes.paths.some(({ cause }) => cause), 'a path of this text is a cause');
  const { page, card } = await openCard();
  assert.match(await card.getByTestId('because-verdict').innerText(), new RegExp(`“${causes.token.text.trim()}” is predicted with`));
  const rows = card.locator('ol > li');
  assert.equal(await rows.count(), 3);
  for (const [index, path] of causes.paths.entries()) {
    const row = rows.nth(index);
    assert.equal(await row.locator('.chip').first().innerText(), shown(path.token));
    assert.equal(await row.locator('.chip').last().innerText(), shown(causes.token));
    assert.match(await row.locator('.neurons').innerText(), new RegExp(`^${path.neurons.length} neurons? of block ${path.layer}`));
    assert.equal(await row.evaluate((one) => one.classList.contains('cause')), path.cause);
    assertShows(await row.locator('.before-text').innerText(), causes.probability, 'before');
    assertShows(await row.locator('.without').innerText(), path.without, 'without it');
    // Asked for by itself.
    const off = path.neurons.map((neuron) => ({ kind: 'ablate', point: `L${path.layer}N${neuron}`, positions: String(path.position) }));
    const changed = await makeTrace(off);
    const next = await session.get(`/api/traces/${changed.id}/next?limit=0`);
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
});

test('where no path beats its controls, none is called a cause', async () => {
  const { examples } = await session.get('/api/model');
  for (const { text: of } of [...examples].filter(({ text: one }) => one.length < 120)) {
    const trace = await makeTrace([], of);
    const { paths } = await session.get(`/api/traces/${trace.id}/causes`);
    if (paths.some(({ cause }) => cause)) continue;
    const { page, card } = await openCard(of);
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
      const { page, card } = await openCard(text, { width, height, dark });
      await card.locator('.neurons').first().waitFor();
      assert.deepEqual(await seriousFindings(page), []);
      assert.equal(await overflowsSideways(page), false);
      if (process.env.SCREENSHOTS) await card.screenshot({ path: `${process.env.SCREENSHOTS}/because-${width}-${dark ? 'dark' : 'light'}.png` });
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
