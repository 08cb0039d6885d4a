// Which labels of a picture are drawn: none over another.

export interface Label {
  x: number;
  y: number;
  width: number;
  height: number;
}

const touch = (a: Label, b: Label): boolean => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** Of labels in the order of their importance, those that touch none of `taken` and none before them. */
export function apart<T extends Label>(labels: T[], taken: Label[] = []): T[] {
  const drawn: T[] = [];
  for (const label of labels) if (![...taken, ...drawn].some((other) => touch(label, other))) drawn.push(label);
  return drawn;
}
