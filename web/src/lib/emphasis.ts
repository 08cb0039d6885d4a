/** Splits `a *b* c` into plain and emphasised parts; a percent sign stays with its number. */
export function emphasised(text: string): { text: string; strong: boolean }[] {
  return text.replace(/(\d) %/g, '$1\u00a0%').split('*').map((part, index) => ({ text: part, strong: index % 2 === 1 })).filter((part) => part.text !== '');
}
