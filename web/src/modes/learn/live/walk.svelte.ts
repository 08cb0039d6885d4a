// The walk of the chosen word through the chosen head; call during component initialisation.

import { api } from '../../../lib/api';
import { loaded } from '../../../lib/load.svelte';
import { current, page } from '../../../lib/state.svelte';

export function shownWalk() {
  return loaded(() => {
    const { layer, head } = page.view;
    const { position } = current;
    return current.meta && current.keep(`walk ${layer} ${head} ${position}`, (id) => api.walk(id, layer, head, position));
  });
}
