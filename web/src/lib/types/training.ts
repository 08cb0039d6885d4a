// Training runs, and training by the server.

export interface Run {
  name: string;
  path_shown: string;
  settings: Record<string, unknown>;
  steps_total: number;
  step: number;
  /** Whether a process trains it now. */
  live: boolean;
  /** A text that its models can take. */
  sentence?: string;
  checkpoints: number[];
  parameters: number;
  /** Comes with heed, was trained by this server, or was given with --run. */
  origin?: 'recorded' | 'live' | 'given';
  /** Of its text, in nats: no model has a lower average loss. Null where it is not known. */
  entropy_per_token?: number | null;
}

/** A run that cannot be read. */
export interface DamagedRun {
  name: string;
  path_shown: string;
  error: string;
}

export type MetricsRow = Record<string, number | string | null | Record<string, number>>;

export type TrainingState = 'none' | 'preparing' | 'running' | 'paused' | 'stopping' | 'finished' | 'stopped' | 'failed';

/** What the server trains now, or trained last. */
export interface Training {
  allowed: boolean;
  why_not?: string | null;
  state: TrainingState;
  /** The name of the run that it writes. */
  run: string | null;
  step: number;
  steps: number;
  learning_rate: number | null;
  learning_rate_factor: number;
  preparing: { what: string; done: number; total: number } | null;
  error: string | null;
  presets: TrainingPreset[];
  limits: Record<TrainingNumber, [number, number]> & { text_bytes: number };
}

export type TrainingNumber = 'layers' | 'heads' | 'width' | 'context' | 'steps' | 'batch_size' | 'learning_rate';

export interface TrainingPreset extends Record<TrainingNumber, number> {
  name: string;
  title: string;
  note: string;
  /** About how long it takes, where it is known. */
  seconds?: number | null;
}

export interface TrainingRequest {
  preset?: string;
  /** Without a text it trains on stories of the microworld. */
  text?: string;
  tokenizer?: 'char' | 'bpe';
  settings?: Partial<Record<TrainingNumber | 'seed', number>>;
}
