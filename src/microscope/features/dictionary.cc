#include "microscope/features/dictionary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/features/row_selection.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/point_names.h"
#include "tensor/allocated_bytes.h"

namespace heed {
namespace {

using enum ErrorCode;

// Features whose pre-activations are computed at once, and rows: 32 MiB of them.
constexpr std::int64_t features_at_once = 2048, rows_at_once = 4096;

constexpr float layer_norm_epsilon = 1e-5F;  // SAELens's

// The k · N largest of all rows.
void keep_largest_of_batch(std::vector<RowSelection>& rows, std::int64_t k) {
  std::vector<float> values;
  for (RowSelection& row : rows) {
    for (const FeatureEntry& entry : row.kept()) values.push_back(entry.value);
  }
  const auto wanted = static_cast<std::size_t>(k) * rows.size();
  if (values.size() <= wanted) return;
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
  std::nth_element(values.begin(), last, values.end(), std::greater<>{});
  const float least = *last;
  auto ties = static_cast<std::int64_t>(wanted) -
              std::count_if(values.begin(), values.end(), [&](float v) { return v > least; });
  for (RowSelection& row : rows) {
    std::erase_if(row.kept(), [&](const FeatureEntry& entry) {
      return entry.value < least || (entry.value == least && ties-- <= 0);
    });
  }
}

// Selects activations of rows, features [first, first + pre.extent(1)) at a time.
class Activating {
 public:
  Activating(const Dictionary& dictionary, std::int64_t rows)
      : specification_(dictionary.specification()),
        weights_(dictionary.weights()),
        rows_(static_cast<std::size_t>(rows),
              RowSelection(specification_.activation == FeatureActivation::top_k ? specification_.k
                                                                                 : 0)) {}

  // pre (n, W) of rows from `row` on; `gate` (n, W) of gated.
  void take(View<const float> pre, View<const float> gate, std::int64_t row, std::int64_t first) {
    parallel_ranges(pre.extent(0), 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        take_row(&pre(n, 0), gate.present() ? &gate(n, 0) : nullptr,
                 rows_[static_cast<std::size_t>(row + n)], first, pre.extent(1));
      }
    });
  }

  FeatureRows result() {
    if (specification_.activation == FeatureActivation::batch_top_k) {
      keep_largest_of_batch(rows_, specification_.k);
    }
    return sorted_rows(rows_);
  }

 private:
  void take_row(const float* pre, const float* gate, RowSelection& row, std::int64_t first,
                std::int64_t count) const {
    const auto from = static_cast<std::int32_t>(first);
    const auto end = static_cast<std::int32_t>(count);
    if (gate != nullptr) {
      for (std::int32_t i = 0; i < end; ++i) {
        if (gate[i] > 0) row.add(pre[i], from + i);
      }
    } else if (specification_.activation == FeatureActivation::jump_relu) {
      const float* const threshold = weights_.threshold.data() + first;
      for (std::int32_t i = 0; i < end; ++i) {
        if (pre[i] > threshold[i]) row.add(pre[i], from + i);
      }
    } else {
      row.take(pre, from, end);
    }
  }

  const DictionarySpecification& specification_;
  const DictionaryWeights& weights_;
  std::vector<RowSelection> rows_;
};

// Of features [first, first + count): pre (N, count), and the gate of gated. `length` as
// linear_forward() takes it.
void multiply_encoder(const Dictionary& dictionary, View<const float> input, std::int64_t first,
                      View<float> pre, View<float> gate, std::int64_t length) {
  const DictionaryWeights& weights = dictionary.weights();
  const std::int64_t count = pre.extent(1);
  const auto part = [&](const Tensor<float>& values) {
    return values.view().slice(0, first, first + count);
  };
  const bool is_gated = weights.gate_bias.present();
  kernels::linear_forward(input,
                          {.weight = part(weights.encoder),
                           .bias = is_gated ? View<const float>{} : part(weights.encoder_bias)},
                          pre, length);
  if (!is_gated) return;
  const float* const bias = weights.encoder_bias.data() + first;
  const float* const gate_bias = weights.gate_bias.data() + first;
  const float* const magnitude = weights.magnitude.data() + first;
  parallel_ranges(input.extent(0), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      for (std::int64_t f = 0; f < count; ++f) {
        gate(n, f) = pre(n, f) + gate_bias[f];
        pre(n, f) = pre(n, f) * magnitude[f] + bias[f];
      }
    }
  });
}

}  // namespace

std::string_view activation_name(FeatureActivation activation) {
  switch (activation) {
    case FeatureActivation::relu: return "standard";
    case FeatureActivation::gated: return "gated";
    case FeatureActivation::top_k: return "topk";
    case FeatureActivation::batch_top_k: return "batchtopk";
    case FeatureActivation::jump_relu: return "jumprelu";
  }
  return "";
}

void FeatureRows::copy_to(View<float> dense) const {
  kernels::fill(dense, 0.0F);
  for (std::int64_t n = 0; n < rows(); ++n) {
    for (auto e = static_cast<std::size_t>(begins[static_cast<std::size_t>(n)]);
         e < static_cast<std::size_t>(begins[static_cast<std::size_t>(n) + 1]); ++e) {
      dense(n, features[e]) = values[e];
    }
  }
}

