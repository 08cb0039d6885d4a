// What every screen owes a reader who sees it for the first time: heads in words, a default that shows something, labels that
// can be read, and no control that does nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { overflowsSideways, settled, useExplorer } from './harness.mjs';

const session = useExplorer();
const own = 'I love pizza with extra cheese and';
const link = (mode, text, more = '') => `#/${mode}?text=${encodeURIComponent(text)}${more}`;

/** `heed attend --json --word`'s head of a word. */
function ofTerminal(text, word) {
  const binary = process.env.HEED_BINARY ?? '../build/release/bin/heed';
  const { walk } = JSON.parse(execFileSync(binary, ['attend', '--json', '--word', word, text], { encoding: 'utf8', maxBuffer: 1 << 26 }));
  return { layer: walk.layer, head: walk.head };
}

/** The prose of the page that names a head by its short name alone, or begins a sentence small. */
function badProse(page) {
  return page.evaluate(() => {
    const bad = [];
    for (const element of document.querySelectorAll('main :is(p, h1, h2, h3, caption, legend, figcaption)')) {
      // Legends of charts are labels.
      if (element.closest('.trials, figure, [aria-hidden=true]') || element.checkVisibility?.() === false) continue;
      const copy = element.cloneNode(true);
      for (const chip of copy.querySelectorAll('.chip, code')) chip.remove();
      const text = copy.textContent.replace(/\s+/g, ' ').trim();
      if (/\bL\d+[HN]\d+\b/.test(text) || /(^|[.!?]”? )block \d+, head/.test(text)) bad.push(text.slice(0, 160));
    }
    return bad;
  });
}

const views = ['follow', 'whole-model', 'compare', 'compare?view=map', 'compare?view=neurons', 'change', 'change?changes=L4H1', 'change?what=neurons', 'generate', 'translate', 'watch-it-learn', 'count'];
for (const width of [1280, 390]) {
  test(`prose names heads in words, begins sentences with a capital, and nothing runs over the side: ${width} px`, async () => {
    for (const view of views) {
      const page = await session.open(`#/${view}`, { width, dark: width === 390 });
      await settled(page);
      assert.deepEqual(await badProse(page), [], view);
      assert.equal(await overflowsSideways(page), false, view);
      assert.deepEqual(page.problems, [], view);
      await page.context().close();
    }
  });
}

test('every mode opens an own sentence on the head whose edge matters, which the terminal shows too', async () => {
  const { layer, head } = ofTerminal(own, 'and');
  for (const mode of ['follow', 'whole-model', 'compare', 'change', 'generate']) {
    const page = await session.open(link(mode, own));
    await page.waitForFunction(([l, h]) => {
      const query = new URLSearchParams(location.hash.split('?')[1]);
      return Number(query.get('layer') ?? 0) === l && Number(query.get('head') ?? 0) === h && query.get('pick') === 'effect';
    }, [layer, head]);
    await page.context().close();
  }
});

test('the page and the terminal open an example on the same head', async () => {
  const { examples } = await session.get('/api/model');
  for (const id of ['adjectives', 'mole-animal', 'car', 'bank-river']) {
    const example = examples.find((one) => one.id === id);
    const word = /(\p{L}+)$/u.exec(example.text)[1];
    assert.deepEqual(ofTerminal(example.text, word), { layer: example.layer, head: example.head }, id);
    const page = await session.open(link('follow', example.text));
    await page.getByText(`block ${example.layer}, head ${example.head}`).first().waitFor();
    await page.context().close();
  }
});

test('the nearest example is another sentence than the one at hand', async () => {
  const page = await session.open(link('follow', own, '&model=english'));
  const nearest = page.getByRole('button', { name: /^Nearest example/ });
  await nearest.waitFor();
  assert.ok(!(await nearest.innerText()).includes(own));
  await nearest.click();
  await page.waitForFunction((text) => document.querySelector('#prompt-text').value !== text, own);
});

test('what a word attends to is said where tokens are parts of characters', async () => {
  const page = await session.open(link('follow', 'The fox 🦊 saw the hare'));
  await page.locator('.said').getByText(/attends to/).waitFor();
  assert.ok(!(await page.locator('main').innerText()).includes('�'));
});

test('a fold that is closed is as high as its title', async () => {
  const page = await session.open('#/follow');
  await page.locator('#more-nearest').waitFor().catch(() => {});
  await settled(page);
  const heights = await page.locator('details[id^=more-]:not([open])').evaluateAll((all) => all.map((one) => [one.id, one.getBoundingClientRect().height, one.querySelector('summary').getBoundingClientRect().height]));
  assert.ok(heights.length > 5);
  for (const [id, whole, title] of heights) assert.ok(whole <= title + 3, `${id}: ${whole} px around a title of ${title} px`);
});

