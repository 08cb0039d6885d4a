import { describe, expect, it } from 'vitest';
import { asPairText } from '../../lib/api';
import type { PairInfluence, PairMeta } from '../../lib/pair_types';
import { alignmentDrawing } from './drawing';
import { causalEncoder, describeEdit, fits, formatEdits, hasEdit, isCut, parseEdits, toggled, toInterventions, type Edit } from './edits';
import { choicesOfBlock, formatHead } from '../../lib/head_choice';
import { choiceInWords, parseHead } from './heads';
import { earlierMoved, finding, laterWord } from './influence';
import { arcPath, linkPath, lineWidth } from './layout';
import { mapOf } from './map';
import { formatStatistic, statisticsOf } from '../../lib/statistics';
import { columnOf, formatWord, isLater, isSpecial, meanOf, parseWord, positionsOf, rowOf, strongest } from './words';

/** "The dog barks" with one token a word but the last, of two; its target starts with <s>. */
function pairMeta(): PairMeta {
  const text = (...words: string[][]) => {
    const tokens = words.flat().map((text, id) => ({ id, text }));
    let begin = 0;
    return { tokens, words: words.map((pieces) => ({ text: pieces.join('').trim(), begin, end: (begin += pieces.length) })) };
  };
  const sites = (['encoder', 'decoder', 'cross'] as const).map((site) => ({ site, layers: 2, heads: 4, queries: 5, keys: 5, causal: site === 'decoder', levels: 1 }));
  return {
    id: 't1', model: { name: 'toy', run: null, step: null }, bytes: 1, seconds: 0, base: null, interventions: [], sites,
    source: text(['The'], [' dog'], [' bar', 'ks'], ['</s>']),
    target: { ...text(['<s>'], ['Der'], [' Hund'], [' be', 'llt']), is_translation: true },
  };
}

describe('texts', () => {
  it('are words, or ids that are written as such', () => {
    expect(asPairText('source', 'The dog.')).toEqual({ source: 'The dog.' });
    expect(asPairText('target', '#1 #40, #7')).toEqual({ target_tokens: [1, 40, 7] });
    expect(asPairText('source', '#1 dog')).toEqual({ source: '#1 dog' });
    expect(asPairText('source', ' ')).toEqual({ source: ' ' });
  });
});

describe('the chosen word', () => {
  const meta = pairMeta();
  it('is named by place or by text', () => {
    expect(parseWord('t2', meta)).toEqual({ side: 'target', index: 2 });
    expect(parseWord('s:dog', meta)).toEqual({ side: 'source', index: 1 });
    expect(parseWord(formatWord({ side: 'source', index: 3 }), meta)).toEqual({ side: 'source', index: 3 });
  });
  it('is none where the text has no such word', () => {
    for (const text of ['', 't4', 's:cat', 'x1', undefined]) expect(parseWord(text, meta)).toBeNull();
  });
  it('stands for the positions that write it, or the one that has read it', () => {
    const [start, , , barks] = meta.target.words;
    expect(positionsOf(barks, 'written')).toEqual([2, 3]);
    expect(positionsOf(barks, 'read')).toEqual([4]);
    expect(positionsOf(start, 'written')).toEqual([0]);
  });
  it('sees no word that is later than its positions', () => {
    const [start, der, hund, bellt] = meta.target.words;
    expect([start, der, hund, bellt].map((key) => isLater(hund, key, 'written'))).toEqual([false, false, true, true]);
    expect([start, der, hund, bellt].map((key) => isLater(hund, key, 'read'))).toEqual([false, false, false, true]);
    // Its second token is written after its first was read.
    expect(isLater(bellt, bellt, 'written')).toBe(false);
  });
  it('may be a special token', () => expect(['<s>', '</s>', '[SEP]', 'Hund', '<', '[x]'].map(isSpecial)).toEqual([true, true, true, false, false, false]));
});

describe('a head', () => {
  const sizes = { layers: 2, heads: 4 };
  it('is one, or the mean of a block', () => {
    expect(parseHead('L1H3', sizes)).toEqual({ layer: 1, head: 3 });
    expect(parseHead('L0', sizes)).toEqual({ layer: 0, head: null });
    expect(formatHead({ layer: 0, head: null })).toBe('L0');
  });
  it('is the mean of the last block where there is no such head', () => {
    for (const text of ['', 'L2', 'L0H4', 'H1', undefined]) expect(parseHead(text, sizes)).toEqual({ layer: 1, head: null });
  });
  it('is the only one of its block, whose mean is the same picture', () => {
    const alone = { layers: 2, heads: 1 };
    expect(choicesOfBlock(1)).toEqual([0]);
    expect(choicesOfBlock(2)).toEqual([null, 0, 1]);
    for (const text of ['L1', 'L2', 'L1H1', undefined]) expect(parseHead(text, alone)).toEqual({ layer: 1, head: 0 });
    expect(parseHead('L0', alone)).toEqual({ layer: 0, head: 0 });
    expect(choiceInWords({ layer: 1, head: 0 }, 1)).toBe('the only head of block 1');
  });
});

