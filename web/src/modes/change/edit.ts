import type { TraceMeta } from '../../lib/types';
import type { Change } from './changes';

/** What the views of the list of changes can do to it. */
export interface Edit {
  put: (change: Change) => void;
  remove: (change: Change) => void;
  clear: () => void;
  undo: () => void;
  redo: () => void;
}

/** What each kind of change is given. */
export interface ChangeProps {
  changes: Change[];
  /** The prompt as the model reads it without changes. */
  base: TraceMeta;
  edit: Edit;
}
