import { expect, it } from 'vitest';
import { isPart, pointNames, sameLength } from './points';

it('names every point in the order of a pass', () => {
  const names = pointNames(2);
  expect([names.length, new Set(names).size]).toEqual([51, 51]);
  expect([names[0], names[2], names.at(-1)]).toEqual(['hook_embed', 'blocks.0.hook_resid_pre', 'unembed.hook_in']);
});
it('tells parts from points', () => {
  expect(['L2', 'L2H3', 'L2N17', 'L1.attn'].every(isPart)).toBe(true);
  expect(['L2H3.q', 'blocks.2.attn.hook_q', 'resid_mid2'].some(isPart)).toBe(false);
});
it('takes as many positions as it fills', () => {
  expect([sameLength('5', 2), sameLength('3-7', 2), sameLength('', 2), sameLength('4-', 2)]).toEqual(['2', '2-6', '', '4-']);
});
