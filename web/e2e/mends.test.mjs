// What readers stumbled over: captions of a former word, cut rows, hidden parts and missing scales.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { meet, overflowsSideways, picture, seriousFindings, settled, translatorOf, useExplorer } from './harness.mjs';

const session = useExplorer();
const prompt = (page) => page.getByLabel('Prompt', { exact: true });
const sized = (page) => page.evaluate(() => document.documentElement.scrollHeight);

test('a link without a text shows the default sentence, when opened and later', async () => {
  const page = await session.open('#/follow');
  await page.locator('.said .figure').first().waitFor();
  const usual = await prompt(page).inputValue();
  assert.notEqual(usual, '');
  await prompt(page).fill('The fox slept');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.said')?.textContent.includes('“slept”'));
  await page.evaluate(() => (location.hash = '#/follow'));
  await page.waitForFunction((text) => document.querySelector('#prompt-text').value === text, usual);
  await page.waitForFunction(() => !document.querySelector('.said')?.textContent.includes('“slept”') && document.querySelector('.said .figure'));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('nothing is said of a former word while the numbers of the chosen one are on their way', async () => {
  const page = await session.open(`#/follow?text=${encodeURIComponent('The fox saw the hare')}&layer=1&head=2`);
  await page.locator('.said .figure').first().waitFor();
  await page.locator('.next li').first().waitFor();
  const strip = page.getByRole('slider', { name: /^Embedding of position/ });
  await strip.waitFor();
  const row = page.getByRole('toolbar', { name: 'Tokens of the prompt' }).locator('button');
  await row.last().focus();
  await strip.hover();
  const tip = page.getByRole('tooltip');
  await tip.filter({ hasText: 'Embedding of position' }).waitFor();

  let release;
  const held = new Promise((resolve) => (release = resolve));
  await meet(page, /\/(walk|next)\?/, () => held);
  await page.keyboard.press('Home');
  await tip.waitFor({ state: 'hidden' });
  const word = (await row.first().innerText()).replace('␣', '');
  await page.waitForFunction((first) => document.querySelector('.next h2').textContent.includes(`“${first}”`), word);
  assert.equal(await page.locator('.next ol').isVisible(), false);
  assert.equal(await page.locator('.said .figure').count(), 0);
  release();
  await page.locator('.next ol').waitFor();
  await page.waitForFunction((first) => document.querySelector('.said').textContent.includes(`“${first}”`), word);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test('another text of as many tokens does not take the former one’s attention', async () => {
  const page = await session.open(`#/follow?text=${encodeURIComponent('The fox saw the hare')}&layer=1&head=2`);
  await page.locator('.said .figure').first().waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await meet(page, /\/walk\?/, () => held);
  await prompt(page).fill('The hare saw the fox');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.next h2').textContent.includes('“fox”'));
  assert.equal(await page.locator('.said .figure').count(), 0);
  release();
  await page.locator('.said .figure').first().waitFor();
  await page.context().close();
});

test('the examples stay calm: one line of families from 1280 pixels on, a list on narrow screens', async () => {
  const { examples } = await session.get('/api/model');
  const families = new Set(examples.map(({ id }) => id.split('-')[0]));
  const mole = examples.find(({ id }) => id === 'mole-skin');
  for (const width of [1000, 1280, 1920]) {
    const page = await session.open('#/follow', { width });
    const group = page.getByRole('group', { name: 'Examples' });
    const buttons = group.getByRole('button');
    await buttons.first().waitFor();
    assert.equal(await buttons.count(), families.size);
    const row = await group.boundingBox();
    const boxes = await Promise.all((await buttons.all()).map((button) => button.boundingBox()));
    assert.ok(boxes.every(({ x, width: wide }) => x >= row.x - 1 && x + wide <= row.x + row.width + 1), `${width}`);
    if (width >= 1280) assert.equal(new Set(boxes.map(({ y }) => Math.round(y))).size, 1, `${width}`);
    // By keyboard: a family shows its first sentence and a row with the others.
    await group.getByRole('button', { name: 'Mole', exact: true }).press('Enter');
    await page.getByRole('group', { name: 'Mole' }).getByRole('button', { name: mole.title }).press('Enter');
    await page.waitForFunction((text) => document.getElementById('prompt-text').value === text, mole.text);
    assert.equal(await group.getByRole('button', { pressed: true }).count(), 2);
    assert.deepEqual(await seriousFindings(page), []);
    await page.context().close();
  }
  const page = await session.open('#/follow', { width: 390, height: 844 });
  const list = page.getByRole('combobox', { name: 'Example' });
  assert.equal(await list.locator('option').count(), examples.length);
  await list.selectOption({ label: mole.title });
  await page.waitForFunction((text) => document.getElementById('prompt-text').value === text, mole.text);
  assert.equal(await overflowsSideways(page), false);
  await page.context().close();
});

test('the scores and the weights of the mask have scales of their own', async () => {
  const page = await session.open('#/learn?chapter=mask');
  for (const [title, scale] of [['Scores', 'score'], ['Weights', 'weight']]) {
    const part = page.locator('.pair > div', { hasText: title });
    await part.locator('.scale').waitFor();
    assert.match(await part.locator('.scale').innerText(), new RegExp(`^${scale}\\b`));
  }
  assert.equal(await page.locator('.pair').first().locator('.scale').count(), 2);
  await page.getByRole('complementary', { name: 'In other explanations' }).getByText('transposed').waitFor();
  await page.context().close();
});

test('on a narrow screen the sections open on demand, and all heads are in sight', async () => {
  for (const dark of [false, true]) {
    const page = await session.open('#/follow', { width: 390, height: 844, dark });
    await page.getByRole('button', { name: 'Block after block' }).waitFor();
    assert.ok((await sized(page)) < 3 * 844, `${await sized(page)} pixels`);
    assert.equal(await page.locator('#attention .match').count(), 0);
    const title = page.locator('#attention .fold');
    await title.focus();
    await page.keyboard.press('Enter');
    await page.locator('#attention .match').waitFor();
    assert.equal(await title.getAttribute('aria-expanded'), 'true');
    await page.getByRole('button', { name: /^How this is computed/ }).click();
    await page.locator('#next tbody tr').first().waitFor();
    await page.getByText('Map of the model').click();
    assert.deepEqual(await seriousFindings(page), []);
    assert.equal(await overflowsSideways(page), false);
    await picture(page, `follow-open-390-${dark ? 'dark' : 'light'}`);
    await page.context().close();
  }
  for (const link of ['#/follow', '#/learn?chapter=heads']) {
    const page = await session.open(link, { width: 390, height: 844 });
    if (link === '#/follow') await page.getByText('Map of the model').click();
    await page.locator('.head').first().waitFor();
    assert.ok(await page.locator('.head').evaluateAll((heads) => heads.every((head) => head.getBoundingClientRect().right <= innerWidth && head.getBoundingClientRect().left >= 0)), link);
    await page.context().close();
  }
});

test('a caption’s word is brought into view, in a row of tokens and far back in a long text', async () => {
  const { examples } = await session.get('/api/model');
  const lengths = await Promise.all(examples.map(async ({ text }) => (await (await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text }) })).json()).tokens.length));
  const long = examples[lengths.indexOf(Math.max(...lengths))];
  const inRow = examples[lengths.indexOf(Math.max(...lengths.filter((length) => length <= 60)))];
  for (const width of [390, 1280]) {
    for (const [example, units] of [[inRow, '.arcs .tokens > button'], [long, '.far .unit']]) {
      const page = await session.open(`#/follow?text=${encodeURIComponent(example.text)}&layer=${example.layer ?? 0}&head=${example.head ?? 0}&position=${example.position ?? -1}`, { width });
      const attended = page.locator('.said .attended').first();
      await attended.waitFor();
      await page.locator(units).first().waitFor();
      if (example === long) assert.ok((await page.locator('.sentence').boundingBox()).height < 760, `${width}`);
      await attended.click();
      await page.waitForTimeout(100);
      const word = (await attended.innerText()).slice(1, -1);
      assert.ok(await page.locator(units).evaluateAll((all, text) => all.some((one) => {
        const { top, bottom } = one.getBoundingClientRect();
        return one.textContent.replace('␣', '') === text && top >= 0 && bottom <= innerHeight;
      }), word), `${word} at ${width}`);
      await page.context().close();
    }
  }
});

