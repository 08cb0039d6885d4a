#include "microscope/explain/weight_processing.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "base/threads.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// With the biases that folded ones become.
StackSpecification processed_config(const StackSpecification& config,
                                    const WeightProcessing& processing) {
  StackSpecification processed = config;
  AttentionSpecification& attention = processed.block.attention;
  FeedForwardSpecification& feed_forward = processed.block.feed_forward;
  processed.tied_unembedding = false;
  processed.unembedding_bias = config.block.norm.bias || config.unembedding_bias;
  if (processing.fold_norms && config.block.norm.bias) {
    attention.query_bias = feed_forward.bias = true;
  }
  if (processing.fold_value_biases && attention.query_bias) attention.output_bias = true;
  return processed;
}

Transformer copy_of(const Transformer& model, const WeightProcessing& processing) {
  Transformer copy({.stacks = {processed_config(model.specification(), processing)}});
  for (const Parameter& parameter : copy.parameters().list()) {
    const View<float> to = copy.parameters().tensor(parameter.id);
    if (parameter.id == ParameterId{Role::unembedding}) {
      std::ranges::copy(model.parameters().restored(model.parameters().unembedding().weight).span(),
                        to.data());
    } else if (model.parameters().has(parameter.id)) {
      std::ranges::copy(model.parameters().tensor(parameter.id).span(), to.data());
    }
  }
  return copy;
}

// The parameters of a model by role; absent ones are empty.
class Tensors {
 public:
  explicit Tensors(Transformer& model) : parameters_(model.parameters()) {}

  View<float> weight(Role role, std::int64_t layer = -1) const {
    return find({role, Part::weight, layer});
  }
  View<float> bias(Role role, std::int64_t layer = -1) const {
    return find({role, Part::bias, layer});
  }

 private:
  View<float> find(const ParameterId& id) const {
    return parameters_.has(id) ? parameters_.tensor(id) : View<float>{};
  }

  Parameters& parameters_;
};

// Subtracts from `count` elements, `stride` apart, their mean.
void centre(float* values, std::int64_t count, std::int64_t stride) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i * stride];
  const double mean = sum / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i * stride] = static_cast<float>(values[i * stride] - mean);
  }
}

void centre_rows(View<float> matrix) {
  parallel_ranges(matrix.extent(0), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      centre(&matrix(row, 0), matrix.extent(1), 1);
    }
  });
}

void centre_columns(View<float> matrix) {
  parallel_ranges(matrix.extent(1), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin; column < end; ++column) {
      centre(&matrix(0, column), matrix.extent(0), matrix.extent(1));
    }
  });
}

void centre_vector(View<float> vector) {
  if (vector.present()) centre(vector.data(), vector.extent(0), 1);
}

// bias (O) += weight (O, I)·x (I); absent x is zero.
void add_product(View<const float> weight, View<const float> x, View<float> bias) {
  if (!x.present()) return;
  check(bias.present(), "processed weights have a bias for what is folded");
  for (std::int64_t row = 0; row < weight.extent(0); ++row) {
    double sum = bias(row);
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      sum += static_cast<double>(weight(row, i)) * x(i);
    }
    bias(row) = static_cast<float>(sum);
  }
}

struct Norm {
  View<float> gain;
  View<float> bias;
};

// Folds a norm into one matrix after it: weight (O, C) and its bias (O). An RMS norm does not
// subtract the mean, so rows are centred for layer norms only.
void fold_norm(const Norm& norm, NormKind kind, View<float> weight, View<float> bias) {
  if (!weight.present()) return;
  add_product(weight, norm.bias, bias);
  for (std::int64_t row = 0; row < weight.extent(0); ++row) {
    for (std::int64_t c = 0; c < weight.extent(1); ++c) weight(row, c) *= norm.gain(c);
  }
  if (kind == NormKind::layer) centre_rows(weight);
}

// Folds a norm into all matrices that read its output, then makes it the identity.
void fold_into(const Tensors& tensors, NormKind kind, Role norm_role,
               std::initializer_list<Role> readers, std::int64_t layer) {
  const Norm norm{tensors.weight(norm_role, layer), tensors.bias(norm_role, layer)};
  for (const Role reader : readers) {
    fold_norm(norm, kind, tensors.weight(reader, layer), tensors.bias(reader, layer));
  }
  std::ranges::fill(norm.gain.span(), 1.0F);
  if (norm.bias.present()) std::ranges::fill(norm.bias.span(), 0.0F);
}

void fold_norms(const Tensors& tensors, const StackSpecification& config) {
  const NormKind kind = config.block.norm.kind;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (config.shares_norm()) {
      fold_into(tensors, kind, Role::norm_1, {Role::query_key_value, Role::gate, Role::up}, l);
      continue;
    }
    fold_into(tensors, kind, Role::norm_1, {Role::query_key_value}, l);
    fold_into(tensors, kind, Role::norm_2, {Role::gate, Role::up}, l);
  }
  fold_into(tensors, kind, Role::final_norm, {Role::unembedding}, -1);
}

void centre_writing_weights(const Tensors& tensors, std::int64_t layers) {
  centre_rows(tensors.weight(Role::token_embedding));
  if (const View<float> positions = tensors.weight(Role::position_embedding); positions.present()) {
    centre_rows(positions);
  }
  for (std::int64_t l = 0; l < layers; ++l) {
    for (const Role role : {Role::attention_output, Role::down}) {
      centre_columns(tensors.weight(role, l));
      centre_vector(tensors.bias(role, l));
    }
  }
}

// Each row of a pattern sums to one, so that a value's bias reaches the stream unchanged; the bias
// of a shared value reaches it through every head of its group.
void fold_value_biases(const Tensors& tensors, const StackSpecification& config) {
  const AttentionSpecification& attention = config.block.attention;
  if (!attention.query_bias) return;
  const std::int64_t size = attention.head_size, end = attention.projected_width();
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const View<float> value_bias =
        tensors.bias(Role::query_key_value, l).slice(0, end - attention.key_value_width(), end);
    Tensor<float> of_heads(Shape{attention.query_width()});
    for (std::int64_t head = 0; head < attention.query_heads; ++head) {
      std::copy_n(&value_bias(head / attention.group_size() * size), size,
                  of_heads.data() + head * size);
    }
    add_product(tensors.weight(Role::attention_output, l), of_heads,
                tensors.bias(Role::attention_output, l));
    std::ranges::fill(value_bias.span(), 0.0F);
  }
}

}  // namespace

Transformer process_weights(const Transformer& model, const WeightProcessing& processing) {
  require_sums_to_logits(model.specification(), "weight processing");
  Transformer processed = copy_of(model, processing);
  const StackSpecification& config = processed.specification();
  const Tensors tensors(processed);
  // An RMS norm sees the mean of the stream, so that it cannot be removed from what writes to it.
  const bool centres =
      processing.centre_writing_weights && config.block.norm.kind == NormKind::layer;
  if (processing.fold_norms) fold_norms(tensors, config);
  if (centres) centre_writing_weights(tensors, config.layers);
  if (processing.centre_unembedding) {
    centre_columns(tensors.weight(Role::unembedding));
    centre_vector(tensors.bias(Role::unembedding));
  }
  if (processing.fold_value_biases) fold_value_biases(tensors, config);
  if (processing.fold_value_biases && centres) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
      centre_vector(tensors.bias(Role::attention_output, l));
    }
  }
  return processed;
}

}  // namespace heed
