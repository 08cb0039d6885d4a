// What readers stumbled over: captions of a former word, cut rows, hidden parts and missing scales.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';

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
  await page.route(/\/(walk|next)\?/, async (route) => {
    await held;
    await route.continue();
  });
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
  await page.route(/\/walk\?/, async (route) => {
    await held;
    await route.continue();
  });
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

test('a long sentence is shown whole, and a caption’s word is brought into view', async () => {
  const { examples } = await session.get('/api/model');
  const longest = examples.reduce((one, other) => (other.text.length > one.text.length ? other : one));
  for (const width of [390, 1280]) {
    const page = await session.open(`#/follow?text=${encodeURIComponent(longest.text)}&layer=${longest.layer ?? 0}&head=${longest.head ?? 0}&position=${longest.position ?? -1}`, { width });
    const attended = page.locator('.said .attended').first();
    await attended.waitFor();
    assert.ok(await page.locator('.sentence .frame').evaluate((frame) => frame.scrollHeight <= frame.clientHeight + 1), `${width}`);
    await attended.click();
    await page.waitForTimeout(100);
    const word = (await attended.innerText()).slice(1, -1);
    assert.ok(await page.locator('.arcs .tokens > button').evaluateAll((tokens, text) => tokens.some((token) => {
      const { top, bottom } = token.getBoundingClientRect();
      return token.textContent.replace('␣', '') === text && top >= 0 && bottom <= innerHeight;
    }), word), `${word} at ${width}`);
    await page.context().close();
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

  const other = await session.browser.newPage();
  await other.route('**/api/model', (route) => route.fulfill({ json: { ...model, read: null } }));
  await other.goto(`${session.address}/#/follow`);
  await other.getByRole('group', { name: 'Examples' }).waitFor();
  assert.equal(await other.getByText('It has read').count(), 0);
  await other.close();
});
