/** Rows and columns that an arrow key moves by in a grid. */
export const arrowMoves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
