// A colour for each head of a block: hues at equal distances, of one lightness. The head's number is always written beside it.

export function headColour(head: number, heads: number): string {
  return `oklch(var(--head-light, 0.62) 0.13 ${Math.round((360 * head) / Math.max(1, heads) + 20) % 360})`;
}
