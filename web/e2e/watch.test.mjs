import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { exported, openTables, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const binary = process.env.HEED_BINARY ?? path.join(root, 'build/release/bin/heed');
const folder = mkdtempSync(path.join(os.tmpdir(), 'heed-watch-'));
const run = path.join(folder, 'small');
const checkpoints = [10, 20];
const text = 'The fox saw the hare';

/** A run with two checkpoints: trained to the first, then with the same seed to the second. */
function train() {
  const story = path.join(folder, 'story.txt');
  execFileSync(binary, ['microworld', '-n', '200', '-o', story], { stdio: 'ignore' });
  const settings = ['layers=2', 'heads=2', 'channels=32', 'head_size=16', 'feed_forward=64', 'context=32', 'vocabulary_size=1536', 'schedule=constant',
    'warmup_steps=2', 'batch_size=4', 'evaluate_every=5', 'evaluation_batches=2', 'sample_every=10', 'sample_tokens=8', 'learning_rate=0.01'];
  for (const steps of checkpoints) {
    const out = steps === checkpoints.at(-1) ? run : path.join(folder, String(steps));
    execFileSync(binary, ['train', '--data', story, '--out', out, '--tokenizer', path.join(root, 'models/starter'), '-t', '1',
      ...[...settings, `steps=${steps}`].flatMap((setting) => ['--set', setting])], { stdio: 'ignore' });
  }
  for (const steps of checkpoints) {
    const last = path.join(steps === checkpoints.at(-1) ? run : path.join(folder, String(steps)), 'last');
    cpSync(last, path.join(run, 'checkpoints', String(steps).padStart(8, '0')), { recursive: true });
  }
}
train();

/** The same run as of three quarters of its steps; a test appends the rest. */
const live = path.join(folder, 'live');
const lines = readFileSync(path.join(run, 'metrics.jsonl'), 'utf8').trim().split('\n');
const isEarly = (line) => JSON.parse(line).step <= 15;
cpSync(run, live, { recursive: true });
cpSync(path.join(folder, '10', 'last'), path.join(live, 'last'), { recursive: true });
writeFileSync(path.join(live, 'metrics.jsonl'), lines.filter(isEarly).map((line) => `${line}\n`).join(''));

/** A training process holds a lock on the directory of its run. */
const trainer = spawn('flock', [live, 'sleep', '600'], { stdio: 'ignore', detached: true });

/** The same run, stopped an hour ago. */
const stopped = path.join(folder, 'stopped');
cpSync(live, stopped, { recursive: true });
const hourAgo = Date.now() / 1000 - 3600;
utimesSync(path.join(stopped, 'metrics.jsonl'), hourAgo, hourAgo);

/** The same run, whose training a test stops. */
const halted = path.join(folder, 'halted');
cpSync(live, halted, { recursive: true });
const haltedTrainer = spawn('flock', [halted, 'sleep', '600'], { stdio: 'ignore', detached: true });

/** A run whose run.json is damaged. */
const damaged = path.join(folder, 'damaged');
cpSync(run, damaged, { recursive: true });
writeFileSync(path.join(damaged, 'run.json'), '[]');

/** A run with a vocabulary of characters that has no quotation marks, which the starter's examples need. */
const plain = path.join(folder, 'plain');
writeFileSync(path.join(folder, 'plain.txt'), 'the fox saw the hare and the hare saw the fox. '.repeat(200));
execFileSync(binary, ['train', '--data', path.join(folder, 'plain.txt'), '--out', plain, '--tokenizer', 'char', '-t', '1',
  ...['layers=1', 'heads=2', 'channels=32', 'head_size=16', 'feed_forward=64', 'context=64', 'steps=20', 'warmup_steps=2', 'batch_size=4', 'evaluate_every=10',
    'evaluation_batches=2', 'keep_every=10', 'sample_every=10', 'sample_tokens=60', 'learning_rate=0.01'].flatMap((setting) => ['--set', setting])], { stdio: 'ignore' });

after(() => {
  process.kill(-trainer.pid);
  if (haltedTrainer.exitCode === null && haltedTrainer.signalCode === null) process.kill(-haltedTrainer.pid);
  rmSync(folder, { recursive: true, force: true });
});

const session = useExplorer([], undefined, [damaged, run, live, stopped, halted, plain]);
/** The page as static files shows the run that comes with it first. */
const isStatic = process.env.HEED_STATIC !== undefined;
const link = (more = '') => `#/watch-it-learn?text=${encodeURIComponent(text)}${isStatic && !more.includes('run=') ? '&run=small' : ''}${more}`;

async function traceAt(step) {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text, model: { run: 'small', step } }) });
  assert.ok(response.ok);
  return response.json();
}

