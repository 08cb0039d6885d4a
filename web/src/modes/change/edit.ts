import type { Change } from './changes';

/** What the views of the list of changes can do to it. */
export interface Edit {
  put: (change: Change) => void;
  remove: (change: Change) => void;
  clear: () => void;
  undo: () => void;
  redo: () => void;
}
