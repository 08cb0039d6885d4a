import type { TraceMeta } from '../../lib/types';
import type { Change } from './changes';

/** Operations on the list of changes. */
export interface Edit {
  put: (change: Change) => void;
  remove: (change: Change) => void;
  clear: () => void;
  undo: () => void;
  redo: () => void;
}

/** Props of each kind of change. */
export interface ChangeProps {
  changes: Change[];
  /** The trace of the prompt without changes. */
  base: TraceMeta;
  edit: Edit;
}
