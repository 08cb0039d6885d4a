import { expect, it } from 'vitest';
import { History } from './history';

it('undoes and redoes, and drops redo steps after a new state', () => {
  const history = new History('');
  history.push('a');
  history.push('a');
  history.push('a;b');
  expect([history.undo(), history.undo(), history.undo()]).toEqual(['a', '', '']);
  expect(history.canUndo).toBe(false);
  expect([history.redo(), history.redo()]).toEqual(['a', 'a;b']);
  history.undo();
  history.push('c');
  expect(history.canRedo).toBe(false);
  expect(history.undo()).toBe('a');
});
