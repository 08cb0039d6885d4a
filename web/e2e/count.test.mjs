import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';

const session = useExplorer();
const plain = (text) => Number(text.replace(/[,\s]/g, ''));

test('totals and parts of all presets equal those of the API, and the parts add up', async () => {
  const { presets } = await session.get('/api/presets');
  assert.ok(presets.some(({ name }) => name === 'gpt3'));
  const page = await session.open('#/count');
  for (const { name } of presets) {
    const expected = await session.get(`/api/parameters?config=${encodeURIComponent(name)}`);
    await page.getByRole('group', { name: 'Presets' }).locator('button').filter({ hasText: new RegExp(`^${name.replace('.', '\\.')} `) }).click();
    await page.waitForFunction((total) => document.querySelector('.total')?.textContent === total, expected.total.toLocaleString('en-US'));
    const parts = await page.locator('.table tbody tr.part').evaluateAll((rows) => rows.map((row) => ({ factors: [...row.querySelectorAll('td.factors .number')].map((one) => one.textContent), count: row.cells[2].textContent })));
    assert.equal(parts.reduce((sum, { count }) => sum + plain(count), 0), expected.total, name);
    for (const { factors, count } of parts) {
      if (factors.length > 0) assert.equal(factors.reduce((product, factor) => product * plain(factor), 1), plain(count), name);
    }
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the operations of the parts add up to those of a token', async () => {
  for (const config of ['gpt3', 'gpt2']) {
    const expected = await session.get(`/api/parameters?config=${config}`);
    const page = await session.open(`#/count?config=${config}`);
    await page.waitForFunction((total) => document.querySelector('.total')?.textContent === total, expected.total.toLocaleString('en-US'));
    const rows = JSON.parse(await exported(page, page.locator('.whole details.export'), 'JSON'));
    assert.equal(rows.reduce((sum, { work }) => sum + work, 0), expected.flops_per_token);
    assert.equal(rows.reduce((sum, { bytes }) => sum + bytes, 0), 4 * expected.total);
    if (config === 'gpt3') assert.match(await page.locator('.whole > p').innerText(), /As many as 1,403 GPT-2s/);
    await page.context().close();
  }
});

test('a slider changes the shape by keyboard, and the link restores it', async () => {
  const page = await session.open('#/count?config=gpt2');
  await page.waitForFunction(() => document.querySelector('.total')?.textContent === '124,439,808');
  await page.getByRole('slider', { name: 'Blocks' }).focus();
  await page.keyboard.press('ArrowRight');
  const expected = await session.get('/api/parameters?layers=13&heads=12&channels=768&head_size=64&feed_forward=3072&vocabulary=50257&context=1024&tied=true');
  const total = expected.total.toLocaleString('en-US');
  await page.waitForFunction((text) => document.querySelector('.total')?.textContent === text, total);
  const again = await session.open(new URL(page.url()).hash);
  await again.waitForFunction((text) => document.querySelector('.total')?.textContent === text, total);
  await page.context().close();
  await again.context().close();
});

test('no serious findings or overflow in both themes and at all widths', async () => {
  for (const [width, dark] of [[360, false], [360, true], [1280, false], [1280, true], [1920, false], [1920, true]]) {
    const page = await session.open('#/count', { width, dark });
    await page.locator('.total').waitFor();
    assert.deepEqual(await seriousFindings(page), [], `${width} ${dark ? 'dark' : 'light'}`);
    assert.equal(await overflowsSideways(page), false, `${width}`);
    await picture(page, `count-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }
});
