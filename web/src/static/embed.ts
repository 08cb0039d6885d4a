// One view alone, as another page embeds it: `?view=attention&text=…`, with the settings of a link.

import { parseLink, type View } from '../lib/link';
import { modes } from '../modes';

export interface Embed {
  /** "attention": the sentence, what the chosen word attends to, and what comes next; otherwise a mode of the page. */
  shown: string;
  view: View;
}

/** What an address asks for; null: the whole page. */
export function embedOf(search: string): Embed | null {
  const query = new URLSearchParams(search);
  const shown = query.get('view');
  if (shown === null) return null;
  query.delete('view');
  const mode = modes.some(({ id }) => id === shown) ? shown : 'follow';
  return { shown: mode === shown ? shown : 'attention', view: parseLink(`#/${mode}?${query}`) };
}
