// Short names of points and names of other libraries: resid_post1, L1.resid_post, block 1 mlp, h.1.attn, ("q", 2), ln_f.

import type { Architecture } from '../../lib/types';
import { isPart, pointNames } from './points';

/** The part after "blocks.l." by short name. */
const inBlock: Record<string, string> = {
  resid_pre: 'hook_resid_pre', resid_mid: 'hook_resid_mid', resid_post: 'hook_resid_post', resid: 'hook_resid_post', stream: 'hook_resid_post',
  attn_out: 'hook_attn_out', attention_out: 'hook_attn_out', attention: 'hook_attn_out', self_attn: 'hook_attn_out',
  mlp_out: 'hook_mlp_out', mlp: 'hook_mlp_out', ffn: 'hook_mlp_out', ffn_out: 'hook_mlp_out', feed_forward: 'hook_mlp_out',
  q: 'attn.hook_q', query: 'attn.hook_q', queries: 'attn.hook_q', k: 'attn.hook_k', key: 'attn.hook_k', keys: 'attn.hook_k', v: 'attn.hook_v', value: 'attn.hook_v', values: 'attn.hook_v', z: 'attn.hook_z',
  rot_q: 'attn.hook_rot_q', rot_query: 'attn.hook_rot_q', rot_k: 'attn.hook_rot_k', rot_key: 'attn.hook_rot_k',
  attn_in: 'hook_attn_in', q_input: 'hook_q_input', k_input: 'hook_k_input', v_input: 'hook_v_input', mlp_in: 'hook_mlp_in', result: 'attn.hook_result', head_result: 'attn.hook_result', head_results: 'attn.hook_result',
  pattern: 'attn.hook_pattern', attn_pattern: 'attn.hook_pattern', attn_weights: 'attn.hook_pattern', attn_probs: 'attn.hook_pattern',
  scores: 'attn.hook_attn_scores', attn_scores: 'attn.hook_attn_scores', attn_logits: 'attn.hook_attn_scores',
  gate: 'mlp.hook_pre', mlp_gate: 'mlp.hook_pre', pre_linear: 'mlp.hook_pre_linear', up: 'mlp.hook_pre_linear', mlp_up: 'mlp.hook_pre_linear',
  pre: 'mlp.hook_pre', mlp_pre: 'mlp.hook_pre', post: 'mlp.hook_post', mlp_post: 'mlp.hook_post', mlp_act: 'mlp.hook_post', act: 'mlp.hook_post', neurons: 'mlp.hook_post',
  ln1: 'ln1.hook_normalized', ln_1: 'ln1.hook_normalized', ln1_normalized: 'ln1.hook_normalized', ln1_scale: 'ln1.hook_scale',
  ln2: 'ln2.hook_normalized', ln_2: 'ln2.hook_normalized', ln2_normalized: 'ln2.hook_normalized', ln2_scale: 'ln2.hook_scale',
};
const outside: Record<string, string> = {
  embed: 'hook_embed', wte: 'hook_embed', token_embed: 'hook_embed', tok_embed: 'hook_embed', pos_embed: 'hook_pos_embed', wpe: 'hook_pos_embed',
  ln_final: 'ln_final.hook_normalized', ln_f: 'ln_final.hook_normalized', final_norm: 'ln_final.hook_normalized', normalized: 'ln_final.hook_normalized', ln_final_normalized: 'ln_final.hook_normalized',
  ln_final_scale: 'ln_final.hook_scale', unembed: 'unembed.hook_in', unembed_in: 'unembed.hook_in', scale: 'ln_final.hook_scale',
};

/** Normalised: lower case, without "hook_", quotes and brackets, words joined by single underscores. */
const spelt = (name: string): string => name.toLowerCase().replace(/hook_|["'()[\]]/g, '').replace(/[\s.,/:-]+/g, '_').replace(/^_+|_+$/g, '');
const inBlockPoint = (name: string): string | undefined => inBlock[name] ?? inBlock[name.replace(/^attn_/, '')];

/** The full name, with * for an unnamed block; an unknown name stays as it is. */
export function resolvePoint(typed: string, layers: number, architecture?: Architecture): string {
  const name = typed.trim();
  if (name.includes('*') || pointNames(layers, architecture).includes(name)) return name;
  if (isPart(name.toUpperCase().replace(/\.(ATTN|MLP)$/, (half) => half.toLowerCase()))) return name.replace(/^l/, 'L').replace(/(\d)([hn])(\d)/, (_, layer, unit, index) => `${layer}${unit.toUpperCase()}${index}`);
  const plain = spelt(name);
  const [, layerBefore, after] = /^(?:transformer_|model_)?(?:blocks?|layers?|h|l)_?(\d+)(?:_(.+))?$/.exec(plain) ?? [];
  if (layerBefore !== undefined) {
    const point = after === undefined ? 'hook_resid_post' : after === 'attn' ? 'hook_attn_out' : inBlockPoint(after);
    return point ? `blocks.${layerBefore}.${point}` : name;
  }
  if (outside[plain]) return outside[plain];
  const whole = inBlockPoint(plain);
  if (whole) return `blocks.*.${whole}`;
  const [, before, layerAfter] = /^(.+?)_?(\d+)$/.exec(plain) ?? [];
  const point = before === undefined ? undefined : before === 'attn' ? 'hook_attn_out' : inBlockPoint(before);
  return point ? `blocks.${layerAfter}.${point}` : name;
}

export type Resolved = { point: string; problem: null } | { point: null; problem: string };

/** One whole point, which adding a vector needs; a part of the model means its output. */
export function resolveOnePoint(typed: string, layers: number, architecture?: Architecture): Resolved {
  const point = resolvePoint(typed, layers, architecture);
  const [, layer, rest] = /^L(\d+)(.*)$/.exec(point) ?? [];
  if (layer !== undefined) {
    const added: Record<string, string> = { '': 'hook_resid_post', '.attn': 'hook_attn_out', '.mlp': 'hook_mlp_out' };
    if (added[rest]) return resolveOnePoint(`blocks.${layer}.${added[rest]}`, layers, architecture);
    return { point: null, problem: `A vector can be added to a whole point only, and “${typed.trim()}” is a part of one: use blocks.${layer}.attn.hook_z (head outputs) or blocks.${layer}.hook_attn_out (attention output).` };
  }
  if (point.includes('*')) {
    const one = point.replace('*', String(Math.min(1, layers - 1)));
    return { point: null, problem: `“${typed.trim()}” is in every block, and a vector is added to one: name it, for example ${one}.` };
  }
  const [, block] = /^blocks\.(\d+)\./.exec(point) ?? [];
  if (block !== undefined && Number(block) >= layers) return { point: null, problem: `There is no block ${block}: this model has blocks 0 to ${layers - 1}.` };
  return { point, problem: null };
}
