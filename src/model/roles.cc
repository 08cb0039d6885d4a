#include "model/roles.h"

#include <fmt/format.h>

#include <array>

namespace heed {
namespace {

constexpr std::array<std::string_view, 24> names = {"token_embedding",
                                                    "position_embedding",
                                                    "token_type_embedding",
                                                    "position_bias",
                                                    "embedding_norm",
                                                    "norm_1",
                                                    "attention.query_key_value",
                                                    "attention.query_norm",
                                                    "attention.key_norm",
                                                    "attention.output",
                                                    "attention.out_norm",
                                                    "cross_norm",
                                                    "cross_attention.query",
                                                    "cross_attention.key_value",
                                                    "cross_attention.output",
                                                    "norm_2",
                                                    "feed_forward.gate",
                                                    "feed_forward.up",
                                                    "feed_forward.down",
                                                    "feed_forward.out_norm",
                                                    "final_norm",
                                                    "prediction",
                                                    "prediction_norm",
                                                    "unembedding"};

}  // namespace

std::string_view role_name(Role role) { return names[static_cast<std::size_t>(role)]; }

std::string parameter_name(const ParameterId& id) {
  const char* const part = id.part == Part::weight ? "weight" : "bias";
  const std::string_view site = site_prefix(id.site);
  return id.layer < 0 ? fmt::format("{}{}.{}", site, role_name(id.role), part)
                      : fmt::format("{}blocks.{}.{}.{}", site, id.layer, role_name(id.role), part);
}

std::string_view site_prefix(StackSite site) {
  switch (site) {
    case StackSite::only: return "";
    case StackSite::encoder: return "encoder.";
    case StackSite::decoder: return "decoder.";
  }
  return "";
}

bool is_cross_attention(Role role) {
  return role == Role::cross_query || role == Role::cross_key_value || role == Role::cross_output;
}

bool is_attention(Role role) {
  return role == Role::query_key_value || role == Role::attention_output ||
         is_cross_attention(role);
}

bool is_linear(Role role) {
  if (is_attention(role)) return true;
  switch (role) {
    case Role::gate:
    case Role::up:
    case Role::down:
    case Role::prediction:
    case Role::unembedding: return true;
    default: return false;
  }
}

bool is_norm(Role role) {
  switch (role) {
    case Role::norm_1:
    case Role::cross_norm:
    case Role::attention_out_norm:
    case Role::feed_forward_out_norm:
    case Role::query_norm:
    case Role::key_norm:
    case Role::norm_2:
    case Role::embedding_norm:
    case Role::prediction_norm:
    case Role::final_norm: return true;
    default: return false;
  }
}

bool writes_to_stream(Role role) {
  return role == Role::attention_output || role == Role::cross_output || role == Role::down;
}

}  // namespace heed
