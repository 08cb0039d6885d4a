#include "train/gradient_norms.h"

#include <cmath>

#include "kernels/kernels.h"

namespace heed {
namespace {

double squared_norm(View<const float> view) {
  return view.present() ? kernels::squared_norm(view.span()) : 0.0;
}

double squared_norm(const NormWeightGradients& norm) {
  return squared_norm(norm.gain) + squared_norm(norm.bias);
}

double squared_norm(const LinearWeightGradients& linear) {
  return squared_norm(linear.weight) + squared_norm(linear.bias);
}

double squared_norm(const BlockGradients& block) {
  return squared_norm(block.norm_1) + squared_norm(block.query_key_value) +
         squared_norm(block.query_norm) + squared_norm(block.key_norm) +
         squared_norm(block.projection) + squared_norm(block.norm_2) + squared_norm(block.gate) +
         squared_norm(block.up) + squared_norm(block.down);
}

// Behind the blocks.
bool is_final(Role role) {
  return role == Role::final_norm || role == Role::prediction || role == Role::prediction_norm ||
         role == Role::unembedding;
}

}  // namespace

std::vector<PartNorm> gradient_norms(const StackSpecification& config, GptGradients& gradients) {
  std::vector<PartNorm> norms;
  const auto add = [&](std::string part, double squared) {
    norms.push_back({std::move(part), std::sqrt(squared)});
  };
  add("embedding", squared_norm(gradients.tensor({Role::token_embedding})) +
                       squared_norm(gradients.position_embedding()));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    add(std::to_string(layer), squared_norm(gradients.block(layer)));
  }
  double final = squared_norm(gradients.final_norm()) + squared_norm(gradients.unembedding_bias());
  if (!config.tied_unembedding) final += squared_norm(gradients.unembedding());
  add("final", final);
  return norms;
}

std::vector<PartNorm> gradient_norms(const Architecture& architecture, GptGradients& gradients) {
  std::vector<PartNorm> norms;
  for (const Parameter& parameter : parameters_of(architecture)) {
    const ParameterId& id = parameter.id;
    std::string part(site_prefix(id.site));
    if (id.layer >= 0) {
      part += std::to_string(id.layer);
    } else {
      part += is_final(id.role) ? "final" : "embedding";
    }
    // A part's parameters are neighbours in the arena.
    if (norms.empty() || norms.back().part != part) norms.push_back({part, 0.0});
    norms.back().norm += kernels::squared_norm(gradients.tensor(id).span());
  }
  for (PartNorm& each : norms) each.norm = std::sqrt(each.norm);
  return norms;
}

}  // namespace heed
