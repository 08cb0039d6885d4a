// What the server's derivations call their terms, in the page's words.

const names: Record<string, string> = {
  hook_embed: 'token row',
  hook_pos_embed: 'position row',
  resid_pre: 'stream before',
  resid_mid: 'stream after attention',
  attn_out: 'attention adds',
  mlp_out: 'feed-forward adds',
  'pre · gate': 'input × gate',
};

export function termName(label: string): string {
  return names[label] ?? label.replace(/^number (\d+)$/, 'dimension $1').replace(/^(\d+): {2}/, '$1: ␣');
}
