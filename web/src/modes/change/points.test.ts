import { expect, it } from 'vitest';
import { families } from '../../lib/families';
import { isPart, pointNames, sameLength } from './points';

it('names every point in the order of a pass', () => {
  const names = pointNames(2);
  expect([names.length, new Set(names).size]).toEqual([51, 51]);
  expect([names[0], names[2], names.at(-1)]).toEqual(['hook_embed', 'blocks.0.hook_resid_pre', 'unembed.hook_in']);
});
it('names the points that the model has', () => {
  const has = (name: keyof typeof families, point: string) => pointNames(2, families[name]).includes(point);
  for (const name of Object.keys(families) as (keyof typeof families)[]) {
    const architecture = families[name];
    expect(has(name, 'hook_pos_embed'), name).toBe(architecture.positions === 'learned');
    expect(has(name, 'blocks.1.attn.hook_rot_k'), name).toBe(name !== 'gpt2');
    expect(has(name, 'blocks.0.mlp.hook_pre_linear'), name).toBe(architecture.gated);
    expect(has(name, 'blocks.0.hook_resid_mid'), name).toBe(architecture.residual === 'sequential');
  }
});
it('tells parts from points', () => {
  expect(['L2', 'L2H3', 'L2N17', 'L1.attn'].every(isPart)).toBe(true);
  expect(['L2H3.q', 'blocks.2.attn.hook_q', 'resid_mid2'].some(isPart)).toBe(false);
});
it('takes as many positions as it fills', () => {
  expect([sameLength('5', 2), sameLength('3-7', 2), sameLength('', 2), sameLength('4-', 2)]).toEqual(['2', '2-6', '', '4-']);
});
