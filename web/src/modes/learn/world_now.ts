// The model at hand on the shown text, for exercises and questions.

import { api } from '../../lib/api';
import { current, page } from '../../lib/state.svelte';
import { surprisesOf } from './surprises';
import type { World } from './world';

/** As the page shows it now; null while there is no trace of the text. */
export function worldNow(): World | null {
  const { meta } = current;
  if (!meta || current.text !== page.view.text) return null;
  const { position } = current;
  const { layer, head, extra } = page.view;
  return {
    tokens: meta.tokens, words: meta.words, layers: meta.layers, heads: meta.heads, context: meta.dimensions.context, layer, head, position, extra: { ...extra },
    row: async (of, index, query) => (await current.keep(`row ${of} ${index} ${query}`, (id) => api.attentionRow(id, of, index, query))).data,
    statistics: () => current.keep('heads', (id) => api.heads(id)),
    vector: (point, at) => current.vector(point, at),
    edge: async (at) => (await current.keep(`question edge ${at}`, (id) => api.edgeToShow(id, at, 'words'))).edge,
    lens: async (at) => (await current.keep(`two of the lens at ${at}`, (id) => api.lens(id, 2, String(at)))).cells.map(([cell]) => cell),
    surprises: surprisesOf,
    tokensOf: (text) => api.tokenize(text),
    moved: (interventions, at) =>
      current.keep(`moved ${JSON.stringify(interventions)} ${at}`, async (id) => {
        const changed = await api.makeTrace({ tokens: meta.tokens.map((token) => token.id), interventions });
        const { kl } = await api.compare(id, changed.id, at, 1);
        void api.removeTrace(changed.id).catch(() => undefined);
        return kl;
      }),
    vectorsOf: async (tokens, point, positions) => {
      const made = await api.makeTrace({ tokens });
      const vectors = await Promise.all(positions.map(async (at) => (await api.array(made.id, point, { positions: String(at) })).data));
      void api.removeTrace(made.id).catch(() => undefined);
      return vectors;
    },
  };
}
