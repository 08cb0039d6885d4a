// The page's names for the terms of the server's derivations.

const names: Record<string, string> = {
  hook_embed: 'token embedding',
  hook_pos_embed: 'position embedding',
  resid_pre: 'residual stream before',
  resid_mid: 'residual stream after attention',
  attn_out: 'attention output',
  mlp_out: 'feed-forward output',
  'pre · gate': 'input × gate',
};

export function termName(label: string): string {
  return names[label] ?? label.replace(/^number (\d+)$/, 'dimension $1').replace(/^(\d+): {2}/, '$1: ␣');
}
