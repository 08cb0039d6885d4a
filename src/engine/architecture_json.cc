#include "engine/architecture_json.h"

#include <algorithm>

#include "formats/config_fields.h"
#include "formats/format.h"

namespace heed {
namespace {

std::string family_of(const StackSpecification& stack) {
  const auto found = std::ranges::find_if(
      formats(), [&](const Format& format) { return format.expresses({.stacks = {stack}}); });
  return found == formats().end() ? "custom" : std::string(found->name);
}

}  // namespace

OrderedJson architecture_json(const StackSpecification& stack) {
  const auto& [norm, attention, cross_attention, feed_forward, residual] = stack.block;
  OrderedJson json{{"family", family_of(stack)},
                   {"norm", norm_kind_name(norm.kind)},
                   {"positions", position_kind_name(attention.positions)},
                   {"key_value_heads", attention.key_value_heads},
                   {"windows", attention.mask.windows},
                   {"gated", feed_forward.gated},
                   {"activation", activation_name(feed_forward.activation)},
                   {"activation_label", kernels::description_of(feed_forward.activation).label},
                   {"query_key_norm", attention.query_key_norm},
                   {"residual", stack.is_parallel() ? "parallel" : "sequential"}};
  if (attention.positions == PositionKind::rotary) {
    OrderedJson written;
    write_rotary_scaling(attention.rotary, written);
    json["rotary"] = {{"base", attention.rotary.base}, {"channels", attention.rotary_channels()}};
    if (written.contains("rope_scaling")) json["rotary"]["scaling"] = written["rope_scaling"];
  }
  json["biases"] = {{"norm", norm.bias},
                    {"query", attention.query_bias},
                    {"output", attention.output_bias},
                    {"feed_forward", feed_forward.bias}};
  return json;
}

}  // namespace heed
