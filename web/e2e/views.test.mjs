// The closer views of Follow and Learn: numbers equal to those of the API, keyboard use, no findings.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows, readNumber } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and the hare saw the fox';
const [layer, head, position] = [1, 2, 6];
const views = ['senses', 'nearest', 'projection', 'unmasked', 'scaled', 'factors', 'split', 'additions', 'memory', 'backward'];
const link = (open, more = '') => `#/follow?text=${encodeURIComponent(text)}&layer=${layer}&head=${head}&position=${position}&open=${open}${more}`;

async function makeTrace(request = { text }) {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request) });
  assert.equal(response.status < 300, true);
  return response.json();
}

const flat = ({ values }) => values.flat(Infinity);

test('closer views are closed at first, open by keyboard and are part of the link', async () => {
  const page = await session.open(`#/follow?text=${encodeURIComponent(text)}`);
  for (const id of views) {
    await page.locator(`#more-${id}`).waitFor();
    assert.equal(await page.locator(`#more-${id} .inside`).count(), 0, id);
  }
  await page.locator('#more-scaled summary').first().focus();
  await page.keyboard.press('Enter');
  await page.locator('#more-scaled .inside').waitFor();
  assert.match(page.url(), /open=scaled/);
  await page.keyboard.press('Enter');
  await page.locator('#more-scaled .inside').waitFor({ state: 'detached' });
  assert.doesNotMatch(page.url(), /open=/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('x · W + b gives the query, key and value of the API, and the terms add up', async () => {
  const { id, dimensions } = await makeTrace();
  const page = await session.open(link('projection'));
  const view = page.locator('#more-projection');
  for (const [role, name] of [['q', 'query'], ['k', 'key'], ['v', 'value']]) {
    await view.getByRole('button', { name, exact: true }).click();
    const slider = view.getByRole('slider', { name: new RegExp(`^The ${name} of`) });
    await slider.focus();
    await page.keyboard.press('Home');
    for (const index of [0, 1]) {
      if (index > 0) await page.keyboard.press('ArrowRight');
      const expected = await session.get(`/api/traces/${id}/derivation?point=${role}&layer=${layer}&head=${head}&position=${position}&index=${index}`);
      assert.match(await slider.getAttribute('aria-valuetext'), new RegExp(`^dimension ${index}: `));
      const cells = await view.locator('[data-testid=projection-sum] tbody tr').evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[row.cells.length - 1].textContent]));
      assertShows(cells.at(-1)[1], expected.value, `${role}_${index}`);
      assertShows(cells.at(-2)[1], expected.bias, `bias of ${role}_${index}`);
      const sum = cells.slice(0, -1).reduce((total, [, number]) => total + readNumber(number), 0);
      assert.ok(Math.abs(sum - expected.value) < 1e-4 * cells.length, `${role}_${index}: ${sum} against ${expected.value}`);
      assert.deepEqual(cells.slice(0, 3).map(([channel]) => `channel ${channel}`), expected.terms.slice(0, 3).map(({ label }) => label));
    }
  }
  const file = await exported(page, view.locator('details.export'), 'npy: W_V');
  const header = file.readUInt16LE(8);
  assert.match(file.toString('latin1', 10, 10 + header), new RegExp(`\\(${dimensions.channels}, ${dimensions.head_size}\\)`));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('x · W is drawn to scale beside GPT-3’s, with the sizes of the API', async () => {
  const { presets } = await session.get('/api/presets');
  const { name, dimensions } = await session.get('/api/model');
  const { channels, head_size } = presets.find((preset) => preset.name === 'gpt3').config;
  for (const [link, width] of [['#/follow?text=the+fox+saw&layer=1&head=1&open=projection', 1280], ['#/count', 390]]) {
    const page = await session.open(link, { width });
    const drawn = (model, size) => page.getByRole('img', { name: new RegExp(`^${model}, to scale: 1 by ${size}`) });
    const big = drawn('GPT-3', channels.toLocaleString('en-US'));
    await big.waitFor({ state: 'attached' });
    const sizes = (picture) => picture.evaluate((svg) => [...svg.querySelectorAll('rect')].slice(0, 2).map((one) => Number(one.getAttribute('data-size'))));
    const [long, wide] = await sizes(big);
    assert.ok(Math.abs(wide / long - head_size / channels) < 1e-6, 'the matrix is to scale');
    const [own, ownWide] = await sizes(drawn(name, dimensions.channels.toLocaleString('en-US')));
    assert.ok(Math.abs(own / long - dimensions.channels / channels) < 1e-6, 'both have one scale');
    assert.ok(Math.abs(ownWide / own - dimensions.head_size / dimensions.channels) < 1e-6);
    assert.equal(await overflowsSideways(page), false);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test('scores without the mask agree with the API below the diagonal, and the rows sum to one', async () => {
  const { id, tokens } = await makeTrace();
  const count = tokens.length;
  const { values } = await session.get(`/api/traces/${id}/attention/self/${layer}/${head}?values=scores&format=json`);
  const scores = values.flat(Infinity);
  const page = await session.open(link('unmasked'));
  const view = page.locator('#more-unmasked');
  await view.getByRole('application', { name: /^Scores without the mask/ }).waitFor();
  const table = async (which) => {
    const details = view.locator('.grids > div').nth(which).locator('details');
    await details.locator('summary').click();
    await details.locator('tbody tr').nth(count - 1).waitFor();
    return details.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
  };
  const [free, masked, weights] = [await table(0), await table(1), await table(2)];
  for (let query = 0; query < count; ++query) {
    for (let key = 0; key < count; ++key) {
      if (key <= query) assertShows(free[query][key], scores[query * count + key], `score ${query} ${key}`);
      else assert.equal(masked[query][key], '−∞');
    }
    const sum = weights[query].reduce((total, share) => total + (share.startsWith('<') ? 0 : readNumber(share)), 0);
    assert.ok(Math.abs(sum - 1) < 0.0006 * count, `row ${query}: ${sum}`);
  }
  await view.getByRole('button', { name: 'Mask on' }).click();
  assert.equal(await view.getByRole('application').count(), 2);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the softmax that is divided equals that of the API; undivided it is more peaked', async () => {
  const { id } = await makeTrace();
  const { answers } = await session.get(`/api/traces/${id}/walk?layer=${layer}&head=${head}&position=${position}`);
  const shares = answers.filter(({ masked }) => !masked).map(({ share }) => share);
  const page = await session.open(link('scaled'));
  const number = async (what) => page.locator(`#more-scaled [data-testid=${what}]`).innerText();
  await page.locator('#more-scaled [data-testid=largest-query]').waitFor();
  const own = page.getByRole('button', { name: 'Show the chosen head and word' });
  if (await own.count() > 0) {
    // Where the chosen one shows nothing, it opens on one that does.
    assert.ok(readNumber(await number('largest-key')) - readNumber(await number('largest-query')) >= 0.2);
    await own.click();
  }
  assertShows(await number('largest-query'), Math.max(...shares), 'largest weight');
  assertShows(await number('entropy-query'), shares.reduce((sum, share) => sum - share * Math.log(share), 0), 'entropy');
  assert.ok(readNumber(await number('entropy-key')) <= readNumber(await number('entropy-query')));
  await page.locator('#more-scaled input[type=range]').focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('#more-scaled [role=columnheader]').last().innerText(), /÷ 1\.5/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the two factors of the value matrix have the counts of the model and of GPT-3', async () => {
  const { dimensions } = await session.get('/api/model');
  const page = await session.open(link('factors'));
  const table = page.locator('#more-factors table');
  await table.getByText('150,994,944').waitFor();
  const rows = await table.locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
  const { channels, head_size: size } = dimensions;
  assert.deepEqual(rows.slice(0, 4).map(([own]) => readNumber(own)), [channels ** 2, channels * size, channels * size, 2 * channels * size]);
  assert.deepEqual(rows.slice(0, 4).map(([, gpt3]) => readNumber(gpt3)), [150994944, 1572864, 1572864, 3145728]);
  await page.context().close();
});

test('the additions of all heads have the lengths of the API’s results, and choosing one chooses the head', async () => {
  const { id, layers, heads } = await makeTrace();
  const page = await session.open(link('additions'));
  const bars = page.locator('#more-additions .bars button');
  await bars.first().waitFor();
  assert.equal(await bars.count(), layers * heads);
  for (const [of, index] of [[0, 0], [layer, head], [layers - 1, heads - 1]]) {
    const result = flat(await session.get(`/api/traces/${id}/arrays/blocks.${of}.attn.hook_result?positions=${position}&heads=${index}&format=json`));
    const label = await page.locator(`#more-additions [data-head=L${of}H${index}]`).getAttribute('aria-label');
    assertShows(label.split('length ')[1], Math.hypot(...result), label);
  }
  await page.locator(`#more-additions [data-head=L${layer}H${head}]`).focus();
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction((wanted) => location.hash.includes(`layer=${wanted}`), Math.min(layers - 1, layer + 1));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the words that a head promotes and suppresses have the attributions of the API', async () => {
  const { id } = await makeTrace();
  const { tokens: vocabulary } = await session.get('/api/vocabulary');
  const changed = async () => (await session.get('/api/status')).traces.filter(({ base }) => base !== null).length;
  const before = await changed();
  const page = await session.open(link('additions'));
  for (const list of ['positive', 'negative']) {
    const rows = page.locator(`#more-additions [data-testid=${list}] li`);
    await rows.first().waitFor();
    const shown = await rows.evaluateAll((all) => all.map((row) => [row.querySelector('.word').textContent, row.querySelector('.figure').textContent.replace('+', '')]));
    assert.equal(shown.length, 8);
    for (const [word, number] of [shown[0], shown[7]]) {
      const token = vocabulary.findIndex((one) => one.replace(/ /g, '␣') === word);
      if (token < 0 || vocabulary.filter((one) => one.replace(/ /g, '␣') === word).length > 1) continue; // bytes that have the same text
      const { parts } = await session.get(`/api/traces/${id}/attribution?by=head&token=${token}&position=${position}`);
      assertShows(number, parts.find(({ name }) => name === `L${layer}H${head}`).value, `${list}: ${word}`);
    }
    const sizes = shown.map(([, number]) => Math.abs(readNumber(number)));
    assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a), list);
  }
  await settled(page);
  assert.equal(await changed(), before, 'the traces made for it are deleted');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the memory’s key and value are the neuron’s contexts and words of the API', async () => {
  const { id } = await makeTrace();
  const { neurons: [{ neuron }] } = await session.get(`/api/traces/${id}/neurons?layer=${layer}&position=${position}&top=1&by=direct`);
  const { promotes, suppresses, activations } = await session.get(`/api/neurons/${layer}/${neuron}?trace=${id}`);
  const page = await session.open(link('memory'));
  const view = page.locator('#more-memory');
  await view.locator('[data-testid=memory-words] .word').first().waitFor();
  const words = await view.locator('[data-testid=memory-words] .word').allTextContents();
  assert.deepEqual(words, [...promotes.slice(0, 6), ...suppresses.slice(0, 6)].map(({ token }) => token.text.replace(/ /g, '␣')));
  assertShows(await view.locator('.here .figure').innerText(), activations[position], 'activation');
  await view.locator('[data-testid=memory-contexts] li').first().waitFor({ timeout: process.env.HEED_STATIC ? 240_000 : 60_000 });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the gradients by word equal those of the API', async () => {
  const { id } = await makeTrace();
  const { parts } = await session.get(`/api/traces/${id}/attribution?by=token&position=${position}&steps=16`);
  const page = await session.open(link('backward'));
  const rows = page.locator('#more-backward tbody tr');
  await rows.first().waitFor();
  const shown = await rows.evaluateAll((all) => all.map((row) => row.cells[2].textContent));
  assert.equal(shown.length, position + 1);
  shown.forEach((number, at) => assertShows(number, parts[at].value, `share of word ${at}`));
  await page.context().close();
});

test('the nearest words have the cosines of the API’s embeddings', async () => {
  const { id, tokens } = await makeTrace();
  const { tokens: vocabulary } = await session.get('/api/vocabulary');
  const page = await session.open(link('nearest'));
  await page.locator('#more-nearest tbody tr').first().waitFor({ timeout: 60_000 });
  const [first] = await page.locator('#more-nearest tbody tr').first().locator('li').evaluateAll((all) => all.map((one) => [one.querySelector('code').textContent, one.querySelector('.number').textContent]));
  const other = vocabulary.findIndex((one) => one.replace(/ /g, '␣') === first[0]);
  const { id: pair } = await makeTrace({ tokens: [tokens[position].id, other] });
  const [a, b] = await Promise.all([0, 1].map(async (at) => flat(await session.get(`/api/traces/${pair}/arrays/hook_embed?positions=${at}&format=json`))));
  const { shape: [count, channels], values } = await session.get('/api/weights/token_embedding?format=json');
  const mean = a.map((_, channel) => Array.from({ length: count }, (_, at) => values[at * channels + channel]).reduce((sum, number) => sum + number, 0) / count);
  const [centredA, centredB] = [a, b].map((row) => row.map((number, channel) => number - mean[channel]));
  const cosine = centredA.reduce((sum, number, at) => sum + number * centredB[at], 0) / (Math.hypot(...centredA) * Math.hypot(...centredB));
  assertShows(first[1], cosine, `${first[0]} in ${id}`);
  // Only cosines above chance are shown, and of deeper blocks one sentence says that there are none.
  for (const row of await page.locator('#more-nearest tbody tr').evaluateAll((rows) => rows.map((one) => [...one.querySelectorAll('li .number, td.number')].map((cell) => Number(cell.textContent.replace('−', '-')))))) {
    const chance = row.at(-1);
    for (const shown of row.slice(0, -1)) assert.ok(shown >= chance, `${shown} against ${chance}`);
  }
  assert.match(await page.locator('[data-testid=no-neighbours]').textContent(), /No word is nearer than chance/);
  await page.context().close();
});

test('no serious findings or overflow in any closer view', async () => {
  for (const id of views) {
    await Promise.all([[390, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
      const page = await session.open(link(id), { width, dark });
      await page.locator(`#more-${id} .inside > *`).first().waitFor();
      await settled(page);
      assert.deepEqual(await seriousFindings(page), [], `${id} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${id} at ${width}`);
      assert.deepEqual(page.problems, [], id);
      await picture(page, `views-${id}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});
