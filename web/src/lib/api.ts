// Typed calls of the API. `platform` sends them to a server, or to the engine in a worker.

import { connection } from './connection.svelte';
import { readEvents, type ServerEvent } from './events';
import type * as Pairs from './pair_types';
import { platform } from './platform';
import type * as Types from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | undefined | null>;

/** A path with its query; undefined and null parameters are left out. */
export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&');
  return text ? `${path}?${text}` : path;
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { error } = await response.json();
    return new ApiError(response.status, error.message);
  } catch {
    return new ApiError(response.status, `the server answered ${response.status} ${response.statusText}`);
  }
}

/** Retries after a lost connection; throws an ApiError for an error response. */
async function send(path: string, options: RequestInit = {}): Promise<Response> {
  for (;;) {
    let response: Response;
    try {
      response = await platform.fetch(path, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      await connection.waitUntilBack();
      continue;
    }
    if (response.ok) return response;
    throw await errorOf(response);
  }
}

async function json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return (await send(address(path, query), { signal })).json();
}

async function post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return send(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal });
}

/** A binary response: little-endian f32 with its shape in a header. */
export async function readArray(response: Response): Promise<Types.NumberArray> {
  const shape = (response.headers.get('X-Heed-Shape') ?? '').split(',').filter(Boolean).map(Number);
  const bytes = await response.arrayBuffer();
  const count = shape.reduce((product, size) => product * size, 1);
  if (response.headers.get('X-Heed-Dtype') !== 'f32' || bytes.byteLength !== 4 * count) {
    throw new ApiError(502, `expected ${count} f32 values of shape (${shape}), got ${bytes.byteLength} bytes`);
  }
  return { shape, data: new Float32Array(bytes) };
}

async function binary(path: string, query?: Query, signal?: AbortSignal): Promise<Types.NumberArray> {
  return readArray(await send(address(path, query), { signal }));
}

