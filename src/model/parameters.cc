#include "model/parameters.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"

namespace heed {
namespace {

std::string block_name(std::int64_t layer, const char* part) {
  return fmt::format("h.{}.{}", layer, part);
}

void add_pair(ArenaLayout& layout, const std::string& stem, const Shape& weight, bool has_bias) {
  layout.add(stem + ".weight", weight);
  if (has_bias) layout.add(stem + ".bias", Shape{weight[0]});
}

// The named tensor of an arena; absent when the layout has no such name.
template <class ArenaType>
auto find_view(ArenaType& arena, const ArenaLayout& layout, const std::string& name) {
  const ArenaLayout::Entry* entry = layout.find(name);
  return entry == nullptr ? decltype(arena.view(*entry)){} : arena.view(*entry);
}

// Norm and Linear are the structs of parameters or of gradients; the names are the same.
template <class Block, class Norm, class Linear>
std::vector<Block> bind_blocks(Arena<float>& arena, const ArenaLayout& layout, std::int64_t layers,
                               const auto& make_norm, const auto& make_linear) {
  std::vector<Block> blocks;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto norm = [&](const char* part) -> Norm {
      const std::string stem = block_name(layer, part);
      return make_norm(find_view(arena, layout, stem + ".weight"),
                       find_view(arena, layout, stem + ".bias"));
    };
    const auto linear = [&](const char* part) -> Linear {
      const std::string stem = block_name(layer, part);
      return make_linear(find_view(arena, layout, stem + ".weight"),
                         find_view(arena, layout, stem + ".bias"));
    };
    blocks.push_back({norm("ln_1"), linear("attn.c_attn"), linear("attn.c_proj"), norm("ln_2"),
                      linear("mlp.c_fc"), linear("mlp.c_proj")});
  }
  return blocks;
}

View<float> tensor_of(Arena<float>& arena, const ArenaLayout& layout, std::string_view name) {
  const ArenaLayout::Entry* entry = layout.find(name);
  require(entry != nullptr, ErrorCode::not_found, "the model has no parameter named '{}'", name);
  return arena.view(*entry);
}

}  // namespace

ArenaLayout gpt_layout(const GptConfig& config) {
  config.validate();
  const std::int64_t c = config.channels;
  const std::int64_t a = config.attention_width();
  ArenaLayout layout;
  layout.add("wte.weight", {config.vocabulary_size, c});
  layout.add("wpe.weight", {config.context, c});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    add_pair(layout, block_name(layer, "ln_1"), {c}, config.has_bias);
    add_pair(layout, block_name(layer, "attn.c_attn"), {3 * a, c}, config.has_bias);
    add_pair(layout, block_name(layer, "attn.c_proj"), {c, a}, config.has_bias);
    add_pair(layout, block_name(layer, "ln_2"), {c}, config.has_bias);
    add_pair(layout, block_name(layer, "mlp.c_fc"), {config.feed_forward, c}, config.has_bias);
    add_pair(layout, block_name(layer, "mlp.c_proj"), {c, config.feed_forward}, config.has_bias);
  }
  add_pair(layout, "ln_f", {c}, config.has_bias);
  if (!config.tied_unembedding) layout.add("lm_head.weight", {config.vocabulary_size, c});
  if (config.unembedding_bias) layout.add("lm_head.bias", {config.vocabulary_size});
  return layout;
}

GptParameters::GptParameters(const GptConfig& config)
    : config_(config), layout_(gpt_layout(config)), arena_(layout_) {
  const auto norm = [&](View<float> gain, View<float> bias) {
    return NormWeights{gain, bias, config_.norm_epsilon};
  };
  const auto linear = [](View<float> weight, View<float> bias) {
    return LinearWeights{weight, bias};
  };
  blocks_ = bind_blocks<BlockParameters, NormWeights, LinearWeights>(arena_, layout_, config.layers,
                                                                     norm, linear);
  final_norm_ =
      norm(find_view(arena_, layout_, "ln_f.weight"), find_view(arena_, layout_, "ln_f.bias"));
  unembedding_.weight = tensor(config.tied_unembedding ? "wte.weight" : "lm_head.weight");
  unembedding_.bias = find_view(arena_, layout_, "lm_head.bias");
}

