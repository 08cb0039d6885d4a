// A cluster to train on, as sliders and a link say it, and what the server is asked about it.

import type { ScalingPlan } from '../../lib/types';

export interface Cluster {
  nodes: number;
  /** Of a node; one process uses them all. */
  cores: number;
  /** GB of a node. */
  memory: number;
  /** Gbit/s of a node's link. */
  link: number;
  /** Microseconds, one way. */
  latency: number;
  /** GFLOP/s that a core sustains; 0: as this server measured itself. */
  speed: number;
  /** Sequences a step. */
  sequences: number;
  /** Billions of tokens. */
  tokens: number;
  /** 1: moments are sharded; 2: gradients too; 3: parameters too. */
  shard: number;
  /** 1: products in bf16. */
  bf16: number;
  /** 1: gradients are exchanged while backward runs. */
  overlap: number;
  /** 1: backward computes activations again instead of keeping them. */
  recompute: number;
}

export const usual: Cluster = { nodes: 256, cores: 64, memory: 512, link: 100, latency: 20, speed: 0, sequences: 2048, tokens: 300, shard: 3, bf16: 1, overlap: 1, recompute: 0 };

const names = Object.keys(usual) as (keyof Cluster)[];
/** What a link may say; anything else is the usual. */
const bounds: Record<keyof Cluster, [number, number]> = {
  nodes: [1, 65536], cores: [1, 1024], memory: [1, 65536], link: [0.01, 10000], latency: [0.1, 1e6], speed: [0, 1e7], sequences: [1, 65536], tokens: [1e-6, 1e6],
  shard: [1, 3], bf16: [0, 1], overlap: [0, 1], recompute: [0, 1],
};
const whole = new Set<keyof Cluster>(['nodes', 'cores', 'sequences', 'shard', 'bf16', 'overlap', 'recompute']);

function isValid(name: keyof Cluster, value: number): boolean {
  const [least, most] = bounds[name];
  return value >= least && value <= most && (!whole.has(name) || Number.isInteger(value));
}

/** "nodes:64 link:10": what differs from the usual. */
export function writeCluster(cluster: Cluster): string {
  return names.filter((name) => cluster[name] !== usual[name]).map((name) => `${name}:${cluster[name]}`).join(' ');
}

export function readCluster(text: string | undefined): Cluster {
  const cluster = { ...usual };
  for (const word of (text ?? '').split(' ')) {
    const [name, value] = word.split(':') as [keyof Cluster, string];
    if (value && Object.hasOwn(bounds, name) && isValid(name, Number(value))) cluster[name] = Number(value);
  }
  return cluster;
}

/** The cluster's part of a request; `context` tokens are in a sequence. */
export function clusterQuery(cluster: Cluster): Record<string, string | number | boolean | undefined> {
  const { nodes, cores, memory, link, latency, speed, sequences, tokens, shard, bf16, overlap, recompute } = cluster;
  return {
    nodes, cores, memory: memory * 1e9, bandwidth: (link * 1e9) / 8, latency: latency / 1e6, flops: speed > 0 ? speed * 1e9 : undefined, sequences, tokens: tokens * 1e9,
    shard, dtype: bf16 ? 'bf16' : 'f32', wire: 'f32', exchange: overlap ? 'during' : 'after', recompute: recompute === 1,
  };
}

export interface Piece {
  name: string;
  size: number;
  kind: 'compute' | 'exchange' | 'parameters' | 'gradients' | 'moments' | 'rest';
}

/** The seconds of a step, in order; nothing that takes none. */
export function stepPieces({ step_seconds: step }: ScalingPlan): Piece[] {
  const pieces: Piece[] = [
    { name: 'forward', size: step.forward, kind: 'compute' },
    { name: 'backward', size: step.backward, kind: 'compute' },
    { name: 'update', size: step.update, kind: 'compute' },
    { name: 'waiting for gradients', size: step.gradients.exposed_seconds, kind: 'exchange' },
    { name: 'waiting for parameters', size: step.parameters.exposed_seconds, kind: 'exchange' },
    { name: 'waiting for keys and values', size: step.ring.exposed_seconds, kind: 'exchange' },
    { name: 'agreement', size: step.agreement, kind: 'exchange' },
  ];
  return pieces.filter(({ size }) => size > 0);
}

/** The bytes of a process. */
export function memoryPieces({ memory }: ScalingPlan): Piece[] {
  const pieces: Piece[] = [
    { name: 'parameters', size: memory.parameters, kind: 'parameters' },
    { name: 'gradients', size: memory.gradients, kind: 'gradients' },
    { name: 'moments', size: memory.moments, kind: 'moments' },
    { name: 'activations', size: memory.activations, kind: 'compute' },
    { name: 'buffers', size: memory.working + memory.exchange, kind: 'rest' },
  ];
  return pieces.filter(({ size }) => size > 0);
}

/** "3.4 days", "12 years": two digits of the largest unit that there is one of. */
export function longTime(seconds: number): string {
  const units: [number, string][] = [[31557600, 'year'], [86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];
  const [size, name] = units.find(([unit]) => seconds >= unit) ?? [1, 'second'];
  const number = seconds / size;
  const text = number >= 10 ? Math.round(number).toLocaleString('en-US') : String(Number(number.toPrecision(2)));
  return `${text} ${name}${text === '1' ? '' : 's'}`;
}

/** "12.3 s", "45 ms". */
export function shortTime(seconds: number): string {
  if (seconds >= 100) return `${Math.round(seconds).toLocaleString('en-US')} s`;
  if (seconds >= 1) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds >= 1e-3) return `${Number((1e3 * seconds).toPrecision(3))} ms`;
  return `${Number((1e6 * seconds).toPrecision(3))} µs`;
}
