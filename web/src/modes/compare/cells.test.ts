import { expect, it } from 'vitest';
import { writtenCells } from './cells';

it('writes into cells with room, up to the diagonal', () => {
  const cells = writtenCells({ left: 0, top: 0, scale: 100, width: 300, height: 300 }, 5);
  expect(cells).toEqual([[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]].map(([query, key]) => ({ query, key })));
});
it('writes visible cells only, and nothing where cells are small', () => {
  expect(writtenCells({ left: 3.5, top: 3.5, scale: 60, width: 60, height: 60 }, 9)).toEqual([{ query: 3, key: 3 }, { query: 4, key: 3 }, { query: 4, key: 4 }]);
  expect(writtenCells({ left: 0, top: 0, scale: 20, width: 300, height: 300 }, 5)).toEqual([]);
});
