// GGUF files of the reader's own in the page as static files. Only with HEED_STATIC (tools/run_e2e.mjs --static).
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ggufParts } from '../../tests/wasm/gguf_parts.mjs';
import { convertToGguf, settled, startServer, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';
import { choose, drop, follow, menu, panel, sentence, skip, words } from './static_page.mjs';

const scratch = mkdtempSync(path.join(tmpdir(), 'heed-gguf-'));
const whole = path.join(scratch, 'small q.Q8_0.gguf');
before(() => skip || convertToGguf('english', 'q8_0', whole));
after(() => rmSync(scratch, { recursive: true }));
const session = useExplorer();

const given = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

/** The table of a word's scores shows those of the native program, of the same file. */
async function assertFollows(page, model) {
  const native = await startServer([], whole);
  try {
    const get = async (where, options) => (await fetch(native.address + where, options)).json();
    const trace = await get('/api/traces', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: sentence }) });
    const [layer, head, position] = [2, 1, 4];
    const walk = await get(`/api/traces/${trace.id}/walk?layer=${layer}&head=${head}&position=${position}`);
    await page.evaluate((hash) => (location.hash = hash), `${follow}&model=${model}&layer=${layer}&head=${head}&position=${position}`);
    const table = page.getByRole('table', { name: /against every key/ });
    await settled(page);
    await table.waitFor();
    assert.equal(await words(page).count(), trace.tokens.length);
    const rows = await table.locator('.row:not(.head, .ask, .rest, .sum)').evaluateAll((all) => all.map((row) => [Number(row.querySelector('.c-word').title.replace('position ', '')), row.querySelectorAll('.c-number')[0].textContent, row.querySelector('.c-share :is(.number, .figure)').textContent]));
    assert.ok(rows.length >= position);
    for (const [at, product, share] of rows) {
      assertShows(product, walk.answers[at].product, `q·k at ${at}`);
      assertShows(share, walk.answers[at].share, `share at ${at}`);
    }
  } finally {
    await native.stop();
  }
}

test('a GGUF file shows the native program’s numbers, is kept for the next visit, and forgotten', { skip }, async () => {
  const page = await session.open(follow);
  await choose(page, whole);
  await page.waitForURL(/model=small-q\.Q8_0/);
  await words(page).first().waitFor();
  await assertFollows(page, 'small-q.Q8_0');
  await menu(page).click();
  await panel(page).getByRole('button', { name: 'Keep', exact: true }).click();
  await panel(page).getByText('kept in this browser').waitFor({ timeout: 30_000 });
  await page.reload();
  await words(page).first().waitFor();
  await menu(page).click();
  await panel(page).getByRole('button', { name: 'Remove small-q.Q8_0' }).click();
  await page.waitForFunction(() => !location.hash.includes('model='));
  await words(page).first().waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the parts of a GGUF file are one model, dropped together', { skip }, async () => {
  const page = await session.open(follow);
  const parts = Object.entries(ggufParts(whole, 'two')).map(([name, bytes]) => {
    writeFileSync(path.join(scratch, name), bytes);
    return path.join(scratch, name);
  });
  await drop(page, [...parts].reverse());
  await page.waitForURL(/model=two/);
  await words(page).first().waitFor();
  await assertFollows(page, 'two');
  await page.evaluate(() => (location.hash = '#/follow'));
  await choose(page, parts.slice(0, 1));
  await page.locator('main').getByRole('alert').filter({ hasText: /is missing/ }).first().waitFor({ timeout: 30_000 });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a GGUF file that is cut off, or lies, gets the program’s message, and the page lives on', { skip }, async () => {
  const good = readFileSync(whole);
  const changed = (at, value) => {
    const bytes = Buffer.from(good);
    bytes.writeBigUInt64LE(value, at);
    return bytes;
  };
  const page = await session.open(follow);
  const hostile = [
    [good.subarray(0, good.length / 2), /does not fit into the \d+ bytes of data/],
    [good.subarray(0, 1000), /bytes/],
    [Buffer.from('GGUF'), /version/],
    [changed(8, 2n ** 62n), /says it holds 4611686018427387904 tensors/],
    [changed(16, 2n ** 40n), /says it holds 1099511627776 entries/],
    [Buffer.from('no model at all'), /does not begin with 'GGUF'/],
  ];
  for (const [bytes, message] of hostile) {
    await choose(page, [given('bad.gguf', bytes)]);
    const alert = page.locator('main').getByRole('alert').filter({ hasText: message });
    await alert.first().waitFor({ timeout: 30_000 }).catch((error) => assert.fail(`${message}: ${error.message}`));
    assert.match(await alert.first().textContent(), /bad\.gguf/);
    await page.evaluate(() => (location.hash = '#/follow'));
    await words(page).first().waitFor();
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
