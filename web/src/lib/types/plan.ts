// Training on a cluster.

/** What a process exchanges in a step. */
export interface PlannedExchange {
  bytes: number;
  transfer_seconds: number;
  latency_seconds: number;
  hidden_seconds: number;
  exposed_seconds: number;
}

/** Training on a cluster, as `heed plan --json` predicts it. */
export interface ScalingPlan {
  name: string;
  parameters: number;
  flops_per_token: number;
  cluster: { nodes: number; processes: number; cores_per_node: number; memory_per_node: number; bandwidth: number; latency: number };
  run: { sequences_per_step: number; batch_size: number; accumulation: number; own_sequences: number; context: number; tokens_per_step: number; precision: string; shard: number };
  /** Of a core: operations and bytes a second. */
  rates: { block_forward: number; block_backward: number; ends: number; memory: number; copies: number };
  memory: { parameters: number; gradients: number; moments: number; activations: number; working: number; exchange: number; total: number; fits: boolean };
  min_nodes: number | null;
  step_seconds: { forward: number; backward: number; update: number; gradients: PlannedExchange; parameters: PlannedExchange; ring: PlannedExchange; agreement: number; compute: number; hidden: number; exposed: number; total: number };
  tokens_per_s: number;
  flops_per_s: number;
  efficiency: number;
  limit: 'memory' | 'batch' | 'bandwidth' | 'latency' | 'compute';
  sentence: string;
  training: { tokens: number; steps: number; operations: number; seconds: number; days: number; node_hours: number };
  sweep: { nodes: number; step_seconds: number; tokens_per_s: number; efficiency: number; days: number; memory: number; fits: boolean; limit: string }[];
}
