import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { meet, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertSame, assertShows, readNumber } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and the hare saw the fox';
const link = (more = '') => `#/follow?text=${encodeURIComponent(text)}&layer=1&head=2${more}`;

async function makeTrace() {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  assert.equal(response.status < 300, true);
  return response.json();
}

/** The cells of each key's row: token, q·k, score and weight. */
async function answers(page) {
  const table = page.getByRole('table', { name: /against every key/ });
  await table.waitFor();
  return table.locator('.row:not(.head, .ask, .rest, .sum)').evaluateAll((rows) =>
    rows.map((row) => ({
      position: Number(row.querySelector('.c-word').title.replace('position ', '')),
      product: row.querySelectorAll('.c-number')[0].textContent,
      score: row.querySelectorAll('.c-number')[1].textContent,
      share: row.querySelector('.c-share :is(.number, .figure)').textContent,
    })),
  );
}

test('the numbers on the page equal those of the API', async () => {
  const trace = await makeTrace();
  for (const [layer, head, position] of [[1, 2, trace.tokens.length - 1], [0, 1, 4], [3, 5, 0]]) {
    const walk = await session.get(`/api/traces/${trace.id}/walk?layer=${layer}&head=${head}&position=${position}`);
    const page = await session.open(`#/follow?text=${encodeURIComponent(text)}&layer=${layer}&head=${head}&position=${position}`);
    const more = page.getByRole('button', { name: /^All \d+ tokens$/ });
    await page.getByRole('table', { name: /against every key/ }).waitFor();
    if (await more.count()) await more.click();
    const rows = await answers(page);
    assert.equal(rows.length, walk.answers.length);
    for (const { position: at, product, score, share } of rows) {
      const answer = walk.answers[at];
      assertShows(product, answer.product, `q·k at ${at}`);
      if (answer.masked) assert.equal(score.trim(), '−∞');
      else assertShows(score, answer.scaled, `score at ${at}`);
      assertShows(share, answer.share, `share at ${at}`);
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test('the candidates equal those of the API, with the server’s default sampling and other settings', async () => {
  const trace = await makeTrace();
  for (const [sampling, changes] of [['', {}], ['&temperature=0.5&top-k=3&top-p=1&min-p=0', { temperature: 0.5, top_k: 3, top_p: 1, min_p: 0 }], ['&temperature=2&top-k=0&top-p=0.6', { temperature: 2, top_k: 0, top_p: 0.6 }]]) {
    const expected = await session.get(`/api/traces/${trace.id}/next?position=${trace.tokens.length - 1}&${await session.sampling(changes)}&limit=12`);
    const page = await session.open(link(sampling));
    const rows = page.locator('#next tbody tr');
    await rows.first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll('#next tbody tr').length === 12);
    const shown = await rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    expected.candidates.forEach((candidate, index) => {
      const [rank, token, logit, scaled, probability, drawn] = shown[index];
      assert.equal(Number(rank), candidate.rank);
      assert.equal(token, candidate.token.replace(/ /g, '␣'));
      assertShows(logit, candidate.logit, `logit of ${token}`);
      assertShows(scaled, candidate.scaled, `scaled logit of ${token}`);
      assertShows(probability, candidate.probability, `probability of ${token}`);
      if (!candidate.removed_by) assertShows(drawn, candidate.drawn, `chance of ${token}`);
      else assert.match(drawn, /^removed by (top|min)/);
    });
    assert.match(await page.locator('#next').innerText(), new RegExp(`\\b${expected.kept.toLocaleString('en-US')} of `));
    await page.context().close();
  }
});

test('the prediction after each block is that of the logit lens', async () => {
  const trace = await makeTrace();
  const { rows, cells } = await session.get(`/api/traces/${trace.id}/lens?top=3&positions=${trace.tokens.length - 1}`);
  const page = await session.open(link());
  const guesses = page.locator('#stream li .guess');
  await page.waitForFunction((count) => document.querySelectorAll('#stream .first').length === count, trace.layers);
  for (let layer = 0; layer < trace.layers; ++layer) {
    const [cell] = cells[rows.indexOf(layer === trace.layers - 1 ? 'final_post' : `${layer + 1}_pre`)];
    const shown = await guesses.nth(layer).locator('> span').evaluateAll((all) => all.map((one) => [one.querySelector('code').textContent, one.querySelector('.number').textContent]));
    assert.deepEqual(shown.map(([token]) => token), cell.tokens.map(({ text: token }) => token.replace(/ /g, '␣').replace(/\n/g, '↵')));
    shown.forEach(([token, share], index) => assertShows(share, cell.probabilities[index], `${token} after block ${layer}`));
  }
  await page.context().close();
});

test('a number shows its computation on focus and hover, and the terms add up', async () => {
  const page = await session.open(link());
  await answers(page);
  const tip = page.getByRole('tooltip');
  for (const [name, act] of [['focus', (one) => one.focus()], ['hover', (one) => one.hover()]]) {
    const product = page.locator('.match .row:not(.head, .ask) .c-number .figure').first();
    await product.scrollIntoViewIfNeeded();
    await page.waitForTimeout(200);
    await act(product);
    // the whole table at once: it may be redrawn while the page scrolls
    const cells = await tip.filter({ hasText: 'q·k' }).locator('tr.sum').evaluate((row) => [...row.parentElement.rows].map((one) => one.lastElementChild.textContent));
    const total = readNumber(cells.pop());
    const sum = cells.reduce((before, cell) => before + readNumber(cell), 0);
    assert.ok(cells.length > 2 && Math.abs(sum - total) < 0.01 * cells.length, `${name}: ${cells.join(' + ')} = ${total}`);
    await page.keyboard.press('Escape');
    await page.locator('h1').hover();
    await tip.waitFor({ state: 'hidden' });
  }
  const shareButton = page.locator('.match .c-share .figure').first();
  await shareButton.focus();
  await tip.filter({ hasText: 'Attention of “' }).locator('tr.sum').waitFor();
  await page.context().close();
});

test('probabilities, σ and the logit lens show their computations, equal to those of the API', async () => {
  const trace = await makeTrace();
  const position = trace.tokens.length - 1;
  const { candidates } = await session.get(`/api/traces/${trace.id}/next?position=${position}&temperature=0.5&top_k=3&top_p=1&min_p=0&repeat_penalty=1&limit=12`);
  const page = await session.open(link('&temperature=0.5&top-k=3&top-p=1&min-p=0'));
  await page.waitForFunction(() => document.querySelectorAll('#next tbody tr').length === 12);
  const tip = page.getByRole('tooltip');
  /** All rows of the popover: [label, number]. */
  const linesOf = async (selector, title) => {
    await page.locator(selector).first().focus();
    return tip.filter({ hasText: title }).locator('table').evaluate((table) => [...table.rows].map((row) => [row.cells[0].textContent, row.lastElementChild.textContent]));
  };
  const cell = (row, column) => `#next tbody tr:nth-child(${row}) td:nth-child(${column}) .figure`;

  const probability = await linesOf(cell(2, 5), 'Probability of');
  assertShows(probability[0][1], candidates[1].probability, 'probability');
  assert.ok(Math.abs(probability.slice(0, -1).reduce((sum, [, share]) => sum + (share.startsWith('<') ? 0 : readNumber(share)), 0) - 1) < 0.01, JSON.stringify(probability));
  assert.match(probability.at(-2)[0], /^[\d,]+ others$/);

  const chance = await linesOf(cell(2, 6), 'Probability that');
  assert.deepEqual(chance.map(([what]) => what), ['model', 'top-k 3', 'temperature 0.5']);
  for (const [index, expected] of [candidates[1].probability, candidates[1].after['top-k'], candidates[1].drawn].entries()) assertShows(chance[index][1], expected, chance[index][0]);
  assert.deepEqual((await linesOf(cell(4, 6), 'Probability that')).map(([what]) => what), ['model', 'top-k 3']);

  const scaled = await linesOf(cell(1, 4), 'divided by the temperature');
  assertShows(scaled.at(-1)[1], candidates[0].logit / 0.5, 'logit over the temperature');

  const spread = await session.get(`/api/traces/${trace.id}/arrays/blocks.1.ln1.hook_scale?positions=${position}&format=json`);
  const sigma = await linesOf('#attention .name .figure', 'Standard deviation');
  assertShows(sigma.at(-1)[1], spread.values[0], 'σ');
  assert.ok(Math.abs(sigma.slice(0, -1).reduce((sum, [, term]) => sum + readNumber(term), 0) - spread.values[0]) < 0.01);

  const shares = await linesOf('#attention .sum .figure', 'All attention weights');
  assertShows(shares.at(-1)[1], 1, 'all shares');
  const guess = await linesOf('#stream .figure', 'after block 0');
  assertShows(guess.at(-1)[1], 1, 'the guesses');
  await linesOf('.first .next .figure', 'Probability of');
  await linesOf('.first .said .figure', 'Attention of');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a strip shows each of its numbers by keyboard', async () => {
  const trace = await makeTrace();
  const position = trace.tokens.length - 1;
  const page = await session.open(link());
  await answers(page);
  const strip = page.getByRole('slider', { name: /^Residual stream before block 1/ }).first();
  await strip.focus();
  for (let step = 0; step < 3; ++step) await page.keyboard.press('ArrowRight');
  const said = await strip.getAttribute('aria-valuetext');
  const derivation = await session.get(`/api/traces/${trace.id}/derivation?point=blocks.1.hook_resid_pre&layer=1&position=${position}&index=3`);
  assert.match(said, /^channel 3: /);
  assertShows(said.replace('channel 3: ', ''), derivation.value, said);
  await page.getByRole('tooltip').locator('tr.sum').waitFor();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('ol.numbers li').count(), trace.dimensions.channels);
  await page.context().close();
});

test('by keyboard: select a word, a head and a temperature, and append the next token', async () => {
  const page = await session.open(link('&temperature=1'));
  await answers(page);
  const words = page.getByRole('toolbar', { name: 'Tokens of the prompt' });
  await words.locator('button[tabindex="0"]').focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('position=0'));
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('position=1'));
  await page.keyboard.press('End');

  await page.locator('#head-1-2').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('layer=2') && location.hash.includes('head=3'));
  await page.getByRole('heading', { name: /block 2, head 3/ }).waitFor();

  await page.getByRole('slider', { name: 'Temperature' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('temperature=1.05'));

  const add = page.getByRole('button', { name: /^Append / }).first();
  const word = (await add.innerText()).replace(/␣/g, ' ');
  await add.focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction((expected) => document.querySelector('#prompt-text').value === expected, text + word);
  await page.locator('[role=status]').filter({ hasText: /tokens/ }).waitFor({ state: 'attached' });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the whole vocabulary can be searched and paged', async () => {
  const page = await session.open(link());
  const rank = page.locator('#next tbody tr:first-child td:first-child');
  await rank.waitFor();
  await page.getByRole('button', { name: 'less likely →' }).click();
  await page.waitForFunction(() => document.querySelector('#next tbody td')?.textContent === '13');
  await page.getByRole('searchbox', { name: 'Search the vocabulary' }).fill('hare');
  await page.waitForFunction(() => [...document.querySelectorAll('#next tbody tr')].every((row) => row.cells[1].textContent.includes('hare')));
  await page.context().close();
});

