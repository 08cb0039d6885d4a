// Attention by whole words, the head that is picked by its effect, the gradient of one loss, and words by depth.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, meet, openTables, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows, readNumber } from './numbers.mjs';

const session = useExplorer();
const long = 'The remarkable submarine visited Constantinople, and the mole dug.';
const short = 'One mole of carbon';
const linkOf = (text, more = '', mode = 'follow') => `#/${mode}?text=${encodeURIComponent(text)}${more}`;
const shownAs = (text) => text.replace(/ /g, '␣');

async function makeTrace(request) {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request) });
  assert.ok(response.ok, await response.clone().text());
  return response.json();
}
const values = async (path) => (await session.get(`${path}${path.includes('?') ? '&' : '?'}format=json`)).values.flat(Infinity);
const wordRow = (page) => page.getByRole('toolbar', { name: 'Tokens of the prompt' }).locator('button');
const largest = (weights) => weights.map((weight, index) => ({ weight, index })).sort((a, b) => b.weight - a.weight || a.index - b.index);

test('attention by words is the sum that the API gives, in the row of the word’s last token', async () => {
  const { id, words } = await makeTrace({ text: long });
  const index = words.findIndex(({ text }) => text === 'Constantinople');
  const { begin, end } = words[index];
  const page = await session.open(linkOf(long, `&layer=1&head=2&position=${begin}&unit=words`));
  await page.waitForFunction((position) => location.hash.includes(`position=${position}`), end - 1);
  const weights = await values(`/api/traces/${id}/attention/self/1/2/rows/${end - 1}?unit=words`);
  await page.locator('.said .figure').first().waitFor();
  assert.equal(await wordRow(page).count(), words.length);
  assert.equal(await wordRow(page).nth(index).getAttribute('aria-pressed'), 'true');
  assert.match(await wordRow(page).nth(index).getAttribute('aria-label'), new RegExp(`^Constantinople, word ${index + 1} of ${words.length}, ${end - begin} tokens, `));
  const top = largest(weights).slice(0, 3);
  assert.deepEqual(await page.locator('.said .attended').allTextContents(), top.map(({ index: at }) => `“${words[at].text}”`));
  const shares = await page.locator('.said .figure').allTextContents();
  top.forEach(({ weight, index: at }, order) => assertShows(shares[order], weight, words[at].text));
  assert.match(await page.locator('.next h2').innerText(), /“Constantinople”/);

  // The sums below the tokens of a word in the list of keys.
  await page.getByRole('button', { name: /^All \d+ tokens$/ }).click();
  const sums = await page.locator('.match .whole-word').evaluateAll((rows) => rows.map((row) => [row.querySelector('strong').textContent, row.querySelector('.figure').textContent]));
  const several = words.map((word, at) => ({ ...word, weight: weights[at] })).filter((word) => word.end - word.begin > 1 && word.begin < end);
  assert.deepEqual(sums.map(([word]) => word), several.map(({ text }) => `“${text}”`));
  several.forEach(({ text, weight }, at) => assertShows(sums[at][1], weight, `sum of ${text}`));
  await page.locator('.match .whole-word .figure').first().focus();
  const terms = await page.getByRole('tooltip').locator('tr.sum').evaluate((row) => [...row.parentElement.rows].map((one) => one.lastElementChild.textContent));
  assertShows(terms.at(-1), several[0].weight, 'the popover');
  assert.equal(terms.length - 1, several[0].end - several[0].begin);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a word is chosen by its last token, with the mouse and the keyboard; tokens are the default', async () => {
  const { tokens, words } = await makeTrace({ text: long });
  const page = await session.open(linkOf(long, '&layer=1&head=2'));
  await page.locator('.said .figure').first().waitFor();
  assert.equal(await wordRow(page).count(), tokens.length);
  await page.getByRole('group', { name: 'Attention by' }).getByRole('button', { name: 'Words' }).click();
  await page.waitForFunction(() => location.hash.includes('unit=words'));
  await page.getByText('the row is that of the word’s last token').waitFor();
  const at = words.findIndex(({ text }) => text === 'submarine');
  await wordRow(page).nth(at).click();
  await page.waitForFunction((position) => location.hash.includes(`position=${position}&`), words[at].end - 1);
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction((position) => location.hash.includes(`position=${position}&`), words[at - 1].end - 1);
  await page.waitForFunction((word) => document.querySelector('.said').textContent.includes(`“${word}” attends`), words[at - 1].text);
  await page.getByRole('link', { name: 'Compare' }).click();
  await page.waitForFunction(() => location.hash.startsWith('#/compare') && location.hash.includes('unit=words'));
  await page.context().close();

  const plain = await session.open(linkOf(short, '&layer=1&head=2&unit=words'));
  const { words: same } = await makeTrace({ text: short });
  assert.ok(same.every(({ begin, end }) => end - begin === 1), 'words of one token');
  await plain.locator('.said .figure').first().waitFor();
  assert.equal(await plain.getByRole('group', { name: 'Attention by' }).count(), 0);
  await plain.context().close();
});

