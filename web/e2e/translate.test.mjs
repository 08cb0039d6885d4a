// Two texts: what the page says of a translator's attention, predictions and changes equals the API's and `heed attend`'s.
//
//   HEED_TRANSLATOR   the directory of a translator to explore [the one that heed carries, beside the starter; on the
//                     static page, the same as files of the reader's own]
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { carriedTranslator, exported, openTables, overflowsSideways, picture, seriousFindings, settled, translatorOf, useExplorer } from './harness.mjs';
import { assertSame, assertShows } from './numbers.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const directory = process.env.HEED_TRANSLATOR ?? carriedTranslator;
const session = useExplorer([], directory);
const source = 'The curious girl hopes that she jumps in a cave.';
const target = 'Das neugierige Mädchen hofft, dass es in einer Höhle springt.';
const link = (extras = {}, texts = { source, target }) => `#/translate?${new URLSearchParams({ ...texts, ...extras })}`;

async function post(where, body) {
  const response = await fetch(session.address + where, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${where}: ${response.status}`);
  return response.json();
}
const makePair = (request = {}) => post('/api/traces', { source, target, ...request });
/** Rows of an array of the API. */
async function matrix(where) {
  const { shape: [, columns], values } = await session.get(`${where}${where.includes('?') ? '&' : '?'}format=json`);
  return Array.from({ length: values.length / columns }, (_, row) => values.slice(row * columns, (row + 1) * columns));
}
/** `test` of a server that holds a translator. */
const translating = (name, body) => test(name, async (context) => {
  if ((await translatorOf(session)) === null) return context.skip('this server holds no translator');
  await body();
});
const place = (words, text) => words.findIndex((word) => word.text === text);
/** The texts and weights of a list, the first words shown. */
async function listed(page, title) {
  const items = page.locator('.list', { has: page.getByRole('heading', { name: title }) }).getByRole('listitem');
  await items.first().waitFor();
  return items.evaluateAll((all) => all.map((item) => [item.querySelector('.word').textContent, item.querySelector('.weight').textContent]));
}
async function assertListed(page, title, words, weights) {
  const expected = weights.map((weight, index) => ({ weight, text: words[index].text })).sort((a, b) => b.weight - a.weight);
  const items = await listed(page, title);
  assert.ok(items.length > 0, title);
  for (const [index, [text, weight]] of items.entries()) {
    assert.equal(text.replaceAll('␣', ' ').trim(), expected[index].text, `${title}, ${index}`);
    assertShows(weight, expected[index].weight, `${title}: ${text}`);
  }
}

translating('opens at every width, in both themes, without serious findings or sideways scrolling', async () => {
  for (const [width, dark, extras] of [[360, true, { word: 't:springt' }], [1280, false, {}], [1280, true, { word: 's:jumps', kind: 'encoder' }], [1920, false, { word: 't:springt', mask: 'on', edits: 'cross:11>6' }]]) {
    const page = await session.open(link(extras), { width, dark });
    await page.getByTestId('influence-decoder').waitFor();
    await page.getByRole('group', { name: /^Tree of / }).waitFor();
    await settled(page);
    assert.deepEqual(page.problems, [], `at ${width}`);
    await openTables(page);
    assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
    assert.equal(await overflowsSideways(page), false, `at ${width}`);
    await picture(page, `translate-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }
});