/** A text for a model without a tokenizer is a list of token ids: "464 3139 286", or "#464". */
export function idsOf(text: string): number[] {
  const words = text.split(/[\s,]+/).filter(Boolean);
  const wrong = words.find((word) => !/^#?\d+$/.test(word));
  if (wrong !== undefined) throw new ApiError(400, `“${wrong}” is not a token id: this model has no tokenizer, so type ids such as 464 3139 286`);
  return words.map((word) => Number(word.replace('#', '')));
}

/** A text of a translator: ids where all of it is written as such ("#17 #4"), otherwise words. */
export function asPairText(side: Pairs.PairSide, text: string): Pairs.PairRequest {
  const words = text.split(/[\s,]+/).filter(Boolean);
  const areIds = words.length > 0 && words.every((word) => /^#\d+$/.test(word));
  if (!areIds) return { [side]: text };
  return { [`${side}_tokens`]: idsOf(text) };
}

let hasTokenizer = true;

/** The model that requests are about, which the page's link names; undefined: the one that the server was started with. */
let chosen: string | undefined;
let choices = 0;
const ofModel = (query: Query = {}): Query => ({ ...query, model: chosen });

const trace = (id: string) => `/api/traces/${encodeURIComponent(id)}`;
const headAt = (id: string, site: Pairs.Site | 'self', layer: number, index: number) => `${trace(id)}/attention/${site}/${layer}/${index}`;
/** Of one text. */
const head = (id: string, layer: number, index: number) => headAt(id, 'self', layer, index);

export const api = {
  model: async (): Promise<Types.ModelCard | Pairs.ServedTranslator> => {
    const card = await json<Types.ModelCard | Pairs.ServedTranslator>('/api/model', ofModel());
    if (!('is_translator' in card)) hasTokenizer = card.has_tokenizer;
    return card;
  },
  /** All later requests are about this model, once it is ready; empty: the one that the server was started with. */
  choose: async (model: string): Promise<void> => {
    const choice = ++choices;
    const name = await platform.choose(model);
    if (choice === choices) chosen = name;
  },
  models: () => json<Types.ModelList>('/api/models'),
  download: async (model: string): Promise<Types.ModelList> => (await post(`/api/downloads/${encodeURIComponent(model)}`, {})).json(),
  cancelDownload: async (model: string): Promise<Types.ModelList> => (await send(`/api/downloads/${encodeURIComponent(model)}`, { method: 'DELETE' })).json(),
  status: () => json<Types.ServerStatus>('/api/status'),
  samplingOptions: async () => (await json<{ sampling_options: Types.SamplingOption[] }>('/props')).sampling_options,
  tokenize: async (text: string, signal?: AbortSignal): Promise<Types.Token[]> => {
    if (!hasTokenizer) return idsOf(text).map((id) => ({ id, text: `#${id}` }));
    return (await (await post('/api/tokenize', { text, model: chosen }, signal)).json()).tokens;
  },
  vocabulary: async (): Promise<string[]> => (await json<{ tokens: string[] }>('/api/vocabulary', ofModel())).tokens,
  findTokens: async (find: string, limit = 20): Promise<Types.Token[]> =>
    (await json<{ tokens: Types.Token[] }>('/api/vocabulary', ofModel({ find, limit }))).tokens,
  parameters: (query: Query) => json<Types.ParameterCount>('/api/parameters', ofModel(query)),
  plan: (query: Query) => json<Types.ScalingPlan>('/api/plan', ofModel(query)),
  presets: async () => (await json<{ presets: Types.Preset[] }>('/api/presets')).presets,

  makeTrace: async ({ text, ...request }: Types.TraceRequest, signal?: AbortSignal): Promise<Types.TraceMeta> => {
    // A checkpoint of a run has the run's tokenizer, whatever the explored model has.
    const read = text === undefined ? {} : hasTokenizer || request.model ? { text } : { tokens: idsOf(text) };
    return (await post('/api/traces', { ...(request.base === undefined && { model: chosen }), ...request, ...read }, signal)).json();
  },
  trace: (id: string) => json<Types.TraceMeta>(trace(id)),
  /** Reads the short answer too: a browser keeps the connection of an answer that is not read. */
  removeTrace: async (id: string) => void (await (await send(trace(id), { method: 'DELETE' })).arrayBuffer()),
  array: (id: string, point: string, query?: { positions?: string; heads?: string; layers?: string }, signal?: AbortSignal) =>
    binary(`${trace(id)}/arrays/${point}`, query, signal),
  heads: async (id: string) => (await json<{ heads: Types.HeadStatistics[] }>(`${trace(id)}/heads`)).heads,
  thumbnails: (id: string, size = 32, pooling: 'max' | 'mean' = 'max') => binary(`${trace(id)}/thumbnails`, { size, pooling }),
  attention: (id: string, layer: number, index: number, query?: Query, signal?: AbortSignal) =>
    binary(head(id, layer, index), query, signal),
  /** By words: (words), the weights of each word's tokens summed. */
  attentionRow: (id: string, layer: number, index: number, position: number, unit?: 'words') =>
    binary(`${head(id, layer, index)}/rows/${position}`, { unit }),
  attentionColumn: (id: string, layer: number, index: number, position: number, unit?: 'words') =>
    binary(`${head(id, layer, index)}/columns/${position}`, { unit }),
  attentionRowTop: async (id: string, layer: number, index: number, position: number, top = 10) =>
    (await json<{ positions: Types.WeightedPosition[] }>(`${head(id, layer, index)}/rows/${position}`, { top })).positions,
  attentionColumnTop: async (id: string, layer: number, index: number, position: number, top = 10) =>
    (await json<{ positions: Types.WeightedPosition[] }>(`${head(id, layer, index)}/columns/${position}`, { top })).positions,
  wordRowTop: async (id: string, layer: number, index: number, position: number, top = 10) =>
    (await json<{ positions: Types.WeightedWord[] }>(`${head(id, layer, index)}/rows/${position}`, { top, unit: 'words' })).positions,
  wordColumnTop: async (id: string, layer: number, index: number, position: number, top = 10) =>
    (await json<{ positions: Types.WeightedWord[] }>(`${head(id, layer, index)}/columns/${position}`, { top, unit: 'words' })).positions,
  edgeToShow: (id: string, position: number, unit: 'tokens' | 'words', signal?: AbortSignal) => json<Types.EdgeToShow>(`${trace(id)}/head`, { position, unit }, signal),
  /** Without `token`: the text's own next token, or the most likely one at the last position. */
  gradients: (id: string, position: number, token?: number, signal?: AbortSignal) =>
    json<Types.LossGradients>(`${trace(id)}/gradients`, { position, token }, signal),
  tile: (id: string, layer: number, index: number, level: number, row: number, column: number, pooling: 'max' | 'mean' = 'max', signal?: AbortSignal) =>
    binary(`${head(id, layer, index)}/tiles/${level}/${row}/${column}`, { pooling }, signal),
  walk: (id: string, layer: number, index: number, position: number, signal?: AbortSignal) =>
    json<Types.Walk>(`${trace(id)}/walk`, { layer, head: index, position }, signal),
  next: (id: string, query: Query, signal?: AbortSignal) =>
    json<Types.NextTokens>(`${trace(id)}/next`, query, signal),
  lens: (id: string, top = 3, positions?: string) => json<Types.Lens>(`${trace(id)}/lens`, { top, positions }),
  attribution: (id: string, query: Query) => json<Types.Attribution>(`${trace(id)}/attribution`, query),
  /** The largest direct effect on the likeliest next token first. */
  neurons: (id: string, layer: number, position: number, top = 20) =>
    json<{ token: Types.Token; neurons: Types.NeuronActivity[] }>(`${trace(id)}/neurons`, { layer, position, top, by: 'direct' }),
  neuronEffects: (id: string, layer: number, position: number, neuron?: number) =>
    json<Types.NeuronEffects>(`${trace(id)}/neurons/effects`, { layer, position, neuron }),
  causes: (id: string, position: number, signal?: AbortSignal) => json<Types.WordCauses>(`${trace(id)}/causes`, { position }, signal),
  neuron: (layer: number, neuron: number, id?: string) => json<Types.Neuron>(`/api/neurons/${layer}/${neuron}`, ofModel({ trace: id })),
  neuronContexts: (layer: number, neuron: number, top = 10) =>
    json<{ source: string; contexts: Types.NeuronContext[] }>(`/api/neurons/${layer}/${neuron}/contexts`, ofModel({ top })),
  senses: () => json<Types.SenseLibrary>('/api/senses', ofModel()),
  wordSenses: (word: string, text?: string) => json<Types.WordSenses>(`/api/senses/${encodeURIComponent(word)}`, ofModel({ text: text || undefined })),
  culpritProbe: (text: string) => json<Types.CulpritProbe>('/api/probes/culprit', ofModel({ text })),
  /** With `terms`, up to that many instead of the largest. */
  derivation: (id: string, element: Types.PointElement, signal?: AbortSignal, terms?: number) =>
    json<Types.Derivation>(`${trace(id)}/derivation`, { ...element, terms }, signal),
  compare: (id: string, other: string, position = -1, top = 12) =>
    json<Types.Comparison>(`${trace(id)}/compare/${encodeURIComponent(other)}`, { position, top }),
  /** A weight matrix W of x·W, or the rows and columns of it that are listed ("0-63,80"). */
  weights: (layer: number, role: Types.WeightRole, query: { head?: number; rows?: string; columns?: string } = {}) =>
    binary(`/api/weights/${layer}/${role}`, ofModel(query)),
  /** Rows of the token embedding, one for each id listed. */
  tokenEmbedding: (rows?: string, columns?: string) => binary('/api/weights/token_embedding', ofModel({ rows, columns })),
  nearest: (id: string, position: number, top: number) => json<Types.NearestWords>(`/api/traces/${id}/nearest`, { position, top }),
  directions: (id: string, position: number, tokens: number[], direction: 'read' | 'next') => json<Types.WordDirections>(`/api/traces/${id}/directions`, { position, tokens: tokens.join(','), direction }),
  vectors: (first: string, second: string) => json<Types.VectorComparison>('/api/vectors', { first, second }),
  projection: (id: string, point: string, other?: string) => json<Types.Projection>(`${trace(id)}/projection`, { point, other }),
  /** The URL of a figure drawn by the server; for a link with `download`. */
  figure: (id: string, kind: 'attention' | 'heads' | 'lens' | 'next', query: Query) => address(`${trace(id)}/figure`, { kind, ...query }),

  /** Yields each generated token, then the trace of the whole text. Abort the signal to stop. */
  async *generate(request: Types.GenerateRequest, signal?: AbortSignal): AsyncGenerator<
    { kind: 'token'; token: Types.GeneratedToken } | { kind: 'done'; finish_reason: string; trace: Types.TraceMeta }
  > {
    for await (const { event, data } of readEvents(await post('/api/generate', { ...request, model: chosen }, signal))) {
      if (event === 'token') yield { kind: 'token', token: JSON.parse(data) };
      if (event === 'done') yield { kind: 'done', ...JSON.parse(data) };
      if (event === 'error') throw new ApiError(500, JSON.parse(data).error?.message ?? data);
    }
  },

  /** The translator that the server holds; 404 where it holds none. */
  translator: () => json<Pairs.TranslatorCard>('/api/translator'),
  makePair: async (request: Pairs.PairRequest): Promise<Pairs.PairMeta> => (await post('/api/traces', request)).json(),
  siteThumbnails: (id: string, site: Pairs.Site, size = 32) => binary(`${trace(id)}/thumbnails`, { site, size }),
  siteHeads: async (id: string, site: Pairs.Site) => (await json<{ heads: Pairs.PairHeadStatistics[] }>(`${trace(id)}/heads`, { site })).heads,
  /** (queries, keys); with `unit` by words. */
  attentionAt: (id: string, site: Pairs.Site, layer: number, index: number, query?: { unit?: 'words'; row?: Pairs.PairRow }) =>
    binary(headAt(id, site, layer, index), query),
  /** Without a head: the mean of the layer's. */
  alignment: (id: string, layer: number, index: number | null, row: Pairs.PairRow) =>
    json<Pairs.PairAlignment>(`${trace(id)}/alignment`, { layer, head: index, row }),
  /** What the trace's interventions change, against the same texts without them. */
  effect: (id: string) => json<Pairs.PairEffect>(`${trace(id)}/effect`),
  influence: (id: string, side: Pairs.PairSide, position: number) => json<Pairs.PairInfluence>(`${trace(id)}/influence`, { side, position }),
  translations: async (id: string): Promise<Pairs.PairTranslations> => (await post(`${trace(id)}/translation`, {})).json(),

  training: (signal?: AbortSignal) => json<Types.Training>('/api/training', {}, signal),
  train: async (request: Types.TrainingRequest): Promise<Types.Training> => (await post('/api/training', request)).json(),
  controlTraining: async (action: 'pause' | 'resume' | 'stop'): Promise<Types.Training> => (await post(`/api/training/${action}`, {})).json(),
  /** Multiplies the schedule's learning rate from the next step on. */
  scaleLearningRate: async (factor: number): Promise<Types.Training> => (await post('/api/training/learning_rate', { factor })).json(),

  /** Every candidate that beam search looks at, as a tree. */
  beams: async (id: string, request: Pairs.BeamRequest, signal?: AbortSignal): Promise<Pairs.BeamSearch> => (await post(`${trace(id)}/beams`, request, signal)).json(),

  runs: async () => (await json<{ runs: (Types.Run | Types.DamagedRun)[] }>('/api/runs')).runs,
  metrics: async (run: string, from = 0) =>
    (await json<{ rows: Types.MetricsRow[] }>(`/api/runs/${encodeURIComponent(run)}/metrics`, { from })).rows,
  /** An `open` once the server listens, then a `metrics` for each new row and an `end` when the run is finished. */
  async *runEvents(run: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await send(`/api/runs/${encodeURIComponent(run)}/events`, { signal });
    yield { event: 'open', data: '' };
    yield* readEvents(response);
  },
};
