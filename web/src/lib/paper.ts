/** Pixels across a printed card, as wide as app.css makes the page on paper. */
const room = 820;

/**
 * Action for elements laid out by measured pixels, such as arcs between words: they are not measured again for
 * printing, so they keep the width they were drawn at and are scaled down as a whole (app.css).
 */
export function asDrawn(element: HTMLElement) {
  const paper = matchMedia('print');
  element.dataset.asDrawn = '';
  const observer = new ResizeObserver(() => {
    if (paper.matches || element.offsetWidth === 0) return;
    element.style.setProperty('--drawn', `${element.offsetWidth}px`);
    element.style.setProperty('--shrink', String(Math.min(1, room / element.offsetWidth)));
  });
  observer.observe(element);
  return { destroy: () => observer.disconnect() };
}
