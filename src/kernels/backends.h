// The kernels of the processor and those of an accelerator, which kernels/dispatch.cc calls by
// where their operands are: the same functions, with the same arguments. Those of an accelerator
// get views of its memory alone, but for integers and options.
#pragma once

#include "kernels/attention_sequences.h"
#include "kernels/attention_summaries.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "kernels/sharing.h"
#include "kernels/sparse_rows.h"

namespace heed::kernels {

using Copy = void(View<const float>, View<float>);
using CopyBytes = void(View<const std::byte>, View<std::byte>);
using CopyIntegers = void(View<const std::int32_t>, View<std::int32_t>);
using Attend = void(const AttentionInput<float>&, View<float>, View<float>);
using AttendBackward = void(const AttentionInput<float>&, View<const float>, View<const float>,
                            View<const float>, const AttentionGradients<float>&);
using AttendToCache = void(const QuantisedCacheAttention&, View<float>, View<float>);
using AttendSequences = void(std::span<const SequenceAttention>);
using AttendSequencesBackward = void(std::span<const SequenceAttentionBackward>);

namespace cpu {
#include "kernels/backend_functions.inc"
CopyIntegers copy;
// These the processor alone has: what is rare, or done once.
decltype(kernels::sinusoids) sinusoids;
decltype(kernels::rotary_angles) rotary_angles;
decltype(kernels::fill_normal) fill_normal;
decltype(kernels::touch_pages) touch_pages;
decltype(kernels::find_not_finite) find_not_finite;
decltype(kernels::add_sparse_rows) add_sparse_rows;
decltype(kernels::multiply_sparse_rows) multiply_sparse_rows;
}  // namespace cpu

namespace cuda {
#include "kernels/backend_functions.inc"
// These accelerators alone have.
decltype(kernels::wait_for_all_streams) wait_for_all_streams;
decltype(kernels::copy_shared) copy_shared;
}  // namespace cuda

}  // namespace heed::kernels