describe('changes', () => {
  const written = 'cross.L1H2;cross:2>1;cross.L0:3>0;decoder.L1H0:3>1;encoder.L0H3';
  it('round-trip through the link, and invalid parts are left out', () => {
    expect(formatEdits(parseEdits(written))).toBe(written);
    expect(parseEdits('cross.L1;cross;decoder.L0H1:2>;encoder.L1H1;nonsense:1>2')).toEqual([{ kind: 'off', of: 'encoder', layer: 1, head: 1 }]);
  });
  it('are the server’s interventions', () => {
    expect(toInterventions(parseEdits('cross.L1H2;cross.L0:3>0'), { masked: true, renormalise: true })).toEqual([
      { kind: 'mask', point: 'encoder', mask: 'causal' },
      { kind: 'ablate', point: 'cross.L1H2' },
      { kind: 'cut_words', point: 'cross.L0', target: 3, source: 0, renormalise: true },
    ]);
    expect(toInterventions(parseEdits('cross:2>1'), { masked: false, renormalise: false })).toEqual([{ kind: 'cut_words', point: 'cross', target: 2, source: 1 }]);
  });
  it('apply where the texts and the model have what they name', () => {
    const meta = pairMeta();
    const applied = (text: string) => parseEdits(text).map((edit) => fits(edit, meta));
    expect(applied('cross:2>1;cross:4>1;cross:2>4;cross.L2:1>1;cross.L1H4;cross.L1H3')).toEqual([true, false, false, false, false, true]);
    // The decoder sees no later word; the encoder does.
    expect(applied('decoder:2>1;decoder:2>2;decoder:1>3;encoder:0>3;decoder:3>3')).toEqual([true, false, false, true, true]);
  });
  it('are made and undone', () => {
    const cut: Edit = { kind: 'cut', of: 'cross', layer: null, head: null, from: 2, to: 1 };
    const made = toggled([], cut);
    expect(hasEdit(made, { ...cut })).toBe(true);
    expect(toggled(made, { ...cut })).toEqual([]);
    expect(describeEdit(cut, pairMeta())).toBe('“Hund” no longer attends to “dog” in all heads of cross-attention');
    expect(describeEdit({ kind: 'off', of: 'encoder', layer: 0, head: 3 }, pairMeta())).toBe('head 3 of block 0 of the encoder: off');
  });
  it('cut an edge of a head, of a block and of its mean', () => {
    const edits = parseEdits('cross.L1:2>1;cross.L0H3:2>0');
    expect(isCut(edits, 'cross', 1, 0, 2, 1)).toBe(true);
    expect(isCut(edits, 'cross', 1, null, 2, 1)).toBe(true);
    expect(isCut(edits, 'cross', 0, 3, 2, 0)).toBe(true);
    // One of the heads still has the edge.
    expect(isCut(edits, 'cross', 0, null, 2, 0)).toBe(false);
    expect(isCut(edits, 'decoder', 1, 0, 2, 1)).toBe(false);
  });
});

describe('weights', () => {
  const matrix = { shape: [2, 3], data: Float32Array.from([0.5, 0.25, 0.25, 0, 0.125, 0.875]) };
  it('have rows, columns and a mean', () => {
    expect([...rowOf(matrix, 1)]).toEqual([0, 0.125, 0.875]);
    expect([...columnOf(matrix, 2)]).toEqual([0.25, 0.875]);
    expect(meanOf([matrix, { shape: [2, 3], data: new Float32Array(6) }])).toEqual({ shape: [2, 3], data: Float32Array.from([0.25, 0.125, 0.125, 0, 0.0625, 0.4375]) });
  });
  it('are listed with the largest first, without those of none', () => expect(strongest(rowOf(matrix, 1))).toEqual([{ index: 2, weight: 0.875 }, { index: 1, weight: 0.125 }]));
});

