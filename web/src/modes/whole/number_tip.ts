// The computation of the number under the pointer.

import type { Token } from '../../lib/types';
import { tip } from '../../lib/tip.svelte';
import type { Engine } from './engine';
import { cellBox, type Cell, type Found } from './find';
import type { Store } from './store';
import { cellName, cellValue, elementOf } from './words';

const explainedCell = 9; // pixels

export class NumberTip {
  #locate: (() => DOMRect) | undefined;

  hide(): void {
    tip.hide(this.#locate);
  }

  /** Shows how a cell's number comes about, where the cell is large enough. */
  show(engine: Engine, canvas: HTMLCanvasElement, store: Store, candidates: Token[], found: Found, cell: Cell): void {
    const number = store.read(found.part, found.path, cell);
    const box = engine.onScreen(cellBox(found, cell));
    if (number === null || Math.min(box.width, box.height) < explainedCell) return;
    const locate = (this.#locate = () => {
      const { left, top } = canvas.getBoundingClientRect();
      const { x, y, width, height } = engine.onScreen(cellBox(found, cell));
      return new DOMRect(left + x, top + y, width, height);
    });
    const name = cellName(found, store.setting, candidates, cell);
    const title = `${name[0].toUpperCase()}${name.slice(1)}: ${cellValue(found.part, number)}`;
    const element = elementOf(found, store.setting, cell);
    if (element) tip.show(locate, title, element);
    else tip.tell(locate, title, null);
  }
}
