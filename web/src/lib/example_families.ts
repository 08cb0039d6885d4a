// Examples of one word or question belong together: the first parts of their ids are alike ("mole-animal", "mole-skin").

import type { Example } from './types';

export interface Family {
  /** The examples' title, or the family's name where there are several. */
  title: string;
  examples: Example[];
}

export function familiesOf(examples: Example[]): Family[] {
  const families = new Map<string, Example[]>();
  for (const example of examples) {
    const name = example.id.split('-')[0];
    families.set(name, [...(families.get(name) ?? []), example]);
  }
  return [...families].map(([name, members]) => ({
    title: members.length === 1 ? members[0].title : name[0].toUpperCase() + name.slice(1),
    examples: members,
  }));
}
