// Beam search as a tree: nodes, sums and scores equal those of the API, by keyboard and step by step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { carriedTranslator, exported, overflowsSideways, seriousFindings, translatorOf, useExplorer } from './harness.mjs';
import { assertSame, assertShows } from './numbers.mjs';

const session = useExplorer([], carriedTranslator);
const source = 'The curious girl hopes that she jumps in a cave.';
const link = (extras = {}) => `#/translate?${new URLSearchParams({ source, ...extras })}`;

async function post(where, body) {
  const response = await fetch(session.address + where, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(response.ok, `${where}: ${response.status}`);
  return response.json();
}
/** `test` of a server that holds a translator. */
const translating = (name, body) => test(name, async (context) => {
  if ((await translatorOf(session)) === null) return context.skip('this server holds no translator');
  await body();
});
const search = async (request) => post(`/api/traces/${(await post('/api/traces', { source })).id}/beams`, { beams: 5, length_penalty: 1, max_length: 64, ...request });
const shown = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll('.beams .node').length === wanted, count);
async function opened(extras, count, options) {
  const page = await session.open(link(extras), options);
  await page.getByTestId('hypotheses').waitFor();
  await shown(page, count);
  return page;
}

translating('the tree and its hypotheses are those of the API, with the beams and the penalty of the link', async () => {
  const found = await search({ beams: 3, length_penalty: 0.5 });
  const page = await opened({ beams: '3', penalty: '0.5' }, found.nodes.length);
  const states = await page.locator('.beams .node').evaluateAll((all) => all.map((one) => [Number(one.id.replace('beam-', '')), ['kept', 'dropped', 'finished'].find((state) => one.classList.contains(state)), one.querySelector('.chance')?.textContent]));
  for (const [id, state, chance] of states) {
    assert.equal(state, found.nodes[id].state, `node ${id}`);
    if (id > 0) assertShows(chance, Math.exp(found.nodes[id].log_probability), `node ${id}`);
  }
  const rows = await page.getByTestId('hypotheses').locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
  assert.equal(rows.length, found.hypotheses.length);
  found.hypotheses.forEach(({ text, log_probability, score, node }, index) => {
    assert.ok(rows[index][1].startsWith(text), `${rows[index][1]} is ${text}`);
    assertShows(rows[index][2], log_probability, `log p, ${index}`);
    assert.equal(Number(rows[index][3]), found.nodes[node].step);
    assertShows(rows[index][4], score, `score, ${index}`);
  });
  const saved = JSON.parse(await exported(page, page.locator('.beams details.export'), 'JSON'));
  assert.deepEqual(saved.map(({ id, parent }) => [id, parent]), found.nodes.map(({ id, parent }) => [id, parent]));
  for (const { id, sum } of saved) assertSame(sum, found.nodes[id].sum, `sum of node ${id}`, 4); // of logits
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('the arrow keys follow the best path, and every node says its sum and its score', async () => {
  const { nodes, hypotheses } = await search({});
  const page = await opened({}, nodes.length);
  const path = [];
  for (let node = nodes[hypotheses[0].node]; node.parent !== null; node = nodes[node.parent]) path.unshift(node);
  assert.deepEqual((await page.locator('.beams .node.best').evaluateAll((all) => all.map((one) => Number(one.id.replace('beam-', ''))))).sort((a, b) => a - b), [0, ...path.map(({ id }) => id)].sort((a, b) => a - b));
  await page.locator('#beam-0').focus();
  await page.keyboard.press('End');
  const last = path.at(-1);
  await page.waitForFunction((id) => document.activeElement?.id === id, `beam-${last.id}`);
  assertShows(await page.locator('.told strong').last().textContent(), hypotheses[0].score, 'score');
  assertShows(await page.locator('.told .figure').textContent(), last.sum, 'sum');
  const tip = page.getByRole('tooltip');
  assertShows(await tip.locator('tr.sum td').last().textContent(), last.sum, 'the sum of the terms');
  for (const { id } of path.slice(0, -1).reverse()) {
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((name) => document.activeElement?.id === name, `beam-${id}`);
  }
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('steps are shown one by one, and the sliders search again', async () => {
  const { nodes } = await search({});
  const upTo = (step, list = nodes) => list.filter((node) => node.step <= step).length;
  const page = await opened({}, nodes.length);
  const steps = page.getByRole('slider', { name: 'Steps shown' });
  await steps.focus();
  await page.keyboard.press('Home');
  await shown(page, 1);
  for (const step of [1, 2]) {
    await page.getByRole('button', { name: 'One step on' }).click();
    await shown(page, upTo(step));
  }
  await page.getByRole('button', { name: 'One step back' }).click();
  await shown(page, upTo(1));
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await shown(page, nodes.length);
  await page.getByRole('slider', { name: 'Beams' }).focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('beams=1'));
  const greedy = await search({ beams: 1 });
  await shown(page, greedy.nodes.length);
  await page.getByText('as greedy search does').waitFor();
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

translating('another hypothesis is highlighted when it is chosen', async () => {
  const { nodes, hypotheses } = await search({});
  const page = await opened({}, nodes.length);
  await page.getByTestId('hypotheses').getByRole('button', { name: hypotheses[1].text }).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction((id) => document.getElementById(id)?.classList.contains('best'), `beam-${hypotheses[1].node}`);
  assert.equal(await page.locator(`#beam-${hypotheses[0].node}.best`).count(), 0);
  await page.context().close();
});

translating('the tree scrolls in its box, without serious findings', async () => {
  const { nodes } = await search({ beams: 8 });
  await Promise.all([[360, true], [1280, false]].map(async ([width, dark]) => {
    const page = await opened({ beams: '8' }, nodes.length, { width, dark });
    assert.deepEqual(await seriousFindings(page), [], `at ${width}`);
    assert.equal(await overflowsSideways(page), false, `at ${width}`);
    const box = page.getByRole('region', { name: 'The tree of beam search' });
    assert.ok(await box.evaluate((one) => one.scrollWidth > one.clientWidth), `${width}: wider than its box`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }));
});
