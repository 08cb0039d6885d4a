import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exported, overflowsSideways, picture, seriousFindings, settled, translatorOf, useExplorer } from './harness.mjs';
import { assertSame, assertShows } from './numbers.mjs';

const session = useExplorer();
const chapters = ['tokens', 'embeddings', 'head', 'mask', 'heads', 'block', 'depth', 'training', 'two-texts'];

test('the tour is navigated by keyboard from the first to the last chapter', async () => {
  const page = await session.open('#/learn');
  const current = page.locator('nav [aria-current="step"]');
  for (let index = 0; index < chapters.length; ++index) {
    assert.match(await current.innerText(), new RegExp(`^${index + 1}`));
    await page.locator('.live > .card').first().waitFor();
    await page.locator('article .katex').first().waitFor();
    if (index === chapters.length - 1) break;
    await page.locator('article .turn button.primary').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction((id) => location.hash.includes(`chapter=${id}`), chapters[index + 1]);
  }
  await page.locator('article .turn button.primary').focus();
  await page.keyboard.press('Enter');
  await page.getByTestId('summary').locator('li').nth(8).waitFor();
  await page.getByRole('button', { name: /Now follow a word/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /Follow one word/ }).waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('an element of a matrix shows its computation by keyboard', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=head&layer=1&head=2&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const { id } = await made.json();
  const tip = page.getByRole('tooltip');
  const lastOf = (title) => tip.filter({ hasText: title }).locator('tr.sum td').last();
  await page.getByRole('application', { name: /^Queries Q/ }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  const query = await session.get(`/api/traces/${id}/derivation?point=blocks.1.attn.hook_q&layer=1&head=2&position=1&index=1`);
  assertShows(await lastOf('dimension 1').textContent(), query.value, 'query');
  await page.getByRole('application', { name: /^Pattern A/ }).focus();
  await page.keyboard.press('ArrowDown');
  assertShows(await lastOf('Attention of').textContent(), 1, 'shares');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight'); // masked: nothing to tell
  await tip.waitFor({ state: 'hidden' });
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('the sentence stays across chapters, the reader’s own or an example', async () => {
  const { examples } = await session.get('/api/model');
  const page = await session.open('#/learn?chapter=tokens');
  const textNow = () => new URLSearchParams(page.url().split('?')[1]).get('text');
  const next = async (index) => {
    await page.locator('nav li button').nth(index).click();
    await page.waitForFunction((id) => location.hash.includes(`chapter=${id}`), chapters[index]);
  };
  const prompt = page.getByLabel('Prompt', { exact: true });
  await prompt.fill('The fox slept');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('fox'));
  for (let index = 1; index < chapters.length; ++index) {
    await next(index);
    assert.equal(textNow(), 'The fox slept', chapters[index]);
    if (chapters[index] !== 'two-texts') assert.equal(await prompt.inputValue(), 'The fox slept');
  }
  // A chapter offers a sentence that shows it well, which then stays as well.
  await next(2);
  await page.getByRole('button', { name: 'Use a sentence that shows it well' }).click();
  const offered = examples.find(({ id }) => id === 'mole-animal').text;
  await page.waitForFunction((text) => new URLSearchParams(location.hash.split('?')[1]).get('text') === text, offered);
  await next(3);
  assert.equal(textNow(), offered);
  await page.context().close();
});

test('a first visit opens the tour with three doors, which are closed for good', async () => {
  const page = await session.open();
  const start = page.getByRole('region', { name: 'Look inside a language model' });
  assert.equal(new URL(page.url()).hash.split('?')[0], '#/learn');
  assert.deepEqual(await start.getByRole('heading', { level: 3 }).allInnerTexts(), ['Nine short steps', 'Your own sentence', 'GPT-3 in numbers']);
  await start.getByRole('button', { name: 'Begin with step 1' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('chapter=tokens'));
  await start.waitFor({ state: 'detached' });
  await page.goto(session.page);
  await page.locator('article h2').first().waitFor();
  assert.equal(await start.count(), 0);
  await page.context().close();

  const own = await session.open();
  await own.getByLabel('Your sentence').fill('The fox saw the');
  await own.keyboard.press('Enter');
  await own.getByRole('heading', { level: 1, name: /Follow one word/ }).waitFor();
  assert.equal(await own.getByLabel('Prompt', { exact: true }).inputValue(), 'The fox saw the');
  await own.context().close();

  const gpt3 = await session.open();
  await gpt3.getByRole('link', { name: 'Count them' }).click();
  await gpt3.waitForFunction(() => location.hash.startsWith('#/count') && location.hash.includes('config=gpt3') && /1,403 GPT-2s/.test(document.querySelector('main')?.textContent ?? ''));
  await gpt3.context().close();
});

test('the tour works where the browser stores nothing', async () => {
  const page = await session.open();
  await page.addInitScript(() => Object.defineProperty(globalThis, 'localStorage', { get: () => { throw new DOMException('denied', 'SecurityError'); } }));
  await page.reload();
  await page.getByRole('button', { name: 'Close this card' }).click();
  await page.getByRole('region', { name: 'Look inside a language model' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Use dark theme' }).click();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a lesson hides the other modes, in every link of it', async () => {
  const page = await session.open('#/learn?chapter=head&lesson=1');
  const tabs = page.getByRole('navigation', { name: 'Modes' }).getByRole('link');
  assert.deepEqual(await tabs.allInnerTexts(), ['Learn']);
  await page.locator('article .turn button.primary').click();
  await page.waitForFunction(() => location.hash.includes('chapter=mask'));
  assert.match(page.url(), /lesson=1/);
  for (let index = chapters.indexOf('mask'); index < chapters.length; ++index) await page.locator('article .turn button.primary').click();
  await page.getByTestId('summary').waitFor();
  assert.equal(await page.getByRole('button', { name: /Now follow a word/ }).count(), 0);
  await page.context().close();
});

test('a term that is tapped is defined, in the words of the notation', async () => {
  const page = await session.open('#/learn?chapter=tokens', { width: 390 });
  const definition = page.locator('#term-definition');
  const term = page.getByRole('button', { name: 'vocabulary', exact: true });
  await term.focus();
  await page.keyboard.press('Enter');
  await definition.getByText('all tokens that a model knows').waitFor();
  const [frame, width] = [await definition.boundingBox(), 390];
  assert.ok(frame.x >= 0 && frame.x + frame.width <= width, JSON.stringify(frame));
  assert.deepEqual(await seriousFindings(page), []);
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.getElementById('term-definition').textContent.trim() === '');
  await term.click();
  await definition.getByText('vocabulary').waitFor();
  await page.locator('article h2').click();
  await page.waitForFunction(() => document.getElementById('term-definition').textContent.trim() === '');
  await page.context().close();
});

test('every paragraph that points at the picture lights a part of it', async () => {
  for (const chapter of chapters.slice(0, -1)) {
    const page = await session.open(`#/learn?chapter=${chapter}`);
    await page.locator('.live > *').first().waitFor();
    await settled(page);
    const points = page.getByRole('button', { name: 'Show this in the picture' });
    const count = await points.count();
    assert.ok(count > 0, chapter);
    for (let index = 0; index < count; ++index) {
      await points.nth(index).focus();
      await page.keyboard.press('Enter');
      await page.locator('.pointed-at').first().waitFor({ timeout: 5000 }).catch(() => assert.fail(`${chapter}: paragraph ${index} points at nothing`));
      await page.keyboard.press('Enter');
      await page.locator('.pointed-at').first().waitFor({ state: 'detached' });
    }
    await page.context().close();
  }
});

test('positions: without them the first block is blind to the order, and later blocks are not', async () => {
  const text = 'Late one evening, a fluffy blue hare';
  const page = await session.open(`#/learn?chapter=mask&text=${encodeURIComponent(text)}`);
  await page.locator('section[data-shows=order]').scrollIntoViewIfNeeded();
  const rows = page.getByTestId('order').locator('tbody tr');
  await rows.nth(1).waitFor();
  const { tokens } = await post('/api/traces', { text });
  const ids = tokens.map(({ id }) => id);
  const other = [...ids];
  [other[5], other[6]] = [other[6], other[5]]; // “fluffy” and “blue”
  const length = (vector) => Math.hypot(...vector);
  for (const [row, interventions] of [[], [{ kind: 'ablate', point: 'hook_pos_embed' }]].entries()) {
    const made = await Promise.all([ids, other].map((list) => post('/api/traces', { tokens: list, interventions })));
    const measure = async (point) => {
      const [one, two] = await Promise.all(made.map(async ({ id }) => (await session.get(`/api/traces/${id}/arrays/${point}?positions=7&format=json`)).values.flat(Infinity)));
      return length(one.map((number, index) => number - two[index])) / length(one);
    };
    const [first, last] = [await measure('blocks.0.hook_attn_out'), await measure('blocks.5.hook_resid_post')];
    const cells = await rows.nth(row).locator('td').allInnerTexts();
    if (row === 1) {
      assert.ok(first < 1e-4, `${first}: rounding of f32 sums`);
      assert.equal(cells[0].replace('\u00a0', ' '), '0 %');
    } else assertShows(cells[0], first, 'attention of block 0');
    assert.ok(last > 0.01, `${last}: the mask tells the order`);
    assertShows(cells[1], last, 'all blocks');
  }
  await page.context().close();
});

test('the growth of the work is that of this model', async () => {
  const { dimensions } = await session.get('/api/model');
  const page = await session.open(`#/learn?chapter=mask&text=${encodeURIComponent('The fox waited in the forest')}`);
  await page.locator('section[data-shows=growth]').scrollIntoViewIfNeeded();
  const own = page.getByTestId('growth').locator('tr.own');
  await own.waitFor();
  const count = 6;
  const products = (positions) => (dimensions.layers * dimensions.heads * positions * (positions + 1)) / 2;
  assertShows(await own.locator('td').first().innerText(), products(count), 'products');
  const said = await page.locator('section[data-shows=growth] .lead strong').innerText();
  assertShows(said, products(2 * count) / products(count), 'twice as many words');
  await page.context().close();
});

test('a question is answered by what was measured, and counted once', async () => {
  const text = 'Late one evening, a fluffy blue hare';
  const page = await session.open(`#/learn?chapter=head&text=${encodeURIComponent(text)}&layer=4&head=1`);
  const ask = page.getByRole('region', { name: 'Predict, then see' });
  const choices = ask.getByRole('group', { name: 'Answers' }).getByRole('button');
  await choices.first().waitFor();
  const [, word, layer, head] = /comes after “([^”]+)”.*block (\d+), head (\d+)/.exec(await ask.innerText());
  const { id, tokens } = await post('/api/traces', { text });
  const position = tokens.findLastIndex((token) => token.text.trim() === word);
  const { edge } = await session.get(`/api/traces/${id}/head?position=${position}&unit=words`);
  assert.deepEqual([edge.layer, edge.head, edge.decides], [Number(layer), Number(head), true]);
  assert.ok(edge.likeliest.after <= edge.likeliest.before / 2, 'the prediction hangs on it');
  const right = `“${edge.key.text.trim()}”`;
  const names = await choices.allInnerTexts();
  assert.equal(names.filter((name) => name.includes(right)).length, 1);
  await choices.nth(names.findIndex((name) => !name.includes(right))).focus();
  await page.keyboard.press('Enter');
  const because = page.getByTestId('because');
  await because.waitFor();
  assert.match(await because.innerText(), new RegExp(`Answer: ${right}`));
  assertShows(/gives “[^”]+” ([\d.]+\s%)/.exec(await because.innerText())[1], edge.weight, 'the weight');
  const [, before, after] = /falls from ([\d.]+\s%) to ([\d.]+\s%)/.exec(await because.innerText());
  assertShows(before, edge.likeliest.before, 'as it is');
  assertShows(after, edge.likeliest.after, 'with the edge cut');
  assert.match(await page.getByTestId('tally').innerText(), /Predicted right: 0 of 1/);
  // Another answer counts no more; another chapter does.
  await choices.nth(names.findIndex((name) => name.includes(right))).focus();
  await page.keyboard.press('Enter');
  assert.match(await page.getByTestId('tally').innerText(), /0 of 1/);
  await page.locator('article .turn button.primary').click();
  await page.getByRole('button', { name: 'None', exact: true }).click();
  await page.waitForFunction(() => /Predicted right: 1 of 2/.test(document.querySelector('[data-testid=tally]')?.textContent ?? ''));
  await page.reload();
  await page.waitForFunction(() => /Predicted right: 1 of 2/.test(document.querySelector('[data-testid=tally]')?.textContent ?? ''));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('every chapter asks a question on the opening sentence', async () => {
  const translator = await translatorOf(session);
  for (const chapter of chapters.filter((one) => one !== 'two-texts' || translator)) {
    const page = await session.open(`#/learn?chapter=${chapter}`);
    const choices = page.getByRole('group', { name: 'Answers' }).getByRole('button');
    await choices.first().waitFor().catch(() => assert.fail(`${chapter}: no question`));
    assert.ok((await choices.count()) >= 2, chapter);
    await choices.first().click();
    assert.equal(await page.locator('.choices .right').count(), 1, chapter);
    assert.match(await page.getByTestId('because').innerText(), /\d|none/, chapter);
    await page.context().close();
  }
});

test('the worksheet is two pages on A4 and on Letter, and its answers follow from what is printed', async () => {
  const text = 'Late one evening, a fluffy blue hare';
  const long = 'At dawn Inspector Pike came in a black car and spoke to them one by one. Outside, fog hid the gate.';
  for (const link of [`#/learn?worksheet=1&text=${encodeURIComponent(text)}&layer=4&head=1`, `#/learn?worksheet=1&text=${encodeURIComponent(long)}`, '#/learn?worksheet=1']) {
    const page = await session.open(link, { dark: link.endsWith('=1') });
    await page.getByTestId('worksheet').waitFor();
    await settled(page);
    for (const format of ['A4', 'Letter']) {
      const pdf = (await page.pdf({ format })).toString('latin1');
      assert.equal((pdf.match(/\/Type\s*\/Page\b(?!s)/g) ?? []).length, 2, `${link} on ${format}`);
    }
    // Nothing is cut off at the end of a page, nor at its side where the paper is narrower.
    await page.emulateMedia({ media: 'print' });
    await page.setViewportSize({ width: 703, height: 963 }); // 186 × 255 mm: what the margins leave of A4's width and of Letter's height
    const cutOf = () => [...document.querySelectorAll('.sheet')].map((sheet) => Math.max(sheet.scrollHeight - sheet.clientHeight, sheet.scrollWidth - sheet.clientWidth));
    // The layout of another medium may come a moment later. (A string instead of a function would be `eval`, which the page's policy refuses.)
    await page.waitForFunction(() => [...document.querySelectorAll('.sheet')].every((sheet) => sheet.scrollHeight <= sheet.clientHeight + 1 && sheet.scrollWidth <= sheet.clientWidth + 1)).catch(async (error) => assert.fail(`${link}: ${await page.evaluate(cutOf)}: ${error}`));
    assert.ok((await page.locator('.sheet').evaluateAll((sheets) => sheets.map((sheet) => sheet.offsetHeight))).every((height) => height <= 963), link);
    await page.context().close();
  }
  const page = await session.open(`#/learn?worksheet=1&text=${encodeURIComponent(text)}&layer=4&head=1`);
  const answers = (await page.locator('.answers').innerText()).replaceAll('−', '-');
  const { id, tokens } = await post('/api/traces', { text });
  const [, layer, head] = /in block (\d+), head (\d+)/.exec(await page.getByRole('heading', { name: /^2 · Attention/ }).innerText());
  const row = (await session.get(`/api/traces/${id}/attention/self/${layer}/${head}/rows/7?format=json`)).values.flat(Infinity);
  const most = row.indexOf(Math.max(...row));
  assert.ok(row[most] < 0.9, `something to calculate: ${row}`);
  assert.ok(answers.includes(`1 a) ${tokens.length} b) ${tokens[7].id}`), answers);
  const told = Number(new RegExp(`${tokens[most].text.trim()} ([\\d.]+)`).exec(answers)[1]);
  assert.ok(Math.abs(told - row[most]) < 0.002, `${told}: three decimals of ${row[most]}`);
  // The last column is the product of the printed weight and value; the blanks' weights are in the answers.
  const numbers = (cells) => cells.map((cell) => (cell === '' ? null : Number(cell.replaceAll('−', '-'))));
  const cells = (await page.locator('.sheet').first().locator('table').first().locator('tbody tr:not(.sum)').evaluateAll((rows) => rows.map((one) => [...one.cells].map((cell) => cell.textContent)))).map((one) => numbers(one.slice(1)));
  const total = cells.reduce((sum, [, power]) => sum + power, 0);
  const products = /products: ([^;]+);/.exec(answers)[1].split(', ').map(Number);
  assert.equal(products.length, cells.length);
  cells.forEach(([, power, weight, number], index) => {
    const share = weight ?? Number((power / total).toFixed(3));
    assert.ok(Math.abs(products[index] - share * number) <= 0.00051, `row ${index}: ${share} × ${number} is ${products[index]}`);
  });
  // The surprises are those of the printed probabilities.
  const printed = await page.locator('.sheet').nth(1).locator('table').last().locator('tbody tr:not(.sum)').evaluateAll((rows) => rows.map((one) => Number(one.cells[2].textContent)));
  const said = /\. 6 ([\d., ]+); average/.exec(answers)[1].split(', ').map(Number);
  printed.forEach((chance, index) => assert.ok(Math.abs(said[index] + Math.log(chance)) <= 0.0051, `${said[index]} of ${chance}`));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('no text is wider than its box on a phone, in any chapter', async () => {
  for (const chapter of [...chapters, 'summary']) {
    const page = await session.open(`#/learn?chapter=${chapter}`, { width: 390, height: 844 });
    await page.locator('.live > *').first().waitFor();
    await settled(page);
    // Those that are rendered when they come near the window.
    for (let down = 0; down < 12; ++down) {
      await page.mouse.wheel(0, 800);
      await page.waitForTimeout(60);
    }
    await settled(page);
    const wide = await page.evaluate(() => [...document.querySelectorAll('main *')].filter((one) => {
      if (!(one instanceof HTMLElement) || one.closest('.unseen, .katex-mathml') || one.clientWidth === 0) return false;
      const style = getComputedStyle(one);
      const scrolls = ['auto', 'scroll'].includes(style.overflowX) && !one.matches('.katex-display'); // a formula has to be seen whole
      return style.display !== 'inline' && !scrolls && one.tagName !== 'INPUT' && one.tagName !== 'TEXTAREA' && one.innerText.trim() !== '' && one.scrollWidth > one.clientWidth + 1 && !(one.closest('.katex') && !one.matches('.katex-display'));
    }).map((one) => `${one.tagName}.${one.className} ${one.scrollWidth} > ${one.clientWidth}: ${one.innerText.slice(0, 40)}`));
    assert.deepEqual(wide, [], chapter);
    await page.context().close();
  }
});

test('heads are named in words, and sentences keep their spaces', async () => {
  const translator = await translatorOf(session);
  for (const chapter of [...chapters, 'summary']) {
    const page = await session.open(`#/learn?chapter=${chapter}`);
    await page.locator('.live > *').first().waitFor();
    await settled(page);
    if (chapter !== 'summary' && (chapter !== 'two-texts' || translator)) {
      await page.getByRole('group', { name: 'Answers' }).getByRole('button').first().click();
      await page.getByTestId('because').waitFor();
    }
    const text = await page.evaluate(() => {
      const copy = document.querySelector('.learn').cloneNode(true);
      for (const one of copy.querySelectorAll('code.chip, button.chip, .katex, table, .head, [aria-hidden], details, .small [role=row]')) one.remove();
      return [...copy.querySelectorAll('p')].map((one) => one.textContent.replace(/\s+/g, ' ')).join('\n');
    });
    assert.doesNotMatch(text, /\bL\d+H\d+\b/, chapter);
    assert.doesNotMatch(text, /[a-z][.;:][A-Z]|[a-z]“|\d(?:yours|longest)|(?:^|\. )block \d/m, chapter);
    await page.context().close();
  }
});

test('the surprise at each token equals that of the API', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=training&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const trace = await made.json();
  await page.locator('.live > .card').first().locator('tbody tr').first().waitFor();
  const shown = await page.locator('.live > .card').first().locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(shown.length, trace.tokens.length - 1);
  let sum = 0;
  for (let position = 0; position + 1 < trace.tokens.length; ++position) {
    const { candidates } = await session.get(`/api/traces/${trace.id}/next?position=${position}&temperature=1&limit=0`);
    const chance = candidates.find(({ id }) => id === trace.tokens[position + 1].id).probability;
    assertShows(shown[position][2], chance, `chance at ${position}`);
    assertShows(shown[position][3], -Math.log(chance), `surprise at ${position}`);
    sum -= Math.log(chance);
  }
  assertShows(await page.locator('.loss').innerText(), sum / shown.length, 'loss');
  await page.context().close();
});

test('every chapter’s live view can be exported', async () => {
  for (const chapter of chapters) {
    const page = await session.open(`#/learn?chapter=${chapter}`);
    const menu = page.locator('.live details.export').first();
    await menu.waitFor();
    await settled(page); // what comes later may stand before it
    if (chapter === 'heads') assert.equal((await exported(page, menu, 'PNG')).toString('latin1', 1, 4), 'PNG');
    else assert.match((await exported(page, menu, 'SVG')).toString(), /^<svg [^]*<\/svg>$/, chapter);
    assert.ok((await exported(page, menu, 'CSV')).toString().split('\r\n').length > 2, chapter);
    assert.deepEqual(page.problems, [], chapter);
    await page.context().close();
  }
});

test('the exported matrices of a head equal those of the API', async () => {
  const text = 'The fox waited in the forest';
  const page = await session.open(`#/learn?chapter=head&layer=1&head=2&text=${encodeURIComponent(text)}`);
  const made = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) });
  const { id } = await made.json();
  const { values, shape } = await session.get(`/api/traces/${id}/arrays/blocks.1.attn.hook_q?heads=2&format=json`);
  const menu = page.locator('.live .card', { hasText: 'The formula' }).locator('details.export');
  const file = await exported(page, menu, 'npy: Q');
  const header = file.readUInt16LE(8);
  assert.match(file.toString('latin1', 10, 10 + header), new RegExp(`\\(${shape[1]}, ${shape.at(-1)}\\)`));
  const numbers = new Float32Array(file.buffer.slice(file.byteOffset + 10 + header, file.byteOffset + file.length));
  const expected = values.flat(Infinity).map(Math.fround);
  assert.equal(numbers.length, expected.length);
  const largest = Math.max(...expected.map(Math.abs)); // a small one is a sum of terms that cancel
  numbers.forEach((number, index) => assertSame(number, expected[index], `value ${index}`, largest));
  const rows = (await exported(page, menu, 'CSV')).toString().trim().split('\r\n');
  assert.equal(rows[0], 'matrix,row,row_name,column,value');
  assert.equal(rows.length, 1 + 4 * numbers.length + 2 * shape[1] ** 2);
  await page.context().close();
});

async function post(path, body) {
  const response = await fetch(session.address + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** A kind's table on the page, and the same array of the API. */
async function compareKind(page, id, kind, layer, head) {
  const section = page.locator(`section[data-kind=${kind}]`);
  const row = kind === 'encoder' ? '' : '&row=written';
  const { values, shape } = await session.get(`/api/traces/${id}/attention/${kind}/${layer}/${head}?unit=words${row}&format=json`);
  const table = section.locator('details', { hasText: 'As a table' });
  if (!(await table.evaluate((one) => one.open))) await table.locator('summary').click();
  await table.locator('tbody tr').first().waitFor();
  const shown = await table.locator('tbody tr').evaluateAll((rows) => rows.map((one) => [...one.querySelectorAll('td')].map((cell) => cell.textContent)));
  assert.deepEqual([shown.length, shown[0].length], shape, kind);
  const flat = values.flat(Infinity);
  shown.flat().forEach((text, index) => assertShows(text, flat[index], `${kind} ${index}`));
  return { weights: flat, columns: shape[1] };
}

test('three kinds of attention of a translator equal those of the API, and the mask hides later words', async () => {
  const translator = await translatorOf(session);
  const page = await session.open('#/learn?chapter=two-texts&encoder=1.0&decoder=0.0&cross=1.0&from=1&to=2');
  if (translator === null) {
    await page.getByRole('region', { name: 'No translator' }).waitFor();
    assert.match(await page.locator('article').innerText(), /(This server holds no translator|This page has no translator open), so there are no numbers to show beside this chapter/);
    assert.deepEqual(page.problems, []);
    return page.context().close();
  }
  const { source, target } = translator.examples?.[0] ?? { source: 'The dog sleeps.' };
  const free = await post('/api/traces', { source, ...(target && { target }) });
  for (const kind of ['encoder', 'decoder', 'cross']) await page.getByTestId(`says-${kind}`).waitFor();
  const { weights, columns } = await compareKind(page, free.id, 'encoder', 1, 0);
  await compareKind(page, free.id, 'decoder', 0, 0);
  await compareKind(page, free.id, 'cross', 1, 0);
  const after = (row) => row.slice(2).reduce((sum, weight) => sum + weight, 0);
  assertShows(await page.getByTestId('ahead').textContent(), after(weights.slice(columns, 2 * columns)), 'words after the chosen one');
  assert.match(await page.locator('article').innerText(), new RegExp(`“${translator.name}”`));

  // Another word moves the vectors of earlier ones, unless there is a mask.
  const masked = await post('/api/traces', { source_tokens: free.source.tokens.map(({ id }) => id), target_tokens: free.target.tokens.map(({ id }) => id), interventions: [{ kind: 'mask_future', point: 'encoder' }] });
  const position = free.source.words[1].begin;
  const [without, within] = await Promise.all([free, masked].map(({ id }) => session.get(`/api/traces/${id}/influence?side=source&position=${position}`)));
  await page.getByTestId('influence').waitFor();
  const cells = await page.getByTestId('influence').locator('tbody tr').evaluateAll((rows) => rows.map((row) => [row.cells[1].textContent, row.cells[3].textContent]));
  assert.equal(cells.length, free.source.tokens.length);
  cells.forEach(([one, other], index) => {
    assertShows(one, without.encoder[index], `no mask, ${index}`);
    assertShows(other, within.encoder[index], `with the mask, ${index}`);
    if (index < position) assert.equal(other, '0');
  });
  const { text, without: usual } = await post(`/api/traces/${masked.id}/translation`, {});
  const said = await page.getByTestId('translations').innerText();
  for (const one of [text, ...(text === usual.text ? [] : [usual.text])]) assert.ok(said.includes(one), `${said} has ${one}`);

  await page.getByRole('button', { name: 'Mask switched on in the encoder' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('mask=on') && /To words after it/.test(document.querySelector('[data-testid=says-encoder]')?.textContent ?? ''));
  const hidden = await compareKind(page, masked.id, 'encoder', 1, 0);
  hidden.weights.forEach((weight, index) => index % columns > Math.floor(index / columns) && assert.equal(weight, 0));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('a word of the target is chosen by keyboard, and the sentence says what is read to write it', async (context) => {
  const translator = await translatorOf(session);
  if (translator === null) return context.skip('this server holds no translator');
  const page = await session.open('#/learn?chapter=two-texts&cross=1.0&to=1');
  await page.getByTestId('says-cross').waitFor();
  await page.getByRole('toolbar', { name: 'Words of the target' }).locator('button[aria-pressed=true]').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('to=2'));
  const { source, target } = translator.examples?.[0] ?? { source: 'The dog sleeps.' };
  const free = await post('/api/traces', { source, ...(target && { target }) });
  const { positions } = await session.get(`/api/traces/${free.id}/attention/cross/1/0/rows/${free.target.words[2].begin}?top=1&unit=words&row=written`);
  await page.waitForFunction((word) => document.querySelector('[data-testid=says-cross]')?.textContent.includes(`To write “${word}”`), free.target.words[2].text);
  const said = await page.getByTestId('says-cross').innerText();
  assert.ok(said.includes(`“${positions[0].text}”`), `${said} names ${positions[0].text}`);
  assertShows(await page.getByTestId('says-cross').locator('strong').first().textContent(), positions[0].weight, 'the largest weight');
  await page.context().close();
});

test('no serious findings or overflow in any chapter', async () => {
  for (const chapter of [...chapters, 'summary']) {
    await Promise.all([[390, true], [390, false], [1280, true], [1280, false]].map(async ([width, dark]) => {
      const page = await session.open(`#/learn?chapter=${chapter}`, { width, dark });
      await page.locator('.live > *').first().waitFor();
      await settled(page);
      assert.deepEqual(await seriousFindings(page), [], `${chapter} at ${width}`);
      assert.equal(await overflowsSideways(page), false, `${chapter} at ${width}`);
      assert.deepEqual(page.problems, [], chapter);
      await picture(page, `learn-${chapter}-${width}-${dark ? 'dark' : 'light'}`);
      await page.context().close();
    }));
  }
});

test('the tour is whole with the model that has read ordinary English', async (context) => {
  const { models } = await session.get('/api/models');
  if (!models.some(({ name, state }) => name === 'english' && state === 'ready')) return context.skip('this heed carries no such model');
  for (const chapter of [...chapters, 'summary']) {
    const page = await session.open(`#/learn?model=english&chapter=${chapter}`);
    await page.locator('.live > *').first().waitFor();
    await settled(page);
    for (let down = 0; down < 6; ++down) {
      await page.mouse.wheel(0, 800);
      await page.waitForTimeout(60);
    }
    await settled(page);
    const text = await page.locator('main').innerText();
    assert.doesNotMatch(text, /\b(undefined|NaN|Infinity|null)\b/, chapter);
    assert.equal(await page.getByRole('alert').count(), 0, chapter);
    if (chapter === 'head') await page.getByTestId('sense-verdict').waitFor();
    if (chapter !== 'summary' && chapter !== 'two-texts') {
      assert.equal(await page.getByRole('region', { name: 'Try it' }).getAttribute('data-done'), 'false', `${chapter} is done before anything is tried`);
      await page.getByRole('region', { name: 'Predict, then see' }).getByText(/Predict, then see\.|no answer stands out/).waitFor();
    }
    assert.deepEqual(page.problems, [], chapter);
    await page.context().close();
  }
  const sheet = await session.open('#/learn?model=english&worksheet=1');
  await sheet.getByTestId('worksheet').waitFor();
  assert.match(await sheet.getByTestId('worksheet').innerText(), /The model “english”/);
  assert.doesNotMatch(await sheet.getByTestId('worksheet').innerText(), /\b(undefined|NaN|Infinity)\b/);
  assert.deepEqual(sheet.problems, []);
  await sheet.context().close();
});