test('the settings stand beside the distribution, without scrolling', async () => {
  const page = await session.open('#/generate', { width: 1280, height: 900 });
  await page.getByTestId('distribution').locator('tbody tr').nth(7).waitFor();
  const box = (locator) => locator.boundingBox();
  const table = await box(page.getByTestId('distribution'));
  for (const name of ['Temperature', 'Top-k', 'Top-p']) {
    const slider = await box(page.getByRole('slider', { name, exact: true }));
    assert.ok(slider.y + slider.height < 900 && slider.x + slider.width <= table.x, name);
    assert.ok(slider.y > table.y - 100 && slider.y < table.y + table.height, name);
  }
  const row = await box(page.getByTestId('distribution').locator('tbody tr').nth(7));
  assert.ok(row.y + row.height < 900, 'eight candidates are in the first window');
  await page.context().close();
});

test('what a model has read is said where it is known, and nothing is claimed elsewhere', async () => {
  const model = await session.get('/api/model');
  const page = await session.open('#/follow');
  await page.getByText(`It has read: ${model.read.title}.`).waitFor();
  await page.context().close();

  const other = await session.blank();
  await meet(other, /^\/api\/model$/, () => ({ ...model, read: null }));
  await other.goto(`${session.page}/#/follow`);
  await other.getByRole('group', { name: 'Examples' }).waitFor();
  assert.equal(await other.getByText('It has read').count(), 0);
  await other.context().close();
});

