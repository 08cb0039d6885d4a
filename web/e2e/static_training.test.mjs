// Models that the page as static files trains by itself, in a worker beside the one that answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useExplorer } from './harness.mjs';
import { follow, folderOnly, words } from './static_page.mjs';

const session = useExplorer();

test('trains in a worker of its own while the page answers: watched, paused, resumed and stopped', { skip: folderOnly }, async (t) => {
  const page = await session.open('#/watch-it-learn');
  const card = page.getByRole('region', { name: 'Training', exact: true });
  const state = page.getByTestId('training-state');
  const step = async () => Number(/step ([\d,]+)/.exec(await state.textContent())?.[1].replaceAll(',', ''));
  const after = (before) => page.waitForFunction((former) => Number(/step ([\d,]+)/.exec(document.querySelector('[data-testid=training-state]')?.textContent ?? '')?.[1].replaceAll(',', '')) > former, before, { timeout: 60_000 });
  await card.getByRole('button', { name: 'Train a model now' }).click();
  // The run of sentences as it is offered.
  await card.getByRole('button', { name: 'Start training' }).click();
  await page.waitForFunction(() => Number(document.querySelector('.plot[data-curve=loss]')?.dataset.steps) >= 1, undefined, { timeout: 60_000 });
  assert.equal(page.workers().length, 2);
  const begun = await step();
  // The model of the page answers meanwhile.
  await page.evaluate((link) => (location.hash = link), follow);
  await words(page).first().waitFor();
  const said = page.getByRole('region', { name: 'At a glance' }).locator('.said strong.query');
  const times = [];
  for (const index of [2, 4, 3, 5, 1]) {
    const from = performance.now();
    await words(page).nth(index).click();
    await said.filter({ hasText: ['Late', 'one', 'evening', ',', 'a', 'fluffy'][index] }).waitFor();
    times.push(Math.round(performance.now() - from));
  }
  t.diagnostic(`words clicked while a model is trained: ${times.join(', ')} ms until their numbers`);
  await page.evaluate(() => (location.hash = '#/watch-it-learn'));
  await after(begun);
  await card.getByRole('button', { name: 'Pause' }).click();
  await state.getByText('Paused at step').waitFor();
  await page.waitForTimeout(1000); // the state is asked for again and again
  const paused = await step();
  await page.waitForTimeout(1500);
  assert.equal(await step(), paused);
  await card.getByRole('button', { name: 'Resume' }).click();
  await after(paused);
  await card.getByRole('button', { name: 'Stop' }).click();
  await state.getByText(/Stopped/).waitFor({ timeout: 30_000 });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('shows the checkpoints of its own training, which another worker wrote', { skip: folderOnly }, async () => {
  const page = await session.open('#/watch-it-learn');
  const card = page.getByRole('region', { name: 'Training', exact: true });
  await card.getByRole('button', { name: 'Train a model now' }).click();
  await card.getByText('Settings', { exact: true }).click();
  for (const [label, number] of Object.entries({ Blocks: 1, Heads: 2, Width: 16, Context: 64, Steps: 60, 'Batch size': 4, Seed: 5 })) await card.getByLabel(label, { exact: true }).fill(String(number));
  await card.getByRole('button', { name: 'Start training' }).click();
  await page.getByTestId('training-state').getByText(/Finished|finished/).waitFor({ timeout: 60_000 });
  await page.getByRole('group', { name: 'Heads at step 60' }).getByRole('button').nth(1).waitFor({ timeout: 30_000 });
  assert.equal(await page.getByRole('group', { name: 'Heads at step 60' }).getByRole('button').count(), 2);
  await page.getByRole('region', { name: 'Heads over steps' }).locator('figure').waitFor({ timeout: 30_000 });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
