// A model that the page trains in the server: started, paused, resumed, its learning rate changed, stopped and started again.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach, test } from 'node:test';
import { meet, openTables, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const liveRuns = mkdtempSync(path.join(os.tmpdir(), 'heed-live-'));
after(() => rmSync(liveRuns, { recursive: true, force: true }));
const session = useExplorer(['--live-runs', liveRuns]);
/** Small, and long enough to be paused on any machine. */
const tiny = { Blocks: 1, Heads: 2, Width: 16, Context: 64, Steps: 20000, 'Batch size': 4, Seed: 5 };
/** Of the page; the test allows a busy machine more than the 2 seconds that a user may wait. */
const firstStepMilliseconds = 6000;

const training = () => session.get('/api/training');
const card = (page) => page.getByRole('region', { name: 'Training', exact: true });
const runCard = (page) => page.getByRole('region', { name: 'Run', exact: true });
const stateOf = (page) => page.getByTestId('training-state');
const post = (where, body = {}) => fetch(session.address + where, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

async function until(what, holds, milliseconds = 15_000) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const now = await training();
    if (holds(now)) return now;
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify({ ...now, presets: undefined, limits: undefined })}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function stop() {
  await post('/api/training/stop');
  await until('stopped', ({ state }) => !['preparing', 'running', 'paused', 'stopping'].includes(state));
}

async function fillForm(page, settings) {
  await card(page).getByRole('button', { name: 'Train a model now' }).click();
  await card(page).getByText('Settings', { exact: true }).click();
  for (const [label, number] of Object.entries(settings)) await card(page).getByLabel(label, { exact: true }).fill(String(number));
}

/** A select where there are several runs. */
async function shownRun(page) {
  await runCard(page).getByText('parameters ·').waitFor();
  const select = runCard(page).getByLabel('Run', { exact: true });
  return (await select.count()) > 0 ? select.inputValue() : runCard(page).locator('h2').textContent();
}

const firstStep = (page) => page.waitForFunction(() => Number(document.querySelector('.plot[data-curve=loss]')?.dataset.steps) >= 1 && location.hash.includes('run='));

afterEach(stop);

test('a recorded run is shown at once, with its loss against the entropy of its text', async () => {
  const { runs } = await session.get('/api/runs');
  const recorded = runs.find(({ origin }) => origin === 'recorded');
  assert.ok(recorded, 'a run that comes with heed');
  const page = await session.open('#/watch-it-learn');
  await runCard(page).getByText('it comes with heed').waitFor();
  const { rows } = await session.get(`/api/runs/${encodeURIComponent(recorded.name)}/metrics`);
  const last = rows.findLast(({ val_loss }) => val_loss !== undefined);
  await page.getByTestId('floor').locator('strong').nth(2).waitFor();
  const numbers = await page.getByTestId('floor').locator('strong').allTextContents();
  assertShows(numbers[0], recorded.entropy_per_token, 'entropy');
  assertShows(numbers[1], last.val_loss, 'the last validation loss');
  assertShows(numbers[2].replace('%', ''), (100 * Math.abs(last.val_loss - recorded.entropy_per_token)) / recorded.entropy_per_token, 'above the entropy, in percent');
  await page.getByRole('region', { name: 'Heads over steps' }).locator('figure').waitFor();
  assert.ok(recorded.checkpoints.length >= 2);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('settings are checked before they are sent', async () => {
  const { limits, run } = await training();
  const page = await session.open('#/watch-it-learn');
  await fillForm(page, { Blocks: limits.layers[1] + 1, 'Learning rate': 'fast' });
  await card(page).getByText(`It must be from ${limits.layers[0]} to ${limits.layers[1]}.`).waitFor();
  await card(page).getByText('“fast” is not a number.').waitFor();
  await card(page).getByRole('button', { name: 'Start training' }).click();
  await card(page).getByLabel('Blocks', { exact: true }).and(page.locator(':focus')).waitFor();
  await card(page).getByRole('button', { name: 'Your own text' }).click();
  await card(page).getByRole('button', { name: 'Start training' }).click();
  await card(page).getByText('Type or paste a text to train on.').waitFor();
  assert.equal((await training()).run, run);
  assert.deepEqual(await seriousFindings(page), []);
  await page.context().close();
});

test('a training is drawn from its first step, paused, resumed, slowed, stopped and started again', async (t) => {
  const page = await session.open('#/watch-it-learn');
  await fillForm(page, tiny);
  const began = Date.now();
  await card(page).getByRole('button', { name: 'Start training' }).click();
  await firstStep(page);
  const waited = Date.now() - began;
  t.diagnostic(`first step drawn after ${waited} ms`);
  assert.ok(waited <= firstStepMilliseconds, `${waited} ms`);
  const { run } = await training();
  assert.equal(new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('run'), run);
  await runCard(page).getByText('trained here').waitFor();
  await runCard(page).locator('.badge').getByText('running', { exact: true }).waitFor();

  await card(page).getByRole('button', { name: 'Pause' }).click();
  await stateOf(page).getByText('Paused at step').waitFor();
  await page.getByRole('status').filter({ hasText: 'Paused at step' }).waitFor();
  await page.waitForTimeout(500); // the step that was being computed is finished
  const paused = await until('paused', ({ state }) => state === 'paused');
  await page.waitForTimeout(1000);
  assert.equal((await training()).step, paused.step);
  assert.match(await stateOf(page).innerText(), new RegExp(`Paused at step ${paused.step.toLocaleString('en-US')} of 20,000`));
  await runCard(page).locator('.badge').getByText('paused', { exact: true }).waitFor();

  await card(page).getByRole('button', { name: 'Halve' }).click();
  await page.getByTestId('factor').filter({ hasText: '× 0.5' }).waitFor();
  assert.equal((await training()).learning_rate_factor, 0.5);
  await card(page).getByRole('button', { name: 'Resume' }).click();
  await until('resumed', ({ state, step }) => state === 'running' && step > paused.step + 5);
  await stateOf(page).getByText('Training: step').waitFor();

  await page.reload();
  await stateOf(page).getByText('Training: step').waitFor();
  await page.getByTestId('factor').filter({ hasText: '× 0.5' }).waitFor();
  assert.equal(await shownRun(page), run);

  await card(page).getByRole('button', { name: 'Stop' }).click();
  await card(page).getByRole('button', { name: 'Start again', exact: true }).waitFor();
  await runCard(page).locator('.badge').getByText('stopped', { exact: true }).waitFor();
  const stopped = await until('stopped', ({ state }) => state === 'stopped');
  assert.match(await stateOf(page).innerText(), new RegExp(`Stopped at step ${stopped.step.toLocaleString('en-US')} `));
  const { rows } = await session.get(`/api/runs/${encodeURIComponent(run)}/metrics?from=${paused.step}`);
  const rate = (step) => rows.find((row) => row.step === step && row.learning_rate !== undefined).learning_rate;
  assert.ok(rate(paused.step + 1) < 0.6 * rate(paused.step), `${rate(paused.step + 1)} after ${rate(paused.step)}`);

  await card(page).getByRole('button', { name: 'Start again', exact: true }).click();
  const second = await until('started again', (now) => now.state === 'running' && now.run !== run);
  assert.equal(second.steps, 20000);
  await page.waitForFunction((name) => location.hash.includes(`run=${name}`), second.run);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a second start in another tab is refused with a sentence, and the tab then shows the training', async () => {
  const page = await session.open('#/watch-it-learn');
  const idle = await training();
  // This tab has not noticed yet that another one started a training.
  let late = true;
  await page.route('**/api/training', (route) => (late && route.request().method() === 'GET' ? route.fulfill({ json: idle }) : route.continue()));
  await fillForm(page, tiny);
  const settings = { layers: 1, heads: 2, width: 16, context: 64, steps: 20000, batch_size: 4, seed: 6 };
  assert.equal((await post('/api/training', { settings })).status, 201);
  await card(page).getByRole('button', { name: 'Start training' }).click();
  await card(page).getByRole('alert').waitFor();
  assert.ok((await card(page).getByRole('alert').innerText()).length > 10);
  late = false;
  await card(page).getByRole('button', { name: 'Pause' }).waitFor();
  const { run } = await until('running', ({ state }) => state === 'running');
  await card(page).getByRole('button', { name: 'Watch it' }).click();
  await firstStep(page);
  assert.equal(await shownRun(page), run);
  await page.context().close();
});

test('the running training has no serious findings and fits the window', async () => {
  assert.equal((await post('/api/training', { settings: { layers: 1, heads: 2, width: 16, context: 64, steps: 20000, batch_size: 4 } })).status, 201);
  const { run } = await until('running', ({ state }) => state === 'running');
  for (const [width, dark] of [[390, true], [1280, false], [1920, true]]) {
    const page = await session.open('#/watch-it-learn', { width, dark });
    await page.locator('.plot[data-curve=loss]').waitFor();
    await page.getByRole('region', { name: 'Heads over steps' }).locator('figure').waitFor();
    assert.match(await stateOf(page).innerText(), /Training: step/);
    const parts = page.getByRole('region', { name: 'Gradient norm of each part at each evaluation' });
    await parts.waitFor();
    await openTables(page);
    assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
    assert.equal(await overflowsSideways(page), false, `at ${width}`);
    assert.deepEqual(page.problems, []);
    const table = parts.locator('table');
    const [first] = (await table.locator('thead th').allTextContents()).map((text) => /\d[\d,]*/.exec(text)?.[0].replace(',', '')).filter(Boolean);
    const { rows } = await session.get(`/api/runs/${encodeURIComponent(run)}/metrics?from=${first}`); // of a long run, the rows from a step on are in full
    const { gradient_norms: norms } = rows.find((row) => row.step === Number(first) && row.gradient_norms);
    const shown = await table.locator('tbody tr').evaluateAll((all) => all.map((row) => row.children[1].textContent));
    [norms.embedding, norms[0], norms.final].forEach((norm, part) => assertShows(shown[part], norm, `gradient norm of part ${part}`));
    await picture(page, `training-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }
});

test('a model of the user’s own text names the characters that it does not know', async () => {
  const page = await session.open('#/watch-it-learn');
  await fillForm(page, { ...tiny, Steps: 20 });
  await card(page).getByRole('button', { name: 'Your own text' }).click();
  await card(page).getByLabel('Text', { exact: true }).fill('the fox saw the hare and the hare saw the fox. '.repeat(200));
  await card(page).getByRole('button', { name: 'Start training' }).click();
  await firstStep(page);
  await stateOf(page).getByText('Finished after 20 steps.').waitFor();
  await runCard(page).locator('.badge').getByText('finished', { exact: true }).waitFor();
  assert.equal(await page.getByTestId('floor').count(), 0);
  const checkpoints = page.getByRole('region', { name: 'Checkpoints' });
  const input = checkpoints.getByRole('textbox', { name: 'Sentence' });
  await input.fill('Why, hare?');
  await input.press('Enter');
  const alert = checkpoints.getByRole('alert');
  await alert.getByText('“W”, “y”, “,” and “?” are not among them').waitFor();
  await checkpoints.getByText('Predicts next:').waitFor();
  assert.equal(await input.inputValue(), 'Why, hare?');
  await input.fill('the hare');
  await input.press('Enter');
  await alert.waitFor({ state: 'detached' });
  await checkpoints.getByText('Predicts next:').waitFor();
  await page.context().close();
});

test('a server that does not train says why and gives the command line', async () => {
  const page = await session.open('#/watch-it-learn');
  const now = await training();
  await meet(page, /^\/api\/training$/, () => ({ ...now, allowed: false, why_not: 'this server was started with --no-training' }));
  await page.reload();
  await card(page).getByText('this server was started with --no-training').waitFor();
  await card(page).getByText('heed train --data story.txt').waitFor();
  assert.equal(await card(page).getByRole('button').count(), 0);
  assert.deepEqual(await seriousFindings(page), []);
  await page.context().close();
});
