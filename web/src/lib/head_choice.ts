// The head whose attention is shown: one head, or the mean of a block's.

export interface HeadChoice {
  layer: number;
  /** Null: the mean of the block's heads. */
  head: number | null;
}

export const formatHead = ({ layer, head }: HeadChoice): string => (head === null ? `L${layer}` : `L${layer}H${head}`);

/** The choices of one block: the mean of its heads first, where there is more than one. */
export const choicesOfBlock = (heads: number): HeadChoice['head'][] => (heads === 1 ? [0] : [null, ...Array.from({ length: heads }, (_, head) => head)]);
