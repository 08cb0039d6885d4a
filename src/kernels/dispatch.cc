// Each kernel, where its operands are. The number of threads, the instruction set and all that is
// the processor's alone is decided in cpu/.
#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/backends.h"
#include "kernels/placement.h"

namespace heed::kernels {

std::atomic<bool> computes_on_accelerator = false;

void compute_on(Device device) {
  check(device.is_cpu() || device == opened_device(), "the accelerator that is open");
  computes_on_accelerator = !device.is_cpu();
}

void embedding_forward(const EmbeddingInput<float>& input, View<float> out) {
  in_place_of<cpu::embedding_forward, cuda::embedding_forward>(input, out);
}

void embedding_backward(const EmbeddingInput<float>& input, View<const float> d_out,
                        const EmbeddingGradients<float>& gradients) {
  in_place_of<cpu::embedding_backward, cuda::embedding_backward>(input, d_out, gradients);
}

void layer_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                        View<float> out, const NormStatistics<float>& statistics) {
  in_place_of<cpu::layer_norm_forward, cuda::layer_norm_forward>(x, parameters, out, statistics);
}

void layer_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                         const NormStatistics<float>& statistics, View<const float> d_out,
                         View<float> d_x, const NormGradients<float>& gradients) {
  in_place_of<cpu::layer_norm_backward, cuda::layer_norm_backward>(x, parameters, statistics, d_out,
                                                                   d_x, gradients);
}

void rms_norm_forward(View<const float> x, const NormParameters<float>& parameters, View<float> out,
                      View<float> reciprocal_deviation) {
  in_place_of<cpu::rms_norm_forward, cuda::rms_norm_forward>(x, parameters, out,
                                                             reciprocal_deviation);
}

void rms_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                       View<const float> reciprocal_deviation, View<const float> d_out,
                       View<float> d_x, const NormGradients<float>& gradients) {
  in_place_of<cpu::rms_norm_backward, cuda::rms_norm_backward>(x, parameters, reciprocal_deviation,
                                                               d_out, d_x, gradients);
}

void rotary_forward(View<float> x, const RotaryTable<float>& table) {
  in_place_of<cpu::rotary_forward, cuda::rotary_forward>(x, table);
}

void rotary_backward(View<float> d_x, const RotaryTable<float>& table) {
  in_place_of<cpu::rotary_backward, cuda::rotary_backward>(d_x, table);
}

void linear_forward(View<const float> x, const LinearParameters<float>& parameters, View<float> out,
                    std::int64_t positions) {
  in_place_of<cpu::linear_forward, cuda::linear_forward>(x, parameters, out, positions);
}

void prepared_linear_forward(View<const float> x, const PreparedWeight& weight,
                             View<const float> bias, View<float> out, std::int64_t positions) {
  in_place_of<cpu::prepared_linear_forward, cuda::prepared_linear_forward>(x, std::cref(weight),
                                                                           bias, out, positions);
}

void linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x,
                           Precision precision) {
  in_place_of<cpu::linear_backward_input, cuda::linear_backward_input>(weight, d_out, d_x,
                                                                       precision);
}

void linear_backward_parameters(View<const float> x, View<const float> d_out,
                                const LinearGradients<float>& gradients, Precision precision) {
  in_place_of<cpu::linear_backward_parameters, cuda::linear_backward_parameters>(
      x, d_out, gradients, precision);
}

void activation_forward(View<const float> x, Activation activation, View<float> out) {
  in_place_of<cpu::activation_forward, cuda::activation_forward>(x, activation, out);
}

void activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                         View<float> d_x) {
  in_place_of<cpu::activation_backward, cuda::activation_backward>(x, activation, d_out, d_x);
}

void soft_cap_forward(View<const float> x, float cap, View<float> out) {
  in_place_of<cpu::soft_cap_forward, cuda::soft_cap_forward>(x, cap, out);
}

void soft_cap_backward(View<const float> out, float cap, View<const float> d_out, View<float> d_x) {
  in_place_of<cpu::soft_cap_backward, cuda::soft_cap_backward>(out, cap, d_out, d_x);
}

