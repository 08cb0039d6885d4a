/** Pixels across a printed card, as wide as app.css makes the page on paper. */
const room = 820;

/**
 * An action for what is placed by measured pixels, such as curves between words: nothing is measured again for
 * paper, so there it keeps the width it was drawn at, and is made smaller as a whole (app.css).
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
