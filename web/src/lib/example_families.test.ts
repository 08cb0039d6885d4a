import { expect, it } from 'vitest';
import { familiesOf } from './example_families';

const example = (id: string) => ({ id, title: `Title of ${id}`, text: id });

it('puts examples together whose ids begin alike, in their order', () => {
  const families = familiesOf(['adjectives', 'mole-animal', 'car', 'mole-skin', 'two-creatures'].map(example));
  expect(families.map(({ title }) => title)).toEqual(['Title of adjectives', 'Mole', 'Title of car', 'Title of two-creatures']);
  expect(families[1].examples.map(({ id }) => id)).toEqual(['mole-animal', 'mole-skin']);
  expect(familiesOf([])).toEqual([]);
});
