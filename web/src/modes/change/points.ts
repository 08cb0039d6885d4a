// Names of what a pass computes, to choose from; the server knows them, and says what is wrong with others.

import { changesQueryAndKey, gpt2, isParallel } from '../../lib/architecture';
import type { Architecture } from '../../lib/types';

const inBlock = [
  'hook_resid_pre', 'hook_attn_in', 'hook_q_input', 'hook_k_input', 'hook_v_input', 'ln1.hook_scale', 'ln1.hook_normalized', 'attn.hook_q', 'attn.hook_k', 'attn.hook_v', 'attn.hook_rot_q', 'attn.hook_rot_k', 'attn.hook_attn_scores', 'attn.hook_pattern', 'attn.hook_z',
  'attn.hook_result', 'hook_attn_out', 'hook_resid_mid', 'hook_mlp_in', 'ln2.hook_scale', 'ln2.hook_normalized', 'mlp.hook_pre', 'mlp.hook_pre_linear', 'mlp.hook_post', 'hook_mlp_out', 'hook_resid_post',
];

/** Whether a pass of the model has a point. */
function hasPoint(architecture: Architecture, name: string): boolean {
  if (name.startsWith('attn.hook_rot_')) return changesQueryAndKey(architecture);
  if (name === 'mlp.hook_pre_linear') return architecture.gated;
  if (name === 'hook_resid_mid') return !isParallel(architecture);
  return true;
}

/** In the order of a pass; of GPT-2 where no architecture is given. */
export function pointNames(layers: number, architecture = gpt2(1)): string[] {
  const present = inBlock.filter((name) => hasPoint(architecture, name));
  const blocks = Array.from({ length: layers }, (_, layer) => present.map((name) => `blocks.${layer}.${name}`));
  return ['hook_embed', ...(architecture.positions === 'learned' ? ['hook_pos_embed'] : []), ...blocks.flat(), 'ln_final.hook_scale', 'ln_final.hook_normalized', 'unembed.hook_in'];
}

/** Head, neuron, block or a branch of one: what has a switch. */
export const isPart = (name: string): boolean => /^L\d+(?:H\d+|N\d+|\.attn|\.mlp)?$/.test(name);

/** As many positions from `first` on as "5" or "3-7" names; the same text where it names none or has no end. */
export function sameLength(positions: string, first: number): string {
  const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(positions) ?? [];
  if (from === undefined) return positions;
  return to === undefined ? String(first) : `${first}-${first + Number(to) - Number(from)}`;
}
