#include "server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "server/field_error.h"

namespace heed::server {
namespace {

constexpr std::size_t most_biases = 1024;
constexpr double largest_bias = 100;

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// "repetition_penalty" is the name that other servers give to the same penalty of the whole text,
// the prompt included.
void read_repeat_penalty(const Fields& fields, SamplingOptions& options) {
  constexpr double least = 0.01;
  constexpr double most = 100;
  const auto of_text = fields.number("repetition_penalty", least, most);
  const auto of_window = fields.number("repeat_penalty", least, most);
  require_field(!of_text || !of_window || *of_text == *of_window, fields.path("repetition_penalty"),
                field_code::invalid_value,
                "repetition_penalty ({}) and repeat_penalty ({}) are the same setting; give one",
                of_text.value_or(1), of_window.value_or(1));
  if (of_text) {
    options.repeat_penalty = *of_text;
    options.repeat_last_n = -1;
  }
  if (of_window) options.repeat_penalty = *of_window;
  options.repeat_last_n =
      fields.integer("repeat_last_n", -1, INT32_MAX).value_or(options.repeat_last_n);
}

}  // namespace

SamplingOptions read_sampling(const Fields& fields, std::int64_t vocabulary) {
  SamplingOptions options;
  const auto number = [&](const char* name, double& value, double least, double most) {
    value = fields.number(name, least, most).value_or(value);
  };
  number("temperature", options.temperature, 0, 100);
  number("top_p", options.top_p, 0, 1);
  number("min_p", options.min_p, 0, 1);
  number("presence_penalty", options.presence_penalty, -2, 2);
  number("frequency_penalty", options.frequency_penalty, -2, 2);
  // More than there are is all of them.
  options.top_k =
      std::min(fields.integer("top_k", -1, INT32_MAX).value_or(options.top_k), vocabulary);
  if (options.top_k == -1) options.top_k = 0;
  read_repeat_penalty(fields, options);
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  options.seed = seed && *seed != -1 ? static_cast<std::uint64_t>(*seed) : random_seed();
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
  require_field(object->size() <= most_biases, field, field_code::invalid_value,
                "logit_bias has {} token ids; at most {} are accepted", object->size(),
                most_biases);
  for (const auto& [key, value] : object->items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require_field(
        error == std::errc{} && end == key.data() + key.size() && id >= 0 && id < vocabulary, field,
        field_code::invalid_value, "logit_bias names {}, which is not a token id from 0 to {}",
        shown(key), vocabulary - 1);
    require_field(value.is_number() && value.get<double>() >= -largest_bias &&
                      value.get<double>() <= largest_bias,
                  field, field_code::invalid_value, "logit_bias must be from {} to {}, not {}",
                  -largest_bias, largest_bias, shown(value));
    biases.emplace_back(id, value.get<float>());
  }
  return biases;
}

OrderedJson sampling_json(const SamplingOptions& options) {
  return {{"temperature", options.temperature},
          {"top_k", options.top_k},
          {"top_p", options.top_p},
          {"min_p", options.min_p},
          {"repeat_penalty", options.repeat_penalty},
          {"repeat_last_n", options.repeat_last_n},
          {"presence_penalty", options.presence_penalty},
          {"frequency_penalty", options.frequency_penalty}};
}

}  // namespace heed::server
