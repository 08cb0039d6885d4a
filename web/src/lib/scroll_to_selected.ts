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

/** Scrolls the boxes around the element, as far as it is not in them; the page stays. */
export function scrollWithin(element: HTMLElement) {
  for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
    if (box.scrollHeight <= box.clientHeight + 1 || !/auto|scroll/.test(getComputedStyle(box).overflowY)) continue;
    const [place, frame] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
    box.scrollTop += Math.max(0, place.bottom - frame.bottom + place.height / 2) - Math.max(0, frame.top - place.top + place.height / 2);
  }
}
