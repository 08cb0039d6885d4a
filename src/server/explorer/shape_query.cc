#include "server/explorer/shape_query.h"

#include <algorithm>

#include "base/error.h"
#include "model/presets.h"

namespace heed::server {

bool truth(const Request& request, const std::string& name, bool fallback) {
  const std::string word =
      one_of(request, name, {fallback ? "true" : "false", "true", "false", "1", "0"});
  return word == "true" || word == "1";
}

namespace {

constexpr const char* shape_parameters[] = {
    "layers",       "heads",      "key_value_heads", "channels", "head_size",
    "feed_forward", "vocabulary", "context",         "tied",     "bias",
    "gated",        "norm",       "positions",       "residual"};

// Upper limits of the sizes, so that their products stay below 2^63.
constexpr std::int64_t most_layers = 10000;
constexpr std::int64_t most_width = 1 << 20;
constexpr std::int64_t most_rows = std::int64_t{1} << 24;

// ?gated=, ?norm=, ?positions= and ?residual=; by default the model's own.
void describe_block(const Request& request, BlockSpecification& block) {
  block.feed_forward.gated = truth(request, "gated", block.feed_forward.gated);
  const bool is_rms =
      one_of(request, "norm",
             {block.norm.kind == NormKind::rms ? "rms" : "layer", "layer", "rms"}) == "rms";
  block.norm.kind = is_rms ? NormKind::rms : NormKind::layer;
  if (is_rms) block.norm.bias = false;
  const std::string residual =
      one_of(request, "residual",
             {block.residual == ResidualKind::parallel ? "parallel" : "sequential", "sequential",
              "parallel"});
  block.residual = residual == "parallel" ? ResidualKind::parallel : ResidualKind::sequential;
  if (!request.parameter("positions")) return;
  const std::string positions =
      one_of(request, "positions", {"learned", "learned", "rotary", "none"});
  block.attention.positions = positions == "rotary"    ? PositionKind::rotary
                              : positions == "learned" ? PositionKind::learned
                                                       : PositionKind::none;
}

}  // namespace

StackSpecification shape_of(const State& state, const Request& request, std::string& name) {
  if (const auto preset = request.parameter("config")) {
    name = *preset;
    return model_preset(*preset).config;
  }
  StackSpecification config = state.context.model.gpt.specification();
  name = state.context.name;
  if (std::ranges::none_of(shape_parameters,
                           [&](const char* each) { return request.parameter(each).has_value(); })) {
    return config;
  }
  name = "shape";
  config.layers = bounded(request, "layers", config.layers, 1, most_layers);
  AttentionSpecification& attention = config.block.attention;
  const std::int64_t heads = bounded(request, "heads", config.heads(), 1, most_width);
  attention.key_value_heads =
      bounded(request, "key_value_heads",
              heads == config.heads() ? config.key_value_heads() : heads, 1, most_width);
  attention.query_heads = heads;
  require(heads % attention.key_value_heads == 0, ErrorCode::invalid_argument,
          "{} query heads cannot share {} key/value heads evenly", heads,
          attention.key_value_heads);
  config.channels = bounded(request, "channels", config.channels, 1, most_width);
  const std::int64_t head_size = std::max<std::int64_t>(config.channels / config.heads(), 1);
  config.block.attention.head_size = bounded(request, "head_size", head_size, 1, most_width);
  config.block.feed_forward.width =
      bounded(request, "feed_forward", 4 * config.channels, 1, 8 * most_width);
  config.vocabulary_size = bounded(request, "vocabulary", config.vocabulary_size, 1, most_rows);
  config.context = bounded(request, "context", config.context, 1, most_rows);
  config.tied_unembedding = truth(request, "tied", config.tied_unembedding);
  describe_block(request, config.block);
  if (request.parameter("bias")) set_biases(config, truth(request, "bias", true));
  // A window for each layer would have to follow their number.
  if (std::ssize(attention.mask.windows) != config.layers) attention.mask = {};
  config.end_of_text = -1;
  require(config.heads() * config.head_size() <= 8 * most_width, ErrorCode::invalid_argument,
          "{} heads of {} are wider than {}", config.heads(), config.head_size(), 8 * most_width);
  return config;
}

}  // namespace heed::server
