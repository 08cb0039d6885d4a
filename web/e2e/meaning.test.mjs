// Context makes meaning: one word in many sentences, neurons that are switched off, a probe by depth.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const prompt = 'They sat by the river bank';
const follow = (open, more = '') => `#/follow?text=${encodeURIComponent(prompt)}&layer=5&head=0&open=${open}${more}`;
const dots = (view) => view.locator('.dot').evaluateAll((all) => all.map((one) => one.style.transform));

test('dots of one word come apart by depth, with their sentences and the reader’s own', async () => {
  const bank = await session.get(`/api/senses/bank?text=${encodeURIComponent(prompt)}`);
  const page = await session.open(follow('senses'));
  const view = page.locator('#more-senses');
  await view.locator('.dot').first().waitFor({ timeout: 60_000 });
  assert.equal(await view.locator('.dot').count(), bank.sentences.length);
  assert.equal(await view.getByRole('group', { name: 'Word' }).getByRole('button', { pressed: true }).innerText(), 'bank', 'the word of the prompt');
  // The deepest: apart, by the numbers of the API.
  const verdict = view.getByTestId('sense-verdict');
  const last = bank.depths.at(-1);
  assert.match(await verdict.innerText(), /the senses lie apart/);
  const [same, other] = await verdict.locator('.number').allTextContents();
  assertShows(same, last.same, 'same sense');
  assertShows(other, last.other, 'other sense');
  await view.getByTestId('sense-own').filter({ hasText: 'lies with river' }).waitFor();
  assert.equal(await view.locator('.mine').count(), 1);
  // The embedding: all in one place.
  const slider = view.locator('input[type=range]');
  await slider.focus();
  await page.keyboard.press('Home');
  await view.getByText('Here all sentences have the same vector').waitFor();
  assert.equal(new Set(await dots(view)).size, 1);
  await page.keyboard.press('End');
  await verdict.filter({ hasText: 'the senses lie apart' }).waitFor();
  assert.equal(new Set(await dots(view)).size, bank.sentences.length);
  assert.match(page.url(), /depth=/);
  // One tab stop, arrow keys, and the sentence of the dot.
  await view.locator('.dot[tabindex="0"]').focus();
  await page.keyboard.press('ArrowRight');
  const second = bank.sentences[1];
  assert.equal((await view.getByTestId('sense-sentence').innerText()).replace(/\s+/g, ' '), `${bank.senses[second.sense]}: ${second.text}`);
  // Another sentence of one's own, and one without the word.
  const own = view.getByRole('textbox');
  await own.fill('They carried the coins to the bank');
  await view.getByText(/lies with money/).waitFor();
  await own.fill('They carried the coins');
  await view.getByText('It has no “bank” in it.').waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('every word that is offered is told apart, and its control is drawn', async () => {
  const { words } = await session.get('/api/senses');
  const page = await session.open(follow('senses'));
  const view = page.locator('#more-senses');
  for (const { word } of words.slice(0, 4)) {
    await view.getByRole('button', { name: word, exact: true }).click();
    await view.getByRole('group', { name: `The vectors of ${word} in` }).waitFor({ timeout: 60_000 });
    const { depths } = await session.get(`/api/senses/${word}`);
    await view.getByText('As a table').click();
    const table = view.getByRole('table', { name: `Cosine of two sentences with ${word}, by depth` });
    const cells = await table.locator('tbody tr').last().locator('td').allTextContents();
    const last = depths.at(-1);
    [last.same, last.other, last.shuffled_high].forEach((number, at) => assertShows(cells[at], number, `${word} ${at}`));
    await view.getByText('As a table').click();
    assert.equal(await view.getByText('This model does not tell them apart').count(), 0, word);
  }
  await page.context().close();
});

test('the view of neurons opens on the largest direct effect, and switches it off in place', async () => {
  const trace = await (await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: prompt }) })).json();
  const effects = await session.get(`/api/traces/${trace.id}/neurons/effects?layer=5`);
  const page = await session.open(follow('memory'));
  const view = page.locator('#more-memory');
  await view.getByTestId('neuron-switch').waitFor({ timeout: 60_000 });
  assert.equal(await view.locator('.pick[aria-pressed=true]').innerText(), `L5N${effects.neurons[0].neuron}`);
  const shares = () => view.getByTestId('neuron-switch').locator('.line > .number:nth-child(3)').allTextContents();
  assertShows((await shares())[0], effects.probability, 'as it is');
  await view.getByRole('button', { name: /^Switch neuron \d+ off$/ }).click();
  const verdict = await view.getByTestId('neuron-verdict').innerText();
  assert.match(verdict, effects.matters ? /^It matters/ : /^Alone it does not matter/);
  const [, off, control] = await shares();
  assertShows(off, effects.neurons[0].without, 'off');
  assertShows(control, effects.controls.reduce((sum, { without }) => sum + without, 0) / effects.controls.length, 'control');
  // The run in which it is off says the same as the measurement.
  const row = view.getByRole('row').filter({ has: page.getByRole('rowheader', { name: effects.token.text.replace(/ /g, '␣'), exact: true }) }).first();
  assertShows(await row.locator('td').nth(1).innerText(), effects.neurons[0].without, 'without, in the table');
  await view.getByTestId('memory-present').waitFor({ timeout: 120_000 }); // the stories are searched
  const moved = Math.max(...effects.controls.map(({ without }) => Math.abs(effects.probability - without)));
  const deciding = effects.neurons.filter(({ without }) => effects.probability - without >= 0.005 && effects.probability - without > moved);
  assert.equal(await view.getByTestId('memory-none').count(), deciding.length === 0 ? 1 : 0);
  await settled(page);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the culprit is read by depth, with the controls', async () => {
  const { examples } = await session.get('/api/model');
  const mystery = examples.find(({ id }) => id === 'mystery');
  const page = await session.open(follow('culprit'));
  const view = page.locator('#more-culprit');
  await view.getByTestId('culprit-verdict').waitFor({ timeout: 180_000 });
  await view.getByRole('button', { name: 'Show a mystery' }).click();
  await view.getByTestId('culprit-reading').waitFor({ timeout: 120_000 });
  const { roles, reading, words, depths } = await session.get(`/api/probes/culprit?text=${encodeURIComponent(mystery.text)}`);
  assert.equal(await view.getByTestId('culprit-reading').locator('li').last().locator('strong').innerText(), roles[reading.at(-1)]);
  assert.ok(depths.at(-1).accuracy > words + 0.2);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('no serious findings or overflow, at both widths, light and dark', async () => {
  for (const id of ['senses', 'memory', 'culprit']) {
    for (const [width, dark] of [[390, true], [390, false], [1280, false], [1280, true]]) {
      const page = await session.open(follow(id), { width, dark });
      await page.locator(`#more-${id} :is(.dot, [data-testid=neuron-switch], [data-testid=culprit-verdict])`).first().waitFor({ timeout: 180_000 });
      if (id === 'memory') await page.locator('#more-memory').getByRole('button', { name: /^Switch neuron/ }).click();
      await settled(page, { timeout: 180_000 }); // the stories are searched
      assert.deepEqual(await seriousFindings(page), [], `${id} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${id} at ${width}`);
      await picture(page, `meaning-${id}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }
  }
});
