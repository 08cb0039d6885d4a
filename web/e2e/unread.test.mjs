// Words that the model has not read: underlined, counted, with a way to a sentence that it knows; characters of other scripts; and
// what is shown of a former text is dimmed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seriousFindings, translatorOf, useExplorer } from './harness.mjs';

const session = useExplorer();
const sizes = [{ width: 1280, height: 900 }, { width: 390, height: 844, dark: true }];
const link = (mode, text, more = '') => `#/${mode}?text=${encodeURIComponent(text)}${more}`;

for (const size of sizes) {
  const at = `at ${size.width} px`;

  test(`the prompt marks the words that were not read, ${at}`, async () => {
    const page = await session.open(link('whole-model', 'I love pizza with extra cheese and'), size);
    const note = page.getByRole('note');
    await note.waitFor();
    assert.match(await note.innerText(), /^3 of these 7 words \(pizza, extra, cheese\) are not among the about 1,100 that this model has read: its guesses mean little\./);
    assert.deepEqual(await page.locator('.under .unread').allInnerTexts(), ['pizza', 'extra', 'cheese']);
    // The marks stand below the words of the box.
    const [box, under] = await Promise.all(['textarea#prompt-text', '.under'].map((selector) => page.locator(selector).boundingBox()));
    assert.ok(Math.abs(box.x - under.x) < 1 && Math.abs(box.y - under.y) < 1 && Math.abs(box.width - under.width) < 1, JSON.stringify({ box, under }));
    assert.match(await page.locator('.reading').first().innerText(), /It has read: 104,000 short stories/);
    assert.deepEqual(await seriousFindings(page), []);
    // The tokens of these words are marked where they are shown, and no other.
    await page.goto(`${session.page}/${link('follow', 'I love pizza with extra cheese and')}`);
    await page.locator('.tokens .unread').first().waitFor();
    const marked = (await page.locator('.tokens').first().locator('.unread').allInnerTexts()).join('').replaceAll('␣', ' ');
    assert.equal(marked.replace(/\s+/g, ''), 'pizzaextracheese');
    // One click leads to a sentence that it knows.
    await page.getByRole('button', { name: /^Nearest example/ }).click();
    await page.getByRole('note').waitFor({ state: 'detached' });
    assert.equal(await page.locator('.under .unread').count(), 0);
    const { examples } = await session.get('/api/model');
    assert.ok(examples.some(({ text }) => page.url().includes(new URLSearchParams({ text }).toString())), page.url());
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  test(`a translation says so of its source, and of a target that was given, ${at}`, async (context) => {
    if ((await translatorOf(session)) === null) return context.skip('this server holds no translator');
    const page = await session.open('#/translate?source=The+dog+barks.', size);
    await page.getByRole('note').waitFor();
    assert.match(await page.getByRole('note').innerText(), /^1 of these 3 words \(barks\) is not among the about 1,000 that this model has read: its translation means little\./);
    await page.locator('.words.source .unread').waitFor();
    assert.deepEqual(await page.locator('.words.source .unread').allInnerTexts(), ['barks']);
    assert.equal(await page.locator('.words.target .unread').count(), 0);
    await page.goto(`${session.page}/#/translate?source=The+dog+sleeps.&target=Der+Hund+bellt.`);
    await page.getByText('(bellt)').waitFor();
    assert.equal(await page.getByRole('note').count(), 1);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });

  test(`a text that is too long dims what is shown of the former one, ${at}`, async () => {
    const page = await session.open(link('follow', 'The hare saw the fox'), size);
    assert.equal(await page.locator('main.former').count(), 0);
    await page.locator('#prompt-text').fill('The hare saw the fox. '.repeat(60));
    await page.locator('#prompt-text').press('Enter');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    assert.match(await alert.innerText(), /tokens, more than the model's context of 256/);
    assert.match(await alert.innerText(), /about the former text/);
    // It fades.
    await page.waitForFunction(() => Number(getComputedStyle(document.querySelector('main')).opacity) < 0.5);
    await page.locator('#prompt-text').fill('The fox');
    await page.locator('#prompt-text').press('Enter');
    await page.locator('main.former').waitFor({ state: 'detached' });
    assert.equal(await alert.count(), 0);
    await page.context().close();
  });

  test(`tokens of other scripts are braced to characters, and words are the default, ${at}`, async () => {
    const page = await session.open(link('whole-model', 'a 水 سلام 👩‍👧'), size);
    await page.locator('.braced').first().waitFor();
    const characters = await page.locator('.braced .character').allInnerTexts();
    assert.ok(['水', 'س', '👩‍👧'].every((one) => characters.includes(one)), characters.join(' '));
    const pieces = await page.locator('.braced .pieces button').allInnerTexts();
    assert.ok(pieces.length > characters.length && pieces.every((text) => !text.includes('\uFFFD')), pieces.join(' '));
    await page.goto(`${session.page}/${link('follow', 'a 水 سلام 👩‍👧')}`);
    await page.getByRole('button', { name: /^水, word/ }).first().waitFor();
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}
