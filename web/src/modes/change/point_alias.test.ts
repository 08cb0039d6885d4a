import { describe, expect, it } from 'vitest';
import { resolveOnePoint, resolvePoint } from './point_alias';
import { pointNames } from './points';

describe('the name of a point', () => {
  it('is understood in every usual spelling', () => {
    const spellings: Record<string, string[]> = {
      'blocks.1.hook_resid_post': ['blocks.1.hook_resid_post', 'blocks.1.resid_post', 'resid_post1', 'resid_post 1', 'L1.resid_post', 'l1 resid post', 'layer 1 resid_post', 'h.1', 'transformer.h.1', '("resid_post", 1)', ' block 1 '],
      'blocks.2.attn.hook_q': ['q2', 'blocks.2.attn.q', 'L2.q', 'layer 2 queries', 'blocks.2.hook_q'],
      'blocks.0.hook_mlp_out': ['mlp_out0', 'h.0.mlp', 'blocks.0.mlp', 'layers.0.mlp', 'block 0 feed forward'],
      'blocks.3.hook_attn_out': ['attn_out3', 'h.3.attn', 'layers.3.self_attn', 'L3.attn_out'],
      'blocks.0.mlp.hook_post': ['post0', 'mlp_post0', 'blocks.0.mlp.post', 'L0 neurons'],
      'blocks.1.attn.hook_pattern': ['pattern1', 'L1.pattern', 'blocks.1.attn.pattern', 'attn_weights 1'],
      'blocks.1.ln1.hook_scale': ['blocks.1.ln1.scale', 'L1.ln1_scale'],
      'blocks.1.attn.hook_result': ['result1', 'L1.result', 'head_result 1'],
      'unembed.hook_in': ['unembed'],
      hook_embed: ['embed', 'wte', 'hook_embed'],
      'ln_final.hook_normalized': ['ln_final', 'ln_f'],
      'blocks.*.hook_resid_mid': ['resid_mid', 'blocks.*.hook_resid_mid'],
    };
    for (const [point, typed] of Object.entries(spellings)) for (const one of typed) expect([one, resolvePoint(one, 4)]).toEqual([one, point]);
  });

  it('leaves every full name, part and unknown word as it is', () => {
    for (const name of [...pointNames(4), 'L2', 'L2H3', 'L2N17', 'L1.attn', 'L2.mlp', 'L1H2.q', 'nonsense', 'blocks.1.nonsense']) expect(resolvePoint(name, 4)).toBe(name);
    expect([resolvePoint('l2h3', 4), resolvePoint('l1.mlp', 4)]).toEqual(['L2H3', 'L1.mlp']);
  });
});

describe('the one point that a vector is added to', () => {
  it('may be a part of the model, which means its output', () => {
    expect(['L1', 'L1.attn', 'L1.mlp', 'resid_mid2'].map((typed) => resolveOnePoint(typed, 4).point)).toEqual(['blocks.1.hook_resid_post', 'blocks.1.hook_attn_out', 'blocks.1.hook_mlp_out', 'blocks.2.hook_resid_mid']);
  });

  it('reports what is missing', () => {
    expect(resolveOnePoint('resid_mid', 4).problem).toContain('blocks.1.hook_resid_mid');
    expect(resolveOnePoint('resid_mid', 1).problem).toContain('blocks.0.hook_resid_mid');
    expect(resolveOnePoint('L1H2', 4).problem).toContain('blocks.1.attn.hook_z');
    expect(resolveOnePoint('resid_post9', 4).problem).toContain('blocks 0 to 3');
  });
});