translating('a word of the target: weights are those of the API and of heed attend, predictions those of the API', async () => {
  const meta = await makePair();
  const index = place(meta.target.words, 'springt');
  const { begin, end } = meta.target.words[index];
  const page = await session.open(link({ word: `t${index}`, cross: 'L1H0', decoder: 'L0H0' }));
  const head = (kind, layer, one) => matrix(`/api/traces/${meta.id}/attention/${kind}/${layer}/${one}?unit=words&row=written`);
  const [cross, decoder] = [(await head('cross', 1, 0))[index], (await head('decoder', 0, 0))[index]];
  await assertListed(page, 'Its query into the source', meta.source.words, cross);
  await assertListed(page, 'Its query into its own past', meta.target.words, decoder);
  assert.match(await page.getByTestId('target-word').innerText(), /Masked, since it comes later: \./);

  // By hand from heed attend's tokens: keys summed over each word, queries averaged over the positions that write the word.
  if (!process.env.HEED_ADDRESS || directory) {
    const binary = process.env.HEED_BINARY ?? path.join(root, 'build/release/bin/heed');
    const told = JSON.parse(execFileSync(binary, ['attend', ...(directory ? ['-m', directory] : []), source, '--target', target, '--json'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 }));
    const { pattern } = told.heads.find((one) => one.site === 'cross' && one.layer === 1 && one.head === 0);
    const rows = pattern.slice(begin - 1, end - 1);
    const weights = meta.source.words.map((word) => rows.reduce((sum, row) => sum + row.slice(word.begin, word.end).reduce((a, b) => a + b, 0), 0) / rows.length);
    await assertListed(page, 'Its query into the source', meta.source.words, weights);
  }

  const { candidates: predictions, actual } = await session.get(`/api/traces/${meta.id}/next?position=${begin - 1}&limit=6`);
  const shown = page.getByTestId('predictions').getByRole('listitem');
  assert.equal(await shown.count(), 6);
  for (const [at, { probability }] of predictions.entries()) assertShows(await shown.nth(at).locator('.number').textContent(), probability, `prediction ${at}`);
  assert.equal(actual.token.id, meta.target.tokens[begin].id);

  await page.getByTestId('target-word').getByRole('button', { name: 'Once it is read' }).click();
  await page.getByRole('heading', { name: 'After “springt” comes…' }).waitFor();
  const read = await matrix(`/api/traces/${meta.id}/attention/cross/1/0?unit=words`);
  await assertListed(page, 'Its query into the source', meta.source.words, read[index]);
  assert.match(page.url(), /row=read/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('a word of the source attends in both directions, as the API says', async () => {
  const meta = await makePair();
  const index = place(meta.source.words, 'she');
  const page = await session.open(link({ word: 's:she', encoder: 'L0H0', cross: 'L1H0' }));
  const encoder = await matrix(`/api/traces/${meta.id}/attention/encoder/0/0?unit=words`);
  const cross = await matrix(`/api/traces/${meta.id}/attention/cross/1/0?unit=words&row=written`);
  await assertListed(page, 'What it attends to', meta.source.words, encoder[index]);
  await assertListed(page, 'What attends to it', meta.source.words, encoder.map((row) => row[index]));
  await assertListed(page, 'Words of the target that attend to it', meta.target.words, cross.map((row) => row[index]));
  // Without a mask, words after it have a share.
  assert.ok(encoder[index].slice(index + 1).every((weight) => weight > 0));
  await page.context().close();
});

translating('words are chosen by keyboard, one of each text in the tab order', async () => {
  const { alignment, meta } = await makePair().then(async (pair) => ({ meta: pair, alignment: await session.get(`/api/traces/${pair.id}/alignment?layer=1&head=0`) }));
  const page = await session.open(link({ cross: 'L1H0' }));
  const [sources, targets] = ['source', 'target'].map((side) => page.getByRole('toolbar', { name: new RegExp(`^Words of the ${side}`) }));
  await targets.waitFor();
  for (const toolbar of [sources, targets]) assert.equal(await toolbar.locator('button[tabindex="0"]').count(), 1);
  await targets.locator('button[tabindex="0"]').focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  const index = meta.target.words.length - 2;
  await page.waitForFunction((word) => location.hash.includes(`word=t${word}`), index);
  assert.equal(await page.evaluate(() => document.activeElement.querySelector('.word').textContent), meta.target.words[index].text);
  assert.equal(await targets.locator('button[tabindex="0"]').count(), 1);
  // Over to the source word with the largest weight.
  await page.keyboard.press('ArrowUp');
  const linked = alignment.links.find((one) => one.target === index).source;
  await page.waitForFunction((word) => location.hash.includes(`word=s${word}`), linked);
  assert.equal(await page.evaluate(() => document.activeElement.querySelector('.word').textContent), meta.source.words[linked].text);
  await page.keyboard.press('Escape');
  await page.getByTestId('alignment').waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('the map, the heads and their statistics are those of the API', async () => {
  const meta = await makePair();
  const page = await session.open(link({ kind: 'decoder', decoder: 'L1H0', by: 'tokens' }));
  const map = page.getByRole('application', { name: /^Attention in the decoder, the only head of block 1/ });
  await map.waitFor();
  const pattern = await matrix(`/api/traces/${meta.id}/attention/decoder/1/0`);
  const panel = page.getByRole('tabpanel', { name: 'In the decoder' });
  const file = await exported(page, panel.locator('details.export').last(), 'CSV');
  const rows = file.toString().trim().split('\n');
  const weight = rows.map((row) => row.split(',')).find((row) => row.at(-4) === '3' && row.at(-2) === '1').at(-1);
  assertSame(Number(weight), Math.fround(pattern[3][1]), 'the exported weights');

  const { heads } = await session.get(`/api/traces/${meta.id}/heads?site=decoder`);
  await panel.getByText('All statistics as a table').click();
  const cells = await panel.getByTestId('statistics').locator('tbody tr').nth(1).locator('td').allTextContents();
  assertShows(cells[0], heads[1].largest, 'largest');
  assertShows(cells[1], heads[1].previous, 'previous');

  await page.getByRole('tab', { name: 'In the decoder' }).focus();
  await page.keyboard.press('Home');
  await page.getByRole('tabpanel', { name: 'Between the texts' }).getByRole('button', { name: /L0H0/ }).click();
  await page.waitForFunction(() => location.hash.includes('cross=L0H0'));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('the mask: another word moves earlier vectors of the encoder without it, and none with it', async () => {
  const base = await makePair();
  const masked = await makePair({ interventions: [{ kind: 'mask_future', point: 'encoder' }] });
  const page = await session.open(link());
  for (const side of ['source', 'target']) {
    if (side === 'target') await page.getByRole('button', { name: 'In the target' }).click();
    const { words } = base[side];
    const position = words[place(words, side === 'source' ? 'cave' : 'springt')].begin;
    const [without, withMask] = await Promise.all([base, masked].map(({ id }) => session.get(`/api/traces/${id}/influence?side=${side}&position=${position}`)));
    await page.getByText(side === 'source' ? 'Another word in place of “cave”' : 'Another word in place of “springt”').waitFor();
    for (const stack of ['encoder', 'decoder']) {
      const rows = page.getByTestId(`influence-${stack}`).locator('tbody tr');
      assert.equal(await rows.count(), without[stack].length);
      for (const [at, change] of without[stack].entries()) {
        const [first, second] = await rows.nth(at).locator('td.number').allTextContents();
        for (const [text, expected] of [[first, change], [second, withMask[stack][at]]]) {
          if (expected === 0) assert.equal(text, '0');
          else assertShows(text, expected, `${side}, ${stack} ${at}`);
        }
      }
    }
    const earlier = (changes) => changes.slice(0, position);
    assert.ok(earlier(side === 'source' ? without.encoder : without.decoder).every((change) => (change > 0) === (side === 'source')));
    if (side === 'source') assert.ok(earlier(withMask.encoder).every((change) => change === 0));
  }
  assert.match(await page.getByText('Another word in place of “springt”').innerText(), /its mask hides what comes later/);
  await page.context().close();
});

translating('a cut edge and a head that is off: effects and translations are those of the API, and of the link', async () => {
  const meta = await makePair();
  const [from, to] = [place(meta.target.words, 'springt'), place(meta.source.words, 'jumps')];
  const page = await session.open(link({ word: `t${from}` }));
  await page.getByRole('button', { name: 'Cut in all heads: springt attending to jumps' }).click();
  await page.locator('fieldset', { hasText: 'Switch off' }).locator('select').selectOption('cross.L0H0');
  await page.getByRole('button', { name: 'Switch off', exact: true }).click();
  const changes = page.getByTestId('edits').getByRole('listitem');
  await changes.nth(1).waitFor();
  assert.match(await changes.first().innerText(), /“springt” no longer attends to “jumps” in all heads of cross-attention/);
  await page.waitForFunction(() => location.hash.includes('edits='));

  const interventions = [{ kind: 'cut_words', point: 'cross', target: from, source: to }, { kind: 'ablate', point: 'cross.L0H0' }];
  const changed = await makePair({ interventions });
  const check = async (shown) => {
    const { positions } = await session.get(`/api/traces/${changed.id}/effect`);
    const rows = shown.getByTestId('effect').locator('tbody tr');
    await rows.nth(positions.length - 1).waitFor();
    const drops = positions.map(({ actual }) => (actual ? actual.before - actual.after : 0));
    assert.ok(Math.max(...drops) > 0.05, 'the changes have an effect');
    for (const [at, { moved, actual }] of positions.entries()) {
      const cells = await rows.nth(at).locator('td.number').allTextContents();
      if (actual) {
        assertShows(cells[0], actual.before, `before ${at}`);
        assertShows(cells[1], actual.after, `after ${at}`);
      }
      assertShows(cells[2], moved, `moved ${at}`);
    }
    const { text, without } = await post(`/api/traces/${changed.id}/translation`, {});
    const lines = shown.getByRole('region', { name: 'Change something' }).getByTestId('translations').locator('dd .mono');
    const plain = async (line) => (await line.innerText()).replace(/[␣\s]+/g, ' ').trim();
    assert.deepEqual([await plain(lines.nth(0)), await plain(lines.nth(1))], [without.text, text]);
  };
  await check(page);
  // The cut edge has no weight left in the list; without the changes it has.
  const after = await listed(page, 'Its query into the source');
  assert.ok(!after.some(([text, weight]) => text === 'jumps' && !weight.startsWith('0')));
  await page.getByRole('button', { name: 'Without', exact: true }).click();
  await page.waitForFunction(() => [...document.querySelectorAll('.list .word')].some(({ textContent }) => textContent === 'jumps'));
  const again = await session.open(new URL(page.url()).hash);
  await check(again);
  assert.deepEqual([...page.problems, ...again.problems], []);
  await again.context().close();
  await page.context().close();
});

translating('a typed sentence is translated by the model, and is part of the link', async () => {
  const page = await session.open('#/translate');
  const box = page.getByLabel(/^Source/).first();
  await box.fill('The dog sleeps.');
  await page.getByLabel(/^Target/).first().fill('');
  await page.keyboard.press('Enter');
  const { target: { words } } = await post('/api/traces', { source: 'The dog sleeps.' });
  const shown = page.getByRole('toolbar', { name: /^Words of the target/ }).locator('.word');
  await page.waitForFunction((count) => document.querySelectorAll('.target .word').length === count && location.hash.includes('sleeps'), words.length);
  assert.deepEqual(await shown.allTextContents(), words.map(({ text }) => text));
  const again = await session.open(new URL(page.url()).hash);
  assert.equal(await again.getByLabel(/^Source/).first().inputValue(), 'The dog sleeps.');
  await again.context().close();
  await page.context().close();
});

translating('where the model is the translator, the page opens here, and offers no mode of one text', async () => {
  const { name, parameters, encoder, decoder } = await translatorOf(session);
  const page = await session.open('#/follow');
  if (!session.own) {
    await page.route('**/api/model', (route) => route.fulfill({ json: { name, parameters, encoder, decoder, is_translator: true } }));
    await page.goto(`${session.page}/?again#/follow`);
  }
  await page.getByRole('heading', { name: 'Follow a word from one text to the other' }).waitFor();
  assert.deepEqual(await page.getByRole('navigation', { name: 'Modes' }).getByRole('link').allTextContents(), ['Translate']);
  await page.getByRole('toolbar', { name: /^Words of the source/ }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('without a translator the page says so', { skip: directory && !session.own ? 'its model is one' : false }, async () => {
  const page = await session.blank();
  if (!session.own) await page.route('**/api/translator', (route) => route.fulfill({ status: 404, json: { error: { message: 'no translator', type: 'not_found_error' } } }));
  await page.goto(`${session.page}/#/translate`);
  await page.getByText(session.own ? 'This page has no translator open' : 'This server holds no translator').waitFor();
  assert.deepEqual(page.problems, []);
  assert.deepEqual(await seriousFindings(page), []);
  await page.context().close();
});
