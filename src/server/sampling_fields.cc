#include "server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/error.h"

namespace heed::server {
namespace {

constexpr std::size_t max_biases = 1024;
constexpr double max_bias = 100;

OrderedJson number_of(const SamplingOption& option, double value) {
  return option.is_whole() ? OrderedJson(static_cast<std::int64_t>(value)) : OrderedJson(value);
}

OrderedJson value_of(const SamplingOption& option, const SamplingOptions& options) {
  return std::visit([&](auto member) { return OrderedJson(options.*member); }, option.member);
}

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// Reads a field, if it is there, as `option`.
void read_option(const Fields& fields, const std::string& name, const SamplingOption& option,
                 SamplingOptions& options) {
  const Json* const value = fields.find(name.c_str());
  if (value == nullptr) return;
  const bool is_number = option.is_whole() ? value->is_number_integer() : value->is_number();
  const std::string problem = option.read(options, shown(*value));
  require_field(problem.empty(), fields.path(name.c_str()),
                is_number ? field_code::invalid_value : field_code::invalid_type, "{} {}", name,
                problem);
}

// "repetition_penalty" is the name that other servers give to the same penalty of the whole text,
// the prompt included.
void read_repetition_penalty(const Fields& fields, SamplingOptions& options) {
  if (!fields.has("repetition_penalty")) return;
  const double of_window = options.repeat_penalty;
  const SamplingOption& repeat_penalty = *std::ranges::find(
      sampling_options(), std::string_view("repeat_penalty"), &SamplingOption::name);
  read_option(fields, "repetition_penalty", repeat_penalty, options);
  require_field(!fields.has("repeat_penalty") || options.repeat_penalty == of_window,
                fields.path("repetition_penalty"), field_code::invalid_value,
                "repetition_penalty ({}) and repeat_penalty ({}) are the same setting; give one",
                options.repeat_penalty, of_window);
  if (!fields.has("repeat_last_n")) options.repeat_last_n = -1;
}

}  // namespace

SamplingOptions read_sampling(const Fields& fields) {
  SamplingOptions options;
  for (const SamplingOption& option : sampling_options()) {
    if (!option.is_seed()) read_option(fields, option.name, option, options);
  }
  read_repetition_penalty(fields, options);
  // OpenAI's seeds are signed; -1 is a random one for llama.cpp.
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  options.seed = seed && *seed != -1 ? static_cast<std::uint64_t>(*seed) : random_seed();
  return options;
}

SamplingOptions read_sampling(const Request& request) {
  SamplingOptions options;
  for (const SamplingOption& option : sampling_options()) {
    const std::string text = request.parameter(option.name).value_or("");
    if (option.is_seed() || text.empty()) continue;
    const std::string problem = option.read(options, text);
    require(problem.empty(), ErrorCode::invalid_argument, "{} {}", option.name, problem);
  }
  return options;
}

std::vector<std::pair<std::int32_t, float>> read_logit_bias(const Fields& fields,
                                                            std::int64_t vocabulary) {
  std::vector<std::pair<std::int32_t, float>> biases;
  const std::string field = fields.path("logit_bias");
  const Json* object = fields.find("logit_bias");
  if (object == nullptr) return biases;
  require_field(object->is_object(), field, field_code::invalid_type,
                "logit_bias must be an object from token ids to numbers, not {}", shown(*object));
  require_field(object->size() <= max_biases, field, field_code::invalid_value,
                "logit_bias has {} token ids; at most {} are accepted", object->size(), max_biases);
  for (const auto& [key, value] : object->items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require_field(
        error == std::errc{} && end == key.data() + key.size() && id >= 0 && id < vocabulary, field,
        field_code::invalid_value, "logit_bias names {}, which is not a token id from 0 to {}",
        shown(key), vocabulary - 1);
    require_field(
        value.is_number() && value.get<double>() >= -max_bias && value.get<double>() <= max_bias,
        field, field_code::invalid_value, "logit_bias must be from {} to {}, not {}", -max_bias,
        max_bias, shown(value));
    biases.emplace_back(id, value.get<float>());
  }
  return biases;
}

OrderedJson sampling_json(const SamplingOptions& options) {
  OrderedJson json;
  for (const SamplingOption& option : sampling_options()) {
    if (!option.is_seed()) json[option.name] = value_of(option, options);
  }
  return json;
}

OrderedJson sampling_schemas() {
  OrderedJson schemas;
  for (const SamplingOption& option : sampling_options()) {
    if (option.is_seed()) continue;
    schemas[option.name] = {{"type", option.is_whole() ? "integer" : "number"},
                            {"default", value_of(option, SamplingOptions{})},
                            {"minimum", number_of(option, option.min)},
                            {"maximum", number_of(option, option.max)},
                            {"description", option.help}};
  }
  return schemas;
}

OrderedJson sampling_table_json() {
  OrderedJson rows = OrderedJson::array();
  for (const SamplingOption& option : sampling_options()) {
    const SamplingOption::Control& control = option.control;
    if (control.label == nullptr) continue;
    rows.push_back({{"name", option.name},
                    {"stage", sampling_stage_name(option.stage)},
                    {"label", control.label},
                    {"help", option.help},
                    {"default", value_of(option, SamplingOptions{})},
                    {"unmodified", option.unmodified},
                    {"min", control.min},
                    {"max", control.max},
                    {"step", control.step},
                    {"at_zero", control.at_zero}});
  }
  return rows;
}

}  // namespace heed::server