test('the mode opens without serious findings or sideways scrolling', async () => {
  await Promise.all([[360, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
    const page = await session.open(link('&step=20&with=10'), { width, dark });
    await page.getByRole('region', { name: 'Heads over steps' }).locator('figure').waitFor();
    await settled(page);
    assert.deepEqual(page.problems, []);
    await openTables(page);
    assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
    assert.equal(await overflowsSideways(page), false, `at ${width}`);
    await picture(page, `watch-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }));
});

test('curves and samples equal those in the files of the run', async () => {
  const rows = readFileSync(path.join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const page = await session.open(link());
  await page.getByText('As a table').first().click();
  const shown = await page.getByTestId('curves').locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const measured = rows.filter(({ val_loss }) => val_loss !== undefined);
  assert.deepEqual(shown.map(([step]) => Number(step)), measured.map(({ step }) => step));
  measured.forEach(({ val_loss }, index) => assertShows(shown[index][2], val_loss, `validation ${index}`));
  const sample = rows.filter((row) => row.sample !== undefined).at(-1).sample;
  assert.equal((await page.getByTestId('sample').textContent()).trim(), sample.trim());
  const svg = (await exported(page, page.getByRole('region', { name: 'Run', exact: true }).locator('details.export').first(), 'SVG')).toString();
  const curve = [...svg.matchAll(/<polyline [^>]*points="([^"]+)"/g)].map(([, points]) => points.split(' ').length);
  assert.deepEqual([curve[0], curve[2]], [rows.filter(({ loss }) => loss !== undefined).length, measured.length]);
  await page.context().close();
});

test('the slider moves between checkpoints by keyboard and shows the attention of each', async () => {
  const page = await session.open(link('&step=20&layer=1&head=0'));
  const slider = page.getByRole('slider', { name: /^Checkpoint/ });
  await slider.focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('step=10'));
  await page.getByRole('heading', { name: 'Step 10', exact: true }).waitFor();
  const { id } = await traceAt(10);
  const { heads } = await session.get(`/api/traces/${id}/heads`);
  const previous = heads.find(({ layer, head }) => layer === 1 && head === 0).previous;
  const chart = page.getByRole('region', { name: 'Heads over steps' });
  await chart.getByLabel('Statistic').selectOption('previous');
  await chart.getByText('As a table').click();
  const column = (await chart.locator('thead th').allTextContents()).indexOf('L1H0');
  assertShows(await chart.locator('tbody tr').first().locator('th, td').nth(column).textContent(), previous, 'previous token at step 10');

  await page.getByRole('button', { name: 'Compare two' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.pair h3').length === 2);

  const menu = page.getByRole('region', { name: 'Checkpoints' }).locator('details.export').first();
  const pictures = await exported(page, menu, 'npy');
  assert.match(pictures.toString('latin1', 0, 128), /\(2, 2, \d+, \d+\)/);
  await menu.locator('summary').click();
  for (const name of isStatic ? [] : ['SVG', 'SVG of L1H0']) { // drawn by the server
    const waiting = page.waitForEvent('download');
    await menu.getByRole('link', { name, exact: true }).click();
    assert.match(readFileSync(await (await waiting).path()).toString(), /<svg [^]*<\/svg>/);
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a damaged run shows its error and does not hide the others', async () => {
  const page = await session.open(link());
  const region = page.getByRole('region', { name: 'Run', exact: true });
  const chooser = region.getByLabel('Run', { exact: true });
  await chooser.waitFor();
  assert.equal(await chooser.inputValue(), 'small');
  await chooser.selectOption('damaged');
  await region.getByText('damaged', { exact: true }).last().waitFor();
  assert.match(await region.getByRole('alert').textContent(), /run\.json/);
  assert.equal((await page.content()).includes(folder), false);
  assert.deepEqual(await seriousFindings(page), []);
  await chooser.selectOption('small');
  await region.getByText('finished', { exact: true }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a run whose vocabulary lacks characters of the example is shown with a text of the run', async () => {
  const page = await session.open(`#/watch-it-learn?run=plain&text=${encodeURIComponent('“No”, said the fox.')}`);
  const region = page.getByRole('region', { name: 'Checkpoints' });
  await region.getByText('Shown instead: a text of this run').waitFor();
  await region.getByText('Predicts next:').waitFor();
  await page.getByRole('region', { name: 'Heads over steps' }).locator('figure').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  const input = region.getByLabel('Sentence');
  assert.match(await input.inputValue(), /^[a-z. ]+$/);
  await input.fill('"Why?"');
  await input.press('Enter');
  await region.getByRole('alert').getByText('Type another one.').waitFor();
  await input.fill('the hare');
  await input.press('Enter');
  await region.getByRole('alert').waitFor({ state: 'detached' });
  await region.getByText('Predicts next:').waitFor();
  await page.context().close();
});

test('a run that was stopped before its end is shown as stopped', async () => {
  const page = await session.open(link('&run=stopped'));
  const region = page.getByRole('region', { name: 'Run', exact: true });
  await region.getByText('stopped', { exact: true }).and(page.locator('.badge')).waitFor();
  assert.match(await region.innerText(), /step 15 of 20/);
  await page.context().close();
});

test('an open page notices that a run was stopped, and does not call it running without an answer', async () => {
  const page = await session.open(link('&run=halted'));
  const badge = page.getByRole('region', { name: 'Run', exact: true }).locator('.badge');
  await badge.getByText('running', { exact: true }).waitFor();
  let lost = true;
  await page.route(/\/(api|health)/, (route) => (lost ? route.abort('connectionrefused') : route.continue()));
  await badge.getByText('state unknown', { exact: true }).waitFor();
  lost = false;
  await badge.getByText('running', { exact: true }).waitFor();
  process.kill(-haltedTrainer.pid);
  await badge.getByText('stopped', { exact: true }).waitFor();
  assert.equal(await page.getByRole('progressbar', { name: /^Step/ }).count(), 0);
  await page.context().close();
});

test('a running run is drawn while it writes its metrics', async () => {
  const page = await session.open(link('&run=live'));
  const region = page.getByRole('region', { name: 'Run', exact: true });
  await region.getByText('running', { exact: true }).waitFor();
  await region.getByText('As a table').first().click();
  const last = page.getByTestId('curves').locator('tbody tr').last();
  assert.equal(await last.locator('th').textContent(), '15');
  const later = lines.filter((line) => !isEarly(line));
  for (const line of later) appendFileSync(path.join(live, 'metrics.jsonl'), `${line}\n`);
  cpSync(path.join(run, 'last'), path.join(live, 'last'), { recursive: true });
  await page.waitForFunction(() => document.querySelector('[data-testid=curves] tbody tr:last-child th')?.textContent === '20');
  assertShows(await last.locator('td').nth(1).textContent(), later.map((line) => JSON.parse(line)).findLast(({ val_loss }) => val_loss !== undefined).val_loss, 'the last validation');
  await region.getByText('finished', { exact: true }).waitFor();
  await page.context().close();
});
