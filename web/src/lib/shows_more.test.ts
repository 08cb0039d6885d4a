import { expect, it } from 'vitest';
import { hiddenEnds } from './shows_more';

it('says at which ends a row goes on', () => {
  expect(hiddenEnds({ scrollLeft: 0, scrollWidth: 300, clientWidth: 300 })).toEqual([]);
  expect(hiddenEnds({ scrollLeft: 0, scrollWidth: 700, clientWidth: 300 })).toEqual(['end']);
  expect(hiddenEnds({ scrollLeft: 200, scrollWidth: 700, clientWidth: 300 })).toEqual(['start', 'end']);
  expect(hiddenEnds({ scrollLeft: 400, scrollWidth: 700, clientWidth: 300 })).toEqual(['start']);
  expect(hiddenEnds({ scrollLeft: 399.5, scrollWidth: 700, clientWidth: 300 })).toEqual(['start']);
});
