// A long text runs as text: what is attended to far back and the query are in view together.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overflowsSideways, picture, seriousFindings, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const session = useExplorer();
const sentences = 'The fox waited in the forest, and the hare saw the fox. The old man walked to the river and sat down under a tree. A bird sang in the garden. ';
/** About 200 tokens. */
const text = `${sentences.repeat(5)}The hare saw the fox`;

async function makeTrace(of = text) {
  const response = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text: of }) });
  assert.ok(response.ok);
  return response.json();
}

test('a key far back and the query are in view, with one line between them', async () => {
  const { examples } = await session.get('/api/model');
  const { text: story, layer, head, position: given } = examples.reduce((one, other) => (other.text.length > one.text.length ? other : one));
  const { id, tokens } = await makeTrace(story);
  const position = given ?? tokens.length - 1;
  const { values } = await session.get(`/api/traces/${id}/attention/self/${layer}/${head}/rows/${position}?format=json`);
  const others = values.map((weight, at) => (at === position ? 0 : weight));
  const far = { layer, head, position, weight: Math.max(...others), key: others.indexOf(Math.max(...others)) };
  assert.ok(far.weight > 0.3 && position - far.key > 60, JSON.stringify(far));
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    for (const dark of [false, true]) {
      const page = await session.open(`#/follow?text=${encodeURIComponent(story)}&layer=${far.layer}&head=${far.head}&position=${far.position}`, { width, height, dark });
      const [query, key] = [page.locator('.unit.selected'), page.locator(`[data-unit="${far.key}"]`)];
      await page.locator('.far path').first().waitFor({ state: 'attached' });
      assertShows((await key.getAttribute('aria-label')).split(', ').pop(), far.weight, 'weight');
      await query.scrollIntoViewIfNeeded();
      const [from, to, line, card] = await Promise.all([query.boundingBox(), key.boundingBox(), page.locator('.far path').first().evaluate((path) => {
        // Without the width of the line.
        const [box, { x, y }] = [path.getBBox(), path.ownerSVGElement.getBoundingClientRect()];
        return { x: x + box.x, y: y + box.y, width: box.width, height: box.height };
      }), page.locator('.sentence').boundingBox()]);
      assert.ok(from.y - to.y > 20 && from.y - to.y < height - 100, `${width}: ${from.y - to.y} px apart`);
      // The line's ends are at the two lines of the text.
      assert.ok(Math.abs(line.y - (to.y + to.height / 2)) < 4 && Math.abs(line.y + line.height - (from.y + from.height / 2)) < 4, JSON.stringify({ from, to, line }));
      assert.ok(line.x + line.width <= to.x + 4 || to.x > line.x, 'in the gutter');
      assert.ok(card.height < 760, `the card is ${card.height} px high at ${width}`);
      console.log(`# ${width} px: card ${Math.round(card.height)} px, line of ${Math.round(line.height)} px for ${far.weight.toFixed(3)}, ${far.position - far.key} tokens back`);
      // Shaded by weight.
      const shade = (unit) => unit.evaluate((one) => getComputedStyle(one).backgroundColor);
      assert.notEqual(await shade(key), 'rgba(0, 0, 0, 0)');
      assert.deepEqual(await seriousFindings(page), []);
      assert.equal(await overflowsSideways(page), false);
      await picture(page, `far-back-${width}-${dark ? 'dark' : 'light'}`);
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  }
});

test('folds say how many words they hold and open; the keys move as in a short text', async () => {
  const { tokens, words } = await makeTrace();
  const last = tokens.length - 1;
  for (const unit of ['tokens', 'words']) {
    const page = await session.open(`#/follow?text=${encodeURIComponent(text)}&layer=0&head=1&position=${last}${unit === 'words' ? '&unit=words' : ''}`);
    const folds = page.locator('.fold', { hasText: 'words' });
    await folds.first().waitFor();
    const shown = () => page.locator('[data-unit]').evaluateAll((all) => all.map((one) => Number(one.dataset.unit)));
    const before = await shown();
    const named = (await folds.evaluateAll((all) => all.map((one) => Number(/([\d,]+) words?/.exec(one.textContent)[1].replace(',', ''))))).reduce((sum, count) => sum + count, 0);
    const isWord = ({ text: written }) => /[\p{L}\p{N}]/u.test(written);
    // Words that begin in what is not shown.
    const visible = new Set(before);
    const hidden = page.url().includes('unit=words') && words.length < tokens.length
      ? words.filter((word, index) => isWord(word) && !visible.has(index)).length
      : words.filter((word) => isWord(word) && !visible.has(word.begin)).length;
    assert.equal(named, hidden, `words in the folds, by ${unit}`);
    await folds.first().click();
    assert.ok((await shown()).length > before.length);
    await page.locator('.unit.selected').focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((at) => new URLSearchParams(location.hash.split('?')[1]).get('position') < at, last);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-pressed')), 'true');
    await page.keyboard.press('Home');
    await page.waitForFunction(() => document.activeElement.dataset.unit === '0');
    await page.locator('[data-unit="3"]').click();
    await page.waitForFunction(() => document.querySelector('.unit.selected').dataset.unit === '3');
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});