void gated_activation_forward(View<const float> gate, View<const float> up, Activation activation,
                              View<float> out) {
  in_place_of<cpu::gated_activation_forward, cuda::gated_activation_forward>(gate, up, activation,
                                                                             out);
}

void gated_activation_backward(View<const float> gate, View<const float> up, Activation activation,
                               View<const float> d_out, View<float> d_gate, View<float> d_up) {
  in_place_of<cpu::gated_activation_backward, cuda::gated_activation_backward>(gate, up, activation,
                                                                               d_out, d_gate, d_up);
}

void attention_forward(const AttentionInput<float>& input, View<float> out,
                       View<float> log_sum_exp) {
  constexpr Attend* on_cpu = cpu::attention_forward;
  constexpr Attend* on_cuda = cuda::attention_forward;
  in_place_of<on_cpu, on_cuda>(input, out, log_sum_exp);
}

void attention_backward(const AttentionInput<float>& input, View<const float> out,
                        View<const float> log_sum_exp, View<const float> d_out,
                        const AttentionGradients<float>& gradients) {
  constexpr AttendBackward* on_cpu = cpu::attention_backward;
  constexpr AttendBackward* on_cuda = cuda::attention_backward;
  in_place_of<on_cpu, on_cuda>(input, out, log_sum_exp, d_out, gradients);
}

void attention_forward(const QuantisedCacheAttention& input, View<float> out,
                       View<float> log_sum_exp) {
  constexpr AttendToCache* on_cpu = cpu::attention_forward;
  constexpr AttendToCache* on_cuda = cuda::attention_forward;
  in_place_of<on_cpu, on_cuda>(input, out, log_sum_exp);
}

namespace {

// The same of a list of sequences.
template <class Sequence>
void in_place_of_list(std::span<const Sequence> sequences,
                      void (*on_cpu)(std::span<const Sequence>),
                      void (*on_cuda)(std::span<const Sequence>)) {
  if (!can_have_accelerators || std::ranges::none_of(sequences, [](Sequence sequence) {
        return any_on_accelerator(sequence);
      })) {
    return on_cpu(sequences);
  }
  MovedOperands moved(opened_device());
  std::vector<Sequence> there(sequences.begin(), sequences.end());
  for (Sequence& sequence : there) visit_all(moved, sequence);
  on_cuda(there);
  moved.finish();
}

}  // namespace

void attention_forward(std::span<const SequenceAttention> sequences) {
  in_place_of_list<SequenceAttention>(sequences, cpu::attention_forward, cuda::attention_forward);
}

void attention_backward(std::span<const SequenceAttentionBackward> sequences) {
  in_place_of_list<SequenceAttentionBackward>(sequences, cpu::attention_backward,
                                              cuda::attention_backward);
}

void merge_attention(const AttentionPart<float>& part, View<float> out, View<float> log_sum_exp) {
  in_place_of<cpu::merge_attention, cuda::merge_attention>(part, out, log_sum_exp);
}

void attention_scores_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                           View<float> out) {
  in_place_of<cpu::attention_scores_tile, cuda::attention_scores_tile>(input, tile, out);
}

void attention_pattern_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                            const AttentionTile& tile, View<float> out) {
  in_place_of<cpu::attention_pattern_tile, cuda::attention_pattern_tile>(input, log_sum_exp, tile,
                                                                         out);
}

void attention_row_statistics(const AttentionInput<float>& input, View<const float> log_sum_exp,
                              View<const std::int32_t> tokens,
                              const AttentionRowStatistics<float>& statistics) {
  in_place_of<cpu::attention_row_statistics, cuda::attention_row_statistics>(input, log_sum_exp,
                                                                             tokens, statistics);
}

void attention_pooled_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                           const AttentionTile& tile, std::int64_t pool,
                           const PooledAttention<float>& out) {
  in_place_of<cpu::attention_pooled_tile, cuda::attention_pooled_tile>(input, log_sum_exp, tile,
                                                                       pool, out);
}

void dropout(View<const float> x, const Dropout& dropout, View<float> out) {
  in_place_of<cpu::dropout, cuda::dropout>(x, dropout, out);
}

void add(View<const float> x, View<const float> y, View<float> out) {
  in_place_of<cpu::add, cuda::add>(x, y, out);
}

void cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                           View<float> losses, const LabelSmoothing<float>& smoothing) {
  in_place_of<cpu::cross_entropy_forward, cuda::cross_entropy_forward>(logits, targets, losses,
                                                                       smoothing);
}

void cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                    float scale, View<float> losses,
                                    const LabelSmoothing<float>& smoothing) {
  in_place_of<cpu::cross_entropy_forward_backward, cuda::cross_entropy_forward_backward>(
      logits, targets, scale, losses, smoothing);
}

void cross_entropy_piece_forward(View<const float> logits, const VocabularyPiece& piece,
                                 View<const std::int32_t> targets,
                                 const VocabularySums<float>& sums) {
  in_place_of<cpu::cross_entropy_piece_forward, cuda::cross_entropy_piece_forward>(logits, piece,
                                                                                   targets, sums);
}

void cross_entropy_piece_backward(View<float> logits, const VocabularyPiece& piece,
                                  View<const std::int32_t> targets, View<const float> normalisers,
                                  float scale, float smoothing_rate) {
  in_place_of<cpu::cross_entropy_piece_backward, cuda::cross_entropy_piece_backward>(
      logits, piece, targets, normalisers, scale, smoothing_rate);
}

void cross_entropy_piece_losses(const VocabularySums<float>& sums, std::int64_t vocabulary,
                                View<const std::int32_t> targets, View<float> losses,
                                const LabelSmoothing<float>& smoothing) {
  in_place_of<cpu::cross_entropy_piece_losses, cuda::cross_entropy_piece_losses>(
      sums, vocabulary, targets, losses, smoothing);
}

void adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step) {
  in_place_of<cpu::adamw_step, cuda::adamw_step>(state, step);
}

double squared_norm(std::span<const float> x) {
  return in_place_of<cpu::squared_norm, cuda::squared_norm>(x);
}

bool all_finite(std::span<const float> x) {
  return in_place_of<cpu::all_finite, cuda::all_finite>(x);
}

void fill(View<float> x, float value) { in_place_of<cpu::fill, cuda::fill>(x, value); }

namespace {

template <class T>
void copy_in_one_place(View<const T> from, View<T> to) {
  if (from.device().is_cpu()) return cpu::copy(from, to);
  if constexpr (can_have_accelerators) cuda::copy(from, to);
}

// Bytes of contiguous views move as they are; of others, what is not contiguous is gathered or
// spread out where it lies.
template <class T>
void copy_between_places(View<const T> from, View<T> to) {
  require_shape(to, from.shape(), "the copy");
  const auto bytes = static_cast<std::size_t>(from.size()) * sizeof(T);
  if (from.contiguous() && to.contiguous()) return copy_bytes(to.data(), from.data(), bytes);
  if (!from.contiguous()) {
    const Tensor<T> dense(from.shape(), from.device());
    const View<T> gathered(const_cast<T*>(dense.data()), dense.shape());
    copy_in_one_place(from, gathered);
    return copy_between_places(View<const T>(gathered), to);
  }
  Tensor<T> dense(to.shape(), to.device());
  copy_bytes(dense.data(), from.data(), bytes);
  copy_in_one_place(View<const T>(dense.view()), to);
}

}  // namespace

void copy(View<const float> from, View<float> to) {
  if (from.device() != to.device()) [[unlikely]] {
    return copy_between_places(from, to);
  }
  constexpr Copy* on_cpu = cpu::copy;
  constexpr Copy* on_cuda = cuda::copy;
  in_place_of<on_cpu, on_cuda>(from, to);
}

void copy(View<const std::byte> from, View<std::byte> to) {
  if (from.device() != to.device()) [[unlikely]] {
    return copy_between_places(from, to);
  }
  constexpr CopyBytes* on_cpu = cpu::copy;
  constexpr CopyBytes* on_cuda = cuda::copy;
  in_place_of<on_cpu, on_cuda>(from, to);
}

void copy(View<const std::int32_t> from, View<std::int32_t> to) { cpu::copy(from, to); }

void scale(View<float> x, float factor) { in_place_of<cpu::scale, cuda::scale>(x, factor); }