test('the chosen token of a long text is in view in its box', async () => {
  const text = 'The old sailor looked at the sea and said that the wind would soon turn. '.repeat(10).trim();
  for (const mode of ['whole-model', 'change']) {
    const page = await session.open(link(mode, text), { width: 390 });
    await settled(page);
    const chosen = page.locator('main [role=toolbar] button[aria-pressed=true]').first();
    await page.waitForFunction(() => {
      const button = document.querySelector('main [role=toolbar] button[aria-pressed=true]');
      if (!button) return false;
      for (let box = button.parentElement; box && box !== document.body; box = box.parentElement) {
        if (!/auto|scroll/.test(getComputedStyle(box).overflowY)) continue;
        const [place, frame] = [button.getBoundingClientRect(), box.getBoundingClientRect()];
        return place.top >= frame.top - 1 && place.bottom <= frame.bottom + 1;
      }
      return false;
    });
    assert.equal(await chosen.count(), 1);
    await page.context().close();
  }
});

test('the name of the entropy is above the ticks of the checkpoints', async () => {
  for (const width of [1280, 390]) {
    const page = await session.open('#/watch-it-learn', { width });
    const box = page.locator('[data-label]').first();
    await box.waitFor();
    const { label, bottom } = await box.evaluate((element) => ({
      label: JSON.parse(element.dataset.label),
      bottom: element.querySelector('.u-over').getBoundingClientRect().bottom - element.querySelector('canvas').getBoundingClientRect().top,
    }));
    assert.ok(label.free);
    assert.ok(label.top + label.height <= bottom - 7, `${label.top + label.height} px of ${bottom}`);
    await page.context().close();
  }
});

test('a model that is not here is said in a sentence, with a way on', async () => {
  const page = await (await session.browser.newContext()).newPage();
  await page.goto(`${session.page}/#/follow?model=nothere&text=The%20fox`);
  assert.match(await page.getByRole('alert').innerText(), /^There is no model 'nothere' here/);
  await page.getByRole('link', { name: `Open this text in the model that ${process.env.HEED_STATIC ? 'this page begins with' : 'the server was started with'}` }).click();
  await page.locator('main h1').first().waitFor();
  assert.equal(await page.locator('#prompt-text').inputValue(), 'The fox');
});

test('Change starts with the head at hand: one click shows what it does', async () => {
  const page = await session.open('#/change');
  const { examples: [{ layer, head }] } = await session.get('/api/model');
  await page.getByRole('switch', { name: `block ${layer}, head ${head}`, exact: true }).and(page.locator('.chosen')).waitFor();
  await page.getByRole('button', { name: `Switch off block ${layer}, head ${head}` }).click();
  await page.getByTestId('changes').getByText(`block ${layer}, head ${head}: off`).waitFor();
  await page.waitForFunction(() => Number(/[\d.]+/.exec(document.querySelector('[data-testid=kl]')?.innerText ?? '0')[0]) > 0.01);
});

test('Swap starts with the last words of both texts', async () => {
  const page = await session.open('#/change?what=swap');
  await page.getByRole('button', { name: /^Replace “hare” by “creature”$/ }).waitFor();
});

test('names in the projection are over no other, and a word that is two tokens is said to be', async () => {
  const page = await session.open('#/compare?view=vectors');
  await page.locator('svg text.word').first().waitFor();
  const boxes = await page.locator('figure svg text:is(.word, .name)').evaluateAll((all) => all.map((one) => [one.textContent, one.getBoundingClientRect()]).map(([text, { left, right, top, bottom }]) => ({ text, left, right, top: top + 2, bottom: bottom - 2 })));
  for (const [index, a] of boxes.entries()) {
    for (const b of boxes.slice(index + 1)) assert.ok(a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top || b.bottom <= a.top, `${a.text} and ${b.text}`);
  }
  await page.getByText('The token embedding is the same').waitFor();
  const other = await session.open(link('compare', 'The fox saw the hare', '&view=vectors&word=the&other=&third='));
  await other.getByText('The word is not the same token everywhere').waitFor();
});

test('every view of Follow opens for another model than the one the server was started with', async () => {
  const page = await session.open('#/follow?model=english&text=The%20boat%20went%20to%20the%20bank&open=senses%20nearest%20about%20scaled');
  await page.locator('details[id^=more-][open]').first().waitFor();
  await settled(page);
  await page.waitForFunction(() => !document.querySelector('main [role=progressbar], main progress'));
  assert.deepEqual(await page.locator('main .error').allInnerTexts(), []);
  assert.deepEqual(page.problems, []);
});
