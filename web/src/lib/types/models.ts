// Models that the server holds, their examples, and downloads.

import type { Architecture, Dimensions } from './shape';
import type { Read } from './tokens';
import type { TraceMeta } from './traces';

/** An intervention, and what it does to the probability of a next token. */
export interface Trial {
  label: string;
  /** As a link writes changes. */
  changes: string;
  /** The extra `cuts` of such a link. */
  cuts?: string;
  token: string;
  before: number;
  after: number;
  /** The token that takes its place. */
  instead?: { token: string; before: number; after: number };
}

export interface Example {
  id: string;
  title: string;
  text: string;
  layer?: number;
  head?: number;
  position?: number;
  /** What the head reads at the position: its tokens. */
  evidence?: { begin: number; end: number };
  note?: string;
  trials?: Trial[];
}

/** A model that the server holds, finds or may download. */
export interface ListedModel {
  /** As links and requests name it. */
  name: string;
  /** For people. */
  title: string;
  /** What it has read, in one line; null where nothing says so. */
  about: string | null;
  /** The served one is that of the command line; it may be one of the others. */
  kind: 'served' | 'embedded' | 'pulled' | 'published';
  parameters: number | null;
  /** Of its weights, as stored. */
  bytes: number;
  /** Of them, what a download that ended early has left to go on from. */
  partial_bytes: number;
  /** Whether it can be shown now, has to be downloaded, is being downloaded, or has files that cannot be read. */
  state: 'ready' | 'absent' | 'downloading' | 'damaged';
  /** Whether the server has it in memory. */
  loaded: boolean;
  /** Why it is damaged. */
  message?: string;
}

export interface Download {
  name: string;
  state: 'running' | 'finished' | 'cancelled' | 'failed';
  /** What is being done, such as "downloading model.safetensors". */
  doing: string;
  /** Of the file at hand. */
  done: number;
  total: number;
  /** Why it failed. */
  error: { type: string; message: string } | null;
}

export interface ModelList {
  models: ListedModel[];
  downloads: { allowed: boolean; why_not: string | null };
  /** The last one that was asked for. */
  download: Download | null;
}

export interface ModelCard {
  name: string;
  /** Which of the models that heed carries it is, under whatever name; null: none. */
  embedded: string | null;
  version: string;
  dimensions: Dimensions;
  tied: boolean;
  architecture: Architecture;
  dtype: string;
  has_tokenizer: boolean;
  read?: Read | null;
  examples: Example[];
  limits: { prompt_tokens: number; trace_bytes: number };
  runs: string[];
}

export interface ServerStatus {
  traces: TraceMeta[];
  trace_bytes: number;
  trace_budget: number;
  uptime_seconds: number;
  requests_processing: number;
}