test('the map and the lists by words have the weights of the API', async () => {
  const { id, words } = await makeTrace({ text: long });
  const whole = await values(`/api/traces/${id}/attention/self/1/2?unit=words`);
  const page = await session.open(linkOf(long, '&layer=1&head=2&unit=words&view=map', 'compare'));
  const map = page.getByRole('application', { name: new RegExp(`over ${words.length} words`) });
  await map.focus();
  for (const [query, key] of [[words.length - 1, 1], [4, 2]]) {
    await page.keyboard.press('Home');
    for (let step = 0; step < words.length; ++step) await page.keyboard.press('ArrowUp');
    for (let step = 0; step < query; ++step) await page.keyboard.press('ArrowDown');
    for (let step = 0; step < key; ++step) await page.keyboard.press('ArrowRight');
    const reading = page.getByTestId('map-reading');
    await page.waitForFunction(([first, second]) => document.querySelector('[data-testid=map-reading]').textContent.includes(`(${first})`) && document.querySelector('[data-testid=map-reading]').textContent.includes(`(${second})`) && !document.querySelector('[data-testid=map-reading]').textContent.includes('…'), [query, key]);
    assert.match(await reading.innerText(), new RegExp(`${words[query].text}.*attends to.*${words[key].text}`, 's'));
    assertShows(await reading.locator('strong').innerText(), whole[query * words.length + key], `${query} > ${key}`);
  }
  await page.keyboard.press('Enter');
  await page.waitForFunction((position) => location.hash.includes(`position=${position}&`), words[4].end - 1);
  for (const [list, path] of [[0, 'rows'], [1, 'columns']]) {
    const { positions } = await session.get(`/api/traces/${id}/attention/self/1/2/${path}/${words[4].end - 1}?unit=words&top=8`);
    const items = page.locator('.lists ol').nth(list).locator('li');
    const expected = positions.filter(({ weight }) => weight > 0);
    // What was shown of another word may begin with the same one.
    await page.waitForFunction(([at, wanted]) => [...document.querySelectorAll('.lists ol')[at].querySelectorAll('.word')].map((one) => one.textContent).join('|') === wanted, [list, expected.map(({ text }) => text).join('|')]);
    const shown = await items.evaluateAll((all) => all.map((item) => [item.querySelector('.word').textContent, item.querySelector('.weight').textContent]));
    assert.deepEqual(shown.map(([word]) => word), expected.map(({ text }) => text));
    expected.forEach(({ text, weight }, at) => assertShows(shown[at][1], weight, `${path}: ${text}`));
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('for a sentence of one’s own the edge is shown that the next word rests on, and cutting it does what is said', async () => {
  const page = await session.open('#/follow');
  await page.locator('.said .figure').first().waitFor();
  const own = 'We crashed the car';  // no example, whose head would be named
  const { id, tokens } = await makeTrace({ text: own });
  const { edge } = await session.get(`/api/traces/${id}/head?position=${tokens.length - 1}`);
  assert.ok(edge.decides, 'one edge decides in this sentence');
  await page.getByLabel('Prompt', { exact: true }).fill(own);
  await page.keyboard.press('Enter');
  const said = page.getByTestId('shown-edge');
  const name = `L${edge.layer}H${edge.head}`;
  await said.filter({ hasText: name }).waitFor();
  await page.waitForFunction((head) => document.querySelector('.said .link')?.textContent === head, name);
  const sentence = await said.locator('p').innerText();
  const [, key, weight, word, before, after, gained, from, to] = /reads “(.*)” with weight (.*), and the next word rests on it: with this edge cut, “(.*)” goes from (.*) to (.*), and “(.*?)” from (.*?) to (.*?)(?: and |\.(?=\s|$))/.exec(sentence);
  assert.equal(key, edge.key.text.trim());
  assertShows(weight, edge.weight, 'weight');
  assert.equal(word, edge.likeliest.token.text.trim());
  assertShows(before, edge.likeliest.before, 'before');
  assertShows(after, edge.likeliest.after, 'after');
  assert.equal(gained, edge.gained[0].token.text.trim());
  assertShows(from, edge.gained[0].before, 'gained, before');
  assertShows(to, edge.gained[0].after, 'gained, after');
  // One arc stands out.
  assert.equal(await page.locator('.arcs path.marked').count(), 1);

  await said.getByRole('link', { name: 'Cut it' }).click();
  await page.getByRole('heading', { level: 1, name: /^Change/ }).waitFor();
  assert.match(decodeURIComponent(page.url()), new RegExp(`changes=${name}:${edge.query}>${edge.key.begin}`));
  assert.match(page.url(), /cuts=renormalise/);
  const edges = Array.from({ length: edge.key.end - edge.key.begin }, (_, index) => [edge.query, edge.key.begin + index]);
  const cut = await makeTrace({ base: id, interventions: [{ kind: 'cut', layer: edge.layer, head: edge.head, edges, renormalise: true }] });
  const { rows } = await session.get(`/api/traces/${id}/compare/${cut.id}?position=${tokens.length - 1}&top=50`);
  for (const told of [edge.likeliest, edge.gained[0]]) {
    const row = rows.find(({ token }) => token === told.token.id);
    assert.ok(Math.abs(row.before.probability - told.before) < 1e-4 && Math.abs(row.after.probability - told.after) < 1e-4, JSON.stringify([row, told]));
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('where no single edge decides, and where no word stands before, it says so', async () => {
  const text = 'The fox sat by the river bank';
  const { id, tokens } = await makeTrace({ text });
  const { edge } = await session.get(`/api/traces/${id}/head?position=${tokens.length - 1}`);
  assert.ok(!edge.decides);
  const page = await session.open('#/follow');
  await page.locator('.said .figure').first().waitFor();
  await page.getByLabel('Prompt', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
  const said = page.getByTestId('shown-edge');
  await said.filter({ hasText: 'No single edge decides what follows “bank”' }).waitFor();
  assertShows(/cutting that edge moves (.*?) of the probability/.exec(await said.locator('p').innerText())[1], edge.cut, 'cut');
  await wordRow(page).nth(0).click();
  await said.filter({ hasText: 'No other word stands before this one' }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a head that the link, the example or the user names stays; it is picked again on request', async () => {
  const asked = [];
  const watched = (page) => meet(page, /\/head\?position=/, ({ path }) => void asked.push(path));
  const { examples: [first] } = await session.get('/api/model');
  const settled = (page) => page.waitForTimeout(700);

  const page = await session.open('#/follow');
  await watched(page);
  await page.reload();
  await page.locator('.said .figure').first().waitFor();
  await settled(page);
  assert.deepEqual(asked, [], 'the example names its head');
  assert.equal(await page.locator('.said .link').innerText(), `L${first.layer}H${first.head}`);

  // Another word of the example has none; back at the example's own word, its head is shown.
  await wordRow(page).nth(1).click();
  await page.getByTestId('shown-edge').locator('p').waitFor();
  assert.equal(asked.length, 1);
  await wordRow(page).nth(first.position).click();
  await page.waitForFunction((head) => document.querySelector('.said .link')?.textContent === head && !location.hash.includes('pick='), `L${first.layer}H${first.head}`);
  await settled(page);
  assert.equal(asked.length, 1);

  // Nor has the word that continues it.
  await page.getByRole('button', { name: /^Append / }).first().click();
  await page.waitForFunction((text) => document.querySelector('#prompt-text').value.length > text.length, first.text);
  await page.getByTestId('shown-edge').locator('p').waitFor();
  assert.equal(asked.length, 2);
  await page.context().close();
  asked.length = 0;

  const given = await session.open(linkOf(short, '&layer=2&head=1'));
  await watched(given);
  await given.locator('.said .figure').first().waitFor();
  await wordRow(given).nth(1).click();
  await settled(given);
  assert.equal(asked.length, 0, 'the link names the head');
  assert.equal(await given.locator('.said .link').innerText(), 'L2H1');
  await given.getByRole('button', { name: 'Pick the head by its effect' }).click();
  await given.getByTestId('shown-edge').locator('p').waitFor();
  assert.equal(asked.length, 1);
  const picked = await given.locator('.said .link').innerText();
  const other = picked === 'L0H5' ? 'head-0-4' : 'head-0-5';
  await given.locator(`#${other}`).click();
  await given.getByRole('button', { name: 'Pick the head by its effect' }).waitFor();
  await wordRow(given).nth(2).click();
  await settled(given);
  assert.equal(await given.locator('.said .link').innerText(), other.replace(/head-(\d)-(\d)/, 'L$1H$2'), 'chosen by hand');
  assert.equal(asked.length, 1);
  await given.context().close();
});

test('while edges are cut the rest is shown, and another text stops it', async () => {
  const page = await session.open(linkOf(short, '&layer=2&head=1'));
  await page.locator('.said .figure').first().waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  let stopped;
  const cancelled = new Promise((resolve) => (stopped = resolve));
  await meet(page, /\/head\?position=/, () => held, () => stopped());
  await page.getByRole('button', { name: 'Pick the head by its effect' }).click();
  await page.getByRole('progressbar', { name: /^Cutting edges/ }).waitFor();
  await page.locator('.said .figure').first().waitFor();
  await wordRow(page).nth(0).click();
  await page.waitForFunction(() => document.querySelector('.said').textContent.includes('“One” attends'));
  await page.getByLabel('Prompt', { exact: true }).fill('The fox saw the hare');
  await page.keyboard.press('Enter');
  await cancelled;
  release();
  await page.getByTestId('shown-edge').filter({ hasText: '“hare”' }).locator('p').waitFor();
  await page.context().close();
});

test('the gradient of a loss has the norms of the API, and none after its word', async () => {
  const { id, tokens, layers } = await makeTrace({ text: long });
  const position = 9;
  const view = async (page) => {
    const part = page.locator('#more-backward');
    await part.getByTestId('loss').waitFor();
    await openTables(page);
    const table = part.getByRole('table', { name: 'Length of the gradient' });
    await table.waitFor();
    return table.evaluate((one) => [...one.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)));
  };
  const page = await session.open(linkOf(long, `&layer=0&head=1&position=${position}&open=backward`));
  const expected = await session.get(`/api/traces/${id}/gradients?position=${position}`);
  assert.equal(expected.token.id, tokens[position + 1].id);
  const part = page.locator('#more-backward');
  const rows = await view(page);
  assertShows(await part.getByTestId('loss').locator('.number').innerText(), expected.loss, 'loss');
  assert.equal(rows.length, layers + 1);
  rows.forEach(([name, ...cells], row) => {
    const norms = expected.norms.at(-1 - row);
    assert.equal(name, row === layers ? 'embedding' : `after block ${layers - 1 - row}`);
    cells.forEach((cell, column) => (column > position ? assert.equal(cell, 'none') : assertShows(cell, norms[column], `${name} at ${column}`)));
  });
  const npy = await exported(page, part.locator('details.export').nth(1), 'npy');
  assert.ok(npy.length > 4 * (layers + 1) * tokens.length);

  // The loss of another next word.
  const { candidates: [likeliest] } = await session.get(`/api/traces/${id}/next?position=${position}&${await session.sampling({ temperature: 1, top_k: 0, top_p: 1, min_p: 0 })}&limit=1`);
  await part.getByRole('button', { name: `${shownAs(likeliest.token)}, chosen above` }).click();
  const other = await session.get(`/api/traces/${id}/gradients?position=${position}&token=${likeliest.id}`);
  await page.waitForFunction((word) => document.querySelector('[data-testid=loss] code').textContent === word, shownAs(likeliest.token));
  assertShows(await part.getByTestId('loss').locator('.number').innerText(), other.loss, 'loss of the likeliest');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('words by depth are cosines of the API’s vectors', async () => {
  const { id, tokens, layers } = await makeTrace({ text: 'One mole' });
  const [own, next] = [tokens[1].id, (await session.get('/api/vocabulary?find=of&limit=20')).tokens.find(({ text }) => text === ' of').id];
  const cosine = (a, b) => a.reduce((sum, number, at) => sum + number * b[at], 0) / (Math.hypot(...a) * Math.hypot(...b));
  const streams = await Promise.all(['blocks.0.hook_resid_pre', ...Array.from({ length: layers }, (_, layer) => `blocks.${layer}.hook_resid_post`)].map((point) => values(`/api/traces/${id}/arrays/${point}?positions=1`)));
  const directions = {
    read: await Promise.all([own, next].map((token) => values(`/api/weights/token_embedding?rows=${token}`))),
    next: await Promise.all([own, next].map(async (token) => {
      const { terms } = await session.get(`/api/traces/${id}/derivation?point=logits&position=0&index=${token}&terms=${streams[0].length}`);
      return terms.map(({ label, right }) => [Number(label.replace('channel ', '')), right]).sort((a, b) => a[0] - b[0]).map(([, right]) => right);
    })),
  };
  for (const kind of ['read', 'next']) {
    const page = await session.open(linkOf('One mole', `&layer=0&head=4&open=about&about=${own},${next}${kind === 'next' ? '&direction=next' : ''}`));
    const part = page.locator('#more-about');
    await part.locator('figure path').first().waitFor({ state: 'attached' });
    await openTables(page);
    const rows = await part.locator('figure tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.equal(rows.length, layers + 1);
    rows.forEach(([place, ...cells], row) => [0, 1].forEach((word) => assertShows(cells[word], cosine(streams[row], directions[kind][word]), `${kind}: word ${word} ${place}`)));
    rows.forEach(([place, , , mean, nearest]) => assert.ok(readNumber(mean) <= readNumber(nearest), place));
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
  // A word is added by keyboard, from the vocabulary.
  const page = await session.open(linkOf('One mole', '&layer=0&head=4&open=about'));
  const part = page.locator('#more-about');
  await part.getByText('Add a word').click();
  await part.getByRole('searchbox').fill('carbon');
  const found = part.getByRole('group', { name: 'Words to add' }).getByRole('button', { name: '␣carbon' }).first();
  await found.focus();
  await page.keyboard.press('Enter');
  await part.getByRole('button', { name: 'Remove ␣carbon' }).waitFor();
  await page.waitForFunction(() => /about=\d+%2C\d+%2C\d+/.test(location.hash));
  await page.context().close();
});

test('no serious findings or overflow, in any width and theme', async () => {
  for (const [what, link] of [
    ['words', linkOf(long, '&unit=words&position=16&open=backward+about')],
    ['map', linkOf(long, '&layer=1&head=2&unit=words&view=map', 'compare')],
    ['arcs', linkOf(long, '&layer=1&head=2&unit=words&view=words&position=16', 'compare')],
    ['change', linkOf(long, '&layer=1&head=2&unit=words&position=16&changes=L1H2', 'change')],
  ]) {
    await Promise.all([[390, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
      const page = await session.open(link, { width, dark });
      await page.getByText('The weights of a word’s tokens are summed').first().waitFor();
      await settled(page);
      await page.waitForTimeout(400);
      await openTables(page);
      assert.deepEqual(await seriousFindings(page), [], `${what} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${what} at ${width}`);
      assert.deepEqual(page.problems, [], what);
      await picture(page, `by-word-${what}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});
