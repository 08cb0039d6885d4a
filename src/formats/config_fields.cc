#include "formats/config_fields.h"

#include <fmt/ranges.h>

#include <map>

namespace heed {
Activation activation_from_name(const ConfigFields& fields, const char* key,
                                const char* otherwise) {
  static const std::map<std::string, Activation> known{
      {"gelu_new", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"gelu", Activation::gelu_erf},      {"relu", Activation::relu},
      {"silu", Activation::silu},          {"swish", Activation::silu}};
  const std::string name = fields.text_or(key, otherwise);
  const auto found = known.find(name);
  require(found != known.end(), ErrorCode::unsupported,
          "{}: {} '{}' is not one of gelu_new, gelu_pytorch_tanh, gelu, relu, silu",
          fields.source(), key, name);
  return found->second;
}

void require_config_extents(const ConfigFields& fields,
                            std::initializer_list<ConfigExtent> extents) {
  for (const ConfigExtent& extent : extents) {
    require(extent.value >= 1 && extent.value <= extent.most, ErrorCode::corrupt_data,
            "{}: the model's {} must be between 1 and {}, not {}", fields.source(), extent.name,
            extent.most, extent.value);
  }
}

std::int64_t read_end_of_text(const ConfigFields& fields, std::int64_t vocabulary_size) {
  if (!fields.has("eos_token_id")) return -1;
  const Json& stored = fields.at("eos_token_id");
  if (stored.is_array() && stored.empty()) return -1;
  const std::int64_t id = json_integer(stored.is_array() ? stored.front() : stored,
                                       {fields.source() + ": 'eos_token_id'"});
  // Small vocabularies keep their family's default although they have no such token.
  return id < vocabulary_size ? id : -1;
}

double short_decimal(float value) { return std::stod(fmt::format("{:.7g}", value)); }

}  // namespace heed
