/* Operands of attention on a device: kernels/operands.h says what they mean. Strides are in bytes.
 */
#pragma once

#include "tensor/device_library.h"

/* Rows of heads (B, positions, H, D): numbers of a row are dense. */
struct HeedHeads {
  void* data;
  long long batch, position, head;
  int vectors; /* whether four numbers of a row, counted from its start, can be read at once */
};

/* How keys and values are stored. */
enum HeedRowType { HEED_ROWS_F32, HEED_ROWS_BF16, HEED_ROWS_INT8 };

struct HeedDropout {
  unsigned long long key;
  unsigned first_column;
  unsigned threshold; /* of the 24 bits of an element; 0: no dropout */
  float kept;         /* 1 - rate */
};

/* A sequence, or several of one length. */
struct HeedAttention {
  struct HeedHeads query, key, value;
  struct HeedHeads key_scales, value_scales; /* of int8 */
  struct HeedHeads out;
  float* log_sum_exp; /* (B, H, T) */
  const float* bias;  /* of distance bias_first, of head 0; null: none */
  long long bias_head;
  int bias_first, bias_count;
  int batch, queries, memory, heads, group, head_size; /* group: query heads of a key head */
  int visible, window; /* query t sees [visible + t - window + 1, visible + t], within the memory */
  float scale, soft_cap;
  int rounds;                    /* whether operands of products are rounded to bf16 */
  long long first_row, row_step; /* of dropout: row of query 0 of head 0, and from head to head */
  struct HeedDropout dropout;

  /* Few queries: what they see of the memory, in parts of `part` positions. */
  int part, parts;
  const int* repetition; /* by how many positions the memory is longer; null: none */
  float* partial;        /* (B, H, T, parts, D + 2): sums, maximum, sum; null with one part */

  /* Backward. */
  struct HeedHeads d_out, d_query, d_key, d_value;
  float* inner;        /* (B, H, T): sums of out * d_out */
  float* partial_bias; /* (B, H, blocks of queries, bias_width); null: not wanted */
  int bias_width;
};

/* One, or many of them on the device; those of a list have one type of rows. */
struct HeedAttentionList {
  struct HeedAttention one;
  const struct HeedAttention* many; /* null: one */
  int count;
  int type;
  int extras;    /* of tensor cores: whether any has a cap, a bias or dropout */
  int head_size; /* the largest, as are these */
  int blocks;    /* of a sequence */
  int rows;      /* few queries: rows of a key head */
  int part, parts;
};

struct HeedBiasGradient {
  const float* partial;
  float* gradient;         /* (H, R), which it adds to */
  long long head, element; /* strides of the gradient, in numbers */
  int batch, heads, blocks, width;
  int block_rows;  /* queries of a block */
  int distances;   /* R */
  int first_place; /* where distance 0 of the table stands in the partial sums of the first block */
};

struct HeedMergedParts {
  struct HeedHeads part, out;
  const float* part_log_sum_exp;
  float* log_sum_exp;
  int batch, queries, heads, head_size;
};

/* A rectangle of one head's scores or pattern; summaries of it. */
struct HeedAttentionTile {
  struct HeedAttention attention;
  int batch, head, query_begin, query_end, key_begin, key_end;
  int of_pattern;
  float* out; /* not pooled */
  long long out_row;
  int pool;
  float *sum, *largest;
  long long sum_row, largest_row;
};

struct HeedRowStatistics {
  struct HeedAttention attention;
  const int* tokens; /* (B, S); null: none */
  int full;          /* the mask */
  float *entropy, *distance, *first, *self, *previous, *duplicate, *induction, *largest;
};

struct HeedCacheRows {
  struct HeedHeads numbers, rows, scales;
  const int* repetition; /* by how many positions they are stored later; null: none */
  int type, batch, positions, heads, head_size;
};
