import { describe, expect, it } from 'vitest';
import { embedOf } from './embed';

describe('the address of an embedded view', () => {
  it('names a view, and the settings of a link', () => {
    expect(embedOf('')).toBeNull();
    expect(embedOf('?text=a')).toBeNull();
    expect(embedOf('?view=attention&text=The+dog&layer=1&head=2&position=0&model=english')).toMatchObject({ shown: 'attention', view: { mode: 'follow', text: 'The dog', layer: 1, head: 2, position: 0, model: 'english' } });
    expect(embedOf('?view=whole-model&text=x')).toMatchObject({ shown: 'whole-model', view: { mode: 'whole-model', text: 'x' } });
    expect(embedOf('?view=no-such')!.shown).toBe('attention');
  });

  it('keeps no word of its own in the view', () => {
    expect(embedOf('?view=attention&text=x&draw=dots')!.view.extra).toEqual({ draw: 'dots', pick: 'effect' });
  });
});
