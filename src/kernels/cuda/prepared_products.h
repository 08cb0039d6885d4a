/* Products of prepared weights: panels of 32 outputs in bf16 or in integers, whose layouts
   kernels/prepared_weight.h describes. */
#pragma once

#include "tensor/device_library.h"

/* As kernels::WeightFormat counts them. */
enum HeedPanelFormat {
  heed_panel_bf16 = 1,
  heed_panel_int8,
  heed_panel_int4,
  heed_panel_q8_0,
  heed_panel_q4_0,
  heed_panel_q4_1,
  heed_panel_q5_0,
  heed_panel_q5_1,
  heed_panel_q2_k,
  heed_panel_q3_k,
  heed_panel_q4_k,
  heed_panel_q5_k,
  heed_panel_q6_k
};

/* Consecutive panels of one format, and their scales. */
struct HeedPanels {
  const void* integers;
  const void* scales;
  long long panels;
  long long groups;  /* of 32 inputs, in an output */
  long long outputs; /* the last panel may have fewer than 32 */
  int format;
};

/* A group of a row: number = scale · quantised, as kernels/cpu/quantised_format.h explains. */
struct HeedRowGroup {
  float scale;
  int minus_sum;
  int minus_first_sum;
  float minus_scaled_sum;
  int quantised[8]; /* bytes of 32 numbers */
};

/* to (rows, groups) = x (rows, inputs) in integers. */
struct HeedQuantisedRows {
  const float* x;
  struct HeedRowGroup* to;
  long long rows, inputs, groups;
};

/* Rows that panels of a format take in f32. */
static inline long long heed_panel_rows(int format) { return format == heed_panel_bf16 ? 8 : 1; }

/* out (rows, outputs of the panels), rows out_stride apart, = x·panelsᵀ + bias. */
struct HeedPanelProducts {
  struct HeedPanels panels;
  /* (rows, groups) of HeedRowGroup, or for panels in bf16 (rows, 32·groups) in bf16; of up to
     heed_panel_rows() rows (rows, inputs) in f32. */
  const void* x;
  const float* bias; /* null: none */
  float* out;
  long long rows, inputs, out_stride;
};

/* to (outputs, 32·groups), in f32 or bf16, = the weights of the panels. */
struct HeedRestoredPanels {
  struct HeedPanels panels;
  void* to;
  int is_bf16;
};

#ifdef __cplusplus
extern "C" {
#endif

HeedCudaResult heed_cuda_quantise_for_panels(const struct HeedQuantisedRows* operands);
HeedCudaResult heed_cuda_panel_products(const struct HeedPanelProducts* operands);
HeedCudaResult heed_cuda_restore_panels(const struct HeedRestoredPanels* operands);

#ifdef __cplusplus
}
#endif
