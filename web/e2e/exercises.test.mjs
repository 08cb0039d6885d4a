// Every exercise of the tour is solved here on the served model, as a reader would: it is not done when its chapter is
// opened, and done after what it asks for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { translatorOf, useExplorer } from './harness.mjs';

const session = useExplorer();
const text = 'Late one evening, a fluffy blue hare'; // what the page opens with

async function opened(chapter) {
  const page = await session.open(`#/learn?chapter=${chapter}`);
  const task = page.getByRole('region', { name: 'Try it' });
  await task.getByTestId('verdict').waitFor();
  assert.equal(await task.getAttribute('data-done'), 'false', `${chapter} is done before anything is tried`);
  return page;
}

async function isDone(page, chapter) {
  await page.locator('section[aria-label="Try it"][data-done=true]').waitFor().catch(async () => assert.fail(`${chapter}: ${await page.getByTestId('verdict').innerText()}`));
  assert.match(await page.getByTestId('verdict').innerText(), /Done\./);
  assert.equal(await page.locator('nav[aria-label=Chapters] .done').count(), 1);
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

async function write(page, sentence) {
  await page.getByLabel('Prompt', { exact: true }).fill(sentence);
  await page.keyboard.press('Enter');
  await page.waitForFunction((wanted) => new URLSearchParams(location.hash.split('?')[1]).get('text') === wanted, sentence);
}

async function post(path, body) {
  const response = await fetch(session.address + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

const chooseWord = (page, position) => page.getByRole('toolbar', { name: 'Words of the sentence' }).getByRole('button').nth(position).click();

async function chooseHead(page, layer, head) {
  await page.getByLabel('Block', { exact: true }).first().selectOption(String(layer));
  await page.getByLabel('Head', { exact: true }).first().selectOption(String(head));
}

async function rowOf(id, layer, head, position) {
  return (await session.get(`/api/traces/${id}/attention/self/${layer}/${head}/rows/${position}?format=json`)).values.flat(Infinity);
}

test('tokens: a word of three tokens', async () => {
  const page = await opened('tokens');
  await write(page, 'The fox ate a cheeseburger');
  await isDone(page, 'tokens');
});

test('embeddings: a token that occurs twice', async () => {
  const page = await opened('embeddings');
  await write(page, 'The fox saw the hare, and the hare saw the fox');
  await page.getByRole('toolbar', { name: 'Tokens with their ids' }).getByRole('button').last().click();
  await page.getByTestId('verdict').getByText('token embeddings').waitFor();
  assert.match(await page.getByTestId('verdict').innerText(), /token embeddings are 0\.00 apart/);
  await isDone(page, 'embeddings');
});

test('head: a head that looks further back', async () => {
  const { id, layers, heads, tokens } = await post('/api/traces', { text });
  const position = tokens.length - 1;
  let found = null;
  for (let layer = 0; layer < layers && !found; ++layer) {
    for (let head = 0; head < heads && !found; ++head) {
      const row = await rowOf(id, layer, head, position);
      const most = row.indexOf(Math.max(...row));
      if (position - most > 1 && row[most] > 0.5) found = [layer, head];
    }
  }
  assert.ok(found, 'a head that does it on the opening sentence');
  const page = await opened('head');
  await chooseHead(page, ...found);
  await isDone(page, 'head');
});

test('mask: the word that sees three', async () => {
  const page = await opened('mask');
  await chooseWord(page, 2);
  await isDone(page, 'mask');
});

test('heads: the head of the previous word', async () => {
  const { id } = await post('/api/traces', { text });
  const { heads } = await session.get(`/api/traces/${id}/heads`);
  const best = heads.reduce((most, one) => (one.previous > most.previous ? one : most));
  const page = await opened('heads');
  await chooseHead(page, best.layer, best.head);
  await isDone(page, 'heads');
});

test('block: a block whose feed-forward adds more', async () => {
  const page = await opened('block');
  await page.getByLabel('Block', { exact: true }).first().selectOption('0');
  await isDone(page, 'block');
});

test('depth: a word that is settled early', async () => {
  const { id, tokens, layers } = await post('/api/traces', { text });
  const { cells } = await session.get(`/api/traces/${id}/lens?top=1`);
  const settled = (position) => {
    const choices = cells.map((row) => row[position].tokens[0].id);
    let after = choices.length - 1;
    while (after > 0 && choices[after - 1] === choices.at(-1)) after -= 1;
    return after;
  };
  const position = tokens.findIndex((_, at) => settled(at) <= Math.floor(layers / 3));
  assert.ok(position >= 0, 'a word of the opening sentence');
  const page = await opened('depth');
  await chooseWord(page, position);
  await isDone(page, 'depth');
});

test('training: a sentence that surprises little', async () => {
  let sentence = text;
  for (let added = 0; added < 6; ++added) {
    const { id, tokens } = await post('/api/traces', { text: sentence });
    const { candidates } = await session.get(`/api/traces/${id}/next?position=${tokens.length - 1}&temperature=1&limit=1`);
    sentence += candidates[0].token;
  }
  const page = await opened('training');
  await write(page, sentence);
  await isDone(page, 'training');
});

test('two texts: another word, and the mask', async (context) => {
  if ((await translatorOf(session)) === null) return context.skip('this server holds no translator');
  const page = await opened('two-texts');
  await page.getByRole('toolbar', { name: 'Words of the target' }).getByRole('button').nth(2).click();
  await page.getByRole('button', { name: 'Mask switched on in the encoder' }).click();
  await isDone(page, 'two-texts');
});