test('a number whose computation is shown leaves the page without an error', async () => {
  const page = await session.open(`#/follow?text=${encodeURIComponent('The fox waited in the forest, and the hare saw the fox')}&layer=2&head=1&open=unmasked`);
  page.setDefaultTimeout(60_000);
  for (const [numbers, to] of [
    ['#attention .figure', '#/count'], ['#next .figure', '#/count'], ['#feed-forward [role=slider]', '#/whole-model'], ['#attention [role=application]', '#/count'], ['#next .figure', '#/learn'],
  ]) {
    await page.evaluate(() => (location.hash = '#/follow?text=The+fox+waited+in+the+forest&layer=2&head=1&open=unmasked'));
    const number = page.locator(numbers).first();
    await number.waitFor();
    await settled(page);
    await number.focus();
    await page.keyboard.press('ArrowRight');
    await page.locator('#number-tip.open').waitFor();
    await page.evaluate((hash) => {
      location.hash = hash;
      dispatchEvent(new Event('resize'));
    }, to);
    await page.locator(numbers).first().waitFor({ state: 'detached' });
    await page.evaluate(() => dispatchEvent(new Event('resize')));
    await page.locator('#number-tip:not(.open)').waitFor({ state: 'attached' });
    assert.deepEqual(page.problems, [], `${numbers} to ${to}`);
  }
  await page.context().close();
});

test('while text is generated, attention and distribution go along', async () => {
  const page = await session.open('#/generate?text=The+fox+waited+in+the+forest%2C+and+the&layer=1&head=2');
  const attention = page.getByRole('region', { name: 'Attention of this step' });
  await attention.getByText(/attends to/).first().waitFor();
  const reads = () => attention.getByRole('heading', { name: /attends to/ }).first().textContent();
  const first = await reads();
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  const seen = new Set();
  while (seen.size < 3) {
    const said = await reads();
    const running = await page.getByRole('button', { name: 'Pause' }).count();
    assert.equal(running, 1, `it still runs; seen: ${[...seen]}`);
    if (said !== first) seen.add(said);
    await page.waitForTimeout(50);
  }
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.context().close();
});

test('the name of the entropy is off the curves', async () => {
  for (const width of [390, 1280]) {
    const page = await session.open('#/watch-it-learn', { width });
    await page.waitForFunction(() => JSON.parse(document.querySelector('[data-curve=loss]')?.dataset.label ?? '{}').free === true);
    await page.context().close();
  }
});