FeatureRows FeatureRows::of(View<const float> dense) {
  FeatureRows rows;
  for (std::int64_t n = 0; n < dense.extent(0); ++n) {
    for (std::int64_t f = 0; f < dense.extent(1); ++f) {
      if (dense(n, f) == 0) continue;
      rows.features.push_back(static_cast<std::int32_t>(f));
      rows.values.push_back(dense(n, f));
    }
    rows.begins.push_back(rows.entries());
  }
  return rows;
}

Dictionary::Dictionary(DictionarySpecification specification, DictionaryWeights weights,
                       const std::string& source)
    : specification_(std::move(specification)), weights_(std::move(weights)) {
  require_shapes(source);
}

void Dictionary::require_shapes(const std::string& source) const {
  const DictionarySpecification& own = specification_;
  const auto require_tensor = [&](const Tensor<float>& tensor, const Shape& shape,
                                  const char* name) {
    require(tensor.present(), corrupt_data, "{}: {} is missing", source, name);
    require(tensor.shape() == shape, corrupt_data, "{}: {} has shape {}, expected {}", source, name,
            tensor.shape(), shape);
    require(kernels::all_finite(tensor.span()), corrupt_data,
            "{}: {} holds a number that is not finite", source, name);
  };
  require(own.inputs > 0 && own.features > 0 && own.outputs > 0 && own.points() > 0, corrupt_data,
          "{}: a dictionary of {} inputs, {} features and {} outputs at {} points, expected at "
          "least 1 of each",
          source, own.inputs, own.features, own.outputs, own.points());
  const bool takes_k = own.activation == FeatureActivation::top_k ||
                       own.activation == FeatureActivation::batch_top_k;
  require(!takes_k || (own.k >= 1 && own.k <= own.features), corrupt_data,
          "{}: k is {}, expected 1 to {}, the number of features", source, own.k, own.features);
  const Shape by_feature{own.features};
  require_tensor(weights_.encoder, {own.features, own.inputs}, "W_enc");
  require_tensor(weights_.encoder_bias, by_feature,
                 own.activation == FeatureActivation::gated ? "b_mag" : "b_enc");
  require_tensor(weights_.decoder, {own.features, own.points(), own.outputs}, "W_dec");
  require_tensor(weights_.decoder_bias, {own.outputs}, "b_dec");
  if (own.activation == FeatureActivation::gated) {
    require_tensor(weights_.gate_bias, by_feature, "b_gate");
    require_tensor(weights_.magnitude, by_feature, "r_mag");
  }
  if (own.activation == FeatureActivation::jump_relu) {
    require_tensor(weights_.threshold, by_feature, "threshold");
  }
  if (weights_.skip.present()) require_tensor(weights_.skip, {own.outputs, own.inputs}, "W_skip");
  require(!own.subtracts_decoder_bias || own.inputs == own.outputs, corrupt_data,
          "{}: b_dec of {} outputs is subtracted from {} inputs", source, own.outputs, own.inputs);
}

std::int64_t Dictionary::parameters() const {
  std::int64_t count = 0;
  for (const Tensor<float>* tensor :
       {&weights_.encoder, &weights_.encoder_bias, &weights_.gate_bias, &weights_.magnitude,
        &weights_.threshold, &weights_.decoder, &weights_.decoder_bias, &weights_.skip}) {
    count += tensor->size();
  }
  return count;
}

Dictionary::Encoding Dictionary::read(View<const float> x) const {
  require(x.rank() == 2 && x.extent(1) == specification_.inputs, invalid_argument,
          "a dictionary of {} inputs is given rows of shape {}", specification_.inputs, x.shape());
  Encoding encoding{.input = Tensor<float>(x.shape()), .scales = {}};
  const std::int64_t rows = x.extent(0), inputs = x.extent(1);
  const auto count = static_cast<std::size_t>(rows);
  InputScales& scales = encoding.scales;
  const InputNorm norm = specification_.input_norm;
  if (norm != InputNorm::none) scales.scale.resize(count);
  if (norm == InputNorm::layer_norm) scales.mean.resize(count);
  const float* const bias =
      specification_.subtracts_decoder_bias ? weights_.decoder_bias.data() : nullptr;
  parallel_ranges(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      float* const to = encoding.input.data() + n * inputs;
      double mean = 0, squares = 0;
      if (norm == InputNorm::layer_norm) {
        for (std::int64_t c = 0; c < inputs; ++c) mean += double{x(n, c)};
        mean /= static_cast<double>(inputs);
        scales.mean[static_cast<std::size_t>(n)] = static_cast<float>(mean);
      }
      for (std::int64_t c = 0; c < inputs; ++c) {
        const double centred = double{x(n, c)} - mean;
        squares += centred * centred;
        to[c] = static_cast<float>(centred);
      }
      if (norm != InputNorm::none) {
        const bool is_layer_norm = norm == InputNorm::layer_norm;
        const double divisor = static_cast<double>(is_layer_norm ? inputs - 1 : inputs);
        const double scale = std::sqrt(squares / divisor);
        scales.scale[static_cast<std::size_t>(n)] = static_cast<float>(scale);
        const double divided = is_layer_norm ? scale + double{layer_norm_epsilon} : scale;
        const auto factor = static_cast<float>(divided > 0 ? 1 / divided : 0.0);
        for (std::int64_t c = 0; c < inputs; ++c) to[c] *= factor;
      }
      if (bias != nullptr) {
        for (std::int64_t c = 0; c < inputs; ++c) to[c] -= bias[c];
      }
    }
  });
  return encoding;
}