void GptParameters::initialize(std::uint64_t seed) {
  const float residual_scale = 1.0F / std::sqrt(2.0F * static_cast<float>(config_.layers));
  const auto& entries = layout_.entries();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const ArenaLayout::Entry& entry = entries[index];
    const std::span<float> values = arena_.view(entry).span();
    if (entry.shape.rank() == 1) {
      const bool is_gain = entry.name.ends_with(".weight");
      std::fill(values.begin(), values.end(), is_gain ? 1.0F : 0.0F);
      continue;
    }
    const bool writes_to_stream = entry.name.ends_with("c_proj.weight");
    const float deviation = config_.initial_deviation * (writes_to_stream ? residual_scale : 1.0F);
    // One random stream per row, so that the result does not depend on the number of threads.
    const std::int64_t columns = entry.shape[1];
    parallel_ranges(entry.shape[0], 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        RandomStream random(
            seed, (static_cast<std::uint64_t>(index) << 32) | static_cast<std::uint64_t>(row));
        for (std::int64_t column = 0; column < columns; ++column) {
          values[static_cast<std::size_t>(row * columns + column)] =
              deviation * static_cast<float>(random.normal());
        }
      }
    });
  }
}

View<float> GptParameters::tensor(std::string_view name) {
  return tensor_of(arena_, layout_, name);
}

View<const float> GptParameters::tensor(std::string_view name) const {
  const ArenaLayout::Entry* entry = layout_.find(name);
  require(entry != nullptr, ErrorCode::not_found, "the model has no parameter named '{}'", name);
  return arena_.view(*entry);
}

void GptParameters::set_precision(kernels::Precision precision) {
  for (LinearWeights* linear : linears()) linear->precision = precision;
}

void GptParameters::prepare(kernels::WeightFormat format) {
  std::vector<kernels::PreparedWeight> prepared;
  if (format != kernels::WeightFormat::f32) {
    for (const LinearWeights* linear : linears()) prepared.emplace_back(linear->weight, format);
  }
  prepared_ = std::move(prepared);
  prepared_format_ = format;
  packed_.clear();
  std::size_t next = 0;
  for (LinearWeights* linear : linears()) {
    linear->prepared = prepared_.empty() ? nullptr : &prepared_[next++];
    linear->packed = nullptr;
  }
}

void GptParameters::pack() {
  if (prepared_format_ != kernels::WeightFormat::f32) return;
  packed_.clear();
  for (const LinearWeights* linear : linears()) packed_.emplace_back(linear->weight);
  std::size_t next = 0;
  for (LinearWeights* linear : linears()) linear->packed = &packed_[next++];
}

std::int64_t GptParameters::packed_bytes(const GptConfig& config) {
  const auto bytes = kernels::PackedWeight::bytes_needed;
  const std::int64_t c = config.channels, a = config.attention_width(), f = config.feed_forward;
  return config.layers * (bytes(3 * a, c) + bytes(c, a) + bytes(f, c) + bytes(c, f)) +
         bytes(config.vocabulary_size, c);
}

std::vector<LinearWeights*> GptParameters::linears() {
  std::vector<LinearWeights*> all;
  for (BlockParameters& block : blocks_) {
    all.insert(all.end(), {&block.query_key_value, &block.projection, &block.up, &block.down});
  }
  all.push_back(&unembedding_);
  return all;
}

GptGradients::GptGradients(const GptConfig& config)
    : config_(config), layout_(gpt_layout(config)), arena_(layout_) {
  const auto norm = [](View<float> gain, View<float> bias) {
    return NormWeightGradients{gain, bias};
  };
  const auto linear = [](View<float> weight, View<float> bias) {
    return LinearWeightGradients{weight, bias};
  };
  blocks_ = bind_blocks<BlockGradients, NormWeightGradients, LinearWeightGradients>(
      arena_, layout_, config.layers, norm, linear);
  final_norm_ =
      norm(find_view(arena_, layout_, "ln_f.weight"), find_view(arena_, layout_, "ln_f.bias"));
}

void GptGradients::clear() {
  const std::span<float> values = arena_.all();
  parallel_ranges(static_cast<std::int64_t>(values.size()), 1 << 16,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::fill(values.begin() + begin, values.begin() + end, 0.0F);
                  });
}

View<float> GptGradients::tensor(std::string_view name) { return tensor_of(arena_, layout_, name); }

View<float> GptGradients::unembedding() {
  return tensor(config_.tied_unembedding ? "wte.weight" : "lm_head.weight");
}

View<float> GptGradients::unembedding_bias() { return find_view(arena_, layout_, "lm_head.bias"); }

}  // namespace heed
