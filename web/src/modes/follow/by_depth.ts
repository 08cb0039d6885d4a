// The words whose directions are followed by depth, in the link.

/** Token ids in a link, "810,1955"; at most `most`, without those that do not exist. */
export function idsInLink(text: string | undefined, vocabulary: number, most: number): number[] {
  const ids = (text ?? '').split(',').filter((part) => /^\d+$/.test(part)).map(Number);
  return [...new Set(ids)].filter((id) => id < vocabulary).slice(0, most);
}
