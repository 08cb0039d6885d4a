// What a dictionary writes, and the gradients of all its steps, undone in reverse.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/sparse_rows.h"
#include "microscope/features/dictionary.h"

namespace heed {
namespace {

constexpr float norm_epsilon = 1e-5F;  // of the layer norm, as read() adds it
constexpr std::int64_t rows_of_part = 8;

// The entries of a row: where they begin, and the rows of a matrix that they name.
struct EntriesOfRow {
  std::size_t begin, count;

  EntriesOfRow(const FeatureRows& acts, std::int64_t row)
      : begin(static_cast<std::size_t>(acts.begins[static_cast<std::size_t>(row)])),
        count(static_cast<std::size_t>(acts.begins[static_cast<std::size_t>(row) + 1]) - begin) {}
  template <class T>
  auto of(T& values) const {
    return std::span(values).subspan(begin, count);
  }
};

// W_dec of one output point, (F, O).
View<const float> decoder_at(const Dictionary& dictionary, std::int64_t point) {
  const DictionarySpecification& own = dictionary.specification();
  const std::int64_t stride = own.points() * own.outputs;
  return {dictionary.weights().decoder.data() + point * own.outputs,
          {own.features, own.outputs},
          {stride, 1}};
}

void require_rows(View<const float> view, std::int64_t rows, std::int64_t width, const char* name) {
  require_shape(view, Shape{rows, width}, name);
  check(view.contiguous(), "dense rows of a dictionary");
}

}  // namespace

// 1. reconstruct: acts · W_dec + b_dec
void Dictionary::reconstruct(const FeatureRows& acts, View<float> out, std::int64_t point) const {
  const std::int64_t outputs = specification_.outputs;
  require_rows(out, acts.rows(), outputs, "the reconstruction");
  const View<const float> decoder = decoder_at(*this, point);
  parallel_ranges(acts.rows(), rows_of_part, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      float* const to = out.data() + n * outputs;
      if (point == 0) {
        std::copy_n(weights_.decoder_bias.data(), outputs, to);
      } else {
        std::fill_n(to, outputs, 0.0F);
      }
      const EntriesOfRow entries(acts, n);
      kernels::add_sparse_rows({decoder, entries.of(acts.features), entries.of(acts.values)},
                               {to, static_cast<std::size_t>(outputs)});
    }
  });
}

// 2. finish: the scale of what was read, and what skips the features
void Dictionary::finish(View<float> out, View<const float> x, const InputScales& scales,
                        std::int64_t point) const {
  const std::int64_t rows = out.extent(0), outputs = out.extent(1);
  if (!scales.scale.empty() && !specification_.is_transcoder()) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const auto row = static_cast<std::size_t>(n);
      const float mean = scales.mean.empty() ? 0.0F : scales.mean[row];
      for (std::int64_t c = 0; c < outputs; ++c) out(n, c) = out(n, c) * scales.scale[row] + mean;
    }
  }
  if (!weights_.skip.present() || point != 0) return;
  Tensor<float> skipped(out.shape());
  kernels::linear_forward(x, {.weight = weights_.skip, .bias = {}}, skipped);
  kernels::add(out, skipped, out);
}

void Dictionary::finish_backward(View<const float> recons, View<const float> x,
                                 const InputScales& scales, View<float> d_out, View<float> d_x,
                                 std::int64_t point) const {
  const std::int64_t rows = d_out.extent(0), inputs = specification_.inputs;
  if (weights_.skip.present() && point == 0) {
    Tensor<float> skipped(d_x.shape());
    kernels::linear_backward_input(weights_.skip, d_out, skipped);
    kernels::add(d_x, skipped, d_x);
  }
  if (scales.scale.empty() || specification_.is_transcoder()) return;
  for (std::int64_t n = 0; n < rows; ++n) {
    const auto row = static_cast<std::size_t>(n);
    const double scale = scales.scale[row];
    double d_scale = 0, d_mean = 0;
    for (std::int64_t c = 0; c < inputs; ++c) {
      d_scale += double{d_out(n, c)} * double{recons(n, c)};
      d_mean += double{d_out(n, c)};
      d_out(n, c) *= scales.scale[row];
    }
    if (scale == 0) continue;
    // Of constant_norm the scale is √(Σ x² / I), of layer_norm √(Σ (x − mean)² / (I − 1)).
    const bool is_layer_norm = !scales.mean.empty();
    const double divisor = static_cast<double>(is_layer_norm ? inputs - 1 : inputs);
    const double mean = is_layer_norm ? scales.mean[row] : 0.0F;
    for (std::int64_t c = 0; c < inputs; ++c) {
      double change = d_scale * (double{x(n, c)} - mean) / (divisor * scale);
      if (is_layer_norm) change += d_mean / static_cast<double>(inputs);
      d_x(n, c) += static_cast<float>(change);
    }
  }
}

