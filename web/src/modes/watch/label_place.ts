// Where a label of a horizontal line stands in a chart: off the curves.

export interface Rectangle {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Whether a curve, point by point, passes through a rectangle. */
export function crosses(curve: { x: number; y: number }[], { left, top, width, height }: Rectangle): boolean {
  return curve.some((to, index) => {
    const from = curve[Math.max(0, index - 1)];
    if (Math.max(from.x, to.x) < left || Math.min(from.x, to.x) > left + width) return false;
    // The part of the segment between the two sides.
    const at = (x: number) => (to.x === from.x ? to.y : from.y + ((to.y - from.y) * (Math.min(Math.max(x, Math.min(from.x, to.x)), Math.max(from.x, to.x)) - from.x)) / (to.x - from.x));
    const ends = to.x === from.x ? [from.y, to.y] : [at(left), at(left + width)];
    return Math.max(...ends) >= top && Math.min(...ends) <= top + height;
  });
}

/** The place among `places` that the fewest curves pass; the first of those that are equal. */
export function freePlace(places: Rectangle[], curves: { x: number; y: number }[][]): Rectangle {
  const counts = places.map((place) => curves.filter((curve) => crosses(curve, place)).length);
  return places[counts.indexOf(Math.min(...counts))];
}