void accumulate(View<const float> from, View<float> to, float factor) {
  in_place_of<cpu::accumulate, cuda::accumulate>(from, to, factor);
}

void subtract(View<const float> x, View<const float> y, View<float> out) {
  in_place_of<cpu::subtract, cuda::subtract>(x, y, out);
}

void reciprocal(View<const float> x, View<float> out) {
  in_place_of<cpu::reciprocal, cuda::reciprocal>(x, out);
}

bool equal_bits(View<const float> x, View<const float> y) {
  return in_place_of<cpu::equal_bits, cuda::equal_bits>(x, y);
}

double sum(View<const float> x, double start) { return in_place_of<cpu::sum, cuda::sum>(x, start); }

void gather_rows(View<const float> from, std::span<const std::int32_t> indices, View<float> to) {
  in_place_of<cpu::gather_rows, cuda::gather_rows>(from, indices, to);
}

void scatter_add_rows(View<const float> from, std::span<const std::int32_t> indices,
                      View<float> to) {
  in_place_of<cpu::scatter_add_rows, cuda::scatter_add_rows>(from, indices, to);
}

void softmax_rows(View<const float> scores, View<float> out) {
  in_place_of<cpu::softmax_rows, cuda::softmax_rows>(scores, out);
}

void softmax_rows_backward(View<const float> pattern, View<float> gradient) {
  in_place_of<cpu::softmax_rows_backward, cuda::softmax_rows_backward>(pattern, gradient);
}

void mix_rows(View<const float> pattern, View<const float> value, View<float> out) {
  in_place_of<cpu::mix_rows, cuda::mix_rows>(pattern, value, out);
}

void standardise_rows(const StandardisedRows& rows, View<float> out) {
  in_place_of<cpu::standardise_rows, cuda::standardise_rows>(rows, out);
}

void standardise_rows_backward(const StandardisedRows& rows, View<const float> gain,
                               View<const float> d_out, const StandardisedGradients& gradients) {
  in_place_of<cpu::standardise_rows_backward, cuda::standardise_rows_backward>(rows, gain, d_out,
                                                                               gradients);
}

void constant_scale_norm_backward(const ConstantScaleNorm& norm, View<const float> d_out,
                                  View<float> d_x) {
  in_place_of<cpu::constant_scale_norm_backward, cuda::constant_scale_norm_backward>(norm, d_out,
                                                                                     d_x);
}

void apply_gain(View<const float> x, const NormParameters<float>& parameters, View<float> out) {
  in_place_of<cpu::apply_gain, cuda::apply_gain>(x, parameters, out);
}

void store_rows(View<const float> from, View<float> to) {
  in_place_of<cpu::store_rows, cuda::store_rows>(from, to);
}

void quantise_rows(View<const float> from, const MutableQuantisedRows& to) {
  in_place_of<cpu::quantise_rows, cuda::quantise_rows>(from, to);
}

void dequantise_rows(const ConstQuantisedRows& from, View<float> to) {
  in_place_of<cpu::dequantise_rows, cuda::dequantise_rows>(from, to);
}

void sinusoids(View<float> sine, View<float> cosine) { on_processor<cpu::sinusoids>(sine, cosine); }

void rotary_angles(const RotaryAngles& angles, View<float> cosine, View<float> sine) {
  on_processor<cpu::rotary_angles>(angles, cosine, sine);
}

void fill_normal(View<float> matrix, const NormalDeviates& deviates) {
  on_processor<cpu::fill_normal>(matrix, deviates);
}

void touch_pages(View<float> matrix) {
  if (!is_on_accelerator(matrix.data())) cpu::touch_pages(matrix);
}

std::optional<float> find_not_finite(std::span<const float> weights, WeightFormat format) {
  return on_processor<cpu::find_not_finite>(weights, format);
}

void add_sparse_rows(const SparseRows& rows, std::span<float> out) {
  on_processor<cpu::add_sparse_rows>(rows, out);
}

void multiply_sparse_rows(const SparseRows& rows, std::span<const float> x,
                          std::span<float> products) {
  on_processor<cpu::multiply_sparse_rows>(rows, x, products);
}

}  // namespace heed::kernels