void Dictionary::reconstruct_backward(const FeatureRows& acts, View<const float> d_recons,
                                      std::span<float> d_acts, std::int64_t point) const {
  const std::int64_t outputs = specification_.outputs;
  require_rows(d_recons, acts.rows(), outputs, "the gradient of the reconstruction");
  const View<const float> decoder = decoder_at(*this, point);
  parallel_ranges(acts.rows(), rows_of_part, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const EntriesOfRow entries(acts, n);
      kernels::multiply_sparse_rows(
          {decoder, entries.of(acts.features)},
          {d_recons.data() + n * outputs, static_cast<std::size_t>(outputs)}, entries.of(d_acts));
    }
  });
}

void Dictionary::reconstruct_backward(View<const float> d_recons, View<float> d_acts,
                                      std::int64_t point) const {
  const std::int64_t features = specification_.features, outputs = specification_.outputs;
  const std::int64_t points = specification_.points();
  Tensor<float> of_point;  // (F, O) of one of several
  View<const float> decoder(weights_.decoder.data(), {features, outputs});
  if (points > 1) {
    of_point = Tensor<float>(Shape{features, outputs});
    for (std::int64_t f = 0; f < features; ++f) {
      std::copy_n(weights_.decoder.data() + (f * points + point) * outputs, outputs,
                  of_point.data() + f * outputs);
    }
    decoder = of_point;
  }
  Tensor<float> product(d_acts.shape());
  kernels::linear_forward(d_recons, {.weight = decoder, .bias = {}}, product);
  kernels::add(d_acts, product, d_acts);
}

void Dictionary::encode_backward(const FeatureRows& acts, std::span<const float> d_pre,
                                 View<float> d_input) const {
  const std::int64_t inputs = specification_.inputs;
  require_rows(d_input, acts.rows(), inputs, "the gradient of the input");
  std::ranges::fill(d_input.span(), 0.0F);
  parallel_ranges(acts.rows(), rows_of_part, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> factors;
    for (std::int64_t n = begin; n < end; ++n) {
      const EntriesOfRow entries(acts, n);
      const std::span<const std::int32_t> features = entries.of(acts.features);
      const std::span<const float> own = entries.of(d_pre);
      factors.assign(own.begin(), own.end());
      if (weights_.magnitude.present()) {
        for (std::size_t e = 0; e < factors.size(); ++e) {
          factors[e] *= weights_.magnitude[features[e]];
        }
      }
      kernels::add_sparse_rows({weights_.encoder, features, factors},
                               {d_input.data() + n * inputs, static_cast<std::size_t>(inputs)});
    }
  });
}

void Dictionary::read_backward(View<const float> x, const InputScales& scales,
                               View<const float> d_input, View<float> d_x) const {
  const std::int64_t rows = x.extent(0), inputs = x.extent(1);
  for (std::int64_t n = 0; n < rows; ++n) {
    const auto row = static_cast<std::size_t>(n);
    if (specification_.input_norm == InputNorm::none) {
      for (std::int64_t c = 0; c < inputs; ++c) d_x(n, c) += d_input(n, c);
      continue;
    }
    const double scale = scales.scale[row];
    if (scale == 0) continue;
    const bool is_layer_norm = specification_.input_norm == InputNorm::layer_norm;
    const double mean = is_layer_norm ? scales.mean[row] : 0.0F;
    const double divisor = static_cast<double>(is_layer_norm ? inputs - 1 : inputs);
    const double divided = is_layer_norm ? scale + double{norm_epsilon} : scale;
    double along = 0, sum = 0;
    for (std::int64_t c = 0; c < inputs; ++c) {
      along += double{d_input(n, c)} * (double{x(n, c)} - mean);
      sum += double{d_input(n, c)};
    }
    const double of_scale = -along / (divided * divided);  // the gradient of the scale
    for (std::int64_t c = 0; c < inputs; ++c) {
      const double centred = double{x(n, c)} - mean;
      double change = double{d_input(n, c)} / divided + of_scale * centred / (divisor * scale);
      if (is_layer_norm) change -= sum / divided / static_cast<double>(inputs);
      d_x(n, c) += static_cast<float>(change);
    }
  }
}

}  // namespace heed