describe('the heat map', () => {
  it('hides what the mask hides, by words and by tokens', () => {
    const meta = pairMeta();
    const even = (rows: number, columns: number) => ({ shape: [rows, columns], data: new Float32Array(rows * columns).fill(0.25) });
    const seen = (map: { data: Float32Array; columns: string[] }) => Array.from(map.data, (weight) => (weight === -Infinity ? '.' : 'x')).join('').match(new RegExp(`.{${map.columns.length}}`, 'g'));
    expect(seen(mapOf(meta, 'decoder', even(4, 4), 'written', 'words'))).toEqual(['x...', 'x...', 'xx..', 'xxxx']);
    expect(seen(mapOf(meta, 'decoder', even(4, 4), 'read', 'words'))).toEqual(['x...', 'xx..', 'xxx.', 'xxxx']);
    expect(seen(mapOf(meta, 'decoder', even(5, 5), 'written', 'tokens'))).toEqual(['x....', 'xx...', 'xxx..', 'xxxx.', 'xxxxx']);
    expect(seen(mapOf(meta, 'cross', even(4, 4), 'written', 'words'))).toEqual(['xxxx', 'xxxx', 'xxxx', 'xxxx']);
    expect(seen(mapOf(meta, 'encoder', even(4, 4), 'written', 'words'))).toEqual(['xxxx', 'xxxx', 'xxxx', 'xxxx']);
    const masked = { ...meta, interventions: [causalEncoder] };
    expect(seen(mapOf(masked, 'encoder', even(4, 4), 'written', 'words'))).toEqual(['x...', 'xx..', 'xxx.', 'xxxx']);
  });
});

describe('influence', () => {
  const meta = pairMeta();
  const of = (side: 'source' | 'target', position: number, encoder: number[], decoder: number[]): PairInfluence => ({ side, position, token: { id: 3, text: '<unk>' }, encoder, decoder });
  it('is shown of the last word', () => {
    expect(laterWord(meta.source.words)).toBe(2);
    expect(laterWord([{ text: '.', begin: 0, end: 1 }])).toBe(0);
  });
  it('counts the earlier vectors that move at all', () => {
    expect(earlierMoved([1e-9, 0, 0.5, 1], 2)).toEqual({ moved: 1, of: 2 });
  });
  it('is told in a sentence that the numbers carry', () => {
    expect(finding(of('source', 2, [0.1, 0.2, 1, 0.3, 0.1], []), of('source', 2, [0, 0, 1, 0.3, 0.1], []), meta.source))
      .toBe('Another word in place of “barks” moves all 2 vectors before it in the encoder. With a causal mask it moves none of the 2.');
    expect(finding(of('target', 2, [], [0, 0, 1]), of('target', 2, [], [0, 0, 1]), meta.target))
      .toBe('Another word in place of “Hund” moves none of the 2 vectors before it in the decoder: its mask hides what comes later.');
    // A decoder without its mask would not be told to have one.
    expect(finding(of('target', 2, [], [0, 0.1, 1]), of('target', 2, [], [0, 0.1, 1]), meta.target)).not.toContain('mask hides');
    expect(finding(of('source', 0, [1], []), of('source', 0, [1], []), meta.source)).toContain('first token');
  });
});

describe('statistics', () => {
  it('are those that the kind has', () => {
    expect(statisticsOf('cross').map(({ key }) => key)).toEqual(['largest', 'first', 'last', 'evenness', 'entropy']);
    expect(statisticsOf('decoder').map(({ key }) => key)).not.toContain('next');
    expect(statisticsOf('encoder')).toHaveLength(9);
    expect(formatStatistic(null, 'share')).toBe('–');
  });
});

describe('curves', () => {
  const [upper, lower] = [{ left: 10, top: 0, width: 20, height: 10 }, { left: 60, top: 100, width: 40, height: 10 }];
  it('link the edges that face each other', () => {
    expect(linkPath(lower, upper, 'lines')).toBe('M80 100C80 55 20 55 20 10');
    expect(linkPath({ left: 100, top: 0, width: 30, height: 10 }, upper, 'columns')).toBe('M100 5C65 5 65 5 30 5');
  });
  it('arch away from the other text', () => {
    const heights = (path: string) => [...path.matchAll(/-?[\d.]+ (-?[\d.]+)/g)].map(([, y]) => Number(y));
    const beside = { ...upper, left: 200 };
    expect(Math.min(...heights(arcPath(upper, beside, 'source', 'lines')))).toBeLessThan(0);
    expect(Math.max(...heights(arcPath(upper, beside, 'target', 'lines')))).toBeGreaterThan(10);
  });
  it('need room for every word', () => expect(lineWidth([{ text: 'a' }, { text: 'barking' }], { letter: 10, around: 20, narrowest: 50 })).toBe(140));
});

it('draws the alignment as a file', () => {
  const meta = pairMeta();
  const cross = { shape: [4, 4], data: Float32Array.from({ length: 16 }, (_, at) => (at % 5 === 0 ? 0.9 : 0.01)) };
  const palette = { paper: '#fff', ink: '#000', soft: '#555', line: '#ddd', accent: '#00f', key: '#950', query: '#829', pale: '#888' };
  const { text, width } = alignmentDrawing('a head', meta, cross, palette);
  expect(text.match(/<path /g)).toHaveLength(4);
  expect(text).toContain('&#60;s&#62;');
  expect(width).toBeGreaterThanOrEqual(420);
});
