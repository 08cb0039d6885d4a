// Attention in motion: in Follow, and entered by Play in the picture of the whole model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTables, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and the hare saw the fox';
const [layer, head, position, key] = [1, 2, 9, 1];
const link = (more = '', mode = 'follow') => `#/${mode}?text=${encodeURIComponent(text)}&layer=${layer}&head=${head}&position=${position}${more}`;

async function walkOf() {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const { id } = await response.json();
  return session.get(`/api/traces/${id}/walk?layer=${layer}&head=${head}&position=${position}`);
}

const stepsOf = (page) => page.getByRole('region', { name: 'Attention step by step' });
const caption = (page) => page.getByTestId('attention-step').innerText();
const pixels = (page) => stepsOf(page).locator('canvas').evaluate((canvas) => canvas.toDataURL());
/** The numbers in a sentence. */
const numbersIn = (sentence) => [...sentence.matchAll(/−?\d+(?:\.\d+)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?:\u00a0%)?/g)].map(([number]) => number);

test('step by step by keyboard, the numbers are those of the API', async () => {
  const walk = await walkOf();
  const answer = walk.answers[key];
  const page = await session.open(link(`&open=steps&key=${key}`));
  const slider = stepsOf(page).getByRole('slider', { name: 'Step of attention' });
  await slider.focus();
  const seen = new Set([await pixels(page)]);
  await page.keyboard.press('ArrowRight');
  assert.match(await caption(page), /has a query, and every word has a key/);
  for (let cell = 0; cell < 3; cell++) {
    await page.keyboard.press('ArrowRight');
    const [, , left, right, product, sum] = numbersIn(await caption(page));
    assertShows(left, walk.query[cell], `query ${cell}`);
    assertShows(right, answer.key[cell], `key ${cell}`);
    assertShows(product, walk.query[cell] * answer.key[cell], `product ${cell}`);
    assertShows(sum, walk.query.slice(0, cell + 1).reduce((total, number, j) => total + number * answer.key[j], 0), `sum after ${cell}`);
    seen.add(await pixels(page));
  }
  assert.equal(seen.size, 4, 'each step is drawn');
  await page.keyboard.press('PageDown');
  assert.match(await caption(page), new RegExp(`Number ${walk.head_size} of ${walk.head_size}`));
  assertShows(numbersIn(await caption(page)).at(-1), answer.product, 'q · k');
  await page.keyboard.press('PageDown');
  assertShows(numbersIn(await caption(page)).at(-1), answer.scaled, 'the score');
  await page.keyboard.press('ArrowLeft');
  assert.match(await caption(page), /^Number/);
  for (const part of ['softmax', 'values', 'add']) await stepsOf(page).getByRole('button', { name: part, exact: true }).click();
  await stepsOf(page).getByRole('button', { name: 'softmax', exact: true }).click();
  assertShows(numbersIn(await caption(page)).at(-1), answer.share, 'the weight');

  await stepsOf(page).getByText('As a table').click();
  const rows = await stepsOf(page).locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const listed = rows.find(([word]) => word === walk.answers[key].token.trim());
  assertShows(listed[1], answer.product, 'q · k in the table');
  assertShows(listed[2], answer.scaled, 'the score in the table');
  assertShows(listed[3], answer.share, 'the weight in the table');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('another pair is chosen, and the link keeps it', async () => {
  const walk = await walkOf();
  const page = await session.open(link());
  await page.getByRole('button', { name: '▷ Watch it happen' }).click();
  await stepsOf(page).getByRole('combobox', { name: /^Key/ }).selectOption('4');
  assert.match(page.url(), /key=4/);
  assert.match(page.url(), /open=steps/);
  await stepsOf(page).getByRole('button', { name: 'divide', exact: true }).click();
  assertShows(numbersIn(await caption(page)).at(-1), walk.answers[4].scaled, 'the score of the chosen key');
  await stepsOf(page).getByRole('combobox', { name: /^Query/ }).selectOption('5');
  await page.waitForFunction(() => /position=5/.test(location.hash));
  // Once the numbers of that query are there.
  await page.waitForFunction(() => document.querySelector('[aria-label="Attention step by step"] input[type=range]')?.value === '0');
  await page.context().close();
});

test('Play enters attention, and goes on through the model after it', async () => {
  const page = await session.open(`#/whole-model?text=${encodeURIComponent(text)}&layer=0&head=1`, { motion: 'no-preference' });
  const way = page.getByRole('slider', { name: /How far/ });
  await way.waitFor();
  await page.getByRole('button', { name: /^Play: send/ }).click();
  await stepsOf(page).waitFor();
  const entered = Number(await way.inputValue());
  assert.ok(entered > 1 && entered < 2, `within the first block’s attention, at ${entered}`);
  await page.waitForFunction(() => Number(document.querySelector('input[aria-label="Step of attention"]').value) > 0.5);
  await page.waitForTimeout(300);
  assert.equal(Number(await way.inputValue()), entered, 'the model waits meanwhile');
  // Its last step is played; the others are skipped.
  await stepsOf(page).getByRole('button', { name: 'add', exact: true }).click();
  await stepsOf(page).getByRole('button', { name: /^Play/ }).click();
  await stepsOf(page).waitFor({ state: 'detached' });
  await page.waitForFunction((before) => Number(document.querySelector('input[aria-label^="How far"]').value) > before + 0.2, entered);
  await page.getByRole('button', { name: 'Pause' }).click();

  // Without the entrance it passes.
  await page.getByRole('checkbox', { name: /Play enters attention/ }).uncheck();
  assert.match(page.url(), /enter=no/);
  await way.focus();
  await way.evaluate((slider) => {
    slider.value = '1.2';
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await page.getByRole('button', { name: /^Play: send/ }).click();
  await page.waitForFunction(() => Number(document.querySelector('input[aria-label^="How far"]').value) > 1.8);
  assert.equal(await stepsOf(page).count(), 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('with reduced motion it goes by whole steps', async () => {
  const page = await session.open(link('&open=steps'));
  await stepsOf(page).getByRole('button', { name: /^Play/ }).click();
  const values = await page.evaluate(() => new Promise((resolve) => {
    const seen = [];
    const slider = document.querySelector('input[aria-label="Step of attention"]');
    const frame = () => {
      seen.push(Number(slider.value));
      if (seen.at(-1) >= 3) resolve(seen);
      else requestAnimationFrame(frame);
    };
    frame();
  }));
  assert.ok(values.every(Number.isInteger), String([...new Set(values)]));
  await stepsOf(page).getByRole('button', { name: 'Pause' }).click();
  await page.context().close();
});

test('no serious findings or sideways scrolling, in both themes and at all widths', async () => {
  for (const [width, dark] of [[390, false], [390, true], [1280, false], [1280, true]]) {
    for (const mode of ['follow', 'whole-model']) {
      const page = await session.open(link('&open=steps', mode), { width, dark });
      if (mode === 'whole-model') await page.getByRole('button', { name: /^Look into/ }).click();
      await stepsOf(page).locator('canvas').waitFor();
      await stepsOf(page).getByRole('button', { name: width === 390 ? 'values' : 'q · k', exact: true }).click();
      if (width !== 390) await stepsOf(page).getByRole('button', { name: 'One step back' }).click();
      await openTables(page);
      assert.deepEqual(await seriousFindings(page), [], `${mode} ${width} ${dark}`);
      assert.equal(await overflowsSideways(page), false, `${mode} ${width}`);
      await stepsOf(page).scrollIntoViewIfNeeded();
      await picture(page, `steps-${mode}-${width}-${dark ? 'dark' : 'light'}`);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  }
});
