// A model without a tokenizer: its texts are token ids.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const starter = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../models/starter');
const model = mkdtempSync(path.join(tmpdir(), 'heed-ids-'));
for (const file of ['config.json', 'model.safetensors']) copyFileSync(path.join(starter, file), path.join(model, file));
after(() => rmSync(model, { recursive: true }));
const session = useExplorer([], model);

test('token ids are run, followed and continued; words are refused with a message', { skip: process.env.HEED_ADDRESS ? 'needs a server of its own' : false }, async () => {
  const page = await session.open('#/follow');
  const prompt = page.getByLabel('Prompt', { exact: true });
  await prompt.fill('43 539 #487, 501');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.first .tokens button').length === 4);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ tokens: [43, 539, 487, 501] }) });
  const { id } = await made.json();
  const { candidates } = await session.get(`/api/traces/${id}/next?position=3&${await session.sampling()}&limit=1`);
  const first = page.locator('#next tbody tr').first();
  await first.getByText(`#${candidates[0].id}`).waitFor();
  assertShows(await first.locator('td').nth(2).textContent(), candidates[0].logit, 'logit');
  await first.getByRole('button', { name: /^Append / }).click();
  await page.waitForFunction((text) => document.querySelector('#prompt-text').value === text, `43 539 #487, 501 ${candidates[0].id}`);
  assert.deepEqual(page.problems, []);
  assert.deepEqual(await seriousFindings(page), []);
  await prompt.fill('43 hare');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('“hare” is not a token id').waitFor();
  await page.context().close();
});
