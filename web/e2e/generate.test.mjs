import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, openTables, overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const text = 'The fox waited in the forest, and';
const greedy = '&temperature=0&top-k=0&top-p=1&min-p=0';
const link = (more = '') => `#/generate?text=${encodeURIComponent(text)}&layer=1&head=2${more}`;

async function post(path, body) {
  const response = await fetch(session.address + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response;
}

async function generated(body) {
  const stream = await (await post('/api/generate', body)).text();
  return [...stream.matchAll(/event: token\r?\ndata: (.*)/g)].map(([, data]) => JSON.parse(data));
}

const drawn = (page) => page.getByTestId('written').locator('button').evaluateAll((all) => all.map((one) => one.textContent.trim()));
const shownText = (token) => token.replace(/ /g, '␣').replace(/\n/g, '↵');
const written = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll('[data-testid=written] button').length === wanted, count);

test('the mode opens without serious findings or sideways scrolling', async () => {
  const [first] = await generated({ text, max_new_tokens: 1, temperature: 0 });
  const ids = (await (await post('/api/tokenize', { text })).json()).tokens.map(({ id }) => id).join('.').slice(0, 40);
  await Promise.all([[360, true], [1280, false], [1920, true]].map(async ([width, dark]) => {
    const page = await session.open(link(`&drawn=${first.token.id}&prompt=${ids}&at=0`), { width, dark });
    await page.getByTestId('distribution').waitFor();
    await settled(page);
    await written(page, 1);
    assert.deepEqual(page.problems, []);
    await openTables(page);
    assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
    assert.equal(await overflowsSideways(page), false, `at ${width}`);
    await picture(page, `generate-${width}-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }));
});

test('steps forward, back and through past steps by keyboard, with the tokens, distribution and attention of the API', async () => {
  const wanted = await generated({ text, max_new_tokens: 4, temperature: 0 });
  const page = await session.open(link(greedy));
  await page.getByRole('button', { name: 'Step', exact: true }).focus();
  for (let count = 1; count <= 4; ++count) {
    await page.keyboard.press('Enter');
    await written(page, count);
  }
  assert.deepEqual(await drawn(page), wanted.map(({ token }) => shownText(token.text)));

  await page.getByRole('button', { name: 'Back', exact: true }).focus();
  await page.keyboard.press('Enter');
  await written(page, 3);
  const prompt = (await (await post('/api/tokenize', { text })).json()).tokens.map(({ id }) => id);
  const whole = await (await post('/api/traces', { tokens: [...prompt, ...wanted.slice(0, 3).map(({ token }) => token.id)] })).json();

  const scrub = page.getByRole('slider', { name: /step/i });
  await scrub.focus();
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => location.hash.includes('at=2'));
  const position = prompt.length + 1;
  const { candidates } = await session.get(`/api/traces/${whole.id}/next?position=${position}&temperature=0&top_k=0&top_p=1&min_p=0&repeat_penalty=1&limit=12`);
  const first = page.getByTestId('distribution').locator('tbody tr').first();
  await page.getByTestId('distribution').locator(`tbody tr.drew`).waitFor();
  assert.equal((await first.locator('th').textContent()).trim(), shownText(candidates[0].token));
  assertShows(await first.locator('td').nth(1).textContent(), candidates[0].probability, 'the likeliest');

  const answer = await session.get(`/api/traces/${whole.id}/attention/self/1/2/rows/${position}?top=6`);
  const positions = answer.positions.filter(({ weight }) => weight > 0);
  // All places, since the first is often that of the step before, too.
  await page.waitForFunction((places) => {
    const items = document.querySelectorAll('.lists ol')[0]?.querySelectorAll('.place') ?? [];
    return [...items].map((item) => item.textContent).join() === places;
  }, positions.map(({ position: place }) => place).join());
  const weights = await page.locator('.lists ol').first().locator('.weight').allTextContents();
  positions.forEach(({ weight }, index) => assertShows(weights[index], weight, `attention of the step, ${index}`));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('generates, pauses, and gives the same text with the same seed', async () => {
  const stories = [];
  for (const way of ['run', 'step']) {
    const page = await session.open(link('&seed=7'));
    if (way === 'run') {
      await page.getByRole('button', { name: 'Generate', exact: true }).click();
      await page.waitForFunction(() => document.querySelectorAll('[data-testid=written] button').length >= 5);
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByRole('button', { name: 'Generate', exact: true }).waitFor();
    } else {
      for (let count = 1; count <= 5; ++count) {
        await page.getByRole('button', { name: 'Step', exact: true }).click();
        await written(page, count);
      }
    }
    stories.push((await drawn(page)).slice(0, 5));
    const again = await session.open(new URL(page.url()).hash);
    await again.waitForFunction(() => document.querySelectorAll('[data-testid=written] button').length >= 5);
    assert.deepEqual((await drawn(again)).slice(0, 5), stories.at(-1));
    await again.context().close();
    await page.context().close();
  }
  assert.deepEqual(stories[0], stories[1]);
});

test('the settings change the distribution before a token is drawn, and a token can be chosen by hand', async () => {
  const trace = await (await post('/api/traces', { text })).json();
  const page = await session.open(link());
  for (const { label } of (await session.get('/props')).sampling_options) await page.getByRole('slider', { name: label, exact: true }).waitFor();
  await page.getByRole('slider', { name: 'Top-k' }).focus();
  await page.keyboard.press('Home');
  for (let step = 0; step < 3; ++step) await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('top-k=3'));
  const { kept, candidates } = await session.get(`/api/traces/${trace.id}/next?${await session.sampling({ top_k: 3 })}&limit=12`);
  await page.waitForFunction((count) => document.querySelector('[aria-label=Distribution] p strong')?.textContent === String(count), kept);
  const rows = await page.getByTestId('distribution').locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
  candidates.forEach((candidate, index) => {
    assertShows(rows[index][2], candidate.probability, `${candidate.token}, model`);
    if (candidate.removed_by === null) assertShows(rows[index][3], candidate.drawn, `${candidate.token}, drawn`);
    else assert.equal(rows[index][3], `removed by ${candidate.removed_by}`);
  });
  await page.getByTestId('distribution').locator('tbody tr').nth(1).getByRole('button').click();
  await written(page, 1);
  assert.deepEqual(await drawn(page), [shownText(candidates[1].token)]);
  await page.context().close();
});

test('the text and its distribution are exported as pictures', async () => {
  const page = await session.open(link());
  await page.getByTestId('distribution').waitFor();
  const [first] = await page.getByTestId('distribution').locator('tbody th').allTextContents();
  for (const [region, holds] of [['Generated text', '␣fox'], ['Distribution', first.trim()]]) {
    const menu = page.getByRole('region', { name: region }).locator('details.export');
    const svg = (await exported(page, menu, 'SVG')).toString();
    assert.match(svg, /^<svg [^>]*width="\d+"/);
    assert.ok(svg.includes(`>${holds}</text>`), `${region} holds ${holds}`);
    assert.equal((await exported(page, menu, 'PNG')).toString('latin1', 1, 4), 'PNG');
  }
  await page.context().close();
});
