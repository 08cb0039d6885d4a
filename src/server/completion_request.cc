#include "server/completion_request.h"

#include <charconv>
#include <random>

#include "base/error.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::size_t most_stop_strings = 16;
constexpr std::size_t longest_stop_string = 1024;
constexpr std::size_t most_biases = 1024;
constexpr std::int64_t most_likeliest = 20;

// OpenAI's defaults, not those of `heed generate`: with none of the filters a sample is the
// model's.
SamplingOptions read_sampling(const Fields& fields, std::int64_t vocabulary) {
  SamplingOptions sampling;
  sampling.temperature = fields.number("temperature", 0, 100).value_or(1);
  sampling.top_p = fields.number("top_p", 0, 1).value_or(1);
  sampling.top_k = fields.integer("top_k", -1, vocabulary).value_or(0);
  if (sampling.top_k == -1) sampling.top_k = 0;
  sampling.min_p = fields.number("min_p", 0, 1).value_or(0);
  sampling.repeat_penalty = fields.number("repeat_penalty", 0.01, 100).value_or(1);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  sampling.repeat_last_n = fields.integer("repeat_last_n", -1, INT32_MAX).value_or(-1);
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  if (seed) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  } else {
    std::random_device device;
    sampling.seed = (static_cast<std::uint64_t>(device()) << 32) | device();
  }
  return sampling;
}

std::vector<std::pair<std::int32_t, float>> read_biases(const Fields& fields,
                                                        std::int64_t vocabulary) {
  std::vector<std::pair<std::int32_t, float>> biases;
  const Json* object = fields.find("logit_bias");
  if (object == nullptr) return biases;
  require(object->is_object() && object->size() <= most_biases, ErrorCode::invalid_argument,
          "logit_bias must be an object of up to {} token ids, not {}", most_biases,
          shown(*object));
  for (const auto& [key, value] : object->items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require(error == std::errc{} && end == key.data() + key.size() && id >= 0 && id < vocabulary,
            ErrorCode::invalid_argument, "logit_bias names {}, which is no token id from 0 to {}",
            shown(key), vocabulary - 1);
    require(value.is_number() && value.get<double>() >= -100 && value.get<double>() <= 100,
            ErrorCode::invalid_argument, "logit_bias must be from -100 to 100, not {}",
            shown(value));
    biases.emplace_back(id, value.get<float>());
  }
  return biases;
}

std::vector<std::string> read_stop_strings(const Fields& fields, const LoadedModel& model) {
  std::vector<std::string> stops = fields.strings("stop", most_stop_strings);
  for (const std::string& stop : stops) {
    require(!stop.empty() && stop.size() <= longest_stop_string, ErrorCode::invalid_argument,
            "a stop string has 1 to {} bytes, not {}", longest_stop_string, stop.size());
  }
  if (!stops.empty()) model.require_tokenizer();
  return stops;
}

bool read_streams_usage(const Fields& fields) {
  if (!fields.has("stream_options")) return false;
  return fields.required_object("stream_options").boolean("include_usage").value_or(false);
}

}  // namespace

CompletionRequest read_completion_request(const Json& body, const LoadedModel& model,
                                          const CompletionLimits& limits) {
  const Fields fields(body);
  const std::int64_t vocabulary = model.gpt.config().vocabulary_size;
  require(fields.string("suffix").value_or("").empty(), ErrorCode::unsupported,
          "a suffix is not supported: this model writes onwards only");
  CompletionRequest request;
  request.choices = fields.integer("n", 1, limits.choices).value_or(1);
  request.candidates = fields.integer("best_of", 1, limits.choices).value_or(request.choices);
  request.echoes = fields.boolean("echo").value_or(false);
  request.streams = fields.boolean("stream").value_or(false);
  request.streams_usage = read_streams_usage(fields);
  request.log_probabilities = fields.integer("logprobs", 0, most_likeliest);
  require(request.candidates >= request.choices, ErrorCode::invalid_argument,
          "best_of ({}) must not be smaller than n ({})", request.candidates, request.choices);
  require(!request.streams || request.candidates == request.choices, ErrorCode::invalid_argument,
          "what is the best of several is known at the end: best_of cannot be streamed");
  request.sequence.sampling = read_sampling(fields, vocabulary);
  request.sequence.logit_bias = read_biases(fields, vocabulary);
  request.sequence.stop_strings = read_stop_strings(fields, model);
  request.sequence.ignore_end_of_text = fields.boolean("ignore_eos").value_or(false);
  request.sequence.max_tokens = fields.integer("max_tokens", 0, limits.max_tokens).value_or(16);
  request.prompts = read_prompts(fields.find("prompt"), model, limits.prompts, "prompt");
  const std::int64_t sequences = std::ssize(request.prompts) * request.candidates;
  require(sequences <= limits.sequences, ErrorCode::invalid_argument,
          "{} prompts with {} choices each are {} texts, more than the {} of one request",
          request.prompts.size(), request.candidates, sequences, limits.sequences);
  // The best of several is told by its tokens' mean.
  const bool ranks = request.candidates > request.choices;
  request.sequence.top = request.log_probabilities;
  if (ranks && !request.sequence.top) request.sequence.top = 0;
  request.sequence.scores_prompt = request.echoes && request.log_probabilities.has_value();
  return request;
}

}  // namespace heed::server
