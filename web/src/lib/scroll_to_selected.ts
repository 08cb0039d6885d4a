/** Action: scrolls the element's row sideways to show the element when it becomes the selected one; the page stays. */
export function scrollToSelected(element: HTMLElement, chosen: boolean) {
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
