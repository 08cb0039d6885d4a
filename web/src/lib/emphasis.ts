/** Splits `a *b* c` into plain and emphasised parts; a percent sign stays with its number. */
export function emphasised(text: string): { text: string; strong: boolean }[] {
  return text.replace(/(\d) %/g, '$1\u00a0%').split('*').map((part, index) => ({ text: part, strong: index % 2 === 1 })).filter((part) => part.text !== '');
}

/** Moves the punctuation after an emphasised part to it, so that no line begins with a full stop. */
export function withTails(parts: { text: string; strong: boolean }[]): { text: string; strong: boolean; tail: string }[] {
  const tailOf = (text: string | undefined) => /^[.,:;!?)’”]+/.exec(text ?? '')?.[0] ?? '';
  return parts.map(({ text, strong }, index) => ({
    strong,
    text: parts[index - 1]?.strong && !strong ? text.slice(tailOf(text).length) : text,
    tail: strong && !parts[index + 1]?.strong ? tailOf(parts[index + 1]?.text) : '',
  }));
}
