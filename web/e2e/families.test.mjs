// The page shows each family of models as it is: what it says follows the server's description, and its numbers the API.
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { overflowsSideways, picture, seriousFindings, settled, useExplorer } from './harness.mjs';
import { assertShows } from './numbers.mjs';

const goldens = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../tests/golden/families');
const families = process.env.HEED_ADDRESS ? ['given'] : ['llama', 'mistral', 'neox', 'qwen2_windows', 'qwen3'];
const ids = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6];
const text = encodeURIComponent(ids.join(' '));
const plain = (number) => Number(number.replace(/[,\s]/g, ''));

for (const family of families) {
  describe(family, () => {
    const session = useExplorer([], path.join(goldens, family));

    async function described() {
      const model = await session.get('/api/model');
      const { architecture, dimensions: { heads, layers } } = model;
      const answer = await fetch(`${session.address}/api/traces`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ tokens: ids }) });
      const { id } = await answer.json();
      const [layer, head] = [layers - 1, heads - 1];
      return { model, architecture, heads, id, layer, head, window: architecture.windows[layer] ?? 0, group: heads / architecture.key_value_heads };
    }

    test('follows a word: rotation, shared keys, the window, gates and halves are those of the model', async () => {
      const { architecture, heads, id, layer, head, window, group } = await described();
      const page = await session.open(`#/follow?text=${text}&layer=${layer}&head=${head}`);
      const attention = page.locator('#attention');
      await attention.locator('.row.sum').waitFor();

      await page.locator('#embedding .lanes').waitFor();
      assert.equal(await page.locator('#embedding').getByText('position embedding').count(), architecture.positions === 'learned' ? 1 : 0);
      assert.equal(await attention.getByText('RMS norm', { exact: true }).count(), architecture.norm === 'rms' ? 1 : 0);

      const rotation = attention.getByRole('region', { name: /^(Rotation|Norms) of query/ });
      const positioned = architecture.positions === 'rotary' || architecture.query_key_norm;
      if (positioned) await rotation.locator('.katex').first().waitFor();
      assert.equal(await rotation.count(), positioned ? 1 : 0);

      const sharers = attention.getByTestId('sharers').getByRole('button');
      assert.deepEqual(await sharers.allTextContents(), group === 1 ? [] : Array.from({ length: group }, (_, index) => `L${layer}H${heads - group + index}`));

      // The last word: keys before the window are masked, and the page says why.
      const walk = await session.get(`/api/traces/${id}/walk?layer=${layer}&head=${head}&position=${ids.length - 1}`);
      const seen = walk.answers.filter(({ masked }) => !masked).length;
      assert.equal(seen, window > 0 ? Math.min(window, ids.length) : ids.length);
      assert.equal(await attention.getByTestId('window').count(), window > 0 ? 1 : 0);
      if (seen < ids.length) {
        await attention.getByText(`outside the window of ${window} tokens`).first().waitFor();
        await attention.getByRole('button', { name: `All ${ids.length} tokens` }).click();
        assert.equal(await attention.locator('.row.masked').count(), ids.length - seen);
      }
      const rows = attention.locator('.row:not(.head, .ask, .sum, .rest, .edge, .masked)');
      const shown = await rows.locator('.c-number .figure').allTextContents();
      // All keys are listed where they are few, else the strongest, in the order of the text.
      const listed = [...walk.answers].filter(({ masked }) => !masked).sort((a, b) => b.share - a.share).slice(0, 10).sort((a, b) => a.position - b.position);
      assert.equal(shown.length, 2 * listed.length);
      listed.forEach(({ product, scaled, position }, index) => {
        assertShows(shown[2 * index], product, `q·k of key ${position}`);
        assertShows(shown[2 * index + 1], scaled, `score of key ${position}`);
      });

      const feedForward = page.locator('#feed-forward');
      await feedForward.locator('table.neurons').waitFor();
      assert.equal(await feedForward.getByRole('columnheader', { name: 'up', exact: true }).count(), architecture.gated ? 1 : 0);
      assert.equal(await feedForward.getByText('attention output').count(), architecture.residual === 'parallel' ? 1 : 0);
      assert.equal(await page.locator('#gather').getByText('after attention', { exact: true }).count(), architecture.residual === 'parallel' ? 0 : 1);
      assert.deepEqual(page.problems, []);
      assert.deepEqual(await seriousFindings(page), []);
      await picture(page, `family-${architecture.family}-follow`);
      await page.context().close();
    });

    test('the closer views show the head’s own numbers', async () => {
      const { id, layer, head, group } = await described();
      const page = await session.open(`#/follow?text=${text}&layer=${layer}&head=${head}&open=${encodeURIComponent('projection unmasked scaled split')}`);
      const sum = page.getByTestId('projection-sum');
      await sum.waitFor();
      await page.locator('#more-projection').getByRole('button', { name: 'key', exact: true }).click();
      await sum.locator('h3').getByText(/^How k/).waitFor();
      const [, column] = /k(\d+)/.exec(await sum.locator('h3').textContent());
      const derivation = await session.get(`/api/traces/${id}/derivation?point=blocks.${layer}.attn.hook_k&layer=${layer}&head=${Math.floor(head / group)}&position=${ids.length - 1}&index=${column}`);
      assertShows(await sum.locator('tr.total td').textContent(), derivation.value, 'the key');
      await page.locator('#more-unmasked canvas').first().waitFor();
      await page.locator('#more-scaled').getByTestId('largest-query').waitFor();
      await page.locator('#more-split .heads').waitFor();
      assert.deepEqual(page.problems, []);
      await page.context().close();
    });

    test('pictures the whole model with the parts that it has', async () => {
      const { architecture, layer, head } = await described();
      const page = await session.open(`#/whole-model?text=${text}&at=b${layer}/attention/h${head}/pattern`);
      const names = () => page.getByRole('tree').getByRole('treeitem').allTextContents();
      await page.getByRole('treeitem', { name: /attention pattern/ }).waitFor();
      const all = (await names()).join(' ');
      assert.equal(/(rotated|normalised) query/.test(all), architecture.positions === 'rotary' || architecture.query_key_norm);
      assert.equal(all.includes('residual stream between'), architecture.residual === 'sequential');
      assert.equal(all.includes('RMS norm 1'), architecture.norm === 'rms');
      assert.deepEqual(page.problems, []);
      await picture(page, `family-${architecture.family}-whole`);
      await page.context().close();
    });

    test('counts what the server counts', async () => {
      const { architecture } = await described();
      const counted = await session.get('/api/parameters');
      const page = await session.open('#/count?config=model');
      await page.waitForFunction((total) => document.querySelector('.total')?.textContent === total, counted.total.toLocaleString('en-US'));
      const parts = await page.locator('.table tbody tr.part').evaluateAll((rows) => rows.map((row) => ({ factors: [...row.querySelectorAll('td.factors .number')].map((one) => one.textContent), count: row.cells[2].textContent })));
      assert.equal(parts.reduce((sum, { count }) => sum + plain(count), 0), counted.total);
      for (const { factors, count } of parts) if (factors.length > 0) assert.equal(factors.reduce((product, factor) => product * plain(factor), 1), plain(count));
      assert.equal(await page.getByRole('checkbox', { name: 'gates in feed-forward' }).isChecked(), architecture.gated);

      // A shape of one's own: the link restores it, and the server counts it.
      await page.getByRole('checkbox', { name: 'gates in feed-forward' }).click();
      await page.waitForFunction((before) => document.querySelector('.total')?.textContent !== before, counted.total.toLocaleString('en-US'));
      const total = await page.locator('.total').textContent();
      const again = await session.open(new URL(page.url()).hash);
      await again.waitForFunction((expected) => document.querySelector('.total')?.textContent === expected, total);
      assert.deepEqual(page.problems, []);
      assert.deepEqual(await seriousFindings(page), []);
      await page.context().close();
      await again.context().close();
    });

    test('teaches what is true of it, also on a narrow screen', async () => {
      const { architecture } = await described();
      for (const chapter of ['embeddings', 'head', 'mask', 'heads', 'block']) {
        const page = await session.open(`#/learn?text=${text}&chapter=${chapter}`, { width: 390 });
        await page.locator('.formulas .katex').first().waitFor();
        const article = await page.locator('article').textContent();
        if (chapter === 'embeddings') assert.equal(article.includes('position embedding'), architecture.positions === 'learned');
        if (chapter === 'block') assert.equal(article.includes('RMS norm'), architecture.norm === 'rms');
        if (chapter === 'block') assert.equal(article.includes('both halves read the same stream'), architecture.residual === 'parallel');
        if (chapter === 'head') assert.equal(article.includes('rotate'), architecture.positions === 'rotary');
        if (chapter === 'mask') assert.equal(article.includes('window'), architecture.windows.some((one) => one > 0));
        await settled(page);
        assert.equal(await overflowsSideways(page), false, chapter);
        assert.deepEqual(page.problems, [], chapter);
        await page.context().close();
      }
    });
  });
}
