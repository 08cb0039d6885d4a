// Depths in words.

/** Names of depths, those of blocks that follow each other as one: "after blocks 1 to 5". */
export function joinedDepths(names: string[]): string {
  const parts: { first: number; last: number; text: string }[] = [];
  for (const name of names) {
    const block = Number(/^after block (\d+)$/.exec(name)?.[1] ?? NaN);
    const before = parts.at(-1);
    if (before && before.last + 1 === block) {
      before.last = block;
      before.text = `after blocks ${before.first} to ${block}`;
    } else parts.push({ first: block, last: block, text: name });
  }
  const texts = parts.map(({ text }) => text);
  return texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}