test('a section is exported: CSV, JSON, npy and a link', async () => {
  const page = await session.open(link());
  await answers(page);
  const part = page.locator('#attention');
  const file = async (kind) => {
    await part.locator('summary', { hasText: 'Export' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), part.getByRole('button', { name: kind, exact: true }).click()]);
    return readFile(await download.path());
  };
  const trace = await makeTrace();
  const walk = await session.get(`/api/traces/${trace.id}/walk?layer=1&head=2&position=${trace.tokens.length - 1}`);
  const lines = (await file('CSV')).toString().trim().split('\r\n');
  assert.equal(lines.length, walk.answers.length + 1);
  const rows = JSON.parse(await file('JSON'));
  rows.forEach((row, index) => assertSame(row.share, walk.answers[index].share, `share ${index}`));
  const npy = await file('npy');
  assert.equal(npy.subarray(1, 6).toString(), 'NUMPY');
  assert.match(npy.subarray(10, 128).toString(), new RegExp(`'shape': \\(${trace.tokens.length}, ${trace.tokens.length}\\)`));
  await page.context().close();
});

test('no serious findings or overflow in both themes and at all widths', async () => {
  await Promise.all([[360, false], [360, true], [1280, false], [1280, true], [1920, false], [1920, true]].map(async ([width, dark]) => {
    const page = await session.open(link(), { width, dark });
    // Sections are folded on narrow screens.
    await page.locator('#next').waitFor();
    for (const fold of await page.locator('.fold').all()) await fold.click();
    await answers(page);
    await settled(page);
    assert.deepEqual(await seriousFindings(page), [], `${width} ${dark ? 'dark' : 'light'}`);
    assert.equal(await overflowsSideways(page), false, `${width}`);
    assert.deepEqual(page.problems, []);
    await picture(page, `follow-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }));
});

test('animations run, unless reduced motion is preferred', async () => {
  const durations = async (motion) => {
    const page = await session.open(link(), { motion });
    await answers(page);
    const seconds = await page.locator('.traveller').evaluate((element) => parseFloat(getComputedStyle(element).animationDuration));
    await page.context().close();
    return seconds;
  };
  assert.ok((await durations('no-preference')) > 0.5);
  assert.ok((await durations('reduce')) < 0.01);
});

test('a word that is clicked asks for the numbers of the first view before all others', async () => {
  const page = await session.open(link());
  await answers(page);
  await page.locator('#next tbody tr').first().waitFor();
  await settled(page);
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const asked = [];
  await meet(page, /^\/api\/traces\/[^/]+\/./, ({ path }) => {
    asked.push(/([^/]+)\?/.exec(path)[1]);
    return path.includes('/walk?') ? held : undefined;
  });
  const said = page.locator('.said strong.query');
  await page.getByRole('region', { name: 'At a glance' }).locator('.tokens > button').nth(5).click();
  await page.locator('.first .next h2').filter({ hasText: '“forest”' }).waitFor();
  await page.waitForTimeout(700);
  assert.deepEqual([...asked].sort(), ['next', 'walk']);
  release();
  await said.filter({ hasText: '“forest”' }).waitFor();
  await page.getByRole('heading', { name: /the query of “forest”/ }).waitFor();
  await settled(page);
  assert.ok(asked.length > 10, `the sections below follow: ${asked}`);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});
