import { expect, it } from 'vitest';
import { crosses, freePlace } from './label_place';

const place = { left: 10, top: 40, width: 30, height: 10 };

it('notices a curve in a label’s place, also where no point is within it', () => {
  expect(crosses([{ x: 0, y: 45 }, { x: 100, y: 45 }], place)).toBe(true);
  expect(crosses([{ x: 20, y: 0 }, { x: 25, y: 90 }], place)).toBe(true);
  expect(crosses([{ x: 0, y: 0 }, { x: 100, y: 100 }], { left: 60, top: 0, width: 20, height: 30 })).toBe(false);
  expect(crosses([{ x: 0, y: 30 }, { x: 100, y: 30 }], place)).toBe(false);
  expect(crosses([{ x: 50, y: 45 }, { x: 100, y: 45 }], place)).toBe(false);
});

it('is put where no curve passes, the first such place', () => {
  const flat = [{ x: 0, y: 45 }, { x: 200, y: 45 }];
  const below = { ...place, top: 60 };
  expect(freePlace([place, below], [flat])).toBe(below);
  expect(freePlace([below, place], [flat])).toBe(below);
  expect(freePlace([place], [flat])).toBe(place);
});
