// A row that scrolls sideways shows that it goes on: a fade with an arrow at each end that hides something (app.css, [data-more]).

/** The ends of a row at which it goes on; a pixel of rounding hides nothing. */
export function hiddenEnds({ scrollLeft, scrollWidth, clientWidth }: Pick<HTMLElement, 'scrollLeft' | 'scrollWidth' | 'clientWidth'>): ('start' | 'end')[] {
  const start = scrollLeft > 1;
  const end = scrollLeft + clientWidth < scrollWidth - 1;
  return [...(start ? (['start'] as const) : []), ...(end ? (['end'] as const) : [])];
}

/** Action: keeps `data-more` of the row in step with its scrolling, its size and its content. */
export function showsMore(row: HTMLElement) {
  const update = () => (row.dataset.more = hiddenEnds(row).join(' '));
  const sizes = new ResizeObserver(update);
  const contents = new MutationObserver(update);
  sizes.observe(row);
  contents.observe(row, { childList: true, subtree: true, characterData: true });
  row.addEventListener('scroll', update, { passive: true });
  update();
  return {
    destroy() {
      sizes.disconnect();
      contents.disconnect();
      row.removeEventListener('scroll', update);
    },
  };
}