test('Count has one name for a model', async () => {
  const { name, dimensions } = await session.get('/api/model');
  const page = await session.open('#/count');
  const chips = await page.getByRole('group', { name: 'Presets' }).getByRole('button').allTextContents();
  const own = chips.filter((chip) => chip.startsWith(`${name} `));
  assert.equal(own.length, 1, chips.join('; '));
  assert.match(own[0], /this model/);
  await page.getByRole('group', { name: 'Presets' }).getByRole('button', { name: new RegExp(`^${name} `) }).click();
  await page.getByText(dimensions.parameters.toLocaleString('en-US'), { exact: true }).first().waitFor();
  // A link to the preset of that name shows the same model.
  const linked = await session.open(`#/count?config=${name}`);
  await linked.getByText(dimensions.parameters.toLocaleString('en-US'), { exact: true }).first().waitFor();
  await linked.context().close();
  await page.context().close();
});

test('on a phone, export buttons and their menus stay in their cards and in the window', async () => {
  const { examples } = await session.get('/api/model');
  const text = encodeURIComponent(examples[0].text);
  const page = await session.open('#/count', { width: 390, height: 844 });
  page.setDefaultTimeout(60_000);
  const views = 'projection unmasked scaled factors split additions nearest memory backward about'.split(' ');
  const chapters = ['tokens', 'embeddings', 'head', 'mask', 'heads', 'block', 'depth', 'training'];
  for (const link of [
    'count', 'count?config=t5-small', ...[0, 5].map((from) => `follow?text=${text}&open=${views.slice(from, from + 5).join('+')}`), `generate?text=${text}`,
    ...['heads', 'map', 'words', 'lens', 'neurons', 'vectors'].map((view) => `compare?view=${view}`), `change?text=${text}&changes=L1H1`, 'watch-it-learn', ...((await translatorOf(session)) ? ['translate'] : []), ...chapters.map((chapter) => `learn?chapter=${chapter}`),
  ]) {
    await page.goto('about:blank');
    await page.goto(`${session.page}/#/${link}`);
    await page.locator('main details.export').first().waitFor({ state: 'attached' });
    await settled(page, { timeout: 3000 }).catch(() => {});  // a view of a run goes on listening
    const isFollow = link.startsWith('follow');
    if (isFollow) await page.locator('#next .fold').waitFor();
    await page.evaluate(() => document.querySelectorAll('.part .fold[aria-expanded=false]').forEach((fold) => fold.click()));
    if (isFollow) await page.locator('#next details.export').first().waitFor();
    await settled(page, { timeout: 3000 }).catch(() => {});  // a view of a run goes on listening
    const found = await page.evaluate(async () => (await Promise.all([...document.querySelectorAll('main details.export')].map(async (menu) => {
      const button = menu.querySelector('summary').getBoundingClientRect();
      if (button.width === 0) return [];
      const card = menu.closest('.card');
      const name = (card ?? document.querySelector('main')).textContent.trim().slice(0, 40);
      const around = card?.getBoundingClientRect();
      const outside = (inner, outer) => inner.left < outer.left - 0.5 || inner.right > outer.right + 0.5 || inner.top < outer.top - 0.5 || inner.bottom > outer.bottom + 0.5;
      const over = [...(card ?? document.querySelector('main')).querySelectorAll('h1, h2, h3, p, label, button, select, strong, a, [role=tab]')].filter((other) => {
        if (menu.contains(other) || !other.offsetParent) return false;
        const box = other.getBoundingClientRect();
        return Math.min(box.right, button.right) - Math.max(box.left, button.left) > 1 && Math.min(box.bottom, button.bottom) - Math.max(box.top, button.top) > 1;
      });
      menu.open = true;
      await new Promise((resolve) => setTimeout(resolve, 1000)); // it is told of its opening later
      const choices = menu.querySelector('.choices').getBoundingClientRect();
      menu.open = false;
      return [
        ...(around && outside(button, around) ? [`${name}: the button is outside its card`] : []),
        ...over.map((other) => `${name}: the button is over “${other.textContent.trim().slice(0, 20)}”`),
        ...(choices.left < -0.5 || choices.right > innerWidth + 0.5 ? [`${name}: the menu is outside the window, ${Math.round(choices.left)} to ${Math.round(choices.right)}`] : []),
      ];
    }))).flat());
    assert.deepEqual(found, [], link);
  }
  await page.context().close();
});