Dictionary::PreActivations Dictionary::pre_activations(View<const float> input) const {
  const Shape shape{input.extent(0), specification_.features};
  PreActivations pre{.values = Tensor<float>(shape), .gate = {}};
  if (weights_.gate_bias.present()) pre.gate = Tensor<float>(shape);
  multiply_encoder(*this, input, 0, pre.values, pre.gate, input.extent(0));
  return pre;
}

FeatureRows Dictionary::activate(View<const float> pre, View<const float> gate) const {
  Activating activating(*this, pre.extent(0));
  activating.take(pre, gate, 0, 0);
  return activating.result();
}

FeatureRows Dictionary::encode_input(View<const float> input) const {
  const std::int64_t rows = input.extent(0), features = specification_.features;
  Activating activating(*this, rows);
  const Shape most{std::min(rows, rows_at_once), std::min(features, features_at_once)};
  Tensor<float> pre_memory(most), gate_memory;
  if (weights_.gate_bias.present()) gate_memory = Tensor<float>(most);
  for (std::int64_t row = 0; row < rows; row += rows_at_once) {
    const std::int64_t end = std::min(rows, row + rows_at_once);
    for (std::int64_t first = 0; first < features; first += features_at_once) {
      const Shape shape{end - row, std::min(features_at_once, features - first)};
      const View<float> pre(pre_memory.data(), shape);
      const View<float> gate =
          gate_memory.present() ? View<float>(gate_memory.data(), shape) : View<float>{};
      multiply_encoder(*this, input.slice(0, row, end), first, pre, gate, rows);
      activating.take(pre, gate, row, first);
    }
  }
  return activating.result();
}

double Dictionary::bytes_of_encoding(std::int64_t rows) const {
  const std::int64_t most =
      std::min(rows, rows_at_once) * std::min(specification_.features, features_at_once);
  const double dense = max_allocated_bytes(sizeof(float) * static_cast<double>(most));
  // Of each row its largest, in a list that grows by doubling.
  const auto kept =
      static_cast<double>(specification_.k > 0 ? specification_.k + 1 : specification_.features);
  const double selected =
      static_cast<double>(rows) * (3 * sizeof(FeatureEntry) * kept + sizeof(RowSelection));
  return (weights_.gate_bias.present() ? 2 : 1) * dense + selected;
}

FeatureRows Dictionary::encode(View<const float> x) const { return encode_input(read(x).input); }

void Dictionary::decode(const FeatureRows& acts, View<const float> x, View<float> out,
                        std::int64_t point) const {
  reconstruct(acts, out, point);
  const bool undoes = specification_.input_norm != InputNorm::none && point == 0;
  finish(out, x, undoes ? read(x).scales : InputScales{}, point);
}

std::int64_t point_width(const Point& point, std::int64_t head, const Architecture& architecture) {
  require_point(architecture, point);
  const PointShape shape = point_shape(architecture.of(point.site), point.kind);
  require(!shape.is_plane, unsupported,
          "a dictionary reads rows of numbers, which {} does not have: expected a point such as "
          "blocks.0.hook_resid_pre, hook_mlp_out, attn.hook_z or mlp.hook_post",
          point_name(point));
  if (head < 0) return shape.has_heads ? shape.heads * shape.width : shape.width;
  require(shape.has_heads && head < shape.heads, invalid_argument,
          "head {} at {} does not exist: there are {} heads", head, point_name(point),
          shape.has_heads ? shape.heads : 0);
  return shape.width;
}

void require_fits(const Dictionary& dictionary, const Architecture& architecture) {
  const DictionarySpecification& own = dictionary.specification();
  const auto require_width = [&](const std::string& name, std::int64_t head, std::int64_t width,
                                 const char* what) {
    const std::vector<Point> points = points_named(name, architecture);
    require(points.size() == 1, invalid_argument,
            "the dictionary's point '{}' is {} points of this model, expected one", name,
            points.size());
    const std::int64_t found = point_width(points.front(), head, architecture);
    require(found == width, invalid_argument,
            "the dictionary has {} {}, but {} of this model is {} wide: it was trained on another "
            "model{}",
            width, what, name, found, own.model.empty() ? "" : fmt::format(", '{}'", own.model));
  };
  require_width(own.input_point, own.input_head, own.inputs, "inputs");
  for (const std::string& point : own.output_points) {
    require_width(point, own.output_head, own.outputs, "outputs");
  }
}

}  // namespace heed
