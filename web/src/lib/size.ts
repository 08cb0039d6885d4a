// The size of an element, told before each frame in which it is another one. `bind:clientWidth` also reads it at once, for
// which the browser lays out the page: of fifty strips that appear together, once each.

type Tell = (size: { width: number; height: number }) => void;

const told = new WeakMap<Element, Tell>();
let observer: ResizeObserver | undefined;

/** Svelte action. */
export function sized(element: Element, tell: Tell) {
  observer ??= new ResizeObserver((entries) => {
    for (const { target } of entries) told.get(target)?.({ width: target.clientWidth, height: target.clientHeight });
  });
  told.set(element, tell);
  observer.observe(element);
  return { destroy: () => observer!.unobserve(element) };
}
