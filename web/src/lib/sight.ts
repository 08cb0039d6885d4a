/**
 * An action: scrolls the row that holds the element sideways until it is seen, whenever it becomes the chosen one.
 * The page itself stays where it is.
 */
export function inSight(element: HTMLElement, chosen: boolean) {
  const show = (isChosen: boolean) => {
    const row = element.parentElement;
    if (!isChosen || !row || row.scrollWidth <= row.clientWidth) return;
    const [place, frame] = [element.getBoundingClientRect(), row.getBoundingClientRect()];
    row.scrollLeft += place.left - frame.left - (frame.width - place.width) / 2;
  };
  // Fonts and neighbours have their sizes a frame later.
  const later = (isChosen: boolean) => requestAnimationFrame(() => show(isChosen));
  later(chosen);
  return { update: later };
}
