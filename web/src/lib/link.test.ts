import { describe, expect, it } from 'vitest';
import { defaultView, formatLink, opened, parseLink, keptExtras, viewOfModel } from './link';
import { samplingOptions as options } from './sampling_fixture';

describe('the link of a view', () => {
  it('is bare for the default view', () => {
    expect(formatLink(defaultView())).toBe('#/learn');
  });

  it('round-trips', () => {
    const view = defaultView();
    Object.assign(view, { mode: 'change', text: 'a fox & a “hare”?\n100 %', layer: 2, head: 5, position: 7 });
    Object.assign(view.sampling, { temperature: 0.7, top_k: 0, top_p: 0.5 });
    view.extra = { step: '500' };
    expect(parseLink(formatLink(view), options)).toEqual(view);
    expect(parseLink(formatLink(parseLink(formatLink(view))), options)).toEqual(view);
  });

  it('opens the tour first, and what it opened before where it has settings and names no mode', () => {
    for (const bare of ['', '#', '#/', '#/?lesson=1']) expect(parseLink(bare).mode, bare).toBe('learn');
    for (const old of ['#/?text=a+hare', '#?layer=2', '#/?head=1']) expect(parseLink(old).mode, old).toBe('follow');
  });

  it('stays a lesson in every link of a lesson', () => {
    const view = parseLink('#/learn?chapter=head&lesson=1');
    expect(view).toMatchObject({ lesson: true, extra: { chapter: 'head' } });
    expect(formatLink({ ...view, extra: { chapter: 'mask' } })).toBe('#/learn?chapter=mask&lesson=1');
    expect(parseLink('#/learn?chapter=head').lesson).toBe(false);
  });

  it('keeps the defaults for invalid values', () => {
    const view = parseLink('#/follow?layer=two&head=-5&position=1.5&temperature=hot&top-k=-3', options);
    expect(view).toEqual({ ...defaultView(), mode: 'follow' });
  });

  it('keeps changes between the modes that use them only, and everywhere how the head is picked and the unit', () => {
    const view = parseLink('#/change?changes=L2H3&cuts=renormalise&what=neurons');
    expect(keptExtras('generate', view)).toEqual({ changes: 'L2H3', cuts: 'renormalise' });
    expect(keptExtras('follow', view)).toEqual({});
    expect(keptExtras('change', parseLink('#/follow?changes=L2H3'))).toEqual({});
    expect(keptExtras('generate', parseLink('#/change?cuts=renormalise'))).toEqual({});
    expect(keptExtras('compare', parseLink('#/follow?text=a&layer=2&pick=effect&unit=words&draw=dots&open=nearest'))).toEqual({ pick: 'effect', unit: 'words', draw: 'dots' });
  });

  it('names the model that is shown, and of another one keeps the text and nothing that was the former one’s', () => {
    const link = '#/change?model=english&text=a+hare&layer=5&head=4&position=1&temperature=0.7&changes=L5H4&cuts=renormalise&unit=words';
    const view = parseLink(link, options);
    expect(view).toMatchObject({ model: 'english', layer: 5, head: 4 });
    expect(formatLink(view)).toBe(link);
    expect(formatLink(viewOfModel(view, 'EleutherAI/pythia-70m'))).toBe('#/change?model=EleutherAI%2Fpythia-70m&text=a+hare&temperature=0.7&unit=words');
    expect(formatLink(viewOfModel(view, '', 'a fox'))).toBe('#/change?text=a+fox&temperature=0.7&unit=words');
    expect(formatLink(viewOfModel(parseLink('#/learn?chapter=mask&layer=3'), 'english'))).toBe('#/learn?model=english&chapter=mask');
  });

  it('without a text shows the example, and keeps the head that it names', () => {
    const example = { id: 'a', title: 'A', text: 'the fox', layer: 3, head: 2, position: 1 };
    expect(opened(parseLink('#/follow'), example)).toMatchObject({ mode: 'follow', text: 'the fox', layer: 3, head: 2, position: 1 });
    expect(opened(parseLink('#/learn?layer=1&chapter=mask'), example)).toMatchObject({ text: 'the fox', layer: 1, head: 0, position: -1, extra: { chapter: 'mask' } });
    expect(opened(parseLink('#/follow?text=a+hare'), example)).toEqual(parseLink('#/follow?text=a+hare'));
    expect(opened(parseLink('#/follow'), example).extra.pick).toBeUndefined();
    expect(opened(parseLink('#/follow?position=0'), example)).toMatchObject({ layer: 3, head: 2, position: 0, extra: { pick: 'effect' } });
    expect(opened(parseLink('#/follow'), { id: 'b', title: 'B', text: 'a hare' })).toEqual({ ...defaultView(), mode: 'follow', text: 'a hare', extra: { pick: 'effect' } });
  });

  it('with a text and no head has the head picked by effect, and says so in no other way', () => {
    expect(parseLink('#/follow?text=a+hare').extra).toEqual({ pick: 'effect' });
    expect(formatLink(parseLink('#/follow?text=a+hare'))).toBe('#/follow?text=a+hare');
    for (const given of ['#/follow?text=a+hare&head=0', '#/follow?text=a+hare&layer=2', '#/follow?text=a+hare&layer=2&pick=effect']) expect(formatLink(parseLink(given))).toBe(given);
    expect(formatLink({ ...defaultView(), mode: 'follow', text: 'a hare' })).toBe('#/follow?text=a+hare&head=0');
  });
});
