import { describe, expect, it } from 'vitest';
import { defaultView, formatLink, parseLink } from './link';

describe('the link of a view', () => {
  it('is bare for the default view', () => {
    expect(formatLink(defaultView())).toBe('#/follow');
  });

  it('gives back everything that was put in', () => {
    const view = defaultView();
    Object.assign(view, { mode: 'change', text: 'a fox & a “hare”?\n100 %', layer: 2, head: 5, position: 7 });
    Object.assign(view.sampling, { temperature: 0.7, top_k: 0, top_p: 0.5 });
    view.interventions = [{ kind: 'ablate', place: 'L2H3' }, { kind: 'cut', layer: 1, head: 0, edges: [[4, 2]] }];
    view.extra = { step: '500' };
    expect(parseLink(formatLink(view))).toEqual(view);
  });

  it('keeps the defaults for what cannot be read', () => {
    const view = parseLink('#/follow?layer=two&head=-5&position=1.5&temperature=hot&interventions=%7B');
    expect(view).toEqual(defaultView());
  });

  it('passes over interventions without a kind', () => {
    expect(parseLink(`#/change?interventions=${encodeURIComponent('[1,{"kind":"mean","place":"L0"},{}]')}`).interventions).toEqual([
      { kind: 'mean', place: 'L0' },
    ]);
  });
});
